//! What is wrong where no thread can go on, and where all have come to their ends.

use super::*;
use crate::clocks::Class;
use carbyne_ir::program::BufferId;
use carbyne_ir::program::walk::Step as WalkStep;
use std::collections::HashSet;

impl<'p, 'a> Machine<'p, 'a> {
    /// What is over before blocks end: notes by what.
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

    /// Accesses to other blocks' shared memory that may be made when these have ended; of the
    /// others notes by what they are not.
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
                "the block may end while an asynchronous copy to its shared memory is under way",
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
                left.push((site, "the block may end while a copy to its shared memory is under way, for whose phase nobody waits", "write `mbarrier.wait` for its phase before the end"));
            } else if m.current.bytes.is_some() && m.bytes != 0 {
                let site = m.current.bytes.unwrap_or(0);
                left.push((site, "the last phase of an mbarrier is not complete: bytes are missing, or none expected", "compare the bytes of `mbarrier.expect` with the copies"));
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

    /// Nobody can go on.
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
                        "let all of them come to it, or name those that do",
                    );
                    let there =
                        |o: &Lockstep<'_>| o.rank == s.rank && !o.all().and(&absent).is_empty();
                    let at =
                        all.iter().zip(&sites).filter(|(o, at)| **at != Some(site) && there(o));
                    let at = at.filter_map(|(_, at)| *at).next();
                    let n = named.len();
                    let what = format!("not all {n} threads that the barrier names come to it");
                    (what, help, at.or_else(|| self.around(s, named)))
                }
                Status::Meets => (
                    "the other threads that it needs do not come to it".to_owned(),
                    "move it out of the condition or the role",
                    elsewhere,
                ),
                Status::Waits | Status::Ready => {
                    let (why, other) = self.unmet(s).unwrap_or_default();
                    let help = "compare arrivals and bytes of the phase with who arrives, and the parity with the round";
                    let what = format!("nothing ends the wait: {why}");
                    match self.overfull() {
                        Some((text, made)) => (
                            format!("{what}; {text}"),
                            "compare the count of `mbarrier.init` with who arrives",
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

    /// Why the phase that threads wait for is not complete, and the statement that has to do with
    /// it.
    fn unmet(&mut self, lockstep: &Lockstep<'p>) -> Option<(String, Option<u32>)> {
        let never = || ("the phase that it is for is never complete".to_owned(), None);
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
            (format!("{n} bytes {what} come than are expected"), b.current.bytes)
        } else if arrived > 0 {
            let made = b.made_at;
            (format!("{arrived} of {count} arrivals come"), last.or(Some(made)))
        } else {
            let buffer = self.p.tensors[tensor].buffer;
            match self.arrival_on(buffer) {
                Some(site) if b.last.list.is_empty() => {
                    (format!("none of {count} arrivals comes before it"), Some(site))
                }
                Some(site) => (format!("none of {count} arrivals comes in its phase"), Some(site)),
                None => ("nobody arrives".to_owned(), Some(b.made_at)),
            }
        })
    }

    /// Barrier objects on which more threads arrive than a phase of them takes, and where they are
    /// made.
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
                "line {} makes `%{}` for {count} arrivals, and {n} threads may arrive",
                stmt.line, self.p.buffers[buffer].name
            );
            (n as i64 > count).then(|| (text, self.plan.site(stmt)))
        })
    }

    /// The threads that come to a statement by the specs around it; none where a condition is
    /// there, too.
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

    /// A statement that arrives on a barrier object of a buffer.
    fn arrival_on(&self, buffer: BufferId) -> Option<u32> {
        self.sync_on(buffer, SyncOp::arrives)
    }

    /// A statement that does such an operation on a barrier object of a buffer.
    fn sync_on(&self, buffer: BufferId, is: impl Fn(SyncOp) -> bool) -> Option<u32> {
        let does = |s: &&Stmt| match &s.kind {
            StmtKind::Sync(sync) => {
                is(sync.op) && sync.tensor.is_some_and(|t| self.p.tensors[t].buffer == buffer)
            }
            _ => false,
        };
        self.p.walk(self.body).stmts().find(does).map(|s| self.plan.site(s))
    }

    /// The statement around threads that leaves some of those out that are named.
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

    /// Barrier objects in whose phases threads arrive, and for which no statement waits, where
    /// something is not ordered.
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
                "threads arrive on an mbarrier that nobody waits for, and accesses are not ordered";
            let help = "write `mbarrier.wait` before what is to come after the arrivals";
            self.pairs.fault(site, Some(made), what, help, true);
        }
    }
}
