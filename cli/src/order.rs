//! The order of accesses in a text that was decomposed: proved, or a defect of ours.

use crate::failure::{Failure, Source};
use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::ast::{StmtKind, visit::Walk};
use carbyne_ir::diag::{Code, Diagnostic, Severity};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::span::LineIndex;
use carbyne_sync::{Limits, Report};

/// How the accesses of each kernel are ordered; none where a kernel says it no more than before, or names no threads.
pub(crate) type Reports = Vec<(SpecId, Report)>;

/// What the checker says of a decomposed program, and warnings in the text that was decomposed.
///
/// A text that was not decomposed, as it named its atoms before, is not looked at: that is for `carbyne check`.
///
/// # Errors
/// `I0901` with the two places for accesses that are not ordered, where all synchronization is ours.
pub(crate) fn checked(
    source: &Source,
    found: &Decomposed,
    table: &AtomTable,
) -> Result<(Reports, Vec<Diagnostic>), Failure> {
    let program = &found.program;
    let (mut reports, mut warnings) = (vec![], vec![]);
    let mut errors = vec![];
    let by_hand = synchronizes_by_hand(source);
    let lines = LineIndex::new(&found.text);
    for kernel in &program.kernels {
        if !carbyne_sync::is_atomic(program, *kernel) || is_given(found, *kernel) {
            continue;
        }
        let report = carbyne_sync::check(program, *kernel, table, &Limits::default());
        for d in report.diagnostics(program, *kernel) {
            let line = lines.line(d.span.start);
            let here = elsewhere(&d, found, program, &lines);
            if d.severity == Severity::Error && by_hand.is_some_and(|by_hand| !by_hand) {
                let what = format!("the decomposed text is refused by the checker of its order, at its line {line}");
                errors.push(relabelled(Diagnostic::new(Code::Internal, here, what), &d, &lines));
            } else {
                let what = format!("{}, at line {line} of the decomposed text", d.message);
                warnings.push(relabelled(Diagnostic::warning(d.code, here, what), &d, &lines));
            }
        }
        reports.push((*kernel, report));
    }
    match errors.is_empty() {
        true => Ok((reports, warnings)),
        false => Err(Failure::program(source, errors.into_iter().collect())),
    }
}

/// Whether a kernel was complete as it was given, so that nothing of its order is ours.
fn is_given(found: &Decomposed, kernel: SpecId) -> bool {
    let name = &found.program.specs[kernel].name;
    let same = |k: &&SpecId| found.tile.specs[**k].name == *name;
    found.tile.kernels.iter().find(same).is_some_and(|k| carbyne_sync::is_atomic(&found.tile, *k))
}

/// Whether somebody has written synchronization; none where the text cannot be read.
fn synchronizes_by_hand(source: &Source) -> Option<bool> {
    let module = carbyne_ir::text::parse(&source.text).ok()?;
    let mut all = Walk::new(&module.items).stmts();
    Some(all.any(|s| matches!(s.kind, StmtKind::Barrier(_) | StmtKind::Sync { .. })))
}

/// What the statement of a diagnostic was written or generated for.
fn elsewhere(
    d: &Diagnostic,
    found: &Decomposed,
    program: &Program,
    lines: &LineIndex,
) -> carbyne_ir::span::Span {
    let line = lines.line(d.span.start);
    let all = program.kernels.iter().flat_map(|k| program.walk_body(*k).stmts());
    let node = all.filter(|s| s.line as usize == line).map(|s| s.node).next();
    let kernel = program.kernels.first().map(|k| program.specs[*k].node);
    node.or(kernel).map(|node| found.origins.span(node)).unwrap_or_default()
}

/// With what the diagnostic says of lines of the decomposed text as notes.
fn relabelled(to: Diagnostic, d: &Diagnostic, lines: &LineIndex) -> Diagnostic {
    let mut to = to.note(d.message.clone());
    if !d.label.is_empty() {
        to = to.note(format!("line {}: {}", lines.line(d.span.start), d.label));
    }
    for (span, why) in &d.related {
        to = to.note(format!("line {}: {why}", lines.line(span.start)));
    }
    to
}
