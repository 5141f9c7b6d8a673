//! Proves that the layouts of a decomposition are right: the solver writes certificates, and a
//! separate checker evaluates them.

pub mod certificate;
pub mod checker;
mod relation;
