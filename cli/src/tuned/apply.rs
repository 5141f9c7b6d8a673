//! Adds tuned pins, the pins of the fastest measured strategies, to kernel-level specs without a
//! pin, and decomposes the module. A pin with which the module cannot be decomposed is left out
//! with a warning.

use super::problem::problem;
use super::read::pin;
use super::{Key, Tuning};
use crate::args::MessageFormat;
use crate::failure::Source;
use crate::sanitize::sanitize;
use crate::{Io, output};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{Decomposed, Options, checked, decompose_by};
use carbyne_ir::ast::{self, Attr, AttrValue, Module, Name, Spec, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::Program;
use carbyne_ir::span::Span;
use serde_json::json;

/// Notes about used and rejected pins.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The used pins.
    taken: Vec<Taken>,
    /// Warnings about rejected pins, with spans in the source text.
    pub(crate) warnings: Vec<Diagnostic>,
}

/// A pin for one spec, and its measurement.
#[derive(Clone, Debug)]
struct Taken {
    kernel: String,
    by: String,
    card: String,
    nanoseconds: u64,
    model: Option<u64>,
    /// The place of the spec.
    span: Span,
    /// The index of the spec in the module.
    at: usize,
}

impl Notes {
    /// Prints the notes to standard error.
    pub(crate) fn say(&self, source: &Source, format: MessageFormat, io: &mut Io<'_>) {
        output::warn(source, &self.warnings, format, io);
        for Taken { kernel, by, card, nanoseconds, model, .. } in &self.taken {
            let us = |ns: &u64| *ns as f64 / 1e3;
            let line = match format {
                MessageFormat::Human => {
                    let model = model
                        .as_ref()
                        .map_or(String::new(), |ns| format!(", {:.1} us without the pin", us(ns)));
                    let card = sanitize(card);
                    let own = us(nanoseconds);
                    format!("note: @{kernel} is tuned: {by} took {own:.1} us on {card}{model}\n")
                }
                MessageFormat::Json => {
                    let object = json!({
                        "kind": "note",
                        "kernel": kernel,
                        "tuned": by,
                        "card": card,
                        "microseconds": us(nanoseconds),
                        "microseconds_without": model.as_ref().map(us),
                    });
                    format!("{object}\n")
                }
            };
            output::say(&line, io);
        }
    }
}

/// Whether a kernel-level spec has neither a body nor a pin.
pub(crate) fn is_open(spec: &Spec) -> bool {
    let pins = [ast::Key::By, ast::Key::Tile, ast::Key::Warps, ast::Key::Atom];
    spec.body.is_none() && pins.iter().all(|key| spec.attr(*key).is_none())
}

/// Decomposes a module. Kernel-level specs without a pin get the tuned pins.
///
/// # Errors
/// The errors of [`decompose_by`].
pub(crate) fn decomposed(
    source: &Source,
    module: &Module,
    table: &AtomTable,
    options: &Options,
    tuning: Option<&Tuning>,
) -> Result<(Decomposed, Notes), Diagnostics> {
    let plain = || decompose_by(module, &source.text, table, options);
    let mut notes = Notes::default();
    let pins = match (tuning, tuning.map(|_| checked(module, &source.text))) {
        (Some(tuning), Some(Ok(program))) => pins(module, &program, table, tuning),
        _ => vec![],
    };
    // Reject pins of strategies that no longer exist.
    let there = |pin: &Taken| {
        let name = pin.by.trim_start_matches('@').split('[').next().unwrap_or_default();
        let own = module.items.iter().filter_map(|s| match &s.kind {
            StmtKind::Def(def) => Some(def),
            _ => None,
        });
        own.chain(options.strategies.iter().map(|(def, _)| def)).any(|def| def.name.text == name)
    };
    let (mut taken, gone): (Vec<Taken>, Vec<Taken>) = pins.into_iter().partition(there);
    notes.warnings.extend(gone.iter().map(|pin| stale(pin, "there is no such strategy")));
    while !taken.is_empty() {
        let errors = match decompose_by(&with(module, &taken), &source.text, table, options) {
            Ok(found) => {
                notes.taken = taken;
                return Ok((found, notes));
            }
            Err(errors) => errors,
        };
        // Reject the pins that the errors are about, or all pins if this is unknown.
        let about = |pin: &Taken, d: &Diagnostic| {
            d.span.start >= pin.span.start && d.span.start < pin.span.end
        };
        let (mut out, mut left): (Vec<Taken>, Vec<Taken>) =
            taken.drain(..).partition(|pin| errors.iter().any(|d| about(pin, d)));
        if out.is_empty() {
            std::mem::swap(&mut out, &mut left);
        }
        for pin in &out {
            let why = errors.iter().find(|d| about(pin, d)).or_else(|| errors.iter().next());
            notes.warnings.push(stale(pin, &why.map_or(String::new(), |d| d.message.clone())));
        }
        taken = left;
    }
    Ok((plain()?, notes))
}

/// The warning about a rejected pin.
fn stale(pin: &Taken, why: &str) -> Diagnostic {
    let what = format!(
        "the tuned pin `{}` of `@{}` is no longer possible and is ignored",
        pin.by, pin.kernel
    );
    let d = Diagnostic::warning(Code::StaleTuned, pin.span, what).label(why.to_owned());
    d.help("measure the kernel again: `carbyne tune FILE --device`")
}

/// The tuned pins for the specs of a module that have no pin.
fn pins(module: &Module, program: &Program, table: &AtomTable, tuning: &Tuning) -> Vec<Taken> {
    let (specs, atoms) = (program.specs_by_node(), table.fingerprint());
    let mut out = vec![];
    for (at, stmt) in module.items.iter().enumerate() {
        let StmtKind::Spec(spec) = &stmt.kind else { continue };
        let Some(id) = specs.get(&stmt.id.key()).filter(|_| is_open(spec)) else { continue };
        let Some((Key { card, .. }, entry)) = tuning.find(&problem(program, *id), table, atoms)
        else {
            continue;
        };
        out.push(Taken {
            kernel: spec.name.as_ref().map_or(String::new(), |n| n.text.clone()),
            by: entry.by.clone(),
            card: card.clone(),
            nanoseconds: entry.nanoseconds,
            model: entry.model.as_ref().map(|(_, ns)| *ns),
            span: spec.span,
            at,
        });
    }
    out
}

/// The module with these pins.
fn with(module: &Module, pins: &[Taken]) -> Module {
    let mut module = module.clone();
    for taken in pins {
        let Some(stmt) = module.items.get_mut(taken.at) else { continue };
        let (StmtKind::Spec(spec), Some(chosen)) = (&mut stmt.kind, pin(&taken.by)) else {
            continue;
        };
        spec.attrs.push(pinned(chosen, spec.span));
    }
    module
}

/// A pin as an attribute of a spec.
pub(crate) fn pinned(mut chosen: carbyne_ir::ast::Chosen, span: Span) -> Attr {
    chosen.span = span;
    Attr::named(Name { text: ast::Key::By.to_string(), span }, AttrValue::Chosen(chosen))
}
