//! Computes an upper bound of the steps that a block takes, before it runs. The simulator refuses a
//! block whose bound exceeds the budget. If all blocks of a grid together exceed it, only a sample
//! of them runs.
//!
//! A step takes about eight nanoseconds on one core. The weights of statements were measured on a
//! server of 2024, so a budget of steps is a budget of time, and a sample of a given number of
//! steps takes a predictable time. Nothing is measured at run time: the number of steps of a
//! program is always the same.
//!
//! A loop with further conditions, or with counters in its bounds, may end long before its bound.
//! If the bound exceeds the budget because of such loops, their iterations are counted when they
//! run ([`Counted`]).
//!
//! Invariant: the bound saturates, and every iteration counts at least one step, so no loop exceeds
//! the bound.

use super::{
    BoundAtom, BoundOp, Check, How, Kernel, LeafSpec, Node, Reference, Source, Space, SyncNode,
    View,
};
use crate::denote::{Meaning, Region};
use crate::index::{Compare, Index};
use carbyne_ir::ast::SyncOp;
use std::collections::BTreeMap;

/// Steps of a block without statements.
const START: u64 = 256;
/// Steps from one statement to the next.
const STATEMENT: u64 = 2;
/// Steps from one statement to the next when warps are at different statements: the next set has to
/// be found.
const STATEMENT_APART: u64 = 15;
/// Steps of executing a leaf, before its first thread.
const LEAF: u64 = 10;
/// Steps of comparing a copy of an element, without reading it and its reference.
const JUDGED: u64 = 2;

/// The steps of one block. `drawn`: under a random schedule, in which warps diverge everywhere.
/// Saturates.
pub(crate) fn block_steps(kernel: &Kernel<'_>, check: bool, drawn: bool) -> u64 {
    let all = Who::all(kernel, check, drawn);
    all.nodes(&kernel.body).saturating_add(setting_up(kernel))
}

/// The steps of a block of which the iterations of loops that may end early are counted when they
/// run.
pub(crate) struct Counted {
    /// The steps of all other statements.
    pub(crate) fixed: u64,
    /// For each of these loops, by its site: the steps of an iteration, except for those of such
    /// loops in it.
    pub(crate) turns: BTreeMap<u32, u64>,
}

impl Counted {
    /// The steps of one block, as [`block_steps`] counts them.
    pub(crate) fn new(kernel: &Kernel<'_>, check: bool, drawn: bool) -> Self {
        let all = Who { counts: true, ..Who::all(kernel, check, drawn) };
        let fixed = all.nodes(&kernel.body).saturating_add(setting_up(kernel));
        let mut turns = BTreeMap::new();
        let mut todo: Vec<&Node> = kernel.body.iter().collect();
        while let Some(node) = todo.pop() {
            match node {
                Node::For { ends_early, site, body, .. } => {
                    if *ends_early {
                        turns.insert(*site, all.turn(node));
                    }
                    todo.extend(body);
                }
                Node::Body { body, .. } => todo.extend(body),
                Node::If { then, otherwise, .. } => todo.extend(then.iter().chain(otherwise)),
                _ => {}
            }
        }
        Counted { fixed, turns }
    }
}

/// The steps before the first statement of a block.
fn setting_up(kernel: &Kernel<'_>) -> u64 {
    let registers: usize = kernel.registers.iter().map(|r| r.len).sum();
    START
        + kernel.n_threads as u64
        + (registers * kernel.n_threads) as u64 / 16
        + kernel.shared.size as u64 / 4
}

/// Whether all threads execute the same iterations of a loop.
fn is_same(start: &Index, end: &Index, also: &[Compare]) -> bool {
    start.is_uniform() && end.is_uniform() && also.iter().all(Compare::is_uniform)
}

/// The warps that execute statements.
#[derive(Copy, Clone)]
struct Who<'k> {
    kernel: &'k Kernel<'k>,
    check: bool,
    threads: u64,
    warps: u64,
    /// Whether warps may be at different statements.
    apart: bool,
    /// Whether loops that may end early have no iterations, because these are counted when they
    /// run.
    counts: bool,
}

impl<'k> Who<'k> {
    fn all(kernel: &'k Kernel<'k>, check: bool, drawn: bool) -> Self {
        let (threads, warps) = (kernel.n_threads as u64, kernel.n_warps as u64);
        Who { kernel, check, threads, warps, apart: drawn, counts: false }
    }

    fn nodes(self, list: &[Node]) -> u64 {
        list.iter().fold(0, |sum: u64, node| sum.saturating_add(self.node(node)))
    }

