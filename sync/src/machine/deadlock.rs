//! Finds the errors at the end of a kernel. If no thread can continue, it finds the wait or barrier
//! that never ends, and why.
//!
//! If all threads have ended, it checks that nothing accesses the shared memory of a block after
//! its end: no asynchronous copy or MatMul that the block has started, and no other block. It
//! records the statements that guarantee this. It also checks that the last phase of each mbarrier
//! has received the expected bytes. If any two accesses of the kernel are not ordered, an mbarrier
//! on which threads arrive and for which no statement waits is an error, too.

use super::*;
use crate::clocks::Class;
use carbyne_ir::program::BufferId;
use carbyne_ir::program::walk::Step as WalkStep;
use std::collections::HashSet;

impl<'p, 'a> Machine<'p, 'a> {
    /// Records the waits that complete asynchronous work before its block ends.
    fn keep_ends(&mut self) {
        let Machine { clocks, pairs, .. } = self;
        for class in &clocks.classes {
            for batch in class.queues.iter().flat_map(|q| &q.batches) {
                let Some(site) = batch.site else { continue };
                let at = if batch.done_reading > 0 { batch.read_at } else { batch.waited_at };
                if batch.done_reading > 0 {
                    pairs.keep((Keeps::OwnEnd, site, 0), || {
                        let with = vec![batch.committed_at];
                        Some(Way { steps: vec![at], with, ..Way::default() })
                    });
                }
            }
        }
    }

    /// Accesses to the shared memory of other blocks that may happen after those blocks have ended.
    /// For the other accesses, records the statements that prevent this.
    fn remote_ends(&mut self) -> Vec<u32> {
        let Machine { clocks, pairs, remote, .. } = self;
        let (mut seen, mut late) = (HashSet::new(), vec![]);
        for ((rank, thread, site), time) in remote.iter() {
            let of = clocks.class(*thread);
            let knows = |c: &&Class| {
                c.members.first().is_some_and(|t| *t as usize / clocks.per == *rank)
                    && c.knows.seen.get(of.agent) >= *time
            };
            let Some(to) = clocks.classes.iter().find(knows) else {
                late.push(*site);
                continue;
            };
            if seen.insert((rank, site, of.agent)) {
                pairs.keep((Keeps::OtherEnd, *site, 0), || {
                    clocks.path(clocks.since(of, *time), to.agent, false, false)
                });
            }
        }
        late.dedup();
        late
    }

    pub(super) fn ends(&mut self) -> Goes<()> {
        let engines = [
            (
                Engine::Copies,
                false,
                "the block may end while an asynchronous copy to its shared memory is in flight",
                "write `async.commit` and `async.wait(0)` before the end",
            ),
            (
                Engine::Bulk,
                true,
                "the block may end while an asynchronous copy still reads its shared memory",
                "write `bulk.commit` and `bulk.wait_read(0)` before the end",
            ),
            (
                Engine::MatMuls,
                false,
                "the block may end while an asynchronous MatMul still reads its shared memory",
                "write `wgmma.commit` and `wgmma.wait(0)` before the end",
            ),
        ];
        let mut left = vec![];
        for class in &self.clocks.classes {
            for (engine, reading, what, help) in engines {
                let site = class.queue(engine).left(reading);
                left.extend(site.map(|site| (site, what, help)));
            }
        }
        for m in &self.mbarriers {
            if let Some(site) = m.unwaited {
                let what = "the block may end while a copy to its shared memory is in flight: no \
                            thread waits for its phase";
                left.push((site, what, "write `mbarrier.wait` for its phase before the end"));
            } else if m.current.bytes.is_some() && m.bytes != 0 {
                let site = m.current.bytes.unwrap_or(0);
                let what = "the last phase of an mbarrier is not complete: its copies bring \
                    another number of bytes than `mbarrier.expect` states";
                left.push((site, what, "make `mbarrier.expect` state the bytes of the copies"));
            }
        }
        self.unwaited();
        self.keep_ends();
        for (site, what, help) in left {
            if self.pairs.is_under_way(site) {
                continue;
            }
            self.fault(site, None, what, help, true);
        }
        for site in self.remote_ends() {
            let what = "a block may end while another still accesses its shared memory";
            let help = "write `cluster.arrive` and `cluster.wait` before the end";
            self.fault(site, None, what, help, true);
        }
        Ok(())
    }

