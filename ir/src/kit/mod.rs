//! Tests libraries of layouts, including the one of this crate, by properties of the layout
//! algebra. Such a property is called a law: for example, `compose(a, b)` has the value `a(b(i))`
//! at every `i`.
//!
//! Implement [`LayoutLike`] for a layout type and write
//! [`layout_laws!`](crate::layout_laws)`(Type)` in a test: it evaluates each law on generated
//! operands. The parts can also be used separately: [`strategies`] (proptest's generators) generate
//! layouts and valid operands, [`laws`] check single operands, [`suite`] runs all laws. [`oracles`]
//! are the bodies of fuzz targets.
//!
//! A law uses two sources of truth only: the operands as shapes and strides ([`Plain`]), and their
//! values, as tables made by enumeration or, for large layouts, at selected coordinates. The
//! algebra of this crate is a library under test like any other ([`mod@ours`]).
//!
//! Invariant: [`strategies`] construct operands and never filter them, so that shrinking only
//! visits valid operands.

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
