//! Adds a comment to each synchronization statement of the checked kernels of a text, in place of
//! one of an earlier run. The comment names the accesses that the statement orders, so that a
//! reader knows why the statement is needed:
//! `barrier // orders: line 3 reads %s, before line 4 overwrites it`.
//!
//! Invariant: a comment follows its statement on the statement's last line. Therefore line numbers
//! in comments are valid in the text with and without comments.

use carbyne_ir::ast::{Module, StmtKind, visit::Walk};
use carbyne_ir::program::{Program, SpecId};
use carbyne_sync::Report;

/// The text of `module` with new comments; comments of an earlier run are replaced.
pub(crate) fn annotated(
    text: &str,
    module: &Module,
    program: &Program,
    reports: &[(SpecId, Report)],
) -> String {
    let comments = carbyne_remedy::comments(program, reports);
    // Sorted by the ends of their lines.
    let mut all: Vec<(usize, &str)> = vec![];
    let stmts = Walk::new(&module.items).stmts();
    for stmt in stmts.filter(|s| matches!(s.kind, StmtKind::Barrier(_) | StmtKind::Sync { .. })) {
        if let Some(comment) = comments.get(&stmt.span.start) {
            all.push((stmt.span.end as usize, comment));
        }
    }
    all.sort_unstable();
    let mut out = String::with_capacity(text.len() + 100 * all.len());
    let mut done = 0;
    for (end, comment) in all {
        // Several statements on one line: the first of them has already copied the text.
        if end > done {
            out.push_str(text.get(done..end).unwrap_or(""));
            let rest = text.get(end..).unwrap_or("");
            let line = rest.split(['\n', '\r']).next().unwrap_or("");
            out.push_str(without(line));
            done = end + line.len();
        }
        out.push_str(" // ");
        out.push_str(comment);
    }
    out.push_str(text.get(done..).unwrap_or(""));
    out
}

/// The line without its comment of an earlier run.
fn without(line: &str) -> &str {
    let ours = line.match_indices("//").find(|(i, _)| {
        let text = line.get(i + 2..).unwrap_or("").trim_start();
        carbyne_remedy::is_comment(text)
    });
    ours.map_or(line, |(i, _)| line.get(..i).unwrap_or("")).trim_end()
}

#[cfg(test)]
mod tests {
    use super::without;

    #[test]
    fn earlier_comments_are_taken_away() {
        for (line, left) in [
            ("", ""),
            ("  ", ""),
            (" // why", " // why"),
            (" // orders: line 3 reads %s, before line 4 overwrites it", ""),
            (" // why // orders nothing that is proved", " // why"),
            (" // orders: a // orders: b", ""),
            (" // ordered", " // ordered"),
        ] {
            assert_eq!(without(line), left);
        }
    }
}
