//! Lists the atoms of casts between all pairs of scalar types of whole bytes that `convert.rs` and
//! `convert_int.rs` lack, and of packed pairs of 4-bit integers. Most of them convert through a
//! third type, because no instruction converts in one step.
//!
//! The intermediate step is exact, except in two cases that do not change the result:
//! - An integer beyond 2^24 is rounded on its way through f32 to an 8-bit float, which saturates at
//!   a far smaller number.
//! - A number that becomes tf32 is first truncated to f32, and the last bit of f32 is set if
//!   anything was lost. Two more bits than the result has, with this sticky bit, suffice to round
//!   once, to nearest even.
//!
//! A cast to an integer rounds to nearest even and saturates; NaN becomes 0. A cast to `bool` tells
//! whether the number is not 0; for NaN the result is true. The atoms are made once per process.

use crate::arch::{Arch, ArchReq};
use crate::atom::{Atom, AtomOp, Elem, Rounding};
use crate::dsl::{ONE, PAIR, RF, atom, r, w};
use crate::limits::{Timing, limits};
use crate::{convert, convert_int};
use carbyne_ir::ast::UnaryOp;
use carbyne_ir::scalar::Scalar::{
    self, Bf16, Bool, E4m3, E5m2, F16, F32, F64, I4, I8, I16, I32, I64, Tf32, U4, U8, U16, U32, U64,
};
use std::sync::LazyLock;

/// The types that are not floats, as a pattern. A match that uses it names every type, so that the
/// compiler reports the match if a type is added.
macro_rules! not_floats {
    () => {
        Scalar::I64
            | Scalar::I32
            | Scalar::I16
            | Scalar::I8
            | Scalar::I4
            | Scalar::I2
            | Scalar::I1
            | Scalar::U64
            | Scalar::U32
            | Scalar::U16
            | Scalar::U8
            | Scalar::U4
            | Scalar::U2
            | Scalar::U1
            | Scalar::Bool
            | Scalar::Mbarrier
    };
}

const CVT: &str = "PTX ISA, Data Movement and Conversion Instructions: cvt";
const HALF: &str = "CUDA Math API, Half Precision Conversion and Data Movement";
const BF16: &str = "CUDA Math API, Bfloat16 Precision Conversion and Data Movement";
const FP8: &str = "CUDA Math API, FP8 Conversion and Data Movement";
const INT: &str = "CUDA Math API, Type Casting Intrinsics";

/// The types of which a register holds a single value.
const WHOLE: [Scalar; 16] =
    [F64, F32, Tf32, F16, Bf16, E4m3, E5m2, I64, I32, I16, I8, U64, U32, U16, U8, Bool];

/// A conversion of one value, before its cost is known.
struct Way {
    name: String,
    text: String,
    /// Whether the text is PTX.
    ptx: bool,
    from: Scalar,
    to: Scalar,
    formula: &'static str,
}

/// All pairs of types without an atom of their own.
static WAYS: LazyLock<Vec<Way>> = LazyLock::new(|| {
    let own: Vec<Atom> =
        convert::list(Arch::Sm90a).into_iter().chain(convert_int::list(Arch::Sm90a)).collect();
    let of = |atom: &Atom, from: Scalar, to: Scalar| {
        let is = |i: usize, s: Scalar| {
            atom.operands.get(i).is_some_and(|o| o.elem == Elem::Scalar(s) && o.n_values() == 1)
        };
        is(0, from) && is(1, to)
    };
    let pairs = WHOLE.into_iter().flat_map(|from| WHOLE.map(|to| (from, to)));
    let missing =
        pairs.filter(|&(from, to)| from != to && !own.iter().any(|atom| of(atom, from, to)));
    missing.map(|(from, to)| Way::new(from, to)).collect()
});

pub(crate) fn list(arch: Arch) -> Vec<Atom> {
    let t = &limits(arch).timing;
    let ways = WAYS.iter().map(|way| way.atom(t));
    ways.chain(nibbles().into_iter().map(|n| pair(n, t))).collect()
}

