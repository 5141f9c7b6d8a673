//! Tests that decomposition and simulator take fragment layouts from the atom table. The test
//! exchanges two strides of one fragment layout in the table. Then a MatMul is refused, computes
//! wrong elements, or is decomposed to another atom.

use crate::support::{MatMul, decomposed, run, sm_80};
use carbyne_atoms::{Atom, AtomTable};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::SpecId;

/// Rows that a decomposed program uses.
fn used(table: &AtomTable) -> (String, Vec<Atom>) {
    let src = MatMul { size: (32, 32, 32), ..MatMul::default() }.text();
    let d = decomposed(&src, table).expect("decomposes");
    let mut rows: Vec<Atom> = vec![];
    for i in 0..d.program.specs.len() {
        let name = d.program.specs[SpecId::from(i)].atom.clone();
        let row = name.and_then(|n| table.get(&n).cloned());
        if let Some(row) = row.filter(|r| rows.iter().all(|o| o.name != r.name)) {
            rows.push(row);
        }
    }
    (src, rows)
}

/// The layout with its first two leaves of different extent or stride exchanged in stride.
fn scrambled(tv: &Layout) -> Option<Layout> {
    let strides = tv.stride().flatten();
    let shapes = tv.shape().flatten();
    let n = strides.len();
    for i in 0..n {
        for j in i + 1..n {
            let differ = shapes[i] > 1 && shapes[j] > 1 && strides[i] != strides[j];
            if !(differ && shapes[i] == shapes[j]) {
                continue;
            }
            let mut at = 0;
            let stride = tv.stride().map(&mut |s| {
                let this = at;
                at += 1;
                match this {
                    k if k == i => strides[j],
                    k if k == j => strides[i],
                    _ => *s,
                }
            });
            return Layout::new(tv.shape().clone(), stride).ok();
        }
    }
    None
}

#[test]
fn a_wrong_fragment_layout_cannot_pass() {
    let table = sm_80();
    let (src, rows) = used(&table);
    let mut tried = 0;
    for row in &rows {
        for (i, operand) in row.operands.iter().enumerate() {
            let Some(wrong) = scrambled(&operand.tv) else { continue };
            let mut bad = row.clone();
            bad.operands[i].tv = wrong;
            let bad_table = table.clone().with(bad);
            tried += 1;
            // Decomposed by the true table, executed by the wrong one, and the reverse.
            let good = decomposed(&src, &table).expect("decomposes");
            assert!(
                run(&good.program, &bad_table).is_err(),
                "{}.{} may be {} on the machine",
                row.name,
                operand.name,
                bad_table.get(row.name).expect("the row").operands[i].tv
            );
            if let Ok(d) = decomposed(&src, &bad_table) {
                // The solver may have chosen other rows; what it chose is right, then.
                assert!(
                    run(&d.program, &table).is_err() || !d.text.contains(row.name),
                    "{}.{} may be wrong in the table",
                    row.name,
                    operand.name
                );
            }
        }
    }
    assert!(tried >= 4, "only {tried} operands could be scrambled");
}
