//! Barriers, commits and waits from dependences on shared tensors.
//!
//! The body is followed in the order of execution, loops as often as they run (of long ones the first and
//! the last turns), with the elements that each operation touches. Two accesses of one element conflict where
//! one of them writes, unless one thread does both; between them stands a barrier. What an asynchronous copy writes is there once its
//! group is waited for and a barrier has passed the news on: groups are committed where a run of such copies
//! ends, outside of an `if` around them, so that every turn of a loop commits one, and the wait leaves as
//! many groups in flight as every turn allows. A barrier is put only where nothing before settles the conflict,
//! and what a loop needs that only reads is put before the loop.
//!
//! Where someone wrote commits by hand, none is added.

use super::Solution;
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::{CmpOp, SyncOp};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId, VarKind};
use carbyne_ir::scalar::Memory;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// What is put at a place.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Sync {
    /// Before the statement: a wait that leaves so many groups in flight.
    pub wait: Option<i64>,
    /// Before the statement, after the wait: a barrier.
    pub barrier: bool,
    /// After the statement: the asynchronous copies since the last commit are one group.
    pub commit: bool,
}

/// Where synchronization is put: at the statement at this depth of blocks whose first spec this is.
/// The kernel's body has depth 1.
pub type Place = (SpecId, usize);

/// Operations that are followed at most; a body that has more gets a barrier before every access.
const MAX_EVENTS: usize = 50_000;

/// Turns of a loop that are followed at its beginning and at its end; a multiple of usual numbers of stages.
const TURNS: i64 = 24;

/// The synchronization that the chosen instructions need.
pub fn plan(
    p: &Program,
    kernel: SpecId,
    solution: &Solution,
    table: &AtomTable,
) -> BTreeMap<Place, Sync> {
    let mut out = BTreeMap::new();
    let Some(body) = &p.specs[kernel].body else { return out };
    let mut by_hand = false;
    visit(p, body, &mut |s| {
        by_hand |= matches!(&s.kind, StmtKind::Sync(s) if s.op == SyncOp::AsyncCommit);
    });
    let planner = Planner { p, solution, table };
    if !by_hand {
        planner.commits(body, 1, &mut out);
    }
    // Every run adds at least one barrier or lowers one wait, or is the last.
    loop {
        let mut trace = Trace {
            planner: &planner,
            plan: &out,
            env: HashMap::new(),
            touched: HashMap::new(),
            since: vec![],
            pending: vec![],
            open: vec![],
            committed: 0,
            events: 0,
            need: None,
        };
        trace.stmts(body, 1);
        let everywhere = trace.events > MAX_EVENTS;
        match trace.need.take() {
            Some((place, need)) if !everywhere => {
                let at: &mut Sync = out.entry(place).or_default();
                at.barrier |= need.barrier;
                if let Some(n) = need.wait {
                    at.wait = Some(at.wait.map_or(n, |m| m.min(n)));
                }
            }
            _ => {
                if everywhere {
                    planner.everywhere(body, 1, &mut out);
                }
                return out;
            }
        }
    }
}

fn visit(p: &Program, stmts: &[Stmt], f: &mut dyn FnMut(&Stmt)) {
    for stmt in stmts {
        f(stmt);
        match &stmt.kind {
            StmtKind::Spec(id) => {
                if let Some(body) = &p.specs[*id].body {
                    visit(p, body, f);
                }
            }
            StmtKind::For { body, .. } => visit(p, body, f),
            StmtKind::If { then, otherwise, .. } => {
                visit(p, then, f);
                visit(p, otherwise, f);
            }
            _ => {}
        }
    }
}

struct Planner<'p> {
    p: &'p Program,
    solution: &'p Solution,
    table: &'p AtomTable,
}

