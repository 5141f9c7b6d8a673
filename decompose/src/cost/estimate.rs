//! [`Estimate`] is the estimated cost of a kernel: its time, its blocks and registers, and its use
//! of each [`Resource`]. This file computes nothing; [`super::steady`] fills it.

use std::ops::{Index, IndexMut};

/// The cost of a kernel, in total and for each resource.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cycles from the start of the first block to the end of the last one, without the launch.
    pub cycles: f64,
    /// The time in microseconds, with the launch.
    pub microseconds: f64,
    /// Threads of a block.
    pub threads: i64,
    /// 32-bit registers that a thread can have.
    pub room: i64,
    /// Blocks of the grid. `None` if the number depends on a symbol: then as many are counted as
    /// fit at once.
    pub blocks: Option<i64>,
    /// Blocks that one multiprocessor holds.
    pub blocks_per_sm: i64,
    /// The ratio of the blocks of the grid to the blocks that fit at once.
    pub waves: f64,
    /// 32-bit registers that tensors take in one thread at once.
    pub registers: i64,
    /// Bytes of shared memory of one block.
    pub shared_bytes: i64,
    /// Instructions of all warps of one block.
    pub instructions: f64,
    /// Whether the values of a thread take all registers that a block with so many threads has for
    /// it.
    pub(super) scarce: bool,
    pub(super) uses: [Use; Resource::ALL.len()],
}

/// The amount of a resource that a kernel uses.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Use {
    /// The amount for the whole grid, in the unit of the resource.
    pub amount: f64,
    /// Cycles for which the resource alone would keep a multiprocessor busy.
    pub cycles: f64,
}

/// A resource that can limit a kernel.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Units that multiply matrices.
    Matrix,
    /// Slots in which schedulers issue instructions.
    Issue,
    /// Units of special functions.
    Special,
    /// Shared memory.
    Shared,
    /// The L2 cache, and the connection to it.
    L2,
    /// Device memory.
    Dram,
    /// The time of one block that has a multiprocessor to itself.
    Latency,
    /// Barriers.
    Barriers,
}

impl Resource {
    /// All resources.
    pub const ALL: [Resource; 8] = [
        Resource::Matrix,
        Resource::Issue,
        Resource::Special,
        Resource::Shared,
        Resource::L2,
        Resource::Dram,
        Resource::Latency,
        Resource::Barriers,
    ];

    /// The name of the resource.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Resource::Matrix => "matrix units",
            Resource::Issue => "issue slots",
            Resource::Special => "special functions",
            Resource::Shared => "shared memory",
            Resource::L2 => "second-level cache",
            Resource::Dram => "device memory",
            Resource::Latency => "latency",
            Resource::Barriers => "barriers",
        }
    }

    /// The unit in which the resource is counted.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Resource::Matrix | Resource::Issue | Resource::Special => "cycles of a scheduler",
            Resource::Shared => "wavefronts",
            Resource::L2 | Resource::Dram => "bytes",
            Resource::Latency => "cycles of a block",
            Resource::Barriers => "barriers",
        }
    }
}

impl Index<Resource> for Estimate {
    type Output = Use;
    fn index(&self, resource: Resource) -> &Use {
        &self.uses[resource as usize]
    }
}

impl IndexMut<Resource> for Estimate {
    fn index_mut(&mut self, resource: Resource) -> &mut Use {
        &mut self.uses[resource as usize]
    }
}

impl Estimate {
    /// Whether a thread needs more registers than it can have.
    #[must_use]
    pub fn spills(&self) -> bool {
        self.registers > self.room || self.scarce
    }
}
