//! Computes a fused multiply-add with one rounding, for every scalar type.
//!
//! For binary32 and binary64 the host's instruction rounds correctly, and integers are computed
//! exactly and truncated. For the 16-bit and 8-bit floats the product of two values is exact in
//! binary64, but the sum need not be, and rounding it twice can go wrong: a sum that binary64
//! rounds onto a tie is then rounded the wrong way. The sum is therefore rounded to odd first,
//! which keeps the second rounding right whenever the first one has two bits more (Boldo and
//! Melquiond, "Emulation of FMA and correctly rounded sums").

use super::{decode_int, encode, truncate};
use carbyne_ir::scalar::Scalar;

/// `a * b + c` rounded once. `a` and `b` are of type `from`, `c` and the result are of type `to`,
/// all as bits.
#[must_use]
#[inline]
pub fn fma(from: Scalar, to: Scalar, a: u64, b: u64, c: u64) -> u64 {
    if !to.is_float() {
        return truncate(to, decode_int(from, a) * decode_int(from, b) + decode_int(to, c));
    }
    let (x, y, z) = (super::decode(from, a), super::decode(from, b), super::decode(to, c));
    match to {
        Scalar::F64 => x.mul_add(y, z).to_bits(),
        // Factors have at most 24 bits; if all three are binary32, the host's instruction rounds
        // correctly.
        Scalar::F32 if from != Scalar::F64 => {
            u64::from((x as f32).mul_add(y as f32, z as f32).to_bits())
        }
        _ => encode(to, add_to_odd(x * y, z)),
    }
}

/// The sum, rounded to odd: an inexact sum becomes the neighbor whose last bit is one.
fn add_to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    // The exact rounding error (Knuth's two-sum).
    let of_y = sum - x;
    let lost = (x - (sum - of_y)) + (y - of_y);
    if lost == 0.0 || !sum.is_finite() || sum.to_bits() & 1 == 1 {
        return sum;
    }
    let outwards = (lost > 0.0) == (sum > 0.0);
    f64::from_bits(if outwards { sum.to_bits() + 1 } else { sum.to_bits() - 1 })
}

#[cfg(test)]
mod tests {
    use super::super::decode;
    use super::*;

    /// The exact value in units of 2^-60, rounded to a half with integer arithmetic only.
    fn reference(a: u64, b: u64, c: u64) -> Option<u64> {
        let units = |raw: u64| -> Option<i128> {
            let v = decode(Scalar::F16, raw);
            v.is_finite().then_some((v * 16_777_216.0) as i128)
        };
        // Products are in units of 2^-48; the addend is scaled to them.
        let sum = units(a)? * units(b)? + units(c)? * (1 << 24);
        let (sign, magnitude) = (u64::from(sum < 0) << 15, sum.unsigned_abs());
        if sum == 0 {
            return None; // Signs of zero are checked elsewhere.
        }
        // Quantum of the result: at least 2^-24, else 11 significant bits.
        let top = 128 - magnitude.leading_zeros();
        let drop = 24.max(top.saturating_sub(11));
        let kept = magnitude >> drop;
        let rest = magnitude & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let kept = kept + u128::from(rest > half || (rest == half && kept & 1 == 1));
        let raw = kept as u64 + (u64::from(drop - 24) << 10);
        Some(sign | if raw > 0x7bff { 0x7c00 } else { raw })
    }

    #[test]
    fn halves_are_rounded_once() {
        let mut x = 88_172_645_463_325_252u64;
        for _ in 0..300_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            let (a, b, c) = (x & 0xffff, x >> 16 & 0xffff, x >> 32 & 0xffff);
            if let Some(want) = reference(a, b, c) {
                assert_eq!(fma(Scalar::F16, Scalar::F16, a, b, c), want, "{a:#x} {b:#x} {c:#x}");
            }
        }
    }

    #[test]
    fn a_tie_that_double_rounding_gets_wrong() {
        // 1 + 2^-11 is a tie of a half, and 2^-11 * (1 + 2^-10) is above it by 2^-21; with two
        // steps, the product would be rounded first. 60000 * 2^-24 has a tail of 2^-48 that
        // binary64 would lose.
        let h = |v: f64| encode(Scalar::F16, v);
        let (a, b) = (h(2f64.powi(-11)), h(1.0 + 2f64.powi(-10)));
        assert_eq!(fma(Scalar::F16, Scalar::F16, a, b, h(1.0)), h(1.0) + 1);
        // bf16: 1 + 2^-8 is a tie; a difference of 2^-70 disappears in binary64, but must decide.
        let b16 = |v: f64| encode(Scalar::Bf16, v);
        let big = b16(1.0 + 2f64.powi(-7));
        let tie = decode(Scalar::Bf16, big) + 2f64.powi(-8);
        assert_eq!(encode(Scalar::Bf16, tie), big + 1); // Ties to even go up here ...
        let x = add_to_odd(tie, -2f64.powi(-70)); // ... but just below the tie they may not.
        assert_eq!(encode(Scalar::Bf16, x), big);
        assert_eq!(encode(Scalar::Bf16, tie - 2f64.powi(-70)), big + 1, "the trap");
    }

    #[test]
    fn singles_and_integers() {
        let f = |v: f32| u64::from(v.to_bits());
        let a = 1.0 + f32::EPSILON;
        let want = a.mul_add(a, -1.0);
        assert_eq!(fma(Scalar::F32, Scalar::F32, f(a), f(a), f(-1.0)), f(want));
        let i = |v: i64| v as u64 & 0xff;
        assert_eq!(fma(Scalar::I8, Scalar::I32, i(-3), i(5), 7), (-8i32) as u32 as u64);
    }
}
