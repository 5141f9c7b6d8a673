//! Executes the statements of a kernel in the blocks of a cluster, which run side by side.
//!
//! Threads at one statement execute it together ([`converged`]). Among several converged sets, the
//! set that is farthest behind runs next, unless the schedule is random ([`schedule`]), so
//! execution follows the order of the text as long as no thread waits. Threads that a condition or
//! a loop excludes are inactive until its end. For a spec of several threads, either all threads of
//! each group must be active or none.
//!
//! A leaf with an atom runs in `atom`, a bulk copy in `bulk`, and a leaf without an atom in
//! `meaning` or `shuffle`. `register_atom` and `single_thread` are fast paths. `sync` executes
//! synchronization statements, and `check` compares bodies with meanings.
//!
//! Invariant: atoms are computed as their instructions do, and [`crate::denote`] evaluates
//! meanings. The two share no arithmetic of floats, so that each checks the other.

mod arith;
mod atom;
mod bulk;
mod check;
mod converged;
mod deviation;
mod errors;
mod iterations;
mod meaning;
mod pattern;
mod pending_global;
mod products;
mod random_schedule;
mod register_atom;
mod schedule;
mod shadow;
mod shuffle;
mod single_thread;
mod sync;

pub(crate) use arith::accumulated;
pub(crate) use check::{Found, Near, Want, Wanted, wrong_element};
pub(crate) use pattern::Elements;
pub(crate) use random_schedule::elected_lane;

use crate::index::Env;
use crate::plan::{Base, Checked, Counted, How, Kernel, Mask, Partition, View};
use crate::state::banks::LeafCount;
use crate::state::clock::{Clocks, Part, Who};
use crate::state::{Block, ClusterBarrier, GlobalMemory, Page};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;
use converged::ConvergedSet;
use random_schedule::Dice;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The results of a block.
pub(crate) struct Finished {
    /// The pages of each global buffer that the block accessed; empty for buffers that it only
    /// read.
    pub pages: Vec<Vec<(u64, Box<Page>)>>,
    /// The counts.
    pub counts: Counts,
}

impl Finished {
    /// Whether the block wrote an element of global memory, or added to one.
    pub(crate) fn has_written(&self) -> bool {
        self.pages.iter().flatten().any(|(_, page)| page.written.n_written() > 0)
    }
}

/// The counts of a block.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Counts {
    /// The multiply-adds of MatMul leaves.
    pub multiply_adds: u64,
    /// The number of bodies that were compared with their meanings.
    pub specs: u64,
    /// The number of compared elements.
    pub elements: u64,
    /// The largest difference from a reference.
    pub max_error: f64,
    /// The largest ratio of a difference to the allowed difference.
    pub max_ratio: f64,
    /// The statements of bodies that were not compared because the threads have different views.
    pub(crate) skipped: BTreeSet<u32>,
    /// The statements in which several threads wrote an equal value to one element.
    pub(crate) repeated: BTreeSet<u32>,
    /// The steps in iterations of loops that may end early, if they are counted.
    pub steps: u64,
    /// The counts of each leaf.
    pub leaves: Vec<LeafCount>,
    /// For each synchronization statement, by site, the number of warps that passed it.
    pub syncs: BTreeMap<u32, u64>,
    /// For each check, the deviation of its body; the last entry is for the whole kernel.
    pub numerics: Vec<Numerics>,
    /// For each leaf, the distance of its results from their shadows, if measured.
    pub rounding: Vec<Numerics>,
    /// By leaf, the largest error that approximate instructions state for their results, in units
    /// in the last place.
    pub stated: BTreeMap<usize, f64>,
    /// By statement, the comparisons and casts to integers whose results differ between value and
    /// shadow.
    pub turned: BTreeMap<u32, u64>,
    /// By statement, casts that the meaning does not contain: a number beyond the range of the
    /// type, and the result.
    pub beyond: BTreeMap<u32, (f64, f64)>,
    /// The first statement with a result that is NaN without rounding, too.
    pub first_nan: Option<u32>,
}

/// The deviation of the body of a spec from its meaning.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Numerics {
    /// The number of compared bodies.
    pub executions: u64,
    /// The number of compared elements.
    pub elements: u64,
    /// The number of elements that pass only because several numbers are acceptable.
    pub undecided: u64,
    /// The largest difference from the reference in binary64.
    pub max_error: f64,
    /// The largest ratio of a difference to the allowed difference.
    pub max_ratio: f64,
    /// The largest difference in units in the last place of the output's type.
    pub max_ulp: f64,
    /// The sums of the squares of the differences and of the references.
    pub squares: (f64, f64),
}

