//! Tests blocks whose number of threads does not divide a tensor. The work is distributed over the
//! threads as far as possible, a warning reports elements that several threads compute, and the
//! results are right.

use crate::support::{decomposed, run, run_random, sm_80};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Code;
use carbyne_ir::testing;

/// A softmax of rows.
fn softmax(columns: i64, threads: i64, scalar: &str) -> String {
    format!(
        "carbyne 2
%X:[2,{columns}].{scalar}.GL
%Y:[2,{columns}].{scalar}.GL
#grid:[2].block
#cta:[{threads}].thread
Spec @softmax <<<#grid, #cta>>> (%X) -> (%Y) {{
  @i = #grid.indices()
  Allocate %x:[1,{columns}].{scalar}.RF{{?}}
  Allocate %max:[1,1].{scalar}.RF{{?}}
  Allocate %sum:[1,1].{scalar}.RF{{?}}
  Move <<<#grid, #cta>>> (%X.tile([1,{columns}])[@i, 0]) -> (%x)
  Reduction.max <<<#grid, #cta>>> (%x) -> (%max) axis=1
  BinaryPointwise.sub <<<#grid, #cta>>> (%x, %max) -> (%x)
  UnaryPointwise.exp <<<#grid, #cta>>> (%x) -> (%x)
  Reduction.sum <<<#grid, #cta>>> (%x) -> (%sum) axis=1
  BinaryPointwise.div <<<#grid, #cta>>> (%x, %sum) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%Y.tile([1,{columns}])[@i, 0])
}}
"
    )
}

fn computes(src: &str) -> Decomposed {
    let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{src}\n{:?}", e.into_vec()));
    for report in [run(&d.program, &sm_80()), run_random(&d.program, &sm_80())] {
        report.unwrap_or_else(|e| panic!("{src}\n{e:?}\n{}", d.text));
    }
    d
}

fn warns(d: &Decomposed) -> bool {
    // Those that hold all of a row may spill, too.
    let known = |code| matches!(code, Code::Uneven | Code::Spills);
    assert!(d.warnings.iter().all(|w| known(w.code)), "{:?}", d.warnings);
    d.warnings.iter().any(|w| w.code == Code::Uneven)
}

#[test]
fn threads_that_divide_share_and_others_are_told_of() {
    for (columns, threads, repeats) in [
        (1000, 125, false),
        (1000, 250, false),
        (1000, 200, false),
        (1000, 128, true),
        (1024, 128, false),
        (96, 64, false),
        (105, 96, true),
        (31, 128, true),
        (6, 128, false),
    ] {
        let d = computes(&softmax(columns, threads, "f32"));
        assert_eq!(warns(&d), repeats, "{columns} by {threads}: {:?}", d.warnings);
    }
}

/// The numbers of threads that a warning proposes give no warning.
#[test]
fn the_threads_that_are_proposed_share_evenly() {
    for (columns, threads) in [(1000, 128), (105, 96), (825, 64), (2600, 128)] {
        let src = softmax(columns, threads, "f32");
        let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{src}\n{:?}", e.into_vec()));
        assert!(warns(&d), "{columns} by {threads}");
        let help = d.warnings[0].help.clone().expect("a help");
        let mut proposed = 0;
        for n in help.split_whitespace().filter_map(|w| w.parse::<i64>().ok()) {
            let again = computes(&softmax(columns, n, "f32"));
            assert!(!warns(&again), "{columns} by {n}: {:?}", again.warnings);
            proposed += 1;
        }
        assert!(proposed > 0, "{help}");
    }
}

/// Values of many threads that no shuffle brings together meet in two exchanges of few, not in one
/// of many.
#[test]
fn reductions_over_many_threads_exchange_twice() {
    for (columns, threads, scalar) in [(1000, 250, "f32"), (845, 169, "f32"), (490, 245, "f32")] {
        let d = computes(&softmax(columns, threads, scalar));
        let loops = d.text.lines().filter_map(|l| l.split("for (j = 1; j < ").nth(1));
        let turns = loops.filter_map(|l| l.split(';').next()?.parse::<i64>().ok());
        assert!(turns.max().is_some_and(|n| n <= 35), "{}", d.text);
        assert!(d.text.matches("barrier").count() >= 4, "{}", d.text);
    }
}

