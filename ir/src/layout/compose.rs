//! Composition of layouts: `compose(a, b)` is the layout of `a ∘ b`.
//!
//! Invariant: `compose(a, b).at(i) == a.at(b.at(i))` for every `i < b.size()`, and every coordinate
//! of `b` is one of the result. Composition is partial: where the steps of `b` straddle a mode of
//! `a` we return [`LayoutError::Indivisible`], naming both modes, and never a wrong layout.
//!
//! Reasoning. `a`, coalesced, writes an index in mixed radix, one digit for each mode, the last
//! digit without bound. Every leaf of `b` is a *piece* `rate * i` with `i < extent`. Walking the
//! modes of `a` with extent `s`: `rate = q * s + m` sends `m * i` to this digit and `q * i` onward,
//! which is exact as long as *all* pieces together never carry: the sum of `m * (extent - 1)` stays
//! below `s`. A piece that would carry alone, with `m` dividing `s`, is split after `s / m` steps:
//! the outer part moves in whole multiples of `s`. This admits every composition with divisible
//! strides, also those where no carry can happen for reasons of size (`(8,8):(8,1) ∘ 3:3`).

use super::{Layout, LayoutError, Tiler};
use crate::leaf::{Decision, Leaf};
use crate::tuple::{IntTuple, MAX_NODES};

impl<L: Leaf> Layout<L> {
    /// The layout of `self ∘ inner`.
    ///
    /// # Errors
    /// [`LayoutError::Indivisible`] where the result is no layout, [`LayoutError::NeedsFact`] where
    /// that depends on symbols, [`LayoutError::NegativeStride`] for such a mode of `inner`.
    pub fn compose_in(&self, cx: &L::Cx, inner: &Layout<L>) -> Result<Layout<L>, LayoutError> {
        let mut outer = self.extending_leaves(cx)?;
        let (_, last_stride) = outer.pop().unwrap_or((L::constant(1), L::constant(0)));
        let mut walk = Walk { cx, leaves: Vec::new(), n_pieces: 0 };
        for (extent, stride) in inner.leaves() {
            let mode = mode_text(cx, extent, stride);
            if L::lt(cx, stride, L::constant(0)).require()? {
                return Err(LayoutError::NegativeStride { mode });
            }
            // A mode of extent 1 never moves, whatever its stride.
            let rate = if extent.known() == Some(1) { L::constant(0) } else { stride };
            let zero = L::constant(0);
            walk.leaves.push((mode, vec![Piece { extent, rate, stride: zero }]));
        }
        for (extent, stride) in outer {
            walk.digit(extent, stride)?;
        }
        let mut results = Vec::with_capacity(walk.leaves.len());
        for (_, pieces) in walk.leaves {
            let mut leaves = Vec::with_capacity(pieces.len());
            for piece in pieces {
                let rest = L::mul(cx, piece.rate, last_stride)?;
                leaves.push((piece.extent, L::add(cx, piece.stride, rest)?));
            }
            results.push(Layout::from_leaves(&leaves)?.coalesce_in(cx)?);
        }
        let (shape, stride) = reassemble(inner.shape(), &mut results.into_iter());
        Layout::new(shape, stride)
    }

    /// Composition of every mode with its own tiler; modes without one stay.
    ///
    /// # Errors
    /// Those of [`Layout::compose_in`], and [`LayoutError::Rank`] for too many tilers.
    pub fn compose_by_mode_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        tiler.into().transform(self, 0, &mut |mode, tile| mode.compose_in(cx, tile))
    }
}

/// A part `rate * i`, `i < extent`, of the index that a leaf of the inner layout produces, in units
/// of the digit under consideration; `stride` is what the digits before it contribute.
struct Piece<L> {
    extent: L,
    rate: L,
    stride: L,
}

struct Walk<'a, L: Leaf> {
    cx: &'a L::Cx,
    /// For each leaf of the inner layout its name in messages and its pieces, fastest first.
    leaves: Vec<(String, Vec<Piece<L>>)>,
    n_pieces: usize,
}

