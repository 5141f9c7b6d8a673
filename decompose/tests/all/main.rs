//! Decomposition against the simulator and against the papers' numbers.

mod barriers;
mod certificates;
mod corrupted;
mod edits;
mod known;
mod moves;
mod refusals;
mod robust;
mod support;
mod tile_level;
mod variants;
