//! Defines the relations between layouts that certificates prove, one for each kind of operation
//! ([`Relation`]).

use carbyne_ir::layout::Layout;

/// A relation of Hexcute, Fig. 19.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a kernel has a few, each kept once")]
pub enum Relation {
    /// f∘p⁻¹ = g∘q⁻¹.
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
    /// μ∘(f_c∘p_c⁻¹)∘η = μ∘(f_a∘p_a⁻¹)∘η along M, and correspondingly along N and K.
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
        /// For each operand, the places of the values of instructions among the values of a thread.
        maps: [Layout; 3],
    },
    /// f = g, or f = μ∘g if modes of extent 1 are broadcast.
    Pointwise {
        /// Extents of each operand, the output last.
        extents: Vec<Vec<i64>>,
        /// The thread-value layout of each operand.
        layouts: Vec<Layout>,
        /// Scalars per instruction.
        n: i64,
        /// Instructions of a thread, as extents of loops.
        loops: Vec<i64>,
        /// For each operand, the distances in registers between iterations of each loop.
        steps: Vec<Vec<i64>>,
    },
    /// g = μ∘f: each element of the output combines each of its elements once.
    Reduction {
        /// Extents of the input.
        extents: Vec<i64>,
        /// The modes that are reduced.
        axes: Vec<usize>,
        /// The thread-value layouts of input and output.
        layouts: [Layout; 2],
        /// The registers of the values that stay, and the distances from each to the values that
        /// are combined with it.
        values: [Layout; 2],
        /// Exchanges between lanes: the mask of each.
        masks: Vec<i64>,
        /// Exchanges through shared memory: for each, the first thread whose value a thread reads,
        /// and the distances from it to the others.
        through: Vec<[Layout; 2]>,
    },
    /// f = L∘g on the registers of the view: a thread holds the same elements of the view and of
    /// the tensor there.
    Part {
        /// The tensor.
        f: Layout,
        /// The view.
        g: Layout,
        /// L without its offset: from elements of the view to elements of the tensor.
        view: Layout,
        /// The element of the tensor at which the view begins.
        offset: i64,
        /// From values of the view to registers, counted from `first`.
        registers: Layout,
        /// The register of the first value.
        first: i64,
    },
    /// Exchanges between lanes turn f into g.
    Exchange {
        /// The source tensor.
        f: Layout,
        /// The destination tensor.
        g: Layout,
        /// The registers of the source, in the order of the exchanges.
        map: Layout,
        /// For each exchange, the distances of the threads and of the values that swap.
        steps: Vec<(i64, i64)>,
    },
}
