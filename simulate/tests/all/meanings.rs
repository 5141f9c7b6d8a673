//! Tests the meanings of generic specs (`means` blocks), and the comparison of bodies with them
//! without rounding: other algorithms for the same result pass, a single lost product is found.
//! Also tests the comparison with a parent (the program before an edit).

use crate::support::{bad, good, program, run};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::num::decode;
use carbyne_simulate::{Array, Between, Inputs, Options, Outputs, compare_with_parent};
use std::collections::BTreeMap;

/// The product of a row and a matrix over `K` products, with one thread for each element.
fn long_product(acc: &str, bound: &str) -> String {
    format!(
        "carbyne 2
%A:[1,4096].f16.GL
%B:[4096,8].f16.GL
%C:[1,8].f32.GL
#grid:[1].block
#cta:[8].thread
MatMul.set @long <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %c:[1].{acc}.RF
  Allocate %d:[1].f32.RF
  Init <<<#grid, #one>>> (0) -> (%c)
  for (k = 0; k < {bound}; k += 1) {{
    MatMul <<<#grid, #one>>> (%A.tile([1,1])[0, k], %B.tile([1,1])[k, @t])
        -> (%c.reshape([1,1]:[1,1])) acc={acc}
  }}
  UnaryPointwise.cast <<<#grid, #one>>> (%c) -> (%d)
  Move <<<#grid, #one>>> (%d) -> (%C.tile([1,1])[0, @t].reshape([1]:[1]))
}}
"
    )
    .replace(
        "UnaryPointwise.cast <<<#grid, #one>>> (%c) -> (%d)",
        match acc {
            "f32" => "Move <<<#grid, #one>>> (%c) -> (%d)",
            _ => "UnaryPointwise.cast <<<#grid, #one>>> (%c) -> (%d)",
        },
    )
}

#[test]
fn one_lost_product_of_four_thousand_is_seen() {
    good(&long_product("f32", "4096"), &Options::default());
    let wrong = long_product("f32", "4095");
    let error = run(&wrong, &Options::default()).map(|_| ()).unwrap_err();
    assert_eq!(error.code, Code::WrongElement);
    assert!(error.message.contains("before rounding"), "{error}");
    // The error is within the tolerance of the types.
    let blind = Options { shadow: false, ..Options::default() };
    let seeds = 0..20;
    let missed = seeds
        .filter(|s| run(&wrong, &Options { inputs: Inputs::Seed(*s), ..blind.clone() }).is_ok());
    assert!(missed.count() > 0);
}

const SOFTMAX: &str = "carbyne 2
%X:[4,32].f16.GL
%Y:[4,32].f16.GL
#grid:[4].block
#cta:[32].thread
Spec @softmax <<<#grid, #cta>>> (%X) -> (%Y) means {
  Reduction.max (%X) -> (%max) axis=1
  BinaryPointwise.sub (%X, %max) -> (%x)
  UnaryPointwise.exp (%x) -> (%e)
  Reduction.sum (%e) -> (%sum) axis=1
  BinaryPointwise.div (%e, %sum) -> (%Y)
} {
  @i = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %h:[1].f16.RF
  Allocate %v:[1].f32.RF
  Allocate %o:[1].f32.RF
  Allocate %w:[1].f32.RF
  Move <<<#grid, #one>>> (%X.tile([1,1])[@i, @t].reshape([1]:[1])) -> (%h)
  UnaryPointwise.cast <<<#grid, #one>>> (%h) -> (%v)
  UnaryPointwise.exp <<<#grid, #one>>> (%v) -> (%v)
  Move <<<#grid, #one>>> (%v) -> (%w)
  for (s = 0; s < 5; s += 1) unroll {
    if (s == 0) {
      Shfl.bfly <<<#grid, #cta>>> (%w) -> (%o) lane=16
    }
    if (s == 1) {
      Shfl.bfly <<<#grid, #cta>>> (%w) -> (%o) lane=8
    }
    if (s == 2) {
      Shfl.bfly <<<#grid, #cta>>> (%w) -> (%o) lane=4
    }
    if (s == 3) {
      Shfl.bfly <<<#grid, #cta>>> (%w) -> (%o) lane=2
    }
    if (s == 4) {
      Shfl.bfly <<<#grid, #cta>>> (%w) -> (%o) lane=1
    }
    BinaryPointwise.add <<<#grid, #one>>> (%w, %o) -> (%w)
  }
  BinaryPointwise.div <<<#grid, #one>>> (%v, %w) -> (%v)
  UnaryPointwise.cast <<<#grid, #one>>> (%v) -> (%h)
  Move <<<#grid, #one>>> (%h) -> (%Y.tile([1,1])[@i, @t].reshape([1]:[1]))
}
";

