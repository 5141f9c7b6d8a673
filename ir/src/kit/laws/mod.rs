//! The laws of layout algebra, each a function over plain operands and a library under test.
//!
//! Operands are built in the library, its results read back as shape and stride and judged by
//! tables ([`Plain::values`](super::Plain::values)), never by an algebra.
//!
//! Invariant: a law asks of admissible operands an answer, and of every answer that it is exact.
//! Where libraries differ for good reasons (the nesting of a result, functions beyond their size),
//! it asks nothing. Invariant: a result with more than [`MAX_POINTS`](super::MAX_POINTS)
//! coordinates counts as wrong: the strategies make no operands that have one.

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
