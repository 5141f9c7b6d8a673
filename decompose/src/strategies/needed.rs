//! Extracts the part of a module that one kernel needs ([`Needed`]). Instances are tried in such
//! parts, so that their time does not grow with the tensors of other kernels.

use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{ExprKind, Module, Stmt, StmtKind};
use std::collections::{BTreeSet, HashMap};

/// The statements of a module by what they define.
pub(crate) struct Needed<'m> {
    module: &'m Module,
    /// By name, without sigils.
    defined: HashMap<&'m str, Vec<usize>>,
    /// Those that every kernel has: symbols with their facts, sub-specs.
    always: Vec<usize>,
}

impl<'m> Needed<'m> {
    pub(crate) fn new(module: &'m Module) -> Self {
        let mut all = Needed { module, defined: HashMap::new(), always: vec![] };
        for (i, stmt) in module.items.iter().enumerate() {
            match &stmt.kind {
                StmtKind::Spec(_) => {}
                StmtKind::Let(_)
                | StmtKind::DataDecl { .. }
                | StmtKind::DataDef { .. }
                | StmtKind::ThreadDecl { .. }
                | StmtKind::ThreadDef { .. } => parts(stmt, &mut |part| {
                    if let Part::Defined(name, _) = part {
                        all.defined.entry(bare(&name.text)).or_default().push(i);
                    }
                }),
                _ => all.always.push(i),
            }
        }
        all
    }

    /// The module with one of its kernels, and without what that does not name.
    pub(crate) fn of(&self, kernel: &Stmt) -> Module {
        let items = &self.module.items;
        let mut taken: BTreeSet<usize> = self.always.iter().copied().collect();
        let mut todo: Vec<&Stmt> = taken.iter().map(|i| &items[*i]).chain([kernel]).collect();
        while let Some(stmt) = todo.pop() {
            for stmt in Walk::new(std::slice::from_ref(stmt)).with_means().stmts() {
                parts(stmt, &mut |part| {
                    let name = match part {
                        Part::View(view, _) => &view.base.text,
                        Part::Referred(name, _) => &name.text,
                        Part::Expr(e) => match &e.kind {
                            ExprKind::Name(name) => name,
                            _ => return,
                        },
                        _ => return,
                    };
                    let new = |i: &&usize| taken.insert(**i);
                    let all = self.defined.get(bare(name)).into_iter().flatten();
                    todo.extend(all.filter(new).map(|i| &items[*i]));
                });
            }
        }
        let own = items.iter().position(|s| s.id.same(kernel.id));
        taken.extend(own);
        let items = taken.into_iter().map(|i| items[i].clone()).collect();
        Module { header: vec![], footer: vec![], items }
    }
}

/// A name without its sigil.
fn bare(name: &str) -> &str {
    name.trim_start_matches(['@', '#', '%'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_among_many_needs_its_own_tensors() {
        let mut text = "carbyne 2\nsym M where M > 0\n".to_owned();
        for i in 0..100 {
            text +=
                &format!("let N{i} = {}\n%A{i}:[M,N{i}].f32.GL\n%B{i}:[M,N{i}].f32.GL\n", i + 1);
            text += &format!("%V{i} = %A{i}\nMove @k{i} (%V{i}) -> (%B{i})\n");
        }
        let module = carbyne_ir::text::parse(&text).expect("parses");
        let kernels = module.items.iter().filter(|s| matches!(s.kind, StmtKind::Spec(_)));
        let needed = Needed::new(&module);
        for kernel in kernels {
            // The symbol, the constant, three tensors, the kernel.
            assert_eq!(needed.of(kernel).items.len(), 6);
        }
    }
}
