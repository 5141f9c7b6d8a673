//! Lists the atoms of sums, differences, products, quotients, minima and maxima of two operands, on
//! one value per thread and on packed pairs of 16-bit floats. Comparisons are in `compare.rs`,
//! `and`, `or` and `xor` in `reduce.rs`.
//!
//! - Sums and products of floats use functions that the CUDA compiler never contracts to a fused
//!   multiply-add, so that each is rounded as its atom says. Atoms with `contract` in their name
//!   are the exception.
//! - Before sm_90 there is no addition or multiplication of bfloat16. The functions then compile to
//!   one fused multiply-add with a factor of 1 or a summand of −0, whose rounded result is equal.
//! - For a NaN and a number, min and max return the number; minimum and maximum return the NaN.
//! - Quotients of f32 and f64 are rounded once, except in atoms with `approx` or `full` in their
//!   name.
//! - Quotients of 16-bit types are computed in f32, with an error far below half an ulp of the
//!   16-bit type, and rounded once more: within 1 ulp.
//! - Atoms for a quotient of floats by a literal multiply by its reciprocal. If the literal is a
//!   power of two, the product equals the quotient.
//! - Integers wrap: the C++ text adds and multiplies unsigned numbers.
//! - Quotients of integers round toward zero. For B = 0 all bits of the result are ones. The
//!   smallest number divided by −1 is itself. PTX leaves both cases undefined, so the text selects
//!   these results.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Cost, Elem, Rounding};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::error_bound::ErrorBound;
use crate::limits::{Timing, limits};
use crate::operand::Divisor;
use carbyne_ir::ast::BinaryOp::{self, Add, Div, Max, Maximum, Min, Minimum, Mul, Sub};
use carbyne_ir::scalar::Scalar::{self, Bf16, F16, F32, F64, I32, I64, U32, U64};

const PTX: &str = "PTX ISA, Floating Point Instructions: add, sub, mul, div, min, max";
const PTX_HALF: &str =
    "PTX ISA, Half Precision Floating Point Instructions: add, sub, mul, min, max";
const PTX_INT: &str = "PTX ISA, Integer Arithmetic Instructions: add, sub, mul, min, max";
const INT_DIV: &str = "PTX ISA, Integer Arithmetic Instructions: div";
const HALF_DIV: &str = "CUDA Math API, Half Arithmetic Functions: __hdiv, __h2div";
const BF16_DIV: &str = "CUDA Math API, Bfloat16 Arithmetic Functions: __hdiv, __h2div";
const HALF_NAN: &str =
    "CUDA Math API, Half Comparison Functions: __hmin_nan, __hmax_nan, __hmin2_nan, __hmax2_nan";
const BF16_NAN: &str = "CUDA Math API, Bfloat16 Comparison Functions: __hmin_nan, __hmax_nan, \
                        __hmin2_nan, __hmax2_nan";
const FAST_DIV: &str = "CUDA Math API, Single Precision Intrinsics: __fdividef";

const FULL_DIV: &str = "PTX ISA, Floating Point Instructions: div";

const CONTRACTED: &str = "NVRTC, Supported Compile Options: --fmad";

/// The error of `__fdividef`, which returns 0 or NaN for larger divisors.
const FAST: ErrorBound =
    ErrorBound::f32_ulps(2.0).within(f32::MIN_POSITIVE as f64, 1.0 / f32::MIN_POSITIVE as f64);

