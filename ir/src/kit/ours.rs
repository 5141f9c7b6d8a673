//! The layouts of this crate as the kit sees them.
//!
//! Invariant: each operation is one call; nothing is computed here.

use super::like::{Answer, Bits, LayoutLike};
use super::tiling::Tiling;
use crate::layout::{ComposedLayout, Layout, LayoutError, Swizzle, Tiler};
use crate::tuple::IntTuple;

impl From<&Tiling<Layout>> for Tiler {
    fn from(tiling: &Tiling<Layout>) -> Self {
        match tiling {
            Tiling::Layout(layout) => Tiler::Layout(layout.clone()),
            Tiling::Modes(modes) => Tiler::Modes(modes.iter().map(Tiler::from).collect()),
            Tiling::Keep => Tiler::Keep,
        }
    }
}

fn sw(swizzle: Bits) -> Result<Swizzle, LayoutError> {
    Swizzle::new(swizzle.bits, swizzle.base, swizzle.shift)
}

impl LayoutLike for Layout {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        Layout::new(shape.clone(), stride.clone()).into()
    }
    fn shape(&self) -> IntTuple {
        Layout::shape(self)
    }
    fn stride(&self) -> IntTuple {
        Layout::stride(self)
    }
    fn eval(&self, i: i64) -> Answer<i64> {
        Answer::Got(self.at(i))
    }
    fn eval_at(&self, coord: &IntTuple) -> Answer<i64> {
        self.at_coord(coord).into()
    }

    fn coalesce(&self) -> Answer<Self> {
        Answer::Got(Layout::coalesce(self))
    }
    fn coalesce_by(&self, profile: &IntTuple) -> Answer<Self> {
        Layout::coalesce_by(self, profile).into()
    }
    fn filter(&self) -> Answer<Self> {
        Answer::Got(self.filter_zeros())
    }
    fn flatten(&self) -> Answer<Self> {
        Answer::Got(Layout::flatten(self))
    }
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        self.compose_by_mode(inner).into()
    }
    fn complement(&self, cotarget: i64) -> Answer<Self> {
        Layout::complement(self, cotarget).into()
    }
    fn right_inverse(&self) -> Answer<Self> {
        Answer::Got(Layout::right_inverse(self))
    }
    fn left_inverse(&self) -> Answer<Self> {
        Layout::left_inverse(self).into()
    }
    fn nullspace(&self) -> Answer<Self> {
        Answer::Got(Layout::nullspace(self))
    }

    fn logical_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::logical_divide(self, tiler).into()
    }
    fn zipped_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::zipped_divide(self, tiler).into()
    }
    fn tiled_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::tiled_divide(self, tiler).into()
    }
    fn flat_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::flat_divide(self, tiler).into()
    }
    fn logical_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::logical_product(self, tiler).into()
    }
    fn zipped_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::zipped_product(self, tiler).into()
    }
    fn tiled_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::tiled_product(self, tiler).into()
    }
    fn flat_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Layout::flat_product(self, tiler).into()
    }
    fn blocked_product(&self, tiler: &Self) -> Answer<Self> {
        Layout::blocked_product(self, tiler).into()
    }
    fn raked_product(&self, tiler: &Self) -> Answer<Self> {
        Layout::raked_product(self, tiler).into()
    }
    fn with_shape(&self, shape: &IntTuple) -> Answer<Self> {
        Layout::with_shape(self, shape.clone()).into()
    }
    fn tile_to_shape(&self, shape: &IntTuple) -> Answer<Self> {
        Layout::tile_to_shape(self, shape, None).into()
    }
    fn max_common_vector(&self, other: &Self) -> Answer<i64> {
        Layout::max_common_vector(self, other).into()
    }
    fn max_common_layout(&self, other: &Self) -> Answer<Self> {
        Layout::max_common_layout(self, other).into()
    }
    fn upcast(&self, n: i64) -> Answer<Self> {
        Layout::upcast(self, n).into()
    }
    fn downcast(&self, n: i64) -> Answer<Self> {
        Layout::downcast(self, n).into()
    }
    fn recast(&self, old_bits: i64, new_bits: i64) -> Answer<Self> {
        Layout::recast(self, old_bits, new_bits).into()
    }

    fn group(&self, begin: usize, end: usize) -> Answer<Self> {
        Layout::group(self, begin, end).into()
    }
    fn concat(modes: &[Self]) -> Answer<Self> {
        Layout::concat(modes).into()
    }
    fn slice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        Layout::slice(self, coord).into()
    }
    fn dice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        Layout::dice(self, coord).into()
    }

    fn congruent(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        Answer::Got(a.congruent(b))
    }
    fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        Answer::Got(a.weakly_congruent(b))
    }
    fn compatible(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        Answer::Got(a.compatible(b))
    }

    fn swizzle(swizzle: Bits, index: i64) -> Answer<i64> {
        sw(swizzle).map(|swizzle| swizzle.apply(index)).into()
    }
    fn swizzled_eval(&self, swizzle: Bits, offset: i64, i: i64) -> Answer<i64> {
        let composed = |swizzle| ComposedLayout::new(swizzle, offset, self.clone()).at(i);
        sw(swizzle).map(composed).into()
    }
}
