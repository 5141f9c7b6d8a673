//! Composes layouts: `compose(a, b)` is the layout of `a ∘ b`. By composition, a tile or a
//! thread-value layout `b` selects elements of a tensor `a`.
//!
//! Invariant: `compose(a, b).at(i) == a.at(b.at(i))` for every `i < b.size()`, and every coordinate
//! of `b` is a coordinate of the result. Composition is partial: if the steps of `b` straddle a
//! mode of `a`, the result is [`LayoutError::Indivisible`], which names both modes.
//!
//! Algorithm: the coalesced `a` writes an index in mixed radix, with one digit for each mode; the
//! last digit is unbounded. Every leaf of `b` is a *piece* `rate * i` with `i < extent`. The modes
//! of `a` are visited in order. At a mode with extent `s`, `rate = q * s + m` adds `m * i` to this
//! digit and passes `q * i` on. This is exact if *all* pieces together never carry: the sum of
//! `m * (extent - 1)` stays below `s`. A piece that would carry alone, with `m` dividing `s`, is
//! split after `s / m` steps; the outer part moves in whole multiples of `s`. This admits every
//! composition with divisible strides, and also those in which the sizes prevent a carry
//! (`(8,8):(8,1) ∘ 3:3`). If these rules refuse a composition of plain numbers, `enumerate.rs`
//! checks it index by index.
//!
//! A negative rate walks the digits downwards: `a.at(-i) == -a.at(i)`. If leaves with both signs
//! meet, they borrow; such compositions are enumerated, too.

use super::profile::{Builder, Token};
use super::{Layout, LayoutError, Leaves, Stride, Tiler};
use crate::leaf::{Decision, Leaf};
use crate::tuple::MAX_NODES;
use smallvec::SmallVec;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The layout of `self ∘ inner`.
    ///
    /// # Errors
    /// [`LayoutError::Indivisible`] if the result is not a layout, [`LayoutError::NeedsFact`] if
    /// this depends on symbols.
    pub fn compose_in(&self, cx: &L::Cx, inner: &Layout<L>) -> Result<Self, LayoutError> {
        let mut outer = Leaves::new();
        self.extending_leaves(cx, &mut outer)?;
        if let [(_, stride)] = outer[..] {
            return inner.scaled(cx, stride);
        }
        compose_leaves(cx, &outer, &outer, inner).or_else(|error| self.undivided(inner, error))
    }

    /// Some compositions are layouts although no rule of divisibility admits them; enumeration
    /// finds these.
    #[cold]
    fn undivided(&self, inner: &Layout<L>, error: LayoutError) -> Result<Self, LayoutError> {
        match error {
            LayoutError::Indivisible(_) => self.enumerated(inner).ok_or(error),
            error => Err(error),
        }
    }

    /// Composes every mode with its own tiler. Modes without a tiler are dropped.
    ///
    /// # Errors
    /// The errors of [`Layout::compose_in`], and [`LayoutError::Rank`] for too many tilers.
    pub fn compose_by_mode_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        tiler.into().transform(self, 0, true, &mut |mode, tile| mode.compose_in(cx, tile))
    }

    /// An equal function with another shape, whose size is equal or smaller.
    ///
    /// # Errors
    /// The errors of [`Layout::compose_in`].
    pub fn with_shape_in(
        &self,
        cx: &L::Cx,
        shape: impl Into<crate::tuple::IntTuple<L>>,
    ) -> Result<Self, LayoutError> {
        self.compose_in(cx, &Layout::col_major_in(cx, shape)?)
    }
}

impl<L: Leaf> Layout<L> {
    /// This layout composed with a single mode in front: every stride is multiplied by the stride
    /// of that mode.
    #[inline]
    fn scaled<D: Stride<L>>(&self, cx: &L::Cx, by: D) -> Result<Layout<L, D>, LayoutError> {
        let mut result = Layout { profile: self.profile.clone(), leaves: Leaves::new() };
        for &(extent, stride) in &self.leaves {
            result.leaves.push((extent, D::times(cx, by, stride)?));
        }
        result.check_constants()?;
        Ok(result)
    }
}

