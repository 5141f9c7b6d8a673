//! Tests casts in meanings and bodies. A cast of the meaning rounds its result. A cast of the body
//! is either such a cast or an intermediate step, whose numbers may not leave the range of its
//! type.

use crate::support::{bad, bad_with, good, program, run};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::num::decode;
use carbyne_simulate::{Array, Between, Inputs, Options, compare_with_parent, simulate};
use std::collections::BTreeMap;

fn numbers(text: &str, options: &Options, name: &str) -> Vec<f64> {
    let array = good(text, options).outputs.get(name).expect("all of it");
    array.values.iter().map(|bits| decode(array.scalar, *bits)).collect()
}

/// Residues of a rounding: by the meaning alone, by a body, and by two kernels.
const RESIDUE: &str = "carbyne 2
%A:[16,32].f32.GL
%H:[16,32].bf16.GL
%L:[16,32].f32.GL
";
const OF_MEANING: &str = "Spec @k (%A) -> (%L) means {
  %L = %A - cast(cast(%A, bf16), f32)
}
";
const OF_BODY: &str = "Spec @k <<<#grid:[1], #cta:[32]>>> (%A) -> (%L) means {
  %L = %A - cast(cast(%A, bf16), f32)
} {
  %a = move(%A)
  %h = cast(%a, bf16)
  %L = %a - cast(%h, f32)
}
";
const OF_KERNELS: &str = "Spec @h (%A) -> (%H) means {
  %H = cast(%A, bf16)
}
Spec @l (%A, %H) -> (%L) means {
  %L = %A - cast(%H, f32)
}
";

#[test]
fn the_residue_of_a_rounding_is_the_same_however_it_is_written() {
    let options = Options { inputs: Inputs::Seed(3), ..Options::default() };
    let all: Vec<Vec<f64>> = [OF_MEANING, OF_BODY, OF_KERNELS]
        .map(|kernels| numbers(&format!("{RESIDUE}{kernels}"), &options, "L"))
        .into();
    assert!(all[0].iter().filter(|v| **v != 0.0).count() > 400, "{:?}", all[0]);
    assert_eq!(all[0], all[1]);
    assert_eq!(all[0], all[2]);
}

#[test]
fn residues_of_two_kernels_are_compared() {
    let body = "Spec @l <<<#grid:[1], #cta:[32]>>> (%A, %H) -> (%L) means {
  %L = %A - cast(%H, f32)
} {
  %L = (move(%A) - cast(move(%H), f32)) * 2.0
}
";
    // The first kernel rounds either with a cast, or through the type of its output.
    for first in ["cast(%A, bf16)", "%A + 0.0"] {
        let text = format!("{RESIDUE}Spec @h (%A) -> (%H) means {{\n  %H = {first}\n}}\n{body}");
        bad(&text, Code::WrongElement);
    }
}

#[test]
fn a_cast_of_the_meaning_saturates() {
    let text = "carbyne 2
%A:[8].f32.GL
%Y:[8].f32.GL
Spec @k (%A) -> (%Y) means {
  %Y = cast(cast(%A, e4m3), f32) + 0.0
}
";
    let given = [1.0f32, 879.77, -1e9, 0.0, 448.0, 1.0625, 17.0, 1e-9];
    let values = given.iter().map(|v| u64::from(v.to_bits())).collect();
    let a = Array { scalar: Scalar::F32, shape: vec![8], values };
    let options = Options { arrays: BTreeMap::from([("A".into(), a)]), ..Options::default() };
    assert_eq!(numbers(text, &options, "Y"), [1.0, 448.0, -448.0, 0.0, 448.0, 1.0, 16.0, 0.0]);
}

/// A body that casts 1000 times the input to a type and computes on the result in f32.
fn through(scalar: &str, means: &str, rest: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%Y:[64].f32.GL
Spec @k <<<#grid:[1], #cta:[64]>>> (%A) -> (%Y) means {{
  %x = %A * 1000.0
  {means}
}} {{
  %q = cast(move(%A) * 1000.0, {scalar})
  %x = cast(%q, f32)
  {rest}
}}
"
    )
}

