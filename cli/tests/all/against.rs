//! `carbyne simulate --against PARENT EDITED`: an edited body is held to the spec of what it was edited from.

use crate::support::{carbyne, root};

/// Runs an edited example against itself; the codes of its errors.
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
fn a_spec_of_its_own_is_refused() {
    assert_eq!(edited("MatMul.set @ampere_gemm", "MatMul @ampere_gemm"), ["S0513"]);
}
