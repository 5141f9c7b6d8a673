//! Defines [`LayoutLike`], the trait that a layout library implements to be tested, with one method
//! for each operation of the layout algebra.
//!
//! Invariant: only three methods are required, one to build a layout and two to read it back. All
//! others answer [`Answer::Unsupported`] by default, and the laws about them are skipped.

use super::answer::Answer;
use super::plain::Plain;
use super::symbolic::Symbolic;
use super::tiling::Tiling;
use crate::tuple::IntTuple;
use std::fmt;

/// A layout of a library under test. Operations have the names and the meaning of CuTe's; the first
/// mode of a one-dimensional index varies fastest.
///
/// ```
/// use carbyne_ir::kit::{Answer, LayoutLike, Plain, laws};
/// use carbyne_ir::tuple::IntTuple;
///
/// #[derive(Clone, Debug)]
/// struct Mine(IntTuple, IntTuple);
///
/// impl LayoutLike for Mine {
///     fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
///         Answer::Got(Mine(shape.clone(), stride.clone()))
///     }
///     fn shape(&self) -> IntTuple {
///         self.0.clone()
///     }
///     fn stride(&self) -> IntTuple {
///         self.1.clone()
///     }
///     fn flatten(&self) -> Answer<Self> {
///         Answer::Got(Mine(self.0.flatten().into(), self.1.flatten().into()))
///     }
/// }
///
/// assert!(laws::law_flatten::<Mine>(&Plain::flat(&[(2, 1), (3, 4)])).is_ok());
/// ```
#[expect(unused_variables, reason = "the defaults answer without looking at their operands")]
pub trait LayoutLike: Sized + Clone + fmt::Debug {
    /// The layout with this shape and stride, which have equal nesting. Extents are 1 or more.
    /// Strides are 0 or more, or also negative if [`LayoutLike::has_negative_strides`] says so.
    /// Sizes and indices stay below 2^62. For kinds of layouts that the library does not have, the
    /// answer is [`Answer::Unsupported`].
    fn build(shape: &IntTuple<i64>, stride: &IntTuple<i64>) -> Answer<Self>;
    /// The shape.
    fn shape(&self) -> IntTuple<i64>;
    /// The stride, with the nesting of the shape.
    fn stride(&self) -> IntTuple<i64>;

    /// The index of the `i`-th coordinate, for `i` below the size.
    fn eval(&self, i: i64) -> Answer<i64> {
        Answer::Unsupported
    }
    /// The index of a coordinate; a number may stand for a tuple.
    fn eval_at(&self, coord: &IntTuple<i64>) -> Answer<i64> {
        Answer::Unsupported
    }

