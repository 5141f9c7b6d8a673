//! Declarations and views of thread tensors, and what the executing thread is in them.

use super::exprs::{base, overflow, refused};
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, ThreadScalar, ThreadType, ViewOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, VarInfo};
use crate::leaf::Leaf;
use crate::limits;
use crate::program::{StmtKind, Threads, ThreadsId, VarKind};
use crate::span::Span;

impl Resolver {
    pub(super) fn thread_decl(&mut self, name: &ast::Name, ty: &ThreadType) -> Fallible<ThreadsId> {
        if self.depth > 0 {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    ty.span,
                    format!("`#{}` is declared inside a body", name.text),
                )
                .help("declare it at the top; a body makes views of declared thread tensors"),
            );
        }
        for dims in &ty.levels {
            if dims.strides.is_none() && dims.modes.len() > 1 {
                return fail(
                    Diagnostic::new(
                        Code::ThreadLayout,
                        dims.span,
                        "a thread tensor of several modes states its strides",
                    )
                    .label(format!("{} modes, and no strides", dims.modes.len()))
                    .help("write `[(2,4):(1,2)]` for first mode fastest, `[(2,4):(4,1)]` for last"),
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
                        "`#{}` does not hold every index below {} once",
                        name.text,
                        cx.display(n)
                    ),
                )
                .label("some are missing, or there twice")
                .help("declare it compact, like `[(4,8):(1,4)]`, and tile it for subsets"),
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
                    ThreadScalar::Thread => "take fewer threads, and give each more elements",
                    ThreadScalar::Block => "take fewer blocks, and give each more work",
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
                            "`#{}` is written as {}s, the view has {}s",
                            name.text, ty.scalar, t.scalar
                        ),
                    )
                    .help("correct the written type, or leave it out"),
                );
            }
            let levels: &[_] = if t.each.is_some() { &[] } else { &t.levels };
            self.check_levels(&ty.levels, levels, ty.span, &format!("#{}", name.text))?;
        }
        t.name = Some(name.text.clone());
        Ok(self.p.threads.push(t))
    }

    /// A thread tensor used in place.
    pub(super) fn thread_view(&mut self, view: &ast::View) -> Fallible<ThreadsId> {
        if view.ops.is_empty() {
            return self.threads_named(&view.base);
        }
        let t = self.thread_view_value(view)?;
        Ok(self.p.threads.push(t))
    }

    pub(super) fn threads_named(&self, name: &ast::Name) -> Fallible<ThreadsId> {
        match self.scopes.get(Sigil::Thread, &name.text) {
            Some(Binding::Threads(id)) => Ok(id),
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
                        "a single thread has no modes to take apart",
                    )
                    .help("apply the operation before `.scalar()`"),
                );
            }
            match op {
                ViewOp::Tile(tiler) => {
                    let level = self.outermost(&t.levels, span)?.clone();
                    let (rest, tile) = self.tile(&level, tiler, span)?;
                    t.levels.splice(0..1, [rest, tile]);
                }
                ViewOp::Reshape(l) => {
                    let level = self.outermost(&t.levels, span)?.clone();
                    t.levels[0] = self.reshape(&level, l)?;
                }
                ViewOp::Index(args) => {
                    let (offset, kept) = self.index(t.levels.first(), args, span)?;
                    t.offset = Dim::add(&self.p.arena, t.offset, offset)
                        .map_err(|e| overflow(span, &e))?;
                    match kept {
                        Some(level) => t.levels[0] = level,
                        None => drop(t.levels.splice(0..usize::from(!t.levels.is_empty()), [])),
                    }
                }
                ViewOp::Scalar => {
                    let each = self.p.threads.push(t.clone());
                    t.each = Some(each);
                }
                ViewOp::Elect => {
                    if t.scalar != ThreadScalar::Thread || t.levels.is_empty() {
                        return fail(
                            Diagnostic::new(
                                Code::ThreadLayout,
                                span,
                                "only of a group of threads one is elected",
                            )
                            .label("this is no group of threads")
                            .help("elect of a warp: `#cta.tile([32])[0].elect()`"),
                        );
                    }
                    t.elect = Some(self.p.threads.push(t.clone()));
                    t.levels.pop();
                    t.each = Some(self.p.threads.push(t.clone()));
                }
                ViewOp::Permute(order) => {
                    let level = self.outermost(&t.levels, span)?.clone();
                    t.levels[0] = self.permuted(&level, order, span)?;
                }
                ViewOp::Mine
                | ViewOp::Tv(..)
                | ViewOp::Peer(_)
                | ViewOp::TensorMap { .. }
                | ViewOp::Iota(_)
                | ViewOp::Pick(_) => {
                    return fail(
                        Diagnostic::new(
                            Code::Placement,
                            span,
                            "the operation belongs to data tensors",
                        )
                        .label("this is a tensor of threads")
                        .help("tile, reshape or index it, or name a data tensor `%A`"),
                    );
                }
            }
        }
        self.check_joined(&t.levels, span)?;
        Ok(t)
    }

    /// Binds the executing thread's coordinates in the outermost level.
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
        let rank = t.levels.first().map_or(0, |l| l.rank());
        if rank != n || t.each.is_some() {
            return fail(
                Diagnostic::new(Code::WrongRank, span, format!("{n} names for {rank} modes"))
                    .label(match t.levels.first() {
                        Some(level) => {
                            format!("the outermost level is {}", level.display_in(&self.p.arena))
                        }
                        None => "it is a single thread".to_owned(),
                    })
                    .help("give one name a mode of the outermost level"),
            );
        }
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let me = Dim::sub(cx, t.index, t.offset).map_err(e)?;
        let mut out = vec![];
        for mode in t.levels[0].modes() {
            let position = self.mode_position(&mode, me, span)?;
            out.push((position, mode.size_in(cx).map_err(e)?));
        }
        Ok(out)
    }

    /// The column-major index of the executing thread among the threads of `id`.
    pub(super) fn position(&self, id: ThreadsId, span: Span) -> Fallible<Dim> {
        let t = &self.p.threads[id];
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let me = Dim::sub(cx, t.index, t.offset).map_err(e)?;
        self.mode_position(&t.concat(), me, span)
    }

    /// Σ over leaves n:s of ((me / s) % n) times the leaf's column-major stride. Right where the threads
    /// of the enclosing tensor are numbered by a compact layout, which the verifier checks by counting.
    fn mode_position(
        &self,
        mode: &crate::layout::Layout<Dim>,
        me: Dim,
        span: Span,
    ) -> Fallible<Dim> {
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(span, &e);
        let (mut sum, mut next) = (Dim::Const(0), Dim::Const(1));
        for (n, s) in mode.shape().flatten().into_iter().zip(mode.stride().flatten()) {
            if n == Dim::Const(1) {
                continue;
            }
            if s == Dim::Const(0) {
                return fail(
                    Diagnostic::new(Code::ThreadLayout, span, "two coordinates name one thread")
                        .label(format!("the mode {} has a stride of 0", mode.display_in(cx)))
                        .help("give every mode of a thread tensor a stride of its own"),
                );
            }
            let c = Dim::rem(cx, Dim::div(cx, me, s).map_err(e)?, n).map_err(e)?;
            sum = Dim::add(cx, sum, Dim::mul(cx, c, next).map_err(e)?).map_err(e)?;
            next = Dim::mul(cx, next, n).map_err(e)?;
        }
        Ok(sum)
    }

    pub(super) fn thread_count(&self, id: ThreadsId, span: Span) -> Fallible<Dim> {
        self.p.threads[id].concat().size_in(&self.p.arena).map_err(|e| overflow(span, &e))
    }
}
