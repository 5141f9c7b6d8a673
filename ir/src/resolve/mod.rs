//! Resolves modules: turns the syntax tree of a module into a [`Program`], in which all names are
//! resolved and all types are known. All later stages work on programs. [`elaborate`] returns the
//! module that the resolver has expanded on the way: without short forms, each spec with an
//! executor.
//!
//! It is one pass in text order. For each statement, the pass expands short forms and uses of
//! sub-specs (`launch`, `declare`, `expressions`, `subspecs`), inserts Selects for partial tiles
//! (`domains`), binds names (`scope`), folds constants (`constants`, `symbols`), infers views
//! (`tensors`, `threads`, and the files of single operations), proves that indices are in range
//! (`bounds`), compares views with stated types (`types`), and replaces operands of specs by tensor
//! ids (`specs`). Then `register_owners` decides which threads hold open register tensors. The
//! resolver collects at most [`crate::limits::MAX_ERRORS`] errors. A name whose definition failed
//! stays bound, but its uses report no further errors, so that one mistake gives one error.
//!
//! Invariant: a view never changes storage. A view is an offset and levels of layouts, which the
//! exact layout algebra computes. Views that the algebra refuses are errors. [`crate::verify`]
//! checks later that operands fit their specs.

mod bounds;
mod constants;
mod counters;
mod declare;
mod domains;
mod elements;
mod expressions;
mod exprs;
mod launch;
mod maps;
mod means;
mod pads;
mod ranges_and_gathers;
mod register_owners;
mod scope;
mod specs;
mod stated_facts;
mod subspecs;
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
pub use stated_facts::joined;
use std::cell::Cell;
use std::collections::{HashMap, HashSet};

/// Resolves a module. `src` is the text of the module, for line numbers; it may be empty.
///
/// # Errors
/// For a module built in memory, everything that no text can express: see
/// [`crate::text::well_formed()`]. Otherwise all errors in text order, up to
/// [`crate::limits::MAX_ERRORS`].
pub fn resolve(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    writable(module)?;
    resolve_read(module, src)
}

/// Like [`resolve`], for a module from [`crate::text::parse`] or a transformation of one. It skips
/// the check that a text can express the module.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_read(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    resolved(module, src, (false, true)).map(|r| r.p)
}

/// Resolves a transformed result of [`elaborate`]. Such a module states everything that
/// [`elaborate`] derives, so nothing is derived again, even if tensors have moved. It also skips
/// the check that a text can express the module.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_elaborated(module: &ast::Module, src: &str) -> Result<Program, Diagnostics> {
    resolved(module, src, (false, false)).map(|r| r.p)
}

/// Expands the short forms of a module: in the result every spec has an executor, every tensor is
/// allocated, and every operation of an expression is a spec. A statement of the expansion has the
/// place of the original statement, and refers to its id.
///
/// # Errors
/// As [`resolve`].
pub fn elaborate(module: &ast::Module, src: &str) -> Result<ast::Module, Diagnostics> {
    writable(module)?;
    elaborate_read(module, src)
}

/// Like [`elaborate`], for modules that [`resolve_read`] accepts.
///
/// # Errors
/// As [`resolve`].
pub fn elaborate_read(module: &ast::Module, src: &str) -> Result<ast::Module, Diagnostics> {
    let r = resolved(module, src, (true, true))?;
    Ok(ast::Module {
        header: module.header.clone(),
        items: r.written.unwrap_or_default(),
        footer: r.subspecs.comments.iter().chain(&module.footer).cloned().collect(),
    })
}

/// Refuses a module that no text can express.
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
    r.subspecs = subspecs::SubSpecs::of(module);
    r.heads = launch::Heads::of(module);
    r.written = write.then(Vec::new);
    r.taken = names_of(module);
    r.module(module);
    r.errors.drop_consequences(Code::Unread);
    if r.errors.is_empty() {
        register_owners::narrow(&mut r.p);
        counters::find_sources(&mut r.p);
        r.check_executors();
    }
    match r.errors.is_empty() {
        true => Ok(r),
        false => Err(joined(module, r.errors)),
    }
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

/// Returns an error. The diagnostic is boxed to keep results small.
fn fail<T>(d: Diagnostic) -> Fallible<T> {
    Err(Box::new(d))
}

