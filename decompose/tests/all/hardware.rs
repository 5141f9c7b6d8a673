//! Constraints of `wgmma` and TMA on shared tensors, against the atom table, the papers and an example.

use carbyne_atoms::AtomTable;
use carbyne_atoms::descriptor::{Major, MatrixRule, SwizzleMode, canonical, derive};
use carbyne_decompose::internals::hardware::{Demand, layouts};
use carbyne_decompose::internals::smem::{Access, Banks, wavefronts};
use carbyne_ir::layout::{Layout, Swizzle};

const BOTH: &[Major] = &[Major::K, Major::Mn];
const BANKS: Banks = Banks { n: 32, bytes: 4 };

fn matrix(tile: [i64; 2], k_mode: usize, majors: &'static [Major]) -> Demand {
    Demand::Matrix { tile, rule: MatrixRule { k_mode, majors } }
}

/// The rules of the rows of the table, for a factor of that width of elements.
fn rules(operand: usize, bits: i64) -> Vec<(Vec<i64>, MatrixRule)> {
    let table = AtomTable::new("sm_90a".parse().expect("an architecture"));
    let rows = table.implementing(carbyne_ir::ast::SpecKind::MatMul);
    let rules = rows.filter_map(|a| a.operands.get(operand)).filter(|o| o.elem.bits() == bits);
    let mut all: Vec<_> = rules.filter_map(|o| Some((o.tile.to_vec(), o.matrix_rule()?))).collect();
    all.dedup();
    assert!(!all.is_empty(), "no row takes a factor of {bits} bits from shared memory");
    all
}

#[test]
fn a_k_major_factor_is_filled_by_16_bytes_along_k() {
    // 128×64 halves by rows: what cp.async writes and wgmma reads is rows of 128 bytes.
    let found = layouts([128, 64], 16, &[Demand::Run(vec![(8, 128)]), matrix([64, 16], 1, BOTH)]);
    let texts: Vec<String> = found.iter().map(|(l, _)| l.to_string()).collect();
    assert_eq!(
        texts,
        [
            "(128,64):(64,1)",
            "(128,(32,2)):(32,(1,4096))",
            "(128,(16,4)):(16,(1,2048))",
            "(128,(8,8)):(8,(1,1024))"
        ]
    );
    assert_eq!(found[0].1, Swizzle::new(3, 4, 3).ok());
    // Eight lanes side by side along k, four rows: no two of a phase meet in a bank.
    let lanes = (0..32).map(|t| t / 8 + 128 * 8 * (t % 8)).collect();
    let access = [Access { lanes: vec![lanes], bytes: 16, weight: 1.0 }];
    assert_eq!(wavefronts(&found[0].0, found[0].1, 16, &access, BANKS), 4.0);
}

#[test]
fn whatever_is_found_has_a_descriptor_in_every_row_that_takes_it() {
    for bits in [8, 16, 32] {
        for (operand, k_mode) in [(0, 1), (1, 0)] {
            for (tile, rule) in rules(operand, bits) {
                let [t0, t1] = tile[..] else { panic!("{tile:?}") };
                let shape = [2 * t0, 2 * t1];
                for (l, s) in layouts(shape, bits, &[matrix([t0, t1], k_mode, rule.majors)]) {
                    let inside: Layout =
                        format!("({t0},{t1}):(1,{})", shape[0]).parse().expect("a layout");
                    let first = l.compose(&inside).expect("composes");
                    let d = derive(&first, s, bits, &tile, &rule);
                    assert!(d.is_ok(), "{l} {s:?}: {d:?}");
                }
            }
        }
    }
}

#[test]
fn what_the_table_names_as_canonical_is_found() {
    for (major, along) in [(Major::K, 1), (Major::Mn, 0)] {
        for mode in [SwizzleMode::B128, SwizzleMode::B64, SwizzleMode::B32] {
            let rule = MatrixRule { k_mode: 1, majors: BOTH };
            let wanted = canonical(&[64, 64], 16, &rule, major, mode).expect("a tile").layout;
            let run = if along == 1 { vec![(8, 64)] } else { vec![(8, 1)] };
            let found = layouts([64, 64], 16, &[Demand::Run(run), matrix([64, 16], 1, BOTH)]);
            let same = |l: &Layout| (0..64 * 64).all(|i| l.at(i) == wanted.at(i));
            // K-major rows narrower than k are no one tile, but tiles of 16 side by side are.
            let fills = mode.width() == 128 || major == Major::Mn;
            let named = found.iter().any(|(l, s)| SwizzleMode::of(*s) == Some(mode) && same(l));
            assert!(named || !fills, "{wanted} is not among {found:?}");
        }
    }
}

#[test]
fn eight_bit_factors_are_k_major_only() {
    let k_only: &[Major] = &[Major::K];
    let along_n = Demand::Run(vec![(16, 64)]);
    let along_k = Demand::Run(vec![(16, 1)]);
    let rule = || matrix([32, 64], 0, k_only);
    assert!(layouts([64, 64], 8, &[along_n, rule()]).is_empty());
    assert!(!layouts([64, 64], 8, &[along_k, rule()]).is_empty());
}

#[test]
fn boxes_are_rows_as_wide_as_the_swizzle() {
    let whole = |rows, columns| Demand::Box { extents: [rows, columns] };
    // 64 halves are 128 bytes: one box by the widest swizzle, in the layout that wgmma takes.
    let both = [whole(128, 64), matrix([64, 16], 1, BOTH)];
    let found = layouts([128, 64], 16, &both);
    assert_eq!(found[0].0.to_string(), "(128,64):(64,1)");
    assert_eq!(found[0].1, Swizzle::new(3, 4, 3).ok());
    // 128 halves a row are too many for a swizzle; two boxes side by side are not.
    assert!(layouts([128, 128], 16, &[whole(128, 128)]).iter().all(|(_, s)| s.is_none()));
    let two = layouts([128, 128], 16, &[whole(128, 64), matrix([64, 16], 1, BOTH)]);
    assert_eq!(two[0].0.to_string(), "(128,(64,2)):(64,(1,8192))");
    assert_eq!(two[0].1, Swizzle::new(3, 4, 3).ok());
    // No box is longer than 256 elements.
    assert!(layouts([512, 64], 16, &[whole(512, 64)]).is_empty());
    assert!(!layouts([512, 64], 16, &[whole(256, 64)]).is_empty());
}

#[test]
fn contradictions_and_enormous_tensors_have_no_layout() {
    let across = [Demand::Run(vec![(8, 1)]), Demand::Run(vec![(8, 64)])];
    assert!(layouts([64, 64], 16, &across).is_empty());
    assert!(layouts([i64::MAX, 2], 16, &[]).is_empty());
    assert!(layouts([1 << 20, 1 << 20], 16, &[]).is_empty());
    assert!(layouts([0, 8], 16, &[]).is_empty());
    assert!(layouts([64, 64], 0, &[]).is_empty());
    assert!(layouts([64, 64], 16, &[matrix([0, 0], 1, BOTH)]).is_empty());
    assert!(layouts([64, 64], 16, &[Demand::Run(vec![(i64::MAX, 1), (i64::MAX, 3)])]).is_empty());
}
