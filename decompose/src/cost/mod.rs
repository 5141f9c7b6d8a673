//! Estimates the cost of a kernel, by one model for strategies, layouts, stages and roles.
//!
//! The model answers two questions with the same formula. [`Model::bound`] gives a lower bound for
//! a tile-level body whose layouts are not known yet. [`Costing::estimate`] gives the cost of a
//! body that is being solved. Each needs the [`Work`] of every leaf ([`least`], or the rows that
//! the solver took) and the resources of a block. [`steady`] turns these into a time, and
//! [`outline`] gives the loops, threads and bytes of device memory behind them. Nothing here
//! depends on a certain kind of kernel.
//!
//! Rates and latencies come from the atom table ([`carbyne_atoms::limits()`]) and from the card
//! ([`carbyne_atoms::machine()`]). All other constants are in [`constants`], with the command that
//! fits them.

pub(crate) mod capacity;
pub(crate) mod constants;
pub(crate) mod crowding;
pub(crate) mod estimate;
pub(crate) mod least;
pub(crate) mod live;
pub(crate) mod outline;
mod rates;
pub(crate) mod steady;
#[cfg(test)]
mod tests;
pub(crate) mod work;

use crate::access::ops::Known;
use carbyne_atoms::{AtomTable, Machine, limits};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Dist, Program, SpecId};
use carbyne_ir::scalar::Memory;
use constants::{FITTED, Fitted};
pub use estimate::{Estimate, Resource, Use};
use least::ceil;
use outline::{Outline, elements};
use rates::Rates;
use std::collections::BTreeMap;
pub(crate) use steady::Grid;
use steady::{Held, Timing};
use work::Work;

/// Why no block of the architecture can run a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The kernel has no body, or the number of its threads depends on a symbol.
    #[error("the threads of a block, or what they do, are not known")]
    Open,
    /// Too many threads.
    #[error("a block of {threads} threads, of at most {most}")]
    Threads {
        /// The threads of a block.
        threads: i64,
        /// The threads that a block may have.
        most: i64,
    },
    /// Too much shared memory.
    #[error("a block takes {bytes} bytes of shared memory, of {most}")]
    Shared {
        /// The bytes that it takes.
        bytes: i64,
        /// The bytes that it may have.
        most: i64,
    },
    /// One tensor alone takes too many registers.
    #[error("a thread holds `%{name}` in {registers} registers, of {most}")]
    Registers {
        /// The registers of a thread that it takes.
        name: String,
        /// The registers that a thread may have.
        registers: i64,
        /// That a thread may have.
        most: i64,
    },
}

/// A machine, and the rows that it executes.
#[derive(Debug)]
pub struct Model<'a> {
    rates: Rates<'a>,
    machine: &'a Machine,
    fitted: Fitted,
}

impl<'a> Model<'a> {
    /// The model of a machine. It remembers the rows that it looks up, so use one for many kernels.
    #[must_use]
    pub fn new(table: &'a AtomTable, machine: &'a Machine) -> Self {
        Model { rates: Rates::new(table), machine, fitted: FITTED }
    }

    /// The model with other constants.
    #[must_use]
    pub fn with(self, fitted: Fitted) -> Self {
        Model { fitted, ..self }
    }

    /// A lower bound for a tile-level kernel, regardless of its layouts.
    ///
    /// # Errors
    /// The reason why no block can run it.
    pub fn bound(&self, p: &Program, kernel: SpecId) -> Result<Estimate, Refusal> {
        let limits = limits(self.rates.table.arch);
        let outline = Outline::of(p, kernel).ok_or(Refusal::Open)?;
        let (threads, most) = (outline.threads, limits.max_threads_per_block);
        if threads > most || threads < 1 {
            return Err(Refusal::Threads { threads, most });
        }
        let least = least::Least::new(p, &self.rates, &outline);
        let held = held(&least, kernel, &outline)?;
        let works: Vec<Work> = outline.leaves.iter().map(|leaf| least.of(leaf)).collect();
        let timing = timing(&outline, self.rates.table, self.machine, &self.fitted, Grid::Own);
        Ok(steady::estimate(&outline, &works, held, 0.0, &timing))
    }
}

