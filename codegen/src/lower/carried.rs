//! Scalars that a loop carries instead of dividing: the stage of a ring and its phase.
//!
//! With `X = k + c`, where `c` does not change in the loop over `k` and the loop's step is 1, `X % S` grows by one from
//! iteration to iteration and begins again at 0 where `X / S` grows by one. So both are variables that are set once
//! before the loop and moved on at its end, by a comparison. Remainders by a power of two of what is not negative are one
//! instruction anyway, and stay.

use super::Lowering;
use crate::cpp::ast::{Assign, Binary, Declare, Expr, Stmt, StmtKind, Type};
use crate::index::Indices;
use crate::{Fallible, errors};
use carbyne_ir::expr::{Dim, ExprId, Node, VarId};
use carbyne_ir::program::{self, TensorId};
use std::collections::HashSet;

/// A ring that a loop goes around: `x % size`.
struct Ring {
    x: Dim,
    size: i64,
    /// `x % size` where it occurs, and its variable.
    stage: (Option<ExprId>, String),
    /// Other expressions that change where the ring begins again.
    turns: Vec<Turn>,
}

/// An expression that changes where a ring begins again.
struct Turn {
    at: ExprId,
    name: String,
    kind: TurnKind,
}

/// How it changes.
#[derive(Copy, Clone, PartialEq, Eq)]
enum TurnKind {
    /// `x / size + c`, modulo 2: it flips.
    Phase,
    /// `x / size`: it grows by one.
    Count,
}

/// What a loop carries.
#[derive(Default)]
pub(super) struct Carried {
    rings: Vec<Ring>,
}

