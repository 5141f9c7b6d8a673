//! The intermediate representation of carbyne: tensors, layout algebra, specs, verifier, text format.
//!
//! Reading order: [`mod@tuple`], [`layout`], [`ast`], [`program`].
//!
//! Invariant: this crate knows no architecture and no atom.
//! Invariant: after [`verify`] accepts a program, later stages return; they do not panic.

pub mod ast;
pub mod diag;
pub mod expand;
pub mod expr;
#[cfg(any(test, feature = "proptest"))]
pub mod generate;
#[cfg(any(test, feature = "proptest"))]
pub mod kit;
pub mod layout;
pub mod leaf;
pub mod limits;
pub mod program;
pub mod resolve;
pub mod scalar;
pub mod span;
pub mod text;
pub mod tuple;
pub mod verify;
