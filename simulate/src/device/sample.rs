//! Which elements of an output are compared.
//!
//! An element of a MatMul costs K multiply-adds and the reading of a row and a column, so rows and columns
//! are chosen, and all their crossings compared. They are drawn from strata: one from each of as many
//! equal parts, the first and the last row always.

use super::Meaning;

/// Most multiply-adds of comparing one output.
const MAX_WORK: u64 = 1 << 31;
/// Most numbers of rows and columns that are kept while comparing.
const MAX_NUMBERS: u64 = 1 << 22;

/// Elements to compare, ascending.
pub(super) fn elements(meaning: &Meaning, size: i64, most: Option<u64>) -> Vec<i64> {
    let size = size.unsigned_abs();
    let each = match meaning {
        Meaning::MatMul { k, .. } => *k as u64,
        Meaning::Reduction { modes, removed, .. } => {
            modes.iter().zip(removed).filter(|(_, r)| **r).map(|(n, _)| *n as u64).product()
        }
        _ => 1,
    }
    .max(1);
    // The list of elements takes 8 bytes each.
    let most = most.unwrap_or(MAX_WORK / each).clamp(1, 1 << 28);
    if size <= most {
        return (0..size as i64).collect();
    }
    let Meaning::MatMul { l, m, n, .. } = meaning else { return strata(size, most) };
    let (rows, columns) = ((*l * *m) as u64, *n as u64);
    let kept = (MAX_NUMBERS / 2 / each).max(1);
    let side = most.isqrt().min(kept).max(1);
    // Where one side is short, the other takes what it leaves.
    let n_rows = side.max(most / columns.max(1)).min(kept).clamp(1, rows);
    let n_columns = (most / n_rows).min(kept).clamp(1, columns);
    let chosen = strata(rows, n_rows);
    strata(columns, n_columns)
        .into_iter()
        .flat_map(|column| chosen.iter().map(move |row| column * rows as i64 + row))
        .collect()
}

/// `count` of the numbers below `n`, ascending and different: one from each of `count` equal parts.
fn strata(n: u64, count: u64) -> Vec<i64> {
    let bound = |i: u64| (u128::from(i) * u128::from(n) / u128::from(count.max(1))) as u64;
    (0..count.min(n))
        .map(|i| {
            let (lo, hi) = (bound(i), bound(i + 1));
            let at = match i {
                0 => lo,
                _ if i + 1 == count => hi - 1,
                _ => lo + mixed(i) % (hi - lo).max(1),
            };
            at as i64
        })
        .collect()
}

/// A number without pattern.
fn mixed(i: u64) -> u64 {
    let x = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    x ^ x >> 32
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::scalar::Scalar;

    fn matmul(m: usize, n: usize, k: usize) -> Meaning {
        Meaning::MatMul { l: 1, m, n, k, set: true, acc: Scalar::F32 }
    }

    #[test]
    fn small_outputs_are_compared_whole() {
        let all = elements(&matmul(64, 48, 1024), 64 * 48, None);
        assert_eq!(all, (0..64 * 48).collect::<Vec<i64>>());
        assert_eq!(elements(&Meaning::Move, 1 << 20, None).len(), 1 << 20);
    }

    #[test]
    fn large_outputs_are_sampled_in_every_tile() {
        let (m, n) = (4096usize, 4096usize);
        let chosen = elements(&matmul(m, n, 4096), (m * n) as i64, None);
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
    fn counts_that_are_asked_for_are_kept() {
        for most in [1, 2, 7, 1000] {
            let chosen = elements(&matmul(4096, 128, 4096), 4096 * 128, Some(most));
            assert!(!chosen.is_empty() && chosen.len() as u64 <= most, "{most}");
            let chosen = elements(&Meaning::Move, 1 << 40, Some(most));
            assert_eq!(chosen.len() as u64, most);
            assert!(chosen.windows(2).all(|w| w[0] < w[1]));
        }
    }
}