/// Composes leaves, which are not coalesced first, with a layout. `beyond` determines the stride of
/// a leaf of extent 1, which no coordinate uses.
pub(crate) fn compose_leaves<L: Leaf, D: Stride<L>>(
    cx: &L::Cx,
    outer: &[(L, D)],
    beyond: &[(L, D)],
    inner: &Layout<L>,
) -> Result<Layout<L, D>, LayoutError> {
    let zero = L::constant(0);
    let trivial = (L::constant(1), D::zero());
    let (last, digits) = outer.split_last().map_or((&trivial, outer), |(l, d)| (l, d));
    let mut walk = Walk {
        cx,
        digits,
        beyond: &beyond[..digits.len().min(beyond.len())],
        last: last.1,
        reach: SmallVec::from_elem(zero, digits.len()),
        sign: None,
        pieces: SmallVec::new(),
    };
    let mut profile = Builder::default();
    let mut leaves: Leaves<L, D> = Leaves::new();
    let mut rest = inner.leaves.iter();
    for token in inner.profile.tokens() {
        match token {
            Token::Open => profile.open(),
            Token::Close => profile.close(),
            Token::Leaf => {
                let Some((extent, stride)) = rest.next() else { continue };
                let n = walk.leaf(*extent, *stride, &mut leaves)?;
                profile.leaves(n);
            }
        }
    }
    walk.check_joint(inner)?;
    let result = Layout { profile: profile.done(), leaves };
    result.profile.check_limits()?;
    result.check_constants()?;
    Ok(result)
}

/// A part `rate * i`, `i < extent`, of the index that a leaf of the inner layout produces, in units
/// of the current digit. `stride` is the contribution of the digits before.
#[derive(Copy, Clone)]
struct Piece<L, D> {
    extent: L,
    rate: L,
    stride: D,
}

struct Walk<'a, L: Leaf, D: Stride<L>> {
    cx: &'a L::Cx,
    /// The modes of the outer layout except the last.
    digits: &'a [(L, D)],
    beyond: &'a [(L, D)],
    /// The stride of the last mode.
    last: D,
    /// For each digit, the largest sum of the leaves so far.
    reach: SmallVec<[L; 8]>,
    /// Whether the leaves so far walk downwards.
    sign: Option<bool>,
    /// The pieces of the current leaf, fastest first.
    pieces: SmallVec<[Piece<L, D>; 8]>,
}

