//! Lists the atoms of pointwise functions of one operand that are exact or rounded once: negation,
//! absolute value, relu, square root, reciprocal.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Cost, Elem, Rounding};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::limits;
use carbyne_ir::ast::UnaryOp::{self, Abs, Neg, Rcp, Relu, Sqrt};
use carbyne_ir::scalar::Scalar::{self, Bf16, F16, F32, F64, I32, I64};

const PTX: &str = "PTX ISA, Floating Point Instructions: neg, abs, max";
const PTX_HALF: &str = "PTX ISA, Half Precision Floating Point Instructions: neg, abs, max";
const PTX_INT: &str = "PTX ISA, Integer Arithmetic Instructions: neg, abs, max";
const ROOT: &str = "PTX ISA, Floating Point Instructions: sqrt";
const RECIPROCAL: &str = "PTX ISA, Floating Point Instructions: rcp";

/// Scalar type, number of values, C++ type.
pub(crate) type Type = (Scalar, i64, &'static str);

pub(crate) const F: Type = (F32, 1, "float");
pub(crate) const D: Type = (F64, 1, "double");
pub(crate) const H: Type = (F16, 1, "__half");
pub(crate) const H2: Type = (F16, 2, "__half2");
pub(crate) const B: Type = (Bf16, 1, "__nv_bfloat16");
pub(crate) const B2: Type = (Bf16, 2, "__nv_bfloat162");
const I: Type = (I32, 1, "int");
const U: Type = (I32, 1, "unsigned");
const LW: Type = (I64, 1, "unsigned long long");

/// An atom D = op(S) of one type, without its text.
pub(crate) fn unary_atom(
    name: &'static str,
    first: Arch,
    op: UnaryOp,
    ty: Type,
    cost: Cost,
) -> Atom {
    let (scalar, n, _) = ty;
    let elem = Elem::Scalar(scalar);
    let (tile, tv) = if n == 1 { ([1], ONE) } else { ([2], PAIR) };
    atom(name, ArchReq::Since(first), AtomOp::Unary(op), cost)
        .operands([r(("S", elem, RF, &tile, tv)), w(("D", elem, RF, &tile, tv))])
}

impl Atom {
    /// A C++ statement that accesses all operands through one type.
    pub(crate) fn cuda_through(mut self, text: &'static str, cxx: &'static str) -> Self {
        self.operands = self.operands.into_iter().map(|o| o.through(cxx)).collect();
        self.cuda(text)
    }
}

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let signs = [
        ("neg.f32",    Sm70, Neg,  F,  "{D} = -{S};",             t.f32_lanes,       PTX),
        ("abs.f32",    Sm70, Abs,  F,  "{D} = fabsf({S});",       t.f32_lanes,       PTX),
        ("relu.f32",   Sm70, Relu, F,  "{D} = fmaxf({S}, 0.0f);", t.int_lanes,       PTX),
        ("neg.f64",    Sm70, Neg,  D,  "{D} = -{S};",             t.f64_lanes,       PTX),
        ("abs.f64",    Sm70, Abs,  D,  "{D} = fabs({S});",        t.f64_lanes,       PTX),
        ("neg.f16",    Sm70, Neg,  H,  "{D} = __hneg({S});",      t.f16_lanes,       PTX_HALF),
        ("abs.f16",    Sm70, Abs,  H,  "{D} = __habs({S});",      t.f16_lanes,       PTX_HALF),
        ("relu.f16", Sm80, Relu, H, "{D} = __hmax({S}, __ushort_as_half(0));", t.f16_lanes,
         PTX_HALF),
        ("neg.f16x2",  Sm70, Neg,  H2, "{D} = __hneg2({S});",     t.f16_lanes,       PTX_HALF),
        ("abs.f16x2",  Sm70, Abs,  H2, "{D} = __habs2({S});",     t.f16_lanes,       PTX_HALF),
        ("relu.f16x2", Sm80, Relu, H2, "{D} = __hmax2({S}, __float2half2_rn(0.0f));", t.f16_lanes,
         PTX_HALF),
        ("neg.bf16",   Sm80, Neg,  B,  "{D} = __hneg({S});",      t.bf16_lanes,      PTX_HALF),
        ("abs.bf16",   Sm80, Abs,  B,  "{D} = __habs({S});",      t.bf16_lanes,      PTX_HALF),
        ("relu.bf16", Sm80, Relu, B, "{D} = __hmax({S}, __ushort_as_bfloat16(0));", t.bf16_lanes,
         PTX_HALF),
        ("neg.bf16x2", Sm80, Neg,  B2, "{D} = __hneg2({S});",     t.bf16_lanes,      PTX_HALF),
        ("abs.bf16x2", Sm80, Abs,  B2, "{D} = __habs2({S});",     t.bf16_lanes,      PTX_HALF),
        ("relu.bf16x2", Sm80, Relu, B2, "{D} = __hmax2({S}, __float2bfloat162_rn(0.0f));",
         t.bf16_lanes, PTX_HALF),
        ("neg.s32",    Sm70, Neg,  U,  "{D} = 0u - {S};",         t.int_lanes,       PTX_INT),
        ("neg.s64",    Sm70, Neg,  LW, "{D} = 0ull - {S};",       t.int_lanes / 2.0, PTX_INT),
        ("relu.s32",   Sm70, Relu, I,  "{D} = max({S}, 0);",      t.int_lanes,       PTX_INT),
    ];
    let mut atoms: Vec<Atom> = signs
        .into_iter()
        .map(|(name, first, op, ty, cuda, lanes, cite)| {
            let atom = unary_atom(name, first, op, ty, t.pointwise(lanes, ty.1));
            atom.cuda_through(cuda, ty.2).cite(cite)
        })
        .collect();
    atoms.push(
        unary_atom("abs.s32", Sm70, Abs, I, t.pointwise(t.int_lanes, 1))
            .ptx_scalar("abs.s32 {D}, {S};").cite(PTX_INT),
    );
    let sequences = [
        ("relu.f64", Relu, D, "{D} = fmax({S}, 0.0);", "a comparison and selections", PTX),
        ("relu.f16.by_f32", Relu, H, "{D} = __float2half_rn(fmaxf(__half2float({S}), 0.0f));",
         "by f32, which is exact", PTX),
        ("relu.f16x2.by_f32", Relu, H2,
         "{D} = __floats2half2_rn(fmaxf(__low2float({S}), 0.0f), fmaxf(__high2float({S}), 0.0f));",
         "by f32, which is exact", PTX),
    ];
    atoms.extend(sequences.into_iter().map(|(name, op, ty, cuda, formula, cite)| {
        let lanes = if ty.0 == F64 { t.f64_lanes } else { t.f32_lanes };
        unary_atom(name, Sm70, op, ty, t.chain(lanes, ty.1, 8))
            .cuda_through(cuda, ty.2)
            .sequence(formula, "none")
            .cite(cite)
    }));
    let calling = [
        ("sqrt.f32", Sqrt, F, "{D} = __fsqrt_rn({S});", "S·rsqrt(S), corrected and rounded once",
         t.f32_lanes, ROOT),
        ("sqrt.f64", Sqrt, D, "{D} = __dsqrt_rn({S});", "S·rsqrt(S), corrected and rounded once",
         t.f64_lanes, ROOT),
        ("rcp.f32", Rcp, F, "{D} = __frcp_rn({S});", "1/S, corrected and rounded once", t.f32_lanes,
         RECIPROCAL),
        ("rcp.f64", Rcp, D, "{D} = __drcp_rn({S});", "1/S, corrected and rounded once", t.f64_lanes,
         RECIPROCAL),
    ];
    atoms.extend(calling.into_iter().map(|(name, op, ty, cuda, formula, lanes, cite)| {
        unary_atom(name, Sm70, op, ty, t.chain(lanes, ty.1, 8))
            .cuda_through(cuda, ty.2)
            .sequence(formula, "none")
            .rounded(Rounding::Nearest)
            .calling()
            .cite(cite)
    }));
    atoms
}
