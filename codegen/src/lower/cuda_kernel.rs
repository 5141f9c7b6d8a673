//! Defines [`CudaKernel`], the result of printing a kernel: its source, and the data that a
//! launcher needs (parameters, grid, block, bytes of shared memory). [`Parts`] are the pieces from
//! which a file is printed.

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
    /// The name in the object file: the name of the spec, or a similar one if C++ or CUDA reserves
    /// that name.
    pub name: String,
    /// The name of the spec, if any.
    pub spec: Option<String>,
    /// A self-contained file; empty for a kernel of [`print_kernels`](crate::print_kernels).
    pub source: String,
    /// The bytes of dynamic shared memory of a launch.
    pub smem_bytes: i64,
    /// The number of blocks, as an expression of the program's arena.
    pub grid: Dim,
    /// The number of threads of a block.
    pub block: i64,
    /// The number of blocks of a cluster; 1 without clusters. The kernel declares it, so that a
    /// launcher need not pass it.
    pub cluster: i64,
    /// The parameters in order.
    pub params: Vec<Param>,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A pointer to global memory.
    Pointer {
        /// The name in the source.
        name: String,
        /// The buffer to which it points.
        buffer: BufferId,
        /// The type of the elements.
        scalar: Scalar,
        /// Whether the kernel writes through it.
        written: bool,
    },
    /// A number that the caller passes.
    Scalar {
        /// The name in the source.
        name: String,
        /// The buffer of the program that holds the number.
        buffer: BufferId,
        /// The type.
        scalar: Scalar,
    },
    /// An encoded tensor map of 128 bytes.
    TensorMap {
        /// The name in the source.
        name: String,
        /// The buffer that the map describes.
        buffer: BufferId,
        /// The arguments of the encoder.
        map: MapDescription,
    },
    /// A symbolic size.
    Symbol {
        /// The name in the source.
        name: String,
        /// The variable.
        var: VarId,
        /// Whether it is 64-bit.
        wide: bool,
    },
}

impl Param {
    /// The buffer of a pointer, number or tensor map.
    #[must_use]
    pub fn buffer(&self) -> Option<BufferId> {
        match self {
            Param::Pointer { buffer, .. } | Param::Scalar { buffer, .. } => Some(*buffer),
            Param::TensorMap { buffer, .. } => Some(*buffer),
            Param::Symbol { .. } => None,
        }
    }
}

/// The parts of a kernel before it is printed.
pub(super) struct Parts {
    /// The kernel without its source.
    pub(super) kernel: CudaKernel,
    pub(super) head: Item,
    pub(super) function: Item,
    pub(super) headers: BTreeSet<&'static str>,
    pub(super) helpers: BTreeSet<Helper>,
}
