//! Tests the layout algebra over symbols: after substitution of values, a symbolic result is the
//! same function as the result over numbers. Inverses and common layouts may differ from those over
//! numbers, but must be correct. If a fact is missing, the error names it.

use carbyne_ir::expr::{Dim, ExprArena, VarId, VarInfo};
use carbyne_ir::layout::{CoordLayout, Layout, LayoutError, Tiler};
use carbyne_ir::leaf::Leaf;
use carbyne_ir::testing;
use carbyne_ir::tuple::IntTuple;
use proptest::prelude::*;

struct Setting {
    arena: ExprArena,
    m: Dim,
    k: Dim,
}

fn setting() -> Setting {
    let arena = ExprArena::new();
    let m = arena.var(VarInfo::size("M")).unwrap();
    let k = arena.var(VarInfo { div: 64, ..VarInfo::size("K") }).unwrap();
    Setting { arena, m, k }
}

impl Setting {
    fn values(&self, m: i64, k: i64) -> impl Fn(VarId) -> Option<i64> {
        let ids = [self.arena.var_id(self.m), self.arena.var_id(self.k)];
        move |var| match ids.iter().position(|&id| id == Some(var)) {
            Some(0) => Some(m),
            Some(1) => Some(k),
            _ => None,
        }
    }
    fn row_major(&self) -> Layout<Dim> {
        Layout::row_major_in(&self.arena, vec![self.m, self.k]).unwrap()
    }
    fn fixed(&self, layout: &Layout<Dim>, m: i64, k: i64) -> Layout {
        layout.eval(&self.arena, &self.values(m, k)).unwrap()
    }
}

fn dims(text: &str) -> Layout<Dim> {
    Layout::from_fixed(&text.parse().unwrap())
}

#[test]
fn a_row_major_matrix_is_tiled() {
    let s = setting();
    let a = s.row_major();
    assert_eq!(a.display_in(&s.arena), "(M,K):(K,1)");
    assert_eq!(a.cosize_in(&s.arena).map(|c| s.arena.display(c)).unwrap(), "M*K");
    let tiles = a
        .zipped_divide_in(&s.arena, Tiler::tile(&[Dim::Const(128), Dim::Const(64)]).unwrap())
        .unwrap();
    let text = tiles.display_in(&s.arena);
    assert_eq!(text, "((128,64),((M + 127)/128,K/64)):((K,1),(K*128,64))");
    let fixed = s.fixed(&tiles, 1000, 256);
    let tiler = Tiler::tile(&[128, 64]).unwrap();
    assert_eq!(fixed, s.fixed(&a, 1000, 256).zipped_divide(tiler).unwrap());
}

#[test]
fn indices_of_symbols_simplify() {
    let s = setting();
    let a = s.row_major();
    let i = s.arena.var(VarInfo::index("i", 16)).unwrap();
    let j = s.arena.var(VarInfo::index("j", 64)).unwrap();
    let at = |coord: Vec<Dim>| a.crd2idx_in(&s.arena, &coord.into()).unwrap();
    assert_eq!(s.arena.display(at(vec![i, j])), "j + K*i");
    // A flat thread index in a tile of known shape.
    let tid = s.arena.var(VarInfo::index("tid", 128)).unwrap();
    let tile = dims("(8,16):(16,1)");
    let index = tile.at_in(&s.arena, tid).unwrap();
    assert_eq!(s.arena.display(index), "tid % 8*16 + tid/8");
    let swap = dims("(8,16):(1,8)");
    assert_eq!(swap.at_in(&s.arena, tid), Ok(tid));
}

#[test]
fn compositions_use_divisibility() {
    let s = setting();
    // Columns of 64 in an extent K that is a multiple of 64.
    let a = Layout::new(vec![s.k, s.m], vec![Dim::Const(1), s.k]).unwrap();
    assert_eq!(a.coalesce_in(&s.arena).unwrap().rank(), 1);
    let padded = s.arena.add(s.k, Dim::Const(8)).unwrap();
    let a = Layout::new(vec![s.k, s.m], vec![Dim::Const(1), padded]).unwrap();
    let tiles = a.logical_divide_in(&s.arena, dims("64:1")).unwrap();
    let fixed = s.fixed(&tiles, 10, 256);
    let want = s.fixed(&a, 10, 256).logical_divide("64:1".parse::<Layout>().unwrap()).unwrap();
    for i in 0..fixed.size() {
        assert_eq!(fixed.at(i), want.at(i));
    }
}

