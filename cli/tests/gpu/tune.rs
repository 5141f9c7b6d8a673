//! Tests `carbyne tune` with fakes of the driver and NVRTC, and commands that use its database.

use crate::bench::{carbyne, machine};
use serde_json::Value;
use std::path::Path;

const GEMM: &str = "carbyne 2
%A:[64,64].f16.GL
%B:[(64,64):(1,64)].f16.GL
%C:[64,64].f16.GL
%D:[64,64].f16.GL
MatMul.set @one (%A, %B) -> (%C) acc=f32
MatMul.set @two (%A, %B) -> (%D) acc=f16
";
const FAKE: (&str, &str) = ("FAKE_GEMM", "64,64,64,nt,f16,f16");

/// A file with this text in a folder.
fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn tune(
    folder: &Path,
    variables: &[(&str, &str)],
    text: &str,
    more: &[&str],
) -> (i32, String, String) {
    let gemm = file(folder, "gemm.cby", text);
    let usual = ["tune", gemm.as_str(), "--device", "--top", "3", "--launches", "25"];
    carbyne(folder, &[&[FAKE], variables].concat(), &[&usual[..], more].concat())
}

/// The fields of the entries of a database.
fn entries(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap();
    assert_eq!(text.lines().next(), Some("carbyne tuned 1"));
    let fields = |line: &str| line.split('\t').map(str::to_owned).collect();
    text.lines().skip(1).map(fields).collect()
}

#[test]
fn the_best_is_kept_and_taken() {
    let folder = machine("tune_right");
    let (tuned, json) = (folder.join("own.tuned"), folder.join("all.json"));
    let _ = std::fs::remove_file(&tuned);
    let at = tuned.to_str().unwrap();
    let args = ["--tuned", at, "--json", json.to_str().unwrap()];
    let (code, out, errors) = tune(&folder, &[], GEMM, &args);
    assert_eq!(code, 0, "{out}{errors}");
    assert!(out.contains("@one: 3 of 3 candidates measured on Fake GPU for sm_80"), "{out}");
    assert!(out.contains("the model's choice takes"), "{out}");
    let all: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let kernels = all["kernels"].as_array().unwrap();
    let found = entries(&tuned);
    assert_eq!((kernels.len(), found.len()), (2, 2), "{out}");
    for kernel in kernels {
        let candidates = kernel["candidates"].as_array().unwrap();
        let best = &candidates[0];
        assert_eq!((candidates.len(), &best["launches"]), (3, &25.into()), "{kernel}");
        let own = found.iter().find(|e| e[0] == kernel["problem"].as_str().unwrap()).unwrap();
        assert_eq!((own[1].as_str(), own[2].as_str()), ("sm_80", "Fake GPU"));
        assert_eq!(own[4], best["by"].as_str().unwrap());
        let us = |v: &Value| format!("{:.3}", v.as_f64().unwrap());
        assert_eq!(own[5], us(&best["median_us"]), "{kernel}");
        let model = candidates.iter().find(|c| c["rank"] == 1).unwrap();
        assert_eq!(
            (own[6].as_str(), &own[7]),
            (model["by"].as_str().unwrap(), &us(&model["median_us"]))
        );
        assert!(candidates.iter().all(|c| c["median_us"].as_f64() >= best["median_us"].as_f64()));
    }

    // Commands that decompose use the pins, independent of names, and report this.
    let renamed = file(&folder, "renamed.cby", &GEMM.replace("%A", "%x").replace("@one", "@first"));
    let pin = |name: &str| {
        let kernel = kernels.iter().find(|k| k["kernel"] == name).unwrap();
        kernel["candidates"][0]["by"].as_str().unwrap().to_owned()
    };
    for command in
        [&["compile", "--emit", "ir"][..], &["decompose"], &["simulate", "--blocks", "1"]]
    {
        let args = [command, &[renamed.as_str(), "--arch", "sm_80", "--tuned", at]].concat();
        let (code, out, errors) = carbyne(&folder, &[], &args);
        assert_eq!(code, 0, "{command:?}: {errors}");
        let said = format!("note: @first is tuned: {} took", pin("one"));
        assert!(errors.contains(&said), "{command:?}: {errors}");
        assert!(command[0] == "simulate" || out.contains(&format!("by={}", pin("two"))), "{out}");
    }
    let args = ["--message-format", "json", "--repeat", "2", "--sustain", "0", "--tuned", at];
    let run = ["run", renamed.as_str(), "--arch", "sm_80"];
    let (code, _, errors) = carbyne(&folder, &[FAKE], &[&run[..], &args].concat());
    assert_eq!(code, 0, "{errors}");
    let note: Value = serde_json::from_str(errors.lines().next().unwrap()).unwrap();
    assert_eq!((&note["kind"], &note["card"]), (&"note".into(), &"Fake GPU".into()), "{note}");
    let bench = ["bench", "gemm", "--device", "--sizes", "64", "--sustain", "0", "--launches", "3"];
    let (code, out, errors) = carbyne(&folder, &[FAKE], &[&bench[..], &["--tuned", at]].concat());
    assert!(code == 0 && errors.contains("note: @gemm is tuned: "), "{errors}");
    assert!(out.contains(&pin("one")), "{out}");

    // Another GPU and another architecture have separate entries.
    let sm_75 = ["decompose", renamed.as_str(), "--arch", "sm_75", "--tuned", at];
    let (code, _, errors) = carbyne(&folder, &[], &sm_75);
    assert!(code == 0 && !errors.contains("is tuned"), "{errors}");
    let other = std::fs::read_to_string(&tuned).unwrap().replace("Fake GPU", "Other GPU");
    let other = file(&folder, "other.tuned", &other);
    let (code, _, errors) = carbyne(&folder, &[FAKE], &[&bench[..], &["--tuned", &other]].concat());
    assert!(code == 0 && !errors.contains("is tuned"), "{errors}");
    // Tuning again replaces these entries and keeps others.
    let (code, _, errors) = tune(&folder, &[], GEMM, &["--tuned", &other]);
    assert_eq!((code, entries(Path::new(&other)).len()), (0, 4), "{errors}");
}

