//! Follows the threads of one cluster through a kernel, without data.
//!
//! The threads that are farthest behind go first; that is one order of many. What is known is independent of it: clocks
//! pass by synchronization alone, and an arrival, a copy or a wait that may belong to another phase in another order is a
//! fault.

use crate::clocks::{Clocks, Engine, Message};
use crate::expr::{Env, Exprs, NOTHING, Value};
use crate::memory::{By, Cell, Does, Proxy, Record, Relation, Who, sum};
use crate::pairs::Pairs;
use crate::phases::{Arrival, ClusterBarrier, Mbarrier, Settled};
use crate::plan::{Bulk, How, LeafPlan, OperandPlan, Plan, Space};
use crate::report::{AgentKind, Missing};
use crate::strand::{Frame, Kind, Status, Strand};
use crate::threads::{Groups, Mask};
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::program::{Program, SpecId, Stmt, StmtKind, Sync, TensorId, ThreadsId};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Why a kernel is not followed to its end.
pub(crate) enum Stop {
    /// A fault that has been noted.
    Fault,
    /// A limit, in words.
    Limit(String),
}

type Goes<T> = Result<T, Stop>;

/// What a register holds for asynchronous MatMuls.
#[derive(Copy, Clone, Debug, Default)]
struct Register {
    last: u32,
    last_site: u32,
    /// Batch plus one, statement, shape.
    writing: (u32, u32, (i64, i64)),
    reading: (u32, u32),
}

/// The threads of a cluster on their way.
pub(crate) struct Machine<'p, 'a> {
    pub(crate) p: &'p Program,
    exprs: &'a Exprs<'p>,
    plan: &'a Plan,
    atoms: &'a AtomTable,
    n_threads: usize,
    n_blocks: usize,
    first_block: i64,
    elected: usize,
    pub(crate) clocks: Clocks,
    cells: Vec<Vec<Cell>>,
    globals: Vec<HashMap<i64, Cell>>,
    registers: Vec<Vec<Register>>,
    fences: Vec<u32>,
    mbarriers: Vec<Mbarrier>,
    mbarrier_at: BTreeMap<(usize, i64), usize>,
    cluster: ClusterBarrier,
    strands: Vec<Strand<'p>>,
    serial: u32,
    pub(crate) pairs: Pairs,
    n_splits: usize,
    groups: HashMap<(ThreadsId, i64), Rc<Groups>>,
    blocking: HashMap<usize, bool>,
    steps: u64,
    max_steps: u64,
    /// Of accesses to another block's shared memory: by block and statement, the last.
    remote: BTreeMap<(usize, u32, u32), u32>,
    /// Of each block the registers that no thread has, and those of a thread, by warp.
    registers_left: Vec<(i64, Vec<i64>)>,
    wake: bool,
    at: String,
}

/// Granules of a tensor in global memory that one block may touch.
const MAX_GLOBAL: usize = 1 << 21;
/// Granules of shared memory, and registers, of all blocks of a cluster.
const MAX_CELLS: usize = 1 << 21;
/// Classes that threads may fall into.
const MAX_CLASSES: usize = 1 << 10;
/// Times that classes may have, all together: of mbarriers too.
const MAX_MBARRIERS: usize = 1 << 12;

impl<'p, 'a> Machine<'p, 'a> {
    #[expect(clippy::too_many_arguments, reason = "one caller, which has each of them")]
    pub(crate) fn new(
        exprs: &'a Exprs<'p>,
        plan: &'a Plan,
        atoms: &'a AtomTable,
        n_blocks: usize,
        first_block: i64,
        elected: usize,
        max_steps: u64,
        pairs: Pairs,
    ) -> Self {
        let n_threads = exprs.n_threads;
        let mut clocks = Clocks::new(n_blocks, n_threads);
        let agent = clocks.agent();
        let n_warps = n_blocks * clocks.per / 32;
        let cluster = ClusterBarrier::new(agent, n_blocks * clocks.per);
        Machine {
            p: exprs.program,
            exprs,
            plan,
            atoms,
            n_threads,
            n_blocks,
            first_block,
            elected,
            cells: vec![vec![Cell::default(); plan.n_cells]; n_blocks],
            globals: vec![HashMap::new(); plan.globals.len()],
            registers: plan
                .registers
                .iter()
                .map(|(_, n)| vec![Register::default(); *n as usize * n_warps])
                .collect(),
            fences: vec![0; n_warps],
            mbarriers: vec![],
            mbarrier_at: BTreeMap::new(),
            cluster,
            strands: vec![],
            serial: 1,
            pairs,
            n_splits: 0,
            groups: HashMap::new(),
            blocking: HashMap::new(),
            steps: 0,
            max_steps,
            remote: BTreeMap::new(),
            registers_left: vec![(0, registers_of(n_threads, atoms)); n_blocks],
            wake: false,
            at: String::new(),
            clocks,
        }
    }

    /// Whether a cluster of so many blocks is more than is kept track of.
    pub(crate) fn is_too_large(plan: &Plan, n_blocks: usize, n_threads: usize) -> bool {
        let warps = n_blocks * n_threads.div_ceil(32);
        let registers: usize = plan.registers.iter().map(|(_, n)| *n as usize).sum();
        plan.n_cells.saturating_mul(n_blocks) > MAX_CELLS
            || registers.saturating_mul(warps) > MAX_CELLS
    }

    /// Follows all threads to their ends.
    pub(crate) fn run(&mut self, kernel: SpecId) -> Goes<()> {
        let body: &'p [Stmt] = self.p.specs[kernel].body.as_deref().unwrap_or(&[]);
        for rank in 0..self.n_blocks {
            let mask = Mask::first(self.n_threads);
            let frame = Frame { stmts: body, at: 0, mask, kind: Kind::Root };
            let env = Env { block: self.first_block + rank as i64, loops: vec![] };
            self.strands.push(Strand { rank, frames: vec![frame], env, status: Status::Ready });
        }
        loop {
            let Some(mut strand) = self.next() else {
                if self.strands.is_empty() {
                    return self.ends();
                }
                return self.stuck();
            };
            let goes_on = loop {
                self.spend(1 + self.n_threads as u64 / 8)?;
                match self.step(&mut strand)? {
                    Step::On if self.strands.is_empty() => {}
                    Step::On => break true,
                    Step::Waits => break true,
                    Step::Ended => break false,
                }
            };
            if goes_on {
                self.put(strand);
            }
            if std::mem::take(&mut self.wake) {
                let waiting = self.strands.iter_mut().filter(|s| s.status == Status::Waits);
                waiting.for_each(|s| s.status = Status::Ready);
            }
        }
    }

    /// How many accesses were followed.
    pub(crate) fn steps(&self) -> u64 {
        self.steps
    }

    fn spend(&mut self, n: u64) -> Goes<()> {
        self.steps += n;
        match self.steps > self.max_steps {
            true => Err(Stop::Limit(format!(
                "the kernel makes more than {} accesses, which is as many as are followed",
                self.max_steps
            ))),
            false => Ok(()),
        }
    }

