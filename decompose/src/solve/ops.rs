//! The operations of a tile-level body: leaf specs that the whole block executes together.

use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, TensorId};

/// A leaf spec of the block, and how often it runs.
#[derive(Clone, Debug)]
pub struct Op {
    /// Which.
    pub spec: SpecId,
    /// Executions in one block; loops of unknown length count once.
    pub trips: i64,
}

/// Leaf specs that the block of `kernel` executes as one group on logical operands, in text order.
pub fn collect(p: &Program, kernel: SpecId) -> Vec<Op> {
    let mut ops = vec![];
    let n = block_threads(p, kernel);
    if let Some(body) = &p.specs[kernel].body {
        walk(p, body, 1, n, &mut ops);
    }
    ops
}

/// Threads of a block.
pub fn block_threads(p: &Program, kernel: SpecId) -> i64 {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[e.threads].concat().to_fixed())
        .map_or(0, |l| l.size())
}

/// The name of the kernel's threads.
pub fn block_name(p: &Program, kernel: SpecId) -> String {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[p.threads[e.threads].root].name.clone())
        .unwrap_or_default()
}

fn walk(p: &Program, stmts: &[Stmt], trips: i64, n: i64, ops: &mut Vec<Op>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Spec(id) => match &p.specs[*id].body {
                Some(body) => walk(p, body, trips, n, ops),
                None if is_tile_op(p, *id, n) => ops.push(Op { spec: *id, trips }),
                None => {}
            },
            StmtKind::For { start, end, step, body, .. } => {
                let count = match (start, end) {
                    (Dim::Const(s), Dim::Const(e)) if e > s => {
                        (e.saturating_sub(*s) - 1) / step + 1
                    }
                    _ => 1,
                };
                walk(p, body, trips.saturating_mul(count), n, ops);
            }
            StmtKind::If { then, otherwise, .. } => {
                walk(p, then, trips, n, ops);
                walk(p, otherwise, trips, n, ops);
            }
            _ => {}
        }
    }
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
pub fn whole(p: &Program, t: TensorId) -> Option<Layout> {
    p.tensors[t].concat().to_fixed()
}

/// Constant extents of the operand's modes.
pub fn extents(p: &Program, t: TensorId) -> Option<Vec<i64>> {
    Some(whole(p, t)?.modes().iter().map(Layout::size).collect())
}
