//! Turns a module into a program in which every type is known.
//!
//! One pass in text order: names are bound, constants folded, views inferred and compared with what
//! was written, specs resolved to tensor ids. Errors are collected, at most
//! [`crate::limits::MAX_ERRORS`]; a name whose definition failed is bound to nothing and its uses
//! stay silent, so one mistake gives one error.
//!
//! Invariant: a view never changes storage. It maps to an offset and levels of layouts, computed
//! with the exact layout algebra; what the algebra refuses is an error here, never a guess. Not
//! checked here: whether specs fit their operands ([`crate::verify`]).

mod bounds;
mod constants;
mod declare;
mod domains;
mod elements;
mod expressions;
mod exprs;
mod holders;
mod launch;
mod maps;
mod means;
mod pads;
mod parts;
mod picks;
mod scope;
mod specs;
mod symbols;
mod sync;
mod tensors;
mod threads;
mod types;

pub(crate) use constants::literal;

use crate::ast;
use crate::ast::visit::{Of, Part, Walk, parts as parts_of};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::expr::prove::{Assumptions, Budget};
use crate::expr::{Dim, ExprArena, VarId, VarInfo};
use crate::limits::MAX_PROOF_STEPS;
use crate::program::{Program, Stmt, StmtId, StmtKind, Table, VarKind};
use crate::span::Span;
use crate::text;
use scope::{Binding, Scopes, Sigil};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Resolves a module. `src` is the text it was parsed from, for line numbers; empty where there is
/// none.
///
/// # Errors
/// What no text could say of a module that was built in memory: see [`crate::text::well_formed()`].
/// Else every error found, in text order, up to [`crate::limits::MAX_ERRORS`].
pub fn resolve(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    writable(module)?;
    resolve_read(module, src)
}

/// As [`resolve`], of a module that [`crate::text::parse`] gave, or that was made of one: a text
/// says it, which is not asked.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_read(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    resolved(module, src, (false, true)).map(|r| r.p)
}

/// Resolves what was made of a module that [`elaborate`] gave: all that is derived is written
/// there, and nothing is derived again, wherever tensors have gone since. Whether a text says it is
/// not asked, either.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_elaborated(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    resolved(module, src, (false, false)).map(|r| r.p)
}

/// The module without short forms: every spec says who executes it, every tensor is allocated,
/// every operation of an expression is a spec. What a statement became has its place and names it.
///
/// # Errors
/// As [`resolve`].
pub fn elaborate(module: &ast::Module, src: &str) -> Result<ast::Module, Diagnostics> {
    writable(module)?;
    elaborate_read(module, src)
}

/// As [`elaborate`], of a module that [`resolve_read`] takes.
///
/// # Errors
/// As [`resolve`].
pub fn elaborate_read(module: &ast::Module, src: &str) -> Result<ast::Module, Diagnostics> {
    let r = resolved(module, src, (true, true))?;
    Ok(ast::Module {
        header: module.header.clone(),
        items: r.written.unwrap_or_default(),
        footer: r.parts.comments.iter().chain(&module.footer).cloned().collect(),
    })
}

