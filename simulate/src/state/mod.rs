//! Holds the state of a block while it runs ([`Block`]): registers, shared memory, global memory,
//! mbarriers, and the asynchronous copies and MatMuls that are not complete.
//!
//! Statements are executed one after the other, and each reads the writes of earlier ones. This is
//! one of many orders; [`race`] checks that the order does not matter. A conflicting access that is
//! not ordered after an earlier access of another thread is an error. Therefore a program that runs
//! without an error computes the same results under every schedule of its threads.
//!
//! `access` is the entrance for accesses to all memories. `registers`, `shared` and `global` store
//! values. `clock`, `race` and `reads` decide which accesses are ordered. `mbarrier`, `groups`,
//! `pending_global` and `async_matmul` track asynchronous work.

mod access;
mod accumulators;
mod arrivals;
mod async_matmul;
pub(crate) mod banks;
pub(crate) mod clash;
pub(crate) mod clock;
mod global;
mod groups;
mod mbarrier;
mod pending_global;
mod pool;
pub(crate) mod race;
mod reads;
mod register_use;
mod registers;
mod shared;
mod value;

pub(crate) use access::Failure;
pub(crate) use accumulators::Accumulator;
pub(crate) use async_matmul::{Flights, Issue};
pub(crate) use clock::Who;
pub(crate) use global::{BlockGlobal, GlobalMemory, PAGE, Page, Pages, Written};
pub(crate) use mbarrier::{ClusterBarrier, Mbarrier, Misuse, Unmet};
pub(crate) use pending_global::{Counted, GlobalElement, InFlight, Stores};
pub(crate) use pool::RegisterPool;
pub(crate) use registers::Registers;
pub(crate) use shared::{Pending, Shared};
pub(crate) use value::{Tile, Value, same_shadow};

use crate::plan::Kernel;
use groups::Groups;
use race::LastWrite;
use std::collections::BTreeMap;

/// The limit of stored granules and elements of pending bulk copies.
const MAX_KEPT: usize = 1 << 22;

/// The state of one block.
pub(crate) struct Block<'k> {
    /// The kernel.
    pub kernel: &'k Kernel<'k>,
    /// The register buffers, in the kernel's order.
    pub registers: Vec<Registers>,
    /// Shared memory.
    pub shared: Shared,
    /// Global memory, in the kernel's order of buffers.
    pub global: Vec<BlockGlobal<'k>>,
    /// Asynchronous copies, by thread.
    pub copies: Vec<Groups<InFlight>>,
    /// Bulk copies out of shared memory, by thread.
    pub bulks: Vec<Groups<Stores>>,
    /// The remaining capacity for bulk copies: granules that they read, and elements that they
    /// write.
    room: usize,
    /// Asynchronous MatMuls.
    pub flights: Flights,
    /// The mbarriers, by their byte in shared memory.
    pub mbarriers: BTreeMap<usize, Mbarrier>,
    /// The registers that warps release and request.
    pub pool: RegisterPool,
    /// Whether values have shadows.
    pub shadows: bool,
    /// The thread whose access failed, and the earlier access that it races with.
    pub accused: Option<(u16, Option<clash::Clash>)>,
}

