//! Launches kernels in the primary context of a device, in streams of the caller, and allocates and
//! frees memory in the order of a stream's work. Other libraries of the process, such as PyTorch,
//! use this context too, so that kernels can access their tensors.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::Module;
use super::driver::of_status;
use crate::{Binary, Fallible, Launch, refused};
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::{Code, Diagnostic};
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::ptr::null_mut;

type Handle = *mut c_void;

// Functions of driver/forwarders.rs, with statuses as integers; see `driver.rs`.
unsafe extern "C" {
    fn cuCtxGetCurrent(context: *mut Handle) -> u32;
    fn cuCtxPushCurrent_v2(context: Handle) -> u32;
    fn cuCtxPopCurrent_v2(context: *mut Handle) -> u32;
    fn cuDevicePrimaryCtxRetain(context: *mut Handle, device: i32) -> u32;
    fn cuLaunchKernel(
        function: Handle,
        grid_x: u32,
        grid_y: u32,
        grid_z: u32,
        block_x: u32,
        block_y: u32,
        block_z: u32,
        shared: u32,
        stream: Handle,
        arguments: *mut Handle,
        extra: *mut Handle,
    ) -> u32;
    fn cuMemAllocFromPoolAsync(
        address: *mut u64,
        bytes: usize,
        pool: Handle,
        stream: Handle,
    ) -> u32;
    fn cuMemFreeAsync(address: u64, stream: Handle) -> u32;
    fn cuMemPoolCreate(pool: *mut Handle, properties: *const PoolProperties) -> u32;
    fn cuMemPoolSetAttribute(pool: Handle, which: u32, value: *const u64) -> u32;
    fn cuStreamSynchronize(stream: Handle) -> u32;
}

/// `CUmemPoolProps`: memory on a device that no other process shares.
#[repr(C)]
struct PoolProperties {
    allocation: u32,
    handles: u32,
    place: u32,
    device: i32,
    security: *const c_void,
    most: usize,
    reserved: [u8; 56],
}

/// `CU_MEM_ALLOCATION_TYPE_PINNED`, `CU_MEM_LOCATION_TYPE_DEVICE`
const PINNED: u32 = 1;
const ON_DEVICE: u32 = 1;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`
const RELEASE_THRESHOLD: u32 = 4;

/// The kernels of a program on a device, in its primary context.
///
/// Context and module are never released: when the process ends, other libraries may still use
/// memory that kernels write.
pub struct Loaded {
    device: i32,
    context: Context,
    functions: Vec<Handle>,
    names: Vec<String>,
    pool: Handle,
}

// SAFETY: any thread may use handles of the driver.
unsafe impl Send for Context {}
// SAFETY: any thread may use handles of the driver.
unsafe impl Send for Loaded {}
// SAFETY: any thread may use handles of the driver, and the driver synchronizes its calls.
unsafe impl Sync for Loaded {}

/// The primary context of a device, which is never released.
#[derive(Copy, Clone)]
pub struct Context(Handle);

/// A guard that keeps the context of a device current until it is dropped.
pub struct Entered(());

impl Drop for Entered {
    fn drop(&mut self) {
        let mut context = null_mut();
        // SAFETY: a context was pushed when the guard was created.
        unsafe { cuCtxPopCurrent_v2(&mut context) };
    }
}

impl Context {
    /// Makes the device's context current in this thread, unless it is current already.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`] after a fork, or if the context was destroyed.
    pub fn enter(&self) -> Fallible<Option<Entered>> {
        let mut current = null_mut();
        // SAFETY: the pointer is live.
        done(unsafe { cuCtxGetCurrent(&mut current) }, "the driver has no context")?;
        if current == self.0 {
            return Ok(None);
        }
        // SAFETY: the context is retained for as long as the process lives.
        done(unsafe { cuCtxPushCurrent_v2(self.0) }, "the context cannot be used")?;
        Ok(Some(Entered(())))
    }

    /// Waits until all work in a stream is complete.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`].
    pub fn wait(&self, stream: u64) -> Fallible<()> {
        let _entered = self.enter()?;
        // SAFETY: the stream is alive.
        done(unsafe { cuStreamSynchronize(stream_of(stream)) }, "the kernels failed")
    }
}

