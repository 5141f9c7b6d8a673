//! Coalesces a layout: makes one with as few modes as possible that is an equal function of
//! one-dimensional indices, as `(2,4):(1,2)` is `8:1`.
//!
//! Invariant: `coalesce(a).at(i) == a.at(i)` for every `i < a.size()`. Modes merge only if their
//! strides are known to continue each other. A missing fact therefore prevents a merge, but the
//! result stays correct.

use super::profile::Builder;
use super::{Layout, LayoutError, Leaves, Stride};
use crate::leaf::{Decision, Fact, Leaf};
use crate::tuple::IntTuple;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// A flat layout without modes of extent 1 that equals this one on indices below the size.
    ///
    /// # Errors
    /// Overflow and the arena's limits, for symbolic leaves only.
    #[inline]
    pub fn coalesce_in(&self, cx: &L::Cx) -> Result<Self, LayoutError> {
        let moving = self.leaves.iter().filter(|(extent, _)| extent.known() != Some(1));
        Ok(Layout::trusted(merge(cx, moving)?))
    }

    /// Coalesces every mode separately, down to the leaves of the profile. Modes beyond the profile
    /// stay.
    ///
    /// # Errors
    /// [`LayoutError::Rank`] where the profile has more modes, and those of
    /// [`Layout::coalesce_in`].
    pub fn coalesce_by_in<M: Copy>(
        &self,
        cx: &L::Cx,
        profile: &IntTuple<M>,
    ) -> Result<Self, LayoutError> {
        self.by_profile(profile, &mut |mode| mode.coalesce_in(cx))
    }

    /// Applies `f` to the modes at the leaves of the profile.
    pub(crate) fn by_profile<M: Copy>(
        &self,
        profile: &IntTuple<M>,
        f: &mut impl FnMut(&Self) -> Result<Self, LayoutError>,
    ) -> Result<Self, LayoutError> {
        let IntTuple::Tuple(parts) = profile else { return f(self) };
        let mut modes = self.modes();
        if parts.len() > modes.len() {
            return Err(LayoutError::Rank { mode: parts.len() - 1, rank: modes.len() });
        }
        for (mode, part) in modes.iter_mut().zip(parts) {
            *mode = mode.by_profile(part, f)?;
        }
        Layout::concat(&modes)
    }

    /// The merged leaves. The last one stays even with extent 1: the result equals this layout on
    /// *every* index.
    #[inline]
    pub(crate) fn extending_leaves(
        &self,
        cx: &L::Cx,
        merged: &mut Leaves<L, D>,
    ) -> Result<(), LayoutError> {
        let last = self.leaves.len().saturating_sub(1);
        let kept = self.leaves.iter().enumerate();
        let kept = kept.filter(|(k, leaf)| *k == last || leaf.0.known() != Some(1));
        merge_into(cx, kept.map(|(_, leaf)| leaf), merged)?;
        if merged.is_empty() {
            merged.push((L::constant(1), D::zero()));
        }
        Ok(())
    }
}

impl<L: Leaf> Layout<L> {
    /// Whether both layouts have equal sizes and are equal functions of one-dimensional indices.
    ///
    /// Layouts of numbers always have an answer. For symbols, yes means equal for all their values,
    /// and no means equal for none. Otherwise the missing fact is the first equation that equality
    /// would require.
    ///
    /// # Errors
    /// As [`Layout::coalesce_in`].
    pub fn equivalent_in(&self, cx: &L::Cx, other: &Self) -> Result<Decision, LayoutError> {
        let size = <L as Leaf>::eq(cx, self.size_in(cx)?, other.size_in(cx)?);
        if size.is_false() {
            return Ok(size);
        }
        let (a, b) = (self.coalesce_in(cx)?, other.coalesce_in(cx)?);
        for ((n, d), (m, e)) in a.leaves.iter().zip(&b.leaves) {
            let (extents, strides) = (<L as Leaf>::eq(cx, *n, *m), <L as Leaf>::eq(cx, *d, *e));
            // The modes before are equal. If both modes have a second element, the strides decide.
            let both = |least| [n, m].iter().all(|n| L::lt(cx, L::constant(least), **n).is_true());
            if strides.is_false() && both(1) {
                return Ok(strides);
            }
            for part in [strides, extents] {
                match part {
                    Decision::Known(true) => {}
                    // A symbolic mode may have one element, or the next mode may make up for the
                    // extent.
                    Decision::Known(false) if self.is_fixed() && other.is_fixed() => {
                        return Ok(part);
                    }
                    Decision::Known(false) => {
                        let (left, right) = (a.display_in(cx), b.display_in(cx));
                        return Ok(Decision::Needs(Fact::Equal { left, right }));
                    }
                    Decision::Needs(_) => return Ok(part),
                }
            }
        }
        // All compared modes are equal, so equal sizes leave one element for the remaining modes.
        Ok(size)
    }