/// Scalar type, number of values, C++ type.
type Type = (Scalar, i64, &'static str);

const F: Type = (F32, 1, "float");
const D: Type = (F64, 1, "double");
const H: Type = (F16, 1, "__half");
const H2: Type = (F16, 2, "__half2");
const B: Type = (Bf16, 1, "__nv_bfloat16");
const B2: Type = (Bf16, 2, "__nv_bfloat162");
const I: Type = (I32, 1, "int");
const U: Type = (I32, 1, "unsigned");
const N: Type = (U32, 1, "unsigned");
const L: Type = (I64, 1, "long long");
const LW: Type = (I64, 1, "unsigned long long");
const W: Type = (U64, 1, "unsigned long long");

fn binary_atom(
    name: &'static str,
    first: Arch,
    op: BinaryOp,
    ty: Type,
    cuda: &'static str,
    cost: Cost,
) -> Atom {
    let (scalar, n, cxx) = ty;
    let elem = Elem::Scalar(scalar);
    let (tile, tv) = if n == 1 { ([1], ONE) } else { ([2], PAIR) };
    let rounding = if matches!(op, Min | Max | Minimum | Maximum) || !scalar.is_float() {
        Rounding::Exact
    } else {
        Rounding::Nearest
    };
    atom(name, ArchReq::Since(first), AtomOp::Binary(op), cost)
        .operands([
            r(("A", elem, RF, &tile, tv)).through(cxx),
            r(("B", elem, RF, &tile, tv)).through(cxx),
            w(("D", elem, RF, &tile, tv)).through(cxx),
        ])
        .cuda(cuda)
        .rounded(rounding)
}

#[rustfmt::skip] // One row per atom.
pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let mut atoms = instructions(arch);
    // Quotients are sequences of a reciprocal and corrections.
    let quotients = [
        ("div.approx.f32", Sm70, F, 2, "{D} = __fdividef({A}, {B});", Some(FAST), "A·(1/B)",
         "2 ulp where 2^-126 <= |B| <= 2^126; beyond, 0 or NaN", FAST_DIV),
        ("div.f16", Sm70, H, 6, "{D} = __hdiv({A}, {B});", Some(ErrorBound::f16_ulps(1.0)),
         "A/B in f32", "1 ulp", HALF_DIV),
        ("div.f16x2", Sm70, H2, 9, "{D} = __h2div({A}, {B});", Some(ErrorBound::f16_ulps(1.0)),
         "A/B in f32", "1 ulp", HALF_DIV),
        ("div.bf16", Sm80, B, 6, "{D} = __hdiv({A}, {B});", Some(ErrorBound::bf16_ulps(1.0)),
         "A/B in f32", "1 ulp", BF16_DIV),
        ("div.s32", Sm70, I, 24,
         "{D} = {B} == 0 ? -1 : {B} == -1 ? static_cast<int>(0u - static_cast<unsigned>({A})) : \
          {A} / {B};", None, "a reciprocal in f32, corrected; selections", "none", INT_DIV),
        ("div.u32", Sm70, N, 20, "{D} = {B} == 0u ? 0xffffffffu : {A} / {B};", None,
         "a reciprocal in f32, corrected; a selection", "none", INT_DIV),
        ("div.bf16x2", Sm80, B2, 9, "{D} = __h2div({A}, {B});", Some(ErrorBound::bf16_ulps(1.0)),
         "A/B in f32", "1 ulp", BF16_DIV),
    ];
    let calling = [
        ("div.f32", F,  8, "{D} = __fdiv_rn({A}, {B});", t.f32_lanes),
        ("div.f64", D,  8, "{D} = __ddiv_rn({A}, {B});", t.f64_lanes),
    ];
    atoms.extend(calling.into_iter().map(|(name, ty, n, cuda, lanes)| {
        binary_atom(name, Sm70, Div, ty, cuda, t.chain(lanes, ty.1, n))
            .sequence("A/B, rounded once", "none").calling().cite(PTX)
    }));
    let calling = [
        ("div.s64", L, 80,
         "{D} = {B} == 0 ? -1ll : {B} == -1 ? static_cast<long long>(0ull - static_cast<unsigned \
          long long>({A})) : {A} / {B};"),
        ("div.u64", W, 70, "{D} = {B} == 0ull ? ~0ull : {A} / {B};"),
    ];
    atoms.extend(calling.into_iter().map(|(name, ty, n, cuda)| {
        let atom = binary_atom(name, Sm70, Div, ty, cuda, t.chain(t.int_lanes, ty.1, n));
        let formula = "a reciprocal in f32, corrected twice; selections";
        atom.sequence(formula, "none").calling().cite(INT_DIV)
    }));
    atoms.extend(by_literals(arch));
    atoms.extend(quotients.into_iter().map(|row| {
        let (name, first, ty, n, cuda, bound, formula, error, cite) = row;
        let atom = binary_atom(name, first, Div, ty, cuda, t.chain(t.f32_lanes, ty.1, n));
        let atom = atom.sequence(formula, error).cite(cite);
        match bound {
            Some(bound) => atom.rounded(Rounding::Approximate(bound)),
            None => atom,
        }
    }));
    atoms.push(
        atom("div.full.f32", ArchReq::Since(Sm70), AtomOp::Binary(Div), t.chain(t.f32_lanes, 1, 5))
            .operands([
                r(("A", Elem::Scalar(F32), RF, &[1], ONE)),
                r(("B", Elem::Scalar(F32), RF, &[1], ONE)),
                w(("D", Elem::Scalar(F32), RF, &[1], ONE)),
            ])
            .ptx_scalar("div.full.f32 {D}, {A}, {B};")
            .sequence("A·(1/B), scaled if B is very large or very small", "2 ulp")
            .rounded(Rounding::Approximate(ErrorBound::f32_ulps(2.0)))
            .cite(FULL_DIV),
    );
    let contracted = [
        ("add.contract.f32", Add, F, "{D} = {A} + {B};", t.f32_lanes, ErrorBound::f32_ulps(0.5)),
        ("sub.contract.f32", Sub, F, "{D} = {A} - {B};", t.f32_lanes, ErrorBound::f32_ulps(0.5)),
        ("mul.contract.f32", Mul, F, "{D} = {A} * {B};", t.f32_lanes, ErrorBound::f32_ulps(0.5)),
        ("add.contract.f64", Add, D, "{D} = {A} + {B};", t.f64_lanes, ErrorBound::f64_ulps(0.5)),
        ("sub.contract.f64", Sub, D, "{D} = {A} - {B};", t.f64_lanes, ErrorBound::f64_ulps(0.5)),
        ("mul.contract.f64", Mul, D, "{D} = {A} * {B};", t.f64_lanes, ErrorBound::f64_ulps(0.5)),
    ];
    atoms.extend(contracted.into_iter().map(|(name, op, ty, cuda, lanes, bound)| {
        let atom = binary_atom(name, Sm70, op, ty, cuda, t.pointwise(lanes, ty.1));
        Atom { contracts: true, ..atom.rounded(Rounding::Approximate(bound)).cite(CONTRACTED) }
    }));
    let choices = [
        ("min.f64", Min, D, 3, "{D} = fmin({A}, {B});", "a comparison and selections", PTX,
         t.f64_lanes),
        ("max.f64", Max, D, 3, "{D} = fmax({A}, {B});", "a comparison and selections", PTX,
         t.f64_lanes),
        ("add.s64", Add, LW, 2, "{D} = {A} + {B};",
         "the lower halves, then the upper ones with the carry", PTX_INT, t.int_lanes),
        ("sub.s64", Sub, LW, 2, "{D} = {A} - {B};",
         "the lower halves, then the upper ones with the borrow", PTX_INT, t.int_lanes),
        ("mul.s64", Mul, LW, 4, "{D} = {A} * {B};", "products of 32 bits and their sums", PTX_INT,
         t.int_lanes),
        ("min.s64", Min, L, 4, "{D} = min({A}, {B});", "a comparison and selections", PTX_INT,
         t.int_lanes),
        ("max.s64", Max, L, 4, "{D} = max({A}, {B});", "a comparison and selections", PTX_INT,
         t.int_lanes),
        ("add.u64", Add, W, 2, "{D} = {A} + {B};",
         "the lower halves, then the upper ones with the carry", PTX_INT, t.int_lanes),
        ("sub.u64", Sub, W, 2, "{D} = {A} - {B};",
         "the lower halves, then the upper ones with the borrow", PTX_INT, t.int_lanes),
        ("mul.u64", Mul, W, 4, "{D} = {A} * {B};", "products of 32 bits and their sums", PTX_INT,
         t.int_lanes),
        ("min.u64", Min, W, 4, "{D} = min({A}, {B});", "a comparison and selections", PTX_INT,
         t.int_lanes),
        ("max.u64", Max, W, 4, "{D} = max({A}, {B});", "a comparison and selections", PTX_INT,
         t.int_lanes),
        ("min.f16.by_f32", Min, H, 4,
         "{D} = __float2half_rn(fminf(__half2float({A}), __half2float({B})));",
         "by f32, which is exact", PTX, t.convert_lanes),
        ("min.f16x2.by_f32", Min, H2, 8,
         "{D} = __floats2half2_rn(fminf(__low2float({A}), __low2float({B})), \
          fminf(__high2float({A}), __high2float({B})));", "by f32, which is exact", PTX,
         t.convert_lanes),
        ("max.f16.by_f32", Max, H, 4,
         "{D} = __float2half_rn(fmaxf(__half2float({A}), __half2float({B})));",
         "by f32, which is exact", PTX, t.convert_lanes),
        ("max.f16x2.by_f32", Max, H2, 8,
         "{D} = __floats2half2_rn(fmaxf(__low2float({A}), __low2float({B})), \
          fmaxf(__high2float({A}), __high2float({B})));", "by f32, which is exact", PTX,
         t.convert_lanes),
    ];
    atoms.extend(keeping_nan(t));
    atoms.extend(choices.into_iter().map(|(name, op, ty, n, cuda, formula, cite, lanes)| {
        let atom = binary_atom(name, Sm70, op, ty, cuda, t.chain(lanes, ty.1, n));
        atom.sequence(formula, "none").cite(cite)
    }));
    atoms
}

