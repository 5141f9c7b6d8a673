//! Tests the solvers of equations between layouts element by element: copies (`solve`), runs of
//! consecutive elements (`unify`) and equality of functions.

use carbyne_ir::expr::{Dim, ExprArena, VarInfo};
use carbyne_ir::layout::{Layout, LayoutError, Obstacle, solve, solve_in, unify};
use carbyne_ir::leaf::Decision;
use carbyne_ir::testing;
use proptest::prelude::*;
use std::cell::Cell;
use std::collections::BTreeMap;

fn l(text: &str) -> Layout {
    text.parse().unwrap()
}

fn layout(leaves: &[(i64, i64)]) -> Layout {
    let modes = leaves.iter().map(|(n, d)| Layout::of_mode(*n, *d).unwrap());
    Layout::concat(&modes.collect::<Vec<_>>()).unwrap()
}

/// A compact layout with these extents, in another order of modes.
fn digits(extents: &[i64], order: &[usize]) -> Layout {
    let stride = |k: usize| extents[..k].iter().product();
    layout(&order.iter().map(|k| (extents[*k], stride(*k))).collect::<Vec<_>>())
}

/// Extents, and two orders of them.
fn factors() -> impl Strategy<Value = (Vec<i64>, Vec<usize>, Vec<usize>)> {
    let extents = prop::collection::vec(prop_oneof![Just(2i64), Just(4), Just(3)], 1..5);
    extents.prop_flat_map(|extents| {
        let orders = Just((0..extents.len()).collect::<Vec<_>>());
        (Just(extents), orders.clone().prop_shuffle(), orders.prop_shuffle())
    })
}

