//! Analyzes a loop with `stages=` ([`Loop`]): which tensors can be rings, which copies fill them,
//! and which copies cannot run ahead ([`Why`]).

use super::ops;
use carbyne_atoms::{Atom, AtomTable};
use carbyne_ir::ast::{NodeKey, SpecKind, Unroll};
use carbyne_ir::program::{self, BufferId, Program, SpecId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Whether threads can copy to shared memory without waiting; without, what is on its way is in
/// registers.
pub(crate) fn is_asynchronous(table: &AtomTable) -> bool {
    let copies = |a: &Atom| a.visibility.is_async_copy();
    table.atoms().iter().any(|a| copies(a) && a.writes().any(|o| o.allows(Memory::Sh)))
}

/// A loop with stages.
pub(crate) struct Loop {
    pub(crate) stages: i64,
    /// Its first value, if that is a number.
    pub(crate) start: Option<i64>,
    pub(crate) step: i64,
    /// How many iterations it has, if that is known.
    pub(crate) trips: Option<i64>,
    /// The memory of its rings.
    pub(crate) memory: Memory,
    /// Tensors that can be rings, by their allocations, with the copies that fill them.
    pub(crate) rings: BTreeMap<NodeKey, Vec<NodeKey>>,
    /// Copies into tensors of the loop that cannot.
    pub(crate) kept: Vec<Waiting>,
    /// Copies from global memory to tensors elsewhere.
    pub(crate) elsewhere: Vec<Waiting>,
    /// Whether it could, if it were unrolled.
    pub(crate) rolled: bool,
}

impl Loop {
    pub(crate) fn of(
        p: &Program,
        stmt: &program::Stmt,
        of_block: &BTreeSet<SpecId>,
        asynchronous: bool,
    ) -> Option<Self> {
        let program::StmtKind::For { start, end, step, stages, unroll, body, .. } = &stmt.kind
        else {
            return None;
        };
        let mut out = Loop {
            stages: *stages,
            start: start.as_const(),
            step: *step,
            trips: ops::trips(*start, *end, *step),
            memory: Memory::Sh,
            rings: BTreeMap::new(),
            kept: vec![],
            elsewhere: elsewhere(p, body),
            rolled: false,
        };
        out.find(p, body, (of_block, asynchronous));
        if out.rings.is_empty() && out.kept.is_empty() {
            out.memory = Memory::Rf;
            out.find(p, body, (of_block, asynchronous));
            if *unroll != Unroll::Full {
                out.memory = Memory::Sh;
                out.rolled = !std::mem::take(&mut out.rings).is_empty();
                out.kept.clear();
            }
        }
        Some(out)
    }

    /// Finds the tensors that can be rings.
    fn find(&mut self, p: &Program, body: &[program::Stmt], ops: (&BTreeSet<SpecId>, bool)) {
        let from = if self.memory.is_shared() { Memory::Gl } else { Memory::Sh };
        for own in body {
            let program::StmtKind::Allocate(t) = own.kind else { continue };
            let buffer = p.tensors[t].buffer;
            if p.buffers[buffer].memory != Some(self.memory) {
                continue;
            }
            match fills(p, body, buffer, from, ops) {
                Ok(fills) if !fills.is_empty() => drop(self.rings.insert(own.node.key(), fills)),
                Ok(_) => {}
                Err(waiting) => self.kept.extend(waiting),
            }
        }
    }

    /// Tensors in shared memory that can be rings, by their allocations, with the copies that fill
    /// them.
    pub(crate) fn fills(&self) -> &BTreeMap<NodeKey, Vec<NodeKey>> {
        &self.rings
    }

    /// Whether there are copies that cannot run ahead, or rings elsewhere.
    pub(crate) fn has_others(&self) -> bool {
        !self.kept.is_empty() || !self.elsewhere.is_empty() || !self.memory.is_shared()
    }

    /// Whether its rings are registers, which each slice of an unrolled loop loads from shared
    /// memory.
    pub(crate) fn is_of_slices(&self) -> bool {
        self.memory.is_per_thread() && !self.rings.is_empty()
    }
}

/// The copies that fill a tensor; none where nothing does that comes from a memory.
///
/// # Errors
/// All of them, where one cannot run ahead.
fn fills(
    p: &Program,
    body: &[program::Stmt],
    buffer: BufferId,
    memory: Memory,
    (ops, asynchronous): (&BTreeSet<SpecId>, bool),
) -> Result<Vec<NodeKey>, Vec<Waiting>> {
    let of = |t: program::TensorId| p.tensors[t].buffer;
    let written: BTreeSet<BufferId> =
        p.walk(body).specs().flat_map(|id| p.specs[id].outputs.iter().map(|t| of(*t))).collect();
    let fill = |stmt: &program::Stmt| -> Option<SpecId> {
        let program::StmtKind::Spec(id) = stmt.kind else { return None };
        let spec = &p.specs[id];
        let from = spec.input_tensors().next().map(|t| p.buffer_of(t));
        let is = spec.kind == SpecKind::Move
            && spec.outputs.iter().any(|t| of(*t) == buffer)
            && from.is_some_and(|b| b.memory == Some(memory));
        is.then_some(id)
    };
    let tops: Vec<SpecId> = body.iter().filter_map(fill).collect();
    let Some(first) = tops.first() else { return Ok(vec![]) };
    let wait = |why: Why, at: Option<Span>| -> Vec<Waiting> {
        let copies = tops.iter().map(|id| p.specs[*id].span);
        copies.map(|copy| Waiting { copy, why, at: at.filter(|at| *at != copy) }).collect()
    };
    let b = &p.buffers[buffer];
    if b.reuses.is_some() || b.at.is_some() {
        return Err(wait(Why::Stated, None));
    }
    let mut used = false;
    let mut out = vec![];
    for stmt in body {
        let touches = |id: &SpecId| {
            let spec = &p.specs[*id];
            spec.input_tensors().chain(spec.outputs.iter().copied()).any(|t| of(t) == buffer)
        };
        match fill(stmt) {
            Some(id) => {
                let spec = &p.specs[id];
                if used {
                    return Err(wait(Why::FilledAgain, Some(spec.span)));
                }
                if spec.body.is_some() || !ops.contains(&id) {
                    return Err(wait(Why::Parts, Some(spec.span)));
                }
                if spec.input_tensors().any(|t| written.contains(&of(t))) {
                    return Err(wait(Why::Written, Some(spec.span)));
                }
                // On its way by registers it is in those of one group.
                let who = |id: SpecId| p.specs[id].exec.map(|e| &p.threads[e.threads]);
                if memory.is_global()
                    && !asynchronous
                    && who(id).map(|t| t.offset) != who(*first).map(|t| t.offset)
                {
                    return Err(wait(Why::OtherThreads, Some(spec.span)));
                }
                out.push(stmt.node.key());
            }
            None => {
                let mut inner = p.walk(std::slice::from_ref(stmt)).specs().filter(touches);
                if let Some(id) = inner.next() {
                    let leaf = |id: &SpecId| p.specs[*id].body.is_none();
                    let writes = |id: SpecId| p.specs[id].outputs.iter().any(|t| of(*t) == buffer);
                    let mut all = std::iter::once(id).chain(inner).filter(leaf);
                    if let Some(id) = all.find(|id| writes(*id)) {
                        return Err(wait(Why::AlsoWritten, Some(p.specs[id].span)));
                    }
                    used = true;
                }
            }
        }
    }
    Ok(out)
}

/// Why something does not run ahead.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// A copy into a tensor that is there before the loop.
    Outside,
    /// A copy from global memory to registers.
    ToRegisters,
    /// A tensor with `reuses=` or `at=`.
    Stated,
    /// A tensor with several levels.
    Levels,
    /// A name that stands for several things in the loop.
    Shadowed,
    /// A copy that follows what reads its tensor.
    FilledAgain,
    /// A copy of single threads, or one with a body.
    Parts,
    /// A copy from a tensor that the loop writes.
    Written,
    /// Copies of several groups of threads, through registers.
    OtherThreads,
    /// A tensor that something other than a copy writes.
    AlsoWritten,
    /// A copy whose source depends on what the loop computes.
    Computed,
    /// A loop over slices that is not unrolled.
    Rolled,
    /// A loop in which nothing is copied to a tensor of its own.
    Nothing,
    /// A loop of one iteration.
    Once,
    /// An unrolled loop of which the length is not known.
    Unknown,
    /// An unrolled loop of too many slices.
    Slices,
    /// A loop whose variable is defined again.
    Variable,
    /// A loop of too many statements.
    Large,
}

