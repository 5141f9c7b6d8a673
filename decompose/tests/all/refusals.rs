//! Tests errors of programs that cannot be decomposed: each has a code, and a help that says how to
//! correct the program.

use crate::support::{MatMul, decomposed, sm_80};
use carbyne_ir::diag::{Code, Diagnostic};

fn refused(src: &str) -> Diagnostic {
    let errors = decomposed(src, &sm_80()).expect_err("must be refused").into_vec();
    let d = errors.into_iter().next().expect("an error");
    assert!(d.help.is_some(), "{d:?}");
    d
}

#[test]
fn a_type_that_no_atom_takes_names_the_two_nearest() {
    for factors in ["e4m3", "i16", "e5m2"] {
        let acc = if factors == "i16" { "i32" } else { "f32" };
        let case = MatMul { factors, out: acc, acc, ..MatMul::default() };
        let d = refused(&case.text());
        assert_eq!(d.code, Code::NoAtom, "{d:?}");
        assert_eq!(d.notes.len(), 2, "{d:?}");
        assert!(d.notes.iter().all(|n| n.contains("rejected: operand A must be")), "{d:?}");
        assert_eq!(d.span.line_col(&case.text()).0, 5);
    }
}

#[test]
fn tiles_that_cannot_be() {
    for pins in ["tile=(60,64,32)", "tile=(64,64,24)", "warps=7", "tile=(64,64,32) warps=(3,1)"] {
        let d = refused(&MatMul { pins: pins.to_owned(), ..MatMul::default() }.text());
        assert_eq!(d.code, Code::PinsConflict, "{pins}: {d:?}");
    }
}

#[test]
fn what_no_strategy_means_is_refused() {
    let src = "carbyne 2\n%a:[64].f16.GL\n%b:[64].f16.GL\nShfl.bfly @m (%a) -> (%b) lane=1\n";
    assert_eq!(refused(src).code, Code::NoStrategy);
}

#[test]
fn unknown_atoms_name_the_nearest() {
    let src = "carbyne 2\n%a:[4].f32.GL\n%b:[4].f32.GL\n#g:[1].block\n#t:[1].thread\n\
               Move @m <<<#g, #t>>> (%a) -> (%b) {\n  Allocate %r:[4].f32.RF\n  \
               Move <<<#g, #t.scalar()>>> (%a) -> (%r) atom=ld.global.b129\n  \
               Move <<<#g, #t.scalar()>>> (%r) -> (%b)\n}\n";
    let d = refused(src);
    assert_eq!(d.code, Code::UnknownAtom);
    assert!(d.help.expect("help").contains("ld.global.b128"));
}

#[test]
fn a_short_accumulator_must_be_asked_for() {
    let src = MatMul::default().text().replace("acc=f32", "");
    let d = refused(&src);
    assert_eq!(d.code, Code::NoStrategy);
    assert!(d.help.expect("help").contains("acc=f32"));
}