impl<L: Leaf, D: Stride<L>> Walk<'_, L, D> {
    /// Composes one leaf of the inner layout. Returns the number of resulting leaves.
    fn leaf(&mut self, extent: L, stride: L, out: &mut Leaves<L, D>) -> Result<usize, LayoutError> {
        let cx = self.cx;
        if extent.known() == Some(1) {
            out.push((extent, self.beyond(stride)?));
            return Ok(1);
        }
        if stride.known() == Some(0) {
            out.push((extent, D::zero()));
            return Ok(1);
        }
        if self.digits.is_empty() {
            out.push((extent, D::times(cx, self.last, stride)?));
            return Ok(1);
        }
        let zero = L::constant(0);
        let down = L::lt(cx, stride, zero).require()?;
        if self.sign.replace(down).is_some_and(|before| before != down) {
            return Err(self.mixed(extent, stride));
        }
        let rate = if down { L::sub(cx, zero, stride)? } else { stride };
        self.pieces.clear();
        self.pieces.push(Piece { extent, rate, stride: D::zero() });
        for k in 0..self.digits.len() {
            self.digit(k, extent, stride)?;
        }
        let first = out.len();
        for k in 0..self.pieces.len() {
            let piece = self.pieces[k];
            if piece.extent.known() == Some(1) {
                continue;
            }
            let rest = D::times(cx, self.last, piece.rate)?;
            let mut step = D::plus(cx, piece.stride, rest)?;
            if down {
                step = D::times(cx, step, L::constant(-1))?;
            }
            // Adjacent pieces may continue each other.
            if let Some(before) = out[first..].last_mut() {
                let next = D::times(cx, before.1, before.0);
                if next.is_ok_and(|next| D::same(cx, next, step).is_true()) {
                    before.0 = L::mul(cx, before.0, piece.extent)?;
                    continue;
                }
            }
            out.push((piece.extent, step));
        }
        if out.len() == first {
            out.push((L::constant(1), D::zero()));
        }
        Ok(out.len() - first)
    }

    /// The stride of a leaf that never moves, which applies beyond its extent only. Any stride
    /// would be correct.
    fn beyond(&self, stride: L) -> Result<D, LayoutError> {
        let Some(mut rate) = stride.known() else { return Ok(D::zero()) };
        for (s, _) in self.beyond {
            let Some(s) = s.known() else { return Ok(D::zero()) };
            rate = rate.signum() * i64::ceil_div(&(), rate.checked_abs().unwrap_or(0), s)?;
        }
        // A product that does not fit is useless.
        Ok(D::times(self.cx, self.last, L::constant(rate)).unwrap_or_else(|_| D::zero()))
    }

    /// Moves the pieces past digit `k`.
    fn digit(&mut self, k: usize, extent: L, stride: L) -> Result<(), LayoutError> {
        let (cx, zero) = (self.cx, L::constant(0));
        let (s, d) = self.digits[k];
        let mut at = 0;
        while at < self.pieces.len() {
            let piece = self.pieces[at];
            at += 1;
            if piece.rate == zero {
                continue;
            }
            if let Some(split) = Split::of_constants(piece.rate, piece.extent, s) {
                self.split(k, at - 1, split)?;
                at += usize::from(split.turn.is_some());
                continue;
            }
            let (m, q) = split_rate(cx, piece.rate, s)?;
            if m == zero {
                self.pieces[at - 1].rate = q;
                continue;
            }
            let clash = |needs: Decision| match needs {
                Decision::Needs(fact) => LayoutError::NeedsFact { fact },
                Decision::Known(_) => {
                    LayoutError::indivisible(cx, (s, d), (extent, stride), (m, piece.extent))
                }
            };
            let steps = L::sub(cx, piece.extent, L::constant(1))?;
            let alone = reach_of(cx, m, steps)?;
            let fits = alone.map_or(Decision::Known(false), |r| L::lt(cx, r, s));
            if let (true, Some(alone)) = (fits.is_true(), alone) {
                self.reach[k] = L::add(cx, self.reach[k], alone)?;
                self.pieces[at - 1] = piece.advance(cx, m, q, d)?;
                continue;
            }
            let turn = turn_of(cx, m, s)?.map_err(|needs| clash(either(&fits, needs)))?;
            let divides = L::divides(cx, turn, piece.extent);
            if !divides.is_true() {
                // Either is sufficient: whole turns fit the piece, or whole pieces fit the turn.
                let span = reach_of(cx, m, piece.extent)?;
                let within = span.map_or(Decision::Known(false), |r| L::divides(cx, r, s));
                let contains = either(&divides, within);
                return Err(clash(either(&fits, contains)));
            }
            let within = L::mul(cx, m, L::sub(cx, turn, L::constant(1))?)?;
            self.reach[k] = L::add(cx, self.reach[k], within)?;
            // After `turn` steps the digit is back at zero and has carried exactly once.
            let carried = Piece {
                extent: L::div(cx, piece.extent, turn)?,
                rate: L::add(cx, L::mul(cx, q, turn)?, L::constant(1))?,
                stride: D::times(cx, piece.stride, turn)?,
            };
            let inside = Piece { extent: turn, ..piece };
            self.pieces[at - 1] = inside.advance(cx, m, q, d)?;
            self.pieces.insert(at, carried);
            at += 1;
            if self.pieces.len() > 16 * MAX_NODES {
                return Err(LayoutError::TooLarge { what: "a composition", limit: 16 * MAX_NODES });
            }
        }
        Ok(())
    }

    /// Moves piece `at`, which has constant numbers, past digit `k`.
    #[inline]
    fn split(&mut self, k: usize, at: usize, split: Split) -> Result<(), LayoutError> {
        let cx = self.cx;
        let piece = self.pieces[at];
        let (m, q) = (L::constant(split.m), L::constant(split.q));
        if split.m == 0 {
            self.pieces[at].rate = q;
            return Ok(());
        }
        self.reach[k] = L::add(cx, self.reach[k], L::constant(split.reach))?;
        let stride = self.digits[k].1;
        let Some((turn, turns, carried)) = split.turn else {
            self.pieces[at] = piece.advance(cx, m, q, stride)?;
            return Ok(());
        };
        let carried = Piece {
            extent: L::constant(turns),
            rate: L::constant(carried),
            stride: D::times(cx, piece.stride, L::constant(turn))?,
        };
        let inside = Piece { extent: L::constant(turn), ..piece };
        self.pieces[at] = inside.advance(cx, m, q, stride)?;
        self.pieces.insert(at + 1, carried);
        Ok(())
    }

    /// Refuses leaves that carry only together.
    fn check_joint(&self, inner: &Layout<L>) -> Result<(), LayoutError> {
        let cx = self.cx;
        for ((s, d), reach) in self.digits.iter().zip(&self.reach) {
            match L::lt(cx, *reach, *s) {
                Decision::Known(true) => {}
                Decision::Needs(fact) => return Err(LayoutError::NeedsFact { fact }),
                Decision::Known(false) => {
                    // The error names the last leaf that moves.
                    let moves = |(n, r): &&(L, L)| n.known() != Some(1) && r.known() != Some(0);
                    let last = inner.leaves.iter().rev().find(moves).copied();
                    let leaf = last.unwrap_or((L::constant(1), L::constant(0)));
                    return Err(LayoutError::indivisible(cx, (*s, *d), leaf, (leaf.1, leaf.0)));
                }
            }
        }
        Ok(())
    }

    #[cold]
    fn mixed(&self, extent: L, stride: L) -> LayoutError {
        let (s, d) = self.digits[0];
        LayoutError::indivisible(self.cx, (s, d), (extent, stride), (stride, extent))
    }
}

