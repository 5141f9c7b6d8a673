//! Tests the ids of statements, and the traversals of syntax trees.

use carbyne_ir::ast::visit::{
    Part, PartMut, Rewriter, Step, Walk, each_mut, parts, parts_mut, rewrite,
};
use carbyne_ir::ast::{BinOp, Block, Expr, Module, Name, NodeId, NodeKey, Stmt, StmtKind, Unroll};
use carbyne_ir::resolve::resolve;
use carbyne_ir::text;

/// The ids of all statements, including those in `means` blocks.
fn ids(module: &Module) -> Vec<NodeKey> {
    Walk::new(&module.items).with_means().stmts().map(|s| s.id.key()).collect()
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
    let src = "carbyne 2\n\
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

const NESTED: &str = "carbyne 2
%a:[4].f32.GL
#g:[1].block
#t:[4].thread
Move @k <<<#g, #t>>>(%a) -> (%a) {
  %x = %a.tile([2])[1 - 0]
  for (i = 0; i < n; i += 1) {
    if (i < 2 * n) {
      Allocate %r:[(2, 2):(1, 2)].f32.SH{swizzle=(3,4,3), align=2 * 64}
    } else {
      barrier(#t)
    }
    #w = #t.tile([2])
  }
  Spec <<<#g, #t>>>(%x) -> (%a) warps=(1, n) means {
    Move (%x) -> (%a)
  } {
    barrier
  }
}
";

/// The kind of a statement, as a word.
fn word(stmt: &Stmt) -> &'static str {
    match &stmt.kind {
        StmtKind::DataDecl { .. } => "data",
        StmtKind::DataDef { .. } => "view",
        StmtKind::ThreadDecl { .. } => "threads",
        StmtKind::ThreadDef { .. } => "part",
        StmtKind::Allocate { .. } => "allocate",
        StmtKind::Spec(_) => "spec",
        StmtKind::For { .. } => "for",
        StmtKind::If { .. } => "if",
        StmtKind::Barrier(_) => "barrier",
        _ => "other",
    }
}

#[test]
fn a_walk_goes_in_text_order() {
    let module = text::parse(NESTED).expect("parses");
    let words = |walk: Walk<'_>| walk.stmts().map(word).collect::<Vec<_>>().join(" ");
    let all = words(Walk::new(&module.items));
    let (head, tail) =
        ("data threads threads spec view for if allocate barrier part spec", "barrier");
    assert_eq!(all, format!("{head} {tail}"));
    assert_eq!(words(Walk::new(&module.items).with_means()), format!("{head} spec {tail}"));
    let (mut walk, mut seen, mut depth) = (Walk::new(&module.items), vec![], 0);
    while let Some(step) = walk.next() {
        match step {
            Step::Enter(stmt) => {
                seen.push(format!("{depth}{}", word(stmt)));
                if matches!(stmt.kind, StmtKind::For { .. }) {
                    walk.skip_inside();
                }
            }
            Step::Open(_) => depth += 1,
            Step::Close(_) => depth -= 1,
            Step::Leave(_) => {}
        }
    }
    let outer = ["0data", "0threads", "0threads", "0spec", "1view", "1for", "1spec", "2barrier"];
    assert_eq!((seen, depth), (outer.map(String::from).to_vec(), 0));
}

#[test]
fn parts_are_all_that_is_written() {
    let module = text::parse(NESTED).expect("parses");
    let (mut names, mut numbers) = (vec![], vec![]);
    for stmt in Walk::new(&module.items).with_means().stmts() {
        parts(stmt, &mut |part| match part {
            Part::Defined(n, _) => names.push(format!("+{}", n.text)),
            Part::Kernel(n) => names.push(format!("@{}", n.text)),
            Part::Referred(n, _) => names.push(n.text.clone()),
            Part::Expr(e) => match &e.kind {
                carbyne_ir::ast::ExprKind::Int(v) => numbers.push(v.to_string()),
                carbyne_ir::ast::ExprKind::Name(n) => numbers.push(n.clone()),
                carbyne_ir::ast::ExprKind::Bin(op, ..) => numbers.push(op.to_string()),
                _ => {}
            },
            _ => {}
        });
    }
    assert_eq!(names.join(" "), "+a +g +t @k g t a a +x a +i +r t +w t g t x a x a");
    assert_eq!(numbers.join(" "), "4 1 4 2 - 1 0 0 n 1 i * 2 n 2 2 1 2 3 4 3 * 2 64 2 1 n");
    // `parts_mut` can change these parts.
    let mut renamed = module.clone();
    each_mut(&mut renamed.items, &mut |stmt| {
        parts_mut(stmt, &mut |part| match part {
            PartMut::Defined(n, _) | PartMut::Referred(n, _) if n.text == "x" => {
                n.text = "y".to_owned()
            }
            _ => {}
        });
    });
    let text = text::print(&renamed);
    assert!(text.contains("%y = %a") && text.contains("(%y) -> (%a) warps"), "{text}");
}

/// Removes barriers, except inside of conditions.
struct WithoutBarriers;

impl Rewriter for WithoutBarriers {
    fn enter(&mut self, stmt: &mut Stmt) -> bool {
        !matches!(stmt.kind, StmtKind::If { .. })
    }
    fn leave(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        if !matches!(stmt.kind, StmtKind::Barrier(_)) {
            out.push(stmt);
        }
    }
}

/// Changes nothing.
struct Same;

impl Rewriter for Same {}

#[test]
fn a_rewriter_keeps_what_it_does_not_change() {
    let module = text::parse(NESTED).expect("parses");
    let mut same = module.clone();
    same.items = rewrite(same.items, &mut Same);
    assert!(same == module && ids(&same) == ids(&module));
    let mut less = module.clone();
    less.items = rewrite(less.items, &mut WithoutBarriers);
    // The barrier in the condition remains; the one in the spec's body is gone.
    let words: Vec<&str> = Walk::new(&less.items).stmts().map(word).collect();
    assert_eq!(words.iter().filter(|w| **w == "barrier").count(), 1);
    assert_eq!(words.len() + 1, Walk::new(&module.items).stmts().count());
}

#[test]
fn deep_trees_are_walked() {
    const DEEP: usize = 50_000;
    let deep = (0..DEEP).fold(Expr::int(1), |e, _| Expr::bin(BinOp::Add, e, Expr::int(1)));
    let inner = Stmt::new(StmtKind::Let(vec![(Name::new("n"), deep)]));
    let stmt = (0..DEEP).fold(inner, |inner, _| {
        let [start, end, step] = [0, 1, 1].map(Expr::int);
        let body = Block { stmts: vec![inner], footer: vec![] };
        let (var, unroll) = (Name::new("k"), Unroll::Default);
        Stmt::new(StmtKind::For { var, start, end, also: vec![], step, unroll, stages: None, body })
    });
    let mut items = vec![stmt];
    let mut exprs = 0;
    for stmt in Walk::new(&items).stmts() {
        parts(stmt, &mut |part| exprs += usize::from(matches!(part, Part::Expr(_))));
    }
    assert_eq!(exprs, 3 * DEEP + 2 * DEEP + 1);
    each_mut(&mut items, &mut |stmt| {
        parts_mut(stmt, &mut |part| exprs -= usize::from(matches!(part, PartMut::Expr(_))));
    });
    assert_eq!(exprs, 0);
    let items = rewrite(items, &mut Same);
    assert_eq!(Walk::new(&items).stmts().count(), DEEP + 1);
    let module = Module { header: vec![], items, footer: vec![] };
    assert!(module.is_separate());
}