impl Way {
    fn new(from: Scalar, to: Scalar) -> Self {
        let name = format!("cvt.{}.{}", ptx_name(to), ptx_name(from));
        let value = number(from);
        let (text, formula) = match (from.is_float(), to.is_float()) {
            _ if to == Bool => (not_zero(from, &value), "a comparison with 0"),
            _ if to == Tf32 && !Tf32.holds(from) => {
                let text = rounded_to_tf32(from);
                let formula = "truncated to f32 with a sticky last bit, then rounded";
                return Way { name, text, ptx: true, from, to, formula };
            }
            (true, true) if from == F64 => (of_double(to), "rounded once from f64"),
            (true, true) => (of_float(to, &value), "by f32, which is exact"),
            (true, false) => (to_integer(from, to, &value), "by f32 and i32, clamped; 0 for NaN"),
            (false, true) => (of_integer(from, to), "by f32, or rounded by the library"),
            (false, false) => (between(from, to), "clamped to the range of the type"),
        };
        Way { name, text: format!("{{D}} = {text};"), ptx: false, from, to, formula }
    }

    fn atom(&'static self, t: &Timing) -> Atom {
        let Way { from, to, .. } = *self;
        let first = since(from).later(since(to));
        let wide = from.bits() == 64 || to.bits() == 64;
        let lanes = if wide { t.convert_wide_lanes } else { t.convert_lanes };
        let steps = if self.ptx { 8 } else { 2 };
        // 0 and 1 are exact in every float, but casts of `bool` to less than 32 bits count as
        // rounded.
        let is_stated = from.is_float() || to.bits() >= 32;
        let exact = !to.is_float() || is_stated && to.holds(from);
        let (mut s, mut d) = (
            r(("S", Elem::Scalar(from), RF, &[1], ONE)),
            w(("D", Elem::Scalar(to), RF, &[1], ONE)),
        );
        if !self.ptx {
            (s, d) = (s.through(cxx(from)), d.through(cxx(to)));
        }
        let cost = t.chain(lanes, 1, steps);
        let atom = atom(&self.name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), cost)
            .operands([s, d])
            .sequence(self.formula, "none")
            .rounded(if exact { Rounding::Exact } else { Rounding::Nearest })
            .cite(cite(from, to));
        if self.ptx { atom.ptx_scalar(&self.text) } else { atom.cuda(&self.text) }
    }
}

/// The first architecture with conversions of the type.
fn since(scalar: Scalar) -> Arch {
    match scalar {
        Tf32 => Arch::Sm80,
        E4m3 | E5m2 => Arch::Sm89,
        F64 | F32 | F16 | Bf16 | not_floats!() => Arch::Sm70,
    }
}

fn cite(from: Scalar, to: Scalar) -> &'static str {
    let has = |some: &[Scalar]| some.contains(&from) || some.contains(&to);
    match () {
        () if has(&[E4m3, E5m2]) => FP8,
        () if has(&[Bf16]) => BF16,
        () if has(&[F16]) => HALF,
        () if from.is_float() != to.is_float() => INT,
        () => CVT,
    }
}

/// The PTX name of a type: `s32` for `i32`.
pub(crate) fn ptx_name(scalar: Scalar) -> String {
    let name = scalar.to_string();
    match name.strip_prefix('i') {
        Some(bits) => format!("s{bits}"),
        None => name,
    }
}

/// The C++ type of the operand in conversions.
fn cxx(scalar: Scalar) -> &'static str {
    match scalar {
        F64 => "double",
        F32 | Tf32 => "float",
        F16 => "__half",
        Bf16 => "__nv_bfloat16",
        I64 => "long long",
        I32 => "int",
        I16 => "short",
        I8 => "signed char",
        U64 => "unsigned long long",
        U32 => "unsigned",
        U16 => "unsigned short",
        Bool => "bool",
        E4m3
        | E5m2
        | I4
        | Scalar::I2
        | Scalar::I1
        | U8
        | U4
        | Scalar::U2
        | Scalar::U1
        | Scalar::Mbarrier => "unsigned char",
    }
}

