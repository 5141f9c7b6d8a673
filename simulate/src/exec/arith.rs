//! Computes the results of instructions on stored bits.
//!
//! Invariant: this module rounds as the atom's instruction does, and shares no arithmetic of floats
//! with [`crate::denote`], so that each checks the other. Only functions of two integers are those
//! of `denote`.
//! - One multiply-add per result (k = 1): fused, rounded once to nearest even.
//! - Tensor cores (k > 1): products are exact; products and accumulator are added in binary64 in
//!   the order of k; the sum is rounded once to the accumulator's type. The PTX ISA does not
//!   specify order and precision of the sum, so a device may differ in the last bits.
//! - binary64 with k > 1: a chain of fused multiply-adds.
//! - Integers: exact, truncated to the accumulator's bits.
//! - Add, subtract, multiply, divide, square root: computed in binary64 and rounded; for types of
//!   at most 24 significant bits that equals rounding the exact result once (Figueroa, "When is
//!   double rounding innocuous?"). The other functions are correctly rounded up to the error of
//!   binary64.

use super::products::add_products;
use crate::denote;
use crate::num::{decode, decode_all, decode_int, encode, fma, truncate};
use crate::state::Value;
use carbyne_ir::ast::{AccumulateOp, BinaryOp, ReduceOp, ShflOp, UnaryOp};
use carbyne_ir::scalar::Scalar;
use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI, SQRT_2};

/// D += A·B on tiles in column-major order, batch first: `extents` are l, m, n, k.
pub(crate) fn matmul(
    [l, m, _, k]: [usize; 4],
    [a_type, b_type]: [Scalar; 2],
    to: Scalar,
    a: &[u64],
    b: &[u64],
    d: &mut [u64],
) {
    if k == 1 && a_type == b_type {
        for (i, out) in d.iter_mut().enumerate() {
            let (batch, row, col) = (i % l, i / l % m, i / (l * m));
            *out = fma(a_type, to, a[batch + l * row], b[batch + l * col], *out);
        }
    } else if !to.is_float() {
        for (i, out) in d.iter_mut().enumerate() {
            let (batch, row, col) = (i % l, i / l % m, i / (l * m));
            let mut sum = decode_int(to, *out);
            for x in 0..k {
                let (p, q) = (a[batch + l * (row + m * x)], b[batch + l * (x + k * col)]);
                sum += decode_int(a_type, p) * decode_int(b_type, q);
            }
            *out = truncate(to, sum);
        }
    } else {
        let [left, right] = [(a_type, a), (b_type, b)].map(|(scalar, x)| decode_all(scalar, x));
        let mut sums = decode_all(to, d);
        let rows = l * m;
        match a_type == Scalar::F64 {
            true => add_products([l, rows, k], &left, &right, &mut sums, |s, p, q| p.mul_add(q, s)),
            false => add_products([l, rows, k], &left, &right, &mut sums, |s, p, q| s + p * q),
        }
        let both = d.iter_mut().zip(&sums);
        match to {
            Scalar::F32 => both.for_each(|(out, s)| *out = u64::from((*s as f32).to_bits())),
            _ => both.for_each(|(out, s)| *out = encode(to, *s)),
        }
    }
}

/// Rounds an integer to an f64, to odd if inexact. Rounding the f64 to a type of fewer bits then
/// gives the correctly rounded integer.
fn odd(v: i128) -> f64 {
    let near = v as f64;
    let exact = near as i128;
    if exact == v {
        return near;
    }
    let cut = if exact.abs() > v.abs() { f64::from_bits(near.to_bits() - 1) } else { near };
    f64::from_bits(cut.to_bits() | 1)
}

/// erfc(v / √2) of a positive number, corrected for the rounding error of the quotient with the
/// derivative of erfc.
fn erfc_of(v: f64) -> f64 {
    // The exact √2 is `SQRT_2` plus this rest.
    const REST: f64 = -9.667_293_313_452_913e-17;
    let z = v / SQRT_2;
    let lost = ((-z).mul_add(SQRT_2, v) - z * REST) * FRAC_1_SQRT_2;
    libm::erfc(z) - FRAC_2_SQRT_PI * libm::exp(-z * z) * lost
}

