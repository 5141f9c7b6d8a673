//! Computes stages and phases of rings without divisions: a loop carries them in variables that it
//! advances.
//!
//! Let `X = k + c` in a loop over `k` of step 1, where `c` is constant in the loop. From one
//! iteration to the next, `X % S` grows by one, or wraps to 0 when `X / S` grows by one. So both
//! are variables that are set once before the loop and advanced at its end by a comparison.
//! Remainders of non-negative numbers by powers of two take one instruction and are not carried.
//!
//! An expression that depends on `k` only through `X / S` changes only when the ring wraps. If it
//! divides by a value known only at run time, it is carried, too, and recomputed when the ring
//! wraps.
//!
//! Other expressions that divide by a value known only at run time are computed once, as soon as
//! their variables have values. Otherwise the CUDA compiler would divide again under each
//! condition.
//!
//! If a variable ends the loop with the value with which the loop begins in the next iteration of
//! the enclosing loop, the variable is set once before the enclosing loop.

use super::state::{Lowering, Outer};
use crate::cpp::ast::{Assign, Binary, Expr, Stmt, StmtKind, Type};
use crate::index::Indices;
use crate::{Fallible, errors};
use carbyne_ir::expr::{Dim, ExprId, Node, VarId};
use carbyne_ir::program::{self, TensorId, sides};
use std::collections::HashSet;
use std::iter::StepBy;
use std::ops::Range;

/// A ring that a loop traverses: `x % size`.
struct Ring {
    x: Dim,
    size: Dim,
    /// The expression `x % size`, if it occurs, and its variable.
    stage: (Option<ExprId>, String),
    /// Other expressions that change when the ring wraps.
    turns: Vec<Turn>,
}

/// An expression that changes when a ring wraps.
struct Turn {
    at: ExprId,
    name: String,
    kind: TurnKind,
    /// Whether it has been printed.
    used: bool,
}

/// The kinds of change.
#[derive(Copy, Clone, PartialEq, Eq)]
enum TurnKind {
    /// `x / size + c`, modulo 2: flips.
    Phase,
    /// `x / size`: grows by one.
    Count,
    /// An expression of `x / size`: is recomputed.
    Follows,
}

/// The rings that a loop carries.
#[derive(Default)]
pub(super) struct Carried {
    rings: Vec<Ring>,
}