/// What a kernel costs as it is being solved: what does not depend on that is worked out once.
#[derive(Debug)]
pub(crate) struct Costing<'a> {
    p: &'a Program,
    pub(crate) kernel: SpecId,
    table: &'a AtomTable,
    machine: &'a Machine,
    outline: Option<Outline>,
    /// What each leaf takes at least.
    least: Vec<Work>,
    /// What is held at least.
    held: Held,
    /// Its own tensors in shared memory that reuse no other.
    shared: Vec<BufferId>,
}

impl<'a> Costing<'a> {
    pub(crate) fn new(
        p: &'a Program,
        kernel: SpecId,
        table: &'a AtomTable,
        machine: &'a Machine,
    ) -> Self {
        let outline = Outline::of(p, kernel);
        let rates = Rates::new(table);
        let (mut works, mut block) = (vec![], Held::default());
        if let Some(outline) = &outline {
            let least = least::Least::new(p, &rates, outline);
            works.extend(outline.leaves.iter().map(|leaf| least.of(leaf)));
            block = held(&least, kernel, outline).unwrap_or_default();
        }
        let mut shared = carbyne_atoms::smem::buffers(p, kernel);
        shared.retain(|b| p.buffers[*b].reuses.is_none());
        Costing { p, kernel, table, machine, outline, least: works, held: block, shared }
    }

    /// What the kernel takes at least, if its threads are known.
    pub(crate) fn least(&self) -> Option<Estimate> {
        let outline = self.outline.as_ref()?;
        let timing = timing(outline, self.table, self.machine, &FITTED, Grid::Own);
        Some(steady::estimate(outline, &self.least, self.held, 0.0, &timing))
    }

    /// What the kernel takes where `work` is known of leaves, `registers` of tensors in registers,
    /// and `layout` of tensors in shared memory; `detours` are cycles of one block. What is not
    /// known takes the least that it can. Layouts are compared on a grid that fills the machine
    /// ([`Grid::Full`]): small sizes are examples of large ones.
    pub(crate) fn estimate<'l>(
        &self,
        work: impl Fn(SpecId) -> Option<Work>,
        registers: &Known,
        layout: impl Fn(BufferId) -> Option<&'l Layout>,
        (grid, detours): (Grid, f64),
    ) -> Estimate {
        let Some(outline) = &self.outline else { return Estimate::default() };
        let p = self.p;
        let leaves = outline.leaves.iter().zip(&self.least);
        let works: Vec<Work> =
            leaves.map(|(leaf, least)| work(leaf.spec).unwrap_or(*least)).collect();
        let size = |(b, tv): (&BufferId, &Layout)| {
            let values = tv.mode(1).map_or(0, |v| v.size());
            (*b, ceil(values.saturating_mul(p.buffers[*b].scalar.bits()), 32))
        };
        let registers =
            live::most(p, self.kernel, Memory::Rf, &registers.iter().map(size).collect());
        let mut shared_bytes = works.iter().fold(0i64, |all, w| all.saturating_add(w.space));
        for &id in &self.shared {
            let buffer = &p.buffers[id];
            let cosize = layout(id).map(Layout::cosize).or(buffer.cosize.as_const());
            let bits = cosize.unwrap_or(0).saturating_mul(buffer.scalar.bits());
            shared_bytes = shared_bytes.saturating_add(bits / 8);
        }
        let held = Held { registers, shared_bytes };
        let timing = timing(outline, self.table, self.machine, &FITTED, grid);
        steady::estimate(outline, &works, held, detours, &timing)
    }

    /// What so many executions of an operation by each block take of the kernel's cycles at least,
    /// with detours of so many cycles each, on [`Grid::Full`].
    pub(crate) fn least_of(&self, work: &Work, detours: f64, trips: i64) -> Least {
        let Some(outline) = &self.outline else { return Least::default() };
        let timing = timing(outline, self.table, self.machine, &FITTED, Grid::Full);
        let each = steady::full_blocks(outline, &timing) / self.machine.sms as f64 * trips as f64;
        let scheduler = each / timing.limits.timing.schedulers;
        Least {
            matrix: work.matrix * scheduler,
            issue: work.issue * scheduler,
            detours: FITTED.unhidden * detours * each,
        }
    }
}

