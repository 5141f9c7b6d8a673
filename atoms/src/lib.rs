//! Defines the atom table: the hardware instructions of each GPU architecture, and short sequences
//! of them, as data.
//!
//! An [`Atom`] is one variant of an instruction, for example `mma.m16n8k16.f32.f16`. Its fields
//! state the operands, which elements each thread holds (the thread-value layout), the alignment,
//! the cost and the CUDA text. An [`AtomTable`] holds all atoms of one architecture.
//!
//! ```
//! use carbyne_atoms::{Arch, AtomTable};
//!
//! let table = AtomTable::new(Arch::Sm80);
//! let atom = table.get("mma.m16n8k16.f32.f16").unwrap();
//! assert_eq!(atom.group, 32); // One warp executes it.
//! ```
//!
//! Reading order: [`arch`], [`atom`], [`table`], then one file per instruction family. [`bind`]
//! decides whether an atom implements a leaf. [`descriptor`] derives the matrix descriptors of
//! `wgmma`, [`tensor_map`] the tensor maps of TMA copies. [`smem`] places buffers in shared memory.
//! [`mod@probe`] makes a program that executes a given atom, for tests.
//!
//! Invariant: nothing outside this crate states a fragment layout, an alignment or the text of an
//! instruction. No control flow anywhere depends on an atom's name: consumers read fields.
//! Invariant: only [`arch`] compares architectures. Invariant: this crate depends on no other crate
//! of carbyne than `carbyne-ir`. It does not know the solver.

#![warn(missing_docs)]

pub mod arch;
pub mod atom;
pub mod banks;
mod binary;
pub mod bind;
pub mod bulk;
mod compare;
mod convert;
mod convert_int;
mod convert_through;
pub mod costs;
mod cp_async;
mod cp_async_bulk;
pub mod descriptor;
pub mod docs;
mod dsl;
pub mod error_bound;
mod fma;
mod global;
mod ldmatrix;
pub mod limits;
pub mod machine;
pub mod missing_facts;
mod mma;
mod number;
pub mod operand;
pub mod probe;
mod red;
mod reduce;
mod register;
mod shared;
mod shuffle;
pub mod smem;
mod special;
mod stmatrix;
mod sync;
pub mod table;
pub mod template;
pub mod tensor_map;
pub mod testing;
pub mod threads;
mod unary;
mod wgmma;

pub use arch::{Arch, ArchReq, UnknownArch};
pub use atom::{
    Addressing, AsmClass, Atom, AtomKind, AtomNumber, AtomOp, AtomOperand, BarrierScope, Cost,
    Divisor, Elem, ErrorBound, Extent, Handover, NumberForm, OperandAccess, Rate, Rounding, Unit,
    Visibility,
};
pub use banks::{BANKS, Banks, SECTOR_BYTES};
pub use compare::CHOOSE;
pub use costs::{CostError, Costs};
pub use descriptor::{Descriptor, DescriptorMismatch, Major, SwizzleMode};
pub use global::LOAD_UNALIGNED;
pub use limits::{ArchLimits, limits};
pub use machine::{Machine, machine};
pub use table::{AtomTable, NoAtom, NoSync, SyncForm};
pub use template::{Part, Template};
