//! Finds one compact layout in which several given runs of elements are consecutive (unification).
//!
//! Hexcute (CGO 2026, section V, Fig. 10) finds layouts of shared memory this way: every access
//! states the elements that it needs side by side, and one layout must serve all accesses.
//!
//! A *run* of `n` elements is a layout of size `n` whose indices are column-major indices of the
//! tensor: element `j` of the run is element `run(j)` of the tensor. The unknown is a layout `m` of
//! the tensor's shape, one-to-one onto `0..size`, with `m(run(j)) == j` for every run and every `j`
//! below its size.
//!
//! The solver splits modes at the ends of runs and gives each part, a *digit*, one stride. It is an
//! [`Obstacle`] if a digit needs two strides or if two digits need one stride. Digits outside of
//! all runs follow compactly.
//!
//! Invariant: every returned layout satisfies these equations. If runs cut digits unevenly, the
//! solver fails, even if a layout exists.

use super::{Layout, LayoutError, Obstacle};
use crate::tuple::IntTuple;

/// A part of a mode: extent, step within the column-major index, stride in memory if assigned.
type Digit = (i64, i64, Option<i64>);

/// A compact layout of `shape` that makes every run consecutive. A run is given by its leaves,
/// (extent, step) in the column-major index, so a [`Layout`] can be a run. The last
/// `shape.len() - outer` modes are the fastest if no run requires otherwise; the first `outer`
/// modes, such as stages of a ring, are slower.
///
/// ```
/// # use carbyne_ir::layout::{Layout, LayoutError, Obstacle, unify};
/// // Hexcute, Fig. 10(c): one access reads 8 elements of a column, the other one
/// // four such pieces, 16 apart.
/// let (one, four): (Layout, Layout) = ("8:1".parse()?, "(8,4):(1,16)".parse()?);
/// let m = unify(&[64, 64], 0, &[&one, &four])?;
/// assert_eq!(m.to_string(), "((8,2,4),64):((1,32,8),64)");
/// assert!((0..32).all(|j| m.at(four.at(j)) == j));
/// // Rows of 8 cannot be consecutive as well.
/// let rows: Layout = "8:64".parse()?;
/// let none = unify(&[64, 64], 0, &[&one, &rows]);
/// assert_eq!(none, Err(LayoutError::NotUnified(Obstacle::TwoDirections(1))));
/// # Ok::<(), LayoutError>(())
/// ```
///
/// # Errors
/// [`LayoutError::NotUnified`] with the first obstacle; the errors of invalid shapes.
pub fn unify<R: AsRef<[(i64, i64)]>>(
    shape: &[i64],
    outer: usize,
    runs: &[R],
) -> Result<Layout, LayoutError> {
    // Checks the extents and that their product fits.
    Layout::col_major(IntTuple::from(shape.to_vec()))?;
    let mut modes: Vec<Vec<Digit>> = vec![];
    let mut step = 1i64;
    for &extent in shape {
        modes.push(vec![(extent, step, None)]);
        step *= extent;
    }
    let runs = || runs.iter().map(AsRef::as_ref);
    let pieces = runs().map(|run| cut(&mut modes, run)).collect::<Result<Vec<_>, _>>();
    let pieces = pieces.map_err(LayoutError::NotUnified)?;
    let mut next = assign(&mut modes, &pieces).map_err(LayoutError::NotUnified)?;
    // The mode of the first run comes first, then the others in order.
    let outer = outer.min(shape.len());
    let first = runs().flatten().next().map_or(outer, |digit| mode_of(shape, digit.1));
    let order: Vec<usize> = std::iter::once(first)
        .chain((outer..shape.len()).chain(0..outer).filter(|m| *m != first))
        .collect();
    for m in order {
        for digit in modes.get_mut(m).into_iter().flatten() {
            if digit.2.is_none() {
                digit.2 = Some(next);
                next *= digit.0;
            }
        }
    }
    let mode = |digits: &Vec<Digit>| {
        let digits = digits.iter().map(|&(n, _, stride)| Layout::of_mode(n, stride.unwrap_or(0)));
        Layout::concat(&digits.collect::<Result<Vec<_>, _>>()?).map(|mode| mode.coalesce())
    };
    Layout::concat(&modes.iter().map(mode).collect::<Result<Vec<_>, _>>()?)
}

/// The mode that holds a step of the column-major index.
fn mode_of(shape: &[i64], step: i64) -> usize {
    let mut end = 1;
    for (i, extent) in shape.iter().enumerate() {
        end *= extent;
        if step < end {
            return i;
        }
    }
    shape.len().saturating_sub(1)
}

/// Splits the digits of the modes where the run begins and ends. Returns the run, split at the ends
/// of modes.
fn cut(modes: &mut [Vec<Digit>], run: &[(i64, i64)]) -> Result<Vec<(i64, i64)>, Obstacle> {
    let mut pieces = vec![];
    for &(mut n, mut s) in run {
        while n > 1 {
            let Some((m, i)) = modes.iter().enumerate().find_map(|(m, ds)| {
                ds.iter().position(|&(e, step, _)| step <= s && s < step * e).map(|i| (m, i))
            }) else {
                return Err(Obstacle::RunLeaves(s));
            };
            let (extent, step, _) = modes[m][i];
            if s % step != 0 || extent % (s / step) != 0 {
                return Err(Obstacle::RunBegins { run: s, digit: (extent, step) });
            }
            let before = s / step;
            let here = extent / before; // From `s` to the end of the digit.
            let take = n.min(here);
            if here % take != 0 || n % take != 0 {
                return Err(Obstacle::RunEnds { run: n, digit: (extent, step) });
            }
            let after = here / take;
            let parts = [(before, step), (take, s), (after, s * take)];
            let digits = parts.into_iter().filter(|(e, _)| *e > 1).map(|(e, st)| (e, st, None));
            modes[m].splice(i..=i, digits);
            pieces.push((take, s));
            n /= take;
            s *= take;
        }
    }
    Ok(pieces)
}

/// Gives the digits of every run the strides 1, n₀, n₀·n₁, ..., and returns the stride after all of
/// them.
fn assign(modes: &mut [Vec<Digit>], runs: &[Vec<(i64, i64)>]) -> Result<i64, Obstacle> {
    for run in runs {
        let mut stride = 1;
        for &(mut n, mut s) in run {
            while n > 1 {
                let Some(digit) = modes.iter_mut().flatten().find(|d| d.0 > 1 && d.1 == s) else {
                    return Err(Obstacle::RunSplit(s));
                };
                if n % digit.0 != 0 {
                    return Err(Obstacle::RunInside { run: n, digit: digit.0 });
                }
                match digit.2 {
                    Some(other) if other != stride => {
                        return Err(Obstacle::TwoStrides { apart: s, strides: (other, stride) });
                    }
                    _ => digit.2 = Some(stride),
                }
                stride *= digit.0;
                n /= digit.0;
                s *= digit.0;
            }
        }
    }
    let mut taken: Vec<(i64, i64)> =
        modes.iter().flatten().filter_map(|&(n, _, s)| s.map(|s| (s, n))).collect();
    taken.sort_unstable();
    let mut next = 1;
    for (stride, n) in taken {
        if stride != next {
            return Err(Obstacle::TwoDirections(stride));
        }
        next = stride * n;
    }
    Ok(next)
}
