//! Defines [`Tiler`], the right operand of composition, division and product. A tiler is one layout
//! for the whole left operand, or one tiler for each of its first modes, which may keep the mode as
//! it is. Division and product keep the further modes of the left operand, composition drops them.

use super::{Layout, LayoutError, Stride};
use crate::leaf::Leaf;
use crate::tuple::MAX_DEPTH;

/// The right operand of division, product and composition by mode.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Tiler<L: Leaf = i64> {
    /// Acts on the whole mode as a one-dimensional function.
    Layout(Layout<L>),
    /// One tiler for each of the first modes. Further modes stay unchanged.
    Modes(Vec<Tiler<L>>),
    /// Keeps the mode unchanged.
    Keep,
}

impl<L: Leaf> From<Layout<L>> for Tiler<L> {
    fn from(layout: Layout<L>) -> Self {
        Tiler::Layout(layout)
    }
}

impl<L: Leaf> From<&Layout<L>> for Tiler<L> {
    fn from(layout: &Layout<L>) -> Self {
        Tiler::Layout(layout.clone())
    }
}

impl<L: Leaf> From<Vec<Tiler<L>>> for Tiler<L> {
    fn from(modes: Vec<Tiler<L>>) -> Self {
        Tiler::Modes(modes)
    }
}

impl<L: Leaf> Tiler<L> {
    /// A tile of consecutive elements, with one extent for each mode, such as `[8, 8]`.
    ///
    /// # Errors
    /// [`LayoutError::Extent`] for constant extents below 1.
    pub fn tile(extents: &[L]) -> Result<Self, LayoutError> {
        let mode = |&extent| Ok(Tiler::Layout(Layout::of_mode(extent, L::constant(1))?));
        extents.iter().map(mode).collect::<Result<_, _>>().map(Tiler::Modes)
    }

    /// Applies `leaf` at every layout of the tiler. Modes under [`Tiler::Keep`] stay. Modes beyond
    /// the tiler stay or are dropped.
    pub(crate) fn transform<D: Stride<L>>(
        &self,
        layout: &Layout<L, D>,
        depth: usize,
        drop: bool,
        leaf: &mut impl FnMut(&Layout<L, D>, &Layout<L>) -> Result<Layout<L, D>, LayoutError>,
    ) -> Result<Layout<L, D>, LayoutError> {
        match self {
            Tiler::Keep => Ok(layout.clone()),
            Tiler::Layout(tile) => leaf(layout, tile),
            Tiler::Modes(_) if depth >= MAX_DEPTH => Err(LayoutError::TooDeep { limit: MAX_DEPTH }),
            Tiler::Modes(tilers) => {
                let mut modes = layout.modes();
                if tilers.len() > modes.len() {
                    return Err(LayoutError::Rank { mode: tilers.len() - 1, rank: modes.len() });
                }
                for (mode, tiler) in modes.iter_mut().zip(tilers) {
                    *mode = tiler.transform(mode, depth + 1, drop, leaf)?;
                }
                if drop {
                    modes.truncate(tilers.len());
                }
                Layout::concat(&modes)
            }
        }
    }
}
