//! `mma.sync.m8n8k4` on f16: each of the four quad-pairs of a warp multiplies for itself.
//!
//! Made for sm_70; from sm_80 on there is no unit for it. Both factors may be given by rows or by
//! columns: what a thread holds of a factor lies side by side in memory that is stored so.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{self, F16, F32};

const CITE: &str = "PTX ISA, Matrix Fragments for mma.m8n8k4 with .f16 floating point type";

/// A by rows, by columns.
const A_ROW: &str = "(8,4):(1,8)";
const A_COL: &str = "((4,2),4):((8,4),1)";
/// B by rows, by columns.
const B_ROW: &str = "((4,2),4):((1,16),4)";
const B_COL: &str = "(8,4):(4,1)";
/// Accumulators, which have another layout by type.
const D_F16: &str = "(8,8):(1,8)";
const D_F32: &str = "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))";

/// An atom: name, layouts of A and B, type of D and its layout, PTX.
type Entry = (&'static str, &'static str, &'static str, (Scalar, &'static str), &'static str);

#[rustfmt::skip] // One atom a line.
const ENTRIES: [Entry; 8] = [
    ("mma.m8n8k4.row.col.f32.f16", A_ROW, B_COL, (F32, D_F32), "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.row.row.f32.f16", A_ROW, B_ROW, (F32, D_F32), "mma.sync.aligned.m8n8k4.row.row.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.col.col.f32.f16", A_COL, B_COL, (F32, D_F32), "mma.sync.aligned.m8n8k4.col.col.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.col.row.f32.f16", A_COL, B_ROW, (F32, D_F32), "mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.row.col.f16.f16", A_ROW, B_COL, (F16, D_F16), "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.row.row.f16.f16", A_ROW, B_ROW, (F16, D_F16), "mma.sync.aligned.m8n8k4.row.row.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.col.col.f16.f16", A_COL, B_COL, (F16, D_F16), "mma.sync.aligned.m8n8k4.col.col.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
    ("mma.m8n8k4.col.row.f16.f16", A_COL, B_ROW, (F16, D_F16), "mma.sync.aligned.m8n8k4.col.row.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let (m, n, k) = (8, 8, 4);
    let atom = |&(name, a, b, (acc, d), ptx): &Entry| {
        // Costs are of a warp, four quad-pairs.
        let cost = timing.mma(4 * m * n * k, 4 * m * k * F16.bits(), timing.mma_quad_pair);
        atom(name, ArchReq::Since(Arch::Sm70), AtomOp::MatMul { l: 1, m, n, k }, cost)
            .quad_pair()
            .operands([
                r(("A", Elem::Scalar(F16), RF, &[m, k], a)),
                r(("B", Elem::Scalar(F16), RF, &[k, n], b)),
                rw(("D", Elem::Scalar(acc), RF, &[m, n], d)),
            ])
            .ptx(ptx)
            .rounded(Rounding::MmaAccumulate)
            .cite(CITE)
            .calling_where_emulated()
    };
    ENTRIES.iter().map(atom).collect()
}
