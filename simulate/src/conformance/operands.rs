//! Generates operands for the probe of an atom. They distinguish lanes, values and functions: a
//! device that exchanges lanes or values, or computes another function, gives another result.
//!
//! An element is a function of the operand's name, the block and the element's number in its tile,
//! so that threads that hold one element agree on it.

use super::{Arrays, Case, Data};
use crate::array::Array;
use crate::inputs::{GOLDEN, mix};
use crate::num::{encode, int_range, truncate};
use carbyne_atoms::probe::Probe;
use carbyne_atoms::probe::operand::ProbeOperand;
use carbyne_ir::scalar::Scalar;

/// The arrays that a probe reads.
#[must_use]
pub fn given(probe: &Probe, case: Case) -> Arrays {
    let alone = probe.operands.iter().filter(|o| o.input.is_some()).count() == 1;
    let array = |(order, o): (usize, &ProbeOperand)| {
        let order = (!alone).then_some(order);
        let name = o.input.clone()?;
        let hash = name.bytes().fold(case.seed, |h, b| mix(h ^ u64::from(b)).wrapping_add(GOLDEN));
        let (scalar, size) = (o.scalar, o.tile_size());
        let value = |block: i64, index: i64| {
            value((case.data, order), scalar, hash, (block * size + index).unsigned_abs())
        };
        let values = o.elements().iter().map(|e| value(e.block, e.index)).collect();
        let shape = o.extents().iter().map(|n| n.unsigned_abs()).collect();
        Some((name, Array { scalar, shape, values }))
    };
    probe.operands.iter().enumerate().filter_map(array).collect()
}

/// Element `e` of an operand, as bits. `order` is the index of the operand; none for a single
/// operand.
fn value((data, order): (Data, Option<usize>), scalar: Scalar, stream: u64, e: u64) -> u64 {
    let random = mix(stream.wrapping_add(e.wrapping_mul(GOLDEN)));
    match data {
        Data::Bits | Data::Spread if scalar == Scalar::Bool => random & 1,
        Data::Bits => scrambled(scalar.bits(), stream, e),
        Data::SmallIntegers if scalar == Scalar::Bool => ((e / 64) ^ stream) & 1,
        Data::SmallIntegers => {
            let (lo, hi) = if scalar.is_float() { (-2, 2) } else { int_range(scalar) };
            let (lo, hi) = if lo < 0 { (lo.max(-2), hi.min(2)) } else { (0, hi.min(3)) };
            let v = lo + i128::from(((random >> 32) * (hi - lo + 1) as u64) >> 32);
            if scalar.is_float() { encode(scalar, v as f64) } else { truncate(scalar, v) }
        }
        Data::Ones => encode(scalar, 1.0),
        Data::Uniform if !scalar.is_float() => scrambled(scalar.bits(), stream, e),
        // The insignificant bits of a tf32 are not zero.
        Data::Uniform if scalar == Scalar::Tf32 => encode(Scalar::F32, uniform(random)),
        Data::Uniform => encode(scalar, uniform(random)),
        Data::Spread => spread(scalar, order, (stream, e), random),
    }
}

/// A number in \[-1, 1) of 52 random bits.
fn uniform(random: u64) -> f64 {
    2.0 * f64::from_bits(0x3ff0_0000_0000_0000 | random >> 12) - 3.0
}

/// A permutation of the numbers of `bits` bits, applied to the low bits of `e`.
fn scrambled(bits: i64, stream: u64, e: u64) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let half = (bits / 2).max(1);
    let mut x = (e ^ stream) & mask;
    for factor in [GOLDEN | 1, 0xbf58_476d_1ce4_e5b9] {
        x = x.wrapping_mul(factor) & mask;
        x ^= x >> half;
    }
    x
}

/// Limits first; for several operands, every combination of those of the first two.
fn spread(scalar: Scalar, order: Option<usize>, (stream, e): (u64, u64), random: u64) -> u64 {
    let short = scalar.bits() <= 16;
    let ends = ends(scalar);
    let n = ends.len() as u64;
    if e < n * n && !(short && order.is_none()) {
        let digit = match order {
            None | Some(0) => e % n,
            Some(1) => e / n,
            Some(_) => random % n,
        };
        return ends[digit as usize];
    }
    if short {
        return scrambled(scalar.bits(), stream, e);
    }
    let all = u64::MAX >> (64 - scalar.bits());
    let more = mix(random);
    match (scalar.is_float(), e % 4) {
        (_, 0) => random & all,
        (true, 1) => encode(scalar, 20.0 * uniform(random)),
        (true, 2) => encode(scalar, uniform(random) * 2f64.powi((more % 61) as i32 - 30)),
        (true, _) => encode(scalar, 1.0 + uniform(random) * 2f64.powi(-((more % 24) as i32))),
        (false, 1) => truncate(scalar, i128::from(random % 1024) - 512),
        // Integers near every power of two.
        (false, _) => {
            let power = 1i128 << (more % scalar.bits().unsigned_abs());
            truncate(scalar, power + i128::from(random % 5) - 2)
        }
    }
}

/// Zeros, the smallest and largest numbers, infinities, NaN, and their neighbors.
fn ends(scalar: Scalar) -> Vec<u64> {
    let bits = scalar.bits();
    let sign = 1u64 << (bits - 1);
    let Some(float) = scalar.float() else {
        let all = u64::MAX >> (64 - bits);
        return vec![0, 1, 2, all, all - 1, sign, sign - 1, sign + 1, sign - 2];
    };
    let (one, infinity) = (encode(scalar, 1.0), encode(scalar, f64::INFINITY));
    let unit = if scalar == Scalar::Tf32 { 1 << 13 } else { 1 };
    let smallest_normal = encode(scalar, 2f64.powi(float.least_normal()));
    let positive = [
        0,
        unit,
        smallest_normal - unit,
        smallest_normal,
        one - unit,
        one,
        one + unit,
        encode(scalar, 0.5),
        encode(scalar, 3.0),
        infinity - unit,
        infinity,
        encode(scalar, f64::NAN) & !sign,
    ];
    positive.iter().flat_map(|p| [*p, p | sign]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn bits_are_all_different() {
        for bits in [4, 8, 12, 16] {
            for stream in [0, 0x1234_5678_9abc_def0] {
                let all: BTreeSet<u64> =
                    (0..1u64 << bits).map(|e| scrambled(bits, stream, e)).collect();
                assert_eq!(all.len(), 1 << bits, "{bits}");
            }
        }
        let wide: BTreeSet<u64> = (0..100_000).map(|e| scrambled(32, 7, e)).collect();
        assert_eq!(wide.len(), 100_000);
    }

    #[test]
    fn limits_occur_in_every_combination() {
        let n = ends(Scalar::F32).len() as u64;
        let of = |order, e| spread(Scalar::F32, Some(order), (0, e), 0);
        let pairs: BTreeSet<(u64, u64)> = (0..n * n).map(|e| (of(0, e), of(1, e))).collect();
        assert_eq!(pairs.len() as u64, n * n);
    }
}
