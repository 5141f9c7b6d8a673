//! Making layouts and taking them apart: compact layouts, modes, concatenation, grouping.
//!
//! Invariant: none of these changes which index a leaf coordinate has; they only regroup leaves.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// The number of modes; 1 for a layout that is a single number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.shape.rank()
    }

    /// The depth of nesting; 0 for a layout that is a single number.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.shape.depth()
    }

    /// Mode `i` on its own.
    ///
    /// # Errors
    /// [`LayoutError::Rank`].
    pub fn mode(&self, i: usize) -> Result<Layout<L>, LayoutError> {
        match (self.shape.mode(i), self.stride.mode(i)) {
            (Some(shape), Some(stride)) => Ok(Layout::part(shape, stride)),
            _ => Err(LayoutError::Rank { mode: i, rank: self.rank() }),
        }
    }

    /// All modes in order.
    #[must_use]
    pub fn modes(&self) -> Vec<Layout<L>> {
        let strides = self.stride.modes();
        self.shape.modes().iter().zip(strides).map(|(d, s)| Layout::part(d, s)).collect()
    }

    /// The layout whose modes are these.
    ///
    /// # Errors
    /// Overflow and the limits on depth and leaves.
    pub fn concat(modes: &[Layout<L>]) -> Result<Layout<L>, LayoutError> {
        let shape: Vec<_> = modes.iter().map(|m| m.shape.clone()).collect();
        let stride: Vec<_> = modes.iter().map(|m| m.stride.clone()).collect();
        Layout::new(shape, stride)
    }

    /// The layout with modes `begin..end` gathered into one.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], and the limit on depth.
    pub fn group(&self, begin: usize, end: usize) -> Result<Layout<L>, LayoutError> {
        let mut modes = self.modes();
        if begin > end || end > modes.len() {
            return Err(LayoutError::Rank { mode: begin.max(end), rank: modes.len() });
        }
        let inner: Vec<_> = modes.drain(begin..end).collect();
        modes.insert(begin, Layout::concat(&inner)?);
        Layout::concat(&modes)
    }

    /// The chosen modes, in the order given.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], and overflow where a mode is chosen repeatedly.
    pub fn select(&self, modes: &[usize]) -> Result<Layout<L>, LayoutError> {
        Layout::concat(&modes.iter().map(|&i| self.mode(i)).collect::<Result<Vec<_>, _>>()?)
    }

    /// The same leaves without nesting; a single number stays one.
    #[must_use]
    pub fn flatten(&self) -> Layout<L> {
        if self.shape.is_leaf() {
            return self.clone();
        }
        Layout { shape: self.shape.flatten().into(), stride: self.stride.flatten().into() }
    }

    /// The compact layout of this shape, first mode fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn col_major_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let shape = shape.into();
        shape.check_limits()?;
        let mut next = L::constant(1);
        let stride = shape.try_map(&mut |extent| -> Result<L, LayoutError> {
            let stride = next;
            next = L::mul(cx, next, *extent)?;
            Ok(stride)
        })?;
        Layout::new(shape, stride)
    }

    /// The compact layout of this shape, last mode fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn row_major_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let shape = shape.into();
        shape.check_limits()?;
        let mut next = L::constant(1);
        let mut strides = Vec::new();
        for extent in shape.flatten().into_iter().rev() {
            strides.push(next);
            next = L::mul(cx, next, extent)?;
        }
        let stride = shape.map(&mut |_| strides.pop().unwrap_or(next));
        Layout::new(shape, stride)
    }
}

impl Layout<i64> {
    /// The compact layout of this shape, first mode fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn col_major(shape: impl Into<IntTuple<i64>>) -> Result<Layout<i64>, LayoutError> {
        Layout::col_major_in(&(), shape)
    }

    /// The compact layout of this shape, last mode fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn row_major(shape: impl Into<IntTuple<i64>>) -> Result<Layout<i64>, LayoutError> {
        Layout::row_major_in(&(), shape)
    }
}
