//! Executes synchronization statements: commits and waits of groups of asynchronous work,
//! mbarriers, the barrier of a cluster, fences, and the transfer of registers between warps. Waits
//! that can never end are an error, which says what is missing.

use super::Runner;
use super::converged::ConvergedSet;
use super::errors::{self, ElementAccess};
use crate::plan::{Checked, Mask, Node, SyncNode};
use crate::state::clock::Part;
use crate::state::{GlobalElement, Misuse, Unmet, Value};
use carbyne_atoms::AtomNumber;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::diag::{self, Code, Diagnostic};
use carbyne_ir::program::{StmtKind, TensorId};
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

impl Runner<'_> {
    /// Executes the statement for the active threads, none of which has to wait.
    pub(super) fn sync(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        self.whole_warps(sync, active)?;
        self.passes(sync.site, active);
        if let Some(view) = sync.after {
            self.reads_register(view, sync.site, active)?;
        }
        match sync.op {
            SyncOp::AsyncCommit => {
                active.threads().for_each(|t| self.blocks[self.rank].copies[t].commit());
            }
            SyncOp::AsyncWait => self.wait_for_copies(sync, active)?,
            SyncOp::ClusterArrive | SyncOp::ClusterArriveRelaxed => {
                self.cluster_arrive(sync, active)?
            }
            SyncOp::ClusterWait => {
                for part in self.parts(active) {
                    for t in threads(part) {
                        let (place, _) = self.in_cluster(t);
                        self.cluster.passed(place);
                    }
                    self.clocks.acquire(part, self.cluster.complete());
                }
            }
            SyncOp::MbarrierInit
            | SyncOp::MbarrierArrive
            | SyncOp::MbarrierExpect
            | SyncOp::MbarrierWait
            | SyncOp::MbarrierAsyncArrive => {
                for part in self.parts(active) {
                    self.mbarriers(sync, part)?;
                }
            }
            SyncOp::WgmmaFence => {
                self.serial = self.serial.wrapping_add(1);
                for part in self.parts(active) {
                    self.blocks[self.rank].flights.warps[part.warp].fence = Some(self.serial);
                }
            }
            SyncOp::WgmmaCommit => {
                self.parts(active)
                    .iter()
                    .for_each(|p| self.blocks[self.rank].flights.commit(p.warp));
            }
            SyncOp::WgmmaWait => {
                for part in self.parts(active) {
                    let left = self.number(sync, part.warp * 32)?;
                    let who = self.who(part.warp, sync.site);
                    self.blocks[self.rank].wait_flights(
                        part.warp,
                        usize::try_from(left).unwrap_or(0),
                        &who,
                    );
                }
            }
            SyncOp::FenceAsync => {
                self.parts(active).into_iter().for_each(|p| self.clocks.fence(p));
                active.threads().for_each(|t| self.blocks[self.rank].publish(t));
            }
            SyncOp::BulkCommit => {
                active.threads().for_each(|t| self.blocks[self.rank].bulks[t].commit());
            }
            SyncOp::BulkWait | SyncOp::BulkWaitRead => self.wait_for_bulks(sync, active)?,
            SyncOp::FenceMbarrierInit => {
                for t in active.threads() {
                    self.blocks[self.rank].publish(t);
                    self.blocks[self.rank].tell(t);
                }
            }
            SyncOp::RegistersInc | SyncOp::RegistersDec => self.hand_over(sync, active)?,
            // Hints for the hardware, without an effect here.
            SyncOp::GridWait | SyncOp::GridLaunch | SyncOp::Prefetch => {}
        }
        Ok(())
    }

    /// Reads the register of `after=`.
    fn reads_register(&mut self, index: usize, site: u32, active: &Mask) -> Checked<()> {
        active.threads().try_for_each(|thread| self.read_first(index, site, thread).map(|_| ()))
    }

    fn wait_for_copies(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        for t in active.threads() {
            let left = self.number(sync, t)?;
            let who = self.who(t / 32, sync.site);
            let left = usize::try_from(left).unwrap_or(0);
            let part = Part { rank: self.rank, warp: t / 32, lanes: 1 << (t % 32) };
            for (agent, phases) in self.blocks[self.rank].wait(t, left, &who) {
                self.clocks.learn(part, agent, phases);
            }
        }
        Ok(())
    }

    fn cluster_arrive(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        let ordered = sync.op == SyncOp::ClusterArrive;
        for part in self.parts(active) {
            let mut clock = self.clocks.release(part);
            if !ordered {
                clock = clock.without_memory();
            }
            self.cluster.pass_on(&clock);
            for t in threads(part) {
                let (place, n) = self.in_cluster(t);
                let last = self.cluster.arrive(place, n);
                self.wake |= last.map_err(|e| self.cluster_misuse(sync, t, e))?;
                let (phase, _) = self.cluster.phases(place);
                self.blocks[self.rank].told(t, phase);
            }
        }
        Ok(())
    }

    fn wait_for_bulks(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        for t in active.threads() {
            let left = usize::try_from(self.number(sync, t)?).unwrap_or(0);
            let mut who = self.who(t / 32, sync.site);
            who.thread = t as u16;
            let block = &mut self.blocks[self.rank];
            if sync.op == SyncOp::BulkWait {
                block.wait_bulk(t, left, &who)
            } else {
                block.wait_bulk_read(t, left, &who)
            }
        }
        Ok(())
    }

    /// The active threads whose warp has to wait at the statement.
    pub(super) fn waiting(&mut self, sync: &SyncNode, active: &Mask) -> Checked<Mask> {
        let mut waiting = Mask::NONE;
        if sync.op == SyncOp::RegistersInc {
            let pool = &self.blocks[self.rank].pool;
            let mut free = pool.free();
            for warps in groups(sync, active) {
                let needed = pool.needed(&warps, self.number(sync, warps[0] * 32)?);
                if needed <= free {
                    free -= needed;
                } else {
                    let bits = warps.iter().fold(0, |bits, w| bits | 1 << w);
                    waiting = waiting.or(&active.of_warps(bits));
                }
            }
            return Ok(waiting);
        }
        if !matches!(sync.op, SyncOp::MbarrierWait | SyncOp::ClusterWait) {
            return Ok(waiting);
        }
        for t in active.threads() {
            if !waiting.has(t) && self.unmet(sync, t)?.is_some() {
                waiting = waiting.or(&active.of_warps(1 << (t / 32)));
            }
        }
        Ok(waiting)
    }

    /// The unmet condition of a thread's wait, with the name of the barrier.
    fn unmet(&mut self, sync: &SyncNode, thread: usize) -> Checked<Option<Lack>> {
        if sync.op == SyncOp::RegistersInc {
            let wanted = self.number(sync, thread)?;
            let pool = &self.blocks[self.rank].pool;
            let warps = groups(sync, &Mask::first(self.kernel.n_threads))
                .into_iter()
                .find(|warps| warps.contains(&(thread / 32)))
                .unwrap_or_default();
            let needed = pool.needed(&warps, wanted);
            let lack = Lack {
                what: format!("{wanted} registers"),
                missing: format!(
                    "its group has {} registers per thread and needs {needed} more in total, \
                     {} are free",
                    pool.of(thread / 32),
                    pool.free()
                ),
                help: "release more with `registers.dec` in other warp groups, or request fewer"
                    .to_owned(),
                places: vec![],
            };
            return Ok((needed > pool.free()).then_some(lack));
        }
        if sync.op == SyncOp::ClusterWait {
            let (place, n) = self.in_cluster(thread);
            let lacks = self.cluster.lacks(place, n);
            let lacks = lacks.map_err(|e| self.cluster_misuse(sync, thread, e))?;
            return Ok(lacks.map(|unmet| Lack {
                what: format!("phase {} of the cluster's barrier", unmet.phase),
                missing: unmet.lacks(),
                help: "let every thread of the cluster reach `cluster.arrive`".to_owned(),
                places: vec![],
            }));
        }
        let parity = self.number(sync, thread)?;
        for (rank, at, byte) in self.barriers(sync, thread)? {
            let lacks = self.blocks[rank].lacks(byte, parity);
            if let Some(unmet) = lacks.map_err(|e| self.misuse(sync, thread, at, e))? {
                return Ok(Some(self.lack(sync, &self.name(sync, at), parity & 1, unmet)));
            }
        }
        Ok(None)
    }

    /// The error about converged sets that wait forever. The primary location is the first of them.
    pub(super) fn waits_for_ever(&mut self, sets: &[ConvergedSet<'_>]) -> Checked<()> {
        let mut error: Option<Diagnostic> = None;
        for set in sets {
            let node = set.frames.last().and_then(|f| f.nodes.get(f.at));
            let Some(Node::Sync(sync)) = node else { continue };
            self.resume(set);
            let mut found = None;
            for thread in set.mask().threads() {
                if let Some(unmet) = self.unmet(sync, thread)? {
                    found = Some((thread, unmet));
                    break;
                }
            }
            let Some((thread, Lack { what, missing, help, places })) = found else { continue };
            let span = self.kernel.sites[sync.site as usize].span;
            error = Some(match error {
                None => {
                    let d = Diagnostic::new(
                        Code::UnmetWait,
                        span,
                        format!(
                            "a thread waits for {what}, which nothing {}",
                            if sync.op == SyncOp::RegistersInc { "releases" } else { "completes" }
                        ),
                    )
                    .label(format!("block {}, thread {thread}: {missing}", self.env.block))
                    .help(help);
                    places.into_iter().fold(d, |d, (span, role)| d.related(span, role))
                }
                Some(e) => {
                    e.related(span, format!("thread {thread} waits here for {what}: {missing}"))
                }
            });
        }
        error.map_or(Ok(()), |e| Err(Box::new(e)))
    }

    /// Warp groups acquire the requested registers, or release the excess registers.
    fn hand_over(&mut self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        for warps in groups(sync, active) {
            let thread = warps[0] * 32;
            let registers = self.number(sync, thread)?;
            let pool = &mut self.blocks[self.rank].pool;
            let needed = pool.needed(&warps, registers);
            let (held, wrong, help) = if sync.op == SyncOp::RegistersInc {
                (pool.of(warps[0]), needed < 0, "write `registers.dec` to release registers")
            } else {
                let help = "release registers by a smaller number; to acquire more, write \
                            `registers.inc` here, and `registers.dec` in other warp groups";
                (pool.of(warps[0]), needed > 0, help)
            };
            if wrong {
                let span = self.kernel.sites[sync.site as usize].span;
                let text =
                    format!("`{}` to {registers} registers for threads that have {held}", sync.op);
                return Err(Box::new(
                    Diagnostic::new(Code::BarrierMisuse, span, text)
                        .label(format!("block {}, thread {thread}", self.env.block))
                        .help(help),
                ));
            }
            pool.set(&warps, registers);
            self.wake = true;
        }
        Ok(())
    }

    fn parts(&self, active: &Mask) -> Vec<Part> {
        let lanes = active.0.iter().enumerate().filter(|(_, lanes)| **lanes != 0);
        lanes.map(|(warp, lanes)| Part { rank: self.rank, warp, lanes: *lanes }).collect()
    }

    /// The number of a thread in the cluster, and the number of threads of the cluster.
    fn in_cluster(&self, thread: usize) -> (usize, usize) {
        let n = self.kernel.n_threads;
        (self.rank * n + thread, self.kernel.cluster * n)
    }

    fn number(&self, sync: &SyncNode, thread: usize) -> Checked<i64> {
        let Some(index) = &sync.number else { return Ok(0) };
        let number = self.index(index, thread, sync.site)?;
        match sync.takes.filter(|n| !n.takes(Some(number), Some(number), number)) {
            Some(takes) => Err(self.wrong_number(sync, thread, number, &takes)),
            None => Ok(number),
        }
    }

    fn wrong_number(
        &self,
        sync: &SyncNode,
        thread: usize,
        number: i64,
        takes: &AtomNumber,
    ) -> Box<Diagnostic> {
        let span = self.kernel.sites[sync.site as usize].span;
        Box::new(
            Diagnostic::new(
                Code::BarrierMisuse,
                span,
                format!("`{}` with {} {number}", sync.op, takes.name),
            )
            .label(format!("block {}, thread {thread}", self.env.block))
            .help(format!("write {takes}")),
        )
    }

    /// The rank of the block in whose memory a thread's view lies.
    pub(super) fn peer(&self, view: usize, thread: usize, site: u32) -> Checked<usize> {
        let Some(rank) = &self.kernel.views[view].peer else { return Ok(self.rank) };
        let rank = self.index(rank, thread, site)?;
        match usize::try_from(rank).ok().filter(|r| *r < self.blocks.len()) {
            Some(rank) => Ok(rank),
            None => {
                let n = self.blocks.len();
                let span = self.kernel.sites[site as usize].span;
                let text = format!("the statement names block {rank} of a cluster of {n} blocks");
                Err(Box::new(
                    Diagnostic::new(Code::BarrierMisuse, span, text)
                        .label(format!("block {}, thread {thread}", self.env.block))
                        .help("number the blocks of a cluster from 0"),
                ))
            }
        }
    }

    /// The number that all these lanes pass; none if the numbers differ.
    fn number_of_all(&self, sync: &SyncNode, warp: usize, lanes: u32) -> Checked<Option<i64>> {
        let mut all = threads(Part { rank: self.rank, warp, lanes });
        let Some(first) = all.next() else { return Ok(None) };
        let number = self.number(sync, first)?;
        for t in all {
            if self.number(sync, t)? != number {
                return Ok(None);
            }
        }
        Ok(Some(number))
    }

    /// The absent threads of groups that execute the statement together.
    pub(super) fn absent(&self, sync: &SyncNode, active: &Mask) -> Mask {
        let mut absent = Mask::NONE;
        if sync.group < 32 {
            return absent;
        }
        let all = Mask::first(self.kernel.n_threads);
        let per = sync.group / 32;
        for first in (0..32).step_by(per) {
            let warps = (((1u64 << per) - 1) << first) as u32;
            if active.warps() & warps != 0 {
                absent = absent.or(&all.of_warps(warps).without(active));
            }
        }
        absent
    }

    /// Checks that either all threads of each group that executes the statement together are active
    /// or none.
    fn whole_warps(&self, sync: &SyncNode, active: &Mask) -> Checked<()> {
        let absent = self.absent(sync, active);
        let partial = sync.group >= 32 && !active.threads().count().is_multiple_of(sync.group);
        if !absent.is_empty() || partial {
            let n = absent.threads().count();
            return Err(super::diverged(self.kernel, sync.site, n));
        }
        Ok(())
    }

    /// The block, offset and byte of every mbarrier of a thread's view; records the accesses.
    fn barriers(&mut self, sync: &SyncNode, thread: usize) -> Checked<Vec<(usize, i64, usize)>> {
        let Some(index) = sync.view else { return Ok(Vec::new()) };
        let write = sync.op == SyncOp::MbarrierInit;
        let n = usize::try_from(self.kernel.views[index].size).unwrap_or(0);
        let mut list = Vec::with_capacity(n);
        let rank = self.peer(index, thread, sync.site)?;
        for e in 0..n {
            let found = self.mbarrier_at(rank, (index, e), thread, sync.site, write)?;
            list.extend(found.map(|(at, byte)| (rank, at, byte)));
        }
        Ok(list)
    }

    /// The offset and byte of an mbarrier of a block, an element of a view, for an access of the
    /// thread. The initialization counts as a write that must come before all other accesses.
    pub(super) fn mbarrier_at(
        &mut self,
        rank: usize,
        (index, element): (usize, usize),
        thread: usize,
        site: u32,
        write: bool,
    ) -> Checked<Option<(i64, usize)>> {
        let kernel = self.kernel;
        let view = &kernel.views[index];
        let at = self.index(&view.offset, thread, site)?.saturating_add(view.element(element));
        let mut who = self.who(thread / 32, site);
        who.thread = thread as u16;
        let byte =
            self.blocks[self.rank].byte_offset(view, at).and_then(|b| usize::try_from(b).ok());
        let (_, waited) = self.cluster.phases(self.in_cluster(thread).0);
        let told = byte.is_some_and(|byte| self.blocks[rank].is_told(byte, waited));
        if told && !write {
            return Ok(byte.map(|byte| (at, byte)));
        }
        let accessed = match write {
            true => {
                let nothing = Value { bits: 0, shadow: 0.0 };
                self.blocks[rank].write(view, at, nothing, thread, &who, false).map(|_| ())
            }
            false => self.blocks[rank].read(view, at, thread, &who).map(|_| ()),
        };
        if let Err(failure) = accessed {
            let access = ElementAccess { view: index, at, write, thread };
            return errors::failed(kernel, self.env.block, &who, &access, &failure);
        }
        Ok(byte.map(|byte| (at, byte)))
    }

    /// Executes a warp's statement on mbarriers.
    fn mbarriers(&mut self, sync: &SyncNode, part: Part) -> Checked<()> {
        // Lanes with the same barrier arrive or wait together.
        let mut named: BTreeMap<(usize, usize, i64), u32> = BTreeMap::new();
        for t in threads(part) {
            for (rank, at, byte) in self.barriers(sync, t)? {
                *named.entry((rank, byte, at)).or_default() |= 1 << (t % 32);
            }
        }
        for ((rank, byte, at), lanes) in named {
            let part = Part { lanes, ..part };
            if sync.op == SyncOp::MbarrierWait {
                let in_turn = self.blocks[rank].before_passing(byte, &self.clocks, part);
                let first = part.warp * 32 + part.lanes.trailing_zeros() as usize;
                in_turn.map_err(|e| self.misuse(sync, first, at, e))?;
                let (clock, read) = self.blocks[rank].passed(byte);
                for (GlobalElement { rank, buffer, at }, agent, phases) in read {
                    let block = &mut self.blocks[usize::from(rank)];
                    block.global[usize::from(buffer)].land_read(at, agent, phases);
                }
                self.clocks.acquire(part, &clock);
                continue;
            }
            let mut left = lanes;
            while left != 0 {
                // Lanes after the lane that completes the phase belong to the next phase.
                let each = if sync.op == SyncOp::MbarrierArrive {
                    self.number_of_all(sync, part.warp, left)?
                } else {
                    Some(1)
                };
                let n = each.map_or(1, |n| self.blocks[rank].arrivals_left(byte) / n.max(1));
                let n = n.clamp(1, 32) as u32;
                let part = Part { lanes: lowest(left, n), ..part };
                left &= !part.lanes;
                self.arrive(sync, part, (rank, byte), at)?;
            }
        }
        Ok(())
    }

    /// Lanes of a warp arrive at an mbarrier, or initialize it.
    fn arrive(
        &mut self,
        sync: &SyncNode,
        part: Part,
        (rank, byte): (usize, usize),
        at: i64,
    ) -> Checked<()> {
        let mut who = self.who(part.warp, sync.site);
        if sync.op != SyncOp::MbarrierInit {
            let how = (sync.site, sync.op == SyncOp::MbarrierAsyncArrive);
            let ordered = self.blocks[rank].before_arrival(byte, &self.clocks, part, how);
            let first = part.warp * 32 + part.lanes.trailing_zeros() as usize;
            ordered.map_err(|e| self.misuse(sync, first, at, e))?;
        }
        if sync.op != SyncOp::MbarrierInit {
            let clock = self.clocks.release(part);
            self.blocks[rank].pass_on(byte, &clock);
        }
        for t in threads(part) {
            let number = self.number(sync, t)?;
            who.thread = t as u16;
            self.note_remote(rank, &who);
            let done = match sync.op {
                SyncOp::MbarrierInit => {
                    let index = self.kernel.mbarrier_number(sync.view, at);
                    let agent = self.clocks.mbarrier(rank, index, self.kernel.n_mbarriers());
                    self.blocks[rank].init_mbarrier(byte, number, t, agent).map(|()| false)
                }
                SyncOp::MbarrierExpect => self.blocks[rank].arrive(byte, (1, number)),
                SyncOp::MbarrierAsyncArrive => {
                    let landing = self.blocks[rank].land_with(byte, &who);
                    landing.and_then(|()| self.blocks[rank].arrive(byte, (1, 0)))
                }
                SyncOp::MbarrierArrive
                | SyncOp::MbarrierWait
                | SyncOp::FenceMbarrierInit
                | SyncOp::FenceAsync
                | SyncOp::ClusterArrive
                | SyncOp::ClusterArriveRelaxed
                | SyncOp::ClusterWait
                | SyncOp::AsyncCommit
                | SyncOp::AsyncWait
                | SyncOp::BulkCommit
                | SyncOp::BulkWait
                | SyncOp::BulkWaitRead
                | SyncOp::WgmmaFence
                | SyncOp::WgmmaCommit
                | SyncOp::WgmmaWait
                | SyncOp::RegistersInc
                | SyncOp::RegistersDec
                | SyncOp::GridWait
                | SyncOp::GridLaunch
                | SyncOp::Prefetch => self.blocks[rank].arrive(byte, (number, 0)),
            };
            self.wake |= done.map_err(|e| self.misuse(sync, t, at, e))?;
        }
        Ok(())
    }

    fn name(&self, sync: &SyncNode, at: i64) -> String {
        sync.view.map_or_else(String::new, |v| self.kernel.element_name(v, at))
    }

    fn misuse(&self, sync: &SyncNode, thread: usize, at: i64, misuse: Misuse) -> Box<Diagnostic> {
        self.refused(sync.site, thread, &self.name(sync, at), misuse)
    }

    fn cluster_misuse(&self, sync: &SyncNode, thread: usize, misuse: Misuse) -> Box<Diagnostic> {
        self.refused(sync.site, thread, "the cluster's barrier", misuse)
    }

    pub(super) fn refused(
        &self,
        site: u32,
        thread: usize,
        name: &str,
        Misuse { what, help, other }: Misuse,
    ) -> Box<Diagnostic> {
        let sites = &self.kernel.sites;
        let error = Diagnostic::new(
            Code::BarrierMisuse,
            sites[site as usize].span,
            format!("{name} {what}"),
        )
        .label(format!("block {}, thread {thread}", self.env.block))
        .help(help);
        Box::new(match other.map(|other| &sites[other as usize]) {
            Some(other) => {
                error.related(other.span, "this statement of the earlier phase may execute later")
            }
            None => error,
        })
    }
}