    /// One statement, for all warps.
    fn statement(self) -> u64 {
        if self.apart { STATEMENT_APART * self.warps } else { STATEMENT }
    }

    /// The warps of a thread tensor; `blocking`: some of them may wait for others.
    fn of(self, threads: usize, blocking: bool) -> Self {
        let thread_tensor = &self.kernel.thread_tensors[threads];
        let threads = (thread_tensor.n_groups() * thread_tensor.group_size()) as u64;
        let warps = match thread_tensor.known() {
            Some(partition) => u64::from(partition.mask.warps().count_ones()),
            None => threads,
        };
        let warps = warps.min(self.warps).max(1);
        Who { threads: threads.min(self.threads), warps, apart: self.apart || blocking, ..self }
    }

    fn node(self, node: &Node) -> u64 {
        let own = match node {
            Node::Leaf(i) => self.leaf(&self.kernel.leaves[*i]),
            Node::Body { threads, check, blocking, body, .. } => {
                let compared = match check {
                    Some(i) if self.check => {
                        let check = &self.kernel.checks[*i];
                        compare(self.kernel, check).saturating_add(judge(self.kernel, check))
                    }
                    _ => 0,
                };
                let inside = self.of(*threads, *blocking);
                inside.nodes(body).saturating_add(compared).saturating_add(inside.statement() + 4)
            }
            Node::For { start, end, also, trips, ends_early, .. } => {
                let same = is_same(start, end, also);
                let each = if same { 0 } else { self.threads };
                let enter = each * 2 + if same { 0 } else { self.kernel.n_threads as u64 / 8 };
                let trips = if self.counts && *ends_early { 0 } else { *trips };
                self.turn(node).saturating_mul(trips).saturating_add(enter + 1)
            }
            Node::If { cond, blocking, then, otherwise, .. } => {
                let same = cond.iter().all(Compare::is_uniform);
                let conditions = cond.len() as u64 * if same { 1 } else { self.threads };
                let inside = Who { apart: self.apart || *blocking && !same, ..self };
                let branches = inside.nodes(then).saturating_add(inside.nodes(otherwise));
                branches.saturating_add(conditions + inside.statement() + 3)
            }
            Node::Allocate(buffer) => buffer.map_or(1, |b| {
                let registers = self.kernel.registers[b].len as u64;
                registers.saturating_mul(self.kernel.n_threads as u64) / 16 + 3
            }),
            Node::Element { .. } => 4,
            Node::Step { varying, .. } => {
                if *varying {
                    self.threads
                } else {
                    2
                }
            }
            Node::Barrier { .. } => self.meet(),
            Node::Sync(sync) => self.sync(sync),
        };
        own.saturating_add(self.statement())
    }

    /// One iteration of a loop.
    fn turn(self, node: &Node) -> u64 {
        let Node::For { start, end, also, blocking, body, .. } = node else { return 0 };
        let same = is_same(start, end, also);
        let each = if same { 0 } else { self.threads };
        let inside = Who { apart: self.apart || *blocking && !same, ..self };
        inside.nodes(body).saturating_add(each + inside.statement())
    }

    /// The number of agents with clocks.
    fn agents(self) -> u64 {
        let kernel = self.kernel;
        let n = (kernel.cluster * (kernel.n_warps + 1 + kernel.n_mbarriers())) as u64;
        if kernel.n_mbarriers() > 0 { n + n / 2 } else { n }
    }

    /// A synchronization between threads.
    fn meet(self) -> u64 {
        20 + self.warps * (8 + self.agents())
    }

    fn sync(self, sync: &SyncNode) -> u64 {
        let Who { threads, warps, kernel, .. } = self;
        let n = sync.view.map_or(1, |v| kernel.views[v].size.unsigned_abs());
        let warps_of_cluster = (kernel.n_warps * kernel.cluster) as u64;
        let fences = threads * (kernel.n_mbarriers() as u64 / 4 + 1);
        match sync.op {
            SyncOp::AsyncCommit | SyncOp::BulkCommit => 8 + threads,
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead => 8 + 2 * threads,
            SyncOp::ClusterArrive | SyncOp::ClusterArriveRelaxed => {
                threads + warps * (20 + self.agents() + 4 * warps_of_cluster)
            }
            SyncOp::ClusterWait => threads + warps * (20 + self.agents()),
            SyncOp::MbarrierInit => n.saturating_mul(30 * threads),
            // Every waiting thread checks its condition again.
            SyncOp::MbarrierArrive | SyncOp::MbarrierExpect | SyncOp::MbarrierAsyncArrive => n
                .saturating_mul(
                    13 * threads + warps * (40 + 2 * self.agents() + 4 * warps_of_cluster),
                ),
            SyncOp::MbarrierWait => n.saturating_mul(14 * threads + warps * (20 + self.agents())),
            SyncOp::FenceAsync => 10 + fences + warps * (6 + self.agents()),
            SyncOp::FenceMbarrierInit => 10 + fences,
            SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait => 10 + 6 * warps,
            SyncOp::RegistersInc | SyncOp::RegistersDec => 10 + warps * (20 + 4 * warps_of_cluster),
            SyncOp::GridWait | SyncOp::GridLaunch | SyncOp::Prefetch => 3,
        }
    }