/// Minimum and maximum of floats that return a NaN if an operand is one. For f32 there is an
/// instruction since sm_80. Otherwise the atom selects the sum of the operands, which is NaN if one
/// of them is.
fn keeping_nan(t: &Timing) -> Vec<Atom> {
    let mut atoms = vec![];
    for (name, op, ptx) in [
        ("min.NaN.f32", Minimum, "min.NaN.f32 {D}, {A}, {B};"),
        ("max.NaN.f32", Maximum, "max.NaN.f32 {D}, {A}, {B};"),
    ] {
        let elem = Elem::Scalar(F32);
        let cost = t.pointwise(t.int_lanes, 1);
        let atom = atom(name, ArchReq::Since(Arch::Sm80), AtomOp::Binary(op), cost).operands([
            r(("A", elem, RF, &[1], ONE)),
            r(("B", elem, RF, &[1], ONE)),
            w(("D", elem, RF, &[1], ONE)),
        ]);
        atoms.push(atom.ptx_scalar(ptx).cite(PTX));
    }
    let selected = "a comparison, the sum for a NaN, and a selection";
    atoms.extend(KEPT.into_iter().map(|(name, op, ty, n, cuda)| {
        let lanes = if ty.0 == F64 { t.f64_lanes } else { t.f32_lanes };
        let atom = binary_atom(name, Arch::Sm70, op, ty, cuda, t.chain(lanes, ty.1, n));
        atom.sequence(selected, "none").cite(PTX)
    }));
    atoms
}

