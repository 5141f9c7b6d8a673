//! Lists the atoms of `cp.async`: asynchronous copies from global to shared memory that do not pass
//! through registers.
//!
//! `.ca` keeps the data in the L1 cache. `.cg` does not, and exists for 16 bytes only. Atoms with
//! `zfill` read only as many elements as `valid=` says and write zeros for the others, for example
//! at the edges of a tensor.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{GL, ONE, SH, atom, computed, r, w};
use crate::limits::limits;

const CITE: &str = "PTX ISA, Non-bulk copy: cp.async";

/// Name, bits, whether L1 keeps the data, PTX text.
type Row = (&'static str, i64, bool, &'static str);

#[rustfmt::skip] // One row per atom.
const WHOLE: [Row; 4] = [
    ("cp.async.ca.b32",  32,  true,  "cp.async.ca.shared.global [{D}], [{S}], 4;"),
    ("cp.async.ca.b64",  64,  true,  "cp.async.ca.shared.global [{D}], [{S}], 8;"),
    ("cp.async.cg.b128", 128, false, "cp.async.cg.shared.global [{D}], [{S}], 16;"),
    ("cp.async.ca.b128", 128, true,  "cp.async.ca.shared.global [{D}], [{S}], 16;"),
];

#[rustfmt::skip] // One row per atom.
const ZERO_FILLED: [Row; 4] = [
    ("cp.async.ca.b32.zfill",  32,  true,  "cp.async.ca.shared.global [{D}], [{S}], 4, {valid};"),
    ("cp.async.ca.b64.zfill",  64,  true,  "cp.async.ca.shared.global [{D}], [{S}], 8, {valid};"),
    ("cp.async.cg.b128.zfill", 128, false, "cp.async.cg.shared.global [{D}], [{S}], 16, {valid};"),
    ("cp.async.ca.b128.zfill", 128, true,  "cp.async.ca.shared.global [{D}], [{S}], 16, {valid};"),
];

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let limits = limits(arch);
    let atom = |(name, bits, kept, ptx): Row| {
        let mut cost = limits.async_copy(bits / 8);
        // Estimate: writing the L1 cache takes one more cycle.
        cost.completion_cycles += if kept { 1.0 } else { 0.0 };
        atom(name, ArchReq::Since(Arch::Sm80), AtomOp::Move, cost)
            .operands([
                r(("S", Elem::Bits(bits), GL, &[1], ONE)),
                w(("D", Elem::Bits(bits), SH, &[1], ONE)),
            ])
            .ptx(ptx)
            .in_async_group()
            .cite(CITE)
    };
    let zero_filled =
        ZERO_FILLED.into_iter().map(|row| atom(row).numbers([computed("valid", (0, row.1 / 8))]));
    WHOLE.into_iter().map(atom).chain(zero_filled).collect()
}
