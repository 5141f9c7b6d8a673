//! Tests the simulator. All tests are one program, so that Cargo links once.

mod accumulate;
mod atoms;
mod broadcast;
mod casts;
mod cluster;
mod conformance;
mod device;
mod elements;
mod examples;
mod examples_mutated;
mod hazards;
mod levels;
mod meanings;
mod memory;
mod mutants;
mod partial;
mod programs;
mod refusals;
mod report;
mod robust;
mod schedules;
mod support;
mod sync;
mod unbounded;
mod wgmma;
mod windows;
