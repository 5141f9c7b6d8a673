//! Defines [`Plain`], a layout as a shape and a stride without any algebra. Its function is
//! evaluated by enumeration, or digit by digit at single coordinates of a large layout. This is the
//! reference of every law.
//!
//! Invariant: this file does not call the layout algebra. A layout is a list of leaves (extent,
//! stride), first leaf fastest. Its function is a table that is built by counting through the
//! leaves. Invariant: wrong data does not cause a panic or a table of more than [`MAX_POINTS`]
//! numbers.

use crate::tuple::IntTuple;
use std::fmt;

/// Maximum number of coordinates that are enumerated.
pub const MAX_POINTS: usize = 1 << 16;

/// A shape and a stride with equal nesting, the exchange format with layout libraries.
///
/// ```
/// use carbyne_ir::kit::Plain;
/// let rows = Plain::flat(&[(2, 3), (3, 1)]);
/// assert_eq!(rows.to_string(), "(2,3):(3,1)");
/// assert_eq!(rows.values(), Some(vec![0, 3, 1, 4, 2, 5]));
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Plain {
    /// The extents.
    pub shape: IntTuple<i64>,
    /// The strides.
    pub stride: IntTuple<i64>,
}

impl Plain {
    /// Keeps the data as given. Laws report incongruent data.
    #[must_use]
    pub fn new(shape: impl Into<IntTuple<i64>>, stride: impl Into<IntTuple<i64>>) -> Self {
        Plain { shape: shape.into(), stride: stride.into() }
    }

    /// The flat layout of these leaves, each `(extent, stride)`.
    #[must_use]
    pub fn flat(leaves: &[(i64, i64)]) -> Self {
        let (shape, stride): (Vec<i64>, Vec<i64>) = leaves.iter().copied().unzip();
        Plain::new(shape, stride)
    }

    /// The layout with these modes.
    #[must_use]
    pub fn concat(modes: &[Plain]) -> Self {
        let shape: Vec<_> = modes.iter().map(|m| m.shape.clone()).collect();
        let stride: Vec<_> = modes.iter().map(|m| m.stride.clone()).collect();
        Plain::new(shape, stride)
    }

    /// The modes of the outermost tuple; a number is its own only mode.
    #[must_use]
    pub fn modes(&self) -> Vec<Plain> {
        let strides = self.stride.modes().iter();
        let pairs = self.shape.modes().iter().zip(strides);
        pairs.map(|(shape, stride)| Plain::new(shape.clone(), stride.clone())).collect()
    }

    /// The leaves as (extent, stride), first fastest.
    #[must_use]
    pub fn leaves(&self) -> Vec<(i64, i64)> {
        self.shape.flatten().into_iter().zip(self.stride.flatten()).collect()
    }

    /// The number of coordinates. `None` if an extent is below 1 or there are more than
    /// [`MAX_POINTS`].
    #[must_use]
    pub fn size(&self) -> Option<i64> {
        size_of(&self.shape)
    }

    /// The number of coordinates of a layout that this kit generated.
    pub(crate) fn count(&self) -> i64 {
        self.size().unwrap_or(MAX_POINTS as i64)
    }

    /// The number of coordinates without limit. `None` if an extent is below 1 or the number is
    /// 2^63 or more.
    #[must_use]
    pub fn total(&self) -> Option<i64> {
        let mut extents = self.shape.flatten().into_iter();
        extents.try_fold(1i64, |size, extent| size.checked_mul(extent).filter(|_| extent >= 1))
    }

    /// The index of the `i`-th coordinate, computed digit by digit, also for layouts that are too
    /// large to enumerate. The last leaf continues beyond its extent. `None` if `i` is negative, an
    /// extent is below 1, or the index does not fit.
    #[must_use]
    pub fn index(&self, i: i64) -> Option<i64> {
        let leaves = self.leaves();
        let (mut rest, mut index) = (i128::from(i).max(-1), 0i128);
        for (k, &(extent, stride)) in leaves.iter().enumerate() {
            if extent < 1 || rest < 0 {
                return None;
            }
            let last = k + 1 == leaves.len();
            let digit = if last { rest } else { rest % i128::from(extent) };
            rest /= i128::from(extent);
            index = index.checked_add(digit.checked_mul(i128::from(stride))?)?;
        }
        if i < 0 { None } else { i64::try_from(index).ok() }
    }

    /// The index of every coordinate in order. `None` if [`Plain::size`] is `None`.
    #[must_use]
    pub fn values(&self) -> Option<Vec<i64>> {
        let mut values = Vec::with_capacity(usize::try_from(self.size()?).ok()?);
        values.push(0i64);
        for (extent, stride) in self.leaves() {
            let n = values.len();
            for digit in 1..extent {
                // Wraps only for strides that no law uses.
                let step = digit.wrapping_mul(stride);
                for k in 0..n {
                    values.push(values[k].wrapping_add(step));
                }
            }
        }
        Some(values)
    }

    /// The index of a coordinate; a number stands for a whole mode. `None` if it does not fit.
    #[must_use]
    pub fn at(&self, coord: &IntTuple<i64>) -> Option<i64> {
        at(&self.shape, &self.stride, coord)
    }

    /// One more than the largest index, if no stride is negative.
    #[must_use]
    pub fn cosize(&self) -> i64 {
        let reach = |(extent, stride): (i64, i64)| (extent - 1).saturating_mul(stride);
        1 + self.leaves().into_iter().map(reach).fold(0, i64::saturating_add)
    }

