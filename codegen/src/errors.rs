//! The errors of code generation.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::LayoutError;
use carbyne_ir::span::Span;

/// C0401 without a place; whoever knows the statement puts it there.
pub(crate) fn unprintable(message: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::Unprintable, Span::default(), message))
}

/// An error of the layout algebra, without a place.
pub(crate) fn layout(e: LayoutError) -> Box<Diagnostic> {
    let mut d = unprintable(e.to_string());
    d.help = e.help();
    d
}

/// Gives an error without a place the place of its statement.
pub(crate) fn at(span: Span) -> impl Fn(Box<Diagnostic>) -> Box<Diagnostic> {
    move |mut d| {
        if d.span.end == 0 {
            d.span = span;
        }
        d
    }
}

/// An error at `span`.
pub(crate) fn new(
    code: Code,
    span: Span,
    message: impl Into<String>,
    help: &str,
) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(code, span, message).help(help))
}
