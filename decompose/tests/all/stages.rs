//! Tests loops with `stages=`, which copy tiles ahead into a ring. The decomposed kernels compute
//! their meaning. They need one barrier per iteration if threads read tiles that other threads
//! copied.

use crate::support::{decomposed, run, run_with};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::testing;

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
                // One of fewer iterations than stages has as many stages as iterations.
                let said =
                    |what: &str| d.warnings.iter().filter(|w| w.message.contains(what)).count();
                let of = |few: &dyn Fn(i64) -> bool| {
                    [(tiles + 1) / 2, tiles / 2].iter().filter(|n| few(**n)).count()
                };
                assert_eq!(said("no copy in this loop runs ahead"), of(&|n| n == 1), "{src}");
                assert_eq!(said("stages are more"), of(&|n| n > 1 && n < stages), "{src}");
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

/// A product whose slices are loaded ahead. `outer` is the loop over k-tiles, each of so many
/// slices, of which `depth` are under way; their numbers begin at `start`.
fn sliced(outer: &str, (slices, depth): (i64, i64), start: i64) -> String {
    let deep = 16 * slices;
    format!(
        "carbyne 2
%A:[64,768].f16.GL
%B:[768,64].f16.GL
%C:[64,64].f32.GL
Spec @f <<<#grid:[1], #cta:[128]>>> (%A, %B) -> (%C) {{
  Allocate %acc:[64,64].f32.RF{{?}}
  Init (0) -> (%acc)
  {outer} {{
    Allocate %sA:[64,{deep}].f16.SH{{?}}
    Allocate %sB:[{deep},64].f16.SH{{?}}
    Move (%A.tile([64,{deep}])[0, k]) -> (%sA)
    Move (%B.tile([{deep},64])[k, 0]) -> (%sB)
    for (j = {start}; j < {}; j += 1) unroll stages={depth} {{
      Allocate %a:[64,16].f16.RF{{?}}
      Allocate %b:[16,64].f16.RF{{?}}
      Move (%sA.tile([64,16])[0, j - {start}]) -> (%a)
      Move (%sB.tile([16,64])[j - {start}, 0]) -> (%b)
      MatMul (%a, %b) -> (%acc) acc=f32
    }}
  }}
  Move (%acc) -> (%C)
}}
",
        start + slices
    )
}

/// Each shape and loop for a drawn architecture; `CARBYNE_ALL=1` for all of them.
#[test]
fn slices_run_through_the_iterations() {
    let tables = [Arch::Sm75, Arch::Sm80, Arch::Sm90a].map(AtomTable::new);
    // Slices, those that are under way, and whether the first are loaded in the iteration before.
    let shapes =
        [(4, 2, true), (2, 2, true), (3, 2, false), (3, 3, true), (4, 3, false), (1, 2, false)];
    for (slices, depth, through) in shapes {
        let tiles = 768 / (16 * slices);
        for (start, step, stages) in [(0, 1, 3), (1, 2, 2), (0, 1, 4), (0, 1, 1), (0, 4, 3)] {
            let outer = format!("for (k = {start}; k < {tiles}; k += {step}) stages={stages}");
            let src = sliced(&outer, (slices, depth), 2 * start);
            if !testing::one_in(4, &src) {
                continue;
            }
            for table in testing::one_of(&src, &tables) {
                let arch = table.arch;
                let d = decomposed(&src, table).unwrap_or_else(|e| panic!("{arch} {src}{e:?}"));
                run(&d.program, table).unwrap_or_else(|e| panic!("{arch} {e:?}\n{}", d.text));
                assert!(!d.text.contains("stages="), "{}", d.text);
                let main = d.text.find("  for (k = ").expect("the loop");
                let before = d.text[..main].matches("ldmatrix").count();
                assert_eq!(before > 0, through && stages > 1, "{arch}\n{src}\n{}", d.text);
            }
        }
    }
}

#[test]
fn slices_of_loops_whose_length_only_the_caller_knows() {
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    let src = sliced("for (k = 0; k < N; k += 1) stages=3", (4, 2), 0);
    let src = src.replace("carbyne 2\n", "carbyne 2\nsym N{min=1, max=12}\n");
    let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{e:?}"));
    // Conditions guard reads of slices that no iteration has written.
    assert!(d.text.contains("if (k + 1 < N)") && d.text.contains("if (0 < N)"), "{}", d.text);
}