/// The way a piece of constant numbers passes a digit. This case dominates the solver's inner loop.
#[derive(Copy, Clone)]
struct Split {
    /// The remainder, which goes to the digit, and the quotient, which goes on.
    m: i64,
    q: i64,
    /// The largest value that the digit gets.
    reach: i64,
    /// How to split the piece: the steps of the inner part, the steps and the rate of the outer
    /// part.
    turn: Option<(i64, i64, i64)>,
}

impl Split {
    /// `None` if numbers are symbols or the piece does not pass; then the general case gives the
    /// reason.
    #[inline]
    fn of_constants<L: Leaf>(rate: L, extent: L, s: L) -> Option<Split> {
        let (rate, extent, s) = (rate.known()?, extent.known()?, s.known()?);
        let (m, q) = if (0..s).contains(&rate) {
            (rate, 0)
        } else {
            (i64::rem(&(), rate, s).ok()?, i64::div(&(), rate, s).ok()?)
        };
        if m == 0 {
            return Some(Split { m, q, reach: 0, turn: None });
        }
        if let Some(reach) = m.checked_mul(extent - 1).filter(|r| *r < s) {
            return Some(Split { m, q, reach, turn: None });
        }
        if !i64::divides(&(), m, s).is_true() {
            return None;
        }
        let turn = i64::div(&(), s, m).ok()?;
        if !i64::divides(&(), turn, extent).is_true() {
            return None;
        }
        let turns = i64::div(&(), extent, turn).ok()?;
        // After `turn` steps the digit is back at zero and has carried exactly once.
        let carried = q.checked_mul(turn)?.checked_add(1)?;
        Some(Split { m, q, reach: m * (turn - 1), turn: Some((turn, turns, carried)) })
    }
}

impl<L: Leaf, D: Stride<L>> Piece<L, D> {
    fn advance(self, cx: &L::Cx, m: L, q: L, stride: D) -> Result<Self, LayoutError> {
        let stride = D::plus(cx, self.stride, D::times(cx, stride, m)?)?;
        Ok(Piece { rate: q, stride, ..self })
    }
}

/// `(m, q)` with `rate == q * s + m`. `m` is the remainder if it is known. A symbolic rate is not
/// split; the check against carries decides on it.
fn split_rate<L: Leaf>(cx: &L::Cx, rate: L, s: L) -> Result<(L, L), LayoutError> {
    if rate.known().is_some() && s.known().is_some() {
        Ok((L::rem(cx, rate, s)?, L::div(cx, rate, s)?))
    } else if <L as Leaf>::eq(cx, rate, s).is_true() {
        Ok((L::constant(0), L::constant(1)))
    } else if L::divides(cx, s, rate).is_true() {
        Ok((L::constant(0), L::div(cx, rate, s)?))
    } else {
        Ok((rate, L::constant(0)))
    }
}

