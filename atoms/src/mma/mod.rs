//! Lists the atoms of `mma.sync`: matrix multiply-accumulate on tensor cores by a warp or a
//! quad-pair (the 8 threads that execute one m8n8k4 product). Each family of types has its own
//! file.
//!
//! B is K×N in this table: the index is `k + K*n`. The instructions call the operand `.col`, and
//! other tables write it as N×K.
//!
//! Names consist of shape, accumulator, A and B. B is omitted if it has the type of A. Names of
//! quad-pair atoms also contain the orders of A and B (`row.col`).
//!
//! The table does not contain `.satfinite` on integers, because no spec has saturating sums, nor
//! one-bit factors.

mod f16;
mod f64;
mod fp8;
mod int4;
mod int8;
mod quad_pair;
mod shape;
mod tf32;

use crate::arch::Arch;
use crate::atom::Atom;
use crate::limits::limits;

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let timing = &limits(arch).timing;
    let families = [
        quad_pair::list(timing),
        f16::list(timing),
        tf32::list(timing),
        f64::list(timing),
        int8::list(timing),
        int4::list(timing),
        fp8::list(timing),
    ];
    families.into_iter().flatten().collect()
}
