//! Block tiles of kernels that are bound by memory: which part of a tensor a block takes, and by how many
//! threads.
//!
//! At most two modes are tiled: those along which the tensors are consecutive, else also the longest other
//! one. Of the rest a block has one element at a time.

use crate::solve::ops;
use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use num_integer::gcd;

/// Bits of the widest access.
const WIDEST: i64 = 128;
/// 32-bit registers that a tile may take in one thread.
const REGISTERS: i64 = 64;
/// Blocks that keep a machine busy.
const MACHINE: f64 = 100.0;
/// Cycles in which a block begins and ends, which no other block fills.
const BLOCK: f64 = 20.0;
/// The longest tile along a mode.
const LONGEST: i64 = 4096;
/// Threads of a block where they are chosen.
const MOST_THREADS: i64 = 256;

/// What a kernel goes over.
pub(super) struct Problem<'p> {
    p: &'p Program,
    id: SpecId,
    /// Of the whole space.
    pub(super) extents: Vec<i64>,
    /// The tensors in global memory that hold an element for each of the space's.
    sides: Vec<Side>,
    /// Modes along which a block walks, instead of being one of many.
    pub(super) walked: Vec<bool>,
}

/// A tensor in global memory.
struct Side {
    layout: Layout,
    bits: i64,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Choice {
    /// The tile of a block, an extent a mode.
    pub(super) tile: Vec<i64>,
    /// Threads of a block.
    pub(super) threads: i64,
    /// The modes that blocks are counted along.
    pub(super) grid: Vec<usize>,
    /// Whether no tile that fits has an element for each thread of a warp.
    tiny: bool,
    cost: f64,
}

impl Side {
    /// The mode along which neighbors lie side by side, and how many do.
    fn run(&self) -> Option<(usize, i64)> {
        let modes = self.layout.modes();
        modes.iter().enumerate().find_map(|(i, m)| {
            let first = m.leaves().iter().find(|(n, _)| *n > 1)?;
            (first.1 == 1).then_some((i, first.0))
        })
    }

    /// Whether tiles of these extents are layouts: they must not split a mode of several leaves unevenly.
    fn has(&self, tile: &[i64]) -> bool {
        self.layout.modes().iter().zip(tile).all(|(mode, t)| {
            let of = |n: i64, step: i64| Layout::of_mode(n, step).and_then(|l| mode.compose(&l));
            of(*t, 1).is_ok() && of(mode.size() / t.max(&1), *t).is_ok()
        })
    }

    /// Elements of one access to a tile, and elements side by side.
    fn access(&self, tile: &[i64]) -> (i64, i64) {
        let Some((mode, run)) = self.run() else { return (1, 1) };
        let along = gcd(tile[mode], run);
        let others = self.layout.leaves().iter().filter(|(n, s)| *n > 1 && *s > 1);
        let aligned = others.fold(along, |g, (_, s)| gcd(g, *s));
        let mut n = 1;
        while aligned % (2 * n) == 0 && 2 * n * self.bits <= WIDEST {
            n *= 2;
        }
        (n, along)
    }
}

impl<'p> Problem<'p> {
    /// A space of the operands `over`, whose first is the whole of it, walked along `walked`.
    pub(super) fn new(
        p: &'p Program,
        id: SpecId,
        over: &[TensorId],
        walked: &[usize],
    ) -> Result<Self, Box<Diagnostic>> {
        let spec = &p.specs[id];
        let refuse = |message: String, help: &str| {
            Err(Box::new(Diagnostic::new(Code::NoStrategy, spec.span, message).help(help)))
        };
        let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        for t in tensors {
            if p.buffer_of(t).memory != Some(Memory::Gl) {
                return refuse(
                    format!("{} does not lie in global memory", p.tensor_name(t)),
                    "declare it at the top, in GL",
                );
            }
            if ops::extents(p, t).is_none() {
                return refuse(
                    format!("the sizes of {} are not known", p.tensor_name(t)),
                    "give them as numbers or with `let` instead of `sym`, or write the body",
                );
            }
        }
        let extents = over.first().and_then(|t| ops::extents(p, *t)).unwrap_or_default();
        if extents.is_empty() {
            return refuse("a single element has no tiles".to_owned(), "write the body");
        }
        let sides = over
            .iter()
            .filter(|t| ops::extents(p, **t).as_ref() == Some(&extents))
            .filter_map(|t| Some(Side { layout: ops::whole(p, *t)?, bits: p.scalar_of(*t).bits() }))
            .collect();
        let walked = (0..extents.len()).map(|m| walked.contains(&m)).collect();
        Ok(Problem { p, id, extents, sides, walked })
    }