/// A tensor consecutive along a mode that the threads do not divide: spread along the other, so
/// that it can be reduced and repeated.
#[test]
fn modes_that_threads_would_cross_unevenly_are_kept_apart() {
    for (rows, columns) in [(3, 1000), (5, 96), (7, 64)] {
        let d = computes(&format!(
            "carbyne 2
%X:[({rows},{columns}):(1,{rows})].f32.GL
%Y:[{rows},{columns}].f32.GL
%R:[{rows},1].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @g <<<#grid, #cta>>> (%X) -> (%Y, %R) {{
  Allocate %x:[{rows},{columns}].f32.RF{{?}}
  Allocate %r:[{rows},1].f32.RF{{?}}
  Move <<<#grid, #cta>>> (%X) -> (%x)
  Reduction.sum <<<#grid, #cta>>> (%x) -> (%r) axis=1
  BinaryPointwise.sub <<<#grid, #cta>>> (%x, %r) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%Y)
  Move <<<#grid, #cta>>> (%r) -> (%R)
}}
"
        ));
        drop(d);
    }
}

#[test]
fn kernels_choose_numbers_of_threads_that_divide() {
    for (extents, warned) in [
        ("61,7", false),
        ("127,131", false),
        ("257,263", false),
        ("4099", false),
        ("15,1001", false),
    ] {
        let src = format!(
            "carbyne 2\n%A:[{extents}].f32.GL\n%B:[{extents}].f32.GL\nMove @m (%A) -> (%B)\n"
        );
        let d = computes(&src);
        assert_eq!(warns(&d), warned, "{extents}: {:?}\n{}", d.warnings, d.text);
        // No element is held twice.
        assert!(!d.text.contains("):((0") && !d.text.contains(",0),"), "{}", d.text);
    }
}

#[test]
fn what_is_read_element_by_element_may_be_spread_as_what_comes_in_vectors() {
    let src = "carbyne 2
%X:[4,2048].f16.GL
%w:[1,2047].f16.GL
%Y:[4,2048].f16.GL
Spec @sum <<<#grid:[@b < 4], #cta:[256]>>> (%X, %w) -> (%Y) {
  Move (%w.pad([0,1]).tile([1,2048])[0, 0]) -> (%r:RF) atom=ld.global.b16
  Move (%X.tile([1,_])[@b, 0]) -> (%x:RF)
  %y = %x + %r
  Move (%y) -> (%Y.tile([1,_])[@b, 0]) atom=st.global.b128
}
";
    let d = computes(src);
    assert!(d.text.contains("atom=ld.global.b16\n"), "{}", d.text);
    assert!(d.text.contains("atom=ld.global.b128\n"), "{}", d.text);
}

#[test]
fn vectors_that_begin_anywhere_are_loaded_with_what_lies_around_them() {
    for (scalar, n) in [("f16", 1001), ("bf16", 1023), ("i8", 997), ("f32", 1021), ("f64", 511)] {
        let src = format!(
            "carbyne 2
%X:[3,{n}].{scalar}.GL
%Y:[3,1024].{scalar}.GL
Spec @k <<<#grid:[@b < 3], #cta:[64]>>> (%X) -> (%Y) {{
  Move (%X.tile([1,1024])[@b, 0]) -> (%x:RF)
  Move (%x) -> (%Y.tile([1,1024])[@b, 0])
}}
"
        );
        let d = computes(&src);
        assert!(d.text.contains("atom=ld.global.b128.unaligned\n"), "{}", d.text);
    }
    // Where vectors begin at multiples of 16 bytes one load is enough; elements of half a byte are
    // not copied one by one, and rows that an index names do not lie side by side.
    let aligned = "carbyne 2
