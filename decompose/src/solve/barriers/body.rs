//! What is known of a kernel's body before it is followed: what is tracked, which leaves copy asynchronously, and
//! where each statement stands.

use super::touch::{Mask, depends, members};
use super::{Place, synchronizes};
use crate::matching;
use crate::solve::{Solution, ops};
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::{NodeKey, SyncOp};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

/// Whether a leaf of the text copies asynchronously.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Asynchronous {
    /// It names such an instruction: whoever wrote it waits for it.
    Said,
    /// It is such an instruction that implements it.
    Unsaid,
}

/// What is known of a statement of the body wherever the block is.
#[derive(Clone, Debug)]
pub(super) struct Info {
    /// Where something is put before and after it; none for one that has neither specs nor synchronizes.
    pub(super) place: Option<Place>,
    /// The places of the statements around it, from the outside in, and its own.
    pub(super) path: Rc<[Place]>,
    /// Whether all threads of the block come to it, as far as the text says.
    pub(super) converged: bool,
    /// Whether an operation of the block is in it.
    pub(super) operation: bool,
    /// Whether a leaf is in it that touches what is tracked, or that exchanges.
    pub(super) matters: bool,
    /// The outermost statement around it, or itself, that has no operation of the block in it, and whether all
    /// threads come to that.
    pub(super) by_hand: Option<(Place, bool)>,
}

pub(super) struct Planner<'p> {
    pub(super) p: &'p Program,
    pub(super) kernel: SpecId,
    pub(super) solution: &'p Solution,
    /// Buffers in memory that threads share and in which accesses may conflict.
    pub(super) tracked: BTreeSet<BufferId>,
    /// Pairs of shared buffers that have addresses in common, the smaller id first.
    pub(super) aliases: BTreeSet<(BufferId, BufferId)>,
    /// Buffers that may share addresses with anything.
    pub(super) anywhere: BTreeSet<BufferId>,
    pub(super) asynchronous: HashMap<SpecId, Asynchronous>,
    /// Whether copies that the solver chose are asynchronous, by spec.
    pub(super) copies: BTreeSet<SpecId>,
    /// Whether someone wrote commits.
    pub(super) by_hand: bool,
    /// Of every statement.
    pub(super) infos: HashMap<NodeKey, Info>,
    /// Threads of the block.
    pub(super) threads: i64,
    /// Statements inside of which groups are committed, and not after them.
    pub(super) inside: BTreeSet<Place>,
    /// Statements after which a group ends.
    pub(super) ends: BTreeSet<Place>,
}

