//! Lists the atoms of functions that are not rounded once: transcendental functions, approximate
//! roots and reciprocals, and activations. They are approximate instructions, library functions, or
//! formulas. Every atom states its error, from which the tolerances of comparisons follow.
//!
//! The instructions keep subnormal numbers if such a variant exists, except in atoms named `ftz`.
//! In `ex2.approx` this takes three more instructions. "Ulp" in an atom's error is an ulp of its
//! type; see [`crate::error_bound`]. Errors of library functions come from the CUDA C++ Programming
//! Guide; NVIDIA found them by tests. Errors of formulas follow from the errors of their parts:
//! - sigmoid: with e = exp(−x)(1 + d), 1/(1 + e) has the relative error d·e/(1 + e) ≤ d, plus the
//!   roundings of the sum and of the reciprocal. If exp(−x) overflows, the result is 0 instead of a
//!   number below 2⁻¹²⁶.
//! - silu: one more rounding. If the sigmoid becomes 0, the error is |x|·2⁻¹²⁶ with |x| < 90.
//! - gelu as x/2·erfc(−x/√2): the relative condition of erfc at z is below 2z² + 2, and the
//!   argument has two roundings. With z² = x²/2, and because erfc underflows at |x| = 14.3, the
//!   error is below (14.3·|x| + 2) ulp, plus 4 ulp of erfcf and 2 of the products. For f64 the
//!   limit is |x| = 38.5, and erfc has 5 ulp.
//! - gelu as x·Φ(x), Φ(−|x|) = 2^P(|x|): P is a polynomial of degree 9 within 2.6·10⁻⁵ of log2
//!   Φ(−t) for t in [0, 13], which makes 1.8·10⁻⁵ of the result. P reaches 126, so that its
//!   roundings add 4·10⁻⁵. Beyond 13, Φ is below 2⁻¹²⁶.
//! - sigmoid as (1 + tanh(x/2))/2: half of tanh's error, which is relative to |tanh| ≤ 1, plus one
//!   rounding.
//!
//! On an H100 no error exceeds its bound, for all 2^16 operands of every function of f16 or bf16,
//! and for about 2^16 operands of every magnitude of functions of f32 and f64
//! (`carbyne atoms verify`, `docs/atoms_h100.md`).

use crate::arch::Arch;
use crate::atom::{Atom, Cost, Rounding};
use crate::error_bound::{BF16_ULP, ErrorBound, F16_ULP, F32_NORMAL, F32_ULP};
use crate::limits::limits;
use crate::unary::{B, B2, D, F, H, H2, Type, unary_atom};
use carbyne_ir::ast::UnaryOp::{self, Exp, Exp2, Gelu, Log, Rcp, Rsqrt, Sigmoid, Silu, Sqrt, Tanh};
use carbyne_ir::scalar::Scalar::F64;

const EX2: &str = "PTX ISA, Floating Point Instructions: ex2";
const EX2_HALF: &str = "PTX ISA, Half Precision Floating Point Instructions: ex2";
const TANH: &str = "PTX ISA, Floating Point Instructions: tanh";
const TANH_HALF: &str = "PTX ISA, Half Precision Floating Point Instructions: tanh";
const SQRT: &str = "PTX ISA, Floating Point Instructions: sqrt";
const RSQRT: &str = "PTX ISA, Floating Point Instructions: rsqrt";
const RCP: &str = "PTX ISA, Floating Point Instructions: rcp";
const LIBRARY: &str = "CUDA C++ Programming Guide, Mathematical Functions: Standard Functions";
const INTRINSIC: &str = "CUDA C++ Programming Guide, Mathematical Functions: Intrinsic Functions";
const HALF: &str = "CUDA Math API, Half Math Functions and Half2 Math Functions";
const BF16: &str = "CUDA Math API, Bfloat16 Math Functions and Bfloat162 Math Functions";

/// A bound relative to the result.
const fn relative(relative: f64) -> ErrorBound {
    ErrorBound::relative(relative)
}

/// A bound that does not depend on the result.
const fn absolute(absolute: f64) -> ErrorBound {
    ErrorBound::relative(0.0).plus(absolute)
}

