//! Puts `#line` directives before the statements of printed kernels. By them debuggers and
//! profilers show lines of the program in place of lines of the CUDA C++.

use super::ast::{Comment, Item, Stmt, StmtKind};

/// Puts a directive before each statement of a kernel that comes from a line of the program. `file`
/// is the name of the program's text.
pub fn put(items: &mut [Item], file: &str) {
    let kernels = items.iter_mut().filter_map(|item| match item {
        Item::Kernel(kernel) => Some(kernel),
        _ => None,
    });
    kernels.for_each(|kernel| block(&mut kernel.body, file));
}

fn block(stmts: &mut Vec<Stmt>, file: &str) {
    let mut out = Vec::with_capacity(stmts.len() * 2);
    for mut stmt in std::mem::take(stmts) {
        match &mut stmt.kind {
            StmtKind::For(f) => block(&mut f.body, file),
            StmtKind::If { then, otherwise, .. } => {
                block(then, file);
                block(otherwise, file);
            }
            StmtKind::Block(body) => block(body, file),
            _ => {}
        }
        let said = match &stmt.kind {
            StmtKind::Comment(comment) => Some(comment),
            _ => stmt.comment.as_ref(),
        };
        if let Some(Comment { line: line @ 1.., .. }) = said {
            out.push(Stmt::new(StmtKind::Line { line: *line, file: quoted(file) }));
        }
        out.push(stmt);
    }
    *stmts = out;
}

/// A file name as a string literal. NVRTC copies it into PTX without escapes: backslashes become
/// slashes, and quotes and control characters `_`.
fn quoted(file: &str) -> String {
    let plain = |c: char| match c {
        '\\' => '/',
        '"' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    format!("\"{}\"", file.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_literals_of_ptx_too() {
        assert_eq!(quoted("a \"b\"\\c\n.cby"), "\"a _b_/c_.cby\"");
    }
}
