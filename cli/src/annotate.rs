//! A text with a comment at each statement of synchronization that says which accesses it orders.
//!
//! Invariant: a comment stands behind its statement, on its last line, so that the lines that
//! comments name are those of the text with them and without.

use carbyne_ir::ast::{Module, StmtKind, visit::Walk};
use carbyne_ir::program::{Program, SpecId};
use carbyne_sync::Report;

/// The text that `module` was read from, with comments in the place of those of an earlier time.
pub(crate) fn annotated(
    text: &str,
    module: &Module,
    program: &Program,
    reports: &[(SpecId, Report)],
) -> String {
    let comments = carbyne_remedy::comments(program, reports);
    // By where their lines end.
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
        // Of a line with several statements the last one has found its end already.
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

/// The end of a line without a comment of an earlier time.
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
