//! Turns the reports of the synchronization checker, `carbyne-sync`, into error messages with
//! fixes, and into comments.
//!
//! - [`diagnostics`] converts a report to errors and warnings.
//! - [`repaired`] tries likely fixes of a text with errors; the caller checks each changed text.
//! - [`comments`] states for each synchronization statement which accesses it orders.
//!
//! Invariant: no proof depends on this crate. A defect here makes a message worse, but no verdict
//! wrong.

#![warn(missing_docs)]

mod comments;
mod diagnose;
mod lines;
mod repair;

pub use comments::{comments, is_comment};
pub use diagnose::diagnostics;
pub use repair::{Wrong, repaired};
