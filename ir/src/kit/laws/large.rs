//! Checks laws of layouts whose sizes and indices exceed 32 bits, to find overflows. They are
//! checked at selected coordinates.
//!
//! Invariant: nothing is enumerated. The index at a coordinate is computed digit by digit in 128
//! bits ([`Plain::index`]), and the expected index is computed from the operands in the same way.
//! Invariant: the coordinates follow from the extents of the layout's leaves alone, so failures are
//! reproducible. They are the ends of every leaf, the neighbors of 2^31, 2^32 and 2^53, and some
//! spread over the whole range.

use crate::kit::error::{Case, LawResult, Stop, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{Plain, col_major};
use crate::kit::tiling::Tiling;
use crate::tuple::IntTuple;

/// The number of coordinates that are spread over the whole range.
const SPREAD: u64 = 24;

/// The distinct coordinates of `a` to check.
fn samples(a: &Plain) -> Vec<i64> {
    let size = a.total().unwrap_or(1);
    let mut at = vec![0, 1, 2, size / 2, size - 1];
    let mut before = 1i64;
    for (extent, _) in a.leaves() {
        at.extend([before, before.saturating_mul(extent - 1), before.saturating_mul(extent)]);
        before = before.saturating_mul(extent);
    }
    for bits in [31, 32, 53] {
        at.extend([(1i64 << bits) - 1, 1 << bits, (1 << bits) + 1]);
    }
    // Odd multiples of the bits of the golden ratio: no stride divides all of them.
    let spread = |k: u64| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2) as i64 % size;
    at.extend((1..=SPREAD).map(spread));
    at.retain(|at| (0..size).contains(at));
    at.sort_unstable();
    at.dedup();
    at
}

/// Requires that both are equal functions at the selected coordinates of `wanted`.
fn agree(case: &Case<'_>, what: &str, found: &Plain, wanted: &Plain) -> Result<(), Stop> {
    case.same("the size", &count(case, found)?, &count(case, wanted)?)?;
    follow(case, what, found, wanted, |i| wanted.index(i))
}

/// Requires that `found` has the expected value at the selected coordinates of `over`, where there
/// is one.
fn follow(
    case: &Case<'_>,
    what: &str,
    found: &Plain,
    over: &Plain,
    wanted: impl Fn(i64) -> Option<i64>,
) -> Result<(), Stop> {
    for i in samples(over) {
        let Some(wanted) = wanted(i) else { continue };
        match found.index(i) {
            Some(found) => case.point(what, || i.to_string(), found, wanted)?,
            None => return Err(case.broken(what, Some(i.to_string()), &"no index", &wanted)),
        }
    }
    Ok(())
}

fn count(case: &Case<'_>, a: &Plain) -> Result<i64, Stop> {
    let wanted = "positive extents, and fewer than 2^63 coordinates";
    a.total().ok_or_else(|| case.broken("the size", None, &"no size", &wanted))
}

/// A large layout that is built and read back is unchanged, except for strides of extent 1.
pub fn law_build_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("build_large", &[("a", a)], |case| {
        let back = case.large("build", T::build(&a.shape, &a.stride))?;
        case.same("the shape", &back.shape, &a.shape)?;
        agree(case, "the function", &back, a)
    })
}

/// Evaluation of a large layout at an index agrees with shape and stride.
pub fn law_eval_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("eval_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        for i in samples(a) {
            let found = case.must("eval", built.eval(i))?;
            case.point("the value", || i.to_string(), found, a.index(i).unwrap_or(-1))?;
        }
        Ok(())
    })
}

/// Evaluation of a large layout at a full coordinate agrees with shape and stride.
pub fn law_eval_at_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("eval_at_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let radix = col_major(&a.shape);
        for i in samples(a) {
            let coord = digits(i, &a.shape, &radix);
            let found = case.must("eval_at", built.eval_at(&coord))?;
            case.point("the value", || coord.to_string(), found, a.index(i).unwrap_or(-1))?;
        }
        Ok(())
    })
}

