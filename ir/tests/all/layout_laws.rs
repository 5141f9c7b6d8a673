//! Tests the laws of the layout algebra at all points of random layouts. The tests have generators
//! of their own, independent of the kit; `kit_laws` uses the generators of the kit.

use carbyne_ir::layout::{Layout, LayoutError, Tiler};
use carbyne_ir::testing;
use carbyne_ir::tuple::IntTuple;
use proptest::prelude::*;

/// A layout of up to five leaves and 4096 coordinates, with random nesting. Half of the layouts are
/// compact in some order; the others have random strides, including 0.
fn any_layout() -> impl Strategy<Value = Layout> {
    let extent = prop_oneof![Just(1i64), Just(2), Just(2), Just(4), Just(8), 3i64..13];
    let stride = prop_oneof![0i64..9, Just(16), Just(24), Just(32), Just(64)];
    let leaves = prop::collection::vec((extent, stride, 0u32..100), 1..5);
    (leaves, any::<bool>(), 0u32..4).prop_map(|(mut leaves, compact, nesting)| {
        let mut size = 1;
        leaves.retain(|(extent, ..)| {
            let fits = size * extent <= 4096;
            size *= if fits { *extent } else { 1 };
            fits
        });
        if compact {
            let mut order: Vec<usize> = (0..leaves.len()).collect();
            order.sort_by_key(|&k| leaves[k].2);
            let mut next = 1;
            for k in order {
                leaves[k].1 = next;
                next *= leaves[k].0;
            }
        }
        let shape: Vec<i64> = leaves.iter().map(|l| l.0).collect();
        let stride: Vec<i64> = leaves.iter().map(|l| l.1).collect();
        let flat = Layout::new(shape, stride).unwrap();
        match nesting {
            1 if flat.rank() == 1 => flat.mode(0).unwrap(),
            1 => flat.group(0, 2).unwrap(),
            2 => flat.group(flat.rank() - 1, flat.rank()).unwrap(),
            3 => flat.group(0, flat.rank()).unwrap(),
            _ => flat,
        }
    })
}

fn allowed(error: &LayoutError) -> bool {
    matches!(error.code(), "L0101" | "L0109" | "L0112")
}

