//! Rewrites loops with `stages=` so that the copy engine copies box by box, and `wgmma` reads the
//! tiles where they lie ([`apply`]).
//!
//! One elected thread of the block asks for the boxes of an iteration. Each stage has an mbarrier
//! `full`, which counts their bytes, and an mbarrier `empty`, which counts the warps that have read
//! the stage. So no thread copies, and no barrier of the block stands in the loop. Only
//! instructions that take descriptors read the rings: descriptors state how tiles lie, and boxes
//! are written in that layout.
//!
//! A MatMul that ends an iteration is left under way while the next one begins, if the [modulo
//! schedule](crate::schedule) of the loop issues the next one before it is done: it has read its
//! stage when the one after it has been issued and all but that one are done. The copies for the
//! stage that is then free are S - 1 iterations ahead. Otherwise an iteration has read its stage at
//! its end, and copies are S iterations ahead.
//!
//! If the loop stands in another, in which nothing else has stages, the ring runs on from one
//! iteration of the outer loop to the next: the stages of the next one are filled while this one
//! ends.
//!
//! Loops for which this is impossible are left to [`super::pipeline`].

pub(crate) mod boxes;
mod rings;
mod shares;
pub(crate) mod write;

use crate::access::requests;
use boxes::{Boxes, Known};
use rings::{Bulk, Cluster, Outer, Ring};

use super::rotate::Prologues;
use crate::access::ops;
use crate::access::ops::{Op, WARP};
use crate::access::staged_loops::Loop;
use crate::layouts::canonical;
use crate::layouts::canonical::Demand;
use crate::layouts::matmul;
use crate::names::Names;
use crate::plan::roles::{Handed, Producer};
use crate::schedule::Scheduler;
use crate::schedule::graph::Graph;
use crate::schedule::solve::usual_nodes;
use carbyne_atoms::{Atom, AtomTable, Visibility, machine};
use carbyne_ir::ast::visit;
use carbyne_ir::ast::*;
use carbyne_ir::expr::Dim;
use carbyne_ir::leaf::Leaf;
use carbyne_ir::program::{self, BufferId, Program, SpecId, TensorId};
use shares::Shares;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use write::Write;

/// The module with such loops written out, and the rings that are handed over; none where there is
/// no such loop. `p` is what the module resolves to. Where `clamped`, tiles that copies are ahead
/// of a loop around are named by the least of their number and the last.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    by: Scheduler<'_>,
    prologues: &Prologues,
    (names, clamped): (&mut Names, bool),
) -> Option<(Module, Vec<Handed>, Vec<Producer>)> {
    let table = by.target.table;
    let has = |is: fn(Visibility) -> bool| table.atoms().iter().any(|a| is(a.visibility));
    if !has(Visibility::names_barrier) || !has(Visibility::holds_registers) {
        return None;
    }
    let known = Known::of(module);
    let mut found = HashMap::new();
    for &kernel in &p.kernels {
        let ops = ops::collect(p, kernel);
        for stmt in p.specs[kernel].body.iter().flatten() {
            let of = match Bulk::of(p, by, kernel, stmt, &ops) {
                Some(of) => Some(of.shared(p, table, kernel, stmt, None)),
                None => Bulk::within(p, by, kernel, stmt, &ops),
            };
            found.extend(of.map(|of| (stmt.node.key(), of.streamed(p, table, kernel))));
        }
    }
    let (handed, producers) = (vec![], vec![]);
    let mut by = Write { found, known, names, clamped, prologues, handed, producers };
    if by.found.is_empty() {
        return None;
    }
    let mut tree = module.clone();
    tree.items = visit::rewrite(tree.items, &mut by);
    (!by.handed.is_empty()).then_some((tree, by.handed, by.producers))
}