#[test]
fn a_different_algorithm_has_the_same_meaning() {
    // Without the subtraction of the largest element, which affects only rounding.
    let report = good(SOFTMAX, &Options::default());
    let kernel = &report.kernels[0];
    assert!(kernel.checked && kernel.elements == 128, "{kernel:?}");
    let ulp = kernel.numerics[0].max_ulp;
    assert!((0.4..1.0).contains(&ulp), "{ulp}");
    // Also on integers, with sums as they are.
    good(SOFTMAX, &Options { inputs: Inputs::Ints(1), ..Options::default() });
}

#[test]
fn other_algorithms_are_found() {
    for (from, to) in [
        ("UnaryPointwise.exp <<<", "UnaryPointwise.exp2 <<<"),
        ("lane=16", "lane=8"),
        ("s < 5", "s < 4"),
        (
            "BinaryPointwise.div <<<#grid, #one>>> (%v, %w)",
            "BinaryPointwise.mul <<<#grid, #one>>> (%v, %w)",
        ),
        ("(%w, %o) -> (%w)", "(%w, %w) -> (%w)"),
        ("Reduction.max (%X) -> (%max) axis=1", "Reduction.min (%X) -> (%max) axis=0"),
    ] {
        assert!(SOFTMAX.contains(from), "{from}");
        let text = SOFTMAX.replacen(from, to, 1);
        let ends = run(&text, &Options::default()).map(|_| ());
        // Subtracting any number from every element of a row has no effect; from a column it has.
        let code = ends.map_err(|e| e.code);
        assert_eq!(code, Err(Code::WrongElement), "{from}");
    }
}

#[test]
fn sampled_blocks_are_compared_on_their_writes() {
    let options = Options { blocks: Some(2), ..Options::default() };
    let kernel = &good(SOFTMAX, &options).kernels[0];
    assert_eq!((kernel.elements, kernel.checked, kernel.complete), (64, true, false));
}

#[test]
fn unwritten_outputs_are_reported_without_a_meaning() {
    let text = "carbyne 2
%X:[64].f32.GL
%Y:[64].f32.GL
#grid:[2].block
#cta:[16].thread
Spec @half <<<#grid, #cta>>> (%X) -> (%Y) { // HERE
  @i = #grid.indices()
  @t = #cta.indices()
  Move <<<#grid, #cta.scalar()>>> (%X[@i * 16 + @t]) -> (%Y[@i * 16 + @t])
}
";
    let error = bad(text, Code::WrongElement);
    assert!(error.message.contains("%Y[32] is never written"), "{error}");
    // Elements that the kernel also reads may stay unchanged.
    good(&text.replace("(%X) -> (%Y) {", "(%X, %Y) -> (%Y) {"), &Options::default());
}

#[test]
fn overflow_on_the_way_is_wrong() {
    // e^12 in f16, then its logarithm.
    let text = |scalar: &str| {
        format!(
            "carbyne 2
%X:[32].f32.GL
%Y:[32].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%X) -> (%Y) means {{ // HERE
  BinaryPointwise.add (%X, 12) -> (%Y)
}} {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %x:[1].f32.RF
  Allocate %h:[1].{scalar}.RF
  BinaryPointwise.add <<<#grid, #one>>> (%X[@t], 12) -> (%x)
  UnaryPointwise.exp <<<#grid, #one>>> (%x) -> (%x)
  UnaryPointwise.cast <<<#grid, #one>>> (%x) -> (%h)
  UnaryPointwise.cast <<<#grid, #one>>> (%h) -> (%x)
  UnaryPointwise.log <<<#grid, #one>>> (%x) -> (%Y[@t])
}}
"
        )
    };
    good(&text("bf16"), &Options::default());
    let error = bad(&text("f16"), Code::WrongElement);
    assert!(error.message.contains("is `inf`"), "{error}");
}

