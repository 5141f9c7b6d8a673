//! Rewrites loops with `stages=S` so that copies from global to shared memory run S - 1 iterations
//! ahead of their readers ([`apply`]).
//!
//! A tensor in shared memory that each iteration fills anew becomes a ring of S stages; iteration
//! `i` uses stage `i % S`. The copies of the first S - 1 iterations stand before the loop, and an
//! iteration issues the copies for the one that comes S - 1 later, where there is one: its stage
//! was read last in the iteration before, so that one barrier at the beginning of an iteration
//! orders both the elements that it reads and those that it overwrites. With two stages the copies
//! come first, so that they have all of the iteration; with more they come last, so that
//! multiplying begins at once. If the architecture has no asynchronous copy, the elements wait in
//! registers: an iteration begins with loads and ends with stores.
//!
//! A copy may run ahead under three conditions: nothing in the loop writes its source; all writers
//! of its tensor are copies at the top level of the loop, before all its readers; and the place
//! that it reads depends only on the loop and on values that are known before it.
//!
//! Law: the loop computes the same results, in the same order but for the copies.

use super::turns::{count, modulo, plus, referred, staged, sum, times, turns};
use super::waits::{self};
use crate::access::kernel_level::Said;
use crate::access::staged_loops::{Loop, is_asynchronous};
use crate::access::staged_loops::{Waiting, Why};
use crate::build::{block, counted, dims, spec, when};
use crate::names::Names;
use crate::origins::inherit;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::{self, Of, Part, Rewriter, Walk, parts};
use carbyne_ir::ast::*;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::program::{self, Program};
use carbyne_ir::scalar::Memory;
use std::collections::{BTreeSet, HashMap};

/// What a loop may be written out to, in names and statements.
pub(crate) const BUDGET: usize = 1 << 20;

pub(crate) const MANY: Why = Why::Large;

/// The module with its staged loops written out, and what could not run ahead; none where no loop
/// has stages. `p` is what the module resolves to.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    table: &AtomTable,
    names: &mut Names,
    said: &Said,
) -> Option<(Module, Vec<Diagnostic>)> {
    let mut loops = HashMap::new();
    let asynchronous = is_asynchronous(table);
    let ops = crate::access::leaves::of_blocks(p);
    for kernel in &p.kernels {
        for stmt in p.walk_body(*kernel).stmts() {
            if let program::StmtKind::For { stages: 2.., .. } = stmt.kind {
                let of = Loop::of(p, stmt, &ops, asynchronous);
                loops.extend(of.map(|of| (stmt.node.key(), of)));
            }
        }
    }
    if loops.is_empty() {
        return None;
    }
    let within = Walk::new(&module.items)
        .stmts()
        .filter(|s| loops.contains_key(&s.id.key()))
        .flat_map(|s| s.kind.blocks().flat_map(|b| &b.stmts))
        .map(|s| s.id.key())
        .collect();
    let defined = count(&module.items);
    let mut by = Stages { loops, within, defined, asynchronous, names, said, warnings: vec![] };
    let mut module = module.clone();
    module.items = visit::rewrite(module.items, &mut by);
    Some((module, by.warnings))
}

pub(crate) struct Stages<'a> {
    pub(crate) loops: HashMap<NodeKey, Loop>,
    /// Statements of loops with stages.
    within: BTreeSet<NodeKey>,
    /// How often each name is defined in the module.
    defined: HashMap<&'a str, usize>,
    /// Whether copies to shared memory can be asynchronous.
    asynchronous: bool,
    pub(crate) names: &'a mut Names,
    said: &'a Said,
    warnings: Vec<Diagnostic>,
}

impl Rewriter for Stages<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let key = stmt.id.key();
        // What the loop around takes along, or else writes out.
        if self.within.contains(&key) && self.loops.get(&key).is_some_and(Loop::is_of_slices) {
            return out.push(stmt);
        }
        let Some(facts) = self.loops.remove(&key) else {
            if let StmtKind::For { stages, .. } = &mut stmt.kind {
                // One at a time is what a loop says without.
                *stages = None;
            }
            return out.push(stmt);
        };
        if facts.is_of_slices() {
            return self.put(&facts, stmt, Self::sliced, out);
        }
        if facts.rings.is_empty() {
            self.inner_slices(&mut stmt);
        }
        self.put(&facts, stmt, Self::written, out);
    }
}

