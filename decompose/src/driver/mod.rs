//! Decomposes modules: gives kernels their bodies, rewrites loops, solves layouts, and writes the
//! result.

mod attempt;
pub(crate) mod decompose;
pub(crate) mod decomposed;
mod generated;
pub(crate) mod kernels;
pub(crate) mod named;
pub(crate) mod pins;
mod refusals;
mod solving;
mod tiles;
pub(crate) mod unstated;
pub(crate) mod unstated_facts;
pub(crate) mod wider;
mod writing;
