//! Coalescing: the same function of one-dimensional indices with as few modes as possible.
//!
//! Invariant: `coalesce(a).at(i) == a.at(i)` for every `i < a.size()`. Modes merge only where the
//! strides are known to continue each other, so a missing fact costs a merge, never the truth.

use super::{Layout, LayoutError};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// The same function on indices below the size, flat, without modes of extent 1.
    ///
    /// # Errors
    /// Overflow and the arena's limits, for symbolic leaves only.
    pub fn coalesce_in(&self, cx: &L::Cx) -> Result<Layout<L>, LayoutError> {
        let mut leaves = self.leaves();
        leaves.retain(|(extent, _)| extent.known() != Some(1));
        Layout::from_leaves(&merge(cx, &leaves)?)
    }

    /// The leaves merged, the last one kept even at extent 1: the same function on *every* index.
    pub(crate) fn extending_leaves(&self, cx: &L::Cx) -> Result<Vec<(L, L)>, LayoutError> {
        let mut leaves = self.leaves();
        let last = leaves.len().saturating_sub(1);
        let mut k = 0;
        leaves.retain(|(extent, _)| {
            k += 1;
            k > last || extent.known() != Some(1)
        });
        if leaves.is_empty() {
            leaves.push((L::constant(1), L::constant(0)));
        }
        merge(cx, &leaves)
    }

    /// The layout without stride-0 modes and modes of extent 1, coalesced: its image, each index
    /// once if the rest is injective.
    ///
    /// # Errors
    /// Overflow and the arena's limits, for symbolic leaves only.
    pub fn filter_zeros_in(&self, cx: &L::Cx) -> Result<Layout<L>, LayoutError> {
        let mut leaves = self.leaves();
        leaves.retain(|(extent, stride)| extent.known() != Some(1) && stride.known() != Some(0));
        Layout::from_leaves(&merge(cx, &leaves)?)
    }
}

fn merge<L: Leaf>(cx: &L::Cx, leaves: &[(L, L)]) -> Result<Vec<(L, L)>, LayoutError> {
    let mut merged: Vec<(L, L)> = Vec::with_capacity(leaves.len());
    for &(extent, stride) in leaves {
        if let Some(last) = merged.last_mut() {
            // A product that does not fit is no continuation: leave such modes apart.
            let continues = match L::mul(cx, last.0, last.1) {
                Ok(next) => <L as Leaf>::eq(cx, next, stride).is_true(),
                Err(LayoutError::Overflow { .. }) => false,
                Err(error) => return Err(error),
            };
            if continues {
                last.0 = L::mul(cx, last.0, extent)?;
                continue;
            }
        }
        merged.push((extent, stride));
    }
    Ok(merged)
}

impl Layout<i64> {
    /// The same function on indices below the size, flat, without modes of extent 1.
    #[must_use]
    pub fn coalesce(&self) -> Layout<i64> {
        // Cannot fail: merging changes neither the size nor the reach.
        self.coalesce_in(&()).unwrap_or_else(|_| self.clone())
    }

    /// Every mode of the outermost tuple coalesced on its own.
    #[must_use]
    pub fn coalesce_modes(&self) -> Layout<i64> {
        let modes: Vec<_> = self.modes().iter().map(Layout::coalesce).collect();
        if self.shape.is_leaf() {
            return self.coalesce();
        }
        Layout::concat(&modes).unwrap_or_else(|_| self.clone())
    }

    /// The layout without stride-0 modes and modes of extent 1, coalesced.
    #[must_use]
    pub fn filter_zeros(&self) -> Layout<i64> {
        // Cannot fail: fewer modes have a smaller size and reach.
        self.filter_zeros_in(&()).unwrap_or_else(|_| self.clone())
    }
}