#[test]
fn decisions_that_rounding_turns_are_counted() {
    let text = "carbyne 2
%X:[32].f32.GL
%Y:[32].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%X) -> (%Y) means {
  BinaryPointwise.gt (%X, 1) -> (%p)
  Select (%p, %X, 0) -> (%Y)
} {
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %h:[1].f16.RF
  Allocate %z:[1].f32.RF
  Allocate %p:[1].bool.RF
  Init <<<#grid, #one>>> (0) -> (%z)
  UnaryPointwise.cast <<<#grid, #one>>> (%X[@t]) -> (%h)
  BinaryPointwise.gt <<<#grid, #one>>> (%h, 1) -> (%p)
  Select <<<#grid, #one>>> (%p, %X[@t].reshape([1]:[1]), %z) -> (%Y[@t].reshape([1]:[1]))
}
"
    .replace("%X[@t].reshape([1]:[1])", "%X.tile([1])[@t]")
    .replace("%Y[@t].reshape([1]:[1])", "%Y.tile([1])[@t]");
    // Three elements slightly above 1, which f16 cannot represent.
    let mut values = vec![u64::from(0.5f32.to_bits()); 32];
    (0..3).for_each(|i| values[i * 7] = u64::from((1.0f32 + 1e-5).to_bits()));
    let array = Array { scalar: Scalar::F32, shape: vec![32], values };
    let arrays = BTreeMap::from([("X".to_owned(), array)]);
    let report = good(&text, &Options { arrays, ..Options::default() });
    let line = 1 + text.lines().position(|l| l.contains("gt <<<")).unwrap() as u32;
    assert_eq!(report.kernels[0].turned, [(line, 3)]);
    assert!(good(&text, &Options::default()).kernels[0].turned.is_empty());
}

/// An element as a number.
fn number(outputs: &Outputs, name: &str, scalar: Scalar, at: &[i64]) -> f64 {
    decode(scalar, outputs.element(name, at).unwrap())
}

#[test]
fn causal_attention_can_be_stated_and_executed_by_its_meaning() {
    let text = "carbyne 2
let H = 2, S = 6, T = 6, D = 4
%Q:[H,S,D].f16.GL
%K:[H,T,D].f16.GL
%V:[H,T,D].f16.GL
%O:[H,S,D].f32.GL
Spec @attention (%Q, %K, %V) -> (%O) means {
  let N = H * T
  %Kt = %K.reshape([H,D,T]:[1,N,H])
  MatMul (%Q, %Kt) -> (%s)
  BinaryPointwise.mul (%s, 0.5) -> (%scaled)
  Iota (%s) -> (%row) axis=1
  Iota (%s) -> (%column) axis=2
  BinaryPointwise.le (%column, %row) -> (%seen)
  Select (%seen, %scaled, -inf) -> (%masked)
  Reduction.max (%masked) -> (%max) axis=2
  BinaryPointwise.sub (%masked, %max) -> (%x)
  UnaryPointwise.exp (%x) -> (%e)
  Reduction.sum (%e) -> (%sum) axis=2
  BinaryPointwise.div (%e, %sum) -> (%p)
  MatMul (%p, %V) -> (%O)
}
";
    let outputs = good(text, &Options::default()).outputs;
    let of =
        |name: &str, scalar, h: i64, i: i64, j: i64| number(&outputs, name, scalar, &[h, i, j]);
    for (h, i, d) in (0..2).flat_map(|h| (0..6).flat_map(move |i| (0..4).map(move |d| (h, i, d)))) {
        let score = |j: i64| {
            let products =
                (0..4).map(|d| of("Q", Scalar::F16, h, i, d) * of("K", Scalar::F16, h, j, d));
            libm::exp(0.5 * products.sum::<f64>())
        };
        let weights: Vec<f64> = (0..=i).map(score).collect();
        let values = weights.iter().enumerate();
        let sum: f64 = values.map(|(j, w)| w * of("V", Scalar::F16, h, j as i64, d)).sum();
        let want = sum / weights.iter().sum::<f64>();
        let got = of("O", Scalar::F32, h, i, d);
        assert!((got - want).abs() < 1e-6 * want.abs().max(0.1), "{h} {i} {d}: {got} {want}");
    }
}

