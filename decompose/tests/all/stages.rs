//! Loops with stages compute what they compute without, with one barrier an iteration where threads share.

use crate::support::{decomposed, run};
use carbyne_atoms::AtomTable;

/// A copy in two loops of every second tile, through tensors that each of them declares.
fn copy(stages: i64, (first, tiles): (i64, i64)) -> String {
    let loops: String = [first, first + 1]
        .iter()
        .map(|start| {
            format!(
                "  for (k = {start}; k < {}; k += 2) stages={stages} {{
    %from = %A.tile([64,16])[0, k]
    Move (%from) -> (%s:SH)
    %r = move(%s)
    Move (%r) -> (%B.tile([64,16])[0, k])
  }}\n",
                first + tiles
            )
        })
        .collect();
    let n = 16 * (first + tiles);
    let rest: String = (0..first)
        .map(|k| format!("  Move (%A.tile([64,16])[0, {k}]) -> (%B.tile([64,16])[0, {k}])\n"))
        .collect();
    format!(
        "carbyne 2\n%A:[(64,{n}):({n},1)].f16.GL\n%B:[(64,{n}):({n},1)].f16.GL\n\
         Move @copy <<<#grid:[1], #cta:[128]>>> (%A) -> (%B) {{\n{rest}{loops}}}\n"
    )
}

#[test]
fn any_depth_and_number_of_iterations() {
    for arch in ["sm_75", "sm_80"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        for stages in 2..=5 {
            for (first, tiles) in [(0, 2), (0, 4), (0, 9), (1, 6), (2, 13)] {
                let src = copy(stages, (first, tiles));
                let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
                run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
                assert!(!d.text.contains("stages="), "{}", d.text);
                // A loop of one iteration has nothing that runs ahead.
                let short = d.warnings.iter().filter(|w| w.code.as_str() == "D0312").count();
                let alone = [(tiles + 1) / 2, tiles / 2].iter().filter(|n| **n == 1).count();
                assert_eq!(short, alone, "{src}");
            }
        }
    }
}

#[test]
fn one_barrier_an_iteration() {
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    let barriers = |text: &str| text.lines().filter(|l| l.trim() == "barrier").count();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/tile/gemm_staged.cby");
    let src = std::fs::read_to_string(path).expect("the example");
    let d = decomposed(&src, &table).expect("decomposes");
    assert_eq!(barriers(&d.text), 1, "{}", d.text);
    assert!(d.text.contains("async.wait(1)"), "{}", d.text);
    // Threads that read what they copied need none, but for the two rings that share a place.
    let d = decomposed(&copy(4, (0, 16)), &table).expect("decomposes");
    assert_eq!(barriers(&d.text), 1, "{}", d.text);
    assert!(d.text.contains("async.wait(2)"), "{}", d.text);
}

#[test]
fn lengths_that_only_the_caller_knows() {
    let src = "carbyne 2
sym N{min=1, max=64}
%A:[64,1024].f16.GL
%B:[64,1024].f16.GL
Spec @copy <<<#grid:[1], #cta:[128]>>> (%A) -> (%B) {
  for (k = 0; k < N; k += 1) stages=3 {
    Move (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, k])
  }
}
";
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{e:?}"));
    assert!(d.text.contains("if (k + 2 < N)"), "{}", d.text);
    assert!(d.text.contains(" < N) {"), "{}", d.text);
}

/// Copies in parts, rings of one name, loops in each other.
#[test]
fn whatever_stands_in_the_loop() {
    let bodies = [
        "for (j = 0; j < 4; j += 1) stages=2 {
    Move (%A.tile([64,64])[0, j]) -> (%t:SH)
    for (k = 0; k < 4; k += 1) stages=2 {
      Move (%A.tile([64,64])[0, j].tile([64,16])[0, k]) -> (%s:SH)
      Move (%s) -> (%B.tile([64,64])[0, j].tile([64,16])[0, k])
    }
    Move (%t) -> (%B.tile([64,64])[0, j])
  }",
        "for (k = 0; k < 16; k += 1) stages=3 {
    Allocate %s:[64,16].f16.SH{?}
    Move (%A.tile([64,16])[0, k].tile([32,16])[0, 0]) -> (%s.tile([32,16])[0, 0])
    Move (%A.tile([64,16])[0, k].tile([32,16])[1, 0]) -> (%s.tile([32,16])[1, 0])
    %v = %s.tile([64,8])
    Move (%v[0, 0]) -> (%B.tile([64,16])[0, k].tile([64,8])[0, 0])
    Move (%v[0, 1]) -> (%B.tile([64,16])[0, k].tile([64,8])[0, 1])
  }",
        "for (k = 0; k < 8; k += 1) stages=3 {
    Move (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, k])
  }
  for (k = 8; k < 16; k += 1) unroll stages=2 {
    Move (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, k])
  }",
    ];
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    for body in bodies {
        let src = format!(
            "carbyne 2\n%A:[(64,256):(256,1)].f16.GL\n%B:[(64,256):(256,1)].f16.GL\n\
             Move @f <<<#grid:[1], #cta:[128]>>> (%A) -> (%B) {{\n  {body}\n}}\n"
        );
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
        run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        assert!(d.warnings.is_empty() && d.text.contains("async.commit"), "{}", d.text);
    }
}
