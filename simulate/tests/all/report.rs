//! Tests the counts and deviations in reports, on programs small enough to count by hand: rounding,
//! bytes, sectors, live registers, synchronizations. Also tests which blocks a sample contains.

use crate::support::{good, run};
use carbyne_ir::diag::Code;
use carbyne_simulate::{Inputs, KernelReport, Options, Report};

fn only(text: &str, options: &Options) -> KernelReport {
    good(text, options).kernels.remove(0)
}

/// 64 threads on vectors of 64 numbers per block.
fn kernel(blocks: usize, body: &str) -> String {
    format!(
        "carbyne 2
%A:[{n}].f32.GL
%B:[{n}].f16.GL
#grid:[{blocks}].block
#cta:[64].thread
UnaryPointwise.cast @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @b = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  {body}
}}
",
        n = blocks * 64
    )
}

const CAST: &str = "UnaryPointwise.cast <<<#grid, #one>>> (%A[@b * 64 + @t]) -> (%B[@b * 64 + @t])";

#[test]
fn a_cast_is_half_a_unit_away() {
    let report = only(&kernel(4, CAST), &Options::default());
    let own = &report.numerics[0];
    assert_eq!((own.kind.as_str(), own.executions, own.elements), ("UnaryPointwise.cast", 4, 256));
    assert!(own.max_ulp > 0.4 && own.max_ulp <= 0.5, "{own:?}");
    let norm = own.relative_norm.unwrap();
    assert!(norm > 1e-5 && norm < 0.5f64.powi(11), "{own:?}");
    let ints = Options { inputs: Inputs::Ints(1), ..Options::default() };
    let exact = &only(&kernel(4, CAST), &ints).numerics[0];
    assert_eq!((exact.max_ulp, exact.max_error, exact.relative_norm), (0.0, 0.0, Some(0.0)));
}

#[test]
fn uncompared_kernels_have_no_deviations() {
    let options = Options { check: false, ..Options::default() };
    assert!(only(&kernel(4, CAST), &options).numerics.is_empty());
}

#[test]
fn bytes_and_sectors_of_an_atom_are_counted() {
    let body = "Allocate %x:[1].f32.RF
  Allocate %h:[1].f16.RF
  Move <<<#grid, #one>>> (%A[@b * 64 + (@t * 8 + @t / 8) % 64]) -> (%x[0]) atom=ld.global.b32
  UnaryPointwise.cast <<<#grid, #one>>> (%x[0]) -> (%h[0])
  Move <<<#grid, #one>>> (%h[0]) -> (%B[@b * 64 + (@t * 8 + @t / 8) % 64])";
    let report = only(&kernel(4, body), &Options::default());
    let read = report.leaves[0].count;
    // Eight warps; 32 lanes are 32 bytes apart, four in each of eight sectors.
    assert_eq!((read.executions, read.global.accesses, read.global.bytes), (8, 8, 8 * 128));
    assert_eq!((read.global.sectors, read.global.ideal), (64, 32));
    assert_eq!(read.shared.bytes, 0);
}

#[test]
fn the_same_value_twice_is_a_warning() {
    let body = CAST.replace("@t]", "@t / 2 * 2]");
    let text = kernel(1, &body).replace("UnaryPointwise.cast @k", "Spec @k");
    let line = text.lines().position(|l| l.contains("@t / 2")).unwrap() as u32 + 1;
    // Every second element stays unwritten.
    let options = Options { check: false, ..Options::default() };
    assert_eq!(only(&text, &options).repeated, [line]);
    let text = kernel(1, CAST);
    assert!(only(&text, &Options::default()).repeated.is_empty());
}

#[test]
fn registers_live_while_they_are_needed() {
    // %x is dead after the sum, where %y begins; %z is live around the loop; no statement reads %u.
    let body = "Allocate %x:[4].f32.RF
  Allocate %y:[1].f32.RF
  Allocate %z:[2].f32.RF
  Allocate %u:[8].f32.RF
  Init <<<#grid, #one>>> (1) -> (%x)
  Init <<<#grid, #one>>> (2) -> (%u)
  Init <<<#grid, #one>>> (0) -> (%z)
  for (i = 0; i < 3; i += 1) {
    BinaryPointwise.add <<<#grid, #one>>> (%x[0], %z[0]) -> (%z[1])
    BinaryPointwise.add <<<#grid, #one>>> (%z[1], %z[1]) -> (%z[0])
  }
  Move <<<#grid, #one>>> (%A[@b * 64 + @t]) -> (%y[0])
  UnaryPointwise.cast <<<#grid, #one>>> (%y[0]) -> (%B[@b * 64 + @t])";
    let report = only(&kernel(1, body), &Options::default());
    let live: Vec<u64> = report.leaves.iter().map(|l| l.registers.unwrap()).collect();
    //           x  x+u z+x  loop  y  y
    assert_eq!(live, [4, 12, 6, 6, 6, 1, 1]);
}

#[test]
fn half_registers_are_packed() {
    let body = "Allocate %h:[3].f16.RF
  Init <<<#grid, #one>>> (1) -> (%h)
  Move <<<#grid, #one>>> (%h[1]) -> (%B[@b * 64 + @t])";
    let text = kernel(1, body).replace("UnaryPointwise.cast @k", "Spec @k");
    let live: Vec<_> =
        only(&text, &Options::default()).leaves.iter().map(|l| l.registers).collect();
    assert_eq!(live, [Some(2), Some(2)]);
}

#[test]
fn synchronizations_are_counted_by_warps() {
    let report = only(&kernel(4, &format!("barrier\n  {CAST}")), &Options::default());
    let counts: Vec<_> = report.leaves.iter().map(|l| (&*l.kind, l.count.executions)).collect();
    assert_eq!(counts, [("barrier", 8), ("UnaryPointwise.cast", 8)]);
}

