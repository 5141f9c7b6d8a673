//! Adapts warnings to kernel-level specs whose bodies strategies write ([`Said`]). A user cannot
//! change a statement of such a body, only the pins of the spec. So warnings on which the user
//! cannot act are dropped (unused tensors, and without a pin bank conflicts and uneven copies), and
//! the one about too many stages names the pin to change. In bodies that a user wrote, the warning
//! about idle threads is dropped.

use crate::numbers::{Numbers, eval};
use carbyne_ir::ast::{AttrValue, Key, Module, Role, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;

/// A kernel-level spec of a text, by where it stands: so does all that is made for it.
struct Spec {
    span: Span,
    /// Parameters that `by=` pins.
    values: Vec<(String, i64)>,
    /// Whether anything is pinned.
    pinned: bool,
}

/// The kernel-level specs of a text that have no bodies.
#[derive(Default)]
pub(crate) struct Said(Vec<Spec>);

impl Said {
    pub(crate) fn of(module: &Module) -> Self {
        let specs = module.items.iter().filter_map(|stmt| {
            let StmtKind::Spec(spec) = &stmt.kind else { return None };
            if spec.body.is_some() {
                return None;
            }
            let by = spec.attr(Key::By).map(|a| &a.value);
            let values = match by {
                Some(AttrValue::Chosen(chosen)) => chosen.values.iter(),
                _ => [].iter(),
            };
            let values = values
                .filter_map(|(name, e)| Some((name.text.clone(), eval(e, &Numbers::new())?)))
                .collect();
            let attrs = Key::with(Role::Pin).any(|key| spec.attr(key).is_some());
            Some(Spec { span: spec.span, values, pinned: attrs || spec.both().is_some() })
        });
        Said(specs.collect())
    }

    fn at(&self, span: Span) -> Option<&Spec> {
        self.0.iter().find(|s| s.span.is_at(span))
    }

    /// The warning for a loop with more stages than it has iterations, in the words of who wrote
    /// it.
    pub(crate) fn too_many(&self, at: Span, stages: i64, trips: Option<i64>) -> Option<Diagnostic> {
        let trips = trips.filter(|n| *n < stages && *n > 1)?;
        let (what, help) = match self.at(at) {
            None => ("the loop", format!("write `stages={trips}`, or fewer")),
            Some(spec) => {
                let (name, _) = spec.values.iter().find(|(_, n)| *n == stages)?;
                ("its loop", format!("pin `{name}={trips}`, or fewer, or leave `{name}` out"))
            }
        };
        let message = format!("{stages} stages are more than the {trips} iterations of {what}");
        let d = Diagnostic::warning(Code::Stages, at, message);
        Some(d.label(format!("{trips} stages are used")).help(help))
    }

    /// Whether what stands there was made by a strategy.
    pub(crate) fn is_made(&self, at: Span) -> bool {
        self.at(at).is_some()
    }

    /// Whether somebody can act on what the solver warns of: in a body that a strategy has written
    /// only by a pin.
    pub(crate) fn concerns(&self, d: &Diagnostic) -> bool {
        // A number of threads that a person wrote is meant.
        let Some(spec) = self.at(d.span) else { return d.code != Code::Idle };
        match d.code {
            Code::Unused => false,
            Code::Uneven | Code::Banks => spec.pinned,
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::text;

    const SRC: &str = "carbyne 2\n%A:[64].f32.GL\n%B:[64].f32.GL\n%C:[64].f32.GL\n\
                       Move @pinned (%A) -> (%B) by=@own[S=9, T=4]\nMove @free (%A) -> (%C)\n";

    fn specs() -> (Said, Vec<Span>) {
        let module = text::parse(SRC).expect("parses");
        let spans = module.items.iter().filter_map(|s| match &s.kind {
            StmtKind::Spec(spec) => Some(spec.span),
            _ => None,
        });
        (Said::of(&module), spans.collect())
    }

    #[test]
    fn stages_are_said_as_they_were_written() {
        let (said, spans) = specs();
        let help = |at: Span, stages: i64, trips: i64| {
            said.too_many(at, stages, Some(trips)).and_then(|d| d.help)
        };
        let pin = help(spans[0], 9, 4).unwrap_or_default();
        assert_eq!(pin, "pin `S=4`, or fewer, or leave `S` out");
        // What the strategy has chosen is its own.
        assert_eq!(help(spans[0], 8, 4), None);
        assert_eq!(help(spans[1], 9, 4), None);
        let own = help(Span::new(3, 4), 9, 4).unwrap_or_default();
        assert_eq!(own, "write `stages=4`, or fewer");
        assert_eq!(help(Span::new(3, 4), 4, 4), None);
    }

    #[test]
    fn what_nobody_can_act_on_is_not_said() {
        let (said, spans) = specs();
        let concerns = |code: Code, at: Span| said.concerns(&Diagnostic::warning(code, at, ""));
        for (code, pinned, free) in
            [(Code::Uneven, true, false), (Code::Unused, false, false), (Code::Budget, true, true)]
        {
            assert_eq!(
                (concerns(code, spans[0]), concerns(code, spans[1])),
                (pinned, free),
                "{code}"
            );
            assert!(concerns(code, Span::new(3, 4)), "{code}");
        }
    }
}
