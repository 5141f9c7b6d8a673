//! Tests that every `barrier`, `async.commit` and `async.wait` in programs decomposed for sm_80 is
//! needed: without any one of them, the simulator reports an error. The programs are a MatMul, the
//! tile-level examples, and nested loops. An `async.commit` that could be merged with the first one
//! of the next loop is exempt.

use crate::support::{MatMul, decomposed, resolved, run, sm_80};

#[test]
fn none_can_be_left_out() {
    let table = sm_80();
    let case = MatMul {
        size: (64, 64, 320),
        pins: "by=@ring[BM=64, BN=64, BK=32, WM=2, WN=2, S=4]".to_owned(),
        ..MatMul::default()
    };
    let text = decomposed(&case.text(), &table).expect("decomposes").text;
    // Those of the ring, and that of the result on its way through shared memory.
    assert_eq!(each_is_needed("the case", &text), 7, "{text}");
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
        // Another test holds that every example decomposes.
        if let Ok(d) = decomposed(&src, &table) {
            needed += each_is_needed(&file.display().to_string(), &d.text);
        }
    }
    assert!(needed > 20, "{needed} barriers, waits and commits");
}

/// Loops that nobody could follow turn by turn: what stands in them is what stands in short ones.
#[test]
fn long_bodies_take_no_more_than_short_ones() {
    let src = "carbyne 2
%A:[32,32].f16.GL
%B:[32,32].f16.GL
#grid:[1].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[(32,32):(32,1)].f16.SH
  Allocate %u:[32,32].f16.SH{?}
  Allocate %r:[32,32].f16.RF{?}
  Allocate %p:[8].f16.RF
  for (i = 0; i < 100; i += 1) {
    for (j = 0; j < 100; j += 1) {
      for (k = 0; k < 100; k += 1) {
        Move <<<#grid, #cta>>> (%A) -> (%u)
        Move <<<#grid, #one>>> (%A.tile([1,8])[@t / 4, @t % 4]) -> (%s.tile([1,8])[@t / 4, @t % 4])
        barrier
        Move <<<#grid, #one>>> (%s.tile([1,8])[(@t + 4) % 128 / 4, (@t + 4) % 128 % 4]) -> (%p)
        Move <<<#grid, #cta>>> (%u) -> (%r)
        Move <<<#grid, #cta>>> (%r) -> (%u)
        Move <<<#grid, #cta>>> (%u) -> (%B)
      }
    }
  }
}
";
    let table = sm_80();
    let text = decomposed(src, &table).expect("decomposes").text;
    let long = text.replace(" < 100;", " < 2;");
    let short = decomposed(&src.replace(" < 100;", " < 2;"), &table).expect("decomposes").text;
    assert_eq!(long, short);
    run(&resolved(&short), &table).unwrap_or_else(|e| panic!("{e:?}\n{short}"));
    assert_eq!(each_is_needed("the case", &short), 4, "{short}");
}

/// Leaves out one after the other; how many there are.
fn each_is_needed(name: &str, text: &str) -> usize {
    let table = sm_80();
    let idle = |l: &str| !(l == "barrier" || l == "async.commit" || l.starts_with("async.wait"));
    let syncs: Vec<usize> =
        text.lines().enumerate().filter(|(_, l)| !idle(l.trim())).map(|(i, _)| i).collect();
    for (i, &at) in syncs.iter().enumerate() {
        // A group that ends before a loop, and not with the first one of the loop, costs nothing.
        let line = |at: usize| text.lines().nth(at).unwrap_or("").trim();
        let next = syncs.get(i + 1).copied().unwrap_or(at);
        let commits = line(at) == "async.commit" && line(next) == "async.commit";
        if commits && (at..next).any(|at| line(at).starts_with("for (")) {
            continue;
        }
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