/// x·Φ(x) by a polynomial for log2 Φ(−|x|). The polynomial has the least maximum error for degree 9
/// on [0, 13]. It was found by weighted least squares, with weights multiplied by the error until
/// the error is equal everywhere.
const GELU: &str = "{{
.reg .f32 t, p, q;
.reg .pred negative;
abs.f32 t, {S};
min.f32 t, t, 0f41500000;
fma.rn.f32 p, t, 0fB10A4A5B, 0f341C0054;
fma.rn.f32 p, p, t, 0fB69AEE7E;
fma.rn.f32 p, p, t, 0f38B35E97;
fma.rn.f32 p, p, t, 0fBA87949D;
fma.rn.f32 p, p, t, 0f3C0EEC39;
fma.rn.f32 p, p, t, 0fBD5D8C4E;
fma.rn.f32 p, p, t, 0fBEEAD260;
fma.rn.f32 p, p, t, 0fBF9355A4;
fma.rn.f32 p, p, t, 0fBF8000D8;
ex2.approx.ftz.f32 p, p;
sub.f32 q, 0f3F800000, p;
setp.lt.f32 negative, {S}, 0f00000000;
selp.f32 p, p, q, negative;
mul.f32 {D}, {S}, p;
}}";

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let mut atoms = instructions(arch);
    atoms.extend(sequences(arch));
    atoms
}