    /// Whether every stride except 0 is a multiple of the reach of the next smaller one. Such
    /// layouts always have a complement and a left inverse.
    #[must_use]
    pub fn nests(&self) -> bool {
        self.gaps().is_some()
    }

    /// Whether the layout nests, and its size and its reach are at most `most`.
    pub(crate) fn fits(&self, most: i64) -> bool {
        let reach = self.gaps().map(|(_, reach)| reach);
        reach.is_some_and(|n| n <= most) && self.total().is_some_and(|n| n <= most)
    }

    /// The gaps between the sorted modes of a nesting layout, and its reach.
    pub(crate) fn gaps(&self) -> Option<(Vec<i64>, i64)> {
        let mut leaves = self.leaves();
        leaves.retain(|&(extent, stride)| extent > 1 && stride != 0);
        leaves.sort_by_key(|&(_, stride)| stride);
        let (mut gaps, mut reach) = (vec![], 1i64);
        for (extent, stride) in leaves {
            if stride < reach || stride % reach != 0 {
                return None;
            }
            gaps.push(stride / reach);
            reach = extent.checked_mul(stride)?;
        }
        gaps.retain(|&gap| gap > 1);
        Some((gaps, reach))
    }

    /// Whether no two coordinates share an index.
    #[must_use]
    pub fn injective(&self) -> bool {
        self.values().is_some_and(|values| distinct(&values))
    }
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.shape, self.stride)
    }
}

/// Whether no number occurs twice.
pub(crate) fn distinct(values: &[i64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// The product of the leaves, if all are positive and it is at most [`MAX_POINTS`].
pub(crate) fn size_of(shape: &IntTuple<i64>) -> Option<i64> {
    let mut size = 1i64;
    for extent in shape.flatten() {
        size = size.checked_mul(extent).filter(|s| extent >= 1 && *s <= MAX_POINTS as i64)?;
    }
    Some(size)
}

/// The compact strides of a shape, first leaf fastest.
pub(crate) fn col_major(shape: &IntTuple<i64>) -> IntTuple<i64> {
    let mut next = 1i64;
    shape.map(&mut |&extent| {
        let stride = next;
        next = next.saturating_mul(extent);
        stride
    })
}

fn at(shape: &IntTuple<i64>, stride: &IntTuple<i64>, coord: &IntTuple<i64>) -> Option<i64> {
    match (shape, stride, coord) {
        (IntTuple::Leaf(_), IntTuple::Leaf(stride), IntTuple::Leaf(c)) => c.checked_mul(*stride),
        (IntTuple::Tuple(shapes), IntTuple::Tuple(strides), IntTuple::Leaf(c)) => {
            let (mut rest, mut index) = (*c, 0i64);
            for (k, (shape, stride)) in shapes.iter().zip(strides).enumerate() {
                let size = size_of(shape)?;
                // The last mode continues beyond its extent.
                let last = k + 1 == shapes.len();
                let digit = if last { rest } else { rest.rem_euclid(size) };
                rest = rest.div_euclid(size);
                index = index.checked_add(at(shape, stride, &IntTuple::Leaf(digit))?)?;
            }
            Some(index)
        }
        (IntTuple::Tuple(shapes), IntTuple::Tuple(strides), IntTuple::Tuple(coords))
            if shapes.len() == coords.len() && shapes.len() == strides.len() =>
        {
            let parts = shapes.iter().zip(strides).zip(coords);
            parts.map(|((d, s), c)| at(d, s, c)).try_fold(0i64, |sum, i| sum.checked_add(i?))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_data_has_no_table() {
        for leaves in [[(0, 1), (2, 1)], [(-1, 1), (2, 1)], [(1 << 40, 1), (1 << 40, 1)]] {
            assert_eq!(Plain::flat(&leaves).values(), None);
        }
        assert_eq!(Plain::flat(&[(2, i64::MAX), (2, i64::MAX)]).values().map(|v| v.len()), Some(4));
        assert_eq!(Plain::flat(&[(3, i64::MAX)]).at(&IntTuple::from(vec![2])), None);
    }

    #[test]
    fn large_layouts_are_counted_digit_by_digit() {
        let a = Plain::flat(&[(1 << 20, 1 << 30), (1 << 20, 3), (5, 0)]);
        assert_eq!((a.size(), a.total()), (None, Some(5 << 40)));
        assert_eq!(a.index((1 << 40) - 1), Some(((1 << 20) - 1) * ((1 << 30) + 3)));
        assert_eq!((a.index(-1), Plain::flat(&[(2, i64::MAX), (2, 2)]).index(3)), (None, None));
        assert_eq!(Plain::flat(&[(1 << 40, 1), (1 << 40, 1)]).total(), None);
        let small = Plain::flat(&[(2, 5), (3, 0), (4, -7)]);
        let table: Option<Vec<i64>> = (0..24).map(|i| small.index(i)).collect();
        assert_eq!(table, small.values());
    }

    #[test]
    fn coordinates_and_indices_agree() {
        let a = Plain::concat(&[Plain::flat(&[(2, 5), (3, 0)]), Plain::new(4, 7)]);
        let values = a.values().unwrap();
        for (i, value) in values.iter().enumerate() {
            assert_eq!(a.at(&IntTuple::Leaf(i as i64)), Some(*value));
            let (low, high) = (i as i64 % 6, i as i64 / 6);
            assert_eq!(a.at(&IntTuple::from(vec![low, high])), Some(*value));
        }
        assert_eq!(a.cosize(), 1 + 5 + 21);
    }
}