    fn is_fixed(&self) -> bool {
        self.leaves.iter().all(|(n, d)| n.known().is_some() && d.known().is_some())
    }
}

#[inline]
pub(crate) fn merge<'a, L: Leaf, D: Stride<L>>(
    cx: &L::Cx,
    leaves: impl Iterator<Item = &'a (L, D)>,
) -> Result<Leaves<L, D>, LayoutError> {
    let mut merged: Leaves<L, D> = Leaves::new();
    merge_into(cx, leaves, &mut merged)?;
    Ok(merged)
}

/// As [`merge`], without moving large values.
#[inline]
pub(crate) fn merge_into<'a, L: Leaf, D: Stride<L>>(
    cx: &L::Cx,
    leaves: impl Iterator<Item = &'a (L, D)>,
    merged: &mut Leaves<L, D>,
) -> Result<(), LayoutError> {
    // The stride that would continue the last mode. `None` if it does not fit.
    let mut next: Option<D> = None;
    for &(extent, stride) in leaves {
        let continues = next.is_some_and(|next| D::same(cx, next, stride).is_true());
        let mode = match merged.last_mut() {
            Some(last) if continues => {
                last.0 = L::mul(cx, last.0, extent)?;
                *last
            }
            _ => {
                merged.push((extent, stride));
                (extent, stride)
            }
        };
        // A product that does not fit continues nothing: such modes stay separate.
        next = match D::times(cx, mode.1, mode.0) {
            Ok(product) => Some(product),
            Err(LayoutError::Overflow { .. }) => None,
            Err(error) => return Err(error),
        };
    }
    Ok(())
}

impl<D: Stride<i64>> Layout<i64, D> {
    /// A flat layout without modes of extent 1 that equals this one on indices below the size.
    #[must_use]
    #[inline]
    pub fn coalesce(&self) -> Self {
        // Cannot fail: merging changes neither the size nor the reach.
        self.coalesce_in(&()).unwrap_or_else(|_| self.clone())
    }

    /// Coalesces every mode separately, down to the leaves of the profile. Modes beyond the profile
    /// stay.
    ///
    /// ```
    /// # use carbyne_ir::{layout::Layout, tuple::IntTuple};
    /// let a: Layout = "(2,(1,6)):(1,(6,2))".parse()?;
    /// let profile: IntTuple = "(1,1)".parse()?;
    /// assert_eq!(a.coalesce_by(&profile)?.to_string(), "(2,6):(1,2)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Rank`] where the profile has more modes than the layout.
    pub fn coalesce_by<M: Copy>(&self, profile: &IntTuple<M>) -> Result<Self, LayoutError> {
        self.coalesce_by_in(&(), profile)
    }

    /// Coalesces every mode of the outermost tuple separately.
    #[must_use]
    pub fn coalesce_modes(&self) -> Self {
        if self.profile.is_leaf() {
            return self.coalesce();
        }
        let (mut profile, mut leaves) = (Builder::default(), Leaves::new());
        profile.open();
        for mode in self.profile.modes() {
            let part = self.part(mode).coalesce();
            profile.all(&part.profile);
            leaves.extend_from_slice(&part.leaves);
        }
        profile.close();
        Layout { profile: profile.done(), leaves }
    }
}
