//! What a run is given.

use crate::array::Array;
use crate::decisions::Decisions;
use crate::inputs::Inputs;
use carbyne_ir::program::{Program, RoundedTypes};
use std::collections::BTreeMap;

/// How a program is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How tensors are filled that `arrays` does not name.
    pub inputs: Inputs,
    /// What inputs are drawn for: what the program decides that they are to test; none for the one
    /// that runs. Programs that are to be given the same inputs take those of one of them.
    pub decisions: Option<Decisions>,
    /// Tensors by name, without `%`; shapes as the tensors are declared, one extent a mode.
    pub arrays: BTreeMap<String, Array>,
    /// Values of symbolic sizes, by name.
    pub symbols: BTreeMap<String, i64>,
    /// How many blocks of each kernel to run, spread evenly over the grid; at least one is. None:
    /// all of them, or as many as the budget and `sample` allow. What the blocks that do not run
    /// would write for a later kernel is taken from what the kernel means; one that does not say
    /// runs whole.
    pub blocks: Option<u64>,
    /// Where `blocks` is none: run no more blocks of a kernel than take so many steps, such as
    /// [`SECOND`].
    pub sample: Option<u64>,
    /// Most steps of one kernel; a step is some eight nanoseconds of one core.
    pub budget: u64,
    /// Whether bodies are compared with what their specs mean.
    pub check: bool,
    /// Whether values carry shadows in binary64, by which bodies are held to what their specs mean
    /// whatever their types round away. Without, or without `check`, nothing is compared with a
    /// `means` block.
    pub shadow: bool,
    /// Whether the distance of value and shadow is measured at every statement.
    pub statements: bool,
    /// Draws another order in which warps go on and asynchronous copies arrive; none for the order
    /// of the text, and copies as late as can be. What a program computes without error does not
    /// depend on it.
    pub schedule: Option<u64>,
    /// How what a kernel leaves is seen by the next one: see [`Between`].
    pub between: Between,
}

/// What becomes of shadows in global memory when a kernel is done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Between {
    /// The next kernel begins with the values: each kernel is held to what it means by itself.
    #[default]
    Begin,
    /// They go on, as [`crate::against`] needs to compare all kernels with a parent that may be
    /// one. Those of tensors of these types are rounded, as the parent casts to them: where only
    /// integers are cast to a type, those of tensors that the kernel before writes as a cast.
    GoOn(RoundedTypes),
}

impl Between {
    /// For a run that is to be compared with this parent.
    #[must_use]
    pub fn for_parent(parent: &Program) -> Self {
        Between::GoOn(parent.rounded_types())
    }
}

/// Some tens of seconds on two cores.
pub const DEFAULT_BUDGET: u64 = 1 << 31;

/// Steps of about a second on two cores.
pub const SECOND: u64 = 1 << 28;

impl Default for Options {
    fn default() -> Self {
        Options {
            inputs: Inputs::Seed(0),
            decisions: None,
            arrays: BTreeMap::new(),
            symbols: BTreeMap::new(),
            blocks: None,
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
