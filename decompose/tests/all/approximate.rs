//! Tests approximations: the decomposition replaces operations by cheaper ones if rounding hides
//! the error, for example a quotient by a product with a reciprocal.
//!
//! Other tests are about instructions that the CUDA compiler turns into function calls. None of
//! them may stand beside a `wgmma` with a factor in registers; a program without another form is
//! refused.

use crate::support::{decomposed, run, run_random};
use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Code;

/// Scores of 64 rows and 64 columns, made by `steps` of a product `%z` of `factor`, to
/// probabilities of f16, which are multiplied on.
fn attention(steps: &str, factor: &str) -> String {
    format!(
        "carbyne 2
%Q:[64,64].f16.GL
%K:[64,64].f16.GL
%V:[64,64].f16.GL
%O:[64,64].f16.GL
Spec @attention <<<#grid:[1], #cta:[128]>>> (%Q, %K, %V) -> (%O) {{
  Move (%Q) -> (%q{factor})
  Move (%K) -> (%k:SH)
  Move (%V) -> (%v:SH)
  %z = matmul(%q, %k)
  {steps}
  %o = matmul(cast(%p, f16), %v)
  %O = cast(%o / %sum, f16)
}}
"
    )
}

fn table(arch: &str) -> AtomTable {
    AtomTable::new(arch.parse().expect("an architecture"))
}

/// Decomposed for an architecture, and run.
fn made(src: &str, arch: &str) -> Decomposed {
    let table = table(arch);
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
    for report in [run(&d.program, &table), run_random(&d.program, &table)] {
        report.unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
    d
}

#[test]
fn a_scale_before_an_exponential_is_one_factor_of_a_fused_multiply_add() {
    let plain = "%p = exp(%s - max(%s, axis=1))\n  %sum = sum(%p, axis=1)";
    for (steps, folded, alone) in [
        (format!("%s = %z / 8\n  {plain}"), true, true),
        (format!("%s = %z * 0.3\n  {plain}"), true, true),
        (format!("%s = 0.3 * %z\n  {plain}"), true, true),
        (
            format!(
                "%a = %z / sqrt(128)\n  %s = select(%z.iota(0) >= %z.iota(1), %a, -inf)\n  {plain}"
            ),
            true,
            true,
        ),
        // Without a scale; with one below 0, of which the largest product is the least; with one
        // that others read.
        (format!("%s = move(%z)\n  {plain}"), true, false),
        (format!("%s = %z * -0.3\n  {plain}"), true, false),
        (
            "%s = %z / 8\n  %p = exp(%s - max(%s, axis=1)) + abs(%s)\n  %sum = sum(%p, axis=1)"
                .to_owned(),
            true,
            false,
        ),
        // An exponential that is to be exact, and a constant whose product overflows, stay as they
        // are.
        (
            "%s = %z / 8\n  %p = exp(%s - max(%s, axis=1), math=exact)\n  %sum = sum(%p, axis=1)"
                .to_owned(),
            false,
            false,
        ),
        (format!("%s = select(%z.iota(0) >= %z.iota(1), %z, -3.4e38)\n  {plain}"), false, false),
    ] {
        for arch in ["sm_80", "sm_90a"] {
            let d = made(&attention(&steps, ""), arch);
            let has = |what: &str| d.text.contains(what);
            assert_eq!(has("UnaryPointwise.exp2 (%p"), folded, "{steps}\n{}", d.text);
            assert_eq!(has("sub.contract.f32"), folded, "{steps}\n{}", d.text);
            let scales =
                d.text.matches("for (i_2 = 0; i_2 < 32; i_2 += 1) unroll {\n      Binary").count();
            assert!(!alone || scales <= 1, "{steps}\n{}", d.text);
        }
    }
}

#[test]
fn a_quotient_of_rows_is_a_product_with_a_reciprocal_of_each() {
    let steps = "%p = exp(%z)\n  %sum = sum(%p, axis=1)";
    let d = made(&attention(steps, ""), "sm_80");
    assert!(d.text.contains("UnaryPointwise.rcp (%sum)"), "{}", d.text);
    assert!(!d.text.contains("Pointwise.div"), "{}", d.text);
}

#[test]
fn no_function_calls_beside_a_factor_in_registers() {
    // Of f32, as exactly as there are; the quotient of whole tensors is none of rows.
    let steps = "%p = 1.0 / (exp(%z) + 2.0)
  %r = sqrt(%z * %z) / (%z * %z + 1.0)
  %p = %p + %r
  %sum = sum(%p, axis=1)";
    let seen = attention(steps, "").replace("cast(%p, f16)", "cast(%p * %p - %p, f16)");
    let d = made(&seen, "sm_90a");
    for calling in ["=div.f32", "=rcp.f32", "=sqrt.f32"] {
        assert!(!d.text.contains(calling), "{calling} in {}", d.text);
    }
    // Where both factors lie in shared memory, and where there is no wgmma, nothing stands in the
    // way.
    for (factor, arch) in [(":SH", "sm_90a"), ("", "sm_80")] {
        let src = attention(steps, factor).replace("cast(%p, f16)", "cast(%p * %p - %p, f16)");
        let src = src.replace("matmul(cast(", "matmul(0.0 + cast(").replace("0.0 + ", "");
        let d = decomposed(&src, &table(arch)).unwrap_or_else(|e| panic!("{src}{e:?}"));
        let keeps = d.text.contains(".rs");
        assert_eq!(d.text.contains("=sqrt.f32"), !keeps, "{}", d.text);
    }
}

#[test]
fn what_has_no_form_without_a_call_is_refused() {
    let steps = "%w = cast(%z, f64)\n  %p = cast(sqrt(%w * %w), f32)\n  %sum = sum(%p, axis=1)";
    let src = attention(steps, "");
    let errors = decomposed(&src, &table("sm_90a")).map(|d| d.text).expect_err("sqrt.f64 calls");
    assert!(errors.iter().any(|d| d.code == Code::Calls), "{errors:?}");
    made(&src, "sm_80");
}
