//! Converts between the bits of scalars and their numbers, and rounds numbers into each type. The
//! simulator, the comparison with devices and the tests share this one definition of each type.
//!
//! A stored element is a `u64` whose low bits are the element. [`decode`] gives its value in
//! binary64, which is exact for every type except the 64-bit integers; [`encode`] rounds once, to
//! nearest even. Invariant: `encode(s, decode(s, raw)) == raw` for every `raw` that `decode`
//! converts exactly, except for NaNs and for infinities of 8-bit floats (and, for tf32, if the
//! unused low bits are zero).
//!
//! 8-bit floats saturate, because the hardware has only saturating conversions
//! (`cvt.rn.satfinite`); the other floats overflow to infinity. Conversions to integers round to
//! nearest even and saturate; NaN gives 0.

mod fma;
mod format;

pub use fma::fma;
use format::Format;

use carbyne_ir::scalar::Scalar;

/// The value of a stored element. 64-bit integers are rounded to binary64.
#[must_use]
#[inline]
pub fn decode(scalar: Scalar, raw: u64) -> f64 {
    use Scalar as S;
    match scalar {
        S::F64 => f64::from_bits(raw),
        S::F32 => f64::from(f32::from_bits(raw as u32)),
        S::Tf32 => f64::from(f32::from_bits(raw as u32 & !0x1fff)),
        S::F16 => f64::from(half_to_single(raw as u16)),
        S::Bf16 => f64::from(f32::from_bits((raw as u32) << 16)),
        S::E4m3 => Format::E4M3.decode(raw),
        S::E5m2 => Format::E5M2.decode(raw),
        S::I64
        | S::I32
        | S::I16
        | S::I8
        | S::I4
        | S::I2
        | S::I1
        | S::U64
        | S::U32
        | S::U16
        | S::U8
        | S::U4
        | S::U2
        | S::U1
        | S::Bool
        | S::Mbarrier => decode_int(scalar, raw) as f64,
    }
}

/// The values of stored elements.
#[must_use]
pub fn decode_all(scalar: Scalar, raw: &[u64]) -> Vec<f64> {
    let each = raw.iter();
    // With a known type, the loop has no branches.
    match scalar {
        Scalar::F32 => each.map(|raw| f64::from(f32::from_bits(*raw as u32))).collect(),
        Scalar::F16 => each.map(|raw| f64::from(half_to_single(*raw as u16))).collect(),
        _ => each.map(|raw| decode(scalar, *raw)).collect(),
    }
}

/// The value of a stored integer or boolean.
#[must_use]
pub fn decode_int(scalar: Scalar, raw: u64) -> i128 {
    let bits = scalar.bits() as u32;
    let low = if bits == 64 { raw } else { raw & ((1 << bits) - 1) };
    if is_signed(scalar) {
        i128::from((low << (64 - bits)) as i64 >> (64 - bits))
    } else {
        i128::from(low)
    }
}

/// The element nearest to a number; ties go to the even element.
#[must_use]
#[inline]
pub fn encode(scalar: Scalar, value: f64) -> u64 {
    use Scalar as S;
    match scalar {
        S::F64 => value.to_bits(),
        S::F32 => u64::from((value as f32).to_bits()),
        S::Tf32 => Format::TF32.encode(value) << 13,
        S::F16 => Format::F16.encode(value),
        S::Bf16 => Format::BF16.encode(value),
        S::E4m3 => Format::E4M3.encode(value),
        S::E5m2 => Format::E5M2.encode(value),
        S::Bool => u64::from(value != 0.0),
        S::I64
        | S::I32
        | S::I16
        | S::I8
        | S::I4
        | S::I2
        | S::I1
        | S::U64
        | S::U32
        | S::U16
        | S::U8
        | S::U4
        | S::U2
        | S::U1
        | S::Mbarrier => {
            // `as` saturates to i128 and converts NaN to 0.
            let (lo, hi) = int_range(scalar);
            truncate(scalar, (value.round_ties_even() as i128).clamp(lo, hi))
        }
    }
}

/// The low bits of an integer, as in the integer arithmetic of the hardware.
#[must_use]
pub fn truncate(scalar: Scalar, value: i128) -> u64 {
    match scalar.bits() {
        64 => value as u64,
        bits => value as u64 & ((1 << bits) - 1),
    }
}

/// The smallest and the largest value of an integer type; for other types, the range of their bits
/// as a number.
#[must_use]
pub fn int_range(scalar: Scalar) -> (i128, i128) {
    scalar.int_range().unwrap_or((0, (1i128 << scalar.bits()) - 1))
}

fn is_signed(scalar: Scalar) -> bool {
    int_range(scalar).0 < 0
}

/// Half the distance between 1 and the next number: the largest relative error of one rounding.
/// Zero for integers, whose arithmetic is exact.
#[must_use]
pub fn unit_roundoff(scalar: Scalar) -> f64 {
    match significand_bits(scalar) {
        Some(p) => f64::from_bits((1023 - u64::from(p)) << 52),
        None => 0.0,
    }
}

/// The bits of the significand, including the leading one; none for integers.
#[inline]
fn significand_bits(scalar: Scalar) -> Option<u32> {
    scalar.float().map(|f| f.digits as u32)
}

/// The smallest positive number of a floating-point type; zero for integers.
#[must_use]
pub fn smallest(scalar: Scalar) -> f64 {
    match scalar.float() {
        // The number is subnormal in binary64.
        Some(f) if f.least < -1022 => f64::from_bits(1 << (f.least + 1074)),
        Some(f) => f64::from_bits(((1023 + f.least) as u64) << 52),
        None => 0.0,
    }
}

