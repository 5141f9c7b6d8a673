//! Writes probes, programs in the text format that execute one atom on operands of the caller.
//! Tests with them show that an atom's row (layouts, text, rounding) describes the hardware
//! rightly.
//!
//! Simulator and device execute the same probe, and the test compares the results lane by lane. An
//! operand in registers is loaded from and stored to global memory by (block, thread, value),
//! through plain Moves, so that the first difference names a lane and a register of the atom. An
//! operand in memory is loaded and stored as a tile, so that a difference names coordinates. The
//! atom is the body of the spec that it implements, over tensors distributed as the atom states.
//! The simulator therefore also compares the atom with the meaning of this spec.
//!
//! - [`operand`]: the positions of an operand's values in the caller's tensors.
//! - `litmus`: programs in which a synchronization statement must work.
//! - `protocol`: the statements around an atom with asynchronous results.
//! - [`chain`]: a program that executes an atom repeatedly, for timing.
//! - [`corrupted`]: wrong atoms.
//!
//! To support an atom of a new kind, extend these files by a case for its fields (visibility,
//! operation, memories), never for its name. An atom without observable results is refused with the
//! reason, [`Unobservable`].

mod bulk;
mod chain;
mod choice;
mod corrupt;
mod litmus;
pub mod operand;
mod outcome;
mod protocol;
mod tile;
mod writer;

pub use chain::chain;
pub use choice::{Choice, Repeat};
pub use corrupt::corrupted;
pub use operand::scalars;
pub use outcome::{Probe, Unobservable};
pub use writer::literal_of;

use crate::atom::{Atom, AtomOperand, Extent};
use crate::table::AtomTable;

/// The number of different programs that [`probe`] makes for an atom, by [`Choice::pick`].
#[must_use]
pub fn n_picks(atom: &Atom) -> usize {
    if atom.extent != Extent::Tile {
        return bulk::scalars_of(atom).len();
    }
    let of = |o: &AtomOperand| {
        o.memory.len().max(scalars(o.elem).len()).max(operand::described(o).len())
    };
    atom.operands.iter().map(of).max().unwrap_or(1)
}

/// The program that executes an atom of `table`.
///
/// # Errors
/// [`Unobservable`].
pub fn probe(atom: &Atom, table: &AtomTable, choice: Choice) -> Result<Probe, Unobservable> {
    // The parts that distinguish the probes of an atom come first, because names are cut to a
    // length.
    let pick = if choice.pick > 0 { choice.pick.to_string() } else { String::new() };
    let set = if choice.set { "_set" } else { "" };
    let kernel = format!("probe{pick}{set}_{}", atom.name.replace('.', "_"));
    if atom.op.spec_kind().is_none() {
        return litmus::litmus(atom, table, choice, kernel);
    }
    if atom.extent != Extent::Tile {
        return bulk::probe(atom, table, choice, kernel);
    }
    tile::tile_probe(atom, table, choice, kernel, None)
}