struct Resolver {
    p: Program,
    errors: Diagnostics,
    scopes: Scopes,
    line_starts: Vec<u32>,
    /// The number of resolved statements so far.
    n_stmts: u32,
    /// The id of the current statement, while its head is resolved.
    node: ast::NodeId,
    /// The expanded statements of the current block; `None` if the caller wants no expansion.
    written: Option<Vec<ast::Stmt>>,
    /// The expanded form of the current statement, if it differs.
    rewritten: Option<ast::StmtKind>,
    /// The names of all data tensors in the module; generated names differ from them.
    taken: HashSet<String>,
    /// Constants of `let` whose values as an integer and as a real number differ.
    constants: constants::Constants,
    /// Which elements of tensors exist.
    domains: domains::Domains,
    /// The executors of the enclosing bodies, as written.
    around: Vec<launch::Around>,
    /// The resolved executors of the enclosing bodies that have one.
    executing: Vec<crate::program::ThreadsId>,
    /// Tensors that results in the open blocks have declared.
    declared: Vec<declare::Declared>,
    /// Buffers that are read somewhere.
    read: HashSet<crate::program::BufferId>,
    /// Elements of tensors that are used as numbers.
    elements: Vec<elements::Known>,
    /// The counters in scope, in the order of their declarations.
    counters: Vec<counters::Counter>,
    /// The sub-specs.
    subspecs: subspecs::SubSpecs,
    /// Threads declared by heads of kernels.
    heads: launch::Heads,
    /// The number of open blocks.
    blocks: usize,
    /// Whether the last statement was a spec that needed expansion.
    spelled_out: bool,
    /// The number of enclosing specs; 0 at top level.
    depth: usize,
    /// Assumptions: differences that are at least zero here. They come from enclosing `if`s, and
    /// from loops and coordinates with symbolic extents.
    holds: Assumptions,
    /// The remaining budget of proofs.
    proofs: Cell<Budget>,
    /// The places of the usual values of symbols, in the order of [`Program::typical`].
    typical: Vec<Span>,
}

