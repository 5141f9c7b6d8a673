//! Defines the trait [`Facts`], which gives the layouts of a leaf's operands and divisors of their
//! offsets, as far as they are known.
//!
//! The checks of `bind` ask for them. [`super::bind()`] uses those that hold for all symbols
//! ([`Stated`]). The simulator, which checks each address itself, passes the layouts of one
//! execution to [`super::bind_with`]. So both use one implementation of the checks.

use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, TensorId};

/// Known layouts and offsets of a leaf's operands.
pub trait Facts {
    /// The modes of a tensor. Unknown sizes and strides are expressions.
    fn layout(&self, t: TensorId) -> Layout<Dim>;

    /// A divisor of the tensor's offset, in scalars of its buffer. 0 if the offset is 0, or if the
    /// caller checks each address itself.
    fn divisor(&self, t: TensorId) -> i64;
}

/// The facts that hold for all values of symbols and loop variables, for all blocks and threads.
#[derive(Copy, Clone, Debug)]
pub struct Stated<'p>(pub &'p Program);

impl Facts for Stated<'_> {
    fn layout(&self, t: TensorId) -> Layout<Dim> {
        self.0.tensors[t].concat()
    }

    fn divisor(&self, t: TensorId) -> i64 {
        self.0.arena.divisor(self.0.tensors[t].offset)
    }
}
