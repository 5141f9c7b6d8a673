//! Simulates mbarriers and the barrier of a cluster: arrivals, bytes and phases, and the order that
//! they establish. A use is an error if the hardware does not allow it, or if another schedule
//! could count an arrival in another phase or let a wait return two phases early.
//!
//! An mbarrier counts phases from 0. A phase is complete when all its arrivals and bytes have
//! arrived; then the next phase begins. A thread that waits for a phase comes after everything that
//! precedes its arrivals, and the asynchronous copies that the phase counts become visible.

use super::arrivals::Arrivals;
use super::clock::{Clocks, Entry, Message, Part, Proxy, Who};
use super::race::LastWrite;
use super::{Block, Counted, GlobalElement, InFlight, Pending};
use carbyne_ir::diag;
use std::rc::Rc;

/// An mbarrier.
pub(crate) struct Mbarrier {
    /// The number of arrivals of a phase.
    count: i64,
    /// The number of missing arrivals of the current phase.
    arrivals: i64,
    /// The number of missing bytes; negative if bytes arrived before they were expected.
    bytes: i64,
    /// The agent number in the cluster.
    agent: u16,
    /// The current phase.
    phase: u64,
    /// Whether the phase counts bytes, and the statement of a copy with such bytes.
    counts_bytes: bool,
    bytes_site: u32,
    /// The arrivals of the current phase, of the last complete phase, and of the phase before.
    arrived: Arrivals,
    last: Arrivals,
    before: Arrivals,
    /// The initializing thread, until a fence of that thread publishes the initialization to
    /// asynchronous copies.
    unpublished: Option<usize>,
    /// The initializing thread, and the threads that learn of the initialization through a
    /// fence and an arrival of that thread at the cluster's barrier.
    made_by: usize,
    told: Told,
    /// The knowledge of the threads that arrived in the current phase, and in all complete phases.
    /// Arrivals form a chain, and a thread that sees the last one comes after all of them.
    arriving: Message,
    complete: Message,
    /// The copies that the current phase counts, and those of complete phases without a wait.
    landing: Vec<Landing>,
    landed: Vec<Landing>,
}

/// The threads that learn of an initialization through the `fence.mbarrier_init` of the
/// initializing thread, independently of other knowledge that its arrivals pass on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Told {
    /// No thread.
    Nobody,
    /// The threads that wait at the cluster's barrier for the next phase of the initializing
    /// thread.
    Next,
    /// The threads that have waited for that phase.
    Behind(u64),
}

/// Copies of a thread that become visible with a phase.
struct Landing {
    proxy: Proxy,
    /// One more than the number of the phase, once it is complete.
    time: u32,
    what: Rc<Counted>,
}

/// The missing arrivals and bytes of a phase.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// The number of the phase.
    pub phase: u64,
    /// The number of missing arrivals.
    pub arrivals: i64,
    /// The number of arrivals of a whole phase.
    pub count: i64,
    /// The number of missing bytes.
    pub bytes: i64,
}

impl Unmet {
    /// The text of what the phase lacks.
    pub(crate) fn lacks(&self) -> String {
        let Unmet { phase, arrivals, count, bytes } = *self;
        let arrivals = format!("{arrivals} of {}", diag::count(count as usize, "arrival"));
        match bytes {
            0 => format!("phase {phase} lacks {arrivals}"),
            1.. if self.arrivals == 0 => format!("phase {phase} lacks {bytes} bytes"),
            1.. => format!("phase {phase} lacks {arrivals} and {bytes} bytes"),
            _ => {
                let lacks = match self.arrivals {
                    0 => String::new(),
                    _ => format!("lacks {arrivals}, and "),
                };
                let more = bytes.unsigned_abs();
                format!("phase {phase} {lacks}has {more} bytes more than it expects")
            }
        }
    }

    /// Whether nothing of the phase has happened.
    pub(crate) fn is_whole(&self) -> bool {
        self.arrivals == self.count && self.bytes == 0
    }
}

/// A use of a barrier that the hardware does not allow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    /// The predicate of the message, after the name of the barrier.
    pub what: &'static str,
    /// The help of the message.
    pub help: &'static str,
    /// A statement of the last phase that is not ordered before the use.
    pub other: Option<u32>,
}

