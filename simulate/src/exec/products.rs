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
    for (i, sums) in sums.chunks_exact_mut(rows.max(1)).enumerate() {
        for x in 0..k {
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
