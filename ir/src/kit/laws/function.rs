//! Checks laws of building and evaluating a layout, of coalesce and flatten, which do not change
//! its function, and of filter, which keeps the function of the leaves with a nonzero stride.
//!
//! Invariant: these operations are defined for every layout, so a refusal breaks a law.

use crate::kit::answer::Answer;
use crate::kit::error::{LawResult, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{Plain, col_major};
use crate::tuple::IntTuple;

/// A layout that is built and read back is unchanged, except for strides of extent 1.
pub fn law_build<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("build", &[("a", a)], |case| {
        let built = T::build(&a.shape, &a.stride);
        let (back, values) = case.table("build", built)?;
        case.same("the shape", &back.shape, &a.shape)?;
        case.agree("the function", &values, &case.values(a)?)
    })
}

/// Evaluation at an index agrees with shape and stride.
pub fn law_eval<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("eval", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        for (i, &wanted) in case.values(a)?.iter().enumerate() {
            let found = case.must("eval", built.eval(i as i64))?;
            case.point("the value", || i.to_string(), found, wanted)?;
        }
        Ok(())
    })
}

/// Evaluation at a coordinate agrees with shape and stride: at full coordinates, at indices of
/// whole modes, and at one index.
pub fn law_eval_at<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("eval_at", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let values = case.values(a)?;
        let radix = col_major(&a.shape);
        for (i, &wanted) in values.iter().enumerate() {
            let full = digits(i as i64, &a.shape, &radix, usize::MAX);
            for depth in [0, 1, usize::MAX] {
                let coord = digits(i as i64, &a.shape, &radix, depth);
                if depth == 1 && coord == full {
                    continue;
                }
                let found = case.must("eval_at", built.eval_at(&coord))?;
                case.point("the value", || coord.to_string(), found, wanted)?;
            }
        }
        Ok(())
    })
}

/// The coordinate of an index, split `depth` levels deep; `radix` holds the compact strides.
fn digits(i: i64, shape: &IntTuple<i64>, radix: &IntTuple<i64>, depth: usize) -> IntTuple<i64> {
    match (shape, radix) {
        (IntTuple::Tuple(shapes), IntTuple::Tuple(radices)) if depth > 0 => {
            let parts = shapes.iter().zip(radices);
            IntTuple::Tuple(parts.map(|(d, r)| digits(i, d, r, depth - 1)).collect())
        }
        _ => {
            let size: i64 = shape.flatten().iter().product();
            IntTuple::Leaf(i / radix.flatten().first().copied().unwrap_or(1) % size)
        }
    }
}

/// Coalescing keeps the function. The result is flat, has no more leaves than before, and none that
/// continue each other. Coalescing again changes nothing.
pub fn law_coalesce<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("coalesce", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let once = case.must("coalesce", built.coalesce())?;
        let (c, values) = case.table("coalesce", Answer::Got(once.clone()))?;
        case.agree("the function", &values, &case.values(a)?)?;
        case.holds("flat", c.shape.depth() <= 1)?;
        let (leaves, before) = (c.leaves(), a.leaves());
        case.holds("no more leaves than before", leaves.len() <= before.len().max(1))?;
        let merged = leaves.windows(2).all(|pair| {
            pair[0].0 != 1 && pair[1].0 != 1 && pair[0].0.checked_mul(pair[0].1) != Some(pair[1].1)
        });
        case.holds("no neighbors are left to merge", merged)?;
        let twice = case.get("coalesce", once.coalesce())?;
        case.same("coalesced again", &twice, &c)
    })
}

/// Coalescing by a profile coalesces mode by mode.
pub fn law_coalesce_by<T: LayoutLike>(a: &Plain, profile: &IntTuple<i64>) -> LawResult {
    judge("coalesce_by", &[("a", a), ("profile", profile)], |case| {
        let built: T = case.build(a)?;
        let (c, values) = case.table("coalesce_by", built.coalesce_by(profile))?;
        case.agree("the function", &values, &case.values(a)?)?;
        case.holds("the profile is that of the result", profile.weakly_congruent(&c.shape))?;
        let (mut found, mut wanted) = (vec![], vec![]);
        parts(&c, profile, &mut found);
        parts(a, profile, &mut wanted);
        for (found, wanted) in found.iter().zip(&wanted) {
            case.holds("flat below the profile", found.shape.depth() <= 1)?;
            case.agree("a part's function", &case.values(found)?, &case.values(wanted)?)?;
        }
        Ok(())
    })
}

/// The parts of a layout at the leaves of a profile.
fn parts(a: &Plain, profile: &IntTuple<i64>, found: &mut Vec<Plain>) {
    match profile {
        IntTuple::Leaf(_) => found.push(a.clone()),
        IntTuple::Tuple(profiles) => {
            a.modes().iter().zip(profiles).for_each(|(a, p)| parts(a, p, found));
        }
    }
}

/// Filtering keeps the function of the leaves with a non-zero stride, and so the image.
pub fn law_filter<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("filter", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let (f, values) = case.table("filter", built.filter())?;
        let mut kept = a.leaves();
        kept.retain(|&(extent, stride)| extent > 1 && stride != 0);
        case.agree("the function", &values, &case.values(&Plain::flat(&kept))?)?;
        let no_zeros = f.leaves().iter().all(|&(extent, stride)| extent == 1 || stride != 0);
        case.holds("no leaf of stride 0 is left", no_zeros)
    })
}

/// Flattening keeps the leaves.
pub fn law_flatten<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("flatten", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let f = case.get("flatten", built.flatten())?;
        case.holds("flat", f.shape.depth() <= 1)?;
        case.same("the leaves", &Plain::flat(&f.leaves()), &Plain::flat(&a.leaves()))
    })
}
