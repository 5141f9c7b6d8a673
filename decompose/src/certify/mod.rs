//! Proofs that the layouts of a decomposition are right, and their evaluation.

pub mod certificate;
pub mod checker;
mod relation;
