//! [`Solution`] is the result of the solver for a kernel: how each operation is implemented, where
//! open tensors lie, the synchronization between accesses, certificates and costs.

use super::copy::Candidate;
use super::sync::{Place, Sync};
use super::{exchange, matmul, pointwise, reduce};
use crate::certify::certificate::Certificate;
use crate::cost::Estimate;
use crate::cost::work::Work;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, SpecId};
use std::collections::BTreeMap;

/// What the solver found for one kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    /// How each operation is implemented.
    pub assignments: BTreeMap<SpecId, Assigned>,
    /// Where open tensors lie.
    pub placements: BTreeMap<BufferId, Placement>,
    /// Barriers and waits. They stand in the gaps between statements and are no part of how an
    /// operation is implemented: they have a map of their own, by the statement that a gap is at,
    /// which need not be an operation.
    pub before: BTreeMap<Place, Sync>,
    /// One per relation.
    pub certificates: Vec<Certificate>,
    /// What it costs.
    pub estimate: Estimate,
    /// Cycles of all kernels.
    pub cycles: f64,
    /// What each kernel takes.
    pub estimates: Vec<(SpecId, Estimate)>,
    /// The best leaves, best first: what was chosen, and its cost.
    pub leaves: Vec<Leaf>,
    /// Of several kernels the best leaf of each.
    pub chosen: Vec<Leaf>,
    /// How far the search went.
    pub searched: Searched,
    /// What may not be as wanted.
    pub warnings: Vec<Diagnostic>,
}

/// How an operation is implemented, and what that costs.
#[derive(Clone, Debug)]
pub(crate) struct Assigned {
    /// How it is implemented.
    pub how: Assignment,
    /// What one execution by one block costs.
    pub work: Work,
}

/// How an operation is implemented.
#[derive(Clone, Debug)]
pub(crate) enum Assignment {
    /// A copy between memory and registers, or within memory.
    Copy(Candidate),
    /// An operation between registers, an Init included.
    Pointwise(pointwise::Choice),
    /// A Reduction.
    Reduction(reduce::Choice),
    /// A Move from one thread-value layout to another, by exchanges between lanes.
    Exchange(exchange::Choice),
    /// A MatMul.
    MatMul(matmul::Choice),
}

/// Where an open tensor lies.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// In registers.
    Registers {
        /// Its thread-value layout.
        tv: Layout,
        /// The name of the threads that the layout counts.
        threads: String,
    },
    /// In memory.
    Shared {
        /// Its layout.
        layout: Layout,
        /// Its swizzle.
        swizzle: Option<Swizzle>,
    },
}

/// A leaf of the search, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// The cost of the leaf.
    pub estimate: Estimate,
    /// The operations and their choices, in text order.
    pub choices: Vec<(SpecId, String)>,
    /// For the chosen leaf, the copies that take at least twice as many wavefronts as without bank
    /// conflicts.
    pub conflicts: Vec<(SpecId, Wavefronts)>,
}

/// Wavefronts of a copy in shared memory.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Wavefronts {
    /// Wavefronts of all executions by one block.
    pub taken: f64,
    /// Wavefronts without bank conflicts.
    pub least: f64,
}

/// How far a search went.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Complete assignments whose cost was computed.
    pub leaves: u64,
    /// Branches that were left out, because they could not be cheaper.
    pub pruned: u64,
    /// Branches that no row implements.
    pub dead: u64,
    /// Whether the search ended at its budget, before it saw all choices.
    pub cut_off: bool,
}

impl Searched {
    /// Adds the numbers of another search.
    pub fn add(&mut self, other: Searched) {
        self.leaves += other.leaves;
        self.pruned += other.pruned;
        self.dead += other.dead;
        self.cut_off |= other.cut_off;
    }
}

