//! Collects facts about a kernel's leaves for the planner ([`Facts`]): which memory is tracked,
//! which buffers share addresses, which copies are asynchronous.

use crate::access::matching;
use crate::access::ops;
use crate::plan::roles::{Handed, Roles};
use crate::plan::solution::{Assignment, Solution};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::Scalar;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Whether a leaf of the text copies asynchronously.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asynchronous {
    /// It names such an instruction: whoever wrote it waits for it.
    Said,
    /// It is such an instruction that implements it.
    Unsaid,
}

pub(crate) struct Facts<'p> {
    pub(crate) p: &'p Program,
    pub(crate) solution: &'p Solution,
    /// Buffers in memory that threads share and in which accesses may conflict.
    pub(crate) tracked: BTreeSet<BufferId>,
    /// Pairs of shared buffers that have addresses in common, the smaller id first.
    pub(crate) aliases: BTreeSet<(BufferId, BufferId)>,
    /// Buffers that may share addresses with anything.
    pub(crate) anywhere: BTreeSet<BufferId>,
    pub(crate) asynchronous: HashMap<SpecId, Asynchronous>,
    /// Whether copies that the solver chose are asynchronous, by spec.
    pub(crate) copies: BTreeSet<SpecId>,
    /// Whether someone wrote commits.
    pub(crate) by_hand: bool,
    /// Threads of the block.
    pub(crate) threads: i64,
    /// What roles hand over.
    pub(crate) roles: &'p Roles,
    /// Rings that roles hand over.
    pub(crate) handed: BTreeSet<BufferId>,
}

impl<'p> Facts<'p> {
    pub(crate) fn new(
        p: &'p Program,
        kernel: SpecId,
        solution: &'p Solution,
        table: &AtomTable,
        roles: &'p Roles,
    ) -> Self {
        let mut facts = Facts {
            p,
            solution,
            tracked: BTreeSet::new(),
            aliases: BTreeSet::new(),
            anywhere: BTreeSet::new(),
            asynchronous: HashMap::new(),
            copies: BTreeSet::new(),
            by_hand: false,
            threads: ops::block_threads(p, kernel),
            roles,
            handed: BTreeSet::new(),
        };
        let Some(body) = &p.specs[kernel].body else { return facts };
        let leaves = p.leaves(kernel);
        let in_group = |name: &str| table.get(name).is_some_and(|a| a.visibility.is_async_copy());
        for (id, around) in &leaves {
            let spec = &p.specs[*id];
            for t in spec.outputs.iter() {
                if p.buffer_of(*t).is_global() {
                    facts.tracked.insert(p.tensors[*t].buffer);
                }
            }
            if solution.copy(*id).is_some_and(|c| in_group(c.atom)) {
                facts.copies.insert(*id);
            }
            if !solution.implements(*id) {
                let kind = match &spec.atom {
                    Some(atom) => in_group(atom).then_some(Asynchronous::Said),
                    None => {
                        let from = spec.input_tensors().next().map(|t| p.buffer_of(t));
                        let to = spec.outputs.first().map(|t| p.buffer_of(*t));
                        let copies = from.is_some_and(|b| b.is_global())
                            && to.is_some_and(|b| b.is_shared());
                        // Into a tensor whose layout is open any row may be the one.
                        let open = to.is_some_and(|b| b.open);
                        let rows = || table.atoms().iter().any(|a| in_group(a.name));
                        let row = || matching::match_any(p, *id, around, table, true).ok();
                        let unsaid = copies
                            && if open { rows() } else { row().is_some_and(|m| in_group(m.atom)) };
                        unsaid.then_some(Asynchronous::Unsaid)
                    }
                };
                facts.asynchronous.extend(kind.map(|k| (*id, k)));
            }
        }
        for stmt in p.walk(body).stmts() {
            match &stmt.kind {
                StmtKind::Sync(s) => facts.by_hand |= s.op == SyncOp::AsyncCommit,
                StmtKind::Allocate(t) => {
                    let buffer = &p.buffers[p.tensors[*t].buffer];
                    if roles.is_ring(stmt.node.key()) {
                        facts.handed.insert(p.tensors[*t].buffer);
                    }
                    if buffer.is_of_block() && buffer.scalar != Scalar::Mbarrier {
                        facts.tracked.insert(p.tensors[*t].buffer);
                    }
                }
                _ => {}
            }
        }
        facts.addresses();
        facts
    }

