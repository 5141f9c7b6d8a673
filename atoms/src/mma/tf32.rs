//! Lists the atoms of `mma.sync` with A and B of tf32: binary32 whose low 13 bits the instruction
//! ignores.

use super::shape::{D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::Sm80;
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::{F32, Tf32};

const K4: Shape = Shape {
    mnk: [16, 8, 4],
    a: "((4,8),2):((16,1),8)",
    b: "((4,8),1):((1,4),0)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k4",
};

const K8: Shape = Shape {
    mnk: [16, 8, 8],
    a: "((4,8),(2,2)):((16,1),(8,64))",
    b: "((4,8),2):((1,8),4)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k8",
};

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let types = [Tf32, Tf32, F32];
    let k4: [Entry; 1] =
        [("mma.m16n8k4.f32.tf32", Sm80, types, ptx!("m16n8k4", "f32.tf32.tf32.f32"))];
    let k8: [Entry; 1] =
        [("mma.m16n8k8.f32.tf32", Sm80, types, ptx!("m16n8k8", "f32.tf32.tf32.f32"))];
    let list = |shape, entries: &[Entry]| {
        atoms(timing, timing.mma_tf32, Rounding::MmaAccumulate, shape, entries)
    };
    [list(&K4, &k4), list(&K8, &k8)].concat()
}
