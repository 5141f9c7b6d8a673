//! Sums of products, for values of any arithmetic.

/// Adds products to the sums of each column, in the order of k. There are l batches, and rows count
/// those of all of them.
#[inline]
pub(super) fn add_products(
    [l, rows, k]: [usize; 3],
    a: &[f64],
    b: &[f64],
    sums: &mut [f64],
    add: impl Fn(f64, f64, f64) -> f64,
) {
    /// Products that are added to a sum while it is at hand.
    const DEEP: usize = 4;
    for (i, sums) in sums.chunks_exact_mut(rows.max(1)).enumerate() {
        let mut x = 0;
        while l == 1 && x + DEEP <= k {
            let columns: [&[f64]; DEEP] =
                std::array::from_fn(|deep| &a[(x + deep) * rows..][..sums.len()]);
            let factors: [f64; DEEP] = std::array::from_fn(|deep| b[x + deep + k * i]);
            for r in 0..sums.len() {
                let products = columns.iter().zip(factors);
                sums[r] = products.fold(sums[r], |s, (column, q)| add(s, column[r], q));
            }
            x += DEEP;
        }
        for x in x..k {
            let column = &a[x * rows..(x + 1) * rows];
            let factors = &b[l * (x + k * i)..][..l];
            match factors {
                [q] => sums.iter_mut().zip(column).for_each(|(s, p)| *s = add(*s, *p, *q)),
                _ => {
                    for (s, (p, q)) in
                        sums.iter_mut().zip(column.iter().zip(factors.iter().cycle()))
                    {
                        *s = add(*s, *p, *q);
                    }
                }
            }
        }
    }
}