#[rustfmt::skip] // One row per atom.
const KEPT: [(&str, BinaryOp, Type, i64, &str); 6] = [
    ("min.NaN.f32.selected", Minimum, F, 4,
     "{D} = {A} != {A} || {B} != {B} ? __fadd_rn({A}, {B}) : fminf({A}, {B});"),
    ("max.NaN.f32.selected", Maximum, F, 4,
     "{D} = {A} != {A} || {B} != {B} ? __fadd_rn({A}, {B}) : fmaxf({A}, {B});"),
    ("min.NaN.f64.selected", Minimum, D, 5,
     "{D} = {A} != {A} || {B} != {B} ? __dadd_rn({A}, {B}) : fmin({A}, {B});"),
    ("max.NaN.f64.selected", Maximum, D, 5,
     "{D} = {A} != {A} || {B} != {B} ? __dadd_rn({A}, {B}) : fmax({A}, {B});"),
    ("min.NaN.f16.selected", Minimum, H, 6,
     "{D} = __hisnan({A}) || __hisnan({B}) ? __hadd_rn({A}, {B}) : \
      __float2half_rn(fminf(__half2float({A}), __half2float({B})));"),
    ("max.NaN.f16.selected", Maximum, H, 6,
     "{D} = __hisnan({A}) || __hisnan({B}) ? __hadd_rn({A}, {B}) : \
      __float2half_rn(fmaxf(__half2float({A}), __half2float({B})));"),
];

