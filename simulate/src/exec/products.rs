//! Adds the products of two matrices to sums, element by element: D += A·B in binary64. The caller
//! passes the function that adds one product to a sum. `arith.rs` passes the multiply-add of an
//! instruction for the stored values, and `shadow.rs` passes one without rounding for the shadows.
//! The evaluation of meanings has loops of its own ([`crate::denote`]).

/// Adds products to the sums of each column, in the order of k. There are l batches; `rows` counts
/// the rows of all batches.
#[inline]
pub(super) fn add_products(
    [l, rows, k]: [usize; 3],
    a: &[f64],
    b: &[f64],
    sums: &mut [f64],
    add: impl Fn(f64, f64, f64) -> f64 + Copy,
) {
    /// The number of products that are added to a sum while it is in a register.
    const DEEP: usize = 4;
    for (i, sums) in sums.chunks_exact_mut(rows.max(1)).enumerate() {
        let deep = if l == 1 { k / DEEP * DEEP } else { 0 };
        for x in (0..deep).step_by(DEEP) {
            let columns: [&[f64]; DEEP] = std::array::from_fn(|deep| &a[(x + deep) * rows..]);
            let factors: [f64; DEEP] = std::array::from_fn(|deep| b[x + deep + k * i]);
            add_several(columns, factors, sums, add);
        }
        for x in deep..k {
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

/// Adds `N` products to each sum, one after the other.
#[inline]
fn add_several<const N: usize>(
    columns: [&[f64]; N],
    factors: [f64; N],
    sums: &mut [f64],
    add: impl Fn(f64, f64, f64) -> f64,
) {
    let n = sums.len();
    let columns: [&[f64]; N] = std::array::from_fn(|i| &columns[i][..n]);
    for r in 0..n {
        let mut sum = sums[r];
        for (column, factor) in columns.iter().zip(factors) {
            sum = add(sum, column[r], factor);
        }
        sums[r] = sum;
    }
}
