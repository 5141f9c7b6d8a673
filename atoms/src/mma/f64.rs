//! Lists the atoms of `mma.sync` on f64 (binary64). Every multiply-add is fused and rounds to
//! nearest even.

use super::shape::{D_8X8, D_16X8, Entry, Shape, atoms, ptx};
use crate::arch::Arch::{Sm80, Sm90};
use crate::atom::{Atom, Rounding};
use crate::limits::Timing;
use carbyne_ir::scalar::Scalar::F64;

const M8: Shape = Shape {
    mnk: [8, 8, 4],
    a: "((4,8),1):((8,1),0)",
    b: "((4,8),1):((1,4),0)",
    d: D_8X8,
    cite: "PTX ISA, Matrix Fragments for mma.m8n8k4 with .f64 floating point type",
};

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

const K16: Shape = Shape {
    mnk: [16, 8, 16],
    a: "((4,8),(2,4)):((16,1),(8,64))",
    b: "((4,8),4):((1,16),4)",
    d: D_16X8,
    cite: "PTX ISA, Matrix Fragments for mma.m16n8k16 with floating point type",
};

#[rustfmt::skip] // One row per atom.
const ENTRIES: [(Shape, Entry); 4] = [
    (M8,  ("mma.m8n8k4.f64.f64",   Sm80, [F64; 3], ptx!("m8n8k4", "f64.f64.f64.f64"))),
    (K4,  ("mma.m16n8k4.f64.f64",  Sm90, [F64; 3], ptx!("m16n8k4", "f64.f64.f64.f64"))),
    (K8,  ("mma.m16n8k8.f64.f64",  Sm90, [F64; 3], ptx!("m16n8k8", "f64.f64.f64.f64"))),
    (K16, ("mma.m16n8k16.f64.f64", Sm90, [F64; 3], ptx!("m16n8k16", "f64.f64.f64.f64"))),
];

pub(super) fn list(timing: &Timing) -> Vec<Atom> {
    let of = |(shape, atom): &(Shape, Entry)| {
        atoms(timing, timing.mma_f64, Rounding::Fused, shape, std::slice::from_ref(atom))
    };
    ENTRIES.iter().flat_map(of).collect()
}
