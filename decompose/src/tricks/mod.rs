//! Rewrites modules of tile-level kernels. Each file reads the module that the previous one has
//! written, and keeps its meaning. `docs/plan.md` replaces these rewrites by choices, so this
//! folder only shrinks.
//!
//! [`pipeline`] writes loops with `stages=` as loops in which copies of later iterations run ahead,
//! through rings of buffers. [`bulk`] does so by the copy engine, [`rotate`] lets bodies begin with
//! products of the next iteration. [`roles`] gives each role a loop of its own, [`consumers`] adds
//! a producer, [`clusters`] divides the grid. [`stores`] and [`apart`] write results by bulk
//! copies, and [`lifetime`] lets buffers that are used one after the other share their place.

pub(crate) mod apart;
pub(crate) mod bulk;
pub(crate) mod clusters;
pub(crate) mod consumers;
pub(crate) mod lifetime;
pub(crate) mod pipeline;
pub(crate) mod roles;
pub(crate) mod rotate;
mod slices;
pub(crate) mod stores;
mod turns;
mod waits;

use crate::access::ops::Known;
use crate::layouts::matmul;
use crate::schedule::Target;
use carbyne_atoms::{AtomTable, Machine};

/// The card for which loops are scheduled.
pub(crate) fn target<'a>(table: &'a AtomTable, machine: &'a Machine) -> Target<'a> {
    let by_descriptors =
        |p: &_, table: &_, op: &_| !matmul::described(p, table, op, &Known::new()).is_empty();
    Target { table, machine, by_descriptors }
}
