//! Whether a module could have been read from a text: for trees that were built in memory.

use super::parse::parse_up_to;
use super::print::{print_head, print_plain};
use crate::ast::{Module, Stmt};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::MAX_TEXT_BYTES;
use crate::span::Span;

/// Characters of a line that a message quotes.
const MAX_QUOTED: usize = 60;
/// Bytes of a printed text without indentation: a text that was read may have fewer blanks.
const MAX_PRINTED: usize = 4 * MAX_TEXT_BYTES;

/// Why a module could not have been read from a text; empty for one that could, as every parsed one.
///
/// The module is printed, parsed and compared. Blank lines and comments are not: they change no meaning.
#[must_use]
pub fn well_formed(module: &Module) -> Diagnostics {
    let (text, places) = print_plain(module);
    let statement = |at: usize| {
        let n = places.partition_point(|(begins, _)| *begins <= at);
        n.checked_sub(1).map_or(Span::default(), |n| places[n].1.span)
    };
    let mut errors = Diagnostics::default();
    match parse_up_to(&text, MAX_PRINTED) {
        Err(unread) => {
            for d in unread {
                errors.push(built(&d, &text, statement(d.span.start as usize)));
            }
        }
        Ok(read) => {
            if let Some(d) = different(module, &read) {
                errors.push(d);
            }
        }
    }
    errors
}

/// An error of the printed text, as one of the statement that was printed there.
fn built(d: &Diagnostic, text: &str, span: Span) -> Diagnostic {
    let said = Diagnostic::new(d.code, span, d.message.clone());
    if d.code == Code::TextTooLong {
        return said.label("as it is printed").help("build a smaller program");
    }
    let before = text.get(..d.span.start as usize).unwrap_or(text);
    let line = text[before.rfind('\n').map_or(0, |n| n + 1)..].lines().next().unwrap_or("");
    said.label(printed(line)).help("change the tree so that this text is right")
}

fn printed(line: &str) -> String {
    let quoted: String = line.trim().chars().take(MAX_QUOTED).collect();
    format!("printed as `{quoted}`")
}

/// An error at the first statement that reads back as another one, of those the innermost; none where there is none.
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
