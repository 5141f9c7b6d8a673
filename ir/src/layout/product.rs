//! Computes products, which repeat a layout at the positions of another layout, for example to make
//! the layout of a large tile from one instruction's tile.
//!
//! Invariant: for a layout `b`, mode 0 of `logical_product(a, b)` is `a`. Mode 1 iterates over
//! copies of `a` that do not overlap, in the order of `b`. The other products only regroup these
//! modes.

use super::divide::unzip;
use super::shapes::{ceil_div_by_in, evenly_divides_in, product_each_in};
use super::{Layout, LayoutError, Tiler};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// Each tiled mode becomes (mode, copies).
    ///
    /// # Errors
    /// The errors of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        tiler.into().transform(self, 0, false, &mut |mode, tile| {
            let n = tile.cosize_in(cx)?;
            let mut free = mode.complement_in(cx, L::mul(cx, mode.size_in(cx)?, n)?)?;
            if L::lt(cx, free.size_in(cx)?, n).is_true() {
                // If strides do not divide each other, they leave holes without a copy: continue
                // after these.
                let mut reach = L::constant(1);
                for &(extent, stride) in mode.leaves() {
                    reach = L::max(cx, reach, L::mul(cx, extent, stride)?)?;
                }
                free = mode.complement_in(cx, L::mul(cx, reach, n)?)?;
            }
            Layout::concat(&[mode.clone(), free.compose_in(cx, tile)?])
        })
    }

    /// As [`Layout::logical_product_in`], with the originals in mode 0 and the copies in mode 1.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product_in`].
    pub fn zipped_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let tiler = tiler.into();
        unzip(&self.logical_product_in(cx, tiler.clone())?, &tiler)
    }

    /// As [`Layout::zipped_product_in`], with the copies as separate modes.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product_in`].
    pub fn tiled_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        self.zipped_product_in(cx, tiler)?.unpacked(false)
    }

    /// As [`Layout::tiled_product_in`], with the originals as separate modes, too.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product_in`].
    pub fn flat_product_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        self.zipped_product_in(cx, tiler)?.unpacked(true)
    }

    /// Repeats the block over the tiler, mode by mode: mode `k` is (block mode, copies along the
    /// mode).
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product_in`].
    pub fn blocked_product_in(
        &self,
        cx: &L::Cx,
        tiler: &Layout<L>,
    ) -> Result<Layout<L>, LayoutError> {
        self.mode_by_mode(cx, tiler, false)
    }

    /// As [`Layout::blocked_product_in`], with interleaved copies: mode `k` is (copies, block
    /// mode).
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product_in`].
    pub fn raked_product_in(
        &self,
        cx: &L::Cx,
        tiler: &Layout<L>,
    ) -> Result<Layout<L>, LayoutError> {
        self.mode_by_mode(cx, tiler, true)
    }

    fn mode_by_mode(
        &self,
        cx: &L::Cx,
        tiler: &Layout<L>,
        raked: bool,
    ) -> Result<Layout<L>, LayoutError> {
        let rank = self.rank().max(tiler.rank());
        // Both become tuples, so that mode `k` of the copies belongs to mode `k` of the block.
        let (block, tiler) = (self.padded(rank)?, tiler.padded(rank)?);
        let (block, tiler) = (Layout::concat(&block.modes())?, Layout::concat(&tiler.modes())?);
        let product = block.logical_product_in(cx, tiler)?;
        let blocks = product.mode(0)?.modes();
        let copies = product.mode(1)?.modes();
        let mut modes = Vec::with_capacity(rank);
        for (block, copy) in blocks.into_iter().zip(copies) {
            let pair = if raked { [copy, block] } else { [block, copy] };
            modes.push(Layout::concat(&pair)?);
        }
        Layout::concat(&modes)
    }

    /// The layout as a tuple of at least `rank` modes. Added modes are `1:0`.
    fn padded(&self, rank: usize) -> Result<Layout<L>, LayoutError> {
        let mut modes = self.modes();
        if modes.len() >= rank {
            return Ok(self.clone());
        }
        modes.resize_with(rank, Layout::trivial);
        Layout::concat(&modes)
    }

    /// Repeats the block until it fills a shape, along the modes in the given order: the lowest
    /// number first, by default from the first mode on.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] if the block has more modes than the shape,
    /// [`LayoutError::Indivisible`] if the block does not divide the shape, and those of the
    /// product.
    pub fn tile_to_shape_in(
        &self,
        cx: &L::Cx,
        shape: &IntTuple<L>,
        order: Option<&IntTuple>,
    ) -> Result<Layout<L>, LayoutError> {
        let rank = shape.rank();
        if self.rank() > rank {
            return Err(LayoutError::Rank { mode: self.rank() - 1, rank });
        }
        let block = self.padded(rank)?;
        let (tile, target) = (product_each_in(cx, &block.shape())?, product_each_in(cx, shape)?);
        let mut tilers = Vec::with_capacity(rank);
        for extent in tile.flatten() {
            tilers.push(Tiler::Layout(Layout::of_mode(extent, L::constant(1))?));
        }
        let tiler = match (tilers.len(), tile.is_leaf()) {
            (1, true) => tilers.swap_remove(0),
            _ => Tiler::Modes(tilers),
        };
        if !evenly_divides_in(cx, &target, &tiler)?.require()? {
            let (shape, block) = (target.display_in(cx), tile.display_in(cx));
            let fix = format!("make every extent of {shape} a multiple of the extent in {block}");
            return Err(LayoutError::clash(shape, block, fix));
        }
        let copies = ceil_div_by_in(cx, &target, &tile)?;
        let copies = match order {
            Some(order) => Layout::ordered_in(cx, copies.clone(), order)?,
            None => Layout::col_major_in(cx, copies.clone())?,
        };
        block.blocked_product_in(cx, &copies)
    }
}