    /// Whether the tensors are consecutive along different modes.
    pub(super) fn crossed(&self) -> bool {
        let mut modes: Vec<usize> = self.sides.iter().filter_map(|s| Some(s.run()?.0)).collect();
        modes.dedup();
        modes.len() > 1
    }

    /// The modes that are tiled.
    fn tiled(&self) -> Vec<usize> {
        let mut modes: Vec<usize> = vec![];
        for (mode, _) in self.sides.iter().filter_map(Side::run) {
            if !modes.contains(&mode) {
                modes.push(mode);
            }
        }
        modes.truncate(2);
        while modes.len() < 2 {
            // What is walked along first: its tiles are fewer steps.
            let rank = |m: &usize| (self.walked[*m], self.extents[*m], std::cmp::Reverse(*m));
            let rest = (0..self.extents.len()).filter(|m| !modes.contains(m));
            match rest.max_by_key(rank) {
                Some(m) => modes.push(m),
                None => break,
            }
        }
        modes
    }

    /// The cheapest choice that agrees with the pins.
    pub(super) fn choose(&self, table: &AtomTable) -> Result<Choice, Box<Diagnostic>> {
        let spec = &self.p.specs[self.id];
        let size = |t| self.p.threads[t].concat().to_fixed().map_or(0, |l: Layout| l.size());
        let pinned = spec.exec.map(|e| {
            let grid = self.p.threads[e.blocks].concat().to_fixed();
            let grid: Vec<i64> =
                grid.map_or(vec![], |g| g.modes().iter().map(Layout::size).collect());
            (grid, size(e.threads))
        });
        let warps = spec.ints("warps").map(|w| w.iter().product::<i64>());
        let threads = match (&pinned, warps) {
            (Some((_, n)), _) => Some(*n),
            (None, Some(w)) => Some(w.saturating_mul(32)),
            (None, None) => None,
        };
        let mut best: Option<Choice> = None;
        let (mut divides, mut tiny) = (false, true);
        for tile in self.tiles() {
            if !self.sides.iter().all(|s| s.has(&tile)) {
                continue;
            }
            let counts: Vec<i64> = self.extents.iter().zip(&tile).map(|(e, t)| e / t).collect();
            let blocks = |m: &usize| !self.walked[*m];
            let every: Vec<usize> = (0..tile.len()).filter(blocks).collect();
            let several: Vec<usize> = every.iter().copied().filter(|m| counts[*m] > 1).collect();
            let is = |modes: &[usize], grid: &[i64]| {
                modes.iter().map(|m| counts[*m]).eq(grid.iter().copied())
            };
            let grid = match &pinned {
                Some((grid, _)) if is(&every, grid) => every,
                Some((grid, _)) if is(&several, grid) => several,
                Some((grid, _)) if several.is_empty() && grid[..] == [1] => vec![],
                Some(_) => continue,
                None => several,
            };
            divides = true;
            for threads in threads.map_or_else(|| self.threads(&tile), |n| vec![n]) {
                if !(1..=limits(table.arch).max_threads_per_block).contains(&threads) {
                    continue;
                }
                let Some(cost) = self.cost(&tile, threads, table) else { continue };
                tiny &= elements(&tile) < 32;
                if best.as_ref().is_none_or(|b| cost < b.cost) {
                    let (tile, grid) = (tile.clone(), grid.clone());
                    best = Some(Choice { tile, threads, grid, tiny, cost });
                }
            }
        }
        best.map(|b| Choice { tiny, ..b }).ok_or_else(|| {
            let grid = pinned.as_ref().map(|(grid, _)| grid.as_slice());
            Box::new(self.no_tile(grid, threads, divides))
        })
    }