    fn leaf(self, leaf: &LeafSpec) -> u64 {
        let who = self.of(leaf.threads, false);
        let thread_tensor = &self.kernel.thread_tensors[leaf.threads];
        let work = match &leaf.how {
            How::Atom(atom) if atom.private => register_atom(atom).saturating_mul(who.threads),
            How::Atom(atom) => {
                let instances = who.threads.div_ceil(atom.group.max(1) as u64);
                self.atom(atom).saturating_mul(instances)
            }
            How::Meaning(m) if leaf.alone => {
                self.single_thread(leaf, m).saturating_mul(who.threads)
            }
            How::Meaning(m) => {
                let ordered = if leaf.ordered { self.meet() } else { 0 };
                let groups =
                    (self.group(leaf, m) + 20).saturating_mul(thread_tensor.n_groups() as u64);
                groups.saturating_add(ordered)
            }
            How::Bulk(_) => self.bulk(leaf).saturating_mul(who.threads),
            How::Shuffle { .. } => {
                let elements = elements(self.kernel, &leaf.inputs, &leaf.outputs);
                (elements.saturating_mul(2) + 2).saturating_mul(who.threads)
            }
        };
        let apart = if self.apart { LEAF * who.warps } else { LEAF };
        work.saturating_add(apart)
    }

    /// The execution of an atom by a group of threads.
    fn atom(self, atom: &BoundAtom) -> u64 {
        // In half steps: reads and writes of registers of several threads are faster than those of
        // memory.
        let halves = |source: &Source| match self.space(source) {
            Some(Space::Shared(_)) => 8,
            Some(Space::Global(_) | Space::Gathered(_)) => 5,
            Some(Space::Registers(_)) if atom.in_flight => 6,
            _ => 1,
        };
        let described = |o: &super::BoundOperand| match o.described {
            true => atom.group.div_ceil(32) as u64,
            false => 1,
        };
        let operand = |o: &super::BoundOperand| {
            let slots = (o.reads.len() + o.writes.len()) as u64;
            slots * halves(&o.source) * described(o)
        };
        let moved: u64 = atom.reads.iter().chain(&atom.writes).map(operand).sum::<u64>() / 2;
        let alone = if atom.group == 1 { 8 } else { 20 + atom.group as u64 / 2 };
        let copies = if atom.asynchronous { 8 } else { 0 };
        let adds = if matches!(atom.op, BoundOp::Accumulate(_)) { 4 } else { 0 };
        moved + alone + copies + adds + function(atom.op) + atom.multiply_adds() / 8
    }

    /// The execution of a leaf by its meaning, by a thread.
    fn single_thread(self, leaf: &LeafSpec, meaning: &Meaning) -> u64 {
        let each = |source: &Source| -> u64 {
            match self.space(source) {
                Some(Space::Registers(_) | Space::Index | Space::Param(_)) | None => 2,
                Some(Space::Shared(_)) => 5,
                Some(Space::Global(_) | Space::Gathered(_)) => 3,
            }
        };
        let one = |s: &Source| each(s).saturating_mul(size(self.kernel, s));
        let read = leaf.inputs.iter().fold(2u64, |sum, s| sum.saturating_add(one(s)));
        let written = |v: &usize| one(&Source::View(*v));
        let moved = leaf.outputs.iter().fold(read, |sum, v| sum.saturating_add(written(v)));
        moved.saturating_add(evaluated(self.kernel, leaf, meaning)).saturating_add(match meaning {
            Meaning::Move | Meaning::MatMul { .. } | Meaning::Accumulate(..) => 0,
            _ => 5,
        })
    }

