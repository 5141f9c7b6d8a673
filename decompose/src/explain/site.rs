//! Finds a leaf in the tree of its text ([`Site`]): the spec, and the declarations of its operands.

use carbyne_ir::ast::visit::{Step, Walk};
use carbyne_ir::ast::{Module, Name, Operand, Spec, StmtKind, TensorType, View};
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
    /// The leaf of that number. The numbers of specs are the same in all texts that edits make of
    /// one, as no edit adds or removes a spec.
    pub(super) fn find(module: &'m Module, id: SpecId) -> Option<Self> {
        let mut left = usize::from(id);
        let mut names: Vec<(&'m Name, Decl<'m>)> = vec![];
        // How many of them are in scope outside of the blocks that are open.
        let mut outside = vec![];
        for step in Walk::new(&module.items) {
            let stmt = match step {
                Step::Enter(stmt) => stmt,
                Step::Open(_) => {
                    outside.push(names.len());
                    continue;
                }
                Step::Close(_) => {
                    names.truncate(outside.pop().unwrap_or(0));
                    continue;
                }
                Step::Leave(_) => continue,
            };
            match &stmt.kind {
                StmtKind::DataDecl { name, ty, .. } => names.push((name, Decl::Type(ty, false))),
                StmtKind::Allocate { name, ty } => names.push((name, Decl::Type(ty, true))),
                StmtKind::DataDef { name, view, .. } | StmtKind::ThreadDef { name, view, .. } => {
                    names.push((name, Decl::View(view)));
                }
                StmtKind::ThreadDecl { name, .. } => names.push((name, Decl::Threads)),
                StmtKind::Spec(spec) if left == 0 => {
                    return Some(Site { spec, span: stmt.span, names });
                }
                StmtKind::Spec(_) => left -= 1,
                _ => {}
            }
        }
        None
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