impl Lowering<'_> {
    /// Finds the expressions that a loop over `var` of step 1 can carry, and prints them as
    /// variables from now on. Their names belong to the block around the loop.
    pub(super) fn carry(&mut self, var: VarId, body: &[program::Stmt]) -> Carried {
        let mut carried = Carried::default();
        let mut seen = HashSet::new();
        for dim in self.dims_of(body) {
            self.rings(var, dim, &mut seen, &mut carried);
        }
        for ring in &carried.rings {
            if let (Some(id), name) = &ring.stage {
                self.names(*id, name, false);
            }
            for turn in &ring.turns {
                let wide = !self.indices.is_narrow(Dim::Expr(turn.at));
                self.names(turn.at, &turn.name, wide);
            }
        }
        carried
    }

    /// Finds quotients by values known only at run time, and expressions of them, that can be
    /// computed as soon as `vars` are known. Prints them as variables from now on.
    pub(super) fn fix(&mut self, vars: &[VarId], body: &[program::Stmt]) -> Vec<(ExprId, String)> {
        let mut found = vec![];
        let mut seen = HashSet::new();
        let mut todo = self.dims_of(body);
        todo.reverse();
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            if self.indices.carries(id) || !seen.insert(id) {
                continue;
            }
            let node = self.p.arena.node(id);
            let used = self.p.vars_in(dim);
            if used.iter().all(|v| !vars.contains(v)) {
                continue;
            }
            let whole = !matches!(node, Node::Linear { .. } | Node::Var(_));
            if whole && used.iter().all(|v| self.indices.is_bound(*v)) && self.divides(id) {
                let name = self.namer.admit("place", "p");
                found.push((id, name));
                continue;
            }
            todo.extend(node.operands().into_iter().rev());
        }
        for (id, name) in &found {
            let wide = !self.indices.is_narrow(Dim::Expr(*id));
            self.names(*id, name, wide);
        }
        found
    }

    /// The declarations of those variables that have been used. The expressions print as themselves
    /// again.
    pub(super) fn fixed(&mut self, found: Vec<(ExprId, String)>) -> Fallible<Vec<Stmt>> {
        let used: Vec<_> = found.into_iter().filter(|(id, _)| self.no_longer(*id)).collect();
        let declared = used.into_iter().map(|(id, name)| {
            let at = Dim::Expr(id);
            let ty = Indices::type_of(!self.indices.is_narrow(at));
            Ok(Stmt::constant(ty, name, self.index(at)?))
        });
        declared.collect()
    }

    /// Whether an expression divides by a value known only at run time.
    fn divides(&self, id: ExprId) -> bool {
        let mut todo = vec![Dim::Expr(id)];
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            let node = self.p.arena.node(id);
            if let Node::Div(_, b) | Node::Mod(_, b) | Node::CeilDiv(_, b) = node
                && b.as_const().is_none()
            {
                return true;
            }
            todo.extend(node.operands());
        }
        false
    }

    /// Begins a loop around others, in the scope around it.
    pub(super) fn enter(
        &mut self,
        var: VarId,
        (start, step): (Dim, i64),
        iterations: Option<StepBy<Range<i64>>>,
        body: &[program::Stmt],
    ) {
        // A loop with further conditions may end early, and then leaves its variables elsewhere.
        let loops = body.iter().filter_map(|s| match &s.kind {
            program::StmtKind::For { var, also, .. } if also.is_empty() => Some(*var),
            _ => None,
        });
        let (known, scope) = (self.indices.bound(), self.namer.depth());
        let loops = loops.collect();
        let before = vec![];
        self.outers.push(Outer { var, start, step, iterations, known, scope, loops, before });
    }

    /// Ends the loop. Returns the statements before it.
    pub(super) fn leave(&mut self) -> Vec<Stmt> {
        self.outers.pop().map_or_else(Vec::new, |outer| outer.before)
    }

    /// The statements before a loop and at its end, for the carried expressions that its body has
    /// used. The expressions print as themselves again.
    pub(super) fn carried(
        &mut self,
        carried: Carried,
        var: VarId,
        (start, end): (Dim, Dim),
    ) -> Fallible<(Vec<Stmt>, Vec<Stmt>)> {
        let (mut before, mut after) = (vec![], vec![]);
        let mut used = vec![];
        for mut ring in carried.rings {
            let stage = ring.stage.0.is_some_and(|id| self.no_longer(id));
            let mut follows = false;
            for turn in &mut ring.turns {
                turn.used = self.no_longer(turn.at);
                follows |= turn.used && turn.kind == TurnKind::Follows;
            }
            // Expressions of the quotient need the quotient itself.
            ring.turns.retain(|turn| turn.used || (follows && turn.kind == TurnKind::Count));
            if stage || !ring.turns.is_empty() {
                used.push(ring);
            }
        }
        let range = (var, start, end);
        for ring in used {
            let position = self.p.arena.rem(ring.x, ring.size).map_err(errors::layout)?;
            let wide = !self.indices.is_narrow(position);
            before.extend(self.carried_first(wide, &ring.stage.1, position, range)?);
            let stage = || Expr::name(ring.stage.1.clone());
            let mut wrapped = vec![assign(stage(), Assign::Set, Expr::Int(0))];
            let (count, others): (Vec<&Turn>, Vec<&Turn>) =
                ring.turns.iter().partition(|turn| turn.kind == TurnKind::Count);
            for turn in count.iter().chain(&others) {
                let at = Dim::Expr(turn.at);
                let wide = !self.indices.is_narrow(at);
                before.extend(self.carried_first(wide, &turn.name, at, range)?);
                let (op, value) = match turn.kind {
                    TurnKind::Phase => (Assign::Xor, Expr::Int(1)),
                    TurnKind::Count => (Assign::Add, Expr::Int(1)),
                    TurnKind::Follows => {
                        for count in &count {
                            let wide = !self.indices.is_narrow(Dim::Expr(count.at));
                            self.indices.carry(count.at, count.name.clone(), wide);
                        }
                        let value = self.index(at);
                        for count in &count {
                            self.indices.no_longer(count.at);
                        }
                        (Assign::Set, value?)
                    }
                };
                wrapped.push(assign(Expr::name(turn.name.clone()), op, value));
            }
            after.push(assign(stage(), Assign::Add, Expr::Int(1)));
            let size = self.p.arena.max(ring.size, Dim::Const(1)).map_err(errors::layout)?;
            let cond = stage().binary(Binary::Eq, self.index(size)?);
            after.push(Stmt::new(StmtKind::If { cond, then: wrapped, otherwise: vec![] }));
        }
        Ok((before, after))
    }

    /// Prints an expression as a variable from now on.
    fn names(&mut self, id: ExprId, name: &str, wide: bool) {
        for indices in [&mut self.indices, &mut self.definitions] {
            indices.carry(id, name.to_owned(), wide);
        }
    }

    /// Prints an expression as itself from now on. Returns whether it has been printed as a
    /// variable.
    fn no_longer(&mut self, id: ExprId) -> bool {
        [&mut self.indices, &mut self.definitions]
            .map(|indices| indices.no_longer(id))
            .contains(&true)
    }

    /// The declaration of a carried variable; none if it is declared before the enclosing loop.
    fn carried_first(
        &mut self,
        wide: bool,
        name: &str,
        of: Dim,
        (var, start, end): (VarId, Dim, Dim),
    ) -> Fallible<Option<Stmt>> {
        let ty = Indices::type_of(wide);
        let put = |l: &Self, dim: Dim, var: VarId, value: Dim| {
            let at = |v: VarId| (v == var).then_some(value);
            l.p.arena.substitute(dim, &at).map_err(errors::layout)
        };
        let begins = put(self, of, var, start)?;
        if let Some(outer) = self.outers.last() {
            let known = |dim: Dim| self.p.vars_in(dim).iter().all(|v| outer.known.contains(v));
            let once = put(self, begins, outer.var, outer.start)?;
            let mut goes_on =
                outer.loops.contains(&var) && [start, end, once].into_iter().all(known);
            if let Some(now) = self.p.arena.dim_of(outer.var).filter(|_| goes_on) {
                let next = self.p.arena.add(now, Dim::Const(outer.step)).map_err(errors::layout)?;
                goes_on = put(self, of, var, end)? == put(self, begins, outer.var, next)?;
            }
            let scope = outer.scope;
            if goes_on {
                let declared = variable(ty, name, self.index(once)?);
                self.namer.lift(name, scope);
                if let Some(outer) = self.outers.last_mut() {
                    outer.before.push(declared);
                }
                return Ok(None);
            }
        }
        Ok(Some(variable(ty, name, self.index(begins)?)))
    }

    /// Finds the rings in an expression.
    fn rings(&mut self, var: VarId, dim: Dim, seen: &mut HashSet<ExprId>, to: &mut Carried) {
        let mut todo = vec![dim];
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            if !seen.insert(id) {
                continue;
            }
            let node = self.p.arena.node(id);
            if let Some((count, x, size)) = self.follows(var, id) {
                self.ring(x, size, (None, Some((id, TurnKind::Follows))), to);
                self.ring(x, size, (None, Some((count, TurnKind::Count))), to);
                seen.insert(count);
                continue;
            }
            if let Some((x, size, kind)) = self.ring_of(var, &node) {
                self.ring(
                    x,
                    size,
                    kind.map_or((Some(id), None), |kind| (None, Some((id, kind)))),
                    to,
                );
            }
            todo.extend(node.operands().into_iter().rev());
        }
    }

    /// Adds an occurrence of a ring: its stage, or an expression that changes when the ring wraps.
    fn ring(
        &mut self,
        x: Dim,
        size: Dim,
        (stage, turn): (Option<ExprId>, Option<(ExprId, TurnKind)>),
        to: &mut Carried,
    ) {
        let at = to.rings.iter().position(|r| r.x == x && r.size == size);
        let at = at.unwrap_or_else(|| {
            let name = self.namer.admit("stage", "s");
            to.rings.push(Ring { x, size, stage: (None, name), turns: vec![] });
            to.rings.len() - 1
        });
        let Some(ring) = to.rings.get_mut(at) else { return };
        ring.stage.0 = ring.stage.0.or(stage);
        if let Some((at, kind)) = turn.filter(|(at, _)| ring.turns.iter().all(|t| t.at != *at)) {
            let wanted = match kind {
                TurnKind::Phase => "phase",
                TurnKind::Count => "turn",
                TurnKind::Follows => "place",
            };
            let name = self.namer.admit(wanted, "p");
            ring.turns.push(Turn { at, name, kind, used: false });
        }
    }

    /// Matches `x % size`, `x / size` and `(x / size + c) % 2`, where `x` grows by one per
    /// iteration.
    fn ring_of(&self, var: VarId, node: &Node) -> Option<(Dim, Dim, Option<TurnKind>)> {
        match *node {
            Node::Mod(y, Dim::Const(2)) => {
                let Dim::Expr(id) = y else { return None };
                let quotient = match self.p.arena.node(id) {
                    Node::Linear { terms, .. } => {
                        let mut of_ring = terms.iter().filter(|(t, _)| !self.is_fixed(var, *t));
                        let (quotient, coefficient) = of_ring.next()?;
                        if coefficient % 2 == 0 || of_ring.next().is_some() {
                            return None;
                        }
                        *quotient
                    }
                    _ => id,
                };
                match self.p.arena.node(quotient) {
                    Node::Div(x, size) if self.pays(var, x, size) => {
                        Some((x, size, Some(TurnKind::Phase)))
                    }
                    _ => None,
                }
            }
            Node::Mod(x, size) if self.pays(var, x, size) => Some((x, size, None)),
            Node::Div(x, size) if self.pays(var, x, size) => Some((x, size, Some(TurnKind::Count))),
            _ => None,
        }
    }

    /// Whether the position in a ring costs more than one instruction.
    fn pays(&self, var: VarId, x: Dim, size: Dim) -> bool {
        let arena = &self.p.arena;
        let negative = arena.range(x).0.is_none_or(|lo| lo < 0);
        let simple = |id: ExprId| matches!(arena.node(id), Node::Var(_));
        let terms = match x {
            Dim::Expr(id) => match arena.node(id) {
                Node::Linear { terms, .. } => terms.iter().all(|(t, _)| simple(*t)),
                _ => simple(id),
            },
            Dim::Const(_) => true,
        };
        let power = size.as_const().is_some_and(|size| size.count_ones() == 1);
        self.goes_around(var, x, size) && !(power && !negative && terms)
    }

    /// Whether an expression is the loop variable plus a value that is constant in the loop; `size`
    /// must be constant in the loop, too.
    fn goes_around(&self, var: VarId, x: Dim, size: Dim) -> bool {
        let arena = &self.p.arena;
        let Dim::Expr(id) = x else { return false };
        let sized = match size {
            Dim::Const(size) => size >= 2 && i32::try_from(size).is_ok(),
            Dim::Expr(id) => {
                self.is_fixed(var, id) && arena.range(size).0.is_some_and(|lo| lo >= 0)
            }
        };
        if !sized {
            return false;
        }
        let is_var = |id: ExprId| matches!(arena.node(id), Node::Var(v) if v == var);
        match arena.node(id) {
            Node::Linear { terms, .. } => {
                terms.iter().any(|(t, coefficient)| is_var(*t) && *coefficient == 1)
                    && terms.iter().all(|(t, _)| is_var(*t) || self.is_fixed(var, *t))
            }
            _ => is_var(id),
        }
    }

    /// Matches an expression that depends on the loop only through one quotient `x / size`, where
    /// `x` grows by one per iteration, and that divides by a value known only at run time. Returns
    /// the quotient, `x` and `size`.
    fn follows(&self, var: VarId, id: ExprId) -> Option<(ExprId, Dim, Dim)> {
        if matches!(self.p.arena.node(id), Node::Linear { .. } | Node::Var(_)) {
            return None;
        }
        let (mut found, mut divides): (Option<(ExprId, Dim, Dim)>, bool) = (None, false);
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            if self.is_fixed(var, id) {
                continue;
            }
            let node = self.p.arena.node(id);
            if let Node::Div(x, size) = node
                && self.goes_around(var, x, size)
            {
                if found.is_some_and(|(other, ..)| other != id) {
                    return None;
                }
                found = Some((id, x, size));
                continue;
            }
            let parts = match node {
                Node::Var(_) => return None,
                Node::Linear { terms, .. } => {
                    todo.extend(terms.iter().map(|(t, _)| *t));
                    continue;
                }
                Node::Div(a, b) | Node::Mod(a, b) | Node::CeilDiv(a, b) => {
                    divides |= b.as_const().is_none();
                    [a, b]
                }
                Node::Mul(a, b) | Node::Min(a, b) | Node::Max(a, b) => [a, b],
            };
            todo.extend(parts.into_iter().filter_map(|part| match part {
                Dim::Expr(id) => Some(id),
                Dim::Const(_) => None,
            }));
        }
        found.filter(|(count, ..)| divides && *count != id)
    }

    /// Whether an expression is constant in the loop over `var`, which is about to begin: its
    /// variables have been bound.
    fn is_fixed(&self, var: VarId, id: ExprId) -> bool {
        let vars = self.p.vars_in(Dim::Expr(id));
        vars.iter().all(|v| *v != var && self.indices.is_bound(*v))
    }

    /// Every index, number and bound in statements, in text order.
    fn dims_of(&self, stmts: &[program::Stmt]) -> Vec<Dim> {
        let p = self.p;
        let mut dims = vec![];
        let tensor = |t: TensorId| p.tensors[t].indices();
        for stmt in p.walk(stmts).stmts() {
            match &stmt.kind {
                program::StmtKind::Spec(id) => {
                    let spec = &p.specs[*id];
                    dims.extend(spec.exec.map(|e| p.threads[e.threads].offset));
                    let operands = spec.input_tensors().chain(spec.outputs.iter().copied());
                    dims.extend(operands.chain(spec.bar).flat_map(tensor));
                    dims.extend(spec.multicast.iter().chain(&spec.valid));
                }
                program::StmtKind::For { start, end, also, .. } => {
                    dims.extend([*start, *end]);
                    dims.extend(sides(also));
                }
                program::StmtKind::Step { value, .. } => dims.push(*value),
                program::StmtKind::If { cond, .. } => dims.extend(sides(cond)),
                program::StmtKind::Sync(sync) => {
                    dims.extend(sync.tensor.into_iter().flat_map(tensor));
                    dims.extend(sync.number);
                }
                program::StmtKind::Element { tensor: t, .. } => dims.extend(tensor(*t)),
                program::StmtKind::Indices(_)
                | program::StmtKind::Allocate(_)
                | program::StmtKind::Barrier(_) => {}
            }
        }
        dims
    }
}

/// `int stage = 0;`
fn variable(ty: &'static str, name: &str, init: Expr) -> Stmt {
    Stmt::variable(Type::named(ty), name.to_owned(), init)
}

fn assign(to: Expr, op: Assign, value: Expr) -> Stmt {
    Stmt::new(StmtKind::Assign { to, op, value })
}
