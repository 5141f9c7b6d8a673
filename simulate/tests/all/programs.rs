//! Tests small programs with barriers, roles, loops, copies and atoms: correct ones, and wrong ones
//! with the code of each error. Also tests the limits of a run, and programs at the tile level and
//! the kernel level.

use crate::support::{bad, bad_with, good, run, unverified};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::testing;
use carbyne_simulate::{Array, Inputs, Options};

/// 64 threads exchange neighbors through shared memory, repeatedly.
fn exchange(first: &str, second: &str) -> String {
    format!(
        "carbyne 2
%in:[64].f32.GL
%out:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @exchange <<<#grid, #cta>>> (%in) -> (%out) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  for (i = 0; i < 4; i += 1) {{
    Move <<<#grid, #one>>> (%in[@t]) -> (%s[@t]) {second}
    {first}
    Move <<<#grid, #one>>> (%s[63 - @t]) -> (%x[0]) {first_mark}
    barrier
  }}
  Move <<<#grid, #one>>> (%x[0]) -> (%out[63 - @t])
}}
",
        first_mark = if first.is_empty() { "// HERE" } else { "" },
    )
}

#[test]
fn barriers_make_an_exchange_right() {
    let report = good(&exchange("barrier", ""), &Options::default());
    assert_eq!(report.kernels[0].elements, 64);
}

#[test]
fn a_missing_barrier_before_reading() {
    let e = bad(&exchange("", ""), Code::Race);
    assert!(
        e.message.contains("thread 63 writes %s[63] (line 12), thread 0 reads it (line 14)"),
        "{e}"
    );
    assert_eq!(
        (&*e.label, &*e.related[0].1),
        ("block 0, thread 0, i = 0", "thread 63 writes it here, i = 0")
    );
}

#[test]
fn a_missing_barrier_before_overwriting() {
    // The barrier at the loop's end separates the writes of the next iteration from the reads.
    let text = exchange("barrier", "// HERE").replace("    barrier\n  }", "  }");
    let e = bad(&text, Code::Race);
    assert!(e.message.contains("thread 63 reads %s[0]"), "{e}");
    assert!(e.message.contains("thread 0 writes it (line 12)"), "{e}");
    assert_eq!(
        (&*e.label, &*e.related[0].1),
        ("block 0, thread 0, i = 1", "thread 63 reads it here, i = 0")
    );
}

#[test]
fn lanes_of_a_warp_need_a_barrier_too() {
    let text = |between: &str| exchange(between, "").replace("64", "32").replace("63", "31");
    good(&text("barrier"), &Options::default());
    let of_warp = text("barrier(#cta)").replace("    barrier\n  }", "    barrier(#cta)\n  }");
    good(&of_warp, &Options::default());
    let e = bad(&text(""), Code::Race);
    assert!(e.message.contains("thread 31 writes %s[31] (line 12), thread 0 reads it"), "{e}");
}

/// Warp 0 fills a slot and passes it to warp 1, which returns it empty; each warp executes its own
/// code.
fn ping_pong(full: &str, empty: &str) -> String {
    format!(
        "carbyne 2
%in:[128].f32.GL
%out:[128].f32.GL
#grid:[1].block
#cta:[128].thread
Move @copy <<<#grid, #cta>>> (%in) -> (%out) {{
  @t = #cta.indices()
  #both:[64].thread = #cta.tile([64])[0]
  #one:[].thread = #cta.scalar()
  Allocate %s:[32].f32.SH
  if (@t < 32) {{
    for (k = 0; k < 4; k += 1) {{
      Move <<<#grid, #one>>> (%in[k * 32 + @t % 32]) -> (%s[@t % 32])
      {full}
      {empty}
    }}
  }} else {{
    if (@t < 64) {{
      for (k = 0; k < 4; k += 1) {{
        barrier(#both)
        Move <<<#grid, #one>>> (%s[31 - @t % 32]) -> (%out[k * 32 + 31 - @t % 32])
        barrier(#both)
      }}
    }}
  }}
}}
"
    )
}

#[test]
fn warps_with_roles_go_their_own_way() {
    let right = ping_pong("barrier(#both)", "barrier(#both)");
    unverified(&right).unwrap();
    // With one barrier less per round, the warps stay in step for a while, and then race.
    let e = unverified(&ping_pong("barrier(#both)", "")).err().unwrap();
    assert_eq!(e.code, Code::Race, "{e}");
    // The second warp waits for another arrival of the first.
    let more = right.replacen("k < 4", "k < 3", 1);
    let e = unverified(&more).err().unwrap();
    assert_eq!(e.code, Code::Deadlock, "{e}");
    assert!(e.label.contains("32 threads do not arrive, for example thread 0"), "{}", e.label);
}