/// Quotients by literals: products by reciprocals that are computed at compile time.
#[rustfmt::skip] // One row per atom.
fn by_literals(arch: Arch) -> impl Iterator<Item = Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    const SINGLE: &str = "A·(1/B)";
    // The reciprocal and the product are both rounded: 2^-24 + 2^-24 for f32, and similarly for the
    // other types.
    let (f, d) = (ErrorBound::f32_ulps(1.0), ErrorBound::f64_ulps(1.0));
    let (h, b) = (ErrorBound::f16_ulps(1.0), ErrorBound::bf16_ulps(1.0));
    let atoms = [
        ("div.pow2.f32", "div.literal.f32", Sm70, F, "{D} = __fmul_rn({A}, {B.reciprocal});",
         t.f32_lanes, f, PTX),
        ("div.pow2.f64", "div.literal.f64", Sm70, D, "{D} = __dmul_rn({A}, {B.reciprocal});",
         t.f64_lanes, d, PTX),
        ("div.pow2.f16", "div.literal.f16", Sm70, H, "{D} = __hmul_rn({A}, {B.reciprocal});",
         t.f16_lanes, h, PTX_HALF),
        ("div.pow2.f16x2", "div.literal.f16x2", Sm70, H2,
         "{D} = __hmul2_rn({A}, __half2half2({B.reciprocal}));", t.f16_lanes, h, PTX_HALF),
        ("div.pow2.bf16", "div.literal.bf16", Sm80, B, "{D} = __hmul_rn({A}, {B.reciprocal});",
         t.bf16_lanes, b, PTX_HALF),
        ("div.pow2.bf16x2", "div.literal.bf16x2", Sm80, B2,
         "{D} = __hmul2_rn({A}, __bfloat162bfloat162({B.reciprocal}));", t.bf16_lanes, b, PTX_HALF),
    ];
    atoms.into_iter().flat_map(move |(exact, any, first, ty, cuda, lanes, bound, cite)| {
        let of = |name, divisor| {
            let cost = t.pointwise(lanes, ty.1);
            let mut atom = binary_atom(name, first, Div, ty, cuda, cost).cite(cite);
            atom.operands[1].divisor = Some(divisor);
            atom
        };
        let error = "1 ulp: both 1/B and the product are rounded";
        let any = of(any, Divisor::Any).sequence(SINGLE, error);
        [of(exact, Divisor::PowerOfTwo), any.rounded(Rounding::Approximate(bound))]
    })
}

