//! Facts of the operands of a leaf, by which an atom is bound to it.

use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, TensorId};

/// Known layouts and values of a leaf's operands.
pub trait Facts {
    /// The modes of a tensor, with sizes and strides as far as they are known.
    fn layout(&self, t: TensorId) -> Layout<Dim>;

    /// A number that divides where the tensor begins, in scalars of its buffer. 0 where it begins
    /// at 0, and where who executes the leaf looks at each address.
    fn divisor(&self, t: TensorId) -> i64;
}

/// Facts that hold for all values of symbols and loops, for all blocks and threads.
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
