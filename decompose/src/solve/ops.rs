//! The operations of a tile-level body: leaf specs that the whole block executes together.

use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, StmtKind, TensorId};

/// A leaf spec of the block, and how often it runs.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// Which.
    pub spec: SpecId,
    /// Executions in one block; loops of unknown length count once.
    pub trips: i64,
}

/// Leaf specs that the block of `kernel` executes as one group on logical operands, in text order.
pub(crate) fn collect(p: &Program, kernel: SpecId) -> Vec<Op> {
    let mut ops = vec![];
    let n = block_threads(p, kernel);
    // Of the loops around, from the outside in.
    let mut trips = vec![1i64];
    for step in p.walk_body(kernel) {
        let (Step::Enter(stmt) | Step::Leave(stmt)) = step;
        let entered = matches!(step, Step::Enter(_));
        match &stmt.kind {
            StmtKind::Spec(spec)
                if entered && p.specs[*spec].body.is_none() && is_tile_op(p, *spec, n) =>
            {
                ops.push(Op { spec: *spec, trips: trips.last().copied().unwrap_or(1) });
            }
            StmtKind::For { start, end, step, .. } if entered => {
                let around = trips.last().copied().unwrap_or(1);
                trips.push(
                    around.saturating_mul(self::trips(*start, *end, *step).unwrap_or(1).max(1)),
                );
            }
            StmtKind::For { .. } => drop(trips.pop()),
            _ => {}
        }
    }
    ops
}

/// Threads of a block.
pub(crate) fn block_threads(p: &Program, kernel: SpecId) -> i64 {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[e.threads].concat().to_fixed())
        .map_or(0, |l| l.size())
}

/// The name of the kernel's threads.
pub(crate) fn block_name(p: &Program, kernel: SpecId) -> String {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[p.threads[e.threads].root].name.clone())
        .unwrap_or_default()
}

/// Iterations of a loop, if they are known. The step is positive, as the verifier has checked.
pub(crate) fn trips(start: Dim, end: Dim, step: i64) -> Option<i64> {
    let (Dim::Const(s), Dim::Const(e)) = (start, end) else { return None };
    Some(if e > s { (e.saturating_sub(s) - 1) / step + 1 } else { 0 })
}

/// Whether the leaf is the whole block's, on tensors that belong to all of it. An atom that it names is
/// that of its instructions.
fn is_tile_op(p: &Program, id: SpecId, n: i64) -> bool {
    let spec = &p.specs[id];
    let Some(exec) = spec.exec else { return false };
    let threads = &p.threads[exec.threads];
    let one_group = threads.each.is_none()
        && threads.elect.is_none()
        && threads.levels.len() == 1
        && threads.concat().to_fixed().is_some_and(|l| l.size() == n);
    one_group && !spec.input_tensors().chain(spec.outputs.iter().copied()).any(|t| p.is_private(t))
}

/// All modes of an operand as one layout over its column-major index, if its sizes are known.
pub(crate) fn whole(p: &Program, t: TensorId) -> Option<Layout> {
    p.tensors[t].concat().to_fixed()
}

/// Constant extents of the operand's modes.
pub(crate) fn extents(p: &Program, t: TensorId) -> Option<Vec<i64>> {
    Some(whole(p, t)?.modes().iter().map(Layout::size).collect())
}
