//! Proves that the accesses of a decomposed program are ordered by synchronization. Kernels that
//! were complete in the user's text are left to `carbyne check`. For accesses that are not ordered,
//! the origin of the kernel decides between error and warning. If carbyne has generated all
//! synchronization, the error is I0901, a bug in carbyne and not in the text. If a strategy of the
//! user generated the kernel, or the text itself lets blocks write the same element, it is an error
//! of the user's text. If the text has synchronization of its own, it is a warning.

use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::ast::{Module, Stmt, StmtKind, visit::Walk};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics, Severity};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::progress::Stage;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::LineIndex;
use carbyne_sync::{Limits, Missing, Report, Verdict};

/// The order of accesses of each kernel. It has no entry for kernels that were not decomposed, and
/// for kernels that name no threads.
pub type Reports = Vec<(SpecId, Report)>;

/// Proves the order of accesses in a decomposed program. Returns reports of kernels, and warnings
/// with places in `text`, the source text.
///
/// Kernels that were complete in `text`, with all atoms, are skipped: `carbyne check` checks them.
///
/// # Errors
/// `I0901` with both places if accesses are not ordered although carbyne generated all
/// synchronization and chose one of its own strategies.
pub fn checked(
    text: &str,
    found: &Decomposed,
    table: &AtomTable,
) -> Result<(Reports, Vec<Diagnostic>), Diagnostics> {
    let program = &found.program;
    let (mut reports, mut warnings) = (vec![], vec![]);
    let mut errors = vec![];
    let given = carbyne_ir::text::parse(text).ok();
    let by_hand = given.as_ref().map(synchronizes_by_hand);
    let lines = LineIndex::new(&found.text);
    let stage = Stage::new("proving", Some(program.kernels.len() as u64));
    for kernel in &program.kernels {
        stage.kernel(program.specs[*kernel].name.as_deref());
        stage.step();
        if !carbyne_sync::is_atomic(program, *kernel) || is_given(found, *kernel) {
            continue;
        }
        let report = carbyne_sync::check(program, *kernel, table, &Limits::default());
        // The text itself determines which block accesses an element, and no synchronization
        // orders blocks.
        let name = program.specs[*kernel].name.as_ref();
        let blocks = only_blocks_meet(&report);
        let theirs = given.as_ref().is_some_and(|m| has_body(m, name)) && blocks;
        let strategy = found.theirs(*kernel);
        for d in carbyne_remedy::diagnostics(&report, program, *kernel) {
            let line = lines.line(d.span.start);
            let here = elsewhere(&d, found, *kernel, &lines);
            if let (Severity::Error, Some(strategy)) = (d.severity, strategy) {
                let help = match blocks {
                    true => "change the strategy so that each block writes its own elements",
                    false => "correct the body of the strategy",
                };
                let own = Diagnostic::new(d.code, here, d.message.clone());
                let own = own.label(format!("decomposed by {strategy}"));
                errors.push(retold(own, &d, &lines).help(help));
            } else if d.severity == Severity::Error && theirs {
                let help = "let each block write its own elements: compare the tiles of blocks and \
                            iterations";
                let own = Diagnostic::new(d.code, here, d.message.clone());
                errors.push(retold(own, &d, &lines).help(help));
            } else if d.severity == Severity::Error && by_hand.is_some_and(|by_hand| !by_hand) {
                let what =
                    format!("the accesses at line {line} of the decomposed text are not ordered");
                errors.push(retold(Diagnostic::new(Code::Internal, here, what), &d, &lines));
            } else {
                let own = Diagnostic::warning(d.code, here, d.message.clone());
                warn(&mut warnings, retold(own, &d, &lines), line);
            }
        }
        reports.push((*kernel, report));
    }
    match errors.is_empty() {
        true => Ok((reports, warnings.into_iter().map(at_lines).collect())),
        false => Err(errors.into_iter().collect()),
    }
}

/// A warning, and the lines of the decomposed text to which it applies.
type Warning = (Diagnostic, Vec<usize>);

/// Adds a warning about a line. If an equal warning about the same source text exists, this adds
/// only the line.
fn warn(warnings: &mut Vec<Warning>, d: Diagnostic, line: usize) {
    let is_equal = |(other, _): &&mut Warning| {
        (other.code, &other.message) == (d.code, &d.message) && other.span.is_at(d.span)
    };
    match warnings.iter_mut().find(is_equal) {
        Some((_, lines)) if lines.contains(&line) => {}
        Some((_, lines)) => lines.push(line),
        None => warnings.push((d, vec![line])),
    }
}

/// Adds the lines to the message of a warning.
fn at_lines((mut d, lines): Warning) -> Diagnostic {
    /// The most lines that a message lists.
    const NAMED: usize = 8;
    let all: Vec<String> = lines.iter().take(NAMED).map(usize::to_string).collect();
    let s = if lines.len() == 1 { "" } else { "s" };
    let more = if lines.len() > NAMED { ", .." } else { "" };
    d.message =
        format!("{}, at line{s} {}{more} of the decomposed text", d.message, all.join(", "));
    d
}

/// Adds the reports of kernels that name threads and that [`checked`] skipped, because they were
/// complete in the source text.
pub(crate) fn complete(reports: &mut Reports, program: &Program, table: &AtomTable) {
    for kernel in &program.kernels {
        let known = reports.iter().any(|(id, _)| id == kernel);
        if !known && carbyne_sync::is_atomic(program, *kernel) {
            let report = carbyne_sync::check(program, *kernel, table, &Limits::default());
            reports.push((*kernel, report));
        }
    }
}