#[test]
fn integers_views_and_batches_of_meanings() {
    let text = "carbyne 2
%A:[2,3,4].i8.GL
%B:[2,4,5].i8.GL
%C:[2,3,5].i32.GL
%D:[2,3].f32.GL
%E:[3,2].i32.GL
%F:[2,3].bool.GL
Spec @k (%A, %B) -> (%C, %D, %E, %F) means {
  MatMul (%A, %B) -> (%C)
  %one = %C[_, _, 2]
  UnaryPointwise.cast (%one) -> (%x)
  BinaryPointwise.mul (%x, 0.25) -> (%D)
  %turned = %one.reshape([3,2]:[2,1])
  Reduction.max (%turned) -> (%rows) axis=1
  BinaryPointwise.sub (%turned, %rows) -> (%E)
  BinaryPointwise.lt (%one, 0) -> (%F)
}
";
    let outputs = good(text, &Options { inputs: Inputs::Ints(4), ..Options::default() }).outputs;
    let int = |name: &str, scalar, at: &[i64]| number(&outputs, name, scalar, at);
    let c = |l: i64, m: i64, n: i64| {
        let product = |k: i64| int("A", Scalar::I8, &[l, m, k]) * int("B", Scalar::I8, &[l, k, n]);
        (0..4).map(product).sum::<f64>()
    };
    for (l, m) in (0..2).flat_map(|l| (0..3).map(move |m| (l, m))) {
        assert_eq!(int("C", Scalar::I32, &[l, m, 4]), c(l, m, 4));
        assert_eq!(int("D", Scalar::F32, &[l, m]), 0.25 * c(l, m, 2));
        let most = c(0, m, 2).max(c(1, m, 2));
        assert_eq!(int("E", Scalar::I32, &[m, l]), c(l, m, 2) - most);
        assert_eq!(int("F", Scalar::Bool, &[l, m]), f64::from(c(l, m, 2) < 0.0));
    }
}

#[test]
fn inner_specs_may_have_meanings() {
    let text = |means: &str| {
        format!(
            "carbyne 2
%X:[2,32].f32.GL
%Y:[2,32].f32.GL
#grid:[2].block
#cta:[32].thread
Move @k <<<#grid, #cta>>> (%X) -> (%Y) {{
  @i = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[32].f32.SH
  Allocate %r:[32].f32.SH
  Move <<<#grid, #cta>>> (%X[@i, _]) -> (%s)
  barrier
  Spec <<<#grid, #cta>>> (%s) -> (%r) means {{ // HERE
    {means}
  }} {{
    BinaryPointwise.mul <<<#grid, #one>>> (%s[@t], 2) -> (%r[@t])
  }}
  barrier
  BinaryPointwise.mul <<<#grid, #one>>> (%r[31 - @t], 0.5) -> (%s[31 - @t])
  barrier
  Move <<<#grid, #cta>>> (%s) -> (%Y[@i, _])
}}
"
        )
    };
    let inside = |text: &str| good(text, &Options::default()).kernels[0].specs;
    assert_eq!(inside(&text("BinaryPointwise.mul (%s, 2) -> (%r)")), 2);
    let error = bad(&text("BinaryPointwise.mul (%s, 2.0000001) -> (%r)"), Code::WrongElement);
    assert!(error.message.contains("%r[0]"), "{error}");
}

/// Every block adds the product of its part of K.
fn split(kernel: &str) -> String {
    format!(
        "carbyne 2
%A:[16,64].f16.GL
%B:[64,16].f16.GL
%C:[16,16].f32.GL
#grid:[4].block
#cta:[256].thread
{kernel} {{ // HERE
  @s = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %r:[1].f32.RF
  Init <<<#grid, #one>>> (0) -> (%r)
  for (k = 0; k < 16; k += 1) {{
    MatMul <<<#grid, #one>>>
        (%A.tile([1,1])[@t % 16, @s * 16 + k], %B.tile([1,1])[@s * 16 + k, @t / 16])
        -> (%r.reshape([1,1]:[1,1])) acc=f32
  }}
  Move.add <<<#grid, #one>>> (%r.reshape([1,1]:[1,1])) -> (%C.tile([1,1])[@t % 16, @t / 16])
}}
"
    )
}

