//! Proves that the accesses of a kernel are ordered by its synchronization.
#![warn(missing_docs)]
mod blocks; mod clocks; mod expr; mod machine; mod memory; mod pairs; mod phases; mod plan; mod report; mod strand; mod threads;
mod check; mod diagnose;
pub use check::{Limits, arch_of, check, is_atomic};
pub use report::*;