/// A function of one operand.
pub(super) fn unary(op: UnaryOp, from: Scalar, to: Scalar, x: u64) -> u64 {
    if !from.is_float() && !to.is_float() {
        let v = decode_int(from, x);
        let v = match op {
            UnaryOp::Neg => -v,
            UnaryOp::Abs => v.abs(),
            UnaryOp::Relu => v.max(0),
            _ => v,
        };
        let (lo, hi) = crate::num::int_range(to);
        // Casts saturate; arithmetic keeps the low bits.
        return match (op, to) {
            (UnaryOp::Cast, Scalar::Bool) => u64::from(v != 0),
            (UnaryOp::Cast, _) => truncate(to, v.clamp(lo, hi)),
            _ => truncate(to, v),
        };
    }
    if !from.is_float() && op == UnaryOp::Cast {
        // Rounded once, also for 64-bit integers.
        return encode(
            to,
            if to == Scalar::F64 { decode_int(from, x) as f64 } else { odd(decode_int(from, x)) },
        );
    }
    let v = decode(from, x);
    let sigmoid = |v: f64| (1.0 + libm::exp(-v)).recip();
    encode(
        to,
        match op {
            UnaryOp::Cast => v,
            UnaryOp::Neg => -v,
            UnaryOp::Abs => f64::from_bits(v.to_bits() << 1 >> 1),
            UnaryOp::Exp => libm::exp(v),
            UnaryOp::Exp2 => libm::exp2(v),
            UnaryOp::Log => libm::log(v),
            UnaryOp::Sqrt => v.sqrt(),
            UnaryOp::Rsqrt => v.sqrt().recip(),
            UnaryOp::Rcp => v.recip(),
            UnaryOp::Tanh => libm::tanh(v),
            UnaryOp::Sigmoid => sigmoid(v),
            UnaryOp::Relu => {
                if v > 0.0 {
                    v
                } else {
                    0.0
                }
            }
            UnaryOp::Gelu => {
                // For erf near -1, the sum with 1 would cancel.
                v * if v < 0.0 {
                    0.5 * erfc_of(-v)
                } else {
                    0.5 + 0.5 * libm::erf(v * FRAC_1_SQRT_2)
                }
            }
            UnaryOp::Silu => v * sigmoid(v),
        },
    )
}

/// Reduces all elements to one, in order.
pub(super) fn reduce(op: ReduceOp, scalar: Scalar, tile: &[u64]) -> u64 {
    let float = |op: BinaryOp| tile.iter().copied().reduce(|x, y| binary(op, scalar, scalar, x, y));
    let bits = |f: fn(u64, u64) -> u64| tile.iter().copied().reduce(f);
    let reduced = match op {
        ReduceOp::Sum => float(BinaryOp::Add),
        ReduceOp::Prod => float(BinaryOp::Mul),
        ReduceOp::Min => float(BinaryOp::Min),
        ReduceOp::Max => float(BinaryOp::Max),
        ReduceOp::Minimum => float(BinaryOp::Minimum),
        ReduceOp::Maximum => float(BinaryOp::Maximum),
        ReduceOp::And => bits(|x, y| x & y),
        ReduceOp::Or => bits(|x, y| x | y),
        ReduceOp::Xor => bits(|x, y| x ^ y),
    };
    reduced.unwrap_or(0)
}

/// The source lane of a lane; its own lane if the source does not exist. Only the low bits of the
/// lane, distance or mask count (PTX ISA, Data Movement and Conversion Instructions: shfl.sync).
pub(super) fn source_lane(op: ShflOp, own: usize, lane: i64, n_lanes: usize) -> usize {
    let (n, own) = (n_lanes.max(1) as i64, own as i64);
    let lane = lane.rem_euclid(n);
    let other = match op {
        ShflOp::Idx => lane,
        ShflOp::Up => own - lane,
        ShflOp::Down => own + lane,
        ShflOp::Bfly => own ^ lane,
    };
    if (0..n).contains(&other) { other as usize } else { own as usize }
}

