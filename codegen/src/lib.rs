//! Prints decomposed programs as CUDA C++ and compiles them with NVRTC.
//!
//! Reading order: [`cpp`] (the tree and its text), `index` (index expressions), [`lower`] (programs
//! to trees), [`nvrtc`].
//!
//! Invariant: code generation makes no choice. Every layout, atom, barrier and address is in the
//! program; what is decided here is spelling alone (names, precedence, line breaks).
//! Invariant: no control flow depends on an atom's name or on an architecture; both are looked up.
//! Invariant: after `verify` accepts a program, printing returns; it does not panic.

#![warn(missing_docs)]

pub mod cpp;
mod element;
mod errors;
mod index;
#[cfg(test)]
mod index_laws;
mod keywords;
pub mod lower;
pub mod namer;
pub mod nvrtc;
mod scalars;
pub mod testing;

pub use carbyne_atoms::tensor_map::MapDescription;
pub use element::Element;
pub use lower::{
    CudaKernel, Form, Host, Interface, Param, alignment, bytes, handed_on, open_sizes,
    print_clocked, print_kernel, print_kernels, print_program, print_tvm_ffi, results,
    written_buffers,
};

/// A result whose error is one diagnostic.
pub type Fallible<T> = Result<T, Box<carbyne_ir::diag::Diagnostic>>;
