//! Resolves declarations and views of thread tensors, such as `#cta.tile([32])`, and the
//! coordinates of the executing thread in them, `#cta.indices()`.

use super::exprs::{base, overflow, refused};
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, ThreadScalar, ThreadType, TupleExpr, ViewOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, Node, VarInfo};
use crate::layout::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::limits;
use crate::program::{StmtKind, Threads, ThreadsId, VarKind};
use crate::span::Span;
use crate::text::print_number;

impl Resolver {
    pub(super) fn thread_decl(&mut self, name: &ast::Name, ty: &ThreadType) -> Fallible<ThreadsId> {
        if self.depth > 0 {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    ty.span,
                    format!("`#{}` is declared inside a body", name.text),
                )
                .help("declare it at the top; bodies use views of declared thread tensors"),
            );
        }
        for dims in &ty.levels {
            if dims.strides.is_none() && dims.modes.len() > 1 {
                return fail(
                    Diagnostic::new(
                        Code::ThreadLayout,
                        dims.span,
                        "a thread tensor with several modes has no strides",
                    )
                    .label(format!("{} modes without strides", dims.modes.len()))
                    .help(match &dims.modes[..] {
                        [TupleExpr::Leaf(a), TupleExpr::Leaf(b)] => {
                            let (a, b) = (print_number(a), print_number(b));
                            format!(
                                "write `[({a},{b}):(1,{a})]` for first mode fastest, \
                                 `[({a},{b}):({b},1)]` for last"
                            )
                        }
                        _ => "write strides, such as `[(2,4,8):(1,2,8)]` for first mode fastest"
                            .to_owned(),
                    }),
                );
            }
        }
        let mut levels = self.declared_levels(&ty.levels)?;
        levels.retain(|l| l.rank() > 0);
        self.check_joined(&levels, ty.span)?;
        let root = ThreadsId::from(self.p.threads.len());
        let mut threads = Threads {
            name: Some(name.text.clone()),
            root,
            scalar: ty.scalar,
            levels,
            own: 0,
            own_number: Dim::Const(0),
            offset: Dim::Const(0),
            each: None,
            elect: None,
            var: None,
            index: Dim::Const(0),
            span: ty.span,
        };
        let cx = &self.p.arena;
        let whole = threads.concat();
        let n = whole.size_in(cx).map_err(|e| overflow(ty.span, &e))?;
        let covers = match whole.to_fixed() {
            Some(l) => l.is_bijective_onto(l.size()),
            None => true, // Checked again when the symbols are known.
        };
        if !covers {
            return fail(
                Diagnostic::new(
                    Code::ThreadLayout,
                    ty.span,
                    format!(
                        "`#{}` does not contain every index below {} exactly once",
                        name.text,
                        cx.display(n)
                    ),
                )
                .label("some indices are missing or repeated")
                .help("declare it compact, such as `[(4,8):(1,4)]`, and tile it for subsets"),
            );
        }
        let cap = match ty.scalar {
            ThreadScalar::Thread => limits::MAX_BLOCK_THREADS,
            ThreadScalar::Block => i64::from(i32::MAX),
        };
        let hi = self.p.arena.range(n).1;
        if hi.is_some_and(|h| h > cap) {
            return fail(
                Diagnostic::new(
                    Code::TooManyThreads,
                    ty.span,
                    format!("`#{}` has {} {}s", name.text, self.p.arena.display(n), ty.scalar),
                )
                .label(format!("at most {cap}"))
                .help(match ty.scalar {
                    ThreadScalar::Thread => "use fewer threads, and give each more elements",
                    ThreadScalar::Block => "use fewer blocks, and give each more work",
                }),
            );
        }
        let (var, kind) = match ty.scalar {
            ThreadScalar::Thread => ("threadIdx.x", VarKind::Thread(root)),
            ThreadScalar::Block => ("blockIdx.x", VarKind::Block(root)),
        };
        let info = VarInfo {
            name: var.to_owned(),
            lo: 0,
            hi: Some(hi.map_or(cap, |h| h.min(cap)) - 1),
            div: 1,
        };
        let (index, var) = self.variable(info, kind, ty.span)?;
        (threads.index, threads.var) = (index, Some(var));
        Ok(self.p.threads.push(threads))
    }

    pub(super) fn thread_def(
        &mut self,
        name: &ast::Name,
        ty: Option<&ThreadType>,
        view: &ast::View,
    ) -> Fallible<ThreadsId> {
        let mut t = self.thread_view_value(view)?;
        if let Some(ty) = ty {
            if ty.scalar != t.scalar {
                return fail(
                    Diagnostic::new(
                        Code::TypeMismatch,
                        ty.span,
                        format!(
                            "`#{}` is declared as {}s, the view has {}s",
                            name.text, ty.scalar, t.scalar
                        ),
                    )
                    .help("correct or remove the stated type"),
                );
            }
            let levels: &[_] = if t.each.is_some() { &[] } else { t.inner() };
            self.check_levels(&ty.levels, levels, ty.span, &format!("#{}", name.text))?;
        }
        t.name = Some(name.text.clone());
        Ok(self.p.threads.push(t))
    }

    /// A thread tensor as an operand.
    pub(super) fn thread_view(&mut self, view: &ast::View) -> Fallible<ThreadsId> {
        if view.ops.is_empty() {
            return self.threads_named(&view.base);
        }
        let t = self.thread_view_value(view)?;
        Ok(self.p.threads.push(t))
    }

    pub(super) fn threads_named(&self, name: &ast::Name) -> Fallible<ThreadsId> {
        match self.scopes.get(Sigil::Thread, &name.text) {
            Some(Binding::Threads(id)) => {
                let of = &self.p.threads[id];
                let (dims, of) = ([of.offset, of.own_number], format_args!("#{}", name.text));
                self.is_current(dims.into_iter(), of, name.span).map(|()| id)
            }
            Some(_) => Err(Box::new(self.silent(name.span))),
            None => Err(self.unknown(Sigil::Thread, &name.text, name.span)),
        }
    }

    fn thread_view_value(&mut self, view: &ast::View) -> Fallible<Threads> {
        let (name, span) = base(view);
        let id = self.threads_named(&ast::Name { text: name.to_owned(), span })?;
        let mut t = self.p.threads[id].clone();
        t.name = None;
        t.span = view.span;
        let span = view.span;
        for op in &view.ops {
            if t.each.is_some() {
                return fail(
                    Diagnostic::new(
                        Code::WrongRank,
                        span,
                        "an operation on a single thread, which has no modes",
                    )
                    .help("apply the operation before `.scalar()`"),
                );
            }
            match op {
                ViewOp::Tile(tiler) => {
                    let level = self.outermost(t.inner(), span)?.clone();
                    let (rest, tile) = self.tile(&level, tiler, false, span)?;
                    t.levels.splice(t.own..=t.own, [rest, tile]);
                }
                ViewOp::Reshape(l) => {
                    let level = self.outermost(t.inner(), span)?.clone();
                    t.levels[t.own] = self.reshape(&level, l)?;
                }
                ViewOp::Index(args) => {
                    let pick = |e: &Option<ast::Expr>| match e {
                        Some(e) => ast::Pick::At(e.clone()),
                        None => ast::Pick::Keep,
                    };
                    let picks: Vec<ast::Pick> = args.iter().map(pick).collect();
                    self.pick_threads(&mut t, &picks, span)?;
                }
                ViewOp::Pick(picks) => self.pick_threads(&mut t, picks, span)?,
                ViewOp::Scalar => {
                    let each = self.p.threads.push(t.clone());
                    t.each = Some(each);
                }
                ViewOp::Elect => {
                    if t.scalar != ThreadScalar::Thread || t.inner().is_empty() {
                        return fail(
                            Diagnostic::new(
                                Code::ThreadLayout,
                                span,
                                "`.elect()` of a tensor that is not a group of threads",
                            )
                            .label("only a group of threads has an elected thread")
                            .help("elect of a warp: `#cta.tile([32])[0].elect()`"),
                        );
                    }
                    t.elect = Some(self.p.threads.push(t.clone()));
                    t.levels.pop();
                    t.each = Some(self.p.threads.push(t.clone()));
                }
                ViewOp::Permute(order) => {
                    let level = self.outermost(t.inner(), span)?.clone();
                    t.levels[t.own] = self.permuted(&level, order, span)?;
                }
                ViewOp::Mine
                | ViewOp::Tv(..)
                | ViewOp::Peer(_)
                | ViewOp::TensorMap { .. }
                | ViewOp::Iota(_)
                | ViewOp::Pad(_)
                | ViewOp::Plus(_) => {
                    return fail(
                        Diagnostic::new(
                            Code::Placement,
                            span,
                            "the operation applies to data tensors only",
                        )
                        .label("this is a thread tensor")
                        .help("tile, reshape or index it, or name a data tensor `%A`"),
                    );
                }
            }
        }
        self.check_joined(&t.levels, span)?;
        Ok(t)
    }

    /// Applies `[2]`, `[0..32]` or `[@w]` to a thread tensor: a part of it, or the part that
    /// contains the executing thread.
    fn pick_threads(&mut self, t: &mut Threads, picks: &[ast::Pick], span: Span) -> Fallible<()> {
        if let Some(ast::Pick::From(name)) = picks.iter().find(|p| matches!(p, ast::Pick::From(_)))
        {
            return fail(
                Diagnostic::new(Code::Placement, name.span, "a data tensor selects threads")
                    .label("the executor must be known at compile time")
                    .help("select threads by numbers, ranges and coordinates"),
            );
        }
        let level = t.inner().first().cloned();
        let modes = level.as_ref().map_or(vec![], Layout::modes);
        let threads = t.scalar == ThreadScalar::Thread;
        let mut rest = picks.to_vec();
        let mut own = vec![];
        for ((pick, mode), i) in rest.iter_mut().zip(&modes).zip(0usize..).filter(|_| threads) {
            let ast::Pick::At(e) = &*pick else { continue };
            let at = self.expr(e)?;
            if !self.p.thread_dependent(at) {
                continue;
            }
            if !self.is_own(at, mode, t) {
                return Err(others(e.span));
            }
            *pick = ast::Pick::Keep;
            own.push((i, at));
        }
        let (offset, entries) = self.entries(level.as_ref(), &rest, span)?;
        if threads && self.p.thread_dependent(offset) {
            return Err(others(span));
        }
        t.offset = Dim::add(&self.p.arena, t.offset, offset).map_err(|e| overflow(span, &e))?;
        let kept = rest.iter().zip(0usize..).filter(|(p, _)| !matches!(p, ast::Pick::At(_)));
        let (mut mine, mut left) = (vec![], vec![]);
        let cx = &self.p.arena;
        let e = |err: LayoutError| overflow(span, &err);
        let chosen = crate::program::concat_levels(&t.levels[..t.own]);
        let mut groups = chosen.size_in(cx).map_err(e)?;
        for ((_, i), (mode, _)) in kept.zip(entries) {
            match own.iter().find(|(own, _)| *own == i) {
                Some((_, at)) => {
                    let step = Dim::mul(cx, *at, groups).map_err(e)?;
                    t.own_number = Dim::add(cx, t.own_number, step).map_err(e)?;
                    groups = Dim::mul(cx, groups, mode.size_in(cx).map_err(e)?).map_err(e)?;
                    mine.push(mode);
                }
                None => left.push(mode),
            }
        }
        let at = t.own;
        let mut levels = vec![];
        if !mine.is_empty() {
            levels.push(self.joined(&mine, span)?);
            t.own += 1;
        }
        if !left.is_empty() {
            levels.push(self.joined(&left, span)?);
        }
        t.levels.splice(at..(at + 1).min(t.levels.len()), levels);
        // A selection down to the executing thread itself, like `.scalar()`.
        if t.own > 0 && t.inner().is_empty() {
            t.each = Some(self.p.threads.push(t.clone()));
        }
        Ok(())
    }

    /// Refuses executors that depend on the executing thread through a counter: on which variables
    /// a counter depends is known only after the last step.
    pub(super) fn check_executors(&mut self) {
        let own = self.p.threads.iter().filter(|(_, t)| t.scalar == ThreadScalar::Thread);
        let mut spans: Vec<Span> =
            own.filter(|(_, t)| self.p.thread_dependent(t.offset)).map(|(_, t)| t.span).collect();
        spans.dedup();
        spans.into_iter().for_each(|span| self.errors.push(*others(span)));
    }

    /// Whether an index is the executing thread's own coordinate in a mode of a thread tensor, for
    /// all threads.
    fn is_own(&self, at: Dim, mode: &Layout<Dim>, t: &Threads) -> bool {
        let cx = &self.p.arena;
        let own = || -> Option<bool> {
            let me = Dim::sub(cx, t.index, t.offset).ok()?;
            let own = self.p.unfolded(self.mode_position(mode, me, t.span).ok()?).ok()?;
            let at = self.p.unfolded(at).ok()?;
            if own == at {
                return Some(true);
            }
            let alone = |d: Dim| self.p.vars_in(d).iter().all(|v| Some(*v) == t.var);
            if !alone(own) || !alone(at) {
                return Some(false);
            }
            let first = t.offset.as_const()?;
            let all = t.concat().to_fixed().filter(|l| l.size() <= limits::MAX_BLOCK_THREADS)?;
            let around = self.executing.last().map(|id| &self.p.threads[*id]);
            let here = around.and_then(|t| t.groups_below(0)).and_then(|mut g| g.pop());
            let is = |x: i64| {
                if here.as_ref().is_some_and(|here| !here.contains(&x)) {
                    return true;
                }
                let value = |d: Dim| cx.eval(d, &|_| Some(x)).ok();
                value(own).is_some_and(|v| value(at) == Some(v))
            };
            Some((0..all.size()).all(|i| is(first.saturating_add(all.at(i)))))
        };
        own().unwrap_or(false)
    }

    /// Binds names to the executing thread's coordinates in the outermost level.
    pub(super) fn indices(
        &mut self,
        names: &[ast::Name],
        view: &ast::View,
        span: Span,
    ) -> Fallible<StmtKind> {
        let coordinates = self.coordinates(names.len(), view, span);
        let mut vars = vec![];
        let mut failure = None;
        for (i, name) in names.iter().enumerate() {
            let bound = match &coordinates {
                Ok(cs) => {
                    let (def, size) = cs[i];
                    let hi = self.p.arena.range(size).1.map(|s| s - 1);
                    let info = VarInfo { name: name.text.clone(), lo: 0, hi, div: 1 };
                    let (dim, id) = self.variable(info, VarKind::Index(def), span)?;
                    vars.push(id);
                    self.stays_below(dim, size);
                    Binding::Index(dim)
                }
                Err(_) => Binding::Broken,
            };
            if let Err(e) = self.bind(Sigil::Index, name, bound) {
                failure.get_or_insert(e);
            }
        }
        coordinates?;
        match failure {
            Some(e) => Err(e),
            None => Ok(StmtKind::Indices(vars)),
        }
    }

    /// Coordinate and extent of each mode of the outermost level.
    fn coordinates(&mut self, n: usize, view: &ast::View, span: Span) -> Fallible<Vec<(Dim, Dim)>> {
        let id = self.thread_view(view)?;
        let t = self.p.threads[id].clone();
        let outermost = t.inner().first();
        let rank = outermost.map_or(0, |l| l.rank());
        if rank != n || t.each.is_some() {
            return fail(
                Diagnostic::new(Code::WrongRank, span, format!("{n} names for {rank} modes"))
                    .label(match outermost {
                        Some(level) => {
                            format!("the outermost level is {}", level.display_in(&self.p.arena))
                        }
                        None => "it is a single thread".to_owned(),
                    })
                    .help("write one name for each mode of the outermost level"),
            );
        }
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let me = Dim::sub(cx, t.index, t.offset).map_err(e)?;
        let mut out = vec![];
        for mode in outermost.map_or(vec![], Layout::modes) {
            let position = self.mode_position(&mode, me, span)?;
            let position = self.where_executed(position, &t).unwrap_or(position);
            out.push((position, mode.size_in(cx).map_err(e)?));
        }
        Ok(out)
    }

    /// The column-major index of the executing thread in the thread tensor `id`.
    pub(super) fn position(&self, id: ThreadsId, span: Span) -> Fallible<Dim> {
        let t = &self.p.threads[id];
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let me = Dim::sub(cx, t.index, t.offset).map_err(e)?;
        self.mode_position(&crate::program::concat_levels(t.inner()), me, span)
    }

    /// A simpler coordinate, without its remainder, if this is equal for all threads that execute
    /// the enclosing body. This is sound because only these threads use the coordinate's name.
    fn where_executed(&self, position: Dim, t: &Threads) -> Option<Dim> {
        let cx = &self.p.arena;
        let Dim::Expr(id) = position else { return None };
        let Node::Mod(simple, Dim::Const(n)) = cx.node(id) else { return None };
        // A remainder rounds down; the constant `low` replaces it.
        let around = &self.p.threads[*self.executing.last()?];
        let first = around.offset.as_const().filter(|_| around.root == t.root)?;
        let all = around.concat().to_fixed().filter(|l| l.size() <= limits::MAX_BLOCK_THREADS)?;
        let var = t.var?;
        let value = |x: i64| cx.eval(simple, &|v| (v == var).then_some(x)).ok();
        let turns = value(first.saturating_add(all.at(0)))?.div_euclid(n);
        let low = turns.checked_mul(n)?;
        let stays = |i: i64| {
            let v = value(first.saturating_add(all.at(i)))?.checked_sub(low)?;
            (0..n).contains(&v).then_some(())
        };
        (0..all.size()).try_for_each(stays)?;
        Dim::sub(cx, simple, Dim::Const(low)).ok()
    }

    /// Σ over leaves n:s of ((me / s) % n) times the leaf's column-major stride. This is correct if
    /// a compact layout numbers the threads of the enclosing tensor, which the verifier checks by
    /// enumeration.
    fn mode_position(&self, mode: &Layout<Dim>, me: Dim, span: Span) -> Fallible<Dim> {
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let (mut sum, mut next) = (Dim::Const(0), Dim::Const(1));
        for (n, s) in mode.shape().flatten().into_iter().zip(mode.stride().flatten()) {
            if n == Dim::Const(1) {
                continue;
            }
            if s == Dim::Const(0) {
                return fail(
                    Diagnostic::new(
                        Code::ThreadLayout,
                        span,
                        "two coordinates are the same thread",
                    )
                    .label(format!("the mode {} has a stride of 0", mode.display_in(cx)))
                    .help("give every mode of a thread tensor its own nonzero stride"),
                );
            }
            let c = Dim::rem(cx, Dim::div(cx, me, s).map_err(e)?, n).map_err(e)?;
            sum = Dim::add(cx, sum, Dim::mul(cx, c, next).map_err(e)?).map_err(e)?;
            next = Dim::mul(cx, next, n).map_err(e)?;
        }
        Ok(sum)
    }

    pub(super) fn thread_count(&self, id: ThreadsId, span: Span) -> Fallible<Dim> {
        crate::program::concat_levels(self.p.threads[id].inner())
            .size_in(&self.p.arena)
            .map_err(|e| overflow(span, &e))
    }
}

/// The error for an index of a thread tensor that differs between threads and is not the thread's
/// own coordinate.
fn others(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            Code::ThreadLayout,
            span,
            "the selected threads depend on the executing thread",
        )
        .label("not the coordinate of the executing thread in this mode")
        .help("select the thread's own group, `#w[@w]` with `@w = #w.indices()`, or a number"),
    )
}
