//! Barrier objects, and the barrier of a cluster.
//!
//! An mbarrier counts phases from 0. A phase is complete when all its arrivals and bytes are there; the
//! next begins at once. Whoever waits for a phase comes after everything that its arrivals came after,
//! and asynchronous copies that the phase counts become visible then.
//!
//! The barrier of the cluster counts every thread of its blocks; each block keeps its own part of it.

use super::race::Known;
use super::{Block, Pending};
use crate::plan::Space;
use carbyne_ir::ast::SyncOp;

/// One barrier object.
pub(crate) struct Mbarrier {
    /// Arrivals of a phase.
    count: i64,
    /// Arrivals that the phase still lacks.
    arrivals: i64,
    /// Bytes that it still lacks; below zero where they came before they were expected.
    bytes: i64,
    /// The current phase.
    phase: u64,
    /// What those know who arrived in this phase, and in all complete ones: arrivals are a chain, and
    /// whoever sees the last comes after all of them.
    arriving: Known,
    complete: Known,
    /// Copies that this phase counts, and those of complete ones that nobody has waited for.
    landing: Vec<Landing>,
    landed: Vec<Landing>,
}

/// Copies of a thread that become visible with a phase.
struct Landing {
    thread: u16,
    epoch: u32,
    elements: Vec<Pending>,
}

/// What a phase lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// Which.
    pub phase: u64,
    /// Arrivals.
    pub arrivals: i64,
    /// Bytes.
    pub bytes: i64,
}

/// What another block does to an mbarrier.
pub(crate) enum Arrival {
    /// So many arrivals.
    Arrivals(i64),
    /// Bytes of a bulk copy, with the elements of a view: offset in its buffer, and bits.
    Bytes {
        /// How many.
        n: i64,
        /// Of the kernel's views.
        view: usize,
        /// The elements.
        elements: Vec<(i64, u64)>,
    },
}

/// Why a statement on a barrier is an error.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum BarrierFault {
    /// A wait that nothing before it completes.
    Unmet(Unmet),
    /// A use that hardware does not allow.
    Misuse {
        /// What it gets.
        what: &'static str,
        /// What mends it.
        help: &'static str,
    },
}

const TWICE: BarrierFault = BarrierFault::Misuse {
    what: "is initialized twice",
    help: "let one thread initialize it, once: `Spec <<<#grid, #cta[0]>>> .. { mbarrier.init(..) }`",
};
const NOT_INITIALIZED: BarrierFault = BarrierFault::Misuse {
    what: "is used before its `mbarrier.init`",
    help: "initialize it, then put a `barrier` before its first use",
};
const TOO_MANY: BarrierFault = BarrierFault::Misuse {
    what: "gets more arrivals than its phase takes",
    help: "compare the count of `mbarrier.init` with the threads that arrive",
};

impl Mbarrier {
    fn new(count: i64) -> Self {
        Mbarrier {
            count,
            arrivals: count,
            bytes: 0,
            phase: 0,
            arriving: Known::default(),
            complete: Known::default(),
            landing: Vec::new(),
            landed: Vec::new(),
        }
    }

    /// Begins the next phase if this one lacks nothing.
    fn settle(&mut self) {
        if self.arrivals == 0 && self.bytes == 0 {
            self.phase += 1;
            self.arrivals = self.count;
            self.complete.join(&std::mem::take(&mut self.arriving));
            self.landed.append(&mut self.landing);
        }
    }
}

/// The barrier of a cluster's threads.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    phase: u64,
    arrived: usize,
    /// Phases in which each thread has arrived, and for which it has waited.
    threads: Vec<(u64, u64)>,
    arriving: Known,
    complete: Known,
}