const TWICE: Misuse = Misuse {
    what: "is initialized twice",
    help: "initialize it once, with one thread: \
           `Spec <<<#grid, #cta[0]>>> .. { mbarrier.init(..) }`",
    other: None,
};
const NOT_INITIALIZED: Misuse = Misuse {
    what: "is used before its `mbarrier.init`",
    help: "initialize it, then write a `barrier` before its first use",
    other: None,
};
const UNPUBLISHED: Misuse = Misuse {
    what: "is used by an asynchronous copy, which may not see its `mbarrier.init` yet",
    help: "write `fence.mbarrier_init` or `fence.async` after the init, before the next barrier",
    other: None,
};
const TOO_EARLY: Misuse = Misuse {
    what: "gets an arrival that is not ordered after its last phase, and that may count in \
           that phase",
    help: "let the thread wait first, for that phase or for threads that waited for it; or correct \
           the barrier's index or its count",
    other: None,
};
const COPY_TOO_EARLY: Misuse = Misuse {
    what: "is used by a copy that is not ordered after its last phase, and whose bytes may count \
           in that phase",
    ..TOO_EARLY
};
const PASSES_EARLY: Misuse = Misuse {
    what: "has a wait of a thread that is not ordered after the previous phase: the wait may \
           return two phases early",
    help: "let every thread wait for each phase in turn, or for threads that have waited",
    other: None,
};
const TOO_MANY: Misuse = Misuse {
    what: "gets more arrivals than its phase counts",
    help: "compare the count in `mbarrier.init` with the number of threads that arrive",
    other: None,
};

impl Mbarrier {
    /// Begins the next phase if nothing is missing.
    fn settle(&mut self) -> bool {
        let complete = self.arrivals == 0 && self.bytes == 0;
        if complete {
            self.phase += 1;
            self.arrivals = self.count;
            self.complete.join(&std::mem::take(&mut self.arriving));
            let time = self.phase as u32;
            if std::mem::take(&mut self.counts_bytes) {
                self.arrived.add(self.agent, &Entry::up_to(time), true, self.bytes_site);
            }
            let arrived = std::mem::take(&mut self.arrived).are_complete(self.agent, time);
            self.before = std::mem::replace(&mut self.last, arrived);
            self.complete.add(self.agent, time);
            self.landing.iter_mut().for_each(|l| l.time = time);
            self.landed.append(&mut self.landing);
        }
        complete
    }
}

/// The barrier of the threads of a cluster.
#[derive(Default)]
pub(crate) struct ClusterBarrier {
    phase: u64,
    arrived: usize,
    /// For each thread, the number of phases in which it has arrived, and for which it has waited.
    threads: Vec<(u64, u64)>,
    arriving: Message,
    complete: Message,
}

