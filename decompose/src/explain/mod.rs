//! Explains how each leaf is implemented: every row that was compared with it, the condition that
//! failed, and a change that would satisfy it; and what else the solver could have chosen, with
//! costs.
//!
//! The program is decomposed first. A leaf that the user wrote is explained in the user's text, a
//! generated one in the decomposed text. Both point to the statement for which they were written or
//! generated.

mod answer;
mod edit;
mod fix;
mod site;
mod ways;

pub use crate::access::leaves::{leaves, of_blocks};
pub use crate::driver::wider::{Wider, Width};
pub use answer::{
    Choice, Considered, Explained, Explanation, Faster, Question, Way, Without, matches,
};
pub use edit::{Edit, Fix};

use crate::access::matching;
use crate::access::matching::Mismatch;
use crate::driver::decompose::decompose_by;
use crate::driver::decomposed::{Decomposed, Options};
use crate::driver::kernels::ranked;
use crate::driver::unstated_facts;
use crate::driver::wider::{Widening, side};
use crate::layouts::copy;
use crate::layouts::solver::{Search, lacking};
use crate::resolved::separated;
use crate::strategies::candidates::Ranking;
use carbyne_atoms::bind;
use carbyne_atoms::{Arch, Atom, AtomTable};
use carbyne_ir::ast::{Module, NodeKey, SpecKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::span::{LineIndex, Span};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use ways::Ways;

/// Leaves of the search that choices are taken from.
const TOP: usize = 24;
/// Choices that the search looks at.
const BUDGET: u64 = 4_000;
/// Rows of a leaf for which a fix is looked for.
const FIXES: usize = 4;
/// Texts that are tried for all fixes together, and their bytes.
const TRIES: usize = 4_000;
const TRIED_BYTES: usize = 8 << 20;

/// How often strategies are chosen with more facts.
const MOST_CHOSEN: usize = 4;

/// Explains a well-formed program.
///
/// # Errors
/// Errors of resolving and verifying. If a program cannot be decomposed, that is a part of the
/// answer.
pub fn explain(
    module: &Module,
    src: &str,
    table: &AtomTable,
    question: &Question,
) -> Result<Explanation, Diagnostics> {
    let (module, program) = separated(module, src)?;
    let module = &*module;
    let search = Search { budget: BUDGET, top: TOP, sms: question.sms, ..Search::default() };
    let mut out = Explanation {
        arch: table.arch,
        leaves: vec![],
        choices: vec![],
        faster: vec![],
        rankings: vec![],
        ways: vec![],
        without: vec![],
        refused: vec![],
        warnings: vec![],
        decomposed: None,
        elsewhere: vec![],
    };
    let tries = Cell::new((TRIED_BYTES / src.len().max(1)).clamp(8, TRIES));
    let ask = Ask { table, question, src, lines: LineIndex::new(src), tries };
    let strategies = question.strategies.clone();
    // What is explained is what `decompose` chooses.
    let choosing = Some(Search { sms: question.sms, ..Search::default() });
    let options = Options { search, choosing, strategies, ..Options::default() };
    match decompose_by(module, src, table, &options) {
        Ok(d) => {
            ask.decomposed((module, &program), &d, &mut out);
            out.faster = ask.faster(module, &d, &out.choices, &options);
            out.rankings = d.rankings.iter().filter(|r| ask.on_line(r.span)).cloned().collect();
            out.warnings = d.warnings.into_iter().map(shorter).collect();
            out.decomposed = Some(d.text);
            Ways { module, src, table, options: &options, question }.add(&mut out);
        }
        Err(errors) => {
            ask.undecomposed(&program, &mut out);
            // Of another line only where there is nothing else to say.
            let all = errors.into_vec();
            let here: Vec<_> = all.iter().filter(|d| ask.on_line(d.span)).cloned().collect();
            out.refused = if here.is_empty() && out.leaves.is_empty() { all } else { here };
        }
    }
    if let Some(why) = &question.why {
        out.leaves.retain(|l| !l.considered.is_empty());
        if out.leaves.is_empty() {
            let has = |a: &Arch| AtomTable::new(*a).atoms().iter().any(|r| matches(why, r.name));
            out.elsewhere = Arch::ALL.iter().copied().filter(has).collect();
        }
    }
    Ok(out)
}

/// The search for an explanation is a shorter one.
fn shorter(d: Diagnostic) -> Diagnostic {
    if d.code != Code::Budget {
        return d;
    }
    let longer = Search::default().budget;
    d.help(format!("`carbyne decompose` tries {longer} choices, and may find a better one"))
}

struct Ask<'a> {
    table: &'a AtomTable,
    question: &'a Question,
    src: &'a str,
    lines: LineIndex,
    /// Texts that may still be tried for fixes.
    tries: Cell<usize>,
}

/// Where leaves stand.
#[derive(Copy, Clone)]
struct Place<'a> {
    p: &'a Program,
    text: &'a str,
    /// Those that are the solver's.
    solved: &'a BTreeSet<SpecId>,
    /// What the leaf was written or generated for.
    origin: Span,
}

