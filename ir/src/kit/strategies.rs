//! Generates shapes, layouts, and valid operands of each operation at random (proptest strategies).
//!
//! Invariant: generators never filter. They construct everything from small independent choices, so
//! shrinking only visits valid values, and ends at a layout of one or two leaves. Invariant: every
//! generator is boxed, so that types do not grow with their nesting. Invariant: no layout has more
//! coordinates than the requested bounds allow, and the result of an operation on two of them stays
//! below [`MAX_POINTS`](super::MAX_POINTS). The generators of large layouts (`large`,
//! `large_composition`, ...) are the exception.

use super::bounds::Bounds;
use super::choices::{self, DigitChoice, LayoutChoice, LeafChoice, Style};
use super::like::Bits;
use super::plain::Plain;
use super::symbolic::{Symbolic, Term};
use super::tiling::Tiling;
use crate::tuple::IntTuple;
use proptest::collection::vec;
use proptest::prelude::*;

/// A thread-value layout and the shape of its tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadValue {
    /// The tile; its indices are column-major.
    pub tile: IntTuple<i64>,
    /// The map from (thread, value) to an index of the tile.
    pub layout: Plain,
}

fn leaf_choices(most: usize) -> BoxedStrategy<Vec<LeafChoice>> {
    let leaf = (0u8..16, 0u8..16, 0u8..16);
    let leaf = leaf.prop_map(|(extent, order, spread)| LeafChoice { extent, order, spread });
    vec(leaf, 0..=most).boxed()
}

/// Nesting choices; 0, which groups nothing, is frequent.
fn nesting() -> BoxedStrategy<Vec<u8>> {
    vec(prop_oneof![Just(0u8), 0u8..24], 0..3).boxed()
}

fn layout_choice(bounds: &Bounds) -> BoxedStrategy<LayoutChoice> {
    (leaf_choices(bounds.leaves()), nesting())
        .prop_map(|(leaves, nesting)| LayoutChoice { leaves, nesting })
        .boxed()
}

fn digit_choice() -> BoxedStrategy<DigitChoice> {
    let uses = vec((0u8..18, 0u8..16, 0u8..16), 0..7);
    (vec((0u8..16, 0u8..16), 0..3), uses, nesting())
        .prop_map(|(cuts, uses, nesting)| DigitChoice { cuts, uses, nesting })
        .boxed()
}

fn styled(style: Style, bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    let bounds = bounds.into();
    layout_choice(&bounds).prop_map(move |choice| choices::layout(&choice, style, &bounds)).boxed()
}

/// A nested shape within bounds.
pub fn shape(bounds: impl Into<Bounds>) -> BoxedStrategy<IntTuple<i64>> {
    compact(bounds).prop_map(|a| a.shape).boxed()
}

/// A compact layout, first leaf fastest.
pub fn compact(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::COMPACT, bounds)
}

/// A compact layout whose leaves are in any order: a bijection onto its size.
pub fn permuted(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::PERMUTED, bounds)
}

/// An injective layout with gaps. Its strides nest, so its left inverse exists.
pub fn padded(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::PADDED, bounds)
}

/// A compact layout in any order with some leaves of stride 0.
pub fn broadcast(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::BROADCAST, bounds)
}

/// A layout with gaps and stride-0 leaves, whose strides nest ([`Plain::nests`]).
pub fn nested_strides(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::NESTED, bounds)
}

/// Any layout. A seventh of the leaves has an arbitrary stride.
pub fn layout(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    styled(Style::ANY, bounds)
}

/// A layout whose strides nest and whose extents, strides and indices may exceed 32 bits, but
/// not 60. Half of the layouts have indices beyond 2^32. `bounds` gives rank, depth and the extents
/// before scaling; its size is ignored.
pub fn large(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    large_styled(Style::NESTED, bounds)
}

/// As [`large`], but a bijection onto its size.
pub fn large_permuted(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    large_styled(Style::PERMUTED, bounds)
}

/// As [`large`], but injective.
pub fn large_padded(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    large_styled(Style::PADDED, bounds)
}

fn powers() -> impl Strategy<Value = Vec<(u8, u8)>> {
    let power = || prop_oneof![Just(0u8), 0u8..40];
    vec((power(), power()), 5)
}

fn large_styled(style: Style, bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    let bounds = bounds.into();
    (layout_choice(&bounds), powers())
        .prop_map(move |(choice, scale)| choices::large(&choice, &scale, style, &bounds))
        .boxed()
}