impl Planner<'_> {
    /// Whether the spec is followed into, since operations of the solver stand in its body.
    fn entered(&self, id: SpecId) -> bool {
        let Some(body) = &self.p.specs[id].body else { return false };
        let mut found = self.shared(id).is_empty();
        visit(self.p, body, &mut |s| {
            found |= matches!(&s.kind, StmtKind::Spec(id) if self.solution.implements(*id));
        });
        found
    }

    fn asynchronous(&self, id: SpecId) -> bool {
        let copy = self.solution.copies.get(&id).and_then(|c| self.table.get(c.atom));
        copy.is_some_and(|a| a.visibility == Visibility::AsyncGroup)
    }

    /// Whether a statement issues asynchronous copies, other than in loops of its own.
    fn issues(&self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Spec(id) => match &self.p.specs[*id].body {
                Some(body) => body.iter().any(|s| self.issues(s)),
                None => self.asynchronous(*id),
            },
            StmtKind::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).any(|s| self.issues(s))
            }
            _ => false,
        }
    }

    /// Commits after every run of statements that issue asynchronous copies.
    fn commits(&self, stmts: &[Stmt], depth: usize, out: &mut BTreeMap<Place, Sync>) {
        for (i, stmt) in stmts.iter().enumerate() {
            match &stmt.kind {
                _ if self.issues(stmt) => {
                    if !stmts.get(i + 1).is_some_and(|next| self.issues(next))
                        && let Some(first) = self.first(stmt)
                    {
                        out.entry((first, depth)).or_default().commit = true;
                    }
                }
                StmtKind::Spec(id) => {
                    if let Some(body) = &self.p.specs[*id].body {
                        self.commits(body, depth + 1, out);
                    }
                }
                StmtKind::For { body, .. } => self.commits(body, depth + 1, out),
                StmtKind::If { then, otherwise, .. } => {
                    self.commits(then, depth + 1, out);
                    self.commits(otherwise, depth + 1, out);
                }
                _ => {}
            }
        }
    }

    /// The spec by which a statement is found.
    fn first(&self, stmt: &Stmt) -> Option<SpecId> {
        match &stmt.kind {
            StmtKind::Spec(id) => Some(*id),
            StmtKind::For { body, .. } => body.iter().find_map(|s| self.first(s)),
            StmtKind::If { then, otherwise, .. } => {
                then.iter().chain(otherwise).find_map(|s| self.first(s))
            }
            _ => None,
        }
    }

    fn shared(&self, id: SpecId) -> Vec<(TensorId, bool)> {
        let spec = &self.p.specs[id];
        spec.input_tensors()
            .map(|t| (t, false))
            .chain(spec.outputs.iter().map(|t| (*t, true)))
            .filter(|(t, _)| self.p.buffer_of(*t).memory == Some(Memory::Sh))
            .collect()
    }

    /// The thread that accesses each element of a shared tensor of this layout and offset, if a copy does
    /// and each element has one.
    fn owner(&self, id: SpecId, write: bool, tensor: &Layout, offset: i64) -> Option<Vec<u32>> {
        let copy = self.solution.copies.get(&id).filter(|c| c.group == 1)?;
        let tv = if write { &copy.g } else { &copy.f };
        let threads = tv.mode(0).ok()?.size();
        let mut out = vec![NOBODY; usize::try_from(offset + tensor.cosize()).ok()?];
        for i in 0..tv.size() {
            let t = i % threads;
            let thread = copy.part.as_ref().map_or(t, |p| p.at(t)) as u32;
            let at = usize::try_from(offset + tensor.at(tv.at(i))).ok()?;
            let owner = out.get_mut(at)?;
            if *owner != NOBODY && *owner != thread {
                return None;
            }
            *owner = thread;
        }
        Some(out)
    }

    /// Waits and barriers before every access.
    fn everywhere(&self, stmts: &[Stmt], depth: usize, out: &mut BTreeMap<Place, Sync>) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Spec(id) if self.entered(*id) => {
                    if let Some(body) = &self.p.specs[*id].body {
                        self.everywhere(body, depth + 1, out);
                    }
                }
                StmtKind::Spec(id)
                    if exchanges(self.solution, *id) || !self.shared(*id).is_empty() =>
                {
                    let at: &mut Sync = out.entry((*id, depth)).or_default();
                    (at.wait, at.barrier) = (Some(0), true);
                }
                StmtKind::For { body, .. } => self.everywhere(body, depth + 1, out),
                StmtKind::If { then, otherwise, .. } => {
                    self.everywhere(then, depth + 1, out);
                    self.everywhere(otherwise, depth + 1, out);
                }
                _ => {}
            }
        }
    }
}

