//! Describes kernels without bodies as trees of choices: a spec of one operation, or a spec with a
//! `means` block, without tiles, threads or loops. [`Graph::render`] writes them as text, and the
//! gate (the test of decomposition on random programs) decomposes them. `single` writes specs of
//! one operation, `means` writes `means` blocks, and `writer` the tensors of both.
//!
//! Invariant: every description gives a program. A choice selects its operand by counting the
//! operands that fit. Shrinking, which removes steps and lowers numbers, therefore needs no
//! knowledge of programs. Invariant: 0 is the simplest choice everywhere.

mod means;
mod render;
mod single;
mod writer;

pub use writer::UNEVEN;

use super::description::Pick;
use proptest::collection::vec;
use proptest::prelude::*;

/// A program of one kernel, its architecture and its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// The architecture.
    pub arch: u8,
    /// The schedule of the simulator; 0 is the order of the text.
    pub schedule: u8,
    /// The seed of the inputs.
    pub seed: u8,
    /// Whether inputs are random numbers instead of small integers, if both are possible.
    pub numbers: u8,
    /// The extents.
    pub extents: [u8; 4],
    /// The caller's tensors that steps read.
    pub operands: Vec<Operand>,
    /// The caller's tensors that the kernel writes.
    pub results: Vec<Operand>,
    /// The kernel.
    pub form: Form,
}

/// A tensor of the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// The type.
    pub scalar: u8,
    /// A bit for each mode: whether its extent is 1 and the mode is broadcast.
    pub ones: u8,
    /// The strides.
    pub layout: u8,
    /// The view through which the kernel reads the tensor.
    pub view: u8,
}

/// The form of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Pointwise operations and reductions.
    Chain {
        /// The number of modes minus one.
        rank: u8,
        /// The mode of most reductions.
        axis: u8,
        /// The steps; the result of the last one is stored.
        steps: Vec<Node>,
    },
    /// A product with pointwise operations before and after it.
    Product {
        /// The size of the batch, or no batch.
        batch: u8,
        /// The steps on the left factor.
        left: Vec<Node>,
        /// The steps on the right factor.
        right: Vec<Node>,
        /// The steps on the product.
        steps: Vec<Node>,
    },
    /// A spec of one operation.
    Single {
        /// The kind of the spec.
        kind: u8,
        /// The number of modes minus one.
        rank: u8,
        /// The operation of the kind.
        op: u8,
        /// Accumulation, the batch, or the modes of a reduction, depending on the kind.
        how: u8,
    },
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A function of one value.
    Unary {
        /// The function.
        op: u8,
        /// The operand.
        source: Pick,
    },
    /// A function of two values.
    Binary {
        /// The function.
        op: u8,
        /// The first operand.
        left: Pick,
        /// The second operand, or a number.
        right: Pick,
    },
    /// A selection of one of two values, by a comparison of the values or of coordinates.
    Select {
        /// The comparison.
        op: u8,
        /// The first value.
        left: Pick,
        /// The second value, or a number.
        right: Pick,
    },
    /// A reduction of one mode.
    Reduce {
        /// The operation.
        op: u8,
        /// Whether the mode differs from that of most reductions.
        axis: u8,
        /// The operand.
        source: Pick,
    },
    /// A value divided by its reduction, or minus its reduction, as in softmax and norms.
    Norm {
        /// The operation.
        op: u8,
        /// The operand.
        source: Pick,
    },
}

/// Draws the description of a kernel without a body.
pub fn graph() -> impl Strategy<Value = Graph> {
    let setting = (0..7u8, 0..8u8, any::<u8>(), 0..4u8);
    let extents = [0..32u8, 0..32u8, 0..32u8, 0..32u8];
    (setting, extents, vec(operand(), 4), vec(operand(), 2), form()).prop_map(
        |((arch, schedule, seed, numbers), extents, operands, results, form)| Graph {
            arch,
            schedule,
            seed,
            numbers,
            extents,
            operands,
            results,
            form,
        },
    )
}

fn operand() -> impl Strategy<Value = Operand> {
    let ones = prop_oneof![3 => Just(0u8), 2 => 0..16u8];
    let view = prop_oneof![1 => Just(0u8), 1 => 0..16u8];
    (0..32u8, ones, 0..16u8, view).prop_map(|(scalar, ones, layout, view)| Operand {
        scalar,
        ones,
        layout,
        view,
    })
}

fn form() -> impl Strategy<Value = Form> {
    let few = |most| vec(node(false), 0..most);
    prop_oneof![
        4 => (0..4u8, 0..4u8, vec(node(true), 1..6))
            .prop_map(|(rank, axis, steps)| Form::Chain { rank, axis, steps }),
        3 => (0..8u8, few(3), few(2), few(4))
            .prop_map(|(batch, left, right, steps)| Form::Product { batch, left, right, steps }),
        5 => (0..8u8, 0..4u8, 0..32u8, 0..16u8)
            .prop_map(|(kind, rank, op, how)| Form::Single { kind, rank, op, how }),
    ]
}

fn pick() -> impl Strategy<Value = Pick> {
    (0..4u8, 0..16u8, 0..4u8).prop_map(|(which, part, new)| Pick { which, part, new })
}

/// A step. Without reductions, a pointwise one.
fn node(reductions: bool) -> BoxedStrategy<Node> {
    let pointwise = prop_oneof![
        3 => (0..32u8, pick()).prop_map(|(op, source)| Node::Unary { op, source }),
        4 => (0..16u8, pick(), pick())
            .prop_map(|(op, left, right)| Node::Binary { op, left, right }),
        1 => (0..16u8, pick(), pick())
            .prop_map(|(op, left, right)| Node::Select { op, left, right }),
    ];
    if !reductions {
        return pointwise.boxed();
    }
    prop_oneof![
        6 => pointwise,
        1 => (0..4u8, 0..32u8, pick())
            .prop_map(|(op, axis, source)| Node::Reduce { op, axis, source }),
        1 => (0..4u8, pick()).prop_map(|(op, source)| Node::Norm { op, source }),
    ]
    .boxed()
}
