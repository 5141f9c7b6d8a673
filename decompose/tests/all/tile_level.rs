//! Tests that the simulator executes tile-level text: specs without bodies, open layouts, no
//! barriers. The text is the result of a strategy for a MatMul.

use crate::support::{MatMul, decomposed, resolved, run, sm_80};

#[test]
fn what_the_strategy_writes_is_a_matmul() {
    let table = sm_80();
    for (transposed, set) in [([false; 3], true), ([true, true, false], false)] {
        let case = MatMul { transposed, set, ..MatMul::default() };
        let d = decomposed(&case.text(), &table).expect("decomposes");
        assert!(d.tile_level.contains("{?}") && !d.tile_level.contains("atom="));
        let report = run(&resolved(&d.tile_level), &table);
        let report = report.unwrap_or_else(|e| panic!("{}\n{e:?}", d.tile_level));
        assert!(report.kernels[0].checked && report.kernels[0].complete);
    }
}