/// What is accessed: a shared buffer, or what a spec exchanges in its body.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Target {
    Buffer(BufferId),
    Exchange(SpecId),
}

/// Which elements are accessed.
struct Elements {
    /// A bit each.
    bits: Vec<u64>,
    /// The thread that accesses each, where that is always one.
    owner: Option<Vec<u32>>,
}

/// Of an element that no thread accesses.
const NOBODY: u32 = u32::MAX;

#[derive(Clone)]
struct Touch {
    target: Target,
    /// None where they are not known.
    elements: Option<Rc<Elements>>,
    write: bool,
}

impl Touch {
    /// Whether both access an element that one of them writes.
    fn meets(&self, other: &Touch) -> bool {
        self.target == other.target
            && (self.write || other.write)
            && match (&self.elements, &other.elements) {
                (Some(a), Some(b)) => a.bits.iter().zip(&b.bits).any(|(a, b)| a & b != 0),
                _ => true,
            }
    }

    /// The same of two threads: what one thread does is in order.
    fn conflicts(&self, other: &Touch) -> bool {
        fn owners(t: &Touch) -> Option<&[u32]> {
            t.elements.as_ref()?.owner.as_deref()
        }
        self.meets(other)
            && match (owners(self), owners(other)) {
                (Some(a), Some(b)) => {
                    a.iter().zip(b).any(|(a, b)| a != b && *a != NOBODY && *b != NOBODY)
                }
                _ => true,
            }
    }
}

struct Trace<'a> {
    planner: &'a Planner<'a>,
    plan: &'a BTreeMap<Place, Sync>,
    env: HashMap<VarId, i64>,
    touched: HashMap<(SpecId, TensorId, i64), Option<Rc<Elements>>>,
    /// Since the last barrier.
    since: Vec<Touch>,
    /// Asynchronous writes of committed groups that nobody has waited for.
    pending: Vec<(i64, Touch)>,
    /// Those not committed.
    open: Vec<Touch>,
    committed: i64,
    events: usize,
    /// The first conflict that nothing settles: where, and what does.
    need: Option<(Place, Sync)>,
}

