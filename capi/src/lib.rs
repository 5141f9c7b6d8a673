//! Implements the C interface of carbyne: the functions that `include/carbyne.h` declares, in a
//! shared library.
//!
//! Reading order: `border` (the beginning and the end of every function), `diagnostics` (errors),
//! then one file per object. A test generates the header from these files and compares it with
//! `include/carbyne.h`; C programmers read their comments in the header. `docs/c.md` contains an
//! example.
//!
//! Invariant: there is no state between calls except in objects of the caller, and objects are
//! immutable. Any number of threads may use one object at once; the caller frees an object after
//! its last use. Invariant: no panic crosses the border. A text that is not UTF-8, an invalid
//! number, and a null pointer where the comment of the function does not allow one are errors.
//!
//! # Safety
//!
//! All functions have the same conditions for callers, which the header states at its top. Pointers
//! are null or point to valid values of their types. Objects were created by a function of this
//! library and have not been freed. Texts end with a NUL byte or have the stated size.

#![expect(unsafe_code, reason = "an interface for C")]
#![expect(clippy::missing_safety_doc, reason = "the crate's header states it for all functions")]

mod border;
mod bytes;
mod decomposed;
mod diagnostics;
mod function;
mod objects;
mod program;
mod simulate;
mod tensors;
mod token;

pub use border::Status;
pub use bytes::{Bytes, carbyne_bytes_data, carbyne_bytes_free, carbyne_bytes_size};
pub use carbyne_launch::call::{DlDataType, DlDevice, DlTensor};
pub use decomposed::{
    CUBIN, DecomposeOptions, Decomposed, PTX, Strategy, carbyne_decompose, carbyne_decomposed_abi,
    carbyne_decomposed_compile, carbyne_decomposed_cuda, carbyne_decomposed_document,
    carbyne_decomposed_free, carbyne_decomposed_program,
};
pub use diagnostics::{
    Diagnostics, Severity, Span, carbyne_diagnostics_code, carbyne_diagnostics_count,
    carbyne_diagnostics_free, carbyne_diagnostics_help, carbyne_diagnostics_json,
    carbyne_diagnostics_message, carbyne_diagnostics_rendered, carbyne_diagnostics_severity,
    carbyne_diagnostics_span, carbyne_diagnostics_span_count,
};
pub use function::{
    Function, SIMULATOR, carbyne_function_call, carbyne_function_free, carbyne_function_new,
    carbyne_function_parameter, carbyne_function_parameter_count,
};
pub use program::{
    Program, carbyne_program_check, carbyne_program_format, carbyne_program_free,
    carbyne_program_new, carbyne_program_text,
};
pub use simulate::{SimulateOptions, carbyne_program_simulate};
pub use tensors::{NamedTensor, Symbol};
pub use token::{Token, carbyne_token_cancel, carbyne_token_free, carbyne_token_new};

use std::ffi::c_char;

/// The version of this interface. It is raised when a function, a field or a meaning changes or is
/// removed. It is not raised when functions are added, or fields at the end of a structure with a
/// field `size`. Compare it with `carbyne_abi_version()` after opening the library at run time.
pub const ABI_VERSION: u32 = 1;

/// The `CARBYNE_ABI_VERSION` of the library.
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_abi_version() -> u32 {
    ABI_VERSION
}

/// The version of carbyne, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn carbyne_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

// Threads of C may share all objects.
const _: () = {
    const fn is_shared<T: Send + Sync>() {}
    is_shared::<Bytes>();
    is_shared::<Decomposed>();
    is_shared::<Diagnostics>();
    is_shared::<Function>();
    is_shared::<Program>();
    is_shared::<Token>();
};
