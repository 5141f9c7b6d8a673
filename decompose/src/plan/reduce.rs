//! [`Choice`] says how a Reduction is implemented: in each thread, between lanes, and through
//! shared memory ([`Through`]).

use carbyne_ir::ast::SpecKind;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

/// How a Reduction is done.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The function of two values.
    pub op: SpecKind,
    /// The scalar type.
    pub scalar: Scalar,
    /// Values of one thread: those that stay and those that are reduced, as steps between
    /// registers.
    pub values: (Layout, Layout),
    /// Masks of the lanes that exchange, one exchange each.
    pub masks: Vec<i64>,
    /// The threads that exchange their partial results through shared memory.
    pub shared: Option<Through>,
    /// The thread-value layout of the input.
    pub input: Layout,
    /// That of the output.
    pub output: Layout,
}

/// An exchange through shared memory, a slot for each thread and value.
#[derive(Clone, Debug)]
pub(crate) struct Through {
    /// Threads of the block.
    pub threads: i64,
    /// The thread whose slot a thread reads first.
    pub first: Layout,
    /// From there to the others.
    pub others: Layout,
    /// Masks of the lanes that exchange what they read so, one exchange each.
    pub masks: Vec<i64>,
    /// Another exchange, of what is left after this one.
    pub then: Option<Box<Through>>,
}
