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

/// A statement that arrives on an mbarrier. If its threads are blocked: its label, and the
/// statement at which they wait with one of them.
type ArrivalSite = (u32, String, Option<(u32, u32)>);

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
            self.ends_early(site, what, help);
        }
        for site in self.remote_ends() {
            let what = "a block may end while another still accesses its shared memory";
            let help = "write `cluster.arrive` and `cluster.wait` before the end";
            self.ends_early(site, what, help);
        }
        Ok(())
    }

    /// Records an error about work of a statement that is not complete when its block ends.
    fn ends_early(&mut self, site: u32, what: &str, help: &str) {
        let (label, what, help) = ("it begins here".to_owned(), what.to_owned(), help.to_owned());
        self.pairs.fault(Found { site, label, other: None, what, help, certain: true });
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
            let elsewhere = elsewhere.map(|at| (at, "other threads wait here".to_owned()));
            self.at.put(&s.env, &s.mask());
            let label = self.at.label("waits here");
            let found = match &s.status {
                Status::Barrier(named) => {
                    let absent = named.without(&s.mask());
                    let there =
                        |o: &Lockstep<'_>| o.rank == s.rank && !o.all().and(&absent).is_empty();
                    let at =
                        all.iter().zip(&sites).filter(|(o, at)| **at != Some(site) && there(o));
                    let at = at.filter_map(|(_, at)| *at).next();
                    let at = at.map(|at| (at, "the other threads wait here".to_owned()));
                    let around = |m: &mut Self| Some((m.around(s, named)?, SOME_ENTER.to_owned()));
                    let n = named.len();
                    let help =
                        "let all named threads reach the barrier, or name only those that do";
                    Found {
                        site,
                        label,
                        other: at.or_else(|| around(self)),
                        what: format!("not all {n} threads that the barrier names reach it"),
                        help: help.to_owned(),
                        certain: true,
                    }
                }
                Status::Meets => Found {
                    site,
                    label,
                    other: elsewhere,
                    what: "other threads that must execute the statement, too, do not reach it"
                        .to_owned(),
                    help: match all.iter().zip(&sites).find(|(o, _)| o.status == Status::Waits) {
                        Some((_, Some(wait))) => format!(
                            "correct the wait in line {} first: other threads wait there",
                            self.plan.place(*wait).line
                        ),
                        _ => "move the statement out of the condition or the role".to_owned(),
                    },
                    certain: true,
                },
                Status::Waits | Status::Ready => {
                    let mut found = self.unmet(s, &all).unwrap_or_else(|| Found {
                        site,
                        label,
                        other: None,
                        what: "nothing ends this wait".to_owned(),
                        help: "let other threads arrive, or remove the wait".to_owned(),
                        certain: true,
                    });
                    found.other = found.other.or(elsewhere);
                    if let Some((text, made)) = self.overfull() {
                        found.what = format!("{}; {text}", found.what);
                        found.other = Some((made, "initialized here".to_owned()));
                        found.help = "make the count of `mbarrier.init` match the threads that \
                                      arrive"
                            .to_owned();
                    }
                    found
                }
            };
            self.pairs.fault(found);
        }
        Err(Stop::Fault)
    }

    /// The error of threads that wait for a phase of an mbarrier which is never complete.
    fn unmet(&mut self, lockstep: &Lockstep<'p>, all: &[Lockstep<'p>]) -> Option<Found> {
        let StmtKind::Sync(sync) = &lockstep.stmt()?.kind else { return None };
        let tensor = sync.tensor.filter(|_| sync.op == SyncOp::MbarrierWait)?;
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
                self.at.put(&lockstep.env, &Mask::of(t));
                break;
            }
        }
        let open = open?;
        let (b, name) = (&self.mbarriers[open], self.mbarrier_name(open));
        let (arrived, count, phase) = (b.count - b.pending, b.count, b.phase);
        let made = b.made();
        let none = match count {
            1 => "the only arrival of its phase does not happen".to_owned(),
            _ => format!("none of the {count} arrivals of its phase happens"),
        };
        let arrival = self.arrival_on(BufferId(b.buffer), site, all);
        let (why, other, help) = if b.pending == 0 {
            let (n, what) = (b.bytes.saturating_abs(), if b.bytes < 0 { "more" } else { "fewer" });
            (
                format!("{n} bytes {what} arrive in its phase than `mbarrier.expect` states"),
                b.current.bytes.map(|at| (at, "bytes of this phase".to_owned())),
                match b.bytes < 0 {
                    true => format!("expect {n} bytes more in its `mbarrier.expect`"),
                    false => format!(
                        "expect {n} bytes less in its `mbarrier.expect`, or let a copy bring them"
                    ),
                },
            )
        } else if let Some((_, _, Some((before, _)))) = arrival
            && arrived == 0
        {
            let (line, own) = (self.plan.place(before).line, before == site);
            let help = match own {
                true => "change the parity, or let the threads arrive before they wait".to_owned(),
                false => format!(
                    "let a thread arrive on the mbarrier that line {line} waits for, change the \
                     parity of one of both waits, or let the threads arrive before they wait"
                ),
            };
            (none, arrival.map(|(at, label, _)| (at, label)), help)
        } else if arrived > 0 {
            let has_arrived = |t: &u32| b.current.list.iter().any(|a| a.threads.contains(t));
            let other = match arrival {
                Some((at, label, Some((_, thread)))) if !has_arrived(&thread) => (at, label),
                _ => made,
            };
            let (line, left) = (self.plan.place(b.made_at).line, count - arrived);
            (
                format!("{arrived} of the {count} arrivals of its phase happen"),
                Some(other),
                format!("write {arrived} as the count in line {line}, or let {left} more arrive"),
            )
        } else if let Some((at, ..)) = arrival {
            (
                none,
                Some((at, format!("no arrival here belongs to phase {phase} of `{name}`"))),
                "correct the parity of the wait, or the index of the wait or of the arrival"
                    .to_owned(),
            )
        } else {
            (
                format!("no statement arrives on `%{}`", self.p.buffers[BufferId(b.buffer)].name),
                Some(made),
                format!("let threads arrive: `mbarrier.arrive({name})`"),
            )
        };
        let complete = match phase {
            0 => String::new(),
            _ => format!("; phase {} is complete", phase - 1),
        };
        let label =
            format!("waits here for phase {phase} of `{name}` (parity {}{complete})", phase % 2);
        Some(Found {
            site,
            label: self.at.label(&label),
            other,
            what: format!("nothing ends this wait: {why}"),
            help,
            certain: true,
        })
    }

    /// The name of an mbarrier: `%full[1]`
    fn mbarrier_name(&self, m: usize) -> String {
        let buffer = &self.p.buffers[BufferId(self.mbarriers[m].buffer)];
        let mut found = self.mbarrier_at.iter().filter(|(_, at)| **at == m);
        let space = self.plan.views.iter().find(|v| v.buffer == BufferId(self.mbarriers[m].buffer));
        match (found.next(), space.map(|v| v.space), buffer.cosize) {
            (Some(((_, byte), _)), Some(Space::Shared(b)), Dim::Const(2..)) => {
                format!("%{}[{}]", buffer.name, (byte - self.plan.shared[b].at) / 8)
            }
            _ => format!("%{}", buffer.name),
        }
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
        let conditional = around.iter().any(|s| matches!(s.kind, StmtKind::If { .. }));
        if conditional { None } else { self.selected(around) }
    }

    /// The threads that the specs around a statement select.
    fn selected(&self, around: &[&Stmt]) -> Option<Mask> {
        let mut mask = Mask::first(self.n_threads);
        for stmt in around {
            if let StmtKind::Spec(id) = &stmt.kind {
                let exec = self.p.specs[*id].exec?;
                let groups = Groups::of(self.exprs, exec.threads, &Env::default(), self.elected);
                mask = mask.and(&groups.ok()?.mask);
            }
        }
        Some(mask)
    }

    /// A statement that arrives on an mbarrier of a buffer. A blocked one comes before others.
    fn arrival_on(&self, buffer: BufferId, wait: u32, all: &[Lockstep<'p>]) -> Option<ArrivalSite> {
        let (mut walk, mut first) = (self.p.walk(self.body), None);
        while let Some(step) = walk.next() {
            let WalkStep::Enter(stmt) = step else { continue };
            let StmtKind::Sync(sync) = &stmt.kind else { continue };
            let of = sync.tensor.is_some_and(|t| self.p.tensors[t].buffer == buffer);
            if !of || !sync.op.arrives() {
                continue;
            }
            let site = self.plan.site(stmt);
            let mask = self.selected(walk.around()).unwrap_or(Mask::first(self.n_threads));
            let blocked =
                |o: &&Lockstep<'p>| !o.all().and(&mask).is_empty() && self.is_ahead(o, stmt);
            let behind = all.iter().find(blocked).and_then(|o| {
                let thread = self.global_thread(o.rank, o.all().and(&mask).threads().next()?);
                Some((thread, self.plan.site(o.stmt()?)))
            });
            if let Some((thread, at)) = behind {
                let line = self.plan.place(at).line;
                let too = if at == wait { "" } else { ", too" };
                let label = format!(
                    "thread {thread} arrives here only after line {line}, where it waits{too}"
                );
                return Some((site, label, Some((at, thread))));
            }
            first = first.or(Some((site, String::new(), None)));
        }
        first
    }

    /// Whether threads have a statement before them.
    fn is_ahead(&self, lockstep: &Lockstep<'p>, stmt: &Stmt) -> bool {
        let last = lockstep.frames.len().saturating_sub(1);
        lockstep.frames.iter().enumerate().any(|(i, frame)| {
            let from = match frame.kind {
                Kind::Loop { .. } => 0,
                _ => frame.at + usize::from(i < last),
            };
            let ahead = frame.stmts.get(from..).unwrap_or_default();
            self.p.walk(ahead).stmts().any(|s| s.node.same(stmt.node))
        })
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
            self.pairs.fault(Found {
                site,
                label: String::new(),
                other: Some((made, "initialized here".to_owned())),
                what: what.to_owned(),
                help: help.to_owned(),
                certain: true,
            });
        }
    }
}
