//! Descriptions of programs: trees of choices that [`super::render`] writes as text.
//!
//! Invariant: every description makes a program, if an empty one. A choice names its operand by
//! counting among those that fit where it stands, and a step for which nothing fits is left out, so
//! that shrinking, which removes steps and lowers numbers, needs to know nothing of programs.
//! Invariant: 0 is the simplest choice everywhere.

use proptest::collection::vec;
use proptest::prelude::*;

/// Functions of one operand from this number on make other numbers of integers.
pub(super) const SMOOTH: u8 = 12;

/// A program, where it runs, and on what.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// Which architecture.
    pub arch: u8,
    /// Which schedule of the simulator; 0 is the order of the text.
    pub schedule: u8,
    /// Which inputs.
    pub seed: u8,
    /// Whether inputs are random numbers instead of small integers; see [`Case::has_numbers`].
    pub numbers: u8,
    /// The two extents that tiles have.
    pub sizes: (u8, u8),
    /// Threads of a block.
    pub threads: u8,
    /// Blocks.
    pub grid: (u8, u8),
    /// Tensors of the caller.
    pub globals: Vec<Global>,
    /// Kernels, in text order.
    pub kernels: Vec<Kernel>,
    /// Which parts of a block execute what, where its threads do nothing by themselves; 0 is that
    /// all execute all.
    pub roles: u8,
}

/// A tensor of the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// Which type.
    pub scalar: u8,
    /// Which strides.
    pub strides: u8,
    /// Which of the two extents each mode of a tile has, and whether it is one row or one column.
    pub tile: u8,
    /// Tiles along the second mode.
    pub tiles: u8,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// One with a body.
    Tile {
        /// A bit for each tensor of the caller that it may write.
        writes: u8,
        /// The body.
        steps: Vec<Step>,
    },
    /// One without: a copy, a product or a reduction of whole tensors.
    Whole {
        /// Which of the three.
        what: u8,
        /// Its operands.
        operands: (u8, u8),
        /// How the result is stored, or which mode goes.
        form: u8,
    },
    /// One without that says what it means: a chain of operations on whole tensors.
    Graph {
        /// Where it begins.
        first: u8,
        /// What it computes, each of what the one before gives.
        nodes: Vec<Operation>,
        /// How the result is stored.
        form: u8,
    },
}

/// An operation of a chain.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Operation {
    /// Which.
    pub op: u8,
    /// Its other operand.
    pub which: u8,
    /// Which mode goes.
    pub form: u8,
}

/// An operand: which of those that fit, where in it, and whether a new one is made.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Pick {
    /// Which, counted from the last that was made.
    pub which: u8,
    /// Which part of it.
    pub part: u8,
    /// A new one, where this is 0.
    pub new: u8,
}

/// A memory.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Place {
    /// Registers of the block.
    Registers,
    /// Shared memory.
    Shared,
    /// Global memory.
    Global,
}

