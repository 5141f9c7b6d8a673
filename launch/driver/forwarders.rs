//! Replaces the library of the CUDA driver, `libcuda.so`, at link time. Each function here forwards
//! to the function of the same name in the installed driver.
//!
//! Each function looks up its namesake in `libcuda.so.1` when it is first called. A program that
//! uses `cust` can thus be built without CUDA, start without a driver, and report what is missing.
//! If the library is missing, every function returns 34 (`CUDA_ERROR_STUB_LIBRARY`). A function
//! that the library does not have returns 500 (`CUDA_ERROR_NOT_FOUND`).
//!
//! The build script of `carbyne-launch` compiles this file alone, as a static library. The list
//! contains the functions to which the crate `cust` 0.3 links, and those that `carbyne-launch`
//! calls directly. The linker reports missing ones.
//!
//! Invariant: nothing panics. Invariant: every returned status is a variant of the Rust enum in
//! `cust_raw`. Newer drivers have more statuses; `carbyne_driver_status` returns the original one.
#![no_std]
#![allow(non_snake_case, reason = "the driver's own names")]

use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

type P = *mut c_void;

unsafe extern "C" {
    fn dlopen(file: *const c_char, flags: c_int) -> P;
    fn dlsym(library: P, name: *const c_char) -> P;
}

/// `RTLD_NOW`, equal in glibc and musl.
const NOW: c_int = 2;
const STUB_LIBRARY: u32 = 34;
const NOT_FOUND: u32 = 500;
const UNKNOWN: u32 = 999;
/// Marks a library or function that was searched and not found.
const ABSENT: P = 1 as P;

static LIBRARY: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
/// The last status other than 0.
static STATUS: AtomicU32 = AtomicU32::new(0);
/// The name of the last function that the library does not have.
static LACKING: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

fn library() -> P {
    let known = LIBRARY.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the names end in NUL; the driver's initializers have no preconditions. Two threads
    // that call this at once get the same library.
    let mut found = unsafe { dlopen(c"libcuda.so.1".as_ptr(), NOW) };
    if found.is_null() {
        // SAFETY: as above.
        found = unsafe { dlopen(c"libcuda.so".as_ptr(), NOW) };
    }
    let found = if found.is_null() { ABSENT } else { found };
    LIBRARY.store(found, Ordering::Release);
    found
}

/// The function with this name, or the status that tells why it cannot be called.
fn resolve(slot: &AtomicPtr<c_void>, name: *const c_char) -> Result<P, u32> {
    let known = slot.load(Ordering::Acquire);
    if !known.is_null() && known != ABSENT {
        return Ok(known);
    }
    let library = library();
    if library == ABSENT {
        return Err(note(STUB_LIBRARY));
    }
    // SAFETY: `library` is open and stays so; the name ends in NUL.
    let found = unsafe { dlsym(library, name) };
    if found.is_null() {
        slot.store(ABSENT, Ordering::Release);
        LACKING.store(name.cast_mut().cast(), Ordering::Release);
        return Err(note(NOT_FOUND));
    }
    slot.store(found, Ordering::Release);
    Ok(found)
}

/// Stores a status, and maps it to one that `cust_raw` knows.
fn note(status: u32) -> u32 {
    if status == 0 {
        return 0;
    }
    STATUS.store(status, Ordering::Release);
    match status {
        1..=8 | 34 | 100..=102 | 200..=202 | 205..=224 | 300..=304 | 400..=401 => status,
        500 | 600 | 700..=705 | 708..=720 | 800..=809 | 900..=911 | 999 => status,
        _ => UNKNOWN,
    }
}

/// Whether the driver's library is open.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_driver_is_open() -> bool {
    library() != ABSENT
}

/// The last status other than success of any function; 0 if all calls succeeded.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_driver_status() -> u32 {
    STATUS.load(Ordering::Acquire)
}

/// The name of the last function that the library does not have, a static string; null if it has
/// all functions.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_driver_lacks() -> *const c_char {
    LACKING.load(Ordering::Acquire).cast_const().cast()
}

