//! Tests of what is printed, one program so that they link once.

mod kernels;
mod refusals;
mod rows;
mod statements;
mod support;