    fn next(&mut self) -> Option<Strand<'p>> {
        let order = |a: &Strand<'_>, b: &Strand<'_>| a.compare(b).then(a.rank.cmp(&b.rank));
        let ready = self.strands.iter().enumerate().filter(|(_, s)| s.status == Status::Ready);
        let (i, _) = ready.min_by(|a, b| order(a.1, b.1))?;
        Some(self.strands.swap_remove(i))
    }

    /// Puts threads back; they join those at the same statement.
    fn put(&mut self, strand: Strand<'p>) {
        let stands = |s: &Strand<'_>| matches!(s.status, Status::Ready | Status::Meets);
        let same = self.strands.iter_mut().find(|o| {
            o.rank == strand.rank
                && stands(o)
                && stands(&strand)
                && o.compare(&strand) == std::cmp::Ordering::Equal
        });
        match same {
            Some(other) => {
                other.join(&strand);
                other.status = Status::Ready;
            }
            None => self.strands.push(strand),
        }
    }

    /// Whether some of these threads may still come to where a strand is.
    fn may_come(&self, strand: &Strand<'_>, threads: &Mask) -> bool {
        self.strands.iter().any(|o| {
            o.rank == strand.rank
                && !o.all().and(threads).is_empty()
                && match o.compare(strand) {
                    std::cmp::Ordering::Less => true,
                    std::cmp::Ordering::Equal => matches!(o.status, Status::Ready | Status::Meets),
                    std::cmp::Ordering::Greater => false,
                }
        })
    }

    fn fault(&mut self, site: u32, other: Option<u32>, what: &str, help: &str, certain: bool) {
        self.pairs.fault(site, other, what, help, certain);
    }

    /// A fault behind which nothing can be followed.
    fn stop<T>(&mut self, site: u32, other: Option<u32>, what: &str, help: &str) -> Goes<T> {
        self.fault(site, other, what, help, true);
        Err(Stop::Fault)
    }

    /// What is not known, behind which nothing can be followed.
    fn lost<T>(&mut self, site: u32, what: &str) -> Goes<T> {
        self.fault(site, None, what, "write it so that it does not depend on data, nor on what differs from thread to thread", false);
        Err(Stop::Fault)
    }

    fn groups_of(&mut self, id: ThreadsId, env: &Env, site: u32) -> Goes<Rc<Groups>> {
        let offset = self.exprs.value(self.p.threads[id].offset, env).same().unwrap_or(NOTHING);
        if let Some(found) = self.groups.get(&(id, offset)) {
            return Ok(Rc::clone(found));
        }
        match Groups::of(self.exprs, id, env, self.elected) {
            Ok(groups) => {
                let groups = Rc::new(groups);
                self.groups.insert((id, offset), Rc::clone(&groups));
                Ok(groups)
            }
            Err(why) => self.lost(site, why),
        }
    }

    /// Whether some statement of a list may make threads wait.
    fn may_wait(&mut self, stmts: &'p [Stmt]) -> bool {
        let key = stmts.as_ptr().addr();
        if let Some(known) = self.blocking.get(&key) {
            return *known;
        }
        let waits = self.p.walk(stmts).stmts().any(|s| match &s.kind {
            StmtKind::Barrier(_) | StmtKind::Sync(_) => true,
            StmtKind::Spec(id) => self.plan.leaves.get(id).is_some_and(|l| match &l.how {
                How::Atom { window, .. } => *window > 32,
                How::Bulk(_) => true,
                How::Meaning => false,
            }),
            _ => false,
        });
        self.blocking.insert(key, waits);
        waits
    }

    /// Lets the warps that have none of these threads go on behind the statement.
    fn send_on(&mut self, strand: &mut Strand<'p>, stay: &Mask) {
        let warps = strand.all().warps() & !stay.warps();
        if let Some(mut other) = strand.part(warps) {
            other.advance();
            self.put(other);
        }
    }

    fn step(&mut self, strand: &mut Strand<'p>) -> Goes<Step> {
        let Some(frame) = strand.frames.last() else { return Ok(Step::Ended) };
        let mask = frame.mask;
        let Some(stmt) = strand.stmt() else { return self.leave(strand) };
        let site = self.plan.site(stmt);
        match &stmt.kind {
            StmtKind::Indices(_) | StmtKind::Allocate(_) => {}
            StmtKind::Spec(id) => return self.spec(strand, *id, site),
            StmtKind::For { var, start, end, step, body, .. } => {
                let (first, end) =
                    (self.exprs.value(*start, &strand.env), self.exprs.value(*end, &strand.env));
                let mut going = Mask::default();
                for t in mask.threads() {
                    let (a, b) = (first.of(t), end.of(t));
                    if a == NOTHING || b == NOTHING {
                        return self.lost(site, "the bounds of the loop are not known");
                    }
                    if a < b {
                        going.insert(t);
                    }
                }
                if going.is_empty() {
                    strand.advance();
                    return Ok(Step::On);
                }
                if going != mask && self.may_wait(body) {
                    self.send_on(strand, &going);
                }
                strand.env.set(*var, first);
                let kind = Kind::Loop { trip: 0, var: *var, end, step: (*step).max(1) };
                strand.frames.push(Frame { stmts: body, at: 0, mask: going, kind });
                return Ok(Step::On);
            }
            StmtKind::If { cond, then, otherwise } => {
                let mut yes = mask;
                for (lhs, op, rhs) in cond {
                    let (a, b) =
                        (self.exprs.value(*lhs, &strand.env), self.exprs.value(*rhs, &strand.env));
                    let mut holding = Mask::default();
                    for t in mask.threads() {
                        let (a, b) = (a.of(t), b.of(t));
                        if a == NOTHING || b == NOTHING {
                            return self.lost(site, "the condition is not known");
                        }
                        if crate::blocks::holds(a, *op, b) {
                            holding.insert(t);
                        }
                    }
                    yes = yes.and(&holding);
                }
                let mut no = mask.without(&yes);
                if !yes.is_empty()
                    && !no.is_empty()
                    && (self.may_wait(then) || self.may_wait(otherwise))
                {
                    // Warps whose lanes agree go their own way.
                    for warps in [no.warps() & !yes.warps(), yes.warps() & !no.warps()] {
                        if let Some(mut other) = strand.part(warps) {
                            branch(&mut other, &yes, &no, then, otherwise);
                            self.put(other);
                        }
                    }
                    let mine = strand.mask();
                    (yes, no) = (yes.and(&mine), no.and(&mine));
                }
                branch(strand, &yes, &no, then, otherwise);
                return Ok(Step::On);
            }
            StmtKind::Barrier(None) => {
                let absent = Mask::first(self.n_threads).without(&mask);
                if !absent.is_empty() {
                    if self.may_come(strand, &absent) {
                        strand.status = Status::Meets;
                        return Ok(Step::Waits);
                    }
                    let what =
                        format!("{} threads of the block do not come to the barrier", absent.len());
                    return self.stop(
                        site,
                        None,
                        &what,
                        "move it out of the condition or the role, or name the threads: `barrier(#threads)`",
                    );
                }
                self.barrier(strand.rank, &mask, site);
            }
            StmtKind::Barrier(Some(threads)) if self.p.threads[*threads].own > 0 => {
                return self.own_barrier(strand, *threads, &mask, site);
            }
            StmtKind::Barrier(Some(threads)) => {
                let named = self.groups_of(*threads, &strand.env, site)?.mask;
                if !mask.and(&named).is_empty() {
                    return self.named_barrier(strand, named, site);
                }
            }
            StmtKind::Sync(sync) => return self.sync_stmt(strand, sync, site),
        }
        strand.advance();
        Ok(Step::On)
    }

    /// Leaves a list behind its last statement.
    fn leave(&mut self, strand: &mut Strand<'p>) -> Goes<Step> {
        let depth = strand.frames.len();
        let env = &mut strand.env;
        let Some(frame) = strand.frames.last_mut() else { return Ok(Step::Ended) };
        match &mut frame.kind {
            Kind::Root => Ok(Step::Ended),
            Kind::Body => {
                strand.frames.truncate(depth - 1);
                strand.advance();
                Ok(Step::On)
            }
            Kind::Branch { second, otherwise } => match otherwise.take() {
                Some((stmts, mask)) => {
                    *second = true;
                    (frame.stmts, frame.at, frame.mask) = (stmts, 0, mask);
                    Ok(Step::On)
                }
                None => {
                    strand.frames.truncate(depth - 1);
                    strand.advance();
                    Ok(Step::On)
                }
            },
            Kind::Loop { trip, var, end, step } => {
                let (var, step) = (*var, *step);
                let old = env.get(var).cloned().unwrap_or(Value::Same(NOTHING));
                let next = match old {
                    Value::Same(v) => Value::Same(v.checked_add(step).unwrap_or(NOTHING)),
                    Value::Each(all) => Value::Each(Rc::new(
                        all.iter().map(|v| v.checked_add(step).unwrap_or(NOTHING)).collect(),
                    )),
                };
                let mut going = Mask::default();
                for t in frame.mask.threads() {
                    if next.of(t) != NOTHING && next.of(t) < end.of(t) {
                        going.insert(t);
                    }
                }
                if going.is_empty() {
                    strand.frames.truncate(depth - 1);
                    strand.advance();
                    return Ok(Step::On);
                }
                env.set(var, next);
                *trip += 1;
                frame.at = 0;
                let leaves = going != frame.mask;
                let stmts = frame.stmts;
                if leaves {
                    let waits = self.may_wait(stmts);
                    if waits {
                        let warps = strand.all().warps() & !going.warps();
                        if let Some(mut other) = strand.part(warps) {
                            other.frames.truncate(depth - 1);
                            other.advance();
                            self.put(other);
                        }
                    }
                    if let Some(frame) = strand.frames.last_mut() {
                        frame.mask = going;
                    }
                }
                Ok(Step::On)
            }
        }
    }

    fn spec(&mut self, strand: &mut Strand<'p>, id: SpecId, site: u32) -> Goes<Step> {
        let spec = &self.p.specs[id];
        let mask = strand.mask();
        let Some(exec) = spec.exec else {
            return self.lost(site, "the spec does not say who executes it");
        };
        let groups = self.groups_of(exec.threads, &strand.env, site)?;
        let active = mask.and(&groups.mask);
        if let Some(body) = &spec.body {
            if active.is_empty() {
                strand.advance();
                return Ok(Step::On);
            }
            if active != mask && self.may_wait(body) {
                self.send_on(strand, &active);
            }
            strand.frames.push(Frame { stmts: body, at: 0, mask: active, kind: Kind::Body });
            return Ok(Step::On);
        }
        if !active.is_empty()
            && let Some(leaf) = self.plan.leaves.get(&id)
        {
            let window = match &leaf.how {
                How::Atom { window, size, .. } if *size > 1 => *window,
                How::Atom { .. } | How::Bulk(_) => 0,
                How::Meaning => 1,
            };
            let missing = missing(&groups, &active, window);
            if !missing.is_empty() {
                if self.may_come(strand, &missing) {
                    strand.status = Status::Meets;
                    return Ok(Step::Waits);
                }
                let what =
                    format!("{} threads of its groups do not come to the spec", missing.len());
                return self.stop(
                    site,
                    None,
                    &what,
                    "move it out of the condition, or run it on the threads that are there",
                );
            }
            if leaf.matters {
                self.leaf(strand, leaf, &groups, &active, site)?;
            }
        }
        strand.advance();
        Ok(Step::On)
    }

    // ---- accesses ----

    fn global_thread(&self, rank: usize, t: usize) -> u32 {
        (rank * self.clocks.per + t) as u32
    }

    fn who(&self, rank: usize, t: usize, proxy: Proxy) -> Who {
        Who { thread: self.global_thread(rank, t), proxy, serial: self.serial }
    }

    fn leaf(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        groups: &Groups,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        self.serial = self.serial.wrapping_add(1);
        self.at = self.describe(&strand.env, active);
        let inexact = match &leaf.how {
            How::Bulk(bulk) => return self.bulk(strand, leaf, bulk, active, site),
            How::Atom { .. } => false,
            How::Meaning => groups.groups.first().is_some_and(|g| g.len() > 1),
        };
        if let How::Atom { visibility: Visibility::AsyncGroup | Visibility::WgmmaGroup, .. } =
            leaf.how
        {
            let threads = self.threads_of(strand.rank, active);
            self.separate(&threads)?;
        }
        self.pairs.inexact = inexact;
        let done = self.leaf_operands(strand, leaf, active, site);
        self.pairs.inexact = false;
        done
    }

    fn leaf_operands(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let visibility = match &leaf.how {
            How::Atom { visibility, .. } => *visibility,
            How::Bulk(_) | How::Meaning => Visibility::Immediate,
        };
        // All lanes read before any of them writes.
        let both = leaf.operands.iter().filter(|o| o.reads && leaf.accumulates.is_none());
        let reads: Vec<&OperandPlan> = both.collect();
        let sums = leaf.accumulates.map(sum);
        for o in reads {
            self.operand(strand, leaf, o, Does::Read, visibility, active, site)?;
        }
        if let Some(does) = sums {
            let (sources, targets): (Vec<_>, Vec<_>) =
                leaf.operands.iter().partition(|o| !o.writes);
            for o in sources {
                self.operand(strand, leaf, o, Does::Read, visibility, active, site)?;
            }
            for o in targets {
                self.operand(strand, leaf, o, does, visibility, active, site)?;
            }
            return Ok(());
        }
        for o in leaf.operands.iter().filter(|o| o.writes) {
            self.operand(strand, leaf, o, Does::Write, visibility, active, site)?;
        }
        if visibility == Visibility::AsyncGroup {
            for t in active.threads() {
                let class = self.clocks.class_of[self.global_thread(strand.rank, t) as usize];
                self.clocks.classes[class as usize].queue_mut(Engine::Copies).issue(site);
            }
        }
        if visibility == Visibility::WgmmaGroup {
            for t in active.threads() {
                let class = self.clocks.class_of[self.global_thread(strand.rank, t) as usize];
                self.clocks.classes[class as usize].queue_mut(Engine::MatMuls).issue(site);
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one access, and what is known of it")]
    fn operand(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        o: &'a OperandPlan,
        does: Does,
        visibility: Visibility,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        match view.space {
            Space::Free | Space::Gathered => return Ok(()),
            Space::Registers(r) => {
                return self.register_operand(strand, leaf, r, o, does, visibility, active, site);
            }
            Space::Shared(_) | Space::Global(_) => {}
        }
        let plan = self.plan;
        let bases = self.exprs.value(view.offset, &strand.env);
        if o.described {
            return self.described(strand, o, active, site);
        }
        let valid = match (does, leaf.valid) {
            (Does::Read, Some(dim)) => Some(self.exprs.value(dim, &strand.env)),
            _ => None,
        };
        let lane_of: Option<&Vec<Vec<u16>>> = match &leaf.how {
            How::Atom { groups, size, .. } if *size > 1 => Some(groups),
            _ => None,
        };
        let window = match &leaf.how {
            How::Atom { window, .. } => *window,
            _ => 32,
        };
        let places: HashMap<u16, usize> = match (lane_of, &o.of_thread) {
            (Some(groups), Some(_)) => groups
                .iter()
                .flat_map(|g| g.iter().enumerate().map(|(t, lane)| (*lane, t)))
                .collect(),
            _ => HashMap::new(),
        };
        self.spend((active.len() * view.first.len()) as u64)?;
        for t in active.threads() {
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(site, "a place is not known");
            }
            let who = self.who(strand.rank, t, Proxy::Generic);
            let lanes = 1u32 << (t % 32);
            let class = self.clocks.class(who.thread);
            let by = match visibility {
                Visibility::AsyncGroup => By::Batch {
                    lanes,
                    engine: Engine::Copies,
                    batch: class.queue(Engine::Copies).open(),
                    reading: false,
                },
                _ => By::Lanes { lanes, time: class.time },
            };
            let record = Record {
                by,
                warp: who.thread / 32,
                proxy: Proxy::Generic,
                site,
                serial: self.serial,
                buffer: view.buffer.0,
            };
            let time = class.time;
            let rank = match view.peer {
                None => strand.rank,
                Some(dim) => self.peer(dim, &strand.env, t, site)?,
            };
            if rank != strand.rank {
                self.remote.insert((rank, who.thread, site), time);
            }
            let most = valid.as_ref().map(|v| v.of(t));
            let list: &[u32] = match (&o.of_thread, places.get(&((t % window) as u16))) {
                (Some(all), Some(place)) => all.get(*place).map_or(&[], |l| l.as_slice()),
                _ => &view.first,
            };
            for e in list {
                if most.is_some_and(|n| i64::from(*e) >= n) {
                    continue;
                }
                let place = base.saturating_add(plan.views[o.view].places[*e as usize]);
                self.touch(rank, view.space, place, does, &who, record)?;
            }
        }
        Ok(())
    }

    /// The granules at a place are accessed.
    #[inline]
    fn touch(
        &mut self,
        rank: usize,
        space: Space,
        place: i64,
        does: Does,
        who: &Who,
        record: Record,
    ) -> Goes<()> {
        match space {
            Space::Shared(b) => {
                let Some(cells) = self.plan.shared_cells(b, place) else {
                    return self.stop(
                        record.site,
                        None,
                        "an access leaves its buffer",
                        "run `carbyne simulate`, which says which element",
                    );
                };
                for i in cells {
                    let Some(cell) = self.cells.get_mut(rank).and_then(|c| c.get_mut(i)) else {
                        continue;
                    };
                    access(&self.clocks, &mut self.pairs, cell, does, who, record, &self.at);
                }
            }
            Space::Global(g) => {
                let granule = self.plan.globals[g].granule;
                let key = place.div_euclid(granule);
                if self.globals[g].len() > MAX_GLOBAL {
                    return Err(Stop::Limit(format!(
                        "a block accesses more than {MAX_GLOBAL} granules of a tensor that is written"
                    )));
                }
                let cell = self.globals[g].entry(key).or_default();
                access(&self.clocks, &mut self.pairs, cell, does, who, record, &self.at);
            }
            Space::Registers(_) | Space::Free | Space::Gathered => {}
        }
        Ok(())
    }

    /// Every warp of a group reads the whole tile that a descriptor names.
    fn described(
        &mut self,
        strand: &Strand<'p>,
        o: &'a OperandPlan,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        let bases = self.exprs.value(view.offset, &strand.env);
        for w in 0..32 {
            let lanes = active.0[w];
            if lanes == 0 {
                continue;
            }
            let t = w * 32 + lanes.trailing_zeros() as usize;
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(site, "a place is not known");
            }
            self.spend(view.first.len() as u64)?;
            let who = self.who(strand.rank, t, Proxy::Async);
            let class = self.clocks.class(who.thread);
            let batch = class.queue(Engine::MatMuls).open();
            let record = Record {
                by: By::Batch { lanes, engine: Engine::MatMuls, batch, reading: true },
                warp: who.thread / 32,
                proxy: Proxy::Async,
                site,
                serial: self.serial,
                buffer: view.buffer.0,
            };
            for e in &view.first {
                let place = base.saturating_add(view.places[*e as usize]);
                self.touch(strand.rank, view.space, place, Does::Read, &who, record)?;
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one access, and what is known of it")]
    fn register_operand(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        r: usize,
        o: &'a OperandPlan,
        does: Does,
        visibility: Visibility,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        let n = self.plan.registers[r].1 as usize;
        let bases = self.exprs.value(view.offset, &strand.env);
        let is_async = visibility == Visibility::WgmmaGroup;
        for w in 0..32 {
            let lanes = active.0[w];
            if lanes == 0 {
                continue;
            }
            let first = w * 32 + lanes.trailing_zeros() as usize;
            let who = self.who(strand.rank, first, Proxy::Generic);
            let warp = (who.thread / 32) as usize;
            let mut offsets: Vec<i64> = match &bases {
                Value::Same(v) => vec![*v],
                Value::Each(_) => {
                    (0..32).filter(|l| lanes >> l & 1 == 1).map(|l| bases.of(w * 32 + l)).collect()
                }
            };
            offsets.sort_unstable();
            offsets.dedup();
            let all: Vec<usize> = match view.spread {
                true => (0..n).collect(),
                false => offsets
                    .iter()
                    .flat_map(|o| view.places.iter().map(move |p| o.saturating_add(*p)))
                    .filter_map(|at| usize::try_from(at).ok().filter(|at| *at < n))
                    .collect(),
            };
            self.spend(all.len() as u64)?;
            let class = self.clocks.class(who.thread);
            let batches = &class.queue(Engine::MatMuls).batches;
            let open = class.queue(Engine::MatMuls).open();
            let fence = self.fences[warp];
            if is_async && fence == 0 {
                self.pairs.fault(
                    site,
                    None,
                    "no `wgmma.fence` stands before the asynchronous MatMul",
                    "write `wgmma.fence` before it",
                    true,
                );
                return Err(Stop::Fault);
            }
            for at in all {
                let cell = &mut self.registers[r][warp * n + at];
                let waited = |batch: u32| {
                    batches.get(batch as usize).filter(|b| b.done > 0).map(|b| b.waited_at)
                };
                let (writing, write_site, shape) = cell.writing;
                let written = (writing > 0).then(|| waited(writing - 1));
                let read = (cell.reading.0 > 0).then(|| waited(cell.reading.0 - 1));
                let pair = |pairs: &mut Pairs, first: (u32, Does), wait: Option<u32>| {
                    pairs.own(
                        first,
                        (site, does),
                        view.buffer.0,
                        who.thread,
                        AgentKind::MatMul,
                        AgentKind::Thread,
                        wait.ok_or(Missing::Wait),
                        &self.at,
                    );
                };
                if !is_async {
                    if let Some(wait) = written {
                        pair(&mut self.pairs, (write_site, Does::Write), wait);
                        if wait.is_some() {
                            cell.writing.0 = 0;
                        }
                    }
                    if let (Some(wait), Does::Write) = (read, does) {
                        let site = cell.reading.1;
                        pair(&mut self.pairs, (site, Does::Read), wait);
                        if wait.is_some() {
                            cell.reading.0 = 0;
                        }
                    }
                    (cell.last, cell.last_site) = (self.serial, site);
                    continue;
                }
                let in_flight = written == Some(None);
                if in_flight {
                    if writing - 1 != open && shape != leaf.shape {
                        pair(&mut self.pairs, (write_site, Does::Write), None);
                    }
                } else if cell.last > 0 {
                    let fenced = cell.last < fence;
                    let ordered = match fenced {
                        true => Ok(u32::MAX),
                        false => Err(Missing::RegisterFence),
                    };
                    let first = (cell.last_site, Does::Write);
                    self.pairs.own(
                        first,
                        (site, does),
                        view.buffer.0,
                        who.thread,
                        AgentKind::Thread,
                        AgentKind::MatMul,
                        ordered,
                        &self.at,
                    );
                }
                match does {
                    Does::Read => cell.reading = (open + 1, site),
                    _ => cell.writing = (open + 1, site, leaf.shape),
                }
            }
        }
        Ok(())
    }

    fn peer(&mut self, dim: carbyne_ir::expr::Dim, env: &Env, t: usize, site: u32) -> Goes<usize> {
        let rank = self.exprs.at(dim, env, t).and_then(|r| usize::try_from(r).ok());
        match rank.filter(|r| *r < self.n_blocks) {
            Some(rank) => Ok(rank),
            None => self.stop(
                site,
                None,
                "it names a block that is none of the cluster",
                "ranks count the blocks of a cluster from 0",
            ),
        }
    }

    fn bulk(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        bulk: &'a Bulk,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let plan = self.plan;
        let (source, target) = (&plan.views[bulk.source], &plan.views[bulk.target]);
        let adds = leaf.accumulates.map(sum);
        for t in active.threads() {
            self.serial = self.serial.wrapping_add(1);
            let thread = self.global_thread(strand.rank, t);
            self.separate(&[thread])?;
            let (from, to) = (
                self.exprs.value(source.offset, &strand.env).of(t),
                self.exprs.value(target.offset, &strand.env).of(t),
            );
            if from == NOTHING || to == NOTHING {
                return self.lost(site, "a place is not known");
            }
            let ranks = match bulk.mask {
                None => vec![strand.rank],
                Some(dim) => {
                    let mask = self.exprs.at(dim, &strand.env, t).unwrap_or(0);
                    if mask < 1 || mask >> self.n_blocks.min(62) != 0 {
                        return self.stop(
                            site,
                            None,
                            "it goes to blocks that are none of the cluster",
                            "name blocks of the cluster, one bit each",
                        );
                    }
                    (0..self.n_blocks).filter(|r| mask >> r & 1 == 1).collect()
                }
            };
            let mut phases = vec![];
            if let Some(bar) = bulk.bar {
                for rank in &ranks {
                    let m = self.mbarrier(*rank, bar, 0, &strand.env, t, site)?;
                    if self.mbarriers[m].unpublished.is_some() {
                        return self.stop(site, None, "the copy is given an mbarrier whose init it may not see yet", "write `fence.mbarrier_init` or `fence.async` behind the init, before the barrier that follows");
                    }
                    phases.push(m);
                }
                let class = self.separate(&[thread])?[0];
                for m in &phases {
                    let b = &self.mbarriers[*m];
                    if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, false) {
                        return self.stop(site, Some(other), "nothing orders the copy behind the last phase of its mbarrier, in which its bytes may count", "let the thread wait for that phase first, or correct the index");
                    }
                }
            }
            let inside = self.inside(bulk, strand, t, site)?;
            self.spend((source.first.len() + target.first.len()) as u64)?;
            let class = self.clocks.class(thread);
            let batch = class.queue(Engine::Bulk).open();
            let lanes = 1u32 << (t % 32);
            let make = |by: By, view: &crate::plan::View, serial: u32| Record {
                by,
                warp: thread / 32,
                proxy: match view.space {
                    Space::Shared(_) => Proxy::Async,
                    _ => Proxy::Generic,
                },
                site,
                serial,
                buffer: view.buffer.0,
            };
            // What is read until it is complete.
            let read = match phases.as_slice() {
                [] => By::Batch { lanes, engine: Engine::Bulk, batch, reading: true },
                [m, ..] => By::Phase {
                    agent: self.mbarriers[*m].agent,
                    phases: self.mbarriers[*m].phase + 1,
                },
            };
            let of_target = bulk.boxed.as_ref().is_some_and(|b| !b.of_source);
            let record = make(read, source, self.serial);
            let who = Who { thread, proxy: record.proxy, serial: self.serial };
            if !matches!(source.space, Space::Free) {
                for e in &source.first {
                    if inside(*e) || of_target {
                        let place = from.saturating_add(source.places[*e as usize]);
                        self.touch(strand.rank, source.space, place, Does::Read, &who, record)?;
                    }
                }
            }
            for (i, rank) in ranks.iter().enumerate() {
                let by = match phases.get(i) {
                    Some(m) => By::Phase {
                        agent: self.mbarriers[*m].agent,
                        phases: self.mbarriers[*m].phase + 1,
                    },
                    None => By::Batch { lanes, engine: Engine::Bulk, batch, reading: false },
                };
                let record = make(by, target, self.serial);
                let who = Who { thread, proxy: record.proxy, serial: self.serial };
                if !matches!(target.space, Space::Free) {
                    for e in &target.first {
                        if !of_target || inside(*e) {
                            let place = to.saturating_add(target.places[*e as usize]);
                            let does = adds.unwrap_or(Does::Write);
                            self.touch(*rank, target.space, place, does, &who, record)?;
                        }
                    }
                }
            }
            if phases.is_empty() {
                let class = self.clocks.class_of[thread as usize] as usize;
                self.clocks.classes[class].queue_mut(Engine::Bulk).issue(site);
                continue;
            }
            let class = self.clocks.class_of[thread as usize] as usize;
            let mut issued = self.clocks.release(class, None, site);
            (issued.seen, issued.fenced) = Default::default();
            for m in phases {
                let b = &mut self.mbarriers[m];
                b.arriving.join(&issued);
                b.bytes = b.bytes.saturating_sub(bulk.bytes);
                b.current.bytes = Some(site);
                b.lands(site);
                self.settle(m, site)?;
            }
        }
        Ok(())
    }

    /// Which elements of a box lie in the tensor of its map.
    fn inside(
        &mut self,
        bulk: &'a Bulk,
        strand: &Strand<'p>,
        t: usize,
        site: u32,
    ) -> Goes<impl Fn(u32) -> bool + use<'p, 'a>> {
        let place = match &bulk.boxed {
            None => None,
            Some(b) => {
                let at: Option<Vec<i64>> =
                    b.at.iter().map(|d| self.exprs.at(*d, &strand.env, t)).collect();
                let Some(at) = at else {
                    return self.lost(site, "the place of a box is not known");
                };
                let view = if b.of_source { bulk.source } else { bulk.target };
                Some((at, &b.extents, &self.plan.views[view].modes))
            }
        };
        Ok(move |e: u32| {
            place
                .as_ref()
                .is_none_or(|(at, extents, modes)| is_inside(i64::from(e), modes, at, extents))
        })
    }

    // ---- synchronization ----

    /// The classes that these threads are.
    fn separate(&mut self, threads: &[u32]) -> Goes<Vec<usize>> {
        let n = self.clocks.classes.len() as u64;
        self.spend(threads.len() as u64 + n * n / 16)?;
        let classes = self.clocks.separate(threads);
        for (from, to) in &self.clocks.splits[self.n_splits..] {
            self.mbarriers.iter_mut().for_each(|m| m.split(*from, *to));
            self.cluster.arriving.split(*from, *to);
            self.cluster.complete.split(*from, *to);
        }
        self.n_splits = self.clocks.splits.len();
        match self.clocks.classes.len() > MAX_CLASSES {
            true => Err(Stop::Limit(format!(
                "its threads synchronize in more than {MAX_CLASSES} different ways"
            ))),
            false => Ok(classes),
        }
    }

    fn threads_of(&self, rank: usize, mask: &Mask) -> Vec<u32> {
        mask.threads().map(|t| self.global_thread(rank, t)).collect()
    }

    fn barrier(&mut self, rank: usize, mask: &Mask, site: u32) {
        let threads = self.threads_of(rank, mask);
        if let Ok(classes) = self.separate(&threads) {
            self.clocks.synchronize(&classes, site);
        }
    }

    /// A barrier at which each thread means the group that it is in.
    fn own_barrier(
        &mut self,
        strand: &mut Strand<'p>,
        threads: ThreadsId,
        mask: &Mask,
        site: u32,
    ) -> Goes<Step> {
        let Some(groups) = self.p.threads[threads].own_groups() else {
            return self.lost(site, "its threads are not known");
        };
        let mut meeting = vec![];
        for group in groups {
            let mut named = Mask::default();
            group.iter().filter_map(|t| usize::try_from(*t).ok()).for_each(|t| named.insert(t));
            if !mask.and(&named).is_empty() {
                meeting.push(named);
            }
        }
        if meeting.iter().all(|named| mask.contains(named)) {
            meeting.iter().for_each(|named| self.barrier(strand.rank, named, site));
            strand.advance();
            return Ok(Step::On);
        }
        let Some(named) = meeting.iter().find(|named| !mask.contains(named)).copied() else {
            strand.advance();
            return Ok(Step::On);
        };
        // Threads of other groups come to it by themselves.
        if meeting.len() > 1
            && let Some(other) = strand.part(strand.all().warps() & !named.warps())
        {
            self.put(other);
        }
        self.named_barrier(strand, named, site)
    }

    fn named_barrier(&mut self, strand: &mut Strand<'p>, named: Mask, site: u32) -> Goes<Step> {
        let mask = strand.mask();
        if mask.contains(&named) {
            self.barrier(strand.rank, &named, site);
            strand.advance();
            return Ok(Step::On);
        }
        // Warps that it does not name go on.
        let others = strand.all().warps() & !named.warps();
        if let Some(mut other) = strand.part(others) {
            other.advance();
            self.put(other);
        }
        strand.status = Status::Barrier(named);
        let same = |s: &Strand<'_>| s.rank == strand.rank && s.status == Status::Barrier(named);
        let arrived =
            self.strands.iter().filter(|s| same(s)).fold(strand.mask(), |all, s| all.or(&s.mask()));
        if !arrived.contains(&named) {
            return Ok(Step::Waits);
        }
        self.barrier(strand.rank, &named, site);
        let rank = strand.rank;
        let (mut done, rest): (Vec<Strand<'p>>, Vec<Strand<'p>>) =
            std::mem::take(&mut self.strands)
                .into_iter()
                .partition(|s| s.rank == rank && s.status == Status::Barrier(named));
        self.strands = rest;
        for s in &mut done {
            s.status = Status::Ready;
            s.advance();
        }
        done.into_iter().for_each(|s| self.put(s));
        strand.status = Status::Ready;
        strand.advance();
        Ok(Step::On)
    }

    /// The mbarrier at an element of a thread's view, which is used.
    fn mbarrier(
        &mut self,
        rank: usize,
        view: usize,
        element: usize,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<usize> {
        let (place, who) = self.mbarrier_place(rank, view, element, env, t, site)?;
        let found = self.mbarrier_at.get(&(rank, place.1)).copied();
        let Some(found) = found else {
            return self.stop(
                site,
                None,
                "an mbarrier is used before its `mbarrier.init`",
                "initialize it, then put a `barrier` before its first use",
            );
        };
        // It must come after the init.
        let v = &self.plan.views[view];
        let class = self.clocks.class(who.thread);
        let record = Record {
            by: By::Lanes { lanes: 1 << (t % 32), time: class.time },
            warp: who.thread / 32,
            proxy: Proxy::Generic,
            site,
            serial: self.serial,
            buffer: v.buffer.0,
        };
        let Space::Shared(b) = v.space else { return Ok(found) };
        if let Some(mut cells) = self.plan.shared_cells(b, place.0)
            && let Some(i) = cells.next()
            && let Some(write) = self.cells[rank][i].write
        {
            let relation = write.relation(&self.clocks, &who);
            self.pairs.meet(
                &self.clocks,
                (write, Does::Write),
                (record, Does::Read),
                &who,
                relation,
                &self.at,
            );
        }
        Ok(found)
    }

    /// The offset and the byte of a thread's mbarrier.
    fn mbarrier_place(
        &mut self,
        rank: usize,
        view: usize,
        element: usize,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<((i64, i64), Who)> {
        let _ = rank;
        let v = &self.plan.views[view];
        let Some(base) = self.exprs.at(v.offset, env, t) else {
            return self.lost(site, "it is not known which mbarrier is used");
        };
        let place = base.saturating_add(v.places.get(element).copied().unwrap_or(0));
        let Space::Shared(b) = v.space else {
            return self.lost(site, "it is not known where the mbarrier is");
        };
        let byte = self.plan.shared[b].at.saturating_add(place.saturating_mul(8));
        let own = self.who_of(env, t);
        Ok(((place, byte), own))
    }

    fn who_of(&self, env: &Env, t: usize) -> Who {
        let rank = usize::try_from(env.block - self.first_block).unwrap_or(0);
        self.who(rank, t, Proxy::Generic)
    }

    fn number(&mut self, sync: &Sync, env: &Env, t: usize, site: u32) -> Goes<i64> {
        let Some(dim) = sync.number else { return Ok(1) };
        match self.exprs.at(dim, env, t) {
            Some(n) => Ok(n),
            None => self.lost(site, "the number of a synchronization is not known"),
        }
    }

    /// Threads that execute a statement together and are absent.
    fn absent(&self, sync: &Sync, mask: &Mask) -> Mask {
        let remote = sync.tensor.is_some_and(|t| self.p.tensors[t].peer.is_some());
        let number = sync.number.map(|d| {
            let (lo, hi) = self.p.arena.range(d);
            (lo, hi, self.p.arena.divisor(d))
        });
        let group = self.atoms.sync(sync.op, number, remote).map_or(1, |a| a.group);
        let mut absent = Mask::default();
        if group < 32 {
            return absent;
        }
        let all = Mask::first(self.n_threads);
        let per = (group / 32).clamp(1, 32) as usize;
        for first in (0..32).step_by(per) {
            let warps = (((1u64 << per) - 1) << first) as u32;
            if mask.warps() & warps != 0 {
                absent = absent.or(&all.of_warps(warps).without(mask));
            }
        }
        absent
    }

    fn sync_stmt(&mut self, strand: &mut Strand<'p>, sync: &'p Sync, site: u32) -> Goes<Step> {
        self.serial = self.serial.wrapping_add(1);
        let mask = strand.mask();
        self.at = self.describe(&strand.env, &mask);
        let absent = self.absent(sync, &mask);
        if !absent.is_empty() {
            if self.may_come(strand, &absent) {
                strand.status = Status::Meets;
                return Ok(Step::Waits);
            }
            let what = format!(
                "{} threads that execute `{}` together with others are absent",
                absent.len(),
                sync.op
            );
            return self.stop(
                site,
                None,
                &what,
                "move it out of the condition, so that whole warps come to it",
            );
        }
        let waiting = self.waiting(strand, sync, &mask, site)?;
        if waiting.is_empty() {
            self.sync(strand, sync, &mask, site)?;
            strand.advance();
            return Ok(Step::On);
        }
        let ready = mask.without(&waiting);
        if !ready.is_empty()
            && let Some(mut other) = strand.part(ready.warps() & !waiting.warps())
        {
            let mask = other.mask();
            self.sync(&other, sync, &mask, site)?;
            other.advance();
            self.put(other);
        }
        strand.status = Status::Waits;
        Ok(Step::Waits)
    }

    /// Threads whose warps have to wait here.
    fn waiting(&mut self, strand: &Strand<'p>, sync: &Sync, mask: &Mask, site: u32) -> Goes<Mask> {
        let mut waiting = Mask::default();
        match sync.op {
            SyncOp::MbarrierWait => {
                let Some(tensor) = sync.tensor else { return Ok(waiting) };
                for t in mask.threads() {
                    if waiting.has(t) {
                        continue;
                    }
                    let parity = self.number(sync, &strand.env, t, site)?;
                    let m = self.named(strand, tensor, t, site)?;
                    if m.iter().any(|m| !self.mbarriers[*m].passes(parity)) {
                        waiting = waiting.or(&mask.of_warps(1 << (t / 32)));
                    }
                }
            }
            SyncOp::RegistersInc => {
                for warps in warp_groups(mask) {
                    let first = warps.trailing_zeros() as usize * 32;
                    let wanted = self.number(sync, &strand.env, first, site)?;
                    if self.registers_wanted(strand.rank, warps, wanted)
                        > self.registers_left[strand.rank].0
                    {
                        waiting = waiting.or(&mask.of_warps(warps));
                    }
                }
            }
            SyncOp::ClusterWait => {
                for t in mask.threads() {
                    let thread = self.global_thread(strand.rank, t);
                    match self.cluster.passes(thread) {
                        Ok(true) => {}
                        Ok(false) => waiting = waiting.or(&mask.of_warps(1 << (t / 32))),
                        Err(()) => {
                            return self.stop(site, None, "a thread waits for the barrier of the cluster, and has not arrived there", "write `cluster.arrive` before it");
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(waiting)
    }

    /// The mbarriers that a thread names.
    fn named(
        &mut self,
        strand: &Strand<'p>,
        tensor: TensorId,
        t: usize,
        site: u32,
    ) -> Goes<Vec<usize>> {
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(site, &why),
        };
        let rank = match self.plan.views[view].peer {
            None => strand.rank,
            Some(dim) => self.peer(dim, &strand.env, t, site)?,
        };
        let n = self.plan.views[view].places.len();
        let mut out = Vec::with_capacity(n);
        for e in 0..n {
            out.push(self.mbarrier(rank, view, e, &strand.env, t, site)?);
        }
        if rank != strand.rank {
            let thread = self.global_thread(strand.rank, t);
            let time = self.clocks.class(thread).time;
            self.remote.insert((rank, thread, site), time);
        }
        Ok(out)
    }

    fn settle(&mut self, m: usize, site: u32) -> Goes<()> {
        match self.mbarriers[m].settle(&self.clocks) {
            Settled::Not => {}
            Settled::Complete => self.wake = true,
            Settled::Late(wait) => {
                self.wake = true;
                self.fault(wait, Some(site), "the phase that is waited for may be over, and the next one too, before the thread comes to wait", "let those who complete the next phase come after this wait, or correct the parity", false);
            }
        }
        Ok(())
    }

    fn sync(&mut self, strand: &Strand<'p>, sync: &'p Sync, mask: &Mask, site: u32) -> Goes<()> {
        let rank = strand.rank;
        let threads = self.threads_of(rank, mask);
        if matches!(sync.op, SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait) {
            let classes = self.separate(&threads)?;
            self.clocks.converge(&classes);
        }
        let left = match sync.op {
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
                let t = mask.threads().next().unwrap_or(0);
                u32::try_from(self.number(sync, &strand.env, t, site)?).unwrap_or(0)
            }
            _ => 0,
        };
        match sync.op {
            SyncOp::AsyncCommit | SyncOp::BulkCommit | SyncOp::WgmmaCommit => {
                let engine = engine(sync.op);
                for class in self.separate(&threads)? {
                    self.clocks.commit(class, engine);
                }
            }
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
                let engine = engine(sync.op);
                let reading = sync.op == SyncOp::BulkWaitRead;
                for class in self.separate(&threads)? {
                    self.clocks.wait(class, engine, left, reading, site);
                }
            }
            SyncOp::FenceAsync => {
                for class in self.separate(&threads)? {
                    self.clocks.fence(class, site);
                }
                self.publish(&threads);
            }
            SyncOp::FenceMbarrierInit => self.publish(&threads),
            SyncOp::WgmmaFence => {
                self.serial = self.serial.wrapping_add(1);
                for t in &threads {
                    self.fences[(*t / 32) as usize] = self.serial;
                }
            }
            SyncOp::ClusterArrive | SyncOp::ClusterArriveRelaxed => {
                let all = self.n_blocks * self.n_threads;
                let agent = self.cluster.agent;
                for class in self.separate(&threads)? {
                    let mut message = self.clocks.release(class, Some(agent), site);
                    if sync.op == SyncOp::ClusterArriveRelaxed {
                        (message.seen, message.fenced) = Default::default();
                    }
                    self.cluster.arriving.join(&message);
                }
                for t in &threads {
                    match self.cluster.arrive(*t, all) {
                        Ok(complete) => self.wake |= complete,
                        Err(()) => {
                            return self.stop(
                                site,
                                None,
                                "a thread arrives twice at the barrier of the cluster",
                                "write `cluster.wait` between the arrivals",
                            );
                        }
                    }
                }
            }
            SyncOp::ClusterWait => {
                threads.iter().for_each(|t| self.cluster.pass(*t));
                let (message, agent) = (self.cluster.complete.clone(), self.cluster.agent);
                for class in self.separate(&threads)? {
                    self.clocks.acquire(class, &message, Some(agent), site);
                }
            }
            SyncOp::MbarrierInit => {
                for t in mask.threads() {
                    self.init(strand, sync, t, site)?;
                }
            }
            SyncOp::MbarrierArrive | SyncOp::MbarrierExpect | SyncOp::MbarrierAsyncArrive => {
                self.arrive(strand, sync, mask, site)?;
            }
            SyncOp::MbarrierWait => self.pass(strand, sync, mask, site)?,
            SyncOp::RegistersInc | SyncOp::RegistersDec => {
                for warps in warp_groups(mask) {
                    let first = warps.trailing_zeros() as usize * 32;
                    let number = self.number(sync, &strand.env, first, site)?;
                    let wanted = self.registers_wanted(rank, warps, number);
                    let wrong =
                        if sync.op == SyncOp::RegistersInc { wanted < 0 } else { wanted > 0 };
                    if wrong {
                        return self.stop(
                            site,
                            None,
                            "the threads have another number of registers already",
                            "write `registers.inc` for more, `registers.dec` for fewer",
                        );
                    }
                    let (left, held) = &mut self.registers_left[rank];
                    *left -= wanted;
                    for (w, held) in held.iter_mut().enumerate() {
                        if warps >> w & 1 == 1 {
                            *held = number;
                        }
                    }
                    self.wake = true;
                }
            }
            SyncOp::GridWait | SyncOp::GridLaunch | SyncOp::Prefetch => {}
        }
        Ok(())
    }

    /// Registers that warps need beyond what they have, for so many a thread.
    fn registers_wanted(&self, rank: usize, warps: u32, number: i64) -> i64 {
        let held = self.registers_left[rank].1.iter().enumerate();
        let of = held.filter(|(w, _)| warps >> w & 1 == 1);
        of.map(|(_, held)| number.saturating_sub(*held).saturating_mul(32)).sum()
    }

    fn publish(&mut self, threads: &[u32]) {
        for m in &mut self.mbarriers {
            if m.unpublished.is_some_and(|by| threads.binary_search(&by).is_ok()) {
                m.unpublished = None;
            }
        }
    }

    fn init(&mut self, strand: &Strand<'p>, sync: &Sync, t: usize, site: u32) -> Goes<()> {
        let Some(tensor) = sync.tensor else { return Ok(()) };
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(site, &why),
        };
        let count = self.number(sync, &strand.env, t, site)?;
        let thread = self.global_thread(strand.rank, t);
        for e in 0..self.plan.views[view].places.len() {
            let (place, who) = self.mbarrier_place(strand.rank, view, e, &strand.env, t, site)?;
            if self.mbarrier_at.contains_key(&(strand.rank, place.1)) {
                return self.stop(
                    site,
                    None,
                    "an mbarrier is initialized twice",
                    "let one thread initialize it, once",
                );
            }
            if self.mbarriers.len() >= MAX_MBARRIERS {
                return Err(Stop::Limit(format!("it has more than {MAX_MBARRIERS} mbarriers")));
            }
            let agent = self.clocks.agent();
            self.mbarrier_at.insert((strand.rank, place.1), self.mbarriers.len());
            self.mbarriers.push(Mbarrier::new(agent, count, thread));
            let class = self.clocks.class(thread);
            let record = Record {
                by: By::Lanes { lanes: 1 << (t % 32), time: class.time },
                warp: thread / 32,
                proxy: Proxy::Generic,
                site,
                serial: self.serial,
                buffer: self.plan.views[view].buffer.0,
            };
            let space = self.plan.views[view].space;
            self.touch(strand.rank, space, place.0, Does::Write, &who, record)?;
        }
        Ok(())
    }

    /// Threads by the mbarrier that they name, with the number that they give.
    fn by_mbarrier(
        &mut self,
        strand: &Strand<'p>,
        sync: &Sync,
        mask: &Mask,
        site: u32,
    ) -> Goes<BTreeMap<(usize, i64), Vec<u32>>> {
        let mut by: BTreeMap<(usize, i64), Vec<u32>> = BTreeMap::new();
        let Some(tensor) = sync.tensor else { return Ok(by) };
        for t in mask.threads() {
            let number = match sync.op {
                SyncOp::MbarrierAsyncArrive => 1,
                _ => self.number(sync, &strand.env, t, site)?,
            };
            for m in self.named(strand, tensor, t, site)? {
                by.entry((m, number)).or_default().push(self.global_thread(strand.rank, t));
            }
        }
        Ok(by)
    }

    fn arrive(&mut self, strand: &Strand<'p>, sync: &'p Sync, mask: &Mask, site: u32) -> Goes<()> {
        let later = sync.op == SyncOp::MbarrierAsyncArrive;
        for ((m, number), threads) in self.by_mbarrier(strand, sync, mask, site)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, later) {
                    return self.stop(site, Some(other), "nothing orders the arrival behind the last phase of its mbarrier, in which it may count", "let the thread wait first, for that phase or for those who waited for it; or correct the index, or the count");
                }
                let members = self.clocks.classes[class].members.clone();
                let time = self.clocks.classes[class].time;
                let (agent, phase) = (b.agent, b.phase);
                let each = if sync.op == SyncOp::MbarrierArrive { number } else { 1 };
                let n = each.saturating_mul(members.len() as i64);
                if n > b.pending || each < 1 {
                    return self.stop(
                        site,
                        None,
                        "an mbarrier gets more arrivals than its phase takes",
                        "compare the count of `mbarrier.init` with the threads that arrive",
                    );
                }
                if later {
                    self.clocks.land(class, agent, phase + 1);
                }
                let c = &self.clocks.classes[class];
                let converged = (c.warps.clone(), c.converged.clone());
                let message = self.clocks.release(class, Some(agent), site);
                let b = &mut self.mbarriers[m];
                b.arriving.join(&message);
                b.current.list.push(Arrival { threads: members, time, later, site, converged });
                b.pending -= n;
                if later {
                    b.lands(site);
                }
                if sync.op == SyncOp::MbarrierExpect {
                    b.bytes = b.bytes.saturating_add(number.saturating_mul(n));
                    if number > 0 {
                        b.current.bytes = Some(site);
                    }
                }
                self.settle(m, site)?;
            }
        }
        Ok(())
    }

    fn pass(&mut self, strand: &Strand<'p>, sync: &'p Sync, mask: &Mask, site: u32) -> Goes<()> {
        for ((m, _), threads) in self.by_mbarrier(strand, sync, mask, site)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.before.unordered(&self.clocks, class, b.agent, false) {
                    return self.stop(site, Some(other), "nothing orders the wait behind the phase before: it may have passed two phases ago, as the parity is the same", "let every thread wait for each phase in turn, or for those who have waited");
                }
                let (message, agent): (Message, _) = (b.complete.clone(), b.agent);
                self.clocks.acquire(class, &message, Some(agent), site);
                self.mbarriers[m].pass(&self.clocks, class, site);
            }
        }
        Ok(())
    }

    // ---- the end ----

    fn ends(&mut self) -> Goes<()> {
        let mut left = vec![];
        for class in &self.clocks.classes {
            if let Some(site) = class.queue(Engine::Copies).left(false) {
                left.push((site, "the block may end while an asynchronous copy to its shared memory is under way", "write `async.commit` and `async.wait(0)` before the end"));
            }
            if let Some(site) = class.queue(Engine::Bulk).left(true) {
                left.push((
                    site,
                    "the block may end while an asynchronous copy still reads its shared memory",
                    "write `bulk.commit` and `bulk.wait_read(0)` before the end",
                ));
            }
            if let Some(site) = class.queue(Engine::MatMuls).left(false) {
                left.push((
                    site,
                    "the block may end while an asynchronous MatMul still reads its shared memory",
                    "write `wgmma.commit` and `wgmma.wait(0)` before the end",
                ));
            }
        }
        for m in &self.mbarriers {
            if let Some(site) = m.unwaited {
                left.push((site, "the block may end while a copy to its shared memory is under way, for whose phase nobody waits", "write `mbarrier.wait` for its phase before the end"));
            } else if m.current.bytes.is_some() && m.bytes != 0 {
                let site = m.current.bytes.unwrap_or(0);
                left.push((site, "the last phase of an mbarrier is not complete: bytes are missing, or none expected", "compare the bytes of `mbarrier.expect` with the copies"));
            }
        }
        for (site, what, help) in left {
            self.fault(site, None, what, help, true);
        }
        let mut early = vec![];
        for ((rank, thread, site), time) in &self.remote {
            let agent = self.clocks.class(*thread).agent;
            let knows = |c: &crate::clocks::Class| {
                c.members.first().is_some_and(|t| *t as usize / self.clocks.per == *rank)
                    && c.knows.seen.get(agent) >= *time
            };
            if !self.clocks.classes.iter().any(knows) {
                early.push(*site);
            }
        }
        early.dedup();
        for site in early {
            self.fault(
                site,
                None,
                "a block may end while another still accesses its shared memory",
                "write `cluster.arrive` and `cluster.wait` before the end",
                true,
            );
        }
        Ok(())
    }

    /// Nobody can go on.
    fn stuck(&mut self) -> Goes<()> {
        let order = |a: &&Strand<'_>, b: &&Strand<'_>| a.compare(b).then(a.rank.cmp(&b.rank));
        let mut all: Vec<&Strand<'p>> = self.strands.iter().collect();
        all.sort_by(order);
        let mut said: Vec<(u32, Status, Mask)> = vec![];
        for s in all {
            let Some(stmt) = s.stmt() else { continue };
            let site = self.plan.site(stmt);
            if !said.iter().any(|(other, ..)| *other == site) {
                said.push((site, s.status.clone(), s.mask()));
            }
        }
        for (i, (site, status, _)) in said.iter().enumerate() {
            let other = said.iter().enumerate().find(|(j, _)| *j != i).map(|(_, s)| s.0);
            let (what, help) = match status {
                Status::Barrier(named) => (
                    format!("not all {} threads that the barrier names come to it", named.len()),
                    "let all of them come to it, or name those that do",
                ),
                Status::Meets => (
                    "the other threads that it needs do not come to it".to_owned(),
                    "move it out of the condition or the role",
                ),
                Status::Waits | Status::Ready => (
                    "nothing ends the wait: the phase that it is for is never complete".to_owned(),
                    "compare arrivals and bytes of the phase with who arrives, and the parity with the round",
                ),
            };
            self.pairs.fault(*site, other, &what, help, true);
        }
        Err(Stop::Fault)
    }

    /// `k = 3, s = 1`, of the first of some threads.
    fn describe(&self, env: &Env, mask: &Mask) -> String {
        let t = mask.threads().next().unwrap_or(0);
        let one = |(var, value): &(carbyne_ir::expr::VarId, Value)| {
            format!("{} = {}", self.p.arena.var_info(*var).name, value.of(t))
        };
        env.loops.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// The warps of each warp group with one of these threads, a bit each.
fn warp_groups(mask: &Mask) -> Vec<u32> {
    let warps = mask.warps();
    (0..8).map(|g| warps & 0xf << (g * 4)).filter(|w| *w != 0).collect()
}

/// Registers of a thread, by warp, at the start of a block that has a multiprocessor for itself, in eights (PTX ISA,
/// Miscellaneous Instructions: setmaxnreg).
fn registers_of(n_threads: usize, atoms: &AtomTable) -> Vec<i64> {
    let limits = carbyne_atoms::limits(atoms.arch);
    let n_warps = n_threads.div_ceil(32).max(1);
    let fit = limits.regs_per_sm / (n_warps as i64 * 32) / 8 * 8;
    vec![fit.min((limits.regs_per_thread + 7) / 8 * 8); n_warps]
}

/// What became of threads.
enum Step {
    On,
    Waits,
    Ended,
}

fn engine(op: SyncOp) -> Engine {
    match op {
        SyncOp::AsyncCommit | SyncOp::AsyncWait => Engine::Copies,
        SyncOp::WgmmaCommit | SyncOp::WgmmaWait => Engine::MatMuls,
        _ => Engine::Bulk,
    }
}

/// Whether an element of a box that begins at these coordinates lies in a tensor of these extents.
pub(crate) fn is_inside(e: i64, modes: &[i64], at: &[i64], extents: &[i64]) -> bool {
    let mut rest = e;
    modes.iter().zip(at).zip(extents).all(|((n, at), extent)| {
        let c = rest % (*n).max(1);
        rest /= (*n).max(1);
        (0..*extent).contains(&at.saturating_add(c))
    })
}

/// Enters the side of a condition that threads take first.
fn branch<'p>(
    strand: &mut Strand<'p>,
    yes: &Mask,
    no: &Mask,
    then: &'p [Stmt],
    otherwise: &'p [Stmt],
) {
    let mine = strand.mask();
    let (yes, no) = (yes.and(&mine), no.and(&mine));
    let (stmts, mask, kind) = if yes.is_empty() {
        (otherwise, no, Kind::Branch { second: true, otherwise: None })
    } else {
        let next = (!no.is_empty()).then_some((otherwise, no));
        (then, yes, Kind::Branch { second: false, otherwise: next })
    };
    strand.frames.push(Frame { stmts, at: 0, mask, kind });
}

/// Threads of groups that are there in part, or of the windows of warps that an atom takes at once.
fn missing(groups: &Groups, active: &Mask, window: usize) -> Mask {
    let mut missing = Mask::default();
    if window == 0 {
        return missing;
    }
    if window > 1 {
        let per = window / 32;
        for first in (0..32).step_by(per.max(1)) {
            let warps = (((1u64 << per) - 1) << first) as u32;
            if active.warps() & warps != 0 {
                missing = missing.or(&groups.mask.of_warps(warps).without(active));
            }
        }
        return missing;
    }
    for group in &groups.groups {
        let here = group.iter().filter(|t| active.has(usize::from(**t))).count();
        if here > 0 && here < group.len() {
            let absent = group.iter().map(|t| usize::from(*t)).filter(|t| !active.has(*t));
            absent.for_each(|t| missing.insert(t));
        }
    }
    missing
}

/// An access is checked against those before it, and noted.
#[inline]
fn access(
    clocks: &Clocks,
    pairs: &mut Pairs,
    cell: &mut Cell,
    does: Does,
    who: &Who,
    record: Record,
    at: &str,
) {
    if let Some(write) = &cell.write {
        if write.is_together(record.warp, who) {
            if does == Does::Write && write.thread() != record.thread() {
                pairs.overlap(*write, record, at);
            }
        } else {
            let relation = write.relation(clocks, who);
            if relation != Relation::Same {
                pairs.meet(clocks, (*write, Does::Write), (record, does), who, relation, at);
            }
        }
    }
    if does != Does::Read {
        for read in &cell.reads {
            if read.is_together(record.warp, who) {
                continue;
            }
            // A write after a read needs no fence between the proxies.
            let relation = match read.relation(clocks, who) {
                Relation::Unfenced => Relation::Ordered,
                other => other,
            };
            if relation != Relation::Same {
                pairs.meet(clocks, (*read, Does::Read), (record, does), who, relation, at);
            }
        }
    }
    for (op, other) in &cell.sums {
        if does == Does::Sum(*op) || other.is_together(record.warp, who) {
            continue;
        }
        let relation = other.relation(clocks, who);
        if relation != Relation::Same {
            pairs.meet(clocks, (*other, Does::Sum(*op)), (record, does), who, relation, at);
        }
    }
    cell.note(clocks, does, record);
}
