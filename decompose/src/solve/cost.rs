//! What a decomposition costs (Hexcute, section VI): operations are issued in order, each for the cycles that
//! its instructions keep a scheduler, the banks or the path to global memory busy; what reads a result waits
//! until it is complete. Beyond the paper: 32-byte sectors of global memory, conflicts of banks as counted,
//! registers, and how many blocks a multiprocessor holds, which fill each other's waits.

use super::copy::Candidate;
use super::ops::Op;
use super::work::Work;
use super::{exchange, matmul, pointwise, reduce};
use carbyne_atoms::{Atom, AtomTable, Visibility, limits};
use carbyne_ir::ast::SpecKind;

/// A copy.
pub(super) fn copy(table: &AtomTable, op: &Op, c: &Candidate, wavefronts: f64) -> Work {
    let Some(atom) = table.get(c.atom) else { return Work::default() };
    let n = c.instructions;
    Work {
        instructions: n,
        issue: n * atom.cost.issue_cycles,
        wavefronts: wavefronts / op.trips.max(1) as f64,
        sectors: c.sectors * n,
        completion: atom.cost.completion_cycles,
        barriers: 0.0,
        asynchronous: atom.visibility == Visibility::AsyncGroup,
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
    Some(Work {
        instructions: instructions + partial.instructions,
        issue: instructions * atom.cost.issue_cycles + partial.issue,
        wavefronts: partial.wavefronts,
        completion: atom.cost.completion_cycles + partial.completion,
        ..Work::default()
    })
}

/// An operation between registers.
pub(super) fn pointwise(table: &AtomTable, c: &pointwise::Choice) -> Work {
    let threads = c.layouts.last().and_then(|l| l.mode(0).ok()).map_or(32, |t| t.size());
    Work {
        issue: c.cost * ((threads + 31) / 32) as f64,
        completion: table.get(c.atom).map_or(0.0, |a| a.cost.completion_cycles),
        ..Work::default()
    }
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
    let (op, op_latency) = of(SpecKind::Binary(c.op));
    let (exchange, latency) = of(SpecKind::Shfl(carbyne_ir::ast::ShflOp::Bfly));
    let threads = c.input.mode(0).map_or(32, |t| t.size());
    let warps = ((threads + 31) / 32) as f64;
    let n = c.n() as f64;
    let (reduced, masks) = (c.values.1.size() as f64, c.masks.len() as f64);
    let mut work = Work {
        issue: warps * n * (reduced * op + masks * (exchange + op)),
        completion: op_latency + masks * (latency + op_latency),
        ..Work::default()
    };
    for s in c.shared.iter().flat_map(reduce::Through::steps) {
        let others = s.others.size() as f64;
        work.wavefronts += warps * n * (1.0 + others);
        work.issue += warps * n * others * op;
        let t = &limits(table.arch).timing;
        work.completion += t.shared_store_cycles + t.shared_load_cycles + others * op_latency;
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
