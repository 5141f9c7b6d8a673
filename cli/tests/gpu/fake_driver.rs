//! Imitates the CUDA driver for tests on machines without a GPU; `main.rs` compiles this file as
//! `libcuda.so.1`. Its memory is host memory. A launch copies the first argument to the second, 16
//! bytes per thread. With `FAKE_GEMM` (`M,N,K,majors,type of A and B,type of C`), a launch
//! multiplies the first two arguments into the last one; a third input is a bias. `FAKE_DRIVER`
//! selects an error, `FAKE_CRASH` the number of launches before the error, and `FAKE_CAPABILITY`
//! the compute capability. Its clock is simulated: only operations of the device advance it.
#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the driver's own interface")]

#[path = "fake_numbers.rs"]
mod fake_numbers;

use fake_numbers::Type;
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

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
    cuModuleUnload(module: P);
    cuFuncSetAttribute(function: P, which: u32, value: i32);
}

/// The clock in nanoseconds.
static NOW: AtomicU64 = AtomicU64::new(0);

/// The number of launched kernels.
static LAUNCHES: AtomicU64 = AtomicU64::new(0);

fn crashed() -> bool {
    let most = std::env::var("FAKE_CRASH").ok().and_then(|n| n.parse().ok());
    most.is_some_and(|most: u64| LAUNCHES.load(Ordering::Relaxed) > most)
}

/// Advances the clock.
#[unsafe(no_mangle)]
pub extern "C" fn fake_advance(nanoseconds: u64) {
    NOW.fetch_add(nanoseconds, Ordering::Relaxed);
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(_: u64, _: u8, _: usize, _: P) -> u32 {
    fake_advance(50_000);
    0
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
        75 | 76 => {
            let capability = std::env::var("FAKE_CAPABILITY").unwrap_or("8.0".to_owned());
            let part = capability.split('.').nth(usize::from(which != 75));
            part.and_then(|p| p.parse().ok()).unwrap_or(0)
        }
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
    unsafe { *event = Box::into_raw(Box::new(0u64)).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventDestroy_v2(event: P) -> u32 {
    drop(unsafe { Box::from_raw(event.cast::<u64>()) });
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventRecord(event: P, _: P) -> u32 {
    unsafe { *event.cast::<u64>() = NOW.load(Ordering::Relaxed) };
    0
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
        () if goes_wrong("crash") || crashed() => 700,
        // A status that no version of the Rust bindings knows.
        () if goes_wrong("unheard of") => 1234,
        () => 0,
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuEventElapsedTime(milliseconds: *mut f32, start: P, end: P) -> u32 {
    let [start, end] = [start, end].map(|event| unsafe { *event.cast::<u64>() });
    unsafe { *milliseconds = (end - start) as f32 / 1e6 };
    0
}

/// Does nothing: kernels also get the addresses of the tensors.
#[unsafe(no_mangle)]
pub extern "C" fn cuTensorMapEncodeTiled(
    _: P,
    _: u32,
    _: u32,
    _: P,
    _: P,
    _: P,
    _: P,
    _: P,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
) -> u32 {
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
    // 0.5 ms for 128 threads per block, more for more threads.
    LAUNCHES.fetch_add(1, Ordering::Relaxed);
    fake_advance(400_000 + 100_000 * u64::from(bx) / 128);
    if goes_wrong("idle") {
        return 0;
    }
    if let Ok(gemm) = std::env::var("FAKE_GEMM") {
        unsafe { multiply(&gemm, arguments) };
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

/// Multiplies row-major matrices, or column-major ones if `gemm` says so.
unsafe fn multiply(gemm: &str, arguments: *const *const u64) {
    let words: Vec<&str> = gemm.split(',').collect();
    let [m, n, k] = [0, 1, 2].map(|i: usize| words[i].parse::<usize>().unwrap_or(0));
    let (ty, to) = (Type::named(words[4]), Type::named(words[5]));
    let has_bias = words.get(6) == Some(&"bias");
    let argument = |i: usize| unsafe { **arguments.add(i) };
    let (a, b, c) = (argument(0), argument(1), argument(if has_bias { 3 } else { 2 }));
    let (a_by_columns, b_by_columns) = (words[3].starts_with('t'), words[3].ends_with('t'));
    for i in 0..m {
        for j in 0..n {
            let term = |l: usize| unsafe {
                let x = ty.read(a, if a_by_columns { i + l * m } else { i * k + l });
                x * ty.read(b, if b_by_columns { l + j * k } else { l * n + j })
            };
            let mut sum = (0..k).map(term).sum::<f64>();
            if has_bias {
                sum = (sum + unsafe { to.read(argument(2), j) }).max(0.0);
            }
            if goes_wrong("product") && (i, j) == (m / 2, n / 2) {
                sum += 1.0;
            }
            unsafe { to.write(c, i * n + j, sum) };
        }
    }
    if goes_wrong("beyond") {
        unsafe { to.write(c, m * n, 1.0) };
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuGetErrorName(status: u32, name: *mut *const c_char) -> u32 {
    if status != 700 {
        return 1;
    }
    unsafe { *name = c"CUDA_ERROR_ILLEGAL_ADDRESS".as_ptr() };
    0
}