proptest! {
    #![proptest_config(testing::config(2000))]

    #[test]
    fn text_round_trips(a in any_layout()) {
        prop_assert_eq!(a.to_string().parse::<Layout>(), Ok(a));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9(),: -]{0,40}") {
        let _ = (text.parse::<Layout>(), text.parse::<IntTuple>());
    }

    #[test]
    fn indices_and_coordinates_agree(a in any_layout()) {
        let mut highest = 0;
        for i in 0..a.size() + 5 {
            prop_assert_eq!(a.at_coord(&a.coord(i)), Ok(a.at(i)));
            prop_assert_eq!(a.at_coord(&IntTuple::Leaf(i)), Ok(a.at(i)));
            if i < a.size() {
                highest = highest.max(a.at(i));
            }
        }
        prop_assert_eq!(a.cosize(), highest + 1);
    }

    #[test]
    fn coalesce_keeps_the_function(a in any_layout()) {
        let (c, f) = (a.coalesce(), a.flatten());
        prop_assert_eq!(c.size(), a.size());
        prop_assert!(c.depth() <= 1 && c.coalesce() == c);
        for i in 0..a.size() {
            prop_assert_eq!((c.at(i), f.at(i)), (a.at(i), a.at(i)));
        }
    }

    #[test]
    fn composition_is_exact(a in any_layout(), b in any_layout()) {
        match a.compose(&b) {
            Err(error) => prop_assert!(allowed(&error), "{}", error),
            Ok(ab) => {
                prop_assert!(b.shape().compatible(&ab.shape()), "{}", ab);
                for i in 0..b.size() {
                    prop_assert_eq!(ab.at(i), a.at(b.at(i)), "{} o {} = {} at {}", a, b, ab, i);
                }
            }
        }
    }

    #[test]
    fn composition_with_one_mode_never_refuses(d in 0i64..99, n in 1i64..99, b in any_layout()) {
        let a = Layout::new(n, d).unwrap();
        prop_assert!(a.compose(&b).is_ok());
    }

    #[test]
    fn composition_finds_what_divides(a in any_layout(), which in any::<prop::sample::Index>()) {
        // A division of the domain into leading digits always composes, because the prefix products
        // divide.
        let mut prefixes = vec![(1, a.size())];
        for (extent, _) in a.coalesce().leaves() {
            let (done, rest) = prefixes[prefixes.len() - 1];
            prefixes.push((done * extent, rest / extent));
        }
        let (done, rest) = prefixes[which.index(prefixes.len())];
        let b = Layout::new(vec![done, rest], vec![1, done]).unwrap();
        prop_assert!(a.compose(&b).is_ok(), "{} o {}", a, b);
    }

    #[test]
    fn complement_fills_the_gaps(a in any_layout(), target in 1i64..2000) {
        match a.complement(target) {
            Err(error) => prop_assert!(allowed(&error), "{}", error),
            Ok(c) => {
                let image: Vec<i64> = (0..a.size()).map(|i| a.at(i)).collect();
                let gaps: Vec<i64> = (0..c.size()).map(|i| c.at(i)).collect();
                prop_assert!(gaps.windows(2).all(|pair| pair[0] < pair[1]), "{} is not ordered", c);
                prop_assert!(gaps.iter().all(|g| *g == 0 || !image.contains(g)));
                prop_assert!(a.filter_zeros().size() * c.size() <= (1 << 20));
                let both = Layout::concat(&[a.filter_zeros(), c.clone()]).unwrap();
                prop_assert_eq!(both.is_injective(), Ok(true));
                let mut modes = a.filter_zeros().leaves().to_vec();
                modes.retain(|(extent, _)| *extent > 1);
                modes.sort_by_key(|(_, stride)| *stride);
                let mut reach = 1;
                let nests = modes.iter().all(|(extent, stride)| {
                    let divides = stride % reach == 0;
                    reach = extent * stride;
                    divides
                });
                if nests {
                    prop_assert!(both.is_bijective_onto(both.size()));
                    prop_assert!(both.size() >= target);
                }
            }
        }
    }

    #[test]
    fn inverses_undo(a in any_layout()) {
        let right = a.right_inverse();
        for i in 0..right.size() {
            prop_assert_eq!(a.at(right.at(i)), i);
        }
        if a.is_bijective_onto(a.size()) {
            prop_assert_eq!(right.size(), a.size());
        }
        match a.left_inverse() {
            Err(error) => prop_assert!(allowed(&error), "{}", error),
            Ok(left) => {
                for i in 0..a.size() {
                    prop_assert_eq!(a.at(left.at(a.at(i))), a.at(i));
                }
            }
        }
    }

    #[test]
    fn division_splits(a in any_layout(), t in any_layout()) {
        match a.logical_divide(&t) {
            Err(error) => prop_assert!(allowed(&error), "{}", error),
            Ok(d) => {
                prop_assert_eq!(d.rank(), 2);
                let rest = t.complement(a.size()).unwrap();
                if let Ok(tile) = a.compose(&t) {
                    let first = d.mode(0).unwrap();
                    prop_assert!((0..t.size()).all(|i| first.at(i) == tile.at(i)));
                }
                if d.size() != a.size() || rest.size() * t.size() != a.size() {
                    // A partial tile: the number of tiles is rounded up, so that they cover the
                    // layout.
                    let image: Vec<i64> = (0..d.size()).map(|i| d.at(i)).collect();
                    let tiled = t.filter_zeros().size() == t.size()
                        && t.is_bijective_onto(t.size());
                    prop_assert!(!tiled || (0..a.size()).all(|i| image.contains(&a.at(i))));
                    return Ok(());
                }
                for j in 0..rest.size() {
                    for i in 0..t.size() {
                        let (coord, at) = (IntTuple::from(vec![i, j]), t.at(i) + rest.at(j));
                        // Tiles with gaps may exceed the end, even if the sizes are equal.
                        if at < a.size() {
                            prop_assert_eq!(d.at_coord(&coord), Ok(a.at(at)));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn tiles_of_compact_layouts_cover_them(
        rows in 1i64..20,
        cols in 1i64..20,
        m in 1i64..9,
        n in 1i64..9,
    ) {
        let a = Layout::row_major(vec![rows * m, cols * n]).unwrap();
        let d = a.zipped_divide(Tiler::tile(&[m, n]).unwrap()).unwrap();
        prop_assert!(d.is_bijective_onto(a.size()));
        let coord = |text: &str| text.parse::<IntTuple>().unwrap();
        let (i, j) = (m - 1, cols - 1);
        let want = a.at_coord(&coord(&format!("({i},{})", j * n)));
        prop_assert_eq!(d.at_coord(&coord(&format!("(({i},0),(0,{j}))"))), want);
    }

    #[test]
    fn products_repeat(a in any_layout(), b in any_layout()) {
        match a.logical_product(&b) {
            Err(error) => prop_assert!(allowed(&error), "{}", error),
            Ok(p) => {
                prop_assert_eq!(p.mode(0), Ok(a.clone()));
                let copies = p.mode(1).unwrap();
                prop_assert!(b.shape().compatible(&copies.shape()));
                for j in 0..b.size() {
                    for i in 0..b.size().min(64) {
                        // Copies differ exactly where `b` differs.
                        prop_assert_eq!(copies.at(i) == copies.at(j), b.at(i) == b.at(j));
                    }
                }
            }
        }
    }

    #[test]
    fn bijections_are_recognized(a in any_layout()) {
        let mut image: Vec<i64> = (0..a.size()).map(|i| a.at(i)).collect();
        image.sort_unstable();
        let injective = image.windows(2).all(|pair| pair[0] != pair[1]);
        prop_assert_eq!(a.is_injective(), Ok(injective));
        let onto = image.iter().copied().eq(0..a.size());
        prop_assert_eq!(a.is_bijective_onto(a.size()), onto);
    }
}
