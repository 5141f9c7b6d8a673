//! Keeps the compiled kernels of a call for several GPUs. They are loaded on a GPU by
//! [`Devices::load`], or else when they are first launched there. A launch takes the plan of a call
//! ([`Plan`]). It also allocates the workspace of the plan, the memory for tensors between kernels,
//! and frees it in the order of the stream.

use super::{Loaded, TensorMap};
use crate::call::{Place, Plan, Word};
use crate::{Binary, Fallible, refused};
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::Code;
use std::sync::{Mutex, PoisonError};

/// Compiled kernels, which are loaded on a device when they are first launched there.
pub struct Devices {
    binary: Binary,
    loaded: Mutex<Vec<Loaded>>,
}

impl Devices {
    /// Kernels that are not loaded on any device yet.
    #[must_use]
    pub fn new(binary: Binary) -> Devices {
        Devices { binary, loaded: Mutex::default() }
    }

    /// Loads the kernels on a device, unless they are loaded there. A launch also loads them, but
    /// cannot do so while a stream is captured.
    ///
    /// # Errors
    /// The errors of [`Loaded::new`].
    pub fn load(&self, device: u32, kernels: &[CudaKernel]) -> Fallible<()> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        self.find(&mut loaded, device.cast_signed(), kernels).map(|_| ())
    }

    fn find<'a>(
        &self,
        loaded: &'a mut Vec<Loaded>,
        device: i32,
        kernels: &[CudaKernel],
    ) -> Fallible<&'a mut Loaded> {
        let i = match loaded.iter().position(|l| l.device() == device) {
            Some(i) => i,
            None => {
                let number = u32::try_from(device).unwrap_or(u32::MAX);
                loaded.push(Loaded::new(number, &self.binary, kernels)?);
                loaded.len() - 1
            }
        };
        Ok(&mut loaded[i])
    }

    /// Enqueues all launches of a plan in a stream of a device, without waiting for them.
    ///
    /// # Safety
    /// The tensors lie at the addresses in `given`, and have the types, shapes and strides of the
    /// plan. Nothing else accesses them in a way that conflicts with the kernels. The stream is
    /// alive.
    ///
    /// # Errors
    /// [`Code::BadInput`] for a tensor that is not aligned or lies on another device; those of
    /// [`Loaded`].
    #[expect(unsafe_code, reason = "the CUDA driver's interface")]
    pub unsafe fn launch(
        &self,
        plan: &mut Plan,
        kernels: &[CudaKernel],
        given: &[Word],
        place: Place,
    ) -> Fallible<()> {
        let Place { device, stream } = place;
        plan.check(given)?;
        if !device.is_cuda() {
            let text = format!("the tensors lie on {device}, but kernels run on a CUDA device");
            return Err(refused(Code::BadInput, text, "move the tensors to a GPU"));
        }
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = self.find(&mut loaded, device.number, kernels)?;
        let _entered = loaded.context().enter()?;
        let (bytes, unit) = plan.workspace();
        // The driver's alignment may be less than that of a tensor.
        let all = bytes + unit;
        let memory = if bytes > 0 { loaded.allocate(all, stream)? } else { 0 };
        let workspace = memory.next_multiple_of(unit);
        let encode = |values: &_| Ok(TensorMap::encode(values)?.words());
        let launched = plan.launch(given, workspace, encode, |kernel, launch, arguments| {
            // SAFETY: the plan gives each kernel the arguments with which it was printed, and the
            // caller guarantees the rest.
            unsafe { loaded.launch(kernel, launch, arguments, stream) }
        });
        let freed = if bytes > 0 { loaded.free(memory, stream) } else { Ok(()) };
        launched.and(freed)
    }

    /// Waits until all work in a stream is complete, without a limit. Kernels must have been
    /// launched on the device.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`].
    pub fn wait(&self, place: Place) -> Fallible<()> {
        // The lock is released, so that other threads can launch.
        let context = {
            let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
            let own = loaded.iter_mut().find(|l| l.device() == place.device.number);
            own.map(|l| l.context())
        };
        context.map_or(Ok(()), |context| context.wait(place.stream))
    }
}
