//! Lists the atoms of casts between floating-point types, of one value and of packed pairs.
//! `convert_through.rs` has the pairs of types that are missing here.
//!
//! The hardware converts 8-bit floats in pairs. A number beyond their range becomes the largest one
//! of its sign. Before sm_90 the instruction from f32 to tf32 rounds ties away from zero, although
//! a cast rounds them to even. Both have an error of at most half an ulp.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomKind, AtomOp, Elem, Rounding};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::limits;
use crate::unary::unary_atom;
use carbyne_ir::ast::UnaryOp;
use carbyne_ir::scalar::Scalar::{self, Bf16, E4m3, E5m2, F16, F32, F64, Tf32};

const HALF: &str = "CUDA Math API, Half Precision Conversion and Data Movement";
const BF16: &str = "CUDA Math API, Bfloat16 Precision Conversion and Data Movement";
const FP8: &str = "CUDA Math API, FP8 Conversion and Data Movement";
const CVT: &str = "PTX ISA, Data Movement and Conversion Instructions: cvt";
/// The conversion of bf16 to f32 on architectures without an instruction for it.
const SHIFTED: AtomKind = AtomKind::Sequence {
    formula: "the 16 bits become the upper half of a binary32",
    error: "none",
};
/// The conversion of f32 to bf16 on architectures without an instruction for it.
const ROUNDED: AtomKind = AtomKind::Sequence {
    formula: "the upper half of S + 0x7fff + bit 16 of S; 0x7fff of NaN",
    error: "none",
};
const BF16_OF_F32: &str = "{D} = __ushort_as_bfloat16(static_cast<unsigned short>(\
                           {S} == {S} ? (__float_as_uint({S}) + 0x7fffu + \
                           (__float_as_uint({S}) >> 16 & 1u)) >> 16 : 0x7fffu));";
const THROUGH_F32: AtomKind =
    AtomKind::Sequence { formula: "by f32, which is exact", error: "none" };
const THROUGH_F16: AtomKind =
    AtomKind::Sequence { formula: "by f16, which is exact", error: "none" };
const ALONE: AtomKind = AtomKind::Sequence { formula: "as a pair with zero", error: "none" };
const ONE_STEP: AtomKind = AtomKind::Instruction;

const F: (Scalar, &str) = (F32, "float");
const F2: (Scalar, &str) = (F32, "float2");
const D: (Scalar, &str) = (F64, "double");
const H: (Scalar, &str) = (F16, "__half");
const H2: (Scalar, &str) = (F16, "__half2");
const B: (Scalar, &str) = (Bf16, "__nv_bfloat16");
const B2: (Scalar, &str) = (Bf16, "__nv_bfloat162");
const E4: (Scalar, &str) = (E4m3, "unsigned char");
const E4X2: (Scalar, &str) = (E4m3, "unsigned short");
const E5: (Scalar, &str) = (E5m2, "unsigned char");
const E5X2: (Scalar, &str) = (E5m2, "unsigned short");

/// Name, first architecture, source, target, number of values, C++ text, kind, document.
type Entry = (
    &'static str,
    Arch,
    (Scalar, &'static str),
    (Scalar, &'static str),
    i64,
    &'static str,
    AtomKind,
    &'static str,
);

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let mut atoms: Vec<Atom> = wide()
        .into_iter()
        .chain(narrow())
        .map(|(name, first, (from, from_cxx), (to, to_cxx), n, cuda, kind, cite)| {
            let (tile, tv) = if n == 1 { ([1], ONE) } else { ([2], PAIR) };
            let rounding = if to.holds(from) { Rounding::Exact } else { Rounding::Nearest };
            let wide = from == F64 || to == F64;
            let lanes = if wide { t.convert_wide_lanes } else { t.convert_lanes };
            let cost = match kind == ROUNDED {
                true => t.chain(t.int_lanes, n, 5),
                false => t.pointwise(lanes, n),
            };
            let mut atom = atom(name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), cost)
                .operands([
                    r(("S", Elem::Scalar(from), RF, &tile, tv)).through(from_cxx),
                    w(("D", Elem::Scalar(to), RF, &tile, tv)).through(to_cxx),
                ])
                .cuda(cuda)
                .rounded(rounding)
                .cite(cite);
            atom.kind = kind;
            atom
        })
        .collect();
    let mut tf32 = unary_atom(
        "cvt.rn.tf32.f32",
        Arch::Sm90,
        UnaryOp::Cast,
        (F32, 1, "float"),
        t.pointwise(t.convert_lanes, 1),
    );
    if let Some(target) = tf32.operands.last_mut() {
        target.elem = Elem::Scalar(Tf32);
    }
    let mut away = Atom { name: "cvt.rna.tf32.f32", ..tf32.clone() };
    away.req = ArchReq::Since(Arch::Sm80);
    // The more exact one comes first.
    atoms.push(tf32.ptx_scalar("cvt.rn.tf32.f32 {D}, {S};").rounded(Rounding::Nearest).cite(CVT));
    let away = away.ptx_scalar("cvt.rna.tf32.f32 {D}, {S};").rounded(Rounding::NearestAway);
    atoms.push(away.cite(CVT));
    atoms
}