/// `(outer, inner)` as in [`composition`], for a [`large`] layout.
pub fn large_composition(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (large(&bounds), digit_choice())
        .prop_map(move |(outer, choice)| {
            let inner = choices::inner_of(&outer, &choice, &bounds);
            (outer, inner)
        })
        .boxed()
}

/// `(whole, tile)` as in [`division`], for a [`large`] layout.
pub fn large_division(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (large(&bounds), digit_choice())
        .prop_map(move |(whole, choice)| {
            let tile = choices::tile_of(&whole, &choice, &bounds);
            (whole, tile)
        })
        .boxed()
}

/// A [`large`] layout and the target of its complement.
pub fn large_complement(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64)> {
    (large(bounds), 0u32..50, 1i64..9).prop_map(|(a, power, times)| (a, times << power)).boxed()
}

/// `(block, tiler)` as in [`product`], for a [`large`] block.
pub fn large_product(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (large(&bounds), leaf_choices(2), digit_choice())
        .prop_map(move |(block, top, choice)| {
            // With a larger block, the copies would exceed 62 bits.
            let tiler = if block.fits(1 << 40) {
                choices::copies_of(&block, &top, &choice, 1 << 20, &bounds)
            } else {
                Plain::new(1, 0)
            };
            (block, tiler)
        })
        .boxed()
}

/// A [`large`] layout and an `n` for which both the upcast and the downcast exist.
pub fn large_cast(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64)> {
    let bounds = bounds.into();
    (layout_choice(&fewer(&bounds)), powers(), 0u32..4)
        .prop_map(move |(choice, scale, n)| {
            let large = choices::large(&choice, &scale, Style::NESTED, &fewer(&bounds));
            let n = if large.fits(1 << 54) { 1i64 << n } else { 1 };
            (choices::parts_of(&large, n, n, &bounds), n)
        })
        .boxed()
}

/// A layout with some negative strides.
pub fn negative(bounds: impl Into<Bounds>) -> BoxedStrategy<Plain> {
    (layout(bounds), any::<u8>()).prop_map(|(a, which)| choices::negated(&a, which)).boxed()
}

/// `(outer, inner)` as in [`composition`]. Strides of `outer` may be negative, those of `inner` are
/// not.
pub fn negative_composition(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (negative(&bounds), digit_choice())
        .prop_map(move |(outer, choice)| {
            let inner = choices::inner_of(&outer, &choice, &bounds);
            (outer, inner)
        })
        .boxed()
}

/// `(whole, tile)` as in [`division`]. Strides of `whole` may be negative.
pub fn negative_division(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    let bounds = bounds.into();
    (negative(&bounds), digit_choice())
        .prop_map(move |(whole, choice)| {
            let tile = choices::tile_of(&whole, &choice, &bounds);
            (whole, Tiling::Layout(tile))
        })
        .boxed()
}

/// A layout with constant extents and some strides that are multiples of symbols.
pub fn symbolic(bounds: impl Into<Bounds>) -> BoxedStrategy<Symbolic> {
    (layout(bounds), vec(0u8..6, 8))
        .prop_map(|(a, which)| {
            let mut which = which.into_iter();
            let stride = a.stride.map(&mut |&factor| match which.next() {
                Some(symbol @ 1..=3) if factor != 0 => {
                    Term { factor, symbol: Some(usize::from(symbol) - 1) }
                }
                _ => Term { factor, symbol: None },
            });
            Symbolic { shape: a.shape, stride }
        })
        .boxed()
}

/// `(outer, inner)` as in [`composition`]. Strides of `outer` may be multiples of symbols.
pub fn symbolic_composition(bounds: impl Into<Bounds>) -> BoxedStrategy<(Symbolic, Plain)> {
    let bounds = bounds.into();
    (symbolic(&bounds), digit_choice())
        .prop_map(move |(outer, choice)| {
            let inner = choices::inner_of(&outer.at_distinct_values(), &choice, &bounds);
            (outer, inner)
        })
        .boxed()
}

/// A swizzle and an index of any number of bits up to 61.
pub fn large_swizzle() -> BoxedStrategy<(Bits, i64)> {
    (swizzle(), 0u32..62, any::<u64>())
        .prop_map(|((swizzle, _), bits, index)| (swizzle, (index & ((1 << bits) - 1)) as i64))
        .boxed()
}

