//! A kit to property-test libraries of layouts, this crate's own among them.
//!
//! Implement [`LayoutLike`] for a layout type and write
//! [`layout_laws!`](crate::layout_laws)`(Type)` in a test: each law is asked about generated
//! operands. Or take the parts: [`strategies`] make layouts and operands that an operation must
//! answer, [`laws`] judge single operands, [`suite`] runs them.
//!
//! A law has two sources of truth only: the operands as shapes and strides ([`Plain`]), and tables
//! made by counting. The algebra of this crate is a library under test like any other
//! ([`mod@ours`]).
//!
//! Invariant: operands from [`strategies`] are constructed, never filtered, so that shrinking stays
//! among operands that an operation must answer.

mod answer;
mod bounds;
mod choices;
mod error;
pub mod laws;
mod like;
pub mod oracles;
pub mod ours;
mod plain;
pub mod strategies;
pub mod suite;
mod symbolic;
mod tiling;

pub use crate::layout_laws;
pub use answer::Answer;
pub use bounds::{Bounds, MAX_SIZE};
pub use error::{Demand, LawError, LawResult, Outcome};
pub use like::{Bits, LayoutLike};
pub use plain::{MAX_POINTS, Plain};
pub use symbolic::{SYMBOLS, Symbolic, Term};
pub use tiling::Tiling;
