//! Lists the atoms of `mma.sync` with A and B of 16-bit floats (f16, bf16). `m8n8k4` is in
//! `quad_pair.rs`.

use super::shape::{D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::{Sm75, Sm80};
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{Bf16, F16, F32};

const K8: Shape = Shape {
    mnk: [16, 8, 8],
    a: "((4,8),(2,2)):((32,1),(16,8))",
    b: "((4,8),2):((2,8),1)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k8",
};

const K16: Shape = Shape {
    mnk: [16, 8, 16],
    a: "((4,8),(2,2,2)):((32,1),(16,8,128))",
    b: "((4,8),(2,2)):((2,16),(1,8))",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type",
};

#[rustfmt::skip] // One row per atom.
const K8_ENTRIES: [Entry; 3] = [
    ("mma.m16n8k8.f32.f16",  Sm75, [F16, F16, F32],   ptx!("m16n8k8", "f32.f16.f16.f32")),
    ("mma.m16n8k8.f16.f16",  Sm75, [F16, F16, F16],   ptx!("m16n8k8", "f16.f16.f16.f16")),
    ("mma.m16n8k8.f32.bf16", Sm80, [Bf16, Bf16, F32], ptx!("m16n8k8", "f32.bf16.bf16.f32")),
];

#[rustfmt::skip] // One row per atom.
const K16_ENTRIES: [Entry; 3] = [
    ("mma.m16n8k16.f32.f16",  Sm80, [F16, F16, F32],   ptx!("m16n8k16", "f32.f16.f16.f32")),
    ("mma.m16n8k16.f16.f16",  Sm80, [F16, F16, F16],   ptx!("m16n8k16", "f16.f16.f16.f16")),
    ("mma.m16n8k16.f32.bf16", Sm80, [Bf16, Bf16, F32], ptx!("m16n8k16", "f32.bf16.bf16.f32")),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let of =
        |shape, list: &[Entry]| atoms(timing, timing.mma_f16, Rounding::MmaAccumulate, shape, list);
    [of(&K8, &K8_ENTRIES), of(&K16, &K16_ENTRIES)].concat()
}
