//! Lists the atoms of casts from integers, to integers and between integers, except those in
//! `convert_through.rs`.
//!
//! A cast to an integer rounds to nearest even and saturates; NaN becomes 0. The conversions of the
//! hardware from f32 and f16 to 32 bits do so. Casts to 8 and 16 bits convert to 32 bits and clamp.
//! The conversions from f64 and to 64 bits return another number for NaN, which a selection
//! replaces.
//!
//! Integers of 4 bits become f16 and bf16 without a conversion instruction. Their bits are put into
//! the significand of 1024 (f16) or 128 (bf16), where one ulp is 1. Then this number is subtracted
//! again. Atoms of this kind convert pairs, or eight integers of one register.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomKind, AtomOp, Elem, Rounding};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::limits;
use carbyne_ir::ast::UnaryOp;
use carbyne_ir::scalar::Scalar::{
    self, Bf16, F16, F32, F64, I4, I8, I16, I32, I64, U4, U8, U16, U32, U64,
};

const INT: &str = "CUDA Math API, Type Casting Intrinsics";
const HALF: &str = "CUDA Math API, Half Precision Conversion and Data Movement";
const BF16: &str = "CUDA Math API, Bfloat16 Precision Conversion and Data Movement";
const CVT: &str = "PTX ISA, Data Movement and Conversion Instructions: cvt";
const LOP3: &str = "PTX ISA, Logic and Shift Instructions: lop3";
const ONE_STEP: AtomKind = AtomKind::Instruction;
const NAN: AtomKind = AtomKind::Sequence { formula: "a conversion; 0 for NaN", error: "none" };
const CLAMPED: AtomKind =
    AtomKind::Sequence { formula: "by i32, clamped to the range of the type", error: "none" };
const THROUGH_I32: AtomKind =
    AtomKind::Sequence { formula: "by i32, which is exact", error: "none" };
const THROUGH_F32: AtomKind =
    AtomKind::Sequence { formula: "by f32, which is exact", error: "none" };
const MAGIC: AtomKind =
    AtomKind::Sequence { formula: "(B | S) - B, B having an ulp of 1", error: "none" };
const MAGIC_SIGNED: AtomKind = AtomKind::Sequence {
    formula: "(B | (S xor 8)) - (B + 8), B having an ulp of 1",
    error: "none",
};

type Type = (Scalar, &'static str);

const F: Type = (F32, "float");
const D: Type = (F64, "double");
const H: Type = (F16, "__half");
const B: Type = (Bf16, "__nv_bfloat16");
const L: Type = (I64, "long long");
const UL: Type = (U64, "unsigned long long");
const I: Type = (I32, "int");
const U: Type = (U32, "unsigned");
const S16: Type = (I16, "short");
const W16: Type = (U16, "unsigned short");
const S8: Type = (I8, "signed char");
const W8: Type = (U8, "unsigned char");

/// Name, source, target, C++ text, kind, document.
type Entry = (&'static str, Type, Type, &'static str, AtomKind, &'static str);

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let mut atoms: Vec<Atom> = vec![];
    for (name, (from, from_cxx), (to, to_cxx), cuda, kind, cite) in
        to_integers().into_iter().chain(from_integers()).chain(between_integers())
    {
        let lanes = if from.bits() == 64 || to.bits() == 64 {
            t.convert_wide_lanes
        } else if from.is_float() || to.is_float() {
            t.convert_lanes
        } else {
            t.int_lanes
        };
        let cost = t.chain(lanes, 1, if kind == ONE_STEP { 1 } else { 2 });
        let mut atom = atom(name, ArchReq::Since(Arch::Sm70), AtomOp::Unary(UnaryOp::Cast), cost)
            .operands([
                r(("S", Elem::Scalar(from), RF, &[1], ONE)).through(from_cxx),
                w(("D", Elem::Scalar(to), RF, &[1], ONE)).through(to_cxx),
            ])
            .cuda(cuda)
            .rounded(if to.is_float() { Rounding::Nearest } else { Rounding::Exact })
            .cite(cite);
        atom.kind = kind;
        atoms.push(atom);
    }
    atoms.extend(nibbles().into_iter().map(|(name, from, (to, cxx), cuda, kind, cite)| {
        let (first, lanes) =
            if to == Bf16 { (Arch::Sm80, t.bf16_lanes) } else { (Arch::Sm70, t.f16_lanes) };
        let cost = t.chain(lanes, 2, 3);
        let mut atom = atom(name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), cost)
            .operands([
                r(("S", Elem::Scalar(from.0), RF, &[2], PAIR)).through(from.1),
                w(("D", Elem::Scalar(to), RF, &[2], PAIR)).through(cxx),
            ])
            .cuda(cuda)
            .cite(cite);
        atom.kind = kind;
        atom
    }));
    atoms.extend(eights(t));
    atoms
}