#[test]
fn missing_facts_are_named() {
    let s = setting();
    let padded = s.arena.add(s.k, Dim::Const(8)).unwrap();
    let a = Layout::new(vec![s.k, s.m], vec![Dim::Const(1), padded]).unwrap();
    let error = a.compose_in(&s.arena, &dims("128:1")).unwrap_err();
    assert_eq!(error.to_string(), "cannot decide without knowing `K % 128 == 0`");
    assert_eq!(error.code(), "L0108");
    let a = Layout::new(vec![s.m, s.k], vec![Dim::Const(1), padded]).unwrap();
    let error = a.compose_in(&s.arena, &dims("(3,4):(1,3)")).unwrap_err();
    assert!(matches!(error, LayoutError::NeedsFact { .. }), "{error}");
    let never = s.arena.var(VarInfo { lo: -4, hi: Some(0), ..VarInfo::size("z") }).unwrap();
    let error = Layout::new_in(&s.arena, never, Dim::Const(1)).unwrap_err();
    assert_eq!(error.code(), "L0110");
}

fn shape() -> impl Strategy<Value = Vec<(i64, i64)>> {
    let extent = prop_oneof![Just(2i64), Just(4), Just(8), 1i64..7, Just(-1), Just(-2)];
    let stride = prop_oneof![Just(1i64), Just(2), Just(8), Just(64), Just(0), Just(-1), Just(-2)];
    prop::collection::vec((extent, stride), 1..4)
}

/// A layout in which -1 stands for `M`, and -2 for `K`.
fn symbolic(s: &Setting, leaves: &[(i64, i64)]) -> Layout<Dim> {
    let dim = |v: i64| match v {
        -1 => s.m,
        -2 => s.k,
        v => Dim::Const(v),
    };
    let shape: Vec<Dim> = leaves.iter().map(|l| dim(l.0)).collect();
    let stride: Vec<Dim> = leaves.iter().map(|l| dim(l.1)).collect();
    Layout::new(shape, stride).unwrap()
}