impl Block<'_> {
    /// A thread's statement on the mbarrier at a byte of shared memory.
    pub(crate) fn mbarrier(
        &mut self,
        op: SyncOp,
        byte: usize,
        thread: usize,
        number: i64,
    ) -> Result<(), BarrierFault> {
        if op == SyncOp::MbarrierInit {
            return match self.mbarriers.insert(byte, Mbarrier::new(number)) {
                None => Ok(()),
                Some(_) => Err(TWICE),
            };
        }
        let barrier = self.mbarriers.get_mut(&byte).ok_or(NOT_INITIALIZED)?;
        if op == SyncOp::MbarrierWait {
            if barrier.phase & 1 == number as u64 & 1 {
                let Mbarrier { phase, arrivals, bytes, .. } = *barrier;
                return Err(BarrierFault::Unmet(Unmet { phase, arrivals, bytes }));
            }
            self.clocks.acquire(thread / 32, &barrier.complete);
            for landing in std::mem::take(&mut barrier.landed) {
                for pending in &landing.elements {
                    self.shared.complete(pending, landing.thread, landing.epoch);
                }
            }
            return Ok(());
        }
        let arrivals = match op {
            SyncOp::MbarrierArrive => number,
            _ => 1,
        };
        if arrivals > barrier.arrivals {
            return Err(TOO_MANY);
        }
        if op == SyncOp::MbarrierAsyncArrive {
            let copies = &mut self.copies[thread];
            let groups = copies.groups.iter_mut().flat_map(std::mem::take);
            let elements: Vec<Pending> = groups.chain(std::mem::take(&mut copies.open)).collect();
            let epoch = self.clocks.epoch(thread / 32);
            barrier.landing.push(Landing { thread: thread as u16, epoch, elements });
        }
        if op == SyncOp::MbarrierExpect {
            barrier.bytes += number;
        }
        self.clocks.release(thread / 32, &mut barrier.arriving);
        barrier.arrivals -= arrivals;
        barrier.settle();
        Ok(())
    }

    /// Bytes of a bulk copy, issued by a thread, arrive at the mbarrier at a byte of shared memory; its
    /// elements become visible with the phase.
    pub(crate) fn bulk_arrives(
        &mut self,
        byte: usize,
        thread: usize,
        bytes: i64,
        elements: Vec<Pending>,
    ) -> Result<(), BarrierFault> {
        let barrier = self.mbarriers.get_mut(&byte).ok_or(NOT_INITIALIZED)?;
        let epoch = self.clocks.epoch(thread / 32);
        barrier.landing.push(Landing { thread: thread as u16, epoch, elements });
        barrier.bytes = barrier.bytes.saturating_sub(bytes);
        self.clocks.release(thread / 32, &mut barrier.arriving);
        barrier.settle();
        Ok(())
    }

    /// What another block of the cluster does to the mbarrier at a byte of shared memory. What it comes
    /// after is not followed from block to block.
    pub(crate) fn remote_arrives(
        &mut self,
        byte: usize,
        arrival: Arrival,
    ) -> Result<(), BarrierFault> {
        let barrier = self.mbarriers.get_mut(&byte).ok_or(NOT_INITIALIZED)?;
        match arrival {
            Arrival::Arrivals(n) if n > barrier.arrivals => return Err(TOO_MANY),
            Arrival::Arrivals(n) => barrier.arrivals -= n,
            Arrival::Bytes { n, view, elements } => {
                let kernel = self.kernel;
                let Space::Shared(buffer) = kernel.views[view].space else { return Ok(()) };
                let buffer = &kernel.shared.buffers[buffer];
                let all = elements.into_iter();
                let elements =
                    all.filter_map(|(at, raw)| self.shared.deliver(buffer, at, raw)).collect();
                // Epoch 0 comes before everything.
                barrier.landing.push(Landing { thread: 0, epoch: 0, elements });
                barrier.bytes = barrier.bytes.saturating_sub(n);
            }
        }
        barrier.settle();
        Ok(())
    }

    /// A thread arrives at the cluster's barrier; `release` says whether its accesses before are ordered.
    pub(crate) fn arrive_cluster(
        &mut self,
        thread: usize,
        release: bool,
    ) -> Result<(), BarrierFault> {
        let n = self.kernel.n_threads;
        let cluster = &mut self.cluster;
        cluster.threads.resize(n, (0, 0));
        let (arrived, waited) = &mut cluster.threads[thread];
        if arrived != waited {
            return Err(BarrierFault::Misuse {
                what: "gets a thread that has not waited since it arrived last",
                help: "write `cluster.wait` between two `cluster.arrive`",
            });
        }
        *arrived += 1;
        if release {
            self.clocks.release(thread / 32, &mut cluster.arriving);
        }
        cluster.arrived += 1;
        Ok(())
    }

    /// Whether all threads of this block have arrived at the cluster's barrier.
    pub(crate) fn cluster_is_full(&self) -> bool {
        self.cluster.arrived == self.kernel.n_threads
    }

    /// All threads of all blocks have arrived there.
    pub(crate) fn cluster_completes(&mut self) {
        let cluster = &mut self.cluster;
        cluster.arrived = 0;
        cluster.phase += 1;
        cluster.complete.join(&std::mem::take(&mut cluster.arriving));
    }

    /// A thread waits there.
    pub(crate) fn wait_cluster(&mut self, thread: usize) -> Result<(), BarrierFault> {
        let n = self.kernel.n_threads;
        let cluster = &mut self.cluster;
        cluster.threads.resize(n, (0, 0));
        let (arrived, waited) = &mut cluster.threads[thread];
        if arrived == waited {
            return Err(BarrierFault::Misuse {
                what: "is waited for by a thread that has not arrived",
                help: "write `cluster.arrive` before `cluster.wait`",
            });
        }
        if cluster.phase < *arrived {
            let arrivals = (n - cluster.arrived) as i64;
            let unmet = Unmet { phase: cluster.phase, arrivals, bytes: 0 };
            return Err(BarrierFault::Unmet(unmet));
        }
        *waited = *arrived;
        self.clocks.acquire(thread / 32, &cluster.complete);
        Ok(())
    }
}
