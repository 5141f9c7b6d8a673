//! Prints decomposed programs as CUDA C++ and compiles them with NVRTC.
//!
//! Invariant: code generation makes no choice. Every layout, atom, barrier and address is in the
//! program; what is decided here is spelling alone (names, precedence, line breaks).

pub mod nvrtc;
pub mod testing;
