//! [`Choice`] says how an operation on the values of one thread is implemented: its atom, and the
//! loops over its instructions.

use super::part::Part;
use carbyne_ir::layout::Layout;

/// How an operation on one thread's values is implemented.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The row.
    pub atom: &'static str,
    /// Scalars of one instruction.
    pub n: i64,
    /// Loops over the instructions of one thread: extent of each.
    pub loops: Vec<i64>,
    /// For each input and then the output: steps of its values along the loops, none where a loop
    /// does not change the value; and how many values of it one instruction takes.
    pub steps: Vec<(Vec<Option<i64>>, i64)>,
    /// The thread-value layout of each operand.
    pub layouts: Vec<Layout>,
    /// The registers of each operand that is a part of a tensor.
    pub parts: Vec<Option<Part>>,
    /// Issue cycles of all instructions of one execution by one warp.
    pub cost: f64,
}
