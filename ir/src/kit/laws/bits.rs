//! Checks laws about the bits in memory: recasts (a view as elements of another width), common
//! vectors (the longest run that is consecutive in two layouts) and swizzles.
//!
//! Invariant: both sides of a recast name the same bits. If `n` elements of the smaller type make
//! one of the larger type, the index of a small element divided by `n` is the index of the large
//! element that contains it.

use crate::kit::error::{Case, Demand, LawResult, Stop, judge, judge_as};
use crate::kit::like::{Bits, LayoutLike};
use crate::kit::plain::Plain;

/// Requires that `small` and `large` describe one memory: `n` elements of `small` make one of
/// `large`. The leaves of both differ only in extents. For every coordinate of `small`, its index
/// divided by `n` is the index in `large`. With `whole`, the remainder counts the parts in order.
fn same_memory(
    case: &Case<'_>,
    small: &Plain,
    large: &Plain,
    n: i64,
    whole: bool,
) -> Result<(), Stop> {
    case.holds("shapes are nested alike", small.shape.congruent(&large.shape))?;
    let mut wanted = vec![0i64];
    for ((extent, _), (larger, stride)) in small.leaves().into_iter().zip(large.leaves()) {
        case.holds("an extent divides that of smaller elements", extent % larger == 0)?;
        let parts = extent / larger;
        let before = wanted.len();
        for digit in 1..extent {
            let step = (digit / parts).wrapping_mul(stride).wrapping_mul(n);
            let part = if whole { digit % parts } else { 0 };
            for k in 0..before {
                wanted.push(wanted[k].wrapping_add(step).wrapping_add(part));
            }
        }
    }
    let mut found = case.values(small)?;
    if !whole {
        found.iter_mut().for_each(|index| *index -= index.rem_euclid(n));
    }
    case.agree("the memory of an element", &found, &wanted)
}

/// Requires the correct number of parts: the leaf of stride 1 has `n` times as many elements after
/// a downcast.
fn parts_counted(case: &Case<'_>, small: &Plain, large: &Plain, n: i64) -> Result<(), Stop> {
    let splits = large.leaves().iter().any(|&(_, stride)| stride == 1);
    let wanted = large.count() * if splits { n } else { 1 };
    case.same("the number of parts", &small.count(), &wanted)
}

/// Upcast by `n`: element `x` lies in the group whose index is the index of `x`, divided by `n`.
pub fn law_upcast<T: LayoutLike>(a: &Plain, n: i64) -> LawResult {
    judge("upcast", &[("a", a), ("n", &n)], |case| {
        let built: T = case.build(a)?;
        let large = case.get("upcast", built.upcast(n))?;
        same_memory(case, a, &large, n, false)
    })
}

/// Without a mode of stride 1 the parts of an element have no coordinate, so a refusal is
/// permitted.
fn parts_of(a: &Plain, n: i64) -> Demand {
    let split = n == 1 || a.leaves().iter().any(|&(_, stride)| stride == 1);
    if split { Demand::Answer } else { Demand::ExactOrRefuse }
}

/// Downcast by `n`: the parts of the element at `i` are at `n * i`, `n * i + 1`, ...
pub fn law_downcast<T: LayoutLike>(a: &Plain, n: i64) -> LawResult {
    judge_as("downcast", parts_of(a, n), &[("a", a), ("n", &n)], |case| {
        let built: T = case.build(a)?;
        let small = case.get("downcast", built.downcast(n))?;
        parts_counted(case, &small, a, n)?;
        same_memory(case, &small, a, n, true)
    })
}

