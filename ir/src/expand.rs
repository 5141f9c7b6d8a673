//! Makes a module explicit: states every type and every stride that it leaves out, as
//! `carbyne fmt --expand` prints it.
//!
//! Expansion keeps everything written and adds derived parts. Storage with an open layout (`{?}`)
//! and tensors spread over threads (`tv=`) have no strides; views of them state only their extents.
//!
//! Invariant: the result resolves to an equal program, and a second expansion changes nothing.

use crate::ast::visit::each_mut;
use crate::ast::{
    BinOp, Dims, Expr, ExprKind, Module, Name, StmtKind, TensorType, ThreadType, TupleExpr,
};
use crate::expr::{Dim, Node};
use crate::layout::Layout;
use crate::program::{Program, Tensor, Threads, VarKind};
use crate::span::Span;
use crate::tuple::IntTuple;

/// The module with all types and strides stated. `program` must be the result of [`crate::resolve`]
/// on `module`; otherwise types that cannot be derived stay open.
#[must_use]
pub fn expand(module: &Module, program: &Program) -> Module {
    let mut cx = Expander {
        p: program,
        // Exactly the definitions have names. Both tables are in text order.
        tensors: named(program.tensors.iter().map(|(_, t)| t), |t| t.name.as_deref()),
        threads: named(program.threads.iter().map(|(_, t)| t), |t| t.name.as_deref()),
    };
    let mut module = module.clone();
    each_mut(&mut module.items, &mut |stmt| cx.stmt(&mut stmt.kind));
    module
}

/// The named entries in reverse order, so that `pop` gives the first one.
fn named<'p, T>(
    all: impl Iterator<Item = &'p T>,
    name: impl Fn(&'p T) -> Option<&'p str>,
) -> Vec<(&'p str, &'p T)> {
    let mut out: Vec<_> = all.filter_map(|t| Some((name(t)?, t))).collect();
    out.reverse();
    out
}

/// Walks the module and the named entries in parallel.
struct Expander<'p> {
    p: &'p Program,
    tensors: Vec<(&'p str, &'p Tensor)>,
    threads: Vec<(&'p str, &'p Threads)>,
}

impl<'p> Expander<'p> {
    fn stmt(&mut self, kind: &mut StmtKind) {
        match kind {
            StmtKind::DataDecl { name, ty, .. } | StmtKind::Allocate { name, ty } => {
                if let Some(t) = self.tensor(name)
                    && !self.has_no_strides(t)
                {
                    self.add_strides(&mut ty.levels, &t.levels);
                }
            }
            StmtKind::DataDef { name, ty, view: _ } => {
                let Some(t) = self.tensor(name) else { return };
                let strides = !self.has_no_strides(t);
                let old = ty.as_ref().map(|ty| ty.levels.as_slice());
                if let Some(levels) = self.levels(old, &t.levels, strides) {
                    let buffer = &self.p.buffers[t.buffer];
                    let (scalar, memory) = (buffer.scalar, buffer.memory);
                    let span = Span::default();
                    *ty = Some(TensorType { levels, scalar, memory, attrs: vec![], span });
                }
            }
            StmtKind::ThreadDecl { name, ty } => {
                if let Some(t) = self.thread(name) {
                    self.add_strides(&mut ty.levels, &t.levels);
                }
            }
            StmtKind::ThreadDef { name, ty, view: _ } => {
                let Some(t) = self.thread(name) else { return };
                let inferred: &[_] = if t.each.is_some() { &[] } else { t.inner() };
                let old = ty.as_ref().map(|ty| ty.levels.as_slice());
                if let Some(levels) = self.levels(old, inferred, true) {
                    *ty = Some(ThreadType { levels, scalar: t.scalar, span: Span::default() });
                }
            }
            StmtKind::Let(_)
            | StmtKind::Assign { .. }
            | StmtKind::Import(_)
            | StmtKind::Def(_)
            | StmtKind::Call(_)
            | StmtKind::Spec(_)
            | StmtKind::For { .. }
            | StmtKind::If { .. }
            | StmtKind::Sym(_)
            | StmtKind::Symbols(_)
            | StmtKind::Indices { .. }
            | StmtKind::Element { .. }
            | StmtKind::Counter { .. }
            | StmtKind::Step { .. }
            | StmtKind::Barrier(_)
            | StmtKind::Sync { .. } => {}
        }
    }