/// A copy that waits for its turn.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Waiting {
    /// The copy.
    pub(crate) copy: Span,
    /// Why.
    pub(crate) why: Why,
    /// The obstacle, unless it is the copy itself.
    pub(crate) at: Option<Span>,
}

/// The copies from global memory, at the top level of a loop, that nothing in the loop could let
/// run ahead: those to shared memory outside of it, and, where there are none at all, those to
/// registers.
pub(crate) fn elsewhere(p: &Program, body: &[program::Stmt]) -> Vec<Waiting> {
    let own: BTreeSet<_> = body
        .iter()
        .filter_map(|s| match s.kind {
            program::StmtKind::Allocate(t) => Some(p.tensors[t].buffer),
            _ => None,
        })
        .collect();
    let own = &own;
    let copies = |to: Memory| {
        body.iter().filter_map(move |s| {
            let program::StmtKind::Spec(id) = s.kind else { return None };
            from_to(p, id, to).filter(|b| to.is_per_thread() || !own.contains(b)).map(|_| id)
        })
    };
    let waiting = |id: SpecId, why| Waiting { copy: p.specs[id].span, why, at: None };
    let outside: Vec<_> = copies(Memory::Sh).map(|id| waiting(id, Why::Outside)).collect();
    let shared = body.iter().any(|s| match s.kind {
        program::StmtKind::Spec(id) => from_to(p, id, Memory::Sh).is_some(),
        _ => false,
    });
    if shared {
        return outside;
    }
    copies(Memory::Rf).map(|id| waiting(id, Why::ToRegisters)).collect()
}

/// The buffer that a copy from global memory writes in this memory.
fn from_to(p: &Program, id: SpecId, to: Memory) -> Option<program::BufferId> {
    let spec = &p.specs[id];
    let from = spec.input_tensors().next().map(|t| p.buffer_of(t))?;
    if spec.kind != carbyne_ir::ast::SpecKind::Move || !from.is_global() {
        return None;
    }
    let of = spec.outputs.iter().map(|t| p.tensors[*t].buffer);
    of.into_iter().find(|b| p.buffers[*b].memory == Some(to))
}