    /// Reports that no thread can continue.
    pub(super) fn stuck(&mut self) -> Goes<()> {
        let mut all = std::mem::take(&mut self.locksteps);
        all.sort_by(|a, b| a.compare(b).then(a.rank.cmp(&b.rank)));
        let sites: Vec<Option<u32>> =
            all.iter().map(|s| s.stmt().map(|stmt| self.plan.site(stmt))).collect();
        for (i, s) in all.iter().enumerate() {
            let Some(site) = sites[i].filter(|site| !sites[..i].contains(&Some(*site))) else {
                continue;
            };
            let elsewhere = sites.iter().flatten().copied().find(|other| *other != site);
            let (what, help, other) = match &s.status {
                Status::Barrier(named) => {
                    let (absent, help) = (
                        named.without(&s.mask()),
                        "let all named threads reach the barrier, or name only those that do",
                    );
                    let there =
                        |o: &Lockstep<'_>| o.rank == s.rank && !o.all().and(&absent).is_empty();
                    let at =
                        all.iter().zip(&sites).filter(|(o, at)| **at != Some(site) && there(o));
                    let at = at.filter_map(|(_, at)| *at).next();
                    let n = named.len();
                    let what = format!("not all {n} threads that the barrier names reach it");
                    (what, help, at.or_else(|| self.around(s, named)))
                }
                Status::Meets => (
                    "other threads that must execute the statement, too, do not reach it"
                        .to_owned(),
                    "move the statement out of the condition or the role",
                    elsewhere,
                ),
                Status::Waits | Status::Ready => {
                    let (why, other) = self.unmet(s).unwrap_or_default();
                    let help = "correct the number of arrivals, the expected bytes or the parity";
                    let what = format!("nothing ends the wait: {why}");
                    match self.overfull() {
                        Some((text, made)) => (
                            format!("{what}; {text}"),
                            "make the count of `mbarrier.init` match the threads that arrive",
                            Some(made),
                        ),
                        None => (what, help, other.or(elsewhere)),
                    }
                }
            };
            self.pairs.fault(site, other, &what, help, true);
        }
        Err(Stop::Fault)
    }

    /// The reason why the phase that threads wait for is not complete, and the statement involved.
    fn unmet(&mut self, lockstep: &Lockstep<'p>) -> Option<(String, Option<u32>)> {
        let never = || ("its phase is never complete".to_owned(), None);
        let StmtKind::Sync(sync) = &lockstep.stmt()?.kind else { return Some(never()) };
        let Some(tensor) = sync.tensor.filter(|_| sync.op == SyncOp::MbarrierWait) else {
            return Some(never());
        };
        let site = self.plan.site(lockstep.stmt()?);
        let act = Act { lockstep, mask: lockstep.mask(), site };
        let mut open = None;
        for t in lockstep.mask().threads() {
            let numbers = self.numbers(sync, &lockstep.env);
            let parity = self.number_of(&numbers, t, site).ok()?;
            let spots = self.spots(&act, tensor).ok()?;
            let mut named = vec![];
            self.named(&act, &spots, t, &mut named).ok()?;
            open = named.into_iter().find(|m| !self.mbarriers[*m].passes(parity));
            if open.is_some() {
                break;
            }
        }
        let b = &self.mbarriers[open?];
        let (arrived, count) = (b.count - b.pending, b.count);
        let last = b.current.list.last().map(|a| a.site);
        Some(if b.pending == 0 {
            let (n, what) = (b.bytes.saturating_abs(), if b.bytes < 0 { "more" } else { "fewer" });
            (format!("{n} bytes {what} arrive than expected"), b.current.bytes)
        } else if arrived > 0 {
            let made = b.made_at;
            (format!("only {arrived} of {count} arrivals happen"), last.or(Some(made)))
        } else {
            let buffer = self.p.tensors[tensor].buffer;
            match self.arrival_on(buffer) {
                Some(site) if b.last.list.is_empty() => {
                    (format!("none of {count} arrivals happens before it"), Some(site))
                }
                Some(site) => {
                    (format!("none of {count} arrivals happens in its phase"), Some(site))
                }
                None => ("no thread arrives".to_owned(), Some(b.made_at)),
            }
        })
    }

