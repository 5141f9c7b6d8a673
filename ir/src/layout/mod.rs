//! Defines [`Layout`], a function from coordinates to indices, given by a shape and a stride of
//! equal nesting. This folder is the layout algebra, the operations on such functions, which can be
//! used without the rest of this crate.
//!
//! An index is an offset in elements. Start here, then read [`index`] (evaluation of the function),
//! [`compose`], [`complement`] and [`divide`]. [`composed`] adds swizzles, [`solve()`] and
//! [`unify()`] find layouts that satisfy equations. The order is column-major: the first mode of a
//! one-dimensional index varies fastest. The last leaf continues beyond its extent. (A leaf is an
//! innermost extent with its stride.)
//!
//! A layout keeps one [`Profile`] (the nesting) and its leaves as (extent, stride), up to eight of
//! them inline. Shape and stride are therefore congruent by construction, and most operations on
//! small layouts allocate nothing.
//!
//! Invariant: a layout is at most [`MAX_DEPTH`](crate::tuple::MAX_DEPTH) deep. Constant extents are
//! at least 1, and every index of a coordinate below the size fits in 64 bits. Invariant: an
//! operation returns the exact result or a [`LayoutError`], never an approximation. Results over
//! symbols hold where symbolic extents are at least 1.

pub mod bijection;
pub mod coalesce;
pub mod common;
pub mod complement;
pub mod compose;
pub mod composed;
pub mod divide;
mod enumerate;
mod error;
pub mod filter;
pub mod index;
pub mod inverse;
pub mod modes;
pub mod ordered;
pub mod product;
mod profile;
pub mod recast;
pub mod shapes;
pub mod slice;
pub mod solve;
pub mod stride;
pub mod swizzle;
pub(crate) mod text;
pub mod tiler;
pub mod tv;
pub mod unify;

pub use composed::ComposedLayout;
pub use error::{LayoutError, Obstacle};
pub use profile::Profile;
pub use solve::{solve, solve_in};
pub use stride::{Basis, Stride};
pub use swizzle::Swizzle;
pub use tiler::Tiler;
pub use unify::unify;

use crate::expr::{Dim, ExprArena};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;
use profile::ModeAt;
use smallvec::SmallVec;

/// Leaves as (extent, stride).
pub(crate) type Leaves<L, D = L> = SmallVec<[(L, D); 8]>;

/// A function from coordinates to indices. A stride counts elements; with [`Basis`] strides the
/// indices are coordinates.
#[derive(PartialEq, Eq, Hash, Debug)]
pub struct Layout<L: Leaf = i64, D: Stride<L> = L> {
    profile: Profile,
    leaves: Leaves<L, D>,
}

/// A layout whose indices are coordinates.
pub type CoordLayout<L = i64> = Layout<L, Basis<L>>;

impl<L: Leaf, D: Stride<L>> Clone for Layout<L, D> {
    fn clone(&self) -> Self {
        // A copy of bytes. The derived `clone` would clone leaf by leaf.
        Layout { profile: self.profile.clone(), leaves: SmallVec::from_slice(&self.leaves) }
    }
}

impl<L: Leaf, D: Stride<L>> AsRef<[(L, D)]> for Layout<L, D> {
    fn as_ref(&self) -> &[(L, D)] {
        &self.leaves
    }
}

impl<L: Leaf> Layout<L> {
    /// A layout of this shape and stride.
    ///
    /// # Errors
    /// Incongruent or too deep tuples, constant extents below 1, and constant sizes or cosizes
    /// beyond 64 bits.
    pub fn new(
        shape: impl Into<IntTuple<L>>,
        stride: impl Into<IntTuple<L>>,
    ) -> Result<Self, LayoutError> {
        Layout::with_strides(&shape.into(), &stride.into())
    }

