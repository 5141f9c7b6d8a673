//! Matrix multiply-accumulate by a whole warp on tensor cores.
//!
//! B is K×N in the table: its index is `k + K*n`, although the instruction calls the operand `.col`
//! and other tables write it N×K.

use crate::arch::{Arch, ArchReq};
use crate::dsl::{RF, atom, r, rw};
use crate::limits::limits;
use crate::row::{Atom, AtomOp, Elem, Rounding};
use carbyne_ir::scalar::Scalar::{self, Bf16, F16, F32};

const CITE_K8: &str = "PTX ISA, Matrix Fragments for mma.m16n8k8";
const CITE_K16: &str = "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type";

/// A row: name, first architecture, types of A and B and of the accumulator, PTX.
type Row = (&'static str, Arch, Scalar, Scalar, &'static str);

#[rustfmt::skip] // One row a line.
const K8: [Row; 3] = [
    ("mma.m16n8k8.f32.f16",  Arch::Sm75, F16,  F32, "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m16n8k8.f16.f16",  Arch::Sm75, F16,  F16, "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
    ("mma.m16n8k8.f32.bf16", Arch::Sm80, Bf16, F32, "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {D}, {A}, {B}, {D};"),
];

#[rustfmt::skip] // One row a line.
const K16: [Row; 3] = [
    ("mma.m16n8k16.f32.f16",  Arch::Sm80, F16,  F32, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {D}, {A}, {B}, {D};"),
    ("mma.m16n8k16.f16.f16",  Arch::Sm80, F16,  F16, "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {D}, {A}, {B}, {D};"),
    ("mma.m16n8k16.f32.bf16", Arch::Sm80, Bf16, F32, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {D}, {A}, {B}, {D};"),
];

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let timing = &limits(arch).timing;
    let start = |(name, first, _, _, ptx): Row, k: i64, completion_cycles: f64| {
        let op = AtomOp::MatMul { l: 1, m: 16, n: 8, k };
        atom(name, ArchReq::Since(first), op, timing.mma(16 * 8 * k, completion_cycles))
            .warp()
            .ptx(ptx)
            .rounded(Rounding::MmaAccumulate)
    };
    let k8 = K8.into_iter().map(|row| {
        let (_, _, input, acc, _) = row;
        start(row, 8, timing.mma_k8_cycles)
            .operands([
                r(("A", Elem::Scalar(input), RF, &[16, 8], "((4,8),(2,2)):((32,1),(16,8))")),
                r(("B", Elem::Scalar(input), RF, &[8, 8], "((4,8),2):((2,8),1)")),
                rw(("D", Elem::Scalar(acc), RF, &[16, 8], "((4,8),(2,2)):((32,1),(16,8))")),
            ])
            .cite(CITE_K8)
    });
    let k16 = K16.into_iter().map(|row| {
        let (_, _, input, acc, _) = row;
        start(row, 16, timing.mma_k16_cycles)
            .operands([
                r(("A", Elem::Scalar(input), RF, &[16, 16], "((4,8),(2,2,2)):((32,1),(16,8,128))")),
                r(("B", Elem::Scalar(input), RF, &[16, 8], "((4,8),(2,2)):((2,16),(1,8))")),
                rw(("D", Elem::Scalar(acc), RF, &[16, 8], "((4,8),(2,2)):((32,1),(16,8))")),
            ])
            .cite(CITE_K16)
    });
    k8.chain(k16).collect()
}
