//! What instructions want of a shared tensor that find its elements by themselves: `wgmma` of a factor, TMA of a
//! box. They are constraints like the runs of [`super::smem`], but stronger: few layouts have a descriptor or a tensor
//! map at all, so that all of them are written down and those that break a constraint are left out. Tests ask for
//! them; the search does not yet.
//!
//! Sources: PTX ISA, Asynchronous Warpgroup Level Matrix Shared Memory Layout; CUDA Driver API, Tensor Map Object
//! Management. The rules themselves are [`carbyne_atoms::descriptor`]'s and [`carbyne_atoms::tensor_map`]'s.

use super::smem::Run;
use super::tv::mode;
use carbyne_atoms::descriptor::{self, MatrixRule};
use carbyne_atoms::tensor_map::{self, MOST_BOX, SWIZZLES, UNIT};
use carbyne_ir::layout::{Layout, Swizzle};

/// Elements that are looked at.
const MOST: i64 = 1 << 16;
/// Bytes to which a box is aligned in shared memory (PTX ISA, Tensor Copy).
const BOX_ALIGN: i64 = 128;

/// What one access wants of the tensor.
#[derive(Clone, Debug)]
pub enum Demand {
    /// Digits that are consecutive, in at most 16 aligned bytes.
    Run(Run),
    /// Every tile of these extents has a descriptor.
    Matrix {
        /// Extents of the instruction's tile.
        tile: [i64; 2],
        /// What the instruction takes.
        rule: MatrixRule,
    },
    /// Every box of these extents is one of a tensor map.
    Box {
        /// Its extents.
        extents: [i64; 2],
    },
}

/// The layouts of a tensor of two modes, of elements of `bits` bits, under which all demands hold, with the
/// swizzle of byte addresses; the widest swizzle first. Each is compact and begins at a multiple of 1024 bytes.
pub fn layouts(shape: [i64; 2], bits: i64, demands: &[Demand]) -> Vec<(Layout, Option<Swizzle>)> {
    let size = shape[0].checked_mul(shape[1]).filter(|n| shape[0] > 0 && (1..=MOST).contains(n));
    if size.is_none() || !(1..=64).contains(&bits) {
        return vec![];
    }
    let mut out: Vec<(Layout, Option<Swizzle>)> = vec![];
    for s in SWIZZLES.iter().rev() {
        let (b, m, sh) = s.bits;
        let swizzle = (b > 0).then(|| Swizzle::new(b, m, sh)).and_then(Result::ok);
        for along in [0, 1] {
            // Rows as wide as the swizzle; without one, units, and whole rows.
            let widths = match s.row {
                Some(bytes) => vec![bytes * 8 / bits],
                None => vec![UNIT * 8 / bits, shape[along]],
            };
            for width in widths {
                if width == 0 || shape[along] % width != 0 {
                    continue;
                }
                let Some(layout) = rows(shape, along, width) else { continue };
                let tensor = Tensor { shape, bits, layout: &layout, swizzle };
                let new = out.iter().all(|(l, s)| (l, *s) != (&layout, swizzle));
                if new && demands.iter().all(|d| tensor.meets(d)) {
                    out.push((layout, swizzle));
                }
            }
        }
    }
    out
}

/// Rows of `width` elements along one mode, one for each element of the other, then the next such rows.
fn rows(shape: [i64; 2], along: usize, width: i64) -> Option<Layout> {
    let other = shape[1 - along];
    let split =
        Layout::concat(&[mode(width, 1), mode(shape[along] / width, width * other)]).ok()?;
    let mut modes = [split.coalesce(), mode(other, width)];
    if along == 1 {
        modes.reverse();
    }
    Layout::concat(&modes).ok()
}

struct Tensor<'a> {
    shape: [i64; 2],
    bits: i64,
    layout: &'a Layout,
    swizzle: Option<Swizzle>,
}

impl Tensor<'_> {
    fn meets(&self, demand: &Demand) -> bool {
        match demand {
            Demand::Run(run) => self.runs(run),
            Demand::Matrix { tile, rule } => self.tiles(*tile, |tile_layout, start, tile| {
                let found = descriptor::derive(tile_layout, self.swizzle, self.bits, tile, rule);
                found.is_ok_and(|d| start.is_some_and(|s| d.may_start_at(s)))
            }),
            Demand::Box { extents } => self
                .tiles(*extents, |tile_layout, start, tile| self.is_box(tile_layout, start, tile)),
        }
    }

    fn runs(&self, run: &Run) -> bool {
        let inside = |&(n, step): &(i64, i64)| {
            n > 0 && step > 0 && n.checked_mul(step).is_some_and(|end| end <= self.layout.size())
        };
        if !run.iter().all(inside) {
            return false;
        }
        let parts: Vec<Layout> = run.iter().map(|&(n, step)| mode(n, step)).collect();
        let Ok(run) = Layout::concat(&parts) else { return false };
        let bytes = run.size().saturating_mul(self.bits) / 8;
        bytes <= UNIT
            && run.cosize() <= self.layout.size()
            && (0..run.size()).all(|i| self.layout.at(run.at(i)) == i)
    }

    /// Whether `f` holds of every tile: of its layout, of its first byte, if it begins with one, of its extents.
    fn tiles(&self, tile: [i64; 2], f: impl Fn(&Layout, Option<i64>, &[i64]) -> bool) -> bool {
        if (0..2).any(|i| tile[i] < 1 || self.shape[i] % tile[i] != 0) {
            return false;
        }
        let [rows, columns] = [0, 1].map(|i| self.shape[i] / tile[i]);
        let Ok(inside) = Layout::concat(&[mode(tile[0], 1), mode(tile[1], self.shape[0])]) else {
            return false;
        };
        let Ok(first) = self.layout.compose(&inside) else { return false };
        (0..rows * columns).all(|i| {
            let origin = i % rows * tile[0] + i / rows * tile[1] * self.shape[0];
            let at = self.layout.at(origin);
            let start = (at * self.bits % 8 == 0).then_some(at * self.bits / 8);
            let same = |e: i64| self.layout.at(origin + inside.at(e)) == at + first.at(e);
            (0..inside.size()).all(same) && f(&first, start, &tile)
        })
    }

    /// Whether a tile is packed as TMA packs a box.
    fn is_box(&self, layout: &Layout, start: Option<i64>, tile: &[i64]) -> bool {
        let along = usize::from(layout.at(tile[0]) == 1 && tile[1] > 1);
        let width = tile[along];
        let place = |e: i64| {
            let at = [e % tile[0], e / tile[0]];
            at[along] + width * at[1 - along]
        };
        let row = width * self.bits / 8;
        let mode = tensor_map::swizzle_mode(self.swizzle);
        let period = mode.and_then(|m| m.row).map_or(BOX_ALIGN, |row| (8 * row).max(BOX_ALIGN));
        let rows = match mode.and_then(|m| m.row) {
            Some(whole) => row == whole,
            None => row % UNIT == 0 && width * self.bits % 8 == 0,
        };
        rows && start.is_some_and(|s| s % period == 0)
            && tile.iter().all(|n| *n <= MOST_BOX)
            && (0..tile[0] * tile[1]).all(|e| layout.at(e) == place(e))
    }
}