impl Block<'_> {
    /// Initializes the mbarrier at a byte of shared memory.
    ///
    /// # Errors
    /// The mbarrier is already initialized.
    pub(crate) fn init_mbarrier(
        &mut self,
        byte: usize,
        count: i64,
        thread: usize,
        agent: u16,
    ) -> Result<(), Misuse> {
        let barrier = Mbarrier {
            agent,
            unpublished: Some(thread),
            made_by: thread,
            told: Told::Nobody,
            count,
            arrivals: count,
            bytes: 0,
            phase: 0,
            counts_bytes: false,
            bytes_site: 0,
            arrived: Arrivals::default(),
            last: Arrivals::default(),
            before: Arrivals::default(),
            arriving: Message::default(),
            complete: Message::default(),
            landing: Vec::new(),
            landed: Vec::new(),
        };
        self.mbarriers.insert(byte, barrier).map_or(Ok(()), |_| Err(TWICE))
    }

    /// Adds the knowledge of lanes that are about to arrive to the current phase.
    pub(crate) fn pass_on(&mut self, byte: usize, released: &Message) {
        if let Some(barrier) = self.mbarriers.get_mut(&byte) {
            barrier.arriving.join(released);
        }
    }

    /// Counts `arrivals` arrivals of a thread, and expects `bytes` more bytes. Returns whether the
    /// phase is complete.
    ///
    /// # Errors
    /// The mbarrier is not initialized, or its phase counts no more arrivals.
    pub(crate) fn arrive(
        &mut self,
        byte: usize,
        (arrivals, bytes): (i64, i64),
    ) -> Result<bool, Misuse> {
        let barrier = self.mbarriers.get_mut(&byte).ok_or(NOT_INITIALIZED)?;
        if arrivals > barrier.arrivals {
            return Err(TOO_MANY);
        }
        barrier.counts_bytes |= bytes > 0;
        barrier.bytes = barrier.bytes.saturating_add(bytes);
        barrier.arrivals -= arrivals;
        Ok(barrier.settle())
    }

    /// Checks an arrival of lanes of a warp at the mbarrier at a byte, by a statement or when their
    /// copies are complete.
    ///
    /// # Errors
    /// The lanes are not ordered after the last phase, so the arrival may count in that phase under
    /// another schedule.
    pub(crate) fn before_arrival(
        &mut self,
        byte: usize,
        clocks: &Clocks,
        part: Part,
        (site, later): (u32, bool),
    ) -> Result<(), Misuse> {
        let Some(barrier) = self.mbarriers.get_mut(&byte) else { return Ok(()) };
        if let Some(other) = barrier.last.unordered(clocks, part, later) {
            return Err(Misuse { other: Some(other), ..TOO_EARLY });
        }
        let (agent, lanes) = clocks.so_far(part);
        barrier.arrived.add(agent, &lanes, later, site);
        Ok(())
    }

    /// The number of arrivals that the current phase still counts.
    pub(crate) fn arrivals_left(&self, byte: usize) -> i64 {
        self.mbarriers.get(&byte).map_or(0, |b| b.arrivals)
    }

    /// Assigns the copies of a thread that no mbarrier counts yet to the current phase.
    ///
    /// # Errors
    /// The mbarrier is not initialized.
    pub(crate) fn land_with(&mut self, byte: usize, who: &Who) -> Result<(), Misuse> {
        let barrier = self.mbarriers.get_mut(&byte).ok_or(NOT_INITIALIZED)?;
        let groups = &mut self.copies[usize::from(who.thread)];
        groups.merge_oldest(InFlight::has_moved);
        let counted = groups.iter_mut().filter_map(|group| group.count(who));
        barrier.landing.extend(counted.map(|what| Landing {
            proxy: Proxy::Generic,
            time: 0,
            what,
        }));
        Ok(())
    }

    /// Publishes the initializations by a thread to asynchronous copies.
    pub(crate) fn publish(&mut self, thread: usize) {
        let own = |b: &&mut Mbarrier| b.unpublished == Some(thread);
        self.mbarriers.values_mut().filter(own).for_each(|b| b.unpublished = None);
    }

    /// Publishes the initializations by a thread to the threads that wait for its next phase at the
    /// cluster's barrier.
    pub(crate) fn tell(&mut self, thread: usize) {
        let own = |b: &&mut Mbarrier| b.made_by == thread && b.told == Told::Nobody;
        self.mbarriers.values_mut().filter(own).for_each(|b| b.told = Told::Next);
    }

    /// Records that a thread has arrived at the cluster's barrier, in a phase.
    pub(crate) fn told(&mut self, thread: usize, phase: u64) {
        let own = |b: &&mut Mbarrier| b.made_by == thread && b.told == Told::Next;
        self.mbarriers.values_mut().filter(own).for_each(|b| b.told = Told::Behind(phase));
    }

    /// Whether a thread that has waited for phase `waited` of the cluster's barrier knows the
    /// initialization of the mbarrier at a byte.
    pub(crate) fn is_told(&self, byte: usize, waited: u64) -> bool {
        let told = self.mbarriers.get(&byte).map(|b| b.told);
        matches!(told, Some(Told::Behind(phase)) if phase <= waited)
    }

    /// Checks that a bulk copy of a thread may use the mbarrier at a byte.
    ///
    /// # Errors
    /// The mbarrier is not initialized, or its initialization is not published to asynchronous
    /// copies; or the copy is not ordered after the last phase.
    pub(crate) fn takes_bulk(
        &self,
        byte: usize,
        clocks: &Clocks,
        part: Part,
    ) -> Result<(), Misuse> {
        let barrier = self.mbarriers.get(&byte).ok_or(NOT_INITIALIZED)?;
        if barrier.unpublished.is_some() {
            return Err(UNPUBLISHED);
        }
        let other = barrier.last.unordered(clocks, part, false);
        other.map_or(Ok(()), |other| Err(Misuse { other: Some(other), ..COPY_TOO_EARLY }))
    }

    /// Counts the bytes of a bulk copy, with its statement and the events before its issue. The
    /// elements become visible with the phase. Returns whether the phase is complete.
    pub(crate) fn bulk_arrives(
        &mut self,
        byte: usize,
        bytes: i64,
        what: Rc<Counted>,
        (site, issued): (u32, &Message),
    ) -> bool {
        let Some(barrier) = self.mbarriers.get_mut(&byte) else { return false };
        barrier.bytes_site = site;
        barrier.arriving.join(issued);
        if !what.elements.is_empty() || !what.sources.is_empty() {
            barrier.landing.push(Landing { proxy: Proxy::Async, time: 0, what });
        }
        barrier.bytes = barrier.bytes.saturating_sub(bytes);
        barrier.counts_bytes = true;
        barrier.settle()
    }

    /// The missing arrivals and bytes for a wait for the phase of a parity; none if that phase is
    /// complete.
    ///
    /// # Errors
    /// The mbarrier is not initialized.
    pub(crate) fn lacks(&self, byte: usize, parity: i64) -> Result<Option<Unmet>, Misuse> {
        let barrier = self.mbarriers.get(&byte).ok_or(NOT_INITIALIZED)?;
        let Mbarrier { phase, arrivals, count, bytes, .. } = *barrier;
        Ok((phase & 1 == parity as u64 & 1).then_some(Unmet { phase, arrivals, count, bytes }))
    }

    /// Checks that lanes of a warp may continue after a wait for the mbarrier at a byte.
    ///
    /// # Errors
    /// The lanes are not ordered after the phase before the complete one: the wait may return
    /// already after an earlier phase of equal parity.
    pub(crate) fn before_passing(
        &self,
        byte: usize,
        clocks: &Clocks,
        part: Part,
    ) -> Result<(), Misuse> {
        let Some(barrier) = self.mbarriers.get(&byte) else { return Ok(()) };
        let other = barrier.before.unordered(clocks, part, false);
        other.map_or(Ok(()), |other| Err(Misuse { other: Some(other), ..PASSES_EARLY }))
    }

    /// Makes copies of complete phases visible. Returns the knowledge of a thread that waited for
    /// them, and the elements of global memory that they have read, with the mbarrier's agent and
    /// its number of complete phases.
    pub(crate) fn passed(&mut self, byte: usize) -> (Message, Vec<(GlobalElement, u16, u32)>) {
        let Some(barrier) = self.mbarriers.get_mut(&byte) else { return Default::default() };
        let mut read = Vec::new();
        for Landing { proxy, time, what } in std::mem::take(&mut barrier.landed) {
            if what.done.get().is_some() {
                continue;
            }
            what.done.set(Some(Some((barrier.agent, time))));
            for pending in &what.elements {
                let write = LastWrite::landing(barrier.agent, time, 0, proxy);
                self.shared.complete(pending, write);
            }
            read.extend(what.sources.iter().map(|source| (*source, barrier.agent, time)));
        }
        (barrier.complete.clone(), read)
    }

    /// The statement of a copy that an mbarrier counts or has counted, and for which no thread has
    /// waited.
    pub(crate) fn never_waited_for(&self) -> Option<u32> {
        let landings = self.mbarriers.values().flat_map(|b| b.landed.iter().chain(&b.landing));
        let open = landings.filter(|l| l.what.done.get().is_none());
        open.flat_map(|l| &l.what.elements).map(Pending::site).next()
    }
}