#[test]
fn named_barriers_order_their_threads() {
    let text = |barrier: &str| {
        format!(
            "carbyne 2
%in:[128].f32.GL
%out:[128].f32.GL
#grid:[1].block
#cta:[128].thread
Move @pairs <<<#grid, #cta>>> (%in) -> (%out) {{
  @t = #cta.indices()
  #half:[2].[64].thread = #cta.tile([64])
  #one:[].thread = #cta.scalar()
  Allocate %s:[128].f32.SH
  Move <<<#grid, #one>>> (%in[@t]) -> (%s[@t])
  {barrier}
  Move <<<#grid, #one>>> (%s[@t / 64 * 64 + (@t + 32) % 64])
      -> (%out[@t / 64 * 64 + (@t + 32) % 64])
}}
"
        )
    };
    good(&text("barrier"), &Options::default());
    let both = "if (@t < 64) {\n barrier(#half[0])\n } else {\n barrier(#half[1])\n }";
    unverified(&text(both)).unwrap();
    let one = "if (@t < 64) {\n barrier(#half[0])\n }";
    let e = unverified(&text(one)).err().unwrap();
    assert_eq!(e.code, Code::Race);
    assert!(e.message.contains("thread 96 writes %s[96]"), "{e}");
}

#[test]
fn an_uninitialized_read() {
    let text = "carbyne 2
%out:[32].f32.GL
#grid:[1].block
#cta:[32].thread
Init @none <<<#grid, #cta>>> (0) -> (%out) {
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %x:[2].f32.RF
  Init <<<#grid, #one>>> (0) -> (%x[0])
  Move <<<#grid, #one>>> (%x[1]) -> (%out[@t]) // HERE
}
";
    let e = bad(text, Code::Uninitialized);
    assert!(e.message.starts_with("%x[1] is read"), "{e}");
    let shared = text.replace("[2].f32.RF", "[2].f32.SH");
    assert!(bad(&shared, Code::Uninitialized).message.starts_with("%x[1] is read"));
    // An output is not an input: its previous elements are undefined.
    let output = text.replace("(%x[1]) -> (%out[@t])", "(%out[@t]) -> (%x[1])");
    assert!(bad(&output, Code::Uninitialized).message.starts_with("%out[0] is read"));
}

#[test]
fn a_wrong_index_is_the_first_wrong_element() {
    let text = "carbyne 2
%A:[8,16].f16.GL
%B:[8,16].f16.GL
#grid:[2].block
#cta:[64].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) { // HERE
  @b = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  if (@b == 1 && @t == 37) {
    Move <<<#grid, #one>>> (%A[@b * 4 + @t / 16, (@t + 1) % 16]) -> (%B[@b * 4 + @t / 16, @t % 16])
  } else {
    Move <<<#grid, #one>>> (%A[@b * 4 + @t / 16, @t % 16]) -> (%B[@b * 4 + @t / 16, @t % 16])
  }
}
";
    let e = bad(text, Code::WrongElement);
    assert!(e.message.starts_with("%B[6,5] is"), "{e}");
    assert!(e.label.contains("block 1"), "{}", e.label);
    assert!(e.related[0].1.contains("thread 37, line 11"), "{:?}", e.related);
    assert_eq!(e.related[0].0.line_col(text).0, 11);
}

#[test]
fn a_wrong_stride_inside_is_blamed_on_the_inner_spec() {
    let text = "carbyne 2
%A:[16,16].f32.GL
%B:[16,16].f32.GL
#grid:[1].block
#cta:[64].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[16,16].f32.SH
  Move <<<#grid, #cta>>> (%A) -> (%s) { // HERE
    for (i = 0; i < 4; i += 1) {
      Move <<<#grid, #one>>> (%A[@t / 4, @t % 4 * 4 + i]) -> (%s[@t / 4, i * 4 + @t % 4])
    }
  }
  barrier
  for (i = 0; i < 4; i += 1) {
    Move <<<#grid, #one>>> (%s[@t / 4, i * 4 + @t % 4]) -> (%B[@t / 4, @t % 4 * 4 + i])
  }
}
";
    let e = bad(text, Code::WrongElement);
    assert!(e.message.starts_with("%s[0,1] is"), "{e}");
    assert!(e.related[0].1.contains("thread 1, line 12"), "{:?}", e.related);
    // Without checks, nothing is compared, and the two mistakes cancel out.
    good(text, &Options { check: false, ..Options::default() });
}