#[test]
fn sums_of_several_blocks_are_compared_together() {
    let means = "Spec @f <<<#grid, #cta>>> (%A, %B, %C) -> (%C) means {
  MatMul (%A, %B) -> (%t)
  BinaryPointwise.add (%C, %t) -> (%C)
}";
    for kernel in [means, "MatMul @f <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32"] {
        let text = split(kernel);
        let report = good(&text, &Options::default());
        assert!(report.kernels[0].checked, "{kernel}");
        // Every block uses the first part of K.
        let wrong = text.replace("@s * 16 + k", "k");
        let error = run(&wrong, &Options::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.code, Code::WrongElement, "{kernel}");
        assert!(error.label.starts_with("all blocks together"), "{error:?}");
        assert!(error.notes.iter().all(|n| !n.contains("no statement of the block")), "{error:?}");
        // After a run of some blocks, the sums are not compared.
        let some = Options { blocks: Some(2), ..Options::default() };
        let kernel = &good(&wrong, &some).kernels[0];
        assert!(!kernel.checked && kernel.elements == 0, "{kernel:?}");
    }
}

/// A body that computes each element with one thread, by these steps from `%x` to `%Y[@t]`, with a
/// meaning.
fn of_elements(scalar: &str, means: &str, steps: &str) -> String {
    format!(
        "carbyne 2
%X:[32].f32.GL
%Y:[32].{scalar}.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%X) -> (%Y) means {{
  {means}
}} {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %x:[1].f32.RF
  Allocate %y:[1].f32.RF
  Move <<<#grid, #one>>> (%X[@t]) -> (%x)
  {steps}
}}
"
    )
}

#[test]
fn a_flat_function_hides_nothing() {
    let zeros = "Init <<<#grid, #one>>> (0) -> (%y)
  Move <<<#grid, #one>>> (%y) -> (%Y[@t])";
    for op in ["relu", "gelu", "silu"] {
        // A mask for half of the elements; the body masks all of them.
        let means = format!(
            "BinaryPointwise.lt (%X.iota(0), 16) -> (%first)
  Select (%first, 0.0, -1e9) -> (%mask)
  BinaryPointwise.mul (%X, 0.37) -> (%scaled)
  BinaryPointwise.add (%scaled, %mask) -> (%masked)
  UnaryPointwise.{op} (%masked) -> (%each)
  Move (%each) -> (%Y)"
        );
        let error = bad(&of_elements("f32", &means, zeros), Code::WrongElement);
        // Numbers without rounding are compared, which have no tolerance.
        assert!(error.message.contains("is `0`, the spec means"), "{op}: {error}");
        assert!(!error.message.contains('±'), "{op}: {error}");
    }
}

#[test]
fn numbers_beyond_a_type_are_stored_as_infinity() {
    let large = "UnaryPointwise.abs (%X) -> (%a)
  BinaryPointwise.add (%a, 2.0) -> (%b)
  BinaryPointwise.mul (%b, 1e6) -> (%c)
  UnaryPointwise.cast (%c) -> (%Y)";
    let steps = |last: &str| {
        format!(
            "UnaryPointwise.abs <<<#grid, #one>>> (%x) -> (%x)
  BinaryPointwise.add <<<#grid, #one>>> (%x, 2.0) -> (%x)
  BinaryPointwise.mul <<<#grid, #one>>> (%x, 1e6) -> (%x)
  {last}
  UnaryPointwise.cast <<<#grid, #one>>> (%x) -> (%Y[@t])"
        )
    };
    good(&of_elements("f16", large, &steps("")), &Options::default());
    let lost = "BinaryPointwise.add <<<#grid, #one>>> (%x, 1e20) -> (%x)
  BinaryPointwise.sub <<<#grid, #one>>> (%x, 1e20) -> (%x)";
    bad(&of_elements("f16", large, &steps(lost)), Code::WrongElement);
}

/// Runs `carbyne simulate CHILD --against PARENT`.
fn compared(child: &str, parent: &str, options: &Options) -> Result<Vec<u64>, (Code, String)> {
    let table = AtomTable::new(Arch::Sm80);
    let (child, parent) = (program(child), program(parent));
    let options = &Options { between: Between::for_parent(&parent), ..options.clone() };
    let report = carbyne_simulate::simulate(&child, &table, options);
    let report = report.map_err(|e| (e.code, e.message))?;
    let all = compare_with_parent(&parent, &table, options, (&child, &report));
    all.map(|all| all.iter().map(|c| c.elements).collect()).map_err(|e| (e.code, e.message))
}