#[rustfmt::skip] // One row per atom.
fn instructions(arch: Arch) -> Vec<Atom> {
    use Arch::{Sm70, Sm75, Sm90};
    let t = &limits(arch).timing;
    let one = t.special_lanes;
    let two = t.special_lanes / 2.0;
    // 2^-10.987 and 2^-9.9, rounded up.
    let (tanh16, ex16) = (absolute(4.93e-4), relative(1.047e-3).plus(1.0 / 16_777_216.0));
    // The PTX ISA states 2^-8. On an H100 two of the 2^16 operands exceed it, by 3e-7 at |x| =
    // 0.74609375.
    let tanhb = absolute(3.907e-3);
    let atoms = [
        ("exp2.approx.ftz.f32", Sm70, Exp2, F, one, "ex2.approx.ftz.f32 {D}, {S};",
         ErrorBound::f32_ulps(2.0).plus(F32_NORMAL), EX2),
        ("sqrt.approx.f32", Sm70, Sqrt, F, one, "sqrt.approx.f32 {D}, {S};",
         ErrorBound::f32_ulps(1.0), SQRT),
        ("rsqrt.approx.f32", Sm70, Rsqrt, F, one, "rsqrt.approx.f32 {D}, {S};",
         relative(1.072 * F32_ULP), RSQRT),
        ("rcp.approx.f32", Sm70, Rcp, F, one, "rcp.approx.f32 {D}, {S};", ErrorBound::f32_ulps(1.0),
         RCP),
        ("tanh.approx.f32", Sm75, Tanh, F, one, "tanh.approx.f32 {D}, {S};", relative(1.0 / 2048.0),
         TANH),
        ("exp2.approx.f16",   Sm75, Exp2, H,  one, "ex2.approx.f16 {D}, {S};",   ex16,   EX2_HALF),
        ("exp2.approx.f16x2", Sm75, Exp2, H2, two, "ex2.approx.f16x2 {D}, {S};", ex16,   EX2_HALF),
        ("tanh.approx.f16",   Sm75, Tanh, H,  one, "tanh.approx.f16 {D}, {S};",  tanh16, TANH_HALF),
        ("tanh.approx.f16x2", Sm75, Tanh, H2, two, "tanh.approx.f16x2 {D}, {S};", tanh16,
         TANH_HALF),
        ("exp2.approx.bf16", Sm90, Exp2, B, one, "ex2.approx.ftz.bf16 {D}, {S};",
         relative(BF16_ULP).plus(F32_NORMAL), EX2_HALF),
        ("exp2.approx.bf16x2", Sm90, Exp2, B2, two, "ex2.approx.ftz.bf16x2 {D}, {S};",
         relative(BF16_ULP).plus(F32_NORMAL), EX2_HALF),
        ("tanh.approx.bf16",  Sm90, Tanh, B,  one, "tanh.approx.bf16 {D}, {S};", tanhb,  TANH_HALF),
        ("tanh.approx.bf16x2", Sm90, Tanh, B2, two, "tanh.approx.bf16x2 {D}, {S};", tanhb,
         TANH_HALF),
    ];
    let mut atoms: Vec<Atom> = atoms
        .into_iter()
        .map(|(name, first, op, ty, lanes, ptx, bound, cite)| {
            unary_atom(name, first, op, ty, t.pointwise(lanes, ty.1))
                .ptx_scalar(ptx)
                .rounded(Rounding::Approximate(bound))
                .cite(cite)
        })
        .collect();
    // A comparison and two products scale results to subnormal numbers.
    let issue_cycles = t.pointwise(one, 1).issue_cycles + 3.0;
    let scaled = Cost { issue_cycles, ..t.chain(one, 1, 2) };
    atoms.push(
        unary_atom("exp2.approx.f32", Sm70, Exp2, F, scaled)
            .ptx_scalar("ex2.approx.f32 {D}, {S};")
            .rounded(Rounding::Approximate(ErrorBound::f32_ulps(2.0)))
            .cite(EX2),
    );
    atoms.push(
        unary_atom("exp.approx.ftz.f32", Sm70, Exp, F, t.pointwise(one, 1))
            .ptx_scalar("mul.f32 {D}, {S}, 0f3FB8AA3B; ex2.approx.ftz.f32 {D}, {D};")
            .sequence("ex2.approx.ftz(S/ln 2)", "2 + 1.173·|S| ulp")
            .rounded(Rounding::Approximate(
                ErrorBound::f32_ulps(2.0).sloped(1.173).plus(F32_NORMAL),
            ))
            .cite(EX2),
    );
    // One instruction of the special function unit, and 15 others.
    let polynomial = Cost { completion_cycles: 16.0 * t.math_cycles, ..t.chain(one, 1, 2) };
    atoms.push(
        unary_atom("gelu.approx.f32", Sm70, Gelu, F, polynomial)
            .ptx_scalar(GELU)
            .sequence("S·Φ(S), Φ(-|S|) = ex2.approx.ftz of a polynomial of degree 9", "2^-13")
            .rounded(Rounding::Approximate(relative(1.0 / 8192.0).plus(13.0 * F32_NORMAL)))
            .cite(EX2),
    );
    atoms.push(
        unary_atom("sigmoid.tanh.f32", Sm75, Sigmoid, F, t.chain(one, 1, 2))
            .ptx_scalar(
                "mul.f32 {D}, {S}, 0f3F000000; tanh.approx.f32 {D}, {D}; \
                 fma.rn.f32 {D}, {D}, 0f3F000000, 0f3F000000;",
            )
            .sequence("(1 + tanh(S/2))/2", "half of the 2^-11 of tanh.approx, and one rounding")
            .rounded(Rounding::Approximate(absolute(1.0 / 4096.0 + F32_ULP)))
            .cite(TANH),
    );
    atoms.push(
        unary_atom("sigmoid.tanh.f16x2", Sm75, Sigmoid, H2, t.chain(two, 2, 2))
            .cuda_through(
                "{D} = __hfma2(h2tanh_approx(__hmul2_rn({S}, __float2half2_rn(0.5f))), \
                 __float2half2_rn(0.5f), __float2half2_rn(0.5f));",
                H2.2,
            )
            .sequence("(1 + tanh(S/2))/2", "half of the 2^-10.987 of tanh.approx, and one rounding")
            .rounded(Rounding::Approximate(absolute(4.93e-4 / 2.0 + F16_ULP / 2.0)))
            .cite(TANH_HALF),
    );
    atoms
}

/// Name, first architecture, function, type, instructions of the special function unit, C++ text,
/// (formula, error, bound), document.
type Sequence = (
    &'static str,
    Arch,
    UnaryOp,
    Type,
    i64,
    &'static str,
    (&'static str, &'static str, ErrorBound),
    &'static str,
);

fn sequences(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let atom = |(name, first, op, ty, n, cuda, (formula, error, bound), cite): Sequence| {
        let lanes = if ty.0 == F64 { t.f64_lanes } else { t.special_lanes };
        unary_atom(name, first, op, ty, t.chain(lanes, ty.1, n * ty.1))
            .cuda_through(cuda, ty.2)
            .sequence(formula, error)
            .rounded(Rounding::Approximate(bound))
            .cite(cite)
    };
    let all = singles().into_iter().chain(activations()).chain(halves()).map(atom);
    all.chain(calling().into_iter().map(|of| atom(of).calling())).collect()
}

