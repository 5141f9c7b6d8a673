//! Layouts whose sizes and indices do not fit 32 bits, judged at chosen coordinates.
//!
//! Invariant: nothing is enumerated. What a layout has at a coordinate is computed digit by digit
//! in 128 bits ([`Plain::index`]), what it should have from the operands in the same way.
//! Invariant: the coordinates follow from the size alone, so that a failure repeats: the ends of
//! every leaf, the neighbors of 2^31, 2^32 and 2^53, and some that are spread over all.

use crate::kit::error::{Case, LawResult, Stop, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{Plain, col_major};
use crate::kit::tiling::Tiling;
use crate::tuple::IntTuple;

/// How many coordinates are spread over all.
const SPREAD: u64 = 24;

/// The coordinates of `a` to look at, each once.
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
    // Odd multiples of the golden ratio's bits: no stride meets all of them.
    let spread = |k: u64| (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 2) as i64 % size;
    at.extend((1..=SPREAD).map(spread));
    at.retain(|at| (0..size).contains(at));
    at.sort_unstable();
    at.dedup();
    at
}

/// Both have the same function, at the coordinates of `wanted` that are looked at.
fn agree(case: &Case<'_>, what: &str, found: &Plain, wanted: &Plain) -> Result<(), Stop> {
    case.same("the size", &count(case, found)?, &count(case, wanted)?)?;
    follow(case, what, found, wanted, |i| wanted.index(i))
}

/// `found` has at the coordinates of `over` what `wanted` says, where it says something.
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

/// A large layout is read back as it was built: strides of extent 1 aside.
pub fn law_build_large<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("build_large", &[("a", a)], |case| {
        let back = case.large("build", T::build(&a.shape, &a.stride))?;
        case.same("the shape", &back.shape, &a.shape)?;
        agree(case, "the function", &back, a)
    })
}

/// Evaluation of a large layout at an index is that of shape and stride.
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

/// Evaluation of a large layout at a full coordinate is that of shape and stride.
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

/// Coalescing a large layout keeps the function and is flat.
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

/// Filtering a large layout leaves the function of the leaves that are not broadcast.
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

/// The complement of a large layout whose strides nest: the leaves of both together, sorted by
/// stride, count through an interval without gap or overlap, which reaches `cotarget`; and it is
/// ordered.
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

/// `a(r(i)) == i` for a large bijection, inverted whole.
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

/// `second(first(i)) == i` at the coordinates of `over`.
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

/// Division of a large layout: the first mode is `whole` after the tile, the second `whole` after
/// what the tile leaves out.
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

/// Products with a large block: the first mode is the block, the second walks over what the block
/// leaves out as the tiler does.
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

/// The smallest indices that a layout whose strides nest leaves out, and that sums with its own
/// reach each index up to `size` once: the digits between its leaves, the last of them without
/// bound.
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

/// Groups of `n` elements of a large layout, and `n` parts of each element: both are exact
/// multiples.
pub fn law_cast_large<T: LayoutLike>(a: &Plain, n: i64) -> LawResult {
    judge("cast_large", &[("a", a), ("n", &n)], |case| {
        let built: T = case.build(a)?;
        let up = case.large("upcast", built.upcast(n))?;
        same_elements(case, a, &up, n)?;
        let down = case.large("downcast", built.downcast(n))?;
        same_elements(case, &down, a, n)
    })
}

/// The first part of every element of `large` lies at `n` times its index in `small`.
fn same_elements(case: &Case<'_>, small: &Plain, large: &Plain, n: i64) -> Result<(), Stop> {
    case.holds("shapes are nested alike", small.shape.congruent(&large.shape))?;
    // The same coordinate in `small`, leaf by leaf: its extents are multiples.
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
