//! Computes how long the operations of a loop take ([`Taking`]): cycles of each unit of a
//! multiprocessor, and the cycles until results are there.
//!
//! Amounts are the least that any layout could do, as the cost model has them for the kernel. The
//! amount of a leaf is the cost of the kernel if nothing else takes any time. Latencies are those
//! of the architecture's timing. A block is assumed to have its multiprocessor to itself.

use crate::access::ops::Known;
use crate::cost::constants::FITTED;
use crate::cost::outline::{Leaf, Outline, elements};
use crate::cost::steady::Grid;
use crate::cost::work::Work;
use crate::cost::{Costing, Estimate, Resource};
use carbyne_atoms::limits::Timing;
use carbyne_atoms::{AtomTable, Machine, limits};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::program::{Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;

/// What one execution of an operation by a block takes, in cycles of a multiprocessor.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Takes {
    /// Of the units that multiply matrices.
    pub(super) matrix: f64,
    /// Of the slots in which instructions are issued.
    pub(super) issue: f64,
    /// Of the units of special functions.
    pub(super) special: f64,
    /// Of shared memory.
    pub(super) shared: f64,
    /// Of the way to global memory.
    pub(super) global: f64,
    /// From the end of all that until its result is there.
    pub(super) completion: f64,
}

impl Takes {
    /// Cycles of the busiest part that threads have to do with.
    pub(super) fn held(&self) -> f64 {
        self.matrix.max(self.issue).max(self.special).max(self.shared)
    }

    /// One after the other, so many times.
    pub(super) fn then(self, next: Takes, times: f64) -> Takes {
        Takes {
            matrix: self.matrix + next.matrix * times,
            issue: self.issue + next.issue * times,
            special: self.special + next.special * times,
            shared: self.shared + next.shared * times,
            global: self.global + next.global * times,
            completion: self.completion.max(next.completion),
        }
    }
}

/// Looks up what the leaves of a kernel take.
pub(super) struct Taking<'a> {
    p: &'a Program,
    machine: Machine,
    pub(super) outline: Outline,
    costing: Costing<'a>,
    pub(super) timing: &'static Timing,
}

impl<'a> Taking<'a> {
    /// None where the threads of the kernel are not known.
    pub(super) fn new(
        p: &'a Program,
        kernel: SpecId,
        table: &'a AtomTable,
        own: &'a Machine,
    ) -> Option<Self> {
        let outline = Outline::of(p, kernel)?;
        let costing = Costing::new(p, kernel, table, own);
        let timing = &limits(table.arch).timing;
        Some(Taking { p, machine: own.clone(), outline, costing, timing })
    }

    /// The leaf of the outline that a spec is.
    pub(super) fn leaf(&self, id: SpecId) -> Option<&Leaf> {
        self.outline.leaves.iter().find(|leaf| leaf.spec == id)
    }

    /// What a leaf takes; none where it is never executed.
    pub(super) fn of(&self, id: SpecId) -> Option<Takes> {
        let leaf = self.leaf(id)?;
        let others = |other: SpecId| (other != id).then(Work::default);
        let e: Estimate = self.costing.estimate(others, &Known::new(), |_| None, (Grid::Own, 0.0));
        let slots = e.blocks_per_sm.saturating_mul(self.machine.sms);
        let executions = e.blocks.unwrap_or(slots) as f64 * leaf.times;
        if executions <= 0.0 {
            return None;
        }
        // The schedulers work side by side.
        let lanes = self.timing.schedulers.min(leaf.by.warps()).max(1.0);
        let sms = self.machine.sms.max(1) as f64;
        let bytes = (self.machine.l2_bytes_per_cycle / sms).min(self.timing.global_bytes);
        let of = |resource: Resource| e[resource].amount / executions;
        Some(Takes {
            matrix: of(Resource::Matrix) / lanes,
            issue: of(Resource::Issue) / lanes,
            special: of(Resource::Special) / lanes,
            shared: of(Resource::Shared),
            global: of(Resource::L2) / bytes.max(1e-9),
            completion: self.completion(id),
        })
    }
}

impl Taking<'_> {
    /// Cycles until a copy from global memory has come, under load; `bulk`: by the engine that
    /// copies tiles.
    pub(super) fn far(&self, bulk: bool) -> f64 {
        FITTED.loaded * if bulk { self.timing.bulk_cycles } else { self.timing.global_cycles }
    }

    /// Cycles from the last instruction of a leaf, which threads execute, until its result is
    /// there.
    fn completion(&self, id: SpecId) -> f64 {
        let (spec, t) = (&self.p.specs[id], self.timing);
        let in_memory =
            |t: TensorId, is: fn(Memory) -> bool| self.p.buffer_of(t).memory.is_some_and(is);
        let reads = |is: fn(Memory) -> bool| spec.input_tensors().any(|t| in_memory(t, is));
        let writes = |is: fn(Memory) -> bool| spec.outputs.iter().any(|t| in_memory(*t, is));
        let far = if reads(Memory::is_global) { self.far(false) } else { 0.0 };
        let near = if reads(Memory::is_shared) { t.shared_load_cycles } else { 0.0 };
        let stored = if writes(Memory::is_shared) { t.shared_store_cycles } else { 0.0 };
        let computed = match spec.kind {
            SpecKind::Move | SpecKind::Accumulate(_) | SpecKind::Generic => 0.0,
            SpecKind::MatMul | SpecKind::MatMulSet => t.mma_k16_cycles,
            SpecKind::Shfl(_) => t.shared_load_cycles,
            SpecKind::Reduction(_) => {
                // Lanes along what is reduced, each with as many values as an access takes,
                // exchange their sums.
                let (Some(from), Some(to)) = (spec.input_tensors().next(), spec.outputs.first())
                else {
                    return 0.0;
                };
                let each = elements(self.p, from) / elements(self.p, *to).max(1);
                let values = (WIDEST / self.p.scalar_of(from).bits().max(1)).max(1);
                let lanes = (each / values).clamp(1, 32) as u64;
                let exchanges = f64::from(lanes.next_power_of_two().ilog2());
                exchanges * (t.shared_load_cycles + t.math_cycles) + t.math_cycles
            }
            _ => t.math_cycles,
        };
        far + near + stored + computed
    }
}

/// Bits of the widest access of a thread.
const WIDEST: i64 = 128;
