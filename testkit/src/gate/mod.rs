//! The gate of decomposition: random programs of several operations mean the same before and after.
//!
//! [`case`] draws a description, [`Case::render`] writes it as a program, [`judge`] decomposes the
//! program and runs both: the same outputs, no race, nothing undefined is read. `cargo test` does
//! so for a fixed seed, the fuzz target `decompose_preserves_meaning` for whatever bytes are worth
//! trying. [`graph()`] and [`Graph::render`] do the same at kernel level, where strategies choose.
//!
//! Invariant: what is judged is a text, so that a failure can be kept, read and mended by hand.
//! Invariant: the source itself runs cleanly, by construction; where it does not, it says nothing
//! about decomposition, and is counted.

mod exact;
mod graph;
mod judge;
mod plan;
mod render;

pub use graph::{Form, Graph, Node, Operand, UNEVEN, graph};
pub use judge::{Failure, REFUSALS, Subject, Verdict, judge};
pub use plan::{Case, Global, Kernel, Operation, Pick, Place, Step, case};
