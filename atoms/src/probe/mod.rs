//! Probes: a program in the text format that executes one atom on operands of the caller.
//!
//! Whoever executes the program, the simulator or a device, can be compared with whoever else does,
//! lane by lane: what a thread holds of an operand in registers comes from and goes to global
//! memory by (block, thread, value), through plain loads and stores, so that the first difference
//! names a lane and a register of the atom. An operand in memory comes and goes as its tile, so
//! that a difference names coordinates. Inside, the atom is the body of the spec that it
//! implements, over tensors distributed as the atom says; so the simulator checks it against the
//! meaning of that spec as well.
//!
//! - [`operand`]: where an operand's values are in the caller's tensors.
//! - `litmus`: programs in which a statement between specs must work;
//! - `protocol`: the statements around an atom whose results are not there at once.
//! - [`chain`]: a program that executes an atom again and again, to be timed; [`corrupted`]: atoms
//!   that are wrong.
//!
//! An atom of another kind extends these by what its fields say (visibility, operation, memories),
//! never by its name. Statements between specs have litmus kernels, whose results show that they
//! worked. What has no result to look at is refused with the reason, [`Unobservable`].

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

/// How many different programs [`probe`] makes of an atom by [`Choice::pick`].
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
    // What tells probes of an atom apart comes first: names are cut to a length.
    let pick = if choice.pick > 0 { choice.pick.to_string() } else { String::new() };
    let set = if choice.set { "_set" } else { "" };
    let kernel = format!("probe{pick}{set}_{}", atom.name.replace('.', "_"));
    if atom.op.spec_kind().is_none() {
        return litmus::litmus(atom, table, choice, kernel);
    }
    if atom.extent != Extent::Tile {
        return bulk::probe(atom, table, choice, kernel);
    }
    tile::written(atom, table, choice, kernel, None)
}
