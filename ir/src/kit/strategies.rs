//! Proptest strategies for shapes, layouts, and operands for which an operation must have a result.
//!
//! Invariant: nothing is filtered. Everything is constructed from small independent choices, so that
//! each value met while shrinking is admissible too, and shrinking ends at a layout of a leaf or two.
//! Invariant: every strategy is boxed, so that neither its type nor what is made of it grows with what it is made of.
//! Invariant: no layout has more coordinates than the budget it was asked for; what an operation makes
//! of two of them stays below [`MAX_POINTS`](super::MAX_POINTS).

use super::choices::{self, DigitChoice, LayoutChoice, LeafChoice, Style};
use super::like::Bits;
use super::plain::Plain;
use super::tiling::Tiling;
use crate::tuple::IntTuple;
use proptest::collection::vec;
use proptest::prelude::*;

/// A thread-value layout and the shape of the tile whose indices it yields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadValue {
    /// The tile; its indices count column-major.
    pub tile: IntTuple<i64>,
    /// From (thread, value) to an index of the tile.
    pub layout: Plain,
}

fn leaf_choices(most: usize) -> impl Strategy<Value = Vec<LeafChoice>> {
    let leaf = (0u8..16, 0u8..16, 0u8..16);
    let leaf = leaf.prop_map(|(extent, order, spread)| LeafChoice { extent, order, spread });
    vec(leaf, 0..=most).boxed()
}

/// Often no nesting; `0` gathers nothing.
fn nesting() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(0u8), 0u8..24], 0..3).boxed()
}

fn layout_choice() -> impl Strategy<Value = LayoutChoice> {
    (leaf_choices(5), nesting())
        .prop_map(|(leaves, nesting)| LayoutChoice { leaves, nesting })
        .boxed()
}

fn digit_choice() -> impl Strategy<Value = DigitChoice> {
    let uses = vec((0u8..18, 0u8..16, 0u8..16), 0..7);
    (vec((0u8..16, 0u8..16), 0..3), uses, nesting())
        .prop_map(|(cuts, uses, nesting)| DigitChoice { cuts, uses, nesting })
        .boxed()
}

fn styled(style: Style, budget: i64) -> impl Strategy<Value = Plain> {
    layout_choice().prop_map(move |choice| choices::layout(&choice, style, budget)).boxed()
}

/// A nested shape of at most `budget` coordinates.
pub fn shape(budget: i64) -> impl Strategy<Value = IntTuple<i64>> {
    compact(budget).prop_map(|a| a.shape).boxed()
}

/// A compact layout, first leaf fastest.
pub fn compact(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::COMPACT, budget)
}

/// A compact layout whose leaves are in any order: a bijection onto its size.
pub fn permuted(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::PERMUTED, budget)
}

/// An injective layout with gaps; its strides nest, so its left inverse exists.
pub fn padded(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::PADDED, budget)
}

/// A compact layout in any order, some of whose leaves have stride 0.
pub fn broadcast(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::BROADCAST, budget)
}

/// A layout with gaps and stride-0 leaves, whose strides nest ([`Plain::nests`]).
pub fn nested_strides(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::NESTED, budget)
}

/// Any layout: in a seventh of the leaves the stride is out of the blue.
pub fn layout(budget: i64) -> impl Strategy<Value = Plain> {
    styled(Style::ANY, budget)
}

/// A swizzle of up to 12 bits and an index anywhere below its third period.
pub fn swizzle() -> impl Strategy<Value = (Bits, i64)> {
    (0u32..=3, 0u32..=4, 0u32..=3, any::<u16>())
        .prop_map(|(bits, base, more, index)| {
            let swizzle = Bits { bits, base, shift: bits + more };
            (swizzle, i64::from(index) % (3 << (bits + base + swizzle.shift)))
        })
        .boxed()
}

/// A layout under a swizzle: the swizzle, an offset, the layout.
pub fn swizzled(budget: i64) -> impl Strategy<Value = (Bits, i64, Plain)> {
    (swizzle(), layout(budget)).prop_map(|((swizzle, offset), a)| (swizzle, offset, a)).boxed()
}

/// `(outer, inner)` whose composition is a layout: the leaves of `inner` are runs of digits in which
/// `outer` writes its indices, in any order, or have stride 0.
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
pub fn composition(budget: i64) -> impl Strategy<Value = (Plain, Plain)> {
    (layout(budget), digit_choice())
        .prop_map(|(outer, choice)| {
            let inner = choices::inner_of(&outer, &choice);
            (outer, inner)
        })
        .boxed()
}

