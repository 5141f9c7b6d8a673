//! Defines the [`Options`] of a run of the simulator: its inputs and symbols, the blocks that run,
//! the limit of steps, the schedule, and the comparisons.

use crate::array::Array;
use crate::decisions::Decisions;
use crate::inputs::Inputs;
use carbyne_ir::program::{Program, RoundedTypes};
use std::collections::BTreeMap;

/// Options of a run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Generates the elements of tensors that `arrays` does not name.
    pub inputs: Inputs,
    /// The decisions that the generated inputs shall test. None: the decisions of the program that
    /// runs. To give several programs the same inputs, pass the decisions of one of them to all.
    pub decisions: Option<Decisions>,
    /// Arrays by the name of their tensor, without `%`. The shape has one extent for each mode of
    /// the declared tensor.
    pub arrays: BTreeMap<String, Array>,
    /// Values of symbolic sizes, by name.
    pub symbols: BTreeMap<String, i64>,
    /// The number of blocks of each kernel to run, spread evenly over the grid; at least one runs.
    /// None: all blocks, or as many as the budget and `sample` allow. If a later kernel reads
    /// results of blocks that do not run, the meaning of the kernel supplies them; all blocks of a
    /// kernel without a meaning run.
    pub blocks: Option<u64>,
    /// Whether all blocks of each kernel must run: if they exceed the budget or the memory of the
    /// simulator, the kernel is refused before its first block (X0006, X0007).
    pub all_blocks: bool,
    /// If `blocks` is none, the largest number of steps that the blocks of a kernel may take
    /// together, for example [`SECOND`].
    pub sample: Option<u64>,
    /// The largest number of steps of one kernel. A step takes about eight nanoseconds on one core.
    pub budget: u64,
    /// Whether bodies are compared with the meanings of their specs.
    pub check: bool,
    /// Whether values carry shadows in binary64. With shadows, a body is compared with its meaning
    /// before any rounding. Without shadows, or without `check`, nothing is compared with a `means`
    /// block.
    pub shadow: bool,
    /// Whether the distance between value and shadow is measured at every statement.
    pub statements: bool,
    /// The seed of a random schedule: the order in which warps run and asynchronous copies arrive.
    /// None: the order of the text, and copies arrive as late as possible. The results of a program
    /// without errors do not depend on the schedule.
    pub schedule: Option<u64>,
    /// The shadows with which the next kernel begins: see [`Between`].
    pub between: Between,
}

/// The shadows in global memory after a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// The next kernel begins with the stored values as shadows, so that each kernel is compared
    /// with its meaning separately.
    #[default]
    Begin,
    /// The shadows persist. [`crate::compare_with_parent`] needs this to compare all kernels with a
    /// parent that may be a single kernel. Shadows of tensors with these types are rounded, because
    /// the parent casts to the types. For a type to which only integers are cast, only the shadows
    /// of tensors that the previous kernel writes with a cast are rounded.
    GoOn(RoundedTypes),
}

impl Between {
    /// The mode for a run that is compared with this parent.
    #[must_use]
    pub fn for_parent(parent: &Program) -> Self {
        Between::GoOn(parent.rounded_types())
    }
}

/// The default of [`Options::budget`]: about eight seconds on two cores.
pub const DEFAULT_BUDGET: u64 = 1 << 31;

/// The number of steps that take about a second on two cores.
pub const SECOND: u64 = 1 << 28;

impl Default for Options {
    fn default() -> Self {
        Options {
            inputs: Inputs::Seed(0),
            decisions: None,
            arrays: BTreeMap::new(),
            symbols: BTreeMap::new(),
            blocks: None,
            all_blocks: false,
            sample: None,
            budget: DEFAULT_BUDGET,
            check: true,
            shadow: true,
            statements: false,
            schedule: None,
            between: Between::default(),
        }
    }
}
