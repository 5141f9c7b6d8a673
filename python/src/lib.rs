//! Implements the Rust part of the Python package `carbyne`: types for programs, decomposed
//! programs, functions that launch kernels, and operations in TEIR (the Tiled Execution IR).
//! Functions evaluate and draw layouts, run the command line, and describe GPUs and architectures.
//!
//! The package in `../carbyne` wraps it. Documents are passed as JSON texts, arrays as the bytes of
//! `.npy` files. Long work releases the interpreter's lock.

mod call;
mod dlpack;
mod error;
mod kernels;
mod layout;
mod program;
mod teir;
mod tvm_ffi;
mod work;

use call::Function;
use carbyne_codegen::nvrtc;
use carbyne_embed::Arch;
use error::refused;
use layout::{calculate, draw};
use program::{Found, Source};
use pyo3::prelude::*;
use std::ffi::OsString;

/// The name of a GPU, the newest architecture that it runs, and its number of multiprocessors.
#[pyfunction]
#[cfg(feature = "gpu")]
fn gpu(number: u32) -> PyResult<(String, Option<&'static str>, u32)> {
    let about = |d: Box<carbyne_embed::Diagnostic>| refused("GPU", "", [*d].into_iter().collect());
    let info = carbyne_launch::info(number).map_err(about)?;
    let own = Arch::ALL.iter().rev().find(|a| a.runs_on(info.capability, true));
    Ok((info.name, own.map(|a| a.as_str()), info.multiprocessors))
}

/// Reports an error: the package was built without GPU support.
#[pyfunction]
#[cfg(not(feature = "gpu"))]
fn gpu(_number: u32) -> PyResult<(String, Option<&'static str>, u32)> {
    Err(refused("GPU", "", [*carbyne_launch::without_gpu()].into_iter().collect()))
}

/// Runs the command line. The first argument is the program name. Returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| {
        let (mut stdin, mut stdout, mut stderr) =
            (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let io = carbyne::Io::plain(&mut stdin, &mut stdout, &mut stderr);
        carbyne::run_on(arguments, &mut carbyne::Io { own_stdin: true, ..io })
    })
}

/// The major and minor version of NVRTC.
#[pyfunction]
fn nvrtc_version() -> PyResult<(i32, i32)> {
    let found = nvrtc::find();
    let found = found.map_err(|d| refused("NVRTC", "", [*d].into_iter().collect()))?;
    Ok(found.version())
}

/// A number that changes with the atom table of an architecture.
#[pyfunction]
fn fingerprint(arch: &str) -> PyResult<u64> {
    Ok(program::table(arch, &[])?.fingerprint())
}

/// Names of architectures, the oldest first.
#[pyfunction]
fn architectures() -> Vec<&'static str> {
    Arch::ALL.iter().map(|arch| arch.as_str()).collect()
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<Source>()?;
    m.add_class::<Found>()?;
    m.add_class::<Function>()?;
    m.add_class::<teir::Teir>()?;
    m.add_function(wrap_pyfunction!(gpu, m)?)?;
    m.add_function(wrap_pyfunction!(nvrtc_version, m)?)?;
    m.add_function(wrap_pyfunction!(calculate, m)?)?;
    m.add_function(wrap_pyfunction!(draw, m)?)?;
    m.add_function(wrap_pyfunction!(main, m)?)?;
    m.add_function(wrap_pyfunction!(fingerprint, m)?)?;
    m.add_function(wrap_pyfunction!(architectures, m)?)
}
