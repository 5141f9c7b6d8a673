//! Inverses of layouts.
//!
//! Invariant: with `r = a.right_inverse()`, `a.at(r.at(i)) == i` for every `i < r.size()`; where `a` is
//! a bijection onto `0..n`, `r` is its inverse. With `l = a.left_inverse()`,
//! `a.at(l.at(a.at(i))) == a.at(i)` for every `i < a.size()`, so `l` undoes an injective `a`.

use super::{Layout, LayoutError};

impl Layout<i64> {
    /// A layout that this one undoes, as large as whole modes of this one make it; at least `1:0`.
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
        // Between one stride and the next lies the digit of the mode, its radix their quotient.
        let mut before = (1i64, 1i64, 0i64);
        let mut inverse = Vec::new();
        for mode in modes {
            let (extent, stride, _) = mode;
            if stride < 0 {
                return Err(LayoutError::NegativeStride { mode: format!("{extent}:{stride}") });
            }
            let radix = stride / before.1;
            if radix < before.0 {
                return Err(LayoutError::NotInjective { layout: self.to_string() });
            }
            if stride % before.1 != 0 {
                let outer = format!("{extent}:{stride}");
                let inner = format!("{}:{}", before.0, before.1);
                return Err(LayoutError::Indivisible { outer, inner });
            }
            inverse.push((radix, before.2));
            before = mode;
        }
        inverse.push((before.0, before.2));
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
