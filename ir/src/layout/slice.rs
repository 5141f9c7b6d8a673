//! Slices layouts: fixes some coordinates of a layout and keeps the modes of the others, as
//! indexing `[2,_]` does. The file also replaces, appends, prepends and takes modes.
//!
//! A coordinate with holes has `_` for each mode to keep: `(2,_)`. A hole over a nested mode keeps
//! the mode with its nesting; `(_,_)` keeps its parts as separate modes.
//!
//! Invariant: `a.at(c) == a.slice_offset(h) + a.slice(h).at(free part of c)` for every coordinate
//! `c` that agrees with `h`. `dice` keeps the modes that `slice` drops.

use super::{Layout, LayoutError, Profile, Stride};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

/// A coordinate with holes.
pub type Holes<L = i64> = IntTuple<Option<L>>;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The modes where the coordinate has holes.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] if the nesting of the coordinate does not fit the layout.
    pub fn slice(&self, coord: &Holes<L>) -> Result<Self, LayoutError> {
        self.parts_where(coord, true)
    }

    /// The modes where the coordinate has numbers.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] if the nesting of the coordinate does not fit the layout.
    pub fn dice(&self, coord: &Holes<L>) -> Result<Self, LayoutError> {
        self.parts_where(coord, false)
    }

    fn parts_where(&self, coord: &Holes<L>, hole: bool) -> Result<Self, LayoutError> {
        match coord {
            // Everything or nothing.
            IntTuple::Leaf(leaf) if leaf.is_none() == hole => Ok(self.clone()),
            IntTuple::Leaf(_) => Layout::concat(&[]),
            IntTuple::Tuple(_) => {
                let mut parts = Vec::new();
                self.collect(coord, hole, &mut parts)?;
                Layout::concat(&parts)
            }
        }
    }

    fn collect(
        &self,
        coord: &Holes<L>,
        hole: bool,
        parts: &mut Vec<Self>,
    ) -> Result<(), LayoutError> {
        match coord {
            IntTuple::Leaf(leaf) if leaf.is_none() == hole => parts.push(self.clone()),
            IntTuple::Leaf(_) => {}
            IntTuple::Tuple(coords) => {
                let modes = self.modes();
                if self.profile.is_leaf() || modes.len() != coords.len() {
                    return Err(LayoutError::Incongruent {
                        shape: nesting(&self.profile),
                        other: coord.map(&mut |c| if c.is_none() { "_" } else { "*" }).to_string(),
                    });
                }
                for (mode, coord) in modes.iter().zip(coords) {
                    mode.collect(coord, hole, parts)?;
                }
            }
        }
        Ok(())
    }
}

fn nesting(profile: &Profile) -> String {
    profile.tuple(std::iter::repeat("*")).to_string()
}

impl<L: Leaf> Layout<L> {
    /// The index of the coordinate with 0 for each hole.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] and overflow.
    pub fn slice_offset_in(&self, cx: &L::Cx, coord: &Holes<L>) -> Result<L, LayoutError> {
        self.crd2idx_in(cx, &coord.map(&mut |c| c.unwrap_or(L::constant(0))))
    }
}

impl Layout<i64> {
    /// The index of the coordinate with 0 for each hole.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] and overflow.
    pub fn slice_offset(&self, coord: &Holes) -> Result<i64, LayoutError> {
        self.slice_offset_in(&(), coord)
    }
}

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The layout with another mode `k`.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], limits and overflow.
    pub fn replace(&self, k: usize, mode: &Self) -> Result<Self, LayoutError> {
        let mut modes = self.modes();
        let rank = modes.len();
        *modes.get_mut(k).ok_or(LayoutError::Rank { mode: k, rank })? = mode.clone();
        Layout::concat(&modes)
    }

    /// The layout with `mode` added as the last one.
    ///
    /// # Errors
    /// Limits and overflow.
    pub fn append(&self, mode: &Self) -> Result<Self, LayoutError> {
        let mut modes = self.modes();
        modes.push(mode.clone());
        Layout::concat(&modes)
    }

    /// The layout with `mode` added as the first one.
    ///
    /// # Errors
    /// Limits and overflow.
    pub fn prepend(&self, mode: &Self) -> Result<Self, LayoutError> {
        let mut modes = self.modes();
        modes.insert(0, mode.clone());
        Layout::concat(&modes)
    }

    /// Modes `begin..end`.
    ///
    /// # Errors
    /// [`LayoutError::Rank`].
    pub fn take(&self, begin: usize, end: usize) -> Result<Self, LayoutError> {
        let modes = self.modes();
        let taken = modes.get(begin..end);
        Layout::concat(taken.ok_or(LayoutError::Rank { mode: end.max(begin), rank: modes.len() })?)
    }
}
