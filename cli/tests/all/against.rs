//! Tests `carbyne simulate --against PARENT EDITED`, which compares the results of an edited
//! program with the results of the program before the edit.

use crate::support::{carbyne, root};

/// Runs an edited example against the original. Returns the codes of its errors.
fn edited(from: &str, to: &str) -> Vec<String> {
    let parent = root().join("examples/ampere_gemm_by_hand.cby");
    let text = std::fs::read_to_string(&parent).unwrap();
    assert!(text.contains(from), "{from} is gone");
    let text = text.replace(from, to);
    let parent = parent.display().to_string();
    let args = ["simulate", "-", "--against", &parent, "--ints", "--blocks", "1"];
    let ran = carbyne(&[&args[..], &["--message-format", "json"]].concat(), text);
    let codes: Vec<String> =
        ran.errors().iter().map(|e| e["code"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(ran.code, i32::from(!codes.is_empty()), "{}", ran.stderr);
    codes
}

#[test]
fn an_edit_that_means_the_same_passes() {
    // Another order of the instructions.
    let (rows, columns) = (
        "for (i = 0; i < 4; i += 1) unroll {\n          for (j = 0; j < 8; j += 1) unroll {",
        "for (j = 0; j < 8; j += 1) unroll {\n          for (i = 0; i < 4; i += 1) unroll {",
    );
    assert_eq!(edited(rows, columns), [""; 0]);
}

#[test]
fn a_wrong_edit_is_reported() {
    assert_eq!(edited("@wn * 8 + j * 2 + @half", "@wn * 8 + j * 2"), ["S0501"]);
}

#[test]
fn a_spec_of_its_own_is_compared_with_the_parents() {
    // The body computes what the parent's body computes, but not what its own head states.
    assert_eq!(edited("MatMul.set @ampere_gemm", "MatMul @ampere_gemm"), ["S0501"]);
    // A head that states less passes; the parent states the rest.
    let head = |kind: &str, acc: &str| {
        format!(
            "{kind} @ampere_gemm <<<#grid:[@bm < M / BM, @bn < N / BN], #cta:[128]>>>\n    \
             (%A, %B)\n    -> (%C){acc} {{"
        )
    };
    assert_eq!(edited(&head("MatMul.set", " acc=f32"), &head("Spec", "")), [""; 0]);
}

#[test]
fn nothing_to_compare_is_an_error() {
    let parent = "carbyne 2\n%A:[64].f16.GL\n";
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing.cby");
    std::fs::write(&path, parent).unwrap();
    let child = root().join("examples/vector_copy.cby").display().to_string();
    let ran = carbyne(&["simulate", &child, "--against", &path.display().to_string()], "");
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("S0513"), "{}", ran.stderr);
    let ran = carbyne(&["simulate", &child, "--against", &child, "--no-shadow"], "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
}

#[test]
fn several_kernels_are_compared_by_what_they_write() {
    let parent = "carbyne 2
%A:[64,32].f16.GL
%B:[32,48].f16.GL
%C:[64,48].f16.GL
%S:[64,1].f16.GL
MatMul.set @product (%A, %B) -> (%C) acc=f32
Reduction.sum @rows (%C) -> (%S) axis=1
";
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("parent.cby");
    std::fs::write(&path, parent).unwrap();
    let args = ["simulate", "-", "--against", &path.display().to_string()];
    let ran = carbyne(&args, parent.replace("@product", "@other")).ok();
    assert!(ran.stderr.contains("3072 elements of %C, 64 elements of %S"), "{}", ran.stderr);
    let ran = carbyne(&args, parent.replace("Reduction.sum", "Reduction.max"));
    assert!(ran.code == 1 && ran.stderr.contains("%S[0,0]"), "{}", ran.stderr);
}

/// Writes a file for one test.
fn written(name: &str, text: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

const HEAD: &str = "carbyne 2\n%X:[64].f32.GL\n%Y:[64].f32.GL\n#grid:[2].block\n#cta:[32].thread\n";

#[test]
fn what_the_last_kernel_leaves_is_compared() {
    let twice = "Spec @a (%X) -> (%Y) means {\n  UnaryPointwise.exp (%X) -> (%Y)\n}\n\
                 Spec @b (%Y) -> (%Y) means {\n  BinaryPointwise.add (%Y, 1) -> (%Y)\n}\n";
    let parent = written("against_twice.cby", &format!("{HEAD}{twice}"));
    let ran = carbyne(&["simulate", &parent, "--against", &parent], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let once = format!(
        "{HEAD}Spec @k (%X) -> (%Y) means {{\n  UnaryPointwise.exp (%X) -> (%e)\n  \
         BinaryPointwise.add (%e, 1) -> (%Y)\n}}\n"
    );
    let ran = carbyne(&["simulate", "-", "--against", &parent], &once);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = carbyne(&["simulate", "-", "--against", &parent], once.replace(", 1)", ", 2)"));
    assert!(ran.code == 1 && ran.stderr.contains("S0501"), "{}", ran.stderr);
}

#[test]
fn what_is_left_as_it_was_is_compared() {
    let body = "{\n  @i = #grid.indices()\n  @t = #cta.indices()\n  \
                if (@i < N) {\n    UnaryPointwise.exp \
                <<<#grid, #cta.scalar()>>> (%X[@i * 32 + @t]) -> (%Y[@i * 32 + @t])\n  }\n}\n";
    let text = |n: &str| {
        format!("{HEAD}Spec @k <<<#grid, #cta>>> (%X, %Y) -> (%Y) {}", body.replace('N', n))
    };
    let parent = written("against_part.cby", &text("2"));
    let ran = carbyne(&["simulate", "-", "--against", &parent], text("2"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let ran = carbyne(&["simulate", "-", "--against", &parent], text("1"));
    assert!(ran.code == 1 && ran.stderr.contains("%Y[32]"), "{}", ran.stderr);
}

/// Runs a text with another text as its parent.
fn against(name: &str, parent: &str, child: &str, more: &[&str]) -> crate::support::Ran {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, parent).unwrap();
    let path = path.display().to_string();
    carbyne(&[&["simulate", "-", "--against", &path], more].concat(), child)
}

#[test]
fn a_cast_of_integers_rounds_no_other_tensor() {
    let parent = "carbyne 2
%I:[4,8].i32.GL
%Z:[4,8].f32.GL
%Y:[4,8].f32.GL
Spec @k (%Z, %I) -> (%Y) means {
  %Y = %Z / 3.0 + cast(%I, f32)
}
";
    let child = "carbyne 2
%I:[4,8].i32.GL
%Z:[4,8].f32.GL
%T:[4,8].f32.GL
%Y:[4,8].f32.GL
Spec @a (%Z) -> (%T) means {
  %T = %Z / 3.0
}
Spec @b (%T, %I) -> (%Y) means {
  %Y = %T + cast(%I, f32)
}
";
    against("integers.cby", parent, child, &[]).ok();
    // Large integers are rounded where the parent rounds them.
    let parent = parent.replace("%Z / 3.0 + cast(%I, f32)", "cast(%I * 1000003, f32) - %Z");
    let child =
        child.replace("%Z) -> (%T", "%I) -> (%T").replace("%Z / 3.0", "cast(%I * 1000003, f32)");
    let child = child
        .replace("(%T, %I) -> (%Y)", "(%T, %Z) -> (%Y)")
        .replace("%T + cast(%I, f32)", "%T - %Z");
    against("large.cby", &parent, &child, &[]).ok();
}

#[test]
fn inputs_test_what_the_parent_decides() {
    let parent = "carbyne 2
%Z:[16,64].f32.GL
%Y:[16,64].f32.GL
Spec @k (%Z) -> (%Y) means {
  %v = %Z * 2.0
  %Y = select(%v > 0.0, %v, 7.0)
}
";
    let child = "carbyne 2
%Z:[16,64].f32.GL
%T:[16,64].f32.GL
%Y:[16,64].f32.GL
Spec @a (%Z) -> (%T) means {
  %T = %Z * 2.0
}
Spec @b (%T) -> (%Y) means {
  %Y = select(%T > 0.0, %T, 7.0)
}
";
    against("decides.cby", parent, child, &[]).ok();
    let ran = against("decides.cby", parent, &child.replace("> 0.0", ">= 0.0"), &[]);
    assert!(ran.code == 1 && ran.stderr.contains("S0501"), "{}", ran.stderr);
    let (parent, child) = (parent.replace("> 0.0", "< 0.25"), parent.replace("> 0.0", "< 0.251"));
    let ran = against("literal.cby", &parent, &child, &[]);
    assert!(ran.code == 1 && ran.stderr.contains("S0501"), "{}", ran.stderr);
}

#[test]
fn what_is_stored_is_rounded_and_its_distance_is_said() {
    let parent = "carbyne 2
%X:[4,24].bf16.GL
%Y:[4,24].f32.GL
Spec @k (%X) -> (%Y) means {
  %Y = cast(%X, f32) / 3.0
}
";
    let child = "carbyne 2
%X:[4,24].bf16.GL
%T:[4,24].e4m3.GL
%Y:[4,24].f32.GL
Spec @a (%X) -> (%T) means {
  %T = cast(cast(%X, f32) / 3.0, e4m3)
}
Spec @b (%T) -> (%Y) means {
  %Y = cast(%T, f32)
}
";
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    let out = |name: &str| format!("Y={}", folder.join(name).display());
    let ran = against("stored.cby", parent, child, &["--out", &out("stored_1.npy")]).ok();
    assert!(ran.stderr.contains("rounding: %Y, up to "), "{}", ran.stderr);
    assert!(ran.stderr.contains("relative norm 2.9e-2"), "{}", ran.stderr);
    carbyne(&["simulate", "-", "--out", &out("stored_2.npy")], child).ok();
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    assert!(read("stored_1.npy") == read("stored_2.npy"), "other values are written");
}
