//! Strategies: how a kernel-level spec gets its dataflow.
//!
//! A strategy is a file: what it does, when it applies, its law. It yields tile-level text with open
//! layouts; the solver does the rest. What it chose is printed as attributes that can be pinned.

mod blocks;
pub mod matmul;
pub mod movement;
pub mod reduction;
mod tiling;