/// An unmet condition of a wait.
struct Lack {
    /// The condition, such as `phase 3 of %full[1]`.
    what: String,
    missing: String,
    help: String,
    /// The statements that should meet the condition, each with its role.
    places: Vec<(Span, String)>,
}

impl Runner<'_> {
    /// The phase of an mbarrier that a wait lacks, and the statements that take part in it.
    fn lack(&self, wait: &SyncNode, name: &str, parity: i64, unmet: Unmet) -> Lack {
        /// The most statements that a message shows.
        const SHOWN: usize = 4;
        let p = self.kernel.program;
        let buffer = wait.view.map(|v| p.tensors[self.kernel.views[v].tensor].buffer);
        let is_own = |t: Option<TensorId>| t.is_some_and(|t| Some(p.tensors[t].buffer) == buffer);
        let Unmet { phase, arrivals, count, bytes } = unmet;
        let counted = diag::count(count as usize, "arrival");
        let (mut init, mut expects, mut arrives, mut copies) = (None, false, false, false);
        let mut places = vec![];
        for stmt in p.walk_body(self.kernel.spec).stmts() {
            let role = match &stmt.kind {
                StmtKind::Sync(sync) if is_own(sync.tensor) => match sync.op {
                    SyncOp::MbarrierInit => {
                        init = Some(stmt.line);
                        format!("initialized here for {counted}")
                    }
                    SyncOp::MbarrierExpect => {
                        expects = true;
                        "an arrival that also expects bytes".to_owned()
                    }
                    SyncOp::MbarrierArrive | SyncOp::MbarrierAsyncArrive => {
                        arrives = true;
                        "arrives here".to_owned()
                    }
                    _ => continue,
                },
                StmtKind::Spec(id) if is_own(p.specs[*id].bar) => {
                    copies = true;
                    "brings bytes".to_owned()
                }
                _ => continue,
            };
            places.push((stmt.span, role));
        }
        places.truncate(SHOWN);
        let came = count - arrivals;
        let mut ways = vec![];
        match init {
            Some(line) if arrivals > 0 && came > 0 => ways.push(format!(
                "initialize it for {} in line {line}, or let {} arrive",
                diag::count(came as usize, "arrival"),
                diag::count(arrivals as usize, "more thread"),
            )),
            _ if arrivals > 0 && arrives => ways.push(format!(
                "let {} arrive before this wait, in a statement that does not itself wait for it",
                diag::count(arrivals as usize, "thread"),
            )),
            _ if arrivals > 0 => ways.push(format!(
                "let {} arrive: `mbarrier.arrive({name})`",
                diag::count(arrivals as usize, "thread"),
            )),
            _ => {}
        }
        match bytes {
            1.. if copies && expects => {
                ways.push(format!("expect {bytes} bytes less in its `mbarrier.expect`"));
            }
            1.. => ways.push(format!("write a copy of {bytes} bytes with `bar={name}`")),
            ..0 => {
                ways.push(format!("expect {} bytes more: `mbarrier.expect`", bytes.unsigned_abs()))
            }
            0 => {}
        }
        if unmet.is_whole() {
            let complete = match phase {
                0 => "which a new mbarrier passes at once".to_owned(),
                _ => format!("if the wait is for phase {}, which is complete", phase - 1),
            };
            ways.push(format!("or wait for parity {}, {complete}", 1 - parity));
        }
        Lack {
            what: format!("phase {phase} of {name}"),
            missing: format!("the wait is for parity {parity}; {}", unmet.lacks()),
            help: ways.join("; "),
            places,
        }
    }
}

/// The warps of each group that executes the statement together and has active threads.
fn groups(sync: &SyncNode, active: &Mask) -> Vec<Vec<usize>> {
    let per = (sync.group / 32).max(1);
    let warps = active.warps();
    let group = |first: usize| (first..first + per).filter(|w| warps >> w & 1 == 1).collect();
    let all = (0..32).step_by(per).map(group);
    all.filter(|g: &Vec<usize>| !g.is_empty()).collect()
}

/// The lowest `n` of the lanes.
fn lowest(lanes: u32, n: u32) -> u32 {
    let (mut left, mut out) = (lanes, 0);
    for _ in 0..n.min(lanes.count_ones()) {
        let lane = left & left.wrapping_neg();
        out |= lane;
        left &= !lane;
    }
    out
}

/// The threads of a part in order.
fn threads(part: Part) -> impl Iterator<Item = usize> {
    (0..32).filter(move |l| part.lanes >> l & 1 == 1).map(move |l| part.warp * 32 + l)
}