impl Lowering<'_> {
    /// Finds what a loop over `var` of step 1 can carry, and lets it print as variables from now on. Names are those of the
    /// block around the loop.
    pub(super) fn carry(&mut self, var: VarId, body: &[program::Stmt]) -> Carried {
        let mut carried = Carried::default();
        let mut seen = HashSet::new();
        for dim in self.dims_of(body) {
            self.rings(var, dim, &mut seen, &mut carried);
        }
        for ring in &carried.rings {
            if let (Some(id), name) = &ring.stage {
                self.indices.carry(*id, name.clone(), false);
            }
            for turn in &ring.turns {
                let wide = !self.indices.is_narrow(Dim::Expr(turn.at));
                self.indices.carry(turn.at, turn.name.clone(), wide);
            }
        }
        carried
    }

    /// The statements before a loop and at its end for what its body has used. Expressions print as themselves again.
    pub(super) fn carried(
        &mut self,
        carried: Carried,
        var: VarId,
        start: Dim,
    ) -> Fallible<(Vec<Stmt>, Vec<Stmt>)> {
        let (mut before, mut after) = (vec![], vec![]);
        let drop = |indices: &mut Indices<'_>, id: &Option<ExprId>| {
            id.is_some_and(|id| indices.no_longer(id))
        };
        let mut used = vec![];
        for mut ring in carried.rings {
            let stage = drop(&mut self.indices, &ring.stage.0);
            ring.turns.retain(|turn| self.indices.no_longer(turn.at));
            if stage || !ring.turns.is_empty() {
                used.push(ring);
            }
        }
        for ring in used {
            let first = |l: &mut Self, dim: Dim| -> Fallible<Expr> {
                let at = |v: VarId| (v == var).then_some(start);
                let dim = l.p.arena.substitute(dim, &at).map_err(errors::layout)?;
                l.index(dim)
            };
            let (x, size) = (ring.x, Dim::Const(ring.size));
            let position = self.p.arena.rem(x, size).map_err(errors::layout)?;
            let init = first(self, position)?;
            before.push(variable("int", &ring.stage.1, init));
            let stage = || Expr::name(ring.stage.1.clone());
            let mut wrapped = vec![assign(stage(), Assign::Set, Expr::Int(0))];
            for turn in &ring.turns {
                let init = first(self, Dim::Expr(turn.at))?;
                let ty = Indices::type_of(!self.indices.is_narrow(Dim::Expr(turn.at)));
                before.push(variable(ty, &turn.name, init));
                let op = match turn.kind {
                    TurnKind::Phase => Assign::Xor,
                    TurnKind::Count => Assign::Add,
                };
                wrapped.push(assign(Expr::name(turn.name.clone()), op, Expr::Int(1)));
            }
            after.push(assign(stage(), Assign::Add, Expr::Int(1)));
            let cond = stage().binary(Binary::Eq, Expr::Int(ring.size));
            after.push(Stmt::new(StmtKind::If { cond, then: wrapped, otherwise: vec![] }));
        }
        Ok((before, after))
    }

    /// The rings in an expression.
    fn rings(&mut self, var: VarId, dim: Dim, seen: &mut HashSet<ExprId>, to: &mut Carried) {
        let mut todo = vec![dim];
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            if !seen.insert(id) {
                continue;
            }
            let node = self.p.arena.node(id);
            if let Some((x, size, kind)) = self.ring_of(var, &node) {
                self.ring(
                    x,
                    size,
                    kind.map_or((Some(id), None), |kind| (None, Some((id, kind)))),
                    to,
                );
            }
            match node {
                Node::Var(_) => {}
                Node::Linear { terms, .. } => {
                    todo.extend(terms.iter().rev().map(|(t, _)| Dim::Expr(*t)));
                }
                Node::Mul(a, b)
                | Node::Div(a, b)
                | Node::Mod(a, b)
                | Node::CeilDiv(a, b)
                | Node::Min(a, b)
                | Node::Max(a, b) => todo.extend([b, a]),
            }
        }
    }

    /// Adds what occurs of a ring: its stage, or what changes where it begins again.
    fn ring(
        &mut self,
        x: Dim,
        size: i64,
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
        if let Some((at, kind)) = turn {
            let wanted = match kind {
                TurnKind::Phase => "phase",
                TurnKind::Count => "turn",
            };
            let name = self.namer.admit(wanted, "p");
            ring.turns.push(Turn { at, name, kind });
        }
    }

    /// `x % size`, `x / size` or `(x / size + c) % 2` of what grows by one each iteration.
    fn ring_of(&self, var: VarId, node: &Node) -> Option<(Dim, i64, Option<TurnKind>)> {
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
                    Node::Div(x, Dim::Const(size)) if self.goes_around(var, x, size) => {
                        Some((x, size, Some(TurnKind::Phase)))
                    }
                    _ => None,
                }
            }
            Node::Mod(x, Dim::Const(size)) if self.goes_around(var, x, size) => {
                Some((x, size, None))
            }
            Node::Div(x, Dim::Const(size)) if self.goes_around(var, x, size) => {
                Some((x, size, Some(TurnKind::Count)))
            }
            _ => None,
        }
    }

    /// Whether an expression is the loop's variable and something that does not change in the loop, and its position in
    /// a ring of `size` takes more than an instruction.
    fn goes_around(&self, var: VarId, x: Dim, size: i64) -> bool {
        let arena = &self.p.arena;
        let Dim::Expr(id) = x else { return false };
        if size < 2 || i32::try_from(size).is_err() {
            return false;
        }
        let is_var = |id: ExprId| matches!(arena.node(id), Node::Var(v) if v == var);
        let others = match arena.node(id) {
            Node::Linear { terms, .. } => {
                if !terms.iter().any(|(t, coefficient)| is_var(*t) && *coefficient == 1) {
                    return false;
                }
                terms.iter().map(|(t, _)| *t).filter(|t| !is_var(*t)).collect()
            }
            _ if is_var(id) => vec![],
            _ => return false,
        };
        let negative = arena.range(x).0.is_none_or(|lo| lo < 0);
        let simple = |id: ExprId| matches!(arena.node(id), Node::Var(_));
        let masks = size.count_ones() == 1 && !negative && others.iter().all(|t| simple(*t));
        !masks && others.iter().all(|t| self.is_fixed(var, *t))
    }

    /// Whether an expression has one value throughout the loop over `var`, which is about to begin: its variables have
    /// been bound.
    fn is_fixed(&self, var: VarId, id: ExprId) -> bool {
        let vars = self.p.vars_in(Dim::Expr(id));
        vars.iter().all(|v| *v != var && self.indices.is_bound(*v))
    }

    /// Every index, number and bound in statements, in text order.
    fn dims_of(&self, stmts: &[program::Stmt]) -> Vec<Dim> {
        let p = self.p;
        let mut dims = vec![];
        let tensor = |t: TensorId, dims: &mut Vec<Dim>| {
            let t = &p.tensors[t];
            dims.push(t.offset);
            dims.extend(t.bounds.iter().flat_map(|b| [b.offset, b.extent]));
            dims.extend(t.peer);
            dims.extend(t.map.iter().flat_map(|m| m.at.iter().flatten()).copied());
        };
        for stmt in p.walk(stmts).stmts() {
            match &stmt.kind {
                program::StmtKind::Spec(id) => {
                    let spec = &p.specs[*id];
                    dims.extend(spec.exec.map(|e| p.threads[e.threads].offset));
                    for t in
                        spec.input_tensors().chain(spec.outputs.iter().copied()).chain(spec.bar)
                    {
                        tensor(t, &mut dims);
                    }
                    dims.extend(spec.multicast.iter().chain(&spec.valid));
                }
                program::StmtKind::For { start, end, .. } => dims.extend([*start, *end]),
                program::StmtKind::If { cond, .. } => {
                    dims.extend(cond.iter().flat_map(|(a, _, b)| [*a, *b]));
                }
                program::StmtKind::Sync(sync) => {
                    sync.tensor.into_iter().for_each(|t| tensor(t, &mut dims));
                    dims.extend(sync.number);
                }
                program::StmtKind::Element { tensor: t, .. } => tensor(*t, &mut dims),
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
    Stmt::new(StmtKind::Declare(Declare {
        align: None,
        ty: Type::named(ty),
        name: name.to_owned().into(),
        array: None,
        init: Some(init),
        droppable: false,
    }))
}

fn assign(to: Expr, op: Assign, value: Expr) -> Stmt {
    Stmt::new(StmtKind::Assign { to, op, value })
}