#[rustfmt::skip] // One row per atom.
fn wide() -> Vec<Entry> {
    use Arch::{Sm70, Sm80};
    vec![
        ("cvt.f16.f32",      Sm70, F,  H,  1, "{D} = __float2half_rn({S});",       ONE_STEP, HALF),
        ("cvt.f16x2.f32",    Sm70, F2, H2, 2, "{D} = __float22half2_rn({S});",     ONE_STEP, HALF),
        ("cvt.bf16.f32",     Sm80, F,  B,  1, "{D} = __float2bfloat16_rn({S});",   ONE_STEP, BF16),
        ("cvt.bf16x2.f32",   Sm80, F2, B2, 2, "{D} = __float22bfloat162_rn({S});", ONE_STEP, BF16),
        ("cvt.bf16.f32.int", Sm70, F,  B,  1, BF16_OF_F32,                         ROUNDED,  BF16),
        ("cvt.f32.f16",      Sm70, H,  F,  1, "{D} = __half2float({S});",          ONE_STEP, HALF),
        ("cvt.f32.f16x2",    Sm70, H2, F2, 2, "{D} = __half22float2({S});",        ONE_STEP, HALF),
        ("cvt.f32.bf16",     Sm70, B,  F,  1, "{D} = __bfloat162float({S});",      SHIFTED,  BF16),
        ("cvt.f32.bf16x2",   Sm70, B2, F2, 2, "{D} = __bfloat1622float2({S});",    SHIFTED,  BF16),
        ("cvt.f32.f64",      Sm70, D,  F,  1, "{D} = __double2float_rn({S});",     ONE_STEP, CVT),
        ("cvt.f64.f32",      Sm70, F,  D,  1, "{D} = static_cast<double>({S});",   ONE_STEP, CVT),
        ("cvt.f16.f64",      Sm70, D,  H,  1, "{D} = __double2half({S});",         ONE_STEP, HALF),
        ("cvt.f64.f16", Sm70, H, D, 1, "{D} = static_cast<double>(__half2float({S}));", THROUGH_F32,
         HALF),
        ("cvt.f64.bf16", Sm70, B, D, 1, "{D} = static_cast<double>(__bfloat162float({S}));",
         THROUGH_F32, BF16),
        ("cvt.bf16.f16", Sm70, H, B, 1, "{D} = __float2bfloat16_rn(__half2float({S}));",
         THROUGH_F32, BF16),
        ("cvt.bf16x2.f16x2", Sm70, H2, B2, 2, "{D} = __float22bfloat162_rn(__half22float2({S}));",
         THROUGH_F32, BF16),
        ("cvt.f16x2.bf16x2", Sm70, B2, H2, 2, "{D} = __float22half2_rn(__bfloat1622float2({S}));",
         THROUGH_F32, BF16),
        ("cvt.f16.bf16", Sm70, B, H, 1, "{D} = __float2half_rn(__bfloat162float({S}));",
         THROUGH_F32, BF16),
    ]
}

