//! Complement: the layout of what another layout leaves out.
//!
//! Invariant: the complement is ordered (its indices increase) and meets the image of the layout in
//! 0 only; sums of an index of each are all different. Where every stride is a multiple of the reach
//! (extent times stride) of the mode before it, the two together are a bijection onto a range that
//! holds `0..cotarget`.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// The complement with respect to `0..cotarget`.
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] where modes overlap, [`LayoutError::NegativeStride`], and
    /// [`LayoutError::NeedsFact`] where the order of the strides depends on symbols.
    pub fn complement_in(&self, cx: &L::Cx, cotarget: L) -> Result<Layout<L>, LayoutError> {
        let modes = self.filter_zeros_in(cx)?.sorted_modes(cx)?;
        let mut current = L::constant(1);
        let mut gaps = Vec::with_capacity(modes.len() + 1);
        for (extent, stride) in modes {
            // Strides below the reach of the modes before it would hit their indices again.
            if L::lt(cx, stride, current).require()? {
                return Err(LayoutError::NotInjective { layout: self.display_in(cx) });
            }
            gaps.push((L::div(cx, stride, current)?, current));
            current = L::mul(cx, extent, stride)?;
        }
        gaps.push((L::max(cx, L::constant(1), L::ceil_div(cx, cotarget, current)?)?, current));
        Layout::from_leaves(&gaps)?.coalesce_in(cx)
    }

    /// The leaves of extent above 1 and stride other than 0, by increasing stride.
    pub(crate) fn sorted_modes(&self, cx: &L::Cx) -> Result<Vec<(L, L)>, LayoutError> {
        let mut sorted: Vec<(L, L)> = Vec::new();
        for (extent, stride) in self.leaves() {
            if extent.known() == Some(1) || stride.known() == Some(0) {
                continue;
            }
            if L::lt(cx, stride, L::constant(0)).require()? {
                let mode = format!("{}:{}", extent.show(cx), stride.show(cx));
                return Err(LayoutError::NegativeStride { mode });
            }
            let mut place = sorted.len();
            while place > 0 && L::lt(cx, stride, sorted[place - 1].1).require()? {
                place -= 1;
            }
            sorted.insert(place, (extent, stride));
        }
        Ok(sorted)
    }
}

impl Layout<i64> {
    /// The complement with respect to `0..cotarget`.
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] where modes overlap, [`LayoutError::NegativeStride`].
    pub fn complement(&self, cotarget: i64) -> Result<Layout<i64>, LayoutError> {
        self.complement_in(&(), cotarget)
    }
}
