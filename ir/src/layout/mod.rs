//! Layouts: functions from coordinates to indices, as a shape and a congruent stride.
//!
//! Start here, then [`index`] (the function itself), [`compose`], [`complement`], [`divide`].
//! Order is column-major: the first mode of a one-dimensional index varies fastest, and the last
//! leaf goes on beyond its extent.
//!
//! Invariant: shape and stride are congruent, at most [`MAX_DEPTH`](crate::tuple::MAX_DEPTH) deep;
//! constant extents are at least 1, and every index below the size fits in 64 bits.
//! Invariant: an operation gives the exact function it promises or a [`LayoutError`], never a
//! nearby one. Laws hold for symbolic extents of at least 1.

pub mod bijection;
pub mod coalesce;
pub mod complement;
pub mod compose;
pub mod composed;
pub mod divide;
mod error;
pub mod index;
pub mod inverse;
pub mod modes;
pub mod product;
pub mod swizzle;
pub(crate) mod text;
pub mod tiler;

pub use composed::ComposedLayout;
pub use error::LayoutError;
pub use swizzle::Swizzle;
pub use tiler::Tiler;

use crate::expr::{Dim, ExprArena};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

/// A function from coordinates to indices. Strides count elements of whatever is indexed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout<L = i64> {
    shape: IntTuple<L>,
    stride: IntTuple<L>,
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
        let (shape, stride) = (shape.into(), stride.into());
        shape.check_limits()?;
        stride.check_limits()?;
        if !shape.congruent(&stride) {
            let text = |t: &IntTuple<L>| {
                t.map(&mut |l| l.known().map_or("?".to_owned(), |v| v.to_string())).to_string()
            };
            return Err(LayoutError::Incongruent { shape: text(&shape), other: text(&stride) });
        }
        let layout = Layout { shape, stride };
        layout.check_constants()?;
        Ok(layout)
    }

    /// As [`Layout::new`], with the symbols named in errors and extents checked by their range.
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
        for extent in layout.shape.flatten() {
            if L::lt(cx, L::constant(0), extent).is_false() {
                return Err(LayoutError::Extent { extent: extent.known().unwrap_or(0) });
            }
        }
        Ok(layout)
    }

    /// The shape.
    #[must_use]
    pub fn shape(&self) -> &IntTuple<L> {
        &self.shape
    }

    /// The stride, congruent with the shape.
    #[must_use]
    pub fn stride(&self) -> &IntTuple<L> {
        &self.stride
    }

    /// The leaves as (extent, stride), in order.
    #[must_use]
    pub fn leaves(&self) -> Vec<(L, L)> {
        self.shape.flatten().into_iter().zip(self.stride.flatten()).collect()
    }

    /// The text of the layout, its symbols named by `cx`.
    #[must_use]
    pub fn display_in(&self, cx: &L::Cx) -> String {
        format!("{}:{}", self.shape.display_in(cx), self.stride.display_in(cx))
    }

    /// The flat layout of these leaves; a single leaf becomes a number, none becomes `1:0`.
    pub(crate) fn from_leaves(leaves: &[(L, L)]) -> Result<Self, LayoutError> {
        match leaves {
            [] => Layout::new(L::constant(1), L::constant(0)),
            [(extent, stride)] => Layout::new(*extent, *stride),
            _ => {
                let (shape, stride): (Vec<L>, Vec<L>) = leaves.iter().copied().unzip();
                Layout::new(shape, stride)
            }
        }
    }

    /// The layout of a known-congruent part of a checked layout.
    fn part(shape: &IntTuple<L>, stride: &IntTuple<L>) -> Self {
        Layout { shape: shape.clone(), stride: stride.clone() }
    }

    fn check_constants(&self) -> Result<(), LayoutError> {
        let overflow = LayoutError::Overflow { what: "the size or an index of a layout" };
        let (mut size, mut low, mut high) = (1i64, 0i64, 1i64);
        for (extent, stride) in self.leaves() {
            let Some(extent) = extent.known() else { continue };
            if extent < 1 {
                return Err(LayoutError::Extent { extent });
            }
            size = size.checked_mul(extent).ok_or(overflow.clone())?;
            let Some(stride) = stride.known() else { continue };
            let reach = (extent - 1).checked_mul(stride).ok_or(overflow.clone())?;
            let bound = if reach < 0 { &mut low } else { &mut high };
            *bound = bound.checked_add(reach).ok_or(overflow.clone())?;
        }
        // The distance from the lowest to the highest index is used too.
        high.checked_sub(low).ok_or(overflow).map(|_| ())
    }
}

impl Layout<Dim> {
    /// The same layout over plain numbers, if no leaf holds a symbol.
    #[must_use]
    pub fn to_fixed(&self) -> Option<Layout<i64>> {
        let fixed = |t: &IntTuple<Dim>| t.try_map(&mut |l| l.known().ok_or(())).ok();
        Some(Layout { shape: fixed(&self.shape)?, stride: fixed(&self.stride)? })
    }

    /// The same layout over symbolic leaves, all constant.
    #[must_use]
    pub fn from_fixed(layout: &Layout<i64>) -> Self {
        let dims = |t: &IntTuple<i64>| t.map(&mut |l| Dim::Const(*l));
        Layout { shape: dims(&layout.shape), stride: dims(&layout.stride) }
    }

    /// The layout with every symbol replaced by its value.
    ///
    /// # Errors
    /// Those of [`ExprArena::eval`] and of [`Layout::new`].
    pub fn eval(
        &self,
        arena: &ExprArena,
        value: &dyn Fn(crate::expr::VarId) -> Option<i64>,
    ) -> Result<Layout<i64>, LayoutError> {
        let fixed = |t: &IntTuple<Dim>| t.try_map(&mut |l| arena.eval(*l, value));
        Layout::new(fixed(&self.shape)?, fixed(&self.stride)?)
    }
}
