//! A kernel as it is handed to who launches it, and its parts before they are a text.

use super::helper::Helper;
use crate::cpp::ast::Item;
use carbyne_atoms::tensor_map::MapDescription;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::BufferId;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

/// A printed kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct CudaKernel {
    /// Its name in the object file: that of its spec, or near it where C++ or CUDA has the name
    /// already.
    pub name: String,
    /// The name of its spec, if it has one.
    pub spec: Option<String>,
    /// One self-contained file; empty for a kernel of [`print_kernels`](crate::print_kernels).
    pub source: String,
    /// Dynamic shared memory to launch with, in bytes.
    pub smem_bytes: i64,
    /// Blocks to launch; an expression of the program's arena where it depends on symbols.
    pub grid: Dim,
    /// Threads of a block.
    pub block: i64,
    /// Blocks of a cluster; 1 where there are none. The kernel says it itself.
    pub cluster: i64,
    /// Parameters in order.
    pub params: Vec<Param>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A pointer to global memory.
    Pointer {
        /// Its name in the source.
        name: String,
        /// The buffer that it points to.
        buffer: BufferId,
        /// Type of the elements.
        scalar: Scalar,
        /// Whether the kernel writes through it.
        written: bool,
    },
    /// A number of the caller.
    Scalar {
        /// Its name in the source.
        name: String,
        /// The program's buffer that holds it.
        buffer: BufferId,
        /// Its type.
        scalar: Scalar,
    },
    /// An encoded tensor map, 128 bytes.
    TensorMap {
        /// Its name in the source.
        name: String,
        /// The buffer that it describes.
        buffer: BufferId,
        /// The arguments of its encoder.
        map: MapDescription,
    },
    /// A symbolic size.
    Symbol {
        /// Its name in the source.
        name: String,
        /// The variable.
        var: VarId,
        /// Whether it is 64-bit.
        wide: bool,
    },
}

impl Param {
    /// The buffer that it points to, holds or describes.
    #[must_use]
    pub fn buffer(&self) -> Option<BufferId> {
        match self {
            Param::Pointer { buffer, .. } | Param::Scalar { buffer, .. } => Some(*buffer),
            Param::TensorMap { buffer, .. } => Some(*buffer),
            Param::Symbol { .. } => None,
        }
    }
}

/// A kernel and what it needs, before it is a text.
pub(super) struct Parts {
    /// Without its source.
    pub(super) kernel: CudaKernel,
    pub(super) head: Item,
    pub(super) function: Item,
    pub(super) headers: BTreeSet<&'static str>,
    pub(super) helpers: BTreeSet<Helper>,
}
