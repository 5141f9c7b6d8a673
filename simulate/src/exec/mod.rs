//! Runs the statements of a block, for all its threads, in text order.
//!
//! A statement is executed for every active thread of its spec before the next one begins. Threads that a
//! condition or a loop leaves out are inactive until it ends; a barrier demands that all its threads are
//! active, and a spec of several threads that each of its groups is active as a whole or not at all.
//!
//! Invariant: instructions compute here, meanings in [`crate::denote`]; see there.

mod alone;
mod arith;
mod blame;
mod bulk;
mod check;
mod cluster;
mod meaning;
mod row;
mod shuffle;
mod sync;

pub(crate) use check::{Found, Want, wrong_element};

use crate::plan::{Checked, How, Kernel, Mask, Squad};
use crate::state::banks::BankCount;
use crate::state::{Block, GlobalMemory, Page};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;
use cluster::{Cluster, Outgoing};
use std::collections::BTreeSet;

/// What a block did.
pub(crate) struct Finished {
    /// Pages of each global buffer that the block touched, empty for buffers that it only read.
    pub pages: Vec<Vec<(u64, Box<Page>)>>,
    /// What was counted.
    pub counts: Counts,
}

/// What is counted in a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// Multiply-adds of MatMul leaves.
    pub multiply_adds: u64,
    /// Bodies compared with their meaning.
    pub specs: u64,
    /// Elements compared.
    pub elements: u64,
    /// Largest difference from a reference.
    pub max_error: f64,
    /// Largest difference in units of what is allowed.
    pub max_ratio: f64,
    /// Statements of bodies that were not compared because each thread has its own view.
    pub(crate) skipped: BTreeSet<u32>,
    /// Shared-memory accesses of each leaf.
    pub banks: Vec<BankCount>,
}

impl Counts {
    /// Notes a compared element.
    pub(crate) fn compared(&mut self, error: f64, allowed: f64) {
        self.elements += 1;
        if error > self.max_error {
            self.max_error = error;
        }
        if error > 0.0 && error / allowed > self.max_ratio {
            self.max_ratio = error / allowed;
        }
    }

    /// Adds those of another block.
    pub(crate) fn merge(&mut self, other: &Counts) {
        self.multiply_adds = self.multiply_adds.saturating_add(other.multiply_adds);
        self.specs += other.specs;
        self.skipped.extend(&other.skipped);
        self.elements += other.elements;
        self.max_error = self.max_error.max(other.max_error);
        self.max_ratio = self.max_ratio.max(other.max_ratio);
        if self.banks.len() < other.banks.len() {
            self.banks.resize(other.banks.len(), BankCount::default());
        }
        self.banks.iter_mut().zip(&other.banks).for_each(|(a, b)| a.merge(b));
    }
}

/// Runs the blocks of one cluster to their ends, one block where there are no clusters.
///
/// # Errors
/// The first error in program order.
pub(crate) fn run_cluster<'k>(
    kernel: &'k Kernel<'k>,
    memory: &[&'k GlobalMemory],
    first_block: i64,
    how: Mode,
) -> Checked<Vec<Finished>> {
    let runner = |rank: usize| Runner {
        kernel,
        rank,
        block: Block::new(kernel, memory, first_block.saturating_add(rank as i64)),
        mode: how,
        counts: Counts {
            banks: vec![BankCount::default(); kernel.leaves.len()],
            ..Counts::default()
        },
        scratch: row::Scratch::default(),
        buffers: alone::Buffers::default(),
        outgoing: Vec::new(),
    };
    let mut cluster = Cluster { kernel, runners: (0..kernel.cluster).map(runner).collect() };
    let all = vec![Mask::first(kernel.n_threads); kernel.cluster];
    cluster.nodes(&kernel.body, &all)?;
    let finished = |runner: Runner<'k>| {
        let pages = runner.block.global.into_iter().map(|g| g.into_pages()).collect();
        Finished { pages, counts: runner.counts }
    };
    Ok(cluster.runners.into_iter().map(finished).collect())
}

