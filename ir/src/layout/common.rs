//! What two layouts have in common: the longest run of elements that are consecutive in both.
//!
//! Invariant: with `r = max_common_layout(a, b)`, `a.at(r.at(i)) == i == b.at(r.at(i))` below its
//! size, which is `max_common_vector(a, b)`: that many elements can be copied from one to the other
//! at once. Of symbols it is the longest run that is known: whatever they are, these elements are
//! consecutive.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// The coordinates, as one-dimensional indices, of the longest common run from 0 on.
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
            // Whole modes of the inverse clash: what its first mode alone has in common is left.
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
    /// The coordinates, as one-dimensional indices, of the longest common run from 0 on.
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