#[test]
fn an_element_that_nobody_writes() {
    let text = "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[2].block
#cta:[32].thread
Move @half <<<#grid, #cta>>> (%A) -> (%B) { // HERE
  @b = #grid.indices()
  @t = #cta.indices()
  if (@b * 32 + @t != 45) {
    Move <<<#grid, #cta.scalar()>>> (%A[@b * 32 + @t]) -> (%B[@b * 32 + @t])
  }
}
";
    assert_eq!(bad(text, Code::WrongElement).message, "%B[45] is never written");
    // A sample of blocks contains no information about the others.
    let report = good(text, &Options { blocks: Some(1), ..Options::default() });
    assert!(!report.kernels[0].complete && report.outputs.get("B").is_none());
    assert!(report.outputs.element("B", &[3]).is_some());
}

#[test]
fn two_blocks_may_not_write_one_element() {
    let text = "carbyne 2
%A:[32].f32.GL
%B:[32].f32.GL
#grid:[2].block
#cta:[32].thread
Move @twice <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  Move <<<#grid, #cta.scalar()>>> (%A[@t]) -> (%B[@t]) // HERE
}
";
    let e = bad(text, Code::Race);
    assert!(e.message.starts_with("block 0 writes %B[0], block 1 writes it"), "{e}");
}

const GEMM: &str = "carbyne 2
let M = 32, N = 16, K = 24
%A:[M,K].f32.GL
%B:[K,N].f32.GL
%C:[M,N].f32.GL
#grid:[2].block
#cta:[(16,16):(1,16)].thread
MatMul @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) {
  @b = #grid.indices()
  @m, @n = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %a:[1].f32.RF
  Allocate %b:[1].f32.RF
  Allocate %c:[1].f32.RF
  Move <<<#grid, #one>>> (%C[@b * 16 + @m, @n]) -> (%c[0]) atom=ld.global.b32
  for (k = 0; k < K; k += 1) {
    Move <<<#grid, #one>>> (%A[@b * 16 + @m, k]) -> (%a[0]) atom=ld.global.b32
    Move <<<#grid, #one>>> (%B[k, @n]) -> (%b[0]) atom=ld.global.b32
    MatMul <<<#grid, #one>>> (%a[0], %b[0]) -> (%c[0]) atom=fma.f32
  }
  Move <<<#grid, #one>>> (%c[0]) -> (%C[@b * 16 + @m, @n]) atom=st.global.b32
}
";

#[test]
fn a_gemm_of_fused_multiply_adds() {
    let report = good(GEMM, &Options::default());
    let k = &report.kernels[0];
    assert_eq!((k.multiply_adds, k.elements), (32 * 16 * 24, 32 * 16));
    assert!(k.max_error > 0.0 && k.max_ratio < 1.0);
    let report = good(GEMM, &Options { inputs: Inputs::Ints(3), ..Options::default() });
    assert_eq!(report.kernels[0].max_error, 0.0);
    let short = GEMM.replace("k = 0", "k = 1");
    let e = run(&short, &Options::default()).err().unwrap();
    assert_eq!(e.code, Code::WrongElement);
    assert!(e.message.starts_with("%C[0,0] is"), "{e}");
}

#[test]
fn arrays_are_the_users_own() {
    let f = |v: f32| u64::from(v.to_bits());
    let array = |shape: &[u64], of: &dyn Fn(u64) -> f32| {
        let n: u64 = shape.iter().product();
        Array {
            scalar: Scalar::F32,
            shape: shape.to_vec(),
            values: (0..n).map(|i| f(of(i))).collect(),
        }
    };
    let mut options = Options::default();
    // A selects row m of B times m, for each existing row.
    options.arrays.insert(
        "A".to_owned(),
        array(&[32, 24], &|i| if i / 24 == i % 24 { (i / 24) as f32 } else { 0.0 }),
    );
    options.arrays.insert("B".to_owned(), array(&[24, 16], &|i| i as f32));
    options.arrays.insert("C".to_owned(), array(&[32, 16], &|_| 1.0));
    let c = good(GEMM, &options).outputs.get("C").unwrap();
    assert_eq!(c.shape, [32, 16]);
    for m in 0..32u64 {
        for n in 0..16u64 {
            let want = 1.0 + if m < 24 { (m * (m * 16 + n)) as f32 } else { 0.0 };
            assert_eq!(c.values[(m * 16 + n) as usize], f(want), "{m} {n}");
        }
    }
    options.arrays.insert("A".to_owned(), array(&[24, 32], &|_| 0.0));
    assert_eq!(bad_with(GEMM, Code::BadInput, &options).code, Code::BadInput);
    options.arrays.remove("A");
    options.arrays.insert("Z".to_owned(), array(&[1], &|_| 0.0));
    assert_eq!(bad_with(GEMM, Code::BadInput, &options).message, "the program has no tensor `%Z`");
}

