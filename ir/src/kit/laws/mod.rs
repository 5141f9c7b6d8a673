//! Checks the laws: properties that every library of layouts must have. Each is a function of
//! operands as plain data and of a library under test.
//!
//! A law builds the operands in the library and reads the result back as shape and stride. It
//! checks the result against tables ([`Plain::values`](super::Plain::values)), never against an
//! algebra. Laws of layouts that are too large for tables (`large.rs`) check selected coordinates
//! ([`Plain::index`](super::Plain::index)).
//!
//! Invariant: for operands that the strategies construct as valid, a law demands an answer, and an
//! exact one. For arbitrary operands (`composition_any`, ...) and for symbols a library may refuse,
//! but its answer must be exact ([`Demand`](super::Demand)). A law makes no demands where libraries
//! differ for good reasons (the nesting of a result, functions beyond their size). Invariant: a
//! result with more than [`MAX_POINTS`](super::MAX_POINTS) coordinates is wrong, because the
//! generators make no operands with such results; laws of large layouts are the exception.

mod bits;
mod composition;
mod division;
mod function;
mod inverse;
mod large;
mod modes;
mod product;
mod relations;
mod symbolic;

pub use bits::*;
pub use composition::*;
pub use division::*;
pub use function::*;
pub use inverse::*;
pub use large::*;
pub use modes::*;
pub use product::*;
pub use relations::*;
pub use symbolic::*;
