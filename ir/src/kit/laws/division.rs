//! Checks laws of division, which splits a layout into tiles and a layout that iterates over them:
//! the tiles together cover every element, and each one once if the tile is injective.
//!
//! Invariant: the expected positions of tiles are found by enumeration: the next tile begins at the
//! smallest index that no tile before covers.

use crate::kit::answer::Answer;
use crate::kit::error::{Case, LawResult, Stop, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::Plain;
use crate::kit::tiling::Tiling;

/// The first `count` shifts of the image, in increasing order. Each shifted image begins at the
/// smallest free index, and they do not overlap. `None` if an index exceeds `limit`, or if tiles
/// collide.
pub(super) fn shifts(image: &[i64], count: usize, limit: usize) -> Option<Vec<i64>> {
    let mut covered = vec![];
    let mut shifts = Vec::with_capacity(count.min(limit));
    let mut free = 0;
    while shifts.len() < count {
        while covered.get(free) == Some(&true) {
            free += 1;
        }
        shifts.push(free as i64);
        for &index in image {
            let at = free + usize::try_from(index).ok()?;
            if at >= limit {
                return None;
            }
            if covered.len() <= at {
                covered.resize(at + 1, false);
            }
            if std::mem::replace(&mut covered[at], true) {
                return None;
            }
        }
    }
    Some(shifts)
}

/// The distinct indices of a layout.
pub(super) fn image(values: &[i64]) -> Vec<i64> {
    let mut image = values.to_vec();
    image.sort_unstable();
    image.dedup();
    image
}

/// Requires that `divided` is (`whole` after `tile`, rest), and that the tiles cover `whole` once.
fn divided(case: &Case<'_>, divided: &Plain, whole: &Plain, tile: &Plain) -> Result<(), Stop> {
    let halves = divided.modes();
    case.same("the rank of (tile, rest)", &halves.len(), &2)?;
    let (all, tile) = (case.values(whole)?, case.values(tile)?);
    case.agree(
        "the tile mode, which is `whole` after the tile",
        &case.values(&halves[0])?,
        &tile.iter().map(|&i| all[i as usize]).collect::<Vec<_>>(),
    )?;
    let image = image(&tile);
    let Some(starts) = shifts(&image, all.len() / image.len(), all.len()) else { return Ok(()) };
    let mut wanted = Vec::with_capacity(all.len());
    for start in starts {
        wanted.extend(tile.iter().map(|i| all[(i + start) as usize]));
    }
    case.agree("the element of (tile, rest)", &case.values(divided)?, &wanted)
}

/// Division by a layout or by mode: each divided mode is (tile, rest). The tile mode is the mode
/// after the tile. The tiles cover the mode, each element once if the tile is injective.
pub fn law_logical_divide<T: LayoutLike>(whole: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    judge("logical_divide", &[("whole", whole), ("tiler", tiler)], |case| {
        let tiling: Tiling<T> = case.must("build", tiler.build())?;
        let built: T = case.build(whole)?;
        let d = case.get("logical_divide", built.logical_divide(&tiling))?;
        match tiler {
            Tiling::Keep => case.agree("no change", &case.values(&d)?, &case.values(whole)?),
            Tiling::Layout(tile) => divided(case, &d, whole, tile),
            Tiling::Modes(tilers) => by_mode(case, &d, whole, tilers, divided),
        }
    })
}

/// Checks each mode that has a tile. The others must be unchanged.
pub(super) fn by_mode(
    case: &Case<'_>,
    result: &Plain,
    whole: &Plain,
    tilers: &[Tiling<Plain>],
    judge: impl Fn(&Case<'_>, &Plain, &Plain, &Plain) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let (modes, wholes) = (result.modes(), whole.modes());
    case.same("the rank", &modes.len(), &wholes.len())?;
    for (k, (mode, whole)) in modes.iter().zip(&wholes).enumerate() {
        match tilers.get(k) {
            Some(Tiling::Layout(tile)) => judge(case, mode, whole, tile)?,
            _ => case.agree("a mode left alone", &case.values(mode)?, &case.values(whole)?)?,
        }
    }
    Ok(())
}

/// Zipped division is logical division with the tiles before the rests.
pub fn law_zipped_divide<T: LayoutLike>(whole: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("zipped_divide", whole, tiler, T::logical_divide, T::zipped_divide, true)
}

/// Tiled division is zipped division with each rest as a mode.
pub fn law_tiled_divide<T: LayoutLike>(whole: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("tiled_divide", whole, tiler, T::logical_divide, T::tiled_divide, true)
}

/// Flat division is zipped division with each tile and each rest as a mode.
pub fn law_flat_divide<T: LayoutLike>(whole: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("flat_divide", whole, tiler, T::logical_divide, T::flat_divide, false)
}

type Operation<T> = fn(&T, &Tiling<T>) -> Answer<T>;

/// Requires that `operation` has the halves of `logical` in another order: all first halves, then
/// all second halves and the modes without a tiler. With `gathered`, the first halves are one mode.
pub(super) fn rearranged<T: LayoutLike>(
    law: &'static str,
    whole: &Plain,
    tiler: &Tiling<Plain>,
    logical: Operation<T>,
    operation: Operation<T>,
    gathered: bool,
) -> LawResult {
    judge(law, &[("whole", whole), ("tiler", tiler)], |case| {
        let tiling: Tiling<T> = case.must("build", tiler.build())?;
        let built: T = case.build(whole)?;
        let halved = case.get("the logical operation", logical(&built, &tiling))?;
        let (found, values) = case.table(law, operation(&built, &tiling))?;
        let (first, second) = match tiler {
            Tiling::Modes(tilers) => {
                let (mut first, mut second) = (vec![], vec![]);
                for (k, mode) in halved.modes().into_iter().enumerate() {
                    match (tilers.get(k), mode.modes().as_slice()) {
                        (Some(Tiling::Layout(_)), [a, b]) => {
                            first.push(a.clone());
                            second.push(b.clone());
                        }
                        // Libraries may place a kept mode as they like.
                        (Some(Tiling::Keep), _) => return Ok(()),
                        _ => second.push(mode),
                    }
                }
                (first, second)
            }
            _ => match halved.modes().as_slice() {
                [a, b] => (vec![a.clone()], vec![b.clone()]),
                _ => return Ok(()), // The law of the logical operation reports this.
            },
        };
        let halves = [Plain::concat(&first), Plain::concat(&second)];
        case.agree("the function", &values, &case.values(&Plain::concat(&halves))?)?;
        if gathered {
            let modes = found.modes();
            case.holds("two modes or more", modes.len() >= 2)?;
            case.agree("mode 0", &case.values(&modes[0])?, &case.values(&halves[0])?)?;
        }
        Ok(())
    })
}
