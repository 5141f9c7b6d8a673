//! Replaces [`Devices`], the compiled kernels on GPUs, in builds without the feature `gpu`. Its
//! functions `load`, `launch` and `wait` always return an error, so that `call` needs no
//! conditional compilation. The other types for GPUs do not exist in such builds.

use crate::call::{Place, Plan, Word};
use crate::{Binary, Fallible, without_gpu};
use carbyne_codegen::CudaKernel;

/// Compiled kernels that this build cannot run. All functions return an error.
pub struct Devices;

impl Devices {
    /// Takes compiled kernels.
    #[must_use]
    pub fn new(_: Binary) -> Devices {
        Devices
    }

    /// Returns an error.
    ///
    /// # Errors
    /// [`without_gpu`], always.
    pub fn load(&self, _device: u32, _: &[CudaKernel]) -> Fallible<()> {
        Err(without_gpu())
    }

    /// Returns an error.
    ///
    /// # Safety
    /// No conditions; a build with the feature `gpu` has some.
    ///
    /// # Errors
    /// [`without_gpu`], always.
    #[expect(unsafe_code, reason = "the function of a build with the feature `gpu`")]
    pub unsafe fn launch(
        &self,
        _: &mut Plan,
        _: &[CudaKernel],
        _: &[Word],
        _: Place,
    ) -> Fallible<()> {
        Err(without_gpu())
    }

    /// Returns an error.
    ///
    /// # Errors
    /// [`without_gpu`], always.
    pub fn wait(&self, _: Place) -> Fallible<()> {
        Err(without_gpu())
    }
}
