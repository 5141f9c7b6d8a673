//! Defines the [`Report`] of a run of the simulator. It states for each kernel the blocks that ran,
//! the specs that were compared, and the counts of its statements. It also holds the caller's
//! tensors.

use crate::array::Array;
use crate::num::decode;
use crate::plan::coordinates;
use crate::state::banks::LeafCount;
use crate::state::{GlobalMemory, Value};

/// The results of a run without errors.
pub struct Report {
    /// The kernels, in text order.
    pub kernels: Vec<KernelReport>,
    /// The caller's tensors after the run.
    pub outputs: Outputs,
}

/// The results of one kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReport {
    /// The name as written, without `@`; empty for a kernel without a name.
    pub name: String,
    /// The number of blocks of the grid.
    pub n_blocks: i64,
    /// The blocks that ran, ascending.
    pub blocks_run: Vec<i64>,
    /// Whether the kernel has no body and its meaning was evaluated instead; no block ran.
    pub by_meaning: bool,
    /// Whether all blocks ran, so that the outputs are complete.
    pub complete: bool,
    /// Whether the outputs were compared with the kernel's own meaning; false for a generic spec.
    pub checked: bool,
    /// The number of bodies inside the kernel that were compared with their meanings.
    pub specs: u64,
    /// The number of compared elements, including the kernel's outputs.
    pub elements: u64,
    /// The largest difference from a reference.
    pub max_error: f64,
    /// The largest ratio of a difference to the allowed difference.
    pub max_ratio: f64,
    /// The number of multiply-adds of the MatMul leaves.
    pub multiply_adds: u64,
    /// An upper bound of the steps of one block, as counted against the budget.
    pub steps_per_block: u64,
    /// The counts of each leaf and each synchronization statement, in text order.
    pub leaves: Vec<LeafReport>,
    /// The deviation of each spec with a body from its meaning: the kernel first, then text order.
    pub numerics: Vec<SpecReport>,
    /// Whether a sample of the blocks ran because the caller did not ask for all.
    pub sampled: bool,
    /// Whether outputs were not compared because other blocks, which did not run, also add to them.
    pub added_to: bool,
    /// The number of blocks that ran and wrote nothing because they had no work.
    pub idle: u64,
    /// After a partial run, the outputs of which the blocks that ran wrote less than their share.
    pub short: Vec<Short>,
    /// Whether the kernel's meaning supplied the results of the blocks that did not run, for a
    /// later kernel.
    pub filled: bool,
    /// Lines of comparisons, and of casts to integers, whose results would differ without rounding,
    /// with the number of such results.
    pub turned: Vec<(u32, u64)>,
    /// Lines of statements in which several threads wrote an equal value to one element.
    pub repeated: Vec<u32>,
    /// Specs with a body that were not compared: line and reason.
    pub unchecked: Vec<(u32, String)>,
}

/// An output of which a sample of blocks wrote less than an even share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Short {
    /// The tensor's name as errors show it, `%C`.
    pub tensor: String,
    /// The number of elements that were written.
    pub written: u64,
    /// The number of elements that the sample writes if all blocks write equally many.
    pub share: u64,
    /// The number of elements of the tensor.
    pub size: u64,
}

/// The counts of one leaf.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeafReport {
    /// The line, 1-based; 0 without text.
    pub line: u32,
    /// The kind of statement: `MatMul`, `barrier`.
    pub kind: String,
    /// The name of the leaf's atom.
    pub atom: Option<String>,
    /// The number of 32-bit registers of a thread that hold live values; none for a statement
    /// without operands.
    pub registers: Option<u64>,
    /// The counts of executions and memory accesses.
    pub count: LeafCount,
    /// The distance of the results from their shadows, if it was measured and the leaf rounds.
    pub rounding: Option<Rounding>,
    /// For an approximate atom, the largest error that the atom states for the results of this run,
    /// in units in the last place. `rounding` does not include this error: the simulator rounds
    /// results once.
    pub stated_ulp: Option<f64>,
}

/// The distance of values from their shadows.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// The largest difference in units in the last place of the type.
    pub max_ulp: f64,
    /// The norm of the differences divided by the norm of the shadows; none if the quotient is not
    /// a number.
    pub relative_norm: Option<f64>,
}

