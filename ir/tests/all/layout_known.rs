//! Compares operations of the layout algebra with known results; some are from the Hexcute paper
//! and from the documentation of CuTe. Also tests refusals, the text of layouts, and numbers at the
//! ends of their range.

use carbyne_ir::layout::{ComposedLayout, Layout, LayoutError, Swizzle, Tiler};
use carbyne_ir::tuple::IntTuple;

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn same(a: &Layout, b: &Layout) {
    assert_eq!(a.size(), b.size(), "{a} and {b}");
    for i in 0..a.size() {
        assert_eq!(a.at(i), b.at(i), "{a} and {b} at {i}");
    }
}

fn composes(a: &str, b: &str, expect: &str) {
    let result = layout(a).compose(&layout(b)).unwrap_or_else(|e| panic!("{a} o {b}: {e}"));
    assert_eq!(result.to_string(), expect, "{a} o {b}");
}

fn refuses(a: &str, b: &str, outer: &str, inner: &str) {
    match layout(a).compose(&layout(b)) {
        Err(LayoutError::Indivisible(clash)) => {
            let (o, i) = (clash.outer, clash.inner);
            assert_eq!((o.as_str(), i.as_str()), (outer, inner), "{a} o {b}");
        }
        other => panic!("{a} o {b} gives {other:?}"),
    }
}

#[test]
fn hexcute_appendix_c() {
    let q = layout("((4,8),(2,4)):((64,1),(32,8))");
    let q_inverse = layout("((8,4),(2,4)):((4,64),(32,1))");
    same(&q.right_inverse(), &q_inverse);
    same(&q.left_inverse().unwrap(), &q_inverse);
    let g = layout("((4,8),(2,2,2)):((32,1),(16,8,256))");
    let f = g.compose(&q_inverse).unwrap();
    same(&f, &layout("((8,2,2),(2,4)):((1,8,256),(16,32))"));
    let tile = f.with_shape(vec![32, 8]).unwrap();
    assert_eq!(tile.at_coord(&vec![17, 5].into()), Ok(337));
}

#[test]
fn composition_is_exact_or_refused() {
    composes("(8,8):(8,1)", "3:3", "3:24");
    composes("(4,1):(1,0)", "8:1", "(4,2):(1,0)");
    composes("(4,8):(8,1)", "8:6", "(2,4):(17,3)");
    composes("(8,8):(8,1)", "4:9", "4:9");
    composes("(4,3):(3,1)", "24:1", "(4,6):(3,1)");
    refuses("(4,36):(4,64)", "32:3", "4:4", "32:3");
    refuses("(8,8):(8,1)", "4:3", "8:8", "4:3");
    // Each mode divides separately, but together they carry.
    refuses("(8,8):(8,1)", "(2,2):(6,5)", "8:8", "2:5");
}

#[test]
fn errors_have_codes_and_help() {
    let error = layout("(4,36):(4,64)").compose(&layout("32:3")).unwrap_err();
    assert_eq!(error.code(), "L0101");
    assert!(error.help().is_some_and(|help| help.contains("32:3")));
    let code = |text: &str| text.parse::<Layout>().unwrap_err().code();
    assert_eq!(code("(2,3):(1"), "L0105");
    assert_eq!(code("(2,3):1"), "L0103");
    assert_eq!(code("0:1"), "L0110");
    assert_eq!(code("(4294967296,4294967296):(1,1)"), "L0102");
    assert_eq!(code("99999999999999999999:1"), "L0102");
    let deep = format!("{}4{}:1", "(".repeat(200), ")".repeat(200));
    assert_eq!(code(&deep), "L0106");
    assert_eq!(code(&format!("({})", vec!["1"; 100_000].join(","))), "L0107");
    assert_eq!(layout("4:-1").complement(16).unwrap_err().code(), "L0112");
    assert_eq!(layout("(4,4):(1,2)").complement(16).unwrap_err().code(), "L0109");
    assert_eq!(layout("4:1").mode(1).unwrap_err().code(), "L0104");
}

#[test]
fn text_round_trips() {
    for text in ["4:1", "(4):(1)", "():()", "((2,2),8):((1,16),2)", "(3,(4,(5))):(-1,(0,(7)))"] {
        assert_eq!(layout(text).to_string(), text);
    }
    assert_eq!(layout(" ( 2 , 3 ) : ( 1 , 2 ) ").to_string(), "(2,3):(1,2)");
    assert_eq!("(2,(3,4))".parse::<IntTuple>().unwrap().to_string(), "(2,(3,4))");
}

#[test]
fn copies_go_behind_holes_that_hold_none() {
    // There is a free place between 0, 1 and 3, 4, but no stride reaches it in every row.
    let a = layout("(2,2,4):(1,16,3)");
    let product = a.logical_product(layout("10:1")).expect("a product");
    assert_eq!(product.to_string(), "((2,2,4),10):((1,16,3),32)");
}

#[test]
fn divisions_and_products() {
    let tiler = Tiler::tile(&[4, 8]).unwrap();
    let zipped = layout("(8,24):(1,8)").zipped_divide(tiler).unwrap();
    assert_eq!(zipped.to_string(), "((4,8),(2,3)):((1,8),(4,64))");
    let product = layout("(2,2):(4,1)").logical_product(layout("6:1")).unwrap();
    same(&product, &layout("((2,2),(2,3)):((4,1),(2,8))"));
    let ragged = layout("1000:1").logical_divide(layout("128:1")).unwrap();
    assert_eq!(ragged.to_string(), "(128,8):(1,128)");
}

#[test]
fn extremes_do_not_panic() {
    let max = i64::MAX;
    for text in [format!("{max}:1"), format!("2:{}", max - 1), format!("(2,2):({},0)", max / 2)] {
        let a = layout(&text);
        assert!(a.at(max) <= max && a.at(i64::MIN) <= max);
        for other in [&a, &layout("(3,5):(7,11)"), &layout("4:0")] {
            let _ = (a.compose(other), a.logical_divide(other), a.logical_product(other));
        }
        let _ = (a.complement(max), a.left_inverse(), a.right_inverse(), a.is_injective());
    }
    assert!(Layout::new(i64::MAX, 2).is_err());
    assert!(Layout::new(2, i64::MIN).is_err());
}

#[test]
fn swizzles() {
    let swizzle = Swizzle::new(3, 4, 3).unwrap();
    assert_eq!(swizzle.to_string(), "Sw<3,4,3>");
    assert_eq!(swizzle.period(), 1024);
    assert_eq!(swizzle.recast(8, 16).unwrap().to_string(), "Sw<3,3,3>");
    assert_eq!(swizzle.recast(8, 4).unwrap().to_string(), "Sw<3,5,3>");
    assert!(swizzle.recast(8, 24).is_err() && swizzle.recast(1, 32).is_err());
    assert!(Swizzle::new(3, 0, 2).is_err() && Swizzle::new(40, 40, 40).is_err());
    let composed = ComposedLayout::new(swizzle, 0, layout("(8,64):(64,1)"));
    assert_eq!(composed.to_string(), "Sw<3,4,3> o 0 o (8,64):(64,1)");
    for x in 0..4096 {
        assert_eq!(swizzle.apply(swizzle.apply(x)), x);
        assert_eq!(swizzle.apply(x + 1024), swizzle.apply(x) + 1024);
        let (bytes, halves) = (swizzle.apply(2 * x), swizzle.recast(8, 16).unwrap().apply(x));
        assert_eq!(bytes, 2 * halves);
    }
}
