//! Tests decomposition. Most tests simulate the decomposed program and compare its results with the
//! meaning of its specs; one file compares layouts with results of the Hexcute paper.

/// The allocator of the binary, with which searches are faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod approximate;
mod barriers;
mod bodies;
mod casts;
mod certificates;
mod choices;
mod clusters;
mod corrupted;
mod edits;
mod every_spec;
mod exchanges;
mod explain;
mod gate;
mod kernel_level;
mod kernels;
mod known;
mod literals;
mod loops;
mod moves;
mod nodes;
mod open;
mod own;
mod parts;
mod pins;
mod places;
mod ranges;
mod refusals;
mod robust;
mod roles;
mod rotate;
mod stages;
mod strategies;
mod support;
mod tile_level;
mod uneven;
mod variants;
mod views;
mod wgmma;