/// What is done besides running.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mode {
    /// Whether bodies are compared with their meaning.
    pub check: bool,
    /// Whether inputs are small integers, so that sums are exact.
    pub small_ints: bool,
}

/// One block.
struct Runner<'k> {
    kernel: &'k Kernel<'k>,
    /// Which of its cluster.
    rank: usize,
    block: Block<'k>,
    mode: Mode,
    counts: Counts,
    scratch: row::Scratch,
    buffers: alone::Buffers,
    /// What the last statement does to other blocks.
    outgoing: Vec<Outgoing>,
}

impl<'k> Runner<'k> {
    /// All threads named, of the block where none are, arrive.
    fn barrier(&mut self, crew: Option<usize>, site: u32, active: &Mask) -> Checked<()> {
        let named = match crew {
            None => Mask::first(self.kernel.n_threads),
            Some(crew) => self.kernel.crews[crew].squad(&self.block.env)?.mask,
        };
        if !active.contains(&named) {
            return Err(blame::deadlock(self.kernel, site, &named.without(active)));
        }
        let warps = named.0.iter().enumerate().filter(|(_, lanes)| **lanes != 0);
        self.block.clocks.barrier(warps.fold(0, |bits, (w, _)| bits | 1 << w));
        Ok(())
    }

    fn leaf(&mut self, i: usize, active: &Mask) -> Checked<()> {
        let leaf = &self.kernel.leaves[i];
        let squad = self.kernel.crews[leaf.crew].squad(&self.block.env)?;
        let inner = active.and(&squad.mask);
        if inner.is_empty() {
            return Ok(());
        }
        match &leaf.how {
            How::Row(bound) => self.row(i, leaf, bound, &inner),
            How::Bulk(copy) => self.bulk(leaf, copy, &inner),
            How::Meaning(meaning) if leaf.alone => self.alone(leaf, meaning, &inner),
            How::Meaning(meaning) if leaf.ordered => {
                self.settle();
                self.meaning(leaf, meaning, &squad, &inner)
            }
            How::Meaning(meaning) => self.meaning(leaf, meaning, &squad, &inner),
            How::Shuffle { op, lane } => self.shuffle(leaf, *op, *lane, &squad, &inner),
        }
    }

    /// Orders everything before against everything after, in all warps: what the solver does with a
    /// barrier where it decomposes a spec of the whole block.
    fn settle(&mut self) {
        let warps = self.kernel.n_threads.div_ceil(32);
        self.block.clocks.barrier((0..warps).fold(0, |bits, w| bits | 1 << w));
    }

    fn index(&self, index: &crate::index::Index, thread: usize, site: u32) -> Checked<i64> {
        let env = &self.block.env;
        let value = index.base(env).and_then(|base| index.at(base, env, thread));
        value.map_err(|e| blame::bad_index(self.kernel, site, e))
    }

    /// The groups that are active; one that is so in part is an error.
    fn whole_groups<'s>(
        &self,
        squad: &'s Squad,
        active: &Mask,
        site: u32,
    ) -> Checked<Vec<&'s [u16]>> {
        let mut whole = Vec::with_capacity(squad.groups.len());
        for group in &squad.groups {
            let n = group.iter().filter(|t| active.has(usize::from(**t))).count();
            if n == group.len() {
                whole.push(&group[..]);
            } else if n > 0 {
                return Err(diverged(self.kernel, site, group.len() - n));
            }
        }
        Ok(whole)
    }
}

fn diverged(kernel: &Kernel<'_>, site: u32, absent: usize) -> Box<Diagnostic> {
    let span = kernel.sites[site as usize].span;
    Box::new(
        Diagnostic::new(
            Code::Deadlock,
            span,
            "a spec of several threads runs with some of them absent",
        )
        .label(format!("{absent} threads of a group do not take part"))
        .help("move it out of the condition, or make the condition the same for the whole group"),
    )
}

/// A scalar and bits, as a person reads them.
pub(crate) fn value_text(scalar: Scalar, raw: u64) -> String {
    if scalar.is_float() {
        format!("{}", crate::num::decode(scalar, raw))
    } else {
        format!("{}", crate::num::decode_int(scalar, raw))
    }
}