/// The operand as a C++ number: f32 for floats that are not wider.
fn number(from: Scalar) -> String {
    match from {
        // Clears the bits that tf32 does not have.
        Tf32 => "__uint_as_float(__float_as_uint({S}) & 0xffffe000u)".to_owned(),
        F16 => "__half2float({S})".to_owned(),
        Bf16 => "__bfloat162float({S})".to_owned(),
        E4m3 | E5m2 => {
            format!("__half2float(__half(__nv_cvt_fp8_to_halfraw({{S}}, {})))", fp8(from))
        }
        F64 | F32 | not_floats!() => "{S}".to_owned(),
    }
}

fn fp8(scalar: Scalar) -> &'static str {
    if scalar == E4m3 { "__NV_E4M3" } else { "__NV_E5M2" }
}

fn not_zero(from: Scalar, value: &str) -> String {
    let zero = match from {
        F64 => "0.0",
        F32 | Tf32 | F16 | Bf16 | E4m3 | E5m2 => "0.0f",
        not_floats!() => "0",
    };
    format!("{value} != {zero}")
}

fn of_double(to: Scalar) -> String {
    match to {
        Bf16 => "__double2bfloat16({S})".to_owned(),
        E4m3 | E5m2 => format!("__nv_cvt_double_to_fp8({{S}}, __NV_SATFINITE, {})", fp8(to)),
        F16 => "__double2half({S})".to_owned(),
        F64 | F32 | Tf32 | not_floats!() => "__double2float_rn({S})".to_owned(),
    }
}

/// The conversion of an f32 number to a float.
fn of_float(to: Scalar, value: &str) -> String {
    match to {
        F64 => format!("static_cast<double>({value})"),
        F16 => format!("__float2half_rn({value})"),
        Bf16 => format!("__float2bfloat16_rn({value})"),
        E4m3 | E5m2 => format!("__nv_cvt_float_to_fp8({value}, __NV_SATFINITE, {})", fp8(to)),
        F32 | Tf32 | not_floats!() => value.to_owned(),
    }
}

/// The conversion of a float to an integer.
fn to_integer(from: Scalar, to: Scalar, value: &str) -> String {
    let f = if from == F64 { "double" } else { "float" };
    let nan = |text: String| format!("{value} == {value} ? {text} : 0");
    let clamped = |text: String| if from == F64 { nan(text) } else { text };
    let cast = cxx(to);
    let (lo, hi) = bounds(to);
    let in_bounds = match (to.bits(), lo < 0) {
        (64, true) => return nan(format!("__{f}2ll_rn({value})")),
        (64, false) => return nan(format!("__{f}2ull_rn({value})")),
        (32, true) => return clamped(format!("__{f}2int_rn({value})")),
        (32, false) => return clamped(format!("__{f}2uint_rn({value})")),
        (_, true) => format!("max({lo}, min({hi}, __{f}2int_rn({value})))"),
        (_, false) => format!("min({hi}u, __{f}2uint_rn({value}))"),
    };
    format!("static_cast<{cast}>({})", clamped(in_bounds))
}

/// The conversion of an integer to a float.
fn of_integer(from: Scalar, to: Scalar) -> String {
    let float = "static_cast<float>({S})";
    match (to, from) {
        (F64, _) => "static_cast<double>({S})".to_owned(),
        (F16, I64) => "__ll2half_rn({S})".to_owned(),
        (F16, U64) => "__ull2half_rn({S})".to_owned(),
        (Bf16, I64) => "__ll2bfloat16_rn({S})".to_owned(),
        (Bf16, U64) => "__ull2bfloat16_rn({S})".to_owned(),
        (Bf16, I32) => "__int2bfloat16_rn({S})".to_owned(),
        (Bf16, U32) => "__uint2bfloat16_rn({S})".to_owned(),
        _ => of_float(to, float),
    }
}

