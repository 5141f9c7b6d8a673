//! Maps the scalar types of a program to C++ types and headers, and numbers to C++ literals.

use crate::cpp::ast::Expr;
use carbyne_ir::scalar::Scalar;
use half::{bf16, f16};

/// The storage of a scalar.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Storage {
    /// The C++ type of an array element.
    pub(crate) cxx: &'static str,
    /// The scalars per array element: more than 1 for types below a byte, which have no address.
    pub(crate) packed: i64,
    /// The header that declares the type.
    pub(crate) header: Option<&'static str>,
}

pub(crate) const FP16: &str = "cuda_fp16.h";
pub(crate) const BF16: &str = "cuda_bf16.h";
pub(crate) const FP8: &str = "cuda_fp8.h";

pub(crate) fn storage(scalar: Scalar) -> Storage {
    let of = |cxx, header| Storage { cxx, packed: (8 / scalar.bits()).max(1), header };
    match scalar {
        Scalar::F64 => of("double", None),
        Scalar::F32 | Scalar::Tf32 => of("float", None),
        Scalar::F16 => of("__half", Some(FP16)),
        Scalar::Bf16 => of("__nv_bfloat16", Some(BF16)),
        Scalar::E4m3 => of("__nv_fp8_e4m3", Some(FP8)),
        Scalar::E5m2 => of("__nv_fp8_e5m2", Some(FP8)),
        Scalar::I64 => of("long long", None),
        Scalar::I32 => of("int", None),
        Scalar::I16 => of("short", None),
        Scalar::I8 => of("signed char", None),
        Scalar::U64 => of("unsigned long long", None),
        Scalar::U32 => of("unsigned", None),
        Scalar::U16 => of("unsigned short", None),
        Scalar::U8 => of("unsigned char", None),
        Scalar::Bool => of("bool", None),
        Scalar::Mbarrier => of("unsigned long long", None),
        Scalar::I4 | Scalar::I2 | Scalar::I1 | Scalar::U4 | Scalar::U2 | Scalar::U1 => {
            of("unsigned char", None)
        }
    }
}

/// The bits of an array element.
pub(crate) fn storage_bits(scalar: Scalar) -> i64 {
    scalar.bits().max(8)
}

/// `v` as an expression of the scalar's C++ type, rounded once. None for an integer type that
/// cannot represent `v`.
pub(crate) fn literal(v: f64, scalar: Scalar) -> Option<Expr> {
    let call = |f: &'static str, x: f32| Some(Expr::call(f, [float(x)]));
    match scalar {
        Scalar::F64 => Some(double(v)),
        Scalar::F32 => Some(float(v as f32)),
        Scalar::Tf32 => Some(float(to_tf32(v) as f32)),
        // The argument is already a value of the type, so the conversion is exact.
        Scalar::F16 => call("__float2half", f16::from_f64(v).to_f32()),
        Scalar::Bf16 => call("__float2bfloat16", bf16::from_f64(v).to_f32()),
        // Their constructors round to nearest even and saturate.
        Scalar::E4m3 => Some(Expr::call("__nv_fp8_e4m3", [double(v)])),
        Scalar::E5m2 => Some(Expr::call("__nv_fp8_e5m2", [double(v)])),
        Scalar::Bool => match v {
            0.0 => Some(Expr::name("false")),
            1.0 => Some(Expr::name("true")),
            _ => None,
        },
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
        | Scalar::Mbarrier => {
            let signed = scalar.as_str().starts_with('i');
            let bits = scalar.bits() as i32;
            let (lo, hi) = if signed {
                (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1))
            } else {
                (0.0, 2f64.powi(bits))
            };
            if v.fract() != 0.0 || v < lo || v >= hi {
                return None;
            }
            // Numbers of at least 2^63 do not fit `i64`.
            Some(if v >= 9_223_372_036_854_775_808.0 {
                Expr::Literal(format!("{}ULL", v as u64))
            } else {
                Expr::Int(v as i64)
            })
        }
    }
}

/// Rounds to 10 bits of fraction, to nearest even. Numbers beyond the range of f32 overflow in the
/// conversion to f32.
fn to_tf32(v: f64) -> f64 {
    const DROPPED: u32 = 52 - 10;
    if !v.is_finite() {
        return v;
    }
    let bits = v.to_bits();
    let half = (1u64 << (DROPPED - 1)) - 1;
    f64::from_bits((bits + half + (bits >> DROPPED & 1)) & !((1 << DROPPED) - 1))
}

/// `0.0f`; infinities and NaN by their bits, which need no header.
fn float(v: f32) -> Expr {
    if v.is_finite() {
        Expr::Literal(format!("{v:?}f"))
    } else {
        Expr::call("__uint_as_float", [Expr::Literal(format!("{:#010x}u", canonical(v).to_bits()))])
    }
}

fn double(v: f64) -> Expr {
    if v.is_finite() {
        Expr::Literal(format!("{v:?}"))
    } else {
        let bits = if v.is_nan() { f64::NAN.to_bits() & !(1 << 63) } else { v.to_bits() };
        Expr::call("__longlong_as_double", [Expr::Literal(format!("{bits:#018x}LL"))])
    }
}

/// A NaN with the same bits on every platform.
fn canonical(v: f32) -> f32 {
    if v.is_nan() { f32::from_bits(0x7fff_ffff) } else { v }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpp::ast::{Stmt, StmtKind};
    use crate::cpp::print::statements;

    fn show(v: f64, s: Scalar) -> String {
        literal(v, s).map_or("none".to_owned(), |e| statements(&[Stmt::new(StmtKind::Expr(e))]))
    }

    #[test]
    fn literals_have_the_type_and_are_rounded_once() {
        assert_eq!(show(0.0, Scalar::F32), "0.0f;");
        assert_eq!(show(0.1, Scalar::Tf32), "0.099975586f;");
        assert_eq!(show(-1.5, Scalar::F64), "-1.5;");
        assert_eq!(show(1e-5, Scalar::F32), "1e-5f;");
        assert_eq!(show(0.1, Scalar::F16), "__float2half(0.099975586f);");
        assert_eq!(show(f64::NEG_INFINITY, Scalar::F32), "__uint_as_float(0xff800000u);");
        assert_eq!(show(f64::NAN, Scalar::F32), "__uint_as_float(0x7fffffffu);");
        assert_eq!(show(f64::INFINITY, Scalar::F64), "__longlong_as_double(0x7ff0000000000000LL);");
        assert_eq!(show(3.0, Scalar::I32), "3;");
        assert_eq!(show(128.0, Scalar::I8), "none");
        assert_eq!(show(-1.0, Scalar::U8), "none");
        assert_eq!(show(0.5, Scalar::I32), "none");
        assert_eq!(show(18_446_744_073_709_549_568.0, Scalar::U64), "18446744073709549568ULL;");
    }
}
