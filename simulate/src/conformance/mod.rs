//! Whether a device does what an atom of the table says: operands for the atom's probe
//! ([`carbyne_atoms::probe`]), what the simulator makes of them, and the comparison, lane by lane.
//!
//! A result must be the simulator's bit for bit where the atom states how it is rounded: moves,
//! shuffles, integers, conversions, what is exact or rounded once. NaNs of arithmetic are alike
//! whatever their bits.
//! - [`Rounding::MmaAccumulate`] leaves order and precision of a sum open: on small integers, whose
//!   sums are exact, bits are compared; on others the result may be as far from the exact one as
//!   [`tolerance`](crate::denote::tolerance()) says, by type and K.
//! - [`Rounding::Approximate`]: as far from the exact result as the atom states, for operands for
//!   which it states something, infinities, NaNs and subnormal numbers included.
//!
//! What an atom leaves unwritten must stay as memory was filled.

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

/// What one execution of a probe is given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// What kind of numbers.
    pub data: Data,
    /// Which of that kind.
    pub seed: u64,
}

/// What kind of numbers operands are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// Bits, all different as far as the type has enough values.
    Bits,
    /// Integers from -2 to 2 (0 to 3 where unsigned), on which sums are exact. Of a `bool` blocks
    /// of equal ones, so that whole warps agree.
    SmallIntegers,
    /// Uniform in \[-1, 1).
    Uniform,
    /// Ones.
    Ones,
    /// Of an only operand of up to 16 bits all values; else ends and special values, those of two
    /// operands in every combination, numbers of every magnitude, and many around 1.
    Spread,
}

/// The size of an atom's probe: as many operands as its function has to be looked at for.
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
        // All 2^16, once or twice.
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

/// What an atom's probe is executed on.
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
        // Around these stands a MatMul.
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

/// What the simulator makes of a probe: the elements of each tensor that it writes, in the order of
/// memory; none where nothing is written.
///
/// # Errors
/// As [`simulate`].
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

/// Whether a device may differ from the simulator on such operands.
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

/// Whether bits are kept, so that NaNs differ by them.
fn keeps_bits(atom: &Atom) -> bool {
    matches!(atom.op, AtomOp::Move | AtomOp::Select | AtomOp::Shfl(_) | AtomOp::Init)
}

/// Operands that are read and not written, in the order of the spec.
fn only_read(probe: &Probe) -> impl Iterator<Item = &carbyne_atoms::probe::operand::ProbeOperand> {
    probe.operands.iter().filter(|o| o.access == OperandAccess::Read)
}
