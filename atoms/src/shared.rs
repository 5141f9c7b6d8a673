//! Lists the atoms of plain loads from shared memory and stores to it, one vector per thread.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp};
use crate::dsl::{RF, SH, atom, vector_move};
use crate::limits::limits;

const LOAD: &str = "PTX ISA, Data Movement and Conversion Instructions: ld";
const STORE: &str = "PTX ISA, Data Movement and Conversion Instructions: st";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let loads = [
        ("ld.shared.b8",   8,   "unsigned char"),
        ("ld.shared.b16",  16,  "unsigned short"),
        ("ld.shared.b32",  32,  "unsigned"),
        ("ld.shared.b64",  64,  "uint2"),
        ("ld.shared.b128", 128, "uint4"),
    ];
    let stores = [
        ("st.shared.b8",   8,   "unsigned char"),
        ("st.shared.b16",  16,  "unsigned short"),
        ("st.shared.b32",  32,  "unsigned"),
        ("st.shared.b64",  64,  "uint2"),
        ("st.shared.b128", 128, "uint4"),
    ];
    let (limits, since) = (limits(arch), ArchReq::Since(Arch::Sm70));
    let loads = loads.into_iter().map(|(name, bits, cxx)| {
        atom(name, since, AtomOp::Move, limits.shared_load(32 * bits / 8))
            .operands(vector_move(SH, RF, bits, cxx))
            .cuda("{D} = {S};")
            .cite(LOAD)
    });
    let stores = stores.into_iter().map(|(name, bits, cxx)| {
        atom(name, since, AtomOp::Move, limits.shared_store(32 * bits / 8))
            .operands(vector_move(RF, SH, bits, cxx))
            .cuda("{D} = {S};")
            .cite(STORE)
    });
    loads.chain(stores).collect()
}
