//! Tests views of register tensors, and of shared tensors with an open layout: transposes,
//! permutations, tiles and ranges, read and written.

use crate::support::{decomposed, resolved, run, run_random, sm_80};
use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Code;
use carbyne_ir::testing;
use proptest::prelude::*;

/// Decomposes, and runs the result against the meaning of the kernel and of every spec.
pub(crate) fn checked_on(src: &str, table: &AtomTable) -> Decomposed {
    let written = run(&resolved(src), table).unwrap_or_else(|e| panic!("{src}\n{e:?}"));
    let d = decomposed(src, table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    let reports = [Ok(written), run(&d.program, table), run_random(&d.program, table)];
    for report in reports {
        let report = report.unwrap_or_else(|e| panic!("{src}{}\n{e:?}", d.text));
        let kernel = &report.kernels[0];
        assert!(kernel.complete && kernel.checked && kernel.unchecked.is_empty(), "{}", d.text);
    }
    d
}

fn checked(src: &str) -> Decomposed {
    checked_on(src, &sm_80())
}

fn sm_90a() -> AtomTable {
    AtomTable::new("sm_90a".parse().expect("an architecture"))
}

/// Instructions whose warps conflict more in shared memory than they must.
fn conflicts(d: &Decomposed) -> Vec<u32> {
    let report = run(&d.program, &sm_80()).expect("runs");
    let leaves = &report.kernels[0].leaves;
    let worse = leaves.iter().filter(|l| l.count.shared.wavefronts > l.count.shared.ideal);
    worse.map(|l| l.line).collect()
}

/// RoPE on the halves of each row.
fn rope(pin: &str) -> String {
    format!(
        "carbyne 2
%X:[32,128].f16.GL
%cos:[32,64].f32.GL
%sin:[32,64].f32.GL
%Y:[32,64].f16.GL
%Z:[32,64].f16.GL
#grid:[1].block
#cta:[64].thread
Spec @rope <<<#grid, #cta>>> (%X, %cos, %sin) -> (%Y, %Z) means {{
  %lo = %X[_, 0..64]
  %hi = %X[_, 64..128]
  %Y = %lo * %cos - %hi * %sin
  %Z = %hi * %cos + %lo * %sin
}} {{
  Allocate %x:[32,128].f32.RF{{{pin}}}
  %h = %X
  UnaryPointwise.cast (%h) -> (%x)
  %lo = %x[_, 0..64]
  %hi = %x[_, 64..128]
  %Y = cast(%lo * %cos - %hi * %sin, f16)
  %Z = cast(%hi * %cos + %lo * %sin, f16)
}}
"
    )
}

#[test]
fn halves_of_rows_stay_in_their_threads() {
    let d = checked(&rope("?"));
    assert!(!d.text.contains(".SH") && !d.text.contains("Shfl"), "{}", d.text);
    checked_on(&rope("?"), &sm_90a());
}

#[test]
fn halves_that_some_threads_hold_go_through_shared_memory() {
    // Eight lanes hold a row, so that four of them hold each half.
    let d = checked(&rope("tv=((8,8),(16,4)):((512,1),(32,8)) over #cta"));
    assert!(d.text.contains(".SH"), "{}", d.text);
}

#[test]
fn a_factor_in_registers_is_transposed() {
    let text = "carbyne 2
%Q:[64,64].f16.GL
%K:[64,64].f16.GL
%G:[64,64].f16.GL
%V:[64,64].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @backward <<<#grid, #cta>>> (%Q, %K, %G) -> (%V) means {
  %s = matmul(%Q, %K.transpose())
  %p = %s * 0.125
  %V = matmul(%p.transpose(), %G)
} {
  Move (%K) -> (%k:SH)
  Move (%Q) -> (%q:SH)
  %s = matmul(%q, %k.transpose())
  %p = cast(%s * 0.125, f16)
  %V = matmul(%p.transpose(), %G)
}
";
    let d = checked(text);
    assert_eq!(conflicts(&d), Vec::<u32>::new(), "{}", d.text);
    checked_on(text, &sm_90a());
}

#[test]
fn ranges_and_transposes_of_shared_tensors_find_their_swizzle() {
    let text = "carbyne 2
%X:[64,128].f16.GL
%W:[64,128].f16.GL
%Y:[64,64].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @shared <<<#grid, #cta>>> (%X, %W) -> (%Y) means {
  %Y = matmul(%X[_, 64..128], %W[_, 64..128].transpose())
} {
  Move (%X) -> (%x:SH)
  Move (%W) -> (%w:SH)
  %Y = matmul(%x[_, 64..128], %w.transpose()[64..128, _])
}
";
    let d = checked(text);
    assert!(d.text.contains("swizzle="), "{}", d.text);
    assert_eq!(conflicts(&d), Vec::<u32>::new(), "{}", d.text);
}

#[test]
fn a_tensor_is_added_to_its_transpose_in_place() {
    let text = "carbyne 2
%X:[64,64].f32.GL
%Y:[64,64].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @symmetric <<<#grid, #cta>>> (%X) -> (%Y) means {
  %Y = %X + %X.transpose()
} {
  %x = %X + 0
  BinaryPointwise.add (%x, %x.transpose()) -> (%x)
  Move (%x) -> (%Y)
}
";
    checked(text);
}

