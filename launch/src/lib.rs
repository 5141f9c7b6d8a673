//! Loads compiled kernels on a GPU, launches them and measures their times, through the CUDA
//! driver.
//!
//! Reading order: [`Binary`] (a compiled kernel), [`Arguments`] (its arguments), [`call`] (all
//! kernels of a program as one function of the caller's tensors). With the feature `gpu` there are
//! also the types that run kernels: `Gpu`, `Module`, `Function`, `Buffer`, and `Work`, which can be
//! timed.
//!
//! The crate `cust` binds the driver. Nothing is linked against CUDA: `driver/forwarders.rs`
//! replaces the driver's library and opens it at the first call. A program with the feature `gpu`
//! therefore builds without a toolkit and starts without a driver. A function that needs the driver
//! returns an error if the driver is missing.
//!
//! Clusters need no special launch: a printed kernel states `__cluster_dims__`.
//!
//! Invariant: nothing panics; every error is one diagnostic with a code. Invariant: a function that
//! waits for the GPU waits at most for a time that the caller states for each piece of work. Only
//! `Context::wait`, `Devices::wait` and the copies of `Buffer` have no limit.

#![warn(missing_docs)]

mod arguments;
mod binary;
pub mod call;
#[cfg(feature = "gpu")]
mod gpu;
mod launch;
mod timing;
#[cfg(not(feature = "gpu"))]
mod without_gpu;

pub use arguments::{Arguments, LaidOut, MapValues};
pub use binary::Binary;
pub use launch::Launch;
pub use timing::{Sustained, Timing};
#[cfg(not(feature = "gpu"))]
pub use without_gpu::Devices;

#[cfg(feature = "gpu")]
pub use gpu::{
    Buffer, CUBLAS_VARIABLE, Context, Cublas, CublasLibrary, DeviceInfo, Devices, Entered,
    Epilogue, Function, Gpu, Loaded, Module, Product, Sequence, TensorMap, Transposed, Work, info,
};

/// A result whose error is one diagnostic.
pub type Fallible<T> = carbyne_codegen::Fallible<T>;

/// Whether this build can run kernels.
#[must_use]
pub fn has_gpu_support() -> bool {
    cfg!(feature = "gpu")
}

/// The error of a build without the feature `gpu`.
#[must_use]
pub fn without_gpu() -> Box<carbyne_ir::diag::Diagnostic> {
    use carbyne_ir::diag::{Code, Diagnostic};
    Box::new(
        Diagnostic::new(
            Code::WithoutGpu,
            Default::default(),
            "this carbyne was built without GPU support",
        )
        .help("build it with `cargo build --release --features gpu`, which needs no CUDA toolkit"),
    )
}

/// An error that belongs to no text.
fn refused(
    code: carbyne_ir::diag::Code,
    message: impl Into<String>,
    help: &str,
) -> Box<carbyne_ir::diag::Diagnostic> {
    use carbyne_ir::diag::Diagnostic;
    Box::new(Diagnostic::new(code, Default::default(), message).help(help))
}