/// A layout and a tiling by mode that composes with it.
pub fn composition_by_mode(budget: i64) -> impl Strategy<Value = (Plain, Tiling<Plain>)> {
    by_mode(layout(budget), choices::inner_of)
}

/// Two layouts out of the blue: an operation may refuse them.
pub fn any_pair(budget: i64) -> impl Strategy<Value = (Plain, Plain)> {
    (layout(budget), layout(budget)).boxed()
}

/// A layout whose strides nest, and how far its complement is to reach.
pub fn complement(budget: i64) -> impl Strategy<Value = (Plain, i64)> {
    (nested_strides(budget), 1..=2 * budget.max(1)).boxed()
}

/// `(whole, tile)`: the tile takes whole digits of `whole`, so that it divides without rest.
pub fn division(budget: i64) -> impl Strategy<Value = (Plain, Tiling<Plain>)> {
    (layout(budget), digit_choice())
        .prop_map(|(whole, choice)| {
            let tile = choices::tile_of(&whole, &choice);
            (whole, Tiling::Layout(tile))
        })
        .boxed()
}

/// A layout and a tiling by mode that divides it without rest.
pub fn division_by_mode(budget: i64) -> impl Strategy<Value = (Plain, Tiling<Plain>)> {
    by_mode(layout(budget), choices::tile_of)
}

/// `(block, tiler)` whose product exists: the strides of the block nest, the tiler takes digits of what
/// the block leaves out, and makes at most 64 times the budget of copies.
pub fn product(budget: i64) -> impl Strategy<Value = (Plain, Plain)> {
    (nested_strides(budget), leaf_choices(3), digit_choice())
        .prop_map(move |(block, top, choice)| {
            let tiler = choices::copies_of(&block, &top, &choice, 64 * budget);
            (block, tiler)
        })
        .boxed()
}

/// A layout and a tiling by mode, mode by mode as for [`product`].
pub fn product_by_mode(budget: i64) -> impl Strategy<Value = (Plain, Tiling<Plain>)> {
    by_mode(nested_strides(budget), |block, choice| {
        let top = [LeafChoice { extent: 2, order: 0, spread: 0 }; 2];
        choices::copies_of(block, &top, choice, 24)
    })
}

fn by_mode(
    whole: impl Strategy<Value = Plain> + 'static,
    tile: impl Fn(&Plain, &DigitChoice) -> Plain + 'static,
) -> impl Strategy<Value = (Plain, Tiling<Plain>)> {
    (whole, vec(digit_choice(), 1..3))
        .prop_map(move |(whole, choices)| {
            let whole = choices::with_modes(whole);
            let tiling = choices::tiling_of(&whole, &choices, &tile);
            (whole, tiling)
        })
        .boxed()
}

/// A layout and `n`, where each `n` consecutive elements can be taken as one.
pub fn upcast(budget: i64) -> impl Strategy<Value = (Plain, i64)> {
    (nested_strides(budget), 0u32..4, 0u32..4)
        .prop_map(|(large, n, parts)| {
            let small = choices::parts_of(&large, 1 << n, 1 << parts.min(n));
            (small, 1 << n)
        })
        .boxed()
}

/// A layout and `n`, where each element can be taken apart into `n`.
pub fn downcast(budget: i64) -> impl Strategy<Value = (Plain, i64)> {
    (nested_strides(budget), 1i64..6)
        .prop_map(|(large, n)| (choices::parts_of(&large, 1, 1), n))
        .boxed()
}

/// A layout of elements, their width in bits, and another width in which it can be seen.
pub fn recast(budget: i64) -> impl Strategy<Value = (Plain, i64, i64)> {
    (nested_strides(budget), 0u32..4, 0u32..4, 0u32..4, any::<bool>())
        .prop_map(|(large, n, parts, bits, wider)| {
            let (narrow, wide) = (1 << bits, 1 << (bits + n));
            if wider {
                (choices::parts_of(&large, 1 << n, 1 << parts.min(n)), narrow, wide)
            } else {
                (choices::parts_of(&large, 1, 1), wide, narrow)
            }
        })
        .boxed()
}

/// A layout and a shape under which the same function is a layout.
pub fn with_shape(budget: i64) -> impl Strategy<Value = (Plain, IntTuple<i64>)> {
    (layout(budget), digit_choice())
        .prop_map(|(a, choice)| {
            let shape = choices::shape_of(&a, &choice).shape;
            (a, shape)
        })
        .boxed()
}