/// Refuses a module that no text says.
fn writable(module: &ast::Module) -> Result<(), Diagnostics> {
    let errors = text::well_formed(module);
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn resolved(
    module: &ast::Module,
    src: &str,
    (write, derive): (bool, bool),
) -> Result<Resolver, Diagnostics> {
    let mut r = Resolver::new(src);
    r.domains.derives = derive;
    r.parts = parts::Parts::of(module);
    r.heads = launch::Heads::of(module);
    r.written = write.then(Vec::new);
    r.taken = names_of(module);
    r.module(module);
    r.errors.drop_consequences(Code::Unread);
    if r.errors.is_empty() {
        holders::narrow(&mut r.p);
        Ok(r)
    } else {
        Err(r.errors)
    }
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
    /// The number of statements so far.
    n_stmts: u32,
    /// The statement, until those of its body are resolved.
    node: ast::NodeId,
    /// Statements of the block that is read, without short forms; none where nobody wants them.
    written: Option<Vec<ast::Stmt>>,
    /// The statement as it is to be written, where it is another than the one that was read.
    rewritten: Option<ast::StmtKind>,
    /// Every name of a data tensor in the module: those that are made up differ from them.
    taken: HashSet<String>,
    /// Constants of `let` that are not the same as integers and as real numbers.
    constants: constants::Constants,
    /// Which elements of tensors there are.
    domains: domains::Domains,
    /// Who executes the bodies around the statement, as written and as resolved.
    around: Vec<launch::Around>,
    /// Who executes the bodies around the statement that say so.
    executing: Vec<crate::program::ThreadsId>,
    /// Tensors that results declared, in the open blocks.
    declared: Vec<declare::Declared>,
    /// Buffers that something reads.
    read: HashSet<crate::program::BufferId>,
    /// Elements that are numbers here.
    elements: Vec<elements::Known>,
    /// Sub-specs.
    parts: parts::Parts,
    /// Threads that heads of kernels declare.
    heads: launch::Heads,
    /// Open blocks.
    blocks: usize,
    /// Whether the last statement was a spec of which something had to be written out.
    spelled_out: bool,
    /// Depth of specs around the statement; 0 at top level.
    depth: usize,
    /// What the `if`s around the statement ask for, and what loops and coordinates of symbolic
    /// extents keep: differences that are at least zero there.
    holds: Assumptions,
    /// What is left for proofs.
    proofs: Cell<Budget>,
    /// Where the usual values of symbols are written, in the order of [`Program::typical`].
    typical: Vec<Span>,
}

impl Resolver {
    fn new(src: &str) -> Self {
        let mut line_starts = vec![];
        if !src.is_empty() {
            line_starts.push(0);
            // Small modules are resolved with the text of large ones often.
            line_starts.extend(src.match_indices('\n').map(|(i, _)| i as u32 + 1));
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
                facts: vec![],
                typical: vec![],
                taken: vec![],
            },
            errors: Diagnostics::default(),
            scopes: Scopes::default(),
            line_starts,
            n_stmts: 0,
            node: ast::NodeId::fresh(),
            written: None,
            rewritten: None,
            spelled_out: false,
            taken: HashSet::new(),
            constants: constants::Constants::default(),
            domains: domains::Domains::default(),
            around: vec![],
            executing: vec![],
            declared: vec![],
            read: HashSet::new(),
            elements: vec![],
            parts: parts::Parts::default(),
            heads: launch::Heads::default(),
            blocks: 0,
            depth: 0,
            holds: Assumptions::default(),
            proofs: Cell::new(Budget::new(MAX_PROOF_STEPS)),
            typical: vec![],
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
        self.check_typical();
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

    /// The statements of a block, and the block without short forms, where it is wanted.
    fn block(&mut self, block: &ast::Block) -> (Vec<Stmt>, ast::Block) {
        self.scopes.enter();
        self.blocks += 1;
        let (outside, elements) = (self.holds.len(), self.elements.len());
        let around = self.written.as_mut().map(std::mem::take);
        let declared = self.declared.len();
        let mut out = vec![];
        for stmt in &block.stmts {
            if self.errors.is_full() {
                break;
            }
            self.stmt(stmt, &mut out);
        }
        self.holds.truncate(outside);
        self.elements.truncate(elements);
        self.unread(declared);
        self.blocks -= 1;
        self.scopes.leave();
        let stmts = match around {
            Some(around) => self.written.replace(around).unwrap_or_default(),
            None => vec![],
        };
        (out, ast::Block { stmts, footer: block.footer.clone() })
    }

    /// Resolves one statement; its effect, if it has one, is appended to `out`.
    fn stmt(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) {
        let written = self.written.as_ref().map_or(0, Vec::len);
        let before = self.errors.len();
        self.spelled_out = false;
        match self.written_out(stmt, out) {
            Ok(()) => {}
            Err(d) if d.message.is_empty() => {} // Reported where the name was defined.
            Err(d) => self.errors.push(*d),
        }
        self.errors.come_from(before, stmt.loc());
        // Comments stay with the first statement of what was written out.
        let first = self.written.as_mut().and_then(|w| w.get_mut(written));
        if let Some(first) = first.filter(|_| spelled_out(stmt, self.spelled_out)) {
            first.blank_above = stmt.blank_above;
            first.leading.clone_from(&stmt.leading);
            first.trailing.clone_from(&stmt.trailing);
        }
        if self.scopes.is_top()
            && !self.parts.comments.is_empty()
            && let Some(first) = self.written.as_mut().and_then(|w| w.get_mut(written))
        {
            // Of definitions above, which are gone.
            first.leading.splice(0..0, self.parts.comments.drain(..));
        }
    }

    /// A statement, or the statements that it stands for.
    fn written_out(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) -> Fallible<()> {
        match &stmt.kind {
            ast::StmtKind::Assign { target, ty, value } => {
                self.assign(stmt, target, ty.as_ref(), value, out)
            }
            ast::StmtKind::Call(call) => self.call(stmt, call, out),
            ast::StmtKind::Def(def) => self.define(stmt, def),
            ast::StmtKind::Import(path) => fail(self.unread_import(path)),
            ast::StmtKind::Spec(spec) => {
                let at = self.written.as_ref().map_or(0, Vec::len);
                let done = match self.short_spec(stmt, spec, out) {
                    Ok(Some(spec)) => {
                        // The same statement, all of it written; only comments go elsewhere.
                        let kind = ast::StmtKind::Spec(spec);
                        let plain = ast::Stmt {
                            id: stmt.id,
                            from: stmt.from,
                            ..ast::Stmt::derived(kind, stmt)
                        };
                        let done = self.plain(&plain, out);
                        self.spelled_out = true;
                        done
                    }
                    Ok(None) => self.plain(stmt, out),
                    Err(e) => Err(e),
                };
                if done.is_err() && self.depth > 0 {
                    self.silence(&spec.outputs);
                }
                self.leave_head(at);
                done
            }
            _ => self.plain(stmt, out),
        }
    }

    /// A statement that stands for itself.
    fn plain(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) -> Fallible<()> {
        if let ast::StmtKind::Spec(spec) = &stmt.kind {
            let guarded = self.guarded(spec, stmt, out)?;
            if let Some(spec) = guarded {
                let kind = ast::StmtKind::Spec(spec);
                let guarded = ast::Stmt { kind, ..stmt.clone() };
                self.one(&guarded, out)?;
                self.spelled_out = true;
                return Ok(());
            }
        }
        self.one(stmt, out)
    }

    /// A statement all of which is written.
    fn one(&mut self, stmt: &ast::Stmt, out: &mut Vec<Stmt>) -> Fallible<()> {
        self.node = stmt.id;
        self.rewritten = None;
        let kind = self.stmt_kind(stmt)?;
        if self.written.is_some() {
            let kind = self.rewritten.take().unwrap_or_else(|| stmt.kind.clone());
            let copy = ast::Stmt {
                blank_above: stmt.blank_above,
                leading: stmt.leading.clone(),
                trailing: stmt.trailing.clone(),
                kind,
                span: stmt.span,
                id: stmt.id,
                from: stmt.from,
            };
            self.written.get_or_insert_default().push(copy);
        }
        if let Some(kind) = kind {
            let line = self.line(stmt.span);
            let id = StmtId(self.n_stmts);
            self.n_stmts += 1;
            out.push(Stmt { id, kind, span: stmt.span, line, node: stmt.id });
        }
        Ok(())
    }

    fn stmt_kind(&mut self, stmt: &ast::Stmt) -> Fallible<Option<StmtKind>> {
        use ast::StmtKind as A;
        match &stmt.kind {
            A::Let(defs) => {
                // Those behind one that is wrong are defined all the same.
                let mut failed = None;
                for (name, expr) in defs {
                    if let Err(d) = self.bind_constant(name, expr)
                        && let Some(before) = failed.replace(d)
                    {
                        self.errors.push(*before);
                    }
                }
                failed.map_or(Ok(None), Err)
            }
            A::Sym(sym) => self.sym(sym).map(|()| None),
            A::Symbols(all) => self.symbols(all).map(|()| None),
            A::DataDecl { name, ty, range } => {
                let id = self.data_decl(name, ty, range.as_ref());
                self.bind_result(Sigil::Data, name, id, Binding::Tensor)?;
                Ok(None)
            }
            A::DataDef { name, ty, view } => {
                if self.depth > 0 {
                    self.is_no_store(name, view)?;
                }
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
            A::Element { name, view } => self.element(name, view, stmt.span).map(Some),
            A::Allocate { name, ty } => {
                let id = self.allocate(name, ty);
                let id = self.bind_result(Sigil::Data, name, id, Binding::Tensor)?;
                Ok(Some(StmtKind::Allocate(id)))
            }
            A::Spec(spec) => {
                let id = self.spec(spec)?;
                self.follow(spec)?;
                Ok(Some(StmtKind::Spec(id)))
            }
            A::For { .. } => self.for_loop(&stmt.kind, stmt.span).map(Some),
            A::Assign { .. } | A::Call(_) | A::Def(_) | A::Import(_) => {
                fail(Diagnostic::new(Code::Internal, stmt.span, "a short form was not written out"))
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
                let known = self.known_edges();
                let (then, first) = self.block(then);
                self.holds.truncate(outside);
                let known = self.end_branch(known);
                let other = otherwise.as_ref().map(|b| self.block(b));
                self.join_branches(&known);
                let (otherwise, second) = match other {
                    Some((stmts, block)) => (stmts, Some(block)),
                    None => (vec![], None),
                };
                if self.written.is_some()
                    && let A::If { cond, .. } = &stmt.kind
                {
                    let cond = cond.clone();
                    self.rewritten = Some(A::If { cond, then: first, otherwise: second });
                }
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

    fn for_loop(&mut self, kind: &ast::StmtKind, span: Span) -> Fallible<StmtKind> {
        let ast::StmtKind::For { var, start, end, step, unroll, stages, body } = kind else {
            return fail(Diagnostic::new(Code::Internal, span, "no loop is no loop"));
        };
        let (bounds, unroll) = ((start, end, step), *unroll);
        let depth = match stages {
            None => 1,
            Some(e) => {
                let n = self.constant(e, "the number of stages")?;
                if !(1..=crate::limits::MAX_STAGES).contains(&n) {
                    return fail(
                        Diagnostic::new(Code::LoopStep, e.span, format!("a loop of {n} stages"))
                            .label(format!("not from 1 to {}", crate::limits::MAX_STAGES))
                            .help("write how many iterations may be under way at a time"),
                    );
                }
                n
            }
        };
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
            Dim::Const(s) => crate::leaf::gcd(s, step),
            Dim::Expr(_) => 1,
        };
        let info = VarInfo { name: var.text.clone(), lo, hi, div: div.max(1) };
        let (dim, id) = self.variable(info, VarKind::Loop, span)?;
        self.scopes.enter();
        let bound = self.bind(Sigil::Index, var, Binding::Index(dim));
        let outside = self.holds.len();
        let below = self.stays_below_end(dim, bounds.1);
        self.begin_loop(id);
        let (body, block) = self.block(body);
        let followed = self.end_loop();
        self.holds.truncate(outside);
        self.scopes.leave();
        bound?;
        below?;
        followed?;
        if self.written.is_some()
            && let ast::StmtKind::For { var, start, end, step, unroll, stages, .. } = kind
        {
            self.rewritten = Some(ast::StmtKind::For {
                var: var.clone(),
                start: start.clone(),
                end: end.clone(),
                step: step.clone(),
                unroll: *unroll,
                stages: stages.clone(),
                body: block,
            });
        }
        Ok(StmtKind::For { var: id, start, end, step, unroll, stages: depth, body })
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

/// Whether the comments of a statement are to be given to the first of those that it became.
fn spelled_out(stmt: &ast::Stmt, spec: bool) -> bool {
    spec || matches!(stmt.kind, ast::StmtKind::Assign { .. } | ast::StmtKind::Call(_))
}

/// Names of data tensors in a module.
fn names_of(module: &ast::Module) -> HashSet<String> {
    let mut names = HashSet::new();
    for stmt in Walk::new(&module.items).with_means().stmts() {
        parts_of(stmt, &mut |part| {
            if let Part::Defined(name, Of::Data) | Part::Referred(name, Of::Data) = part {
                names.insert(name.text.clone());
            }
        });
    }
    names
}