impl Bulk {
    fn of(
        p: &Program,
        by: Scheduler<'_>,
        kernel: SpecId,
        stmt: &program::Stmt,
        ops: &[Op],
    ) -> Option<Self> {
        let table = by.target.table;
        let program::StmtKind::For { start, end, step, stages: 2.., unroll, body, .. } = &stmt.kind
        else {
            return None;
        };
        let of_block: BTreeSet<SpecId> = ops.iter().map(|op| op.spec).collect();
        let facts = Loop::of(p, stmt, &of_block, true)?;
        let threads = ops::block_threads(p, kernel);
        if *unroll == Unroll::Full
            || threads % WARP != 0
            || facts.fills().is_empty()
            || facts.has_others()
        {
            return None;
        }
        let op = |id: SpecId| ops.iter().find(|op| op.spec == id && op.group.whole);
        let mut rings = BTreeMap::new();
        let mut buffers = BTreeSet::new();
        for (allocation, copies) in facts.fills() {
            let [copy] = copies[..] else { return None };
            let find = |s: &&program::Stmt| s.node.key() == *allocation;
            let program::StmtKind::Allocate(t) = body.iter().find(find)?.kind else { return None };
            let id = body.iter().find_map(|s| match s.kind {
                program::StmtKind::Spec(id) if s.node.key() == copy => Some(id),
                _ => None,
            })?;
            op(id)?;
            buffers.insert(p.tensors[t].buffer);
            rings.insert(*allocation, Ring::of(p, table, (t, id, copy), body, &op)?);
        }
        // Copies ahead come too early for what the kernel writes.
        let written = written(p, kernel, &BTreeSet::new());
        if rings.values().any(|ring| written.contains(&p.tensors[ring.from].buffer)) {
            return None;
        }
        let exec = p.specs[kernel].exec?;
        let name = |id: program::ThreadsId| {
            p.threads[id].name.clone().or_else(|| p.threads[p.threads[id].root].name.clone())
        };
        Some(Bulk {
            stages: facts.stages,
            start: start.as_const(),
            step: facts.step,
            outer: None,
            trips: ops::trips(*start, *end, *step),
            warps: threads / WARP,
            consumers: requests::consumers(&p.specs[kernel]),
            exec: (name(exec.blocks)?, name(exec.threads)?),
            cluster: None,
            last: last(p, body, &buffers)
                .filter(|last| runs_on(p, by, kernel, stmt, &rings, *last)),
            rings,
        })
    }
}

impl Bulk {
    /// Of the loop with stages in a loop, if it has the same iterations in each of its iterations.
    fn within(
        p: &Program,
        by: Scheduler<'_>,
        kernel: SpecId,
        stmt: &program::Stmt,
        ops: &[Op],
    ) -> Option<Self> {
        let table = by.target.table;
        let program::StmtKind::For { start, end, step, stages: ..2, unroll, body, .. } = &stmt.kind
        else {
            return None;
        };
        if *unroll == Unroll::Full {
            return None;
        }
        let staged =
            |s: &&program::Stmt| matches!(s.kind, program::StmtKind::For { stages: 2.., .. });
        let [inner] = body.iter().filter(staged).collect::<Vec<_>>()[..] else { return None };
        let of = Bulk::of(p, by, kernel, inner, ops)?;
        let turns = of.trips;
        let program::StmtKind::For { var, .. } = &stmt.kind else { return None };
        let program::StmtKind::For { start: from, end: to, .. } = &inner.kind else { return None };
        let vars = [from, to].map(|d| p.vars_in(*d)).concat();
        if of.start.is_none() || turns == Some(0) || vars.contains(var) {
            return None;
        }
        let least = Dim::sub(&p.arena, *to, *from).ok().and_then(|n| p.arena.range(n).0);
        let turning = least.is_some_and(|n| n > 0);
        let once = is_once(p, stmt);
        let length = Dim::sub(&p.arena, *end, *start);
        let runs = length.is_ok_and(|n| p.arena.range(n).0.is_some_and(|least| least > 0));
        let outer = Outer { step: *step, inner: inner.node.key(), turns, turning, once, runs };
        let of = of.shared(p, table, kernel, inner, Some((stmt, &outer)));
        Some(Bulk { outer: Some(outer), ..of })
    }

