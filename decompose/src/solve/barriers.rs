//! Barriers and waits from dependences on shared tensors.
//!
//! Walks the body in the order of execution, loops twice for the dependences that go around: a read
//! after a write by other threads, and a write after a read or write, each want a barrier between. A
//! barrier settles everything before it. Asynchronous writes are committed and waited for first. What a
//! loop needs that only reads shared tensors is put before the loop, not into it.

use super::Solution;
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::SyncOp;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::{BTreeMap, BTreeSet};

/// What is put before a spec.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Commit and wait for all asynchronous copies, then a barrier.
    WaitAndBarrier,
    /// A barrier.
    Barrier,
}

#[derive(Clone, Default)]
struct State {
    written: BTreeSet<BufferId>,
    read: BTreeSet<BufferId>,
    in_flight: bool,
}

/// Where synchronization is put: before the statement at this depth of blocks whose first spec this is.
/// The kernel's body has depth 1.
pub type Place = (SpecId, usize);

/// The synchronization that the chosen instructions need.
pub fn plan(
    p: &Program,
    kernel: SpecId,
    solution: &Solution,
    table: &AtomTable,
) -> BTreeMap<Place, Sync> {
    let mut out = BTreeMap::new();
    let planner = Planner { p, solution, table };
    if let Some(body) = &p.specs[kernel].body {
        planner.stmts(body, 1, &mut State::default(), &mut out);
    }
    out
}

struct Planner<'p> {
    p: &'p Program,
    solution: &'p Solution,
    table: &'p AtomTable,
}

impl Planner<'_> {
    fn stmts(
        &self,
        stmts: &[Stmt],
        depth: usize,
        state: &mut State,
        out: &mut BTreeMap<Place, Sync>,
    ) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Spec(id) => match &self.p.specs[*id].body {
                    Some(body) if self.shared(*id).is_empty() => {
                        self.stmts(body, depth + 1, state, out);
                    }
                    _ => {
                        self.settle((*id, depth), &self.shared(*id), state, out);
                        self.touch(*id, state);
                    }
                },
                StmtKind::For { body, .. } => {
                    let (first, touched) = self.inside(body);
                    let reads_only = touched.iter().all(|(_, write)| !write);
                    if let Some(first) = first.filter(|_| reads_only) {
                        self.settle((first, depth), &touched, state, out);
                    }
                    self.stmts(body, depth + 1, state, out);
                    self.stmts(body, depth + 1, state, out);
                }
                StmtKind::If { then, otherwise, .. } => {
                    let mut other = state.clone();
                    self.stmts(then, depth + 1, state, out);
                    self.stmts(otherwise, depth + 1, &mut other, out);
                    state.written.extend(other.written);
                    state.read.extend(other.read);
                    state.in_flight |= other.in_flight;
                }
                StmtKind::Barrier(None) => {
                    state.written.clear();
                    state.read.clear();
                }
                StmtKind::Sync(s)
                    if s.op == SyncOp::AsyncWait && s.number == Some(Dim::Const(0)) =>
                {
                    state.in_flight = false;
                }
                _ => {}
            }
        }
    }

    /// The first spec of a block, and all shared buffers it touches.
    fn inside(&self, stmts: &[Stmt]) -> (Option<SpecId>, Vec<(BufferId, bool)>) {
        let mut first = None;
        let mut touched = vec![];
        for stmt in stmts {
            let (spec, more) = match &stmt.kind {
                StmtKind::Spec(id) => {
                    let mut t = self.shared(*id);
                    if let Some(body) = &self.p.specs[*id].body {
                        t.extend(self.inside(body).1);
                    }
                    (Some(*id), t)
                }
                StmtKind::For { body, .. } => self.inside(body),
                StmtKind::If { then, otherwise, .. } => {
                    let (a, mut t) = self.inside(then);
                    let (b, u) = self.inside(otherwise);
                    t.extend(u);
                    (a.or(b), t)
                }
                _ => (None, vec![]),
            };
            first = first.or(spec);
            touched.extend(more);
        }
        (first, touched)
    }

    fn shared(&self, id: SpecId) -> Vec<(BufferId, bool)> {
        let spec = &self.p.specs[id];
        let one = |t: TensorId, write: bool| (self.p.tensors[t].buffer, write);
        spec.input_tensors()
            .map(|t| one(t, false))
            .chain(spec.outputs.iter().map(|t| one(*t, true)))
            .filter(|(b, _)| self.p.buffers[*b].memory == Some(Memory::Sh))
            .collect()
    }

    /// Puts a barrier here if these accesses conflict with what is unsettled, or if one is here already.
    fn settle(
        &self,
        place: Place,
        touched: &[(BufferId, bool)],
        state: &mut State,
        out: &mut BTreeMap<Place, Sync>,
    ) {
        let clash = touched
            .iter()
            .any(|(b, write)| state.written.contains(b) || (*write && state.read.contains(b)));
        let already = out.get(&place).copied();
        if clash || already.is_some() {
            let wait = state.in_flight || already == Some(Sync::WaitAndBarrier);
            out.insert(place, if wait { Sync::WaitAndBarrier } else { Sync::Barrier });
            *state = State::default();
        }
    }

    fn touch(&self, id: SpecId, state: &mut State) {
        for (b, write) in self.shared(id) {
            if write {
                state.written.insert(b);
            } else {
                state.read.insert(b);
            }
        }
        let copy = self.solution.copies.get(&id).and_then(|c| self.table.get(c.atom));
        state.in_flight |= copy.is_some_and(|a| a.visibility == Visibility::AsyncGroup);
    }
}
