//! Defines [`Tiling`], the tiler that a law passes to the library under test, as the right operand
//! of composition, division and product. It is one layout for the whole left operand, or one tiling
//! for each of its first modes. Unlike the `Tiler` of this crate it holds layouts of the tested
//! library.
//!
//! Invariant: a tiling has at most as many modes as the left operand. Division and product must
//! leave further modes unchanged; a library's composition may drop them.

use super::answer::Answer;
use std::fmt;

/// One layout for the whole operand, or tilings by mode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tiling<T> {
    /// Acts on the whole operand as a one-dimensional function.
    Layout(T),
    /// One tiling for each of the first modes.
    Modes(Vec<Tiling<T>>),
    /// Keeps the mode unchanged.
    Keep,
}

impl<T> Tiling<T> {
    /// The layout of a tiling by one layout. [`Answer::Unsupported`] for a tiling by mode, the
    /// answer of libraries without such tilings.
    #[must_use]
    pub fn as_layout(&self) -> Answer<&T> {
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
