//! Tests tile-level bodies with comparisons and selections (`Select`). Also tests that a Move of a
//! block is refused if it reads only a part of a tensor (`valid=`).

use super::support::{decomposed, run, sm_80};
use carbyne_ir::diag::Code;

/// The smaller of two tensors, by a comparison.
const SMALLER: &str = "carbyne 2
%A:[64,128].f32.GL
%B:[64,128].f32.GL
%D:[64,128].f32.GL
#grid:[1].block
#cta:[128].thread
BinaryPointwise.min @smaller <<<#grid, #cta>>> (%A, %B) -> (%D) {
  Allocate %a:[64,128].f32.RF{?}
  Allocate %b:[64,128].f32.RF{?}
  Allocate %p:[64,128].bool.RF{?}
  Allocate %d:[64,128].f32.RF{?}
  Move <<<#grid, #cta>>> (%A) -> (%a)
  Move <<<#grid, #cta>>> (%B) -> (%b)
  BinaryPointwise.lt <<<#grid, #cta>>> (%a, %b) -> (%p)
  Select <<<#grid, #cta>>> (%p, %a, %b) -> (%d)
  Move <<<#grid, #cta>>> (%d) -> (%D)
}
";

#[test]
fn selections_are_pointwise() {
    let table = sm_80();
    let d = decomposed(SMALLER, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    let report = run(&d.program, &table).unwrap_or_else(|e| panic!("{}\n{e:?}", d.text));
    // Of five specs inside and of the kernel.
    assert_eq!((report.kernels[0].specs, report.kernels[0].elements), (5, 6 * 64 * 128));
    let wrong = SMALLER.replace("(%p, %a, %b)", "(%p, %b, %a)");
    let wrong = decomposed(&wrong, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    let e = run(&wrong.program, &table).map(|_| ()).expect_err("the larger one");
    assert_eq!(e.code, Code::WrongElement);
}

#[test]
fn a_literal_is_of_the_type_that_is_compared() {
    let table = sm_80();
    let text = SMALLER
        .replace("BinaryPointwise.min @smaller", "Spec @smaller")
        .replace("(%a, %b) -> (%p)", "(%a, 0.25) -> (%p)");
    let d = decomposed(&text, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    let report = run(&d.program, &table).unwrap_or_else(|e| panic!("{}\n{e:?}", d.text));
    assert_eq!(report.kernels[0].specs, 5);
}

#[test]
fn a_block_reads_all_or_nothing() {
    let text = SMALLER.replace("(%A) -> (%a)", "(%A) -> (%a) valid=100");
    let errors = decomposed(&text, &sm_80()).map(|d| d.text).expect_err("a part of %A").into_vec();
    assert!(errors.iter().any(|e| e.code == Code::NotDecomposed), "{errors:?}");
    let text = SMALLER.replace("(%A) -> (%a)", "(%A) -> (%a) atom=cp.async.ca.b32.zfill");
    assert!(decomposed(&text, &sm_80()).is_err(), "the row needs a number");
    let text = SMALLER.replace("Move <<<#grid, #cta>>> (%d)", "Move.add <<<#grid, #cta>>> (%d)");
    let added = decomposed(&text, &sm_80()).map(|d| d.text).expect("a block adds");
    assert!(added.contains("atom=red.global.add"), "{added}");
}
