//! [`Choice`] says how lanes exchange values to do a Move between registers.

use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

/// How a Move between registers is done by exchanges between lanes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// The scalar type.
    pub scalar: Scalar,
    /// Values that are exchanged by one instruction, side by side.
    pub unit: i64,
    /// Values of one thread.
    pub values: i64,
    /// The registers of the input in the order in which they are worked on, which the exchanges
    /// turn into that of the output; the unit is its first mode.
    pub map: Layout,
    /// The exchanges, one after the other.
    pub steps: Vec<Step>,
    /// The thread-value layout of the input.
    pub input: Layout,
    /// That of the output.
    pub output: Layout,
    /// Issue cycles of all warps, on one scheduler.
    pub issue: f64,
    /// Cycles from the last issue until the result is there.
    pub completion: f64,
    /// Instructions of all warps.
    pub instructions: f64,
}

/// Swaps a bit of the lane with a bit of the register.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    /// Threads from a lane to the one that it exchanges with.
    pub mask: i64,
    /// Values from a register to the one that goes the other way.
    pub register: i64,
}