/// A swizzled layout, given by a swizzle, an offset and a layout, and an inner layout that composes
/// with it.
pub fn swizzled_composition(bounds: impl Into<Bounds>) -> BoxedStrategy<(Bits, i64, Plain, Plain)> {
    (swizzle(), composition(bounds))
        .prop_map(|((swizzle, offset), (outer, inner))| (swizzle, offset, outer, inner))
        .boxed()
}

/// A swizzle for elements of a width in bits, and another width for which it is a swizzle, too.
pub fn swizzle_recast() -> BoxedStrategy<(Bits, u32, u32)> {
    (swizzle(), 0u32..4, 0u32..4, any::<bool>())
        .prop_map(|((swizzle, _), more, bits, wider)| {
            let (narrow, wide) = (1 << bits, 1 << (bits + more));
            if wider {
                (Bits { base: swizzle.base + more, ..swizzle }, narrow, wide)
            } else {
                (swizzle, wide, narrow)
            }
        })
        .boxed()
}

/// A swizzle of up to 12 bits and any index below its third period.
pub fn swizzle() -> BoxedStrategy<(Bits, i64)> {
    (0u32..=3, 0u32..=4, 0u32..=3, any::<u16>())
        .prop_map(|(bits, base, more, index)| {
            let swizzle = Bits { bits, base, shift: bits + more };
            (swizzle, i64::from(index) % (3 << (bits + base + swizzle.shift)))
        })
        .boxed()
}

/// A swizzled layout, given by a swizzle, an offset and a layout.
pub fn swizzled(bounds: impl Into<Bounds>) -> BoxedStrategy<(Bits, i64, Plain)> {
    (swizzle(), layout(bounds)).prop_map(|((swizzle, offset), a)| (swizzle, offset, a)).boxed()
}

/// `(outer, inner)` whose composition is a layout. The leaves of `inner` are runs of the digits in
/// which `outer` writes its indices, in any order, or have stride 0.
///
/// ```
/// use carbyne_ir::kit::strategies;
/// use carbyne_ir::layout::Layout;
/// use proptest::prelude::*;
///
/// proptest!(|((a, b) in strategies::composition(256))| {
///     let layout = |p: &carbyne_ir::kit::Plain| Layout::new(p.shape.clone(), p.stride.clone());
///     prop_assert!(layout(&a)?.compose(&layout(&b)?).is_ok());
/// });
/// ```
pub fn composition(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (layout(&bounds), digit_choice())
        .prop_map(move |(outer, choice)| {
            let inner = choices::inner_of(&outer, &choice, &bounds);
            (outer, inner)
        })
        .boxed()
}

/// A layout and a tiling by mode that composes with it.
pub fn composition_by_mode(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    let bounds = bounds.into();
    by_mode(layout(&bounds), move |whole, choice| choices::inner_of(whole, choice, &bounds))
}

/// Two arbitrary layouts, which an operation may refuse.
pub fn any_pair(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (layout(&bounds), layout(&bounds)).boxed()
}

/// A layout whose strides nest, and the target of its complement.
pub fn complement(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64)> {
    let bounds = bounds.into();
    (nested_strides(&bounds), 1..=2 * bounds.points()).boxed()
}

/// `(whole, tile)`. The tile takes whole digits of `whole`, so it divides evenly.
pub fn division(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    let bounds = bounds.into();
    (layout(&bounds), digit_choice())
        .prop_map(move |(whole, choice)| {
            let tile = choices::tile_of(&whole, &choice, &bounds);
            (whole, Tiling::Layout(tile))
        })
        .boxed()
}

/// A layout and a tiling by mode that divides it evenly.
pub fn division_by_mode(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    let bounds = bounds.into();
    by_mode(layout(&bounds), move |whole, choice| choices::tile_of(whole, choice, &bounds))
}

/// `(block, tiler)` whose product exists. The strides of the block nest; the tiler takes digits of
/// the complement of the block, and its size is at most 64 times the size of the bounds.
pub fn product(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (nested_strides(&bounds), leaf_choices(3), digit_choice())
        .prop_map(move |(block, top, choice)| {
            let tiler = choices::copies_of(&block, &top, &choice, 64 * bounds.points(), &bounds);
            (block, tiler)
        })
        .boxed()
}

/// A layout and a tiling by mode, with modes as in [`product`].
pub fn product_by_mode(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    let bounds = bounds.into();
    by_mode(nested_strides(&bounds), move |block, choice| {
        let top = [LeafChoice { extent: 2, order: 0, spread: 0 }; 2];
        choices::copies_of(block, &top, choice, 24, &bounds)
    })
}

