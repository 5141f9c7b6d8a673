//! Descriptions of programs at kernel level, which say what is computed and nothing of tiles,
//! threads or loops: a spec of one operation, or one with a `means` block. [`Graph::render`] writes
//! them.
//!
//! Invariant: every description makes a program; a choice names its operand by counting among those
//! that fit where it stands, so that shrinking, which removes steps and lowers numbers, needs to
//! know nothing of programs. Invariant: 0 is the simplest choice everywhere.

mod means;
mod render;
mod single;
mod writer;

pub use writer::UNEVEN;

use super::plan::Pick;
use proptest::collection::vec;
use proptest::prelude::*;

/// A program of one kernel, where it runs, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Which architecture.
    pub arch: u8,
    /// Which schedule of the simulator; 0 is the order of the text.
    pub schedule: u8,
    /// Which inputs.
    pub seed: u8,
    /// Whether inputs are random numbers instead of small integers, where both are possible.
    pub numbers: u8,
    /// Which extents.
    pub extents: [u8; 4],
    /// Tensors of the caller that steps read.
    pub operands: Vec<Operand>,
    /// Those that are written.
    pub results: Vec<Operand>,
    /// What is computed.
    pub form: Form,
}

/// A tensor of the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Which type.
    pub scalar: u8,
    /// A bit for each mode: whether its extent is 1, and the mode broadcast.
    pub ones: u8,
    /// Which strides.
    pub layout: u8,
    /// As which view of it the kernel reads it.
    pub view: u8,
}

/// What a kernel computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// Pointwise operations and reductions.
    Chain {
        /// Modes, less one.
        rank: u8,
        /// The mode along which most reductions go.
        axis: u8,
        /// What is computed, the last of it stored.
        steps: Vec<Node>,
    },
    /// A product with pointwise operations before and behind it.
    Product {
        /// Matrices of a batch, where there is one.
        batch: u8,
        /// What becomes of the left factor.
        left: Vec<Node>,
        /// What becomes of the right factor.
        right: Vec<Node>,
        /// What becomes of the product.
        steps: Vec<Node>,
    },
    /// One operation that is named by its kind.
    Single {
        /// Which kind.
        kind: u8,
        /// Modes, less one.
        rank: u8,
        /// Which operation of the kind.
        op: u8,
        /// Whether it adds to what is there, a batch, the modes of a reduction.
        how: u8,
    },
}

/// A step of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// A function of one value.
    Unary {
        /// Which.
        op: u8,
        /// Of what.
        source: Pick,
    },
    /// A function of two values.
    Binary {
        /// Which.
        op: u8,
        /// The first.
        left: Pick,
        /// The second, or a number.
        right: Pick,
    },
    /// One of two values, by a comparison of them or of coordinates.
    Select {
        /// Which comparison.
        op: u8,
        /// The first.
        left: Pick,
        /// The second, or a number.
        right: Pick,
    },
    /// A reduction of one mode.
    Reduce {
        /// Which operation.
        op: u8,
        /// Whether along another mode than others.
        axis: u8,
        /// Of what.
        source: Pick,
    },
    /// A value divided by, or less, a reduction of it, as in softmax and in norms.
    Norm {
        /// Which of them.
        op: u8,
        /// Of what.
        source: Pick,
    },
}

/// Kernels without bodies.
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

/// A step; without reductions a pointwise one.
fn node(reductions: bool) -> BoxedStrategy<Node> {
    let pointwise = prop_oneof![
        3 => (0..32u8, pick()).prop_map(|(op, source)| Node::Unary { op, source }),
        4 => (0..16u8, pick(), pick()).prop_map(|(op, left, right)| Node::Binary { op, left, right }),
        1 => (0..16u8, pick(), pick()).prop_map(|(op, left, right)| Node::Select { op, left, right }),
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
