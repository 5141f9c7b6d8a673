//! [`Found`] is the result of matching a strategy with a spec: the operands, numbers, types and
//! steps that stand for those of the strategy.

use super::graph::Source;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;

/// How a graph is an instance of a pattern.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// What stands for the operands of the strategy.
    pub operands: BTreeMap<String, Bound>,
    /// Numbers that its types name.
    pub numbers: BTreeMap<String, i64>,
    /// Types that its types name.
    pub types: BTreeMap<String, Scalar>,
    /// What its sub-specs stand for.
    pub holes: BTreeMap<String, Hole>,
}

impl Found {
    /// Whether a sub-spec stands for some operation.
    pub(crate) fn computes(&self) -> bool {
        self.holes.values().any(|hole| match hole {
            Hole::Chain { steps, .. } => !steps.is_empty(),
            Hole::Fold { .. } => true,
        })
    }
}

/// What stands for an operand of a strategy.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    pub source: Source,
    pub extents: Vec<i64>,
    pub scalar: Scalar,
}

/// What a sub-spec of a strategy stands for.
#[derive(Clone, Debug)]
pub(crate) enum Hole {
    /// These steps, from these values to that one; those of other outputs are stored beside it.
    Chain { steps: Vec<usize>, inputs: Vec<usize>, output: usize, all: bool },
    /// A Reduction.
    Fold { step: usize },
}
