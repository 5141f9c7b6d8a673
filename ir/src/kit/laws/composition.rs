//! Checks laws of composition, of new shapes for a layout, and of thread-value layouts composed
//! with the layout of a tile. Each result must be the composition of the two functions.
//!
//! Invariant: a point is checked only if the inner index is within the outer layout. Beyond it,
//! libraries extend their functions differently.

use crate::kit::error::{Case, Demand, LawResult, Stop, judge, judge_as};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{Plain, col_major, distinct, size_of};
use crate::kit::strategies::ThreadValue;
use crate::kit::tiling::Tiling;
use crate::tuple::IntTuple;

/// Composition is function composition, and its shape refines that of the inner layout.
pub fn law_composition<T: LayoutLike>(outer: &Plain, inner: &Plain, demand: Demand) -> LawResult {
    judge_as("composition", demand, &[("outer", outer), ("inner", inner)], |case| {
        let tile: Tiling<T> = Tiling::Layout(case.build(inner)?);
        let built: T = case.build(outer)?;
        let (c, values) = case.table("composition", built.composition(&tile))?;
        composed(case, &c.shape, &values, outer, inner)
    })
}

/// Requires that `values` are those of `outer` after `inner`, and that `shape` refines the shape of
/// `inner`.
fn composed(
    case: &Case<'_>,
    shape: &IntTuple<i64>,
    values: &[i64],
    outer: &Plain,
    inner: &Plain,
) -> Result<(), Stop> {
    let (outer, at) = (case.values(outer)?, case.values(inner)?);
    case.same("number of coordinates", &values.len(), &at.len())?;
    for (i, (&found, &at)) in values.iter().zip(&at).enumerate() {
        if let Some(&wanted) = usize::try_from(at).ok().and_then(|at| outer.get(at)) {
            case.point("the function", || i.to_string(), found, wanted)?;
        }
    }
    case.holds("every coordinate of `inner` is one of the result", refines(&inner.shape, shape))
}

/// Whether `b` has the size of `a` at each leaf of `a`.
pub(super) fn refines(a: &IntTuple<i64>, b: &IntTuple<i64>) -> bool {
    match (a, b) {
        (IntTuple::Leaf(extent), _) => size_of(b) == Some(*extent),
        (IntTuple::Tuple(a), IntTuple::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| refines(a, b))
        }
        _ => false,
    }
}

/// Composition by mode composes each mode with its own layout. A mode with [`Tiling::Keep`] stays
/// unchanged. Modes beyond the tiler may stay or be dropped.
pub fn law_composition_by_mode<T: LayoutLike>(outer: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    judge("composition_by_mode", &[("outer", outer), ("tiler", tiler)], |case| {
        let tiling: Tiling<T> = case.must("build", tiler.build())?;
        let built: T = case.build(outer)?;
        let c = case.get("composition by mode", built.composition(&tiling))?;
        let (modes, outers) = (c.modes(), outer.modes());
        let Tiling::Modes(tilers) = tiler else { return Ok(()) };
        let rank = if modes.len() == tilers.len() { tilers.len() } else { outers.len() };
        case.same("the rank", &modes.len(), &rank)?;
        for (k, (mode, outer)) in modes.iter().zip(&outers).enumerate() {
            let values = case.values(mode)?;
            match tilers.get(k) {
                Some(Tiling::Layout(inner)) => composed(case, &mode.shape, &values, outer, inner)?,
                _ => case.agree("a mode left alone", &values, &case.values(outer)?)?,
            }
        }
        Ok(())
    })
}

/// A new shape does not change the function.
pub fn law_with_shape<T: LayoutLike>(a: &Plain, shape: &IntTuple<i64>) -> LawResult {
    judge("with_shape", &[("a", a), ("shape", shape)], |case| {
        let built: T = case.build(a)?;
        let (c, values) = case.table("with_shape", built.with_shape(shape))?;
        let inner = Plain::new(shape.clone(), col_major(shape));
        composed(case, &c.shape, &values, a, &inner)
    })
}

/// A thread-value layout composed with the layout of a tile gives every thread its elements. If the
/// layout is injective, the right inverse gives the thread and value of each element.
pub fn law_thread_value<T: LayoutLike>(tv: &ThreadValue) -> LawResult {
    let layout = &tv.layout;
    judge("thread_value", &[("tile", &tv.tile), ("thread-value layout", layout)], |case| {
        let built: T = case.build(layout)?;
        let values = case.values(layout)?;
        // The elements of the tile in row-major order.
        let mut next = 1;
        let mut data: Vec<(i64, i64)> = tv.tile.flatten().iter().map(|&e| (e, 0)).collect();
        for leaf in data.iter_mut().rev() {
            leaf.1 = next;
            next *= leaf.0;
        }
        let data = Plain::flat(&data);
        if distinct(&values) {
            let (_, inverse) = case.table("right_inverse", built.right_inverse())?;
            case.same("number of elements", &inverse.len(), &values.len())?;
            for (element, &at) in inverse.iter().enumerate() {
                let found = usize::try_from(at).ok().and_then(|at| values.get(at));
                let what = "the element at the place of an element";
                case.point(what, || element.to_string(), *found.unwrap_or(&-1), element as i64)?;
            }
        }
        // Column-major data has the order of the tile, so the composition always exists.
        let column = Plain::new(tv.tile.clone(), col_major(&tv.tile));
        let column_values = case.values(&column)?;
        let tile: T = case.build(&column)?;
        let (c, found) =
            case.table("composition", tile.composition(&Tiling::Layout(built.clone())))?;
        let wanted: Vec<i64> = values.iter().map(|&i| column_values[i as usize]).collect();
        case.agree("the element of a thread", &found, &wanted)?;
        case.holds("the rank stays", c.shape.rank() == layout.shape.rank())?;
        // With row-major data the function may not be a layout. If it is, it must be exact.
        let rows: T = case.build(&data)?;
        let by_thread = rows.composition(&Tiling::Layout(built));
        if let crate::kit::Answer::Got(found) = by_thread {
            let (found, table) = (found.plain(), case.values(&data)?);
            let wanted: Vec<i64> = values.iter().map(|&i| table[i as usize]).collect();
            case.agree("the element of a thread, row-major", &case.values(&found)?, &wanted)?;
        }
        Ok(())
    })
}
