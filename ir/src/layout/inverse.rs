//! Inverses of layouts.
//!
//! Invariant: with `r = a.right_inverse()`, `a.at(r.at(i)) == i` for every `i < r.size()`, and no
//! layout that is an inverse on `0..n` has a larger `n`. With `l = a.left_inverse()`,
//! `l.at(a.at(i)) == i` for every `i < a.size()`, or a refusal.

use super::{Layout, LayoutError};

impl Layout<i64> {
    /// The largest layout that this one undoes. Never fails: `1:0` is always one.
    #[must_use]
    pub fn right_inverse(&self) -> Layout<i64> {
        let mut next = 1i64;
        let mut inverse = Vec::new();
        let mut modes = self.coalesce().with_prefixes();
        modes.retain(|(_, stride, _)| *stride > 0);
        modes.sort_by_key(|(_, stride, _)| *stride);
        for (extent, stride, prefix) in modes {
            // Before the next stride, nothing of the image is left to undo.
            if stride != next {
                if stride < next {
                    continue;
                }
                break;
            }
            let Some(reach) = extent.checked_mul(stride) else { break };
            inverse.push((extent, prefix));
            next = reach;
        }
        // Cannot fail: the inverse reaches no index beyond the size.
        Layout::from_leaves(&inverse).map_or_else(|_| self.clone(), |inverse| inverse.coalesce())
    }

    /// The layout that undoes this one on its image; replicas (stride 0) go to the first of them.
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] where modes overlap, [`LayoutError::Indivisible`] where the
    /// strides do not divide one another, [`LayoutError::NegativeStride`].
    pub fn left_inverse(&self) -> Result<Layout<i64>, LayoutError> {
        let coalesced = self.coalesce();
        let mut modes = coalesced.with_prefixes();
        modes.retain(|(_, stride, _)| *stride != 0);
        modes.sort_by_key(|(_, stride, _)| *stride);
        let mut reach = 1i64;
        let mut inverse = Vec::new();
        let mut before = String::from("1:1");
        for (extent, stride, prefix) in modes {
            let mode = format!("{extent}:{stride}");
            if stride < 0 {
                return Err(LayoutError::NegativeStride { mode });
            }
            if stride < reach {
                return Err(LayoutError::NotInjective { layout: self.to_string() });
            }
            if stride % reach != 0 {
                return Err(LayoutError::Indivisible { outer: mode, inner: before });
            }
            // What lies between the image of the modes before and this one is never asked for.
            inverse.push((stride / reach, 0));
            inverse.push((extent, prefix));
            reach = stride
                .checked_mul(extent)
                .ok_or(LayoutError::Overflow { what: "the reach of a mode" })?;
            before = mode;
        }
        Ok(Layout::from_leaves(&inverse)?.coalesce())
    }

    /// The leaves as (extent, stride, product of the extents before).
    fn with_prefixes(&self) -> Vec<(i64, i64, i64)> {
        let mut prefix = 1i64;
        let mut modes = Vec::new();
        for (extent, stride) in self.leaves() {
            modes.push((extent, stride, prefix));
            prefix = prefix.saturating_mul(extent); // Below the size, which fits.
        }
        modes
    }
}
