//! Chooses layouts of shared tensors that matrix descriptors name ([`open`]).
//!
//! An instruction that finds a tile by a descriptor accepts few layouts
//! ([`carbyne_atoms::descriptor`]): rows as wide as a swizzle mode, along k or along m or n, and
//! groups of eight rows. An open tensor gets the one of these that every descriptor names and that
//! serves its other accesses best.

use super::copy::Candidate;
use super::shared::{self, Accesses, Found};
use super::smem::{self, Run};
use super::tv::{join, mode};
use super::unfit::Unfit;
use crate::access::ops;
use carbyne_atoms::descriptor::{MatrixRule, SwizzleMode, derive};
use carbyne_atoms::{AtomOperand, AtomTable};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, TensorId};

/// A factor in shared memory of which an instruction takes tiles by descriptors.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Demand {
    /// The factor.
    pub(super) tensor: TensorId,
    /// Extents of the tile.
    tile: [i64; 2],
    rule: MatrixRule,
}

impl Demand {
    /// That of an operand of a row; none where it takes no descriptor.
    pub(crate) fn new(tensor: TensorId, operand: &AtomOperand) -> Option<Self> {
        let tile = operand.tile.as_slice().try_into().ok()?;
        Some(Demand { tensor, tile, rule: operand.matrix_rule()? })
    }

    /// Whether a descriptor names every tile of the factor, where its tensor lies so.
    fn holds(&self, p: &Program, layout: &Layout, swizzle: Option<Swizzle>) -> bool {
        let bits = p.scalar_of(self.tensor).bits();
        let Some(own) = ops::whole(p, self.tensor).and_then(|own| layout.compose(&own).ok()) else {
            return false;
        };
        let (Some(extents), [m, k]) = (ops::extents(p, self.tensor), self.tile) else {
            return false;
        };
        let &[rows, columns] = &extents[..] else { return false };
        if rows % m != 0 || columns % k != 0 {
            return false;
        }
        let first = join_modes(&[mode(m, 1), mode(k, rows)]);
        let tile = first.and_then(|first| own.compose(&first).ok());
        let descriptor =
            tile.and_then(|tile| derive(&tile, swizzle, bits, &self.tile, &self.rule).ok());
        let Some(descriptor) = descriptor else { return false };
        let starts =
            (0..rows / m).flat_map(|i| (0..columns / k).map(move |j| i * m + j * k * rows));
        starts.into_iter().all(|at| descriptor.may_start_at(own.at(at) * bits / 8))
    }
}

/// Two modes, each of which may have several leaves.
fn join_modes(modes: &[Layout]) -> Option<Layout> {
    Layout::concat(modes).ok()
}

/// Whether a layout of the tensor may serve an instruction that takes tiles of it so: the one that
/// it has, or one that it may get.
pub(super) fn is_served(p: &Program, demand: &Demand) -> bool {
    let id = p.tensors[demand.tensor].buffer;
    let buffer = &p.buffers[id];
    if buffer.open {
        return !layouts(p, id, &[*demand]).is_empty();
    }
    // The offsets of a view are those in memory already.
    let Some(own) = ops::whole(p, demand.tensor) else { return false };
    demand.holds(p, &mode(own.cosize().max(1), 1), buffer.swizzle)
}

/// Layouts of an open tensor that descriptors name, widest rows first.
pub(crate) fn layouts(
    p: &Program,
    id: BufferId,
    demands: &[Demand],
) -> Vec<(Layout, Option<Swizzle>)> {
    let buffer = &p.buffers[id];
    let shape = ops::extents(p, buffer.tensor).unwrap_or_default();
    let [outer @ .., first, second] = &shape[..] else { return vec![] };
    let bits = buffer.scalar.bits();
    let mut out = vec![];
    for rows in SwizzleMode::ALL.into_iter().rev() {
        let swizzle = Some(rows.swizzle()).filter(|s| !s.is_none());
        if buffer.swizzle.is_some() && buffer.swizzle != swizzle {
            continue;
        }
        for along_second in [false, true] {
            let (row, lines) = if along_second { (*second, *first) } else { (*first, *second) };
            let width = rows.width() * 8 / bits;
            let tile = first.saturating_mul(*second);
            if row % width != 0 || !outer.is_empty() && tile * bits / 8 % rows.period() != 0 {
                continue;
            }
            let of_row = join(&[mode(width, 1), mode(row / width, width.saturating_mul(lines))]);
            let Ok(of_row) = of_row else { continue };
            let of_lines = mode(lines, width);
            let mut modes = vec![];
            let mut step = tile;
            for n in outer {
                modes.push(mode(*n, step));
                step = step.saturating_mul(*n);
            }
            modes.extend(if along_second { [of_lines, of_row] } else { [of_row, of_lines] });
            let Some(layout) = join_modes(&modes) else { continue };
            if demands.iter().all(|d| d.holds(p, &layout, swizzle)) {
                out.push((layout, swizzle));
            }
        }
    }
    out
}

/// The best layout of an open tensor that descriptors name; or why none serves all accesses.
pub(super) fn open(
    p: &Program,
    table: &AtomTable,
    id: BufferId,
    accesses: &Accesses<'_>,
    demands: &[Demand],
) -> Result<Found, Unfit> {
    let mut best: Option<(f64, Found)> = None;
    let mut why = Unfit::NoDescriptor;
    for (layout, swizzle) in layouts(p, id, demands) {
        match served(p, table, (id, &layout, swizzle), accesses) {
            Ok((cost, found)) if best.as_ref().is_none_or(|(least, _)| cost < *least) => {
                best = Some((cost, found));
            }
            Ok(_) => {}
            Err(other) => why = other,
        }
    }
    best.map(|(_, found)| found).ok_or(why)
}

/// The cheapest candidate of each access in a layout.
fn served(
    p: &Program,
    table: &AtomTable,
    (id, layout, swizzle): (BufferId, &Layout, Option<Swizzle>),
    accesses: &Accesses<'_>,
) -> Result<(f64, Found), Unfit> {
    shared::cut(p, id, layout)?;
    let bits = p.buffers[id].scalar.bits();
    let (mut picks, mut wavefronts, mut sum) = (vec![], vec![], 0.0);
    for (op, list) in accesses {
        let mut best: Option<(f64, usize, f64)> = None;
        for (i, c) in list.iter().enumerate() {
            if !is_consecutive(c, layout) || shared::written(p, op, c, id, layout).is_err() {
                continue;
            }
            let all = shared::access(p, op, c, id, bits).map_or(0.0, |access| {
                smem::wavefronts(layout, swizzle, bits, &[access], shared::banks(table))
            });
            let cost = c.cost * op.trips as f64 + all;
            if best.is_none_or(|(least, ..)| cost < least) {
                best = Some((cost, i, all));
            }
        }
        let (cost, pick, all) = best.ok_or(Unfit::NoDescriptor)?;
        sum += cost;
        picks.push(pick);
        wavefronts.push(all);
    }
    Ok((sum, Found { picks, layout: layout.clone(), swizzle, wavefronts }))
}

/// Whether what one instruction of a candidate takes lies side by side.
fn is_consecutive(c: &Candidate, layout: &Layout) -> bool {
    let holds = |run: &Run| {
        let mut stride = 1i64;
        run.iter().all(|&(n, step)| {
            let even = (0..n).all(|i| layout.at(step * i) == stride * i);
            stride = stride.saturating_mul(n);
            even
        })
    };
    c.src_run.iter().chain(&c.dst_run).all(holds)
}