/// Conversions of eight 4-bit integers in one register, with two instructions per pair. A mask
/// extracts two integers at once, which are 16 bits apart. The results are elements 0 and 4, 1 and
/// 5, 2 and 6, 3 and 7.
fn eights(t: &crate::limits::Timing) -> Vec<Atom> {
    let unsigned = "B | S of pairs, minus B; B has an ulp of 1";
    let signed = "B | (S xor 8) of pairs, minus B + 8; B has an ulp of 1";
    let unsigned_f16 = "B | S of pairs, minus B; B has an ulp of 1; odd pairs are 16 S, times 1/16";
    let signed_f16 = "B | (S xor 8) of pairs, minus B + 8; B has an ulp of 1; odd pairs are 16 S, \
                      times 1/16";
    let atoms = [
        ("cvt.f16x8.u4x8", U4, F16, F16X8_U4, unsigned_f16),
        ("cvt.f16x8.s4x8", I4, F16, F16X8_S4, signed_f16),
        ("cvt.bf16x8.u4x8", U4, Bf16, BF16X8_U4, unsigned),
        ("cvt.bf16x8.s4x8", I4, Bf16, BF16X8_S4, signed),
    ];
    atoms
        .into_iter()
        .map(|(name, from, to, ptx, formula)| {
            let (first, lanes) =
                if to == Bf16 { (Arch::Sm80, t.bf16_lanes) } else { (Arch::Sm70, t.f16_lanes) };
            let mut cost = t.chain(lanes, 8, 9);
            // The pairs are independent.
            cost.completion_cycles = cost.issue_cycles + 2.0 * t.math_cycles;
            atom(name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), cost)
                .operands([
                    r(("S", Elem::Scalar(from), RF, &[8], "(1,8):(0,1)")),
                    w(("D", Elem::Scalar(to), RF, &[8], "(1,(2,4)):(0,(4,1))")),
                ])
                .ptx(ptx)
                .sequence(formula, "none")
                .cite(LOP3)
        })
        .collect()
}

