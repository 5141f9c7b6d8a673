//! Every barrier and wait that the solver places is needed: without it the simulator objects.

use crate::support::{MatMul, decomposed, resolved, run, sm_80};

#[test]
fn none_can_be_left_out() {
    let table = sm_80();
    let case = MatMul {
        size: (64, 64, 64),
        pins: "tile=(64,64,32) warps=(2,2)".to_owned(),
        ..MatMul::default()
    };
    let text = decomposed(&case.text(), &table).expect("decomposes").text;
    let syncs: Vec<usize> = text
        .lines()
        .enumerate()
        .filter(|(_, l)| matches!(l.trim(), "barrier" | "async.commit" | "async.wait(0)"))
        .map(|(i, _)| i)
        .collect();
    assert_eq!(syncs.len(), 4, "{text}");
    for at in syncs {
        let without: String = text
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, l)| format!("{l}\n"))
            .collect();
        let removed = text.lines().nth(at).expect("a line").trim();
        assert!(
            run(&resolved(&without), &table).is_err(),
            "`{removed}` on line {} is idle",
            at + 1
        );
    }
}