/// Cycles that no choice below a node of the search is without.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Least {
    matrix: f64,
    issue: f64,
    detours: f64,
}

impl Least {
    /// Adds another operation.
    pub(crate) fn add(&mut self, other: Least) {
        self.matrix += other.matrix;
        self.issue += other.issue;
        self.detours += other.detours;
    }

    /// All together: units work side by side.
    pub(crate) fn cycles(&self) -> f64 {
        self.matrix.max(self.issue) + self.detours
    }
}

/// What a kernel is timed on.
fn timing<'a>(
    o: &Outline,
    table: &AtomTable,
    machine: &'a Machine,
    fitted: &'a Fitted,
    grid: Grid,
) -> Timing<'a> {
    let threads = capacity::threads(o.consumers, o.threads, table);
    let room = capacity::room(o.consumers, o.threads, table);
    Timing { machine, limits: limits(table.arch), fitted, grid, threads, room }
}

/// What a block holds at least.
fn held(least: &least::Least<'_>, kernel: SpecId, outline: &Outline) -> Result<Held, Refusal> {
    let (p, limits) = (least.p, limits(least.rates.table.arch));
    // Threads that hold each register tensor: those of the first leaf that touches it.
    let mut registers: BTreeMap<BufferId, i64> = BTreeMap::new();
    let mut shared: BTreeMap<BufferId, i64> = BTreeMap::new();
    let most = limits.registers_for(outline.threads);
    let mut fragments = 0;
    for leaf in &outline.leaves {
        fragments = fragments.max(least.fragments(leaf.spec));
        for &b in leaf.reads.iter().chain(&leaf.writes) {
            let buffer = &p.buffers[b];
            let all = elements(p, buffer.tensor).saturating_mul(buffer.scalar.bits());
            let times = outline.ahead[usize::from(b)].max(0) + 1;
            if buffer.is_per_thread() && !registers.contains_key(&b) {
                let own = match &p.tensors[buffer.tensor].dist {
                    None => all,
                    Some(Dist { tv: Some(tv), .. }) => {
                        let values = tv.to_fixed().and_then(|tv| tv.mode(1).ok());
                        let values = values.map_or(0, |v| v.size());
                        values.saturating_mul(buffer.scalar.bits())
                    }
                    Some(_) => ceil(all.saturating_mul(least.repeats(b)), leaf.by.group),
                };
                let own = ceil(own, 32);
                if own > most {
                    let name = buffer.name.clone();
                    return Err(Refusal::Registers { name, registers: own, most });
                }
                registers.insert(b, own.saturating_mul(times));
            }
            if buffer.is_shared() && buffer.reuses.is_none() {
                // Of a ring that is written out the stages are a mode.
                let written_out = p.tensors[buffer.tensor].levels.len() > 1;
                let times = if written_out { 1 } else { times };
                shared.insert(b, ceil(all, 8).saturating_mul(times));
            }
        }
    }
    let shared_bytes = live::most(p, kernel, Memory::Sh, &shared);
    if !limits.has_shared(shared_bytes) {
        return Err(Refusal::Shared { bytes: shared_bytes, most: limits.max_smem_per_block });
    }
    let registers = live::most(p, kernel, Memory::Rf, &registers) + fragments;
    Ok(Held { registers, shared_bytes })
}

/// A lower bound for a tile-level kernel, regardless of its layouts. A solved instance is rarely
/// cheaper. To get the bounds of many kernels, make a [`Model`].
///
/// # Errors
/// The reason why no block can run it.
pub fn bound(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    machine: &Machine,
) -> Result<Estimate, Refusal> {
    Model::new(table, machine).bound(p, kernel)
}
