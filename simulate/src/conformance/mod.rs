//! Tests whether a device executes an atom as the atom table states. It generates operands for the
//! atom's probe (a program that executes the atom, [`carbyne_atoms::probe`]), computes the results
//! of the simulator, and compares them with those of the device, element by element. The command
//! `carbyne atoms verify --device` uses it.
//!
//! A result must equal the simulator's bit for bit if the atom specifies its rounding: moves,
//! shuffles, integers, conversions, and results that are exact or rounded once. All NaNs of
//! arithmetic are equal.
//! - [`Rounding::MmaAccumulate`] and [`Rounding::MmaAligned`] leave order or precision of a sum
//!   open. On small integers, whose sums are exact, bits are compared. On other numbers, the result
//!   may differ from the exact one by [`tolerance`](crate::denote::tolerance()), for the type and
//!   K.
//! - [`Rounding::Approximate`]: the result may differ from the exact one by the stated error, for
//!   operands for which the atom states one, including infinities, NaNs and subnormal numbers.
//!
//! Memory that an atom does not write must keep its fill byte.

mod compare;
mod operands;

pub use compare::{Compared, Difference, compare, unpack};
pub use operands::given;

use crate::array::Array;
use crate::launch::simulate;
use crate::options::Options;
use crate::plan::Checked;
use carbyne_atoms::probe::{Choice, Probe, scalars};
use carbyne_atoms::{Atom, AtomOp, AtomTable, Elem, OperandAccess, Rounding};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::program::Program;
use std::collections::BTreeMap;

/// Arrays by the names of a probe's tensors.
pub type Arrays = BTreeMap<String, Array>;

/// The operands of one execution of a probe.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The kind of numbers.
    pub data: Data,
    /// The seed.
    pub seed: u64,
}

/// The kinds of operands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Bits, all different as far as the type has enough values.
    Bits,
    /// Integers from -2 to 2 (0 to 3 if unsigned), on which sums are exact. For `bool`, blocks of
    /// equal ones, so that all lanes of some warps agree.
    SmallIntegers,
    /// Uniform in \[-1, 1).
    Uniform,
    /// Ones.
    Ones,
    /// For a single operand of up to 16 bits, all values. Otherwise limits and special values, for
    /// two operands in every combination, numbers of every magnitude, and many near 1.
    Spread,
}

/// The size of an atom's probe: enough operands to test its function.
#[must_use]
pub fn choice(atom: &Atom, pick: usize) -> Choice {
    let first = atom.operands.first();
    let (values, bits) = first.map_or((1, 32), |o| {
        let options = scalars(o.elem);
        let bits = options.first().map_or(32, |s| s.bits());
        (o.n_values() * o.elem.bits() / bits, bits)
    });
    let (threads, blocks) = match atom.op {
        AtomOp::Unary(_) if bits <= 8 => (256, 1),
        // All 2^16 values, once or twice.
        AtomOp::Unary(_) | AtomOp::Binary(_) | AtomOp::Accumulate(_) => (256, 256 / values),
        AtomOp::MatMul { .. } if atom.group == 1 => (256, 32),
        AtomOp::MatMul { .. } => (32, 4),
        AtomOp::Move
        | AtomOp::Select
        | AtomOp::Reduction(_)
        | AtomOp::Shfl(_)
        | AtomOp::Init
        | AtomOp::Sync(_)
        | AtomOp::Barrier(_)
        | AtomOp::Elect => (64, 4),
    };
    Choice { pick, blocks, threads, ..Choice::default() }
}

/// The cases for an atom's probe.
#[must_use]
pub fn cases(atom: &Atom) -> Vec<Case> {
    use Data::{Bits, SmallIntegers, Spread, Uniform};
    let float = |o: &carbyne_atoms::AtomOperand| match o.elem {
        Elem::Scalar(s) => s.is_float(),
        Elem::Bits(_) => false,
    };
    let data: &[Data] = match atom.op {
        AtomOp::Move | AtomOp::Shfl(_) | AtomOp::Select => &[Bits, Bits],
        AtomOp::Init => &[Bits],
        // The probe executes these around a MatMul.
        AtomOp::Sync(SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait) => {
            &[SmallIntegers, SmallIntegers]
        }
        AtomOp::Sync(_) | AtomOp::Barrier(_) | AtomOp::Elect => &[Bits, Bits],
        AtomOp::Reduction(_) => &[Bits, SmallIntegers],
        AtomOp::Unary(_) => &[Spread],
        AtomOp::Binary(_) | AtomOp::Accumulate(_) => &[Spread, Spread],
        AtomOp::MatMul { .. } if !atom.operands.iter().all(float) => &[SmallIntegers, Bits, Bits],
        AtomOp::MatMul { k: 1, .. } => &[SmallIntegers, Uniform, Spread],
        AtomOp::MatMul { .. } => &[SmallIntegers, SmallIntegers, Uniform, Uniform],
    };
    data.iter().zip(1..).map(|(data, seed)| Case { data: *data, seed }).collect()
}

/// The simulator's results of a probe: the elements of each written tensor, in the order of memory;
/// none for an element that is not written.
///
/// # Errors
/// The errors of [`simulate`].
pub fn expected(
    program: &Program,
    probe: &Probe,
    table: &AtomTable,
    arrays: &Arrays,
) -> Checked<BTreeMap<String, Vec<Option<u64>>>> {
    let options = Options { arrays: arrays.clone(), check: false, ..Options::default() };
    let outputs = simulate(program, table, &options)?.outputs;
    let tensor = |name: &String| {
        let operand = probe.operands.iter().find(|o| o.output.as_ref() == Some(name))?;
        let extents = operand.extents();
        let size: i64 = extents.iter().product();
        let element = |e: i64| {
            let mut rest = e;
            let mut at: Vec<i64> = extents
                .iter()
                .rev()
                .map(|n| {
                    let c = rest % n;
                    rest /= n;
                    c
                })
                .collect();
            at.reverse();
            outputs.element(name, &at)
        };
        Some((name.clone(), (0..size).map(element).collect()))
    };
    let names = probe.operands.iter().filter_map(|o| o.output.as_ref());
    Ok(names.filter_map(tensor).collect())
}

/// Whether a device must equal the simulator on such operands.
fn is_exact(atom: &Atom, case: Case) -> bool {
    match atom.rounding {
        Rounding::Approximate(_) => false,
        Rounding::MmaAccumulate | Rounding::MmaAligned(_) => case.data == Data::SmallIntegers,
        Rounding::Exact
        | Rounding::Nearest
        | Rounding::NearestAway
        | Rounding::Fused
        | Rounding::Wrapping => true,
    }
}

/// Whether bits are copied, so that NaNs with different bits differ.
fn keeps_bits(atom: &Atom) -> bool {
    matches!(atom.op, AtomOp::Move | AtomOp::Select | AtomOp::Shfl(_) | AtomOp::Init)
}

/// The operands that are read and not written, in the order of the spec.
fn only_read(probe: &Probe) -> impl Iterator<Item = &carbyne_atoms::probe::operand::ProbeOperand> {
    probe.operands.iter().filter(|o| o.access == OperandAccess::Read)
}
