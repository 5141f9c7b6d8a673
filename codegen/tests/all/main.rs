//! Tests of printed code, in one program so that they link once.

mod atoms;
mod calls;
mod kernels;
mod refusals;
mod statements;
mod support;
