//! Defines [`ComposedLayout`]: a layout, an offset and swizzles, which permute the indices of the
//! layout. Swizzled tensors in shared memory have such layouts.
//!
//! Invariant: `at(i) == swizzle(offset + layout(i))`, repeated for every swizzle of the chain from
//! the innermost to the outermost. The text form is `Sw<3,4,3> o 0 o (8,64):(64,1)`. Operations on
//! the domain act on the layout under the swizzles. Inverses and compositions on the other side
//! move a swizzle through the layout. This works if the layout maps the bits of the two fields to
//! two fields again; otherwise the operation is an error.

use super::slice::Holes;
use super::{Layout, LayoutError, Swizzle, Tiler};
use crate::expr::{Dim, ExprArena, VarId};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;
use std::fmt;

/// The maximum length of a chain of swizzles.
pub const MAX_TWISTS: usize = 8;

/// A layout whose indices are shifted by an offset and then swizzled, possibly several times.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ComposedLayout<L: Leaf = i64> {
    /// The swizzles, outermost first, each with the offset that is added before.
    twists: Vec<(Swizzle, L)>,
    layout: Layout<L>,
}

impl<L: Leaf> ComposedLayout<L> {
    /// `swizzle o offset o layout`
    #[must_use]
    pub fn new(swizzle: Swizzle, offset: L, layout: Layout<L>) -> Self {
        let plain = swizzle.is_none() && offset.known() == Some(0);
        let twists = if plain { vec![] } else { vec![(swizzle, offset)] };
        ComposedLayout { twists, layout }
    }

    /// `swizzle o offset o inner`. Adjacent swizzles of equal base and shift merge.
    ///
    /// # Errors
    /// [`LayoutError::TooLarge`] for a chain of more than [`MAX_TWISTS`].
    pub fn twisted(swizzle: Swizzle, offset: L, inner: &Self) -> Result<Self, LayoutError> {
        let mut out = inner.clone();
        let still = offset.known() == Some(0);
        if still && swizzle.is_none() {
            return Ok(out);
        }
        if let (true, Some((first, at))) = (still, out.twists.first().copied())
            && let Some(one) = swizzle.merged(first)
        {
            out.twists[0] = (one, at);
            if one.is_none() && at.known() == Some(0) {
                out.twists.remove(0);
            }
            return Ok(out);
        }
        out.twists.insert(0, (swizzle, offset));
        if out.twists.len() > MAX_TWISTS {
            return Err(LayoutError::TooLarge { what: "a chain of swizzles", limit: MAX_TWISTS });
        }
        Ok(out)
    }

    /// The layout under the swizzles.
    #[must_use]
    pub fn layout(&self) -> &Layout<L> {
        &self.layout
    }

    /// The swizzles, outermost first, each with the offset that is added before.
    #[must_use]
    pub fn twists(&self) -> &[(Swizzle, L)] {
        &self.twists
    }

    /// The layout, if there is no swizzle and no offset.
    #[must_use]
    pub fn plain(&self) -> Option<&Layout<L>> {
        self.twists.is_empty().then_some(&self.layout)
    }

    /// These swizzles over another layout.
    #[must_use]
    pub fn over(&self, layout: Layout<L>) -> Self {
        ComposedLayout { twists: self.twists.clone(), layout }
    }

    /// Applies an operation on the domain, which only selects and orders coordinates.
    ///
    /// # Errors
    /// The errors of the operation.
    pub fn map(
        &self,
        f: impl FnOnce(&Layout<L>) -> Result<Layout<L>, LayoutError>,
    ) -> Result<Self, LayoutError> {
        f(&self.layout).map(|layout| self.over(layout))
    }

    /// The layout `self ∘ inner`, with the swizzles of `self`.
    ///
    /// # Errors
    /// The errors of [`Layout::compose_in`].
    pub fn compose_in(&self, cx: &L::Cx, inner: &Layout<L>) -> Result<Self, LayoutError> {
        self.map(|l| l.compose_in(cx, inner))
    }

    /// Composes every mode with its own tiler. Modes without a tiler are dropped.
    ///
    /// # Errors
    /// The errors of [`Layout::compose_by_mode_in`].
    pub fn compose_by_mode_in(
        &self,
        cx: &L::Cx,
        tiler: impl Into<Tiler<L>>,
    ) -> Result<Self, LayoutError> {
        self.map(|l| l.compose_by_mode_in(cx, tiler))
    }

    /// The modes where the coordinate has holes. The index of the fixed part is added to the
    /// offset.
    ///
    /// # Errors
    /// [`LayoutError::Incongruent`] and overflow.
    pub fn slice_in(&self, cx: &L::Cx, coord: &Holes<L>) -> Result<Self, LayoutError> {
        let offset = self.layout.slice_offset_in(cx, coord)?;
        let mut out = self.over(self.layout.slice(coord)?);
        match out.twists.last_mut() {
            Some((_, before)) => *before = L::add(cx, *before, offset)?,
            None if offset.known() == Some(0) => {}
            None => out.twists.push((Swizzle::none(), offset)),
        }
        Ok(out)
    }

