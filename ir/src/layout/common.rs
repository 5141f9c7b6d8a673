//! Finds the common vector of two layouts: the longest run of elements from index 0 on that is
//! consecutive in both, and so the widest vector by which a copy between them may move elements.
//!
//! Invariant: let `r = max_common_layout(a, b)`. Then `a.at(r.at(i)) == i == b.at(r.at(i))` below
//! its size `max_common_vector(a, b)`: one copy instruction could move this number of elements.
//! With symbols, the result is the longest run known to be consecutive for all their values. If it
//! is unknown whether any elements are consecutive, the error names the missing fact.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// The coordinates, as one-dimensional indices, of the longest common run that starts at 0.
    ///
    /// # Errors
    /// [`LayoutError::NeedsFact`], overflow.
    pub fn max_common_layout_in(
        &self,
        cx: &L::Cx,
        other: &Layout<L>,
    ) -> Result<Layout<L>, LayoutError> {
        let inverse = other.right_inverse_in(cx)?;
        let common = match self.compose_in(cx, &inverse) {
            Ok(common) => common.coalesce_in(cx)?,
            // Whole modes of the inverse clash: only the common part of its first mode is left.
            Err(LayoutError::Indivisible(_)) => {
                let (extent, stride) = inverse.leaves[0];
                let first = Layout::of_mode(extent, stride)?;
                match self.compose_in(cx, &first) {
                    Ok(common) => common.coalesce_in(cx)?,
                    Err(LayoutError::Indivisible(_)) => return Ok(Layout::trivial()),
                    Err(error) => return Err(error),
                }
            }
            Err(error) => return Err(error),
        };
        let (extent, stride) = common.leaves[0];
        if <L as Leaf>::eq(cx, stride, L::constant(1)).require()? {
            inverse.compose_in(cx, &Layout::of_mode(extent, stride)?)
        } else {
            Ok(Layout::trivial())
        }
    }

    /// The length of the longest run of elements that are consecutive in both layouts.
    ///
    /// # Errors
    /// [`LayoutError::NeedsFact`], overflow.
    pub fn max_common_vector_in(&self, cx: &L::Cx, other: &Layout<L>) -> Result<L, LayoutError> {
        self.max_common_layout_in(cx, other)?.size_in(cx)
    }
}

impl Layout<i64> {
    /// The coordinates, as one-dimensional indices, of the longest common run that starts at 0.
    ///
    /// # Errors
    /// Overflow.
    pub fn max_common_layout(&self, other: &Layout) -> Result<Layout, LayoutError> {
        self.max_common_layout_in(&(), other)
    }

    /// The length of the longest run of elements that are consecutive in both layouts.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(8,4):(1,16)".parse()?;
    /// let b: Layout = "(8,4):(1,8)".parse()?;
    /// assert_eq!(a.max_common_vector(&b)?, 8);
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// Overflow.
    pub fn max_common_vector(&self, other: &Layout) -> Result<i64, LayoutError> {
        self.max_common_vector_in(&(), other)
    }
}
