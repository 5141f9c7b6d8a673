//! [`Choice`] says how a MatMul is implemented: its atom, and how the atom tiles the block
//! ([`Gemm`]).

use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

/// One way.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The row.
    pub atom: &'static str,
    /// How it tiles the block.
    pub gemm: Gemm,
    /// For A, B and C: the value that (value of an instruction, instruction, instruction) is in the
    /// tensor's own order. None for a factor that the row reads from shared memory.
    pub maps: [Option<Layout>; 3],
    /// Whether it waits for its asynchronous instructions itself, and not the text behind it.
    pub waits: bool,
    /// Whether threads wrote factors that the row reads by the asynchronous proxy.
    pub fenced: bool,
    /// The type of C.
    pub sum: Scalar,
    /// Bytes that an instruction reads from shared memory by itself.
    pub read: i64,
}

/// How a MatMul atom tiles a block.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gemm {
    /// The atom's extents.
    pub inst: (i64, i64, i64),
    /// The block's extents m, n, k.
    pub block: (i64, i64, i64),
    /// Groups of threads along m, n and k. Those along k hold partial sums of the same elements.
    pub groups: (i64, i64, i64),
}
