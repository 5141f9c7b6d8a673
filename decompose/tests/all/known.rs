//! Compares functions that compute layouts, swizzles and wavefronts with known results: those of
//! the Hexcute paper, and numbers that follow from definitions. One test decomposes an int4 product
//! like the paper's, and compares its layout and atoms with expected ones.

use crate::support::{decomposed, run, sm_80};
use carbyne_decompose::internals::smem::{Access, Banks};
use carbyne_decompose::internals::smem::{best_swizzle, unify, wavefronts};
use carbyne_decompose::internals::tv::{Gemm, coalesced, other_side, split, tv};
use carbyne_ir::layout::Layout;

fn l(text: &str) -> Layout {
    text.parse().expect("a layout")
}

/// Hexcute, appendix C.
#[test]
fn ldmatrix_of_a_16_by_32_tile() {
    let q = l("((4,8),(2,4)):((64,1),(32,8))");
    let g = l("((4,8,2),(2,2,2)):((32,1,128),(16,8,256))");
    let inverse = q.right_inverse();
    let want = l("((8,4),(2,4)):((4,64),(32,1))");
    assert!((0..256).all(|i| inverse.at(i) == want.at(i)));

    let parts = split(&g, 32, 8).expect("divides");
    let composed = tv(&parts.lanes, &parts.inst).and_then(|g| g.compose(&inverse)).expect("exact");
    let want = l("((8,2,2),(2,4)):((1,8,256),(16,32))");
    assert!((0..256).all(|i| composed.at(i) == want.at(i)));
    assert_eq!(composed.at(17 + 32 * 5), 337);

    // f = g∘q⁻¹∘p: lane l addresses row l of the four matrices.
    let p = l("(32,8):(1,32)");
    let f = other_side(&parts.lanes, &parts.inst, &q, &p).expect("exact");
    assert!((0..256).all(|i| f.at(i) == want.at(p.at(i))));
}

/// Hexcute, figure 10(c).
#[test]
fn unification() {
    let case_1 = unify(&[64, 64], 0, &[vec![(8, 1)], vec![(8, 1), (4, 16)]]).expect("unifies");
    assert_eq!(case_1, l("((8,2,4),64):((1,32,8),64)"));
    assert!(unify(&[64, 64], 0, &[vec![(8, 1)], vec![(8, 64)]]).is_err());
}

#[test]
fn unified_layouts_are_compact_and_keep_runs() {
    for (shape, run) in [
        (vec![128, 32], vec![(8, 128)]),
        (vec![96, 48], vec![(8, 96)]),
        (vec![16, 160], vec![(8, 16)]),
    ] {
        let m = unify(&shape, 0, std::slice::from_ref(&run)).expect("unifies");
        let n: i64 = shape.iter().product();
        assert!(m.is_bijective_onto(n), "{m}");
        assert!((0..8).all(|i| m.at(i * run[0].1) == i), "{m}");
    }
}

/// Rows of 64 bytes, eight lanes of 16 bytes in one column: four conflict without a swizzle.
#[test]
fn swizzles_remove_conflicts() {
    let banks = Banks { n: 32, bytes: 4 };
    let rows = l("(128,32):(32,1)");
    let lanes: Vec<i64> = (0..32).map(|lane| lane % 16 + 128 * (8 * (lane / 16))).collect();
    let access = [Access { lanes: vec![lanes], bytes: 16, weight: 1.0 }];
    assert_eq!(wavefronts(&rows, None, 16, &access, banks), 16.0);
    let (swizzle, left) = best_swizzle(&rows, 16, &access, banks);
    assert_eq!(left, 4.0);
    assert_eq!(swizzle.expect("a swizzle").to_string(), "Sw<2,4,3>");
}

#[test]
fn gemm_layouts_of_four_warps() {
    let (p_a, p_b, p_c) = (
        l("((4,8),(2,2,2)):((32,1),(16,8,128))"),
        l("((4,8),(2,2)):((2,16),(1,8))"),
        l("((4,8),(2,2)):((32,1),(16,8))"),
    );
    let gemm = Gemm { inst: (16, 8, 16), block: (128, 128, 16), groups: (2, 2, 1) };
    let (a, b, c) = gemm.layouts(&p_a, &p_b, &p_c).expect("divides");
    assert_eq!(a, l("((4,8,2,2),(2,2,2,4)):((256,1,64,0),(128,8,1024,16))"));
    assert_eq!(b, l("((4,8,2,2),(2,2,8)):((2,16,0,1024),(1,8,128))"));
    assert_eq!(c, l("((4,8,2,2),(2,2,4,8)):((256,1,64,8192),(128,8,16,1024))"));
}

#[test]
fn coalesced_copies_follow_the_contiguous_direction() {
    // Row-major 128×32: four vectors of eight along a row.
    let f = coalesced(&l("(128,32):(4096,1)"), 8, 128, i64::MAX).expect("a grid");
    assert_eq!(f, l("((4,32),(8,4)):((1024,1),(128,32))"));
    // 20 vectors a row and 16 rows do not share 96 threads evenly: 32 take part.
    let f = coalesced(&l("(16,160):(4096,1)"), 8, 96, i64::MAX).expect("a grid");
    assert_eq!(f.mode(0).expect("threads").size(), 32);
    assert!(coalesced(&l("(128,32):(4096,2)"), 8, 128, i64::MAX).is_err());
}

/// Packed weights (Hexcute, Fig. 5) go by 16 bytes into shared memory and leave it by matrix loads,
/// without conflicts and without an exchange between threads. The paper's layout of 128 by 128,
/// ((8,2,8),(2,64)):((4,2,2048),(1,32)), keeps k, k + 1 and n, n + 8 together too.
#[test]
fn int4_weights_stay_packed() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tile/int4_gemm.cby");
    let src = std::fs::read_to_string(path).expect("the example");
    let table = sm_80();
    let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    let after = |what: &str| {
        let at = d.text.find(what).unwrap_or_else(|| panic!("no {what} in {}", d.text));
        d.text[at..].split("atom=").nth(1).and_then(|t| t.split_whitespace().next()).unwrap_or("")
    };
    assert_eq!(after("(%B.tile([BK,BN])[k, @bn]) -> (%packed)"), "cp.async.cg.b128");
    assert_eq!(after("(%packed) -> (%r)"), "ldmatrix.x4.b16");
    assert_eq!(after("(%r) -> (%b)"), "cvt.f16x2.s4x2");
    let layout = "%packed:[((2,4,2,4),(8,2,8)):((1,8,2,32),(128,4,1024))].i4.SH";
    assert!(d.text.contains(layout), "{}", d.text);
    let report = run(&d.program, &table).unwrap_or_else(|e| panic!("{}\n{e:?}", d.text));
    let kernel = &report.kernels[0];
    assert!(kernel.complete, "{}", d.text);
    for leaf in &kernel.leaves {
        let banks = &leaf.count.shared;
        assert_eq!(banks.wavefronts, banks.ideal, "line {}\n{}", leaf.line, d.text);
    }
}
