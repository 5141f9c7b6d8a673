//! Checks laws of the product of layouts, which repeats a layout (the block) at the positions of
//! another layout (the tiler).
//!
//! Invariant: expected positions are found by enumeration, not by the algebra. Position `j` is the
//! smallest shift at which the block does not overlap the blocks at the positions before it. Copy
//! `y` of the block must be at position `tiler(y)`.

use super::division::{by_mode, image, rearranged, shifts};
use crate::kit::answer::Answer;
use crate::kit::error::{Case, LawResult, Stop, judge};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{MAX_POINTS, Plain, distinct};
use crate::kit::tiling::Tiling;

/// Requires that the value at `at(x, y)` is copy `y` of the block at `x`, that copies do not
/// overlap, and that they lie at the places of the tiler.
fn copies(
    case: &Case<'_>,
    values: &[i64],
    block: &Plain,
    tiler: &Plain,
    at: impl Fn(usize, usize) -> usize,
) -> Result<(), Stop> {
    let (block, tiler) = (case.values(block)?, case.values(tiler)?);
    case.same("number of coordinates", &values.len(), &(block.len() * tiler.len()))?;
    let offsets: Vec<i64> = (0..tiler.len()).map(|y| values[at(0, y)]).collect();
    for (y, offset) in offsets.iter().enumerate() {
        for (x, index) in block.iter().enumerate() {
            let what = "the copy of an element";
            case.point(what, || format!("({x}, {y})"), values[at(x, y)], index + offset)?;
        }
    }
    let image = image(&block);
    let count = tiler.iter().max().map_or(0, |most| most + 1) as usize;
    if let Some(places) = shifts(&image, count, MAX_POINTS / 8) {
        let wanted: Vec<i64> = tiler.iter().map(|&place| places[place as usize]).collect();
        return case.agree("the place of a copy", &offsets, &wanted);
    }
    let starts = self::image(&offsets);
    if starts.len() * image.len() <= MAX_POINTS {
        let sums = starts.iter().flat_map(|start| image.iter().map(move |index| start + index));
        case.holds("copies keep clear of each other", distinct(&sums.collect::<Vec<_>>()))?;
    }
    Ok(())
}

fn multiplied(case: &Case<'_>, p: &Plain, block: &Plain, tiler: &Plain) -> Result<(), Stop> {
    case.same("the rank of (block, copies)", &p.shape.rank(), &2)?;
    let n = block.count() as usize;
    copies(case, &case.values(p)?, block, tiler, |x, y| x + n * y)
}

/// Mode 0 of a product is the block. Mode 1 iterates over copies of it, in the order of the tiler.
pub fn law_logical_product<T: LayoutLike>(block: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    judge("logical_product", &[("block", block), ("tiler", tiler)], |case| {
        let tiling: Tiling<T> = case.must("build", tiler.build())?;
        let built: T = case.build(block)?;
        let p = case.get("logical_product", built.logical_product(&tiling))?;
        match tiler {
            Tiling::Keep => case.agree("no change", &case.values(&p)?, &case.values(block)?),
            Tiling::Layout(tiler) => multiplied(case, &p, block, tiler),
            Tiling::Modes(tilers) => by_mode(case, &p, block, tilers, multiplied),
        }
    })
}

/// The zipped product is the logical product with the blocks before the copies.
pub fn law_zipped_product<T: LayoutLike>(block: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("zipped_product", block, tiler, T::logical_product, T::zipped_product, true)
}

/// The tiled product is the zipped product with each group of copies as a mode.
pub fn law_tiled_product<T: LayoutLike>(block: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("tiled_product", block, tiler, T::logical_product, T::tiled_product, true)
}

/// The flat product is the zipped product with each block mode and each group of copies as a mode.
pub fn law_flat_product<T: LayoutLike>(block: &Plain, tiler: &Tiling<Plain>) -> LawResult {
    rearranged("flat_product", block, tiler, T::logical_product, T::flat_product, false)
}

/// The blocked product is the product in which the block varies fastest in mode `k`.
pub fn law_blocked_product<T: LayoutLike>(block: &Plain, tiler: &Plain) -> LawResult {
    zipped_modes("blocked_product", block, tiler, T::blocked_product, true)
}

/// The raked product is the product in which the copies vary fastest in mode `k`.
pub fn law_raked_product<T: LayoutLike>(block: &Plain, tiler: &Plain) -> LawResult {
    zipped_modes("raked_product", block, tiler, T::raked_product, false)
}

fn zipped_modes<T: LayoutLike>(
    law: &'static str,
    block: &Plain,
    tiler: &Plain,
    operation: fn(&T, &T) -> Answer<T>,
    block_first: bool,
) -> LawResult {
    judge(law, &[("block", block), ("tiler", tiler)], |case| {
        let (built, by): (T, T) = (case.build(block)?, case.build(tiler)?);
        let (found, values) = case.table(law, operation(&built, &by))?;
        let extents = |p: &Plain| p.modes().iter().map(Plain::count).collect::<Vec<_>>();
        let (blocks, tilers) = (extents(block), extents(tiler));
        let rank = blocks.len().max(tilers.len());
        case.same("the rank", &found.shape.rank(), &rank)?;
        // The weight of each mode of both operands in an index of the result.
        let (mut of_block, mut of_tiler, mut next) = (vec![], vec![], 1i64);
        for k in 0..rank {
            let extent = |all: &[i64]| all.get(k).copied().unwrap_or(1);
            let (b, t) = (extent(&blocks), extent(&tilers));
            let (first, second) = if block_first { (next, next * b) } else { (next * t, next) };
            of_block.push((b, first));
            of_tiler.push((t, second));
            next *= b * t;
        }
        let weights = |leaves: &[(i64, i64)]| case.values(&Plain::flat(leaves));
        let (x_at, y_at) = (weights(&of_block)?, weights(&of_tiler)?);
        copies(case, &values, block, tiler, |x, y| (x_at[x] + y_at[y]) as usize)
    })
}

/// A shape filled with consecutive copies of a bijective block, first mode first.
pub fn law_tile_to_shape<T: LayoutLike>(
    block: &Plain,
    shape: &crate::tuple::IntTuple<i64>,
) -> LawResult {
    judge("tile_to_shape", &[("block", block), ("shape", shape)], |case| {
        let built: T = case.build(block)?;
        let (found, values) = case.table("tile_to_shape", built.tile_to_shape(shape))?;
        case.same("the rank", &found.shape.rank(), &shape.rank())?;
        let (mut of_block, mut of_copy, mut copy, mut next) = (vec![], vec![], vec![], 1i64);
        let mut copies_before = 1i64;
        for (mode, extent) in block.modes().iter().zip(shape.flatten()) {
            let count = mode.count();
            of_block.push((count, next));
            of_copy.push((extent / count, next * count));
            copy.push((extent / count, copies_before));
            copies_before *= extent / count;
            next *= extent;
        }
        let weights = |leaves: &[(i64, i64)]| case.values(&Plain::flat(leaves));
        let (x_at, y_at) = (weights(&of_block)?, weights(&of_copy)?);
        copies(case, &values, block, &Plain::flat(&copy), |x, y| (x_at[x] + y_at[y]) as usize)
    })
}
