//! Lists the atoms of fused multiply-adds of one thread, on scalars and on packed pairs.
//!
//! A pair is two independent products. Its atom is therefore a MatMul of l = 2 batches with m = n =
//! k = 1. Templates are C++ expressions, so that operands may lie in any memory. The CUDA compiler
//! then adds loads and stores, which are not part of the atom's cost.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{ANY, ONE, PAIR, atom, r, rw};
use crate::limits::limits;
use carbyne_ir::scalar::Scalar::{Bf16, F16, F32, F64};

const CITE_FLOAT: &str = "CUDA Math API, Single Precision Mathematical Functions: fmaf";
const CITE_DOUBLE: &str = "CUDA Math API, Double Precision Mathematical Functions: fma";
const CITE_HALF: &str = "CUDA Math API, Half Arithmetic Functions: __hfma";
const CITE_HALF2: &str = "CUDA Math API, Half2 Arithmetic Functions: __hfma2";
const CITE_BF16: &str = "CUDA Math API, Bfloat16 Arithmetic Functions: __hfma";
const CITE_BF162: &str = "CUDA Math API, Bfloat162 Arithmetic Functions: __hfma2";

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let fmaf = "{D} = fmaf({A}, {B}, {D});";
    let fma = "{D} = fma({A}, {B}, {D});";
    let hfma = "{D} = __hfma({A}, {B}, {D});";
    let hfma2 = "{D} = __hfma2({A}, {B}, {D});";
    let atoms = [
        ("fma.f32",    Sm70, F32,  1, "float",          fmaf,  t.f32_lanes,  CITE_FLOAT),
        ("fma.f64",    Sm70, F64,  1, "double",         fma,   t.f64_lanes,  CITE_DOUBLE),
        ("fma.f16",    Sm70, F16,  1, "__half",         hfma,  t.f16_lanes,  CITE_HALF),
        ("fma.f16x2",  Sm70, F16,  2, "__half2",        hfma2, t.f16_lanes,  CITE_HALF2),
        ("fma.bf16",   Sm80, Bf16, 1, "__nv_bfloat16",  hfma,  t.bf16_lanes, CITE_BF16),
        ("fma.bf16x2", Sm80, Bf16, 2, "__nv_bfloat162", hfma2, t.bf16_lanes, CITE_BF162),
    ];
    atoms.into_iter()
        .map(|(name, first, scalar, l, cxx, cuda, lanes, cite)| {
            let (elem, pair) = (Elem::Scalar(scalar), [l, 1, 1]);
            let (tile, tv) = if l == 1 { (&pair[1..], ONE) } else { (&pair[..], PAIR) };
            let op = AtomOp::MatMul { l, m: 1, n: 1, k: 1 };
            atom(name, ArchReq::Since(first), op, t.pointwise(lanes, l))
                .operands([
                    r(("A", elem, ANY, tile, tv)).through(cxx),
                    r(("B", elem, ANY, tile, tv)).through(cxx),
                    rw(("D", elem, ANY, tile, tv)).through(cxx),
                ])
                .cuda(cuda)
                .rounded(Rounding::Fused)
                .cite(cite)
        })
        .collect()
}
