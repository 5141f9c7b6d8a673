//! Tests of the atom table, in one program so that they link once.

mod bind;
mod descriptors;
mod fragments;
mod golden;
mod sweep;
