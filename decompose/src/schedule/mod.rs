//! Finds modulo schedules of loops: when each operation of an iteration starts, so that iterations
//! follow each other as closely as dependences and resources allow.
//!
//! An operation of iteration n starts at σ + n·II, where II is the initiation interval; ⌊σ / II⌋ is
//! its stage. [`problem`] defines the problem: operations, the agents that issue them, the
//! resources that they keep busy, and dependences with latencies and distances. [`solve`] finds the
//! least II, then the fewest stages, then the earliest starts, and says how much of that it has
//! proved. [`modulo`] defines the schedule and derives the order of issue, depths of rings, and
//! groups left in flight at each wait. [`graph`] makes the problem of a loop from its text,
//! [`report`] describes the schedule to users.

mod durations;
pub(crate) mod graph;
pub(crate) mod modulo;
mod net;
pub(crate) mod problem;
pub(crate) mod report;
mod search;
pub(crate) mod solve;
mod system;
#[cfg(test)]
mod tests;

use crate::access::ops::Op;
use carbyne_atoms::{AtomTable, Machine};
use carbyne_ir::program::Program;
use modulo::Schedule;
use problem::{Problem, Unsolvable};

/// Finds a schedule of a problem, visiting so many nodes at most.
pub(crate) type Find = fn(&Problem, u64) -> Result<Schedule, Unsolvable>;

/// The card for which loops are scheduled.
#[derive(Copy, Clone)]
pub(crate) struct Target<'a> {
    /// The instructions.
    pub table: &'a AtomTable,
    /// The card.
    pub machine: &'a Machine,
    /// Whether an instruction that reads factors from shared memory by descriptors implements a
    /// MatMul. Such an instruction goes on while others are issued.
    pub by_descriptors: fn(&Program, &AtomTable, &Op) -> bool,
}

/// How schedules of loops are found, and for what.
#[derive(Copy, Clone)]
pub(crate) struct Scheduler<'a> {
    /// The card.
    pub target: Target<'a>,
    /// The search.
    pub find: Find,
}
