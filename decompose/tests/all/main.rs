//! Decomposition against the simulator and against the papers' numbers.

mod barriers;
mod certificates;
mod choices;
mod corrupted;
mod edits;
mod exchanges;
mod explain;
mod gate;
mod kernel_level;
mod known;
mod literals;
mod moves;
mod nodes;
mod open;
mod parts;
mod pins;
mod ranges;
mod refusals;
mod robust;
mod stages;
mod strategies;
mod support;
mod tile_level;
mod uneven;
mod variants;
mod views;
