//! Probes: a program in the text format that executes one atom on operands of the caller.
//!
//! Whoever executes the program, the simulator or a device, can be compared with whoever else does, lane
//! by lane: what a thread holds of an operand in registers comes from and goes to global memory by
//! (block, thread, value), through plain loads and stores, so that the first difference names a lane and a
//! register of the atom. An operand in memory comes and goes as its tile, so that a difference names
//! coordinates. Inside, the atom is the body of the spec that it implements, over tensors distributed as the
//! atom says; so the simulator checks it against the meaning of that spec as well.
//!
//! - [`operand`]: where an operand's values are in the caller's tensors.
//! - `litmus`: programs in which a statement between specs must work;
//! - `protocol`: the statements around an atom whose results are not there at once.
//! - [`chain`]: a program that executes an atom again and again, to be timed; [`corrupted`]: atoms that are wrong.
//!
//! An atom of another kind extends these by what its fields say (visibility, operation, memories), never by
//! its name. Statements between specs have litmus kernels, whose results show that they worked. What has no result
//! to look at is refused with the reason, [`Unobservable`].

mod bulk;
mod chain;
mod corrupt;
mod litmus;
pub mod operand;
mod protocol;
mod writer;

pub use chain::{Repeat, chain};
pub use corrupt::corrupted;

use crate::atom::{Atom, AtomOperand, Elem, Extent, OperandAccess};
use crate::table::AtomTable;
use carbyne_ir::scalar::{Memory, Scalar};
use operand::ProbeOperand;
use std::fmt;
use writer::Writer;
pub use writer::literal_of;

/// Of an atom that implements none.
const NOT_A_SPEC: Unobservable = Unobservable::Statement("it implements no spec");

/// What is chosen where an atom leaves a choice.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which of an operand's memories and of the scalar types that fill its units: the first, the second,
    /// or the last where there are fewer.
    pub pick: usize,
    /// Blocks of the grid, each with operands of its own.
    pub blocks: i64,
    /// Threads of a block, a multiple of 32; at least those that the atom needs.
    pub threads: i64,
    /// Whether registers that the atom only reads are given back, so that a compiler keeps them where the atom
    /// is taken out.
    pub give_back: bool,
    /// Whether the accumulator of a MatMul is set, and not read, by an atom that does both.
    pub set: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { pick: 0, blocks: 1, threads: 32, give_back: false, set: false }
    }
}

/// A program that executes one atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The program, of one kernel.
    pub text: String,
    /// The kernel's name, without `@`.
    pub kernel: String,
    /// The atom's operands in its order; literals are left out.
    pub operands: Vec<ProbeOperand>,
    /// Blocks of the grid.
    pub blocks: i64,
    /// Threads of a block.
    pub threads: i64,
    /// Whether the accumulator is set, and not read.
    pub set: bool,
}

/// Why there is no probe of an atom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unobservable {
    /// The table has no plain move of so many bits between these memories.
    NoMove(Memory, Memory, i64),
    /// An operand's layouts do not extend to all threads of a block.
    Layout(String),
    /// It takes nothing in the form that it gives, so that no execution can wait for the one before.
    NoChain,
    /// It is a statement between specs of which nothing can be observed, for this reason.
    Statement(&'static str),
    /// It is a statement for which the architecture has this better atom.
    Shadowed(&'static str),
}

impl fmt::Display for Unobservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unobservable::NoMove(from, to, bits) => {
                write!(f, "the architecture has no move of {bits} bits from {from} to {to}")
            }
            Unobservable::Layout(why) => write!(f, "its layouts do not fill a block: {why}"),
            Unobservable::Statement(why) => f.write_str(why),
            Unobservable::Shadowed(better) => write!(f, "the statement is `{better}` there"),
            Unobservable::NoChain => f.write_str("it takes nothing in the form that it gives"),
        }
    }
}

impl std::error::Error for Unobservable {}

/// The scalar types that stand for an operand's elements, from the widest on.
#[must_use]
pub fn scalars(elem: Elem) -> &'static [Scalar] {
    match elem {
        Elem::Scalar(s) => {
            // A slice of one, out of the list of all.
            let at = Scalar::ALL.iter().position(|t| *t == s).unwrap_or(0);
            &Scalar::ALL[at..=at]
        }
        Elem::Bits(8) => &[Scalar::U8, Scalar::I4],
        Elem::Bits(16) => &[Scalar::F16, Scalar::U8],
        Elem::Bits(_) => &[Scalar::F32, Scalar::F16, Scalar::I8],
    }
}

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
    written(atom, table, choice, kernel, None)
}

fn written(
    atom: &Atom,
    table: &AtomTable,
    choice: Choice,
    kernel: String,
    repeat: Option<Repeat>,
) -> Result<Probe, Unobservable> {
    if atom.op.spec_kind().is_none() {
        return match repeat {
            None => litmus::litmus(atom, table, choice, kernel),
            Some(_) => Err(Unobservable::NoChain),
        };
    }
    if atom.extent != Extent::Tile {
        return match repeat {
            None => bulk::probe(atom, table, choice, kernel),
            Some(_) => Err(Unobservable::NoChain),
        };
    }
    let threads = n_threads(atom, choice.threads);
    let groups = threads / atom.group;
    let mut operands = vec![];
    for o in atom.operands.iter().filter(|o| literal_of(atom, o).is_none()) {
        // A chain writes to what it reads.
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

/// Threads of a block: as many of those that are wanted as groups of the atom fill, in whole warps; at least
/// those of one group.
fn n_threads(atom: &Atom, wanted: i64) -> i64 {
    let window = match atom.thread_layout.cosize() {
        1 => 1,
        reach if reach == atom.group => reach,
        reach => (reach + 31) / 32 * 32,
    };
    (wanted / window).max(1) * window
}
