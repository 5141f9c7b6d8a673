//! Tests that programs which cannot be executed are refused with the reason: an atom that does not
//! fit its operands, threads without a common meaning, a symbol without a value. Also tests that
//! results are deterministic, that threads and a collective (a group of several warps that executes
//! a spec by its meaning) need barriers between them, and that the report lists the bodies that
//! were not compared.

use crate::support::{bad, bad_with, good, run, unverified};
use carbyne_ir::diag::Code;
use carbyne_simulate::Options;

/// A kernel of 64 threads on `%A` and `%B` of 64 f32.
fn kernel(body: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  {body}
}}
"
    )
}

#[test]
fn groups_without_common_operands_have_no_meaning() {
    let private = kernel("Allocate %x:[64].f32.RF\n  Move <<<#grid, #cta>>> (%A) -> (%x) // HERE");
    assert!(bad(&private, Code::NoDenotation).label.contains("each thread has its own"));
    let views = kernel("Move <<<#grid, #cta>>> (%A[@t]) -> (%B[@t]) // HERE");
    assert!(
        bad(&views, Code::NoDenotation)
            .label
            .contains("the threads of the group have different views")
    );
}

#[test]
fn atoms_must_fit() {
    for (atom, code, label) in [
        ("ld.shared.b32", Code::AtomMismatch, "operand S must lie in SH, but lies in GL"),
        ("ld.global.b64", Code::AtomMismatch, "operand S needs 2 values per thread, found 1"),
        ("fma.f32", Code::AtomMismatch, "computes MatMul"),
        ("ldmatrix.x4.b16", Code::AtomMismatch, "operand S must be b16, but is f32"),
        ("ld.golbal.b32", Code::UnknownAtom, ""),
    ] {
        let text = kernel(&format!(
            "Allocate %x:[1].f32.RF\n  \
             Move <<<#grid, #one>>> (%A[@t]) -> (%x[0]) atom={atom} // HERE"
        ));
        let e = bad(&text, code);
        assert!(e.label.contains(label), "{atom}: {}", e.label);
        if code == Code::UnknownAtom {
            assert!(e.help.is_some_and(|h| h.starts_with("did you mean `ld.global.b32`")));
        }
    }
}

#[test]
fn atoms_need_complete_warps() {
    let text = kernel(
        "Allocate %s:[16,16].f16.SH
  Allocate %x:[8].f16.RF
  Init <<<#grid, #cta>>> (1) -> (%s)
  barrier
  if (@t != 40) {
    #warps:[2].[32].thread = #cta.tile([32])
    Move <<<#grid, #warps>>> // HERE
        (%s.tile([1,8])[@t % 16, @t / 16 % 2]) -> (%x) atom=ldmatrix.x4.b16
  }",
    );
    let e = unverified(&text).err().unwrap();
    assert_eq!((e.code, e.span.line_col(&text).0), (Code::Deadlock, 15), "{e}");
    assert_eq!(e.label, "1 lanes of the instruction's membermask are not active");
    let all = text.replace("@t != 40", "@t < 64");
    let e = unverified(&all).err().unwrap();
    assert!(
        e.message.contains("%B[0] is never written"),
        "the atom runs, the kernel does nothing: {e}"
    );
}

#[test]
fn collectives_and_threads_need_barriers_between() {
    let text = |barrier: &str| {
        kernel(&format!(
            "Allocate %s:[64].f32.SH
  Move <<<#grid, #cta>>> (%A) -> (%s)
  {barrier}
  Move <<<#grid, #one>>> (%s[63 - @t]) -> (%B[63 - @t])"
        ))
    };
    good(&text("barrier"), &Options::default());
    let e = run(&text(""), &Options::default()).err().unwrap();
    assert_eq!(e.code, Code::Race);
    assert!(e.message.starts_with("a group of warps writes %s[63]"), "{e}");
}

#[test]
fn bodies_of_generic_specs_and_fragments_are_reported_as_not_compared() {
    let text = kernel(
        "#warps:[2].[32].thread = #cta.tile([32])
  Move <<<#grid, #warps>>> (%A[@t]) -> (%B[@t]) {
    Move <<<#grid, #one>>> (%A[@t]) -> (%B[@t])
  }",
    );
    let report = good(&text, &Options::default());
    let k = &report.kernels[0];
    assert_eq!((k.specs, k.elements), (0, 64));
    assert_eq!(
        k.unchecked,
        [(10, "the threads of a group have different views of an operand".to_owned())]
    );
}

#[test]
fn runs_are_repeatable() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../examples/ampere_gemm_by_hand.cby"
    ));
    let text = text.unwrap();
    let reports: Vec<_> = (0..2).map(|_| good(&text, &Options::default())).collect();
    assert_eq!(reports[0].kernels, reports[1].kernels);
    assert_eq!(reports[0].outputs.get("C"), reports[1].outputs.get("C"));
    // The error is reported for one place, independently of the block that reaches it first.
    let wrong = text.replace("s * 2 + @half", "s * 2 + 1 - @half");
    let errors: Vec<_> = (0..2).map(|_| run(&wrong, &Options::default()).err().unwrap()).collect();
    assert_eq!(errors[0], errors[1]);
    assert_eq!(errors[0].code, Code::WrongElement);
    assert!(errors[0].label.starts_with("block 0"), "{}", errors[0].label);
}

#[test]
fn symbols_need_values() {
    let text = "carbyne 2
sym N{min=32, max=4096, div=32}
%A:[32,N].f32.GL
%B:[32,N].f32.GL
#grid:[1].block
#cta:[32].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  Move <<<#grid, #cta.scalar()>>> (%A[@t, _]) -> (%B[@t, _])
}
";
    bad(text, Code::Symbolic);
    let options = |n| Options { symbols: [("N".to_owned(), n)].into(), ..Options::default() };
    assert_eq!(good(text, &options(96)).kernels[0].elements, 32 * 96);
    bad_with(text, Code::SymbolValue, &options(97));
}
