//! Lists the atoms of `mma.sync` with factors of 8-bit floats, both formats in any combination.

use super::shape::{D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::Sm89;
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{E4m3, E5m2, F16, F32};

const K16: Shape = Shape {
    mnk: [16, 8, 16],
    a: "((4,8),(4,2)):((64,1),(16,8))",
    b: "((4,8),4):((4,16),1)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k16 with integer type",
};

const K32: Shape = Shape {
    mnk: [16, 8, 32],
    a: "((4,8),(4,2,2)):((64,1),(16,8,256))",
    b: "((4,8),(4,2)):((4,32),(1,16))",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k32",
};

#[rustfmt::skip] // One row per atom.
const K16_ENTRIES: [Entry; 8] = [
    ("mma.m16n8k16.f32.e4m3",      Sm89, [E4m3, E4m3, F32], ptx!("m16n8k16", "f32.e4m3.e4m3.f32")),
    ("mma.m16n8k16.f32.e4m3.e5m2", Sm89, [E4m3, E5m2, F32], ptx!("m16n8k16", "f32.e4m3.e5m2.f32")),
    ("mma.m16n8k16.f32.e5m2.e4m3", Sm89, [E5m2, E4m3, F32], ptx!("m16n8k16", "f32.e5m2.e4m3.f32")),
    ("mma.m16n8k16.f32.e5m2",      Sm89, [E5m2, E5m2, F32], ptx!("m16n8k16", "f32.e5m2.e5m2.f32")),
    ("mma.m16n8k16.f16.e4m3",      Sm89, [E4m3, E4m3, F16], ptx!("m16n8k16", "f16.e4m3.e4m3.f16")),
    ("mma.m16n8k16.f16.e4m3.e5m2", Sm89, [E4m3, E5m2, F16], ptx!("m16n8k16", "f16.e4m3.e5m2.f16")),
    ("mma.m16n8k16.f16.e5m2.e4m3", Sm89, [E5m2, E4m3, F16], ptx!("m16n8k16", "f16.e5m2.e4m3.f16")),
    ("mma.m16n8k16.f16.e5m2",      Sm89, [E5m2, E5m2, F16], ptx!("m16n8k16", "f16.e5m2.e5m2.f16")),
];

#[rustfmt::skip] // One row per atom.
const K32_ENTRIES: [Entry; 8] = [
    ("mma.m16n8k32.f32.e4m3",      Sm89, [E4m3, E4m3, F32], ptx!("m16n8k32", "f32.e4m3.e4m3.f32")),
    ("mma.m16n8k32.f32.e4m3.e5m2", Sm89, [E4m3, E5m2, F32], ptx!("m16n8k32", "f32.e4m3.e5m2.f32")),
    ("mma.m16n8k32.f32.e5m2.e4m3", Sm89, [E5m2, E4m3, F32], ptx!("m16n8k32", "f32.e5m2.e4m3.f32")),
    ("mma.m16n8k32.f32.e5m2",      Sm89, [E5m2, E5m2, F32], ptx!("m16n8k32", "f32.e5m2.e5m2.f32")),
    ("mma.m16n8k32.f16.e4m3",      Sm89, [E4m3, E4m3, F16], ptx!("m16n8k32", "f16.e4m3.e4m3.f16")),
    ("mma.m16n8k32.f16.e4m3.e5m2", Sm89, [E4m3, E5m2, F16], ptx!("m16n8k32", "f16.e4m3.e5m2.f16")),
    ("mma.m16n8k32.f16.e5m2.e4m3", Sm89, [E5m2, E4m3, F16], ptx!("m16n8k32", "f16.e5m2.e4m3.f16")),
    ("mma.m16n8k32.f16.e5m2",      Sm89, [E5m2, E5m2, F16], ptx!("m16n8k32", "f16.e5m2.e5m2.f16")),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let of =
        |shape, list: &[Entry]| atoms(timing, timing.mma_fp8, Rounding::MmaAccumulate, shape, list);
    [of(&K16, &K16_ENTRIES), of(&K32, &K32_ENTRIES)].concat()
}
