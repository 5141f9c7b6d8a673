//! Tests `carbyne bench gemm` with fakes of the driver, NVRTC and cuBLAS, so that no GPU is needed.
//! The fake driver and the fake cuBLAS compute the requested products.

use crate::{driver, fake};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder with all three libraries.
pub(crate) fn machine(name: &str) -> PathBuf {
    let (folder, _) = driver(name, &[]);
    fake("fake_nvrtc", &folder.join("libnvrtc.so.12"), &["-Copt-level=2"]);
    fake("fake_cublas", &folder.join("libcublas.so.13"), &["-Copt-level=2"]);
    std::fs::copy(folder.join("libcublas.so.13"), folder.join("libcublasLt.so.13")).unwrap();
    folder
}

/// Runs the command with these libraries. Returns the exit code, standard output, and standard
/// error with continuation lines joined, because the length of paths determines the line breaks.
pub(crate) fn carbyne(
    machine: &Path,
    variables: &[(&str, &str)],
    args: &[&str],
) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_carbyne"))
        .args(args)
        .env("LD_LIBRARY_PATH", machine)
        .env("CARBYNE_NVRTC", machine)
        .env("CARBYNE_CUBLAS", machine)
        .env_remove("FAKE_DRIVER")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let (out, errors) = (text(output.stdout), text(output.stderr));
    let mut joined = String::with_capacity(errors.len());
    for line in errors.lines() {
        joined.push(if line.starts_with(' ') { ' ' } else { '\n' });
        joined.push_str(line.trim());
    }
    (output.status.code().unwrap_or(-1), out, joined.trim_start().to_owned())
}

/// Runs the usual command line with additional options.
fn bench(machine: &Path, variables: &[(&str, &str)], more: &[&str]) -> (i32, String, String) {
    let usual = ["bench", "gemm", "--device", "--launches", "4", "--seed", "3"];
    let sustain = if more.contains(&"--sustain") { &[][..] } else { &["--sustain", "0"] };
    carbyne(machine, variables, &[&usual[..], sustain, more].concat())
}

#[test]
fn products_are_compared_and_timed() {
    let folder = machine("bench_right");
    let (json, page) = (folder.join("all.json"), folder.join("page.md"));
    let (code, out, errors) = bench(
        &folder,
        &[("FAKE_GEMM", "64,96,128,nt,f16,f16")],
        &[
            "--sizes",
            "64x96x128",
            "--by",
            ";@ring[BM=32, BN=32]",
            "--sustain",
            "1",
            "--json",
            json.to_str().unwrap(),
            "--markdown",
            page.to_str().unwrap(),
        ],
    );
    assert_eq!(code, 0, "{out}{errors}");
    assert!(out.contains("NVRTC 12.9, cuBLAS 13.1.2") && out.contains("seed 3"), "{out}");
    let rows: Vec<&str> = out.lines().filter(|l| l.starts_with("64x96x128")).collect();
    assert!(rows.len() == 2 && rows[1].contains("@ring[BM=32, BN=32"), "{out}");
    assert!(out.contains("geometric mean of 1, f16 nt by @ring[BM=32, BN=32]: "), "{out}");
    assert!(out.contains("f16: C f16, accumulators f32; cuBLAS uses cublasGemmEx"), "{out}");

    let all: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!((&all["gpu"], &all["arch"]), (&"Fake GPU".into(), &"sm_80".into()));
    let product = &all["products"][0];
    assert_eq!(product["cublas"]["launches"], 8, "two rounds: {product}");
    let us = |v: &Value| (1000.0 * v.as_f64().unwrap_or(0.0)).round() / 1000.0;
    assert_eq!(us(&product["cublas"]["median_us"]), 450.0, "{product}");
    assert_eq!(us(&product["cublas"]["sustained_median_us"]), 450.0, "{product}");
    for (i, ours) in product["ours"].as_array().unwrap().iter().enumerate() {
        let median = ours["times"]["median_us"].as_f64().unwrap();
        let ratio = ours["ratio"].as_f64().unwrap();
        assert!((ratio - 450.0 / median).abs() < 1e-3, "{ours}");
        assert!((ours["sustained_ratio"].as_f64().unwrap() - ratio).abs() < 1e-3, "{ours}");
        assert_eq!(ours["ratio_with_itself"].as_f64(), (i == 0).then_some(1.0), "{ours}");
        assert_eq!((&ours["registers"], &ours["spill_bytes"]), (&128.into(), &12.into()));
        assert!(ours["relative_error"].as_f64().is_some_and(|e| e < 1e-3), "{ours}");
        assert_eq!(ours["kernels"], serde_json::json!(["gemm"]));
    }
    assert_eq!(product["ours"][1]["asked"], "@ring[BM=32, BN=32]");
    assert!(
        (all["geometric_means"][0]["ratio"].as_f64().unwrap()
            - product["ours"][0]["ratio"].as_f64().unwrap())
        .abs()
            < 1e-9
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("| 64x96x128 | f16 | nt | `@ring[BM=32, BN=32"), "{page}");
}

