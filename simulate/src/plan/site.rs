//! A place in the text, and what is said of it and read there.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::fmt;

/// The result of anything that can be the fault of the program.
pub(crate) type Checked<T> = Result<T, Box<Diagnostic>>;

/// A place in the text.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Site {
    /// 1-based; 0 where there is no text.
    pub line: u32,
    /// The statement or the spec's head.
    pub span: Span,
}

/// `line 12`, or what stands for it where there is no text.
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
    /// As written; of an integer type, as the type has it.
    pub exact: f64,
    /// As the type of the tensors beside it has it.
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
