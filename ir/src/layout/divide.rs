//! Division: a layout split into tiles and what iterates over them.
//!
//! Invariant: `logical_divide(a, t)` is `a ∘ (t, complement(t))`: mode 0 is `a ∘ t`, mode 1 walks
//! over the tiles. A ragged tile is kept whole and runs past the end of the last mode, so the
//! result may be larger than `a`; predicates take care of the rest.

use super::{Layout, LayoutError, Tiler};
use crate::leaf::Leaf;

impl<L: Leaf> Layout<L> {
    /// Each tiled mode becomes (tile, rest).
    ///
    /// # Errors
    /// Those of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        tiler.into().transform(self, 0, &mut |mode, tile| divide(cx, mode, tile))
    }

    /// As [`Layout::logical_divide_in`], with all tiles gathered in mode 0 and all rests in mode 1.
    ///
    /// # Errors
    /// Those of [`Layout::logical_divide_in`].
    pub fn zipped_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let tiler = tiler.into();
        unzip(&self.logical_divide_in(cx, tiler.clone())?, &tiler)
    }
}

fn divide<L: Leaf>(
    cx: &L::Cx,
    layout: &Layout<L>,
    tile: &Layout<L>,
) -> Result<Layout<L>, LayoutError> {
    let rest = tile.complement_in(cx, layout.size_in(cx)?)?;
    layout.compose_in(cx, &Layout::concat(&[tile.clone(), rest])?)
}

/// Gathers the first halves of the divided modes, and the second halves with the modes left alone.
pub(crate) fn unzip<L: Leaf>(
    divided: &Layout<L>,
    tiler: &Tiler<L>,
) -> Result<Layout<L>, LayoutError> {
    let Tiler::Modes(tilers) = tiler else { return Ok(divided.clone()) };
    let (mut tiles, mut rests) = (Vec::new(), Vec::new());
    for (k, mode) in divided.modes().into_iter().enumerate() {
        match tilers.get(k) {
            None | Some(Tiler::Keep) => rests.push(mode),
            Some(tiler) => {
                let halves = unzip(&mode, tiler)?;
                tiles.push(halves.mode(0)?);
                rests.push(halves.mode(1)?);
            }
        }
    }
    Layout::concat(&[Layout::concat(&tiles)?, Layout::concat(&rests)?])
}

impl Layout<i64> {
    /// Each tiled mode becomes (tile, rest).
    ///
    /// # Errors
    /// Those of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout<i64>, LayoutError> {
        self.logical_divide_in(&(), tiler)
    }

    /// As [`Layout::logical_divide`], with all tiles gathered in mode 0 and all rests in mode 1.
    ///
    /// # Errors
    /// Those of [`Layout::logical_divide`].
    pub fn zipped_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Layout<i64>, LayoutError> {
        self.zipped_divide_in(&(), tiler)
    }
}