/// One unit in the last place of a number of this size: the distance between numbers of the type
/// there, without an upper bound of its exponents. 1 for integers.
#[must_use]
#[inline]
pub fn ulp(scalar: Scalar, value: f64) -> f64 {
    let Some(bits) = significand_bits(scalar) else { return 1.0 };
    let exponent = value.to_bits() >> 52 & 0x7ff;
    let below = exponent.saturating_sub(u64::from(bits) - 1);
    // The exponent of subnormal numbers of binary64 is also 0.
    f64::from_bits(below << 52).max(smallest(scalar))
}

/// The magnitude up to which the type contains every integer.
#[must_use]
pub fn exact_integers(scalar: Scalar) -> f64 {
    match significand_bits(scalar) {
        Some(p) => f64::from_bits((1023 + u64::from(p)) << 52),
        None => (int_range(scalar).1 as f64).min(2f64.powi(53)),
    }
}

/// binary16 to binary32, exactly. The common case is two shifts and an addition.
fn half_to_single(h: u16) -> f32 {
    let sign = u32::from(h & 0x8000) << 16;
    let magnitude = u32::from(h & 0x7fff);
    match magnitude >> 10 {
        0 => {
            let v = magnitude as f32 * (1.0 / 16_777_216.0);
            f32::from_bits(sign | v.to_bits())
        }
        31 => f32::from_bits(sign | 0x7f80_0000 | (magnitude & 0x3ff) << 13),
        _ => f32::from_bits(sign | ((magnitude << 13) + (112 << 23))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_in_the_last_place_are_distances_of_neighbors() {
        use Scalar as S;
        for scalar in [S::F64, S::F32, S::F16, S::Bf16, S::E4m3, S::E5m2] {
            for value in [1.0, 1.5, 0.75, 3.0, 192.0, smallest(scalar), smallest(scalar) * 6.0] {
                let raw = encode(scalar, value);
                assert_eq!(decode(scalar, raw), value, "{scalar}");
                let next = decode(scalar, raw + 1);
                assert_eq!(ulp(scalar, value), next - value, "{scalar} {value}");
            }
        }
        assert_eq!(ulp(S::Tf32, 1.0), 0.5f64.powi(10));
        assert_eq!(ulp(S::I32, 1e6), 1.0);
        assert_eq!(ulp(S::F32, 0.0), 0.5f64.powi(149));
    }

    #[test]
    fn halves_agree_with_the_half_crate() {
        for raw in 0..=u16::MAX {
            let ours = decode(Scalar::F16, u64::from(raw));
            let theirs = half::f16::from_bits(raw).to_f64();
            assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{raw:#x}");
            let ours = decode(Scalar::Bf16, u64::from(raw));
            let theirs = half::bf16::from_bits(raw).to_f64();
            assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{raw:#x}");
        }
    }

    #[test]
    fn rounding_agrees_with_the_half_crate() {
        let mut x = 0x1234_5678_9abc_def1u64;
        for _ in 0..200_000 {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            // Exponents near those of a half.
            let exponent = 1023 - 30 + (x >> 58) % 50;
            // The reference crate ignores the low 32 bits of the significand.
            let man = x << 32 & 0xf_ffff_0000_0000;
            let v = f64::from_bits((x >> 63) << 63 | exponent << 52 | man);
            assert_eq!(
                encode(Scalar::F16, v),
                u64::from(half::f16::from_f64(v).to_bits()),
                "{v:e}"
            );
            assert_eq!(
                encode(Scalar::Bf16, v),
                u64::from(half::bf16::from_f64(v).to_bits()),
                "{v:e}"
            );
        }
    }

    #[test]
    fn every_element_survives_a_round_trip() {
        use Scalar as S;
        for s in
            [S::F16, S::Bf16, S::E4m3, S::E5m2, S::I8, S::U8, S::I4, S::U4, S::I2, S::U1, S::I16]
        {
            for raw in 0..1u64 << s.bits() {
                let v = decode(s, raw);
                let infinite_e5m2 = s == S::E5m2 && v.is_infinite(); // Saturates.
                if !v.is_nan() && !infinite_e5m2 {
                    assert_eq!(encode(s, v), raw, "{s} {raw:#x} {v}");
                }
            }
        }
        for raw in [0u64, 1, 0x3f80_0000, 0x7f80_0000, 0x8000_0000, 0xc0ff_e000] {
            assert_eq!(encode(S::Tf32, decode(S::Tf32, raw)), raw & !0x1fff);
        }
    }

    #[test]
    fn ends_of_the_ranges() {
        assert_eq!(encode(Scalar::F16, 65519.99), 0x7bff);
        assert_eq!(encode(Scalar::F16, 65520.0), 0x7c00);
        assert_eq!(decode(Scalar::E4m3, encode(Scalar::E4m3, 1e9)), 448.0);
        assert_eq!(decode(Scalar::E5m2, encode(Scalar::E5m2, f64::INFINITY)), 57344.0);
        assert!(decode(Scalar::E4m3, encode(Scalar::E4m3, f64::NAN)).is_nan());
        assert_eq!(decode(Scalar::I8, encode(Scalar::I8, -1000.0)), -128.0);
        assert_eq!(encode(Scalar::U8, f64::NAN), 0);
        assert_eq!(decode_int(Scalar::I64, u64::MAX), -1);
        assert_eq!(decode_int(Scalar::U64, u64::MAX), i128::from(u64::MAX));
    }
}