proptest! {
    #![proptest_config(testing::config(1500))]

    #[test]
    fn symbolic_answers_hold_for_every_value(a in shape(), b in shape(), m in 1i64..6) {
        let s = setting();
        let (a, b) = (symbolic(&s, &a), symbolic(&s, &b));
        let cx = &s.arena;
        let composed = a.compose_in(cx, &b);
        let complement = b.complement_in(cx, a.size_in(cx).unwrap());
        let coalesced = a.coalesce_in(cx).unwrap();
        let divided = a.logical_divide_in(cx, &b);
        for (m, k) in [(m, 64), (m + 1, 128)] {
            let (fa, fb) = (s.fixed(&a, m, k), s.fixed(&b, m, k));
            let limit = |layout: &Layout| layout.size().min(3000);
            let fixed = s.fixed(&coalesced, m, k);
            for i in 0..limit(&fa) {
                prop_assert_eq!(fixed.at(i), fa.at(i));
            }
            if let Ok(composed) = &composed {
                let fixed = s.fixed(composed, m, k);
                prop_assert!(fb.shape().compatible(&fixed.shape()));
                for i in 0..limit(&fb) {
                    prop_assert_eq!(fixed.at(i), fa.at(fb.at(i)), "{} o {}", fa, fb);
                }
            }
            if let Ok(complement) = &complement {
                let fixed = s.fixed(complement, m, k);
                prop_assert!((1..fixed.size().min(3000)).all(|i| fixed.at(i - 1) < fixed.at(i)));
                let both = Layout::concat(&[fb.filter_zeros(), fixed]).unwrap();
                if both.size() < 100_000 {
                    prop_assert_eq!(both.is_injective(), Ok(true), "{}", both);
                }
            }
            if let (Ok(divided), Ok(complement)) = (&divided, &complement) {
                let (fixed, rest) = (s.fixed(divided, m, k), s.fixed(complement, m, k));
                let both = Layout::concat(&[fb.clone(), rest]).unwrap();
                // Partial tiles reach beyond the end; see `ragged_tiles_are_rounded_up`.
                let even = fixed.size() == fa.size() && both.size() == fa.size();
                for i in 0..if even { limit(&both) } else { 0 } {
                    prop_assert_eq!(fixed.at(i), fa.at(both.at(i)), "{} by {}", fa, fb);
                }
            }
        }
    }

    #[test]
    fn symbolic_indices_are_those_of_numbers(a in shape(), m in 1i64..6, i in 0i64..500) {
        let s = setting();
        let a = symbolic(&s, &a);
        let at = s.arena.var(VarInfo::index("i", 500)).unwrap();
        let id = s.arena.var_id(at);
        let index = a.at_in(&s.arena, at).unwrap();
        let values = s.values(m, 128);
        let value = |var| if Some(var) == id { Some(i) } else { values(var) };
        let fixed = a.eval(&s.arena, &values).unwrap();
        prop_assert_eq!(s.arena.eval(index, &value), Ok(fixed.at(i)));
        let coord = IntTuple::Leaf(at);
        let split = carbyne_ir::layout::index::idx2crd_in(&s.arena, &coord, &a.shape()).unwrap();
        let split = split.try_map(&mut |d| s.arena.eval(*d, &value));
        prop_assert_eq!(split, Ok(fixed.coord(i)));
    }

    /// For every operation: after substitution of values, the symbolic result is the function of
    /// the numeric result. An operation without a result lacks a fact, or is refused for numbers,
    /// too.
    #[test]
    fn every_operation_takes_symbols(a in shape(), b in shape(), op in 0usize..18, m in 1i64..6) {
        let s = setting();
        let (a, b) = (symbolic(&s, &a), symbolic(&s, &b));
        let answer = operate(&s.arena, op, &a, &b);
        // A symbol with value 1 makes modes of extent 1, for which other results are also correct.
        for (m, k) in [(m + 1, 64), (m + 2, 128)] {
            let plain = operate(&(), op, &s.fixed(&a, m, k), &s.fixed(&b, m, k));
            match (&answer, plain) {
                (Ok(answer), Ok(plain)) => {
                    let fixed = s.fixed(answer, m, k);
                    let of = s.fixed(&a, m, k);
                    if op == 1 {
                        prop_assert!((0..fixed.size().min(2000)).all(|i| of.at(fixed.at(i)) == i));
                        continue;
                    }
                    if op == 2 {
                        // Any left inverse is correct; a symbol with value 1 makes a different one.
                        let all = (0..of.size().min(2000)).map(|i| of.at(i));
                        prop_assert!(all.into_iter().all(|at| of.at(fixed.at(at)) == at));
                        continue;
                    }
                    if op == 17 {
                        // The longest run that is known. For particular values of the symbols, a
                        // longer one may exist.
                        prop_assert!(fixed.size() <= plain.size());
                        prop_assert!((0..fixed.size()).all(|i| of.at(fixed.at(i)) == i));
                        continue;
                    }
                    prop_assert_eq!(fixed.size(), plain.size(), "{}: {} and {}", op, fixed, plain);
                    for i in 0..plain.size().min(2000) {
                        let (found, want) = (fixed.at(i), plain.at(i));
                        prop_assert_eq!(found, want, "{}: {} and {}", op, fixed, plain);
                    }
                }
                // If numbers are refused, symbols must be refused, too.
                (Ok(answer), Err(error)) => prop_assert!(
                    false, "{op}: {} though {error}", answer.display_in(&s.arena)
                ),
                (Err(error), _) => prop_assert!(error.code() != "L0107", "{op}: {error}"),
            }
        }
    }
}

