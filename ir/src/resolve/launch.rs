//! Who executes a spec: what is inherited, narrowed, or declared by the head of a kernel.

use super::{Fallible, Resolver, fail};
use crate::ast::{self, Exec as Written, Group, ThreadScalar, View};
use crate::diag::{Code, Diagnostic};
use crate::program::{Exec, Stmt};
use crate::span::Span;

/// Who executes a body.
pub(super) struct Around {
    pub(super) blocks: View,
    pub(super) threads: View,
    pub(super) exec: Exec,
}

impl Resolver {
    /// The executors of a spec, both written; none where they are, or where there are none to inherit.
    pub(super) fn executors(&mut self, spec: &ast::Spec) -> Fallible<Option<Written>> {
        let around = self.around.last().map(|a| (a.blocks.clone(), a.threads.clone(), a.exec));
        match (&spec.exec, around) {
            (None, Some((blocks, threads, _))) if self.depth > 0 => {
                Ok(Some(Written::Both(blocks, threads)))
            }
            (Some(Written::Threads(of)), Some((blocks, threads, _))) if self.depth > 0 => {
                let id = self.thread_view(of)?;
                Ok(Some(match self.p.threads[id].scalar {
                    ThreadScalar::Thread => Written::Both(blocks, of.clone()),
                    ThreadScalar::Block => Written::Both(of.clone(), threads),
                }))
            }
            (Some(Written::Threads(of)), _) => fail(
                Diagnostic::new(Code::ExecConfig, of.span, "a kernel names threads and no blocks")
                    .label("one thread tensor stands here")
                    .help("write `<<<#grid, #cta>>>`, or `<<<#grid:[8], #cta:[128]>>>`"),
            ),
            _ => Ok(None),
        }
    }

    /// Declares the threads of a kernel's head. The spec with these named, and the names of coordinates bound in its
    /// body.
    pub(super) fn launched(
        &mut self,
        stmt: &ast::Stmt,
        spec: &ast::Spec,
        launch: &ast::Launch,
        out: &mut Vec<Stmt>,
    ) -> Fallible<ast::Spec> {
        if self.depth > 0 {
            return fail(
                Diagnostic::new(Code::ExecConfig, spec.span, "threads are declared inside a body")
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
            return fail(Diagnostic::new(Code::Internal, spec.span, "a head of one group"));
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

/// Modes with compact strides, the first one fastest.
fn first_fastest(modes: &[(Option<ast::Name>, ast::Expr)], span: Span) -> ast::Dims {
    use ast::{BinOp, Expr, TupleExpr};
    let extents = modes.iter().map(|(_, e)| e.clone());
    let mut strides: Vec<Expr> = vec![];
    for (_, extent) in modes {
        let next = match (strides.last(), strides.len()) {
            (None, _) => Expr::int(1),
            (Some(_), 1) => modes.first().map_or(Expr::int(1), |(_, e)| e.clone()),
            (Some(last), n) => Expr::bin(
                BinOp::Mul,
                last.clone(),
                modes.get(n - 1).map_or(Expr::int(1), |m| m.1.clone()),
            ),
        };
        let _ = extent;
        strides.push(next);
    }
    ast::Dims {
        modes: extents.map(TupleExpr::Leaf).collect(),
        strides: (modes.len() > 1).then(|| strides.into_iter().map(TupleExpr::Leaf).collect()),
        span,
    }
}
