//! Tests of the command line, one program so that they link once.

mod bad_input;
mod damaged;
mod docs;
mod draw;
mod examples;
mod expand;
mod filetests;
mod numpy;
mod streams;
mod support;
