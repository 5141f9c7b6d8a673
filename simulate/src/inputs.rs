//! What global memory holds before a program runs.
//!
//! Every element is a function of the seed, the tensor's name and the element's number in its logical shape
//! (column-major), whatever its strides: a transposed layout holds the same matrix. Nothing is stored.
//! - [`Inputs::Seed`]: floats uniform in [-1, 1), rounded to their type; integers from -2 to 2 (0 to 3 where
//!   unsigned), as far as the type goes.
//!   A number that is passed by value, such as a scale or an epsilon, lies in [0, 1) where it is a float.
//!   Where a tensor says what its integers are from and below, they are spread over that range; where it splits a number, they
//!   are where parts of about the same size begin, some of them empty; with one seed in four one part is all.
//! - [`Inputs::Ints`]: integers from -2 to 2 (0 to 3 where unsigned) in every type. Products are at most 4
//!   in magnitude, so a sum over k is exact in f16 up to k = 512, in bf16 up to 64, in f32 up to 2^22.
//!
//! What a program only writes begins undefined, so that reading it is an error.

use crate::array::Array;
use crate::num::{encode, int_range};
use carbyne_ir::scalar::Scalar;
use std::sync::Arc;

/// How tensors are filled that the caller gives no array for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Random numbers.
    Seed(u64),
    /// Random small integers, for exact comparisons.
    Ints(u64),
}

/// What one tensor holds.
#[derive(Clone)]
pub(crate) enum Initial {
    /// Nothing.
    Undefined,
    /// Random numbers of a stream.
    Random(u64),
    /// Random numbers of a stream, floats not below zero.
    Unsigned(u64),
    /// Random small integers of a stream.
    Ints(u64),
    /// Random integers of a stream, from the first and below the second.
    Between(u64, i64, i64),
    /// Where consecutive parts of some number of elements begin and end: of a stream, so many parts, so many elements.
    Splits(u64, i64, i64),
    /// The caller's array; extents of the tensor's modes.
    Array(Arc<Array>, Vec<i64>),
}