    /// The same where the largest of the tensors that are read passes the caches, if each block
    /// takes one tile: who reads an element of it does so at about the same time, where all blocks
    /// run together, and what lies in the caches already need not make room for it.
    fn streamed(mut self, p: &Program, table: &AtomTable, kernel: SpecId) -> Self {
        let blocks = p.specs[kernel].exec.and_then(|e| p.threads[e.blocks].concat().to_fixed());
        if self.outer.as_ref().is_some_and(|outer| !outer.once)
            || blocks.is_none_or(|blocks| blocks.size() > machine(table.arch).sms)
        {
            return self;
        }
        let bits = |ring: &&mut Ring| {
            let buffer = p.buffer_of(ring.from);
            buffer.cosize.as_const().map(|n| n.saturating_mul(buffer.scalar.bits()))
        };
        if let Some(largest) = self.rings.values_mut().max_by_key(bits) {
            largest.streamed = true;
        }
        self
    }

    /// The same where blocks of a cluster copy for each other what all of them copy.
    fn shared(
        mut self,
        p: &Program,
        table: &AtomTable,
        kernel: SpecId,
        stmt: &program::Stmt,
        outer: Option<(&program::Stmt, &Outer)>,
    ) -> Self {
        let loops = (stmt, self.start, self.trips);
        let Some(shares) = Shares::of(p, kernel, loops, outer) else { return self };
        let multicasts = |a: &Atom| a.visibility.names_barrier() && a.number("mask").is_some();
        let blocks = p.specs[kernel].exec.map(|exec| p.threads[exec.blocks].root);
        let name = blocks.and_then(|root| p.threads[root].name.clone());
        let (true, Some(blocks)) = (table.atoms().iter().any(multicasts), name) else {
            return self;
        };
        for ring in self.rings.values_mut() {
            if let Some(boxes) = ring.boxes.shared(shares.size())
                && shares.same(ring.from)
            {
                (ring.boxes, ring.multicast) = (boxes, true);
            }
        }
        if self.rings.values().any(|r| r.multicast) {
            self.cluster = Some(Cluster { size: shares.size(), number: shares.number(), blocks });
        }
        self
    }
}

/// What leaves of a kernel but for these write. The copy engine sees of global memory nothing that
/// threads of its kernel have written, and does not write it after them (PTX ISA, Memory
/// Consistency Model: Proxies).
pub(crate) fn written(p: &Program, kernel: SpecId, but: &BTreeSet<SpecId>) -> BTreeSet<BufferId> {
    let leaves = p.leaves(kernel).into_iter().map(|(id, _)| id).filter(|id| !but.contains(id));
    leaves.flat_map(|id| &p.specs[id].outputs).map(|t| p.tensors[*t].buffer).collect()
}

/// Whether a loop has at most one iteration, whatever it depends on.
pub(crate) fn is_once(p: &Program, stmt: &program::Stmt) -> bool {
    let program::StmtKind::For { start, end, step, .. } = &stmt.kind else { return false };
    let length = Dim::sub(&p.arena, *end, *start);
    length.is_ok_and(|n| p.arena.range(n).1.is_some_and(|most| most <= *step))
}