#[test]
fn what_was_measured_is_kept_whatever_follows() {
    let folder = machine("tune_interrupted");
    let tuned = folder.join("own.tuned");
    let _ = std::fs::remove_file(&tuned);
    let at = ["--tuned", tuned.to_str().unwrap()];
    // Three candidates are compared, and launched 25 and three times more in each of two rounds;
    // the next kernel crashes.
    let (code, out, errors) = tune(&folder, &[("FAKE_CRASH", "100")], GEMM, &at);
    assert!(code == 1 && errors.contains("R0706"), "{code} {errors}");
    assert!(out.contains("@one: 3 of 3") && out.contains("@two: 0 of 3"), "{out}");
    assert_eq!(entries(&tuned).len(), 1);
    // A crash within a kernel's measurement.
    let _ = std::fs::remove_file(&tuned);
    let (code, _, errors) = tune(&folder, &[("FAKE_CRASH", "80")], GEMM, &at);
    assert!(code == 1 && errors.contains("R0706"), "{code} {errors}");
    assert_eq!(entries(&tuned).len(), 1);
}

#[test]
fn what_is_wrong_is_not_kept() {
    let folder = machine("tune_wrong");
    let tuned = folder.join("own.tuned");
    let _ = std::fs::remove_file(&tuned);
    let at = ["--tuned", tuned.to_str().unwrap(), "--timeout", "1"];
    for (wrong, code, part) in [
        ("product", "S0501", "on the GPU"),
        ("idle", "S0501", "on the GPU"),
        ("beyond", "S0504", "writes beyond the end of `%C`"),
        ("memory", "R0705", "allocated"),
        ("endless", "R0707", "has not ended after 1 s"),
    ] {
        let (status, out, errors) = tune(&folder, &[("FAKE_DRIVER", wrong)], GEMM, &at);
        assert!(
            status > 0 && errors.contains(code) && errors.contains(part),
            "{wrong}: {out}{errors}"
        );
        assert!(!tuned.exists(), "{wrong}");
    }
    let (status, out, _) = tune(&folder, &[("FAKE_NVRTC", "1")], GEMM, &at);
    assert!(status == 0 && out.contains("C0403"), "{out}");
    assert!(!tuned.exists());

    std::fs::write(&tuned, "carbyne tuned 1\ndamaged\n").unwrap();
    let (status, _, errors) = tune(&folder, &[], GEMM, &at);
    assert!(status == 2 && errors.contains("R0713") && errors.contains("2:1"), "{errors}");
    let pinned = GEMM.replace("acc=", "tile=(64,64,32) acc=");
    let (status, _, errors) = tune(&folder, &[], &pinned, &["--tuned", "x"]);
    assert!(status == 2 && errors.contains("no kernel-level spec without a pin"), "{errors}");
}
