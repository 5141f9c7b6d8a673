//! Makes thread-value layouts, which map (thread, value) to an element of a tile, from a layout of
//! threads and a layout of each thread's values.
//!
//! Invariant: mode 0 of `tv(threads, values)` is the thread and mode 1 the value. The index is the
//! one-dimensional index of the element in a tile of shape [`tv_tiler`](Layout::tv_tiler).

use super::shapes::product_each_in;
use super::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// The thread-value layout in which each thread holds a block of values. The tile is the raked
    /// product of threads and values.
    ///
    /// # Errors
    /// The errors of the product and of composition.
    pub fn tv_in(
        cx: &L::Cx,
        threads: &Layout<L>,
        values: &Layout<L>,
    ) -> Result<Layout<L>, LayoutError> {
        let tile = threads.raked_product_in(cx, values)?;
        let shape = vec![threads.size_in(cx)?, values.size_in(cx)?];
        tile.right_inverse_in(cx)?.with_shape_in(cx, shape)
    }

    /// The shape of the tile that [`Layout::tv_in`] covers.
    ///
    /// # Errors
    /// The errors of the product.
    pub fn tv_tiler_in(
        cx: &L::Cx,
        threads: &Layout<L>,
        values: &Layout<L>,
    ) -> Result<IntTuple<L>, LayoutError> {
        product_each_in(cx, &threads.raked_product_in(cx, values)?.shape())
    }
}

impl Layout<i64> {
    /// The thread-value layout in which each thread holds a block of values. The tile is the raked
    /// product of threads and values.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let (threads, values): (Layout, Layout) = ("(4,8):(8,1)".parse()?, "(2,2):(2,1)".parse()?);
    /// assert_eq!(Layout::tv(&threads, &values)?.to_string(), "((8,4),(2,2)):((16,2),(8,1))");
    /// assert_eq!(Layout::tv_tiler(&threads, &values)?.to_string(), "(8,16)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of the product and of composition.
    pub fn tv(threads: &Layout, values: &Layout) -> Result<Layout, LayoutError> {
        Layout::tv_in(&(), threads, values)
    }

    /// The shape of the tile that [`Layout::tv`] covers.
    ///
    /// # Errors
    /// The errors of the product.
    pub fn tv_tiler(threads: &Layout, values: &Layout) -> Result<IntTuple, LayoutError> {
        Layout::tv_tiler_in(&(), threads, values)
    }
}
