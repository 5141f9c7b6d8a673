//! Tests the broadcast of operands: a mode of extent 1, or a literal, stands for all elements along
//! a mode of the output, in every memory.

use crate::support::{bad, good};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::{Array, Options};

/// A kernel over X[8,16], b[1,16] and s[8,1] with this body.
fn kernel(head: &str, body: &str) -> String {
    format!(
        "carbyne 2
%X:[8,16].f32.GL
%b:[1,16].f32.GL
%s:[8,1].f32.GL
%Y:[8,16].f32.GL
#grid:[1].block
#cta:[32].thread
{head} <<<#grid, #cta>>> {body}
"
    )
}

/// The result Y of a text for `X[i,j] = 100 i + j`, `b[j] = j`, `s[i] = 10 i`, row-major.
fn result(text: &str) -> Vec<f64> {
    let mut options = Options::default();
    let mut give = |name: &str, shape: [u64; 2], f: &dyn Fn(u64, u64) -> u64| {
        let at = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |j| (i, j)));
        let values = at.map(|(i, j)| u64::from((f(i, j) as f32).to_bits())).collect();
        let array = Array { scalar: Scalar::F32, shape: shape.to_vec(), values };
        options.arrays.insert(name.to_owned(), array);
    };
    give("X", [8, 16], &|i, j| 100 * i + j);
    give("b", [1, 16], &|_, j| j);
    give("s", [8, 1], &|i, _| 10 * i);
    let report = good(text, &options);
    let y = report.outputs.get("Y").expect("all of Y is written");
    (0..128).map(|i| y.number(i).expect("128 elements")).collect()
}

fn each(f: impl Fn(i64, i64) -> i64) -> Vec<f64> {
    (0..8).flat_map(|i| (0..16).map(move |j| (i, j))).map(|(i, j)| f(i, j) as f64).collect()
}

#[test]
fn the_oracle_supports_broadcast() {
    let body = |operand: &str| {
        format!(
            "(%X, {operand}) -> (%Y) {{
  Allocate %x:[8,16].f32.RF{{?}}
  Allocate %o:[SHAPE].f32.RF{{?}}
  Allocate %y:[8,16].f32.RF{{?}}
  Move <<<#grid, #cta>>> (%X) -> (%x)
  Move <<<#grid, #cta>>> ({operand}) -> (%o)
  BinaryPointwise.add <<<#grid, #cta>>> (%x, %o) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}}"
        )
    };
    let head = "BinaryPointwise.add @add";
    let bias = kernel(head, &body("%b").replace("SHAPE", "1,16"));
    assert_eq!(result(&bias), each(|i, j| 100 * i + 2 * j));
    let scale = kernel(head, &body("%s").replace("SHAPE", "8,1"));
    assert_eq!(result(&scale), each(|i, j| 110 * i + j));
    // The kernel's own meaning detects a different body.
    let wrong = scale.replace(
        "BinaryPointwise.add <<<#grid, #cta>>> (%x",
        "BinaryPointwise.sub <<<#grid, #cta>>> (%x",
    );
    bad(&wrong, Code::WrongElement);
}

#[test]
fn moves_spread_through_every_memory() {
    for (memory, open) in [("RF", "{?}"), ("SH", "")] {
        let text = kernel(
            "Spec @spread",
            &format!(
                "(%s, %b) -> (%Y) {{
  Allocate %o:[8,1].f32.{memory}{open}
  Allocate %w:[8,16].f32.{memory}{open}
  Allocate %y:[8,16].f32.RF{{?}}
  Move <<<#grid, #cta>>> (%s) -> (%o)
  Move <<<#grid, #cta>>> (%o) -> (%w)
  BinaryPointwise.mul <<<#grid, #cta>>> (%w, %b) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}}"
            ),
        );
        assert_eq!(result(&text), each(|i, j| 10 * i * j), "{memory}");
    }
}

#[test]
fn one_element_is_a_constant() {
    let text = kernel(
        "Spec @scale",
        "(%X) -> (%Y) {
  Allocate %c:[1,1].f32.RF{?}
  Allocate %y:[8,16].f32.RF{?}
  Init <<<#grid, #cta>>> (3) -> (%c)
  BinaryPointwise.mul <<<#grid, #cta>>> (%X, %c) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}",
    );
    assert_eq!(result(&text), each(|i, j| 300 * i + 3 * j));
}

#[test]
fn a_reduced_row_goes_back_over_its_elements() {
    let text = kernel(
        "Spec @center",
        "(%X) -> (%Y) {
  Allocate %x:[8,16].f32.RF{?}
  Allocate %m:[8,1].f32.RF{?}
  Allocate %y:[8,16].f32.RF{?}
  Move <<<#grid, #cta>>> (%X) -> (%x)
  Reduction.max <<<#grid, #cta>>> (%x) -> (%m) axis=1
  BinaryPointwise.sub <<<#grid, #cta>>> (%m, %x) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}",
    );
    assert_eq!(result(&text), each(|_, j| 15 - j));
}

#[test]
fn literals_stand_for_every_element() {
    let body = |inputs: &str| {
        format!(
            "(%X) -> (%Y) {{
  Allocate %y:[8,16].f32.RF{{?}}
  BinaryPointwise.sub <<<#grid, #cta>>> {inputs} -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}}"
        )
    };
    let below = kernel("Spec @below", &body("(2000, %X)"));
    assert_eq!(result(&below), each(|i, j| 2000 - 100 * i - j));
    // Also for a kernel without a body.
    let scale = kernel(
        "BinaryPointwise.mul @scale",
        "(%X, 2) -> (%Y) {
  Allocate %y:[8,16].f32.RF{?}
  BinaryPointwise.mul <<<#grid, #cta>>> (%X, 2) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%Y)
}",
    );
    assert_eq!(result(&scale), each(|i, j| 200 * i + 2 * j));
    bad(&scale.replace("(%X, 2) -> (%y)", "(%X, 3) -> (%y)"), Code::WrongElement);
}

#[test]
fn threads_spread_their_own_registers() {
    let text = kernel(
        "Spec @scale",
        "(%X, %s) -> (%Y) {
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  %mine:[1,4].f32.GL = %X.tile([1,4])[@t / 4, @t % 4]
  Allocate %o:[1,1].f32.RF
  Allocate %r:[1,4].f32.RF
  Move <<<#grid, #one>>> (%s.tile([1,1])[@t / 4, 0]) -> (%o)
  BinaryPointwise.add <<<#grid, #one>>> (%mine, %o) -> (%r)
  Move <<<#grid, #one>>> (%r) -> (%Y.tile([1,4])[@t / 4, @t % 4])
}",
    );
    assert_eq!(result(&text), each(|i, j| 110 * i + j));
}