#[test]
fn a_cast_on_the_way_may_not_leave_the_range_of_its_type() {
    let same = |line: &str, scalar: &str| through(scalar, line, line);
    let plain = "%Y = %x + 0.0";
    let error = bad(&same(plain, "e4m3"), Code::WrongElement);
    let related: Vec<&str> = error.related.iter().map(|(_, why)| why.as_str()).collect();
    assert!(related.iter().any(|why| why.starts_with("this cast converts `")), "{related:?}");
    assert!(error.message.contains("is `448`") || error.message.contains("is `-448`"));
    good(&same(plain, "e5m2"), &Options::default());
    good(&same(plain, "f16"), &Options::default());
    // The saturated numbers do not reach the result.
    good(
        &same("%Y = select(%x > 400.0, 0.0, select(%x < -400.0, 0.0, %x))", "e4m3"),
        &Options::default(),
    );
    good(&same("%Y = min(max(%x, -1.0), 1.0)", "e4m3"), &Options::default());
}

#[test]
fn an_infinity_that_is_hidden_later_is_wrong_where_it_counts() {
    // Squares of up to a million are infinite in f16, and the results that depend on them are
    // finite.
    for rest in ["relu(%s - %s + %x)", "min(%s, 100000.0)", "%x / (%s + 1.0)"] {
        let text = through(
            "bf16",
            &format!("%s = %x * %x\n  %Y = {rest}"),
            &format!("%s = cast(cast(%x * %x, f16), f32)\n  %Y = {rest}"),
        );
        let error = bad(&text, Code::WrongElement);
        assert!(error.related.iter().any(|(_, why)| why.contains("`inf`")), "{error:?}");
    }
}

#[test]
fn an_output_ends_at_the_range_of_its_type() {
    for scalar in ["e4m3", "e5m2", "f16", "bf16"] {
        for means in
            ["%Y = cast(%A * 1000000.0, T)", "%Y = cast(cast(%A * 1000000.0, T), f32) * 2.0"]
        {
            let output = if means.ends_with("2.0") { "f32" } else { scalar };
            let means = means.replace('T', scalar);
            let body = means.replace("%A", "move(%A)");
            let text = format!(
                "carbyne 2
%A:[64].f32.GL
%Y:[64].{output}.GL
Spec @k <<<#grid:[1], #cta:[64]>>> (%A) -> (%Y) means {{
  {means}
}} {{
  {body}
}}
"
            );
            good(&text, &Options::default());
        }
    }
}

/// Quantized values that are scaled back.
fn quantized(body: &str) -> String {
    format!(
        "carbyne 2
%A:[16,32].f32.GL
%Y:[16,32].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%A) -> (%Y) means {{ // HERE
  %Y = cast(cast(%A * 3.0, e4m3), f32) / 3.0
}} {{
  %a = move(%A)
{body}
}}
"
    )
}

#[test]
fn a_body_must_round_where_its_meaning_does() {
    let plain = "  %q = cast(%a * 3.0, e4m3)\n  %Y = cast(%q, f32) / 3.0";
    good(&quantized(plain), &Options::default());
    let said = plain.replace("e4m3)", "e4m3, meant=yes)");
    good(&quantized(&said), &Options::default());
    for wrong in [
        "  %Y = %a * 3.0 / 3.0".to_owned(),
        plain.replace("e4m3)", "e4m3, meant=no)"),
        plain.replace("e4m3", "e5m2"),
        plain.replace("%a * 3.0", "%a * 3.01"),
    ] {
        bad(&quantized(&wrong), Code::WrongElement);
    }
}

#[test]
fn steps_on_the_way_are_no_casts_of_the_meaning() {
    let text = "carbyne 2
%A:[16,32].f32.GL
%B:[32,16].f16.GL
%Y:[16,16].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%A, %B) -> (%Y) means {
  %e = exp(%A)
  %Y = matmul(%e, %B) / sum(%e, axis=1)
} {
  %e = exp(move(%A))
  %h = cast(%e, f16)
  %s = sum(cast(%h, f32), axis=1)
  %hs:SH = move(%h)
  %b:SH = move(%B)
  %c:[16,16].f32 = 0
  MatMul (%hs, %b) -> (%c)
  %Y = %c / %s
}
";
    good(text, &Options::default());
    // With a meaning that rounds differently, which does not contain the cast to f16.
    let meant = text.replace("exp(%A)\n", "exp(cast(cast(%A, bf16), f32))\n");
    bad(&meant, Code::WrongElement);
    let body = meant.replace("exp(move(%A))", "exp(cast(cast(move(%A), bf16), f32))");
    good(&body, &Options::default());
}