    /// Numbers of threads for a tile: some warps, and where these would not share its vectors evenly, those that
    /// do. A Reduction's threads exchange by warps.
    fn threads(&self, tile: &[i64]) -> Vec<i64> {
        let elements = elements(tile);
        let vectors = self.sides.first().map_or(1, |s| elements / s.access(tile).0);
        let mut out = vec![];
        if vectors % 32 != 0 {
            let walks = self.walked.contains(&true);
            let may = |n: &i64| vectors % n == 0 && (!walks || n % 32 == 0 || elements < 32);
            out.extend((1..=MOST_THREADS.min(vectors)).filter(may));
        }
        out.extend([32, 64, 128, MOST_THREADS]);
        out
    }

    /// Why no tile is as asked, and what would be; `divides`: some tile divides the tensors and leaves the grid.
    fn no_tile(&self, grid: Option<&[i64]>, threads: Option<i64>, divides: bool) -> Diagnostic {
        let spec = &self.p.specs[self.id];
        let extents = &self.extents;
        let tile = spec.ints("tile");
        let odd = tile.and_then(|t| {
            if t.len() != extents.len() {
                return Some(format!(
                    "`tile=` has {} numbers for {} modes",
                    t.len(),
                    extents.len()
                ));
            }
            let wrong = t.iter().zip(extents).find(|(t, e)| **t < 1 || *e % **t != 0);
            wrong.map(|(t, e)| format!("{t} does not divide {e}"))
        });
        let (label, help) = match (odd, grid, threads) {
            (Some(odd), ..) => (odd, "the tile divides the tensors mode by mode".to_owned()),
            (None, Some(grid), _) if !divides => (
                format!("no tile leaves a grid of {}", by(grid)),
                "the grid is the quotient of the tensors and the tile, mode by mode; without `<<<..>>>` it is \
                 chosen"
                    .to_owned(),
            ),
            (None, _, Some(n)) => (
                format!("the tiles that are left take more registers or shared memory than {n} threads have"),
                "take more threads, or let `tile=` and the grid be chosen".to_owned(),
            ),
            (None, _, None) => (
                "the tile takes more registers or shared memory than a block has".to_owned(),
                "make `tile=` smaller".to_owned(),
            ),
        };
        let message = format!("no block tile of {} satisfies all that is asked", by(extents));
        Diagnostic::new(Code::PinsConflict, spec.span, message).label(label).help(help)
    }

    /// That blocks have next to nothing to do, where the extents leave no other tiles.
    pub(super) fn tiny(&self, choice: &Choice) -> Option<Diagnostic> {
        let spec = &self.p.specs[self.id];
        let chosen = spec.exec.is_none() && spec.ints("tile").is_none();
        if !chosen || !choice.tiny || choice.tile == self.extents {
            return None;
        }
        let odd: Vec<usize> =
            self.tiled().into_iter().filter(|m| self.extents[*m] % 32 != 0).collect();
        let sizes: Vec<String> = odd.iter().map(|m| self.extents[*m].to_string()).collect();
        let padded: Vec<i64> =
            (0..self.extents.len())
                .map(|m| {
                    if odd.contains(&m) {
                        (self.extents[m] + 31) / 32 * 32
                    } else {
                        self.extents[m]
                    }
                })
                .collect();
        let threads = match choice.threads {
            1 => "1 thread".to_owned(),
            n => format!("{n} threads"),
        };
        let message = format!(
            "the tile of a block is {} of {}, for {threads}",
            by(&choice.tile),
            by(&self.extents)
        );
        Some(
            Diagnostic::warning(Code::Uneven, spec.span, message)
                .label(format!("no larger tile divides {}", sizes.join(" and ")))
                .help(format!("pad the tensors: {} would do", by(&padded))),
        )
    }

    /// Tiles to consider: the pinned one, or divisors along the tiled modes.
    fn tiles(&self) -> Vec<Vec<i64>> {
        if let Some(pin) = self.p.specs[self.id].ints("tile") {
            let fits = pin.len() == self.extents.len()
                && pin.iter().zip(&self.extents).all(|(t, e)| *t > 0 && e % t == 0);
            return if fits { vec![pin.to_vec()] } else { vec![] };
        }
        let mut out = vec![vec![1; self.extents.len()]];
        for mode in self.tiled() {
            let extent = self.extents[mode];
            let along: Vec<i64> = (1..=extent.min(LONGEST)).filter(|t| extent % t == 0).collect();
            out = out
                .iter()
                .flat_map(|tile| {
                    along.iter().map(|t| {
                        let mut tile = tile.clone();
                        tile[mode] = *t;
                        tile
                    })
                })
                .collect();
        }
        out
    }

