//! Tests of the checker, one program so that they link once.

mod campaign;
mod corpus;
mod loops;
mod support;
