//! Loads, launches and times printed kernels on a GPU, through the CUDA driver.
//!
//! Reading order: [`Binary`] (what is loaded), [`Arguments`] (what a kernel is given), and with the
//! [`call`] (all kernels of a program as one function of the caller's tensors), and with the
//! feature `gpu` the types that run it: `Gpu`, `Module`, `Function`, `Buffer`; `Work` is what can
//! be timed.
//!
//! The driver is reached through the crate `cust`. Nothing is linked against CUDA:
//! `driver/forwarders.rs` stands in for the driver's library and opens it at the first call, so a
//! program with the feature `gpu` builds without a toolkit, starts without a driver, and says what
//! is missing.
//!
//! Clusters need no call of their own: a printed kernel states `__cluster_dims__`.
//!
//! Invariant: nothing panics; every refusal is one coded diagnostic. Invariant: a function that
//! waits for the GPU waits for each piece of work for a time that the caller states, and no longer;
//! only `Context::wait` waits without an end.

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

/// What a build without the feature `gpu` answers.
#[must_use]
pub fn without_gpu() -> Box<carbyne_ir::diag::Diagnostic> {
    use carbyne_ir::diag::{Code, Diagnostic};
    Box::new(
        Diagnostic::new(
            Code::WithoutGpu,
            Default::default(),
            "this carbyne was built without the part that runs kernels on a GPU",
        )
        .help("build it with `cargo build --release --features gpu`; that needs no CUDA toolkit"),
    )
}

/// An error outside of any text.
fn refused(
    code: carbyne_ir::diag::Code,
    message: impl Into<String>,
    help: &str,
) -> Box<carbyne_ir::diag::Diagnostic> {
    use carbyne_ir::diag::Diagnostic;
    Box::new(Diagnostic::new(code, Default::default(), message).help(help))
}