impl<'p> Planner<'p> {
    pub(super) fn new(
        p: &'p Program,
        kernel: SpecId,
        solution: &'p Solution,
        table: &AtomTable,
    ) -> Self {
        let mut planner = Planner {
            p,
            kernel,
            solution,
            tracked: BTreeSet::new(),
            aliases: BTreeSet::new(),
            anywhere: BTreeSet::new(),
            asynchronous: HashMap::new(),
            copies: BTreeSet::new(),
            by_hand: false,
            infos: HashMap::new(),
            threads: ops::block_threads(p, kernel),
            inside: BTreeSet::new(),
            ends: BTreeSet::new(),
        };
        let Some(body) = &p.specs[kernel].body else { return planner };
        let leaves = p.leaves(kernel);
        let in_group =
            |name: &str| table.get(name).is_some_and(|a| a.visibility == Visibility::AsyncGroup);
        for (id, around) in &leaves {
            let spec = &p.specs[*id];
            for t in spec.outputs.iter() {
                if p.buffer_of(*t).memory == Some(Memory::Gl) {
                    planner.tracked.insert(p.tensors[*t].buffer);
                }
            }
            if let Some(c) = solution.copies.get(id) {
                if in_group(c.atom) {
                    planner.copies.insert(*id);
                }
            } else if !solution.implements(*id) {
                let kind = match &spec.atom {
                    Some(atom) => in_group(atom).then_some(Asynchronous::Said),
                    None => {
                        let memory = |t: Option<TensorId>| t.and_then(|t| p.buffer_of(t).memory);
                        let (from, to) =
                            (spec.input_tensors().next(), spec.outputs.first().copied());
                        let copies =
                            (memory(from), memory(to)) == (Some(Memory::Gl), Some(Memory::Sh));
                        // Into a tensor whose layout is open any row may be the one.
                        let open = to.is_some_and(|t| p.buffer_of(t).open);
                        let rows = || table.atoms().iter().any(|a| in_group(a.name));
                        let row = || matching::match_any(p, *id, around, table).ok();
                        let unsaid = copies
                            && if open { rows() } else { row().is_some_and(|m| in_group(m.atom)) };
                        unsaid.then_some(Asynchronous::Unsaid)
                    }
                };
                planner.asynchronous.extend(kind.map(|k| (*id, k)));
            }
        }
        for stmt in p.walk(body).stmts() {
            match &stmt.kind {
                StmtKind::Sync(s) => planner.by_hand |= s.op == SyncOp::AsyncCommit,
                StmtKind::Allocate(t) => {
                    let buffer = &p.buffers[p.tensors[*t].buffer];
                    if buffer.memory == Some(Memory::Sh) && buffer.scalar != Scalar::Mbarrier {
                        planner.tracked.insert(p.tensors[*t].buffer);
                    }
                }
                _ => {}
            }
        }
        planner.addresses();
        planner.describe(body, &[], (true, None));
        planner
    }

    /// Notes what is known of statements, in others, to which all threads come or not.
    fn describe(
        &mut self,
        stmts: &[Stmt],
        around: &[Place],
        (converged, by_hand): (bool, Option<(Place, bool)>),
    ) {
        for stmt in stmts {
            let put = synchronizes(stmt) || self.first(stmt).is_some();
            let place = put.then(|| stmt.node.key());
            let path: Vec<Place> = around.iter().copied().chain(place).collect();
            let operation = self.has_operation(stmt);
            let own = place.filter(|_| !operation).map(|p| (p, converged));
            let by_hand = by_hand.or(own);
            let matters = self.matters(stmt);
            let inner = (converged && self.converges(stmt), by_hand);
            let info =
                Info { place, path: Rc::from(&*path), converged, operation, matters, by_hand };
            self.infos.insert(stmt.node.key(), info);
            let p = self.p;
            let (first, second) = p.inside(stmt);
            self.describe(first, &path, inner);
            self.describe(second, &path, inner);
        }
    }

    pub(super) fn info(&self, stmt: &Stmt) -> &Info {
        &self.infos[&stmt.node.key()]
    }

    /// Which shared buffers have addresses in common. Where they lie is not decided here, so that one which
    /// is larger than what it reuses, or whose address is written, may lie anywhere.
    fn addresses(&mut self) {
        let p = self.p;
        let bits = |b: BufferId| -> Option<i64> {
            let buffer = &p.buffers[b];
            let cosize = match self.solution.shared.get(&b) {
                Some((layout, _)) => layout.cosize(),
                None => buffer.cosize.as_const()?,
            };
            cosize.checked_mul(buffer.scalar.bits())
        };
        let mut root: BTreeMap<BufferId, BufferId> = BTreeMap::new();
        for (id, buffer) in p.buffers.iter() {
            if buffer.memory != Some(Memory::Sh) {
                continue;
            }
            if buffer.at.is_some() {
                self.anywhere.insert(id);
            }
            let Some(other) = buffer.reuses else { continue };
            let first = root.get(&other).copied().unwrap_or(other);
            root.insert(id, first);
            match (bits(id), bits(other)) {
                (Some(own), Some(whole)) if own <= whole => {}
                _ => drop(self.anywhere.insert(id)),
            }
        }
        let members: Vec<(BufferId, BufferId)> = root.iter().map(|(b, r)| (*b, *r)).collect();
        for (i, (a, first)) in members.iter().enumerate() {
            let ordered = |a: BufferId, b: BufferId| if a < b { (a, b) } else { (b, a) };
            self.aliases.insert(ordered(*a, *first));
            for (b, other) in &members[..i] {
                if other == first {
                    self.aliases.insert(ordered(*a, *b));
                }
            }
        }
    }