    fn tensor(&mut self, name: &Name) -> Option<&'p Tensor> {
        self.tensors.pop_if(|(n, _)| *n == name.text).map(|(_, t)| t)
    }

    fn thread(&mut self, name: &Name) -> Option<&'p Threads> {
        self.threads.pop_if(|(n, _)| *n == name.text).map(|(_, t)| t)
    }

    /// Whether strides would not say where the tensor's elements are.
    fn has_no_strides(&self, t: &Tensor) -> bool {
        t.dist.is_some() || self.p.buffers[t.buffer].open
    }

    /// Adds the strides that a declaration leaves out.
    fn add_strides(&self, written: &mut [Dims], resolved: &[Layout<Dim>]) {
        let written = written.iter_mut().filter(|d| !d.modes.is_empty());
        for (dims, layout) in written.zip(resolved) {
            if dims.strides.is_none() {
                dims.strides = self.tuples(layout, |mode| mode.stride());
            }
        }
    }

    /// The levels of a view. `None` if they cannot be written.
    fn levels(
        &self,
        old: Option<&[Dims]>,
        resolved: &[Layout<Dim>],
        strides: bool,
    ) -> Option<Vec<Dims>> {
        if resolved.is_empty() {
            return Some(vec![Dims { modes: vec![], strides: None, span: Span::default() }]);
        }
        let mut old = old.unwrap_or(&[]).iter().filter(|d| !d.modes.is_empty());
        let mut out = vec![];
        for layout in resolved {
            let old = old.next();
            if let Some(old) = old.filter(|d| d.strides.is_some()) {
                out.push(old.clone());
                continue;
            }
            let inferred = self.tuples(layout, |mode| mode.shape())?;
            let modes = match old {
                Some(old) if congruent(&old.modes, &inferred) => old.modes.clone(),
                _ => inferred,
            };
            let strides = match strides {
                true => Some(self.tuples(layout, |mode| mode.stride())?),
                false => None,
            };
            out.push(Dims { modes, strides, span: Span::default() });
        }
        Some(out)
    }

    /// One tuple for each mode.
    fn tuples(
        &self,
        layout: &Layout<Dim>,
        of: impl Fn(&Layout<Dim>) -> IntTuple<Dim>,
    ) -> Option<Vec<TupleExpr>> {
        layout.modes().iter().map(|mode| self.tuple(&of(mode))).collect()
    }

    fn tuple(&self, t: &IntTuple<Dim>) -> Option<TupleExpr> {
        Some(match t {
            IntTuple::Leaf(d) => TupleExpr::Leaf(self.expr(*d)?),
            IntTuple::Tuple(ts) => {
                TupleExpr::Tuple(ts.iter().map(|t| self.tuple(t)).collect::<Option<_>>()?)
            }
        })
    }

    fn expr(&self, d: Dim) -> Option<Expr> {
        expression(self.p, d)
    }
}

/// The expression as an expression of the text. `None` if a variable has no name in the text.
pub(crate) fn expression(p: &Program, d: Dim) -> Option<Expr> {
    // The recursion is bounded: the arena limits the depth and the size of an expression.
    let id = match d {
        Dim::Const(v) if v < 0 => {
            return Some(Expr::bin(BinOp::Sub, Expr::int(0), Expr::int(v.checked_abs()?)));
        }
        Dim::Const(v) => return Some(Expr::int(v)),
        Dim::Expr(id) => id,
    };
    let bin = |op, a: Dim, b: Dim| Some(Expr::bin(op, expression(p, a)?, expression(p, b)?));
    match p.arena.node(id) {
        Node::Var(v) => match p.vars.get(&v)? {
            VarKind::Loop
            | VarKind::Index(_)
            | VarKind::Element(_)
            | VarKind::Counter(_)
            | VarKind::Symbol => Some(Expr::name(p.arena.var_info(v).name)),
            VarKind::Thread(_) | VarKind::Block(_) => None,
        },
        Node::Linear { terms, constant } => {
            // Positive terms come first because a text has no negative literals.
            let mut parts: Vec<(i64, Option<Dim>)> =
                terms.iter().map(|(id, by)| (*by, Some(Dim::Expr(*id)))).collect();
            if constant != 0 {
                parts.push((constant, None));
            }
            parts.sort_by_key(|(by, _)| *by < 0);
            let mut sum: Option<Expr> = None;
            for (by, term) in parts {
                let factor = Expr::int(by.checked_abs()?);
                let part = match term {
                    None => factor,
                    Some(d) if factor.kind == ExprKind::Int(1) => expression(p, d)?,
                    Some(d) => Expr::bin(BinOp::Mul, expression(p, d)?, factor),
                };
                sum = Some(match (sum, by < 0) {
                    (None, false) => part,
                    (None, true) => Expr::bin(BinOp::Sub, Expr::int(0), part),
                    (Some(sum), false) => Expr::bin(BinOp::Add, sum, part),
                    (Some(sum), true) => Expr::bin(BinOp::Sub, sum, part),
                });
            }
            Some(sum.unwrap_or(Expr::int(0)))
        }
        Node::Mul(a, b) => bin(BinOp::Mul, a, b),
        Node::Div(a, b) => bin(BinOp::Div, a, b),
        Node::Mod(a, b) => bin(BinOp::Mod, a, b),
        Node::CeilDiv(a, b) => bin(BinOp::CeilDiv, a, b),
        Node::Min(a, b) => bin(BinOp::Min, a, b),
        Node::Max(a, b) => bin(BinOp::Max, a, b),
    }
}

/// Whether tuples have equal nesting.
fn congruent(a: &[TupleExpr], b: &[TupleExpr]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| match (a, b) {
            (TupleExpr::Leaf(_), TupleExpr::Leaf(_)) => true,
            (TupleExpr::Tuple(a), TupleExpr::Tuple(b)) => congruent(a, b),
            _ => false,
        })
}
