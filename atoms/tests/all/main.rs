//! Tests the atom table. All tests are one program, so that Cargo links once.

mod bind;
mod descriptors;
mod fragments;
mod golden;
mod sweep;