fn by_mode(
    whole: impl Strategy<Value = Plain> + 'static,
    tile: impl Fn(&Plain, &DigitChoice) -> Plain + 'static,
) -> BoxedStrategy<(Plain, Tiling<Plain>)> {
    (whole, vec(digit_choice(), 1..3))
        .prop_map(move |(whole, choices)| {
            let whole = choices::with_modes(whole);
            let tiling = choices::tiling_of(&whole, &choices, &tile);
            (whole, tiling)
        })
        .boxed()
}

/// Bounds that leave room for one more leaf.
fn fewer(bounds: &Bounds) -> Bounds {
    Bounds { rank: bounds.rank.saturating_sub(1), ..bounds.clone() }
}

/// A layout and an `n` by which it can be upcast.
pub fn upcast(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64)> {
    let bounds = bounds.into();
    (nested_strides(fewer(&bounds)), 0u32..4, 0u32..4)
        .prop_map(move |(large, n, parts)| {
            let small = choices::parts_of(&large, 1 << n, 1 << parts.min(n), &bounds);
            (small, 1 << n)
        })
        .boxed()
}

/// A layout and an `n` by which it can be downcast.
pub fn downcast(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64)> {
    let bounds = bounds.into();
    (nested_strides(fewer(&bounds)), 1i64..6)
        .prop_map(move |(large, n)| (choices::parts_of(&large, 1, 1, &bounds), n))
        .boxed()
}

/// A layout of elements, their width in bits, and another width to which it can be recast.
pub fn recast(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, i64, i64)> {
    let bounds = bounds.into();
    (nested_strides(fewer(&bounds)), 0u32..4, 0u32..4, 0u32..4, any::<bool>())
        .prop_map(move |(large, n, parts, bits, wider)| {
            let (narrow, wide) = (1 << bits, 1 << (bits + n));
            if wider {
                (choices::parts_of(&large, 1 << n, 1 << parts.min(n), &bounds), narrow, wide)
            } else {
                (choices::parts_of(&large, 1, 1, &bounds), wide, narrow)
            }
        })
        .boxed()
}

/// A layout and a shape in which an equal function is a layout.
pub fn with_shape(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, IntTuple<i64>)> {
    let bounds = bounds.into();
    (layout(&bounds), digit_choice())
        .prop_map(move |(a, choice)| {
            let shape = choices::shape_of(&a, &choice, &bounds).shape;
            (a, shape)
        })
        .boxed()
}

/// A flat bijective block and a shape that whole copies of it fill.
pub fn tile_to_shape(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, IntTuple<i64>)> {
    let bounds = bounds.into();
    (leaf_choices(bounds.leaves().min(3)), vec(1i64..5, 3))
        .prop_map(move |(leaves, times)| {
            let leaves = choices::leaves(&leaves, Style::PERMUTED, &bounds);
            let block = choices::with_modes(choices::nest(&leaves, &[], &bounds));
            let shape: Vec<i64> =
                block.shape.flatten().iter().zip(&times).map(|(extent, n)| extent * n).collect();
            (block, shape.into())
        })
        .boxed()
}

/// A layout and a profile of it: a tuple whose leaves stand for the parts to coalesce separately.
pub fn profile(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, IntTuple<i64>)> {
    (layout(bounds), 0usize..3)
        .prop_map(|(a, depth)| {
            let profile = cut_at(&a.shape, depth);
            (a, profile)
        })
        .boxed()
}

fn cut_at(shape: &IntTuple<i64>, depth: usize) -> IntTuple<i64> {
    match shape {
        IntTuple::Tuple(modes) if depth > 0 => {
            IntTuple::Tuple(modes.iter().map(|mode| cut_at(mode, depth - 1)).collect())
        }
        _ => IntTuple::Leaf(1),
    }
}

/// Two layouts with equal shapes; the second has the strides of the first in another or the same
/// order.
pub fn same_shape(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, Plain)> {
    let bounds = bounds.into();
    (layout_choice(&bounds), 0usize..3)
        .prop_map(move |(choice, turn)| {
            let a = choices::layout(&choice, Style::PADDED, &bounds);
            let style = [Style::PADDED, Style::COMPACT, Style::PERMUTED][turn];
            (a, choices::layout(&choice, style, &bounds))
        })
        .boxed()
}

/// A layout and a range of its modes with `begin <= end`.
pub fn mode_range(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, usize, usize)> {
    (layout(bounds), 0usize..8, 0usize..8)
        .prop_map(|(a, begin, length)| {
            let a = choices::with_modes(a);
            let rank = a.shape.rank();
            let begin = begin % (rank + 1);
            (a, begin, begin + length % (rank - begin + 1))
        })
        .boxed()
}

