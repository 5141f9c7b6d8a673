//! Decomposition against the simulator and against the papers' numbers.

mod barriers;
mod certificates;
mod choices;
mod corrupted;
mod edits;
mod exchanges;
mod explain;
mod gate;
mod hardware;
mod known;
mod moves;
mod pins;
mod refusals;
mod robust;
mod strategies;
mod support;
mod tile_level;
mod variants;
