//! Asynchronous copies from global to shared memory that pass no registers.
//!
//! `.ca` keeps the data in the first-level cache; `.cg`, for 16 bytes only, does not.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{GL, ONE, SH, atom, r, w};
use crate::limits::limits;
use crate::row::{Atom, AtomOp, Elem};

const CITE: &str = "PTX ISA, Non-bulk copy: cp.async";

#[rustfmt::skip] // One row a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let rows = [
        ("cp.async.ca.b32",  32,  true,  "cp.async.ca.shared.global [{D}], [{S}], 4;"),
        ("cp.async.ca.b64",  64,  true,  "cp.async.ca.shared.global [{D}], [{S}], 8;"),
        ("cp.async.cg.b128", 128, false, "cp.async.cg.shared.global [{D}], [{S}], 16;"),
        ("cp.async.ca.b128", 128, true,  "cp.async.ca.shared.global [{D}], [{S}], 16;"),
    ];
    let limits = limits(arch);
    rows.into_iter()
        .map(|(name, bits, kept, ptx)| {
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
        })
        .collect()
}
