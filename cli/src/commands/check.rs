//! `carbyne check`: errors, or silence.

use crate::args::{Check, MessageFormat};
use crate::failure::{Failure, Outcome};
use crate::{Io, input, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Diagnostic, Diagnostics, Severity};
use carbyne_ir::program::{Program, SpecId};
use carbyne_sync::{Access, Limits, Ordering, Report, Verdict};
use serde_json::{Value, json};

pub(super) fn run(args: &Check, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = args.arch.as_deref().map(pipeline::table).transpose()?;
    let source = input::read(&args.file, io)?;
    let (_, program) = pipeline::verified(&source)?;
    let errors = carbyne_decompose::check_named(&program, table.as_ref());
    if !errors.is_empty() {
        return Err(Failure::program(&source, errors));
    }
    let table = table.or_else(|| carbyne_sync::arch_of(&program).map(AtomTable::new));
    let Some(table) = table else { return Ok(()) };
    let (mut said, mut text) = (vec![], String::new());
    for kernel in &program.kernels {
        // Of what is not atomic the synchronization is not planned yet.
        if !carbyne_sync::is_atomic(&program, *kernel) {
            continue;
        }
        let report = carbyne_sync::check(&program, *kernel, &table, &Limits::default());
        said.extend(report.diagnostics(&program, *kernel));
        if args.pairs {
            text.push_str(&match format {
                MessageFormat::Human => listing(&program, *kernel, &report),
                MessageFormat::Json => format!("{}\n", object(&program, *kernel, &report)),
            });
        }
    }
    output::write(None, text.as_bytes(), io)?;
    let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
        said.into_iter().partition(|d| d.severity == Severity::Error);
    output::warn(&source, &warnings, format, io);
    let errors: Diagnostics = errors.into_iter().map(|d| program.noted(d)).collect();
    if errors.is_empty() { Ok(()) } else { Err(Failure::program(&source, errors)) }
}

fn name(p: &Program, kernel: SpecId) -> &str {
    p.specs[kernel].name.as_deref().unwrap_or("kernel")
}

/// One line a pair.
fn listing(p: &Program, kernel: SpecId, report: &Report) -> String {
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
            Verdict::Ordered(ways) => ways.iter().map(way).collect::<Vec<_>>().join("; or "),
            Verdict::Unordered(_) => "NOT ORDERED".to_owned(),
            Verdict::Undecided(why) => format!("undecided: {why}"),
        };
        out.push_str(&format!("  {}, {}: {verdict}\n", access(&pair.first), access(&pair.second)));
    }
    out
}

/// `async.wait (line 17), barrier (line 18), 1 turn of k later`
fn way(way: &Ordering) -> String {
    let steps = way.steps.iter().map(|s| format!("{} (line {})", s.what, s.line));
    let later = way.distance.iter().map(|(name, n)| match n {
        1 => format!("1 turn of {name} later"),
        -1 => format!("1 turn of {name} before"),
        n if *n > 0 => format!("{n} turns of {name} later"),
        n => format!("{} turns of {name} before", n.saturating_abs()),
    });
    let all: Vec<String> = steps.chain(later).collect();
    if all.is_empty() { "in order".to_owned() } else { all.join(", ") }
}

/// The pairs for tools.
pub(super) fn object(p: &Program, kernel: SpecId, report: &Report) -> Value {
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
                way.steps.iter().map(|s| json!({ "line": s.line, "what": s.what })).collect()
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
    json!({ "kind": "pairs", "kernel": name(p, kernel), "pairs": pairs })
}
