//! A run of a kernel's body by one block, which finds what is not settled.

use super::body::{Asynchronous, Info, Planner};
use super::state::{State, add};
use super::touch::{Found, Mask, Target, Touch, depends, members, value};
use super::{Place, Sync, synchronizes};
use carbyne_ir::ast::{CmpOp, SyncOp};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{SpecId, Stmt, StmtKind};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Leaves and operands that are followed at most.
const MAX_EVENTS: usize = 200_000;

/// Turns of a loop that are followed at its beginning and at its end; a multiple of usual numbers of stages.
const TURNS: i64 = 24;

/// Turns of a loop of unknown length until nothing new is seen.
const UNKNOWN_TURNS: usize = 12;

/// The body takes too long to follow.
pub(super) struct TooLong;

/// The places of the statements around one, from the outside in, and its own.
type Path = Rc<[Place]>;

/// What nothing settles.
#[derive(Clone, Debug)]
pub(super) struct Need {
    /// The leaf that needs it.
    pub(super) leaf: SpecId,
    /// Where it is put.
    pub(super) place: Place,
    /// Whether all threads of the block pass there.
    pub(super) converged: bool,
    /// How many groups may be in flight.
    pub(super) wait: Option<i64>,
    /// Whether threads must meet.
    pub(super) barrier: bool,
    /// A copy that no group has yet, and who needs it: the statements around both.
    pub(super) open: Option<(Path, Path)>,
    /// Whether it is needed where the block ends.
    pub(super) at_end: bool,
}

pub(super) struct Trace<'a> {
    planner: &'a Planner<'a>,
    plan: &'a BTreeMap<Place, Sync>,
    env: HashMap<VarId, i64>,
    mask: Mask,
    found: &'a mut Found,
    state: State,
    /// Operations of the block so far.
    operations: usize,
    events: usize,
    /// The first conflict that nothing settles.
    need: Option<Need>,
}

impl<'a> Trace<'a> {
    /// Follows the body under a plan; what it lacks first, if anything.
    pub(super) fn run(
        planner: &'a Planner<'a>,
        body: &[Stmt],
        plan: &'a BTreeMap<Place, Sync>,
        found: &'a mut Found,
    ) -> Result<Option<Need>, TooLong> {
        found.work = 0;
        let mut trace = Trace {
            planner,
            plan,
            env: HashMap::new(),
            mask: Mask::first(planner.threads),
            found,
            state: State::default(),
            operations: 0,
            events: 0,
            need: None,
        };
        trace.stmts(body);
        if trace.too_long() {
            return Err(TooLong);
        }
        if trace.need.is_none() {
            trace.end(body);
        }
        Ok(trace.need)
    }

    fn too_long(&self) -> bool {
        self.events + self.found.work > MAX_EVENTS
    }

    fn stopped(&self) -> bool {
        self.need.is_some() || self.too_long()
    }

    /// Nothing is in flight when the block ends.
    fn end(&mut self, body: &[Stmt]) {
        let State { pending, open, .. } = &self.state;
        let open = open.iter().find_map(|t| t.issuer.clone());
        if pending.is_empty() && open.is_none() {
            return;
        }
        let Some((last, leaf)) = self.planner.last(body) else { return };
        self.need = Some(Need {
            leaf,
            place: last.node.key(),
            converged: true,
            wait: Some(0),
            barrier: false,
            open: open.map(|path| (path, Rc::from([]))),
            at_end: true,
        });
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        let planner = self.planner;
        for stmt in stmts {
            if self.stopped() {
                return;
            }
            let info = planner.info(stmt);
            let at = info.place.and_then(|p| self.plan.get(&p)).copied().unwrap_or_default();
            // What some threads wait for is there for them alone; see `settle_at`.
            if info.converged {
                if at.commit_before {
                    self.state.commit();
                }
                if let Some(n) = at.wait {
                    self.state.wait(n);
                }
            }
            if at.barrier {
                self.state.since.clear();
            }
            match info.place {
                Some(_) if synchronizes(stmt) => self.sync(stmt, info),
                Some(_) => self.stmt(stmt, info),
                // Loops and conditions without specs, in which threads may synchronize.
                None => {
                    for s in planner.p.walk(std::slice::from_ref(stmt)).stmts() {
                        self.sync(s, &Info { converged: false, ..planner.info(s).clone() });
                    }
                }
            }
            if at.commit {
                self.state.commit();
            }
            if at.drain {
                self.state.wait(0);
            }
        }
    }