/// The operation with this number, for numbers and symbols.
fn operate<L: Leaf>(
    cx: &L::Cx,
    op: usize,
    a: &Layout<L>,
    b: &Layout<L>,
) -> Result<Layout<L>, LayoutError> {
    let eight = L::constant(8);
    match op {
        0 => a.compose_in(cx, b),
        1 => a.right_inverse_in(cx),
        2 => a.left_inverse_in(cx),
        3 => a.nullspace_in(cx),
        4 => a.filter_zeros_in(cx),
        5 => a.logical_product_in(cx, b),
        6 => a.blocked_product_in(cx, b),
        7 => a.raked_product_in(cx, b),
        8 => a.zipped_divide_in(cx, Tiler::tile(&[L::constant(2)])?),
        9 => a.tiled_divide_in(cx, Tiler::tile(&[eight])?),
        10 => a.flat_divide_in(cx, Tiler::tile(&[L::constant(2)])?),
        11 => a.upcast_in(cx, 2),
        12 => a.downcast_in(cx, 4),
        13 => a.recast_in(cx, 16, 4),
        14 => a.with_shape_in(cx, vec![L::constant(2), L::constant(1)]),
        15 => a.coalesce_by_in(cx, &IntTuple::Tuple(vec![IntTuple::Leaf(1)])),
        16 => a.complement_in(cx, b.shape()),
        _ => a.max_common_layout_in(cx, b),
    }
}

#[test]
fn most_operations_on_symbols_are_answered() {
    let s = setting();
    // A padded matrix with K rows and M columns, and a tile of it.
    let padded = s.arena.add(s.k, Dim::Const(64)).unwrap();
    let a = Layout::new(vec![s.k, s.m], vec![Dim::Const(1), padded]).unwrap();
    let b = dims("(8,2):(1,8)");
    let show = |op: usize| match operate(&s.arena, op, &a, &b) {
        Ok(layout) => layout.display_in(&s.arena),
        Err(error) => error.to_string(),
    };
    let all: Vec<String> = (0..18).map(show).collect();
    expect_test::expect![[r#"
        (8,2):(1,8)
        K:1
        (K + 64,M):(1,K)
        1:0
        (K,M):(1,K + 64)
        cannot decide without knowing `8 % (64/K + 1) == 0`
        cannot decide without knowing `8 % (64/K + 1) == 0`
        cannot decide without knowing `8 % (64/K + 1) == 0`
        ((2),(K/2,M)):((1),(2,K + 64))
        ((8),K/8,M):((1),8,K + 64)
        ((2),K/2,M):((1),2,K + 64)
        (K/2,M):(1,K/2 + 32)
        (K*4,M):(1,K*4 + 256)
        (K*4,M):(1,K*4 + 256)
        (2,1):(1,0)
        (K,M):(1,K + 64)
        (64/K + 1,ceil_div(8, M*64 + M*K)*ceil_div(2, M*8 + M*(K/8))):(K,M*64 + M*K)
        16:1"#]]
    .assert_eq(&all.join("\n"));
}

#[test]
fn coordinates_and_slices_take_symbols() {
    let s = setting();
    let a = s.row_major();
    let coord = IntTuple::Tuple(vec![IntTuple::Leaf(Some(Dim::Const(3))), IntTuple::Leaf(None)]);
    assert_eq!(a.slice(&coord).unwrap().display_in(&s.arena), "(K):(1)");
    let offset = a.slice_offset_in(&s.arena, &coord).unwrap();
    assert_eq!(s.arena.display(offset), "K*3");
    let identity = CoordLayout::identity(vec![s.m, s.k]).unwrap();
    let tiler = Tiler::tile(&[Dim::Const(8), Dim::Const(64)]).unwrap();
    let tiles = identity.zipped_divide_in(&s.arena, tiler).unwrap();
    let text = tiles.display_in(&s.arena);
    assert_eq!(text, "((8,64),((M + 7)/8,K/64)):((1@0,1@1),(8@0,64@1))");
    // The error names the missing fact.
    let upcast = s.row_major().upcast_in(&s.arena, 128).unwrap_err();
    assert_eq!(upcast.to_string(), "cannot decide without knowing `K % 128 == 0`");
}
