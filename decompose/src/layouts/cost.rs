//! Computes the [`Work`] of each operation from its chosen atom: instructions, cycles of the units
//! behind them, counted wavefronts, and 32-byte sectors of global memory. [`crate::cost`] computes
//! a time from these.

use super::copy::Candidate;
use super::{exchange, matmul, pointwise, reduce};
use crate::access::ops::Op;
use crate::cost::work::Work;
use carbyne_atoms::{Atom, AtomOp, AtomTable, Unit, limits};
use carbyne_ir::ast::{BinaryOp, SpecKind};

/// A copy.
pub(super) fn copy(table: &AtomTable, op: &Op, c: &Candidate, wavefronts: f64) -> Work {
    let Some(atom) = table.get(c.atom) else { return Work::default() };
    let n = c.instructions;
    let asynchronous = atom.visibility.is_async_copy();
    // What goes to registers or comes from them passes the cache beside shared memory, a line at a
    // time.
    let widest = atom.operands.iter().map(|o| o.bytes_per_thread()).max().unwrap_or(0) * c.group;
    let widest = if c.group == 1 { widest * 32 } else { widest };
    let line = limits(table.arch).smem_bytes_per_cycle() as f64;
    let lines = match c.sectors > 0.0 && !asynchronous {
        true => n * (widest as f64 / line).max(1.0),
        false => 0.0,
    };
    let timing = &limits(table.arch).timing;
    let times = if matches!(atom.op, AtomOp::Accumulate(_)) { timing.red_times() } else { 1.0 };
    Work {
        instructions: n,
        issue: n,
        wavefronts: wavefronts / op.trips.max(1) as f64 + lines,
        sectors: c.sectors * n * times,
        // Its own cycles are those of the units that it keeps busy.
        completion: atom.cost.completion_cycles - (atom.cost.issue_cycles - 1.0).max(0.0),
        asynchronous,
        ..Work::default()
    }
}

/// A MatMul.
pub(super) fn matmul(table: &AtomTable, c: &matmul::Choice) -> Option<Work> {
    let atom = table.get(c.atom)?;
    let (rm, rn, rk) = c.gemm.rest()?;
    let groups = c.gemm.groups.0 * c.gemm.groups.1 * c.gemm.groups.2;
    // A row of fewer threads than a warp is executed by all of its groups at once.
    let warps = (groups * atom.group + 31) / 32;
    let instructions = (rm * rn * rk * warps) as f64;
    let values = atom.operands.get(2)?.n_values();
    let partial = matmul::partial(&c.gemm, values, c.sum, table).unwrap_or_default();
    let cycles = instructions * atom.cost.issue_cycles;
    let own = match atom.unit() {
        Unit::Matrix => Work { issue: instructions, matrix: cycles, ..Work::default() },
        Unit::Special | Unit::Memory | Unit::Issue => Work { issue: cycles, ..Work::default() },
    };
    // As for a Reduction through shared memory.
    let exchanged = c.gemm.groups.2 > 1;
    let barriers = if exchanged { 2.0 } else { 0.0 };
    let slots = values.saturating_mul(rm).saturating_mul(rn).saturating_mul(groups * atom.group);
    let space = if exchanged { slots.saturating_mul(c.sum.bits()) / 8 } else { 0 };
    let completion = atom.cost.completion_cycles;
    let executed = (rm * rn * rk * groups) as f64;
    let wavefronts = executed * c.read as f64 / limits(table.arch).smem_bytes_per_cycle() as f64;
    let asynchronous = !atom.visibility.is_immediate();
    let own = Work { completion, barriers, space, wavefronts, asynchronous, ..own };
    Some(partial.and(Work { instructions, ..own }))
}

/// An operation between registers.
pub(super) fn pointwise(table: &AtomTable, c: &pointwise::Choice) -> Work {
    let threads = c.layouts.last().and_then(|l| l.mode(0).ok()).map_or(32, |t| t.size());
    let warps = ((threads + 31) / 32) as f64;
    let Some(atom) = table.get(c.atom) else { return Work::default() };
    if atom.contracts && atom.op == AtomOp::Binary(BinaryOp::Mul) {
        // The instruction of the sum multiplies.
        return Work::default();
    }
    let instructions = c.cost / atom.cost.issue_cycles.max(1e-9) * warps;
    let own = match atom.unit() {
        Unit::Special => Work { issue: instructions, special: c.cost * warps, ..Work::default() },
        Unit::Matrix | Unit::Memory | Unit::Issue => {
            Work { issue: c.cost * warps, ..Work::default() }
        }
    };
    Work { instructions, completion: atom.cost.completion_cycles, ..own }
}

/// A Reduction.
pub(super) fn reduction(table: &AtomTable, c: &reduce::Choice) -> Work {
    let of = |kind: SpecKind| -> (f64, f64) {
        let takes = |a: &&Atom| {
            a.operands.iter().all(|o| o.elem.scalars_per_unit(c.scalar) == Some(o.n_values()))
                || a.operands.iter().all(|o| o.n_values() == 1 && o.is_of(c.scalar))
        };
        table
            .implementing(kind)
            .find(takes)
            .map_or((1.0, 20.0), |a| (a.cost.issue_cycles, a.cost.completion_cycles))
    };
    let (op, op_latency) = of(c.op);
    let (exchange, latency) = of(SpecKind::Shfl(carbyne_ir::ast::ShflOp::Bfly));
    let threads = c.input.mode(0).map_or(32, |t| t.size());
    let warps = ((threads + 31) / 32) as f64;
    let n = c.n() as f64;
    let shared = || c.shared.iter().flat_map(reduce::Through::steps);
    let masks = c.masks.len() + shared().map(|s| s.masks.len()).sum::<usize>();
    let (reduced, masks) = (c.values.1.size() as f64, masks as f64);
    let t = &limits(table.arch).timing;
    let mut work = Work {
        instructions: warps * n * (reduced + masks * 2.0),
        issue: warps * n * (reduced * op + masks * (1.0 + op)),
        // Exchanges between lanes go by way of shared memory's banks.
        wavefronts: warps * n * masks * exchange / t.schedulers,
        // Each value is added to the sum of those before it.
        completion: reduced.max(1.0) * op_latency + masks * (latency + op_latency),
        ..Work::default()
    };
    for s in shared() {
        let others = s.others.size() as f64;
        work.instructions += warps * n * (1.0 + 2.0 * others);
        work.wavefronts += warps * n * (1.0 + others);
        work.issue += warps * n * (1.0 + others + others * op);
        work.completion += t.shared_store_cycles + t.shared_load_cycles + others * op_latency;
        work.space += s.threads.saturating_mul(c.n()).saturating_mul(c.scalar.bits()) / 8;
        // All of them are there before one is read, and read before their place is used again.
        work.barriers += 2.0;
    }
    work
}

/// A Move by exchanges between lanes.
pub(super) fn exchange(c: &exchange::Choice) -> Work {
    Work {
        instructions: c.instructions,
        issue: c.issue,
        completion: c.completion,
        ..Work::default()
    }
}