    /// An equal function of one-dimensional indices with as few modes as possible.
    fn coalesce(&self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Coalesces the mode at each leaf of the profile separately.
    fn coalesce_by(&self, profile: &IntTuple<i64>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Removes the leaves of stride 0 and extent 1, and coalesces.
    fn filter(&self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The leaves without nesting.
    fn flatten(&self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// `self` after the tiler: function composition, mode by mode for a tiling by mode.
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The layout that fills the gaps of this layout up to `cotarget`.
    fn complement(&self, cotarget: i64) -> Answer<Self> {
        Answer::Unsupported
    }
    /// `self(result(i)) == i`.
    fn right_inverse(&self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// `self(result(self(i))) == self(i)`.
    fn left_inverse(&self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The coordinates that differ only in leaves of stride 0: `self(result(i)) == 0`.
    fn nullspace(&self) -> Answer<Self> {
        Answer::Unsupported
    }

    /// Each tiled mode becomes (tile, rest).
    fn logical_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// ((tiles), (rests)).
    fn zipped_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// ((tiles), rest, rest, ...).
    fn tiled_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// (tile, tile, ..., rest, rest, ...).
    fn flat_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Each tiled mode becomes (mode, copies).
    fn logical_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// ((modes), (copies)).
    fn zipped_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// ((modes), copies, copies, ...).
    fn tiled_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// (mode, mode, ..., copies, copies, ...).
    fn flat_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Adjacent copies of this block: mode k is (block k, tiler k).
    fn blocked_product(&self, tiler: &Self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Interleaved copies of this block: mode k is (tiler k, block k).
    fn raked_product(&self, tiler: &Self) -> Answer<Self> {
        Answer::Unsupported
    }

    /// An equal function with another shape, whose size is equal or smaller.
    fn with_shape(&self, shape: &IntTuple<i64>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Copies of this block that fill a flat shape, first mode first.
    fn tile_to_shape(&self, shape: &IntTuple<i64>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The number of indices from 0 on that belong to equal coordinates in both layouts.
    fn max_common_vector(&self, other: &Self) -> Answer<i64> {
        Answer::Unsupported
    }
    /// The coordinates of these indices: `self(result(i)) == other(result(i)) == i`.
    fn max_common_layout(&self, other: &Self) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The layout of groups of `n` consecutive elements.
    fn upcast(&self, n: i64) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The layout of the `n` parts of each element.
    fn downcast(&self, n: i64) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The layout of this memory in elements of another width.
    fn recast(&self, old_bits: i64, new_bits: i64) -> Answer<Self> {
        Answer::Unsupported
    }

    /// Modes `begin..end` grouped into one.
    fn group(&self, begin: usize, end: usize) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The layout with these modes.
    fn concat(modes: &[Self]) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The modes where the coordinate is `None`.
    fn slice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        Answer::Unsupported
    }
    /// The modes where the coordinate is a number.
    fn dice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        Answer::Unsupported
    }

    /// Whether two shapes have equal nesting.
    fn congruent(a: &IntTuple<i64>, b: &IntTuple<i64>) -> Answer<bool> {
        Answer::Unsupported
    }
    /// Whether `b` refines the nesting of `a`.
    fn weakly_congruent(a: &IntTuple<i64>, b: &IntTuple<i64>) -> Answer<bool> {
        Answer::Unsupported
    }
    /// Whether every coordinate of `a` is a coordinate of `b`.
    fn compatible(a: &IntTuple<i64>, b: &IntTuple<i64>) -> Answer<bool> {
        Answer::Unsupported
    }

    /// `index ^ ((index >> shift) & mask)`; `mask` is `bits` ones above `base` zeros.
    fn swizzle(swizzle: Bits, index: i64) -> Answer<i64> {
        Answer::Unsupported
    }
    /// `swizzle(offset + self(i))`, the value of a layout composed with a swizzle.
    fn swizzled_eval(&self, swizzle: Bits, offset: i64, i: i64) -> Answer<i64> {
        Answer::Unsupported
    }

    /// The value at `i` of the composition of a swizzled layout, as in
    /// [`LayoutLike::swizzled_eval`], with `inner`.
    fn swizzled_composition(
        &self,
        swizzle: Bits,
        offset: i64,
        inner: &Self,
        i: i64,
    ) -> Answer<i64> {
        Answer::Unsupported
    }
    /// The swizzle of this memory, for indices of elements of another width.
    fn swizzle_recast(swizzle: Bits, old_bits: u32, new_bits: u32) -> Answer<Bits> {
        Answer::Unsupported
    }

    /// Whether [`LayoutLike::build`] accepts negative strides. Otherwise the laws about them are
    /// skipped.
    fn has_negative_strides() -> bool {
        false
    }
    /// A layout whose strides may be multiples of symbols. A symbol is an unknown number of at
    /// least 1.
    fn build_symbolic(symbolic: &Symbolic) -> Answer<Self> {
        Answer::Unsupported
    }
    /// Shape and stride of this layout, which depends on symbols, for given values of the symbols.
    fn substitute(&self, values: &[i64]) -> Answer<Plain> {
        Answer::Unsupported
    }

    /// The plain data of this layout.
    fn plain(&self) -> Plain {
        Plain { shape: self.shape(), stride: self.stride() }
    }
}

/// The parameters of a swizzle, `Sw<bits,base,shift>`; `bits` is at most `shift`.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bits {
    /// The number of changed bits.
    pub bits: u32,
    /// The number of low bits that never change.
    pub base: u32,
    /// The distance from the changed bits up to the deciding bits.
    pub shift: u32,
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sw<{},{},{}>", self.bits, self.base, self.shift)
    }
}

impl Tiling<Plain> {
    /// Builds this tiling from layouts of the library under test.
    #[must_use]
    pub fn build<T: LayoutLike>(&self) -> Answer<Tiling<T>> {
        match self {
            Tiling::Keep => Answer::Got(Tiling::Keep),
            Tiling::Layout(p) => T::build(&p.shape, &p.stride).map(Tiling::Layout),
            Tiling::Modes(modes) => {
                let mut built = Vec::with_capacity(modes.len());
                for mode in modes {
                    match mode.build() {
                        Answer::Got(mode) => built.push(mode),
                        other => return other,
                    }
                }
                Answer::Got(Tiling::Modes(built))
            }
        }
    }
}
