//! The function a layout is: from one-dimensional indices and from nested coordinates.
//!
//! Invariant: for `i` below the size, `at(i) == crd2idx(idx2crd(i))`. The last leaf of a mode goes
//! on beyond its extent, in both directions, as composition and ragged tiles need.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// The number of coordinates.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`], for symbolic leaves only.
    pub fn size_in(&self, cx: &L::Cx) -> Result<L, LayoutError> {
        self.shape.size_in(cx)
    }

    /// One more than the distance between the lowest and the highest index.
    ///
    /// # Errors
    /// Overflow, and [`LayoutError::NeedsFact`] where the sign of a stride is not known.
    pub fn cosize_in(&self, cx: &L::Cx) -> Result<L, LayoutError> {
        let mut cosize = L::constant(1);
        for (extent, stride) in self.leaves() {
            if extent.known() == Some(1) || stride.known() == Some(0) {
                continue;
            }
            let steps = L::sub(cx, extent, L::constant(1))?;
            let reach = L::mul(cx, steps, stride)?;
            cosize = if L::lt(cx, stride, L::constant(0)).require()? {
                L::sub(cx, cosize, reach)?
            } else {
                L::add(cx, cosize, reach)?
            };
        }
        Ok(cosize)
    }

    /// The index of the `i`-th coordinate.
    ///
    /// # Errors
    /// Overflow and the arena's limits.
    pub fn at_in(&self, cx: &L::Cx, i: L) -> Result<L, LayoutError> {
        self.crd2idx_in(cx, &IntTuple::Leaf(i))
    }

    /// The index of a coordinate. A number may stand for any mode, as a one-dimensional index.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`], overflow and the arena's limits.
    pub fn crd2idx_in(&self, cx: &L::Cx, coord: &IntTuple<L>) -> Result<L, LayoutError> {
        let coord = idx2crd_in(cx, coord, &self.shape)?;
        let mut index = L::constant(0);
        for (digit, stride) in coord.flatten().into_iter().zip(self.stride.flatten()) {
            index = L::add(cx, index, L::mul(cx, digit, stride)?)?;
        }
        Ok(index)
    }
}

/// The coordinate, congruent with `shape`, that `coord` stands for: numbers over tuples are split
/// into digits, first mode fastest; the last digit is not reduced.
///
/// # Errors
/// [`LayoutError::Incongruent`], and a division by an extent that is not positive.
pub fn idx2crd_in<L: Leaf>(
    cx: &L::Cx,
    coord: &IntTuple<L>,
    shape: &IntTuple<L>,
) -> Result<IntTuple<L>, LayoutError> {
    match (coord, shape) {
        (_, IntTuple::Leaf(_)) if coord.is_leaf() => Ok(coord.clone()),
        (IntTuple::Leaf(index), IntTuple::Tuple(modes)) => {
            let mut rest = *index;
            let mut digits = Vec::with_capacity(modes.len());
            for (k, mode) in modes.iter().enumerate() {
                let digit = if k + 1 == modes.len() {
                    rest
                } else {
                    let size = mode.size_in(cx)?;
                    let digit = L::rem(cx, rest, size)?;
                    rest = L::div(cx, rest, size)?;
                    digit
                };
                digits.push(idx2crd_in(cx, &IntTuple::Leaf(digit), mode)?);
            }
            Ok(IntTuple::Tuple(digits))
        }
        (IntTuple::Tuple(coords), IntTuple::Tuple(modes)) if coords.len() == modes.len() => coords
            .iter()
            .zip(modes)
            .map(|(coord, mode)| idx2crd_in(cx, coord, mode))
            .collect::<Result<_, _>>()
            .map(IntTuple::Tuple),
        _ => Err(LayoutError::Incongruent {
            shape: shape.display_in(cx),
            other: coord.display_in(cx),
        }),
    }
}

/// As [`idx2crd_in`], over plain numbers.
///
/// # Errors
/// [`LayoutError::Incongruent`], and a division by an extent that is not positive.
pub fn idx2crd(coord: &IntTuple<i64>, shape: &IntTuple<i64>) -> Result<IntTuple<i64>, LayoutError> {
    idx2crd_in(&(), coord, shape)
}

impl Layout<i64> {
    /// The number of coordinates.
    #[must_use]
    pub fn size(&self) -> i64 {
        // Cannot fail: the product was checked when the layout was made.
        self.size_in(&()).unwrap_or(i64::MAX)
    }

    /// One more than the distance between the lowest and the highest index.
    #[must_use]
    pub fn cosize(&self) -> i64 {
        // Cannot fail: the reach was checked when the layout was made.
        self.cosize_in(&()).unwrap_or(i64::MAX)
    }

    /// The index of the `i`-th coordinate. Exact for `i` below the size; beyond it the last leaf
    /// goes on, and an index that does not fit stops at the ends of `i64`.
    #[must_use]
    pub fn at(&self, i: i64) -> i64 {
        fn walk(
            shape: &IntTuple<i64>,
            stride: &IntTuple<i64>,
            rest: &mut i64,
            leaves_left: &mut usize,
            index: &mut i128,
        ) {
            match (shape, stride) {
                (IntTuple::Leaf(extent), IntTuple::Leaf(stride)) => {
                    *leaves_left -= 1;
                    let digit = if *leaves_left == 0 { *rest } else { rest.rem_euclid(*extent) };
                    *rest = rest.div_euclid(*extent);
                    let term = i128::from(digit) * i128::from(*stride);
                    *index = index.saturating_add(term);
                }
                (IntTuple::Tuple(shapes), IntTuple::Tuple(strides)) => {
                    for (shape, stride) in shapes.iter().zip(strides) {
                        walk(shape, stride, rest, leaves_left, index);
                    }
                }
                _ => {} // Shape and stride are congruent.
            }
        }
        let mut leaves = 0;
        self.shape.for_each(&mut |_| leaves += 1);
        let (mut rest, mut index) = (i, 0i128);
        walk(&self.shape, &self.stride, &mut rest, &mut leaves, &mut index);
        i64::try_from(index).unwrap_or(if index < 0 { i64::MIN } else { i64::MAX })
    }

    /// The index of a coordinate. A number may stand for any mode, as a one-dimensional index.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] and overflow.
    pub fn at_coord(&self, coord: &IntTuple<i64>) -> Result<i64, LayoutError> {
        self.crd2idx_in(&(), coord)
    }

    /// The coordinate of the one-dimensional index `i`; the last digit is not reduced.
    #[must_use]
    pub fn coord(&self, i: i64) -> IntTuple<i64> {
        // Cannot fail: extents are positive and a number fits every shape.
        idx2crd(&IntTuple::Leaf(i), &self.shape).unwrap_or(IntTuple::Leaf(i))
    }
}
