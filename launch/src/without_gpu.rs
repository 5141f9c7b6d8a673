//! Stands for the parts that run kernels on a GPU where they are not built.

use crate::call::{Place, Plan, Word};
use crate::{Binary, Fallible, without_gpu};
use carbyne_codegen::CudaKernel;

/// Compiled kernels that this build cannot run: all that is asked of them is refused.
pub struct Devices;

impl Devices {
    /// Of compiled kernels.
    #[must_use]
    pub fn new(_: Binary) -> Devices {
        Devices
    }

    /// Refuses to load.
    ///
    /// # Errors
    /// [`without_gpu`], always.
    pub fn load(&self, _device: u32, _: &[CudaKernel]) -> Fallible<()> {
        Err(without_gpu())
    }

    /// Refuses to launch.
    ///
    /// # Safety
    /// Nothing is demanded here; a build with the feature `gpu` does.
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

    /// Refuses to wait.
    ///
    /// # Errors
    /// [`without_gpu`], always.
    pub fn wait(&self, _: Place) -> Fallible<()> {
        Err(without_gpu())
    }
}
