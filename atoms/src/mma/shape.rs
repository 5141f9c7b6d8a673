//! Defines [`Shape`], the shape m×n×k of an `mma.sync` instruction with the thread-value layouts of
//! its fragments A, B and D. [`atoms`] makes atoms from one shape: one for each [`Entry`] of a
//! list, which names the scalar types and the PTX text.
//!
//! The layouts depend on the shape and on the number of bits of an element of A and B, not on the
//! types. So f16 and bf16 share one m16n8k16. The files of the families (`f16.rs`, ...) write each
//! shape once. `quad_pair.rs` does not use this file: its D has another layout for each type, and 8
//! threads execute it instead of a warp.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::{Speed, Timing};
use carbyne_ir::scalar::Scalar;

/// One shape: m, n and k; the layouts of A, B and D; the section that defines them.
pub(super) struct Shape {
    pub(super) mnk: [i64; 3],
    pub(super) a: &'static str,
    pub(super) b: &'static str,
    pub(super) d: &'static str,
    pub(super) cite: &'static str,
}

/// An atom of a shape: name, first architecture, types of A, B and D, PTX text.
pub(super) type Entry = (&'static str, Arch, [Scalar; 3], &'static str);

/// The PTX text of a shape (`m16n8k8`) with types of D, A, B and C (`f32.f16.f16.f32`).
macro_rules! ptx {
    ($shape:literal, $types:literal) => {
        concat!("mma.sync.aligned.", $shape, ".row.col.", $types, " {D}, {A}, {B}, {D};")
    };
}
pub(super) use ptx;

/// The layout of 16×8 accumulators, in all shapes.
pub(super) const D_16X8: &str = "((4,8),(2,2)):((32,1),(16,8))";

/// The layout of 8×8 accumulators.
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
