//! Lists the atoms of `mma.sync` with factors of 4-bit integers, signed and unsigned in any
//! combination. Sums wrap around.

use super::shape::{D_8X8, D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::{Sm75, Sm80};
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{I4, I32, U4};

const M8: Shape = Shape {
    mnk: [8, 8, 32],
    a: "((4,8),8):((64,1),8)",
    b: "((4,8),8):((8,32),1)",
    d: D_8X8,
    cite: "PTX ISA, Matrix Fragments for mma.m8n8k32",
};

const K32: Shape = Shape {
    mnk: [16, 8, 32],
    a: "((4,8),(8,2)):((128,1),(16,8))",
    b: "((4,8),8):((8,32),1)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k32",
};

const K64: Shape = Shape {
    mnk: [16, 8, 64],
    a: "((4,8),(8,2,2)):((128,1),(16,8,512))",
    b: "((4,8),(8,2)):((8,64),(1,32))",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k64",
};

#[rustfmt::skip] // One row per atom.
const M8_ENTRIES: [Entry; 4] = [
    ("mma.m8n8k32.i32.i4",    Sm75, [I4, I4, I32], ptx!("m8n8k32", "s32.s4.s4.s32")),
    ("mma.m8n8k32.i32.i4.u4", Sm75, [I4, U4, I32], ptx!("m8n8k32", "s32.s4.u4.s32")),
    ("mma.m8n8k32.i32.u4.i4", Sm75, [U4, I4, I32], ptx!("m8n8k32", "s32.u4.s4.s32")),
    ("mma.m8n8k32.i32.u4",    Sm75, [U4, U4, I32], ptx!("m8n8k32", "s32.u4.u4.s32")),
];

#[rustfmt::skip] // One row per atom.
const K32_ENTRIES: [Entry; 4] = [
    ("mma.m16n8k32.i32.i4",    Sm80, [I4, I4, I32], ptx!("m16n8k32", "s32.s4.s4.s32")),
    ("mma.m16n8k32.i32.i4.u4", Sm80, [I4, U4, I32], ptx!("m16n8k32", "s32.s4.u4.s32")),
    ("mma.m16n8k32.i32.u4.i4", Sm80, [U4, I4, I32], ptx!("m16n8k32", "s32.u4.s4.s32")),
    ("mma.m16n8k32.i32.u4",    Sm80, [U4, U4, I32], ptx!("m16n8k32", "s32.u4.u4.s32")),
];

#[rustfmt::skip] // One row per atom.
const K64_ENTRIES: [Entry; 4] = [
    ("mma.m16n8k64.i32.i4",    Sm80, [I4, I4, I32], ptx!("m16n8k64", "s32.s4.s4.s32")),
    ("mma.m16n8k64.i32.i4.u4", Sm80, [I4, U4, I32], ptx!("m16n8k64", "s32.s4.u4.s32")),
    ("mma.m16n8k64.i32.u4.i4", Sm80, [U4, I4, I32], ptx!("m16n8k64", "s32.u4.s4.s32")),
    ("mma.m16n8k64.i32.u4",    Sm80, [U4, U4, I32], ptx!("m16n8k64", "s32.u4.u4.s32")),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let of =
        |shape, list: &[Entry]| atoms(timing, timing.mma_int4, Rounding::Wrapping, shape, list);
    let all = [of(&M8, &M8_ENTRIES), of(&K32, &K32_ENTRIES), of(&K64, &K64_ENTRIES)].concat();
    all.into_iter().map(Atom::calling_where_emulated).collect()
}
