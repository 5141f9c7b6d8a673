//! Lists the leaves of a program with the specs around each ([`leaves()`]), and those that the
//! solver handles ([`of_blocks`]).

use super::ops;
use carbyne_ir::program::{Program, SpecId};
use std::collections::BTreeSet;

/// Leaf specs in text order, each with the specs around it, outermost first.
pub fn leaves(p: &Program) -> Vec<(SpecId, Vec<SpecId>)> {
    p.kernels.iter().flat_map(|kernel| p.leaves(*kernel)).collect()
}

/// The leaves that a whole block executes on logical operands. The solver handles them.
pub fn of_blocks(p: &Program) -> BTreeSet<SpecId> {
    p.kernels.iter().flat_map(|k| ops::collect(p, *k)).map(|op| op.spec).collect()
}

/// The specs around a leaf.
pub(crate) fn around(p: &Program, id: SpecId) -> Option<Vec<SpecId>> {
    leaves(p).into_iter().find(|(leaf, _)| *leaf == id).map(|(_, around)| around)
}