/// A step of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A Move of the block.
    Move {
        /// Memory of the source.
        from: Place,
        /// Memory of the destination.
        to: Place,
        /// The source.
        source: Pick,
        /// The destination.
        target: Pick,
    },
    /// An Init of the block.
    Init {
        /// Which value.
        value: u8,
        /// Where.
        target: Pick,
    },
    /// A function of one operand, or a cast.
    Unary {
        /// Which function.
        op: u8,
        /// The operand.
        source: Pick,
        /// The result.
        target: Pick,
    },
    /// A function of two operands.
    Binary {
        /// Which function.
        op: u8,
        /// The first operand.
        left: Pick,
        /// The second; a literal or a row or column among them.
        right: Pick,
        /// The result.
        target: Pick,
    },
    /// A Reduction.
    Reduce {
        /// Which function.
        op: u8,
        /// The mode that goes.
        axis: u8,
        /// The operand.
        source: Pick,
        /// The result.
        target: Pick,
    },
    /// A MatMul.
    MatMul {
        /// Whether it sets.
        set: u8,
        /// The left factor.
        left: Pick,
        /// The right one.
        right: Pick,
        /// The product.
        target: Pick,
    },
    /// A comparison, and a Select by it.
    Select {
        /// Which comparison.
        op: u8,
        /// What is compared, and one of the two.
        left: Pick,
        /// The other.
        right: Pick,
    },
    /// A loop.
    For {
        /// How often.
        trips: u8,
        /// Its steps.
        body: Vec<Step>,
    },
    /// A condition that is the same for all threads of a block.
    If {
        /// Which condition.
        cond: u8,
        /// Where it holds.
        then: Vec<Step>,
        /// Where it does not.
        otherwise: Vec<Step>,
    },
    /// A loop over tiles in global memory that come through stages of a shared tensor.
    Stages {
        /// How many stages.
        stages: u8,
        /// What is walked over.
        source: Pick,
        /// Whether the next tile is asked for after this one's use.
        late: u8,
        /// Whether commits and waits are written by hand.
        by_hand: u8,
        /// What is done with a tile.
        body: Vec<Step>,
    },
    /// A loop with `stages=` whose copies from global to shared memory may run ahead.
    Ahead {
        /// How many stages, how often, from where, and by how much.
        turns: (u8, u8, u8, u8),
        /// What is copied in each turn, and how its tensor is declared.
        sources: (Pick, Pick),
        /// How many are copied, where their tensors are, and whether one is used before the next is
        /// filled.
        form: u8,
        /// What else is done in a turn.
        body: Vec<Step>,
    },
    /// A leaf of single threads.
    Threads {
        /// What they do.
        what: u8,
        /// With which tensor.
        tensor: Pick,
        /// Elements of a thread.
        width: u8,
        /// How far the thread's part is from its own.
        shift: u8,
        /// Which threads.
        who: u8,
    },
    /// A spec with a body around some steps.
    Group {
        /// Its steps.
        body: Vec<Step>,
    },
    /// A barrier by hand.
    Barrier,
}

impl Case {
    /// Whether inputs are random numbers instead of small integers: where a function makes others
    /// of these, the simulator must not expect sums to be exact.
    #[must_use]
    pub fn has_numbers(&self) -> bool {
        fn rounds(steps: &[Step]) -> bool {
            steps.iter().any(|s| match s {
                Step::Unary { op, .. } => *op >= SMOOTH,
                Step::For { body, .. }
                | Step::Stages { body, .. }
                | Step::Ahead { body, .. }
                | Step::Group { body } => rounds(body),
                Step::If { then, otherwise, .. } => rounds(then) || rounds(otherwise),
                _ => false,
            })
        }
        let body = |k: &Kernel| match k {
            Kernel::Tile { steps, .. } => rounds(steps),
            Kernel::Whole { .. } => false,
            Kernel::Graph { .. } => true,
        };
        self.numbers == 5 || self.kernels.iter().any(body)
    }
}

/// Programs of one to three kernels.
pub fn case() -> impl Strategy<Value = Case> {
    let setting = (0..6u8, 0..8u8, any::<u8>(), 0..6u8);
    let shape = ((0..16u8, 0..16u8), 0..16u8, (0..4u8, 0..4u8));
    let kernels = prop_oneof![
        6 => vec(kernel(), 1..=1),
        2 => vec(kernel(), 2..=2),
        1 => vec(kernel(), 3..=3),
    ];
    let roles = prop_oneof![3 => Just(0u8), 1 => 1..=255u8];
    (setting, shape, vec(global(), 1..6), kernels, roles).prop_map(
        |((arch, schedule, seed, numbers), (sizes, threads, grid), globals, kernels, roles)| Case {
            arch,
            schedule,
            seed,
            numbers,
            sizes,
            threads,
            grid,
            globals,
            kernels,
            roles,
        },
    )
}