#[test]
fn columns_of_an_accumulator_are_read_and_reduced() {
    let text = "carbyne 2
%A:[64,32].f16.GL
%B:[32,128].f16.GL
%Y:[64,64].f16.GL
%S:[64,1].f32.GL
%Z:[64,64].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @gated <<<#grid, #cta>>> (%A, %B) -> (%Y, %S, %Z) means {
  %c = matmul(%A, %B)
  %Y = relu(%c[_, 0..64]) * %c[_, 64..128]
  %S = sum(%c[_, 32..64], axis=1)
  %Z = %c[_, 0..64] - %c[_, 3..4]
} {
  %c = matmul(%A, %B)
  %Y = cast(relu(%c[_, 0..64]) * %c[_, 64..128], f16)
  %S = sum(%c[_, 32..64], axis=1)
  %Z = %c[_, 0..64] - %c[_, 3..4]
}
";
    checked(text);
}

#[test]
fn a_part_that_some_threads_hold_is_not_written() {
    let text = "carbyne 2
%X:[64,64].f32.GL
%Y:[64,128].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @w <<<#grid, #cta>>> (%X) -> (%Y) {
  Allocate %y:[64,128].f32.RF{tv=((32,4),(4,16)):((256,1),(64,4)) over #cta}
  Move (%X) -> (%y[_, 0..64])
  Move (%X) -> (%y[_, 64..128])
  Move (%y) -> (%Y)
}
";
    let errors = decomposed(text, &sm_80()).expect_err("no strategy").into_vec();
    assert_eq!(errors[0].code, Code::NoStrategy, "{errors:?}");
}

/// Steps of the bits of threads and of values: an order of the bits of positions, the first `t` of
/// them of threads.
fn pinned(bits: &[u32], t: usize) -> String {
    let side = |of: &dyn Fn(u32) -> i64| {
        let list = |bits: &[u32]| {
            let each: Vec<String> = bits.iter().map(|b| of(*b).to_string()).collect();
            if each.is_empty() { "1".to_owned() } else { each.join(",") }
        };
        format!("(({}),({}))", list(&bits[..t]), list(&bits[t..]))
    };
    format!("tv={}:{} over #cta", side(&|_| 2), side(&|b| 1 << b))
}

/// A view of a tensor of 16 by 32 elements, and its extents.
fn view() -> impl Strategy<Value = (String, [i64; 2])> {
    let rows = prop_oneof![Just((0, 16)), Just((0, 8)), Just((8, 16)), Just((4, 8))];
    let columns = prop_oneof![Just((0, 32)), Just((16, 32)), Just((0, 8)), Just((8, 16))];
    (rows, columns, any::<bool>(), any::<bool>()).prop_map(|(r, c, turned, tiled)| {
        let extents = [r.1 - r.0, c.1 - c.0];
        let part = match tiled {
            true => format!(
                ".tile([{},{}])[{}, {}]",
                extents[0],
                extents[1],
                r.0 / extents[0],
                c.0 / extents[1]
            ),
            false => format!("[{}..{}, {}..{}]", r.0, r.1, c.0, c.1),
        };
        match turned {
            true => (format!("{part}.transpose()"), [extents[1], extents[0]]),
            false => (part, extents),
        }
    })
}

proptest! {
    #![proptest_config(testing::config_up_to(24, 1000))]

    /// Whoever holds the tensor, a view of it that is read is that of its elements.
    #[test]
    fn views_that_are_read_are_those_of_the_elements(
        (of, [m, n]) in view(),
        bits in Just((0..9u32).collect::<Vec<_>>()).prop_shuffle(),
        open in any::<bool>(),
        scalar in prop_oneof![Just("f32"), Just("f16"), Just("i8")],
    ) {
        let pin = if open { "?".to_owned() } else { pinned(&bits, 6) };
        let text = format!(
            "carbyne 2
%X:[16,32].{scalar}.GL
%Y:[{m},{n}].{scalar}.GL
#grid:[1].block
#cta:[64].thread
Spec @read <<<#grid, #cta>>> (%X) -> (%Y) means {{
  Move (%X{of}) -> (%Y)
}} {{
  Allocate %x:[16,32].{scalar}.RF{{{pin}}}
  Move (%X) -> (%x)
  Move (%x{of}) -> (%Y)
}}
"
        );
        checked(&text);
    }

    /// The tensor has the elements that are written to its views.
    #[test]
    fn views_that_are_written_are_those_of_the_elements(
        turned in any::<bool>(),
        bits in Just((0..9u32).collect::<Vec<_>>()).prop_shuffle(),
        open in any::<bool>(),
    ) {
        // The half of the columns is a value's bit, so that each thread has as much of both.
        let mut bits = bits;
        if let Some(i) = bits.iter().position(|b| *b == 8) {
            bits.swap(i, 8);
        }
        let pin = if open { "?".to_owned() } else { pinned(&bits, 6) };
        let (of, extents) = if turned { (".transpose()", "16,16") } else { ("", "16,16") };
        let text = format!(
            "carbyne 2
%X:[16,32].f32.GL
%Y:[{extents}].f32.GL
%Z:[16,16].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @write <<<#grid, #cta>>> (%X) -> (%Y, %Z) means {{
  Move (%X[_, 16..32]{of}) -> (%Y)
  Move (%X[_, 0..16]) -> (%Z)
}} {{
  Allocate %y:[16,32].f32.RF{{{pin}}}
  Move (%X[_, 16..32]{of}) -> (%y[_, 0..16])
  Move (%X[_, 0..16]) -> (%y[_, 16..32])
  Move (%y[_, 0..16]) -> (%Y)
  Move (%y[_, 16..32]) -> (%Z)
}}
"
        );
        checked(&text);
    }
}
