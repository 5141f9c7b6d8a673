//! Converts error statuses of the CUDA driver to diagnostics, and keeps objects of the driver alive
//! while a kernel hangs, because freeing them would wait for the kernel.
#![allow(unsafe_code, reason = "the C interface of driver/forwarders.rs")]

use crate::refused;
use carbyne_ir::diag::{Code, Diagnostic};
use cust::error::CudaError;
use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

// Functions of driver/forwarders.rs. `cuGetErrorName` is declared here with a plain integer,
// because `cust_raw`'s enum does not contain all statuses.
unsafe extern "C" {
    safe fn carbyne_driver_is_open() -> bool;
    safe fn carbyne_driver_status() -> u32;
    safe fn carbyne_driver_lacks() -> *const c_char;
    fn cuGetErrorName(status: u32, name: *mut *const c_char) -> u32;
}

const STUB_LIBRARY: u32 = 34;
const NOT_FOUND: u32 = 500;

/// Whether the driver's library is available.
pub(super) fn is_open() -> bool {
    carbyne_driver_is_open()
}

/// The error that there is no driver.
pub(super) fn missing() -> Box<Diagnostic> {
    refused(
        Code::NoDriver,
        "the CUDA driver's library `libcuda.so.1` was not found",
        "install NVIDIA's driver on a machine with an NVIDIA GPU, or start the container with GPUs",
    )
}

/// The error of a driver call that failed. `what` describes the call.
pub(super) fn failed(error: CudaError, what: &str) -> Box<Diagnostic> {
    // The forwarders store the original status of the driver. Errors of `cust` itself have no other
    // status.
    let status = match carbyne_driver_status() {
        0 => error as u32,
        status => status,
    };
    of_status(status, what)
}

/// The error for a status as a number.
pub(super) fn of_status(status: u32, what: &str) -> Box<Diagnostic> {
    if status == STUB_LIBRARY && !is_open() {
        return missing();
    }
    if status == NOT_FOUND
        && let Some(name) = lacks()
    {
        return refused(
            Code::OldDriver,
            format!("the CUDA driver is too old: it does not have `{name}`"),
            "install a newer NVIDIA driver",
        );
    }
    let said = format!("{what}: {}", name_of(status));
    match status {
        2 => refused(Code::GpuMemory, said, "use smaller sizes, or end other programs on the GPU"),
        100 | 101 => refused(
            Code::NoGpu,
            "the driver finds no GPU",
            "check that `nvidia-smi` lists a GPU, and unset CUDA_VISIBLE_DEVICES",
        ),
        // 209: no code for this GPU. 222: PTX of a version that the driver does not know. 803, 804:
        // driver and library of different versions.
        209 => refused(Code::WrongGpu, said, "set `--arch` to the architecture of this GPU"),
        222 | 803 | 804 => refused(Code::OldDriver, said, "install a newer NVIDIA driver"),
        700 | 715..=719 => refused(
            Code::LaunchFailed,
            said,
            "run `carbyne simulate` to find races and accesses that are out of bounds or unaligned",
        ),
        701 => refused(
            Code::LaunchFailed,
            said,
            "reduce the threads, the registers or the shared memory of the block",
        ),
        _ => refused(
            Code::LaunchFailed,
            said,
            "look the status up in the documentation of the CUDA driver",
        ),
    }
}

fn lacks() -> Option<String> {
    let name = carbyne_driver_lacks();
    if name.is_null() {
        return None;
    }
    // SAFETY: a static string of the forwarders that ends in NUL.
    Some(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned())
}

/// The name of a status: `CUDA_ERROR_ILLEGAL_ADDRESS`.
fn name_of(status: u32) -> String {
    let mut name: *const c_char = ptr::null();
    // SAFETY: `name` is a live pointer; the driver stores a static string or leaves it null.
    let known = unsafe { cuGetErrorName(status, &mut name) };
    if known != 0 || name.is_null() {
        return format!("status {status}");
    }
    // SAFETY: according to the driver, a string that ends in NUL and lives as long as the driver.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// Whether a kernel has exceeded its time limit. From then on no object of the driver is freed,
/// because freeing would wait for the kernel.
static HANGING: AtomicBool = AtomicBool::new(false);

/// Notes that a kernel hangs.
pub(super) fn hangs() {
    HANGING.store(true, Ordering::Release);
}

/// Whether a kernel hangs.
pub(super) fn is_hanging() -> bool {
    HANGING.load(Ordering::Acquire)
}

/// An object of the driver that is freed when dropped, unless a kernel hangs.
pub(super) struct Kept<T>(ManuallyDrop<T>);

impl<T> Kept<T> {
    pub(super) fn new(value: T) -> Self {
        Kept(ManuallyDrop::new(value))
    }
}

impl<T> Deref for Kept<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if !is_hanging() {
            // SAFETY: dropped once, here, and not used afterwards.
            unsafe { ManuallyDrop::drop(&mut self.0) };
        }
    }
}
