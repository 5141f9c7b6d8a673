//! Tests Moves from one thread-value layout of registers to another. The values are renamed within
//! a thread, exchanged between lanes (`shfl`), or stored to shared memory and loaded again,
//! whichever costs least.

use crate::moves::examples;
use crate::support::{decomposed, run, run_random, sm_80};
use carbyne_decompose::Decomposed;
use carbyne_decompose::certificate::{Certificate, Relation};
use carbyne_ir::diag::Code;
use carbyne_ir::testing;
use proptest::prelude::*;

/// A copy of `n` elements through registers of layout `f` and then `g`, by `threads` threads.
fn text(scalar: &str, n: i64, threads: i64, f: &str, g: &str) -> String {
    format!(
        "carbyne 2\n%A:[{n}].{scalar}.GL\n%B:[{n}].{scalar}.GL\n\
         #grid:[1].block\n#cta:[{threads}].thread\n\
         Move @g <<<#grid, #cta>>> (%A) -> (%B) {{\n\
         Allocate %x:[{n}].{scalar}.RF{{tv={f} over #cta}}\n\
         Allocate %y:[{n}].{scalar}.RF{{tv={g} over #cta}}\n\
         Move <<<#grid, #cta>>> (%A) -> (%x)\n\
         Move <<<#grid, #cta>>> (%x) -> (%y)\n\
         Move <<<#grid, #cta>>> (%y) -> (%B)\n}}\n"
    )
}

/// Decomposes, and runs the result against the meaning of every Move.
fn checked(src: &str) -> Decomposed {
    let table = sm_80();
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    for report in [run(&d.program, &table), run_random(&d.program, &table)] {
        let report = report.unwrap_or_else(|e| panic!("{src}{}\n{e:?}", d.text));
        let kernel = &report.kernels[0];
        assert!(kernel.complete && kernel.checked && kernel.unchecked.is_empty(), "{}", d.text);
    }
    d
}

/// Exchanges of the Move between registers; none where it goes through shared memory.
fn exchanges(d: &Decomposed) -> Option<usize> {
    let mut found = d.certificates.iter().filter_map(|c| match &c.relation {
        Relation::Exchange { steps, .. } => Some(steps.len()),
        _ => None,
    });
    let first = found.next();
    assert_eq!(first.is_some_and(|n| n > 0), d.text.contains("Shfl.bfly"), "{}", d.text);
    assert!(first.is_none() || !d.text.contains(".SH"), "{}", d.text);
    first
}

/// `((2,2),(2)):((1,4),(2))`: strides of the bits of threads and of values.
fn layout(threads: &[i64], values: &[i64]) -> String {
    let side = |of: &dyn Fn(i64) -> i64| {
        let one = |bits: &[i64]| {
            let each: Vec<String> = bits.iter().map(|s| of(*s).to_string()).collect();
            format!("({})", each.join(","))
        };
        format!("({},{})", one(threads), one(values))
    };
    format!("{}:{}", side(&|_| 2), side(&|s| s))
}

/// Strides of `n` bits, in this order.
fn strides(order: &[u32]) -> Vec<i64> {
    order.iter().map(|b| 1 << b).collect()
}

#[test]
fn a_bit_of_the_lane_for_a_bit_of_the_register() {
    let d = checked(&text("f32", 128, 32, "(32,4):(1,32)", "((16,2),(2,2)):((1,64),(16,32))"));
    assert_eq!(exchanges(&d), Some(1), "{}", d.text);
    let d = checked(&text("f32", 128, 32, "(32,4):(1,32)", "((8,4),4):((1,32),8)"));
    assert_eq!(exchanges(&d), Some(2), "{}", d.text);
}

#[test]
fn registers_alone_are_renamed() {
    let d = checked(&text("f32", 192, 32, "(32,(2,3)):(1,(32,64))", "(32,(3,2)):(1,(64,32))"));
    assert_eq!(exchanges(&d), Some(0), "{}", d.text);
}

#[test]
fn across_warps_it_goes_through_shared_memory() {
    let d = checked(&text("f32", 256, 64, "((32,2),4):((1,32),64)", "((32,2),4):((1,128),32)"));
    assert!(exchanges(&d).is_none() && d.text.contains(".SH"), "{}", d.text);
    // Halves of a word would have to go to different lanes.
    let d = checked(&text("f16", 64, 32, "(32,2):(2,1)", "(32,2):(1,32)"));
    assert!(exchanges(&d).is_none() && d.text.contains(".SH"), "{}", d.text);
}

#[test]
fn many_exchanges_cost_more_than_shared_memory() {
    // All bits of the lane, in a circle among themselves.
    let d = checked(&text("f32", 2048, 32, "(32,64):(1,32)", "((2,2,2,2,2),64):((2,4,8,16,1),32)"));
    assert!(exchanges(&d).is_none() && d.text.contains(".SH"), "{}", d.text);
}

#[test]
fn threads_that_hold_the_same_keep_it() {
    let f = "((4,8),4):((1,0),4)";
    let d = checked(&text("f32", 16, 32, f, "((4,8),(2,2)):((4,0),(1,2))"));
    assert_eq!(exchanges(&d), Some(2), "{}", d.text);
}