#[rustfmt::skip] // One row per atom.
fn instructions(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm80};
    let t = &limits(arch).timing;
    let atoms = [
        ("add.f32",      Sm70, Add,     F,  "{D} = __fadd_rn({A}, {B});",  t.f32_lanes,  PTX),
        ("sub.f32",      Sm70, Sub,     F,  "{D} = __fsub_rn({A}, {B});",  t.f32_lanes,  PTX),
        ("mul.f32",      Sm70, Mul,     F,  "{D} = __fmul_rn({A}, {B});",  t.f32_lanes,  PTX),
        ("min.f32",      Sm70, Min,     F,  "{D} = fminf({A}, {B});",      t.int_lanes,  PTX),
        ("max.f32",      Sm70, Max,     F,  "{D} = fmaxf({A}, {B});",      t.int_lanes,  PTX),
        ("add.f64",      Sm70, Add,     D,  "{D} = __dadd_rn({A}, {B});",  t.f64_lanes,  PTX),
        ("sub.f64",      Sm70, Sub,     D,  "{D} = __dsub_rn({A}, {B});",  t.f64_lanes,  PTX),
        ("mul.f64",      Sm70, Mul,     D,  "{D} = __dmul_rn({A}, {B});",  t.f64_lanes,  PTX),
        ("add.f16",      Sm70, Add,     H,  "{D} = __hadd_rn({A}, {B});",  t.f16_lanes,  PTX_HALF),
        ("sub.f16",      Sm70, Sub,     H,  "{D} = __hsub_rn({A}, {B});",  t.f16_lanes,  PTX_HALF),
        ("mul.f16",      Sm70, Mul,     H,  "{D} = __hmul_rn({A}, {B});",  t.f16_lanes,  PTX_HALF),
        ("min.f16",      Sm80, Min,     H,  "{D} = __hmin({A}, {B});",     t.f16_lanes,  PTX_HALF),
        ("max.f16",      Sm80, Max,     H,  "{D} = __hmax({A}, {B});",     t.f16_lanes,  PTX_HALF),
        ("add.f16x2",    Sm70, Add,     H2, "{D} = __hadd2_rn({A}, {B});", t.f16_lanes,  PTX_HALF),
        ("sub.f16x2",    Sm70, Sub,     H2, "{D} = __hsub2_rn({A}, {B});", t.f16_lanes,  PTX_HALF),
        ("mul.f16x2",    Sm70, Mul,     H2, "{D} = __hmul2_rn({A}, {B});", t.f16_lanes,  PTX_HALF),
        ("min.f16x2",    Sm80, Min,     H2, "{D} = __hmin2({A}, {B});",    t.f16_lanes,  PTX_HALF),
        ("max.f16x2",    Sm80, Max,     H2, "{D} = __hmax2({A}, {B});",    t.f16_lanes,  PTX_HALF),
        ("add.bf16",     Sm80, Add,     B,  "{D} = __hadd_rn({A}, {B});",  t.bf16_lanes, PTX_HALF),
        ("sub.bf16",     Sm80, Sub,     B,  "{D} = __hsub_rn({A}, {B});",  t.bf16_lanes, PTX_HALF),
        ("mul.bf16",     Sm80, Mul,     B,  "{D} = __hmul_rn({A}, {B});",  t.bf16_lanes, PTX_HALF),
        ("min.bf16",     Sm80, Min,     B,  "{D} = __hmin({A}, {B});",     t.bf16_lanes, PTX_HALF),
        ("max.bf16",     Sm80, Max,     B,  "{D} = __hmax({A}, {B});",     t.bf16_lanes, PTX_HALF),
        ("add.bf16x2",   Sm80, Add,     B2, "{D} = __hadd2_rn({A}, {B});", t.bf16_lanes, PTX_HALF),
        ("sub.bf16x2",   Sm80, Sub,     B2, "{D} = __hsub2_rn({A}, {B});", t.bf16_lanes, PTX_HALF),
        ("mul.bf16x2",   Sm80, Mul,     B2, "{D} = __hmul2_rn({A}, {B});", t.bf16_lanes, PTX_HALF),
        ("min.bf16x2",   Sm80, Min,     B2, "{D} = __hmin2({A}, {B});",    t.bf16_lanes, PTX_HALF),
        ("max.bf16x2",   Sm80, Max,     B2, "{D} = __hmax2({A}, {B});",    t.bf16_lanes, PTX_HALF),
        ("min.NaN.f16",  Sm80, Minimum, H,  "{D} = __hmin_nan({A}, {B});", t.f16_lanes,  HALF_NAN),
        ("max.NaN.f16",  Sm80, Maximum, H,  "{D} = __hmax_nan({A}, {B});", t.f16_lanes,  HALF_NAN),
        ("min.NaN.f16x2", Sm80, Minimum, H2, "{D} = __hmin2_nan({A}, {B});", t.f16_lanes, HALF_NAN),
        ("max.NaN.f16x2", Sm80, Maximum, H2, "{D} = __hmax2_nan({A}, {B});", t.f16_lanes, HALF_NAN),
        ("min.NaN.bf16", Sm80, Minimum, B,  "{D} = __hmin_nan({A}, {B});", t.bf16_lanes, BF16_NAN),
        ("max.NaN.bf16", Sm80, Maximum, B,  "{D} = __hmax_nan({A}, {B});", t.bf16_lanes, BF16_NAN),
        ("min.NaN.bf16x2", Sm80, Minimum, B2, "{D} = __hmin2_nan({A}, {B});", t.bf16_lanes,
         BF16_NAN),
        ("max.NaN.bf16x2", Sm80, Maximum, B2, "{D} = __hmax2_nan({A}, {B});", t.bf16_lanes,
         BF16_NAN),
        ("add.s32",      Sm70, Add,     U,  "{D} = {A} + {B};",            t.int_lanes,  PTX_INT),
        ("sub.s32",      Sm70, Sub,     U,  "{D} = {A} - {B};",            t.int_lanes,  PTX_INT),
        ("mul.s32",      Sm70, Mul,     U,  "{D} = {A} * {B};",            t.int_lanes,  PTX_INT),
        ("min.s32",      Sm70, Min,     I,  "{D} = min({A}, {B});",        t.int_lanes,  PTX_INT),
        ("max.s32",      Sm70, Max,     I,  "{D} = max({A}, {B});",        t.int_lanes,  PTX_INT),
        ("add.u32",      Sm70, Add,     N,  "{D} = {A} + {B};",            t.int_lanes,  PTX_INT),
        ("sub.u32",      Sm70, Sub,     N,  "{D} = {A} - {B};",            t.int_lanes,  PTX_INT),
        ("mul.u32",      Sm70, Mul,     N,  "{D} = {A} * {B};",            t.int_lanes,  PTX_INT),
        ("min.u32",      Sm70, Min,     N,  "{D} = min({A}, {B});",        t.int_lanes,  PTX_INT),
        ("max.u32",      Sm70, Max,     N,  "{D} = max({A}, {B});",        t.int_lanes,  PTX_INT),
    ];
    atoms.into_iter()
        .map(|(name, first, op, ty, cuda, lanes, cite)| {
            binary_atom(name, first, op, ty, cuda, t.pointwise(lanes, ty.1)).cite(cite)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::AtomTable;

    /// Pseudo-random f32 numbers of every magnitude, equal in every run.
    fn numbers(n: usize) -> impl Iterator<Item = f32> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            f32::from_bits((state >> 32) as u32)
        };
        std::iter::repeat_with(next).filter(|x| x.is_finite()).take(n)
    }

    #[test]
    fn products_by_reciprocals_are_quotients_as_exact_as_is_stated() {
        let table = AtomTable::new(Arch::Sm80);
        let bound =
            table.get("div.literal.f32").and_then(Atom::error_bound).expect("it states one");
        let all: Vec<f32> = numbers(400_000).collect();
        let (mut any, mut powers) = (0, 0);
        for pair in all.chunks_exact(2) {
            let (x, by) = (pair[0], pair[1]);
            let exact = f64::from(x) / f64::from(by);
            let product = x * ((1.0 / f64::from(by)) as f32);
            if Divisor::Any.allows(f64::from(by), F32) && product.is_finite() {
                let error = (f64::from(product) - exact).abs();
                // Subnormal operands and results are as exact as others here.
                assert!(error <= bound.at(f64::from(x), exact), "{x:e} / {by:e}: {error:e}");
                any += 1;
            }
            let power = f32::from_bits(by.to_bits() & 0xff80_0000);
            if Divisor::PowerOfTwo.allows(f64::from(power), F32) {
                let product = x * ((1.0 / f64::from(power)) as f32);
                assert_eq!(product.to_bits(), (x / power).to_bits(), "{x:e} / {power:e}");
                powers += 1;
            }
        }
        assert!(any > 100_000 && powers > 100_000, "{any} {powers}");
    }

    #[test]
    fn divisors_have_normal_reciprocals() {
        let allows = |d: Divisor, n: f64, s| d.allows(n, s);
        assert!(allows(Divisor::PowerOfTwo, 8.0, F32) && allows(Divisor::PowerOfTwo, -0.25, F16));
        for n in [0.0, 3.0, f64::NAN, f64::INFINITY, 2f64.powi(127), 2f64.powi(-127)] {
            assert!(!allows(Divisor::PowerOfTwo, n, F32), "{n}");
        }
        assert!(allows(Divisor::Any, 3.0, F32) && allows(Divisor::Any, 1e-300, F64));
        for (n, scalar) in [(0.0, F32), (1e39, F32), (20_000.0, F16), (1e-5, F16), (3.0, I32)] {
            assert!(!allows(Divisor::Any, n, scalar), "{n}");
        }
    }
}