/// The errors and warnings of the kernels that [`checked`] skips, with places in the decomposed
/// text. The proof of each has a limited length.
pub(crate) fn given(found: &Decomposed, table: &AtomTable) -> Vec<Diagnostic> {
    const LIMITS: Limits = Limits { accesses: 1 << 26, every_iteration: false };
    let program = &found.program;
    let is_given = |k: &&SpecId| carbyne_sync::is_atomic(program, **k) && is_given(found, **k);
    let of = |k: &SpecId| {
        let report = carbyne_sync::check(program, *k, table, &LIMITS);
        carbyne_remedy::diagnostics(&report, program, *k)
    };
    program.kernels.iter().filter(is_given).flat_map(of).collect()
}

/// Whether a kernel was complete in the source text, so that carbyne generated no synchronization.
fn is_given(found: &Decomposed, kernel: SpecId) -> bool {
    let name = &found.program.specs[kernel].name;
    let same = |k: &&SpecId| found.tile.specs[**k].name == *name;
    found.tile.kernels.iter().find(same).is_some_and(|k| carbyne_sync::is_atomic(&found.tile, *k))
}

/// Whether the only errors of a kernel are accesses of different blocks to the same element.
fn only_blocks_meet(report: &Report) -> bool {
    let of_blocks = |p: &carbyne_sync::Pair| match &p.verdict {
        Verdict::Unordered(missing) => *missing == Missing::Blocks,
        Verdict::Ordered(_) | Verdict::Undecided(_) => true,
    };
    report.faults.is_empty() && report.pairs.iter().all(of_blocks)
}

/// Whether the kernel has a body in the source text.
fn has_body(given: &Module, name: Option<&String>) -> bool {
    let own = |s: &Stmt| match &s.kind {
        StmtKind::Spec(spec) => spec.body.is_some() && spec.name.as_ref().map(|n| &n.text) == name,
        _ => false,
    };
    given.items.iter().any(own)
}

/// Whether the source text contains synchronization, or mbarriers, which need synchronization.
fn synchronizes_by_hand(given: &Module) -> bool {
    let by_hand = |s: &Stmt| match &s.kind {
        StmtKind::Barrier(_) | StmtKind::Sync { .. } => true,
        StmtKind::Allocate { ty, .. } => ty.scalar == Scalar::Mbarrier,
        _ => false,
    };
    Walk::new(&given.items).stmts().any(by_hand)
}

/// The place in the source text for which the statement of a diagnostic was generated.
fn elsewhere(
    d: &Diagnostic,
    found: &Decomposed,
    kernel: SpecId,
    lines: &LineIndex,
) -> carbyne_ir::span::Span {
    let (line, program) = (lines.line(d.span.start), &found.program);
    let inside = program.walk_body(kernel).stmts().find(|s| s.line as usize == line);
    let nodes = inside.map(|s| s.node).into_iter().chain([program.specs[kernel].node]);
    let mut spans = nodes.map(|node| found.origins.span(node));
    spans.find(|span| !span.is_nowhere()).unwrap_or_default()
}

/// Adds the labels and notes of a diagnostic of the decomposed text as notes.
fn retold(to: Diagnostic, d: &Diagnostic, lines: &LineIndex) -> Diagnostic {
    let mut to = match &d.help {
        Some(help) => to.help(help.clone()),
        None => to,
    };
    if to.code == Code::Internal {
        to = to.note(d.message.clone()).help("please report this with the file");
    }
    if d.is_labeled() {
        to = to.note(format!("line {}: {}", lines.line(d.span.start), d.label));
    }
    for (span, why) in &d.related {
        to = to.note(format!("line {}: {why}", lines.line(span.start)));
    }
    d.notes.iter().fold(to, |to, note| to.note(note.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::span::Span;

    const GEMM: &str = "carbyne 2
%A:[64,64].f16.GL
%B:[64,64].f16.GL
%C:[64,64].f32.GL
MatMul @gemm (%A, %B) -> (%C) acc=f32
";

    fn without_barriers(list: &mut Vec<Stmt>) {
        list.retain(|s| !matches!(s.kind, StmtKind::Barrier(_)));
        let bodies = list.iter_mut().flat_map(|s| s.kind.bodies_mut());
        bodies.for_each(|b| without_barriers(&mut b.stmts));
    }

    #[test]
    fn an_equal_warning_is_one_warning_with_all_lines() {
        let of = |from| Diagnostic::warning(Code::Undecided, Span::new(from, 9), "not decided");
        let mut warnings = vec![];
        for (d, line) in [(of(3), 7), (of(3), 7), (of(4), 7), (of(3), 8)] {
            warn(&mut warnings, d, line);
        }
        let said: Vec<String> = warnings.into_iter().map(|w| at_lines(w).message).collect();
        let behind = "of the decomposed text";
        let lines = ["lines 7, 8", "line 7"].map(|at| format!("not decided, at {at} {behind}"));
        assert_eq!(said, lines);
    }

    #[test]
    fn what_is_not_ordered_is_a_defect() {
        let table = AtomTable::new(carbyne_atoms::Arch::Sm80);
        let module = carbyne_ir::text::parse(GEMM).unwrap();
        let mut found = carbyne_decompose::decompose(&module, GEMM, &table).unwrap();
        assert!(checked(GEMM, &found, &table).is_ok_and(|(_, unknown)| unknown.is_empty()));
        let mut broken: Module = found.module.clone();
        without_barriers(&mut broken.items);
        found.text = carbyne_ir::text::print(&broken);
        let broken = carbyne_ir::text::parse(&found.text).unwrap();
        found.program = carbyne_decompose::checked(&broken, &found.text).unwrap();
        let Err(errors) = checked(GEMM, &found, &table) else { panic!("nothing is said") };
        let said = format!("{errors:?}");
        assert!(
            said.contains("Internal")
                && said.contains("are not ordered: nothing orders their threads"),
            "{said}"
        );
    }
}
