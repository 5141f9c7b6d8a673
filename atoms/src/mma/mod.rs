//! Matrix multiply-accumulate on tensor cores by a warp or a quad-pair: `mma.sync`, one file a
//! family.
//!
//! B is K×N in the table: its index is `k + K*n`, although the instructions call the operand `.col`
//! and other tables write it N×K.
//!
//! Names are shape, accumulator, A, B; B is left out where it is of A's type.
//!
//! Not here: `.satfinite` on integers, a sum that no spec means, and one-bit factors.

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
