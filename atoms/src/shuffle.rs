//! Lists the atoms of `shfl.sync`: exchange of registers between the lanes of a warp.
//!
//! All 32 lanes take part. A 64-bit value is exchanged as two 32-bit values.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem};
use crate::dsl::{RF, atom, r, w};
use crate::limits::limits;
use carbyne_ir::ast::ShflOp::{Bfly, Down, Idx, Up};

const CITE: &str = "PTX ISA, Data Movement and Conversion Instructions: shfl.sync";
/// One value per lane.
const LANES: &str = "(32,1):(1,0)";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let ops = [
        ("shfl.idx.b32",  "shfl.idx.b64",  Idx,  "{D} = __shfl_sync(0xffffffffu, {S}, {lane});"),
        ("shfl.up.b32",   "shfl.up.b64",   Up,   "{D} = __shfl_up_sync(0xffffffffu, {S}, {lane});"),
        ("shfl.down.b32", "shfl.down.b64", Down,
         "{D} = __shfl_down_sync(0xffffffffu, {S}, {lane});"),
        ("shfl.bfly.b32", "shfl.bfly.b64", Bfly,
         "{D} = __shfl_xor_sync(0xffffffffu, {S}, {lane});"),
    ];
    let t = &limits(arch).timing;
    let mut atoms = vec![];
    for (narrow, wide, op, cuda) in ops {
        for (name, bits, cxx) in [(narrow, 32, "unsigned"), (wide, 64, "unsigned long long")] {
            let cost = t.chain(t.shuffle_lanes, 1, bits / 32);
            let atom = atom(name, ArchReq::Since(Arch::Sm70), AtomOp::Shfl(op), cost)
                .warp()
                .operands([
                    r(("S", Elem::Bits(bits), RF, &[32], LANES)).through(cxx),
                    w(("D", Elem::Bits(bits), RF, &[32], LANES)).through(cxx),
                ])
                .cuda(cuda)
                .cite(CITE);
            atoms.push(match bits {
                32 => atom,
                _ => atom.sequence("both halves are exchanged", "none"),
            });
        }
    }
    atoms
}
