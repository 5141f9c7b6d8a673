//! Certificates: the letters p, q, f, g of every relation that the solver used, as data.
//!
//! A thread-value layout here has T = (lanes of a group, groups) and V = (values of an instruction,
//! instructions), both column-major, whatever its nesting. [`crate::checker`] evaluates the
//! relations.

use carbyne_ir::ast::NodeId;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::SpecId;

/// Why a decomposition is right.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The spec that the relation is about, of the program that was solved.
    pub spec: SpecId,
    /// Its statement, which stands in the decomposed module, too.
    pub node: NodeId,
    /// The row that implements it; `-` of several.
    pub atom: &'static str,
    /// What holds.
    pub relation: Relation,
}

/// A relation of Hexcute, Fig. 19.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a kernel has a few, each kept once")]
pub enum Relation {
    /// f∘p⁻¹ = g∘q⁻¹
    Copy {
        /// The row's source.
        p: Layout,
        /// The row's destination.
        q: Layout,
        /// The source tensor.
        f: Layout,
        /// The destination tensor.
        g: Layout,
    },
    /// μ∘(f_c∘p_c⁻¹)∘η = μ∘(f_a∘p_a⁻¹)∘η along M, and so on along N and K.
    Gemm {
        /// Extents m, n, k of the row's tile.
        inst: (i64, i64, i64),
        /// Extents m, n, k of the tensors.
        block: (i64, i64, i64),
        /// Groups of threads along m, n and k.
        groups: (i64, i64, i64),
        /// p_a, p_b, p_c.
        row: [Layout; 3],
        /// f_a, f_b, f_c.
        tensors: [Layout; 3],
        /// Of each, where the values of the instructions lie among those of a thread.
        maps: [Layout; 3],
    },
    /// f = g, or f = μ∘g where an operand's modes of extent 1 stand for all.
    Pointwise {
        /// Extents of each operand, the output last.
        extents: Vec<Vec<i64>>,
        /// The thread-value layout of each.
        layouts: Vec<Layout>,
        /// Scalars of one instruction.
        n: i64,
        /// Instructions of a thread, as loops.
        loops: Vec<i64>,
        /// For each operand, the registers from one turn of each loop to the next.
        steps: Vec<Vec<i64>>,
    },
    /// g = μ∘f: each element of the output gets each of its elements once.
    Reduction {
        /// Extents of the input.
        extents: Vec<i64>,
        /// Modes that are removed.
        axes: Vec<usize>,
        /// The thread-value layouts of input and output.
        layouts: [Layout; 2],
        /// Registers of the values that stay and, from each, of those that are reduced.
        values: [Layout; 2],
        /// Threads whose values meet: by exchanges between lanes, and through shared memory.
        masks: Vec<i64>,
        /// See `masks`: the first one for each thread, and from there to the others; of each
        /// exchange.
        through: Vec<[Layout; 2]>,
    },
    /// f = L∘g in the registers that hold the view: what a thread has of it is what it has of the
    /// tensor there.
    Part {
        /// The tensor.
        f: Layout,
        /// The view.
        g: Layout,
        /// From elements of the view to elements of the tensor, L without where it begins.
        view: Layout,
        /// The element of the tensor with which the view begins.
        offset: i64,
        /// From values of the view to registers, counted from `first`.
        registers: Layout,
        /// The register of the first value.
        first: i64,
    },
    /// What follows from f by exchanges between lanes is g.
    Exchange {
        /// The source tensor.
        f: Layout,
        /// The destination tensor.
        g: Layout,
        /// The registers of the source in the order in which they are exchanged.
        map: Layout,
        /// Of each exchange, threads between lanes and values between registers that swap.
        steps: Vec<(i64, i64)>,
    },
}

impl Certificate {
    /// Evaluates the relation, by [`crate::checker`].
    ///
    /// # Errors
    /// The first point at which it does not hold.
    pub fn check(&self) -> Result<(), crate::checker::Wrong> {
        crate::checker::check(&self.relation)
    }
}
