//! Tests the command line. All tests are one program, so that Cargo links once.

/// The allocator of the binary, which makes searches faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod abi;
mod against;
mod annotate;
mod any_size;
mod atoms;
mod bad_input;
mod calculator;
mod certificates;
mod damaged;
mod descriptors;
mod docs;
mod draw;
mod examples;
mod expand;
mod explain;
mod filetests;
mod golden;
mod host;
mod imports;
mod kernel_level;
mod language;
mod lines;
mod numpy;
mod outputs;
mod pairs;
mod repair;
mod run;
mod serve;
mod simulate;
mod strategies;
mod streams;
mod support;
mod teir;
mod tuned;
mod tutorial;
