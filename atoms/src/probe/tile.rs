//! Makes the probe (a test program that executes an atom once) and the chain (a program that
//! executes it again and again) of an atom whose operands are tiles, that is, of every atom that
//! implements a spec and is not a bulk copy.

use super::choice::{Choice, Repeat};
use super::operand::ProbeOperand;
use super::outcome::{Probe, Unobservable};
use super::writer::{Writer, literal_of};
use crate::atom::{Atom, OperandAccess};
use crate::table::AtomTable;

/// The program that executes an atom once, or as often as `repeat` says.
pub(super) fn tile_probe(
    atom: &Atom,
    table: &AtomTable,
    choice: Choice,
    kernel: String,
    repeat: Option<Repeat>,
) -> Result<Probe, Unobservable> {
    let threads = n_threads(atom, choice.threads);
    let groups = threads / atom.group;
    let mut operands = vec![];
    for o in atom.operands.iter().filter(|o| literal_of(atom, o).is_none()) {
        // A chain writes to an operand that it reads.
        if repeat.is_some() && o.access == OperandAccess::Write {
            continue;
        }
        let made = ProbeOperand::new(atom, o, choice, threads, groups);
        operands.push(made.map_err(|e| Unobservable::Layout(e.to_string()))?);
    }
    let writer = Writer { atom, table, choice, threads, groups };
    let text = writer.program(&kernel, &operands, repeat)?;
    let (blocks, set) = (choice.blocks, choice.set);
    Ok(Probe { text, kernel, operands, blocks, threads, set })
}

/// The number of threads of a block: the largest number up to `wanted` that consists of whole
/// groups, or whole warps if the group is not contiguous. At least one group.
fn n_threads(atom: &Atom, wanted: i64) -> i64 {
    let window = match atom.thread_layout.cosize() {
        1 => 1,
        reach if reach == atom.group => reach,
        reach => (reach + 31) / 32 * 32,
    };
    (wanted / window).max(1) * window
}
