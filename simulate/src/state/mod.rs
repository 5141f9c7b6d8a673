//! What a block sees and changes: registers, shared memory, global memory, copies under way.
//!
//! Statements are executed one after the other, and each reads what earlier ones wrote. That this order is
//! only one of many is the business of [`race`]: an access that another thread's access does not happen
//! before, and that conflicts with it, is an error. So a program that runs without error computes the same
//! under every schedule of its threads.

mod access;
mod arrivals;
pub(crate) mod banks;
pub(crate) mod clock;
mod flight;
mod global;
mod mbarrier;
mod pool;
pub(crate) mod race;
mod reads;
mod registers;
mod shared;

pub(crate) use access::Failure;
pub(crate) use clock::Who;
pub(crate) use flight::{Flights, Issue};
pub(crate) use global::{BlockGlobal, GlobalMemory, PAGE, Page, Written};
pub(crate) use mbarrier::{ClusterBarrier, Mbarrier, Misuse, Unmet};
pub(crate) use pool::RegisterPool;
pub(crate) use registers::Registers;
pub(crate) use shared::{Pending, Shared};

use crate::plan::Kernel;
use race::LastWrite;
use std::collections::{BTreeMap, VecDeque};

/// The state of one block.
pub(crate) struct Block<'k> {
    /// What runs.
    pub kernel: &'k Kernel<'k>,
    /// Register buffers, in the kernel's order.
    pub registers: Vec<Registers>,
    /// Shared memory.
    pub shared: Shared,
    /// Global memory, in the kernel's order of buffers.
    pub global: Vec<BlockGlobal<'k>>,
    /// Asynchronous copies, by thread.
    pub copies: Vec<Copies>,
    /// Bulk copies out of shared memory, by thread.
    pub bulks: Vec<Bulks>,
    /// Asynchronous MatMuls.
    pub flights: Flights,
    /// Barrier objects, by their byte in shared memory.
    pub mbarriers: BTreeMap<usize, Mbarrier>,
    /// Registers that warps hand over.
    pub pool: RegisterPool,
    /// The thread that was denied an access, and the earlier one that it would race with.
    pub accused: Option<(u16, Option<race::Clash>)>,
}

/// A thread's asynchronous copies.
#[derive(Default)]
pub(crate) struct Copies {
    /// Not yet committed.
    pub open: Vec<Pending>,
    /// Committed groups, the oldest first.
    pub groups: VecDeque<Vec<Pending>>,
}

/// A thread's bulk copies that no mbarrier counts: the statement, and the granules of shared memory that
/// it reads.
#[derive(Default)]
pub(crate) struct Bulks {
    /// Not yet committed.
    pub open: Vec<(u32, Vec<u32>)>,
    /// Committed groups, the oldest first.
    pub groups: VecDeque<Vec<(u32, Vec<u32>)>>,
}

impl<'k> Block<'k> {
    /// A block at its start.
    pub(crate) fn new(kernel: &'k Kernel<'k>, memory: &[&'k GlobalMemory], readers: usize) -> Self {
        Block {
            kernel,
            registers: kernel
                .registers
                .iter()
                .map(|r| Registers::new(r.len, kernel.n_threads, kernel.has_flights))
                .collect(),
            shared: Shared::new(&kernel.shared, readers),
            global: kernel
                .globals
                .iter()
                .zip(memory)
                .map(|(g, m)| BlockGlobal::new(m, g.written, readers))
                .collect(),
            copies: (0..kernel.n_threads).map(|_| Copies::default()).collect(),
            mbarriers: BTreeMap::new(),
            bulks: (0..kernel.n_threads).map(|_| Bulks::default()).collect(),
            flights: Flights::new(kernel.n_warps),
            pool: kernel.pool.clone(),
            accused: None,
        }
    }

    /// Completes a warp's oldest groups of MatMuls until `left` remain.
    pub(crate) fn wait_flights(&mut self, warp: usize, left: usize, who: &Who) {
        for (number, flight) in self.flights.wait(warp, left) {
            for (buffer, slot) in flight.registers() {
                self.registers[buffer].release(slot, number);
            }
            let mut who = who.clone();
            who.site = flight.site();
            self.shared.end_read(&flight.granules, &who);
        }
    }

    /// Closes a thread's group of bulk copies.
    pub(crate) fn commit_bulk(&mut self, thread: usize) {
        let bulks = &mut self.bulks[thread];
        let group = std::mem::take(&mut bulks.open);
        bulks.groups.push_back(group);
    }

    /// Completes a thread's oldest groups of bulk copies until `left` remain.
    pub(crate) fn wait_bulk(&mut self, thread: usize, left: usize, who: &Who) {
        while self.bulks[thread].groups.len() > left {
            let Some(group) = self.bulks[thread].groups.pop_front() else { break };
            for (_, granules) in group {
                self.shared.end_read(&granules, who);
            }
        }
    }

    /// A bulk copy of a thread that may still read shared memory: its statement.
    pub(crate) fn still_reads(&self, thread: usize) -> Option<u32> {
        let Bulks { open, groups } = &self.bulks[thread];
        let all = open.iter().chain(groups.iter().flatten());
        all.filter(|(_, granules)| !granules.is_empty()).map(|(site, _)| *site).next()
    }

    /// Closes a thread's group.
    pub(crate) fn commit(&mut self, thread: usize) {
        let copies = &mut self.copies[thread];
        let group = std::mem::take(&mut copies.open);
        copies.groups.push_back(group);
    }

    /// Completes a thread's oldest groups until `left` remain.
    pub(crate) fn wait(&mut self, thread: usize, left: usize, who: &Who) {
        while self.copies[thread].groups.len() > left {
            let Some(group) = self.copies[thread].groups.pop_front() else { break };
            for pending in group {
                let mut write = LastWrite::by(who);
                write.thread = thread as u16;
                self.shared.complete(&pending, write);
            }
        }
    }
}