#[rustfmt::skip] // One row per atom.
fn singles() -> Vec<Sequence> {
    use Arch::Sm70;
    let (f, d) = (ErrorBound::f32_ulps, ErrorBound::f64_ulps);
    vec![
        ("exp.f32", Sm70, Exp, F, 2, "{D} = expf({S});",
         ("2^(S/ln 2), the argument in two parts", "2 ulp", f(2.0)), LIBRARY),
        ("exp.approx.f32", Sm70, Exp, F, 2, "{D} = __expf({S});",
         ("ex2.approx(S/ln 2)", "2 + 1.173·|S| ulp", f(2.0).sloped(1.173).plus(F32_NORMAL)),
         INTRINSIC),
        ("exp2.f32", Sm70, Exp2, F, 2, "{D} = exp2f({S});",
         ("ex2.approx, scaled for small results", "2 ulp", f(2.0)), LIBRARY),
        ("log.f32", Sm70, Log, F, 3, "{D} = logf({S});",
         ("a polynomial of the significand, and the exponent", "1 ulp", f(1.0)), LIBRARY),
        ("log.approx.f32", Sm70, Log, F, 1, "{D} = __logf({S});",
         ("lg2.approx(S)·ln 2", "2^-21.41 for S in [0.5, 2], else 3 ulp", f(3.0).plus(3.59e-7)),
         INTRINSIC),
        ("rsqrt.f32", Sm70, Rsqrt, F, 2, "{D} = rsqrtf({S});",
         ("rsqrt.approx, scaled for subnormal numbers", "2 ulp", f(2.0)), LIBRARY),
        ("tanh.f32", Sm70, Tanh, F, 4, "{D} = tanhf({S});",
         ("a polynomial for small S, else 1 - 2/(exp(2S) + 1)", "2 ulp", f(2.0)), LIBRARY),
        ("exp.f64", Sm70, Exp, D, 20, "{D} = exp({S});",
         ("a polynomial of the reduced argument", "1 ulp", d(1.0)), LIBRARY),
        ("exp2.f64", Sm70, Exp2, D, 20, "{D} = exp2({S});",
         ("a polynomial of the reduced argument", "1 ulp", d(1.0)), LIBRARY),
        ("log.f64", Sm70, Log, D, 30, "{D} = log({S});",
         ("a polynomial of the significand, and the exponent", "1 ulp", d(1.0)), LIBRARY),
        ("tanh.f64", Sm70, Tanh, D, 30, "{D} = tanh({S});",
         ("a polynomial for small S, else 1 - 2/(exp(2S) + 1)", "2 ulp", d(2.0)), LIBRARY),
    ]
}

