//! Rewrites loops with `stages=` so that the next product is issued before threads are done with
//! the last one ([`apply`]).
//!
//! If a body multiplies, computes with the results, and multiplies again, as attention does, its
//! threads wait for the units that multiply, and these for threads. Software pipelining overlaps
//! iterations: the body executes the first operations of the next iteration, a product among them,
//! and the rest of its own. The [modulo schedule](crate::schedule) of the loop says which
//! operations these are, and in which order a body issues them ([`order`]). Copies to shared memory
//! stay with their readers: they run ahead by rings of their own ([`super::bulk`]).
//!
//! A prologue executes the first operations of the first iteration; those of the one behind the
//! last are executed with the coordinates of the last, and nothing reads their results. Tensors
//! that are handed over from body to body are declared before the loop. They are no more than there
//! were: the schedule has each iteration write them when the one before it has read them.
//!
//! It is done for loops that the copy engine fills, unless something is known to be in the way.

mod order;
#[cfg(test)]
mod tests;

use super::pipeline::{BUDGET, copied, renamed};
use super::turns::{count, plus, referred};
use crate::access::leaves;
use crate::access::requests;
use crate::access::staged_loops::Loop;
use crate::build::{spec, sync, zero};
use crate::names::Names;
use crate::origins::inherit;
use crate::schedule::Scheduler;
use crate::schedule::graph;
use crate::schedule::graph::Graph;
use crate::schedule::problem::Problem;
use carbyne_ir::ast::visit::{self, Of, Part, Rewriter, Walk, parts};
use carbyne_ir::ast::*;
use carbyne_ir::program::{self, BufferId, Program, SpecId};
use order::{Asked, Order};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Where what the copy engine needs is written for a loop: before this statement of its prologue.
pub(crate) type Prologues = HashMap<NodeKey, NodeKey>;

/// Such loops of a module, in their order. `p` is what it resolves to.
pub(crate) fn find(p: &Program, by: Scheduler<'_>) -> Vec<(NodeKey, Rotation)> {
    let mut found = vec![];
    for &kernel in &p.kernels {
        if requests::consumers(&p.specs[kernel]) > 0 {
            continue;
        }
        let tops: HashSet<NodeKey> =
            p.specs[kernel].body.iter().flatten().map(|s| s.node.key()).collect();
        for stmt in graph::loops(p, kernel).into_iter().filter(|s| tops.contains(&s.node.key())) {
            let of = Rotation::of(p, by, kernel, stmt);
            found.extend(of.map(|of| (stmt.node.key(), of)));
        }
    }
    found
}

/// The module with these loops of it written out, and their prologues; none where there are none.
pub(crate) fn apply(
    module: &Module,
    found: &[(NodeKey, Rotation)],
    names: &mut Names,
) -> Option<(Module, Prologues)> {
    let found = found.iter().map(|(key, of)| (*key, of)).collect();
    let defined = count(&module.items);
    let mut write = Write { found, defined, names, prologues: HashMap::new() };
    let mut tree = module.clone();
    tree.items = visit::rewrite(tree.items, &mut write);
    (!write.prologues.is_empty()).then_some((tree, write.prologues))
}

/// How the body of a loop is written anew.
pub(crate) struct Rotation {
    /// The operations of a body in the order of issue, whether each is that of the next iteration,
    /// and for all but how many products is waited before it.
    body: Vec<(NodeKey, bool, Option<usize>)>,
    /// Those of the prologue, with waits.
    prologue: Vec<(NodeKey, Option<usize>)>,
    /// Products among them.
    products: BTreeSet<NodeKey>,
    /// Allocations of rings, the copies that fill them, and whether what reads them is of the next
    /// iteration.
    rings: Vec<(NodeKey, NodeKey, bool)>,
    /// Allocations of tensors that are handed over from body to body.
    carried: BTreeSet<NodeKey>,
}

