//! Barrier objects, and the barrier of a cluster.
//!
//! An mbarrier counts phases from 0. A phase is complete when all its arrivals and bytes are there;
//! the next begins at once. Whoever waits for a phase comes after everything that its arrivals came
//! after, and asynchronous copies that the phase counts become visible then.

use super::arrivals::Arrivals;
use super::clock::{Clocks, Entry, Message, Part, Proxy, Who};
use super::race::LastWrite;
use super::{Block, Counted, GlobalElement, InFlight, Pending};
use std::rc::Rc;

/// One barrier object.
pub(crate) struct Mbarrier {
    /// Arrivals of a phase.
    count: i64,
    /// Arrivals that the phase still lacks.
    arrivals: i64,
    /// Bytes that it still lacks; below zero where they came before they were expected.
    bytes: i64,
    /// Its number among the agents of the cluster.
    agent: u16,
    /// The current phase.
    phase: u64,
    /// Whether it counts bytes, and the statement of a copy that brought some.
    counts_bytes: bool,
    bytes_site: u32,
    /// What arrived in this phase, in the last complete one, and in the one before.
    arrived: Arrivals,
    last: Arrivals,
    before: Arrivals,
    /// The thread that made it ready, until a fence of its has let asynchronous copies see that.
    unpublished: Option<usize>,
    /// The thread that made it ready, and whom a fence and an arrival of its at the cluster's
    /// barrier tell that.
    made_by: usize,
    told: Told,
    /// What those know who arrived in this phase, and in all complete ones: arrivals are a chain,
    /// and whoever sees the last comes after all of them.
    arriving: Message,
    complete: Message,
    /// Copies that this phase counts, and those of complete ones that nobody has waited for.
    landing: Vec<Landing>,
    landed: Vec<Landing>,
}

/// Whom the thread that makes an mbarrier ready tells so by `fence.mbarrier_init`, whether its
/// arrivals pass on anything else or not.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Told {
    /// Nobody.
    Nobody,
    /// Those who wait for its next phase at the cluster's barrier.
    Next,
    /// Those who have waited for that phase.
    Behind(u64),
}

/// Copies of a thread that become visible with a phase.
struct Landing {
    proxy: Proxy,
    /// One more than the phase, once it is complete.
    time: u32,
    what: Rc<Counted>,
}

/// What a phase lacks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unmet {
    /// The number of the phase.
    pub phase: u64,
    /// Arrivals that are missing.
    pub arrivals: i64,
    /// Bytes that are missing.
    pub bytes: i64,
}

impl Unmet {
    /// What is missing, as a person reads it.
    pub(crate) fn missing(&self) -> String {
        let Unmet { arrivals, bytes, .. } = *self;
        match bytes {
            0.. => format!("{arrivals} arrivals and {bytes} bytes are missing"),
            _ => format!(
                "{arrivals} arrivals are missing, and {} bytes came that nobody expected",
                bytes.unsigned_abs()
            ),
        }
    }
}

/// A use of a barrier that hardware does not allow.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Misuse {
    /// What it gets.
    pub what: &'static str,
    /// What mends it.
    pub help: &'static str,
    /// Of the last phase, a statement that it does not come after.
    pub other: Option<u32>,
}

const TWICE: Misuse = Misuse {
    what: "is initialized twice",
    help: "let one thread initialize it, once: `Spec <<<#grid, #cta[0]>>> .. { mbarrier.init(..) }`",
    other: None,
};
const NOT_INITIALIZED: Misuse = Misuse {
    what: "is used before its `mbarrier.init`",
    help: "initialize it, then put a `barrier` before its first use",
    other: None,
};
const UNPUBLISHED: Misuse = Misuse {
    what: "is given to an asynchronous copy, which may not see its `mbarrier.init` yet",
    help: "write `fence.mbarrier_init` or `fence.async` behind the init, before the barrier that follows",
    other: None,
};
const TOO_EARLY: Misuse = Misuse {
    what: "gets an arrival that nothing orders behind its last phase, and that may count in that one",
    help: "let the thread wait first, for that phase or for those who waited for it; or correct the barrier's index, or \
           its count",
    other: None,
};
const COPY_TOO_EARLY: Misuse = Misuse {
    what: "is given to a copy that nothing orders behind its last phase, and whose bytes may count in that one",
    ..TOO_EARLY
};
const PASSES_EARLY: Misuse = Misuse {
    what: "is waited for by a thread that nothing orders behind the phase before: it may have passed two phases ago",
    help: "let every thread wait for each phase in turn, or for those who have waited",
    other: None,
};
const TOO_MANY: Misuse = Misuse {
    what: "gets more arrivals than its phase takes",
    help: "compare the count of `mbarrier.init` with the threads that arrive",
    other: None,
};

impl Mbarrier {
    /// Begins the next phase if this one lacks nothing.
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
    /// Phases in which each thread has arrived, and for which it has waited.
    threads: Vec<(u64, u64)>,
    arriving: Message,
    complete: Message,
}

