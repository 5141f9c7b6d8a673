//! `carbyne explain FILE`: explains which strategies were considered for each kernel and which
//! instructions for each leaf, and why each was taken or not. This file contains the long answer,
//! for `--all`, `--at` and `--why`; `brief` contains the short one.

mod brief;
mod common;

use super::strategy_ranking;
use crate::args::{Explain, ReportFormat};
use crate::failure::{Failure, Outcome, Source};
use crate::sanitize::sanitize;
use crate::{Io, input, json, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_atoms::docs::series_of;
use carbyne_decompose::explain::{
    Choice, Considered, Explained, Explanation, Fix, Question, Width, explain,
};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Module, StmtKind};
use carbyne_ir::leaf::Fact;
use carbyne_ir::span::{LineIndex, Span};
use common::{conflicts, head, width};
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

pub(super) fn run(args: &Explain, arch: &str, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::table(arch)?;
    let source = input::read(&args.what, io)?;
    let module = pipeline::parsed(&source)?;
    let line = args.at.map(|l| l as usize);
    let strategies = input::strategies(&source)?;
    let question = Question { line, why: args.why.clone(), sms: args.sms, strategies };
    let found = explain(&module, &source.text, &table, &question)
        .map_err(|e| Failure::program(&source, e))?;
    if found.leaves.is_empty()
        && found.choices.is_empty()
        && (found.rankings.is_empty() || args.why.is_some())
    {
        let specs = spec_lines(&module, &source);
        let mut near = specs.clone();
        if let Some(at) = line {
            // A spec with a body has no answer of its own; the leaves in the body have.
            let everywhere = Question { line: None, ..question.clone() };
            let all = explain(&module, &source.text, &table, &everywhere);
            let index = LineIndex::new(&source.text);
            let leaves = all.iter().flat_map(|e| &e.leaves);
            let leaves: Vec<usize> = leaves.map(|l| index.line(l.origin.start)).collect();
            if !leaves.is_empty() && !leaves.contains(&at) {
                near = leaves;
            }
        }
        return Err(nothing(&question, &found, &source, (&specs, &near)));
    }
    let focused = line.is_some() || args.why.is_some();
    let text = match args.all || focused {
        false => brief::text(&found, &source, &table),
        true => text(&found, &source, &table, args.why.is_some()),
    };
    let text = match args.format {
        ReportFormat::Text => text,
        ReportFormat::Json => format!("{}\n", object(&found, &source, &text)),
    };
    output::write(None, text.as_bytes(), io)
}

/// The reason why there is no answer. `specs` are the lines on which specs begin, `said` those that
/// have an answer.
fn nothing(
    question: &Question,
    found: &Explanation,
    source: &Source,
    (specs, said): (&[usize], &[usize]),
) -> Failure {
    if specs.is_empty() {
        return Failure::usage_help(
            format!("`{}` has no specs to explain", source.name),
            "add a spec: `Move (%A) -> (%B)`",
        );
    }
    if let Some(at) = question.line.filter(|at| !said.contains(at)) {
        let near = said.iter().min_by_key(|line| line.abs_diff(at)).copied().unwrap_or(0);
        return Failure::usage_help(
            match specs.contains(&at) {
                true => format!("the spec on line {at} has a body, and no instruction of its own"),
                false => format!("no spec begins on line {at}"),
            },
            format!("use the nearest one: `--at {near}`"),
        );
    }
    if let Some(why) = &question.why {
        let shown: String = why.chars().take(64).collect();
        let elsewhere: Vec<&str> = found.elsewhere.iter().map(|a| a.as_str()).collect();
        // The decomposition failed, so the instructions in question may have been in its result.
        if let Some(d) = found.refused.first() {
            return Failure::usage_help(
                format!("`{}` cannot be decomposed: {}", source.name, sanitize(&d.to_string())),
                d.help.clone().unwrap_or_else(|| "correct this error first".to_owned()),
            );
        }
        let help = match elsewhere.as_slice() {
            [] => "run `carbyne atoms` for a list of the instructions".to_owned(),
            some if some.contains(&found.arch.as_str()) => {
                "they implement other specs; run `carbyne atoms` for a list".to_owned()
            }
            some => format!("use an architecture that has them: {}", some.join(", ")),
        };
        let what =
            format!("no instruction of {} named `{shown}` implements these specs", found.arch);
        return Failure::usage_help(what, help);
    }
    let what = match question.line {
        Some(at) => format!("no instruction is chosen for the spec on line {at}"),
        None => format!("no instruction is chosen for any spec of `{}`", source.name),
    };
    Failure::usage_help(what, "use the line of a spec without a body, or remove `--at`")
}

/// The lines on which specs begin, ascending.
fn spec_lines(module: &Module, source: &Source) -> Vec<usize> {
    let index = LineIndex::new(&source.text);
    let lines: BTreeSet<usize> = Walk::new(&module.items)
        .stmts()
        .filter_map(|stmt| match &stmt.kind {
            StmtKind::Spec(spec) => Some(index.line(spec.span.start)),
            _ => None,
        })
        .collect();
    lines.into_iter().collect()
}

