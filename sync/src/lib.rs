//! Proves that the accesses of a kernel are ordered by its synchronization, without executing it.
//!
//! [`check()`] takes a kernel that says who accesses what ([`is_atomic`]) and answers with a
//! [`Report`]: for every pair of accesses that meet in an element, one of them writing, by
//! different threads or by a thread and what it has started, a [`Verdict`]. An ordered pair comes
//! with its certificate, the statements that pass the order on. The crate `carbyne-remedy` says the
//! rest as errors and warnings, and of each statement which pairs it orders.
//!
//! The model stands in `docs/synchronization.md`.
//!
//! Invariant: a pair is `Ordered` only if no schedule of the threads lets its accesses meet
//! unordered. Invariant: every input ends in an answer. A limit that is reached is undecided, with
//! the reason. Invariant: nothing here depends on an atom's name or on an architecture; atoms are
//! read by their fields. Invariant: it shares no code with what places synchronization, nor with
//! the simulator.

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
