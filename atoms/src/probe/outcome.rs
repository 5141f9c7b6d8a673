//! The program that probes an atom, or why there is none.

use super::operand::ProbeOperand;
use carbyne_ir::scalar::Memory;
use std::fmt;

/// An atom implements no spec.
pub(super) const NOT_A_SPEC: Unobservable = Unobservable::Statement("it implements no spec");

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
    /// It takes nothing in the form that it gives, so that no execution can wait for the one
    /// before.
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
