//! Defines the parameters of probes (test programs that execute one atom) and of chains (programs
//! that execute it again and again): which of the atom's memories, types and forms a program uses
//! ([`Choice`]), how many blocks and threads, and how often a chain repeats the atom ([`Repeat`]).

/// A choice among the memories, types and forms that an atom allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The index into the memories of an operand and into the scalar types that fill its units. The
    /// last one if the index is too large.
    pub pick: usize,
    /// The number of blocks of the grid. Each block has its own operands.
    pub blocks: i64,
    /// The number of threads of a block, a multiple of 32, and at least the number that the atom
    /// needs.
    pub threads: i64,
    /// Whether the program also stores the registers that the atom only reads. A compiler then
    /// keeps them even if the atom is removed.
    pub give_back: bool,
    /// For a MatMul that can both add and set: whether it sets the accumulator.
    pub set: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { pick: 0, blocks: 1, threads: 32, give_back: false, set: false }
    }
}

/// The number of executions of the atom in a [`chain`](super::chain()): `rounds` times `times`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Rounds of the loop, which is not unrolled.
    pub rounds: i64,
    /// Consecutive executions in one round.
    pub times: i64,
}