impl Rotation {
    fn of(p: &Program, by: Scheduler<'_>, kernel: SpecId, stmt: &program::Stmt) -> Option<Self> {
        let program::StmtKind::For { step: 1, body, .. } = &stmt.kind else { return None };
        let facts = Loop::of(p, stmt, &leaves::of_blocks(p), true)?;
        if facts.fills().is_empty() || facts.has_others() {
            return None;
        }
        let graph = Graph::of(p, kernel, stmt, &by.target).ok()?;
        let copies: BTreeSet<NodeKey> = facts.fills().values().flatten().copied().collect();
        let parts = Parts::of(p, body, graph.without(&copies));
        let (firsts, products) = (parts.firsts(), &parts.products);
        let (first, order) = firsts.into_iter().find_map(|first| {
            let (problem, kept) = (&parts.problem, &parts.kept[..]);
            let asked = Asked { problem, first, products, kept };
            Some((first, asked.order(by.find)?))
        })?;
        parts.rotation(&order, first, &facts)
    }
}

impl Rotation {
    /// Whether all products of a list of operations, with waits before some, are done at its end.
    fn is_awaited(&self, list: impl Iterator<Item = (NodeKey, Option<usize>)>) -> bool {
        list.fold(true, |done, (key, wait)| {
            (done || wait == Some(0)) && !self.products.contains(&key)
        })
    }
}

/// The operations of a loop but for the copies that fill its rings.
struct Parts<'p> {
    p: &'p Program,
    problem: Problem,
    /// Statements that they are.
    stmts: Vec<&'p program::Stmt>,
    products: Vec<usize>,
    /// Whether an operation writes anything but registers that the body declares.
    kept: Vec<bool>,
    /// Allocations of registers in the body.
    own: BTreeMap<BufferId, NodeKey>,
    /// Allocations of shared memory there.
    shared: BTreeMap<NodeKey, BufferId>,
}

impl<'p> Parts<'p> {
    fn of(p: &'p Program, body: &'p [program::Stmt], graph: Graph) -> Self {
        let find = |key: &NodeKey| body.iter().find(|s| s.node.key() == *key);
        let mut out = Parts {
            p,
            stmts: graph.operations.iter().filter_map(find).collect(),
            problem: graph.problem,
            products: graph.products,
            kept: vec![],
            own: BTreeMap::new(),
            shared: BTreeMap::new(),
        };
        for stmt in body {
            let program::StmtKind::Allocate(t) = stmt.kind else { continue };
            let buffer = p.tensors[t].buffer;
            if p.buffers[buffer].is_per_thread() {
                out.own.insert(buffer, stmt.node.key());
            }
            if p.buffers[buffer].is_shared() {
                out.shared.insert(stmt.node.key(), buffer);
            }
        }
        let kept = |o: usize| !out.writes(o).iter().all(|b| out.own.contains_key(b));
        out.kept = (0..out.stmts.len()).map(kept).collect();
        out
    }