proptest! {
    #![proptest_config(testing::config(1000))]

    #[test]
    fn solutions_of_copies_satisfy_their_equation(
        (extents, p, q) in factors(),
        kept in 1usize..5,
        strides in prop::collection::vec(0i64..9, 4),
        broken in prop::option::of(0i64..3),
    ) {
        let f: Vec<_> = p.iter().zip(&strides).map(|(k, s)| (extents[*k], *s)).collect();
        let (f, q) = (layout(&f), digits(&extents, &q[..kept.min(q.len())]));
        let mut p = digits(&extents, &p);
        if let Some(stride) = broken {
            let mut leaves = p.leaves().to_vec();
            leaves[0].1 = stride;
            p = layout(&leaves);
        }
        let mut image: Vec<i64> = (0..p.size()).map(|i| p.at(i)).collect();
        image.sort_unstable();
        let bijective = image == (0..p.size()).collect::<Vec<_>>();
        match solve(&f, &p, &q) {
            Ok(g) if p == q => prop_assert_eq!(g, f),
            Ok(g) => {
                prop_assert!(bijective);
                prop_assert_eq!(g.size(), q.size());
                for j in 0..q.size() {
                    let i = (0..p.size()).find(|i| p.at(*i) == q.at(j)).unwrap();
                    prop_assert_eq!(g.at(j), f.at(i), "{} {} {}", f, p, q);
                }
            }
            Err(LayoutError::NoInverse { .. }) => prop_assert!(!bijective, "{}", p),
            Err(LayoutError::Indivisible(_)) => prop_assert!(bijective),
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn unified_layouts_make_every_run_consecutive(
        shape in prop::collection::vec(prop_oneof![Just(4i64), Just(6), Just(8), Just(1)], 1..4),
        runs in prop::collection::vec(prop::collection::vec((1i64..9, 0usize..4), 1..3), 1..3),
        outer in 0usize..3,
    ) {
        // Runs start at products of extents, or at twice such products.
        let size: i64 = shape.iter().product();
        let step = |k: usize| shape.iter().take(k).product::<i64>() * (1 + (k as i64 % 2));
        let runs: Vec<Layout> = runs
            .iter()
            .map(|run| layout(&run.iter().map(|(n, k)| (*n, step(*k))).collect::<Vec<_>>()))
            .collect();
        // The required place of each element.
        let (mut places, mut elements) = (BTreeMap::new(), BTreeMap::new());
        let (mut clash, mut outside) = (false, false);
        for run in &runs {
            for j in 0..run.size() {
                let element = run.at(j);
                outside |= element >= size;
                clash |= *places.entry(element).or_insert(j) != j;
                clash |= *elements.entry(j).or_insert(element) != element;
            }
        }
        match unify(&shape, outer, &runs) {
            Ok(m) => {
                prop_assert!(m.is_bijective_onto(size), "{}", m);
                prop_assert!(Layout::col_major(shape).unwrap().shape().compatible(&m.shape()));
                for run in &runs {
                    prop_assert!((0..run.size()).all(|j| m.at(run.at(j)) == j), "{} {}", m, run);
                }
            }
            Err(LayoutError::NotUnified(Obstacle::RunLeaves(_))) => prop_assert!(outside),
            Err(LayoutError::NotUnified(
                Obstacle::TwoStrides { .. } | Obstacle::TwoDirections(_),
            )) => {
                prop_assert!(clash);
            }
            // The digits are cut unevenly.
            Err(LayoutError::NotUnified(_)) => {}
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn equal_functions_are_equivalent(
        (extents, p, q) in factors(),
        strides in prop::collection::vec(
            prop_oneof![Just(0i64), Just(1), Just(2), Just(4), Just(8)],
            4,
        ),
    ) {
        let of = |order: &[usize]| {
            layout(&order.iter().map(|k| (extents[*k], strides[*k])).collect::<Vec<_>>())
        };
        let (a, b) = (of(&p), of(&q));
        let same = (0..a.size()).all(|i| a.at(i) == b.at(i));
        prop_assert_eq!(a.equivalent_in(&(), &b), Ok(Decision::Known(same)), "{} {}", a, b);
    }
}

#[test]
fn most_copies_have_a_solution() {
    let (solved, all) = (Cell::new(0), Cell::new(0));
    for [a, b, c] in [[2, 4, 3], [4, 2, 2], [3, 2, 4], [2, 2, 2]] {
        for (p, q) in [([0, 1, 2], [2, 1, 0]), ([1, 0, 2], [0, 2, 1]), ([2, 0, 1], [1, 2, 0])] {
            let extents = [a, b, c];
            let (p, q) = (digits(&extents, &p), digits(&extents, &q));
            all.set(all.get() + 1);
            solved.set(solved.get() + i32::from(solve(&q, &p, &q).is_ok()));
        }
    }
    assert!(solved.get() * 2 > all.get(), "{solved:?} of {all:?}");
}

#[test]
fn obstacles_are_named() {
    let (f, p) = (l("(4,8):(8,1)"), l("(4,8):(1,4)"));
    let code = |r: Result<Layout, LayoutError>| r.unwrap_err().code();
    assert_eq!(code(solve(&l("4:1"), &p, &l("4:1"))), "L0118");
    assert_eq!(code(solve(&f, &l("(4,8):(0,1)"), &p)), "L0119");
    assert_eq!(code(solve(&f, &p, &l("(4,8):(8,1)").compose(&l("64:1")).unwrap())), "L0118");
    assert_eq!(code(unify(&[4, 0], 0, &[l("4:1")])), "L0110");
    assert_eq!(code(unify(&[1 << 40, 1 << 40], 0, &[l("4:1")])), "L0102");
    assert_eq!(code(unify(&[4, 4], 0, &[l("4:-1")])), "L0120");
    assert_eq!(unify::<Layout>(&[2, 3, 4], 1, &[]), Ok(l("(2,3,4):(12,1,3)")));
}

#[test]
fn copies_over_symbols_are_solved() {
    let cx = ExprArena::new();
    let (m, k) = (cx.var(VarInfo::size("M")).unwrap(), cx.var(VarInfo::size("K")).unwrap());
    let one = Dim::Const(1);
    let p = Layout::col_major_in(&cx, vec![m, k]).unwrap();
    let q = Layout::row_major_in(&cx, vec![m, k]).unwrap();
    let f = Layout::new(vec![m, k], vec![k, one]).unwrap();
    // `q` numbers the elements along the other mode.
    match solve_in(&cx, &f, &p, &q) {
        Ok(g) => {
            let values = [5, 3];
            let value = |var: carbyne_ir::expr::VarId| values.get(var.index()).copied();
            let fixed = |l: &Layout<Dim>| l.eval(&cx, &value).unwrap();
            assert_eq!(fixed(&g), solve(&fixed(&f), &fixed(&p), &fixed(&q)).unwrap());
        }
        Err(error) => assert!(matches!(error, LayoutError::NeedsFact { .. }), "{error}"),
    }
    let same = solve_in(&cx, &f, &p, &p.clone());
    assert_eq!(same, Ok(f.clone()));
    assert_eq!(f.equivalent_in(&cx, &f), Ok(Decision::Known(true)));
    let other = Layout::new(vec![m, k], vec![one, m]).unwrap();
    assert!(matches!(f.equivalent_in(&cx, &other), Ok(Decision::Needs(_))));
}
