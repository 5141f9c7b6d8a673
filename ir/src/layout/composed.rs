//! A layout under a swizzle: where shared memory really keeps an element.
//!
//! Invariant: `at(i) == swizzle(offset + layout(i))`. Printed as `Sw<3,4,3> o 0 o (8,64):(64,1)`.

use super::{Layout, LayoutError, Swizzle};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;
use std::fmt;

/// A layout whose indices are shifted by an offset and then swizzled.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ComposedLayout<L = i64> {
    /// Applied last.
    pub swizzle: Swizzle,
    /// Added before swizzling, in elements.
    pub offset: L,
    /// Applied first.
    pub layout: Layout<L>,
}

impl ComposedLayout<i64> {
    /// The index of the `i`-th coordinate; one that does not fit stops at the ends of `i64`.
    #[must_use]
    pub fn at(&self, i: i64) -> i64 {
        self.swizzle.apply(self.offset.saturating_add(self.layout.at(i)))
    }

    /// The index of a coordinate.
    ///
    /// # Errors
    /// Those of [`Layout::at_coord`], and overflow.
    pub fn at_coord(&self, coord: &IntTuple<i64>) -> Result<i64, LayoutError> {
        let index = i64::add(&(), self.offset, self.layout.at_coord(coord)?)?;
        Ok(self.swizzle.apply(index))
    }

    /// The layout `self ∘ inner`, under the same swizzle and offset.
    ///
    /// # Errors
    /// Those of [`Layout::compose`].
    pub fn compose(&self, inner: &Layout<i64>) -> Result<Self, LayoutError> {
        Ok(ComposedLayout { layout: self.layout.compose(inner)?, ..self.clone() })
    }
}

impl<L: Leaf> From<Layout<L>> for ComposedLayout<L> {
    fn from(layout: Layout<L>) -> Self {
        ComposedLayout { swizzle: Swizzle::none(), offset: L::constant(0), layout }
    }
}

impl<L: fmt::Display> fmt::Display for ComposedLayout<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} o {} o {}", self.swizzle, self.offset, self.layout)
    }
}
