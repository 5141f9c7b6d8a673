//! Tests errors for pins that contradict each other. The error names only pins that take part:
//! without any one of them, the program can be decomposed.

use crate::support::{MatMul, decomposed, sm_80};
use carbyne_decompose::internals::{pins, without_pins};
use carbyne_decompose::{Search, decompose};
use carbyne_ir::diag::Code;
use carbyne_ir::text;
use std::collections::BTreeSet;

/// A copy through shared memory; pins of the shared tensor, of the registers, and of the Moves.
fn staged(shared: &str, tv: &str, atoms: [&str; 3]) -> String {
    format!(
        "carbyne 2\n%A:[64,64].f16.GL\n%B:[64,64].f16.GL\n#grid:[1].block\n#cta:[128].thread\n\
         Move @copy <<<#grid, #cta>>> (%A) -> (%B) {{\n  Allocate %s:{shared}\n  \
         Allocate %r:[64,64].f16.RF{{{tv}}}\n  \
         Move <<<#grid, #cta>>> (%A) -> (%r){}\n  Move <<<#grid, #cta>>> (%r) -> (%s){}\n  \
         Move <<<#grid, #cta>>> (%s) -> (%B){}\n}}\n",
        atoms[0], atoms[1], atoms[2]
    )
}

const COLUMNS: &str = "[(64,64):(1,64)].f16.SH";
const ROWS: &str = "[(64,64):(64,1)].f16.SH{align=16}";
const BY_ROWS: &str = "tv=((8,16),(8,4)):((512,1),(64,16)) over #cta";
const BY_COLUMNS: &str = "tv=((8,16),(8,4)):((8,64),(1,1024)) over #cta";

/// How many pins the error names; each of them alone is enough to be left out.
fn blamed(src: &str) -> usize {
    let module = text::parse(src).expect("parses");
    let errors = decompose(&module, src, &sm_80()).expect_err("must be refused").into_vec();
    let [d] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(d.code, Code::PinsConflict, "{d:?}");
    let mut spans = vec![d.span];
    spans.extend(d.related.iter().map(|(s, _)| *s));
    let all = pins(&module);
    for span in &spans {
        let i = all.iter().position(|p| p.span.is_at(*span)).expect("a pin of the text");
        let less = without_pins(&module, &BTreeSet::from([i]));
        let printed = text::print(&less);
        let solved = decompose(&text::parse(&printed).expect("parses"), &printed, &sm_80());
        assert!(solved.is_ok(), "without {}:\n{printed}\n{:?}", all[i].what, solved.err());
    }
    spans.len()
}

#[test]
fn a_layout_and_an_instruction_that_are_at_odds() {
    for (shared, tv) in [(COLUMNS, BY_ROWS), (ROWS, BY_COLUMNS)] {
        assert!(blamed(&staged(shared, tv, ["", " atom=st.shared.b128", ""])) > 1);
    }
}

#[test]
fn pins_that_have_no_part_in_it_are_not_named() {
    let atoms = [" atom=ld.global.b128", " atom=st.shared.b128", ""];
    let src = staged(COLUMNS, BY_ROWS, atoms);
    assert!(pins(&text::parse(&src).expect("parses")).len() > 3);
    assert!(blamed(&src) <= 3);
}

#[test]
fn one_pin_alone_keeps_its_error() {
    let src = MatMul { pins: "tile=(60,64,32)".into(), ..MatMul::default() }.text();
    let d = decomposed(&src, &sm_80()).expect_err("refused").into_vec().remove(0);
    assert_eq!(d.code, Code::PinsConflict);
    assert!(d.related.iter().any(|(_, why)| why.contains("`tile=`")), "{d:?}");
}

#[test]
fn what_no_pin_is_to_blame_for_stays_as_it_is() {
    let case = MatMul { factors: "i16", out: "i32", acc: "i32", ..MatMul::default() };
    let src = MatMul { pins: "tile=(64,64,32)".into(), ..case }.text();
    let d = decomposed(&src, &sm_80()).expect_err("refused").into_vec().remove(0);
    assert_eq!(d.code, Code::NoAtom);
    assert!(d.related.is_empty());
}

#[test]
fn searching_for_the_conflict_keeps_to_the_budget() {
    let src = staged(COLUMNS, BY_ROWS, ["", " atom=st.shared.b128", ""]);
    let module = text::parse(&src).expect("parses");
    let search = Search { budget: 1, ..Search::default() };
    let found = carbyne_decompose::decompose_with(&module, &src, &sm_80(), search);
    assert!(found.is_err());
}