%X:[3,1000].f16.GL
%Y:[3,1024].f16.GL
Spec @k <<<#grid:[@b < 3], #cta:[64]>>> (%X) -> (%Y) {
  Move (%X.tile([1,1024])[@b, 0]) -> (%x:RF)
  Move (%x) -> (%Y.tile([1,1024])[@b, 0])
}
";
    let halves = "carbyne 2
%X:[3,2051].i4.GL
%Y:[3,2050].i4.GL
Move @k (%X.tile([3,2050])[0, 0]) -> (%Y)
";
    let gathered = "carbyne 2
%A:[64,999].f16.GL
%rows:[32].i32.GL in 0..64
%Y:[32,999].f16.GL
Spec @k (%A, %rows) -> (%Y) means {
  %Y = move(%A[%rows, _])
}
";
    let table = sm_80();
    for src in [aligned, halves, gathered] {
        if let Ok(d) = decomposed(src, &table) {
            assert!(!d.text.contains("b128.unaligned"), "{}", d.text);
        }
    }
    computes(aligned);
    computes(gathered);
}

#[test]
fn factors_of_32_bits_are_summed_up_to_any_depth() {
    let product = |(m, n, k): (i64, i64, i64), scalar: &str, result: &str| {
        format!(
            "carbyne 2
%A:[{m},{k}].{scalar}.GL
%B:[{k},{n}].{scalar}.GL
%C:[{m},{n}].{result}.GL
MatMul.set @g (%A, %B) -> (%C) acc=f32
"
        )
    };
    for sizes in [(33, 70, 100), (65, 31, 1002), (40, 40, 36)] {
        computes(&product(sizes, "f32", "f32"));
    }
    let table = AtomTable::new(Arch::Sm90a);
    let chosen = |src: &str| {
        let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        d.text.matches("by=@wgmma").count()
    };
    assert_eq!(chosen(&product((1000, 1000, 1000), "f32", "f32")), 0);
    // Sizes that 32 divides are rounded up to tiles of warp groups; a result of 32 bits whose rows
    // begin anywhere has room to be staged.
    let sizes = [(992, 992, 992), (4064, 4064, 4064), (1000, 8191, 1000)];
    for &sizes in testing::one_of("32 bits", &sizes) {
        let result = if sizes.1 == 8191 { "f32" } else { "f16" };
        assert!(chosen(&product(sizes, "f16", result)) > 0, "{sizes:?}");
    }
}

/// Estimates the kernels of a program, in cycles.
fn cycles(src: &str) -> f64 {
    let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{src}\n{:?}", e.into_vec()));
    let chosen = d.rankings.iter().filter_map(|r| r.instances.first());
    chosen.filter_map(|i| i.cycles).sum()
}

#[test]
fn odd_rows_cost_what_a_few_more_do() {
    let formulas = [
        ("max(%X, axis=1) - min(%X, axis=1)", "1"),
        ("exp(%X - max(%X, axis=1)) / sum(exp(%X - max(%X, axis=1)), axis=1)", "N"),
        ("%X * 0.5 + exp(%X)", "N"),
    ];
    for (formula, columns) in formulas {
        let of = |m: i64, n: i64| {
            let lets = format!("let M = {m}, N = {n}");
            let tensors = format!("%X:[M,N].f32.GL\n%Y:[M,{columns}].f32.GL");
            let spec = format!("Spec @k (%X) -> (%Y) means {{\n  %Y = {formula}\n}}");
            cycles(&format!("carbyne 2\n{lets}\n{tensors}\n{spec}\n"))
        };
        let up = |n: i64| (n + 63) / 64 * 64;
        for (m, n) in [(3, 1000), (33, 512), (129, 512), (1003, 1003), (5, 33)] {
            let (odd, more) = (of(m, n), of(up(m), up(n)));
            assert!(odd < 1.25 * more, "{m}x{n}, {formula}: {odd} and {more} cycles");
        }
    }
}