// The immediate of lop3 is 0xea for (a & b) | c, and 0x6a for (a & b) ^ c.
const F16X8_U4: &str = "{{
.reg .b32 s, high, p0, p1, p2, p3, base, unit, less;
mov.b32 s, {S.0};
mov.b32 base, 0x64006400;
mov.b32 unit, 0x2c002c00;
mov.b32 less, 0xd400d400;
shr.u32 high, s, 8;
lop3.b32 p0, s, 0x000f000f, 0x64006400, 0xea;
lop3.b32 p1, s, 0x00f000f0, 0x64006400, 0xea;
lop3.b32 p2, high, 0x000f000f, 0x64006400, 0xea;
lop3.b32 p3, high, 0x00f000f0, 0x64006400, 0xea;
sub.f16x2 {D.0}, p0, base;
fma.rn.f16x2 {D.1}, p1, unit, less;
sub.f16x2 {D.2}, p2, base;
fma.rn.f16x2 {D.3}, p3, unit, less;
}}";
const F16X8_S4: &str = "{{
.reg .b32 s, high, p0, p1, p2, p3, base, unit, less;
mov.b32 s, {S.0};
mov.b32 base, 0x64086408;
mov.b32 unit, 0x2c002c00;
mov.b32 less, 0xd480d480;
shr.u32 high, s, 8;
lop3.b32 p0, s, 0x000f000f, 0x64086408, 0x6a;
lop3.b32 p1, s, 0x00f000f0, 0x64806480, 0x6a;
lop3.b32 p2, high, 0x000f000f, 0x64086408, 0x6a;
lop3.b32 p3, high, 0x00f000f0, 0x64806480, 0x6a;
sub.f16x2 {D.0}, p0, base;
fma.rn.f16x2 {D.1}, p1, unit, less;
sub.f16x2 {D.2}, p2, base;
fma.rn.f16x2 {D.3}, p3, unit, less;
}}";
// bfloat16 has too few bits for odd integers in place, so each pair is shifted first. sm_80 has no
// subtraction of bfloat16; a fused multiply-add by 1 replaces it.
const BF16X8_U4: &str = "{{
.reg .b32 s, s1, s2, s3, p0, p1, p2, p3, unit, less;
mov.b32 s, {S.0};
mov.b32 unit, 0x3f803f80;
mov.b32 less, 0xc300c300;
shr.u32 s1, s, 4;
shr.u32 s2, s, 8;
shr.u32 s3, s, 12;
lop3.b32 p0, s, 0x000f000f, 0x43004300, 0xea;
lop3.b32 p1, s1, 0x000f000f, 0x43004300, 0xea;
lop3.b32 p2, s2, 0x000f000f, 0x43004300, 0xea;
lop3.b32 p3, s3, 0x000f000f, 0x43004300, 0xea;
fma.rn.bf16x2 {D.0}, p0, unit, less;
fma.rn.bf16x2 {D.1}, p1, unit, less;
fma.rn.bf16x2 {D.2}, p2, unit, less;
fma.rn.bf16x2 {D.3}, p3, unit, less;
}}";
const BF16X8_S4: &str = "{{
.reg .b32 s, s1, s2, s3, p0, p1, p2, p3, unit, less;
mov.b32 s, {S.0};
mov.b32 unit, 0x3f803f80;
mov.b32 less, 0xc308c308;
shr.u32 s1, s, 4;
shr.u32 s2, s, 8;
shr.u32 s3, s, 12;
lop3.b32 p0, s, 0x000f000f, 0x43084308, 0x6a;
lop3.b32 p1, s1, 0x000f000f, 0x43084308, 0x6a;
lop3.b32 p2, s2, 0x000f000f, 0x43084308, 0x6a;
lop3.b32 p3, s3, 0x000f000f, 0x43084308, 0x6a;
fma.rn.bf16x2 {D.0}, p0, unit, less;
fma.rn.bf16x2 {D.1}, p1, unit, less;
fma.rn.bf16x2 {D.2}, p2, unit, less;
fma.rn.bf16x2 {D.3}, p3, unit, less;
}}";

#[rustfmt::skip] // One row per atom.
fn to_integers() -> Vec<Entry> {
    vec![
        ("cvt.s32.f32", F, I,  "{D} = __float2int_rn({S});",                      ONE_STEP, INT),
        ("cvt.u32.f32", F, U,  "{D} = __float2uint_rn({S});",                     ONE_STEP, INT),
        ("cvt.s64.f32", F, L,  "{D} = {S} == {S} ? __float2ll_rn({S}) : 0ll;",    NAN,      INT),
        ("cvt.u64.f32", F, UL, "{D} = {S} == {S} ? __float2ull_rn({S}) : 0ull;",  NAN,      INT),
        ("cvt.s32.f64", D, I,  "{D} = {S} == {S} ? __double2int_rn({S}) : 0;",    NAN,      INT),
        ("cvt.u32.f64", D, U,  "{D} = {S} == {S} ? __double2uint_rn({S}) : 0u;",  NAN,      INT),
        ("cvt.s64.f64", D, L,  "{D} = {S} == {S} ? __double2ll_rn({S}) : 0ll;",   NAN,      INT),
        ("cvt.u64.f64", D, UL, "{D} = {S} == {S} ? __double2ull_rn({S}) : 0ull;", NAN,      INT),
        ("cvt.s16.f32", F, S16,
         "{D} = static_cast<short>(max(-32768, min(32767, __float2int_rn({S}))));", CLAMPED, INT),
        ("cvt.u16.f32", F, W16,
         "{D} = static_cast<unsigned short>(min(65535u, __float2uint_rn({S})));", CLAMPED, INT),
        ("cvt.s8.f32", F, S8,
         "{D} = static_cast<signed char>(max(-128, min(127, __float2int_rn({S}))));", CLAMPED, INT),
        ("cvt.u8.f32", F, W8, "{D} = static_cast<unsigned char>(min(255u, __float2uint_rn({S})));",
         CLAMPED, INT),
        ("cvt.s32.f16", H, I,  "{D} = __half2int_rn({S});",                       ONE_STEP, HALF),
        ("cvt.u32.f16", H, U,  "{D} = __half2uint_rn({S});",                      ONE_STEP, HALF),
        ("cvt.s8.f16", H, S8,
         "{D} = static_cast<signed char>(max(-128, min(127, __half2int_rn({S}))));", CLAMPED, HALF),
        ("cvt.u8.f16", H, W8, "{D} = static_cast<unsigned char>(min(255u, __half2uint_rn({S})));",
         CLAMPED, HALF),
        ("cvt.s32.bf16", B, I, "{D} = __float2int_rn(__bfloat162float({S}));", THROUGH_F32, BF16),
        ("cvt.u32.bf16", B, U, "{D} = __float2uint_rn(__bfloat162float({S}));", THROUGH_F32, BF16),
    ]
}