#[test]
fn endless_loops_are_refused_at_once() {
    let start = std::time::Instant::now();
    for end in ["1152921504606846976", "4611686018427387904"] {
        let text = format!(
            "carbyne 2
%A:[1].f32.GL
#grid:[1].block
#cta:[32].thread
Init @long <<<#grid, #cta>>> (0) -> (%A) {{
  for (i = 0; i < {end}; i += 1) {{
    for (j = 0; j < {end}; j += 1) {{
    }}
  }}
}}
"
        );
        let e = bad(&text, Code::StepBudget);
        assert!(e.message.contains("2^64 or more"), "{e}");
    }
    assert!(start.elapsed() < testing::SOON);
}

#[test]
fn samples_fit_the_budget() {
    let text = "carbyne 2
let N = 1048576
%A:[N].f32.GL
%B:[N].f32.GL
#grid:[N/128].block
#cta:[128].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @b = #grid.indices()
  @t = #cta.indices()
  Move <<<#grid, #cta.scalar()>>> (%A[@b * 128 + @t]) -> (%B[@b * 128 + @t])
}
";
    let report = good(text, &Options { budget: 20_000, ..Options::default() });
    let k = &report.kernels[0];
    assert!(
        k.blocks_run.len() > 4 && k.blocks_run.len() < 8192 && !k.complete,
        "{:?}",
        k.blocks_run
    );
    assert_eq!(k.blocks_run[0], 0);
    let gaps: Vec<i64> = k.blocks_run.windows(2).map(|w| w[1] - w[0]).collect();
    assert!(gaps.iter().max().unwrap() - gaps.iter().min().unwrap() <= 1, "{gaps:?}");
    let few = good(text, &Options { blocks: Some(2), ..Options::default() });
    assert_eq!(few.kernels[0].blocks_run, [0, 4096]);
    let e = bad_with(text, Code::StepBudget, &Options { budget: 10, ..Options::default() });
    assert!(e.help.unwrap().contains("--budget"));
}

#[test]
fn large_problems_take_little_memory() {
    let text = "carbyne 2
%A:[4096,4096].f16.GL
%B:[4096,4096].f16.GL
#grid:[(512,512):(1,512)].block
#cta:[64].thread
Move @transposed <<<#grid, #cta>>> (%A) -> (%B) {
  @i, @j = #grid.indices()
  @t = #cta.indices()
  %a:[8,8].f16.GL = %A.tile([8,8])[@i, @j]
  %b:[8,8].f16.GL = %B.tile([8,8])[@i, @j]
  Move <<<#grid, #cta.scalar()>>> (%a[@t / 8, @t % 8]) -> (%b[@t / 8, @t % 8])
}
";
    let report = good(text, &Options { blocks: Some(500), ..Options::default() });
    assert_eq!(report.kernels[0].elements, 500 * 64);
}

#[test]
fn copies_must_be_waited_for() {
    let text = |sync: &str, mark: &str| {
        format!(
            "carbyne 2
%A:[128].f32.GL
%B:[128].f32.GL
#grid:[1].block
#cta:[32].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[128].f32.SH
  Allocate %x:[4].f32.RF
  Move <<<#grid, #cta>>> (%A) -> (%s) {{
    Move <<<#grid, #one>>> (%A.tile([4])[@t]) -> (%s.tile([4])[@t]) atom=cp.async.cg.b128
  }}
  {sync}
  Move <<<#grid, #one>>> (%s.tile([4])[@t]) -> (%x) atom=ld.shared.b128 {mark}
  Move <<<#grid, #one>>> (%x) -> (%B.tile([4])[@t]) atom=st.global.b128
}}
"
        )
    };
    good(&text("async.commit\n  async.wait(0)", ""), &Options::default());
    for sync in ["", "async.commit", "async.wait(0)", "async.commit\n  async.wait(1)"] {
        let e = bad(&text(sync, "// HERE"), Code::Uninitialized);
        assert!(e.message.contains("while an asynchronous copy to it is pending"), "{sync}: {e}");
        assert_eq!(e.related.len(), 1);
    }
}

#[test]
fn barriers_that_some_threads_never_reach() {
    let text = "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  for (i = 0; i < 1 + @t / 32; i += 1) {
    barrier // HERE
  }
  Move <<<#grid, #cta.scalar()>>> (%A[@t]) -> (%B[@t])
}
";
    let e = unverified(text).err().unwrap();
    assert_eq!((e.code, e.span.line_col(text).0), (Code::Deadlock, 9), "{e}");
    assert!(e.label.contains("32 threads do not"), "{}", e.label);
}

