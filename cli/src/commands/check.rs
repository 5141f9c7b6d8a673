//! `carbyne check`: verifies a program, and proves that synchronization orders the accesses of its
//! decomposed kernels. Accesses that are not ordered are errors; if the proof is undecided, the
//! command warns. On request it prints which statement orders each pair of dependent accesses, as a
//! list or as comments in the text. Errors come with changes of the text that were tried and
//! correct them. It also finds the oldest architecture that has all instructions of a program.

use crate::args::{Check, MessageFormat};
use crate::failure::{Failure, Outcome, Source};
use crate::json::schema;
use crate::{Io, annotate, input, output, pipeline};
use carbyne_atoms::{Arch, AtomTable, SyncForm};
use carbyne_ir::diag::{Diagnostic, Diagnostics, Severity};
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind};
use carbyne_remedy::Wrong;
use carbyne_sync::{Access, Limits, Ordering, Place, Report, Verdict};
use serde_json::{Value, json};

pub(super) fn run(args: &Check, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = args.arch.as_deref().map(pipeline::table).transpose()?;
    let source = input::read(&args.file, io)?;
    let (_, program) = pipeline::verified(&source)?;
    let errors = carbyne_decompose::check_named(&program, table.as_ref());
    if !errors.is_empty() {
        return Err(pipeline::repaired(&source, errors, &|p| {
            carbyne_decompose::check_named(p, table.as_ref()).len()
        }));
    }
    let table = synchronizing(&program, table).map_err(|e| Failure::program(&source, e))?;
    let Some(table) = table else {
        let text = if args.annotate { source.text.as_str() } else { "" };
        return output::write(None, text.as_bytes(), io);
    };
    let (mut said, mut text) = (vec![], String::new());
    let mut reports = vec![];
    for kernel in &program.kernels {
        // If a kernel is not atomic, its synchronization has not been planned yet.
        if !carbyne_sync::is_atomic(&program, *kernel) {
            let is_sync = |s: &Stmt| matches!(s.kind, StmtKind::Barrier(_) | StmtKind::Sync(_));
            let synchronizes = program.walk_body(*kernel).stmts().any(is_sync);
            if (args.pairs || args.annotate || synchronizes) && format == MessageFormat::Human {
                let name = name(&program, *kernel);
                let what = match synchronizes {
                    true => {
                        "the order of accesses is not checked, because the kernel has open specs; \
                         `carbyne decompose` checks it"
                    }
                    false => "not decomposed; no order of accesses to check",
                };
                output::say(&format!("{name}: {what}\n"), io);
            }
            continue;
        }
        let report = carbyne_sync::check(&program, *kernel, &table, &Limits::default());
        said.extend(carbyne_remedy::diagnostics(&report, &program, *kernel));
        if args.pairs {
            text.push_str(&match format {
                MessageFormat::Human => listing(&program, *kernel, &report, &source.text),
                MessageFormat::Json => {
                    format!("{}\n", object(&program, *kernel, &report, &source.text))
                }
            });
        }
        reports.push((*kernel, report));
    }
    if args.annotate {
        let written = pipeline::parsed_without_imports(&source)?;
        text = annotate::annotated(&source.text, &written, &program, &reports);
    }
    output::write(None, text.as_bytes(), io)?;
    let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        said.into_iter().partition(|d| d.severity == Severity::Error);
    output::warn(&source, &warnings, format, io);
    if errors.is_empty() {
        return Ok(());
    }
    let wrong = |text: &str| wrong(Source { text: text.to_owned(), ..source.clone() }, &table);
    let before = Wrong { errors: errors.len(), warnings: warnings.len() };
    let errors = carbyne_remedy::repaired(errors, &source.text, before, &wrong);
    let errors: Diagnostics = errors.into_iter().map(|d| program.noted(d)).collect();
    Err(Failure::program(&source, errors))
}

/// Limits of a proof for a changed text. Dozens of changes are tried.
const TRIED: Limits = Limits { accesses: 1 << 24, every_iteration: false };

/// The number of errors in the order of accesses of a text.
fn wrong(source: Source, table: &AtomTable) -> Wrong {
    let Ok(program) = pipeline::meant(&source) else { return Wrong::MOST };
    if !carbyne_decompose::check_named(&program, Some(table)).is_empty() {
        return Wrong::MOST;
    }
    let is_atomic = |k: &&SpecId| carbyne_sync::is_atomic(&program, **k);
    let of = |k: &SpecId| {
        let report = carbyne_sync::check(&program, *k, table, &TRIED);
        carbyne_remedy::diagnostics(&report, &program, *k)
    };
    let said: Vec<Diagnostic> = program.kernels.iter().filter(is_atomic).flat_map(of).collect();
    let errors = said.iter().filter(|d| d.severity == Severity::Error).count();
    Wrong { errors, warnings: said.len() - errors }
}

/// Finds an atom table that has all instructions and synchronization statements of a program: the
/// given table, or the table of the oldest architecture that has them, if any.
///
/// # Errors
/// The operands of a spec do not match its instruction, or an instruction or synchronization
/// statement does not exist.
pub fn fitting(p: &Program, table: Option<AtomTable>) -> Result<Option<AtomTable>, Diagnostics> {
    let errors = carbyne_decompose::check_named(p, table.as_ref());
    if errors.is_empty() { synchronizing(p, table) } else { Err(errors) }
}