#[rustfmt::skip] // One row per atom.
fn activations() -> Vec<Sequence> {
    use Arch::Sm70;
    let (f, d, h) = (ErrorBound::f32_ulps, ErrorBound::f64_ulps, ErrorBound::f16_ulps);
    vec![
        ("sigmoid.full.f32", Sm70, Sigmoid, F, 3, "{D} = __fdividef(1.0f, 1.0f + expf(-{S}));",
         ("1/(1 + exp(-S))", "2 ulp of expf, a sum, 2 ulp of the quotient",
          f(5.0).plus(F32_NORMAL)), LIBRARY),
        ("silu.full.f32", Sm70, Silu, F, 3, "{D} = __fdividef({S}, 1.0f + expf(-{S}));",
         ("S/(1 + exp(-S))", "as of sigmoid.full.f32", f(5.0).plus(90.0 * F32_NORMAL)), LIBRARY),
        ("sigmoid.approx.f32", Sm70, Sigmoid, F, 2, "{D} = __fdividef(1.0f, 1.0f + __expf(-{S}));",
         ("1/(1 + exp(-S))", "2 + 1.173·|S| ulp of __expf, a sum, 2 ulp of the quotient",
          f(5.0).sloped(1.173).plus(F32_NORMAL)), INTRINSIC),
        ("silu.approx.f32", Sm70, Silu, F, 2, "{D} = __fdividef({S}, 1.0f + __expf(-{S}));",
         ("S/(1 + exp(-S))", "as of sigmoid.approx.f32",
          f(5.0).sloped(1.173).plus(90.0 * F32_NORMAL)), INTRINSIC),
        ("gelu.f32", Sm70, Gelu, F, 6, "{D} = __fmul_rn(0.5f * {S}, erfcf({S} * -0.70710678f));",
         ("S/2·erfc(-S/sqrt(2))", "4 ulp of erfcf, 14.3·|S| + 2 of its argument, 2 of the products",
          f(8.0).sloped(14.3).plus(F32_NORMAL)), LIBRARY),
        ("gelu.f64", Sm70, Gelu, D, 60,
         "{D} = __dmul_rn(0.5 * {S}, erfc({S} * -0.7071067811865476));",
         ("S/2·erfc(-S/sqrt(2))", "5 ulp of erfc, 38.5·|S| + 2 of its argument, 2 of the products",
          d(9.0).sloped(38.5).plus(f64::MIN_POSITIVE)), LIBRARY),
        ("sigmoid.f16", Sm70, Sigmoid, H, 3,
         "{D} = __float2half_rn(__fdividef(1.0f, 1.0f + __expf(-__half2float({S}))));",
         ("1/(1 + exp(-S)) in f32", "1 ulp", h(1.0)), INTRINSIC),
        ("silu.f16", Sm70, Silu, H, 3,
         "{D} = __float2half_rn(__fdividef(__half2float({S}), 1.0f + __expf(-__half2float({S}))));",
         ("S/(1 + exp(-S)) in f32", "1 ulp", h(1.0)), INTRINSIC),
        ("gelu.f16", Sm70, Gelu, H, 7,
         "{D} = __float2half_rn(0.5f * __half2float({S}) * erfcf(__half2float({S}) * \
          -0.70710678f));", ("S/2·erfc(-S/sqrt(2)) in f32", "1 ulp", h(1.0)), LIBRARY),
        ("sigmoid.bf16", Arch::Sm80, Sigmoid, B, 3,
         "{D} = __float2bfloat16_rn(__fdividef(1.0f, 1.0f + __expf(-__bfloat162float({S}))));",
         ("1/(1 + exp(-S)) in f32", "1 ulp", ErrorBound::bf16_ulps(1.0)), INTRINSIC),
        ("silu.bf16", Arch::Sm80, Silu, B, 3,
         "{D} = __float2bfloat16_rn(__fdividef(__bfloat162float({S}), 1.0f + \
          __expf(-__bfloat162float({S}))));",
         ("S/(1 + exp(-S)) in f32", "1 ulp", ErrorBound::bf16_ulps(1.0).plus(90.0 * F32_NORMAL)),
         INTRINSIC),
        ("gelu.bf16", Arch::Sm80, Gelu, B, 7,
         "{D} = __float2bfloat16_rn(0.5f * __bfloat162float({S}) * erfcf(__bfloat162float({S}) * \
          -0.70710678f));", ("S/2·erfc(-S/sqrt(2)) in f32", "1 ulp", ErrorBound::bf16_ulps(1.0)),
         LIBRARY),
    ]
}

/// Functions for which ptxas writes a call.
#[rustfmt::skip] // One row per atom.
fn calling() -> Vec<Sequence> {
    use Arch::Sm70;
    let (f, d) = (ErrorBound::f32_ulps, ErrorBound::f64_ulps);
    // f64: at the end of the range the exponential overflows, and the result becomes 0.
    let lost = 1024.0 * f64::MIN_POSITIVE;
    vec![
        ("rsqrt.f64", Sm70, Rsqrt, D, 12, "{D} = rsqrt({S});",
         ("an approximation, corrected", "1 ulp", d(1.0)), LIBRARY),
        ("sigmoid.f32", Sm70, Sigmoid, F, 4, "{D} = __frcp_rn(1.0f + expf(-{S}));",
         ("1/(1 + exp(-S))", "2 ulp of expf, a sum, a reciprocal", f(3.0).plus(F32_NORMAL)),
         LIBRARY),
        ("silu.f32", Sm70, Silu, F, 4, "{D} = __fmul_rn({S}, __frcp_rn(1.0f + expf(-{S})));",
         ("S/(1 + exp(-S))", "as of sigmoid.f32, and a product", f(4.0).plus(90.0 * F32_NORMAL)),
         LIBRARY),
        ("sigmoid.f64", Sm70, Sigmoid, D, 30, "{D} = __drcp_rn(1.0 + exp(-{S}));",
         ("1/(1 + exp(-S))", "1 ulp of exp, a sum, a reciprocal", d(2.0).plus(lost)), LIBRARY),
        ("silu.f64", Sm70, Silu, D, 32, "{D} = __dmul_rn({S}, __drcp_rn(1.0 + exp(-{S})));",
         ("S/(1 + exp(-S))", "as of sigmoid.f64, and a product", d(3.0).plus(1024.0 * lost)),
         LIBRARY),
    ]
}