    /// Cycles of the whole problem on one multiprocessor, roughly; none for a tile that does not fit.
    fn cost(&self, tile: &[i64], threads: i64, table: &AtomTable) -> Option<f64> {
        let limits = limits(table.arch);
        let elements = tile.iter().try_fold(1i64, |p, t| p.checked_mul(*t))?;
        let bits = self.sides.iter().map(|s| s.bits).max()?;
        let shared = if self.crossed() { elements.checked_mul(bits)? / 8 } else { 0 };
        if shared > limits.static_smem_per_block {
            return None;
        }
        let (mut issue, mut sectors, mut registers) = (0.0, 0.0, 0);
        for side in &self.sides {
            let (n, run) = side.access(tile);
            // Threads that share the accesses evenly take part.
            let each = elements / n / gcd(elements / n, threads);
            issue += (each * ((threads + 31) / 32)) as f64 * 4.0;
            let bytes = (run * side.bits + 7) / 8;
            // A line of four sectors is opened for one, too: half of what that wastes counts.
            let (own, lines) = ((bytes + 31) / 32, (bytes + 127) / 128 * 4);
            sectors += (elements / run * (own + lines)) as f64 / 2.0;
            registers += each.checked_mul(n * side.bits)? / 32 + 1;
        }
        if registers > REGISTERS && self.p.specs[self.id].ints("tile").is_none() {
            return None;
        }
        // A multiprocessor gets some 32 bytes a cycle from the second-level cache.
        let work = (issue / limits.timing.schedulers).max(sectors).max(shared as f64 / 64.0);
        let mut wait = limits.timing.global_cycles;
        if self.crossed() {
            wait += limits.timing.shared_store_cycles + limits.timing.shared_load_cycles;
        }
        let resident = (limits.smem_per_sm / (shared + limits.reserved_smem_per_block).max(1))
            .min(limits.regs_per_sm / ((registers + 24) * threads).max(1))
            .min(limits.warps_per_sm * 32 / threads.max(32))
            .clamp(1, limits.blocks_per_sm) as f64;
        let counts = |walked: bool| -> f64 {
            let modes = (0..tile.len()).filter(|m| self.walked[*m] == walked);
            modes.map(|m| (self.extents[m] / tile[m]) as f64).product()
        };
        let (blocks, steps) = (counts(false), counts(true));
        let resident = resident.min((blocks / MACHINE).max(1.0));
        let last =
            if self.walked.contains(&true) { self.exchange(tile, threads, table) } else { 0.0 };
        let block = steps * work.max((wait + work) / resident) + last + BLOCK;
        Some(blocks * block * (MACHINE / blocks).max(1.0))
    }

    /// Cycles in which the threads of a block combine what they walked over.
    fn exchange(&self, tile: &[i64], threads: i64, table: &AtomTable) -> f64 {
        let of = |walked: bool| -> i64 {
            (0..tile.len()).filter(|m| self.walked[*m] == walked).map(|m| tile[m]).product()
        };
        let n = self.sides.first().map_or(1, |s| s.access(tile).0);
        let (kept, gone) = (of(false), (of(true) / n).clamp(1, threads));
        let values = (kept * gone / threads).max(1) as f64;
        let lanes = f64::from((gone.min(32) as u32).next_power_of_two().ilog2());
        let timing = &limits(table.arch).timing;
        let shared = if gone > 32 {
            timing.shared_store_cycles + timing.shared_load_cycles * (gone as f64 / 32.0)
        } else {
            0.0
        };
        let warps = ((threads + 31) / 32) as f64;
        values * lanes * (4.0 * warps / timing.schedulers + 30.0) + shared
    }
}

fn elements(tile: &[i64]) -> i64 {
    tile.iter().fold(1, |n, t| n.saturating_mul(*t))
}

/// `512x1024`
fn by(extents: &[i64]) -> String {
    extents.iter().map(i64::to_string).collect::<Vec<_>>().join("x")
}