/// A product of f32 computed from terms of bf16.
fn terms(products: &str) -> String {
    format!(
        "carbyne 2
%A:[64,64].f32.GL
%B:[64,64].f32.GL
%C:[64,64].f32.GL
Spec @k <<<#grid:[1], #cta:[128]>>> (%A, %B) -> (%C) means {{ // HERE
  %C = matmul(%A, %B)
}} {{
  %a = move(%A)
  %h = cast(%a, bf16)
  %l = cast(%a - cast(%h, f32), bf16)
  %hs:SH = move(%h)
  %ls:SH = move(%l)
  %b = move(%B)
  %bh = cast(%b, bf16)
  %bl = cast(%b - cast(%bh, f32), bf16)
  %bhs:SH = move(%bh)
  %bls:SH = move(%bl)
  %c:[64,64].f32 = 0
{products}
  %C = move(%c)
}}
"
    )
}

#[test]
fn a_wrong_low_term_of_a_split_product_is_found() {
    let high = "  MatMul (%hs, %bhs) -> (%c)\n";
    let (left, right) = ("  MatMul (%ls, %bhs) -> (%c)\n", "  MatMul (%hs, %bls) -> (%c)\n");
    let low = "  MatMul (%ls, %bls) -> (%c)";
    // With the product of both low terms or, as usual, without.
    for ends in [low, ""] {
        for seed in 0..3 {
            let options = Options { inputs: Inputs::Seed(seed), ..Options::default() };
            let right_one = terms(&format!("{high}{left}{right}{ends}"));
            good(&right_one, &options);
            for (from, to) in [
                ("(%ls, %bhs)", "(%ls.transpose(), %bhs)"),
                ("(%hs, %bls)", "(%hs, %bls.transpose())"),
                ("(%ls, %bhs)", "(%ls, %bls)"),
                ("%a - cast(%h, f32)", "cast(%h, f32) - %a"),
                ("%b - cast(%bh, f32)", "%b - cast(%h, f32)"),
            ] {
                bad_with(&right_one.replace(from, to), Code::WrongElement, &options);
            }
        }
    }
}

#[test]
fn a_residue_may_be_written_otherwise() {
    let products = "  MatMul (%hs, %bhs) -> (%c)\n  MatMul (%ls, %bhs) -> (%c)\n  \
                    MatMul (%hs, %bls) -> (%c)\n";
    let text = terms(products);
    let negated = text.replace("%a - cast(%h, f32)", "%a + -cast(%h, f32)");
    // The subtracted number is another cast of the same value.
    let again = text.replace(
        "  %l = cast(%a - cast(%h, f32), bf16)",
        "  %h2 = cast(%a, bf16)\n  %l = cast(%a - cast(%h2, f32), bf16)",
    );
    for right in [negated, again] {
        good(&right, &Options::default());
        bad(&right.replace("(%ls, %bhs)", "(%ls.transpose(), %bhs)"), Code::WrongElement);
    }
}

#[test]
fn meanings_state_which_types_round() {
    let text = "carbyne 2
%A:[8].f32.GL
%D:[8].f64.GL
%H:[8].f16.GL
%I:[8].i32.GL
%B:[8].i8.GL
%Y:[8].f32.GL
%Z:[8].f16.GL
Spec @k (%A, %D, %H, %I, %B) -> (%Y, %Z) means {
  %a = cast(%A, f16)
  %b = cast(%H, f32)
  %c = cast(%H, bf16)
  %d = cast(exp(%A), f32)
  %e = cast(%D + 1.0, f32)
  %f = cast(%I, f32)
  %g = cast(%B, bf16)
  %h = cast(max(%a, %H), f16)
  %i = cast(cast(%A, tf32), f32)
  %Y = cast(%a, f32) + %b + cast(%c, f32) + %d + %e + %f + cast(%g, f32) + cast(%h, f32) + %i
  %Z = cast(%A, f16)
}
";
    let p = program(text);
    let means = p.specs[p.kernels[0]].means.as_ref().expect("a `means` block");
    let found: Vec<Scalar> = means.roundings().into_iter().flatten().collect();
    use Scalar::{Bf16, F16, F32, Tf32};
    assert_eq!(found, [F16, Bf16, F32, F32, Tf32]);
    let types = p.rounded_types();
    assert_eq!(types.all.into_iter().collect::<Vec<_>>(), [F32, Tf32, F16, Bf16]);
    assert_eq!(types.of_floats.into_iter().collect::<Vec<_>>(), [F32, Tf32, F16, Bf16]);
    let of_integers = program(&text.replace("exp(%A)", "%A").replace("%D + 1.0", "%A"));
    let types = of_integers.rounded_types();
    assert!(types.all.contains(&F32) && !types.of_floats.contains(&F32));
}

