//! Loads from and stores to global memory, one vector a thread.
//!
//! Written as C++ through a vector type, which the CUDA compiler turns into one instruction.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp};
use crate::dsl::{GL, RF, atom, vector_move};
use crate::limits::limits;

const LOAD: &str = "PTX ISA, Data Movement and Conversion Instructions: ld";
const STORE: &str = "PTX ISA, Data Movement and Conversion Instructions: st";

#[rustfmt::skip] // One atom a line.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let atoms = [
        ("ld.global.b8",   GL, RF, 8,   "unsigned char",  LOAD),
        ("ld.global.b16",  GL, RF, 16,  "unsigned short", LOAD),
        ("ld.global.b32",  GL, RF, 32,  "unsigned",       LOAD),
        ("ld.global.b64",  GL, RF, 64,  "uint2",          LOAD),
        ("ld.global.b128", GL, RF, 128, "uint4",          LOAD),
        ("st.global.b8",   RF, GL, 8,   "unsigned char",  STORE),
        ("st.global.b16",  RF, GL, 16,  "unsigned short", STORE),
        ("st.global.b32",  RF, GL, 32,  "unsigned",       STORE),
        ("st.global.b64",  RF, GL, 64,  "uint2",          STORE),
        ("st.global.b128", RF, GL, 128, "uint4",          STORE),
    ];
    let timing = &limits(arch).timing;
    atoms.into_iter()
        .map(|(name, from, to, bits, cxx, cite)| {
            atom(name, ArchReq::Since(Arch::Sm70), AtomOp::Move, timing.global(bits / 8))
                .operands(vector_move(from, to, bits, cxx))
                .cuda("{D} = {S};")
                .cite(cite)
        })
        .collect()
}
