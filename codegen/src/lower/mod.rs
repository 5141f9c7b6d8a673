//! Programs to C++ trees, one file per concern.
//!
//! Reading order: `kernel` (the function around it all), `stmts` (control flow), `who` (guards),
//! `storage` (declarations), `access` (views to elements), `leaf` (rows of the atom table).
//!
//! Invariant: lowering reads the program and the table, and decides nothing.

mod access;
mod indices;
mod kernel;
mod leaf;
mod ptx;
mod stmts;
mod storage;
mod who;

pub use kernel::{CudaKernel, Param, print_clocked, print_kernel, print_kernels};

use crate::index::Indices;
use crate::namer::Namer;
use crate::smem::Arena;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::{BufferId, Program};
use std::collections::{BTreeSet, HashMap};

/// The state of lowering one kernel.
struct Lowering<'p> {
    p: &'p Program,
    atoms: &'p AtomTable,
    namer: Namer,
    indices: Indices<'p>,
    /// How index variables are spelled where they are defined: by CUDA's own variables.
    definitions: Indices<'p>,
    buffers: HashMap<BufferId, storage::Stored>,
    arena: Arena,
    /// Sets of threads that wait at named barriers, in order of first appearance.
    barriers: Vec<Vec<i64>>,
    headers: BTreeSet<&'static str>,
    helpers: BTreeSet<kernel::Helper>,
    errors: Diagnostics,
}
