//! Loads compiled kernels on the GPU and prepares them for launches: it finds the function,
//! requests its shared memory, reads its resource usage, and checks the number of its arguments.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::Gpu;
use super::driver::{Kept, failed, of_status};
use crate::{Arguments, Binary, Fallible, Launch, refused};
use carbyne_codegen::CudaKernel;
use carbyne_codegen::nvrtc::Usage;
use carbyne_ir::diag::Code;
use cust::function::FunctionAttribute;
use cust::module::Module as Loaded;
use cust::sys;
use std::ffi::CString;

/// Machine code on the GPU.
pub struct Module {
    loaded: Kept<Loaded>,
}

/// A kernel that can be launched.
pub struct Function<'m> {
    inner: cust::function::Function<'m>,
    name: String,
    n_params: usize,
    usage: Usage,
}

/// Shared memory of a block above this size needs an opt-in.
const SHARED_UNASKED: u32 = 48 << 10;

impl Gpu {
    /// Loads a compiled kernel. The driver compiles PTX.
    ///
    /// # Errors
    /// [`Code::WrongGpu`], [`Code::OldDriver`], [`Code::BadBinary`].
    pub fn load(&self, binary: &Binary) -> Fallible<Module> {
        Module::load(binary, self.info().driver)
    }
}

impl Module {
    /// Loads a compiled kernel in the current context. `driver` is the CUDA version of the driver.
    ///
    /// # Errors
    /// The errors of [`Gpu::load`].
    pub(super) fn load(binary: &Binary, driver: (i32, i32)) -> Fallible<Module> {
        let loaded = match binary {
            Binary::Cubin(bytes) => Loaded::from_cubin(bytes, &[]),
            Binary::Ptx(text) => {
                let text = CString::new(text.as_str()).map_err(|_| {
                    refused(
                        Code::BadBinary,
                        "the PTX contains a NUL byte",
                        "compile the kernel again",
                    )
                })?;
                Loaded::from_ptx_cstr(&text, &[])
            }
        };
        let loaded = loaded.map_err(|e| {
            let mut d = *failed(e, &format!("the {} cannot be loaded", binary.kind()));
            if d.code == Code::LaunchFailed {
                d.code = Code::BadBinary;
                d.help = Some(
                    "compile the kernel again, with a toolkit that is not newer than the driver"
                        .into(),
                );
            }
            let (major, minor) = driver;
            d.note(format!("the driver supports CUDA {major}.{minor}"))
        });
        Ok(Module { loaded: Kept::new(loaded.map_err(Box::new)?) })
    }

    /// The printed kernel, prepared for a launch with its shared memory.
    ///
    /// # Errors
    /// [`Code::BadBinary`] if the module does not contain the kernel, [`Code::LaunchFailed`] for
    /// more shared memory than the GPU has.
    pub fn function(&self, kernel: &CudaKernel, launch: Launch) -> Fallible<Function<'_>> {
        let name = kernel.name.clone();
        if name.contains('\0') {
            return Err(refused(
                Code::BadBinary,
                "a kernel's name contains a NUL byte",
                "rename the kernel",
            ));
        }
        let inner = self.loaded.get_function(&name).map_err(|e| {
            let mut d = failed(e, &format!("the kernel `{name}` is not in the module"));
            if d.code == Code::LaunchFailed {
                d.code = Code::BadBinary;
            }
            d
        })?;
        if launch.shared > SHARED_UNASKED {
            let which = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            // SAFETY: the function belongs to a live module.
            let status = unsafe {
                sys::cuFuncSetAttribute(inner.to_raw(), which, launch.shared.cast_signed())
            };
            if status != sys::cudaError_enum::CUDA_SUCCESS {
                let what = format!("a block cannot have {} bytes of shared memory", launch.shared);
                return Err(of_status(status as u32, &what));
            }
        }
        let attribute = |which| -> u32 {
            inner.get_attribute(which).ok().and_then(|v| u32::try_from(v).ok()).unwrap_or(0)
        };
        let usage = Usage {
            registers: attribute(FunctionAttribute::NumRegisters),
            stack: attribute(FunctionAttribute::LocalSizeBytes),
            static_smem: attribute(FunctionAttribute::SharedMemorySizeBytes),
            ..Usage::default()
        };
        Ok(Function { inner, name, n_params: kernel.params.len(), usage })
    }
}

impl Function<'_> {
    /// Registers, static shared memory and local memory, as the driver reports them. It does not
    /// report spills.
    #[must_use]
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn inner(&self) -> &cust::function::Function<'_> {
        &self.inner
    }

    /// Checks that a launch has the arguments of the kernel, and at least one thread.
    pub(super) fn takes(&self, launch: Launch, arguments: &Arguments) -> Fallible<()> {
        if arguments.len() == self.n_params && launch.block > 0 {
            return Ok(());
        }
        let (name, n) = (&self.name, self.n_params);
        let text = format!("`{name}` takes {n} arguments and blocks of at least one thread");
        Err(refused(Code::LaunchFailed, text, "pass the arguments of the printed kernel"))
    }
}