/// `m * steps`. `None` if the product does not fit; then it exceeds every extent.
fn reach_of<L: Leaf>(cx: &L::Cx, m: L, steps: L) -> Result<Option<L>, LayoutError> {
    match L::mul(cx, m, steps) {
        Ok(reach) => Ok(Some(reach)),
        Err(LayoutError::Overflow { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The number `s / m` of steps of `m` that make one turn of the digit, if it is an integer.
fn turn_of<L: Leaf>(cx: &L::Cx, m: L, s: L) -> Result<Result<L, Decision>, LayoutError> {
    let divides = L::divides(cx, m, s);
    Ok(if divides.is_true() { Ok(L::div(cx, s, m)?) } else { Err(divides) })
}

/// Two alternatives failed; returns the decision that a fact could still change.
fn either(fits: &Decision, divides: Decision) -> Decision {
    if matches!(divides, Decision::Needs(_)) { divides } else { fits.clone() }
}

impl<D: Stride<i64>> Layout<i64, D> {
    /// The layout of `self ∘ inner`: `result.at(i) == self.at(inner.at(i))`.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(6,2):(8,2)".parse()?;
    /// let b: Layout = "(4,3):(3,1)".parse()?;
    /// assert_eq!(a.compose(&b)?.to_string(), "((2,2),3):((24,2),8)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Indivisible`] if the result is not a layout, and overflow.
    pub fn compose(&self, inner: &Layout<i64>) -> Result<Self, LayoutError> {
        self.compose_in(&(), inner)
    }

    /// Composes every mode with its own tiler. Modes without a tiler are dropped.
    ///
    /// # Errors
    /// The errors of [`Layout::compose`], and [`LayoutError::Rank`] for too many tilers.
    pub fn compose_by_mode(&self, tiler: impl Into<Tiler<i64>>) -> Result<Self, LayoutError> {
        self.compose_by_mode_in(&(), tiler)
    }

    /// An equal function with another shape, whose size is equal or smaller.
    ///
    /// # Errors
    /// The errors of [`Layout::compose`].
    pub fn with_shape(
        &self,
        shape: impl Into<crate::tuple::IntTuple<i64>>,
    ) -> Result<Self, LayoutError> {
        self.with_shape_in(&(), shape)
    }
}

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// The layout of `self ∘ inner` for an `inner` whose indices are coordinates. Steps along an
    /// axis are composed with the mode that the axis names.
    ///
    /// # Errors
    /// The errors of [`Layout::compose_in`] for every mode, [`LayoutError::Rank`] if an axis names
    /// no mode, [`LayoutError::TwoAxes`] if some strides name a mode and others a mode within it.
    pub fn compose_coord_in(
        &self,
        cx: &L::Cx,
        inner: &Layout<L, super::Basis<L>>,
    ) -> Result<Self, LayoutError> {
        let moves = |leaf: &&(L, super::Basis<L>)| !leaf.1.is_zero();
        let mut paths: Vec<Vec<usize>> = Vec::new();
        for (_, stride) in inner.leaves.iter().filter(moves) {
            let path = stride.path();
            if paths.contains(&path) {
                continue;
            }
            if let Some(other) = paths.iter().find(|p| p.starts_with(&path) || path.starts_with(p))
            {
                let one = super::Basis::along(L::constant(1), other)?;
                return Err(LayoutError::TwoAxes { a: stride.text_in(cx), b: one.text_in(cx) });
            }
            paths.push(path);
        }
        // All steps along one axis are composed together because they may carry together.
        let mut parts: Vec<Option<Self>> = vec![None; inner.leaves.len()];
        for path in &paths {
            let mode = path.iter().try_fold(self.clone(), |mode, k| mode.mode(*k))?;
            let along: Vec<usize> = (0..inner.leaves.len())
                .filter(|k| moves(&&inner.leaves[*k]) && inner.leaves[*k].1.path() == *path)
                .collect();
            let steps: Leaves<L> =
                along.iter().map(|k| (inner.leaves[*k].0, inner.leaves[*k].1.value())).collect();
            let steps = Layout::checked(super::Profile::flat(steps.len()), steps)?;
            for (k, part) in along.into_iter().zip(mode.compose_in(cx, &steps)?.modes()) {
                parts[k] = Some(part);
            }
        }
        let (mut profile, mut leaves) = (Builder::default(), Leaves::new());
        let mut k = 0;
        for token in inner.profile.tokens() {
            match token {
                Token::Open => profile.open(),
                Token::Close => profile.close(),
                Token::Leaf => {
                    match parts.get(k).and_then(Option::as_ref) {
                        Some(part) => {
                            profile.all(&part.profile);
                            leaves.extend_from_slice(&part.leaves);
                        }
                        None => {
                            profile.leaf();
                            leaves.push((inner.leaves[k].0, D::zero()));
                        }
                    }
                    k += 1;
                }
            }
        }
        Layout::checked(profile.done(), leaves)
    }
}
