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