/// The conversion of an integer to another integer.
fn between(from: Scalar, to: Scalar) -> String {
    let cast = cxx(to);
    let ((from_lo, from_hi), (lo, hi)) = (bounds(from), bounds(to));
    if from == U64 {
        return format!("static_cast<{cast}>(min({{S}}, {hi}ull))");
    }
    if lo <= from_lo && from_hi <= hi {
        return format!("static_cast<{cast}>({{S}})");
    }
    if to == U64 {
        return format!("static_cast<{cast}>(max(0ll, static_cast<long long>({{S}})))");
    }
    format!("static_cast<{cast}>(max({lo}ll, min({hi}ll, static_cast<long long>({{S}}))))")
}

/// The smallest and the largest number of an integer type.
fn bounds(scalar: Scalar) -> (i128, i128) {
    scalar.int_range().unwrap_or_default()
}

/// PTX text that rounds a number to nearest even. If the type has at most as many digits as f32,
/// the first step is exact.
fn rounded_to_tf32(from: Scalar) -> String {
    let ty = ptx_name(from);
    let is_wide_float = from.is_float() && !F32.holds(from);
    let (cut, back) = if from == F32 {
        ("mov.b32 z, {S};".to_owned(), String::new())
    } else if F32.holds(from) {
        (format!("cvt.rn.f32.{ty} z, {{S}};"), String::new())
    } else if is_wide_float {
        (
            format!("cvt.rz.f32.{ty} z, {{S}};"),
            format!("cvt.{ty}.f32 back, z;\nsetp.neu.{ty} lost, back, {{S}};"),
        )
    } else {
        (
            format!("cvt.rz.f32.{ty} z, {{S}};"),
            format!("cvt.rzi.{ty}.f32 back, z;\nsetp.ne.{ty} lost, back, {{S}};"),
        )
    };
    let sticky = match back.as_str() {
        "" => String::new(),
        back => format!(
            ".reg .{ty} back;\n.reg .pred lost;\n{back}\nselp.b32 s, 1, 0, lost;\n\
             or.b32 bits, bits, s;\n"
        ),
    };
    let last = match is_wide_float {
        true => format!(
            ".reg .pred nan;\nsetp.nan.{ty} nan, {{S}}, {{S}};\n\
             selp.b32 {{D}}, 0x7fffe000, bits, nan;"
        ),
        false => "mov.b32 {D}, bits;".to_owned(),
    };
    format!(
        "{{{{\n.reg .f32 z;\n.reg .b32 bits, s;\n{cut}\nmov.b32 bits, z;\n{sticky}\
         bfe.u32 s, bits, 13, 1;\nadd.u32 bits, bits, s;\nadd.u32 bits, bits, 0xfff;\n\
         and.b32 bits, bits, 0xffffe000;\n{last}\n}}}}"
    )
}

