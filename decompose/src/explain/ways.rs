//! Finds strategies that use an instruction that the user asked for and that were not chosen
//! ([`Ways`]), with the pin that makes decompose choose them. Each pin has been tried. Strategies
//! that could use the instruction but have no instance are listed with the reason.

use super::answer::{Explanation, Question, Way, Without, matches};
use super::edit::{Edit, Fix};
use crate::access::leaves::leaves;
use crate::strategies::candidates::Ranking;
use crate::{Options, decompose_by, strategies};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::{Key, Module, StmtKind};
use carbyne_ir::span::Span;
use carbyne_ir::text;
use std::collections::BTreeSet;

/// Strategies that are tried, of one spec.
const TRIED: usize = 8;

/// What is asked, of which text.
pub(super) struct Ways<'a> {
    pub(super) module: &'a Module,
    pub(super) src: &'a str,
    pub(super) table: &'a AtomTable,
    pub(super) options: &'a Options,
    pub(super) question: &'a Question,
}

impl Ways<'_> {
    /// Adds what strategies have for the kernel-level specs of an answer.
    pub(super) fn add(&self, out: &mut Explanation) {
        let Some(why) = &self.question.why else { return };
        let mut seen: Vec<Span> = vec![];
        for ranking in out.rankings.clone() {
            // Of kernels that a strategy has given in turn the spec has been asked for.
            if seen.iter().any(|s| s.is_at(ranking.span)) {
                continue;
            }
            seen.push(ranking.span);
            let chosen = |l: &super::Explained| {
                l.origin.is_at(ranking.span) && l.atom.as_ref().is_some_and(|a| matches(why, a))
            };
            let Some(at) = self.unpinned(ranking.span) else { continue };
            if out.leaves.iter().any(chosen) {
                continue;
            }
            out.ways.extend(self.tried(&ranking, why, at));
            out.without.extend(self.refused(&ranking, why));
        }
    }

    /// Where a pin of the spec there would stand; none where it says by what it is decomposed.
    fn unpinned(&self, span: Span) -> Option<usize> {
        self.module.items.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Spec(spec) if spec.span.is_at(span) && spec.body.is_none() => {
                let said = spec.attr(Key::By).is_some();
                (!said).then_some(span.end as usize)
            }
            _ => None,
        })
    }

    fn tried(&self, ranking: &Ranking, why: &str, at: usize) -> Vec<Way> {
        let name = |by: &str| by.split('[').next().unwrap_or_default().to_owned();
        let Some(best) = ranking.instances.first() else { return vec![] };
        let mut names = BTreeSet::from([name(&best.by)]);
        let others = ranking.instances.iter().filter(|one| one.refused.is_none());
        let others: Vec<String> =
            others.map(|one| name(&one.by)).filter(|n| names.insert(n.clone())).collect();
        let mut out = vec![];
        for strategy in others.iter().take(TRIED) {
            let step = format!("write `by={strategy}`");
            let edit = Edit::new(Span::new(at, at), format!(" by={strategy}"));
            let Some(fix) = Fix::default().then(self.src, step, &[edit]) else { continue };
            let Some(src) = fix.apply(self.src) else { continue };
            let Ok(module) = text::parse(&src) else { continue };
            let Ok(d) = decompose_by(&module, &src, self.table, self.options) else { continue };
            let starts = |s: Span| s.start == ranking.span.start;
            let specs = leaves(&d.program).into_iter().map(|(id, _)| &d.program.specs[id]);
            let own = specs.filter(|s| starts(d.origins.span(s.node)));
            let atoms: BTreeSet<String> =
                own.filter_map(|s| s.atom.clone()).filter(|a| matches(why, a)).collect();
            if atoms.is_empty() {
                continue;
            }
            let taken = d.rankings.iter().find(|r| starts(r.span));
            let taken = taken.and_then(|r| r.instances.first());
            out.push(Way {
                origin: ranking.span,
                by: taken.map_or_else(|| strategy.clone(), |one| one.by.clone()),
                atoms: atoms.into_iter().collect(),
                cycles: taken.and_then(|one| one.cycles),
                chosen: (best.by.clone(), best.cycles),
                fix,
            });
        }
        out
    }

    /// Strategies that mean the same, have no instance, and could have a leaf with such an
    /// instruction.
    fn refused(&self, ranking: &Ranking, why: &str) -> Vec<Without> {
        let rows: Vec<_> = self.table.atoms().iter().filter(|a| matches(why, a.name)).collect();
        let of = |name: &str| self.options.strategies.iter().find(|(d, _)| d.name.text == name);
        let could = |name: &str| {
            of(name).is_some_and(|(def, _)| rows.iter().any(|row| strategies::could_be(def, row)))
        };
        let means = |name: &String| !ranking.unlike.contains(name);
        let all = ranking.others.iter().filter(|(name, _)| means(name) && could(name));
        all.map(|(strategy, why)| Without {
            origin: ranking.span,
            strategy: strategy.clone(),
            why: why.clone(),
        })
        .collect()
    }
}
