//! Whether a module could have been read from a text: for trees that were built in memory.

use super::parse::parse_up_to;
use super::print::{print_head, print_plain};
use super::scan::too_long;
use crate::ast::{Module, Stmt};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::MAX_TEXT_BYTES;
use crate::span::Span;

/// Characters of a line that a message quotes.
const MAX_QUOTED: usize = 60;
/// How often blanks may lengthen a printed text, which is none that a person has written.
const MAX_BLANKS: usize = 4;

/// Why a module could not have been read from a text; empty for one that could, as every parsed
/// one.
///
/// The module is printed, parsed and compared, but for comments and blank lines, which change no
/// meaning.
#[must_use]
pub fn well_formed(module: &Module) -> Diagnostics {
    let (text, places) = print_plain(module);
    let n = text.bytes().filter(|b| !b.is_ascii_whitespace()).count();
    let parsed = match n > MAX_TEXT_BYTES {
        true => Err(Box::new(too_long(n, MAX_TEXT_BYTES)).into()),
        false => parse_up_to(&text, MAX_BLANKS * MAX_TEXT_BYTES),
    };
    let span = |at: usize| {
        let n = places.partition_point(|(begins, _)| *begins <= at);
        n.checked_sub(1).map_or(Span::default(), |n| places[n].1.span)
    };
    match parsed {
        Err(errors) => {
            errors.iter().map(|d| unwritable(d, &text, span(d.span.start as usize))).collect()
        }
        Ok(read) => different(module, &read).into_iter().collect(),
    }
}

/// An error of the printed text, as one of the statement that was printed there.
fn unwritable(d: &Diagnostic, text: &str, span: Span) -> Diagnostic {
    if d.code == Code::TextTooLong {
        let said = Diagnostic::new(d.code, span, d.message.clone());
        return said.label("as it is printed").help("build a smaller program");
    }
    let before = text.get(..d.span.start as usize).unwrap_or(text);
    let line = text[before.rfind('\n').map_or(0, |n| n + 1)..].lines().next().unwrap_or("");
    Diagnostic::new(d.code, span, "this cannot be written in a text")
        .label(printed(line))
        .note(d.message.clone())
        .help("change the tree so that this text is right")
}

fn printed(line: &str) -> String {
    let quoted: String = line.trim().chars().take(MAX_QUOTED).collect();
    format!("printed as `{quoted}`")
}

/// An error at the first statement that reads back as another one, of those the innermost; none
/// where there is none.
fn different(module: &Module, read: &Module) -> Option<Diagnostic> {
    let (module, read) = (bare(&module.items), bare(&read.items));
    let (mut built, mut again) = (&module[..], &read[..]);
    let mut found = None;
    while let Some((a, b)) = std::iter::zip(built, again).find(|(a, b)| a != b) {
        found = Some((a.span, print_head(a)));
        let mut bodies = std::iter::zip(a.kind.blocks(), b.kind.blocks());
        let Some((a, b)) = bodies.find(|(a, b)| a.stmts != b.stmts) else { break };
        (built, again) = (&a.stmts, &b.stmts);
    }
    let (span, text) = found?;
    let message = "this statement reads back as another one, so that no text says it";
    let help = "give names, numbers and lists a form that docs/grammar.md has";
    let label = printed(text.lines().next().unwrap_or(""));
    Some(Diagnostic::new(Code::Syntax, span, message).label(label).help(help))
}

/// Statements without comments and blank lines. They nest no deeper than those of a text.
fn bare(stmts: &[Stmt]) -> Vec<Stmt> {
    let mut stmts = stmts.to_vec();
    for stmt in &mut stmts {
        stmt.blank_above = false;
        stmt.leading.clear();
        stmt.trailing = None;
        for block in stmt.kind.blocks_mut() {
            block.footer.clear();
            block.stmts = bare(&block.stmts);
        }
    }
    stmts
}