fn global() -> impl Strategy<Value = Global> {
    (0..16u8, 0..16u8, 0..16u8, 0..4u8).prop_map(|(scalar, strides, tile, tiles)| Global {
        scalar,
        strides,
        tile,
        tiles,
    })
}

fn kernel() -> impl Strategy<Value = Kernel> {
    prop_oneof![
        7 => (any::<u8>(), vec(step(3), 1..13))
            .prop_map(|(writes, steps)| Kernel::Tile { writes, steps }),
        1 => (0..3u8, (0..8u8, 0..8u8), 0..8u8)
            .prop_map(|(what, operands, form)| Kernel::Whole { what, operands, form }),
        2 => (0..8u8, vec(node(), 1..7), 0..8u8)
            .prop_map(|(first, nodes, form)| Kernel::Graph { first, nodes, form }),
    ]
}

fn node() -> impl Strategy<Value = Operation> {
    (0..19u8, 0..16u8, 0..2u8).prop_map(|(op, which, form)| Operation { op, which, form })
}

fn pick() -> impl Strategy<Value = Pick> {
    (0..8u8, 0..16u8, 0..4u8).prop_map(|(which, part, new)| Pick { which, part, new })
}

fn place() -> impl Strategy<Value = Place> {
    prop_oneof![Just(Place::Registers), Just(Place::Shared), Just(Place::Global)]
}

fn steps(depth: u32) -> impl Strategy<Value = Vec<Step>> {
    vec(step(depth), 1..5)
}

/// A step whose bodies nest at most `depth` deep.
fn step(depth: u32) -> BoxedStrategy<Step> {
    let flat = prop_oneof![
        24 => (place(), place(), pick(), pick())
            .prop_map(|(from, to, source, target)| Step::Move { from, to, source, target }),
        2 => (0..4u8, pick()).prop_map(|(value, target)| Step::Init { value, target }),
        5 => (0..16u8, pick(), pick())
            .prop_map(|(op, source, target)| Step::Unary { op, source, target }),
        5 => (0..8u8, pick(), pick(), pick())
            .prop_map(|(op, left, right, target)| Step::Binary { op, left, right, target }),
        3 => (0..4u8, 0..2u8, pick(), pick())
            .prop_map(|(op, axis, source, target)| Step::Reduce { op, axis, source, target }),
        5 => (0..2u8, pick(), pick(), pick())
            .prop_map(|(set, left, right, target)| Step::MatMul { set, left, right, target }),
        1 => (0..6u8, pick(), pick())
            .prop_map(|(op, left, right)| Step::Select { op, left, right }),
        8 => (0..8u8, pick(), 0..4u8, 0..8u8, 0..8u8).prop_map(
            |(what, tensor, width, shift, who)| Step::Threads { what, tensor, width, shift, who }
        ),
        1 => Just(Step::Barrier),
    ];
    if depth == 0 {
        return flat.boxed();
    }
    let nested = prop_oneof![
        3 => (0..4u8, steps(depth - 1)).prop_map(|(trips, body)| Step::For { trips, body }),
        3 => (0..32u8, steps(depth - 1), vec(step(depth - 1), 0..3))
            .prop_map(|(cond, then, otherwise)| Step::If { cond, then, otherwise }),
        2 => (0..2u8, pick(), 0..2u8, 0..4u8, steps(depth - 1)).prop_map(
            |(stages, source, late, by_hand, body)| Step::Stages {
                stages,
                source,
                late,
                by_hand,
                body,
            }
        ),
        4 => (
            (0..8u8, 0..8u8, 0..4u8, 0..4u8),
            (pick(), pick()),
            0..32u8,
            vec(step(depth - 1), 0..3),
        )
            .prop_map(|(turns, sources, form, body)| Step::Ahead { turns, sources, form, body }),
        1 => steps(depth - 1).prop_map(|body| Step::Group { body }),
    ];
    prop_oneof![4 => flat, 1 => nested].boxed()
}