    /// The layout of elements of `new` bits for a layout of elements of `old` bits; swizzles are
    /// converted, too.
    ///
    /// # Errors
    /// The errors of [`Layout::recast_in`] and [`Swizzle::recast`]; an offset that is not a whole
    /// number of wide elements.
    pub fn recast_in(&self, cx: &L::Cx, old: i64, new: i64) -> Result<Self, LayoutError> {
        let width = |bits: i64| {
            let wanted = "from 1 to 65536";
            let error =
                || LayoutError::Argument { what: "a width", found: bits.to_string(), wanted };
            u32::try_from(bits).ok().filter(|b| (1..=1 << 16).contains(b)).ok_or_else(error)
        };
        let mut out = self.over(self.layout.recast_in(cx, old, new)?);
        if out.twists.is_empty() {
            return Ok(out);
        }
        let (old_bits, new_bits) = (width(old)?, width(new)?);
        for (swizzle, offset) in &mut out.twists {
            *swizzle = swizzle.recast(old_bits, new_bits)?;
            let bits = L::mul(cx, *offset, L::constant(old))?;
            let width = L::constant(new);
            if !L::divides(cx, width, bits).require()? {
                let mode = format!("offset {}", offset.show(cx));
                let reason = "it starts within a wide element";
                return Err(LayoutError::Recast { mode, factor: format!("{new}/{old}"), reason });
            }
            *offset = L::div(cx, bits, width)?;
        }
        Ok(out)
    }

    /// The text of the layout. `cx` supplies the names of symbols.
    #[must_use]
    pub fn display_in(&self, cx: &L::Cx) -> String {
        let mut out = String::new();
        for (swizzle, offset) in &self.twists {
            out += &format!("{swizzle} o {} o ", offset.show(cx));
        }
        out + &self.layout.display_in(cx)
    }
}

impl ComposedLayout<Dim> {
    /// The layout with constant leaves of type [`Dim`].
    #[must_use]
    pub fn from_fixed(composed: &ComposedLayout) -> Self {
        let twists = composed.twists.iter().map(|(swizzle, at)| (*swizzle, Dim::Const(*at)));
        ComposedLayout { twists: twists.collect(), layout: Layout::from_fixed(&composed.layout) }
    }

    /// The layout with the value of every symbol.
    ///
    /// # Errors
    /// The errors of [`Layout::eval`].
    pub fn eval(
        &self,
        arena: &ExprArena,
        value: &dyn Fn(VarId) -> Option<i64>,
    ) -> Result<ComposedLayout, LayoutError> {
        let layout = self.layout.eval(arena, value)?;
        let twists = self.twists.iter().map(|(sw, at)| Ok((*sw, arena.eval(*at, value)?)));
        Ok(ComposedLayout { twists: twists.collect::<Result<_, LayoutError>>()?, layout })
    }
}

impl ComposedLayout<i64> {
    /// The index of the `i`-th coordinate. An index that does not fit saturates.
    #[must_use]
    pub fn at(&self, i: i64) -> i64 {
        self.twist(self.layout.at(i))
    }

    fn twist(&self, index: i64) -> i64 {
        let chain = self.twists.iter().rev();
        chain.fold(index, |x, (swizzle, offset)| swizzle.apply(offset.saturating_add(x)))
    }

    /// The index of a coordinate.
    ///
    /// # Errors
    /// The errors of [`Layout::at_coord`].
    pub fn at_coord(&self, coord: &IntTuple<i64>) -> Result<i64, LayoutError> {
        Ok(self.twist(self.layout.at_coord(coord)?))
    }

    /// The number of coordinates.
    #[must_use]
    pub fn size(&self) -> i64 {
        self.layout.size()
    }

    /// An upper bound on the distance of indices from 0.
    ///
    /// # Errors
    /// Overflow.
    pub fn reach(&self) -> Result<i64, LayoutError> {
        let chain = self.twists.iter().rev();
        chain.into_iter().try_fold(self.layout.cosize(), |reach, (swizzle, offset)| {
            let moved = i64::add(&(), reach, offset.saturating_abs())?;
            // A swizzle moves no index out of its period.
            i64::add(&(), moved, swizzle.period())
        })
    }

    /// The layout of elements of `new` bits for a layout of elements of `old` bits; swizzles are
    /// converted, too.
    ///
    /// # Errors
    /// The errors of [`Layout::recast`] and [`Swizzle::recast`]; an offset that is not a whole
    /// number of wide elements.
    pub fn recast(&self, old: i64, new: i64) -> Result<Self, LayoutError> {
        self.recast_in(&(), old, new)
    }