impl<'k> Block<'k> {
    /// A block at its start.
    pub(crate) fn new(
        kernel: &'k Kernel<'k>,
        memory: &[&'k GlobalMemory],
        readers: usize,
        shadows: bool,
    ) -> Self {
        Block {
            kernel,
            registers: kernel
                .registers
                .iter()
                .map(|r| Registers::new(r.len, kernel.n_threads, kernel.has_flights, shadows))
                .collect(),
            shared: Shared::new(&kernel.shared, readers, shadows),
            shadows,
            global: kernel
                .globals
                .iter()
                .zip(memory)
                .map(|(g, m)| BlockGlobal::new(m, g.written, readers))
                .collect(),
            copies: (0..kernel.n_threads).map(|_| Groups::default()).collect(),
            mbarriers: BTreeMap::new(),
            bulks: (0..kernel.n_threads).map(|_| Groups::default()).collect(),
            room: MAX_KEPT,
            flights: Flights::new(kernel.n_warps),
            pool: kernel.pool.clone(),
            accused: None,
        }
    }

    /// Completes a warp's oldest groups of MatMuls until `left` remain.
    pub(crate) fn wait_flights(&mut self, warp: usize, left: usize, who: &Who) {
        for flight in self.flights.wait(warp, left) {
            let mut who = who.clone();
            who.site = flight.site();
            self.shared.end_read(&flight.granules, &who, true);
        }
    }

    /// Completes the reads of a thread's oldest groups of bulk copies until `left` may still read.
    pub(crate) fn wait_bulk_read(&mut self, thread: usize, left: usize, who: &Who) {
        for group in self.bulks[thread].complete(left) {
            for (_, granules) in group.reads.drain(..) {
                self.shared.end_read(&granules, who, false);
                self.room += 1 + granules.len();
            }
        }
    }

    /// Completes a thread's oldest groups of bulk copies until `left` remain.
    pub(crate) fn wait_bulk(&mut self, thread: usize, left: usize, who: &Who) {
        while let Some(group) = self.bulks[thread].next_complete(left) {
            self.room += group.targets.len();
            for (_, granules) in group.reads {
                self.shared.end_read(&granules, who, false);
                self.room += 1 + granules.len();
            }
            for GlobalElement { buffer, at, .. } in group.targets {
                self.global[usize::from(buffer)].end_write(at, who);
            }
        }
    }

    /// The statement of a bulk copy of a thread that may still read shared memory.
    pub(crate) fn still_reads(&self, thread: usize) -> Option<u32> {
        self.bulks[thread].iter().flat_map(|group| &group.reads).map(|(site, _)| *site).next()
    }

    /// Stores a bulk copy of a thread until it is complete. None if the capacity is exceeded.
    pub(crate) fn keep_store(
        &mut self,
        thread: usize,
        (site, granules): (u32, Vec<u32>),
        targets: Vec<GlobalElement>,
    ) -> Option<()> {
        let Stores { reads, targets: all } = &mut self.bulks[thread].open;
        self.room = self.room.checked_sub(1 + granules.len() + targets.len())?;
        reads.push((site, granules));
        all.extend(targets);
        Some(())
    }

    /// The statement of a copy of a thread to shared memory without a wait.
    pub(crate) fn still_copies(&self, thread: usize) -> Option<u32> {
        self.copies[thread].iter().flat_map(|group| &group.elements).map(Pending::site).next()
    }

    /// Completes a thread's oldest groups until `left` remain. Returns the phases of mbarriers with
    /// which some of their copies arrived earlier: the thread now knows of these phases.
    pub(crate) fn wait(&mut self, thread: usize, left: usize, who: &Who) -> Vec<(u16, u32)> {
        let who = &mut who.clone();
        who.thread = thread as u16;
        let mut learned = vec![];
        while let Some(group) = self.copies[thread].next_complete(left) {
            self.land(&group.elements, &group.sources, who);
            for counted in &group.counted {
                match counted.done.get() {
                    Some(done) => learned.extend(done),
                    // A thread that waits for the mbarrier comes after the accesses of this thread
                    // before its arrival there.
                    None => {
                        counted.done.set(Some(None));
                        self.land(&counted.elements, &counted.sources, &counted.who);
                    }
                }
            }
            learned.extend(group.landed);
        }
        learned
    }

    /// Completes copies of a thread.
    fn land(&mut self, elements: &[Pending], sources: &[GlobalElement], who: &Who) {
        for pending in elements {
            self.shared.complete(pending, LastWrite::by(who));
        }
        for GlobalElement { buffer, at, .. } in sources {
            self.global[usize::from(*buffer)].end_read(*at, who);
        }
    }
}
