//! What a run found out.

use crate::array::Array;
use crate::num::decode;
use crate::plan::coordinates;
use crate::state::banks::LeafCount;
use crate::state::{GlobalMemory, Value};

/// The outcome of a run without errors.
pub struct Report {
    /// In text order.
    pub kernels: Vec<KernelReport>,
    /// The caller's tensors as they are afterwards.
    pub outputs: Outputs,
}

/// What one kernel did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelReport {
    /// As written, without `@`; empty where it has no name.
    pub name: String,
    /// Blocks of the grid.
    pub n_blocks: i64,
    /// Those that ran, ascending.
    pub blocks_run: Vec<i64>,
    /// Whether the kernel has no body and was executed by its meaning; no block ran.
    pub by_meaning: bool,
    /// Whether all blocks ran, so that outputs are whole.
    pub complete: bool,
    /// Whether the kernel's own meaning was compared with what it wrote; false for a generic spec.
    pub checked: bool,
    /// Bodies compared with their meaning inside the kernel.
    pub specs: u64,
    /// Elements compared, those of the kernel's outputs included.
    pub elements: u64,
    /// Largest difference from a reference.
    pub max_error: f64,
    /// Largest difference in units of what is allowed.
    pub max_ratio: f64,
    /// Multiply-adds of the MatMul leaves.
    pub multiply_adds: u64,
    /// Upper bound of steps of a block, as counted against the budget.
    pub steps_per_block: u64,
    /// What each leaf and each statement that synchronizes did, in text order.
    pub leaves: Vec<LeafReport>,
    /// How near each spec with a body came to what it means: the kernel's own first, then in text
    /// order.
    pub numerics: Vec<SpecReport>,
    /// Whether fewer blocks ran than could, since nobody asked for all.
    pub sampled: bool,
    /// Whether outputs were not compared because other blocks add to them, too, and did not run.
    pub added_to: bool,
    /// How many of the blocks that ran wrote nothing: they found no work.
    pub idle: u64,
    /// Outputs of which the blocks that ran wrote less than their share, where not all ran.
    pub short: Vec<Short>,
    /// Whether what the other blocks would have written was taken from the kernel's meaning, for a
    /// later one.
    pub filled: bool,
    /// Lines of comparisons, and of conversions to integers, that come out otherwise without
    /// rounding, and how often.
    pub turned: Vec<(u32, u64)>,
    /// Lines of statements in which several threads wrote the same value to one element.
    pub repeated: Vec<u32>,
    /// Specs with a body that are not compared: line and reason.
    pub unchecked: Vec<(u32, String)>,
}

/// An output of which a sample of blocks wrote less than an even share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Short {
    /// As errors name it, `%C`.
    pub tensor: String,
    /// Elements that were written.
    pub written: u64,
    /// Elements that so many blocks write if all write alike.
    pub share: u64,
    /// Elements that it has.
    pub size: u64,
}

/// What one leaf did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeafReport {
    /// 1-based; 0 where there is no text.
    pub line: u32,
    /// What it is: `MatMul`, `barrier`.
    pub kind: String,
    /// The atom that it names.
    pub atom: Option<String>,
    /// 32-bit registers of a thread that hold values which are still needed; none of what has no
    /// operands.
    pub registers: Option<u64>,
    /// What was counted.
    pub count: LeafCount,
    /// How far its results are from their shadows, where that was measured and it rounds.
    pub rounding: Option<Rounding>,
    /// The largest error that the atom states of results that it gave, in units in the last place,
    /// where it approximates. It is not in `rounding`: results are rounded once here.
    pub stated_ulp: Option<f64>,
}

/// How far values are from their shadows.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Rounding {
    /// Largest difference in units in the last place of the type.
    pub max_ulp: f64,
    /// Norm of the differences by the norm of the shadows; none where that is no number.
    pub relative_norm: Option<f64>,
}

/// How near the bodies of a spec came to what it means, in binary64.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpecReport {
    /// 1-based; 0 where there is no text.
    pub line: u32,
    /// `MatMul.set`
    pub kind: String,
    /// Bodies compared; for the kernel, blocks.
    pub executions: u64,
    /// Elements compared.
    pub elements: u64,
    /// Those of them that pass only because several numbers are possible: a comparison too close to
    /// decide chooses one, or an integer beyond 2^53.
    pub undecided: u64,
    /// Largest difference.
    pub max_error: f64,
    /// Largest difference in units of what is allowed.
    pub max_ratio: f64,
    /// Largest difference in units in the last place of the output's type; a result that is the
    /// reference rounded once has up to one half.
    pub max_ulp: f64,
    /// Norm of the differences by the norm of the reference; none where that is no number.
    pub relative_norm: Option<f64>,
}

/// The caller's tensors after a run.
pub struct Outputs {
    pub(crate) tensors: Vec<OutputTensor>,
}

pub(crate) struct OutputTensor {
    pub(crate) memory: GlobalMemory,
    pub(crate) modes: Vec<i64>,
    /// Offset of an element of the logical shape.
    pub(crate) leaves: Vec<(i64, i64)>,
    pub(crate) complete: bool,
}

/// Elements of the largest array that is made of an output.
const MAX_ARRAY: i64 = 1 << 28;

impl Outputs {
    /// Names of all tensors of the caller, in text order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.iter().map(|t| t.memory.name.as_str())
    }

    /// A whole tensor. None for an unknown name, where only some blocks ran, where an element is
    /// undefined, and beyond 2^28 elements.
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

    /// One element as bits, by its coordinates, one a mode; also after a partial run.
    #[must_use]
    pub fn element(&self, name: &str, at: &[i64]) -> Option<u64> {
        self.value(name, at).map(|v| v.bits)
    }

    /// The same element as it would be without any rounding, in binary64; the number that it is
    /// where the run had no shadows.
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
