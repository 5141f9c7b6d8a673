//! The right operand of composition, division and product: a layout over everything, or one for
//! each mode.
//!
//! Invariant: a tiling has at most as many modes as what it tiles; further modes are left alone.

use super::answer::Answer;
use std::fmt;

/// One layout for the whole operand, or tilings by mode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tiling<T> {
    /// Acts on the whole operand as a one-dimensional function.
    Layout(T),
    /// One for each of the first modes.
    Modes(Vec<Tiling<T>>),
    /// Leaves the mode alone.
    Keep,
}

impl<T> Tiling<T> {
    /// The layout that tiles everything; [`Answer::Unsupported`] for a tiling by mode, which is
    /// what a library without such answers.
    #[must_use]
    pub fn whole(&self) -> Answer<&T> {
        match self {
            Tiling::Layout(layout) => Answer::Got(layout),
            _ => Answer::Unsupported,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Tiling<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tiling::Keep => f.write_str("_"),
            Tiling::Layout(layout) => layout.fmt(f),
            Tiling::Modes(modes) => {
                f.write_str("[")?;
                for (k, mode) in modes.iter().enumerate() {
                    f.write_str(if k > 0 { ", " } else { "" })?;
                    mode.fmt(f)?;
                }
                f.write_str("]")
            }
        }
    }
}
