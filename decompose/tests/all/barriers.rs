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
    assert_eq!(each_is_needed("the case", &text), 4, "{text}");
}

/// Whatever is synchronized in the examples: pipelines, exchanges, reductions over several warps.
#[test]
fn none_of_the_examples_can_be_left_out() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tile");
    let files = std::fs::read_dir(dir).expect("the examples");
    let mut files: Vec<_> = files.map(|f| f.expect("a file").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "cby"));
    files.sort();
    let table = sm_80();
    let mut needed = 0;
    for file in files {
        let src = std::fs::read_to_string(&file).expect("readable");
        // What has no decomposition yet is a matter of the examples' own test.
        if let Ok(d) = decomposed(&src, &table) {
            needed += each_is_needed(&file.display().to_string(), &d.text);
        }
    }
    assert!(needed > 20, "{needed} barriers, waits and commits");
}

/// Leaves out one after the other; how many there are.
fn each_is_needed(name: &str, text: &str) -> usize {
    let table = sm_80();
    let idle = |l: &str| !(l == "barrier" || l == "async.commit" || l.starts_with("async.wait"));
    let syncs: Vec<usize> =
        text.lines().enumerate().filter(|(_, l)| !idle(l.trim())).map(|(i, _)| i).collect();
    for &at in &syncs {
        let without: String = text
            .lines()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, l)| format!("{l}\n"))
            .collect();
        let removed = text.lines().nth(at).expect("a line").trim();
        assert!(
            run(&resolved(&without), &table).is_err(),
            "{name}: `{removed}` on line {} is idle\n{text}",
            at + 1
        );
    }
    syncs.len()
}
