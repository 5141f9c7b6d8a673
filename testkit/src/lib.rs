//! Random programs for the tests of the other crates, and for fuzzing: modules that a text says
//! ([`generate`]), and programs of several operations with a judge of what they are decomposed to
//! ([`gate`]).
//!
//! Invariant: no crate depends on this one but in its tests.

pub mod gate;
pub mod generate;