/// Line indices of the texts, and options of the answer.
#[derive(Copy, Clone)]
struct Texts<'a> {
    table: &'a AtomTable,
    source: &'a LineIndex,
    /// The lines of the decomposed text.
    generated: &'a LineIndex,
    /// Whether the question is about certain instructions.
    why: bool,
    /// Whether the answer includes helps.
    helps: bool,
}

fn text(found: &Explanation, source: &Source, table: &AtomTable, why: bool) -> String {
    let generated = LineIndex::new(found.decomposed.as_deref().unwrap_or_default());
    let lines = LineIndex::new(&source.text);
    let texts = Texts { table, source: &lines, generated: &generated, why, helps: true };
    let line = |span: Span| texts.source.line(span.start);
    let mut out = head(found, line);
    for one in found.rankings.iter().filter(|_| !why) {
        strategy_ranking::explained(one, line(one.span), &mut out);
    }
    ways(found, line, &mut out);
    for c in &found.choices {
        choice(c, line(c.origin), &mut out);
    }
    // Print equal answers for one source line only once.
    let mut said: IndexMap<(usize, String, String), Vec<String>> = IndexMap::new();
    for leaf in &found.leaves {
        let generated = texts.generated.line(leaf.span.start).to_string();
        // The help for choosing another strategy has been printed above.
        let way = found.ways.iter().any(|w| w.origin.is_at(leaf.origin));
        let texts = Texts { helps: !way, ..texts };
        let key = (line(leaf.origin), sanitize(&leaf.text), explained(leaf, &texts));
        said.entry(key).or_default().extend(leaf.generated.then_some(generated));
    }
    for ((at, leaf, answer), generated) in said {
        let generated = match generated.as_slice() {
            [] => String::new(),
            [one] => format!(", generated line {one}"),
            several => format!(", generated lines {}", several.join(", ")),
        };
        let _ = write!(out, "line {at}{generated}: {leaf}\n{answer}");
    }
    out
}

/// Strategies that use the instructions in question, and the pins that select them.
fn ways(found: &Explanation, line: impl Fn(Span) -> usize, out: &mut String) {
    let cycles = |n: Option<f64>| n.map_or_else(String::new, |n| format!(", {n:.0} cycles"));
    for way in &found.ways {
        let (at, atoms) = (line(way.origin), way.atoms.join(", "));
        let (chosen, own) = &way.chosen;
        let _ = writeln!(out, "line {at}: {} uses {atoms}{}", way.by, cycles(way.cycles));
        let _ = writeln!(out, "  chosen: {chosen}{}", cycles(*own));
        let _ = writeln!(out, "  to use the other, {}", way.fix.steps.join(", then "));
    }
    for one in &found.without {
        let _ = writeln!(
            out,
            "line {}: no @{}, which may use it: {}",
            line(one.origin),
            one.strategy,
            sanitize(&one.why)
        );
    }
}

fn choice(c: &Choice, at: usize, out: &mut String) {
    let _ = writeln!(out, "line {at}: {}", sanitize(&c.text));
    let _ = writeln!(out, "  chosen: {}, {:.0} cycles", c.chosen, c.cycles);
    if let Some(w) = &c.wider {
        let _ = writeln!(out, "  {}", width(w));
    }
    if let Some(w) = &c.conflicts {
        let _ = writeln!(out, "  {}", conflicts(w));
    }
    for (other, cycles) in &c.others {
        let _ = writeln!(out, "  or: {other}, {cycles:.0} cycles ({:+.0})", cycles - c.cycles);
    }
}

/// The answer about a leaf.
fn explained(leaf: &Explained, texts: &Texts<'_>) -> String {
    let mut out = String::new();
    let matching: Vec<&Considered> =
        leaf.considered.iter().filter(|c| c.mismatch.is_none()).collect();
    for c in matching {
        let taken = if leaf.atom.as_deref() == Some(c.atom) { "taken" } else { "matches" };
        let _ = writeln!(
            out,
            "  {taken}: {}, {} cycles to issue, {} to complete",
            c.atom, c.issue, c.completion
        );
    }
    // Print atoms with the same mismatch together, and the help for the nearest atom.
    let mut reasons: IndexMap<String, Vec<&Considered>> = IndexMap::new();
    for c in &leaf.considered {
        let Some(m) = &c.mismatch else { continue };
        reasons.entry(m.to_string()).or_default().push(c);
    }
    let nearest = leaf.considered.iter().find_map(|c| c.mismatch.as_ref()).map(|m| m.nearness().0);
    for (reason, atoms) in reasons {
        let _ = writeln!(out, "  no: {}", sanitize(&reason));
        for line in names(&atoms, texts.table) {
            let _ = writeln!(out, "      {line}");
        }
        if let Some(c) = atoms.iter().find(|c| c.fix.is_some()) {
            let fix = c.fix.as_ref().map_or(String::new(), |f| f.steps.join(", then "));
            let _ = writeln!(out, "      {} would match: {}", c.atom, sanitize(&fix));
        } else if let Some(m) = atoms.first().and_then(|c| c.mismatch.as_ref())
            && (texts.why && texts.helps && Some(m.nearness().0) == nearest
                || !m.facts().is_empty())
        {
            let _ = writeln!(out, "      {}", sanitize(&m.help()));
        }
    }
    out
}