#[test]
fn edits_are_compared_with_their_parent() {
    let plain = Options::default();
    assert_eq!(compared(SOFTMAX, SOFTMAX, &plain), Ok(vec![128]));
    // A parent without a meaning, which is executed.
    let start = SOFTMAX.find(" means {").unwrap();
    let end = SOFTMAX.find("} {").unwrap();
    let silent = format!("{}{}", &SOFTMAX[..start], &SOFTMAX[end + 1..]);
    assert_eq!(compared(SOFTMAX, &silent, &plain), Ok(vec![128]));
    assert_eq!(compared(&silent, SOFTMAX, &plain), Ok(vec![128]));
    // The child of a parent without a meaning computes something else, and has no meaning either.
    let other = silent.replace("UnaryPointwise.exp <<<", "UnaryPointwise.exp2 <<<");
    for parent in [&silent, SOFTMAX] {
        let (code, message) = compared(&other, parent, &plain).unwrap_err();
        assert_eq!(code, Code::WrongElement);
        assert!(message.contains("the original program means"), "{message}");
    }
    // Some blocks of both programs give some elements of both.
    let some = Options { blocks: Some(2), ..Options::default() };
    assert_eq!(compared(SOFTMAX, &silent, &some), Ok(vec![64]));
    // Two kernels in place of the parent's single one.
    let two = "carbyne 2
%X:[4,32].f16.GL
%T:[4,32].f32.GL
%Y:[4,32].f16.GL
Spec @first (%X) -> (%T) means {
  UnaryPointwise.exp (%X) -> (%T)
}
Spec @second (%T) -> (%Y) means {
  Reduction.sum (%T) -> (%sum) axis=1
  BinaryPointwise.div (%T, %sum) -> (%Y)
}
";
    assert_eq!(compared(two, SOFTMAX, &plain), Ok(vec![128]));
    assert_eq!(compared(SOFTMAX, two, &plain), Ok(vec![0, 128]));
    let (code, _) = compared(&two.replace("axis=1", "axis=0"), SOFTMAX, &plain).unwrap_err();
    assert_eq!(code, Code::WrongElement);
}

#[test]
fn programs_without_common_tensors_are_an_error() {
    let plain = Options::default();
    let renamed = SOFTMAX.replace("%Y", "%Z");
    let (code, message) = compared(&renamed, SOFTMAX, &plain).unwrap_err();
    assert!(code == Code::OtherSpec && message.contains("%Y"), "{message}");
    let wider = SOFTMAX.replace("%Y:[4,32].f16", "%Y:[4,32].f32").replace(
        "UnaryPointwise.cast <<<#grid, #one>>> (%v) -> (%h)\n  Move <<<#grid, #one>>> (%h)",
        "Move <<<#grid, #one>>> (%v)",
    );
    let (code, message) = compared(&wider, SOFTMAX, &plain).unwrap_err();
    assert!(code == Code::OtherSpec && message.contains("f32"), "{message}");
    let (code, message) = compared(SOFTMAX, "carbyne 2\n%X:[4,32].f16.GL\n", &plain).unwrap_err();
    assert!(code == Code::OtherSpec && message.contains("nothing"), "{message}");
    // The program and its parent run different blocks.
    let start = SOFTMAX.find(" means {").unwrap();
    let end = SOFTMAX.find("} {").unwrap();
    let silent = format!("{}{}", &SOFTMAX[..start], &SOFTMAX[end + 1..]);
    let backwards = silent
        .replace("@i = #grid.indices()", "@j = #grid.indices()")
        .replace("[@i, @t]", "[3 - @j, @t]");
    let one = Options { blocks: Some(1), ..Options::default() };
    let (code, message) = compared(&backwards, &silent, &one).unwrap_err();
    assert!(code == Code::OtherSpec && message.contains("no element of %Y"), "{message}");
    assert_eq!(compared(&backwards, &silent, &plain), Ok(vec![128]));
}
