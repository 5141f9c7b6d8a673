//! Finds the nearest numbers of a pin with which a kernel can be decomposed, if it cannot with the
//! stated ones ([`Choosing::nearest`]).

use super::alike::Alike;
use super::larger;
use super::params::{self, Budget};
use super::trials::Wanted;
use super::write::Instance;
use crate::numbers::Numbers;
use crate::strategies::candidates::Choosing;
use crate::strategies::matched::Match;
use carbyne_ir::ast::{Key, StmtKind};

/// Instances of which a bound is computed, at most.
const MOST_BOUNDED: usize = 64;
/// Instances whose layouts are solved, at most.
const MOST_SOLVED: usize = 4;

/// An instance without one of the pins.
struct Near<'a> {
    of: &'a Match<'a>,
    numbers: Numbers,
    key: Key,
    /// Its own numbers of the pin.
    own: Vec<i64>,
    /// How many of them differ from the stated ones, and by how much.
    far: (usize, f64),
    /// Cycles that it takes at least; 0 until this is known.
    cycles: f64,
}

impl Choosing<'_> {
    /// The pin with other numbers, as a text states it: `tile=(128,128,32)`.
    pub(super) fn nearest(&self, matched: &[Match<'_>], wanted: Wanted<'_>) -> Option<String> {
        if self.symbols.is_some() {
            return None;
        }
        let mut near = vec![];
        for m in matched {
            self.near(m, wanted, &mut near);
        }
        let order = |a: &Near<'_>, b: &Near<'_>| {
            a.far
                .0
                .cmp(&b.far.0)
                .then(a.far.1.total_cmp(&b.far.1))
                .then(a.cycles.total_cmp(&b.cycles))
        };
        near.sort_by(order);
        near.truncate(MOST_BOUNDED);
        for n in &mut near {
            let Wanted { stmt, executors, names, .. } = wanted;
            let (instance, mut budget) = (Instance::of(n.of, &n.numbers), Budget::new(None));
            let mut alike = Alike::default();
            let bound = self.bound(&instance, stmt, (executors, names), &mut alike, &mut budget);
            n.cycles = bound.map_or(f64::INFINITY, |bound| bound.cycles);
        }
        near.retain(|n| n.cycles.is_finite());
        near.sort_by(order);
        near.dedup_by(|a, b| a.own == b.own && std::ptr::eq(a.of, b.of));
        let is_solved = |n: &&Near<'_>| {
            let mut stmt = wanted.stmt.clone();
            if let StmtKind::Spec(spec) = &mut stmt.kind {
                spec.attrs.retain(|attr| attr.key != Some(n.key));
            }
            let without = Wanted { stmt: &stmt, ..wanted };
            let module = self.module_of(&Instance::of(n.of, &n.numbers), without);
            module.is_ok_and(|module| (self.solve)(&module, false).is_ok())
        };
        let found = near.iter().take(MOST_SOLVED).find(is_solved)?;
        let all: Vec<String> = found.own.iter().map(i64::to_string).collect();
        Some(match &all[..] {
            [one] => format!("{}={one}", found.key),
            all => format!("{}=({})", found.key, all.join(",")),
        })
    }

    /// Adds the instances of a match that keep all pins but one.
    fn near<'m>(&self, m: &'m Match<'m>, wanted: Wanted<'_>, out: &mut Vec<Near<'m>>) {
        let Some(strategy) = m.def.strategy.as_deref() else { return };
        for (i, (key, stated)) in wanted.pins.attrs.iter().enumerate() {
            let mut pins = wanted.pins.clone();
            pins.attrs.remove(i);
            let mut budget = Budget::new(m.file.theirs(&m.def.name.text));
            let all = params::enumerate(m.def, strategy, &self.given(m), &pins, &mut budget);
            for numbers in all.into_iter().flat_map(|all| all.instances) {
                let own = larger::values(m.def, *key, &numbers);
                if own.len() < stated.len() || !self.has_group(m, &numbers) {
                    continue;
                }
                let pairs = || own.iter().zip(stated);
                let differ = pairs().filter(|(a, b)| a != b).count();
                let by = |(a, b): (&i64, &i64)| {
                    let (a, b) = (*a as f64, *b as f64);
                    (a - b).abs() / a.max(b).max(1.0)
                };
                let far = (differ, pairs().map(by).sum());
                out.push(Near { of: m, numbers, key: *key, own, far, cycles: 0.0 });
            }
        }
    }
}
