//! Tests Moves and Reductions without a body: the bodies that carbyne's strategies give them
//! compute their meaning, for many types, layouts and modes.

use crate::support::{decomposed, run, run_random, sm_80};
use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Code;

fn computes(src: &str) -> Decomposed {
    let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{src}\n{:?}", e.into_vec()));
    for report in [run(&d.program, &sm_80()), run_random(&d.program, &sm_80())] {
        report.unwrap_or_else(|e| panic!("{src}\n{e:?}\n{}", d.text));
    }
    d
}

fn moved(from: &str, to: &str, pins: &str) -> Decomposed {
    computes(&format!("carbyne 2\n%A:{from}\n%B:{to}\nMove @m (%A) -> (%B) {pins}\n"))
}

fn reduced(op: &str, from: &str, to: &str, axes: &str) -> Decomposed {
    computes(&format!(
        "carbyne 2\n%A:{from}\n%B:{to}\nReduction.{op} @r (%A) -> (%B) axis={axes}\n"
    ))
}

#[test]
fn moves_of_every_order_and_width() {
    for (from, to) in [
        ("[128,64].f16.GL", "[128,64].f16.GL"),
        ("[128,64].f16.GL", "[(128,64):(1,128)].f16.GL"),
        ("[(128,64):(1,128)].f32.GL", "[(128,64):(1,128)].f32.GL"),
        ("[(128,64):(72,1)].u8.GL", "[(128,64):(1,128)].u8.GL"),
        ("[4096].f32.GL", "[4096].f32.GL"),
        ("[61,7].u8.GL", "[61,7].u8.GL"),
        ("[3,32,48].f32.GL", "[(3,32,48):(1,3,96)].f32.GL"),
        ("[1,96].f16.GL", "[32,96].f16.GL"),
    ] {
        moved(from, to, "");
    }
}

#[test]
fn only_transposes_go_through_shared_memory() {
    assert!(!moved("[128,64].f16.GL", "[128,64].f16.GL", "").text.contains(".SH"));
    let transposed = moved("[128,64].f16.GL", "[(128,64):(1,128)].f16.GL", "by=@transpose");
    assert!(transposed.text.contains(".SH"));
}

#[test]
fn reductions_of_every_mode_and_type() {
    for (op, from, to, axes) in [
        ("sum", "[64,256].f32.GL", "[64,1].f32.GL", "1"),
        ("sum", "[64,256].f16.GL", "[256].f16.GL", "0"),
        ("max", "[64,96].f32.GL", "[1,1].f32.GL", "(0,1)"),
        ("min", "[10,300].i32.GL", "[10,1].i32.GL", "1"),
        ("sum", "[4,64,96].bf16.GL", "[4,96].bf16.GL", "1"),
        ("prod", "[8,16].f32.GL", "[8].f32.GL", "1"),
        ("sum", "[8,20000].f32.GL", "[8].f32.GL", "1"),
        ("sum", "[512].f32.GL", "[1].f32.GL", "0"),
    ] {
        reduced(op, from, to, axes);
    }
}

#[test]
fn pins_are_kept() {
    let d = moved("[128,64].f16.GL", "[128,64].f16.GL", "tile=(16,64) warps=2");
    assert!(d.text.contains("tile=(16,64)") && d.text.contains("#cta:[64].thread"), "{}", d.text);
    assert!(d.text.contains("#grid:[8].block"), "{}", d.text);
}

#[test]
fn what_has_no_strategy_says_why() {
    for (src, code) in [
        (
            "%A:[64,64].f16.GL\n%B:[64,64].f16.GL\nMove @m (%A) -> (%B) tile=(5,64)",
            Code::PinsConflict,
        ),
        ("%A:[4096].f16.GL\n%B:[64,64].f16.GL\nMove @m (%A) -> (%B)", Code::NoStrategy),
    ] {
        let src = format!("carbyne 2\n{src}\n");
        let e = decomposed(&src, &sm_80()).expect_err("refused").into_vec();
        assert_eq!(e[0].code, code, "{src}{e:?}");
    }
}

/// Columns that a product has not do not meet those that it has, in whatever is computed of its
/// rows.
#[test]
fn reductions_behind_products_leave_out_what_is_not_there() {
    let chains = [
        "%e = exp(%t)\n  %C = cast(%e / sum(%e, axis=1), f16)",
        "%e = exp(%t - max(%t, axis=1))\n  %C = cast(%e / sum(%e, axis=1), f16)",
        "%e = -(%t * %t) - 1.0\n  %C = cast(%e - max(%e, axis=1), f16)",
    ];
    for table in [sm_80(), AtomTable::new("sm_90a".parse().expect("an architecture"))] {
        for (chain, [m, n, k]) in chains.iter().zip([[64, 120, 64], [100, 93, 70], [60, 200, 40]]) {
            let src = format!(
                "carbyne 2
%A:[{m},{k}].f16.GL
%B:[{k},{n}].f16.GL
%C:[{m},{n}].f16.GL
Spec @g (%A, %B) -> (%C) means {{
  %t = matmul(%A, %B, acc=f32)
  {chain}
}}
"
            );
            let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
            run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        }
    }
}
