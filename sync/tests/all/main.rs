//! Tests of the checker, one program so that they link once.

mod corpus;
mod support;
