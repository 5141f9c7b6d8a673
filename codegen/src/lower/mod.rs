//! Programs to C++ trees, one file per concern.
//!
//! Reading order: `kernel` (the function around it all), `stmts` (control flow), `who` (guards),
//! `storage` (declarations), `access` (views to elements), `leaf` (atoms), `ptx` and `descriptor`
//! (operands of inline PTX), `sync` (atoms of statements between specs), `flight` (registers of
//! asynchronous atoms), `state` (what all of them read and write), `carried` and `advance` (what
//! loops carry), `host` (the functions that launch).
//!
//! Invariant: lowering reads the program and the table, and decides nothing.

mod access;
mod advance;
mod bulk;
mod carried;
#[cfg(test)]
mod carried_laws;
mod descriptor;
mod flight;
mod helper;
mod host;
mod indices;
mod interface;
mod kernel;
mod known;
mod leaf;
mod parts;
mod ptx;
mod sizes;
mod state;
mod stmts;
mod storage;
mod sync;
mod who;

pub use host::Host;
pub use interface::{Form, Interface, alignment, bytes, handed_on, results, written};
pub use kernel::{print_clocked, print_kernel, print_kernels, print_program, print_tvm_ffi};
pub use parts::{CudaKernel, Param};
pub use sizes::open_sizes;