/// Accumulates a value into a previous value.
pub(crate) fn accumulated(
    op: AccumulateOp,
    scalar: Scalar,
    old: Value,
    value: Value,
    shadows: bool,
) -> Value {
    let bits = binary(op.binary(), scalar, scalar, old.bits, value.bits);
    let shadow = match shadows {
        true => super::shadow::binary(op.binary(), scalar, old.shadow, value.shadow),
        false => 0.0,
    };
    Value { bits, shadow }
}

/// Rounds f32 to tf32: to nearest, ties away from zero.
pub(super) fn tf32_away(x: u64) -> u64 {
    let v = decode(Scalar::F32, x);
    if !v.is_finite() {
        return encode(Scalar::Tf32, v);
    }
    // Half a unit is added to the magnitude; a carry into the exponent gives the correct result.
    (x + 0x1000) & 0xffff_e000
}

/// A function of two operands of one type.
pub(super) fn binary(op: BinaryOp, from: Scalar, to: Scalar, x: u64, y: u64) -> u64 {
    if !from.is_float() {
        return denote::integers_of_bits(op, from, to, x, y);
    }
    let (a, b) = (decode(from, x), decode(from, y));
    let pick = |first: bool| if a.is_nan() || (!b.is_nan() && !first) { b } else { a };
    encode(
        to,
        match op {
            BinaryOp::Add => a + b,
            BinaryOp::Sub => a - b,
            BinaryOp::Mul => a * b,
            BinaryOp::Div => a / b,
            // A negative zero is smaller than a positive zero.
            BinaryOp::Min => pick(a < b || (a == b && a.is_sign_negative())),
            BinaryOp::Max => pick(a > b || (a == b && a.is_sign_positive())),
            BinaryOp::Minimum | BinaryOp::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
            BinaryOp::Minimum => pick(a < b || (a == b && a.is_sign_negative())),
            BinaryOp::Maximum => pick(a > b || (a == b && a.is_sign_positive())),
            BinaryOp::Lt => f64::from(a < b),
            BinaryOp::Le => f64::from(a <= b),
            BinaryOp::Eq => f64::from(a == b),
            BinaryOp::Ne => f64::from(a != b),
            BinaryOp::Ge => f64::from(a >= b),
            BinaryOp::Gt => f64::from(a > b),
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The product of one row and one column.
    fn dot(from: [Scalar; 2], to: Scalar, a: &[f64], b: &[f64], c: u64) -> u64 {
        let raw = |s: Scalar, v: &[f64]| v.iter().map(|x| encode(s, *x)).collect::<Vec<_>>();
        let mut d = [c];
        matmul([1, 1, 1, a.len()], from, to, &raw(from[0], a), &raw(from[1], b), &mut d);
        d[0]
    }

    #[test]
    fn integers_wrap_around_and_keep_their_signs() {
        use Scalar::{I4, I8, I32, U4, U8};
        let top = i32::MAX as u32 as u64;
        assert_eq!(dot([I8, U8], I32, &[-128.0, 1.0], &[255.0, 0.0], 0) as u32 as i32, -32_640);
        assert_eq!(dot([U4, I4], I32, &[15.0, 15.0], &[-8.0, 7.0], 0) as u32 as i32, -15);
        assert_eq!(dot([I8, I8], I32, &[1.0, 0.0], &[1.0, 0.0], top), 0x8000_0000);
    }

    #[test]
    fn quotients_of_integers_equal_their_meaning() {
        for scalar in [Scalar::I8, Scalar::U8] {
            for (x, y) in (0..1u64 << 16).map(|p| (p & 0xff, p >> 8)) {
                let number = |raw| decode(scalar, raw);
                let meant = crate::denote::quotient(scalar, number(x), number(y));
                let got = number(binary(BinaryOp::Div, scalar, scalar, x, y));
                assert_eq!(got, meant, "{scalar} {} / {}", number(x), number(y));
            }
        }
        assert_eq!(crate::denote::quotient(Scalar::I32, -7.0, 2.0), -3.0);
    }

    #[test]
    fn zeros_are_ordered_by_their_signs() {
        let (plus, minus) = (0, 0x8000_0000);
        for (x, y) in [(plus, minus), (minus, plus)] {
            assert_eq!(binary(BinaryOp::Min, Scalar::F32, Scalar::F32, x, y), minus);
            assert_eq!(binary(BinaryOp::Max, Scalar::F32, Scalar::F32, x, y), plus);
        }
    }

    #[test]
    fn integers_become_floats_in_one_step() {
        let cast = |to, v: i64| unary(UnaryOp::Cast, Scalar::I64, to, v as u64);
        // Just above the middle of two bf16 numbers, by less than binary64 can represent.
        let v = (0x101 << 54) + 1;
        assert_eq!(cast(Scalar::Bf16, v), encode(Scalar::Bf16, 258.0 * 2f64.powi(54)));
        assert_eq!(cast(Scalar::Bf16, v - 1), encode(Scalar::Bf16, 256.0 * 2f64.powi(54)));
        assert_eq!(cast(Scalar::Bf16, -v), encode(Scalar::Bf16, -258.0 * 2f64.powi(54)));
        assert_eq!(cast(Scalar::F64, i64::MAX), (i64::MAX as f64).to_bits());
        assert_eq!(
            [cast(Scalar::Bool, -1), cast(Scalar::Bool, 0), cast(Scalar::U8, -1)],
            [1, 0, 0]
        );
    }

    #[test]
    fn tf32_looks_at_the_upper_19_bits() {
        // The last significant bit is 2^-10; lower bits are truncated, not rounded.
        let raw = |v: f32| u64::from(v.to_bits());
        let mut d = [raw(0.0)];
        let a = [raw(1.0 + 1.75 * 2f32.powi(-10)), raw(0.0)];
        let ones = [raw(1.0), raw(1.0)];
        matmul([1, 1, 1, 2], [Scalar::Tf32; 2], Scalar::F32, &a, &ones, &mut d);
        assert_eq!(d[0], raw(1.0 + 2f32.powi(-10)));
    }

    #[test]
    fn ties_away_from_zero() {
        let of = |v: f32| f32::from_bits(tf32_away(u64::from(v.to_bits())) as u32);
        let ulp = 2f32.powi(-10);
        assert_eq!(of(1.0 + 0.5 * ulp), 1.0 + ulp);
        assert_eq!(of(-1.0 - 0.5 * ulp), -1.0 - ulp);
        assert_eq!(of(1.0 + 0.499 * ulp), 1.0);
        assert_eq!(of(2.0 - 0.25 * ulp), 2.0);
        assert_eq!(of(f32::MAX), f32::INFINITY);
        assert!(of(f32::NAN).is_nan());
    }

    #[test]
    fn doubles_are_a_chain_of_fused_multiply_adds() {
        let e = 2f64.powi(-30);
        // (1 + e)(1 - e) = 1 - e²: only a fused multiply-add with -1 gives -e².
        let got = dot([Scalar::F64; 2], Scalar::F64, &[1.0, 1.0 + e], &[-1.0, 1.0 - e], 0);
        assert_eq!(f64::from_bits(got), -e * e);
    }

    #[test]
    fn small_floats_of_two_formats() {
        use Scalar::{E4m3, E5m2, F16, F32};
        let got = dot([E4m3, E5m2], F32, &[448.0, 0.125], &[57344.0, 2f64.powi(-16)], 0);
        assert_eq!(decode(F32, got), f64::from(448.0f32 * 57344.0 + 2f32.powi(-19)));
        assert_eq!(
            decode(F16, dot([E4m3, E4m3], F16, &[448.0, 0.0], &[448.0, 0.0], 0)),
            f64::INFINITY
        );
    }
}
