//! Defines what making a probe for an atom gives: a [`Probe`], a program that executes the atom,
//! with its operands, or an [`Unobservable`], the reason why no program can show what the atom
//! does.

use super::operand::ProbeOperand;
use carbyne_ir::scalar::Memory;
use std::fmt;

/// The reason for an atom that implements no spec.
pub(super) const NOT_A_SPEC: Unobservable = Unobservable::Statement("it implements no spec");

/// A program that executes one atom.
#[derive(Clone, Debug, PartialEq)]
pub struct Probe {
    /// The program, which has one kernel.
    pub text: String,
    /// The kernel's name, without `@`.
    pub kernel: String,
    /// The atom's operands in its order, without literals.
    pub operands: Vec<ProbeOperand>,
    /// Blocks of the grid.
    pub blocks: i64,
    /// Threads of a block.
    pub threads: i64,
    /// Whether a MatMul sets its accumulator.
    pub set: bool,
}

/// Why an atom has no probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unobservable {
    /// The table has no plain Move of this number of bits between these memories.
    NoMove(Memory, Memory, i64),
    /// The layouts of an operand do not extend to all threads of a block.
    Layout(String),
    /// The atom cannot read its own results, so that no execution depends on the previous one.
    NoChain,
    /// It is a synchronization statement without an observable effect, for this reason.
    Statement(&'static str),
    /// It is a synchronization statement for which the architecture has this better atom.
    Shadowed(&'static str),
}

impl fmt::Display for Unobservable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unobservable::NoMove(from, to, bits) => {
                write!(f, "the architecture has no Move of {bits} bits from {from} to {to}")
            }
            Unobservable::Layout(why) => write!(f, "its layouts do not fill a block: {why}"),
            Unobservable::Statement(why) => f.write_str(why),
            Unobservable::Shadowed(better) => {
                write!(f, "the architecture uses `{better}` for this statement")
            }
            Unobservable::NoChain => f.write_str("it cannot read its own results"),
        }
    }
}

impl std::error::Error for Unobservable {}