impl Numerics {
    /// Records an element.
    #[inline]
    pub(crate) fn add(&mut self, near: &Near, ratio: f64) {
        let Near { distance, ulp, reference, undecided, .. } = *near;
        self.elements += 1;
        self.undecided += undecided;
        self.max_error = self.max_error.max(distance);
        self.max_ratio = self.max_ratio.max(ratio);
        self.max_ulp = self.max_ulp.max(distance / ulp);
        self.squares.0 += distance * distance;
        self.squares.1 += reference * reference;
    }

    /// The norm of the differences divided by the norm of the references; none if the quotient is
    /// not a number.
    pub(crate) fn relative_norm(&self) -> Option<f64> {
        match self.squares {
            (0.0, _) => Some(0.0),
            (error, all) => Some((error / all).sqrt()).filter(|r| r.is_finite()),
        }
    }

    pub(crate) fn merge(&mut self, other: &Numerics) {
        self.executions += other.executions;
        self.elements += other.elements;
        self.undecided += other.undecided;
        self.max_error = self.max_error.max(other.max_error);
        self.max_ratio = self.max_ratio.max(other.max_ratio);
        self.max_ulp = self.max_ulp.max(other.max_ulp);
        self.squares.0 += other.squares.0;
        self.squares.1 += other.squares.1;
    }
}

impl Counts {
    /// Records a compared element of a check.
    #[inline]
    pub(crate) fn compared(&mut self, check: usize, near: &Near) {
        let Near { error, allowed, .. } = *near;
        self.elements += 1;
        if error > self.max_error {
            self.max_error = error;
        }
        let ratio = if error > 0.0 { error / allowed } else { 0.0 };
        if ratio > self.max_ratio {
            self.max_ratio = ratio;
        }
        let Some(of) = self.numerics.get_mut(check) else { return };
        of.add(near, ratio);
    }

    /// Records a cast that saturates at the range of its type.
    fn ends(&mut self, site: u32, beyond: Option<(f64, f64)>) {
        if let Some(beyond) = beyond {
            self.beyond.entry(site).or_insert(beyond);
        }
    }

    /// Adds the counts of another block.
    pub(crate) fn merge(&mut self, other: &Counts) {
        self.multiply_adds = self.multiply_adds.saturating_add(other.multiply_adds);
        self.specs += other.specs;
        self.steps = self.steps.saturating_add(other.steps);
        self.skipped.extend(&other.skipped);
        self.repeated.extend(&other.repeated);
        self.elements += other.elements;
        self.max_error = self.max_error.max(other.max_error);
        self.max_ratio = self.max_ratio.max(other.max_ratio);
        if self.leaves.len() < other.leaves.len() {
            self.leaves.resize(other.leaves.len(), LeafCount::default());
        }
        self.leaves.iter_mut().zip(&other.leaves).for_each(|(a, b)| a.merge(b));
        other.syncs.iter().for_each(|(site, n)| *self.syncs.entry(*site).or_default() += n);
        if self.numerics.len() < other.numerics.len() {
            self.numerics.resize(other.numerics.len(), Numerics::default());
        }
        self.numerics.iter_mut().zip(&other.numerics).for_each(|(a, b)| a.merge(b));
        if self.rounding.len() < other.rounding.len() {
            self.rounding.resize(other.rounding.len(), Numerics::default());
        }
        self.rounding.iter_mut().zip(&other.rounding).for_each(|(a, b)| a.merge(b));
        for (leaf, stated) in &other.stated {
            let most = self.stated.entry(*leaf).or_default();
            *most = most.max(*stated);
        }
        other.turned.iter().for_each(|(site, n)| *self.turned.entry(*site).or_default() += n);
        other.beyond.iter().for_each(|(site, beyond)| self.ends(*site, Some(*beyond)));
        self.first_nan = self.first_nan.or(other.first_nan);
    }
}

/// Runs the blocks of a cluster, from block `first`, to their ends. The first block holds the
/// counts of all.
///
/// # Errors
/// The first error in program order.
pub(crate) fn run_cluster<'k>(
    kernel: &'k Kernel<'k>,
    memory: &[&'k GlobalMemory],
    first: i64,
    how: Mode,
) -> Checked<Vec<Finished>> {
    let mut runner = runner(kernel, memory, first, how);
    if let Err(mut error) = runner.run() {
        if let Some(clash) = runner.blocks.iter().find_map(|b| b.accused?.1) {
            drop(runner);
            iterations::earlier(kernel, memory, first, how, &clash, &mut error);
        }
        return Err(error);
    }
    let Runner { mut counts, mut blocks, .. } = runner;
    for block in &mut blocks {
        counts.repeated.append(&mut block.shared.repeated);
        block.global.iter_mut().for_each(|g| counts.repeated.append(&mut g.repeated));
    }
    let finish = |block: Block<'_>| {
        let pages = block.global.into_iter().map(|g| g.into_pages()).collect();
        Finished { pages, counts: std::mem::take(&mut counts) }
    };
    Ok(blocks.into_iter().map(finish).collect())
}