impl Ask<'_> {
    /// Whether the line that is asked for is one of the span's.
    fn on_line(&self, origin: Span) -> bool {
        let Some(line) = self.question.line else { return true };
        let (first, last) = (self.lines.line(origin.start), self.lines.line(origin.end));
        (first..=last).contains(&line)
    }

    fn decomposed(
        &self,
        (module, program): (&Module, &Program),
        d: &Decomposed,
        out: &mut Explanation,
    ) {
        // A leaf that stands in the person's text as it is.
        let solved = of_blocks(program);
        let written: HashMap<NodeKey, SpecId> = leaves(program)
            .into_iter()
            .filter(|(id, _)| !program.kernels.contains(id) && !solved.contains(id))
            .map(|(id, _)| (program.specs[id].node.key(), id))
            .collect();
        let written_around: BTreeMap<SpecId, Vec<SpecId>> = leaves(program).into_iter().collect();
        let none = BTreeSet::new();
        let choices = d.chosen.iter().flat_map(|best| &best.choices);
        let choices: HashSet<NodeKey> =
            choices.map(|(id, _)| d.tile.specs[*id].node.key()).collect();
        for (id, around) in leaves(&d.program) {
            let mut own = around.iter().chain([&id]).map(|id| d.program.specs[*id].node.key());
            let chosen = own.any(|node| choices.contains(&node));
            let node = d.program.specs[id].node;
            let origin = self.origin(d, id, &around);
            if !self.on_line(origin) {
                continue;
            }
            let atom = d.program.specs[id].atom.clone();
            let explained = match written.get(&node.key()) {
                Some(own) => {
                    let around = written_around.get(own).cloned().unwrap_or_default();
                    let at = Place { p: program, text: self.src, solved: &none, origin };
                    self.leaf(&at, *own, &around, false, atom)
                }
                None => {
                    let at = Place { p: &d.program, text: &d.text, solved: &none, origin };
                    self.leaf(&at, id, &around, true, atom)
                }
            };
            out.leaves.push(Explained { chosen, ..explained });
        }
        self.choices(module, d, out);
    }

    /// The leaves as they are written, where nothing could be decomposed.
    fn undecomposed(&self, program: &Program, out: &mut Explanation) {
        let solved = of_blocks(program);
        for (id, around) in leaves(program) {
            let origin = program.specs[id].span;
            if !self.on_line(origin) {
                continue;
            }
            let atom = program.specs[id].atom.clone();
            let at = Place { p: program, text: self.src, solved: &solved, origin };
            out.leaves.push(self.leaf(&at, id, &around, false, atom));
        }
    }

    fn leaf(
        &self,
        at: &Place<'_>,
        id: SpecId,
        around: &[SpecId],
        generated: bool,
        atom: Option<String>,
    ) -> Explained {
        let Place { p, text, origin, .. } = *at;
        let spec = &p.specs[id];
        let tile_op = at.solved.contains(&id);
        let asked = |a: &&Atom| self.question.why.as_ref().is_none_or(|why| matches(why, a.name));
        let mut considered: Vec<Considered> = self
            .table
            .implementing(bind::compared(spec.kind))
            .filter(asked)
            .map(|row| {
                let mismatch = match tile_op {
                    true => self.tile_level(p, id, row),
                    false => matching::match_atom(p, id, around, row).err(),
                };
                // The body that the solver has written brings factors to registers.
                let solved = (tile_op || generated) && spec.kind == SpecKind::MatMul;
                let mismatch = mismatch.map(|m| match &m {
                    Mismatch::Memory { .. } if solved => Mismatch::from_memory(row).unwrap_or(m),
                    _ => m,
                });
                let cost = &row.cost;
                Considered {
                    atom: row.name,
                    issue: cost.issue_cycles,
                    completion: cost.completion_cycles,
                    mismatch,
                    fix: None,
                }
            })
            .collect();
        // Nearest first; what matches before.
        considered.sort_by_key(|c| {
            std::cmp::Reverse(c.mismatch.as_ref().map_or((u32::MAX, 0), Mismatch::nearness))
        });
        let focused = self.question.line.is_some() || self.question.why.is_some();
        if !tile_op && (focused || considered.iter().all(|c| c.mismatch.is_some())) {
            let rejected = considered.iter_mut().filter(|c| c.mismatch.is_some()).take(FIXES);
            for c in rejected {
                if let (Some(m), Some(row)) = (&c.mismatch, self.table.get(c.atom)) {
                    let mut tries = self.tries.get();
                    c.fix = fix::find(text, id, row, m, self.table, &mut tries);
                    self.tries.set(tries);
                }
            }
        }
        Explained {
            text: first_line(text, spec.span),
            origin,
            span: spec.span,
            generated,
            spec: id,
            node: spec.node,
            chosen: false,
            atom,
            considered,
        }
    }

    /// Why a row is no candidate for an operation of the whole block.
    fn tile_level(&self, p: &Program, id: SpecId, row: &Atom) -> Option<Mismatch> {
        let spec = &p.specs[id];
        let threads = spec
            .exec
            .and_then(|e| p.threads[e.threads].concat().to_fixed())
            .map_or(0, |l| l.size());
        let ends = (spec.input_tensors().next(), spec.outputs.first());
        let (SpecKind::Move, (Some(src), Some(&dst))) = (spec.kind, ends) else {
            return matching::match_atom(p, id, &[], row).err();
        };
        let only = self.table.filtered(|r| r.name == row.name);
        let found = copy::candidates(p, id, side(p, src), side(p, dst), &only, threads);
        let rejected = found.err().and_then(|rejected| rejected.into_iter().next());
        rejected.map(|(_, m)| lacking(p, (src, dst), row, m))
    }

    /// The statement for which a leaf was written or generated. A leaf that a stage of the solver
    /// has made has the origin of the operation around it.
    fn origin(&self, d: &Decomposed, id: SpecId, around: &[SpecId]) -> Span {
        let own = std::iter::once(&id).chain(around.iter().rev());
        let mut spans = own.map(|id| d.origins.span(d.program.specs[*id].node));
        spans.find(|span| !span.is_nowhere()).unwrap_or_default()
    }

    /// What strategies choose where all facts are stated that were found to be missing.
    fn faster(
        &self,
        module: &Module,
        d: &Decomposed,
        choices: &[Choice],
        options: &Options,
    ) -> Vec<Faster> {
        let own = |span: Span| {
            let narrow = choices.iter().filter(move |c| c.origin.is_at(span));
            let unstated = d.unstated.iter().filter(move |u| u.span.is_at(span));
            let narrow = narrow.flat_map(|c| match &c.wider {
                Some(Width::With(wider)) => &wider.facts[..],
                Some(Width::Not { .. }) | None => &[],
            });
            let mut all: Vec<Fact> = vec![];
            for fact in unstated.flat_map(|u| &u.facts).chain(narrow) {
                if !all.contains(fact) {
                    all.push(fact.clone());
                }
            }
            all
        };
        let mut out: Vec<Faster> = vec![];
        // Choices with facts, by these.
        let mut with: BTreeMap<String, Option<Vec<Ranking>>> = BTreeMap::new();
        for ranking in d.rankings.iter().filter(|r| self.on_line(r.span)) {
            let facts = own(ranking.span);
            if facts.is_empty() || out.iter().any(|f| f.origin.is_at(ranking.span)) {
                continue;
            }
            let key = listed(&facts);
            if with.len() == MOST_CHOSEN && !with.contains_key(&key) {
                break;
            }
            let all = with.entry(key).or_insert_with(|| {
                let stated = unstated_facts::with(module, &facts)?;
                ranked(&stated, self.src, self.table, options).ok()
            });
            let Some(all) = all else { continue };
            let best = |r: &Ranking| r.instances.first().map(|one| (one.by.clone(), one.cycles));
            let other = all.iter().find(|r| r.span.is_at(ranking.span)).and_then(best);
            let (Some(with), Some(without)) = (other, best(ranking)) else { continue };
            // That they have changed the numbers in the places of symbols is no reason to state
            // them.
            if !with.1.zip(without.1).is_some_and(|(with, without)| with < without) {
                continue;
            }
            let said = unstated_facts::said(module, &facts);
            out.push(Faster { origin: ranking.span, facts, said, with, without });
        }
        out
    }

    fn choices(&self, module: &Module, d: &Decomposed, out: &mut Explanation) {
        let spans = d.tile_level_spans();
        let mut widening = Widening::new(module, self.src, d, self.table);
        let all = d.chosen.iter().flat_map(|best| best.choices.iter().map(move |c| (best, c)));
        for (best, (id, chosen)) in all {
            let origin = d.origins.span(d.tile.specs[*id].node);
            if !self.on_line(origin) {
                continue;
            }
            let mut others: Vec<(String, f64)> = vec![];
            for leaf in &d.leaves {
                let Some((_, other)) = leaf.choices.iter().find(|(o, _)| o == id) else { continue };
                if other != chosen && others.iter().all(|(o, _)| o != other) {
                    others.push((other.clone(), leaf.estimate.cycles));
                }
            }
            let why = self.question.why.as_ref();
            let all = std::iter::once(chosen).chain(others.iter().map(|(o, _)| o));
            if why.is_some_and(|w| !all.into_iter().any(|c| matches(w, c))) {
                continue;
            }
            let head = spans.get(id).map(|span| first_line(&d.tile_level, *span));
            out.choices.push(Choice {
                origin,
                text: head.unwrap_or_default(),
                chosen: chosen.clone(),
                others,
                cycles: best.estimate.cycles,
                wider: widening.of(*id),
                conflicts: best.conflicts.iter().find(|(own, _)| own == id).map(|(_, w)| *w),
            });
        }
    }
}

/// The text of a span on one line.
fn first_line(text: &str, span: Span) -> String {
    let all = text.get(span.start as usize..span.end as usize).unwrap_or("");
    let words: Vec<&str> = all.split_whitespace().collect();
    words.join(" ").trim_end_matches('{').trim_end().to_owned()
}
