//! Decomposes specs into atoms, the hardware instructions of the atom table. Strategies give specs
//! of the kernel level a body of tiles and loops, the solver chooses layouts and instructions, and
//! matching names the atom of each leaf.
//!
//! Every stage works on the module as a syntax tree. The result of a strategy or of the solver is
//! written into the module, which is then resolved and verified again, like the text of a user. A
//! generated statement refers to the statement from which it was made, so that errors are reported
//! there. At the end the tree is printed, and its text is read again.
//!
//! The folders are floors, each of which imports only from those before it: `access` (facts about a
//! body), `certify`, `cost`, `plan` (what was chosen), `layouts`, `lower`, `order` and `schedule`
//! side by side, `tricks` (rewrites of modules), `emit`, `strategies`, `driver`, `explain`. Begin
//! reading with `driver/attempt.rs`.
//!
//! Invariant: everything that a user wrote is kept. Invariant: no decision depends on the name of
//! an atom or on an architecture; the rows of the atom table decide.

mod access;
mod build;
mod certify;
mod cost;
mod driver;
mod emit;
pub mod explain;
mod layouts;
mod lower;
mod names;
mod numbers;
mod order;
mod origins;
mod plan;
mod resolved;
mod schedule;
mod strategies;
mod tricks;

pub use carbyne_atoms::bind::Mismatch;
pub use certify::{certificate, checker};
pub use cost::{Estimate, Resource, Use};
pub use driver::decompose::{decompose, decompose_by, decompose_with};
pub use driver::decomposed::{Decomposed, Options, Unstated};
pub use driver::kernels::ranked;
pub use driver::named::check as check_named;
pub use layouts::solver::Search;
pub use origins::{Origin, Origins};
pub use plan::solution::{Leaf, Searched, Wavefronts};
pub use resolved::checked;
pub use schedule::graph::Unscheduled;
pub use schedule::modulo::Proof;
pub use schedule::problem::Unsolvable;
pub use schedule::report::{InFlight, LoopSchedule, RingDepth, Steady, Timed};
pub use strategies::candidates::{GivenUp, Ranked, Ranking};
pub use strategies::library::{Strategies, Theirs, own_texts};
pub use strategies::sample::Sample;

/// Internals for the tests of this package. Not a part of the interface: they change without
/// notice.
#[doc(hidden)]
pub mod internals {
    use carbyne_atoms::{AtomTable, Machine};
    use carbyne_ir::program::{Program, SpecId};

    pub use crate::cost::constants::{FITTED, Fitted};
    pub use crate::cost::{Model, Refusal, bound};
    pub use crate::driver::pins::{list as pins, without as without_pins};
    pub use crate::layouts::{copy, smem, tv};

    /// The schedules of all innermost loops with `stages=`.
    pub fn schedules(
        p: &Program,
        kernel: SpecId,
        table: &AtomTable,
        machine: &Machine,
    ) -> Vec<crate::LoopSchedule> {
        crate::schedule::report::schedules(p, kernel, &crate::tricks::target(table, machine))
    }
}
