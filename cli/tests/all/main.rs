//! Tests of the command line, one program so that they link once.

mod bad_input;
mod docs;
mod expand;
mod filetests;
mod streams;
mod support;