#[rustfmt::skip] // One row per atom.
fn narrow() -> Vec<Entry> {
    use Arch::Sm89;
    vec![
        ("cvt.e4m3x2.f32", Sm89, F2, E4X2, 2,
         "{D} = __nv_cvt_float2_to_fp8x2({S}, __NV_SATFINITE, __NV_E4M3);", ONE_STEP, FP8),
        ("cvt.e5m2x2.f32", Sm89, F2, E5X2, 2,
         "{D} = __nv_cvt_float2_to_fp8x2({S}, __NV_SATFINITE, __NV_E5M2);", ONE_STEP, FP8),
        ("cvt.e4m3x2.f16x2", Sm89, H2, E4X2, 2,
         "{D} = __nv_cvt_halfraw2_to_fp8x2({S}, __NV_SATFINITE, __NV_E4M3);", ONE_STEP, FP8),
        ("cvt.e5m2x2.f16x2", Sm89, H2, E5X2, 2,
         "{D} = __nv_cvt_halfraw2_to_fp8x2({S}, __NV_SATFINITE, __NV_E5M2);", ONE_STEP, FP8),
        ("cvt.e4m3x2.bf16x2", Sm89, B2, E4X2, 2,
         "{D} = __nv_cvt_bfloat16raw2_to_fp8x2({S}, __NV_SATFINITE, __NV_E4M3);", THROUGH_F32, FP8),
        ("cvt.e5m2x2.bf16x2", Sm89, B2, E5X2, 2,
         "{D} = __nv_cvt_bfloat16raw2_to_fp8x2({S}, __NV_SATFINITE, __NV_E5M2);", THROUGH_F32, FP8),
        ("cvt.f16x2.e4m3x2", Sm89, E4X2, H2, 2,
         "{D} = __half2(__nv_cvt_fp8x2_to_halfraw2({S}, __NV_E4M3));", ONE_STEP, FP8),
        ("cvt.f16x2.e5m2x2", Sm89, E5X2, H2, 2,
         "{D} = __half2(__nv_cvt_fp8x2_to_halfraw2({S}, __NV_E5M2));", ONE_STEP, FP8),
        ("cvt.f32.e4m3x2", Sm89, E4X2, F2, 2,
         "{D} = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2({S}, __NV_E4M3)));", THROUGH_F16,
         FP8),
        ("cvt.f32.e5m2x2", Sm89, E5X2, F2, 2,
         "{D} = __half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2({S}, __NV_E5M2)));", THROUGH_F16,
         FP8),
        ("cvt.bf16x2.e4m3x2", Sm89, E4X2, B2, 2,
         "{D} = __float22bfloat162_rn(__half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2({S}, \
          __NV_E4M3))));", THROUGH_F16, FP8),
        ("cvt.bf16x2.e5m2x2", Sm89, E5X2, B2, 2,
         "{D} = __float22bfloat162_rn(__half22float2(__half2(__nv_cvt_fp8x2_to_halfraw2({S}, \
          __NV_E5M2))));", THROUGH_F16, FP8),
        ("cvt.e4m3.f32", Sm89, F, E4, 1,
         "{D} = __nv_cvt_float_to_fp8({S}, __NV_SATFINITE, __NV_E4M3);", ALONE, FP8),
        ("cvt.e5m2.f32", Sm89, F, E5, 1,
         "{D} = __nv_cvt_float_to_fp8({S}, __NV_SATFINITE, __NV_E5M2);", ALONE, FP8),
        ("cvt.e4m3.f16", Sm89, H, E4, 1,
         "{D} = __nv_cvt_halfraw_to_fp8({S}, __NV_SATFINITE, __NV_E4M3);", ALONE, FP8),
        ("cvt.e5m2.f16", Sm89, H, E5, 1,
         "{D} = __nv_cvt_halfraw_to_fp8({S}, __NV_SATFINITE, __NV_E5M2);", ALONE, FP8),
        ("cvt.f16.e4m3", Sm89, E4, H, 1, "{D} = __half(__nv_cvt_fp8_to_halfraw({S}, __NV_E4M3));",
         ALONE, FP8),
        ("cvt.f16.e5m2", Sm89, E5, H, 1, "{D} = __half(__nv_cvt_fp8_to_halfraw({S}, __NV_E5M2));",
         ALONE, FP8),
        ("cvt.f32.e4m3", Sm89, E4, F, 1,
         "{D} = __half2float(__half(__nv_cvt_fp8_to_halfraw({S}, __NV_E4M3)));", THROUGH_F16, FP8),
        ("cvt.f32.e5m2", Sm89, E5, F, 1,
         "{D} = __half2float(__half(__nv_cvt_fp8_to_halfraw({S}, __NV_E5M2)));", THROUGH_F16, FP8),
    ]
}