/// Name, source, target, C++ text, formula.
type Nibbles =
    (&'static str, (Scalar, &'static str), (Scalar, &'static str), &'static str, &'static str);

#[rustfmt::skip] // One row per atom.
fn nibbles() -> Vec<Nibbles> {
    const P: (Scalar, &str) = (U4, "unsigned char");
    const N: (Scalar, &str) = (I4, "unsigned char");
    const I2: (Scalar, &str) = (I32, "int2");
    const F2: (Scalar, &str) = (F32, "float2");
    const H2: (Scalar, &str) = (F16, "__half2");
    const B2: (Scalar, &str) = (Bf16, "__nv_bfloat162");
    const C2: (Scalar, &str) = (I8, "char2");
    const W2: (Scalar, &str) = (U8, "uchar2");
    let (low, sign) = ("a mask and a shift", "a mask and a shift, (S xor 8) - 8");
    let (clamped, rounded) = ("clamped, and packed", "rounded to i32, clamped, and packed");
    vec![
        ("cvt.s32x2.u4x2", P, I2, "{D} = make_int2({S} & 0xf, {S} >> 4);",   low),
        ("cvt.s32x2.s4x2", N, I2, "{D} = make_int2((({S} & 0xf) ^ 8) - 8, (({S} >> 4) ^ 8) - 8);",
         sign),
        ("cvt.f32x2.u4x2", P, F2,
         "{D} = make_float2(static_cast<float>({S} & 0xf), static_cast<float>({S} >> 4));", low),
        ("cvt.f32x2.s4x2", N, F2,
         "{D} = make_float2(static_cast<float>((({S} & 0xf) ^ 8) - 8), static_cast<float>((({S} >> \
          4) ^ 8) - 8));", sign),
        ("cvt.u8x2.u4x2",  P, W2, "{D} = make_uchar2({S} & 0xf, {S} >> 4);", low),
        ("cvt.s8x2.s4x2", N, C2, "{D} = make_char2((({S} & 0xf) ^ 8) - 8, (({S} >> 4) ^ 8) - 8);",
         sign),
        ("cvt.u4x2.s32x2", I2, P, "{D} = max(0, min(15, ({S}).x)) | max(0, min(15, ({S}).y)) << 4;",
         clamped),
        ("cvt.s4x2.s32x2", I2, N,
         "{D} = (max(-8, min(7, ({S}).x)) & 0xf) | (max(-8, min(7, ({S}).y)) & 0xf) << 4;",
         clamped),
        ("cvt.u4x2.u8x2", W2, P,
         "{D} = min(15, static_cast<int>(({S}).x)) | min(15, static_cast<int>(({S}).y)) << 4;",
         clamped),
        ("cvt.s4x2.s8x2", C2, N,
         "{D} = (max(-8, min(7, static_cast<int>(({S}).x))) & 0xf) | (max(-8, min(7, \
          static_cast<int>(({S}).y))) & 0xf) << 4;", clamped),
        ("cvt.u4x2.f32x2", F2, P,
         "{D} = max(0, min(15, __float2int_rn(({S}).x))) | max(0, min(15, \
          __float2int_rn(({S}).y))) << 4;", rounded),
        ("cvt.s4x2.f32x2", F2, N,
         "{D} = (max(-8, min(7, __float2int_rn(({S}).x))) & 0xf) | (max(-8, min(7, \
          __float2int_rn(({S}).y))) & 0xf) << 4;", rounded),
        ("cvt.u4x2.f16x2", H2, P,
         "{D} = max(0, min(15, __half2int_rn(__low2half({S})))) | max(0, min(15, \
          __half2int_rn(__high2half({S})))) << 4;", rounded),
        ("cvt.s4x2.f16x2", H2, N,
         "{D} = (max(-8, min(7, __half2int_rn(__low2half({S})))) & 0xf) | (max(-8, min(7, \
          __half2int_rn(__high2half({S})))) & 0xf) << 4;", rounded),
        ("cvt.u4x2.bf16x2", B2, P,
         "{D} = max(0, min(15, __float2int_rn(__low2float({S})))) | max(0, min(15, \
          __float2int_rn(__high2float({S})))) << 4;", rounded),
        ("cvt.s4x2.bf16x2", B2, N,
         "{D} = (max(-8, min(7, __float2int_rn(__low2float({S})))) & 0xf) | (max(-8, min(7, \
          __float2int_rn(__high2float({S})))) & 0xf) << 4;", rounded),
    ]
}

fn pair((name, (from, from_cxx), (to, to_cxx), text, formula): Nibbles, t: &Timing) -> Atom {
    let first = since(from).later(since(to));
    let cost = t.chain(t.int_lanes, 2, 6);
    atom(name, ArchReq::Since(first), AtomOp::Unary(UnaryOp::Cast), cost)
        .operands([
            r(("S", Elem::Scalar(from), RF, &[2], PAIR)).through(from_cxx),
            w(("D", Elem::Scalar(to), RF, &[2], PAIR)).through(to_cxx),
        ])
        .cuda(text)
        .sequence(formula, "none")
        .cite(cite(from, to))
}
