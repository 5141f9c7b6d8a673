//! Defines the nodes ([`State`]) and leaves ([`Finished`]) of the search, and how leaves are ranked
//! ([`Detours`]).

use super::want::Want;
use super::work;
use crate::access::ops::Known;
use crate::cost::steady::Grid;
use crate::cost::{Costing, Estimate, Least};
use crate::plan::solution::{Assigned, Leaf, Solution};
use carbyne_ir::program::{Program, SpecId};
use std::collections::BTreeMap;

/// What a search looks for. What a detour costs is known exactly once it is written out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Detours {
    /// The cheapest of the choices with the fewest detours.
    Fewest,
    /// The cheapest choice, with what its detours cost, roughly.
    Cheapest,
}

impl Detours {
    /// The rank of a choice with so many detours.
    pub(super) fn rank(self, detours: usize, cycles: f64) -> [i64; 2] {
        let (n, grade) = (i64::try_from(detours).unwrap_or(i64::MAX), work::grade(cycles));
        match self {
            Detours::Fewest => [n, grade],
            Detours::Cheapest => [grade, n],
        }
    }
}

/// A node of the search.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) known: Known,
    /// The MatMuls that were decided.
    pub(super) assignments: BTreeMap<SpecId, Assigned>,
    pub(super) wants: Vec<Want>,
    /// Copies by which register tensors were spread.
    pub(super) anchors: Vec<SpecId>,
    /// Cycles of what was chosen, and of the detours it needs: no choice below takes less.
    pub(super) bound: Least,
}

/// A leaf of the search.
#[derive(Clone, Default)]
pub(super) struct Finished {
    pub(super) known: Known,
    pub(super) wants: Vec<Want>,
    pub(super) solution: Solution,
    /// Cycles of the detours.
    pub(super) detours: f64,
    /// Copies by which register tensors were spread.
    pub(super) anchors: Vec<SpecId>,
}

impl Finished {
    /// Adds what was found for another part.
    pub(super) fn merge(&mut self, other: Finished) {
        self.known.extend(other.known);
        self.wants.extend(other.wants);
        self.solution.merge(other.solution);
        self.detours += other.detours;
        self.anchors.extend(other.anchors);
    }

    /// What the kernel takes if the rest of it is chosen so.
    pub(super) fn estimate(&self, costing: &Costing<'_>, grid: Grid) -> Estimate {
        let s = &self.solution;
        let work = |id| s.assignments.get(&id).map(|a| a.work);
        costing.estimate(work, &self.known, |b| s.in_memory(b), (grid, self.detours))
    }

    /// Less is better: detours and cycles in the order of the search, as exactly as these are
    /// estimated, and among equals the fewest instructions.
    pub(super) fn rank(&self, by: Detours) -> ([i64; 2], f64, f64) {
        let e = &self.solution.estimate;
        (by.rank(self.wants.len(), e.cycles), e.instructions, e.cycles)
    }

    /// It in words.
    pub(super) fn leaf(&self, p: &Program) -> Leaf {
        let s = &self.solution;
        let mut choices: BTreeMap<SpecId, String> =
            s.assignments.iter().map(|(id, a)| (*id, a.how.words())).collect();
        for want in &self.wants {
            if let Want::Rearranged { spec, input, .. } = want {
                let e = choices.entry(*spec).or_default();
                let name = p.specs[*spec].input_tensors().nth(*input).map(|t| p.tensor_name(t));
                e.push_str(&format!(", {} rearranged", name.unwrap_or_default()));
            }
        }
        Leaf { estimate: s.estimate, choices: choices.into_iter().collect(), conflicts: vec![] }
    }
}
