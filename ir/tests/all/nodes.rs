//! Ids of statements.

use carbyne_ir::ast::{Module, NodeId, NodeKey, Stmt, StmtKind};
use carbyne_ir::generate;
use carbyne_ir::resolve::resolve;
use carbyne_ir::text;
use proptest::prelude::*;
use std::collections::HashSet;

/// Of all statements, those in `means` blocks too.
fn ids(module: &Module) -> Vec<NodeKey> {
    let mut lists = vec![&module.items];
    let mut out = vec![];
    while let Some(list) = lists.pop() {
        for stmt in list {
            out.push(stmt.id.key());
            lists.extend(stmt.kind.blocks().map(|b| &b.stmts));
        }
    }
    out
}

fn unique(module: &Module) -> bool {
    let all = ids(module);
    all.iter().collect::<HashSet<_>>().len() == all.len()
}

#[test]
fn ids_are_unique_and_never_compared() {
    let (a, b) = (NodeId::fresh(), NodeId::fresh());
    assert!(a == b && !a.same(b) && a.key() != b.key());
    let parent = Stmt::new(StmtKind::Barrier(None));
    let made = Stmt::derived(StmtKind::Barrier(None), &parent);
    assert!(made == parent && !made.id.same(parent.id));
    assert!(made.from.is_some_and(|from| from.same(parent.id)));
}

#[test]
fn a_program_names_the_statements_of_its_tree() {
    let src = "carbyne 1\n\
        %a:[4].f32.GL\n#g:[1].block\n#t:[4].thread\n\
        Move @k <<<#g, #t>>>(%a) -> (%a) {\n\
        Allocate %r:[1].f32.RF\n\
        for (i = 0; i < 2; i += 1) {\nbarrier\n}\n}\n";
    let module = text::parse(src).expect("parses");
    let p = resolve(&module, src).unwrap_or_else(|e| panic!("{e}"));
    let kernel = module.items.last().expect("a kernel");
    let spec = &p.specs[p.kernels[0]];
    assert!(spec.node.same(kernel.id));
    let StmtKind::Spec(written) = &kernel.kind else { panic!("a spec") };
    let body = &written.body.as_ref().expect("a body").stmts;
    let resolved = spec.body.as_ref().expect("a body");
    assert!(body.iter().zip(resolved).all(|(a, b)| a.id.same(b.node)));
    let nodes: Vec<NodeKey> = p.buffers.iter().map(|(_, b)| b.node.key()).collect();
    assert_eq!(nodes, [module.items[0].id.key(), body[0].id.key()]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn parsing_gives_each_statement_an_id(module in generate::module()) {
        let text = text::print(&module);
        let parsed = text::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert!(unique(&parsed));
        // The same text has other ids, and the same tree.
        let again = text::parse(&text).map_err(|e| TestCaseError::fail(format!("{e}")))?;
        prop_assert_eq!(&again, &parsed);
        let first: HashSet<NodeKey> = ids(&parsed).into_iter().collect();
        prop_assert!(ids(&again).iter().all(|id| !first.contains(id)));
    }

    #[test]
    fn copies_get_ids_of_their_own(module in generate::module()) {
        let mut twice = module.clone();
        twice.items.extend(module.items.iter().cloned());
        let same = twice.clone();
        twice.separate();
        prop_assert!(unique(&twice));
        prop_assert_eq!(twice, same);
    }
}
