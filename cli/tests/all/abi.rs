//! Tests `compile --emit abi`, which prints the data that a launcher needs as JSON: parameters,
//! sizes as expressions of symbols, tensor maps, and tensors between kernels.

use crate::support::{carbyne, root};
use serde_json::{Value, json};

#[test]
fn tensor_maps_are_described_as_their_encoder_takes_them() {
    let file = root().join("examples/tma_copy.cby").display().to_string();
    let ran = carbyne(
        &["compile", &file, "--arch", "sm_90a", "--emit", "abi", "--kernel", "tma_copy"],
        "",
    );
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(abi["kernel"], "tma_copy");
    assert_eq!((&abi["grid"], &abi["block"]), (&json!(12), &json!(128)));
    let kinds: Vec<&Value> =
        abi["parameters"].as_array().expect("a list").iter().map(|p| &p["kind"]).collect();
    assert_eq!(kinds, ["pointer", "pointer", "tensor_map", "tensor_map"]);
    let map = json!({
        "kind": "tensor_map",
        "name": "from",
        "tensor": "A",
        "bytes": 128,
        "data_type": 6,
        "offset_bytes": 0,
        "extents": [136, 200],
        "stride_bytes": [272],
        "box": [64, 64],
        "swizzle": 3,
        "l2_promotion": 3,
    });
    assert_eq!(abi["parameters"][2], map);
}

#[test]
fn sizes_of_the_launch_stay_expressions() {
    let text = "carbyne 2
sym K{min=64, max=4096, div=64}
%A:[K,K].f16.GL
#grid:[K / 64].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%A) -> () {
  Allocate %s:[64,64].f16.SH{align=128}
  Allocate %full:[1].mbarrier.SH
  %m = %A.tensormap([64,64])
  Move <<<#grid, #cta[0]>>> (%m[0,0]) -> (%s) bar=%full
}
";
    let ran =
        carbyne(&["compile", "-", "--arch", "sm_90a", "--emit", "abi", "--kernel", "k"], text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert_eq!(abi["grid"], "K/64");
    assert_eq!(
        abi["parameters"][1],
        json!({"kind": "symbol", "name": "K", "symbol": "K", "bits": 32})
    );
    assert_eq!(abi["parameters"][2]["extents"], json!(["K", "K"]));
    assert_eq!(abi["parameters"][2]["stride_bytes"], json!(["K*2"]));
}

#[test]
fn a_module_says_what_its_kernels_hand_on() {
    let text = "carbyne 2
%X:[128,64].f16.GL
%W:[64,128].f16.GL
%H:[128,128].f16.GL
%Y:[128,1].f16.GL
MatMul.set @up (%X, %W) -> (%H) acc=f32
Reduction.max @rows (%H) -> (%Y) axis=1
";
    let ran = carbyne(&["compile", "-", "--arch", "sm_80", "--emit", "abi"], text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let names: Vec<&Value> =
        abi["kernels"].as_array().expect("a list").iter().map(|k| &k["kernel"]).collect();
    assert_eq!(names, ["up", "rows"]);
    let handed_on = json!({
        "name": "H",
        "scalar": "f16",
        "bits": 16,
        "extents": [128, 128],
        "strides": [128, 1],
        "elements": 16384,
        "integers": null,
        "alignment": 16,
        "written_by": ["up"],
        "read_by": ["rows"],
        "intermediate": true,
    });
    assert_eq!(abi["tensors"][2], handed_on);
    assert_eq!(abi["tensors"][0]["intermediate"], false);
    assert_eq!(abi["symbols"], json!([]));
}

#[test]
fn numbers_are_passed_by_value() {
    let file = root().join("examples/tile/gemm_scaled.cby").display().to_string();
    let ran = carbyne(&["compile", &file, "--arch", "sm_80", "--emit", "abi"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let number = json!({"name": "alpha", "scalar": "f32", "bits": 32});
    assert_eq!(abi["scalars"][0], number);
    let tensors: Vec<&Value> =
        abi["tensors"].as_array().expect("a list").iter().map(|t| &t["name"]).collect();
    assert_eq!(tensors, ["A", "B", "C"]);
    let parameters = abi["kernels"][0]["parameters"].as_array().expect("a list");
    let kinds: Vec<&Value> = parameters.iter().map(|p| &p["kind"]).collect();
    assert_eq!(kinds, ["scalar", "scalar", "pointer", "pointer", "pointer"]);
    let parameter = json!({
        "kind": "scalar",
        "name": "beta",
        "number": "beta",
        "scalar": "f32",
        "bits": 32,
    });
    assert_eq!(parameters[1], parameter);
}

#[test]
fn what_integers_of_a_tensor_must_be_is_said() {
    let file = root().join("examples/grouped_gemm.cby").display().to_string();
    let ran = carbyne(&["compile", &file, "--arch", "sm_80", "--emit", "abi"], "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let of = |name: &str| {
        let tensors = abi["tensors"].as_array().expect("a list");
        tensors.iter().find(|t| t["name"] == name).expect("a tensor")["integers"].clone()
    };
    assert_eq!(
        of("offsets"),
        json!({ "from": 0, "below": "T + 1", "distinct": false, "splits": true })
    );
    assert_eq!(of("A"), Value::Null);
}

#[test]
fn a_result_that_the_last_kernel_adds_to_is_the_callers() {
    let text = "carbyne 2
let T = 64, V = 16, D = 128
%ids:[T].i32.GL in 0..V
%g:[T,D].f32.GL
%out:[V,D].f32.GL
Init @zero (0) -> (%out)
Spec @add <<<#grid:[@t < T], #cta:[128]>>> (%ids, %g) -> (%out) {
  @id = %ids[@t]
  Move.add (%g[@t, _]) -> (%out[@id, _])
}
";
    let ran = carbyne(&["compile", "-", "--arch", "sm_80", "--emit", "abi"], text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let abi: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let tensors = abi["tensors"].as_array().expect("a list");
    let out = tensors.iter().find(|t| t["name"] == "out").expect("the result");
    assert_eq!(out["intermediate"], false, "{out}");
}
