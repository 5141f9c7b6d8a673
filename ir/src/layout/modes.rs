//! Selects, groups and flattens the modes of a layout, and concatenates layouts as modes.
//!
//! Invariant: these operations only regroup leaves (innermost extents with their strides). The
//! index of a leaf coordinate does not change.

use super::profile::Builder;
use super::{Layout, LayoutError, Leaves, Profile, Stride};
use crate::leaf::Leaf;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The number of modes; 1 for a layout of one number.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.profile.rank()
    }

    /// The nesting depth; 0 for a layout of one number.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.profile.depth()
    }

    /// Mode `i` as a layout.
    ///
    /// # Errors
    /// [`LayoutError::Rank`].
    pub fn mode(&self, i: usize) -> Result<Self, LayoutError> {
        match self.profile.modes().nth(i) {
            Some(at) => Ok(self.part(at)),
            None => Err(LayoutError::Rank { mode: i, rank: self.rank() }),
        }
    }

    /// All modes in order.
    #[must_use]
    pub fn modes(&self) -> Vec<Self> {
        self.profile.modes().map(|at| self.part(at)).collect()
    }

    /// The layout with these modes.
    ///
    /// # Errors
    /// Overflow and the limits on depth and leaves.
    pub fn concat(modes: &[Self]) -> Result<Self, LayoutError> {
        let (mut profile, mut leaves) = (Builder::default(), Leaves::new());
        profile.open();
        for mode in modes {
            profile.all(&mode.profile);
            leaves.extend_from_slice(&mode.leaves);
        }
        profile.close();
        Layout::checked(profile.done(), leaves)
    }

    /// The layout with modes `begin..end` grouped into one.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], and the limit on depth.
    pub fn group(&self, begin: usize, end: usize) -> Result<Self, LayoutError> {
        let mut modes = self.modes();
        if begin > end || end > modes.len() {
            return Err(LayoutError::Rank { mode: begin.max(end), rank: modes.len() });
        }
        let inner: Vec<_> = modes.drain(begin..end).collect();
        modes.insert(begin, Layout::concat(&inner)?);
        Layout::concat(&modes)
    }

    /// The given modes, in the given order.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], and overflow if a mode is chosen repeatedly.
    pub fn select(&self, modes: &[usize]) -> Result<Self, LayoutError> {
        Layout::concat(&modes.iter().map(|&i| self.mode(i)).collect::<Result<Vec<_>, _>>()?)
    }

    /// The leaves without nesting. A layout of one number stays unchanged.
    #[must_use]
    pub fn flatten(&self) -> Self {
        if self.profile.is_leaf() {
            return self.clone();
        }
        let leaves = Leaves::from_slice(&self.leaves);
        Layout { profile: Profile::flat(leaves.len()), leaves }
    }
}
