//! Tests commands for GPUs on a machine without a GPU, with the driver in `fake_driver.rs`; the
//! tests of this file run `carbyne run`.
//!
//! The last test runs the binary without a driver: it must start, because it is not linked with the
//! driver's library.

mod atoms;
mod bench;
mod tune;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs `carbyne run` on the vector copy, with the driver in this folder.
fn run(driver: &Path, wrong: &str, more: &[&str]) -> (i32, Vec<Value>) {
    said(example("vector_copy", driver).env("FAKE_DRIVER", wrong).args(more))
}

/// `carbyne run` on an example.
fn example(name: &str, driver: &Path) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_carbyne"));
    command
        .args(["run", "--arch", "sm_80", "--message-format", "json"])
        .arg(root.join(format!("examples/{name}.cby")))
        .env("LD_LIBRARY_PATH", driver);
    command
}

/// The status of a command, and its messages.
fn said(command: &mut Command) -> (i32, Vec<Value>) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    let values =
        text.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")));
    (output.status.code().unwrap_or(-1), values.collect())
}

/// A folder with a driver, compiled with these options, and a file that is accepted as machine
/// code.
fn driver(name: &str, options: &[&str]) -> (PathBuf, String) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    fake("fake_driver", &folder.join("libcuda.so.1"), options);
    let cubin = folder.join("vector_copy.sm_80.cubin");
    std::fs::write(&cubin, b"\x7fELF vector_copy").unwrap();
    (folder, cubin.display().to_string())
}

/// Compiles a fake of one of NVIDIA's libraries.
fn fake(name: &str, to: &Path, options: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/gpu/{name}.rs"));
    let status = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()))
        .args(["--edition=2024", "--crate-type=cdylib", "-Copt-level=1", "--crate-name", name])
        .args(["--check-cfg=cfg(lacking)", "--cap-lints=allow"])
        .args(options)
        .arg("-o")
        .arg(to)
        .arg(source)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn right_kernels_are_compared_and_timed() {
    let (folder, cubin) = driver("right", &[]);
    for more in [["--cubin", &cubin], ["--prebuilt", folder.to_str().unwrap()]] {
        let (code, said) = run(&folder, "", &[more[0], more[1], "--repeat", "5"]);
        assert_eq!(code, 0, "{said:?}");
        let report = &said[0];
        assert_eq!(report["gpu"], "Fake GPU");
        assert_eq!((&report["grid"], &report["block"]), (&16.into(), &128.into()));
        assert_eq!(report["elements_compared"], 8192);
        assert_eq!((&report["max_error"], &report["right"]), (&0.0.into(), &true.into()));
        assert_eq!((&report["launches"], &report["median_seconds"]), (&5.into(), &0.0005.into()));
        assert_eq!(report["registers"], 24);
        assert_eq!(
            (&report["sustained_median_seconds"], &report["settled"]),
            (&0.0005.into(), &true.into())
        );
    }
    let (_, said) = run(&folder, "", &["--cubin", &cubin, "--sustain", "0"]);
    assert_eq!(said[0].get("settled"), None, "{said:?}");
    let out = folder.join("out.npy");
    let (given, taken) = (format!("in={}", out.display()), format!("out={}", out.display()));
    let (code, said) = run(&folder, "", &["--cubin", &cubin, "--out", &taken]);
    assert_eq!(code, 0, "{said:?}");
    let (code, said) = run(&folder, "", &["--cubin", &cubin, "--in", &given, "--repeat", "0"]);
    assert_eq!((code, said[0].get("launches")), (0, None), "{said:?}");
}

#[test]
fn without_blocks_nothing_is_launched() {
    let (folder, copies) = driver("empty", &[]);
    let adds = folder.join("add_any.cubin").display().to_string();
    std::fs::write(&adds, b"\x7fELF add_any").unwrap();
    // Every launch crashes.
    let run = |name, more: &[&str]| said(example(name, &folder).env("FAKE_CRASH", "0").args(more));
    let (code, said) = run("add_any", &["--cubin", &adds, "--sym", "M=0", "--sym", "N=40"]);
    assert_eq!(code, 0, "{said:?}");
    let (code, said) = run("vector_copy", &["--cubin", &copies]);
    assert_eq!((code, &said[0]["code"]), (1, &"R0706".into()), "{said:?}");
}

#[test]
fn whatever_goes_wrong_has_a_code() {
    let (folder, cubin) = driver("wrong", &[]);
    for (wrong, exit, code, part) in [
        ("no device", 2, "R0702", "no GPU"),
        ("old", 2, "R0703", "version 10.2"),
        ("binary", 2, "R0704", "cannot be loaded"),
        ("memory", 2, "R0705", "allocated"),
        ("crash", 1, "R0706", "CUDA_ERROR_ILLEGAL_ADDRESS"),
        ("unheard of", 1, "R0706", "status 1234"),
        ("endless", 1, "R0707", "has not ended after 1 s"),
        ("idle", 1, "S0501", "is `NaN` on the GPU"),
        ("beyond", 1, "S0504", "beyond `%out`"),
    ] {
        let (status, said) = run(&folder, wrong, &["--cubin", &cubin, "--timeout", "1"]);
        let error = said.iter().find(|v| v["kind"] == "error").unwrap_or_else(|| panic!("{wrong}"));
        assert_eq!((status, error["code"].as_str()), (exit, Some(code)), "{wrong}: {error}");
        assert!(error["message"].as_str().is_some_and(|m| m.contains(part)), "{wrong}: {error}");
    }
    let (status, said) = run(&folder, "", &["--cubin", &cubin, "--gpu", "7"]);
    assert_eq!((status, said[0]["code"].as_str()), (2, Some("R0702")), "{said:?}");
    let (status, said) = run(&folder, "", &["--cubin", "Cargo.toml"]);
    assert_eq!((status, said[0]["code"].as_str()), (2, Some("R0709")), "{said:?}");
}

#[test]
fn a_driver_that_lacks_a_function_is_too_old() {
    let (folder, cubin) = driver("lacking", &["--cfg=lacking"]);
    let (status, said) = run(&folder, "", &["--cubin", &cubin]);
    assert_eq!((status, said[0]["code"].as_str()), (2, Some("R0703")), "{said:?}");
    assert!(said[0]["message"].as_str().is_some_and(|m| m.contains("`cuEventQuery`")), "{said:?}");
}

#[test]
fn without_a_driver_it_says_so() {
    let nothing = Path::new(env!("CARGO_TARGET_TMPDIR")).join("nothing");
    let (status, said) = run(&nothing, "", &[]);
    // On a machine with a driver, the result is unknown.
    if said[0]["code"] == "R0701" {
        assert_eq!(status, 2);
    }
}
