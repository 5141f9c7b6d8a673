//! Proves that synchronization orders the accesses of a kernel, without executing the kernel.
//!
//! [`check()`] takes a kernel in which every access is assigned to a thread ([`is_atomic`]) and
//! returns a [`Report`]. Two accesses form a pair if they touch the same element, at least one of
//! them writes, and different threads make them, or a thread and an asynchronous engine that it has
//! started. The report has a [`Verdict`] for each pair. The verdict of an ordered pair contains its
//! certificate: the statements that order it.
//!
//! The checker *follows* the threads of a few representative blocks statement by statement. It
//! tracks vector clocks, mbarrier phases and the last accesses of memory, but no data. The crate
//! `carbyne-remedy` turns a report into errors, warnings and comments.
//!
//! `docs/synchronization.md` describes the model. Start to read at `check`, then `machine` (the
//! threads of a cluster), `clocks` (vector clocks) and `memory` (the last accesses).
//!
//! Invariants:
//!
//! - A pair is `Ordered` only if every schedule of the threads orders its accesses.
//! - Every input gets an answer. If the checker reaches a limit, the answer is `Undecided` and
//!   states the limit.
//! - No code here depends on the name of an atom or on an architecture; the checker reads the
//!   fields of atoms.
//! - The checker shares no code with the pass that places synchronization, nor with the simulator,
//!   except for the program (`carbyne-ir`) and the atom table with the placement of shared buffers
//!   (`carbyne-atoms`).

#![warn(missing_docs)]

mod blocks;
mod check;
mod clock;
mod clocks;
mod differences;
mod expr;
mod fingerprint;
mod follow;
mod gcd;
mod groups;
mod in_bounds;
mod increments;
mod lockstep;
mod machine;
mod memory;
mod nested;
mod owners;
mod pages;
mod pairs;
mod phases;
mod plan;
mod regions;
mod report;
mod steps;
mod threads;
mod trip_counts;
mod value;
mod view_bounds;

pub use check::{Limits, arch_of, check, is_atomic};
pub use report::*;