/// The blocks of a cluster before their first statement.
fn runner<'k>(
    kernel: &'k Kernel<'k>,
    memory: &[&'k GlobalMemory],
    first: i64,
    how: Mode,
) -> Runner<'k> {
    let clocks = Clocks::new(kernel.cluster, kernel.n_threads, kernel.n_mbarriers());
    let readers = clocks.n_readers();
    Runner {
        kernel,
        blocks: (0..kernel.cluster)
            .map(|_| Block::new(kernel, memory, readers, how.shadows))
            .collect(),
        first,
        clocks,
        cluster: ClusterBarrier::default(),
        wake: false,
        flying: VecDeque::new(),
        converged: Vec::new(),
        env: Env { block: first, loops: Vec::new() },
        rank: 0,
        serial: 0,
        updates: true,
        expected: BTreeMap::new(),
        mode: how,
        dice: how.schedule.map(|seed| Dice::new(seed, first)),
        counts: Counts {
            leaves: vec![LeafCount::default(); kernel.leaves.len()],
            numerics: vec![Numerics::default(); kernel.checks.len() + 1],
            rounding: vec![
                Numerics::default();
                if how.statements { kernel.leaves.len() } else { 0 }
            ],
            ..Counts::default()
        },
        scratch: atom::Scratch::default(),
        buffers: single_thread::Buffers::default(),
        remote: BTreeMap::new(),
        watch: None,
        turns: match how.most {
            Some(_) => Counted::new(kernel, how.check, how.schedule.is_some()).turns,
            None => BTreeMap::new(),
        },
    }
}

/// Options of the execution.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Mode {
    /// Whether bodies are compared with their meanings.
    pub check: bool,
    /// Whether inputs are small integers, so that sums are exact.
    pub small_ints: bool,
    /// The seed of a random schedule; none for the order of the text.
    pub schedule: Option<u64>,
    /// Whether values have shadows.
    pub shadows: bool,
    /// Whether the distance between results and shadows is measured at every statement.
    pub statements: bool,
    /// The most steps of a block in iterations of loops that may end early; none if the bound of
    /// the block's steps is within the budget.
    pub most: Option<u64>,
}

struct Runner<'k> {
    kernel: &'k Kernel<'k>,
    /// The blocks of the cluster, by rank.
    blocks: Vec<Block<'k>>,
    /// The number of the first block.
    first: i64,
    clocks: Clocks,
    cluster: ClusterBarrier,
    /// Whether an event has occurred for which converged sets may have waited.
    wake: bool,
    /// The pending bulk copies, the oldest first.
    flying: VecDeque<bulk::Delivery>,
    /// The converged sets that do not run at present.
    converged: Vec<ConvergedSet<'k>>,
    /// The block index and the loop variables of the running set.
    env: Env,
    /// The rank in the cluster of the running set's block.
    rank: usize,
    /// The number of leaf executions so far.
    serial: u32,
    /// Whether the current leaf may write the elements that it reads.
    updates: bool,
    /// The expected outputs of unfinished bodies: by block, check and first thread of the group.
    expected: BTreeMap<(usize, usize, u16), Vec<Wanted>>,
    mode: Mode,
    /// The random numbers of a random schedule.
    dice: Option<Dice>,
    counts: Counts,
    scratch: atom::Scratch,
    buffers: single_thread::Buffers,
    /// The last access of each lane to the shared memory of another block: by that block, agent and
    /// lane, with time and statement.
    remote: BTreeMap<(usize, u16, u8), (u32, u32)>,
    /// The leaf execution whose iteration is to be found.
    watch: Option<iterations::Watch>,
    /// The steps of an iteration of each loop whose iterations are counted.
    turns: BTreeMap<u32, u64>,
}

impl<'k> Runner<'k> {
    /// Executes a leaf at which these threads have met.
    fn leaf(
        &mut self,
        i: usize,
        partition: &Partition,
        active: &Mask,
        together: &Mask,
    ) -> Checked<()> {
        let leaf = &self.kernel.leaves[i];
        self.serial = self.serial.wrapping_add(1);
        self.updates = leaf.updates;
        if !matches!(leaf.how, How::Atom(_)) {
            self.counts.leaves[i].executions += u64::from(active.warps().count_ones());
        }
        match &leaf.how {
            How::Atom(bound) => self.atom(i, leaf, bound, active),
            How::Bulk(copy) => self.bulk(i, leaf, copy, active),
            How::Meaning(meaning) if leaf.alone => self.single_threads(i, leaf, meaning, active),
            How::Meaning(meaning) if leaf.ordered => {
                // The solver places a barrier here when it decomposes a spec of several threads.
                self.synchronize(together);
                self.meaning(i, leaf, meaning, partition, active, together)
            }
            How::Meaning(meaning) => self.meaning(i, leaf, meaning, partition, active, together),
            How::Shuffle { op, lane } => self.shuffle(leaf, *op, *lane, partition, active),
        }
    }