    /// Whether two different buffers may share addresses.
    pub(super) fn share(&self, a: BufferId, b: BufferId) -> bool {
        let shared = |b: BufferId| self.p.buffers[b].memory == Some(Memory::Sh);
        shared(a)
            && shared(b)
            && (self.anywhere.contains(&a)
                || self.anywhere.contains(&b)
                || self.aliases.contains(&if a < b { (a, b) } else { (b, a) }))
    }

    /// Whether a statement has an operation of the block in it.
    pub(super) fn has_operation(&self, stmt: &Stmt) -> bool {
        let mut specs = self.p.walk(std::slice::from_ref(stmt)).specs();
        specs.any(|id| self.solution.implements(id))
    }

    /// Whether a statement has a leaf that touches what is tracked, or one that exchanges.
    fn matters(&self, stmt: &Stmt) -> bool {
        let mut specs = self.p.walk(std::slice::from_ref(stmt)).specs();
        specs.any(|id| {
            self.p.specs[id].body.is_none()
                && (self.exchanges(id) || self.operands(id).next().is_some())
        })
    }

    pub(super) fn copies_asynchronously(&self) -> bool {
        !self.copies.is_empty() || !self.asynchronous.is_empty()
    }

    /// Whether a leaf issues a copy that somebody here must wait for.
    pub(super) fn issues_copy(&self, id: SpecId) -> bool {
        self.copies.contains(&id) || self.asynchronous.get(&id) == Some(&Asynchronous::Unsaid)
    }

    /// The first spec in a statement, which may be the statement.
    pub(super) fn first(&self, stmt: &Stmt) -> Option<SpecId> {
        self.p.walk(std::slice::from_ref(stmt)).specs().next()
    }

    /// The last of these statements that has specs, with its first.
    pub(super) fn last<'s>(&self, stmts: &'s [Stmt]) -> Option<(&'s Stmt, SpecId)> {
        stmts.iter().rev().find_map(|s| Some((s, self.first(s)?)))
    }

    /// Tracked operands, and whether they are written.
    pub(super) fn operands(&self, id: SpecId) -> impl Iterator<Item = (TensorId, bool)> + '_ {
        let spec = &self.p.specs[id];
        spec.input_tensors()
            .map(|t| (t, false))
            .chain(spec.outputs.iter().map(|t| (*t, true)))
            .filter(|(t, _)| self.tracked.contains(&self.p.tensors[*t].buffer))
    }

    /// Whether its body exchanges values of its own through shared memory.
    pub(super) fn exchanges(&self, id: SpecId) -> bool {
        let reduced = self.solution.reductions.get(&id).is_some_and(|r| r.shared.is_some());
        reduced || self.solution.matmuls.get(&id).is_some_and(|m| m.gemm.groups.2 > 1)
    }

    /// Whether all threads of the block that come to a statement go on inside of it, as far as the text says.
    fn converges(&self, stmt: &Stmt) -> bool {
        let p = self.p;
        let same = |d: &Dim| !depends(p, *d).thread;
        match &stmt.kind {
            StmtKind::Spec(id) => {
                let own = p.specs[*id].exec.and_then(|e| members(p, e.threads, &HashMap::new()));
                p.specs[*id].body.is_none() || own == Some(Mask::first(self.threads))
            }
            StmtKind::For { start, end, .. } => same(start) && same(end),
            StmtKind::If { cond, .. } => cond.iter().all(|(a, _, b)| same(a) && same(b)),
            _ => true,
        }
    }
}
