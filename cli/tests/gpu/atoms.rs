//! Tests `carbyne atoms verify` with the driver of `fake_driver.rs`, which copies the inputs of a
//! kernel to its outputs. This is right for a move of 16 bytes per thread, and wrong for other
//! atoms; `verify` must report that. One test is about `carbyne atoms calibrate --machine`.

use crate::bench::{carbyne, machine};
use crate::driver;
use carbyne_codegen::testing::require_nvrtc;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const ATOMS: [&str; 4] = ["mov.b128", "ld.global.b128", "ldmatrix.x4.b16", "fma.f64"];

/// A folder with a driver and the compiled probes of some atoms; `None` without NVRTC.
fn prepared(name: &str) -> Option<std::path::PathBuf> {
    require_nvrtc()?;
    let (folder, _) = driver(name, &[]);
    let mut compile = Command::new(env!("CARGO_BIN_EXE_carbyne"));
    compile.args(["atoms", "compile", "--arch", "sm_80", "-o"]).arg(folder.join("built"));
    compile.args(ATOMS.iter().flat_map(|r| ["--row", r]));
    let output = compile.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(folder)
}

/// Runs the command. Returns the exit code, the atoms and standard error.
fn verify(folder: &Path, wrong: &str, more: &[&str]) -> (i32, Vec<Value>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_carbyne"))
        .args(["atoms", "verify", "--device", "--json", "--timeout", "1", "--prebuilt"])
        .arg(folder.join("built"))
        .args(more)
        .env("LD_LIBRARY_PATH", folder)
        .env("FAKE_DRIVER", wrong)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let atoms = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let errors = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap_or(-1), atoms, errors)
}

#[test]
fn atoms_are_verified_or_not() {
    let Some(folder) = prepared("atoms_right") else { return };
    let page = folder.join("page.md");
    let only = ["--arch", "sm_80", "--row", "mov.b128", "--row", "ld.global.b128", "--markdown"];
    let (code, atoms, errors) =
        verify(&folder, "", &[&only[..], &[page.to_str().unwrap()]].concat());
    assert_eq!((code, atoms.len()), (0, 2), "{errors}");
    for atom in &atoms {
        let on = &atom["architectures"][0];
        assert_eq!((&atom["status"], &on["arch"]), (&"verified".into(), &"sm_80".into()), "{atom}");
        assert_eq!((&on["loaded"], &on["elements_wrong"]), (&"cubin".into(), &0.into()), "{atom}");
        assert!(on["elements"].as_u64().is_some_and(|n| n > 1000), "{atom}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("| `mov.b128` | verified | sm_80 |"), "{page}");
    assert!(page.contains("| Move | 2 | 0 | 0 | 0 |"), "{page}");

    // With a driver that does nothing, the first difference names lane and value.
    let (code, atoms, _) = verify(&folder, "idle", &["--arch", "sm_80", "--row", "mov.b128"]);
    let on = &atoms[0]["architectures"][0];
    assert_eq!((code, &atoms[0]["status"]), (1, &"failed".into()), "{atoms:?}");
    assert_eq!((&on["first"]["thread"], &on["first"]["value"]), (&0.into(), &0.into()), "{on}");
    assert_eq!(on["first"]["operand"], "D");

    let (code, atoms, _) = verify(&folder, "", &["--arch", "sm_80", "--row", "ldmatrix.x4.b16"]);
    assert_eq!((code, &atoms[0]["status"]), (1, &"failed".into()), "{atoms:?}");
}

#[test]
fn what_goes_wrong_is_said_of_the_atom() {
    let Some(folder) = prepared("atoms_wrong") else { return };
    let one = ["--arch", "sm_80", "--row", "mov.b128"];
    let (code, atoms, _) = verify(&folder, "crash", &one);
    let broken = atoms[0]["architectures"][0]["broken"].as_str().unwrap_or_default();
    assert_eq!((code, &atoms[0]["status"]), (1, &"failed".into()), "{atoms:?}");
    assert!(broken.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{broken}");
    let (code, atoms, _) = verify(&folder, "beyond", &one);
    let broken = atoms[0]["architectures"][0]["broken"].as_str().unwrap_or_default();
    assert!(code == 1 && broken.contains("writes beyond `%outD`"), "{broken}");

    let (code, _, errors) = verify(&folder, "endless", &one);
    assert!(code == 1 && errors.contains("R0707"), "{code} {errors}");
    let (code, _, errors) = verify(&folder, "old", &one);
    assert!(code == 2 && errors.contains("R0703"), "{code} {errors}");
    let (code, atoms, errors) = verify(&folder, "", &["--arch", "sm_90a", "--row", "mov.b128"]);
    assert_eq!((code, &atoms[0]["status"]), (0, &"not executable here".into()), "{errors}");
}

#[test]
fn every_part_of_a_machine_has_kernels() {
    let folder = machine("atoms_machine");
    let args = ["atoms", "calibrate", "--machine", "--device"];
    let variables = [("FAKE_CAPABILITY", "9.0"), ("FAKE_DRIVER", "idle")];
    let (code, out, errors) = carbyne(&folder, &variables, &args);
    assert_eq!(code, 0, "{errors}");
    assert!(out.lines().count() > 70, "{out}");
    // The fake driver has no clocks.
    for line in out.lines() {
        let why = line.split_once(": not measured: ").map(|(_, why)| why);
        assert!(why.is_none_or(|why| why == "the longer loop takes no longer"), "{line}");
    }
    let (code, _, errors) = carbyne(&folder, &[], &[&args[..], &["--row", "mov.b128"]].concat());
    assert!(code == 2 && errors.contains("--machine"), "{code} {errors}");
}

#[test]
fn bad_command_lines_are_refused() {
    let Some(folder) = prepared("atoms_bad") else { return };
    for (more, part) in [
        (&["--row", "mov.b127"][..], "did you mean one of"),
        (&["--arch", "sm_80", "--row", "mov.b128", "--corrupt", "mov.b128"], "no two strides"),
        (&["--arch", "sm_80", "--row", "mov.b128", "--corrupt", "mov.b64"], "no atom `mov.b64`"),
        (&["--arch", "sm_81"], "unknown architecture"),
    ] {
        let (code, _, errors) = verify(&folder, "", more);
        assert!(code == 2 && errors.contains(part), "{more:?}: {code} {errors}");
    }
    // The detection of a corrupted atom is tested with real results; the fake driver computes none.
    let corrupt = ["--arch", "sm_80", "--row", "ldmatrix.x4.b16", "--corrupt", "ldmatrix.x4.b16"];
    assert_eq!(verify(&folder, "", &corrupt).0, 1);
}
