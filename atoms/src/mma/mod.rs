//! Matrix multiply-accumulate on tensor cores by a warp or a quad-pair: `mma.sync`, one file a family.
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
mod tf32;

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::{Speed, Timing, limits};
use carbyne_ir::scalar::Scalar;

/// Fragments of one shape: m, n, k; the layouts of A, B and D; where they are defined.
struct Shape {
    mnk: [i64; 3],
    a: &'static str,
    b: &'static str,
    d: &'static str,
    cite: &'static str,
}

/// An atom of a shape: name, first architecture, types of A, B and D, PTX.
type Entry = (&'static str, Arch, [Scalar; 3], &'static str);

/// Accumulators of 16×8, of every shape that has them.
const D_16X8: &str = "((4,8),(2,2)):((32,1),(16,8))";
/// Accumulators of 8×8.
const D_8X8: &str = "((4,8),2):((16,1),8)";

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

/// The atoms of a shape that a warp executes.
fn atoms(
    timing: &Timing,
    speed: Speed,
    rounding: Rounding,
    shape: &Shape,
    entries: &[Entry],
) -> Vec<Atom> {
    let ([m, n, k], elem) = (shape.mnk, Elem::Scalar);
    let atom = |&(name, first, [a, b, d], ptx): &Entry| {
        let cost = timing.mma(m * n * k, m * k * a.bits(), speed);
        atom(name, ArchReq::Since(first), AtomOp::MatMul { l: 1, m, n, k }, cost)
            .warp()
            .operands([
                r(("A", elem(a), RF, &[m, k], shape.a)),
                r(("B", elem(b), RF, &[k, n], shape.b)),
                rw(("D", elem(d), RF, &[m, n], shape.d)),
            ])
            .ptx(ptx)
            .rounded(rounding)
            .cite(shape.cite)
    };
    entries.iter().map(atom).collect()
}
