//! What a block sees and changes: registers, shared memory, global memory, copies under way, barriers.
//!
//! Statements are executed block-wide, one after the other, and each reads what earlier ones wrote. That
//! this order is only one of many is the business of [`race`]: an access that another warp's access does
//! not happen before, and that conflicts with it, is an error. So a program that runs without error
//! computes the same under every schedule of its warps.

mod access;
pub(crate) mod banks;
mod global;
mod mbarrier;
pub(crate) mod race;
mod registers;
mod shared;

pub(crate) use access::{Failure, Who};
pub(crate) use global::{BlockGlobal, GlobalMemory, PAGE, Page, Written};
pub(crate) use mbarrier::{Arrival, BarrierFault, ClusterBarrier, Mbarrier, Unmet};
pub(crate) use registers::Registers;
pub(crate) use shared::{Pending, Shared};

use crate::index::{Env, LoopValue};
use crate::plan::Kernel;
use race::Clocks;
use std::collections::{BTreeMap, VecDeque};

/// The state of one block.
pub(crate) struct Block<'k> {
    /// What runs.
    pub kernel: &'k Kernel<'k>,
    /// Values of block and loop variables.
    pub env: Env,
    /// Register buffers, in the kernel's order.
    pub registers: Vec<Registers>,
    /// Shared memory.
    pub shared: Shared,
    /// Global memory, in the kernel's order of buffers.
    pub global: Vec<BlockGlobal<'k>>,
    /// Which warp knows how much of which other.
    pub clocks: Clocks,
    /// Asynchronous copies, by thread.
    pub copies: Vec<Copies>,
    /// Barrier objects, by their byte in shared memory.
    pub mbarriers: BTreeMap<usize, Mbarrier>,
    /// The barrier of the cluster.
    pub cluster: ClusterBarrier,
}

/// A thread's asynchronous copies.
#[derive(Default)]
pub(crate) struct Copies {
    /// Not yet committed.
    pub open: Vec<Pending>,
    /// Committed groups, the oldest first.
    pub groups: VecDeque<Vec<Pending>>,
}

impl<'k> Block<'k> {
    /// A block at its start.
    pub(crate) fn new(kernel: &'k Kernel<'k>, memory: &[&'k GlobalMemory], block: i64) -> Self {
        let agents = kernel.n_warps + 1;
        Block {
            kernel,
            env: Env { block, loops: vec![LoopValue::Uniform(0); kernel.n_loops] },
            registers: kernel
                .registers
                .iter()
                .map(|r| Registers::new(r.len, kernel.n_threads))
                .collect(),
            shared: Shared::new(&kernel.shared, agents),
            global: kernel
                .globals
                .iter()
                .zip(memory)
                .map(|(g, m)| BlockGlobal::new(m, g.written, agents))
                .collect(),
            clocks: Clocks::new(kernel.n_warps),
            copies: (0..kernel.n_threads).map(|_| Copies::default()).collect(),
            mbarriers: BTreeMap::new(),
            cluster: ClusterBarrier::default(),
        }
    }

    /// Closes a thread's group.
    pub(crate) fn commit(&mut self, thread: usize) {
        let copies = &mut self.copies[thread];
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// Completes a thread's oldest groups until `left` remain.
    pub(crate) fn wait(&mut self, thread: usize, left: usize) {
        while self.copies[thread].groups.len() > left {
            let Some(group) = self.copies[thread].groups.pop_front() else { break };
            let epoch = self.clocks.epoch(thread / 32);
            for pending in group {
                self.shared.complete(&pending, thread as u16, epoch);
            }
        }
    }
}