#[test]
fn vectors_must_be_aligned() {
    let text = "carbyne 2
%A:[(32,2):(3,1)].f32.GL
%B:[(32,2):(2,1)].f32.GL
#grid:[1].block
#cta:[32].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  Allocate %x:[2].f32.RF
  Move <<<#grid, #cta.scalar()>>> (%A[@t, _]) -> (%x) atom=ld.global.b64 // HERE
  Move <<<#grid, #cta.scalar()>>> (%x) -> (%B[@t, _]) atom=st.global.b64
}
";
    let e = bad(text, Code::Misaligned);
    assert!(e.label.contains("thread 1: byte 12"), "{}", e.label);
    good(&text.replace("(3,1)", "(4,1)"), &Options::default());
    // Elements that a vector access cannot reach.
    let e = bad(&text.replace("(3,1)", "(1,32)"), Code::AtomMismatch);
    assert!(
        e.label.contains("values of operand S must be runs of 2 consecutive elements"),
        "{}",
        e.label
    );
}

#[test]
fn shuffles_sum_a_warp() {
    let text = "carbyne 2
%A:[32].f32.GL
%S:[1].f32.GL
#grid:[1].block
#w:[32].thread
Reduction.sum @sum <<<#grid, #w>>> (%A) -> (%S) axis=0 {
  @t = #w.indices()
  #one:[].thread = #w.scalar()
  Allocate %x:[1].f32.RF
  Allocate %y:[1].f32.RF
  Move <<<#grid, #one>>> (%A[@t]) -> (%x[0])
  STEPS
  if (@t == 0) {
    Move <<<#grid, #one>>> (%x[0]) -> (%S[0])
  }
}
";
    let steps: String = [16, 8, 4, 2, 1]
        .iter()
        .map(|d| {
            format!(
                "Shfl.bfly <<<#grid, #w>>> (%x) -> (%y) lane={d}
  BinaryPointwise.add <<<#grid, #one>>> (%x, %y) -> (%x)
  "
            )
        })
        .collect();
    good(&text.replace("STEPS", &steps), &Options::default());
    let e = run(&text.replace("STEPS", &steps.replace("lane=4", "lane=3")), &Options::default());
    assert_eq!(e.err().unwrap().code, Code::WrongElement);
}

#[test]
fn the_tile_level_runs_without_atoms_or_barriers() {
    let text = "carbyne 2
let M = 32, N = 32, K = 64
%A:[M,K].f16.GL
%B:[K,N].f16.GL
%C:[M,N].f16.GL
#grid:[1].block
#cta:[64].thread
MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {
  Allocate %a:[M,16].f16.SH
  Allocate %b:[16,N].f16.SH
  Allocate %c:[M,N].f32.RF{tv=(64,16):(16,1) over #cta}
  Allocate %h:[M,N].f16.RF{tv=(64,16):(16,1) over #cta}
  Init <<<#grid, #cta>>> (0) -> (%c)
  for (k = 0; k < K/16; k += 1) {
    Move <<<#grid, #cta>>> (%A.tile([M,16])[0, k]) -> (%a)
    Move <<<#grid, #cta>>> (%B.tile([16,N])[k, 0]) -> (%b)
    MatMul <<<#grid, #cta>>> (%a, %b) -> (%c)
  }
  UnaryPointwise.cast <<<#grid, #cta>>> (%c) -> (%h)
  Move <<<#grid, #cta>>> (%h) -> (%C)
}
";
    let report = good(text, &Options::default());
    assert_eq!(report.kernels[0].multiply_adds, 32 * 32 * 64);
}

#[test]
fn kernels_without_bodies_run_by_their_meaning() {
    let text = "carbyne 2
%A:[8,8].f32.GL
%B:[(8,8):(1,8)].f32.GL
%C:[8,8].f32.GL
%D:[8].f32.GL
MatMul.set @gemm (%A, %B) -> (%C)
Reduction.max @max (%C) -> (%D) axis=1
";
    let report = good(text, &Options::default());
    let (c, d) = (report.outputs.get("C").unwrap(), report.outputs.get("D").unwrap());
    for m in 0..8 {
        let row = (0..8).map(|n| c.number(m * 8 + n).unwrap()).fold(f64::MIN, f64::max);
        assert_eq!(d.number(m), Some(row));
    }
    let large = text.replace('8', "8192");
    assert_eq!(bad(&large, Code::NotDecomposed).code, Code::NotDecomposed);
}
