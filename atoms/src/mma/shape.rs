//! Shapes of fragments, and the atoms of a shape.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::{Speed, Timing};
use carbyne_ir::scalar::Scalar;

/// Fragments of one shape: m, n, k; the layouts of A, B and D; where they are defined.
pub(super) struct Shape {
    pub(super) mnk: [i64; 3],
    pub(super) a: &'static str,
    pub(super) b: &'static str,
    pub(super) d: &'static str,
    pub(super) cite: &'static str,
}

/// An atom of a shape: name, first architecture, types of A, B and D, PTX.
pub(super) type Entry = (&'static str, Arch, [Scalar; 3], &'static str);

/// Accumulators of 16×8, of every shape that has them.
pub(super) const D_16X8: &str = "((4,8),(2,2)):((32,1),(16,8))";

/// Accumulators of 8×8.
pub(super) const D_8X8: &str = "((4,8),2):((16,1),8)";

/// The atoms of a shape that a warp executes.
pub(super) fn atoms(
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