/// Continues [`fitting`] for a program whose instructions match.
fn synchronizing(p: &Program, table: Option<AtomTable>) -> Result<Option<AtomTable>, Diagnostics> {
    let tables = match &table {
        Some(table) => vec![table.clone()],
        None => Arch::ALL.iter().copied().map(AtomTable::new).collect(),
    };
    let errors = unknown(p, &tables);
    if !errors.is_empty() {
        return Err(errors);
    }
    Ok(table.or_else(|| carbyne_sync::arch_of(p).map(AtomTable::new)))
}

/// Synchronization statements that no architecture in `tables` has, or not with these numbers.
fn unknown(p: &Program, tables: &[AtomTable]) -> Diagnostics {
    let arena = &p.arena;
    let mut found = vec![];
    for stmt in p.kernels.iter().flat_map(|k| p.walk_body(*k).stmts()) {
        let StmtKind::Sync(sync) = &stmt.kind else { continue };
        let range = sync.number.map(|n| {
            let (lo, hi) = arena.range(n);
            (lo, hi, arena.divisor(n))
        });
        let form = SyncForm::of_stmt(p, sync);
        let mut errors = vec![];
        for table in tables {
            errors.extend(table.sync(sync.op, range, form).err());
        }
        // The newest architecture gives the most specific error.
        if let Some(error) = errors.pop().filter(|_| errors.len() + 1 == tables.len()) {
            found.push(p.noted(error.diagnostic(stmt.span)));
        }
    }
    found.into_iter().collect()
}

fn name(p: &Program, kernel: SpecId) -> &str {
    p.specs[kernel].name.as_deref().unwrap_or("kernel")
}

/// Lists the pairs, one per line.
fn listing(p: &Program, kernel: SpecId, report: &Report, text: &str) -> String {
    let [ordered, unordered, undecided] = report.counts();
    let mut out = format!(
        "{}: {ordered} pairs ordered, {unordered} not, {undecided} undecided\n",
        name(p, kernel)
    );
    let access = |a: &Access| {
        format!("line {} {} %{}", a.place.line, a.kind.verb(), p.buffers[a.buffer].name)
    };
    for pair in &report.pairs {
        let verdict = match &pair.verdict {
            Verdict::Ordered(ways) if ways.is_empty() => "ordered".to_owned(),
            Verdict::Ordered(ways) => {
                ways.iter().map(|w| way(w, text)).collect::<Vec<_>>().join("; or ")
            }
            Verdict::Unordered(_) => "NOT ORDERED".to_owned(),
            Verdict::Undecided(why) => format!("undecided: {why}"),
        };
        out.push_str(&format!("  {}, {}: {verdict}\n", access(&pair.first), access(&pair.second)));
    }
    out
}

/// Describes an ordering: `async.wait (line 17), barrier (line 18), 1 turn of k later`.
fn way(way: &Ordering, text: &str) -> String {
    let steps = way.steps.iter().map(|s| format!("{} (line {})", what(s, text), s.line));
    let later = way.distance.iter().map(|(name, n)| match n {
        1 => format!("1 turn of {name} later"),
        -1 => format!("1 turn of {name} before"),
        n if *n > 0 => format!("{n} turns of {name} later"),
        n => format!("{} turns of {name} before", n.saturating_abs()),
    });
    // Program order needs no synchronization.
    let own = way.steps.is_empty().then(|| "in order".to_owned());
    own.into_iter().chain(steps).chain(later).collect::<Vec<_>>().join(", ")
}

/// The name of a step: for a barrier, the statement with its threads.
fn what<'a>(step: &'a Place, text: &'a str) -> &'a str {
    let written = text.get(step.span.start as usize..step.span.end as usize);
    let written = written.map(str::trim).filter(|t| !t.contains('\n'));
    written.filter(|t| step.what == "barrier" && t.starts_with("barrier(")).unwrap_or(&step.what)
}

/// The pairs as JSON. Line numbers refer to `text`.
pub(crate) fn object(p: &Program, kernel: SpecId, report: &Report, text: &str) -> Value {
    let access = |a: &Access| {
        json!({
            "line": a.place.line,
            "tensor": p.buffers[a.buffer].name,
            "does": a.kind.verb(),
            "agent": format!("{:?}", a.agent).to_lowercase(),
            "thread": a.thread,
        })
    };
    let one = |pair: &carbyne_sync::Pair| {
        let turns = |(name, n): &(String, i64)| json!({ "loop": name, "turns": n });
        let distances: Vec<Option<Value>> = match &pair.verdict {
            Verdict::Ordered(ways) => {
                ways.iter().map(|way| way.distance.as_ref().map(turns)).collect()
            }
            Verdict::Unordered(_) | Verdict::Undecided(_) => vec![],
        };
        let (verdict, by, why) = match &pair.verdict {
            Verdict::Ordered(ways) => ("ordered", ways.clone(), None),
            Verdict::Unordered(missing) => {
                ("unordered", vec![], Some(format!("{missing:?}").to_lowercase()))
            }
            Verdict::Undecided(why) => ("undecided", vec![], Some(why.clone())),
        };
        let by: Vec<Vec<Value>> = by
            .iter()
            .map(|way| {
                way.steps.iter().map(|s| json!({ "line": s.line, "what": what(s, text) })).collect()
            })
            .collect();
        json!({
            "first": access(&pair.first),
            "second": access(&pair.second),
            "verdict": verdict,
            "by": by,
            "distances": distances,
            "why": why,
            "times": pair.times,
        })
    };
    let pairs: Vec<Value> = report.pairs.iter().map(one).collect();
    json!({
        "schema_version": schema::PAIRS,
        "kind": "pairs",
        "kernel": name(p, kernel),
        "pairs": pairs,
    })
}
