//! Tests of the checker, one program so that they link once.

mod campaign;
mod comments;
mod corpus;
mod edits;
mod elements;
mod faults;
mod loops;
mod owners;
mod partial;
mod says;
mod support;
