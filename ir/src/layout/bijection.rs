//! Decides whether a layout is injective, and whether it is a bijection onto a range. With it, the
//! verifier checks that no two coordinates of a written tensor share an element, and that a
//! thread-value layout covers its tensor.
//!
//! Invariant: the answers are exact. A layout is a bijection onto `0..n` if and only if its modes,
//! sorted by stride, are compact: the smallest index that the smaller strides do not reach must
//! itself be a stride. There is no such test of injectivity in general. Strides that do not nest
//! are checked by enumeration, up to a limit.

use super::{Layout, LayoutError};

/// The largest size whose indices are enumerated.
const MAX_ENUMERATED: usize = 1 << 22;

impl Layout<i64> {
    /// Whether no two coordinates share an index.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] if strides interleave and the size is too large to enumerate.
    pub fn is_injective(&self) -> Result<bool, LayoutError> {
        let mut modes = self.leaves.clone();
        modes.retain(|leaf| leaf.0 > 1);
        modes.sort_by_key(|(_, stride)| stride.unsigned_abs());
        if modes.iter().any(|(_, stride)| *stride == 0) {
            return Ok(false);
        }
        // Mixed radix: each stride exceeds the joint reach of the smaller ones.
        let mut reach = 0u64;
        let nested = modes.iter().all(|(extent, stride)| {
            let stride = stride.unsigned_abs();
            let beyond = stride > reach;
            // Cannot overflow: the cosize fits in 63 bits.
            reach = reach.saturating_add(stride.saturating_mul((*extent - 1).unsigned_abs()));
            beyond
        });
        if nested {
            return Ok(true);
        }
        let size = self.size();
        if size > self.cosize() {
            return Ok(false);
        }
        if size > MAX_ENUMERATED as i64 {
            return Err(LayoutError::TooLarge { what: "a search", limit: MAX_ENUMERATED });
        }
        let mut image: Vec<i64> = (0..size).map(|i| self.at(i)).collect();
        image.sort_unstable();
        Ok(image.windows(2).all(|pair| pair[0] != pair[1]))
    }

    /// Whether the layout takes every value of `0..n` exactly once.
    #[must_use]
    pub fn is_bijective_onto(&self, n: i64) -> bool {
        let mut modes = self.leaves.clone();
        modes.retain(|leaf| leaf.0 > 1);
        modes.sort_by_key(|(_, stride)| *stride);
        let mut next = 1i64;
        for (extent, stride) in modes {
            if stride != next {
                return false;
            }
            let Some(reach) = next.checked_mul(extent) else { return false };
            next = reach;
        }
        next == n
    }
}
