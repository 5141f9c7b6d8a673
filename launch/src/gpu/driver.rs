//! What the driver answers, for a person; and things that are not dropped while a kernel hangs.
#![allow(unsafe_code, reason = "the C interface of driver/forwarders.rs")]

use crate::refused;
use carbyne_ir::diag::{Code, Diagnostic};
use cust::error::CudaError;
use std::ffi::{CStr, c_char};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

// Functions of driver/forwarders.rs. `cuGetErrorName` is declared here with a plain integer, as
// statuses are more than `cust_raw`'s enum knows.
unsafe extern "C" {
    safe fn carbyne_driver_is_open() -> bool;
    safe fn carbyne_driver_status() -> u32;
    safe fn carbyne_driver_lacks() -> *const c_char;
    fn cuGetErrorName(status: u32, name: *mut *const c_char) -> u32;
}

const STUB_LIBRARY: u32 = 34;
const NOT_FOUND: u32 = 500;

/// Whether the driver's library is there.
pub(super) fn is_open() -> bool {
    carbyne_driver_is_open()
}

/// There is no driver.
pub(super) fn missing() -> Box<Diagnostic> {
    refused(
        Code::NoDriver,
        "the CUDA driver's library `libcuda.so.1` is not to be found",
        "install NVIDIA's driver on a machine with an NVIDIA GPU; in a container, start it with GPUs",
    )
}

/// A call of the driver that did not succeed. `what` says what it was for.
pub(super) fn failed(error: CudaError, what: &str) -> Box<Diagnostic> {
    // The forwarders know the status that the driver gave; cust's own errors have no other.
    let status = match carbyne_driver_status() {
        0 => error as u32,
        status => status,
    };
    of_status(status, what)
}

/// The same for a status as a number.
pub(super) fn of_status(status: u32, what: &str) -> Box<Diagnostic> {
    if status == STUB_LIBRARY && !is_open() {
        return missing();
    }
    if status == NOT_FOUND
        && let Some(name) = lacks()
    {
        return refused(
            Code::OldDriver,
            format!("the CUDA driver is too old: it lacks `{name}`"),
            "install a newer NVIDIA driver",
        );
    }
    let said = format!("{what}: {}", name_of(status));
    match status {
        2 => refused(Code::GpuMemory, said, "choose smaller sizes, or end what else uses the GPU"),
        100 | 101 => refused(
            Code::NoGpu,
            "the driver offers no GPU",
            "see whether `nvidia-smi` lists one, and unset CUDA_VISIBLE_DEVICES",
        ),
        // No code for this GPU; PTX of a version that the driver does not know; driver and library
        // of different versions.
        209 => refused(Code::WrongGpu, said, "choose the `--arch` of this GPU"),
        222 | 803 | 804 => refused(Code::OldDriver, said, "install a newer NVIDIA driver"),
        700 | 715..=719 => refused(
            Code::LaunchFailed,
            said,
            "run `carbyne simulate`: it finds races, and accesses out of bounds or unaligned",
        ),
        701 => refused(
            Code::LaunchFailed,
            said,
            "give the block fewer threads, registers or bytes of shared memory",
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

/// `CUDA_ERROR_ILLEGAL_ADDRESS`
fn name_of(status: u32) -> String {
    let mut name: *const c_char = ptr::null();
    // SAFETY: `name` is a live pointer; the driver gives a static string, or leaves it null.
    let known = unsafe { cuGetErrorName(status, &mut name) };
    if known != 0 || name.is_null() {
        return format!("status {status}");
    }
    // SAFETY: as the driver says, a string that ends in NUL and lives as long as the driver.
    unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
}

/// Whether a kernel did not end in time. From then on nothing of the driver's is freed: it would
/// wait.
static HANGING: AtomicBool = AtomicBool::new(false);

/// Notes that a kernel hangs.
pub(super) fn hangs() {
    HANGING.store(true, Ordering::Release);
}

/// Whether one does.
pub(super) fn is_hanging() -> bool {
    HANGING.load(Ordering::Acquire)
}

/// Something of the driver's, freed when dropped unless a kernel hangs.
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
