//! Lists the atoms of `mma.sync.m8n8k4` on f16: each of the four quad-pairs of a warp (8 threads
//! each) multiplies its own matrices.
//!
//! The instruction was made for sm_70; from sm_80 on there is no unit for it. Each factor may be
//! row-major or column-major, in separate atoms. The values of one thread are consecutive in memory
//! of this order. The layout of D depends on its type.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{self, F16, F32};

const CITE: &str = "PTX ISA, Matrix Fragments for mma.m8n8k4 with .f16 floating point type";

/// Row-major and column-major A.
const A_ROW: &str = "(8,4):(1,8)";
const A_COL: &str = "((4,2),4):((8,4),1)";
/// Row-major and column-major B.
const B_ROW: &str = "((4,2),4):((1,16),4)";
const B_COL: &str = "(8,4):(4,1)";
/// Accumulators, whose layout depends on the type.
const D_F16: &str = "(8,8):(1,8)";
const D_F32: &str = "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))";

/// An atom: name, layouts of A and B, type and layout of D, PTX text.
type Entry = (&'static str, &'static str, &'static str, (Scalar, &'static str), &'static str);

/// The PTX text for orders of A and B (`row.col`) and types of D, A, B and C.
macro_rules! ptx {
    ($orders:literal, $types:literal) => {
        concat!("mma.sync.aligned.m8n8k4.", $orders, ".", $types, " {D}, {A}, {B}, {D};")
    };
}

#[rustfmt::skip] // One row per atom.
const ENTRIES: [Entry; 8] = [
    ("mma.m8n8k4.row.col.f32.f16", A_ROW, B_COL, (F32, D_F32), ptx!("row.col", "f32.f16.f16.f32")),
    ("mma.m8n8k4.row.row.f32.f16", A_ROW, B_ROW, (F32, D_F32), ptx!("row.row", "f32.f16.f16.f32")),
    ("mma.m8n8k4.col.col.f32.f16", A_COL, B_COL, (F32, D_F32), ptx!("col.col", "f32.f16.f16.f32")),
    ("mma.m8n8k4.col.row.f32.f16", A_COL, B_ROW, (F32, D_F32), ptx!("col.row", "f32.f16.f16.f32")),
    ("mma.m8n8k4.row.col.f16.f16", A_ROW, B_COL, (F16, D_F16), ptx!("row.col", "f16.f16.f16.f16")),
    ("mma.m8n8k4.row.row.f16.f16", A_ROW, B_ROW, (F16, D_F16), ptx!("row.row", "f16.f16.f16.f16")),
    ("mma.m8n8k4.col.col.f16.f16", A_COL, B_COL, (F16, D_F16), ptx!("col.col", "f16.f16.f16.f16")),
    ("mma.m8n8k4.col.row.f16.f16", A_COL, B_ROW, (F16, D_F16), ptx!("col.row", "f16.f16.f16.f16")),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let (m, n, k) = (8, 8, 4);
    let atom = |&(name, a, b, (acc, d), ptx): &Entry| {
        // Costs are those of a warp, which consists of four quad-pairs.
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
