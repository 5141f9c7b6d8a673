//! Selects the elements of an output that are compared after a run on a device, because a
//! comparison of all elements may take too long.
//!
//! An element may need many multiply-adds and the reading of rows and columns. Therefore indices
//! are selected along each mode, and all their intersections are compared. The indices are
//! stratified: one from each of several equal parts, and always the first and the last index.

use crate::denote::{Axis, Chain, Region};

/// The largest work of comparing one output.
const MAX_WORK: u64 = 1 << 31;
/// The largest number of operand numbers held during a comparison.
const MAX_NUMBERS: u64 = 1 << 23;
/// The default limit of compared elements.
const MAX_ELEMENTS: u64 = 1 << 24;

/// The elements to compare, of an output with these modes.
pub(super) fn region(chain: &Chain, output: usize, modes: &[i64], most: Option<u64>) -> Region {
    let mut counts: Vec<u64> = modes.iter().map(|n| n.unsigned_abs()).collect();
    let limit = most.unwrap_or(MAX_ELEMENTS).clamp(1, 1 << 28);
    loop {
        let size = counts.iter().fold(1u64, |p, n| p.saturating_mul(*n));
        let longest = (0..counts.len()).max_by_key(|i| counts[*i]).filter(|i| counts[*i] > 1);
        if let Some(i) = longest.filter(|_| size > limit) {
            counts[i] = counts[i].div_ceil(2);
            continue;
        }
        let axes = modes.iter().zip(&counts).map(|(n, count)| strata(n.unsigned_abs(), *count));
        let whole = counts.iter().zip(modes).all(|(c, n)| *c == n.unsigned_abs());
        let region = if whole { Region::whole(modes) } else { Region { axes: axes.collect() } };
        let fits = (most.is_some() || chain.work(output, &region) <= MAX_WORK)
            && (whole || chain.numbers(output, &region) <= MAX_NUMBERS.max(2 * size));
        match longest {
            Some(i) if !fits => counts[i] = counts[i].div_ceil(2),
            _ => return region,
        }
    }
}

/// `count` of the numbers below `n`: one from each of `count` equal parts.
fn strata(n: u64, count: u64) -> Axis {
    if count >= n {
        return Axis::Whole(n as i64);
    }
    let bound = |i: u64| (u128::from(i) * u128::from(n) / u128::from(count.max(1))) as u64;
    let list = (0..count).map(|i| {
        let (lo, hi) = (bound(i), bound(i + 1));
        let at = match i {
            0 => lo,
            _ if i + 1 == count => hi - 1,
            _ => lo + mixed(i) % (hi - lo).max(1),
        };
        at as i64
    });
    Axis::of(list.collect())
}

/// A pseudorandom number from a counter.
fn mixed(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denote::Shape;
    use carbyne_ir::ast::SpecKind;
    use carbyne_ir::scalar::Scalar;

    fn matmul(m: usize, n: usize, k: usize) -> Chain {
        let shape = |rows: usize, columns: usize, operand| Shape {
            modes: vec![rows as i64, columns as i64],
            scalar: Scalar::F16,
            operand: Some(operand),
        };
        let inputs = [Ok(shape(m, k, 0)), Ok(shape(k, n, 1))];
        Chain::of(SpecKind::MatMulSet, &[], &inputs, shape(m, n, 2)).unwrap()
    }

    fn copy(n: i64) -> Chain {
        let shape = |operand| Shape { modes: vec![n], scalar: Scalar::F16, operand: Some(operand) };
        Chain::of(SpecKind::Move, &[], &[Ok(shape(0))], shape(1)).unwrap()
    }

    #[test]
    fn small_outputs_are_compared_whole() {
        let all = region(&matmul(64, 48, 1024), 0, &[64, 48], None);
        assert_eq!(all, Region::whole(&[64, 48]));
        assert_eq!(region(&copy(1 << 20), 0, &[1 << 20], None).size(), 1 << 20);
    }

    #[test]
    fn large_outputs_are_sampled_in_every_tile() {
        let (m, n) = (4096usize, 4096usize);
        let modes = [m as i64, n as i64];
        let region = region(&matmul(m, n, 4096), 0, &modes, None);
        let chosen: Vec<i64> = region.elements(&modes).collect();
        assert!((200_000..600_000).contains(&chosen.len()), "{}", chosen.len());
        assert!(chosen.windows(2).all(|w| w[0] < w[1]));
        assert_eq!((chosen[0], chosen.last()), (0, Some(&((m * n) as i64 - 1))));
        let mut tiles = vec![0; 32 * 32];
        for e in &chosen {
            let (row, column) = (*e as usize % m, *e as usize / m);
            tiles[row / 128 + 32 * (column / 128)] += 1;
        }
        assert!(tiles.iter().all(|n| *n > 100), "{:?}", tiles.iter().min());
    }

    #[test]
    fn no_more_are_taken_than_asked_for() {
        for most in [1, 2, 7, 1000] {
            let chosen = region(&matmul(4096, 128, 4096), 0, &[4096, 128], Some(most)).size();
            assert!(chosen > 0 && chosen <= most && 4 * chosen > most, "{most}: {chosen}");
            let chosen = region(&copy(1 << 40), 0, &[1 << 40], Some(most)).size();
            assert!(chosen > 0 && chosen <= most && 2 * chosen >= most, "{most}: {chosen}");
        }
    }
}
