//! Tests details that an implementation of the layout algebra easily gets wrong, one detail in each
//! test.

use carbyne_ir::layout::index::idx2crd;
use carbyne_ir::layout::slice::Holes;
use carbyne_ir::layout::{ComposedLayout, CoordLayout, Layout, Swizzle, Tiler, shapes};
use carbyne_ir::tuple::IntTuple;

fn layout(text: &str) -> Layout {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn tuple(text: &str) -> IntTuple {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn composition_keeps_a_last_mode_of_extent_one() {
    // The last mode defines the layout beyond its domain.
    assert_eq!(layout("(4,1):(1,0)").compose(&layout("8:1")).unwrap().to_string(), "(4,2):(1,0)");
    assert_eq!(layout("4:1").compose(&layout("8:1")).unwrap().to_string(), "8:1");
}

#[test]
fn composition_asks_for_division_only_where_steps_carry() {
    let a = layout("(8,8):(8,1)");
    // Neither of 3 and 8 divides the other, but three steps of 3 stay in the mode.
    assert_eq!(a.compose(&layout("3:3")).unwrap().to_string(), "3:24");
    assert_eq!(a.compose(&layout("4:3")).unwrap_err().code(), "L0101");
    assert_eq!(layout("(4,36):(4,64)").compose(&layout("32:3")).unwrap_err().code(), "L0101");
}

#[test]
fn composition_finds_layouts_beyond_the_rule_of_division() {
    // Two carries cancel each other.
    let a = layout("(2,2,2):(1,5,7)");
    let result = a.compose(&layout("(2,2):(3,1)")).unwrap();
    assert_eq!(result.to_string(), "(2,2):(6,1)");
}

#[test]
fn composition_by_mode_drops_modes_that_no_tiler_reaches() {
    let a = layout("(8,5):(5,1)");
    let tiler = Tiler::tile(&[8]).unwrap();
    assert_eq!(a.compose_by_mode(tiler).unwrap().to_string(), "(8):(5)");
}

#[test]
fn division_by_mode_keeps_modes_that_no_tiler_reaches() {
    let a = layout("(8,5):(5,1)");
    let tiler = Tiler::tile(&[4]).unwrap();
    assert_eq!(a.logical_divide(tiler).unwrap().to_string(), "((4,2),5):((5,20),1)");
}

#[test]
fn compact_strides_of_extent_one_are_zero() {
    assert_eq!(Layout::col_major(tuple("(4,1,8)")).unwrap().to_string(), "(4,1,8):(1,0,4)");
    assert_eq!(Layout::row_major(tuple("(4,1,8)")).unwrap().to_string(), "(4,1,8):(8,0,1)");
}

#[test]
fn complement_divides_a_shape_mode_by_mode() {
    // Rounded up mode by mode: (1,2,32), not 480 / 8.
    assert_eq!(layout("8:1").complement(tuple("(3,5,32)")).unwrap().to_string(), "64:8");
    assert_eq!(layout("8:1").complement(480).unwrap().to_string(), "60:8");
}

#[test]
fn ragged_tiles_are_rounded_up() {
    let a = layout("(10,7):(7,1)");
    let d = a.logical_divide(layout("3:1")).unwrap();
    assert_eq!(d.to_string(), "(3,(4,7)):(7,(21,1))");
    // Element (i,(j,k)) is row i + 3j of column k, even if this row does not exist.
    for (i, j, k) in [(0, 0, 0), (2, 1, 6), (0, 3, 5)] {
        let at = d.at_coord(&tuple(&format!("({i},({j},{k}))"))).unwrap();
        assert_eq!(at, a.at_coord(&tuple(&format!("({},{k})", i + 3 * j))).unwrap());
    }
    assert_eq!(
        layout("1000:1").logical_divide(layout("128:1")).unwrap().to_string(),
        "(128,8):(1,128)"
    );
}

#[test]
fn right_inverse_skips_strides_that_continue_nothing() {
    assert_eq!(layout("(4,3):(0,1)").right_inverse().to_string(), "3:4");
    assert_eq!(layout("(4,8):(16,1)").right_inverse().to_string(), "8:4");
    assert_eq!(layout("4:2").right_inverse().to_string(), "1:0");
}

#[test]
fn left_inverse_is_a_quasi_inverse() {
    let l = layout("4:2").left_inverse().unwrap();
    assert_eq!(l.to_string(), "(2,4):(0,1)");
    assert!((0..4).all(|i| l.at(2 * i) == i));
    // CuTe's result has a negative extent.
    assert_eq!(layout("4:-1").left_inverse().unwrap().to_string(), "4:-1");
}

#[test]
fn a_number_is_no_tuple_of_one() {
    assert_ne!(layout("4:1"), layout("(4):(1)"));
    assert_eq!((layout("4:1").depth(), layout("(4):(1)").depth()), (0, 1));
    assert_eq!(layout("(4):(1)").to_string(), "(4):(1)");
}

#[test]
fn a_hole_keeps_a_tuple_that_holes_open() {
    let a = layout("((3,2),(2,5,2)):((4,1),(2,13,100))");
    let (hole, at) = (IntTuple::Leaf(None), |v| IntTuple::Leaf(Some(v)));
    let one: Holes = IntTuple::Tuple(vec![hole.clone(), at(5)]);
    assert_eq!(a.slice(&one).unwrap().to_string(), "((3,2)):((4,1))");
    let both = IntTuple::Tuple(vec![hole.clone(), hole]);
    let open: Holes = IntTuple::Tuple(vec![both, at(5)]);
    assert_eq!(a.slice(&open).unwrap().to_string(), "(3,2):(4,1)");
    assert_eq!(a.dice(&open).unwrap().to_string(), "((2,5,2)):((2,13,100))");
    assert_eq!(a.slice_offset(&open), Ok(28));
}

#[test]
fn the_last_mode_goes_on_beyond_its_extent() {
    assert_eq!(idx2crd(&50.into(), &tuple("(4,8)")).unwrap().to_string(), "(2,12)");
    assert_eq!(layout("(4,8):(8,1)").at(50), 28);
    assert_eq!(layout("(4,8):(8,1)").at_coord(&tuple("(2,12)")), Ok(28));
    // For negative coordinates a layout is mirrored, like division in C.
    assert_eq!(layout("(4,8):(8,1)").at(-5), -9);
}

#[test]
fn steps_down_are_steps_up_mirrored() {
    let a = layout("(1,(2,4)):(0,(-1,512))");
    assert_eq!(a.compose(&layout("4:-1")).unwrap().to_string(), "(2,2):(1,-512)");
    let b = layout("(4,4):(-1,1)");
    assert_eq!(
        b.compose(&layout("(2,4,2):(1,2,8)")).unwrap().to_string(),
        "(2,(2,2),2):(-1,(-2,1),2)"
    );
}

#[test]
fn steps_along_axes_compose_with_the_mode_they_name() {
    let steps: CoordLayout = "(2,4):(1@1@1,1@0)".parse().unwrap();
    let a = layout("(4,(2,3)):(6,(3,1))");
    assert_eq!(a.compose_coord_in(&(), &steps).unwrap().to_string(), "(2,4):(1,6)");
    // Tiles of an identity layout contain the coordinates of their elements.
    let identity = CoordLayout::identity(tuple("(128,64)")).unwrap();
    let tiles = identity.zipped_divide(Tiler::tile(&[64, 16]).unwrap()).unwrap();
    assert_eq!(tiles.to_string(), "((64,16),(2,4)):((1@0,1@1),(64@0,16@1))");
    let at = tiles.at_coord(&tuple("((3,5),(1,2))")).unwrap();
    assert_eq!(at.to_string(), "(67,37)");
}

#[test]
fn swizzles_move_through_layouts_that_keep_their_fields() {
    let composed = |text: &str| text.parse::<ComposedLayout>().unwrap();
    let a = composed("Sw<1,0,2> o 0 o (4,4):(4,1)");
    let r = a.right_inverse().unwrap();
    assert_eq!(r.to_string(), "Sw<1,0,-2> o 0 o (4,4):(4,1)");
    assert!((0..16).all(|i| a.at(r.at(i)) == i));
    // The second mode of (8,12):(1,8) does not preserve the fields of the swizzle.
    let swizzle = Swizzle::new(2, 0, 3).unwrap();
    assert_eq!(swizzle.through(&layout("(8,4):(1,24)")).unwrap_err().code(), "L0117");
    // Two equal swizzles cancel each other.
    let twice = composed("Sw<2,0,3> o 0 o Sw<2,0,3> o 0 o 64:1");
    assert_eq!(twice.plain(), Some(&layout("64:1")));
    assert_eq!(twice.recast(16, 32).unwrap().to_string(), "32:1");
}

#[test]
fn recasting_keeps_bits_together() {
    // Sub-byte elements: 4-bit numbers as bytes, bytes as 4-bit numbers.
    assert_eq!(layout("(32,8):(1,32)").recast(4, 8).unwrap().to_string(), "(16,8):(1,16)");
    assert_eq!(layout("(16,8):(1,16)").recast(8, 4).unwrap().to_string(), "(32,8):(1,32)");
    assert_eq!(layout("(6,8):(1,6)").recast(6, 8).unwrap_err().code(), "L0116");
    assert_eq!(layout("(8,8):(1,8)").recast(6, 8).unwrap().to_string(), "(6,8):(1,6)");
    // Half of a wide element, and parts without coordinates.
    assert_eq!(layout("3:1").upcast(2).unwrap_err().code(), "L0116");
    assert_eq!(layout("4:2").downcast(2).unwrap_err().code(), "L0116");
}

#[test]
fn quotients_of_shapes() {
    let div = |a: &str, b: i64| shapes::shape_div_in(&(), &tuple(a), b).map(|t| t.to_string());
    assert_eq!(div("(3,4)", 6), Ok("(1,2)".to_owned()));
    assert_eq!(div("((3,4),6)", 36), Ok("((1,1),2)".to_owned()));
    assert_eq!(div("(3,4)", 5).unwrap_err().code(), "L0101");
    let up = shapes::ceil_div_in(&(), &tuple("(10,7)"), 3).unwrap();
    assert_eq!(up.to_string(), "(4,7)");
}