#[test]
fn a_sample_is_as_large_as_its_steps() {
    let all = only(&kernel(16, CAST), &Options::default());
    assert!(all.complete && !all.sampled);
    let steps = all.steps_per_block;
    for (sample, n) in [(0, 1), (5 * steps, 5), (5 * steps + steps / 2, 5), (100 * steps, 16)] {
        let options = Options { sample: Some(sample), ..Options::default() };
        let some = only(&kernel(16, CAST), &options);
        assert_eq!((some.blocks_run.len(), some.sampled), (n, n < 16), "{sample}");
    }
    // An explicit number of blocks is respected.
    let options = Options { sample: Some(0), blocks: Some(3), ..Options::default() };
    let some = only(&kernel(16, CAST), &options);
    assert_eq!((some.blocks_run, some.sampled), (vec![0, 5, 10], false));
}

#[test]
fn inputs_of_later_kernels_are_complete() {
    let second = "
%C:[1024].f32.GL
UnaryPointwise.cast @l <<<#grid, #cta>>> (%B) -> (%C) {
  @b = #grid.indices()
  @t = #cta.indices()
  UnaryPointwise.cast <<<#grid, #cta.scalar()>>> (%B[@b * 64 + @t]) -> (%C[@b * 64 + @t])
}
";
    let options = Options { sample: Some(0), ..Options::default() };
    let report = good(&format!("{}{second}", kernel(16, CAST)), &options);
    // One block of each kernel runs; the meaning supplies the results of the first kernel's other
    // blocks.
    let ran = |report: &Report| -> Vec<(usize, bool)> {
        report.kernels.iter().map(|k| (k.blocks_run.len(), k.filled)).collect()
    };
    assert_eq!(ran(&report), [(1, true), (1, false)]);
    assert!(report.kernels.iter().all(|k| k.checked && k.elements > 0));
    // All blocks of a kernel without a meaning run, independently of the options.
    let text = format!("{}{second}", kernel(16, CAST)).replace("UnaryPointwise.cast @k", "Spec @k");
    for options in [options, Options { blocks: Some(1), ..Options::default() }] {
        assert_eq!(ran(&good(&text, &options)), [(16, false), (1, false)]);
    }
    let few = Options { budget: 2000, blocks: Some(1), ..Options::default() };
    let error = run(&text, &few).map(|_| ()).unwrap_err();
    assert!(error.code == Code::StepBudget && error.message.contains("later kernel"), "{error}");
}

/// A grid of 4096 blocks; those from `first` to below `end` copy 64 numbers each.
fn few_work(first: i64, end: i64) -> String {
    format!(
        "carbyne 2
%A:[4096,64].f32.GL
%B:[4096,64].f32.GL
Spec @few <<<#grid:[@b < 4096], #cta:[64]>>> (%A) -> (%B) {{
  if (@b >= {first} && @b < {end}) {{
    Move (%A.tile([1,64])[@b, 0]) -> (%x)
    Move (%x) -> (%B.tile([1,64])[@b, 0])
  }}
}}
"
    )
}

#[test]
fn a_sample_has_blocks_with_work() {
    let all = only(&few_work(0, 4096), &Options::default());
    assert_eq!((all.idle, all.complete), (0, true));
    let sample = Options { sample: Some(4 * all.steps_per_block), ..Options::default() };
    let even = only(&few_work(0, 4096), &sample);
    assert_eq!((even.blocks_run, even.idle), (vec![0, 1024, 2048, 3072], 0));
    // As many blocks as requested find work, and no more are tried.
    let first = only(&few_work(0, 2048), &sample);
    assert_eq!((first.blocks_run.len() as u64 - first.idle, first.idle), (4, 2));
    // An explicit number of blocks is respected.
    let asked = Options { blocks: Some(4), ..Options::default() };
    let asked = only(&few_work(3000, 3050), &asked);
    assert_eq!((asked.blocks_run, asked.idle), (vec![0, 1024, 2048, 3072], 4));
}

#[test]
fn the_search_for_work_ends() {
    let steps = only(&few_work(0, 4096), &Options::default()).steps_per_block;
    let sample = Options { sample: Some(4 * steps), ..Options::default() };
    let rare = only(&few_work(2900, 3500), &sample);
    assert_eq!(rare.blocks_run.len() as u64 - rare.idle, 4, "{:?}", rare.blocks_run);
    assert!(rare.blocks_run.is_sorted(), "{:?}", rare.blocks_run);
    let none = only(&few_work(5000, 6000), &sample);
    let ran = none.blocks_run.len() as u64;
    assert!(none.idle == ran && ran <= 4 + 64 && !none.complete, "{ran} ran, {}", none.idle);
    // The result is deterministic.
    assert_eq!(rare, only(&few_work(2900, 3500), &sample));
}

/// Blocks that compute but write nothing count against a small limit.
#[test]
fn blocks_that_compute_in_vain_end_the_search() {
    let text = "carbyne 2
%A:[4096,64].f32.GL
%B:[4096,64].f32.GL
Spec @vain <<<#grid:[@b < 4096], #cta:[64]>>> (%A) -> (%B) {
  for (i = 0; i < 4096; i += 1) {
    Move (%A.tile([1,64])[i, 0]) -> (%x)
    if (@b > 5000) {
      Move (%x) -> (%B.tile([1,64])[@b, 0])
    }
  }
}
";
    let steps = only(&few_work(0, 4096), &Options::default()).steps_per_block;
    let sample = Options { sample: Some(4 * steps), ..Options::default() };
    let vain = only(text, &sample);
    assert!(vain.blocks_run.len() < 32, "{:?}", vain.blocks_run);
}
