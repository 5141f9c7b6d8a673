//! Tests decomposition on random programs of several operations: the *gate*. A program must mean
//! the same before and after decomposition.
//!
//! [`case`] draws a description, [`Case::render`] writes it as a program, and [`judge`] decomposes
//! the program and runs both versions. Their outputs must agree: exactly in tensors that rounding
//! cannot change, otherwise without rounding and within a small tolerance. Neither may have a race
//! or read an undefined element. `cargo test` does this for a fixed seed, the fuzz target
//! `decompose_preserves_meaning` for the bytes of the fuzzer. [`graph()`] and [`Graph::render`] do
//! the same for kernels without bodies, whose strategies the solver chooses.
//!
//! Invariant: the subject is a text, so that a person can store, read and fix a failing program.
//! Invariant: the source program runs cleanly by construction. If one does not, it proves nothing
//! about decomposition: it is discarded and counted.

mod description;
mod exact;
mod graph;
mod judge;
mod render;

pub use description::{Case, Global, Kernel, Operation, Pick, Place, Step, case};
pub use graph::{Form, Graph, Node, Operand, UNEVEN, graph};
pub use judge::{Failure, REFUSALS, Subject, Verdict, judge};