    /// The specs of an operation that write or read.
    fn specs(&self, o: usize) -> impl Iterator<Item = &'p program::Spec> {
        let p = self.p;
        let all = self.stmts.get(o).map(|stmt| p.walk(std::slice::from_ref(*stmt)).specs());
        all.into_iter().flatten().map(move |id| &p.specs[id])
    }

    fn writes(&self, o: usize) -> BTreeSet<BufferId> {
        let all = self.specs(o).flat_map(|spec| spec.outputs.clone());
        all.map(|t| self.p.tensors[t].buffer).collect()
    }

    fn reads(&self, o: usize) -> BTreeSet<BufferId> {
        let all = self.specs(o).flat_map(|spec| spec.input_tensors().collect::<Vec<_>>());
        all.map(|t| self.p.tensors[t].buffer).collect()
    }

    /// Products whose sums an iteration begins anew, and which wait for nothing that it computes.
    fn firsts(&self) -> Vec<usize> {
        let sets = |o: &usize| self.specs(*o).all(|s| s.kind == SpecKind::MatMulSet);
        let waits =
            |o: &usize| self.problem.dependences.iter().any(|d| d.to == *o && d.distance == 0);
        let all = self.products.iter().copied();
        all.filter(|o| sets(o) && !waits(o) && !self.kept[*o]).collect()
    }

    /// What is written for an order; none where an operation cannot be executed for another
    /// iteration.
    fn rotation(&self, order: &Order, first: usize, facts: &Loop) -> Option<Rotation> {
        let (problem, products) = (&self.problem, &self.products[..]);
        let key = |o: usize| Some(self.stmts.get(o)?.node.key());
        let leaf = |o: usize| match self.stmts[o].kind {
            program::StmtKind::Spec(id) => self.p.specs[id].body.is_none(),
            _ => false,
        };
        if self.stmts.len() != problem.operations.len() || order.sequence.first() != Some(&first) {
            return None;
        }
        let early: Vec<usize> =
            order.sequence.iter().copied().filter(|o| order.ahead[*o]).collect();
        if !early.iter().all(|o| leaf(*o) && !self.kept[*o]) {
            return None;
        }
        // Sums are added to in the order of issue; what a product reads of registers is there
        // before.
        let in_registers = |b: &BufferId| self.p.buffers[*b].is_per_thread();
        let meet =
            |a: BTreeSet<BufferId>, b: BTreeSet<BufferId>| a.intersection(&b).any(in_registers);
        let waits = |q: usize, x: usize| {
            meet(self.writes(q), self.reads(x)) || meet(self.reads(q), self.writes(x))
        };
        let listed = |list: &[usize]| -> Option<Vec<(usize, NodeKey, Option<usize>)>> {
            let waits: BTreeMap<usize, usize> =
                order.waits(problem, products, list, waits).into_iter().collect();
            list.iter().map(|o| Some((*o, key(*o)?, waits.get(o).copied()))).collect()
        };
        let mut rings = vec![];
        for (allocation, copies) in facts.fills() {
            let [copy] = copies[..] else { return None };
            let buffer = self.shared.get(allocation)?;
            let readers = (0..self.stmts.len()).filter(|o| self.reads(*o).contains(buffer));
            let ahead: BTreeSet<bool> = readers.map(|o| order.ahead[o]).collect();
            let [ahead] = ahead.into_iter().collect::<Vec<_>>()[..] else { return None };
            rings.push((*allocation, copy, ahead));
        }
        let carried = early.iter().flat_map(|o| self.writes(*o));
        Some(Rotation {
            body: listed(&order.sequence)?
                .into_iter()
                .map(|(o, key, wait)| (key, order.ahead[o], wait))
                .collect(),
            prologue: listed(&early)?.into_iter().map(|(_, key, wait)| (key, wait)).collect(),
            products: products.iter().filter_map(|o| key(*o)).collect(),
            rings,
            carried: carried.filter_map(|b| self.own.get(&b).copied()).collect(),
        })
    }
}

/// Puts such loops in the places of loops.
struct Write<'a> {
    found: HashMap<NodeKey, &'a Rotation>,
    /// How often each name is defined in the module.
    defined: HashMap<&'a str, usize>,
    names: &'a mut Names,
    prologues: Prologues,
}

impl Rewriter for Write<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Some(of) = self.found.remove(&stmt.id.key()) else { return out.push(stmt) };
        let Some((mut before, body, mark)) = self.written(of, &stmt) else {
            return out.push(stmt);
        };
        inherit(&mut before, stmt.id, stmt.span);
        if let Some(first) = before.first_mut() {
            first.blank_above = std::mem::take(&mut stmt.blank_above);
            first.leading = std::mem::take(&mut stmt.leading);
        }
        let (id, span) = (stmt.id, stmt.span);
        if let StmtKind::For { body: own, .. } = &mut stmt.kind {
            own.stmts = body;
            inherit(&mut own.stmts, id, span);
        }
        self.prologues.insert(stmt.id.key(), mark);
        out.append(&mut before);
        out.push(stmt);
    }
}