    /// The layout `self ∘ inner`, with the swizzles of `self`.
    ///
    /// # Errors
    /// The errors of [`Layout::compose`].
    pub fn compose(&self, inner: &Layout<i64>) -> Result<Self, LayoutError> {
        self.compose_in(&(), inner)
    }

    /// The layout `self ∘ inner` for a swizzled `inner`: its swizzles move through this layout.
    ///
    /// # Errors
    /// The errors of [`Layout::compose`] and [`Swizzle::through`]; [`LayoutError::Swizzled`] for an
    /// offset that cannot be moved.
    pub fn compose_twisted(&self, inner: &Self) -> Result<Self, LayoutError> {
        let Some((&(swizzle, offset), _)) = inner.twists.split_first() else {
            return self.compose(&inner.layout);
        };
        let rest = ComposedLayout { twists: inner.twists[1..].to_vec(), ..inner.clone() };
        let moved = swizzle.through(&self.layout)?;
        // An offset moves through a linear layout.
        let shift = match (offset, self.layout.coalesce().leaves()) {
            (0, _) => 0,
            (_, [(_, stride)]) => i64::mul(&(), offset, *stride)?,
            _ => {
                let (what, layout) = ("the composition with an offset", inner.to_string());
                return Err(LayoutError::Swizzled { what, layout });
            }
        };
        let plain = ComposedLayout::from(self.layout.clone());
        let mut out = ComposedLayout::twisted(moved, shift, &plain.compose_twisted(&rest)?)?;
        for (swizzle, offset) in self.twists.iter().rev() {
            out = ComposedLayout::twisted(*swizzle, *offset, &out)?;
        }
        Ok(out)
    }

    /// A layout `r` with `self.at(r.at(i)) == i` below its size.
    ///
    /// # Errors
    /// [`LayoutError::Swizzled`] if an offset or a swizzle cannot be inverted.
    pub fn right_inverse(&self) -> Result<Self, LayoutError> {
        self.inverse("the right inverse", self.layout.right_inverse())
    }

    /// The layout that inverts this one on its image.
    ///
    /// # Errors
    /// The errors of [`Layout::left_inverse`]; [`LayoutError::Swizzled`] if an offset or a swizzle
    /// cannot be inverted.
    pub fn left_inverse(&self) -> Result<Self, LayoutError> {
        self.inverse("the left inverse", self.layout.left_inverse()?)
    }

    fn inverse(&self, what: &'static str, layout: Layout) -> Result<Self, LayoutError> {
        let size = layout.size();
        let mut out = ComposedLayout::from(layout.clone());
        // The outermost swizzle is inverted first, and moves out through the inverse.
        for (swizzle, offset) in &self.twists {
            if *offset != 0 || !swizzle.permutes_below(size) {
                return Err(LayoutError::Swizzled { what, layout: self.to_string() });
            }
            out = ComposedLayout::twisted(swizzle.through(&layout)?, 0, &out)?;
        }
        Ok(out)
    }

    /// The length of the longest run of elements that are consecutive in both.
    ///
    /// # Errors
    /// Overflow.
    pub fn max_common_vector(&self, other: &Self) -> Result<i64, LayoutError> {
        let n = self.layout.max_common_vector(&other.layout)?;
        if self.twists == other.twists && self.twists.iter().all(|t| t.1 == 0) && n <= 1 {
            return Ok(n);
        }
        // A swizzle keeps runs of `1 << base` elements together if they begin at a multiple.
        let mut most = n;
        for (swizzle, offset) in self.twists.iter().chain(&other.twists) {
            if *offset != 0 {
                return Ok(1);
            }
            if !swizzle.is_none() {
                most = most.min(1 << swizzle.base());
            }
        }
        Ok(crate::leaf::gcd(n, most).max(1))
    }

    /// The coordinates of the longest run that is consecutive in both layouts and starts at 0.
    ///
    /// # Errors
    /// Overflow.
    pub fn max_common_layout(&self, other: &Self) -> Result<Layout, LayoutError> {
        let n = self.max_common_vector(other)?;
        let common = self.layout.max_common_layout(&other.layout)?;
        common.compose(&Layout::of_mode(n, 1)?)
    }
}

impl<L: Leaf> From<Layout<L>> for ComposedLayout<L> {
    fn from(layout: Layout<L>) -> Self {
        ComposedLayout { twists: vec![], layout }
    }
}

impl<L: Leaf + fmt::Display> fmt::Display for ComposedLayout<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (swizzle, offset) in &self.twists {
            write!(f, "{swizzle} o {offset} o ")?;
        }
        self.layout.fmt(f)
    }
}
