//! Completes the executor of each spec, the blocks and threads that execute it: declared by the
//! head of a kernel (`<<<#grid:[..], #cta:[128]>>>`), inherited from the enclosing spec, or a part
//! of the inherited threads (`<<<#one>>>`). It also finds the one group of threads that executes a
//! body, and so holds a register tensor with an open layout.

use super::scope::Sigil;
use super::{Fallible, Resolver, fail};
use crate::ast::visit::Walk;
use crate::ast::{self, Exec as Written, Group, Substitution, ThreadScalar, View};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::program::{Stmt, ThreadsId};
use crate::span::Span;
use std::collections::HashSet;

/// The executor of a body.
pub(super) struct Around {
    pub(super) blocks: View,
    pub(super) threads: View,
}

/// Names of threads that heads of kernels declare. Each is in scope only in its kernel.
#[derive(Default)]
pub(super) struct Heads {
    /// The names declared by the current kernel.
    open: Vec<String>,
    /// The thread names in the expanded module. In this module, all names are in scope in all later
    /// kernels, so they must differ.
    taken: HashSet<String>,
}

impl Heads {
    /// Collects the thread names of a module.
    pub(super) fn of(module: &ast::Module) -> Self {
        let mut heads = Heads::default();
        for stmt in Walk::new(&module.items).stmts() {
            if let ast::StmtKind::ThreadDecl { name, .. } | ast::StmtKind::ThreadDef { name, .. } =
                &stmt.kind
            {
                heads.taken.insert(name.text.clone());
            }
        }
        heads
    }
}

impl Resolver {
    /// Removes the threads that a kernel's head declared from the scope. If their names are taken
    /// in the expanded module, renames them there, from statement number `at` on.
    pub(super) fn leave_head(&mut self, at: usize) {
        if self.depth > 0 {
            return;
        }
        let mut by = Substitution { budget: usize::MAX, ..Substitution::default() };
        for name in std::mem::take(&mut self.heads.open) {
            self.scopes.unbind(Sigil::Thread, &name);
            let mut free = name.clone();
            let mut n = 2;
            while !self.heads.taken.insert(free.clone()) {
                free = format!("{name}_{n}");
                n += 1;
            }
            if free != name {
                by.threads.insert(name, free);
            }
        }
        if let Some(written) = self.written.as_mut().filter(|_| !by.threads.is_empty()) {
            // The substitution replaces names by names, so it cannot fail.
            let _ = by.in_place(written.get_mut(at..).unwrap_or_default());
        }
    }

    /// The complete executor of a spec that inherits a part of it. `None` if the spec states its
    /// executor completely, or if there is no executor to inherit.
    pub(super) fn executors(&mut self, spec: &ast::Spec) -> Fallible<Option<Written>> {
        let around = self.around.last().map(|a| (a.blocks.clone(), a.threads.clone()));
        match (&spec.exec, around) {
            (None, Some((blocks, threads))) if self.depth > 0 => {
                Ok(Some(Written::Both(blocks, threads)))
            }
            (Some(Written::Threads(of)), Some((blocks, threads))) if self.depth > 0 => {
                let id = self.thread_view(of)?;
                Ok(Some(match self.p.threads[id].scalar {
                    ThreadScalar::Thread => Written::Both(blocks, of.clone()),
                    ThreadScalar::Block => Written::Both(of.clone(), threads),
                }))
            }
            (Some(Written::Threads(of)), _) => fail(
                Diagnostic::new(Code::ExecConfig, of.span, "a kernel has threads, but no blocks")
                    .label("found one thread tensor")
                    .help("write `<<<#grid, #cta>>>`, or `<<<#grid:[8], #cta:[128]>>>`"),
            ),
            _ => Ok(None),
        }
    }

    /// Whether each thread executes the enclosing body by itself.
    pub(super) fn is_single(&mut self) -> Fallible<bool> {
        let Some(threads) = self.around.last().map(|a| a.threads.clone()) else { return Ok(false) };
        let id = self.thread_view(&threads)?;
        let t = &self.p.threads[id];
        Ok(t.each.is_some() || t.elect.is_some() || t.levels.is_empty())
    }