impl Write<'_> {
    /// The prologue, the body, and the statement of the prologue before which its copies have been
    /// issued.
    fn written(&mut self, of: &Rotation, stmt: &Stmt) -> Option<(Vec<Stmt>, Vec<Stmt>, NodeKey)> {
        let StmtKind::For { var, start, end, body, .. } = &stmt.kind else { return None };
        let mut stmts = body.stmts.clone();
        let own: Vec<(String, usize)> =
            count(&stmts).into_iter().map(|(name, n)| (name.to_owned(), n)).collect();
        if own.iter().any(|(name, n)| *n > 1 || *name == var.text) {
            return None;
        }
        // What is declared before the loop has a name of its own.
        let mut before = Substitution { budget: BUDGET, ..Substitution::default() };
        for stmt in stmts.iter().filter(|s| of.carried.contains(&s.id.key())) {
            let StmtKind::Allocate { name, .. } = &stmt.kind else { return None };
            if self.defined.get(name.text.as_str()) != Some(&1) {
                before.rename_data(&name.text, &self.names.fresh(&name.text));
            }
        }
        before.in_place(&mut stmts).ok()?;
        let list = List::of(&stmts)?;

        // The prologue.
        let is_carried = |i: &usize| of.carried.contains(&stmts[*i].id.key());
        let is_ring = |i: &usize| of.rings.iter().any(|(ring, ..)| stmts[*i].id.key() == *ring);
        let carried: Vec<usize> = (0..stmts.len()).filter(is_carried).collect();
        let rings: Vec<usize> = (0..stmts.len()).filter(is_ring).collect();
        let here = |key: &NodeKey| list.places.get(key).copied();
        let early = |ring: &(NodeKey, NodeKey, bool)| ring.2.then_some(ring.1);
        let mut copies: Vec<usize> =
            of.rings.iter().filter_map(early).map(|key| here(&key)).collect::<Option<_>>()?;
        copies.sort_unstable();
        let mut group = Group::new(&list, carried.iter().copied());
        let mut loads = vec![];
        for copy in &copies {
            loads.push(group.chunk(*copy));
        }
        let mut rest = vec![];
        for (key, wait) in &of.prologue {
            rest.push((group.chunk(here(key)?), *wait));
        }
        let mut by = self.substitution(&stmts, loads.iter().chain(rest.iter().map(|r| &r.0)), &[]);
        by.numbers.insert(var.text.clone(), start.clone());
        let own = |i: &usize| stmts[*i].clone();
        let mut before = vec![];
        for chunk in &loads {
            before.extend(copied(&mut by, &chunk.iter().map(own).collect::<Vec<_>>())?);
        }
        let mut behind: Vec<Stmt> = carried.iter().map(own).collect();
        for (chunk, wait) in &rest {
            behind.extend(wait.map(waits));
            behind.extend(copied(&mut by, &self.split(of, &stmts, chunk))?);
        }
        if !of.is_awaited(of.prologue.iter().copied()) {
            behind.push(waits(0));
        }
        let mark = behind.first()?.id.key();
        before.append(&mut behind);

        // The body.
        let last = Expr::bin(BinOp::Sub, end.clone(), Expr::int(1));
        let next = Expr::bin(BinOp::Min, plus(Expr::name(&var.text), 1), last);
        let mut ahead = Group::new(&list, carried.iter().chain(&rings).copied());
        let mut now = Group::new(&list, carried.iter().chain(&rings).copied());
        let mut chunks = vec![];
        for (ring, copy, early) in &of.rings {
            let (ring, copy) = (here(ring)?, here(copy)?);
            let own = if *early { ahead.chunk(copy) } else { now.chunk(copy) };
            chunks.push((copy, Some(ring), *early, None, own));
        }
        chunks.sort_by_key(|chunk| chunk.0);
        for (key, early, wait) in &of.body {
            let place = here(key)?;
            let own = if *early { ahead.chunk(place) } else { now.chunk(place) };
            chunks.push((place, None, *early, *wait, own));
        }
        let early = chunks.iter().filter(|chunk| chunk.2).map(|chunk| &chunk.4);
        let mut by = self.substitution(&stmts, early, &rings);
        by.numbers.insert(var.text.clone(), next);
        let mut body = vec![];
        for (_, ring, early, wait, chunk) in &chunks {
            body.extend(ring.as_ref().map(own));
            body.extend(wait.map(waits));
            let own = self.split(of, &stmts, chunk);
            match early {
                true => body.extend(copied(&mut by, &own)?),
                false => body.extend(own),
            }
        }
        if !of.is_awaited(of.body.iter().map(|(key, _, wait)| (*key, *wait))) {
            body.push(waits(0));
        }
        Some((before, body, mark))
    }

    /// Names of their own for what these statements define, other than for some.
    fn substitution<'c>(
        &mut self,
        stmts: &[Stmt],
        chunks: impl Iterator<Item = &'c Vec<usize>>,
        but: &[usize],
    ) -> Substitution {
        let own = chunks.flatten().filter(|i| !but.contains(i)).map(|i| &stmts[*i]);
        renamed(own, self.names)
    }

    /// Statements in which a product that sets its sums adds to zeros: what adds can be left under
    /// way.
    fn split(&self, of: &Rotation, stmts: &[Stmt], chunk: &[usize]) -> Vec<Stmt> {
        let mut out = vec![];
        for i in chunk {
            let mut stmt = stmts[*i].clone();
            if let StmtKind::Spec(own) = &mut stmt.kind
                && own.kind == SpecKind::MatMulSet
                && of.products.contains(&stmt.id.key())
                && let [sums] = &own.outputs[..]
            {
                own.kind = SpecKind::MatMul;
                let zeros =
                    spec(SpecKind::Init, own.exec.clone(), vec![zero()], sums.clone(), vec![]);
                out.push(Stmt { span: stmt.span, from: Some(stmt.id), ..zeros });
            }
            out.push(stmt);
        }
        out
    }
}