/// cuBLAS computes the meaning of the text for all products. The fakes share only the numbers of
/// types.
#[test]
fn every_product_is_asked_for_as_it_is_meant() {
    let folder = machine("bench_types");
    for (majors, types, kernel, more) in [
        ("nn", "f16", "f16,f16", &[][..]),
        ("tn", "f16", "f16,f16", &["--acc", "f16"]),
        ("tt", "tf32", "f32,f32", &[]),
        ("nt", "i8", "i8,i32", &[]),
        ("nn", "f32", "f32,f32", &[]),
        ("nt", "f16", "f16,f16,bias", &["--epilogue", "bias_relu"]),
        ("tt", "f16", "f16,f16,bias", &["--epilogue", "bias_relu"]),
    ] {
        let gemm = format!("64,32,128,{majors},{kernel}");
        let args = ["--sizes", "64x32x128", "--majors", majors, "--types", types];
        let (code, out, errors) =
            bench(&folder, &[("FAKE_GEMM", &gemm)], &[&args[..], more].concat());
        assert_eq!(code, 0, "{gemm}: {out}{errors}");
        assert!(out.lines().any(|l| l.starts_with("64x32x128")), "{gemm}: {out}{errors}");
    }
    let hopper = [("FAKE_GEMM", "128,64,128,nt,e4m3,f16"), ("FAKE_CAPABILITY", "9.0")];
    let (code, out, errors) =
        bench(&folder, &hopper, &["--sizes", "128x64x128", "--types", "e4m3"]);
    assert_eq!(code, 0, "{out}{errors}");
    assert!(out.contains("for sm_90a") && out.contains("fast accumulation on"), "{out}");
    assert!(out.contains("@wgmma"), "{out}");
}

#[test]
fn wrong_products_are_refused_and_others_stay() {
    let folder = machine("bench_wrong");
    let gemm = ("FAKE_GEMM", "64,64,64,nt,f16,f16");
    for (wrong, code, part) in [
        ("product", "R0712", "does not compute cuBLAS's"),
        ("idle", "R0712", "were never written"),
        ("beyond", "S0504", "writes beyond the end of `%C`"),
        ("crash", "R0706", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("endless", "R0707", "has not ended after 1 s"),
    ] {
        let (status, out, errors) =
            bench(&folder, &[gemm, ("FAKE_DRIVER", wrong)], &["--sizes", "64", "--timeout", "1"]);
        assert_eq!(status, 1, "{wrong}: {out}{errors}");
        assert!(errors.contains(code) && errors.contains(part), "{wrong}: {errors}");
        assert!(!out.lines().any(|l| l.starts_with("64x64x64")), "{wrong}: {out}");
    }
    // A wrong or impossible kernel does not prevent the measurement of others.
    let by = ["--by", "@nowhere;", "--sizes", "64", "--message-format", "json"];
    let (status, out, errors) = bench(&folder, &[gemm], &by);
    assert_eq!(status, 1, "{out}{errors}");
    assert!(
        errors.contains("nowhere") && out.lines().any(|l| l.starts_with("64x64x64")),
        "{errors}"
    );
    let small = ("FAKE_GEMM", "32,32,32,nt,f16,f16");
    let (status, out, errors) = bench(&folder, &[small], &["--sizes", "64,32"]);
    assert!(status == 1 && errors.contains("R0712"), "{errors}");
    assert!(out.lines().any(|l| l.starts_with("32x32x32")), "{out}");
}

#[test]
fn a_library_that_does_not_do_has_a_code() {
    let folder = machine("bench_library");
    let gemm = ("FAKE_GEMM", "64,64,64,nt,f16,f16");
    for (wrong, code, part) in [
        ("unversioned", "R0710", "does not report its version"),
        ("start", "R0711", "CUBLAS_STATUS_NOT_INITIALIZED"),
        ("refuses", "R0711", "CUBLAS_STATUS_NOT_SUPPORTED"),
    ] {
        let (status, out, errors) =
            bench(&folder, &[gemm, ("FAKE_CUBLAS", wrong)], &["--sizes", "64"]);
        assert!(status == 2 && errors.contains(code) && errors.contains(part), "{out}{errors}");
    }
    let bias = ["--sizes", "64", "--epilogue", "bias_relu"];
    let (status, _, errors) = bench(&folder, &[gemm, ("FAKE_CUBLAS", "algorithm")], &bias);
    assert!(status == 2 && errors.contains("no algorithm"), "{errors}");
    // If the variable names a place, no other place is searched.
    let nowhere = folder.join("nowhere");
    let (status, _, errors) =
        bench(&folder, &[gemm, ("CARBYNE_CUBLAS", nowhere.to_str().unwrap())], &["--sizes", "64"]);
    assert!(status == 2 && errors.contains("R0710") && errors.contains("nowhere"), "{errors}");
    assert!(errors.contains("CARBYNE_CUBLAS"), "{errors}");
}

/// Without the variable, the library is found in toolkits and Python environments.
#[test]
fn libraries_are_found_where_they_are_installed() {
    let folder = machine("bench_found");
    let gemm = ("FAKE_GEMM", "64,64,64,nt,f16,f16");
    for (variable, at) in [
        ("CUDA_PATH", "toolkit/lib64"),
        ("VIRTUAL_ENV", "venv/lib/python3.12/site-packages/nvidia/cu13/lib"),
    ] {
        let root = folder.join(at.split('/').next().unwrap());
        let lib = folder.join(at);
        std::fs::create_dir_all(&lib).unwrap();
        for name in ["libcublas.so.13", "libcublasLt.so.13"] {
            std::fs::copy(folder.join(name), lib.join(name)).unwrap();
        }
        let variables = [gemm, ("CARBYNE_CUBLAS", ""), (variable, root.to_str().unwrap())];
        let (status, out, errors) = bench(&folder, &variables, &["--sizes", "64"]);
        assert_eq!(status, 0, "{errors}");
        // A toolkit of the machine has priority over environments.
        let own = Path::new("/usr/local/cuda").exists();
        assert!(own || out.contains(&format!("cuBLAS is `{}", lib.display())), "{out}");
    }
}
