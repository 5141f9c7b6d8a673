//! The part of the Python package `carbyne` that is Rust: programs, what they are decomposed to,
//! and layout algebra.
//!
//! The package in `../carbyne` wraps it: documents come as JSON texts, arrays as the bytes of
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

/// Name, newest architecture that it runs, and multiprocessors of the GPU of a number.
#[pyfunction]
#[cfg(feature = "gpu")]
fn gpu(number: u32) -> PyResult<(String, Option<&'static str>, u32)> {
    let about = |d: Box<carbyne_embed::Diagnostic>| refused("GPU", "", [*d].into_iter().collect());
    let info = carbyne_launch::info(number).map_err(about)?;
    let own = Arch::ALL.iter().rev().find(|a| a.runs_on(info.capability, true));
    Ok((info.name, own.map(|a| a.as_str()), info.multiprocessors))
}

/// Refuses: the package was built without GPU support.
#[pyfunction]
#[cfg(not(feature = "gpu"))]
fn gpu(_number: u32) -> PyResult<(String, Option<&'static str>, u32)> {
    Err(refused("GPU", "", [*carbyne_launch::without_gpu()].into_iter().collect()))
}

/// The command line; the first argument is the program's own name. Returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<OsString>) -> i32 {
    py.detach(|| {
        let (mut stdin, mut stdout, mut stderr) =
            (std::io::stdin(), std::io::stdout(), std::io::stderr());
        let io = carbyne::Io::plain(&mut stdin, &mut stdout, &mut stderr);
        carbyne::run_on(arguments, &mut carbyne::Io { own_stdin: true, ..io })
    })
}

/// Major and minor version of NVRTC.
#[pyfunction]
fn nvrtc_version() -> PyResult<(i32, i32)> {
    let found = nvrtc::find();
    let found = found.map_err(|d| refused("NVRTC", "", [*d].into_iter().collect()))?;
    Ok(found.version())
}

/// A number that changes with the instructions of an architecture.
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