    /// A warp of the running set, for an access to memory.
    fn who(&self, warp: usize, site: u32) -> Who {
        let mut who = self.clocks.warp(self.rank, warp, site, self.serial);
        who.updates = self.updates;
        who
    }

    /// Records an access to the shared memory of a block, if that is another block.
    fn note_remote(&mut self, rank: usize, who: &Who) {
        if rank != self.rank {
            self.remote.insert((rank, who.agent, who.lane()), (who.time, who.site));
        }
    }

    /// Checks that a block ends after the last accesses of other blocks to its shared memory.
    fn end_after_others(&self) -> Checked<()> {
        let late = self.remote.iter().find(|((rank, agent, lane), (time, _))| {
            !self.clocks.known_in(*rank, (*agent, *time, *lane))
        });
        let Some(((rank, agent, lane), (_, site))) = late else { return Ok(()) };
        let (agent, n) = (usize::from(*agent), self.kernel.n_warps.max(1));
        let thread = agent % n * 32 + usize::from(*lane);
        let block = |rank: usize| self.first + rank as i64;
        Err(errors::ends_while_accessed(
            self.kernel,
            *site,
            thread,
            [block(agent / n), block(*rank)],
        ))
    }

    /// Counts the steps of an iteration that these threads begin.
    fn begins_turn(&mut self, site: u32, threads: &Mask) -> Checked<()> {
        let (Some(most), Some(turn)) = (self.mode.most, self.turns.get(&site)) else {
            return Ok(());
        };
        let (all, these) = (self.kernel.n_warps.max(1) as u64, threads.warps().count_ones());
        let steps = turn.saturating_mul(u64::from(these)) / all;
        self.counts.steps = self.counts.steps.saturating_add(steps + 1);
        // The blocks of a cluster count together.
        match self.counts.steps > most.saturating_mul(self.blocks.len() as u64) {
            true => Err(errors::too_many_steps(self.kernel, site, most)),
            false => Ok(()),
        }
    }

    /// Counts the warps that pass a synchronization statement.
    fn passes(&mut self, site: u32, threads: &Mask) {
        *self.counts.syncs.entry(site).or_default() += u64::from(threads.warps().count_ones());
    }

    /// Synchronizes these threads of the running set's block.
    fn synchronize(&mut self, threads: &Mask) {
        let lanes = threads.0.iter().enumerate().filter(|(_, lanes)| **lanes != 0);
        let parts: Vec<Part> =
            lanes.map(|(warp, lanes)| Part { rank: self.rank, warp, lanes: *lanes }).collect();
        self.clocks.synchronize(&parts);
    }

    fn index(&self, index: &crate::index::Index, thread: usize, site: u32) -> Checked<i64> {
        let env = &self.env;
        let value = index.base(env).and_then(|base| index.at(base, env, thread));
        value.map_err(|e| errors::bad_index(self.kernel, site, e))
    }

    /// The start of a view for a thread.
    fn base(&self, view: &View, thread: usize, site: u32) -> Checked<Base> {
        let start = view.offset.base(&self.env);
        let base = start.and_then(|start| view.base(start, &self.env, thread));
        base.map_err(|e| errors::bad_index(self.kernel, site, e))
    }

    /// The lanes of a warp that execute a leaf which writes this view. Single threads whose
    /// elements are all outside of the bounds are excluded.
    fn writing(&self, view: &View, warp: usize, lanes: u32, site: u32) -> Checked<u32> {
        if !view.is_bounded() {
            return Ok(lanes);
        }
        let mut writing = 0;
        for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
            let base = self.base(view, warp * 32 + lane, site)?;
            let mut elements = 0..usize::try_from(view.size).unwrap_or(0);
            let writes = elements.any(|e| !view.is_outside(view.place(&base, e)));
            writing |= u32::from(writes) << lane;
        }
        Ok(writing)
    }

    /// The active groups. A partially active group is an error.
    fn whole_groups<'s>(
        &self,
        partition: &'s Partition,
        active: &Mask,
        site: u32,
    ) -> Checked<Vec<&'s [u16]>> {
        let mut whole = Vec::with_capacity(partition.groups.len());
        for group in &partition.groups {
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
            "some threads of a group do not execute a spec of the whole group",
        )
        .label(format!("{absent} threads of a group are not active"))
        .help("move the spec out of the condition, or use a condition that is equal for the group"),
    )
}

/// The text of a scalar value.
pub(crate) fn value_text(scalar: Scalar, raw: u64) -> String {
    if scalar.is_float() {
        format!("{}", crate::num::decode(scalar, raw))
    } else {
        format!("{}", crate::num::decode_int(scalar, raw))
    }
}