/// `wgmma.wait(1)`
fn waits(left: usize) -> Stmt {
    sync(SyncOp::WgmmaWait, None, Some(Expr::int(i64::try_from(left).unwrap_or(i64::MAX))))
}

/// The statements of a body, and what they define for each other.
struct List<'s> {
    stmts: &'s [Stmt],
    places: BTreeMap<NodeKey, usize>,
    by_name: HashMap<(&'s str, Of), usize>,
}

impl<'s> List<'s> {
    /// None where a statement is neither an operation nor a definition.
    fn of(stmts: &'s [Stmt]) -> Option<Self> {
        let mut by_name = HashMap::new();
        for (i, stmt) in stmts.iter().enumerate() {
            match &stmt.kind {
                StmtKind::DataDef { .. }
                | StmtKind::ThreadDef { .. }
                | StmtKind::Indices { .. }
                | StmtKind::Element { .. }
                | StmtKind::Let(_)
                | StmtKind::Allocate { .. } => parts(stmt, &mut |part| {
                    if let Part::Defined(name, of) = part {
                        by_name.insert((name.text.as_str(), *of), i);
                    }
                }),
                StmtKind::Spec(_) | StmtKind::For { .. } | StmtKind::If { .. } => {}
                _ => return None,
            }
        }
        let places = stmts.iter().enumerate().map(|(i, stmt)| (stmt.id.key(), i)).collect();
        Some(List { stmts, places, by_name })
    }
}

/// Operations of one iteration, with what defines what they need.
struct Group<'l, 's> {
    list: &'l List<'s>,
    done: BTreeSet<usize>,
}

impl<'l, 's> Group<'l, 's> {
    fn new(list: &'l List<'s>, done: impl Iterator<Item = usize>) -> Self {
        Group { list, done: done.collect() }
    }

    /// An operation, and before it the definitions that it needs and no other had.
    fn chunk(&mut self, place: usize) -> Vec<usize> {
        let mut out = BTreeSet::new();
        let mut todo = vec![place];
        while let Some(i) = todo.pop() {
            for stmt in Walk::new(std::slice::from_ref(&self.list.stmts[i])).stmts() {
                referred(stmt, &mut |name, of| {
                    if let Some(j) = self.list.by_name.get(&(name, of))
                        && *j != i
                        && self.done.insert(*j)
                    {
                        out.insert(*j);
                        todo.push(*j);
                    }
                });
            }
        }
        out.into_iter().filter(|i| *i != place).chain([place]).collect()
    }
}
