//! Tests that one kernel computes equal results at three degrees of detail: as a single spec, as
//! specs of complete blocks without bodies, and as instructions.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::{Module, Stmt, StmtKind};
use carbyne_ir::{resolve, text, verify};
use carbyne_simulate::{Inputs, Options, simulate};

const GEMM: &str = include_str!("../../../examples/ampere_gemm_by_hand.cby");

/// Removes the bodies of specs that are nested deeper than `depth`.
fn cut(stmts: &mut [Stmt], depth: usize) {
    for stmt in stmts {
        let depth = match &mut stmt.kind {
            StmtKind::Spec(spec) if depth == 0 => {
                spec.body = None;
                continue;
            }
            StmtKind::Spec(_) => depth - 1,
            _ => depth,
        };
        stmt.kind.bodies_mut().for_each(|b| cut(&mut b.stmts, depth));
    }
}

/// The output as bits, and the number of compared bodies.
fn product(module: &Module) -> (Vec<u64>, u64) {
    let src = text::print(module);
    let program = resolve::resolve(module, &src).expect("resolves");
    let errors = verify::verify(&program).into_vec();
    assert!(errors.is_empty(), "{errors:?}\n{src}");
    let options = Options { inputs: Inputs::Ints(3), ..Options::default() };
    let report = simulate(&program, &AtomTable::new(Arch::Sm80), &options);
    let report = report.unwrap_or_else(|e| panic!("{e}: {} {:?}\n{src}", e.label, e.related));
    (report.outputs.get("C").expect("all blocks ran").values, report.kernels[0].specs)
}

#[test]
fn every_level_computes_the_same() {
    let atomic = text::parse(GEMM).expect("parses");
    let level = |depth| {
        let mut module = atomic.clone();
        cut(&mut module.items, depth);
        product(&module)
    };
    let (kernel, tiles, instructions) = (level(0), level(1), product(&atomic));
    assert!(kernel.0.iter().any(|v| *v != 0));
    assert_eq!((kernel.1, tiles.1), (0, 0), "there are no bodies inside to compare");
    assert!(instructions.1 > 0);
    assert!(kernel.0 == tiles.0 && tiles.0 == instructions.0);
}
