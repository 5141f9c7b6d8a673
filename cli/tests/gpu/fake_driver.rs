//! A CUDA driver without a GPU, for tests: memory is the host's, and a launch copies the first argument to
//! the second, 16 bytes a thread. `FAKE_DRIVER` says what goes wrong. Compiled by the test beside it.
#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the driver's own interface")]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::Mutex;

type P = *mut c_void;

fn goes_wrong(how: &str) -> bool {
    std::env::var("FAKE_DRIVER").is_ok_and(|v| v == how)
}

static SIZES: Mutex<Option<HashMap<u64, usize>>> = Mutex::new(None);

macro_rules! fine {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $type),*) -> u32 { 0 }
    )* };
}

fine! {
    cuDevicePrimaryCtxRelease_v2(device: i32);
    cuCtxSetCurrent(context: P);
    cuCtxSynchronize();
    cuStreamDestroy_v2(stream: P);
    cuMemsetD8Async(at: u64, byte: u8, n: usize, stream: P);
    cuModuleUnload(module: P);
    cuFuncSetAttribute(function: P, which: u32, value: i32);
    cuEventDestroy_v2(event: P);
    cuEventRecord(event: P, stream: P);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_: u32) -> u32 {
    if goes_wrong("no device") { 100 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDriverGetVersion(version: *mut i32) -> u32 {
    unsafe { *version = if goes_wrong("old") { 10020 } else { 12090 } };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetCount(n: *mut i32) -> u32 {
    unsafe { *n = 1 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut i32, number: i32) -> u32 {
    unsafe { *device = number };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetAttribute(value: *mut i32, which: u32, _: i32) -> u32 {
    let answer = match which {
        75 => 8,
        76 => 0,
        38 => 1 << 20,
        _ => 4,
    };
    unsafe { *value = answer };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: i32, _: i32) -> u32 {
    unsafe { c"Fake GPU".as_ptr().copy_to(name, 9) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDeviceTotalMem_v2(bytes: *mut usize, _: i32) -> u32 {
    unsafe { *bytes = 1 << 30 };
    0
}

unsafe fn handle(to: *mut P) -> u32 {
    unsafe { *to = std::ptr::without_provenance_mut(8) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut P, _: i32) -> u32 {
    unsafe { handle(context) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut P, _: u32, _: i32) -> u32 {
    unsafe { handle(stream) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventCreate(event: *mut P, _: u32) -> u32 {
    unsafe { handle(event) }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 256).unwrap_or(Layout::new::<u8>())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemAlloc_v2(at: *mut u64, bytes: usize) -> u32 {
    if goes_wrong("memory") {
        return 2;
    }
    let made = unsafe { alloc(layout(bytes)) }.expose_provenance() as u64;
    unsafe { *at = made };
    SIZES.lock().map(|mut s| s.get_or_insert_default().insert(made, bytes)).map_or(999, |_| 0)
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemFree_v2(at: u64) -> u32 {
    let size = SIZES.lock().ok().and_then(|mut s| s.get_or_insert_default().remove(&at));
    let Some(size) = size else { return 1 };
    unsafe { dealloc(std::ptr::with_exposed_provenance_mut(at as usize), layout(size)) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyHtoD_v2(to: u64, from: *const u8, n: usize) -> u32 {
    unsafe { from.copy_to(std::ptr::with_exposed_provenance_mut(to as usize), n) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuMemcpyDtoH_v2(to: *mut u8, from: u64, n: usize) -> u32 {
    unsafe { to.copy_from(std::ptr::with_exposed_provenance(from as usize), n) };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleLoadDataEx(module: *mut P, _: P, _: u32, _: P, _: P) -> u32 {
    if goes_wrong("binary") { 209 } else { unsafe { handle(module) } }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuModuleGetFunction(function: *mut P, _: P, _: *const c_char) -> u32 {
    unsafe { handle(function) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuFuncGetAttribute(value: *mut i32, _: u32, _: P) -> u32 {
    unsafe { *value = 24 };
    0
}

#[cfg(not(lacking))]
#[unsafe(no_mangle)]
pub extern "C" fn cuEventQuery(_: P) -> u32 {
    match () {
        () if goes_wrong("endless") => 600,
        () if goes_wrong("crash") => 700,
        // A status that no version of the Rust bindings knows.
        () if goes_wrong("unheard of") => 1234,
        () => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, _: P, _: P) -> u32 {
    unsafe { *milliseconds = 0.5 };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuLaunchKernel(
    _: P,
    gx: u32,
    _: u32,
    _: u32,
    bx: u32,
    _: u32,
    _: u32,
    _: u32,
    _: P,
    arguments: *const *const u64,
    _: P,
) -> u32 {
    if goes_wrong("idle") {
        return 0;
    }
    let n = gx as usize * bx as usize * 16;
    unsafe {
        let from: *const u8 = std::ptr::with_exposed_provenance(**arguments as usize);
        let to: *mut u8 = std::ptr::with_exposed_provenance_mut(**arguments.add(1) as usize);
        to.copy_from(from, n);
        if goes_wrong("beyond") {
            to.add(n).write(0);
        }
    }
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(status: u32, name: *mut *const c_char) -> u32 {
    if status != 700 {
        return 1;
    }
    unsafe { *name = c"CUDA_ERROR_ILLEGAL_ADDRESS".as_ptr() };
    0
}
