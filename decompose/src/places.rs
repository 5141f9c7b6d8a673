//! What generated text was written or generated for.

use crate::rewrite;
use carbyne_ir::ast::{Module, StmtKind};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::span::Span;

/// Places of a generated text, each with the place in the person's text that it is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    /// Of specs and allocations.
    list: Vec<(Span, Span)>,
    /// The person's first kernel, for what is none of these.
    kernel: Span,
}

impl Places {
    /// Of the text that was printed from `written`, whose spans are those of the person's `module`, and that
    /// `parsed` was parsed from.
    pub(crate) fn new(parsed: &Module, written: &Module, module: &Module) -> Self {
        let kernel = module.items.iter().find_map(|s| match &s.kind {
            StmtKind::Spec(spec) => Some(spec.span),
            _ => None,
        });
        let (at, of) = (rewrite::origins(parsed), rewrite::origins(written));
        let both = at.0.into_iter().zip(of.0).chain(at.1.into_iter().zip(of.1));
        let list = both.filter(|(at, of)| !at.is_nowhere() && !of.is_nowhere()).collect();
        Places { list, kernel: kernel.unwrap_or_default() }
    }

    /// The place that a place is for: its own, or that of the smallest statement around it.
    fn origin(&self, span: Span) -> Option<Span> {
        let holds = |at: &Span| at.start <= span.start && span.end <= at.end;
        let around = self.list.iter().filter(|(at, _)| holds(at));
        around.min_by_key(|(at, _)| at.end - at.start).map(|(_, of)| *of)
    }

    /// The diagnostic at what its place was generated for.
    pub(crate) fn relocate(&self, mut d: Diagnostic) -> Diagnostic {
        d.span = self.origin(d.span).unwrap_or(self.kernel);
        let origin = |(span, why)| Some((self.origin(span)?, why));
        d.related = d.related.into_iter().filter_map(origin).collect();
        d
    }
}