    /// The part of the block that executes the enclosing body, and therefore holds a tensor with an
    /// open layout. `None` if the whole block executes it.
    ///
    /// # Errors
    /// V0216 if several groups execute the body, each for itself.
    pub(super) fn one_group(&mut self, name: &ast::Name) -> Fallible<Option<ThreadsId>> {
        let Some(threads) = self.around.last().map(|a| a.threads.clone()) else { return Ok(None) };
        let id = self.thread_view(&threads)?;
        let over = threads.base.text.clone();
        let size = |levels: &[Layout<Dim>]| {
            levels.iter().try_fold(1i64, |n, level| {
                let own = level.size_in(&self.p.arena).ok()?.as_const()?;
                n.checked_mul(own)
            })
        };
        let t = &self.p.threads[id];
        let [outer @ .., group] = &t.levels[..] else { return Ok(None) };
        let whole = size(&self.p.threads[t.root].levels);
        let (groups, threads) = (size(outer), size(std::slice::from_ref(group)));
        if t.each.is_some() || t.elect.is_some() || threads == whole {
            return Ok(None);
        }
        if groups != Some(1) {
            return fail(
                Diagnostic::new(
                    Code::OpenLayout,
                    name.span,
                    format!("several groups of threads would each hold `%{}`", name.text),
                )
                .label("each group executes the body for itself")
                .help(match (groups, threads) {
                    (Some(groups), Some(threads)) => format!(
                        "launch a block for each group, with `#cta:[{threads}]` and {groups} times \
                         the blocks, and remove the groups from the body; or state the layout, \
                         `RF{{tv=(..):(..) over #{over}}}`"
                    ),
                    _ => "launch a block for each group, or state the layout, \
                          `RF{tv=(..):(..) over #w}`"
                        .to_owned(),
                }),
            );
        }
        Ok((groups == Some(1)).then_some(id))
    }

    /// Declares the threads of a kernel's head. Returns the spec with the declared threads as
    /// executors, and with a body that first binds the names of coordinates.
    pub(super) fn launched(
        &mut self,
        stmt: &ast::Stmt,
        spec: &ast::Spec,
        launch: &ast::Launch,
        out: &mut Vec<Stmt>,
    ) -> Fallible<ast::Spec> {
        if self.depth > 0 {
            return fail(
                Diagnostic::new(Code::ExecConfig, spec.span, "a spec in a body declares threads")
                    .label("only the head of a kernel declares threads")
                    .help("make views of the kernel's threads: `#w = #cta.tile([32])`"),
            );
        }
        let mut views = vec![];
        let mut coordinates = vec![];
        let groups =
            [(&launch.blocks, ThreadScalar::Block), (&launch.threads, ThreadScalar::Thread)];
        for (group, scalar) in groups {
            let (name, modes) = match group {
                Group::Of(view) => {
                    views.push(view.clone());
                    continue;
                }
                Group::New { name, modes } => (name, modes),
            };
            let ty = ast::ThreadType {
                levels: vec![first_fastest(modes, name.span)],
                scalar,
                span: name.span,
            };
            let kind = ast::StmtKind::ThreadDecl { name: name.clone(), ty };
            self.plain(&ast::Stmt::derived(kind, stmt), out)?;
            self.heads.open.push(name.text.clone());
            let view = View { base: name.clone(), ops: vec![], span: name.span };
            if modes.iter().any(|(index, _)| index.is_some()) {
                let names = modes.iter().enumerate().map(|(i, (index, _))| match index {
                    Some(index) => index.clone(),
                    None => ast::Name { text: format!("@{}_{i}", name.text), span: name.span },
                });
                let kind = ast::StmtKind::Indices { names: names.collect(), threads: view.clone() };
                coordinates.push(ast::Stmt::derived(kind, stmt));
            }
            views.push(view);
        }
        let mut spec = spec.clone();
        let (Some(threads), Some(blocks)) = (views.pop(), views.pop()) else {
            return fail(Diagnostic::new(Code::Internal, spec.span, "expected two groups"));
        };
        spec.exec = Some(Written::Both(blocks, threads));
        if let Some(body) = &mut spec.body {
            if let Some(first) = body.stmts.first_mut() {
                first.blank_above &= coordinates.is_empty();
            }
            let stmts = std::mem::take(&mut body.stmts);
            body.stmts = coordinates.into_iter().chain(stmts).collect();
        }
        Ok(spec)
    }
}

/// Modes with compact strides; the first mode varies fastest.
fn first_fastest(modes: &[(Option<ast::Name>, ast::Expr)], span: Span) -> ast::Dims {
    use ast::{BinOp, Expr, TupleExpr};
    let mut strides = vec![Expr::int(1)];
    for (i, (_, extent)) in modes.iter().enumerate().take(modes.len().saturating_sub(1)) {
        let inner = strides.last().cloned().filter(|_| i > 0);
        strides.push(match inner {
            None => extent.clone(),
            Some(inner) => Expr::bin(BinOp::Mul, inner, extent.clone()),
        });
    }
    ast::Dims {
        modes: modes.iter().map(|(_, extent)| TupleExpr::Leaf(extent.clone())).collect(),
        strides: (modes.len() > 1).then(|| strides.into_iter().map(TupleExpr::Leaf).collect()),
        span,
    }
}
