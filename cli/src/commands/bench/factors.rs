//! Generates random factors of the matrix products that `bench` measures, and computes the distance
//! between the results of carbyne and of cuBLAS.

use crate::commands::gpu::in_parallel;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::num::{decode, encode};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand_distr::{Distribution, StandardNormal, Uniform};
use rayon::prelude::*;

/// The number of values that one random generator draws.
const CHUNK: usize = 1 << 14;

/// Random elements as bytes. They are standard normal numbers rounded to the type; for integer
/// types, uniform integers. They depend only on the seed.
pub(super) fn drawn(scalar: Scalar, n: usize, seed: u64) -> Vec<u8> {
    let width = width(scalar);
    let mut bytes = vec![0; n.saturating_mul(width)];
    let of_chunk = |(i, chunk): (usize, &mut [u8])| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(i as u64));
        let integers = scalar.int_range().and_then(|(lo, hi)| {
            // With larger integers, sums of products would overflow.
            let (lo, hi) = (lo.max(-128), hi.min(127));
            Uniform::new_inclusive(lo as i64, hi as i64).ok()
        });
        for element in chunk.chunks_exact_mut(width) {
            let number: f64 = match &integers {
                Some(integers) => integers.sample(&mut rng) as f64,
                None => StandardNormal.sample(&mut rng),
            };
            element.copy_from_slice(&encode(scalar, number).to_le_bytes()[..width]);
        }
    };
    in_parallel(|| bytes.par_chunks_mut(CHUNK * width).enumerate().for_each(of_chunk));
    bytes
}

/// Bytes of an element. Types of less than one byte are not used.
pub(super) fn width(scalar: Scalar) -> usize {
    (usize::try_from(scalar.bits()).unwrap_or(0) / 8).max(1)
}

/// Rows and columns of the tiles that are compared separately.
const TILE: usize = 32;

/// The relative distance of two matrices: the norm of the difference divided by the norm of
/// `wanted`. It is the maximum of the distance of the whole matrices and of the distance of the
/// worst tile of 32 x 32 elements, with the norm of `wanted` scaled to the size of the tile. The
/// distance is infinite if an element is NaN.
pub(super) fn distance(scalar: Scalar, columns: usize, is: &[u8], wanted: &[u8]) -> f64 {
    let row = columns.max(1) * width(scalar);
    if is.len() != wanted.len() || is.is_empty() {
        return f64::INFINITY;
    }
    // For each band of rows: the sum of squares of `wanted`, the sum of squared differences, and
    // the mean squared difference of the worst tile.
    let of_band = |(is, wanted): (&[u8], &[u8])| {
        let mut parts = vec![(0.0f64, 0usize); columns.div_ceil(TILE)];
        let mut norm = 0.0;
        let elements = is.chunks_exact(width(scalar)).zip(wanted.chunks_exact(width(scalar)));
        for (i, (is, wanted)) in elements.enumerate() {
            let [is, wanted] = [is, wanted].map(|bytes| decode(scalar, raw(bytes)));
            norm += wanted * wanted;
            if let Some((sum, n)) = parts.get_mut(i % columns.max(1) / TILE) {
                *sum += (is - wanted) * (is - wanted);
                *n += 1;
            }
        }
        let all = parts.iter().map(|(sum, _)| sum).sum::<f64>();
        let worst = parts.iter().map(|(sum, n)| sum / *n as f64);
        (norm, all, worst.fold(0.0, larger))
    };
    let bands = is.par_chunks(row * TILE).zip(wanted.par_chunks(row * TILE)).map(of_band);
    let bands: Vec<(f64, f64, f64)> = in_parallel(|| bands.collect());
    let norm: f64 = bands.iter().map(|(norm, _, _)| norm).sum();
    let all: f64 = bands.iter().map(|(_, all, _)| all).sum();
    let worst = bands.iter().map(|(_, _, worst)| *worst).fold(0.0, larger);
    let elements = (is.len() / width(scalar)) as f64;
    let apart = larger(all / norm, worst * elements / norm).sqrt();
    // Two zero matrices have distance 0.
    if all == 0.0 && norm == 0.0 {
        0.0
    } else if apart.is_nan() {
        f64::INFINITY
    } else {
        apart
    }
}

/// The larger number; NaN if either is NaN.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || a > b { a } else { b }
}

fn raw(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |all, byte| all << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_normal_and_the_seed_s() {
        let n = 100_000;
        let bytes = drawn(Scalar::F32, n, 7);
        let numbers: Vec<f64> =
            bytes.chunks_exact(4).map(|b| decode(Scalar::F32, raw(b))).collect();
        let mean = numbers.iter().sum::<f64>() / n as f64;
        let square = numbers.iter().map(|v| v * v).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        assert_eq!(bytes, drawn(Scalar::F32, n, 7));
        assert_ne!(bytes[..64], drawn(Scalar::F32, n, 8)[..64]);
        assert_ne!(bytes[..64], bytes[4 * CHUNK..4 * CHUNK + 64]);
        let integers = drawn(Scalar::I8, n, 7);
        assert!((-128..=127).all(|v: i8| integers.contains(&v.cast_unsigned())));
    }

    #[test]
    fn one_wrong_element_is_seen() {
        let wanted = drawn(Scalar::F16, 256 * 192, 1);
        assert_eq!(distance(Scalar::F16, 192, &wanted, &wanted), 0.0);
        let mut is = wanted.clone();
        is[2 * (17 * 192 + 100)..][..2].copy_from_slice(&0x4000u16.to_le_bytes());
        let apart = distance(Scalar::F16, 192, &is, &wanted);
        assert!(apart > 0.02 && apart < 0.2, "{apart}");
        is[..2].copy_from_slice(&0xffffu16.to_le_bytes());
        assert_eq!(distance(Scalar::F16, 192, &is, &wanted), f64::INFINITY);
        assert_eq!(distance(Scalar::F16, 192, &is[2..], &wanted), f64::INFINITY);
        let (zeros, ones) = (vec![0; 128], vec![1; 128]);
        assert_eq!(distance(Scalar::I32, 8, &zeros, &zeros), 0.0);
        assert_eq!(distance(Scalar::I32, 8, &ones, &zeros), f64::INFINITY);
    }
}