#[rustfmt::skip] // One row per atom.
fn halves() -> Vec<Sequence> {
    use Arch::{Sm70, Sm80};
    let (h, b) = (ErrorBound::f16_ulps(1.0), ErrorBound::bf16_ulps(1.0));
    let (exp, exp2) = ("ex2.approx(S/ln 2) in f32", "ex2.approx(S) in f32");
    let (log, sqrt) = ("lg2.approx(S)·ln 2 in f32", "sqrt.approx(S) in f32");
    let (rsqrt, rcp) = ("rsqrt.approx(S) in f32", "rcp.approx(S) in f32");
    let (tanh, sigmoid) = ("the formula of tanh.f32, in f32", "1/(1 + exp(-S)) in f32");
    let (silu, gelu) = ("S/(1 + exp(-S)) in f32", "S/2·erfc(-S/sqrt(2)) in f32");
    let ulp = "1 ulp";
    vec![
        ("exp.f16",      Sm70, Exp,   H,  2, "{D} = hexp({S});",    (exp, ulp, h),   HALF),
        ("exp2.f16",     Sm70, Exp2,  H,  2, "{D} = hexp2({S});",   (exp2, ulp, h),  HALF),
        ("log.f16",      Sm70, Log,   H,  2, "{D} = hlog({S});",    (log, ulp, h),   HALF),
        ("sqrt.f16",     Sm70, Sqrt,  H,  2, "{D} = hsqrt({S});",   (sqrt, ulp, h),  HALF),
        ("rsqrt.f16",    Sm70, Rsqrt, H,  2, "{D} = hrsqrt({S});",  (rsqrt, ulp, h), HALF),
        ("rcp.f16",      Sm70, Rcp,   H,  2, "{D} = hrcp({S});",    (rcp, ulp, h),   HALF),
        ("exp.f16x2",    Sm70, Exp,   H2, 2, "{D} = h2exp({S});",   (exp, ulp, h),   HALF),
        ("exp2.f16x2",   Sm70, Exp2,  H2, 2, "{D} = h2exp2({S});",  (exp2, ulp, h),  HALF),
        ("log.f16x2",    Sm70, Log,   H2, 2, "{D} = h2log({S});",   (log, ulp, h),   HALF),
        ("sqrt.f16x2",   Sm70, Sqrt,  H2, 2, "{D} = h2sqrt({S});",  (sqrt, ulp, h),  HALF),
        ("rsqrt.f16x2",  Sm70, Rsqrt, H2, 2, "{D} = h2rsqrt({S});", (rsqrt, ulp, h), HALF),
        ("rcp.f16x2",    Sm70, Rcp,   H2, 2, "{D} = h2rcp({S});",   (rcp, ulp, h),   HALF),
        ("exp.bf16",     Sm80, Exp,   B,  2, "{D} = hexp({S});",    (exp, ulp, b),   BF16),
        ("exp2.bf16",    Sm80, Exp2,  B,  2, "{D} = hexp2({S});",   (exp2, ulp, b),  BF16),
        ("log.bf16",     Sm80, Log,   B,  2, "{D} = hlog({S});",    (log, ulp, b),   BF16),
        ("sqrt.bf16",    Sm80, Sqrt,  B,  2, "{D} = hsqrt({S});",   (sqrt, ulp, b),  BF16),
        ("rsqrt.bf16",   Sm80, Rsqrt, B,  2, "{D} = hrsqrt({S});",  (rsqrt, ulp, b), BF16),
        ("rcp.bf16",     Sm80, Rcp,   B,  2, "{D} = hrcp({S});",    (rcp, ulp, b),   BF16),
        ("exp.bf16x2",   Sm80, Exp,   B2, 2, "{D} = h2exp({S});",   (exp, ulp, b),   BF16),
        ("exp2.bf16x2",  Sm80, Exp2,  B2, 2, "{D} = h2exp2({S});",  (exp2, ulp, b),  BF16),
        ("log.bf16x2",   Sm80, Log,   B2, 2, "{D} = h2log({S});",   (log, ulp, b),   BF16),
        ("sqrt.bf16x2",  Sm80, Sqrt,  B2, 2, "{D} = h2sqrt({S});",  (sqrt, ulp, b),  BF16),
        ("rsqrt.bf16x2", Sm80, Rsqrt, B2, 2, "{D} = h2rsqrt({S});", (rsqrt, ulp, b), BF16),
        ("rcp.bf16x2",   Sm80, Rcp,   B2, 2, "{D} = h2rcp({S});",   (rcp, ulp, b),   BF16),
        ("tanh.f16", Sm70, Tanh, H, 4, "{D} = __float2half_rn(tanhf(__half2float({S})));",
         (tanh, ulp, h), LIBRARY),
        ("tanh.f16x2", Sm70, Tanh, H2, 4,
         "{D} = __floats2half2_rn(tanhf(__low2float({S})), tanhf(__high2float({S})));",
         (tanh, ulp, h), LIBRARY),
        ("sigmoid.f16x2", Sm70, Sigmoid, H2, 3,
         "{D} = __floats2half2_rn(__fdividef(1.0f, 1.0f + __expf(-__low2float({S}))), \
          __fdividef(1.0f, 1.0f + __expf(-__high2float({S}))));", (sigmoid, ulp, h), INTRINSIC),
        ("silu.f16x2", Sm70, Silu, H2, 3,
         "{D} = __floats2half2_rn(__fdividef(__low2float({S}), 1.0f + __expf(-__low2float({S}))), \
          __fdividef(__high2float({S}), 1.0f + __expf(-__high2float({S}))));", (silu, ulp, h),
         INTRINSIC),
        ("gelu.f16x2", Sm70, Gelu, H2, 7,
         "{D} = __floats2half2_rn(0.5f * __low2float({S}) * erfcf(__low2float({S}) * \
          -0.70710678f), 0.5f * __high2float({S}) * erfcf(__high2float({S}) * -0.70710678f));",
         (gelu, ulp, h), LIBRARY),
        ("tanh.bf16", Sm80, Tanh, B, 4, "{D} = __float2bfloat16_rn(tanhf(__bfloat162float({S})));",
         (tanh, ulp, b), LIBRARY),
        ("tanh.bf16x2", Sm80, Tanh, B2, 4,
         "{D} = __floats2bfloat162_rn(tanhf(__low2float({S})), tanhf(__high2float({S})));",
         (tanh, ulp, b), LIBRARY),
        ("sigmoid.bf16x2", Sm80, Sigmoid, B2, 3,
         "{D} = __floats2bfloat162_rn(__fdividef(1.0f, 1.0f + __expf(-__low2float({S}))), \
          __fdividef(1.0f, 1.0f + __expf(-__high2float({S}))));", (sigmoid, ulp, b), INTRINSIC),
        ("silu.bf16x2", Sm80, Silu, B2, 3,
         "{D} = __floats2bfloat162_rn(__fdividef(__low2float({S}), 1.0f + \
          __expf(-__low2float({S}))), __fdividef(__high2float({S}), 1.0f + \
          __expf(-__high2float({S}))));", (silu, ulp, b.plus(90.0 * F32_NORMAL)), INTRINSIC),
        ("gelu.bf16x2", Sm80, Gelu, B2, 7,
         "{D} = __floats2bfloat162_rn(0.5f * __low2float({S}) * erfcf(__low2float({S}) * \
          -0.70710678f), 0.5f * __high2float({S}) * erfcf(__high2float({S}) * -0.70710678f));",
         (gelu, ulp, b), LIBRARY),
    ]
}
