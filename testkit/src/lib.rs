//! Generates random programs for tests and fuzzing: modules in the text format ([`generate`]), and
//! programs of several operations with a check that decomposition preserves their meaning
//! ([`gate`]).
//!
//! Invariant: other crates use this crate only in their tests and fuzz targets.

pub mod gate;
pub mod generate;