#[rustfmt::skip] // One row per atom.
fn from_integers() -> Vec<Entry> {
    vec![
        ("cvt.f32.s32", I,   F, "{D} = __int2float_rn({S});",     ONE_STEP, INT),
        ("cvt.f32.u32", U,   F, "{D} = __uint2float_rn({S});",    ONE_STEP, INT),
        ("cvt.f32.s64", L,   F, "{D} = __ll2float_rn({S});",      ONE_STEP, INT),
        ("cvt.f32.u64", UL,  F, "{D} = __ull2float_rn({S});",     ONE_STEP, INT),
        ("cvt.f32.s16", S16, F, "{D} = static_cast<float>({S});", ONE_STEP, CVT),
        ("cvt.f32.u16", W16, F, "{D} = static_cast<float>({S});", ONE_STEP, CVT),
        ("cvt.f32.s8",  S8,  F, "{D} = static_cast<float>({S});", ONE_STEP, CVT),
        ("cvt.f32.u8",  W8,  F, "{D} = static_cast<float>({S});", ONE_STEP, CVT),
        ("cvt.f64.s32", I,   D, "{D} = __int2double_rn({S});",    ONE_STEP, INT),
        ("cvt.f64.u32", U,   D, "{D} = __uint2double_rn({S});",   ONE_STEP, INT),
        ("cvt.f64.s64", L,   D, "{D} = __ll2double_rn({S});",     ONE_STEP, INT),
        ("cvt.f64.u64", UL,  D, "{D} = __ull2double_rn({S});",    ONE_STEP, INT),
        ("cvt.f16.s32", I,   H, "{D} = __int2half_rn({S});",      ONE_STEP, HALF),
        ("cvt.f16.u32", U,   H, "{D} = __uint2half_rn({S});",     ONE_STEP, HALF),
        ("cvt.f16.s16", S16, H, "{D} = __short2half_rn({S});",    ONE_STEP, HALF),
        ("cvt.f16.u16", W16, H, "{D} = __ushort2half_rn({S});",   ONE_STEP, HALF),
        ("cvt.f16.s8", S8, H, "{D} = __short2half_rn(static_cast<short>({S}));", THROUGH_I32, HALF),
        ("cvt.f16.u8", W8, H, "{D} = __ushort2half_rn(static_cast<unsigned short>({S}));",
         THROUGH_I32, HALF),
        ("cvt.bf16.s8", S8, B, "{D} = __float2bfloat16_rn(static_cast<float>({S}));", THROUGH_F32,
         BF16),
        ("cvt.bf16.u8", W8, B, "{D} = __float2bfloat16_rn(static_cast<float>({S}));", THROUGH_F32,
         BF16),
    ]
}