impl<L: Leaf> Walk<'_, L> {
    /// Moves every piece past the digit of extent `s`, whose steps are worth `stride`.
    fn digit(&mut self, s: L, stride: L) -> Result<(), LayoutError> {
        let cx = self.cx;
        let outer = mode_text(cx, s, stride);
        let zero = L::constant(0);
        let mut reach = zero;
        for (name, pieces) in &mut self.leaves {
            let refuse = |needs: Decision| match needs {
                Decision::Needs(fact) => LayoutError::NeedsFact { fact },
                Decision::Known(_) => {
                    LayoutError::Indivisible { outer: outer.clone(), inner: name.clone() }
                }
            };
            let mut moved = Vec::with_capacity(pieces.len());
            for piece in pieces.drain(..) {
                let (m, q) = split_rate(cx, piece.rate, s)?;
                let steps = L::sub(cx, piece.extent, L::constant(1))?;
                let alone = reach_of(cx, m, steps)?;
                let fits = alone.map_or(Decision::Known(false), |r| L::lt(cx, r, s));
                if let (true, Some(alone)) = (fits.is_true(), alone) {
                    reach = L::add(cx, reach, alone)?;
                    moved.push(piece.advance(cx, m, q, stride)?);
                    continue;
                }
                let turn = turn_of(cx, m, s)?.map_err(|needs| refuse(either(&fits, needs)))?;
                let divides = L::divides(cx, turn, piece.extent);
                if !divides.is_true() {
                    // Either would do: that whole turns fit the piece, or whole pieces the turn.
                    let span = reach_of(cx, m, piece.extent)?;
                    let within = span.map_or(Decision::Known(false), |r| L::divides(cx, r, s));
                    let contains = either(&divides, within);
                    return Err(refuse(either(&fits, contains)));
                }
                let within = L::mul(cx, m, L::sub(cx, turn, L::constant(1))?)?;
                reach = L::add(cx, reach, within)?;
                // After `turn` steps the digit is back at zero and has carried exactly once.
                let rate = L::add(cx, L::mul(cx, q, turn)?, L::constant(1))?;
                let carried = Piece {
                    extent: L::div(cx, piece.extent, turn)?,
                    rate,
                    stride: L::mul(cx, piece.stride, turn)?,
                };
                let inside = Piece { extent: turn, ..piece };
                moved.push(inside.advance(cx, m, q, stride)?);
                moved.push(carried);
                self.n_pieces += 1;
                if self.n_pieces > 16 * MAX_NODES {
                    return Err(LayoutError::TooLarge {
                        what: "a composition",
                        limit: 16 * MAX_NODES,
                    });
                }
            }
            *pieces = moved;
        }
        match L::lt(cx, reach, s) {
            Decision::Known(true) => Ok(()),
            Decision::Needs(fact) => Err(LayoutError::NeedsFact { fact }),
            Decision::Known(false) => {
                // Together the pieces carry; name the last leaf that moves this digit.
                let moves = |pieces: &Vec<Piece<L>>| pieces.iter().any(|p| p.stride != zero);
                let found = self.leaves.iter().rev().find(|(_, pieces)| moves(pieces));
                let inner = found.map_or_else(String::new, |(name, _)| name.clone());
                Err(LayoutError::Indivisible { outer, inner })
            }
        }
    }
}

impl<L: Leaf> Piece<L> {
    fn advance(self, cx: &L::Cx, m: L, q: L, stride: L) -> Result<Self, LayoutError> {
        let stride = L::add(cx, self.stride, L::mul(cx, m, stride)?)?;
        Ok(Piece { rate: q, stride, ..self })
    }
}

/// `(m, q)` with `rate == q * s + m`. `m` is the remainder where that is known; a symbolic rate is
/// left whole, which the check against carries judges.
fn split_rate<L: Leaf>(cx: &L::Cx, rate: L, s: L) -> Result<(L, L), LayoutError> {
    let constant = rate.known().is_some() && s.known().is_some();
    if constant || L::divides(cx, s, rate).is_true() {
        Ok((L::rem(cx, rate, s)?, L::div(cx, rate, s)?))
    } else {
        Ok((rate, L::constant(0)))
    }
}

/// `m * steps`; `None` where it does not fit, which is beyond every extent.
fn reach_of<L: Leaf>(cx: &L::Cx, m: L, steps: L) -> Result<Option<L>, LayoutError> {
    match L::mul(cx, m, steps) {
        Ok(reach) => Ok(Some(reach)),
        Err(LayoutError::Overflow { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number of steps of `m` that make one turn of the digit, `s / m`, if that is whole.
fn turn_of<L: Leaf>(cx: &L::Cx, m: L, s: L) -> Result<Result<L, Decision>, LayoutError> {
    let divides = L::divides(cx, m, s);
    Ok(if divides.is_true() { Ok(L::div(cx, s, m)?) } else { Err(divides) })
}

/// Of two ways to succeed that both failed, the one a fact could still open.
fn either(fits: &Decision, divides: Decision) -> Decision {
    if matches!(divides, Decision::Needs(_)) { divides } else { fits.clone() }
}

/// The results of the leaves, nested as the inner layout was.
fn reassemble<L: Leaf>(
    profile: &IntTuple<L>,
    results: &mut impl Iterator<Item = Layout<L>>,
) -> (IntTuple<L>, IntTuple<L>) {
    match profile {
        IntTuple::Leaf(leaf) => match results.next() {
            Some(result) => (result.shape, result.stride),
            // Not reached: there is one result for each leaf.
            None => (IntTuple::Leaf(*leaf), IntTuple::Leaf(L::constant(0))),
        },
        IntTuple::Tuple(modes) => {
            let (shape, stride) = modes.iter().map(|mode| reassemble(mode, results)).unzip();
            (IntTuple::Tuple(shape), IntTuple::Tuple(stride))
        }
    }
}

fn mode_text<L: Leaf>(cx: &L::Cx, extent: L, stride: L) -> String {
    format!("{}:{}", extent.show(cx), stride.show(cx))
}

impl Layout<i64> {
    /// The layout of `self ∘ inner`: `result.at(i) == self.at(inner.at(i))`.
    ///
    /// # Errors
    /// [`LayoutError::Indivisible`] where the result is no layout, [`LayoutError::NegativeStride`]
    /// for such a mode of `inner`, overflow.
    pub fn compose(&self, inner: &Layout<i64>) -> Result<Layout<i64>, LayoutError> {
        self.compose_in(&(), inner)
    }

    /// Composition of every mode with its own tiler; modes without one stay.
    ///
    /// # Errors
    /// Those of [`Layout::compose`], and [`LayoutError::Rank`] for too many tilers.
    pub fn compose_by_mode(
        &self,
        tiler: impl Into<Tiler<i64>>,
    ) -> Result<Layout<i64>, LayoutError> {
        self.compose_by_mode_in(&(), tiler)
    }

    /// The same function under another shape of the same or a smaller size.
    ///
    /// # Errors
    /// Those of [`Layout::compose`].
    pub fn with_shape(&self, shape: impl Into<IntTuple<i64>>) -> Result<Layout<i64>, LayoutError> {
        self.compose(&Layout::col_major(shape)?)
    }
}