impl ClusterBarrier {
    /// Adds the knowledge of threads that are about to arrive.
    pub(crate) fn pass_on(&mut self, released: &Message) {
        self.arriving.join(released);
    }

    /// Counts the arrival of one of `n` threads. Returns whether it was the last.
    ///
    /// # Errors
    /// The thread has not waited since its last arrival.
    pub(crate) fn arrive(&mut self, thread: usize, n: usize) -> Result<bool, Misuse> {
        self.threads.resize(n, (0, 0));
        let (arrived, waited) = &mut self.threads[thread];
        if arrived != waited {
            return Err(Misuse {
                what: "gets a second arrival of a thread without a wait between",
                help: "write `cluster.wait` between two `cluster.arrive`",
                other: None,
            });
        }
        *arrived += 1;
        self.arrived += 1;
        let last = self.arrived == n;
        if last {
            self.arrived = 0;
            self.phase += 1;
            self.complete.join(&std::mem::take(&mut self.arriving));
        }
        Ok(last)
    }

    /// The missing arrivals for a thread's wait; none if all threads have arrived.
    ///
    /// # Errors
    /// The thread has not arrived.
    pub(crate) fn lacks(&mut self, thread: usize, n: usize) -> Result<Option<Unmet>, Misuse> {
        self.threads.resize(n, (0, 0));
        let (arrived, waited) = self.threads[thread];
        if arrived == waited {
            return Err(Misuse {
                what: "has a wait of a thread that has not arrived",
                help: "write `cluster.arrive` before `cluster.wait`",
                other: None,
            });
        }
        let arrivals = (n - self.arrived) as i64;
        let unmet = Unmet { phase: self.phase, arrivals, count: n as i64, bytes: 0 };
        Ok((self.phase < arrived).then_some(unmet))
    }

    /// The last phase in which a thread has arrived, and the last for which it has waited; phases
    /// count from 1.
    pub(crate) fn phases(&self, thread: usize) -> (u64, u64) {
        self.threads.get(thread).copied().unwrap_or_default()
    }

    /// Records that a thread has waited.
    pub(crate) fn passed(&mut self, thread: usize) {
        if let Some((arrived, waited)) = self.threads.get_mut(thread) {
            *waited = *arrived;
        }
    }

    /// The knowledge of threads that have waited.
    pub(crate) fn complete(&self) -> &Message {
        &self.complete
    }
}
