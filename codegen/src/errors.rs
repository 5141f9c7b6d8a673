//! Makes the errors of code generation, above all C0401: a statement of the program that cannot be
//! printed as CUDA C++.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::LayoutError;
use carbyne_ir::span::Span;

/// C0401 without a span; the caller that knows the statement adds the span.
pub(crate) fn unprintable(message: impl Into<String>, help: impl Into<String>) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::Unprintable, Span::default(), message).help(help))
}

/// An error of the layout algebra, without a span.
pub(crate) fn layout(e: LayoutError) -> Box<Diagnostic> {
    let help = e.help().unwrap_or_else(|| "write the index in another way".to_owned());
    unprintable(e.to_string(), help)
}

/// Gives an error without a span the span of its statement.
pub(crate) fn with_span(span: Span) -> impl Fn(Box<Diagnostic>) -> Box<Diagnostic> {
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

/// A tensor that no declaration of the kernel declares.
pub(crate) fn undeclared(name: &str) -> Box<Diagnostic> {
    let help = "declare the tensor at the top level, or allocate it earlier in the body";
    unprintable(format!("{name} is not declared here"), help)
}

/// An empty operand.
pub(crate) fn valueless(name: &str) -> Box<Diagnostic> {
    unprintable(format!("{name} has no elements"), "use a view with at least one element")
}
