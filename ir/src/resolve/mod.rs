//! Turns a module into a program in which every type is known.
//!
//! One pass in text order: names are bound, constants folded, views inferred and compared with what was
//! written, specs resolved to tensor ids. Errors are collected, at most
//! [`crate::limits::MAX_ERRORS`]; a name whose definition failed is bound to nothing and its uses stay
//! silent, so one mistake gives one error.
//!
//! Invariant: a view never changes storage. It maps to an offset and levels of layouts, computed with
//! the exact layout algebra; what the algebra refuses is an error here, never a guess.
//! Not checked here: whether specs fit their operands ([`crate::verify`]).

mod bounds;
mod exprs;
mod maps;
mod means;
mod scope;
mod specs;
mod sync;
mod tensors;
mod threads;
mod types;

use crate::ast;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::expr::{Dim, ExprArena, VarId, VarInfo};
use crate::program::{Program, Stmt, StmtKind, Table, VarKind};
use crate::span::Span;
use crate::text;
use scope::{Binding, Scopes, Sigil};
use std::collections::HashMap;

/// Resolves a module. `src` is the text it was parsed from, for line numbers; empty where there is none.
///
/// # Errors
/// What no text could say of a module that was built in memory: see [`crate::text::well_formed()`]. Else every
/// error found, in text order, up to [`crate::limits::MAX_ERRORS`].
pub fn resolve(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    let unwritable = text::well_formed(module);
    if !unwritable.is_empty() {
        return Err(unwritable);
    }
    let mut r = Resolver::new(src);
    r.module(module);
    if r.errors.is_empty() { Ok(r.p) } else { Err(r.errors) }
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

/// A refusal: a boxed diagnostic, to keep the happy path small.
fn fail<T>(d: Diagnostic) -> Fallible<T> {
    Err(Box::new(d))
}

struct Resolver {
    p: Program,
    errors: Diagnostics,
    scopes: Scopes,
    line_starts: Vec<u32>,
    /// The statement, until those of its body are resolved.
    node: ast::NodeId,
    /// Depth of specs around the statement; 0 at top level.
    depth: usize,
    /// What the `if`s around the statement ask for, and what loops and coordinates of symbolic extents keep:
    /// differences that are at least zero there.
    holds: Vec<Dim>,
}

impl Resolver {
    fn new(src: &str) -> Self {
        let mut line_starts = vec![];
        if !src.is_empty() {
            line_starts.push(0);
            line_starts.extend(
                src.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1),
            );
        }
        Resolver {
            p: Program {
                arena: ExprArena::default(),
                vars: HashMap::new(),
                buffers: Table::default(),
                tensors: Table::default(),
                threads: Table::default(),
                specs: Table::default(),
                maps: Table::default(),
                params: vec![],
                kernels: vec![],
                symbols: vec![],
            },
            errors: Diagnostics::default(),
            scopes: Scopes::default(),
            line_starts,
            node: ast::NodeId::fresh(),
            depth: 0,
            holds: vec![],
        }
    }

    fn line(&self, span: Span) -> u32 {
        self.line_starts.partition_point(|&s| s <= span.start) as u32
    }

    fn module(&mut self, module: &ast::Module) {
        let mut out = vec![];
        for item in &module.items {
            self.stmt(item, &mut out);
        }
        for stmt in out {
            match stmt.kind {
                StmtKind::Spec(id) => self.p.kernels.push(id),
                _ => self.errors.push(
                    Diagnostic::new(
                        Code::Placement,
                        stmt.span,
                        "a statement stands outside of every kernel",
                    )
                    .label("only declarations and kernels stand at top level")
                    .help("move it into the body of a spec"),
                ),
            }
        }
    }

    fn block(&mut self, block: &ast::Block) -> Vec<Stmt> {
        self.scopes.enter();
        let outside = self.holds.len();
        let mut out = vec![];
        for stmt in &block.stmts {
            if self.errors.is_full() {
                break;
            }
            self.stmt(stmt, &mut out);
        }
        self.holds.truncate(outside);
        self.scopes.leave();
        out
    }

    /// Resolves one statement; its effect, if it has one, is appended to `out`.
    fn stmt(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) {
        self.node = stmt.id;
        let before = self.errors.len();
        match self.stmt_kind(stmt) {
            Ok(None) => {}
            Ok(Some(kind)) => {
                let line = self.line(stmt.span);
                out.push(Stmt { kind, span: stmt.span, line, node: stmt.id });
            }
            Err(d) if d.message.is_empty() => {} // Reported where the name was defined.
            Err(d) => self.errors.push(*d),
        }
        self.errors.come_from(before, stmt.loc());
    }

    fn stmt_kind(&mut self, stmt: &ast::Stmt) -> Fallible<Option<StmtKind>> {
        use ast::StmtKind as A;
        match &stmt.kind {
            A::Let(defs) => {
                for (name, expr) in defs {
                    let value = self.expr(expr);
                    let bound = value.as_ref().map_or(Binding::Broken, |d| Binding::Index(*d));
                    self.bind(Sigil::Index, name, bound)?;
                    value?;
                }
                Ok(None)
            }
            A::Sym(sym) => self.sym(sym).map(|()| None),
            A::DataDecl { name, ty } => {
                let id = self.data_decl(name, ty);
                self.bind_result(Sigil::Data, name, id, Binding::Tensor)?;
                Ok(None)
            }
            A::DataDef { name, ty, view } => {
                let id = self.data_def(name, ty.as_ref(), view);
                self.bind_result(Sigil::Data, name, id, Binding::Tensor)?;
                Ok(None)
            }
            A::ThreadDecl { name, ty } => {
                let id = self.thread_decl(name, ty);
                self.bind_result(Sigil::Thread, name, id, Binding::Threads)?;
                Ok(None)
            }
            A::ThreadDef { name, ty, view } => {
                let id = self.thread_def(name, ty.as_ref(), view);
                self.bind_result(Sigil::Thread, name, id, Binding::Threads)?;
                Ok(None)
            }
            A::Indices { names, threads } => self.indices(names, threads, stmt.span).map(Some),
            A::Allocate { name, ty } => {
                let id = self.allocate(name, ty);
                let id = self.bind_result(Sigil::Data, name, id, Binding::Tensor)?;
                Ok(Some(StmtKind::Allocate(id)))
            }
            A::Spec(spec) => self.spec(spec).map(|id| Some(StmtKind::Spec(id))),
            A::For { var, start, end, step, unroll, body } => {
                self.for_loop(var, (start, end, step), *unroll, body, stmt.span).map(Some)
            }
            A::If { cond, then, otherwise } => {
                let cond = cond
                    .iter()
                    .map(|c| Ok((self.expr(&c.lhs)?, c.op, self.expr(&c.rhs)?)))
                    .collect::<Fallible<Vec<_>>>()?;
                let outside = self.holds.len();
                for (lhs, op, rhs) in &cond {
                    self.assume(*lhs, *op, *rhs);
                }
                let then = self.block(then);
                self.holds.truncate(outside);
                let otherwise = otherwise.as_ref().map_or(vec![], |b| self.block(b));
                Ok(Some(StmtKind::If { cond, then, otherwise }))
            }
            A::Barrier(view) => {
                let threads = view.as_ref().map(|v| self.thread_view(v)).transpose()?;
                Ok(Some(StmtKind::Barrier(threads)))
            }
            A::Sync { op, args } => {
                self.sync(*op, args, stmt.span).map(|s| Some(StmtKind::Sync(s)))
            }
        }
    }

    fn sym(&mut self, sym: &ast::SymDecl) -> Fallible<()> {
        let (lo, div) = (sym.min.unwrap_or(1), sym.div.unwrap_or(1));
        if lo < 1 || div < 1 || sym.max.is_some_and(|m| m < lo) {
            self.bind(Sigil::Index, &sym.name, Binding::Broken)?;
            return fail(
                Diagnostic::new(
                    Code::Attribute,
                    sym.name.span,
                    format!("the range of `{}` is empty", sym.name.text),
                )
                .label(format!(
                    "from {lo} to {}, multiples of {div}",
                    sym.max.map_or("any".to_owned(), |m| m.to_string())
                ))
                .help("make `min` and `div` at least 1, and `max` at least `min`"),
            );
        }
        let info = VarInfo { name: sym.name.text.clone(), lo, hi: sym.max, div };
        let (dim, id) = self.variable(info, VarKind::Symbol, sym.name.span)?;
        self.p.symbols.push(id);
        self.bind(Sigil::Index, &sym.name, Binding::Index(dim))
    }

    fn for_loop(
        &mut self,
        var: &ast::Name,
        bounds: (&ast::Expr, &ast::Expr, &ast::Expr),
        unroll: ast::Unroll,
        body: &ast::Block,
        span: Span,
    ) -> Fallible<StmtKind> {
        let start = self.expr(bounds.0)?;
        let end = self.expr(bounds.1)?;
        let step = self.constant(bounds.2, "the loop's step")?;
        if step < 1 {
            return fail(
                Diagnostic::new(Code::LoopStep, bounds.2.span, "the loop's step is not positive")
                    .label(format!("this is {step}"))
                    .help("count upwards with a step of at least 1"),
            );
        }
        let lo = self.p.arena.range(start).0;
        let Some(lo) = lo else {
            return fail(
                Diagnostic::new(
                    Code::LoopStep,
                    bounds.0.span,
                    "the loop's start has no lower bound",
                )
                .label("may be any number below zero")
                .help("begin at a constant, a coordinate, or `max(0, ..)`"),
            );
        };
        let hi = self.p.arena.range(end).1.map(|h| h.saturating_sub(1).max(lo));
        // Every value is start + i·step.
        let div = match start {
            Dim::Const(s) => gcd(s, step),
            Dim::Expr(_) => 1,
        };
        let info = VarInfo { name: var.text.clone(), lo, hi, div: div.max(1) };
        let (dim, id) = self.variable(info, VarKind::Loop, span)?;
        self.scopes.enter();
        let bound = self.bind(Sigil::Index, var, Binding::Index(dim));
        let outside = self.holds.len();
        self.stays_below(dim, end);
        let body = self.block(body);
        self.holds.truncate(outside);
        self.scopes.leave();
        bound?;
        Ok(StmtKind::For { var: id, start, end, step, unroll, body })
    }

    /// A new variable of the arena.
    fn variable(&mut self, info: VarInfo, kind: VarKind, span: Span) -> Fallible<(Dim, VarId)> {
        let dim = self.p.arena.var(info).map_err(|e| exprs::overflow(span, &e))?;
        let Some(id) = self.p.arena.var_id(dim) else {
            return fail(Diagnostic::new(Code::Internal, span, "a new variable is no variable"));
        };
        self.p.vars.insert(id, kind);
        Ok((dim, id))
    }

    /// Binds a name to a definition that may have failed.
    fn bind_result<T: Copy>(
        &mut self,
        sigil: Sigil,
        name: &ast::Name,
        value: Fallible<T>,
        binding: fn(T) -> Binding,
    ) -> Fallible<T> {
        let bound = value.as_ref().map_or(Binding::Broken, |v| binding(*v));
        let defined = self.bind(sigil, name, bound);
        let value = value?;
        defined?;
        Ok(value)
    }

    fn bind(&mut self, sigil: Sigil, name: &ast::Name, binding: Binding) -> Fallible<()> {
        match self.scopes.bind(sigil, &name.text, name.span, binding) {
            Ok(()) => Ok(()),
            Err(first) => fail(
                Diagnostic::new(
                    Code::Redefined,
                    name.span,
                    format!("`{}{}` is defined twice", sigil.as_str(), name.text),
                )
                .label("second definition")
                .related(first, "first definition")
                .help("choose another name for one of them: names in scope are never hidden"),
            ),
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.saturating_abs()
}