    /// What the text does not call asynchronous is done where threads tell others so.
    fn tells(&mut self, stmt: &Stmt, info: &Info) {
        let asks = match &stmt.kind {
            StmtKind::Barrier(_) => true,
            StmtKind::Sync(s) => !matches!(
                s.op,
                SyncOp::AsyncCommit
                    | SyncOp::AsyncWait
                    | SyncOp::BulkWait
                    | SyncOp::BulkWaitRead
                    | SyncOp::WgmmaWait
                    | SyncOp::MbarrierWait
            ),
            _ => false,
        };
        let Some(place) = info.place.filter(|_| asks) else { return };
        let at = self.plan.get(&place).copied().unwrap_or_default();
        let unsaid = |t: &&Touch| t.by_hand.is_some();
        let open =
            self.state.open.iter().find(unsaid).map(|t| t.issuer.clone().unwrap_or_default());
        let ages = self.state.pending.iter().filter(|(_, t)| unsaid(&t)).map(|(age, _)| *age);
        let wait = ages.chain(open.as_ref().map(|_| 0)).min();
        let done = |n: i64| {
            !info.converged
                && at.wait.is_some_and(|m| m <= n)
                && (open.is_none() || at.commit_before)
        };
        if let Some(n) = wait.filter(|n| !done(*n)) {
            self.need = Some(Need {
                leaf: self.planner.kernel,
                place,
                converged: true,
                wait: Some(n),
                barrier: false,
                open: open.map(|issuer| (issuer, Rc::clone(&info.path))),
                at_end: false,
            });
        }
    }

    /// A statement without specs.
    fn sync(&mut self, stmt: &Stmt, info: &Info) {
        self.tells(stmt, info);
        if self.stopped() {
            return;
        }
        match &stmt.kind {
            StmtKind::Barrier(threads) => {
                let all = Mask::first(self.planner.threads);
                let here =
                    threads.map_or(Some(all.clone()), |t| members(self.planner.p, t, &self.env));
                // Groups that wait each for itself are no barrier of the block.
                let whole = threads.is_none_or(|t| self.planner.p.threads[t].own == 0);
                if info.converged && whole && here == Some(all) {
                    self.state.since.clear();
                }
            }
            // What only some threads commit or wait for, they may not have.
            StmtKind::Sync(s) => match s.op {
                SyncOp::AsyncCommit if info.converged => self.state.commit(),
                SyncOp::AsyncWait
                | SyncOp::MbarrierWait
                | SyncOp::BulkWait
                | SyncOp::BulkWaitRead
                | SyncOp::WgmmaWait => {
                    let n = s.number.and_then(|n| value(self.planner.p, n, &self.env, None));
                    self.state.said.clone().into_iter().for_each(|t| add(&mut self.state.since, t));
                    if s.op == SyncOp::AsyncWait && info.converged {
                        self.state.wait(n.unwrap_or(i64::MAX));
                        if n == Some(0) {
                            self.state.said.clear();
                        }
                    }
                }
                _ => {}
            },
            _ => {}
        }
    }

    fn stmt(&mut self, stmt: &Stmt, info: &Info) {
        let p = self.planner.p;
        match &stmt.kind {
            StmtKind::Spec(id) => match &p.specs[*id].body {
                Some(body) => {
                    let mask = self.mask.clone();
                    if let Some(own) =
                        p.specs[*id].exec.and_then(|e| members(p, e.threads, &self.env))
                    {
                        self.mask = mask.and(&own);
                    }
                    self.stmts(body);
                    self.mask = mask;
                }
                None => self.spec(*id, info),
            },
            StmtKind::For { var, start, end, step, body, .. } => {
                let bound = |d: Dim| value(p, d, &self.env, None);
                let (Some(start), Some(end)) = (bound(*start), bound(*end)) else {
                    return self.unknown_turns(body);
                };
                if end <= start {
                    return;
                }
                let turns = (end - start - 1) / step + 1;
                if info.by_hand.is_some() && !info.matters && !self.syncs(body) {
                    return;
                }
                self.before_loop(stmt, info, (*var, start, *step, turns));
                let mut turn = 0;
                while turn < turns && !self.stopped() {
                    self.env.insert(*var, start + turn * step);
                    self.stmts(body);
                    turn += 1;
                    if turn == TURNS && turns > 3 * TURNS {
                        turn += (turns - 2 * TURNS) / TURNS * TURNS;
                    }
                }
                self.env.remove(var);
            }
            StmtKind::If { cond, then, otherwise } => self.either(cond, (then, otherwise)),
            _ => {}
        }
    }

