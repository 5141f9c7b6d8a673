//! Places barriers, commits and waits such that every dependence between accesses is ordered.
//!
//! The model of a body: [`tree`] numbers its statements and knows the loops and conditions around
//! them. [`touched`] and [`crate::access::increments`] say which elements a leaf touches in which
//! iterations, [`dependences`] compares accesses, and [`paths`] says which statements lie between
//! two of them for certain.
//!
//! The places: [`gaps`] says where a barrier or a wait may stand, [`cheapest`] which places cost
//! the least ([`hitting_set`]), and [`copy_groups`] where copies are committed. [`planner`] holds
//! what these share.

mod cheapest;
mod copy_groups;
mod dependences;
pub(crate) mod facts;
mod gaps;
mod hitting_set;
mod paths;
mod planner;
mod refusal;
mod synchronization;
pub(crate) mod touched;
pub(crate) mod tree;

pub(crate) use synchronization::plan;
