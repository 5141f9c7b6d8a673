//! Describes programs as trees of choices, which [`super::render`] writes as text. proptest draws
//! and shrinks descriptions, because a text cut at random would hardly be a program.
//!
//! Invariant: every description gives a program, which may be empty. A choice selects its operand
//! by counting the operands that fit, and a step without fitting operands is skipped. Shrinking,
//! which removes steps and lowers numbers, therefore needs no knowledge of programs.
//! Invariant: 0 is the simplest choice everywhere.

use proptest::collection::vec;
use proptest::prelude::*;

/// Functions of one operand from this number on turn integers into other numbers.
pub(super) const SMOOTH: u8 = 12;

/// A program, its architecture and its inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// The architecture.
    pub arch: u8,
    /// The schedule of the simulator; 0 is the order of the text.
    pub schedule: u8,
    /// The seed of the inputs.
    pub seed: u8,
    /// Whether inputs are random numbers instead of small integers; see [`Case::has_numbers`].
    pub numbers: u8,
    /// The two extents of tiles.
    pub sizes: (u8, u8),
    /// The number of threads of a block.
    pub threads: u8,
    /// The number of blocks along both modes of the grid.
    pub grid: (u8, u8),
    /// The tensors of the caller.
    pub globals: Vec<Global>,
    /// The kernels in text order.
    pub kernels: Vec<Kernel>,
    /// The distribution of statements to parts of the block, unless the program has leaves of
    /// single threads. 0 means that all threads execute everything.
    pub roles: u8,
}

/// A tensor of the caller.
#[derive(Clone, Debug, PartialEq)]
pub struct Global {
    /// The type.
    pub scalar: u8,
    /// The strides.
    pub strides: u8,
    /// The choice of the two extents for each mode of a tile, and whether the tile is one row or
    /// column.
    pub tile: u8,
    /// The number of tiles along the second mode.
    pub tiles: u8,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// A kernel with a body.
    Tile {
        /// A bit for each tensor of the caller that it may write.
        writes: u8,
        /// The body.
        steps: Vec<Step>,
    },
    /// A kernel without a body: a copy, a product or a reduction of whole tensors.
    Whole {
        /// The choice of the three.
        what: u8,
        /// The operands.
        operands: (u8, u8),
        /// The storage of the result, or the reduced mode.
        form: u8,
    },
    /// A kernel without a body, with a `means` block: a chain of operations on whole tensors.
    Graph {
        /// The first operand.
        first: u8,
        /// The operations, each on the result of the one before.
        nodes: Vec<Operation>,
        /// The storage of the result.
        form: u8,
    },
}

/// An operation of a chain.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Operation {
    /// The operation.
    pub op: u8,
    /// The other operand.
    pub which: u8,
    /// The reduced mode.
    pub form: u8,
}

/// The choice of an operand or result, of a part of it, and whether to allocate a new one.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Pick {
    /// The choice among fitting operands, counted from the last one.
    pub which: u8,
    /// The part of the operand.
    pub part: u8,
    /// 0 allocates a new one.
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
    /// A Move by the block.
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
    /// An Init by the block.
    Init {
        /// The value.
        value: u8,
        /// The target.
        target: Pick,
    },
    /// A function of one operand, or a cast.
    Unary {
        /// The function.
        op: u8,
        /// The operand.
        source: Pick,
        /// The result.
        target: Pick,
    },
    /// A function of two operands.
    Binary {
        /// The function.
        op: u8,
        /// The first operand.
        left: Pick,
        /// The second operand: a tensor, a literal, or a row or column.
        right: Pick,
        /// The result.
        target: Pick,
    },
    /// A Reduction.
    Reduce {
        /// The function.
        op: u8,
        /// The reduced mode.
        axis: u8,
        /// The operand.
        source: Pick,
        /// The result.
        target: Pick,
    },
    /// A MatMul.
    MatMul {
        /// Whether it overwrites the product instead of accumulating.
        set: u8,
        /// The left factor.
        left: Pick,
        /// The right factor.
        right: Pick,
        /// The product.
        target: Pick,
    },
    /// A comparison, and a Select with its result.
    Select {
        /// The comparison.
        op: u8,
        /// The left side of the comparison, and the first value.
        left: Pick,
        /// The right side and the second value.
        right: Pick,
    },
    /// A loop.
    For {
        /// The number of iterations.
        trips: u8,
        /// The steps of the body.
        body: Vec<Step>,
    },
    /// A condition that is equal for all threads of a block.
    If {
        /// The condition.
        cond: u8,
        /// The steps if it holds.
        then: Vec<Step>,
        /// The steps if it does not hold.
        otherwise: Vec<Step>,
    },
    /// A loop over tiles in global memory, which passes them through the stages of a shared tensor.
    Stages {
        /// The number of stages.
        stages: u8,
        /// The tensor to iterate over.
        source: Pick,
        /// Whether the copy of the next tile is issued after the use of the current one.
        late: u8,
        /// Whether the program contains explicit commits and waits.
        by_hand: u8,
        /// The steps on a tile.
        body: Vec<Step>,
    },
    /// A loop with `stages=` whose copies from global to shared memory may run ahead.
    Ahead {
        /// The number of stages, the number of iterations, the start and the step.
        turns: (u8, u8, u8, u8),
        /// The tensors that each iteration copies, and the declarations of their targets.
        sources: (Pick, Pick),
        /// The number of copies, the place of their targets, and whether one is used before the
        /// next is filled.
        form: u8,
        /// Further steps of an iteration.
        body: Vec<Step>,
    },
    /// A leaf of single threads.
    Threads {
        /// The operation of the threads.
        what: u8,
        /// The tensor.
        tensor: Pick,
        /// The number of elements of each thread.
        width: u8,
        /// The distance between the thread's own part and the accessed part, in threads.
        shift: u8,
        /// The threads that execute the leaf.
        who: u8,
    },
    /// A spec with a body of some steps.
    Group {
        /// The steps.
        body: Vec<Step>,
    },
    /// An explicit barrier.
    Barrier,
}

impl Case {
    /// Whether inputs are random numbers instead of small integers. If a function turns integers
    /// into other numbers, the simulator must not expect exact sums.
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