/// The factor of a product that another one left in registers.
#[test]
fn a_factor_is_brought_to_its_instruction() {
    let all = examples();
    let src = &all["rearrange"];
    let simulated = |src: &str| {
        let table = sm_80();
        let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        run(&d.program, &table).unwrap_or_else(|e| panic!("{}\n{e:?}", d.text));
        d
    };
    assert_eq!(exchanges(&simulated(src)), Some(2));
    let d = simulated(
        &src.replace("#cta:[32]", "#cta:[64]")
            .replace("matmul(matmul(%a, %b), %c)", "matmul(matmul(%a, %b, warps=(1,2)), %c)"),
    );
    assert!(exchanges(&d).is_none() && d.text.contains(".SH"), "{}", d.text);
}

/// A product whose accumulators are wanted in a layout that is stated: each lane four neighbors of
/// a row.
#[test]
fn accumulators_are_brought_to_a_stated_layout() {
    let src = "carbyne 2\n%A:[16,16].f16.GL\n%B:[16,16].f16.GL\n%O:[16,16].f32.GL\n\
        #grid:[1].block\n#cta:[32].thread\n\
        MatMul.set @g <<<#grid, #cta>>> (%A, %B) -> (%O) acc=f32 {\n\
        Allocate %a:[16,16].f16.RF{?}\n\
        Allocate %b:[16,16].f16.RF{?}\n\
        Allocate %o:[16,16].f32.RF{?}\n\
        Allocate %y:[16,16].f32.RF{tv=((4,8),(4,2)):((64,1),(16,8)) over #cta}\n\
        Move <<<#grid, #cta>>> (%A) -> (%a)\n\
        Move <<<#grid, #cta>>> (%B) -> (%b)\n\
        MatMul.set <<<#grid, #cta>>> (%a, %b) -> (%o)\n\
        Move <<<#grid, #cta>>> (%o) -> (%y)\n\
        Move <<<#grid, #cta>>> (%y) -> (%O)\n}\n";
    let d = checked(src);
    assert_eq!(exchanges(&d), Some(2), "{}", d.text);
    assert!(d.text.contains("st.global.b128"), "{}", d.text);
}

#[test]
fn warps_of_a_block_of_several_modes_are_refused() {
    let src = "carbyne 2\n%A:[32,64].f32.GL\n%B:[32,1].f32.GL\n#grid:[1].block\n\
        #cta:[(8,4):(1,8)].thread\n\
        Reduction.sum @g <<<#grid, #cta>>> (%A) -> (%B) axis=1 {\n\
        Allocate %x:[32,64].f32.RF{?}\n\
        Allocate %y:[32,1].f32.RF{?}\n\
        Move <<<#grid, #cta>>> (%A) -> (%x)\n\
        Reduction.sum <<<#grid, #cta>>> (%x) -> (%y) axis=1\n\
        Move <<<#grid, #cta>>> (%y) -> (%B)\n}\n";
    let errors = decomposed(src, &sm_80()).expect_err("two modes").into_vec();
    assert_eq!(errors[0].code, Code::NoStrategy, "{errors:?}");
}

#[test]
fn the_checker_refuses_other_steps() {
    let d = checked(&text("f32", 256, 32, "(32,8):(1,32)", "((8,4),(4,2)):((1,32),(8,128))"));
    let own = d.certificates.iter().find(|c| matches!(c.relation, Relation::Exchange { .. }));
    let own = own.expect("exchanges");
    own.check().expect("holds");
    type Steps = Vec<(i64, i64)>;
    let with = |change: &dyn Fn(&mut Steps)| {
        let mut other: Certificate = own.clone();
        if let Relation::Exchange { steps, .. } = &mut other.relation {
            change(steps);
        }
        other.check()
    };
    for i in 0..2 {
        for (mask, register) in [(0, 1), (3, 1), (32, 1), (-8, 1), (16, 0), (8, 3), (8, 8), (8, -1)]
        {
            assert!(with(&|s| s[i] = (mask, register)).is_err(), "{i} {mask} {register}");
        }
        assert!(with(&|s| s[i].0 /= 2).is_err());
        assert!(with(&|s| s[i].1 = if s[i].1 == 1 { 2 } else { 1 }).is_err());
        assert!(with(&|s| s.truncate(i)).is_err());
        assert!(with(&|s| s.push(s[i])).is_err());
    }
    assert!(with(&|s| s.swap(0, 1)).is_ok(), "these two do not depend on each other");
}

proptest! {
    #![proptest_config(testing::config_up_to(48, 1000))]
    #[test]
    fn any_order_of_bits_within_a_warp(
        f in Just((0..11).collect::<Vec<u32>>()).prop_shuffle(),
        g in Just((0..11).collect::<Vec<u32>>()).prop_shuffle(),
        values in 1usize..4,
        warps in 0usize..2,
        scalar in prop::sample::select(vec!["f32", "f64", "f16", "i8"]),
    ) {
        let packed: usize = match scalar { "f16" => 1, "i8" => 2, _ => 0 };
        let n = 5 + values + warps + packed;
        // The bits of a word stay where they are, and those of warps.
        let bits = |order: &[u32]| {
            let some: Vec<i64> = strides(order).into_iter().filter(|s| *s < 1 << n).collect();
            let (mut own, fixed): (Vec<i64>, Vec<i64>) =
                some.iter().partition(|s| **s >= 1 << (packed + warps));
            let fixed: Vec<i64> = { let mut f = fixed; f.sort_unstable(); f };
            let mut v = own.split_off(5);
            v.splice(0..0, fixed[..packed].iter().copied());
            own.extend(&fixed[packed..]);
            layout(&own, &v)
        };
        let d = checked(&text(scalar, 1 << n, 32 << warps, &bits(&f), &bits(&g)));
        exchanges(&d);
    }
}