    /// As [`Layout::new`], with symbol names in errors. Extents are checked by the range of their
    /// symbols.
    ///
    /// # Errors
    /// As [`Layout::new`], and [`LayoutError::Extent`] for a symbol that is never positive.
    pub fn new_in(
        cx: &L::Cx,
        shape: impl Into<IntTuple<L>>,
        stride: impl Into<IntTuple<L>>,
    ) -> Result<Self, LayoutError> {
        let (shape, stride) = (shape.into(), stride.into());
        if shape.check_limits().is_ok()
            && stride.check_limits().is_ok()
            && !shape.congruent(&stride)
        {
            let (shape, other) = (shape.display_in(cx), stride.display_in(cx));
            return Err(LayoutError::Incongruent { shape, other });
        }
        let layout = Layout::new(shape, stride)?;
        for (extent, _) in layout.leaves() {
            if L::lt(cx, L::constant(0), *extent).is_false() {
                return Err(LayoutError::Extent { extent: extent.known().unwrap_or(0) });
            }
        }
        Ok(layout)
    }
}

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// As [`Layout::new`], with any type of stride.
    ///
    /// # Errors
    /// The errors of [`Layout::new`].
    pub fn with_strides(shape: &IntTuple<L>, stride: &IntTuple<D>) -> Result<Self, LayoutError> {
        shape.check_limits()?;
        stride.check_limits()?;
        if !shape.congruent(stride) {
            let known = |v: Option<i64>| v.map_or("?".to_owned(), |v| v.to_string());
            return Err(LayoutError::Incongruent {
                shape: shape.map(&mut |l| known(l.known())).to_string(),
                other: stride.map(&mut |d| known(d.number())).to_string(),
            });
        }
        let mut extents: SmallVec<[L; 8]> = SmallVec::new();
        let profile = Profile::of_tuple(shape, &mut |l| extents.push(l));
        let mut leaves = Leaves::with_capacity(extents.len());
        let mut extents = extents.into_iter();
        stride.for_each(&mut |d| leaves.extend(extents.next().map(|l| (l, *d))));
        Layout::checked(profile, leaves)
    }

    /// A layout of a profile and its leaves, checked. The profile must have as many leaves.
    #[inline]
    pub(crate) fn checked(profile: Profile, leaves: Leaves<L, D>) -> Result<Self, LayoutError> {
        profile.check_limits()?;
        let layout = Layout { profile, leaves };
        layout.check_constants()?;
        Ok(layout)
    }

    /// The layout of a single mode.
    ///
    /// # Errors
    /// As [`Layout::new`].
    pub fn of_mode(extent: L, stride: D) -> Result<Self, LayoutError> {
        Layout::checked(Profile::leaf(), SmallVec::from_slice(&[(extent, stride)]))
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> IntTuple<L> {
        self.profile.tuple(self.leaves.iter().map(|l| l.0))
    }

    /// The stride, congruent with the shape.
    #[must_use]
    pub fn stride(&self) -> IntTuple<D> {
        self.profile.tuple(self.leaves.iter().map(|l| l.1))
    }

    /// The nesting of the leaves.
    #[must_use]
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The leaves as (extent, stride), in order.
    #[must_use]
    pub fn leaves(&self) -> &[(L, D)] {
        &self.leaves
    }

    /// The text of the layout. `cx` supplies the names of symbols.
    #[must_use]
    pub fn display_in(&self, cx: &L::Cx) -> String {
        let shape = self.shape().display_in(cx);
        format!("{shape}:{}", self.stride().map(&mut |d| d.text_in(cx)))
    }

    /// The flat layout of these leaves. One leaf gives a layout of one number; none gives `1:0`.
    #[inline]
    pub(crate) fn from_leaves(leaves: &[(L, D)]) -> Result<Self, LayoutError> {
        match leaves {
            [] => Layout::of_mode(L::constant(1), D::zero()),
            [(extent, stride)] => Layout::of_mode(*extent, *stride),
            _ => Layout::checked(Profile::flat(leaves.len()), SmallVec::from_slice(leaves)),
        }
    }

    /// As [`Layout::from_leaves`] without checks, for leaves whose size and reach are known to fit.
    #[inline]
    pub(crate) fn trusted(leaves: Leaves<L, D>) -> Self {
        let profile = match leaves.len() {
            0 => return Layout::trivial(),
            1 => Profile::leaf(),
            n => Profile::flat(n),
        };
        Layout { profile, leaves }
    }

    /// `1:0`.
    #[must_use]
    pub fn trivial() -> Self {
        let one = [(L::constant(1), D::zero())];
        Layout { profile: Profile::leaf(), leaves: SmallVec::from_slice(&one) }
    }

    /// One mode of a checked layout.
    fn part(&self, at: ModeAt) -> Self {
        Layout {
            profile: self.profile.part(at.tokens),
            leaves: SmallVec::from_slice(&self.leaves[at.leaves]),
        }
    }

    #[inline]
    fn check_constants(&self) -> Result<(), LayoutError> {
        let overflow = || LayoutError::Overflow { what: "the size or an index of a layout" };
        let (mut size, mut low, mut high) = (1i64, 0i64, 1i64);
        for (extent, stride) in &self.leaves {
            let Some(extent) = extent.known() else { continue };
            if extent < 1 {
                return Err(LayoutError::Extent { extent });
            }
            size = size.checked_mul(extent).ok_or_else(overflow)?;
            let Some(stride) = stride.number() else { continue };
            let reach = (extent - 1).checked_mul(stride).ok_or_else(overflow)?;
            let bound = if reach < 0 { &mut low } else { &mut high };
            *bound = bound.checked_add(reach).ok_or_else(overflow)?;
        }
        // The distance between the lowest and the highest index must fit, too.
        high.checked_sub(low).ok_or_else(overflow).map(|_| ())
    }
}

impl<L: Leaf> CoordLayout<L> {
    /// The layout that maps every coordinate of a shape to itself: `(4,5):(1@0,1@1)`.
    ///
    /// # Errors
    /// Limits, and shapes nested deeper than [`stride::MAX_AXES`].
    pub fn identity(shape: impl Into<IntTuple<L>>) -> Result<Self, LayoutError> {
        let shape = shape.into();
        let stride = stride::basis_like(&shape)?;
        Layout::with_strides(&shape, &stride)
    }
}

impl Layout<Dim> {
    /// This layout over plain numbers. `None` if a leaf is a symbol.
    #[must_use]
    pub fn to_fixed(&self) -> Option<Layout<i64>> {
        let fixed = |(n, d): &(Dim, Dim)| Some((n.known()?, d.known()?));
        let leaves = self.leaves.iter().map(fixed).collect::<Option<_>>()?;
        Some(Layout { profile: self.profile.clone(), leaves })
    }

    /// The layout with constant leaves of type [`Dim`].
    #[must_use]
    pub fn from_fixed(layout: &Layout<i64>) -> Self {
        let dims = layout.leaves.iter().map(|(n, d)| (Dim::Const(*n), Dim::Const(*d)));
        Layout { profile: layout.profile.clone(), leaves: dims.collect() }
    }

    /// The layout with the value of every symbol.
    ///
    /// # Errors
    /// The errors of [`ExprArena::eval`] and of [`Layout::new`].
    pub fn eval(
        &self,
        arena: &ExprArena,
        value: &dyn Fn(crate::expr::VarId) -> Option<i64>,
    ) -> Result<Layout<i64>, LayoutError> {
        let mut leaves = Leaves::with_capacity(self.leaves.len());
        for (extent, stride) in &self.leaves {
            leaves.push((arena.eval(*extent, value)?, arena.eval(*stride, value)?));
        }
        Layout::checked(self.profile.clone(), leaves)
    }
}