#[test]
fn exact_operations_leave_no_doubt_about_a_tie() {
    // About every third product is in the middle between two numbers.
    let text = |means: &str, body: &str| {
        format!(
            "carbyne 2
%X:[16,64].bf16.GL
%Y:[16,64].f32.GL
Spec @k <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) means {{
  %x = cast(%X, f32)
  %Y = cast(cast({means}, e4m3), f32)
}} {{
  %x = cast(%X, f32)
  %Y = cast(cast({body}, e4m3), f32)
}}
"
        )
    };
    let options = Options::default();
    for (means, body) in [
        ("%x * 4.0", "%x * 4.016"),
        ("%x / 4.0", "%x / 4.000001"),
        ("%x + 0.0", "%x * 1.004"),
        ("1.0 - %x", "1.004 - %x"),
        ("abs(%x)", "abs(%x * 1.004)"),
    ] {
        bad_with(&text(means, body), Code::WrongElement, &options);
        good(&text(means, means), &options);
    }
    good(&text("%x / 4.0", "%x * 0.25"), &options);
    good(&text("%x / 3.0", "%x * 0.333333333333333333"), &options);
}

#[test]
fn roles_of_casts_do_not_occur_in_means() {
    let text = quantized("  %q = cast(%a * 3.0, e4m3)\n  %Y = cast(%q, f32) / 3.0");
    let module = carbyne_ir::text::parse(
        &text.replace("e4m3), f32) / 3.0\n} {", "e4m3, meant=yes), f32) / 3.0\n} {"),
    );
    let module = module.expect("a module");
    let errors = carbyne_ir::resolve::resolve(&module, &text).expect_err("an attribute").into_vec();
    assert!(errors.iter().any(|e| e.code == Code::Attribute), "{errors:?}");
    assert!(run(&text, &Options::default()).is_ok());
}

/// Runs `carbyne simulate CHILD --against PARENT`.
fn against_parent(child: &str, parent: &str) -> Result<(), Code> {
    let table = AtomTable::new(Arch::Sm80);
    let (child, parent) = (program(child), program(parent));
    let options = Options { between: Between::for_parent(&parent), ..Options::default() };
    let report = simulate(&child, &table, &options).map_err(|e| e.code)?;
    compare_with_parent(&parent, &table, &options, (&child, &report)).map(drop).map_err(|e| e.code)
}

#[test]
fn a_tensor_between_kernels_is_rounded_where_the_parent_casts() {
    let tensors = "carbyne 2\n%A:[64].f32.GL\n%T:[64].bf16.GL\n%C:[64].f32.GL\n";
    let two = |first: &str| {
        format!(
            "{tensors}Spec @one (%A) -> (%T) means {{\n  %T = {first}\n}}
Spec @two (%A, %T) -> (%C) means {{\n  %C = %A * 3.0 - cast(%T, f32)\n}}\n"
        )
    };
    let one = |of: &str| {
        format!(
            "{tensors}Spec @all (%A) -> (%T, %C) means {{\n  \
             %T = cast(%A * 3.0, bf16)\n  %C = %A * 3.0 - {of}\n}}\n"
        )
    };
    let parent = two("cast(%A * 3.0, bf16)");
    assert_eq!(against_parent(&parent, &parent), Ok(()));
    assert_eq!(against_parent(&one("cast(cast(%A * 3.0, bf16), f32)"), &parent), Ok(()));
    assert_eq!(against_parent(&one("%A * 3.0"), &parent), Err(Code::WrongElement));
    // With a parent that does not mention rounding, an intermediate in bf16 is allowed.
    let plain = two("%A * 3.0");
    assert_eq!(against_parent(&plain, &plain), Ok(()));
    assert_eq!(against_parent(&one("%A * 3.0"), &plain), Ok(()));
}