/// The coordinate of an index; `radix` holds the compact strides.
fn digits(i: i64, shape: &IntTuple<i64>, radix: &IntTuple<i64>) -> IntTuple<i64> {
    match (shape, radix) {
        (IntTuple::Tuple(shapes), IntTuple::Tuple(radices)) => {
            IntTuple::Tuple(shapes.iter().zip(radices).map(|(d, r)| digits(i, d, r)).collect())
        }
        (IntTuple::Leaf(extent), IntTuple::Leaf(radix)) => IntTuple::Leaf(i / radix % extent),
        _ => IntTuple::Leaf(0),
    }
}

/// Coalescing a large layout keeps the function, and the result is flat.
pub fn law_coalesce_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("coalesce_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let c = case.large("coalesce", built.coalesce())?;
        case.holds("flat", c.shape.depth() <= 1)?;
        agree(case, "the function", &c, a)
    })
}

/// Flattening a large layout keeps the leaves.
pub fn law_flatten_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("flatten_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let f = case.large("flatten", built.flatten())?;
        case.holds("flat", f.shape.depth() <= 1)?;
        case.same("the leaves", &Plain::flat(&f.leaves()), &Plain::flat(&a.leaves()))
    })
}

/// Filtering a large layout keeps the function of the leaves with a non-zero stride.
pub fn law_filter_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("filter_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let f = case.large("filter", built.filter())?;
        let mut kept = a.leaves();
        kept.retain(|&(extent, stride)| extent > 1 && stride != 0);
        agree(case, "the function", &f, &Plain::flat(&kept))
    })
}

/// Composition with a large layout is function composition.
pub fn law_composition_large<T: LayoutLike>(outer: &Plain, inner: &Plain) -> LawResult {
    judge("composition_large", &[("outer", outer), ("inner", inner)], |case| {
        let tile: Tiling<T> = Tiling::Layout(case.build(inner)?);
        let built: T = case.build(outer)?;
        let c = case.large("composition", built.composition(&tile))?;
        case.same("the size", &count(case, &c)?, &count(case, inner)?)?;
        let size = count(case, outer)?;
        let inside = |at: &i64| (0..size).contains(at);
        follow(case, "the function", &c, inner, |i| {
            inner.index(i).filter(inside).and_then(|at| outer.index(at))
        })
    })
}

/// The complement of a large layout whose strides nest is ordered. The leaves of both together,
/// sorted by stride, count through an interval without gaps or overlaps, which reaches `cotarget`.
pub fn law_complement_large<T: LayoutLike>(a: &Plain, cotarget: i64) -> LawResult {
    judge("complement_large", &[("a", a), ("cotarget", &cotarget)], |case| {
        let built: T = case.build(a)?;
        let c = case.large("complement", built.complement(cotarget))?;
        count(case, &c)?;
        let ordered = c.leaves().windows(2).all(|pair| pair[0].1 <= pair[1].1 || pair[1].0 == 1);
        case.holds("the complement is ordered", ordered)?;
        let both = Plain::concat(&[a.clone(), c]);
        let (gaps, reach) = match both.gaps() {
            Some(covered) => covered,
            None => return Err(case.broken("both together", None, &"overlaps", &"no overlap")),
        };
        case.same("the number of gaps in both together", &gaps.len(), &0)?;
        case.same("how far both reach", &reach.max(cotarget), &reach)
    })
}

/// `a(r(i)) == i` for a large bijection and its full inverse.
pub fn law_right_inverse_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("right_inverse_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let r = case.large("right_inverse", built.right_inverse())?;
        case.same("the size of a bijection's inverse", &count(case, &r)?, &count(case, a)?)?;
        undone(case, "a(result(i))", &r, &r, a)
    })
}

/// `l(a(i)) == i` for a large injective layout whose strides nest.
pub fn law_left_inverse_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("left_inverse_large", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let l = case.large("left_inverse", built.left_inverse())?;
        undone(case, "result(a(i))", a, a, &l)
    })
}

/// Requires `second(first(i)) == i` at the selected coordinates of `over`.
fn undone(
    case: &Case<'_>,
    what: &str,
    over: &Plain,
    first: &Plain,
    second: &Plain,
) -> Result<(), Stop> {
    for i in samples(over) {
        let found = first.index(i).and_then(|at| second.index(at)).unwrap_or(-1);
        case.point(what, || i.to_string(), found, i)?;
    }
    Ok(())
}

