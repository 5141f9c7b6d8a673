//! Prepares a kernel for its run: every index is compiled, layouts of at most 65536 elements are
//! tabulated, and every leaf is bound to an atom or to its meaning. Blocks then do only the work
//! that differs between them.
//!
//! Each kernel is lowered once; the result does not depend on the running block. Lowering refuses
//! kernels that cannot run, in text order: an open layout, a symbol without a value, an atom that
//! does not fit its operands, a leaf without a meaning.
//!
//! `lower` creates the `kernel`; `storage` places its buffers and creates its `view`s. `cost`
//! bounds the steps of a block, `rounding` the errors of its results, and `liveness` counts its
//! registers.

mod atom;
mod bulk;
mod cost;
mod inverse;
mod kernel;
mod liveness;
mod lower;
mod mask;
mod rounding;
mod site;
mod storage;
mod sync;
mod threads;
mod view;

pub(crate) use atom::{BoundAtom, BoundBulk, BoundOp, BoundOperand, BoxPlace, Slot};
pub(crate) use cost::{Counted, block_steps};
pub(crate) use inverse::Inverse;
pub(crate) use kernel::{
    Check, Gathered, GlobalBuffer, How, Kernel, LeafSpec, Names, Node, Reference, RegisterBuffer,
    RootSpec, SharedBuffer, SharedPlan, SyncNode,
};
pub(crate) use liveness::live_registers;
pub(crate) use lower::{lower, not_decomposed};
pub(crate) use mask::Mask;
pub(crate) use site::{Checked, Literal, Site, Source, line_text, views_of};
pub(crate) use threads::{Partition, ThreadTensor};
pub(crate) use view::{Base, Bound, Dist, OUTSIDE, Space, View, coordinates, coordinates_text};
