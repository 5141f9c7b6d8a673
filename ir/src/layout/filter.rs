//! Filtering removes the modes of stride 0 (broadcasts) and those of extent 1, and coalesces the
//! others. The nullspace consists of exactly the modes of stride 0.
//!
//! Invariant: `filter(a)` reaches the indices of `a`, each once if the remaining modes are
//! injective. Invariant: `a.at(nullspace(a).at(i)) == 0`, and the product of the two sizes is the
//! size of `a`.

use super::coalesce::merge_into;
use super::{Layout, LayoutError, Leaves, Stride};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The layout without stride-0 modes and modes of extent 1, coalesced. It reaches each index of
    /// this layout, once if the remaining modes are injective.
    ///
    /// # Errors
    /// Overflow and the arena's limits, for symbolic leaves only.
    pub fn filter_zeros_in(&self, cx: &L::Cx) -> Result<Self, LayoutError> {
        let mut merged = Leaves::new();
        self.moving_leaves(cx, &mut merged)?;
        Ok(Layout::trusted(merged))
    }

    #[inline]
    pub(crate) fn moving_leaves(
        &self,
        cx: &L::Cx,
        merged: &mut Leaves<L, D>,
    ) -> Result<(), LayoutError> {
        let moves = |(extent, stride): &&(L, D)| extent.known() != Some(1) && !stride.is_zero();
        merge_into(cx, self.leaves.iter().filter(moves), merged)
    }

    /// Filters every mode separately, down to the leaves of the profile.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] where the profile has more modes, and those of
    /// [`Layout::filter_zeros_in`].
    pub fn filter_by_in<M: Copy>(
        &self,
        cx: &L::Cx,
        profile: &IntTuple<M>,
    ) -> Result<Self, LayoutError> {
        self.by_profile(profile, &mut |mode| mode.filter_zeros_in(cx))
    }

    /// The layout with extent 1 for every mode of stride 0.
    #[must_use]
    pub fn collapse_zeros(&self) -> Self {
        let one = |&(extent, stride): &(L, D)| match stride.is_zero() {
            true => (L::constant(1), stride),
            false => (extent, stride),
        };
        Layout { profile: self.profile.clone(), leaves: self.leaves.iter().map(one).collect() }
    }

    /// The coordinates, as one-dimensional indices, that differ from 0 only in modes of stride 0.
    ///
    /// # Errors
    /// Overflow and the arena's limits, for symbolic leaves only.
    pub fn nullspace_in(&self, cx: &L::Cx) -> Result<Layout<L>, LayoutError> {
        let mut still: Leaves<L> = Leaves::new();
        let mut before = L::constant(1);
        for (extent, stride) in &self.leaves {
            if stride.is_zero() {
                // A mode of extent 1 does not move.
                let one = extent.known() == Some(1);
                still.push((*extent, if one { L::constant(0) } else { before }));
            }
            before = L::mul(cx, before, *extent)?;
        }
        Layout::from_leaves(&still)
    }
}

impl<D: Stride<i64>> Layout<i64, D> {
    /// The layout without stride-0 modes and modes of extent 1, coalesced.
    #[must_use]
    pub fn filter_zeros(&self) -> Self {
        // Cannot fail: fewer modes have a smaller size and reach.
        self.filter_zeros_in(&()).unwrap_or_else(|_| self.clone())
    }

    /// CuTe's name of [`Layout::filter_zeros`].
    #[must_use]
    pub fn filter(&self) -> Self {
        self.filter_zeros()
    }

    /// Filters every mode separately, down to the leaves of the profile.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] where the profile has more modes than the layout.
    pub fn filter_by<M: Copy>(&self, profile: &IntTuple<M>) -> Result<Self, LayoutError> {
        self.filter_by_in(&(), profile)
    }

    /// The coordinates, as one-dimensional indices, that differ from 0 only in modes of stride 0.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(2,3,4):(1,0,8)".parse()?;
    /// assert_eq!(a.nullspace().to_string(), "3:2");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn nullspace(&self) -> Layout {
        // Cannot fail: the nullspace reaches no index beyond the size.
        self.nullspace_in(&()).unwrap_or_else(|_| Layout::trivial())
    }
}
