//! Puts `#line` directives before the statements of a printed file. By them debuggers and profilers
//! show lines of the program in place of lines of the CUDA C++.

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

/// A file name as a string literal. Control characters, which no directive can hold, become blanks.
fn quoted(file: &str) -> String {
    let escaped = file.chars().flat_map(|c| {
        let slash = matches!(c, '"' | '\\').then_some('\\');
        slash.into_iter().chain([if c.is_control() { ' ' } else { c }])
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_literals() {
        assert_eq!(quoted("a \"b\"\\c\n.cby"), "\"a \\\"b\\\"\\\\c .cby\"");
    }
}