    /// An mbarrier on which more threads arrive than its phase expects, and the statement that
    /// initializes it.
    fn overfull(&self) -> Option<(String, u32)> {
        let mut made: Vec<(BufferId, i64, &Stmt)> = vec![];
        let mut arriving: BTreeMap<BufferId, Option<Mask>> = BTreeMap::new();
        let mut walk = self.p.walk(self.body);
        while let Some(step) = walk.next() {
            let WalkStep::Enter(stmt) = step else { continue };
            let StmtKind::Sync(sync) = &stmt.kind else { continue };
            let Some(tensor) = sync.tensor else { continue };
            let buffer = self.p.tensors[tensor].buffer;
            match (sync.op, sync.number) {
                (SyncOp::MbarrierInit, Some(Dim::Const(count))) => {
                    made.push((buffer, count, stmt));
                }
                (SyncOp::MbarrierArrive | SyncOp::MbarrierAsyncArrive, _) => {
                    let more = self.executing(walk.around());
                    let old = arriving.entry(buffer).or_insert(Some(Mask::default()));
                    *old = old.zip(more).map(|(old, more)| old.or(&more));
                }
                _ => {}
            }
        }
        made.into_iter().find_map(|(buffer, count, stmt)| {
            let n = arriving.get(&buffer)?.as_ref()?.len();
            let text = format!(
                "line {} initializes `%{}` for {count} arrivals, but {n} threads may arrive",
                stmt.line, self.p.buffers[buffer].name
            );
            (n as i64 > count).then(|| (text, self.plan.site(stmt)))
        })
    }

    /// The threads that the specs around a statement select; none if a condition encloses the
    /// statement, too.
    fn executing(&self, around: &[&Stmt]) -> Option<Mask> {
        let mut mask = Mask::first(self.n_threads);
        for stmt in around {
            match &stmt.kind {
                StmtKind::If { .. } => return None,
                StmtKind::Spec(id) => {
                    let exec = self.p.specs[*id].exec?;
                    let groups =
                        Groups::of(self.exprs, exec.threads, &Env::default(), self.elected);
                    mask = mask.and(&groups.ok()?.mask);
                }
                _ => {}
            }
        }
        Some(mask)
    }

    /// A statement that arrives on an mbarrier of a buffer.
    fn arrival_on(&self, buffer: BufferId) -> Option<u32> {
        self.sync_on(buffer, SyncOp::arrives)
    }

    /// A statement with such an operation on an mbarrier of a buffer.
    fn sync_on(&self, buffer: BufferId, is: impl Fn(SyncOp) -> bool) -> Option<u32> {
        let does = |s: &&Stmt| match &s.kind {
            StmtKind::Sync(sync) => {
                is(sync.op) && sync.tensor.is_some_and(|t| self.p.tensors[t].buffer == buffer)
            }
            _ => false,
        };
        self.p.walk(self.body).stmts().find(does).map(|s| self.plan.site(s))
    }

    /// The enclosing statement that excludes some of the named threads.
    pub(super) fn around(&mut self, lockstep: &Lockstep<'p>, named: &Mask) -> Option<u32> {
        for frame in &lockstep.frames {
            let Some(stmt) = frame.stmts.get(frame.at) else { continue };
            let leaves_out = match &stmt.kind {
                StmtKind::If { .. } => true,
                StmtKind::Spec(id) => {
                    let exec = self.p.specs[*id].exec.filter(|_| self.p.specs[*id].body.is_some());
                    exec.is_some_and(|e| {
                        let groups = self.groups_of(e.threads, &lockstep.env, 0);
                        groups.is_ok_and(|g| !g.mask.contains(named))
                    })
                }
                _ => false,
            };
            if leaves_out {
                return Some(self.plan.site(stmt));
            }
        }
        None
    }

    /// Reports mbarriers on which threads arrive and for which no statement waits, if a pair is not
    /// ordered.
    fn unwaited(&mut self) {
        if !self.pairs.lacks_order() {
            return;
        }
        let waits =
            |m: &Mbarrier| self.sync_on(BufferId(m.buffer), |op| op == SyncOp::MbarrierWait);
        let of = |m: &Mbarrier| match waits(m) {
            Some(_) => None,
            None => Some((m.arrived_at?, m.made_at)),
        };
        let found: Vec<(u32, u32)> = self.mbarriers.iter().filter_map(of).collect();
        for (site, made) in found {
            let what =
                "no thread waits for the mbarrier of this arrival, and accesses are not ordered";
            let help =
                "write `mbarrier.wait` before the accesses that must come after the arrivals";
            self.pairs.fault(site, Some(made), what, help, true);
        }
    }
}
