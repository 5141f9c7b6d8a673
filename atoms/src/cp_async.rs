//! Asynchronous copies from global to shared memory that pass no registers.
//!
//! `.ca` keeps the data in the first-level cache; `.cg`, for 16 bytes only, does not. Atoms with
//! `zfill` read as many bytes as `valid=` says and write zeros in the places of the others: at the
//! edges of a tensor.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{GL, ONE, SH, atom, computed, r, w};
use crate::limits::limits;

const CITE: &str = "PTX ISA, Non-bulk copy: cp.async";

#[rustfmt::skip] // One atom a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("cp.async.ca.b32",  32,  true,  "cp.async.ca.shared.global [{D}], [{S}], 4;"),
        ("cp.async.ca.b64",  64,  true,  "cp.async.ca.shared.global [{D}], [{S}], 8;"),
        ("cp.async.cg.b128", 128, false, "cp.async.cg.shared.global [{D}], [{S}], 16;"),
        ("cp.async.ca.b128", 128, true,  "cp.async.ca.shared.global [{D}], [{S}], 16;"),
    ];
    let zeros = [
        ("cp.async.ca.b32.zfill",  32,  true,  "cp.async.ca.shared.global [{D}], [{S}], 4, {valid};"),
        ("cp.async.ca.b64.zfill",  64,  true,  "cp.async.ca.shared.global [{D}], [{S}], 8, {valid};"),
        ("cp.async.cg.b128.zfill", 128, false, "cp.async.cg.shared.global [{D}], [{S}], 16, {valid};"),
        ("cp.async.ca.b128.zfill", 128, true,  "cp.async.ca.shared.global [{D}], [{S}], 16, {valid};"),
    ];
    let limits = limits(arch);
    let atom = |(name, bits, kept, ptx): (&'static str, i64, bool, &'static str)| {
            let mut cost = limits.async_copy(bits / 8);
            // Estimate: the cache is written too.
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
    let zeros = zeros.into_iter().map(|z| (z.1, atom(z))).map(|(bits, atom)| atom.numbers([computed("valid", (0, bits / 8))]));
    atoms.into_iter().map(atom).chain(zeros).collect()
}