    /// Whether threads synchronize in statements of the text.
    fn syncs(&self, stmts: &[Stmt]) -> bool {
        self.planner.p.walk(stmts).stmts().any(synchronizes)
    }

    /// Turns of a loop of unknown length, none among them, until nothing new is seen.
    fn unknown_turns(&mut self, body: &[Stmt]) {
        for _ in 0..UNKNOWN_TURNS {
            let before = self.state.clone();
            self.stmts(body);
            if self.stopped() {
                return;
            }
            self.state.join(before.clone());
            if self.state.measure() == before.measure() {
                return;
            }
        }
        // It does not end by itself: everything waits.
        self.events = MAX_EVENTS + 1;
    }

    fn either(&mut self, cond: &[(Dim, CmpOp, Dim)], (then, otherwise): (&[Stmt], &[Stmt])) {
        let p = self.planner.p;
        let on = cond.iter().flat_map(|(a, _, b)| [depends(p, *a), depends(p, *b)]);
        let (mut thread, mut block) = (false, false);
        for d in on {
            thread |= d.thread;
            block |= d.block;
        }
        if thread {
            // Both sides run, each by some of the threads.
            let mask = self.mask.clone();
            let env = &self.env;
            let may = mask.filter(|t| holds(self.planner, cond, env, Some(t)) != Some(false));
            let must = mask.filter(|t| holds(self.planner, cond, env, Some(t)) == Some(true));
            self.mask = may;
            self.stmts(then);
            self.mask = mask.without(&must);
            self.stmts(otherwise);
            self.mask = mask;
            return;
        }
        let known = if block { None } else { holds(self.planner, cond, &self.env, None) };
        match known {
            Some(true) => self.stmts(then),
            Some(false) => self.stmts(otherwise),
            None => {
                let before = self.state.clone();
                self.stmts(then);
                let after = std::mem::replace(&mut self.state, before);
                if self.stopped() {
                    return;
                }
                self.stmts(otherwise);
                self.state.join(after);
            }
        }
    }

    /// A loop that only reads what is shared is settled before it.
    fn before_loop(&mut self, stmt: &Stmt, info: &Info, turns: (VarId, i64, i64, i64)) {
        let StmtKind::For { body, .. } = &stmt.kind else { return };
        let planner = self.planner;
        let Some(place) = info.place.filter(|_| info.by_hand.is_none()) else { return };
        let is_leaf = |id: &SpecId| planner.p.specs[*id].body.is_none();
        let leaves: Vec<SpecId> = planner.p.walk(body).specs().filter(is_leaf).collect();
        let writes =
            |id: &SpecId| planner.exchanges(*id) || planner.operands(*id).any(|(_, write)| write);
        if !info.converged || leaves.iter().any(writes) {
            return;
        }
        let (var, start, step, n) = turns;
        for turn in 0..n.min(TURNS) {
            self.env.insert(var, start + turn * step);
            for id in &leaves {
                self.events += 1;
                for t in self.touches(*id, None) {
                    self.settle(&t, *id, place, true, &info.path);
                }
            }
        }
        self.env.remove(&var);
    }

    fn spec(&mut self, id: SpecId, info: &Info) {
        let planner = self.planner;
        self.events += 1;
        let operation = planner.solution.implements(id);
        self.operations += usize::from(operation);
        let Some(here) = info.place else { return };
        let (place, converged) = info.by_hand.unwrap_or((here, info.converged));
        let issuer = planner.issues_copy(id).then(|| Rc::clone(&info.path));
        let touches = self.touches(id, issuer);
        for t in &touches {
            self.settle_at(t, id, (place, here), converged, &info.path);
        }
        if self.need.is_some() {
            return;
        }
        if planner.exchanges(id) {
            let touch = |write| Touch {
                target: Target::Exchange(id),
                elements: None,
                write,
                by_hand: None,
                issuer: None,
            };
            self.settle(&touch(true), id, place, converged, &info.path);
            if !converged && self.need.is_none() {
                self.need = Some(Need {
                    leaf: id,
                    place,
                    converged: false,
                    wait: None,
                    barrier: true,
                    open: None,
                    at_end: false,
                });
            }
            // The barrier between writing and reading.
            self.state.since.clear();
            self.state.since.push(touch(false));
            return;
        }
        for t in touches {
            if t.issuer.is_some() {
                add(&mut self.state.open, t);
                continue;
            }
            if planner.asynchronous.get(&id) == Some(&Asynchronous::Said) {
                add(&mut self.state.said, t.clone());
            }
            add(&mut self.state.since, t);
        }
    }

