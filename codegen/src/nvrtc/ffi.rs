//! Binds NVRTC's C functions, which are loaded at run time ([`Functions`]).
//!
//! The crate does not use `cudarc`, whose `nvrtc` module binds the same functions. Its loader takes
//! no path and panics if the library or a symbol is missing. Its safe wrapper offers neither CUBIN
//! nor the log of a successful compilation, in which ptxas reports registers and spills.
//!
//! Invariant: this is the only file of the crate with `unsafe`. Nothing in it panics: a missing
//! library or symbol is an [`OpenError`].
#![allow(unsafe_code, reason = "the C interface of NVRTC")]

use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;

type Program = *mut std::ffi::c_void;
type Status = c_int;
type SizeOf = unsafe extern "C" fn(Program, *mut usize) -> Status;
type CopyTo = unsafe extern "C" fn(Program, *mut c_char) -> Status;

/// NVRTC's functions, with the signatures in `nvrtc.h` of CUDA 12.9 (unchanged since CUDA 11.2).
pub(super) struct Functions {
    version: unsafe extern "C" fn(*mut c_int, *mut c_int) -> Status,
    error_string: unsafe extern "C" fn(Status) -> *const c_char,
    create: unsafe extern "C" fn(
        *mut Program,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> Status,
    compile: unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status,
    destroy: unsafe extern "C" fn(*mut Program) -> Status,
    log_size: SizeOf,
    log: CopyTo,
    ptx_size: SizeOf,
    ptx: CopyTo,
    cubin_size: SizeOf,
    cubin: CopyTo,
    /// Keeps the functions mapped; dropped after them.
    _library: Library,
}

/// The reason why a file is not a usable NVRTC.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    /// The error of the dynamic loader.
    #[error("{0}")]
    Load(#[from] libloading::Error),
    /// The library has all symbols but does not return its version.
    #[error("the library does not report its version (status {0})")]
    Version(Status),
}

/// A status of NVRTC that reports a failure.
pub(super) struct Failure {
    /// NVRTC's name of the status, such as `NVRTC_ERROR_COMPILATION`.
    pub(super) status: String,
}

/// The outputs of [`Functions::run`].
pub(super) struct Outputs {
    /// Messages of the compiler and of ptxas.
    pub(super) log: String,
    /// Empty if the compilation failed.
    pub(super) ptx: Vec<u8>,
    /// Empty if the compilation failed or the target is virtual.
    pub(super) cubin: Vec<u8>,
    /// The status of the compilation.
    pub(super) result: Result<(), Failure>,
}

impl Functions {
    /// Opens the library at `path`. The loader searches for a bare file name.
    pub(super) fn open(path: &Path) -> Result<(Functions, (i32, i32)), OpenError> {
        // SAFETY: loading runs the library's initializers. The path was named by the user or is a
        // well-known place of NVIDIA's own library, whose initializers have no preconditions.
        let library = unsafe { Library::new(path) }?;
        macro_rules! symbol {
            ($name:literal) => {
                // SAFETY: the type is that of the function in `nvrtc.h`; the copied pointer lives
                // no longer than `library`, which is owned by the same struct.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }?
            };
        }
        let functions = Functions {
            version: symbol!("nvrtcVersion"),
            error_string: symbol!("nvrtcGetErrorString"),
            create: symbol!("nvrtcCreateProgram"),
            compile: symbol!("nvrtcCompileProgram"),
            destroy: symbol!("nvrtcDestroyProgram"),
            log_size: symbol!("nvrtcGetProgramLogSize"),
            log: symbol!("nvrtcGetProgramLog"),
            ptx_size: symbol!("nvrtcGetPTXSize"),
            ptx: symbol!("nvrtcGetPTX"),
            cubin_size: symbol!("nvrtcGetCUBINSize"),
            cubin: symbol!("nvrtcGetCUBIN"),
            _library: library,
        };
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers point to live integers.
        match unsafe { (functions.version)(&mut major, &mut minor) } {
            0 => Ok((functions, (major, minor))),
            status => Err(OpenError::Version(status)),
        }
    }

    /// Compiles a source and fetches all outputs.
    pub(super) fn run(
        &self,
        source: &CStr,
        name: &CStr,
        options: &[CString],
    ) -> Result<Outputs, Failure> {
        let mut program: Program = ptr::null_mut();
        // SAFETY: the strings end in NUL and outlive the call, which copies them; no headers are
        // passed, so their arrays may be null.
        let status = unsafe {
            (self.create)(&mut program, source.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null())
        };
        self.check(status)?;
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: `program` was created above; `pointers` holds `pointers.len()` strings.
        let status = unsafe { (self.compile)(program, pointers.len() as c_int, pointers.as_ptr()) };
        let result = self.check(status);
        let log = self.fetch(program, self.log_size, self.log);
        let (mut ptx, mut cubin) = (vec![], vec![]);
        if result.is_ok() {
            ptx = self.fetch(program, self.ptx_size, self.ptx);
            cubin = self.fetch(program, self.cubin_size, self.cubin);
        }
        // SAFETY: `program` is live and not used afterwards. The status is of no use.
        unsafe { (self.destroy)(&mut program) };
        let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
        Ok(Outputs { log, ptx, cubin, result })
    }

    /// One output of a program; empty if NVRTC has none.
    fn fetch(&self, program: Program, size_of: SizeOf, copy: CopyTo) -> Vec<u8> {
        let mut size = 0;
        // SAFETY: `program` is live and `size` is a live integer.
        if unsafe { size_of(program, &mut size) } != 0 || size == 0 {
            return vec![];
        }
        let mut bytes = vec![0u8; size];
        // SAFETY: `bytes` has the size that NVRTC requires.
        if unsafe { copy(program, bytes.as_mut_ptr().cast()) } != 0 {
            return vec![];
        }
        bytes
    }

    fn check(&self, status: Status) -> Result<(), Failure> {
        if status == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC returns a static string for every status, known or not.
        let text = unsafe {
            let text = (self.error_string)(status);
            if text.is_null() { c"unknown status" } else { CStr::from_ptr(text) }
        };
        Err(Failure { status: text.to_string_lossy().into_owned() })
    }
}