impl Solution {
    /// Adds what was found for another kernel.
    pub(crate) fn merge(&mut self, other: Solution) {
        self.assignments.extend(other.assignments);
        self.placements.extend(other.placements);
        self.before.extend(other.before);
        self.certificates.extend(other.certificates);
        self.warnings.extend(other.warnings);
        self.chosen.extend(other.leaves.first().cloned());
        if self.leaves.is_empty() {
            (self.leaves, self.estimate) = (other.leaves, other.estimate);
        }
        self.cycles += other.cycles;
        self.estimates.extend(other.estimates);
        self.searched.add(other.searched);
    }

    /// How the spec is implemented; none where that is not the solver's.
    pub(crate) fn how(&self, id: SpecId) -> Option<&Assignment> {
        self.assignments.get(&id).map(|a| &a.how)
    }

    /// The copy that implements the spec.
    pub(crate) fn copy(&self, id: SpecId) -> Option<&Candidate> {
        self.how(id)?.copy()
    }

    /// Whether the spec is a MatMul, which its threads execute together.
    pub(crate) fn multiplies(&self, id: SpecId) -> bool {
        matches!(self.how(id), Some(Assignment::MatMul(_)))
    }

    /// Whether it implements the spec.
    pub(crate) fn implements(&self, id: SpecId) -> bool {
        self.assignments.contains_key(&id)
    }

    /// The layout that was found for a tensor in memory.
    pub(crate) fn in_memory(&self, id: BufferId) -> Option<&Layout> {
        match self.placements.get(&id)? {
            Placement::Shared { layout, .. } => Some(layout),
            Placement::Registers { .. } => None,
        }
    }

    /// Whether a MatMul is among the operations.
    pub(crate) fn has_matmul(&self) -> bool {
        self.assignments.values().any(|a| matches!(a.how, Assignment::MatMul(_)))
    }

    /// The first operation whose body takes the threads of a block by warps.
    pub(crate) fn whole_warps(&self, table: &AtomTable) -> Option<SpecId> {
        self.assignments.iter().find(|(_, a)| a.how.by_warps(table)).map(|(id, _)| *id)
    }
}

impl Assignment {
    /// The copy, where it is one.
    pub(crate) fn copy(&self) -> Option<&Candidate> {
        match self {
            Assignment::Copy(c) => Some(c),
            Assignment::Pointwise(_)
            | Assignment::Reduction(_)
            | Assignment::Exchange(_)
            | Assignment::MatMul(_) => None,
        }
    }

    /// Whether its body takes the threads of a block by warps.
    fn by_warps(&self, table: &AtomTable) -> bool {
        match self {
            Assignment::Copy(c) => c.group > 1,
            Assignment::Pointwise(_) => false,
            Assignment::Reduction(c) => !c.masks.is_empty(),
            Assignment::Exchange(c) => !c.steps.is_empty(),
            Assignment::MatMul(c) => table.get(c.atom).is_some_and(|a| a.group > 1),
        }
    }

    /// Whether its body exchanges values through shared memory.
    pub(crate) fn through_shared(&self) -> bool {
        match self {
            Assignment::Copy(_) | Assignment::Pointwise(_) | Assignment::Exchange(_) => false,
            Assignment::Reduction(c) => c.shared.is_some(),
            Assignment::MatMul(c) => c.gemm.groups.2 > 1,
        }
    }

    /// It in a few words.
    pub(crate) fn words(&self) -> String {
        match self {
            Assignment::Copy(c) => format!("{} x{}", c.atom, c.instructions),
            Assignment::Pointwise(c) => format!("{} of {}", c.atom, c.n),
            Assignment::Reduction(c) => {
                let through = if c.shared.is_some() { ", through SH" } else { "" };
                format!("{} exchanges{through}", c.masks.len())
            }
            Assignment::Exchange(c) => format!("{} exchanges", c.steps.len()),
            Assignment::MatMul(c) => {
                let spread = match c.gemm.groups {
                    (m, n, 1) => format!("({m},{n})"),
                    (m, n, k) => format!("({m},{n},{k})"),
                };
                format!("{} warps {spread}", c.atom)
            }
        }
    }
}
