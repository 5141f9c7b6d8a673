//! Divides layouts: splits a layout into tiles and a layout that iterates over the tiles. Views by
//! `.tile` are divisions.
//!
//! Invariant: if the tile cuts `a` evenly, `logical_divide(a, t)` is `a ∘ (t, complement(t))`: mode
//! 0 is `a ∘ t`, mode 1 iterates over the tiles. A partial tile is kept whole and runs past the end
//! of its mode. The result is then this composition for `a` with the extents of its modes rounded
//! up to whole tiles. Coordinates inside of `a` keep their indices, and predicates exclude the
//! others. `(10,7):(7,1) / 3` is `(3,(4,7)):(7,(21,1))`: element `(i,(j,k))` is row `i + 3j`.

use super::compose::compose_leaves;
use super::{Layout, LayoutError, Leaves, Stride, Tiler};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// Each tiled mode becomes (tile, rest).
    ///
    /// # Errors
    /// The errors of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        tiler.into().transform(self, 0, false, &mut |mode, tile| divide(cx, mode, tile))
    }

    /// As [`Layout::logical_divide_in`], with all tiles in mode 0 and all rests in mode 1.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide_in`].
    pub fn zipped_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        let tiler = tiler.into();
        unzip(&self.logical_divide_in(cx, tiler.clone())?, &tiler)
    }

    /// As [`Layout::zipped_divide_in`], with the rests as separate modes: `(tile, rest, rest)`.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide_in`].
    pub fn tiled_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        self.zipped_divide_in(cx, tiler)?.unpacked(false)
    }

    /// As [`Layout::tiled_divide_in`], with the tiles as separate modes, too.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide_in`].
    pub fn flat_divide_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        self.zipped_divide_in(cx, tiler)?.unpacked(true)
    }

    /// Replaces the second of two modes, and if `both` the first one too, by the modes that it
    /// consists of.
    pub(crate) fn unpacked(&self, both: bool) -> Result<Self, LayoutError> {
        let (first, second) = (self.mode(0)?, self.mode(1)?);
        // A single mode stays within its tuple, as in CuTe.
        let open = |mode: Self| if mode.rank() == 1 { vec![mode] } else { mode.modes() };
        let mut modes = if both { open(first) } else { vec![first] };
        modes.extend(open(second));
        Layout::concat(&modes)
    }
}

fn divide<L: Leaf, D: Stride<L>>(
    cx: &L::Cx,
    layout: &Layout<L, D>,
    tile: &Layout<L>,
) -> Result<Layout<L, D>, LayoutError> {
    let mut modes = Leaves::new();
    layout.extending_leaves(cx, &mut modes)?;
    let extents: Vec<L> = modes.iter().map(|m| m.0).collect();
    let target = match extents[..] {
        [one] => IntTuple::Leaf(one),
        _ => extents.into(),
    };
    let rest = tile.complement_in(cx, target)?;
    let both = Layout::concat(&[tile.clone(), rest])?;
    // The part of the tile that is left at each mode. A mode that the tile does not fill evenly is
    // rounded up.
    let mut left = tile.gaps(cx, &mut Leaves::new())?;
    let (one, n) = (L::constant(1), modes.len());
    let mut ragged = false;
    let whole = modes.clone();
    for mode in &mut modes[..n - 1] {
        let extent = mode.0;
        let within = L::lt(cx, left, extent);
        if within.is_true() && !L::divides(cx, left, extent).is_true() {
            L::divides(cx, left, extent).require()?;
            mode.0 = L::mul(cx, L::ceil_div(cx, extent, left)?, left)?;
            ragged = true;
        }
        left = if left == one { one } else { L::ceil_div(cx, left, extent)? };
    }
    if ragged && let Ok(result) = compose_leaves(cx, &modes, &whole, &both) {
        return Ok(result);
    }
    layout.compose_in(cx, &both)
}

/// Gathers the first halves of the divided modes, and the second halves together with the undivided
/// modes.
pub(crate) fn unzip<L: Leaf, D: Stride<L>>(
    divided: &Layout<L, D>,
    tiler: &Tiler<L>,
) -> Result<Layout<L, D>, LayoutError> {
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

impl<D: Stride<i64>> Layout<i64, D> {
    /// Each tiled mode becomes (tile, rest).
    ///
    /// ```
    /// # use carbyne_ir::layout::{Layout, Tiler};
    /// let a: Layout = "(4,8):(8,1)".parse()?;
    /// let tiles = a.logical_divide(Tiler::tile(&[2, 4])?)?;
    /// assert_eq!(tiles.to_string(), "((2,2),(4,2)):((8,16),(1,4))");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// The errors of composition and complement, and [`LayoutError::Rank`] for too many tilers.
    pub fn logical_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Self, LayoutError> {
        self.logical_divide_in(&(), tiler)
    }

    /// As [`Layout::logical_divide`], with all tiles in mode 0 and all rests in mode 1.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide`].
    pub fn zipped_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Self, LayoutError> {
        self.zipped_divide_in(&(), tiler)
    }

    /// As [`Layout::zipped_divide`], with the rests as separate modes: `(tile, rest, rest)`.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide`].
    pub fn tiled_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Self, LayoutError> {
        self.tiled_divide_in(&(), tiler)
    }

    /// As [`Layout::tiled_divide`], with the tiles as separate modes, too.
    ///
    /// # Errors
    /// The errors of [`Layout::logical_divide`].
    pub fn flat_divide(&self, tiler: impl Into<Tiler<i64>>) -> Result<Self, LayoutError> {
        self.flat_divide_in(&(), tiler)
    }
}
