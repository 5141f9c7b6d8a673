//! The leaves of a program, and the specs around them.

use crate::solve::ops;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind};
use std::collections::BTreeSet;

/// Leaf specs in text order, each with the specs around it, outermost first.
pub fn leaves(p: &Program) -> Vec<(SpecId, Vec<SpecId>)> {
    p.kernels.iter().flat_map(|kernel| of_kernel(p, *kernel)).collect()
}

/// Those of a kernel.
pub(crate) fn of_kernel(p: &Program, kernel: SpecId) -> Vec<(SpecId, Vec<SpecId>)> {
    let mut out = vec![];
    spec(p, kernel, &mut vec![], &mut out);
    out
}

/// The leaves that a whole block executes on logical operands: the solver's.
pub fn of_blocks(p: &Program) -> BTreeSet<SpecId> {
    p.kernels.iter().flat_map(|k| ops::collect(p, *k)).map(|op| op.spec).collect()
}

/// The specs around a leaf.
pub(crate) fn around(p: &Program, id: SpecId) -> Option<Vec<SpecId>> {
    leaves(p).into_iter().find(|(leaf, _)| *leaf == id).map(|(_, around)| around)
}

fn spec(p: &Program, id: SpecId, around: &mut Vec<SpecId>, out: &mut Vec<(SpecId, Vec<SpecId>)>) {
    match &p.specs[id].body {
        None => out.push((id, around.clone())),
        Some(body) => {
            around.push(id);
            stmts(p, body, around, out);
            around.pop();
        }
    }
}

fn stmts(
    p: &Program,
    list: &[Stmt],
    around: &mut Vec<SpecId>,
    out: &mut Vec<(SpecId, Vec<SpecId>)>,
) {
    for stmt in list {
        match &stmt.kind {
            StmtKind::Spec(id) => spec(p, *id, around, out),
            StmtKind::For { body, .. } => stmts(p, body, around, out),
            StmtKind::If { then, otherwise, .. } => {
                stmts(p, then, around, out);
                stmts(p, otherwise, around, out);
            }
            _ => {}
        }
    }
}
