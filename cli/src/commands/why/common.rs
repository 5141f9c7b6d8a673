//! Writes lines that both the long and the short answer of `explain FILE` contain, such as warnings
//! and bank conflicts.

use crate::sanitize::sanitize;
use carbyne_decompose::Wavefronts;
use carbyne_decompose::explain::{Explanation, Faster, Wider, Width};
use carbyne_ir::span::Span;
use std::fmt::Write;

/// The first lines: warnings, the error of a failed decomposition, and faster choices.
pub(super) fn head(found: &Explanation, line: impl Fn(Span) -> usize) -> String {
    let mut out = String::new();
    for d in &found.warnings {
        let said = sanitize(&d.to_string());
        let _ = writeln!(out, "warning: {said} (line {})", line(d.span));
        for more in std::iter::once(&d.label).chain(&d.notes).chain(&d.help) {
            let _ = writeln!(out, "  {}", sanitize(more));
        }
    }
    for d in &found.refused {
        let _ =
            writeln!(out, "not decomposed: {} (line {})", sanitize(&d.to_string()), line(d.span));
        for note in d.notes.iter().chain(&d.help) {
            let _ = writeln!(out, "  {}", sanitize(note));
        }
    }
    for one in &found.faster {
        faster(one, line(one.origin), &mut out);
    }
    out
}

/// A faster choice that additional facts about symbols would allow.
fn faster(one: &Faster, at: usize, out: &mut String) {
    let cycles = |n: Option<f64>| n.map_or_else(String::new, |n| format!(", {n:.0} cycles"));
    let ((by, own), (instead, others)) = (&one.with, &one.without);
    let _ = writeln!(out, "line {at}: with {}: {by}{}", one.said, cycles(*own));
    let _ = writeln!(out, "  instead of {instead}{}", cycles(*others));
}

/// The reason why a copy is not wider.
pub(super) fn width(w: &Width) -> String {
    match w {
        Width::With(Wider { said, bytes, atom, .. }) => {
            format!("with {said} this is a {bytes}-byte copy, {atom}")
        }
        Width::Not { atom, why } => format!("no {atom}: {}", sanitize(&why.to_string())),
    }
}

/// The bank conflicts of a copy, and the reason why they remain.
pub(super) fn conflicts(w: &Wavefronts) -> String {
    let times = w.taken / w.least;
    format!(
        "bank conflicts: {times:.1} times the wavefronts; no swizzle has fewer with these \
         instructions"
    )
}