impl Stages<'_> {
    /// What takes the place of a loop, or the loop and why nothing does.
    fn put(
        &mut self,
        facts: &Loop,
        mut stmt: Stmt,
        write: impl Fn(&mut Self, &Loop, &Stmt) -> Result<Vec<Stmt>, Why>,
        out: &mut Vec<Stmt>,
    ) {
        match write(self, facts, &stmt) {
            Ok(mut stmts) => {
                self.say(facts, &stmt);
                inherit(&mut stmts, stmt.id, stmt.span);
                if let Some(first) = stmts.first_mut() {
                    first.blank_above = stmt.blank_above;
                    first.leading = std::mem::take(&mut stmt.leading);
                }
                out.append(&mut stmts);
            }
            Err(why) => {
                self.inner_slices(&mut stmt);
                if let StmtKind::For { stages, .. } = &mut stmt.kind {
                    *stages = None;
                }
                if !self.said.is_made(stmt.span) {
                    let waiting = waiting(facts, &stmt);
                    self.warnings.push(waits::nothing(&stmt, why, &waiting));
                }
                out.push(stmt);
            }
        }
    }

    /// Warns of what does not run ahead in a loop in which something does.
    fn say(&mut self, facts: &Loop, stmt: &Stmt) {
        if !self.said.is_made(stmt.span) {
            self.warnings.extend(waits::some(&waiting(facts, stmt)));
        }
        self.warnings.extend(self.said.too_many(stmt.span, facts.stages, facts.trips));
    }

    /// Writes out the loops of slices of a loop that does not take them along.
    fn inner_slices(&mut self, stmt: &mut Stmt) {
        for block in stmt.kind.blocks_mut() {
            for own in std::mem::take(&mut block.stmts) {
                match self.loops.remove(&own.id.key()) {
                    Some(facts) if facts.is_of_slices() => {
                        self.put(&facts, own, Self::sliced, &mut block.stmts);
                    }
                    Some(facts) => {
                        self.loops.insert(own.id.key(), facts);
                        block.stmts.push(own);
                    }
                    None => block.stmts.push(own),
                }
            }
        }
    }
}

/// The parts of a staged loop.
pub(crate) struct Parts {
    pub(crate) var: Name,
    pub(crate) start: Expr,
    pub(crate) end: Expr,
    unroll: Unroll,
    /// Allocations of the rings, each with the tensor's name and that of the ring.
    pub(crate) rings: Vec<(Stmt, String, String)>,
    /// The copies that run ahead, with the views that they need.
    pub(crate) ahead: Vec<Stmt>,
    /// All else.
    pub(crate) rest: Block,
}