/// Division of a large layout: the first mode is `whole` after the tile, the second one is `whole`
/// after the complement of the tile.
pub fn law_logical_divide_large<T: LayoutLike>(whole: &Plain, tile: &Plain) -> LawResult {
    judge("logical_divide_large", &[("whole", whole), ("tile", tile)], |case| {
        let tiling: Tiling<T> = Tiling::Layout(case.build(tile)?);
        let built: T = case.build(whole)?;
        let divided = case.large("logical_divide", built.logical_divide(&tiling))?;
        let halves = divided.modes();
        case.same("the rank of (tile, rest)", &halves.len(), &2)?;
        case.same("the size", &count(case, &divided)?, &count(case, whole)?)?;
        let through = |inner: &Plain, i| inner.index(i).and_then(|at| whole.index(at));
        follow(case, "the tile mode", &halves[0], tile, |i| through(tile, i))?;
        let Some(rest) = left_out(tile, count(case, whole)?) else { return Ok(()) };
        follow(case, "the rest mode", &halves[1], &rest, |i| through(&rest, i))
    })
}

/// Product of a large block: the first mode is the block, the second one iterates over the
/// complement of the block in the order of the tiler.
pub fn law_logical_product_large<T: LayoutLike>(block: &Plain, tiler: &Plain) -> LawResult {
    judge("logical_product_large", &[("block", block), ("tiler", tiler)], |case| {
        let tiling: Tiling<T> = Tiling::Layout(case.build(tiler)?);
        let built: T = case.build(block)?;
        let product = case.large("logical_product", built.logical_product(&tiling))?;
        let halves = product.modes();
        case.same("the rank of (block, copies)", &halves.len(), &2)?;
        agree(case, "the block mode", &halves[0], block)?;
        case.same("the number of copies", &count(case, &halves[1])?, &count(case, tiler)?)?;
        let Some(rest) = left_out(block, 1) else { return Ok(()) };
        follow(case, "the copies", &halves[1], tiler, |i| rest.index(tiler.index(i)?))
    })
}

/// The complement of a layout whose strides nest: each index up to `size` is a sum of an index of
/// each, once. Its leaves are the digits between the leaves of `a`; the last one is unbounded.
fn left_out(a: &Plain, size: i64) -> Option<Plain> {
    a.gaps()?;
    let mut leaves = a.leaves();
    leaves.retain(|&(extent, stride)| extent > 1 && stride != 0);
    leaves.sort_by_key(|&(_, stride)| stride);
    let (mut digits, mut reach) = (vec![], 1i64);
    for (extent, stride) in leaves {
        digits.push((stride / reach, reach));
        reach = extent.checked_mul(stride)?;
    }
    digits.push(((size / reach).max(1), reach));
    Some(Plain::flat(&digits))
}

/// Upcast and downcast of a large layout by `n`, where both are exact.
pub fn law_cast_large<T: LayoutLike>(a: &Plain, n: i64) -> LawResult {
    judge("cast_large", &[("a", a), ("n", &n)], |case| {
        let built: T = case.build(a)?;
        let up = case.large("upcast", built.upcast(n))?;
        same_elements(case, a, &up, n)?;
        let down = case.large("downcast", built.downcast(n))?;
        same_elements(case, &down, a, n)
    })
}

/// Requires that the first part of every element of `large` lies at `n` times its index in `small`.
fn same_elements(case: &Case<'_>, small: &Plain, large: &Plain, n: i64) -> Result<(), Stop> {
    case.holds("shapes are nested alike", small.shape.congruent(&large.shape))?;
    // The coordinate in `small`, leaf by leaf: its extents are multiples.
    let times: Vec<_> = small.leaves().into_iter().zip(large.leaves()).collect();
    let divides = times.iter().all(|((small, _), (large, _))| *large > 0 && small % large == 0);
    case.holds("an extent divides that of smaller elements", divides)?;
    let first: Vec<(i64, i64)> = times
        .iter()
        .map(|((extent, stride), (larger, _))| (*larger, stride.saturating_mul(extent / larger)))
        .collect();
    let first = Plain::flat(&first);
    follow(case, "the first part of an element", &first, large, |i| {
        large.index(i).and_then(|index| index.checked_mul(n))
    })
}
