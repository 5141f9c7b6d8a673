//! Makes edits that insert a line before or after a statement. [`before`] and [`behind`] make them
//! without indentation. [`indented`] is applied to all edits of a fix at the end: it gives inserted
//! lines the indentation and the line ends of the text around. Fixes may also contain other edits,
//! which replace text (`wait(1)` by `wait(0)`).

use carbyne_ir::diag::Edit;
use carbyne_ir::span::Span;

/// Inserts a line before a statement, without indentation.
pub(crate) fn before(stmt: Span, line: &str) -> Edit {
    let at = stmt.start as usize;
    Edit::new(Span::new(at, at), format!("{line}\n"))
}

/// Inserts a line after a statement, without indentation.
pub(crate) fn behind(stmt: Span, line: &str) -> Edit {
    let at = stmt.end as usize;
    Edit::new(Span::new(at, at), format!("\n{line}"))
}

/// Gives inserted lines the indentation of the line at which they are inserted, and the line ends
/// of the text.
pub(crate) fn indented(mut edits: Vec<Edit>, text: &str) -> Vec<Edit> {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    for edit in &mut edits {
        let Some(before) = text.get(..edit.start()) else { continue };
        let line = &before[before.rfind('\n').map_or(0, |i| i + 1)..];
        let indent = &line[..line.len() - line.trim_start().len()];
        edit.text = edit.text.replace('\n', &format!("{end}{indent}"));
    }
    edits
}