impl Stages<'_> {
    /// The statements that take the place of a loop.
    fn written(&mut self, facts: &Loop, stmt: &Stmt) -> Result<Vec<Stmt>, Why> {
        let mut parts = self.parts(facts, stmt)?;
        let depth = facts.trips.map_or(facts.stages, |n| n.min(facts.stages));
        if depth < 2 {
            return Err(Why::Once);
        }
        let mut out: Vec<Stmt> = vec![];
        for (allocation, _, ring) in &mut parts.rings {
            if let StmtKind::Allocate { name, ty } = &mut allocation.kind {
                name.text.clone_from(ring);
                ty.levels.insert(0, dims(&[depth], false));
            }
            out.push(allocation.clone());
        }
        let step = facts.step;
        let turn = turns(Expr::name(&parts.var.text), &parts.start, step);
        let now = modulo(turn.clone(), depth);
        let mut uses = Substitution { budget: BUDGET, ..Substitution::default() };
        for (_, name, ring) in &parts.rings {
            uses.data.insert(name.clone(), Given::View(staged(ring, &now)));
        }
        let plain = self.slices_in(&parts.rest.stmts).map(|at| (at, parts.rest.stmts[at].clone()));
        uses.in_place(&mut parts.rest.stmts).map_err(|_| MANY)?;
        let through = match plain {
            Some((at, plain)) => {
                let here = defined_in(stmt);
                let stages = (Expr::int(0), modulo(plus(turn.clone(), 1), depth));
                self.take_along(facts, &mut parts, (at, &plain), stages, &here)
            }
            None => None,
        };
        // Where slices go through, an iteration has read all of its stage before its end.
        let reach = if through.is_some() { depth } else { depth - 1 };
        out.extend(self.prologue(facts, &parts, reach).ok_or(MANY)?);
        // The iteration that the copies are for.
        let later = plus(Expr::name(&parts.var.text), reach.saturating_mul(step));
        let next = if reach == depth { now } else { modulo(plus(turn, reach), depth) };
        // One past the last iteration, which may be less than the end.
        let last = facts
            .start
            .zip(facts.trips)
            .and_then(|(start, n)| start.checked_add((n - 1).checked_mul(step)?)?.checked_add(1));
        let end = match last {
            Some(last) if step > 1 => Expr::int(last),
            _ => parts.end.clone(),
        };
        let guarded = |stmts: Vec<Stmt>| when(later.clone(), CmpOp::Lt, end.clone(), stmts);
        let mut body = Block { stmts: vec![], footer: std::mem::take(&mut parts.rest.footer) };
        let mut last = vec![];
        if facts.trips.is_some_and(|n| n <= reach) {
            // All copies come before the loop.
        } else if self.asynchronous {
            let copies = guarded(self.copies(&parts, &later, &next).ok_or(MANY)?);
            // Between copies of two stages the first fragments need not wait for any to be issued.
            let are_last = depth > 2 || through.is_some();
            if are_last { &mut last } else { &mut body.stmts }.push(copies);
        } else {
            let (allocations, loads, stores) =
                self.by_registers(&parts, &later, &next).ok_or(MANY)?;
            body.stmts.extend(allocations);
            body.stmts.push(guarded(loads));
            last.push(guarded(stores));
        }
        out.extend(through.unwrap_or_default());
        body.stmts.append(&mut parts.rest.stmts);
        body.stmts.append(&mut last);
        let kind = StmtKind::For {
            var: parts.var,
            start: parts.start,
            end: parts.end,
            also: vec![],
            step: Expr::int(step),
            unroll: parts.unroll,
            stages: None,
            body,
        };
        let trailing = stmt.trailing.clone();
        out.push(Stmt { id: stmt.id, from: stmt.from, trailing, ..Stmt::derived(kind, stmt) });
        Ok(out)
    }

    /// Writes out the loop of slices of a staged loop. Where it goes through all iterations, what
    /// comes before the loop.
    fn take_along(
        &mut self,
        facts: &Loop,
        parts: &mut Parts,
        (at, plain): (usize, &Stmt),
        (first, next): (Expr, Expr),
        defined: &BTreeSet<&str>,
    ) -> Option<Vec<Stmt>> {
        let now = parts.rest.stmts[at].clone();
        let of = self.loops.remove(&now.id.key())?;
        let (first, next) = (|ring: &str| staged(ring, &first), |ring: &str| staged(ring, &next));
        let known = facts.trips.is_some();
        let through =
            self.through(&of, parts, (plain, &now), (&first, &next), (facts.step, known), defined);
        let mut body = vec![];
        let before = match through {
            Ok(Some(through)) => {
                self.say(&of, &now);
                body = through.body;
                inherit(&mut body, now.id, now.span);
                if let Some(first) = body.first_mut() {
                    first.blank_above |= now.blank_above;
                    first.leading.extend(now.leading);
                }
                Some(through.before)
            }
            Ok(None) | Err(_) => {
                self.put(&of, now, Self::sliced, &mut body);
                None
            }
        };
        parts.rest.stmts.splice(at..=at, body);
        before
    }

    pub(crate) fn parts(&mut self, facts: &Loop, stmt: &Stmt) -> Result<Parts, Why> {
        let StmtKind::For { var, start, end, unroll, body, .. } = &stmt.kind else {
            return Err(Why::Nothing);
        };
        let counts = count(&body.stmts);
        if counts.contains_key(var.text.as_str()) {
            return Err(Why::Variable);
        }
        let mut rings = vec![];
        let mut fills: BTreeSet<NodeKey> = BTreeSet::new();
        let mut views: BTreeSet<usize> = BTreeSet::new();
        for (i, own) in body.stmts.iter().enumerate() {
            let StmtKind::Allocate { name, .. } = &own.kind else { continue };
            let Some(copies) = facts.rings.get(&own.id.key()) else { continue };
            let Ok(more) = ahead_of(&body.stmts, i, copies, &counts) else { continue };
            // It now stands beside what is around the loop.
            let ring = match self.defined.get(name.text.as_str()) {
                Some(1) => name.text.clone(),
                _ => self.names.fresh(&name.text),
            };
            rings.push((own.clone(), name.text.clone(), ring));
            fills.extend(copies);
            views.extend(more);
        }
        if rings.is_empty() {
            return Err(if facts.rolled { Why::Rolled } else { Why::Nothing });
        }
        let mut ahead = vec![];
        let mut rest = Block { stmts: vec![], footer: body.footer.clone() };
        for (i, own) in body.stmts.iter().enumerate() {
            let is_ring = rings.iter().any(|(ring, ..)| ring.id.same(own.id));
            let fill = fills.contains(&own.id.key());
            if views.contains(&i) || fill {
                ahead.push(own.clone());
            }
            if !is_ring && !fill {
                rest.stmts.push(own.clone());
            }
        }
        Ok(Parts {
            var: var.clone(),
            start: start.clone(),
            end: end.clone(),
            unroll: *unroll,
            rings,
            ahead,
            rest,
        })
    }

    /// The copies of the first iterations, before the loop.
    fn prologue(&mut self, facts: &Loop, parts: &Parts, reach: i64) -> Option<Vec<Stmt>> {
        let known = facts.trips.is_some();
        if reach == 1 && known {
            return self.copies(parts, &parts.start, &Expr::int(0));
        }
        let turn = self.names.fresh("s");
        let at = sum(parts.start.clone(), times(Expr::name(&turn), facts.step));
        let mut stmts = self.copies(parts, &at, &Expr::name(&turn))?;
        if !known {
            stmts = vec![when(at, CmpOp::Lt, parts.end.clone(), stmts)];
        }
        let range = (0, reach);
        let unroll = Unroll::Full;
        Some(vec![counted(&turn, range, unroll, stmts)])
    }

    /// The copies for an iteration into a stage.
    fn copies(&mut self, parts: &Parts, at: &Expr, stage: &Expr) -> Option<Vec<Stmt>> {
        let mut by = self.iteration(parts, at);
        for (_, name, ring) in &parts.rings {
            by.data.insert(name.clone(), Given::View(staged(ring, stage)));
        }
        copied(&mut by, &parts.ahead)
    }

    /// The same in two halves, through registers: their allocations, loads, and stores.
    fn by_registers(
        &mut self,
        parts: &Parts,
        at: &Expr,
        stage: &Expr,
    ) -> Option<(Vec<Stmt>, Vec<Stmt>, Vec<Stmt>)> {
        let (mut allocations, mut stores) = (vec![], vec![]);
        let mut by = self.iteration(parts, at);
        for (allocation, name, ring) in &parts.rings {
            let own = self.names.fresh(&format!("{name}_r"));
            by.data.insert(name.clone(), Given::View(View::of(&own)));
            let mut allocation = Stmt::derived(allocation.kind.clone(), allocation);
            if let StmtKind::Allocate { name, ty } = &mut allocation.kind {
                *name = Name::new(&own);
                // The level of the stages, and how the tensor lies.
                ty.levels.remove(0);
                ty.levels.iter_mut().for_each(|l| l.strides = None);
                ty.memory = Some(Memory::Rf);
                ty.attrs = vec![TypeAttr::Open];
            }
            allocations.push(allocation);
            let of = parts.ahead.iter().filter_map(|s| match &s.kind {
                StmtKind::Spec(spec) => Some(spec),
                _ => None,
            });
            let filled = of.filter(|s| s.outputs.iter().any(|v| v.base.text == *name));
            let Some(exec) = filled.map(|s| s.exec.clone()).next() else { continue };
            let from = vec![Operand::View(View::of(&own))];
            stores.push(spec(SpecKind::Move, exec, from, staged(ring, stage), vec![]));
        }
        let mut loads = copied(&mut by, &parts.ahead)?;
        for copy in &mut loads {
            if let StmtKind::Spec(spec) = &mut copy.kind {
                // What is said of an instruction to shared memory is not said of one to registers.
                spec.attrs.retain(|a| a.key != Some(Key::Atom));
            }
        }
        Some((allocations, loads, stores))
    }

    /// The loop's variable at another iteration, and names of their own for the views that are
    /// copied.
    fn iteration(&mut self, parts: &Parts, at: &Expr) -> Substitution {
        self.slice(parts, &parts.ahead, at)
    }

    /// The same for these statements of the loop.
    pub(crate) fn slice(&mut self, parts: &Parts, stmts: &[Stmt], at: &Expr) -> Substitution {
        let mut by = renamed(stmts, self.names);
        by.numbers.insert(parts.var.text.clone(), at.clone());
        by
    }
}