impl Block<'_> {
    /// Makes the barrier at a byte of shared memory ready.
    ///
    /// # Errors
    /// It is so already.
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

    /// Passes on what lanes know that are about to arrive, with the phase that runs.
    pub(crate) fn pass_on(&mut self, byte: usize, released: &Message) {
        if let Some(barrier) = self.mbarriers.get_mut(&byte) {
            barrier.arriving.join(released);
        }
    }

    /// A thread arrives so many times; `bytes` more are expected. Whether the phase is complete.
    ///
    /// # Errors
    /// The barrier is not ready, or its phase takes no more arrivals.
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

    /// Lanes of a warp are about to arrive at the barrier at a byte, by a statement, or their
    /// copies are when they are complete.
    ///
    /// # Errors
    /// Nothing orders them behind the last phase, in which they may then count, however this run
    /// went.
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

    /// Arrivals that the current phase still takes.
    pub(crate) fn arrivals_left(&self, byte: usize) -> i64 {
        self.mbarriers.get(&byte).map_or(0, |b| b.arrivals)
    }

    /// Lets a thread's copies so far that no mbarrier counts land with the current phase.
    ///
    /// # Errors
    /// The barrier is not ready.
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

    /// Lets asynchronous copies see the barriers that a thread has made ready.
    pub(crate) fn publish(&mut self, thread: usize) {
        let own = |b: &&mut Mbarrier| b.unpublished == Some(thread);
        self.mbarriers.values_mut().filter(own).for_each(|b| b.unpublished = None);
    }

    /// Lets those see the barriers that a thread has made ready who wait for its next phase at the
    /// cluster's barrier.
    pub(crate) fn tell(&mut self, thread: usize) {
        let own = |b: &&mut Mbarrier| b.made_by == thread && b.told == Told::Nobody;
        self.mbarriers.values_mut().filter(own).for_each(|b| b.told = Told::Next);
    }

    /// A thread has arrived at the cluster's barrier, in that phase.
    pub(crate) fn told(&mut self, thread: usize, phase: u64) {
        let own = |b: &&mut Mbarrier| b.made_by == thread && b.told == Told::Next;
        self.mbarriers.values_mut().filter(own).for_each(|b| b.told = Told::Behind(phase));
    }

    /// Whether a thread that has waited for that phase at the cluster's barrier has been told of
    /// the barrier at a byte.
    pub(crate) fn is_told(&self, byte: usize, waited: u64) -> bool {
        let told = self.mbarriers.get(&byte).map(|b| b.told);
        matches!(told, Some(Told::Behind(phase)) if phase <= waited)
    }

    /// Whether a bulk copy of a thread may be given the barrier at a byte.
    ///
    /// # Errors
    /// It is not ready, or asynchronous copies cannot know that it is; or nothing orders the copy
    /// behind the last phase.
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

    /// Bytes of a bulk copy arrive, with its statement and what happened before it was issued; its
    /// elements become visible with the phase. Whether that is complete.
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

    /// What a wait for the phase of a parity lacks; none if it is complete.
    ///
    /// # Errors
    /// The barrier is not ready.
    pub(crate) fn lacks(&self, byte: usize, parity: i64) -> Result<Option<Unmet>, Misuse> {
        let barrier = self.mbarriers.get(&byte).ok_or(NOT_INITIALIZED)?;
        let Mbarrier { phase, arrivals, bytes, .. } = *barrier;
        Ok((phase & 1 == parity as u64 & 1).then_some(Unmet { phase, arrivals, bytes }))
    }

    /// Lanes of a warp are about to go on behind a wait for the barrier at a byte.
    ///
    /// # Errors
    /// Nothing orders them behind the phase before the one that is complete: they may have gone on
    /// already when the last phase of the same parity was.
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

    /// Lets copies of complete phases become visible; what a thread that waited for them then
    /// knows, and what they have read of global memory, with the mbarrier's agent and how many
    /// phases are complete.
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

    /// The statement of a copy that an mbarrier counts, or has counted, and for which nobody has
    /// waited.
    pub(crate) fn never_waited_for(&self) -> Option<u32> {
        let landings = self.mbarriers.values().flat_map(|b| b.landed.iter().chain(&b.landing));
        let open = landings.filter(|l| l.what.done.get().is_none());
        open.flat_map(|l| &l.what.elements).map(Pending::site).next()
    }
}

impl ClusterBarrier {
    /// Passes on what threads know that are about to arrive.
    pub(crate) fn pass_on(&mut self, released: &Message) {
        self.arriving.join(released);
    }

    /// A thread of `n` arrives. Whether it was the last.
    ///
    /// # Errors
    /// It has not waited since it arrived last.
    pub(crate) fn arrive(&mut self, thread: usize, n: usize) -> Result<bool, Misuse> {
        self.threads.resize(n, (0, 0));
        let (arrived, waited) = &mut self.threads[thread];
        if arrived != waited {
            return Err(Misuse {
                what: "gets a thread that has not waited since it arrived last",
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

    /// What a thread's wait lacks; none if all have arrived.
    ///
    /// # Errors
    /// It has not arrived itself.
    pub(crate) fn lacks(&mut self, thread: usize, n: usize) -> Result<Option<Unmet>, Misuse> {
        self.threads.resize(n, (0, 0));
        let (arrived, waited) = self.threads[thread];
        if arrived == waited {
            return Err(Misuse {
                what: "is waited for by a thread that has not arrived",
                help: "write `cluster.arrive` before `cluster.wait`",
                other: None,
            });
        }
        let arrivals = (n - self.arrived) as i64;
        let unmet = Unmet { phase: self.phase, arrivals, bytes: 0 };
        Ok((self.phase < arrived).then_some(unmet))
    }

    /// The last phase in which a thread has arrived, and the last for which it has waited; phases
    /// count from 1.
    pub(crate) fn phases(&self, thread: usize) -> (u64, u64) {
        self.threads.get(thread).copied().unwrap_or_default()
    }

    /// A thread has waited.
    pub(crate) fn passed(&mut self, thread: usize) {
        if let Some((arrived, waited)) = self.threads.get_mut(thread) {
            *waited = *arrived;
        }
    }

    /// What threads know that have waited.
    pub(crate) fn complete(&self) -> &Message {
        &self.complete
    }
}
