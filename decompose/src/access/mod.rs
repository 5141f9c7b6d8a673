//! Derives facts about a body that no choice of the solver changes: its operations and their sizes,
//! its leaves and the atoms that implement them, the elements that each leaf touches, and how
//! offsets change with loops.

pub(crate) mod distance;
pub(crate) mod increments;
pub(crate) mod kernel_level;
pub(crate) mod leaves;
pub(crate) mod matching;
pub(crate) mod matmul_atoms;
pub(crate) mod ops;
pub(crate) mod precision;
pub(crate) mod relation;
pub(crate) mod requests;
pub(crate) mod staged_loops;
pub(crate) mod sum;
