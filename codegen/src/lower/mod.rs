//! Lowers programs to C++ syntax trees. Each file lowers one kind of thing.
//!
//! Reading order: `kernel` (the kernel function), `stmts` (control flow), `guards` (conditions on
//! the executing threads), `storage` (declarations), `access` (views as elements), `indices` and
//! `known_conditions` (index expressions and conditions), `leaf` and `bulk` (atoms), `ptx` and
//! `descriptor` (operands of inline PTX), `sync` (synchronization statements), `register_fences`
//! (registers of asynchronous atoms), `state` (the shared state), `carried` and `loop_pointers`
//! (variables that loops advance), `helper` (functions that kernels call), `cuda_kernel` (the
//! printed kernel), `interface`, `sizes` and `host` (the parameters of a program, and functions
//! that launch its kernels).
//!
//! Invariant: lowering reads the program and the atom table, and chooses no layout, atom, barrier
//! or address. (It assigns the hardware's numbers to barriers of named threads.)

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
