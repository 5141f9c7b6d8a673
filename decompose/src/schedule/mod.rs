//! Modulo schedules of loops: when each operation of an iteration starts, so that iterations follow
//! each other as closely as dependences and resources let them.
//!
//! An operation of iteration n starts at σ + n·II, where II is the initiation interval; ⌊σ / II⌋ is
//! its stage. [`problem`] is what is sought for: operations, the agents that issue them, what they
//! keep busy, and dependences with latencies and distances. [`solve`] finds the least II, then the
//! fewest stages, then the earliest starts, and says what it has proved; [`schedule`] is the
//! answer, with what follows from it for code: the order of issue, depths of rings, groups left in
//! flight at each wait. [`graph`] makes the problem of a loop from its text, [`report`] says the
//! answer to people.

mod distance;
pub(crate) mod graph;
mod net;
pub(crate) mod problem;
pub(crate) mod report;
pub(crate) mod schedule;
mod search;
pub(crate) mod solve;
mod system;
mod takes;
#[cfg(test)]
mod tests;

use carbyne_atoms::{AtomTable, Machine};
use problem::{Problem, Unsolvable};
use schedule::Schedule;

/// Finds a schedule of a problem, visiting so many nodes at most.
pub(crate) type Find = fn(&Problem, u64) -> Result<Schedule, Unsolvable>;

/// How schedules of loops are found, and for what.
#[derive(Copy, Clone)]
pub(crate) struct Scheduler<'a> {
    /// The instructions.
    pub table: &'a AtomTable,
    /// The card.
    pub machine: &'a Machine,
    /// The search.
    pub find: Find,
}
