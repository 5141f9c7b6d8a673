//! Makes compact layouts, which reach each index from 0 to size − 1 once: column-major, row-major,
//! or in a given order of the modes. `make_like` takes the order of another layout and keeps its
//! modes of stride 0. `max_alignment` is the largest number of elements that form one vector
//! everywhere in a layout.
//!
//! Invariant: modes of extent 1 have stride 0 because no coordinate steps along them.

use super::{Layout, LayoutError, Leaves, Profile};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// The compact layout of this shape whose first mode is fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn col_major_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        Layout::compact(cx, &shape.into(), &mut |n, out| out.extend(0..n))
    }

    /// The compact layout of this shape whose last mode is fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn row_major_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        Layout::compact(cx, &shape.into(), &mut |n, out| out.extend((0..n).rev()))
    }

    /// The compact layout of this shape with its modes in the order of the numbers, lowest fastest.
    /// A number over a tuple orders the whole tuple, first mode fastest. Equal numbers order from
    /// left to right.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] if the order does not fit the shape, overflow, limits.
    pub fn ordered_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
        order: &IntTuple,
    ) -> Result<Layout<L>, LayoutError> {
        let shape = shape.into();
        shape.check_limits()?;
        order.check_limits()?;
        let mut keys = Vec::new();
        if !order_leaves(&shape, order, &mut keys) {
            return Err(LayoutError::Incongruent {
                shape: shape.display_in(cx),
                other: order.to_string(),
            });
        }
        Layout::compact(cx, &shape, &mut |n, out| {
            out.extend(0..n);
            out.sort_by_key(|k| keys.get(*k).copied());
        })
    }

    /// The compact layout of a shape. Leaves get their strides in the order that `order` lists.
    fn compact(
        cx: &L::Cx,
        shape: &IntTuple<L>,
        order: &mut dyn FnMut(usize, &mut Vec<usize>),
    ) -> Result<Layout<L>, LayoutError> {
        shape.check_limits()?;
        let zero = L::constant(0);
        let mut leaves = Leaves::<L>::new();
        let profile = Profile::of_tuple(shape, &mut |extent| leaves.push((extent, zero)));
        let mut list = Vec::with_capacity(leaves.len());
        order(leaves.len(), &mut list);
        let mut next = L::constant(1);
        for k in list {
            if leaves[k].0.known() != Some(1) {
                leaves[k].1 = next;
                next = L::mul(cx, next, leaves[k].0)?;
            }
        }
        Layout::checked(profile, leaves)
    }
}

/// Appends the key of every leaf of the shape. `false` if the order is nested deeper than the
/// shape.
fn order_leaves<L>(shape: &IntTuple<L>, order: &IntTuple, keys: &mut Vec<i64>) -> bool {
    match (shape, order) {
        (shape, IntTuple::Leaf(key)) => {
            shape.for_each(&mut |_| keys.push(*key));
            true
        }
        (IntTuple::Tuple(shapes), IntTuple::Tuple(orders)) if shapes.len() == orders.len() => {
            shapes.iter().zip(orders).all(|(s, o)| order_leaves(s, o, keys))
        }
        _ => false,
    }
}

impl Layout<i64> {
    /// The compact layout of this shape whose first mode is fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn col_major(shape: impl Into<IntTuple<i64>>) -> Result<Layout<i64>, LayoutError> {
        Layout::col_major_in(&(), shape)
    }

    /// The compact layout of this shape whose last mode is fastest.
    ///
    /// # Errors
    /// Overflow, limits and extents below 1.
    pub fn row_major(shape: impl Into<IntTuple<i64>>) -> Result<Layout<i64>, LayoutError> {
        Layout::row_major_in(&(), shape)
    }

    /// The compact layout of this shape with its modes in the order of the numbers, lowest fastest.
    /// A number over a tuple orders the whole tuple, first mode fastest. Equal numbers order from
    /// left to right.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a = Layout::ordered(vec![2, 2, 2, 2], &vec![0, 2, 3, 1].into())?;
    /// assert_eq!(a.to_string(), "(2,2,2,2):(1,4,8,2)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] if the order does not fit the shape, overflow, limits.
    pub fn ordered(
        shape: impl Into<IntTuple<i64>>,
        order: &IntTuple,
    ) -> Result<Layout<i64>, LayoutError> {
        Layout::ordered_in(&(), shape, order)
    }

    /// The compact layout with this shape whose modes have the order of the strides of this layout.
    /// Modes of stride 0 keep their stride.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(2,3,4,5):(0,42,1,0)".parse()?;
    /// assert_eq!(a.make_like()?.to_string(), "(2,3,4,5):(0,4,1,0)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// Overflow.
    pub fn make_like(&self) -> Result<Layout<i64>, LayoutError> {
        let like = Layout::ordered(self.collapse_zeros().shape(), &self.stride())?;
        let leaves = self.leaves.iter().zip(&like.leaves).map(|(old, new)| (old.0, new.1));
        Layout::checked(self.profile.clone(), leaves.collect())
    }

    /// The largest `n` by which the layout can be [upcast](Layout::upcast). An access that starts
    /// at a multiple of `n` can take up to `n` elements at once.
    #[must_use]
    pub fn max_alignment(&self) -> i64 {
        use crate::leaf::gcd;
        let mut run = 1i64; // The number of indices from 0 on that whole modes reach.
        let flat = self.coalesce();
        let mut leaves: Leaves<i64> =
            flat.leaves.iter().filter(|(n, d)| *n > 1 && *d != 0).copied().collect();
        while let Some(k) = leaves.iter().position(|(_, d)| d.unsigned_abs() == run as u64) {
            let (extent, _) = leaves.remove(k);
            run = run.saturating_mul(extent);
        }
        leaves.iter().fold(run, |all, (_, stride)| gcd(all, *stride))
    }
}