/// Names of their own for all that these statements define themselves.
pub(crate) fn renamed<'s>(
    stmts: impl IntoIterator<Item = &'s Stmt>,
    names: &mut Names,
) -> Substitution {
    let mut by = Substitution { budget: BUDGET, ..Substitution::default() };
    for stmt in stmts {
        visit::parts(stmt, &mut |part| match part {
            Part::Defined(name, Of::Data) => {
                by.rename_data(&name.text, &names.fresh(&name.text));
            }
            Part::Defined(name, Of::Number) => {
                by.rename_number(&name.text, &names.fresh(&name.text));
            }
            Part::Defined(name, Of::Threads) => {
                by.threads.insert(name.text.clone(), names.fresh(&name.text));
            }
            _ => {}
        });
    }
    by
}

/// Copies of statements with names replaced. The statements themselves will be gone: a copy of one
/// that was generated comes from where that one does.
pub(crate) fn copied(by: &mut Substitution, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
    let from: HashMap<NodeKey, NodeId> =
        Walk::new(stmts).stmts().filter_map(|s| Some((s.id.key(), s.from?))).collect();
    let block = block(stmts.to_vec());
    let mut out = std::mem::take(&mut by.block(&block).ok()?.stmts);
    visit::each_mut(&mut out, &mut |stmt| {
        if let Some(origin) = stmt.from.and_then(|own| from.get(&own.key())) {
            stmt.from = Some(*origin);
        }
    });
    Some(out)
}