/// The deviation of the bodies of a spec from its meaning, in binary64.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecReport {
    /// The line, 1-based; 0 without text.
    pub line: u32,
    /// The kind of spec: `MatMul.set`.
    pub kind: String,
    /// The number of compared bodies; for the kernel, of blocks.
    pub executions: u64,
    /// The number of compared elements.
    pub elements: u64,
    /// The number of elements that pass only because several numbers are acceptable: a comparison
    /// is too close to decide, or an integer is beyond 2^53.
    pub undecided: u64,
    /// The largest difference.
    pub max_error: f64,
    /// The largest ratio of a difference to the allowed difference.
    pub max_ratio: f64,
    /// The largest difference in units in the last place of the output's type. A correctly rounded
    /// result has at most one half.
    pub max_ulp: f64,
    /// The norm of the differences divided by the norm of the reference; none if the quotient is
    /// not a number.
    pub relative_norm: Option<f64>,
}

/// The caller's tensors after a run.
pub struct Outputs {
    pub(crate) tensors: Vec<OutputTensor>,
}

pub(crate) struct OutputTensor {
    pub(crate) memory: GlobalMemory,
    pub(crate) modes: Vec<i64>,
    /// Extent and stride of each leaf mode: the offsets of the elements of the logical shape.
    pub(crate) leaves: Vec<(i64, i64)>,
    pub(crate) complete: bool,
}

/// The largest number of elements of an output that [`Outputs::get`] returns.
const MAX_ARRAY: i64 = 1 << 28;

impl Outputs {
    /// The names of all tensors of the caller, in text order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|t| t.memory.name.as_str())
    }

    /// A complete tensor. None for an unknown name, after a partial run, for a tensor with an
    /// undefined element, and for more than 2^28 elements.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Array> {
        let tensor = self.tensors.iter().find(|t| t.memory.name == name)?;
        let size = tensor.modes.iter().try_fold(1i64, |p, n| p.checked_mul(*n))?;
        if !tensor.complete || size > MAX_ARRAY {
            return None;
        }
        let mut values = vec![0; size as usize];
        for e in 0..size {
            let at = coordinates(&tensor.modes, e)
                .iter()
                .zip(&tensor.modes)
                .fold(0, |at, (c, n)| at * n + c);
            values[at as usize] = tensor.element(e)?.bits;
        }
        let shape = tensor.modes.iter().map(|n| *n as u64).collect();
        Some(Array { scalar: tensor.memory.scalar, shape, values })
    }

    /// The bits of one element, by its coordinates, one for each mode; also after a partial run.
    #[must_use]
    pub fn element(&self, name: &str, at: &[i64]) -> Option<u64> {
        self.value(name, at).map(|v| v.bits)
    }

    /// The shadow of an element: its value without any rounding, in binary64. After a run without
    /// shadows, the stored number.
    #[must_use]
    pub fn exact(&self, name: &str, at: &[i64]) -> Option<f64> {
        let tensor = self.tensors.iter().find(|t| t.memory.name == name)?;
        let value = self.value(name, at)?;
        Some(match tensor.memory.shadows {
            true => value.shadow,
            false => decode(tensor.memory.scalar, value.bits),
        })
    }

    fn value(&self, name: &str, at: &[i64]) -> Option<Value> {
        let tensor = self.tensors.iter().find(|t| t.memory.name == name)?;
        if at.len() != tensor.modes.len() {
            return None;
        }
        let mut e = 0i64;
        for (c, n) in at.iter().zip(&tensor.modes).rev() {
            if !(0..*n).contains(c) {
                return None;
            }
            e = e.checked_mul(*n)?.checked_add(*c)?;
        }
        tensor.element(e)
    }
}

impl OutputTensor {
    fn element(&self, e: i64) -> Option<Value> {
        let (mut rest, mut offset) = (e, 0i64);
        for (extent, stride) in &self.leaves {
            offset = offset.checked_add((rest % extent).checked_mul(*stride)?)?;
            rest /= extent;
        }
        self.memory.read(offset)
    }
}
