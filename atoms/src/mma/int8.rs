//! Lists the atoms of `mma.sync` with factors of 8-bit integers, signed and unsigned in any
//! combination. Sums wrap around.

use super::shape::{D_8X8, D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::{Sm75, Sm80};
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{I8, I32, U8};

const M8: Shape = Shape {
    mnk: [8, 8, 16],
    a: "((4,8),4):((32,1),8)",
    b: "((4,8),4):((4,16),1)",
    d: D_8X8,
    cite: "PTX ISA, Matrix Fragments for mma.m8n8k16",
};

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
const M8_ENTRIES: [Entry; 4] = [
    ("mma.m8n8k16.i32.i8",    Sm75, [I8, I8, I32], ptx!("m8n8k16", "s32.s8.s8.s32")),
    ("mma.m8n8k16.i32.i8.u8", Sm75, [I8, U8, I32], ptx!("m8n8k16", "s32.s8.u8.s32")),
    ("mma.m8n8k16.i32.u8.i8", Sm75, [U8, I8, I32], ptx!("m8n8k16", "s32.u8.s8.s32")),
    ("mma.m8n8k16.i32.u8",    Sm75, [U8, U8, I32], ptx!("m8n8k16", "s32.u8.u8.s32")),
];

#[rustfmt::skip] // One row per atom.
const K16_ENTRIES: [Entry; 4] = [
    ("mma.m16n8k16.i32.i8",    Sm80, [I8, I8, I32], ptx!("m16n8k16", "s32.s8.s8.s32")),
    ("mma.m16n8k16.i32.i8.u8", Sm80, [I8, U8, I32], ptx!("m16n8k16", "s32.s8.u8.s32")),
    ("mma.m16n8k16.i32.u8.i8", Sm80, [U8, I8, I32], ptx!("m16n8k16", "s32.u8.s8.s32")),
    ("mma.m16n8k16.i32.u8",    Sm80, [U8, U8, I32], ptx!("m16n8k16", "s32.u8.u8.s32")),
];

#[rustfmt::skip] // One row per atom.
const K32_ENTRIES: [Entry; 4] = [
    ("mma.m16n8k32.i32.i8",    Sm80, [I8, I8, I32], ptx!("m16n8k32", "s32.s8.s8.s32")),
    ("mma.m16n8k32.i32.i8.u8", Sm80, [I8, U8, I32], ptx!("m16n8k32", "s32.s8.u8.s32")),
    ("mma.m16n8k32.i32.u8.i8", Sm80, [U8, I8, I32], ptx!("m16n8k32", "s32.u8.s8.s32")),
    ("mma.m16n8k32.i32.u8",    Sm80, [U8, U8, I32], ptx!("m16n8k32", "s32.u8.u8.s32")),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let of =
        |shape, list: &[Entry]| atoms(timing, timing.mma_int8, Rounding::Wrapping, shape, list);
    [of(&M8, &M8_ENTRIES), of(&K16, &K16_ENTRIES), of(&K32, &K32_ENTRIES)].concat()
}
