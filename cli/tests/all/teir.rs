//! Tests `carbyne teir`, which lowers an operation in TEIR (Tiled Execution IR) to a program,
//! executes it, and reports errors of the operation.

use crate::support::carbyne;
use serde_json::json;

const COPY: &str = "data_type FP32\nprim_first None\nprim_main Copy\nprim_last ReLU\n\
    M seq 4 8 0 1\nM prim 8 1 0 4\n";

#[test]
fn an_operation_is_simulated_and_printed() {
    let ran = carbyne(&["teir", "-", "--simulate"], COPY).ok();
    assert!(ran.text().contains("Spec @teir"), "{}", ran.text());
    assert_eq!(ran.stderr, "teir: 32 elements of the output are as the schedule says\n");
    let cuda = carbyne(&["teir", "-", "--emit", "cuda", "--arch", "sm_90a"], COPY).ok();
    assert!(cuda.text().contains("__global__"), "{}", cuda.text());
    let abi = carbyne(&["teir", "-", "--emit", "abi"], COPY).ok();
    assert!(abi.text().contains("\"kernel\": \"teir\""), "{}", abi.text());
}

#[test]
fn what_is_wrong_is_named() {
    let wrong = COPY.replace("M seq 4", "M seq 0");
    let ran = carbyne(&["teir", "-"], &wrong);
    assert_eq!(ran.code, 1);
    let said = "<stdin>: TEIR04 axis 0, dim_sizes: found 0, wanted at least 1\n";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    let ran = carbyne(&["teir", "-", "--message-format", "json"], &wrong);
    assert_eq!(ran.errors()[0]["code"], "TEIR04");
    let unreadable = COPY.replace("M seq 4", "M seq four");
    let ran = carbyne(&["teir", "-", "--message-format", "json"], &unreadable);
    let span = &ran.errors()[0]["spans"][0];
    assert_eq!((&span["start"]["line"], &span["end"]["column"]), (&json!(5), &json!(17)));
}

/// Texts that are too long, and operations that are too large to execute, are refused as such,
/// before anything is decomposed.
#[test]
fn what_is_too_large_is_refused_first() {
    let long = format!("{COPY}{}", "#".repeat(2 << 20));
    let ran = carbyne(&["teir", "-"], &long);
    assert!(ran.stderr.starts_with("<stdin>: TEIR01 the operation: found more"), "{}", ran.stderr);
    let wide = COPY.replace("M seq 4 8", "M seq 4 8000000");
    let ran = carbyne(&["teir", "-", "--emit", "cuda", "--simulate"], &wide);
    let said = "<stdin>: TEIR12 strides_in0: found 24000008 elements from first to last of in0, \
        wanted at most 16777216\n";
    assert!(ran.stderr.starts_with(said), "{}", ran.stderr);
    let steps = "data_type FP32\nprim_first Zero\nprim_main GEMM\nprim_last None\n\
        M shared 512 512 0 512\nN shared 512 0 1 1\nK seq 64 1 512 0\n\
        M prim 1 1 0 1\nN prim 1 0 1 1\nK prim 1 1 1 0\n";
    let ran = carbyne(&["teir", "-", "--simulate"], steps);
    assert!(ran.stderr.starts_with("<stdin>: TEIR12 dim_sizes: found"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("defect"), "{}", ran.stderr);
}

/// K axes that are not contiguous are named where no strategy takes them.
#[test]
fn k_axes_that_no_strategy_takes_are_named() {
    let text = "data_type FP32\nprim_first Zero\nprim_main GEMM\nprim_last None\n\
        M shared 4 4096 0 4096\nM prim 32 128 0 128\nN prim 32 0 1 1\n\
        K seq 3 40 1000 0\nK prim 7 1 32 0\nN shared 4 0 32 32\n";
    let args = ["teir", "-", "--level", "kernel", "--emit", "cuda", "--message-format", "json"];
    let ran = carbyne(&args, text);
    let errors = ran.errors();
    let help = errors[0]["help"].as_str().unwrap_or_default();
    assert_eq!(errors[0]["code"], "D0303");
    assert!(help.starts_with("the K axes 3 and 4 are not contiguous"), "{help}");
}