impl Initial {
    /// Of the tensor of that name, or of the number where `number`.
    pub(crate) fn generated(inputs: Inputs, name: &str, number: bool) -> Self {
        // FNV-1a: names of equal seeds get unrelated streams.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        match inputs {
            Inputs::Seed(seed) if number => Initial::Unsigned(mix(seed ^ hash)),
            Inputs::Seed(seed) => Initial::Random(mix(seed ^ hash)),
            Inputs::Ints(seed) => Initial::Ints(mix(seed ^ hash)),
        }
    }

    /// The same, of a tensor that states what its integers are from and below.
    pub(crate) fn within(self, (lo, hi): (i64, i64)) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) | Initial::Unsigned(stream) => {
                Initial::Between(stream, lo, hi)
            }
            other => other,
        }
    }

    /// The same, of a tensor of `parts + 1` elements that splits `n`.
    pub(crate) fn splitting(self, n: i64, parts: i64) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) | Initial::Unsigned(stream) => {
                Initial::Splits(stream, n, parts)
            }
            other => other,
        }
    }

    /// Element `e` of the logical shape, column-major.
    #[inline]
    pub(crate) fn value(&self, scalar: Scalar, e: i64) -> Option<u64> {
        match self {
            Initial::Undefined => None,
            Initial::Random(stream) if scalar.is_float() => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                // 52 random bits in [1, 2), moved to [-1, 1).
                let unit = f64::from_bits(0x3ff0_0000_0000_0000 | bits >> 12);
                Some(encode(scalar, 2.0 * unit - 3.0))
            }
            Initial::Unsigned(stream) if scalar.is_float() => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let unit = f64::from_bits(0x3ff0_0000_0000_0000 | bits >> 12);
                Some(encode(scalar, unit - 1.0))
            }
            Initial::Random(stream) | Initial::Unsigned(stream) | Initial::Ints(stream) => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let (lo, hi) = if scalar.is_float() { (-2, 2) } else { int_range(scalar) };
                let (lo, hi) = if lo < 0 { (lo.max(-2), hi.min(2)) } else { (0, hi.min(3)) };
                let n = (hi - lo + 1) as u64;
                let value = lo + i128::from(((bits >> 32) * n) >> 32);
                Some(if scalar.is_float() {
                    encode(scalar, value as f64)
                } else {
                    crate::num::truncate(scalar, value)
                })
            }
            Initial::Between(stream, lo, hi) => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let n = i128::from(*hi) - i128::from(*lo);
                let offset = (i128::from(bits >> 1) * n.max(1)) >> 63;
                Some(crate::num::truncate(scalar, i128::from(*lo) + offset))
            }
            // Some give everything to one part.
            Initial::Splits(stream, n, parts) if stream % 4 == 0 => {
                let own = (mix(*stream) >> 1) as i64 % (*parts).max(1);
                Some(crate::num::truncate(scalar, i128::from(if e > own { *n } else { 0 })))
            }
            Initial::Splits(stream, n, parts) => {
                // Equal parts, each end moved by up to half a part: ends that meet leave a part empty.
                let moved = match e {
                    0 => 0,
                    e if e >= *parts => 0,
                    _ => {
                        (mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN))) >> 62) as i128
                            * 2
                            - 3
                    }
                };
                let at =
                    (i128::from(e) * 6 + moved) * i128::from(*n) / (i128::from(*parts).max(1) * 6);
                Some(crate::num::truncate(scalar, at.clamp(0, i128::from(*n))))
            }
            Initial::Array(array, modes) => {
                // The array is row-major: the last mode varies fastest.
                let (mut rest, mut at) = (e, 0i64);
                let mut coordinates = [0i64; 8];
                if modes.len() <= coordinates.len() {
                    for (c, n) in coordinates.iter_mut().zip(modes) {
                        *c = rest % n;
                        rest /= n;
                    }
                    for (c, n) in coordinates.iter().zip(modes) {
                        at = at * n + c;
                    }
                } else {
                    for (c, n) in crate::plan::coordinates(modes, e).iter().zip(modes) {
                        at = at * n + c;
                    }
                }
                array.values.get(usize::try_from(at).ok()?).copied()
            }
        }
    }
}

pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::decode;

    #[test]
    fn numbers_are_spread_and_never_all_zero() {
        let initial = Initial::generated(Inputs::Seed(1), "A", false);
        let values: Vec<f64> = (0..10_000)
            .map(|e| decode(Scalar::F32, initial.value(Scalar::F32, e).unwrap()))
            .collect();
        let mean = values.iter().sum::<f64>() / 10_000.0;
        let square = values.iter().map(|v| v * v).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.03 && (square - 1.0 / 3.0).abs() < 0.02, "{mean} {square}");
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        let other = Initial::generated(Inputs::Seed(1), "B", false);
        assert_ne!(initial.value(Scalar::F32, 0), other.value(Scalar::F32, 0));
    }

    #[test]
    fn integers_cover_their_range() {
        let initial = Initial::generated(Inputs::Ints(7), "A", false);
        for (scalar, lo, hi) in [
            (Scalar::F16, -2.0, 2.0),
            (Scalar::I8, -2.0, 2.0),
            (Scalar::U4, 0.0, 3.0),
            (Scalar::I1, -1.0, 0.0),
            (Scalar::Bool, 0.0, 1.0),
        ] {
            let values: Vec<f64> =
                (0..1000).map(|e| decode(scalar, initial.value(scalar, e).unwrap())).collect();
            assert_eq!(values.iter().copied().fold(f64::INFINITY, f64::min), lo, "{scalar}");
            assert_eq!(values.iter().copied().fold(f64::NEG_INFINITY, f64::max), hi, "{scalar}");
        }
    }
}
