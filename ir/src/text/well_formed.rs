//! Checks that a module can be written as a text: it is printed, parsed, and compared with the
//! result, except for comments and blank lines. Trees that a program built in memory may fail this,
//! for example by a name with a blank in it.

use super::parse::parse_up_to;
use super::print::{print_head, print_plain};
use super::scan::too_long;
use crate::ast::{Module, Stmt};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::MAX_TEXT_BYTES;
use crate::span::Span;

/// The maximum number of characters of a line that a message quotes.
const MAX_QUOTED: usize = 60;
/// The factor by which blanks may lengthen a printed text. A text written by hand never needs it.
const MAX_BLANKS: usize = 4;

/// The reasons why a module cannot be written as a text. Empty for every module that
/// [`parse`](super::parse()) returns.
///
/// The module is printed, parsed and compared. Comments and blank lines are ignored, as they change
/// no meaning.
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

/// Converts an error of the printed text to an error of the statement at that place.
fn unwritable(d: &Diagnostic, text: &str, span: Span) -> Diagnostic {
    if d.code == Code::TextTooLong {
        let said = Diagnostic::new(d.code, span, d.message.clone());
        return said.label("the printed text is too long").help("build a smaller program");
    }
    let before = text.get(..d.span.start as usize).unwrap_or(text);
    let line = text[before.rfind('\n').map_or(0, |n| n + 1)..].lines().next().unwrap_or("");
    Diagnostic::new(d.code, span, "this statement cannot be written as a text")
        .label(printed(line))
        .note(d.message.clone())
        .help("change the tree so that its text is valid")
}

fn printed(line: &str) -> String {
    let quoted: String = line.trim().chars().take(MAX_QUOTED).collect();
    format!("printed as `{quoted}`")
}

/// An error at the innermost first statement that does not parse to an equal tree. `None` if all
/// do.
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
    let message = "the text of this statement parses to another statement";
    let help = "use names, numbers and lists as docs/grammar.md defines them";
    let label = printed(text.lines().next().unwrap_or(""));
    Some(Diagnostic::new(Code::Syntax, span, message).label(label).help(help))
}

/// Statements without comments and blank lines. Their nesting is bounded as in a text.
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