impl Layout<i64> {
    /// Each tiled mode becomes (mode, copies).
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(2,2):(4,1)".parse()?;
    /// let copies: Layout = "6:1".parse()?;
    /// assert_eq!(a.logical_product(&copies)?.to_string(), "((2,2),(2,3)):((4,1),(2,8))");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_product(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout, LayoutError> {
        self.logical_product_in(&(), tiler)
    }

    /// As [`Layout::logical_product`], with the originals in mode 0 and the copies in mode 1.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product`].
    pub fn zipped_product(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout, LayoutError> {
        self.zipped_product_in(&(), tiler)
    }

    /// As [`Layout::zipped_product`], with the copies as separate modes.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product`].
    pub fn tiled_product(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout, LayoutError> {
        self.tiled_product_in(&(), tiler)
    }

    /// As [`Layout::tiled_product`], with the originals as separate modes, too.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product`].
    pub fn flat_product(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout, LayoutError> {
        self.flat_product_in(&(), tiler)
    }

    /// Repeats the block over the tiler, mode by mode: mode `k` is (block mode, copies along the
    /// mode).
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product`].
    pub fn blocked_product(&self, tiler: &Layout) -> Result<Layout, LayoutError> {
        self.blocked_product_in(&(), tiler)
    }

    /// As [`Layout::blocked_product`], with interleaved copies: mode `k` is (copies, block mode).
    ///
    /// # Errors
    /// The errors of [`Layout::logical_product`].
    pub fn raked_product(&self, tiler: &Layout) -> Result<Layout, LayoutError> {
        self.raked_product_in(&(), tiler)
    }

    /// Repeats the block until it fills a shape, along the modes in the given order: the lowest
    /// number first, by default from the first mode on.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let block: Layout = "(8,8):(8,1)".parse()?;
    /// let tiled = block.tile_to_shape(&"(32,64)".parse()?, None)?;
    /// assert_eq!(tiled.to_string(), "((8,4),(8,8)):((8,64),(1,256))");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Rank`] if the block has more modes than the shape,
    /// [`LayoutError::Indivisible`] if the block does not divide the shape, and those of the
    /// product.
    pub fn tile_to_shape(
        &self,
        shape: &IntTuple,
        order: Option<&IntTuple>,
    ) -> Result<Layout, LayoutError> {
        self.tile_to_shape_in(&(), shape, order)
    }
}