impl Resolver {
    fn new(src: &str) -> Self {
        let mut line_starts = vec![];
        if !src.is_empty() {
            line_starts.push(0);
            // A scan is fast enough: callers often resolve a small module with the text of a large
            // one.
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
                counters: HashMap::new(),
                starts: HashMap::new(),
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
            counters: vec![],
            subspecs: subspecs::SubSpecs::default(),
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
                        "this statement stands outside of every kernel",
                    )
                    .label("the top level contains only declarations and kernels")
                    .help("move it into the body of a spec"),
                ),
            }
        }
    }

    /// Resolves the statements of a block. Also returns the expanded block, if the caller wants it.
    fn block(&mut self, block: &ast::Block) -> (Vec<Stmt>, ast::Block) {
        self.scopes.enter();
        self.blocks += 1;
        let (outside, elements) = (self.holds.len(), self.elements.len());
        let counters = self.counters.len();
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
        self.counters.truncate(counters);
        self.unread(declared);
        self.blocks -= 1;
        self.scopes.leave();
        let stmts = match around {
            Some(around) => self.written.replace(around).unwrap_or_default(),
            None => vec![],
        };
        (out, ast::Block { stmts, footer: block.footer.clone() })
    }

    /// Resolves one statement, and appends its effects to `out`.
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
        // The first statement of the expansion keeps the comments.
        let first = self.written.as_mut().and_then(|w| w.get_mut(written));
        if let Some(first) = first.filter(|_| spelled_out(stmt, self.spelled_out)) {
            first.blank_above = stmt.blank_above;
            first.leading.clone_from(&stmt.leading);
            first.trailing.clone_from(&stmt.trailing);
        }
        if self.scopes.is_top()
            && !self.subspecs.comments.is_empty()
            && let Some(first) = self.written.as_mut().and_then(|w| w.get_mut(written))
        {
            // Comments of definitions above, which are not part of the expansion.
            first.leading.splice(0..0, self.subspecs.comments.drain(..));
        }
    }

    /// Resolves a statement, after expanding its short forms.
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
                        // The expanded statement has the same id; its comments are added later.
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

    /// Resolves a statement without short forms. Inserts Selects before a spec, if partial tiles
    /// require them.
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

    /// Resolves a statement without short forms.
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
                // An error does not prevent the definition of the following names.
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
            A::Counter { name, start } => self.counter(name, start, stmt.span).map(Some),
            A::Step { name, adds, value } => {
                self.step_counter(name, (*adds, value), stmt.span).map(Some)
            }
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
                fail(Diagnostic::new(Code::Internal, stmt.span, "a short form was not expanded"))
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
                let mut stepped = self.stepped_in(then);
                stepped.extend(otherwise.iter().flat_map(|b| self.stepped_in(b)));
                let before = self.counters_here();
                let (then, first) = self.block(then);
                self.holds.truncate(outside);
                let known = self.end_branch(known);
                self.return_to(&before);
                let other = otherwise.as_ref().map(|b| self.block(b));
                self.join_branches(&known);
                self.forget(&stepped, stmt.span)?;
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
        let ast::StmtKind::For { var, start, end, also, step, unroll, stages, body } = kind else {
            return fail(Diagnostic::new(Code::Internal, span, "expected a loop"));
        };
        let (bounds, unroll) = ((start, end, step), *unroll);
        let depth = match stages {
            None => 1,
            Some(e) => {
                let n = self.constant(e, "the number of stages")?;
                if !(1..=crate::limits::MAX_STAGES).contains(&n) {
                    return fail(
                        Diagnostic::new(Code::LoopStep, e.span, format!("a loop with {n} stages"))
                            .label(format!("not from 1 to {}", crate::limits::MAX_STAGES))
                            .help("write the number of iterations that may be in flight together"),
                    );
                }
                n
            }
        };
        let start = self.expr(bounds.0)?;
        let end = self.expr(bounds.1)?;
        let stepped = self.stepped_in(body);
        self.keeps_end(end, &stepped, bounds.1.span)?;
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
                .label("it may be any negative number")
                .help("start at a constant, a coordinate, or `max(0, ..)`"),
            );
        };
        let hi = self.p.arena.range(end).1.map(|h| h.saturating_sub(1).max(lo));
        // Every value is start + i·step, so this number divides it.
        let div = match start {
            Dim::Const(s) => crate::leaf::gcd(s, step),
            Dim::Expr(_) => 1,
        };
        let info = VarInfo { name: var.text.clone(), lo, hi, div: div.max(1) };
        let (dim, id) = self.variable(info, VarKind::Loop, span)?;
        if start.as_const().is_none() {
            self.p.starts.insert(id, start);
        }
        self.forget(&stepped, span)?;
        let before = self.counters_here();
        self.scopes.enter();
        let bound = self.bind(Sigil::Index, var, Binding::Index(dim));
        let outside = self.holds.len();
        let below = self.stays_below_end(dim, bounds.1);
        let further = also
            .iter()
            .map(|c| Ok((self.expr(&c.lhs)?, c.op, self.expr(&c.rhs)?)))
            .collect::<Fallible<Vec<_>>>();
        for (lhs, op, rhs) in further.iter().flatten() {
            self.assume(*lhs, *op, *rhs);
        }
        self.begin_loop(id);
        let (body, block) = self.block(body);
        let followed = self.end_loop();
        self.holds.truncate(outside);
        self.scopes.leave();
        // The counters have the values with which the loop has ended.
        self.return_to(&before);
        bound?;
        below?;
        followed?;
        if self.written.is_some()
            && let ast::StmtKind::For { var, start, end, also, step, unroll, stages, .. } = kind
        {
            self.rewritten = Some(ast::StmtKind::For {
                var: var.clone(),
                start: start.clone(),
                end: end.clone(),
                also: also.clone(),
                step: step.clone(),
                unroll: *unroll,
                stages: stages.clone(),
                body: block,
            });
        }
        let also = further?;
        Ok(StmtKind::For { var: id, start, end, also, step, unroll, stages: depth, body })
    }

    /// Creates a variable of the arena.
    fn variable(&mut self, info: VarInfo, kind: VarKind, span: Span) -> Fallible<(Dim, VarId)> {
        let dim = self.p.arena.var(info).map_err(|e| exprs::overflow(span, &e))?;
        let Some(id) = self.p.arena.var_id(dim) else {
            return fail(Diagnostic::new(Code::Internal, span, "expected a variable"));
        };
        self.p.vars.insert(id, kind);
        Ok((dim, id))
    }

    /// Binds a name to the result of a definition, which may have failed.
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
                .help("choose another name for one of them: a name cannot hide one in scope"),
            ),
        }
    }
}

/// Whether the first statement of the expansion takes the comments of a statement.
fn spelled_out(stmt: &ast::Stmt, spec: bool) -> bool {
    spec || matches!(stmt.kind, ast::StmtKind::Assign { .. } | ast::StmtKind::Call(_))
}

/// The names of all data tensors in a module.
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
