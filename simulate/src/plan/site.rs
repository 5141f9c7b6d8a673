//! Defines small types of the plan. [`Site`] is the line and span of a statement, by which errors
//! and counts name it. [`Source`] is a read operand of a spec: a view, or a literal with its exact
//! and its rounded value. [`Checked`] is a result that may be an error of the program.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::fmt;

/// The result of a function that may report an error of the program.
pub(crate) type Checked<T> = Result<T, Box<Diagnostic>>;

/// The position of a statement.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Site {
    /// The line, 1-based; 0 without text.
    pub line: u32,
    /// The span of the statement or of the spec's head.
    pub span: Span,
}

/// The text `line 12`, or a replacement without text.
pub(crate) fn line_text(site: &Site) -> String {
    if site.line == 0 {
        "a statement without a line".to_owned()
    } else {
        format!("line {}", site.line)
    }
}

/// A read operand.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Source {
    /// A view.
    View(usize),
    /// A literal.
    Number(Literal),
}

/// A literal among a spec's operands.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Literal {
    /// The value as written; for an integer type, the value in the type.
    pub exact: f64,
    /// The value rounded to the type of the other operands.
    pub rounded: f64,
}

pub(super) fn unknown(span: Span, what: &str, why: impl fmt::Display) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::Symbolic, span, format!("{what} is not known"))
            .label(why.to_string())
            .help("give every symbol a value: `--sym NAME=VALUE`"),
    )
}

pub(crate) fn views_of(sources: &[Source]) -> impl Iterator<Item = usize> + '_ {
    sources.iter().filter_map(|s| match s {
        Source::View(v) => Some(*v),
        Source::Number(_) => None,
    })
}
