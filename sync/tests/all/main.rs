//! Tests the checker. All tests are one program, so that Cargo links once.

/// The allocator of the command-line program, with which searches are faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod campaign;
mod comments;
mod corpus;
mod edits;
mod elements;
mod faults;
mod loops;
mod owners;
mod partial;
mod reports;
mod support;
