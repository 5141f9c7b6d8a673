//! Evaluates layouts at one-dimensional indices and at nested coordinates, and converts the two to
//! each other.
//!
//! Invariant: for `i` below the size, `at(i) == crd2idx(idx2crd(i))`. The last leaf of a mode
//! continues beyond its extent, which composition and partial tiles need. A layout is odd:
//! `at(-i) == -at(i)`, as with C's division and remainder.

use super::stride::CoordSum;
use super::{CoordLayout, Layout, LayoutError, Stride};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The number of coordinates.
    ///
    /// # Errors
    /// [`LayoutError::Overflow`], for symbolic leaves only.
    pub fn size_in(&self, cx: &L::Cx) -> Result<L, LayoutError> {
        let mut size = L::constant(1);
        for (extent, _) in &self.leaves {
            size = L::mul(cx, size, *extent)?;
        }
        Ok(size)
    }
}

impl<L: Leaf> Layout<L> {
    /// One more than the distance between the lowest and the highest index.
    ///
    /// # Errors
    /// Overflow, and [`LayoutError::NeedsFact`] where the sign of a stride is not known.
    pub fn cosize_in(&self, cx: &L::Cx) -> Result<L, LayoutError> {
        let mut cosize = L::constant(1);
        for &(extent, stride) in &self.leaves {
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
        let coord = idx2crd_in(cx, coord, &self.shape())?;
        let mut index = L::constant(0);
        for (digit, (_, stride)) in coord.flatten().into_iter().zip(&self.leaves) {
            index = L::add(cx, index, L::mul(cx, digit, *stride)?)?;
        }
        Ok(index)
    }
}

impl<L: Leaf> CoordLayout<L> {
    /// The coordinate that the layout assigns to a coordinate, as deep as the paths of the strides.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`], overflow and the arena's limits.
    pub fn crd2crd_in(&self, cx: &L::Cx, coord: &IntTuple<L>) -> Result<IntTuple<L>, LayoutError> {
        let coord = idx2crd_in(cx, coord, &self.shape())?;
        let mut sum = CoordSum::Number(L::constant(0));
        for (digit, (_, stride)) in coord.flatten().into_iter().zip(&self.leaves) {
            sum.add(cx, digit, *stride)?;
        }
        Ok(sum.tuple())
    }
}

/// Converts `coord` to a coordinate congruent with `shape`. Numbers over tuples are split into
/// digits, first mode fastest; the last digit is not reduced.
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
            if index.known().is_some_and(|i| i < 0) {
                let zero = L::constant(0);
                let mirrored = IntTuple::Leaf(L::sub(cx, zero, *index)?);
                let digits = idx2crd_in(cx, &mirrored, shape)?;
                return digits.try_map(&mut |digit| L::sub(cx, zero, *digit));
            }
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

impl<D: Stride<i64>> Layout<i64, D> {
    /// The number of coordinates.
    #[must_use]
    pub fn size(&self) -> i64 {
        // Cannot overflow: [`Layout::new`] checked the product.
        self.leaves.iter().fold(1, |size, (extent, _)| i64::saturating_mul(size, *extent))
    }
}

impl Layout<i64> {
    /// One more than the distance between the lowest and the highest index.
    #[must_use]
    pub fn cosize(&self) -> i64 {
        // Cannot fail: [`Layout::new`] checked the reach.
        self.cosize_in(&()).unwrap_or(i64::MAX)
    }

    /// The index of the `i`-th coordinate. Exact for `i` below the size. Beyond the size the last
    /// leaf continues, and an index that does not fit saturates.
    #[must_use]
    pub fn at(&self, i: i64) -> i64 {
        // Below the size every sum fits. Shifts replace divisions, which would dominate the time.
        let fits = || -> Option<i64> {
            let ((_, last), digits) = self.leaves.split_last()?;
            let (mut rest, mut index) = (i, 0i64);
            for &(extent, stride) in digits {
                let digit = if extent & (extent - 1) == 0 {
                    let digit = rest & (extent - 1);
                    rest >>= extent.trailing_zeros();
                    digit
                } else {
                    let digit = rest % extent;
                    rest /= extent;
                    digit
                };
                index = index.checked_add(digit.checked_mul(stride)?)?;
            }
            index.checked_add(rest.checked_mul(*last)?)
        };
        if i >= 0
            && let Some(index) = fits()
        {
            return index;
        }
        self.at_any(i)
    }

    /// The index of any number, including negative numbers and numbers whose index saturates.
    #[cold]
    fn at_any(&self, i: i64) -> i64 {
        let mut rest = i;
        let mut index = 0i128;
        let Some(((_, last), digits)) = self.leaves.split_last() else { return 0 };
        for (extent, stride) in digits {
            // Rounds towards zero, so that negative indices mirror positive ones.
            index += i128::from(rest % extent) * i128::from(*stride);
            rest /= extent;
        }
        index += i128::from(rest) * i128::from(*last);
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
        // Cannot fail: extents are positive, and a number is a coordinate of every shape.
        idx2crd(&IntTuple::Leaf(i), &self.shape()).unwrap_or(IntTuple::Leaf(i))
    }
}

impl CoordLayout<i64> {
    /// The coordinate that the layout assigns to a coordinate, as deep as the paths of the strides.
    ///
    /// ```
    /// # use carbyne_ir::layout::CoordLayout;
    /// let swapped: CoordLayout = "(4,5):(1@1,1@0)".parse()?;
    /// assert_eq!(swapped.at_coord(&"(3,4)".parse()?)?.to_string(), "(4,3)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] and overflow.
    pub fn at_coord(&self, coord: &IntTuple<i64>) -> Result<IntTuple<i64>, LayoutError> {
        self.crd2crd_in(&(), coord)
    }
}
