//! Tests printed code. All tests are one program, so that Cargo links once.

mod atoms;
mod calls;
mod kernels;
mod refusals;
mod statements;
mod support;