/// A recast names the same bits in elements of another width.
pub fn law_recast<T: LayoutLike>(a: &Plain, old_bits: i64, new_bits: i64) -> LawResult {
    let inputs: [(&'static str, &dyn std::fmt::Display); 3] =
        [("a", a), ("old bits", &old_bits), ("new bits", &new_bits)];
    let parts = if new_bits >= old_bits { 1 } else { old_bits / new_bits };
    judge_as("recast", parts_of(a, parts), &inputs, |case| {
        let built: T = case.build(a)?;
        let other = case.get("recast", built.recast(old_bits, new_bits))?;
        if new_bits >= old_bits {
            return same_memory(case, a, &other, new_bits / old_bits, false);
        }
        parts_counted(case, &other, a, old_bits / new_bits)?;
        same_memory(case, &other, a, old_bits / new_bits, true)
    })
}

/// The common layout maps to the indices 0, 1, 2, ... in both layouts.
pub fn law_max_common_layout<T: LayoutLike>(a: &Plain, b: &Plain) -> LawResult {
    judge("max_common_layout", &[("a", a), ("b", b)], |case| {
        let (left, right): (T, T) = (case.build(a)?, case.build(b)?);
        let (_, common) = case.table("max_common_layout", left.max_common_layout(&right))?;
        for of in [a, b] {
            let values = case.values(of)?;
            for (i, &at) in common.iter().enumerate() {
                let found = usize::try_from(at).ok().and_then(|at| values.get(at)).copied();
                let what = "the index at a common coordinate";
                case.point(what, || i.to_string(), found.unwrap_or(-1), i as i64)?;
            }
        }
        if a == b && a.injective() && a.cosize() == a.count() {
            case.same("the size, of one bijection", &(common.len() as i64), &a.count())?;
        }
        Ok(())
    })
}

/// The common vector is at most as long as the run of indices with equal coordinates in both
/// layouts. For a bijection and itself it is the whole layout.
pub fn law_max_common_vector<T: LayoutLike>(a: &Plain, b: &Plain) -> LawResult {
    judge("max_common_vector", &[("a", a), ("b", b)], |case| {
        let (left, right): (T, T) = (case.build(a)?, case.build(b)?);
        let n = case.must("max_common_vector", left.max_common_vector(&right))?;
        let (x, y) = (case.values(a)?, case.values(b)?);
        let together = |i: i64| x.iter().zip(&y).any(|(&x, &y)| x == i && y == i);
        let longest = (0..x.len() as i64).take_while(|&i| together(i)).count() as i64;
        case.holds("1 or more", n >= 1)?;
        case.same("no longer than the common run", &n, &n.min(longest.max(1)))?;
        if a == b && a.injective() && a.cosize() == a.count() {
            case.same("the length, of one bijection", &n, &a.count())?;
        }
        Ok(())
    })
}

/// The result of a swizzle, by its definition.
fn swizzled(swizzle: Bits, index: i64) -> i64 {
    let mask = ((1i64 << swizzle.bits) - 1) << swizzle.base;
    index ^ ((index >> swizzle.shift) & mask)
}

/// A swizzle equals its definition, is its own inverse, and permutes each of its periods.
pub fn law_swizzle<T: LayoutLike>(swizzle: Bits, index: i64) -> LawResult {
    judge("swizzle", &[("swizzle", &swizzle), ("index", &index)], |case| {
        let apply = |index| case.must("swizzle", T::swizzle(swizzle, index));
        let moved = apply(index)?;
        case.same("the index", &moved, &swizzled(swizzle, index))?;
        case.same("the index moved twice", &apply(moved)?, &index)?;
        let period = 1i64 << (swizzle.bits + swizzle.base + swizzle.shift);
        case.same("the period of the index", &(moved / period), &(index / period))?;
        case.same(
            "an index below the base",
            &(moved % (1 << swizzle.base)),
            &(index % (1 << swizzle.base)),
        )
    })
}

/// A swizzled layout applies the layout, then adds the offset, then applies the swizzle.
pub fn law_swizzled_eval<T: LayoutLike>(swizzle: Bits, offset: i64, a: &Plain) -> LawResult {
    judge("swizzled_eval", &[("swizzle", &swizzle), ("offset", &offset), ("a", a)], |case| {
        let built: T = case.build(a)?;
        for (i, &index) in case.values(a)?.iter().enumerate() {
            let found = built.swizzled_eval(swizzle, offset, i as i64);
            let found = case.must("swizzled_eval", found)?;
            case.point("the value", || i.to_string(), found, swizzled(swizzle, offset + index))?;
        }
        Ok(())
    })
}

/// A swizzle equals its definition at any index, and applying it twice is the identity.
pub fn law_swizzle_involution<T: LayoutLike>(swizzle: Bits, index: i64) -> LawResult {
    judge("swizzle_involution", &[("swizzle", &swizzle), ("index", &index)], |case| {
        let moved = case.must("swizzle", T::swizzle(swizzle, index))?;
        case.same("the index", &moved, &swizzled(swizzle, index))?;
        let back = case.must("swizzle", T::swizzle(swizzle, moved))?;
        case.same("the index moved twice", &back, &index)
    })
}

/// A swizzle permutes the period of `index`.
pub fn law_swizzle_bijection<T: LayoutLike>(swizzle: Bits, index: i64) -> LawResult {
    judge("swizzle_bijection", &[("swizzle", &swizzle), ("index", &index)], |case| {
        let period = 1i64 << (swizzle.bits + swizzle.base + swizzle.shift);
        let begin = index - index.rem_euclid(period);
        let mut seen = vec![false; period as usize];
        for i in begin..begin + period {
            let moved = case.must("swizzle", T::swizzle(swizzle, i))?;
            let place = usize::try_from(moved - begin).ok().and_then(|at| seen.get_mut(at));
            let Some(place) = place else {
                let wanted = format!("{begin} to {}", begin + period - 1);
                return Err(case.broken(
                    "an index of the period",
                    Some(i.to_string()),
                    &moved,
                    &wanted,
                ));
            };
            if std::mem::replace(place, true) {
                let found = format!("{moved} again");
                return Err(case.broken(
                    "an index of the period",
                    Some(i.to_string()),
                    &found,
                    &"each once",
                ));
            }
        }
        Ok(())
    })
}

/// A recast swizzle moves elements of another width together with their memory.
pub fn law_swizzle_recast<T: LayoutLike>(swizzle: Bits, old_bits: u32, new_bits: u32) -> LawResult {
    let inputs: [(&'static str, &dyn std::fmt::Display); 3] =
        [("swizzle", &swizzle), ("old bits", &old_bits), ("new bits", &new_bits)];
    judge("swizzle_recast", &inputs, |case| {
        let answer = T::swizzle_recast(swizzle, old_bits, new_bits);
        let other = case.must("swizzle_recast", answer)?;
        let (small, large, n) = if new_bits <= old_bits {
            (other, swizzle, i64::from(old_bits / new_bits))
        } else {
            (swizzle, other, i64::from(new_bits / old_bits))
        };
        let reach = small.bits + small.base + small.shift;
        case.holds("the swizzle reaches no further than 30 bits", reach <= 30)?;
        // One period shows all three fields. For a long period its ends and some indices between
        // are sufficient.
        let period = 1i64 << reach;
        let step = (period / 4096).max(1) | 1;
        for i in (0..period).step_by(step as usize) {
            let wanted = swizzled(large, i / n) * n + i % n;
            case.point("the element", || i.to_string(), swizzled(small, i), wanted)?;
        }
        Ok(())
    })
}

/// A composition with a swizzled layout applies the inner layout, the outer layout, the offset and
/// the swizzle, in this order.
pub fn law_swizzled_composition<T: LayoutLike>(
    swizzle: Bits,
    offset: i64,
    outer: &Plain,
    inner: &Plain,
) -> LawResult {
    let inputs: [(&'static str, &dyn std::fmt::Display); 4] =
        [("swizzle", &swizzle), ("offset", &offset), ("outer", outer), ("inner", inner)];
    judge("swizzled_composition", &inputs, |case| {
        let (left, right): (T, T) = (case.build(outer)?, case.build(inner)?);
        let table = case.values(outer)?;
        for (i, &at) in case.values(inner)?.iter().enumerate() {
            let found = left.swizzled_composition(swizzle, offset, &right, i as i64);
            let found = case.must("swizzled_composition", found)?;
            let Some(index) = usize::try_from(at).ok().and_then(|at| table.get(at)) else {
                continue;
            };
            case.point("the value", || i.to_string(), found, swizzled(swizzle, offset + index))?;
        }
        Ok(())
    })
}
