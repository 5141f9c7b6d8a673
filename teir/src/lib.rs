//! TEIR, the Tiled Execution IR, as a front end of carbyne.
//!
//! An [`Operation`] is a schedule (axes with roles, ways to execute, sizes and strides) and the
//! primitives that it applies to tiles. It is read from JSON or a text, checked
//! ([`Operation::check`]), executed by the words of its specification ([`execute`]), and lowered to
//! a program of carbyne: with its tiles and loops ([`lower`]), or to a spec whose tiles and loops
//! carbyne finds ([`lower_to_spec`]).
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
//! Invariant: it stands on the public interface of `carbyne-embed` alone.
//! Invariant: no input makes it panic, overflow or run without bound; errors are [`Violations`].

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
pub use compare::compare;
pub use kernel_level::lower_to_spec;
pub use lowered::{Lowered, NAME};
pub use record::{
    Axis, DataType, Dim, Exec, First, Last, Main, Operation, Primitives, Schedule, Tensor,
};
pub use semantics::{Element, MAX_STEPS, execute};
pub use tile_level::lower;
pub use violation::{Code, Field, Place, Violation, Violations};
