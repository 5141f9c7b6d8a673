//! Declares the functions of cuBLAS and cuBLASLt that this crate calls. They are looked up when the
//! libraries are opened ([`Functions::open`], [`LtFunctions::open`]).
//!
//! `cudarc` also binds them, but its loader takes no path, and panics if a library or a function is
//! missing.
//!
//! Signatures and numbers come from `cublas_api.h`, `cublasLt.h` and `library_types.h` of CUDA
//! 13.0. The functions that are called here are unchanged since CUDA 11.8. Enums are 32-bit
//! integers in C.
//!
//! Invariant: nothing panics; a missing library or a missing required symbol is an [`OpenError`].
//! Only `cublasGetStatusName` is optional.
#![allow(unsafe_code, reason = "the C interface of cuBLAS")]

use libloading::Library;
use libloading::os::unix::{Library as UnixLibrary, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

/// A handle, a descriptor, or a pointer to memory of the GPU or the host.
pub(super) type P = *mut c_void;
/// 0 for success.
pub(super) type Status = c_int;

/// `CUBLAS_GEMM_DEFAULT`
pub(super) const GEMM_DEFAULT: c_int = -1;
/// Attributes of `cublasLtMatmulDesc_t`.
pub(super) mod desc {
    pub(crate) const TRANSA: u32 = 3;
    pub(crate) const TRANSB: u32 = 4;
    pub(crate) const EPILOGUE: u32 = 7;
    pub(crate) const BIAS_POINTER: u32 = 8;
    pub(crate) const FAST_ACCUM: u32 = 25;
}
/// `CUBLASLT_EPILOGUE_RELU_BIAS`
pub(super) const EPILOGUE_RELU_BIAS: u32 = 6;
/// `CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES`
pub(super) const PREF_MAX_WORKSPACE_BYTES: u32 = 1;

/// `cublasLtMatmulAlgo_t`: opaque.
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(super) struct Algo {
    data: [u64; 8],
}

/// `cublasLtMatmulHeuristicResult_t`
#[derive(Copy, Clone, Default)]
#[repr(C)]
pub(super) struct Heuristic {
    pub(super) algo: Algo,
    pub(super) workspace: usize,
    pub(super) state: Status,
    pub(super) waves: f32,
    reserved: [c_int; 4],
}

/// Functions of `libcublas`.
pub(super) struct Functions {
    property: unsafe extern "C" fn(c_int, *mut c_int) -> Status,
    pub(super) create: unsafe extern "C" fn(*mut P) -> Status,
    pub(super) destroy: unsafe extern "C" fn(P) -> Status,
    pub(super) set_stream: unsafe extern "C" fn(P, P) -> Status,
    pub(super) set_workspace: unsafe extern "C" fn(P, P, usize) -> Status,
    /// Handle; operations on A and B; m, n, k; alpha; A with type and leading dimension; B with
    /// type and leading dimension; beta; C with type and leading dimension; accumulator type;
    /// algorithm.
    pub(super) gemm: unsafe extern "C" fn(
        P,
        c_int,
        c_int,
        c_int,
        c_int,
        c_int,
        *const c_void,
        P,
        c_int,
        c_int,
        P,
        c_int,
        c_int,
        *const c_void,
        P,
        c_int,
        c_int,
        c_int,
        c_int,
    ) -> Status,
    /// Names of statuses; available since CUDA 11.4.2.
    pub(super) status_name: Option<unsafe extern "C" fn(Status) -> *const c_char>,
    /// Keeps the functions mapped. Never dropped before them.
    _library: Library,
}

/// Functions of `libcublasLt`.
pub(super) struct LtFunctions {
    pub(super) create: unsafe extern "C" fn(*mut P) -> Status,
    pub(super) destroy: unsafe extern "C" fn(P) -> Status,
    /// Output; accumulator type; type of alpha and beta.
    pub(super) desc_create: unsafe extern "C" fn(*mut P, c_int, c_int) -> Status,
    pub(super) desc_set: unsafe extern "C" fn(P, u32, *const c_void, usize) -> Status,
    pub(super) desc_destroy: unsafe extern "C" fn(P) -> Status,
    /// Output; type; rows; columns; leading dimension.
    pub(super) layout_create: unsafe extern "C" fn(*mut P, c_int, u64, u64, i64) -> Status,
    pub(super) layout_destroy: unsafe extern "C" fn(P) -> Status,
    pub(super) preference_create: unsafe extern "C" fn(*mut P) -> Status,
    pub(super) preference_set: unsafe extern "C" fn(P, u32, *const c_void, usize) -> Status,
    pub(super) preference_destroy: unsafe extern "C" fn(P) -> Status,
    /// Handle; description; layouts of A, B, C, D; preference; maximum number of results; output;
    /// number of results.
    pub(super) heuristic:
        unsafe extern "C" fn(P, P, P, P, P, P, P, c_int, *mut Heuristic, *mut c_int) -> Status,
    /// Handle; description; alpha; A with layout; B with layout; beta; C with layout; D with
    /// layout; algorithm; workspace and its size; stream.
    pub(super) matmul: unsafe extern "C" fn(
        P,
        P,
        *const c_void,
        P,
        P,
        P,
        P,
        *const c_void,
        P,
        P,
        P,
        P,
        *const Algo,
        P,
        usize,
        P,
    ) -> Status,
    /// Keeps the functions mapped. Never dropped before them.
    _library: Library,
}

/// Why a file is not a usable library.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    /// The error of the dynamic loader.
    #[error("{0}")]
    Load(#[from] libloading::Error),
    /// The library has all symbols, but does not report its version.
    #[error("it does not report its version (status {0})")]
    Version(Status),
}

macro_rules! symbol {
    ($library:ident, $name:literal) => {
        // SAFETY: the type is that of the function in NVIDIA's header. The copied pointer lives no
        // longer than the library, which the same struct owns.
        *unsafe { $library.get(concat!($name, "\0").as_bytes()) }?
    };
}

impl Functions {
    /// Opens the library at `path`. The dynamic loader searches a bare file name.
    pub(super) fn open(path: &Path) -> Result<(Functions, (i32, i32, i32)), OpenError> {
        let library = load(path)?;
        let functions = Functions {
            property: symbol!(library, "cublasGetProperty"),
            create: symbol!(library, "cublasCreate_v2"),
            destroy: symbol!(library, "cublasDestroy_v2"),
            set_stream: symbol!(library, "cublasSetStream_v2"),
            set_workspace: symbol!(library, "cublasSetWorkspace_v2"),
            gemm: symbol!(library, "cublasGemmEx"),
            // SAFETY: as above.
            status_name: unsafe { library.get(b"cublasGetStatusName\0") }.ok().map(|f| *f),
            _library: library,
        };
        let part = |which| {
            let mut value = 0;
            // SAFETY: the pointer is to a live integer.
            match unsafe { (functions.property)(which, &mut value) } {
                0 => Ok(value),
                status => Err(OpenError::Version(status)),
            }
        };
        let version = (part(0)?, part(1)?, part(2)?);
        Ok((functions, version))
    }
}

impl LtFunctions {
    /// Opens `libcublasLt`, which `libcublas` uses, at `path`.
    pub(super) fn open(path: &Path) -> Result<LtFunctions, OpenError> {
        let library = load(path)?;
        Ok(LtFunctions {
            create: symbol!(library, "cublasLtCreate"),
            destroy: symbol!(library, "cublasLtDestroy"),
            desc_create: symbol!(library, "cublasLtMatmulDescCreate"),
            desc_set: symbol!(library, "cublasLtMatmulDescSetAttribute"),
            desc_destroy: symbol!(library, "cublasLtMatmulDescDestroy"),
            layout_create: symbol!(library, "cublasLtMatrixLayoutCreate"),
            layout_destroy: symbol!(library, "cublasLtMatrixLayoutDestroy"),
            preference_create: symbol!(library, "cublasLtMatmulPreferenceCreate"),
            preference_set: symbol!(library, "cublasLtMatmulPreferenceSetAttribute"),
            preference_destroy: symbol!(library, "cublasLtMatmulPreferenceDestroy"),
            heuristic: symbol!(library, "cublasLtMatmulAlgoGetHeuristic"),
            matmul: symbol!(library, "cublasLtMatmul"),
            _library: library,
        })
    }
}

/// Opens a library with global symbols, so that a library that depends on it finds it by name.
fn load(path: &Path) -> Result<Library, OpenError> {
    // SAFETY: loading runs the library's initializers. The path was named by the user or is a
    // well-known place of NVIDIA's own library, whose initializers have no preconditions.
    let library = unsafe { UnixLibrary::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }?;
    Ok(library.into())
}
