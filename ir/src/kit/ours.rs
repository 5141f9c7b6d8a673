//! Implements [`LayoutLike`] for the layouts of this crate, so that the kit tests them like any
//! other library: for [`Layout`] over numbers, and for [`OverSymbols`], whose strides may contain
//! symbols.
//!
//! Invariant: each operation only calls the layout algebra. This file computes no index, extent or
//! stride of a result.

use super::answer::Answer;
use super::like::{Bits, LayoutLike};
use super::plain::Plain;
use super::symbolic::{SYMBOLS, Symbolic};
use super::tiling::Tiling;
use crate::expr::{Dim, ExprArena, VarId, VarInfo};
use crate::layout::{ComposedLayout, Layout, LayoutError, Swizzle, Tiler};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;
use std::rc::Rc;

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
    fn swizzled_composition(
        &self,
        swizzle: Bits,
        offset: i64,
        inner: &Self,
        i: i64,
    ) -> Answer<i64> {
        let composed = |swizzle| ComposedLayout::new(swizzle, offset, self.clone()).compose(inner);
        sw(swizzle).and_then(composed).map(|composed| composed.at(i)).into()
    }
    fn swizzle_recast(swizzle: Bits, old_bits: u32, new_bits: u32) -> Answer<Bits> {
        let bits =
            |s: Swizzle| Bits { bits: s.bits(), base: s.base(), shift: s.shift().unsigned_abs() };
        sw(swizzle).and_then(|s| s.recast(old_bits, new_bits)).map(bits).into()
    }

    fn has_negative_strides() -> bool {
        true
    }
}

/// A layout of this crate whose strides may be symbols, with its arena and symbols.
#[derive(Clone, Debug)]
pub struct OverSymbols {
    layout: Layout<Dim>,
    arena: Rc<ExprArena>,
}

impl OverSymbols {
    fn with(&self, layout: Result<Layout<Dim>, LayoutError>) -> Answer<Self> {
        layout.map(|layout| OverSymbols { layout, arena: self.arena.clone() }).into()
    }

    fn number(&self, dim: &Dim) -> i64 {
        // The kit never reads shape and stride of a layout with symbols.
        dim.known().unwrap_or(-1)
    }
}

impl LayoutLike for OverSymbols {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        let layout = Layout::new(shape.clone(), stride.clone());
        let arena = Rc::new(ExprArena::new());
        layout.map(|layout| OverSymbols { layout: Layout::from_fixed(&layout), arena }).into()
    }
    fn shape(&self) -> IntTuple {
        self.layout.shape().map(&mut |dim| self.number(dim))
    }
    fn stride(&self) -> IntTuple {
        self.layout.stride().map(&mut |dim| self.number(dim))
    }
    fn coalesce(&self) -> Answer<Self> {
        self.with(self.layout.coalesce_in(&self.arena))
    }
    fn flatten(&self) -> Answer<Self> {
        self.with(Ok(self.layout.flatten()))
    }
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(inner) = inner else { return Answer::Unsupported };
        self.with(self.layout.compose_in(&self.arena, &inner.layout))
    }
    fn has_negative_strides() -> bool {
        true
    }
    fn build_symbolic(symbolic: &Symbolic) -> Answer<Self> {
        let build = || {
            let arena = ExprArena::new();
            let mut symbols = vec![];
            for k in 0..SYMBOLS {
                symbols.push(arena.var(VarInfo::size(format!("s{k}")))?);
            }
            let mut overflow = None;
            let stride = symbolic.stride.map(&mut |term| {
                let symbol = term.symbol.and_then(|symbol| symbols.get(symbol)).copied();
                let symbol = symbol.unwrap_or(Dim::Const(1));
                Leaf::mul(&arena, symbol, Dim::Const(term.factor)).unwrap_or_else(|error| {
                    overflow = Some(error);
                    symbol
                })
            });
            let shape = symbolic.shape.map(&mut |extent| Dim::Const(*extent));
            let layout = overflow.map_or_else(|| Layout::new_in(&arena, shape, stride), Err)?;
            Ok::<_, LayoutError>(OverSymbols { layout, arena: Rc::new(arena) })
        };
        build().into()
    }
    fn substitute(&self, values: &[i64]) -> Answer<Plain> {
        let value = |var: VarId| values.get(var.index()).copied();
        self.layout.eval(&self.arena, &value).map(|layout| layout.plain()).into()
    }
}
