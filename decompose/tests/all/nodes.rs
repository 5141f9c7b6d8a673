//! Tests the ids of statements: a statement of the user keeps its id in the decomposed module, and
//! a generated statement names the statement from which it was made. Errors and reports refer to
//! source lines by these ids.

use crate::support::{MatMul, sm_80};
use carbyne_decompose::{Decomposed, decompose};
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::{Module, NodeKey, StmtKind};
use carbyne_ir::text;
use std::collections::{BTreeMap, BTreeSet};

/// Partial sums through shared memory.
const SPLIT_K: &str = include_str!("../../../examples/tile/gemm_split_k.cby");
/// Operands in memory, which a rewrite brings to registers; a Reduction, whose leaves get their
/// atoms in a second pass.
const SOFTMAX: &str = "carbyne 2
%A:[256,64].f32.GL
%B:[256,64].f32.GL
#grid:[4].block
#cta:[128].thread
Spec @g <<<#grid, #cta>>> (%A) -> (%B) {
  @b = #grid.indices()
  Allocate %x:[64,64].f32.RF{?}
  Allocate %s:[64,1].f32.RF{?}
  Move <<<#grid, #cta>>> (%A.tile([64,64])[@b, 0]) -> (%x)
  Reduction.sum <<<#grid, #cta>>> (%x) -> (%s) axis=1
  BinaryPointwise.div <<<#grid, #cta>>> (%A.tile([64,64])[@b, 0], %s) -> (%B.tile([64,64])[@b, 0])
}
";

fn all(module: &Module) -> BTreeMap<NodeKey, Option<NodeKey>> {
    let stmts = Walk::new(&module.items).with_means().stmts();
    stmts.map(|s| (s.id.key(), s.from.map(|from| from.key()))).collect()
}

fn sources() -> [String; 3] {
    [MatMul::default().text(), SPLIT_K.to_owned(), SOFTMAX.to_owned()]
}

fn check(given: &Module, src: &str, d: &Decomposed) {
    assert!(d.module.is_separate());
    assert_eq!(text::parse(&d.text).expect("parses"), d.module);
    let (own, made) = (all(given), all(&d.module));
    // The result keeps every statement of the source.
    assert!(own.keys().all(|id| made.contains_key(id)));
    // Every other statement leads to one of the source.
    for id in made.keys() {
        let (mut at, mut steps) = (*id, 0);
        while !own.contains_key(&at) {
            let Some(from) = made.get(&at) else {
                let stmt =
                    Walk::new(&d.module.items).with_means().stmts().find(|s| s.id.key() == *id);
                panic!("{stmt:?}\nleads to nothing\n{}", d.text);
            };
            at = from.expect("a generated statement names what it was made from");
            steps += 1;
            assert!(steps < 20);
        }
    }
    for stmt in Walk::new(&d.module.items).stmts() {
        let origin = d.origins.of(stmt.id).expect("every statement has an origin");
        assert!(own.contains_key(&origin.node.key()));
        if let StmtKind::Spec(_) = &stmt.kind {
            let line = &src[origin.span.start as usize..origin.span.end as usize];
            assert!(line.contains(" -> ") || line.contains('('), "{line}");
        }
    }
    // Specs of the solver's program, and of certificates, stand in the atomic module.
    for (_, spec) in d.tile.specs.iter() {
        assert!(made.contains_key(&spec.node.key()));
    }
    assert!(!d.certificates.is_empty());
    for c in &d.certificates {
        assert!(c.node.same(d.tile.specs[c.spec].node));
        assert!(d.program.specs.iter().any(|(_, s)| s.node.same(c.node)));
    }
}

#[test]
fn generated_statements_lead_to_those_of_the_text() {
    for src in sources() {
        let module = text::parse(&src).expect("parses");
        let d = decompose(&module, &src, &sm_80()).unwrap_or_else(|e| panic!("{e}"));
        check(&module, &src, &d);
    }
}

#[test]
fn copies_of_a_statement_are_statements_of_their_own() {
    let mut module = text::parse(SOFTMAX).expect("parses");
    let StmtKind::Spec(spec) = &mut module.items.last_mut().expect("a kernel").kind else {
        panic!("a spec")
    };
    let body = &mut spec.body.as_mut().expect("a body").stmts;
    let copy = body.last().expect("a statement").clone();
    body.push(copy);
    // An empty line and comments that no text tells so.
    body[0].blank_above = true;
    body[1].leading = vec!["two\nlines".to_owned(), " spaces ".to_owned()];
    assert!(!module.is_separate());
    let d = decompose(&module, SOFTMAX, &sm_80()).unwrap_or_else(|e| panic!("{e}"));
    assert!(d.module.is_separate());
    let origins: BTreeSet<NodeKey> =
        d.tile.specs.iter().filter_map(|(_, s)| Some(d.origins.of(s.node)?.node.key())).collect();
    assert_eq!(text::parse(&d.text).expect("parses"), d.module);
    assert!(d.text.contains("// lines") && d.text.contains("spaces"), "{}", d.text);
    // The copy comes from the statement that it copies.
    assert_eq!(origins.len(), 4, "{origins:?}");
}

#[test]
fn what_is_generated_comes_from_where_its_spec_does() {
    let src = SOFTMAX
        .replace("(%B) {", "(%B) loc=\"net.py:1\" {")
        .replace("axis=1", "axis=1 loc=\"net.py:7\"")
        .replace("  Allocate %s", "  Allocate %unused:[64,64].f32.RF{?}\n  Allocate %s");
    let module = text::parse(&src).expect("parses");
    let d = decompose(&module, &src, &sm_80()).unwrap_or_else(|e| panic!("{e}"));
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (_, spec) in d.program.specs.iter() {
        let origin = d.origins.of(spec.node).expect("every spec has an origin");
        *found.entry(origin.loc.clone().expect("all is in the kernel")).or_default() += 1;
    }
    // The Reduction and the leaves of its body; everything else.
    assert!(found["net.py:7"] > 2 && found["net.py:1"] > 5 && found.len() == 2, "{found:?}");
    assert_eq!(d.text.matches("loc=").count(), 2, "{}", d.text);
    assert!(!d.warnings.is_empty());
    for warning in &d.warnings {
        assert!(
            warning.notes.contains(&"comes from net.py:1 (`loc=` of this spec)".to_owned()),
            "{warning:?}"
        );
    }
}