impl Trace<'_> {
    fn stopped(&self) -> bool {
        self.need.is_some() || self.events > MAX_EVENTS
    }

    fn stmts(&mut self, stmts: &[Stmt], depth: usize) {
        for stmt in stmts {
            if self.stopped() {
                return;
            }
            let first = self.planner.first(stmt);
            let at = first.and_then(|f| self.plan.get(&(f, depth))).copied().unwrap_or_default();
            if let Some(n) = at.wait {
                self.wait(n);
            }
            if at.barrier {
                self.since.clear();
            }
            self.stmt(stmt, depth);
            if at.commit {
                self.commit();
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, depth: usize) {
        let p = self.planner.p;
        match &stmt.kind {
            StmtKind::Spec(id) if self.planner.entered(*id) => {
                if let Some(body) = &p.specs[*id].body {
                    self.stmts(body, depth + 1);
                }
            }
            StmtKind::Spec(id) => self.spec(*id, depth),
            StmtKind::For { var, start, end, step, body, .. } => {
                let (Some(start), Some(end)) = (self.eval(*start), self.eval(*end)) else {
                    // Of a loop of unknown length, two turns.
                    for _ in 0..2 {
                        self.stmts(body, depth + 1);
                    }
                    return;
                };
                if end <= start {
                    return;
                }
                let turns = (end - start - 1) / step + 1;
                self.before_loop(stmt, depth, (*var, start, *step, turns));
                let mut turn = 0;
                while turn < turns && !self.stopped() {
                    self.env.insert(*var, start + turn * step);
                    self.stmts(body, depth + 1);
                    turn += 1;
                    if turn == TURNS && turns > 3 * TURNS {
                        turn += (turns - 2 * TURNS) / TURNS * TURNS;
                    }
                }
                self.env.remove(var);
            }
            StmtKind::If { cond, then, otherwise } => match self.holds(cond) {
                Some(true) => self.stmts(then, depth + 1),
                Some(false) => self.stmts(otherwise, depth + 1),
                None => {
                    self.stmts(then, depth + 1);
                    self.stmts(otherwise, depth + 1);
                }
            },
            StmtKind::Barrier(None) => self.since.clear(),
            StmtKind::Sync(s) => match s.op {
                SyncOp::AsyncCommit => self.commit(),
                SyncOp::AsyncWait => {
                    let n = s.number.and_then(|n| self.eval(n)).unwrap_or(0);
                    self.wait(n);
                }
                _ => {}
            },
            _ => {}
        }
    }

    /// A loop that only reads shared tensors is settled before it.
    fn before_loop(&mut self, stmt: &Stmt, depth: usize, turns: (VarId, i64, i64, i64)) {
        let StmtKind::For { body, .. } = &stmt.kind else { return };
        let p = self.planner.p;
        let mut ids = vec![];
        visit(p, body, &mut |s| {
            if let StmtKind::Spec(id) = &s.kind {
                ids.push(*id);
            }
        });
        let leaves = ids.iter().filter(|id| !self.planner.entered(**id));
        let exchanging = |id: &SpecId| exchanges(self.planner.solution, *id);
        let all: Vec<SpecId> = leaves.copied().collect();
        let writes = all
            .iter()
            .any(|id| exchanging(id) || self.planner.shared(*id).iter().any(|(_, write)| *write));
        let Some(first) = self.planner.first(stmt).filter(|_| !writes) else { return };
        let (var, start, step, n) = turns;
        for turn in 0..n.min(TURNS) {
            self.env.insert(var, start + turn * step);
            for id in &all {
                self.events += 1;
                for t in self.touches(*id) {
                    self.settle(&t, (first, depth));
                }
            }
        }
        self.env.remove(&var);
    }

    fn spec(&mut self, id: SpecId, depth: usize) {
        self.events += 1;
        let place = (id, depth);
        let touches = self.touches(id);
        for t in &touches {
            self.settle(t, place);
        }
        if exchanges(self.planner.solution, id) {
            let touch = |write| Touch { target: Target::Exchange(id), elements: None, write };
            self.settle(&touch(true), place);
            // The barrier between writing and reading.
            self.since.clear();
            self.since.push(touch(false));
            return;
        }
        if self.planner.asynchronous(id) {
            for t in touches {
                if t.write {
                    self.open.push(t);
                } else {
                    self.since.push(t);
                }
            }
        } else {
            self.since.extend(touches);
        }
    }

    /// Notes what a touch needs that the plan does not give.
    fn settle(&mut self, touch: &Touch, place: Place) {
        if self.need.is_some() {
            return;
        }
        let mut wait = None;
        let mut barrier = self.since.iter().any(|t| t.conflicts(touch));
        for (group, t) in self.pending.iter().filter(|(_, t)| t.meets(touch)) {
            let n = self.committed - 1 - group;
            wait = Some(wait.map_or(n, |m: i64| m.min(n)));
            barrier |= t.conflicts(touch);
        }
        let at = self.plan.get(&place).copied().unwrap_or_default();
        let waited = wait.is_none_or(|n| at.wait.is_some_and(|m| m <= n));
        if !waited || (barrier && !at.barrier) {
            self.need = Some((place, Sync { wait, barrier, commit: false }));
        }
    }

    fn commit(&mut self) {
        let group = self.committed;
        self.pending.extend(self.open.drain(..).map(|t| (group, t)));
        self.committed += 1;
    }

    fn wait(&mut self, n: i64) {
        let last = self.committed - 1 - n;
        let (done, pending) = self.pending.drain(..).partition(|(group, _)| *group <= last);
        self.pending = pending;
        let done: Vec<(i64, Touch)> = done;
        self.since.extend(done.into_iter().map(|(_, t)| t));
    }

    fn touches(&mut self, id: SpecId) -> Vec<Touch> {
        self.planner
            .shared(id)
            .into_iter()
            .map(|(t, write)| {
                let tensor = &self.planner.p.tensors[t];
                let target = Target::Buffer(tensor.buffer);
                let elements = match self.eval(tensor.offset) {
                    Some(offset) => self.elements(id, t, write, offset),
                    None => None,
                };
                Touch { target, elements, write }
            })
            .collect()
    }

    fn elements(
        &mut self,
        id: SpecId,
        t: TensorId,
        write: bool,
        offset: i64,
    ) -> Option<Rc<Elements>> {
        /// Elements of a shared tensor that are told apart.
        const MOST: i64 = 1 << 18;
        let p = self.planner.p;
        if let Some(known) = self.touched.get(&(id, t, offset)) {
            return known.clone();
        }
        let found = p.tensors[t].concat().to_fixed().filter(|l| {
            offset >= 0 && l.cosize().saturating_add(offset) <= MOST && l.size() <= MOST
        });
        let elements = found.map(|l| {
            let mut bits = vec![0u64; ((offset + l.cosize()) / 64 + 1) as usize];
            for i in 0..l.size() {
                let at = offset + l.at(i);
                bits[(at / 64) as usize] |= 1 << (at % 64);
            }
            Rc::new(Elements { bits, owner: self.planner.owner(id, write, &l, offset) })
        });
        self.touched.insert((id, t, offset), elements.clone());
        elements
    }

    /// The value of an expression, blocks and threads at zero.
    fn eval(&self, d: Dim) -> Option<i64> {
        fn value(p: &Program, env: &HashMap<VarId, i64>, v: VarId) -> Option<i64> {
            match p.vars.get(&v)? {
                VarKind::Thread(_) | VarKind::Block(_) => Some(0),
                VarKind::Loop => env.get(&v).copied(),
                VarKind::Index(def) => p.arena.eval(*def, &|v| value(p, env, v)).ok(),
                VarKind::Symbol => None,
            }
        }
        let p = self.planner.p;
        p.arena.eval(d, &|v| value(p, &self.env, v)).ok()
    }

    /// Whether a condition on loops alone holds.
    fn holds(&self, cond: &[(Dim, CmpOp, Dim)]) -> Option<bool> {
        let p = self.planner.p;
        let loops_only =
            |d: Dim| p.vars_in(d).iter().all(|v| matches!(p.vars.get(v), Some(VarKind::Loop)));
        let mut all = true;
        for (a, op, b) in cond {
            if !loops_only(*a) || !loops_only(*b) {
                return None;
            }
            let (a, b) = (self.eval(*a)?, self.eval(*b)?);
            all &= match op {
                CmpOp::Lt => a < b,
                CmpOp::Le => a <= b,
                CmpOp::Gt => a > b,
                CmpOp::Ge => a >= b,
                CmpOp::Eq => a == b,
                CmpOp::Ne => a != b,
            };
        }
        Some(all)
    }
}

/// Whether its body exchanges values of its own through shared memory.
fn exchanges(solution: &Solution, id: SpecId) -> bool {
    let reduced = solution.reductions.get(&id).is_some_and(|r| r.shared.is_some());
    reduced || solution.matmuls.get(&id).is_some_and(|m| m.gemm.groups.2 > 1)
}
