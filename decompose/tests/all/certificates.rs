//! Certificates hold, and the checker notices when they do not.

use crate::support::{MatMul, decomposed, sm_80};
use carbyne_decompose::solve::certificate::Relation;
use carbyne_ir::layout::Layout;

#[test]
fn every_relation_has_a_certificate_that_checks() {
    let d = decomposed(&MatMul::default().text(), &sm_80()).expect("decomposes");
    let (mut copies, mut gemms) = (0, 0);
    for c in &d.certificates {
        c.check().expect("holds");
        match c.relation {
            Relation::Copy { .. } => copies += 1,
            Relation::Gemm { .. } => gemms += 1,
        }
    }
    // A and B to shared memory and on to registers, the conversion and the store of C.
    assert_eq!((copies, gemms), (6, 1));
}

#[test]
fn a_changed_layout_fails_the_check() {
    let d = decomposed(&MatMul::default().text(), &sm_80()).expect("decomposes");
    let doubled = |l: &Layout| {
        Layout::new(l.shape().clone(), l.stride().map(&mut |s| s * 2)).expect("a layout")
    };
    for c in &d.certificates {
        let mut wrong = c.clone();
        match &mut wrong.relation {
            Relation::Copy { g, .. } => *g = doubled(g),
            Relation::Gemm { tensors, .. } => tensors[0] = doubled(&tensors[0]),
        }
        assert!(wrong.check().is_err(), "{}", c.atom);
    }
}
