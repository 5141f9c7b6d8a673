//! Products: a layout repeated as another one says.
//!
//! Invariant: `logical_product(a, b)` has `a` as mode 0, and mode 1 walks over copies of `a` that
//! do not overlap, in the order of `b`.

use super::divide::unzip;
use super::{Layout, LayoutError, Tiler};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// Each tiled mode becomes (mode, copies).
    ///
    /// # Errors
    /// Those of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        tiler.into().transform(self, 0, &mut |mode, tile| {
            let target = L::mul(cx, mode.size_in(cx)?, tile.cosize_in(cx)?)?;
            let copies = mode.complement_in(cx, target)?.compose_in(cx, tile)?;
            Layout::concat(&[mode.clone(), copies])
        })
    }

    /// As [`Layout::logical_product_in`], the originals gathered in mode 0, the copies in mode 1.
    ///
    /// # Errors
    /// Those of [`Layout::logical_product_in`].
    pub fn zipped_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let tiler = tiler.into();
        unzip(&self.logical_product_in(cx, tiler.clone())?, &tiler)
    }
}

impl Layout<i64> {
    /// Each tiled mode becomes (mode, copies).
    ///
    /// # Errors
    /// Those of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_product(
        &self,
        tiler: impl Into<Tiler<i64>>,
    ) -> Result<Layout<i64>, LayoutError> {
        self.logical_product_in(&(), tiler)
    }

    /// As [`Layout::logical_product`], the originals gathered in mode 0, the copies in mode 1.
    ///
    /// # Errors
    /// Those of [`Layout::logical_product`].
    pub fn zipped_product(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout<i64>, LayoutError> {
        self.zipped_product_in(&(), tiler)
    }
}
