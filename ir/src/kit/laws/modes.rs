//! Checks laws of operations that group or select modes: group, concatenate, slice and dice.
//!
//! The result of group and concatenate must be the expected layout, with its nesting: leaves keep
//! their extents, strides and order. The laws of slice and dice compare only values, with those of
//! the selected modes in their order, so a library may nest the result as it likes.

use crate::kit::error::{LawResult, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::Plain;
use crate::tuple::IntTuple;

/// Grouping combines a range of modes into one and keeps the function.
pub fn law_group<T: LayoutLike>(a: &Plain, begin: usize, end: usize) -> LawResult {
    judge("group", &[("a", a), ("begin", &begin), ("end", &end)], |case| {
        let built: T = case.build(a)?;
        let g = case.get("group", built.group(begin, end))?;
        let mut modes = a.modes();
        let inner: Vec<_> = modes.drain(begin..end).collect();
        modes.insert(begin, Plain::concat(&inner));
        case.same("the layout", &g, &Plain::concat(&modes))
    })
}

/// The modes of a concatenation are the concatenated layouts. Its index is the sum of their
/// indices.
pub fn law_concat<T: LayoutLike>(a: &Plain, b: &Plain) -> LawResult {
    judge("concat", &[("a", a), ("b", b)], |case| {
        let both = [case.build::<T>(a)?, case.build::<T>(b)?];
        let (c, values) = case.table("concat", T::concat(&both))?;
        let (left, right) = (case.values(a)?, case.values(b)?);
        let sums = right.iter().flat_map(|r| left.iter().map(move |l| l + r));
        case.agree("the function", &values, &sums.collect::<Vec<_>>())?;
        case.same("the layout", &c, &Plain::concat(&[a.clone(), b.clone()]))
    })
}

/// The parts of a layout, separated into holes and fixed parts of the coordinate.
fn split(a: &Plain, coord: &IntTuple<Option<i64>>, open: &mut Vec<Plain>, fixed: &mut Vec<Plain>) {
    match coord {
        IntTuple::Leaf(None) => open.push(a.clone()),
        IntTuple::Leaf(Some(_)) => fixed.push(a.clone()),
        IntTuple::Tuple(coords) => {
            a.modes().iter().zip(coords).for_each(|(a, c)| split(a, c, open, fixed));
        }
    }
}

fn text(coord: &IntTuple<Option<i64>>) -> String {
    coord.map(&mut |c| c.map_or("_".to_owned(), |c| c.to_string())).to_string()
}

/// A slice has the modes with holes in the coordinate, in order.
pub fn law_slice<T: LayoutLike>(a: &Plain, coord: &IntTuple<Option<i64>>) -> LawResult {
    judge("slice", &[("a", a), ("coord", &text(coord))], |case| {
        let built: T = case.build(a)?;
        let (mut open, mut fixed) = (vec![], vec![]);
        split(a, coord, &mut open, &mut fixed);
        let (_, values) = case.table("slice", built.slice(coord))?;
        case.agree("the function of open modes", &values, &case.values(&Plain::concat(&open))?)
    })
}

/// A dice has the modes with numbers in the coordinate. Slice and dice together are the whole
/// layout.
pub fn law_dice<T: LayoutLike>(a: &Plain, coord: &IntTuple<Option<i64>>) -> LawResult {
    judge("dice", &[("a", a), ("coord", &text(coord))], |case| {
        let built: T = case.build(a)?;
        let (mut open, mut fixed) = (vec![], vec![]);
        split(a, coord, &mut open, &mut fixed);
        let (_, values) = case.table("dice", built.dice(coord))?;
        case.agree("the function of fixed modes", &values, &case.values(&Plain::concat(&fixed))?)
    })
}
