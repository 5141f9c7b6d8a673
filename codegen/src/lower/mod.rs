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
mod bulk;
mod carried;
#[cfg(test)]
mod carried_laws;
mod cuda_kernel;
mod descriptor;
mod guards;
mod helper;
mod host;
mod indices;
mod interface;
mod kernel;
mod known_conditions;
mod leaf;
mod loop_pointers;
mod ptx;
mod register_fences;
mod sizes;
mod state;
mod stmts;
mod storage;
mod sync;

pub use cuda_kernel::{CudaKernel, Param};
pub use host::Host;
pub use interface::{Form, Interface, alignment, bytes, handed_on, results, written_buffers};
pub use kernel::{print_clocked, print_kernel, print_kernels, print_program, print_tvm_ffi};
pub use sizes::open_sizes;