macro_rules! forward {
    ($($name:ident($($type:ty),*) [$($arg:ident)*];)*) => { $(
        /// Forwards to the driver's function with this name.
        ///
        /// # Safety
        /// The conditions of the driver's function.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> u32 {
            static SLOT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
            match resolve(&SLOT, concat!(stringify!($name), "\0").as_ptr().cast()) {
                Ok(found) => {
                    // SAFETY: the driver exports the function with this signature (`cuda.h`). The
                    // enums and handles of `cust_raw` are 32-bit integers and pointers in C.
                    let f: unsafe extern "C" fn($($type),*) -> u32 =
                        unsafe { core::mem::transmute(found) };
                    // SAFETY: the caller meets the driver's conditions.
                    note(unsafe { f($($arg),*) })
                }
                Err(status) => status,
            }
        }
    )* };
}

forward! {
    cuArray3DCreate_v2(P, P) [a b];
    cuArray3DGetDescriptor_v2(P, P) [a b];
    cuArrayDestroy(P) [a];
    cuCtxCreate_v2(P, u32, i32) [a b c];
    cuCtxDestroy_v2(P) [a];
    cuCtxGetApiVersion(P, P) [a b];
    cuCtxGetCacheConfig(P) [a];
    cuCtxGetCurrent(P) [a];
    cuCtxGetDevice(P) [a];
    cuCtxGetFlags(P) [a];
    cuCtxGetLimit(P, u32) [a b];
    cuCtxGetSharedMemConfig(P) [a];
    cuCtxGetStreamPriorityRange(P, P) [a b];
    cuCtxPopCurrent_v2(P) [a];
    cuCtxPushCurrent_v2(P) [a];
    cuCtxSetCacheConfig(u32) [a];
    cuCtxSetCurrent(P) [a];
    cuCtxSetLimit(u32, usize) [a b];
    cuCtxSetSharedMemConfig(u32) [a];
    cuCtxSynchronize() [];
    cuDestroyExternalMemory(P) [a];
    cuDeviceGet(P, i32) [a b];
    cuDeviceGetAttribute(P, u32, i32) [a b c];
    cuDeviceGetCount(P) [a];
    cuDeviceGetName(P, i32, i32) [a b c];
    cuDevicePrimaryCtxRelease_v2(i32) [a];
    cuDevicePrimaryCtxReset_v2(i32) [a];
    cuDevicePrimaryCtxRetain(P, i32) [a b];
    cuDevicePrimaryCtxSetFlags_v2(i32, u32) [a b];
    cuDeviceTotalMem_v2(P, i32) [a b];
    cuDriverGetVersion(P) [a];
    cuEventCreate(P, u32) [a b];
    cuEventDestroy_v2(P) [a];
    cuEventElapsedTime(P, P, P) [a b c];
    cuEventQuery(P) [a];
    cuEventRecord(P, P) [a b];
    cuEventSynchronize(P) [a];
    cuExternalMemoryGetMappedBuffer(P, P, P) [a b c];
    cuFuncGetAttribute(P, u32, P) [a b c];
    cuFuncSetAttribute(P, u32, i32) [a b c];
    cuFuncSetCacheConfig(P, u32) [a b];
    cuFuncSetSharedMemConfig(P, u32) [a b];
    cuGetErrorName(u32, P) [a b];
    cuGetErrorString(u32, P) [a b];
    cuGraphAddKernelNode(P, P, P, usize, P) [a b c d e];
    cuGraphCreate(P, u32) [a b];
    cuGraphDebugDotPrint(P, P, u32) [a b c];
    cuGraphDestroy(P) [a];
    cuGraphGetEdges(P, P, P, P) [a b c d];
    cuGraphGetNodes(P, P, P) [a b c];
    cuGraphKernelNodeGetParams(P, P) [a b];
    cuGraphNodeGetType(P, P) [a b];
    cuImportExternalMemory(P, P) [a b];
    cuInit(u32) [a];
    cuLaunchHostFunc(P, P, P) [a b c];
    cuLaunchKernel(P, u32, u32, u32, u32, u32, u32, u32, P, P, P) [a b c d e f g h i j k];
    cuLinkAddData_v2(P, u32, P, usize, P, u32, P, P) [a b c d e f g h];
    cuLinkComplete(P, P, P) [a b c];
    cuLinkCreate_v2(u32, P, P, P) [a b c d];
    cuLinkDestroy(P) [a];
    cuMemAdvise(u64, usize, u32, i32) [a b c d];
    cuMemAllocAsync(P, usize, P) [a b c];
    cuMemAllocFromPoolAsync(P, usize, P, P) [a b c d];
    cuMemAllocHost_v2(P, usize) [a b];
    cuMemAllocManaged(P, usize, u32) [a b c];
    cuMemAlloc_v2(P, usize) [a b];
    cuMemFreeAsync(u64, P) [a b];
    cuMemFreeHost(P) [a];
    cuMemFree_v2(u64) [a];
    cuMemGetInfo_v2(P, P) [a b];
    cuMemPoolCreate(P, P) [a b];
    cuMemPoolSetAttribute(P, u32, P) [a b c];
    cuMemPrefetchAsync(u64, usize, i32, P) [a b c d];
    cuMemcpy2D_v2(P) [a];
    cuMemcpyAtoH_v2(P, P, usize, usize) [a b c d];
    cuMemcpyDtoDAsync_v2(u64, u64, usize, P) [a b c d];
    cuMemcpyDtoD_v2(u64, u64, usize) [a b c];
    cuMemcpyDtoHAsync_v2(P, u64, usize, P) [a b c d];
    cuMemcpyDtoH_v2(P, u64, usize) [a b c];
    cuMemcpyHtoA_v2(P, usize, P, usize) [a b c d];
    cuMemcpyHtoDAsync_v2(u64, P, usize, P) [a b c d];
    cuMemcpyHtoD_v2(u64, P, usize) [a b c];
    cuMemsetD16Async(u64, u16, usize, P) [a b c d];
    cuMemsetD16_v2(u64, u16, usize) [a b c];
    cuMemsetD32Async(u64, u32, usize, P) [a b c d];
    cuMemsetD32_v2(u64, u32, usize) [a b c];
    cuMemsetD8Async(u64, u8, usize, P) [a b c d];
    cuMemsetD8_v2(u64, u8, usize) [a b c];
    cuModuleGetFunction(P, P, P) [a b c];
    cuModuleGetGlobal_v2(P, P, P, P) [a b c d];
    cuModuleLoad(P, P) [a b];
    cuModuleLoadData(P, P) [a b];
    cuModuleLoadDataEx(P, P, u32, P, P) [a b c d e];
    cuModuleUnload(P) [a];
    cuOccupancyAvailableDynamicSMemPerBlock(P, P, i32, i32) [a b c d];
    cuOccupancyMaxActiveBlocksPerMultiprocessor(P, P, i32, usize) [a b c d];
    cuOccupancyMaxPotentialBlockSize(P, P, P, P, usize, i32) [a b c d e f];
    cuStreamCreateWithPriority(P, u32, i32) [a b c];
    cuStreamDestroy_v2(P) [a];
    cuStreamGetFlags(P, P) [a b];
    cuStreamGetPriority(P, P) [a b];
    cuStreamSynchronize(P) [a];
    cuStreamWaitEvent(P, P, u32) [a b c];
    cuSurfObjectCreate(P, P) [a b];
    cuSurfObjectDestroy(u64) [a];
    cuSurfObjectGetResourceDesc(P, u64) [a b];
    cuTensorMapEncodeTiled(P, u32, u32, P, P, P, P, P, u32, u32, u32, u32)
        [a b c d e f g h i j k l];
    cuTexObjectCreate(P, P, P, P) [a b c d];
    cuTexObjectDestroy(u64) [a];
    cuTexObjectGetResourceDesc(P, u64) [a b];
    cuTexObjectGetResourceViewDesc(P, u64) [a b];
}