    /// Which shared buffers have addresses in common. Where they lie is not decided here, so that
    /// one which is larger than what it reuses, or whose address is written, may lie anywhere.
    fn addresses(&mut self) {
        let p = self.p;
        let bits = |b: BufferId| -> Option<i64> {
            let buffer = &p.buffers[b];
            let cosize = match self.solution.in_memory(b) {
                Some(layout) => layout.cosize(),
                None => buffer.cosize.as_const()?,
            };
            cosize.checked_mul(buffer.scalar.bits())
        };
        let mut root: BTreeMap<BufferId, BufferId> = BTreeMap::new();
        for (id, buffer) in p.buffers.iter() {
            if !buffer.is_shared() {
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
    pub(crate) fn share(&self, a: BufferId, b: BufferId) -> bool {
        let shared = |b: BufferId| self.p.buffers[b].is_shared();
        shared(a)
            && shared(b)
            && (self.anywhere.contains(&a)
                || self.anywhere.contains(&b)
                || self.aliases.contains(&if a < b { (a, b) } else { (b, a) }))
    }

    /// Whether a buffer may share addresses with any other.
    pub(crate) fn shares(&self, b: BufferId) -> bool {
        let listed = || self.aliases.iter().any(|(x, y)| *x == b || *y == b);
        self.p.buffers[b].is_shared() && (!self.anywhere.is_empty() || listed())
    }

    /// Whether a statement has an operation of the block in it.
    pub(crate) fn has_operation(&self, stmt: &Stmt) -> bool {
        let mut specs = self.p.walk(std::slice::from_ref(stmt)).specs();
        specs.any(|id| self.solution.implements(id))
    }

    /// Whether a leaf writes a stage that is handed over.
    fn hands(&self, id: SpecId) -> bool {
        let p = self.p;
        p.specs[id].outputs.iter().any(|t| self.handed.contains(&p.tensors[*t].buffer))
    }

    /// Whether a leaf writes a stage of these.
    pub(crate) fn fills(&self, id: SpecId, handed: &Handed) -> bool {
        let p = self.p;
        let of = |t: &TensorId| handed.rings.contains(&p.buffers[p.tensors[*t].buffer].node.key());
        p.specs[id].body.is_none() && p.specs[id].outputs.iter().any(of)
    }

    /// Whether a leaf copies asynchronously to a stage that is handed over.
    pub(crate) fn hands_copy(&self, id: SpecId) -> bool {
        self.hands(id) && (self.copies.contains(&id) || self.asynchronous.contains_key(&id))
    }

    /// Whether a leaf issues a copy that somebody here must wait for.
    pub(crate) fn issues_copy(&self, id: SpecId) -> bool {
        if self.hands(id) {
            return false;
        }
        self.copies.contains(&id) || self.asynchronous.get(&id) == Some(&Asynchronous::Unsaid)
    }

    /// The first spec in a statement, which may be the statement.
    pub(crate) fn first(&self, stmt: &Stmt) -> Option<SpecId> {
        self.p.walk(std::slice::from_ref(stmt)).specs().next()
    }

    /// Tracked operands, and whether they are written.
    pub(crate) fn operands(&self, id: SpecId) -> impl Iterator<Item = (TensorId, bool)> + '_ {
        let spec = &self.p.specs[id];
        spec.input_tensors()
            .map(|t| (t, false))
            .chain(spec.outputs.iter().map(|t| (*t, true)))
            .filter(|(t, _)| self.tracked.contains(&self.p.tensors[*t].buffer))
    }

    /// Whether its body exchanges values of its own through shared memory.
    pub(crate) fn exchanges(&self, id: SpecId) -> bool {
        self.solution.how(id).is_some_and(Assignment::through_shared)
    }
}