    /// The execution of a leaf by its meaning, by a group.
    fn group(self, leaf: &LeafSpec, meaning: &Meaning) -> u64 {
        let views = super::site::views_of(&leaf.inputs).chain(leaf.outputs.iter().copied());
        // Each owner of a distributed element accesses the corresponding element in memory.
        let owners = views.map(|v| copies(self.kernel, &self.kernel.views[v])).max().unwrap_or(1);
        let elements = elements(self.kernel, &leaf.inputs, &leaf.outputs);
        let moved = elements.saturating_mul(4).saturating_mul(owners);
        moved.saturating_add(evaluated(self.kernel, leaf, meaning))
    }

    /// The issue of a bulk copy by a thread.
    fn bulk(self, leaf: &LeafSpec) -> u64 {
        let blocks = self.kernel.cluster as u64;
        let elements = elements(self.kernel, &leaf.inputs, &leaf.outputs);
        elements.saturating_mul(6).saturating_mul(blocks).saturating_add(150 + 2 * self.agents())
    }

    fn space(self, source: &Source) -> Option<Space> {
        match source {
            Source::View(v) => Some(self.kernel.views[*v].space),
            Source::Number(_) => None,
        }
    }
}

/// The execution of an atom by a thread on its own registers.
fn register_atom(atom: &BoundAtom) -> u64 {
    if matches!(atom.op, BoundOp::MatMul { extents: [1, 1, 1, 1], .. }) {
        return 2;
    }
    let slots = atom.reads.iter().map(|r| r.reads.len()).sum::<usize>()
        + atom.writes.iter().map(|w| w.writes.len() + w.reads.len()).sum::<usize>();
    1 + slots as u64 + function(atom.op) + atom.multiply_adds()
}

/// The computation of an atom's output, without moving it.
fn function(op: BoundOp) -> u64 {
    match op {
        BoundOp::Unary(..) => 5,
        _ => 0,
    }
}

/// The evaluation of a meaning, without moving its operands.
fn evaluated(kernel: &Kernel<'_>, leaf: &LeafSpec, meaning: &Meaning) -> u64 {
    match meaning {
        Meaning::Unary(_) => leaf.outputs.iter().map(|v| size(kernel, &Source::View(*v)) * 3).sum(),
        _ => meaning.multiply_adds() / 8,
    }
}

/// The steps of evaluating a check's reference and comparing with it.
pub(super) fn compare(kernel: &Kernel<'_>, check: &Check) -> u64 {
    let Reference { chain, inputs, outputs, .. } = &check.reference;
    let work = outputs
        .iter()
        .enumerate()
        .map(|(i, v)| chain.work(i, &Region::whole(&kernel.views[*v].modes)));
    let owners = outputs.iter().map(|v| copies(kernel, &kernel.views[*v])).max().unwrap_or(1);
    let moved = elements(kernel, inputs, outputs).saturating_mul(2 + owners);
    let one = (work.fold(0, u64::saturating_add) / 8).saturating_add(moved);
    one.saturating_mul(kernel.thread_tensors[check.threads].n_groups() as u64)
}

/// The steps of comparing all copies of a check's outputs.
fn judge(kernel: &Kernel<'_>, check: &Check) -> u64 {
    let of = |v: &usize| {
        size(kernel, &Source::View(*v)).saturating_mul(copies(kernel, &kernel.views[*v]))
    };
    let judged = check.reference.outputs.iter().map(of).fold(0, u64::saturating_add);
    let n_groups = kernel.thread_tensors[check.threads].n_groups() as u64;
    judged.saturating_mul(JUDGED * n_groups)
}

/// The number of threads that hold an element of a distributed tensor, on average and rounded up.
fn copies(kernel: &Kernel<'_>, view: &View) -> u64 {
    let Some(dist) = view.dist else { return 1 };
    let dist = &kernel.dists[dist];
    let held: usize = dist.by_thread.iter().map(|(_, regs)| regs.len()).sum();
    ((held / dist.n_groups()) as u64).div_ceil(view.size.unsigned_abs().max(1)).max(1)
}

fn size(kernel: &Kernel<'_>, source: &Source) -> u64 {
    match source {
        Source::View(v) => kernel.views[*v].size.unsigned_abs(),
        Source::Number(_) => 0,
    }
}

fn elements(kernel: &Kernel<'_>, inputs: &[Source], outputs: &[usize]) -> u64 {
    let read = inputs.iter().fold(0u64, |sum, s| sum.saturating_add(size(kernel, s)));
    outputs.iter().fold(read, |sum, v| sum.saturating_add(size(kernel, &Source::View(*v))))
}
