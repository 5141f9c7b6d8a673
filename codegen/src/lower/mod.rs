//! Programs to C++ trees, one file per concern.
//!
//! Reading order: `kernel` (the function around it all), `stmts` (control flow), `who` (guards),
//! `storage` (declarations), `access` (views to elements), `leaf` (atoms), `ptx` and
//! `descriptor` (operands of inline PTX), `sync` (atoms of statements between specs), `flight`
//! (registers of asynchronous atoms), `carried` and `advance` (what loops carry), `host` (the functions that launch).
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
mod host;
mod indices;
mod kernel;
mod known;
mod leaf;
mod ptx;
mod stmts;
mod storage;
mod sync;
mod who;

pub use host::{Host, handed_on};
pub use kernel::{CudaKernel, Param, print_clocked, print_kernel, print_kernels, print_program};

use crate::index::Indices;
use crate::namer::Namer;
use carbyne_atoms::AtomTable;
use carbyne_atoms::smem::Arena;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::{BufferId, MapId, Program};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The state of lowering one kernel.
struct Lowering<'p> {
    p: &'p Program,
    atoms: &'p AtomTable,
    namer: Namer,
    indices: Indices<'p>,
    /// How index variables are spelled where they are defined: by CUDA's own variables.
    definitions: Indices<'p>,
    buffers: HashMap<BufferId, storage::Stored>,
    /// Buffers of the kernel that asynchronous atoms use.
    asynchronous: HashSet<BufferId>,
    /// Registers in scope that they use, in order of declaration.
    in_flight: Vec<BufferId>,
    /// Loops that are being lowered and are not unrolled, outermost first.
    advances: Vec<advance::Advance>,
    /// Registers that hold coordinates.
    coordinates: known::Coordinates,
    /// Buffers that one leaf alone writes.
    written_once: HashSet<BufferId>,
    /// Loops that are being lowered, outermost first.
    outers: Vec<carried::Outer>,
    /// Pointers before loops that are written out.
    bases: advance::Bases,
    /// Parameters that are tensor maps.
    maps: HashMap<MapId, String>,
    arena: Arena,
    /// Sets of threads that wait at named barriers, in order of first appearance.
    barriers: Vec<Vec<i64>>,
    headers: BTreeSet<&'static str>,
    helpers: BTreeSet<kernel::Helper>,
    errors: Diagnostics,
}