    fn settle(&mut self, touch: &Touch, leaf: SpecId, place: Place, converged: bool, path: &Path) {
        self.settle_at(touch, leaf, (place, place), converged, path);
    }

    /// Notes what a touch needs that the plan does not give. It is put at the first place, before all of what
    /// was written by hand around the leaf; only the wait for a copy from there is put before the leaf, the
    /// second place.
    fn settle_at(
        &mut self,
        touch: &Touch,
        leaf: SpecId,
        (place, here): (Place, Place),
        converged: bool,
        path: &Path,
    ) {
        if self.need.is_some() {
            return;
        }
        let (planner, found) = (self.planner, &mut *self.found);
        let mut barrier = self.state.since.iter().any(|t| found.conflict(planner, t, touch));
        // Of copies from elsewhere, and of those that were issued beside the leaf.
        let (mut wait, mut open) = ([None, None], [None, None]);
        let pending = self.state.pending.iter().map(|(age, t)| (Some(*age), t));
        for (age, t) in pending.chain(self.state.open.iter().map(|t| (None, t))) {
            if !found.meet(planner, t, touch) {
                continue;
            }
            let issuer = t.issuer.as_deref().unwrap_or_default();
            let beside = usize::from(place != here && issuer.contains(&place));
            let n = age.unwrap_or(0);
            wait[beside] = Some(wait[beside].map_or(n, |m: i64| m.min(n)));
            if age.is_none() {
                open[beside] = t.issuer.clone();
            }
            barrier |= beside == 0 && found.conflict(planner, t, touch);
        }
        let at = self.plan.get(&here).copied().unwrap_or_default();
        let waited = |n: i64| at.wait.is_some_and(|m| m <= n);
        let committed = open[1].is_none() || at.commit_before;
        let side = match (wait[0].is_some() || barrier, wait[1]) {
            (true, _) => 0,
            (false, Some(n)) if !waited(n) || !committed => 1,
            _ => return,
        };
        let [first, second] = open;
        let open = if side == 0 { first } else { second };
        self.need = Some(Need {
            leaf,
            place: if side == 0 { place } else { here },
            converged,
            wait: wait[side],
            barrier: barrier && side == 0,
            open: open.map(|issuer| (issuer, Rc::clone(path))),
            at_end: false,
        });
    }

    fn touches(&mut self, id: SpecId, issuer: Option<Path>) -> Vec<Touch> {
        let planner = self.planner;
        let by_hand = (!planner.solution.implements(id)).then_some(self.operations);
        planner
            .operands(id)
            .map(|(t, write)| Touch {
                target: Target::Buffer(planner.p.tensors[t].buffer),
                elements: self.found.of(planner, (id, t, write), &self.env, &self.mask),
                write,
                by_hand,
                issuer: issuer.clone(),
            })
            .collect()
    }
}

/// Whether a condition holds, blocks and symbols unknown.
fn holds(
    planner: &Planner<'_>,
    cond: &[(Dim, CmpOp, Dim)],
    env: &HashMap<VarId, i64>,
    thread: Option<u32>,
) -> Option<bool> {
    let p = planner.p;
    let mut all = Some(true);
    for (a, op, b) in cond {
        let (Some(a), Some(b)) = (value(p, *a, env, thread), value(p, *b, env, thread)) else {
            all = None;
            continue;
        };
        let one = match op {
            CmpOp::Lt => a < b,
            CmpOp::Le => a <= b,
            CmpOp::Gt => a > b,
            CmpOp::Ge => a >= b,
            CmpOp::Eq => a == b,
            CmpOp::Ne => a != b,
        };
        if !one {
            return Some(false);
        }
    }
    all
}
