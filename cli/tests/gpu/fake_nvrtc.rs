//! Imitates NVRTC for tests, without a compiler. Its machine code is the text that it is given,
//! after the magic number of an ELF file. `bench.rs` compiles this file.
#![allow(non_snake_case, clippy::missing_safety_doc, reason = "the library's own interface")]

use std::ffi::{CStr, c_char, c_int, c_void};

type P = *mut c_void;

/// A program and the messages of ptxas about it.
struct Program {
    source: Vec<u8>,
    log: String,
}

unsafe fn program<'a>(program: P) -> &'a Program {
    unsafe { &*program.cast::<Program>() }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) -> c_int {
    unsafe { (*major, *minor) = (12, 9) };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn nvrtcGetErrorString(_: c_int) -> *const c_char {
    c"NVRTC_ERROR_COMPILATION".as_ptr()
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCreateProgram(
    to: *mut P,
    source: *const c_char,
    _: *const c_char,
    _: c_int,
    _: P,
    _: P,
) -> c_int {
    let source = [b"\x7fELF ", unsafe { CStr::from_ptr(source) }.to_bytes()].concat();
    unsafe { *to = Box::into_raw(Box::new(Program { source, log: String::new() })).cast() };
    0
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcCompileProgram(of: P, _: c_int, _: P) -> c_int {
    let of = unsafe { &mut *of.cast::<Program>() };
    let text = String::from_utf8_lossy(&of.source);
    // The name follows `__global__ void __launch_bounds__(..)` on the next line.
    let name = text.lines().skip_while(|l| !l.contains("__global__")).nth(1).unwrap_or_default();
    let name = name.split('(').next().unwrap_or_default();
    of.log = format!(
        "ptxas info    : Compiling entry function '{name}' for 'sm_80'\n\
         ptxas info    : Function properties for {name}\n    \
         0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads\n\
         ptxas info    : Used 128 registers, used 1 barriers, 384 bytes cmem[0]\n"
    );
    if std::env::var_os("FAKE_NVRTC").is_some() { 6 } else { 0 }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvrtcDestroyProgram(of: *mut P) -> c_int {
    drop(unsafe { Box::from_raw((*of).cast::<Program>()) });
    0
}

macro_rules! output {
    ($size:ident, $get:ident, $of:ident => $bytes:expr) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $size(of: P, to: *mut usize) -> c_int {
            let $of = unsafe { program(of) };
            unsafe { *to = $bytes.len() };
            0
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(of: P, to: *mut u8) -> c_int {
            let $of = unsafe { program(of) };
            unsafe { $bytes.as_ptr().copy_to(to, $bytes.len()) };
            0
        }
    };
}

output!(nvrtcGetProgramLogSize, nvrtcGetProgramLog, of => of.log.as_bytes());
output!(nvrtcGetPTXSize, nvrtcGetPTX, of => of.source);
output!(nvrtcGetCUBINSize, nvrtcGetCUBIN, of => of.source);
