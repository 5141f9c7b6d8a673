//! Choices that a probe is made by.

/// A choice among the memories, types and forms that an atom allows.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Which of an operand's memories and of the scalar types that fill its units: the first, the
    /// second, or the last where there are fewer.
    pub pick: usize,
    /// Blocks of the grid, each with operands of its own.
    pub blocks: i64,
    /// Threads of a block, a multiple of 32; at least those that the atom needs.
    pub threads: i64,
    /// Whether registers that the atom only reads are given back, so that a compiler keeps them
    /// where the atom is taken out.
    pub give_back: bool,
    /// Whether the accumulator of a MatMul is set, and not read, by an atom that does both.
    pub set: bool,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { pick: 0, blocks: 1, threads: 32, give_back: false, set: false }
    }
}

/// How often a [`chain`](super::chain()) executes its atom: in a loop of so many rounds, each of so
/// many executions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Repeat {
    /// Rounds of the loop, which is not unrolled.
    pub rounds: i64,
    /// Executions of a round, one after the other.
    pub times: i64,
}
