//! Gives kernel-level specs their dataflow, by strategies, which are texts.
//!
//! A [`graph`] describes the computation of the spec. [`pattern`] matches it with the meaning of
//! each strategy of the [`library`]; [`params`] enumerates the values of its parameters that its
//! conditions and the pins of the text allow; [`mod@write`] makes statements of one instance,
//! [`chain`] those of the sub-specs that the match defines. [`choose`] ranks instances; those that
//! are [`alike`] share a program; [`trials`] solves the ones that may be the cheapest.
//!
//! Invariant: a strategy can say nothing that a person could not have written as a body.

mod alike;
mod atom;
mod between;
pub(crate) mod candidates;
mod chain;
pub(crate) mod choose;
mod extents;
mod factors;
mod found;
mod graph;
mod in_place;
mod larger;
pub(crate) mod library;
mod maps;
mod matched;
mod nearest;
pub(crate) mod needed;
mod padded;
pub(crate) mod params;
mod pattern;
mod place;
mod refusal;
pub(crate) mod sample;
mod scalars;
mod sizes;
pub(crate) mod symbols;
mod trials;
mod unwritten;
mod write;

pub(crate) use atom::could_be;