#[rustfmt::skip] // One row per atom.
fn between_integers() -> Vec<Entry> {
    vec![
        ("cvt.s32.s8",  S8,  I,  "{D} = static_cast<int>({S});",                   ONE_STEP, CVT),
        ("cvt.s32.u8",  W8,  I,  "{D} = static_cast<int>({S});",                   ONE_STEP, CVT),
        ("cvt.u32.u8",  W8,  U,  "{D} = static_cast<unsigned>({S});",              ONE_STEP, CVT),
        ("cvt.s32.s16", S16, I,  "{D} = static_cast<int>({S});",                   ONE_STEP, CVT),
        ("cvt.s32.u16", W16, I,  "{D} = static_cast<int>({S});",                   ONE_STEP, CVT),
        ("cvt.u32.u16", W16, U,  "{D} = static_cast<unsigned>({S});",              ONE_STEP, CVT),
        ("cvt.s64.s32", I,   L,  "{D} = static_cast<long long>({S});",             ONE_STEP, CVT),
        ("cvt.s64.u32", U,   L,  "{D} = static_cast<long long>({S});",             ONE_STEP, CVT),
        ("cvt.u64.u32", U,   UL, "{D} = static_cast<unsigned long long>({S});",    ONE_STEP, CVT),
        ("cvt.s32.u32", U,   I,  "{D} = static_cast<int>(min(2147483647u, {S}));", ONE_STEP, CVT),
        ("cvt.u32.s32", I,   U,  "{D} = static_cast<unsigned>(max(0, {S}));",      ONE_STEP, CVT),
        ("cvt.s8.s32", I, S8, "{D} = static_cast<signed char>(max(-128, min(127, {S})));", CLAMPED,
         CVT),
        ("cvt.u8.s32", I, W8, "{D} = static_cast<unsigned char>(max(0, min(255, {S})));", CLAMPED,
         CVT),
        ("cvt.u8.u32", U, W8, "{D} = static_cast<unsigned char>(min(255u, {S}));", CLAMPED, CVT),
        ("cvt.s16.s32", I, S16, "{D} = static_cast<short>(max(-32768, min(32767, {S})));", CLAMPED,
         CVT),
        ("cvt.u16.s32", I, W16, "{D} = static_cast<unsigned short>(max(0, min(65535, {S})));",
         CLAMPED, CVT),
        ("cvt.u16.u32", U, W16, "{D} = static_cast<unsigned short>(min(65535u, {S}));", CLAMPED,
         CVT),
        ("cvt.s32.s64", L, I, "{D} = static_cast<int>(max(-2147483648ll, min(2147483647ll, {S})));",
         CLAMPED, CVT),
    ]
}

#[rustfmt::skip] // One row per atom.
fn nibbles() -> Vec<Entry> {
    const P: Type = (U4, "unsigned char");
    const N: Type = (I4, "unsigned char");
    const H2: Type = (F16, "__half2");
    const B2: Type = (Bf16, "__nv_bfloat162");
    vec![
        ("cvt.f16x2.u4x2", P, H2,
         "{D} = __hsub2(__halves2half2(__ushort_as_half(0x6400 | ({S} & 0xf)), \
          __ushort_as_half(0x6400 | ({S} >> 4))), __float2half2_rn(1024.0f));", MAGIC, LOP3),
        ("cvt.f16x2.s4x2", N, H2,
         "{D} = __hsub2(__halves2half2(__ushort_as_half(0x6400 | (({S} & 0xf) ^ 8)), \
          __ushort_as_half(0x6400 | (({S} >> 4) ^ 8))), __float2half2_rn(1032.0f));", MAGIC_SIGNED,
         LOP3),
        ("cvt.bf16x2.u4x2", P, B2,
         "{D} = __hsub2(__halves2bfloat162(__ushort_as_bfloat16(0x4300 | ({S} & 0xf)), \
          __ushort_as_bfloat16(0x4300 | ({S} >> 4))), __float2bfloat162_rn(128.0f));", MAGIC, LOP3),
        ("cvt.bf16x2.s4x2", N, B2,
         "{D} = __hsub2(__halves2bfloat162(__ushort_as_bfloat16(0x4300 | (({S} & 0xf) ^ 8)), \
          __ushort_as_bfloat16(0x4300 | (({S} >> 4) ^ 8))), __float2bfloat162_rn(136.0f));",
         MAGIC_SIGNED, LOP3),
    ]
}