/// A loop that starts and steps as it likes, with tiles that it computes its own way.
#[test]
fn tiles_by_a_quotient_of_the_variable() {
    let loops = [
        "for (k = 3; k < 35; k += 2) stages=3 {
    Move (%A.tile([64,16])[0, (k - 3) / 2]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, (k - 3) / 2])
  }",
        "for (k = 0; k < 18; k += 3) stages=2 {
    Move (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, k])
  }
  for (k = 0; k < 16; k += 1) {
    if (0 < k % 3) {
      Move (%A.tile([64,16])[0, k]) -> (%B.tile([64,16])[0, k])
    }
  }",
        "for (k = 0; k < 16; k += 2) stages=2 {
    Move (%A.tile([64,16])[0, (k + 3) % 16]) -> (%s:SH)
    Move (%s) -> (%B.tile([64,16])[0, (k + 3) % 16])
    Move (%A.tile([64,16])[0, k]) -> (%B.tile([64,16])[0, k])
  }",
    ];
    for (body, arch) in loops.iter().flat_map(|body| ["sm_75", "sm_80"].map(|arch| (body, arch))) {
        let src = format!(
            "carbyne 2\n%A:[(64,256):(256,1)].f16.GL\n%B:[(64,256):(256,1)].f16.GL\n\
             Move @f <<<#grid:[1], #cta:[128]>>> (%A) -> (%B) {{\n  {body}\n}}\n"
        );
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
        run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}

/// Rows whose length and distance only the caller knows: instructions are as wide as the symbol's
/// divisor lets them be.
#[test]
fn rows_that_only_the_caller_knows() {
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    for (div, wide) in [(8, "cp.async.cg.b128"), (4, "cp.async.ca.b64"), (2, "cp.async.ca.b32")] {
        let src = format!(
            "carbyne 2
sym K{{min=16, max=512, div=16}}
sym P{{min=16, max=512, div={div}}}
%A:[(64,K):(P,1)].f16.GL
%B:[K,64].f16.GL
%C:[64,64].f32.GL
MatMul.set @gemm <<<#grid:[1], #cta:[128]>>> (%A, %B) -> (%C) acc=f32 {{
  Allocate %acc:[64,64].f32.RF{{?}}
  Init (0) -> (%acc)
  for (k = 0; k < K / 16; k += 1) stages=3 {{
    Move (%A.tile([64,16])[0, k]) -> (%a:SH)
    Move (%B.tile([16,64])[k, 0]) -> (%b:SH)
    MatMul (%a, %b) -> (%acc)
  }}
  Move (%acc) -> (%C)
}}
"
        );
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
        assert!(d.text.contains(wide), "{}", d.text);
        for k in [16, 32, 80] {
            run_with(&d.program, &table, &[("K", k), ("P", k + div)])
                .unwrap_or_else(|e| panic!("{k} {e:?}\n{}", d.text));
        }
    }
}

/// Rows that blocks take in turn, each copied by the threads that read it, or by others.
fn persistent(stages: i64, read: &str) -> String {
    format!(
        "carbyne 2
%X:[40,64,64].f16.GL
%Y:[40,64,64].f16.GL
Spec @rows <<<#grid:[@b < 7], #cta:[64]>>> (%X) -> (%Y) {{
  for (r = @b; r < 40; r += 7) stages={stages} {{
    Move (%X[r,_,_]) -> (%s:SH)
    %v = move({read})
    %Y[r,_,_] = exp(%v)
  }}
}}
"
    )
}

#[test]
fn loops_that_begin_at_a_block_leave_copies_under_way() {
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    for (stages, read, left) in [
        (2, "%s", 1),
        (3, "%s", 1),
        (4, "%s", 2),
        (2, "%s.transpose()", 1),
        (3, "%s.transpose()", 1),
    ] {
        let src = persistent(stages, read);
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
        run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        let (before, inside) = d.text.split_once("for (r = @b").expect("a loop");
        assert!(!before.contains("async.wait") && !before.contains("barrier"), "{}", d.text);
        let wait = format!("    async.wait({left})\n");
        assert!(inside.contains(&wait), "{stages} {read}\n{}", d.text);
    }
}