/// The names that the statements of a loop define for those beside them.
fn defined_in(stmt: &Stmt) -> BTreeSet<&str> {
    let mut out = BTreeSet::new();
    let StmtKind::For { body, .. } = &stmt.kind else { return out };
    for own in body.stmts.iter().filter(|s| !matches!(s.kind, StmtKind::For { .. })) {
        parts(own, &mut |part| {
            if let Part::Defined(name, _) = part {
                out.insert(name.text.as_str());
            }
        });
    }
    out
}

/// The copies of a loop that wait for their turns.
fn waiting(facts: &Loop, stmt: &Stmt) -> Vec<Waiting> {
    let StmtKind::For { body, .. } = &stmt.kind else { return vec![] };
    let counts = count(&body.stmts);
    let mut out: Vec<Waiting> = facts.kept.iter().chain(&facts.elsewhere).copied().collect();
    for (i, own) in body.stmts.iter().enumerate() {
        let Some(copies) = facts.rings.get(&own.id.key()) else { continue };
        let Err(why) = ahead_of(&body.stmts, i, copies, &counts) else { continue };
        let copies = body.stmts.iter().filter(|s| copies.contains(&s.id.key()));
        out.extend(copies.map(|s| Waiting { copy: s.span, why, at: None }));
    }
    out.sort_by_key(|w| w.copy.start);
    out
}

/// The statements that copies into a tensor, which statement `at` allocates, need to run ahead;
/// else why they cannot.
fn ahead_of(
    stmts: &[Stmt],
    at: usize,
    copies: &[NodeKey],
    counts: &HashMap<&str, usize>,
) -> Result<BTreeSet<usize>, Why> {
    let Some(StmtKind::Allocate { name, ty }) = stmts.get(at).map(|s| &s.kind) else {
        return Err(Why::Nothing);
    };
    if ty.levels.len() != 1 {
        return Err(Why::Levels);
    }
    if counts.get(name.text.as_str()) != Some(&1) {
        return Err(Why::Shadowed);
    }
    needed(stmts, at, copies).ok_or(Why::Computed)
}

/// The statements that define views and numbers by which copies into a tensor, which statement
/// `into` allocates, find what they read; none where one of them does more.
fn needed(stmts: &[Stmt], into: usize, copies: &[NodeKey]) -> Option<BTreeSet<usize>> {
    let mut by_name: HashMap<(&str, Of), usize> = HashMap::new();
    for (i, stmt) in stmts.iter().enumerate() {
        parts(stmt, &mut |part| {
            if let Part::Defined(name, of) = part {
                by_name.insert((name.text.as_str(), *of), i);
            }
        });
    }
    let mut out = BTreeSet::new();
    let mut todo: Vec<usize> =
        (0..stmts.len()).filter(|i| copies.contains(&stmts[*i].id.key())).collect();
    while let Some(i) = todo.pop() {
        let mut more: Vec<usize> = vec![];
        referred(&stmts[i], &mut |name, of| more.extend(by_name.get(&(name, of))));
        for j in more {
            match &stmts[j].kind {
                _ if j == into => {}
                StmtKind::DataDef { .. }
                | StmtKind::ThreadDef { .. }
                | StmtKind::Indices { .. }
                | StmtKind::Element { .. }
                | StmtKind::Let(_) => {
                    if out.insert(j) {
                        todo.push(j);
                    }
                }
                _ => return None,
            }
        }
    }
    Some(out)
}