/// The names of atoms in few lines: one line for each series of atoms that differ in a number, then
/// the others.
fn names(atoms: &[&Considered], table: &AtomTable) -> Vec<String> {
    let atoms = atoms.iter().filter_map(|c| table.get(c.atom));
    let (several, alone): (Vec<_>, Vec<_>) =
        series_of(atoms).into_iter().partition(|s| s.atoms.len() > 1);
    let mut out: Vec<String> = several
        .iter()
        .map(|s| format!("{}, N = {}", s.title, s.columns().unwrap_or_default()))
        .collect();
    if !alone.is_empty() {
        out.push(alone.into_iter().map(|s| s.title).collect::<Vec<_>>().join(" "));
    }
    out
}

/// The answer as JSON; `rendered` is the answer as text.
fn object(found: &Explanation, source: &Source, rendered: &str) -> Value {
    let lines = LineIndex::new(&source.text);
    let line = |span: Span| lines.line(span.start);
    json!({
        "kind": "explanation",
        "arch": found.arch.as_str(),
        "file": source.name,
        "rendered": rendered,
        "refused": found.refused.iter().map(|d| json::diagnostic(source, d)).collect::<Vec<_>>(),
        "warnings": found.warnings.iter().map(|d| json::diagnostic(source, d)).collect::<Vec<_>>(),
        "decomposed": found.decomposed,
        "faster": found.faster.iter().map(|f| json!({
            "line": line(f.origin),
            "facts": facts(&f.facts),
            "by": f.with.0,
            "cycles": f.with.1,
            "instead_of": f.without.0,
            "instead_of_cycles": f.without.1,
        })).collect::<Vec<_>>(),
        "rankings": found.rankings.iter().map(strategy_ranking::object).collect::<Vec<_>>(),
        "ways": found.ways.iter().map(|w| json!({
            "line": line(w.origin),
            "by": w.by,
            "atoms": w.atoms,
            "cycles": w.cycles,
            "chosen": w.chosen.0,
            "chosen_cycles": w.chosen.1,
            "fix": fix(&w.fix),
        })).collect::<Vec<_>>(),
        "without": found.without.iter().map(|w| json!({
            "line": line(w.origin),
            "strategy": w.strategy,
            "refused": w.why,
        })).collect::<Vec<_>>(),
        "choices": found.choices.iter().map(|c| json!({
            "span": span(c.origin),
            "line": line(c.origin),
            "spec": c.text,
            "chosen": c.chosen,
            "cycles": c.cycles,
            "wider": c.wider.as_ref().map(wider),
            "conflicts": c.conflicts.map(|w| json!({"wavefronts": w.taken, "least": w.least})),
            "others": c.others.iter()
                .map(|(o, n)| json!({"choice": o, "cycles": n}))
                .collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "leaves": found.leaves.iter().map(|l| json!({
            "line": line(l.origin),
            "origin": span(l.origin),
            "span": span(l.span),
            "generated": l.generated,
            "spec": l.text,
            "atom": l.atom,
            "considered": l.considered.iter().map(atom).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
    })
}

fn atom(c: &Considered) -> Value {
    json!({
        "atom": c.atom,
        "issue_cycles": c.issue,
        "completion_cycles": c.completion,
        "matches": c.mismatch.is_none(),
        "mismatch": c.mismatch.as_ref().map(ToString::to_string),
        "help": c.mismatch.as_ref().map(carbyne_decompose::Mismatch::help),
        "facts": c.mismatch.as_ref().map(|m| facts(m.facts())).unwrap_or_default(),
        "fix": c.fix.as_ref().map(fix),
    })
}

fn facts(all: &[Fact]) -> Vec<String> {
    all.iter().map(ToString::to_string).collect()
}

fn wider(w: &Width) -> Value {
    match w {
        Width::With(w) => json!({ "facts": facts(&w.facts), "atom": w.atom, "bytes": w.bytes }),
        Width::Not { atom, why } => json!({ "atom": atom, "mismatch": why.to_string() }),
    }
}

fn fix(f: &Fix) -> Value {
    let edit = |e: &carbyne_decompose::explain::Edit| {
        json!({
            "byte_start": e.span.start,
            "byte_end": e.span.end,
            "text": e.text,
        })
    };
    json!({ "steps": f.steps, "edits": f.edits.iter().map(edit).collect::<Vec<_>>() })
}

fn span(s: Span) -> Value {
    json!({ "byte_start": s.start, "byte_end": s.end })
}
