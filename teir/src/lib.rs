//! Reads, checks, executes and lowers operations of TEIR, the Tiled Execution IR: this crate is a
//! front end of carbyne for that IR.
//!
//! An [`Operation`] is a schedule and the primitives that it applies to tiles. The schedule is a
//! list of axes. Each has a role (M, N or K of a product, or C for a batch), an execution (`seq`:
//! one iteration after the other, `shared`: in parallel, `prim`: inside of the tile), a size and a
//! stride for each tensor. Primitives are, for example, `Zero` at the first access of an output
//! tile, `GEMM` at each, and `ReLU` at the last.
//!
//! An operation is read from JSON or a text, checked ([`Operation::check`]), executed as TEIR's
//! specification describes it ([`execute`]), and lowered to a program of carbyne: with its tiles
//! and loops ([`lower`]), or to a spec whose tiles and loops carbyne finds ([`lower_to_spec`]).
//! [`compare()`] executes such a program and compares it with the operation.
//!
//! ```
//! use carbyne_teir::Operation;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let gemm = Operation::from_text(
//!     "data_type FP32
//!      prim_first Zero
//!      prim_main GEMM
//!      prim_last None
//!      M shared 4 1024 0 1024
//!      K seq 2 32 1024 0
//!      M prim 16 64 0 64
//!      N prim 32 0 1 1
//!      K prim 32 1 32 0",
//! )?;
//! assert_eq!(gemm.check()?.axes().len(), 5);
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: this crate uses carbyne only through the public interfaces of `carbyne-embed` and
//! `carbyne-ir`. Invariant: no input causes a panic, an overflow or a run without bound; errors are
//! [`Violations`].

mod check;
mod compare;
mod json;
mod kernel_level;
mod lowered;
mod record;
mod semantics;
mod text;
mod tile_level;
mod tiles;
mod violation;

pub use carbyne_embed::Checked as Program;
pub use check::Checked;
pub use compare::{compare, is_comparable};
pub use kernel_level::{lower_to_spec, split_k};
pub use lowered::{Lowered, NAME};
pub use record::{
    Axis, DataType, Dim, Exec, First, Last, Main, Operation, Primitives, Schedule, Tensor,
};
pub use semantics::{Element, MAX_STEPS, execute};
pub use tile_level::lower;
pub use violation::{Code, Field, Place, Violation, Violations};