/// A layout and a coordinate of it in which modes at any depth are `None`, the holes.
pub fn slice(bounds: impl Into<Bounds>) -> BoxedStrategy<(Plain, IntTuple<Option<i64>>)> {
    (layout(bounds), vec(0u8..16, 0..8))
        .prop_map(|(a, picks)| {
            let a = choices::with_modes(a);
            let coord = open(&a.shape, &mut picks.into_iter(), true);
            (a, coord)
        })
        .boxed()
}

fn open(
    shape: &IntTuple<i64>,
    picks: &mut impl Iterator<Item = u8>,
    whole: bool,
) -> IntTuple<Option<i64>> {
    let pick = picks.next().unwrap_or(0);
    match shape {
        IntTuple::Tuple(modes) if whole || pick >= 8 => {
            IntTuple::Tuple(modes.iter().map(|mode| open(mode, picks, false)).collect())
        }
        _ if pick.is_multiple_of(2) => IntTuple::Leaf(None),
        _ => {
            let size = super::plain::size_of(shape).unwrap_or(1);
            IntTuple::Leaf(Some(i64::from(pick / 2) % size))
        }
    }
}

/// Three shapes, each a refinement of the one before, and a fourth one that may not be.
pub fn refinements(bounds: impl Into<Bounds>) -> BoxedStrategy<[IntTuple<i64>; 4]> {
    let bounds = bounds.into();
    let split = || vec((0u8..16, 0u8..16), 0..3);
    (shape(&bounds), split(), split(), shape(&bounds))
        .prop_map(move |(a, first, second, other)| {
            let b = refine(&a, &mut first.into_iter(), bounds.depth);
            let c = refine(&b, &mut second.into_iter(), bounds.depth);
            [a, b, c, other]
        })
        .boxed()
}

fn refine(
    a: &IntTuple<i64>,
    splits: &mut impl Iterator<Item = (u8, u8)>,
    depth: usize,
) -> IntTuple<i64> {
    match a {
        IntTuple::Tuple(modes) => IntTuple::Tuple(
            modes.iter().map(|mode| refine(mode, splits, depth.saturating_sub(1))).collect(),
        ),
        IntTuple::Leaf(extent) => match splits.next() {
            Some((how, place)) if how > 3 && depth > 0 => {
                let divisors: Vec<i64> = (1..=*extent).filter(|d| extent % d == 0).collect();
                let inner = divisors[usize::from(place) % divisors.len()];
                IntTuple::from(vec![inner, extent / inner])
            }
            _ => IntTuple::Leaf(*extent),
        },
    }
}

/// A thread-value layout that is a bijection onto its tile.
pub fn thread_value(bounds: impl Into<Bounds>) -> BoxedStrategy<ThreadValue> {
    (compact(bounds), digit_choice())
        .prop_map(|(tile, choice)| split_tile(&tile, &choice, 1))
        .boxed()
}

/// A thread-value layout in which several threads hold each element.
pub fn replicated_thread_value(bounds: impl Into<Bounds>) -> BoxedStrategy<ThreadValue> {
    (compact(bounds), digit_choice(), 2i64..5)
        .prop_map(|(tile, choice, times)| split_tile(&tile, &choice, times))
        .boxed()
}

/// Distributes the digits of the tile to the threads and the values.
fn split_tile(tile: &Plain, choice: &DigitChoice, times: i64) -> ThreadValue {
    let (mut threads, mut values) = (vec![], vec![]);
    let all = DigitChoice {
        uses: (0..16).map(|k| (3, choice.uses.get(k).map_or(0, |u| u.1), 0)).collect(),
        nesting: vec![],
        ..choice.clone()
    };
    let free = Bounds { rank: usize::MAX, depth: usize::MAX, ..Bounds::default() };
    let digits = choices::tile_of(tile, &all, &free);
    for (k, leaf) in digits.leaves().into_iter().enumerate() {
        let to_thread = choice.uses.get(k).is_some_and(|u| u.0 % 2 == 1);
        if to_thread { threads.push(leaf) } else { values.push(leaf) }
    }
    if times > 1 {
        threads.push((times, 0));
    }
    let halves =
        [choices::nest(&threads, &choice.nesting, &free), choices::nest(&values, &[], &free)];
    ThreadValue { tile: tile.shape.clone(), layout: Plain::concat(&halves) }
}