/// The MatMul at the end of the statements, if nothing else of them reads the rings, or has to do
/// with its sums.
fn last(p: &Program, body: &[program::Stmt], rings: &BTreeSet<BufferId>) -> Option<NodeKey> {
    let of = |t: TensorId| p.tensors[t].buffer;
    let end = body.last()?;
    let program::StmtKind::Spec(id) = end.kind else { return None };
    let spec = &p.specs[id];
    let sums = of(*spec.outputs.first()?);
    let in_registers = |t: TensorId| p.buffer_of(t).is_per_thread();
    let touches = |id: SpecId| {
        let spec = &p.specs[id];
        let reads = spec.input_tensors().any(|t| rings.contains(&of(t)) || of(t) == sums);
        reads || spec.outputs.iter().any(|t| of(*t) == sums)
    };
    let others = p.walk(&body[..body.len() - 1]).specs().any(touches);
    let alone = spec.kind == SpecKind::MatMul && !spec.input_tensors().any(in_registers);
    (alone && !others).then(|| end.node.key())
}

/// Whether the schedule of a loop issues a MatMul of the next iteration before this one is done.
/// Copies are as far ahead as its rings let them.
fn runs_on(
    p: &Program,
    by: Scheduler<'_>,
    kernel: SpecId,
    stmt: &program::Stmt,
    rings: &BTreeMap<NodeKey, Ring>,
    product: NodeKey,
) -> bool {
    let copies: BTreeSet<NodeKey> = rings.values().map(|ring| ring.copy).collect();
    let found = Graph::of(p, kernel, stmt, &by.target).ok().and_then(|graph| {
        let Graph { problem, operations, .. } = graph.without(&copies);
        let schedule = (by.find)(&problem, usual_nodes(operations.len())).ok()?;
        let own = operations.iter().position(|o| *o == product)?;
        Some(schedule.runs_on(&problem, own))
    });
    found == Some(true)
}

impl Ring {
    fn of<'o>(
        p: &Program,
        table: &AtomTable,
        (t, id, copy): (TensorId, SpecId, NodeKey),
        body: &[program::Stmt],
        op: &impl Fn(SpecId) -> Option<&'o Op>,
    ) -> Option<Self> {
        let buffer = p.tensors[t].buffer;
        if !p.buffers[buffer].open {
            return None;
        }
        let extents: [i64; 2] = ops::extents(p, t)?.try_into().ok()?;
        let spec = &p.specs[id];
        let to = *spec.outputs.first()?;
        if spec.atom.is_some() || ops::extents(p, to)? != extents || to != spec.outputs[0] {
            return None;
        }
        let demands = demands(p, table, (buffer, id), body, op)?;
        let from = spec.input_tensors().next()?;
        let all = canonical::layouts(p, buffer, &demands);
        let boxes = Boxes::of(p, from, extents, all)?;
        Some(Ring { copy, from, boxes, multicast: false, streamed: false })
    }
}

/// What instructions that read a tensor of the loop by descriptors want of it; none where others
/// read it.
fn demands<'o>(
    p: &Program,
    table: &AtomTable,
    (buffer, copy): (BufferId, SpecId),
    body: &[program::Stmt],
    op: &impl Fn(SpecId) -> Option<&'o Op>,
) -> Option<Vec<Demand>> {
    let of = |t: TensorId| p.tensors[t].buffer == buffer;
    let mut out = vec![];
    for stmt in body {
        let mut touching = p.walk(std::slice::from_ref(stmt)).specs().filter(|id| {
            let spec = &p.specs[*id];
            *id != copy && spec.input_tensors().chain(spec.outputs.iter().copied()).any(of)
        });
        let Some(id) = touching.next() else { continue };
        let is_top = matches!(stmt.kind, program::StmtKind::Spec(top) if top == id);
        let (spec, op) = (&p.specs[id], op(id)?);
        let multiplies = spec.kind.is_product();
        if !is_top || !multiplies || spec.outputs.iter().any(|t| of(*t)) {
            return None;
        }
        let options = matmul::described(p, table, op, &ops::Known::new());
        let atom = table.get(options.first()?.choice.atom)?;
        for (t, operand) in spec.input_tensors().zip(&atom.operands).filter(|(t, _)| of(*t)) {
            out.push(Demand::new(t, operand)?);
        }
    }
    (!out.is_empty()).then_some(out)
}