/// A flat bijective block and a shape that whole copies of it fill.
pub fn tile_to_shape(budget: i64) -> impl Strategy<Value = (Plain, IntTuple<i64>)> {
    (leaf_choices(3), vec(1i64..5, 3))
        .prop_map(move |(leaves, times)| {
            let leaves = choices::leaves(&leaves, Style::PERMUTED, budget);
            let block = choices::with_modes(choices::nest(&leaves, &[]));
            let shape: Vec<i64> =
                block.shape.flatten().iter().zip(&times).map(|(extent, n)| extent * n).collect();
            (block, shape.into())
        })
        .boxed()
}

/// A layout and a tuple that refines it less deeply: the parts that are coalesced on their own.
pub fn profile(budget: i64) -> impl Strategy<Value = (Plain, IntTuple<i64>)> {
    (layout(budget), 0usize..3)
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

/// Two layouts of the same leaves; the second has its strides in another order, or the same.
pub fn same_shape(budget: i64) -> impl Strategy<Value = (Plain, Plain)> {
    (layout_choice(), 0usize..3)
        .prop_map(move |(choice, turn)| {
            let a = choices::layout(&choice, Style::PADDED, budget);
            let style = [Style::PADDED, Style::COMPACT, Style::PERMUTED][turn];
            (a, choices::layout(&choice, style, budget))
        })
        .boxed()
}

/// A layout with a range of its modes, `begin <= end`.
pub fn mode_range(budget: i64) -> impl Strategy<Value = (Plain, usize, usize)> {
    (layout(budget), 0usize..8, 0usize..8)
        .prop_map(|(a, begin, length)| {
            let a = choices::with_modes(a);
            let rank = a.shape.rank();
            let begin = begin % (rank + 1);
            (a, begin, begin + length % (rank - begin + 1))
        })
        .boxed()
}

/// A layout and a coordinate into it of which modes at any depth are `None`: left open.
pub fn slice(budget: i64) -> impl Strategy<Value = (Plain, IntTuple<Option<i64>>)> {
    (layout(budget), vec(0u8..16, 0..8))
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

/// Shapes of which each refines the one before, and a fourth one that need not.
pub fn refinements(budget: i64) -> impl Strategy<Value = [IntTuple<i64>; 4]> {
    let split = || vec((0u8..16, 0u8..16), 0..3);
    (shape(budget), split(), split(), shape(budget))
        .prop_map(|(a, first, second, other)| {
            let b = refine(&a, &mut first.into_iter());
            let c = refine(&b, &mut second.into_iter());
            [a, b, c, other]
        })
        .boxed()
}

fn refine(a: &IntTuple<i64>, splits: &mut impl Iterator<Item = (u8, u8)>) -> IntTuple<i64> {
    match a {
        IntTuple::Tuple(modes) => {
            IntTuple::Tuple(modes.iter().map(|mode| refine(mode, splits)).collect())
        }
        IntTuple::Leaf(extent) => match splits.next() {
            Some((how, place)) if how > 3 => {
                let divisors: Vec<i64> = (1..=*extent).filter(|d| extent % d == 0).collect();
                let inner = divisors[usize::from(place) % divisors.len()];
                IntTuple::from(vec![inner, extent / inner])
            }
            _ => IntTuple::Leaf(*extent),
        },
    }
}

/// A thread-value layout that is a bijection onto its tile.
pub fn thread_value(budget: i64) -> impl Strategy<Value = ThreadValue> {
    (compact(budget), digit_choice())
        .prop_map(|(tile, choice)| split_tile(&tile, &choice, 1))
        .boxed()
}

/// A thread-value layout in which several threads hold each element.
pub fn replicated_thread_value(budget: i64) -> impl Strategy<Value = ThreadValue> {
    (compact(budget), digit_choice(), 2i64..5)
        .prop_map(|(tile, choice, times)| split_tile(&tile, &choice, times))
        .boxed()
}

/// Each digit of the tile goes to the threads or to the values.
fn split_tile(tile: &Plain, choice: &DigitChoice, times: i64) -> ThreadValue {
    let (mut threads, mut values) = (vec![], vec![]);
    let all = DigitChoice {
        uses: (0..16).map(|k| (3, choice.uses.get(k).map_or(0, |u| u.1), 0)).collect(),
        nesting: vec![],
        ..choice.clone()
    };
    let digits = choices::tile_of(tile, &all);
    for (k, leaf) in digits.leaves().into_iter().enumerate() {
        let to_thread = choice.uses.get(k).is_some_and(|u| u.0 % 2 == 1);
        if to_thread { threads.push(leaf) } else { values.push(leaf) }
    }
    if times > 1 {
        threads.push((times, 0));
    }
    let halves = [choices::nest(&threads, &choice.nesting), choices::nest(&values, &[])];
    ThreadValue { tile: tile.shape.clone(), layout: Plain::concat(&halves) }
}
