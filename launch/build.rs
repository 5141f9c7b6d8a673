//! Compiles `driver/forwarders.rs` to a static library, for the feature `gpu`.
//!
//! It uses the compiler that Cargo uses. An `.rlib` is an archive with an index, so that neither a
//! C compiler nor `ar` is needed. The whole library is linked (`+whole-archive`) before the library
//! `cuda` that `cust` requires. The library `cuda` is an empty archive in a folder that
//! `.cargo/config.toml` names. If the linker finds a toolkit's library instead, all functions in it
//! are already defined, and the linker drops it.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=driver/forwarders.rs");
    if std::env::var_os("CARGO_FEATURE_GPU").is_none() {
        return;
    }
    if let Err(why) = forwarders() {
        println!("cargo:warning={why}");
        std::process::exit(1);
    }
}

fn forwarders() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).map_err(|e| format!("{name}: {e}"));
    if variable("CARGO_CFG_TARGET_FAMILY")? != "unix" {
        return Err("the feature `gpu` is for Linux".to_owned());
    }
    let folder = PathBuf::from(variable("OUT_DIR")?);
    let status = Command::new(variable("RUSTC")?)
        .args(["--edition=2024", "--crate-type=rlib", "--crate-name=carbyne_driver"])
        .args(["-Copt-level=2", "-Cpanic=abort", "-Ccodegen-units=1", "--cap-lints=warn"])
        .arg(format!("--target={}", variable("TARGET")?))
        .arg("-o")
        .arg(folder.join("libcarbyne_driver.a"))
        .arg("driver/forwarders.rs")
        .status()
        .map_err(|e| format!("rustc does not run: {e}"))?;
    if !status.success() {
        return Err("the forwarders of the CUDA driver do not compile".to_owned());
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=static:-bundle,+whole-archive=carbyne_driver");
    Ok(())
}
