//! Tests integers in the caller's memory that are used as indices, bounds of loops and extents,
//! such as the `%offsets` of a grouped product: their declarations (`splits`, ranges, `distinct`)
//! are checked.

use crate::support::{bad_with, good};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::{Array, Inputs, Options};
use std::collections::BTreeSet;

/// Rows of parts; each element is the number of its part.
const PARTS: &str = "carbyne 2
let T = 37, G = 5, BM = 4
%offsets:[G + 1].i32.GL splits T
%C:[T,3].i32.GL
Spec @parts <<<#grid:[@g < G], #cta:[32]>>> (%offsets) -> (%C) {
  @first = %offsets[@g]
  @last = %offsets[@g + 1]
  %c = %C[@first..@last, _]
  for (i = 0; i < ceil_div(@last - @first, BM); i += 1) {
    Move (%c.iota(0).tile([BM,3])[i, 0].plus(@g * 100)) -> (%c.tile([BM,3])[i, 0])
  }
}
";

fn offsets(values: &[i32]) -> Options {
    given("offsets", values)
}

fn given(name: &str, values: &[i32]) -> Options {
    let values: Vec<u64> = values.iter().map(|v| u64::from(*v as u32)).collect();
    let array = Array { shape: vec![values.len() as u64], scalar: Scalar::I32, values };
    let mut options = Options::default();
    options.arrays.insert(name.to_owned(), array);
    options
}

#[test]
fn parts_are_where_the_tensor_says() {
    let given = [0, 0, 9, 10, 37, 37];
    let all = (0..16).map(|seed| Options { inputs: Inputs::Seed(seed), ..Options::default() });
    for options in all.chain([offsets(&given)]) {
        let report = good(PARTS, &options);
        let offset = |g: i64| report.outputs.element("offsets", &[g]).unwrap() as i64;
        assert_eq!((offset(0), offset(5)), (0, 37));
        for g in 0..5 {
            assert!(offset(g) <= offset(g + 1));
            for t in offset(g)..offset(g + 1) {
                let is = report.outputs.element("C", &[t, 2]).unwrap() as i64;
                assert_eq!(is, g * 100 + t - offset(g), "{t}");
            }
        }
    }
}

#[test]
fn integers_that_split_nothing_are_refused() {
    for wrong in [
        [1, 2, 9, 10, 36, 37],
        [0, 2, 9, 10, 36, 36],
        [0, 9, 2, 10, 36, 37],
        [0, 2, 9, 38, 37, 37],
        [0, -1, 9, 10, 36, 37],
    ] {
        bad_with(PARTS, Code::BadInput, &offsets(&wrong));
    }
}

/// Distinct elements are generated, and those of the caller are checked.
#[test]
fn elements_that_differ_are_drawn_and_checked() {
    let text = |b: usize, p: usize| {
        format!(
            "carbyne 2
%slots:[{b}].i32.GL in 0..{p} distinct
%C:[{p},32].f32.GL
Spec @f <<<#grid:[@b < {b}], #cta:[32]>>> (%slots, %C) -> (%C) {{
  @slot = %slots[@b]
  %C[@slot, _] = 1.0
}}
"
        )
    };
    for seed in 0..20 {
        for (b, p) in [(1, 1), (7, 7), (8, 8), (12, 30), (30, 30)] {
            let options = Options { inputs: Inputs::Seed(seed), ..Options::default() };
            let report = good(&text(b, p), &options);
            let slot = |i: usize| report.outputs.element("slots", &[i as i64]).unwrap() as i64;
            let slots: BTreeSet<i64> = (0..b).map(slot).collect();
            assert_eq!(slots.len(), b);
        }
    }
    bad_with(&text(5, 4), Code::BadInput, &Options::default());
    good(&text(4, 9), &given("slots", &[8, 0, 3, 4]));
    for wrong in [[8, 0, 3, 8], [8, 0, 3, 9]] {
        bad_with(&text(4, 9), Code::BadInput, &given("slots", &wrong));
    }
}

/// An earlier kernel has written numbers that do not split anything.
#[test]
fn parts_that_a_kernel_writes_are_looked_at_where_they_are_read() {
    let text = |numbers: [i64; 3]| {
        let [a, b, c] = numbers;
        format!(
            "carbyne 2
%offsets:[3].i32.GL splits 20
%C:[20,32].f32.GL
Spec @number <<<#grid:[1], #cta:[32]>>> () -> (%offsets) {{
  %offsets[0..1] = {a}
  %offsets[1..2] = {b}
  %offsets[2..3] = {c}
}}
Spec @f <<<#grid:[@g < 2], #cta:[32]>>> (%offsets) -> (%C) {{
  @first = %offsets[@g]
  @last = %offsets[@g + 1]
  %c = %C[@first..@last, _]
  for (i = 0; i < ceil_div(@last - @first, 4); i += 1) {{
    %c.tile([4,32])[i, 0] = 1.0
  }}
}}
"
        )
    };
    good(&text([0, 3, 20]), &Options::default());
    for wrong in [[15, 3, 18], [0, 21, 21], [2, 3, 20], [0, -1, 20]] {
        bad_with(&text(wrong), Code::SimOutOfBounds, &Options::default());
    }
}

/// An earlier kernel has written numbers outside of the range.
#[test]
fn numbers_beyond_their_range_are_found_where_they_are_used() {
    let text = |number: i64| {
        format!(
            "carbyne 2
let N = 16
%n:[1].i32.GL in 0..N
%C:[N].f32.GL
Init @number <<<#grid:[1], #cta:[32]>>> ({number}) -> (%n) {{
  %n = {number}
}}
Spec @set <<<#grid:[1], #cta:[32]>>> (%n) -> (%C) {{
  %C = 0.0
  @n = %n[0]
  %C[@n] = 1.0
}}
"
        )
    };
    let one = u64::from(1f32.to_bits());
    assert_eq!(good(&text(15), &Options::default()).outputs.element("C", &[15]), Some(one));
    bad_with(&text(16), Code::SimOutOfBounds, &Options::default());
}
