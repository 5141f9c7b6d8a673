//! Allocates, reads and writes buffers in the GPU's memory.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::Gpu;
use super::driver::{Kept, failed};
use crate::Fallible;
use carbyne_ir::diag::{Code, Diagnostic};
use cust::context::CurrentContext;
use cust::memory::{CopyDestination, DeviceBuffer};
use cust::sys;

/// A buffer in the GPU's memory, which is freed when dropped.
pub struct Buffer {
    bytes: Kept<DeviceBuffer<u8>>,
}

impl Gpu {
    /// Allocates memory of this size, aligned to 256 bytes, with arbitrary contents.
    ///
    /// # Errors
    /// [`Code::GpuMemory`].
    pub fn allocate(&self, bytes: usize) -> Fallible<Buffer> {
        // SAFETY: all bytes are valid values of `u8`. Reading them before they are written gives
        // arbitrary values.
        let bytes = unsafe { DeviceBuffer::uninitialized(bytes.max(1)) };
        let bytes = bytes.map_err(|e| failed(e, "the GPU's memory cannot be allocated"))?;
        Ok(Buffer { bytes: Kept::new(bytes) })
    }
}

impl Buffer {
    /// The size in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Always false: a buffer has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The address on the GPU.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.bytes.as_device_ptr().as_raw()
    }

    /// Replaces the contents.
    ///
    /// # Errors
    /// [`Code::BadInput`] for another number of bytes; errors of the driver.
    pub fn write(&mut self, bytes: &[u8]) -> Fallible<()> {
        self.fits(bytes.len())?;
        let copied = self.bytes.copy_from(bytes);
        // The copy returns when the driver has the bytes, which may be before the GPU has them. The
        // GPU's stream does not wait for other streams.
        let copied = copied.and_then(|()| CurrentContext::synchronize());
        copied.map_err(|e| failed(e, "memory cannot be copied to the GPU"))
    }

    /// Reads the contents.
    ///
    /// # Errors
    /// [`Code::BadInput`] for another number of bytes; errors of the driver, including the failure
    /// of an earlier kernel.
    pub fn read(&self, bytes: &mut [u8]) -> Fallible<()> {
        self.fits(bytes.len())?;
        self.bytes.copy_to(bytes).map_err(|e| failed(e, "memory cannot be copied from the GPU"))
    }

    fn fits(&self, n: usize) -> Fallible<()> {
        if n == self.len() {
            return Ok(());
        }
        let text = format!("{n} bytes do not fit a buffer of {} bytes", self.len());
        let help = "use exactly as many bytes as the buffer has";
        Err(Box::new(Diagnostic::new(Code::BadInput, Default::default(), text).help(help)))
    }

    /// Sets all bytes to one value, in the order of the GPU's stream, without waiting.
    pub(super) fn fill_later(&self, gpu: &Gpu, byte: u8) -> Fallible<()> {
        // SAFETY: the address and the length are those of live memory.
        let status = unsafe {
            sys::cuMemsetD8Async(self.address(), byte, self.len(), gpu.stream.as_inner())
        };
        match status {
            sys::cudaError_enum::CUDA_SUCCESS => Ok(()),
            other => Err(super::driver::of_status(other as u32, "memory cannot be filled")),
        }
    }
}
