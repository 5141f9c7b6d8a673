//! Errors about the order of accesses, with changes of the text that mend them, and comments on
//! what each statement orders.
//!
//! [`diagnostics`] makes errors and warnings of a report of `carbyne-sync`; [`repaired`] tries
//! changes of a wrong text, whose verdict the caller gives; [`comments`] turns the certificates of
//! a report around.
//!
//! Invariant: nothing here takes part in a proof.

#![warn(missing_docs)]

mod comments;
mod diagnose;
mod lines;
mod repair;

pub use comments::{comments, is_comment};
pub use diagnose::diagnostics;
pub use repair::{Wrong, repaired};
