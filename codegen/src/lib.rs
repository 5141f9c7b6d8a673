//! Prints decomposed programs as CUDA C++ and compiles them with NVRTC.
//!
//! Reading order: [`cpp`] (the C++ tree and its text), `index` (index expressions), [`lower`] (from
//! programs to C++ trees), [`nvrtc`] (the compiler).
//!
//! Invariants:
//!
//! - Code generation chooses no layout, atom, barrier or address: the program contains all of them.
//!   It chooses only their spelling in C++: names, variables for repeated computations, and the
//!   order of statements that do not depend on each other ([`mod@cpp::fuse`]).
//! - No control flow depends on the name of an atom or on an architecture; both are looked up.
//! - Printing does not panic for any program that `verify` accepts.

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