impl Loaded {
    /// Loads kernels on the CUDA device with this index. Creates its primary context if it has
    /// none.
    ///
    /// # Errors
    /// [`Code::NoDriver`], [`Code::NoGpu`], [`Code::WrongGpu`], [`Code::OldDriver`],
    /// [`Code::BadBinary`].
    pub fn new(device: u32, binary: &Binary, kernels: &[CudaKernel]) -> Fallible<Loaded> {
        let driver = super::info(device)?.driver;
        let device = device.cast_signed();
        let mut context = null_mut();
        // SAFETY: the device exists.
        let status = unsafe { cuDevicePrimaryCtxRetain(&mut context, device) };
        done(status, "no context can be created")?;
        let context = Context(context);
        let mut loaded =
            Loaded { device, context, functions: vec![], names: vec![], pool: null_mut() };
        let _entered = context.enter()?;
        // Never unloaded: kernels may still run when this is dropped.
        let module = ManuallyDrop::new(Module::load(binary, driver)?);
        for kernel in kernels {
            let function = module.function(kernel, Launch::of_kernel(kernel, 0)?)?;
            loaded.functions.push(function.inner().to_raw().cast());
            loaded.names.push(kernel.name.clone());
        }
        Ok(loaded)
    }

    /// The index of the device.
    #[must_use]
    pub fn device(&self) -> i32 {
        self.device
    }

    /// The device's context.
    #[must_use]
    pub fn context(&self) -> Context {
        self.context
    }

    /// Enqueues a launch in a stream of the device, whose context is current. Stream 0 is the
    /// legacy default stream.
    ///
    /// # Safety
    /// `arguments` has one pointer per parameter of the kernel, to as many bytes as the parameter
    /// has. Addresses among them are those of memory that the kernel may access. The stream is
    /// alive.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`].
    pub unsafe fn launch(
        &self,
        kernel: usize,
        launch: Launch,
        arguments: &mut [*mut c_void],
        stream: u64,
    ) -> Fallible<()> {
        let Launch { grid, block, shared } = launch;
        // SAFETY: the caller guarantees it; the function belongs to a module that is never
        // unloaded.
        let status = unsafe {
            let (stream, arguments) = (stream_of(stream), arguments.as_mut_ptr());
            let function = self.functions[kernel];
            cuLaunchKernel(function, grid, 1, 1, block, 1, 1, shared, stream, arguments, null_mut())
        };
        match status {
            0 => Ok(()),
            status => Err(failed(status, &format!("`{}` cannot be launched", self.names[kernel]))),
        }
    }

    /// Allocates memory that later work in the stream may use. The context is current.
    ///
    /// # Errors
    /// [`Code::GpuMemory`], [`Code::LaunchFailed`].
    pub fn allocate(&mut self, bytes: u64, stream: u64) -> Fallible<u64> {
        if self.pool.is_null() {
            self.pool = pool(self.device)?;
        }
        let (mut address, bytes) = (0, usize::try_from(bytes).unwrap_or(usize::MAX));
        // SAFETY: the pool belongs to this object.
        let status =
            unsafe { cuMemAllocFromPoolAsync(&mut address, bytes, self.pool, stream_of(stream)) };
        done(status, &format!("a workspace of {bytes} bytes cannot be allocated"))?;
        Ok(address)
    }

    /// Frees memory of [`Loaded::allocate`] after the work that is currently in the stream. The
    /// context is current.
    ///
    /// # Errors
    /// [`Code::LaunchFailed`].
    pub fn free(&self, address: u64, stream: u64) -> Fallible<()> {
        // SAFETY: the address was allocated, and later work does not use it.
        done(unsafe { cuMemFreeAsync(address, stream_of(stream)) }, "memory cannot be freed")
    }
}

/// A memory pool that keeps freed memory.
fn pool(device: i32) -> Fallible<Handle> {
    let mut pool = null_mut();
    let properties = PoolProperties {
        allocation: PINNED,
        handles: 0,
        place: ON_DEVICE,
        device,
        security: null_mut(),
        most: 0,
        reserved: [0; 56],
    };
    // SAFETY: the layout of the properties is that of `cuda.h`.
    done(unsafe { cuMemPoolCreate(&mut pool, &properties) }, "no memory pool can be created")?;
    // SAFETY: the value of this attribute has 64 bits.
    let status = unsafe { cuMemPoolSetAttribute(pool, RELEASE_THRESHOLD, &u64::MAX) };
    done(status, "a memory pool cannot be configured")?;
    Ok(pool)
}

fn stream_of(stream: u64) -> Handle {
    std::ptr::with_exposed_provenance_mut(stream as usize)
}

fn done(status: u32, what: &str) -> Fallible<()> {
    match status {
        0 => Ok(()),
        status => Err(failed(status, what)),
    }
}

/// An error of the driver in a process in which other libraries use it, too.
fn failed(status: u32, what: &str) -> Box<Diagnostic> {
    /// `CUDA_ERROR_NOT_INITIALIZED`, the status in a process that was forked from one that used the
    /// driver.
    const NOT_INITIALIZED: u32 = 3;
    match status {
        NOT_INITIALIZED => refused(
            Code::LaunchFailed,
            format!("{what}: the driver is not initialized"),
            "start the process by `spawn`: a forked process cannot use CUDA",
        ),
        status => of_status(status, what),
    }
}
