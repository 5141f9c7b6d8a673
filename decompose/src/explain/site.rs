//! Where a leaf stands in its text: the spec, and what its operands were declared as.

use carbyne_ir::ast::{Block, Module, Name, Operand, Spec, Stmt, StmtKind, TensorType, View};
use carbyne_ir::program::SpecId;
use carbyne_ir::span::Span;

/// A leaf in the tree of its module.
pub(super) struct Site<'m> {
    /// The leaf.
    pub(super) spec: &'m Spec,
    /// Its statement, without comments.
    pub(super) span: Span,
    /// What is in scope.
    names: Vec<(&'m Name, Decl<'m>)>,
}

#[derive(Copy, Clone)]
enum Decl<'m> {
    /// A tensor with memory, and whether the kernel allocates it.
    Type(&'m TensorType, bool),
    /// A view of another.
    View(&'m View),
    /// Threads.
    Threads,
}

impl<'m> Site<'m> {
    /// The leaf of that number, as resolving counts.
    pub(super) fn find(module: &'m Module, id: SpecId) -> Option<Self> {
        let mut walk = Walk { left: usize::from(id), names: vec![] };
        let (spec, span) = walk.stmts(&module.items)?;
        Some(Site { spec, span, names: walk.names })
    }

    fn decl(&self, name: &str, threads: bool) -> Option<Decl<'m>> {
        let is = |d: &Decl<'_>, other: bool| matches!(d, Decl::Threads) == other;
        let of = |(n, d): &&(&Name, Decl<'m>)| {
            n.text == name && (matches!(d, Decl::View(_)) || is(d, threads))
        };
        self.names.iter().rev().find(of).map(|(_, d)| *d)
    }

    /// Inputs that are tensors, then outputs.
    pub(super) fn views(&self) -> Vec<&'m View> {
        let inputs = self.spec.inputs.iter().filter_map(|o| match o {
            Operand::View(v) => Some(v),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        inputs.chain(&self.spec.outputs).collect()
    }

    /// What a view is a view of, and whether the kernel allocates it.
    pub(super) fn declared(&self, view: &View) -> Option<(&'m TensorType, bool)> {
        self.root(view).map(|(_, ty, own)| (ty, own))
    }

    /// The types of all tensors in scope.
    pub(super) fn types(&self) -> impl Iterator<Item = &'m TensorType> + '_ {
        self.names.iter().filter_map(|(_, d)| match d {
            Decl::Type(ty, _) => Some(*ty),
            _ => None,
        })
    }

    /// The name of what a view is a view of.
    pub(super) fn declared_name(&self, view: &View) -> String {
        self.root(view).map_or(view.base.text.clone(), |(name, ..)| name)
    }

    fn root(&self, view: &View) -> Option<(String, &'m TensorType, bool)> {
        let mut name = view.base.text.clone();
        for _ in 0..=self.names.len() {
            match self.decl(&name, false)? {
                Decl::Type(ty, own) => return Some((name, ty, own)),
                Decl::View(v) => name = v.base.text.clone(),
                Decl::Threads => return None,
            }
        }
        None
    }

    /// The thread tensors that the leaf's threads are a view of, the nearest first.
    pub(super) fn threads(&self) -> Vec<String> {
        let Some((_, view)) = self.spec.both() else { return vec![] };
        let mut out = vec![view.base.text.clone()];
        while let Some(Decl::View(v)) = out.last().and_then(|n| self.decl(n, true)) {
            if out.contains(&v.base.text) {
                break;
            }
            out.push(v.base.text.clone());
        }
        out
    }
}

struct Walk<'m> {
    left: usize,
    names: Vec<(&'m Name, Decl<'m>)>,
}

impl<'m> Walk<'m> {
    fn block(&mut self, block: &'m Block) -> Option<(&'m Spec, Span)> {
        let outside = self.names.len();
        let found = self.stmts(&block.stmts);
        if found.is_none() {
            self.names.truncate(outside);
        }
        found
    }

    fn stmts(&mut self, stmts: &'m [Stmt]) -> Option<(&'m Spec, Span)> {
        for stmt in stmts {
            let found = match &stmt.kind {
                StmtKind::DataDecl { name, ty, .. } => {
                    self.names.push((name, Decl::Type(ty, false)));
                    None
                }
                StmtKind::Allocate { name, ty } => {
                    self.names.push((name, Decl::Type(ty, true)));
                    None
                }
                StmtKind::DataDef { name, view, .. } | StmtKind::ThreadDef { name, view, .. } => {
                    self.names.push((name, Decl::View(view)));
                    None
                }
                StmtKind::ThreadDecl { name, .. } => {
                    self.names.push((name, Decl::Threads));
                    None
                }
                StmtKind::For { body, .. } => self.block(body),
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then).or_else(|| self.block(otherwise.as_ref()?))
                }
                StmtKind::Spec(spec) => {
                    if self.left == 0 {
                        return Some((spec, stmt.span));
                    }
                    self.left -= 1;
                    spec.body.as_ref().and_then(|b| self.block(b))
                }
                _ => None,
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}
