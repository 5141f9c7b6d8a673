//! Records the last accesses of each granule of memory ([`Cell`]): the last write, and the reads
//! and accumulations since. The machine compares each new access with them and so finds the pairs.
//! [`Record::relation`] tells from the clocks how an earlier access relates to a later one:
//! ordered, unordered, in flight, or without the fence between their proxies.
//!
//! A *granule* is the unit in which the checker tracks memory: the largest piece that every access
//! touches as a whole or not at all.

use crate::clock::Agent;
use crate::clocks::{Clocks, Engine};
use crate::fingerprint::Fingerprinter;
use carbyne_ir::ast::AccumulateOp;

/// The proxy of an access (PTX ISA, Memory Consistency Model: Proxies).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// Accesses of threads.
    Generic,
    /// Accesses of asynchronous instructions to shared memory.
    Async,
    /// Accesses of the copy engine to global memory. `fence.async` does not order them.
    Global,
}

/// The effect of an access.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Does {
    Read,
    Write,
    /// Accumulates by an operation. Accumulations by the same operation are atomic and need no
    /// order.
    Sum(u8),
}

impl Does {
    /// The effect of a leaf on its outputs.
    pub(crate) fn writing(accumulates: Option<AccumulateOp>) -> Does {
        accumulates.map_or(Does::Write, |op| Does::Sum(op as u8))
    }

    /// Whether two accesses with these effects need an order.
    #[inline]
    pub(crate) fn conflicts(self, other: Does) -> bool {
        self != other || self == Does::Write
    }

    /// The effect as a number.
    pub(crate) fn code(self) -> u32 {
        match self {
            Does::Read => 0,
            Does::Write => 1,
            Does::Sum(op) => 2 + u32::from(op),
        }
    }
}

/// The event with which an access is complete.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Complete at once: lanes of a warp made the access, at a time of their class.
    Lanes { lanes: u32, time: u32 },
    /// Complete when a batch of these lanes is waited for, or when its mbarrier phase completes.
    Batch { lanes: u32, engine: Engine, batch: u32, reading: bool },
    /// Complete when this number of phases of an agent is complete.
    Phase { agent: Agent, phases: u32 },
}

/// A recorded access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Record {
    pub(crate) by: By,
    /// The index of the warp in the cluster.
    pub(crate) warp: u32,
    pub(crate) proxy: Proxy,
    pub(crate) site: u32,
    pub(crate) serial: u32,
    pub(crate) buffer: u32,
}

/// An access that a thread makes now.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Access {
    pub(crate) thread: u32,
    pub(crate) does: Does,
    pub(crate) record: Record,
}

/// The recorded accesses of one granule: the last write, and the reads and accumulations since.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) write: Option<Record>,
    pub(crate) others: Vec<(Does, Record)>,
}

impl Record {
    fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, clocks: &Clocks) {
        let proxy = u64::from(self.proxy != Proxy::Generic);
        fingerprint.words(&[u64::from(self.site) << 1 | proxy, u64::from(self.buffer)]);
        match self.by {
            By::Lanes { lanes, time } => {
                fingerprint.words(&[1, u64::from(self.warp) << 32 | u64::from(lanes)]);
                self.each_class(clocks, lanes, |class, _| {
                    fingerprint.time(clocks.classes[class as usize].agent, time);
                });
            }
            By::Batch { lanes, engine, batch, reading } => {
                let kind = 2 + engine as u64 * 2 + u64::from(reading);
                fingerprint.words(&[kind, u64::from(self.warp) << 32 | u64::from(lanes)]);
                self.each_class(clocks, lanes, |class, _| {
                    let class = &clocks.classes[class as usize];
                    class.queue(engine).fingerprint_batch(fingerprint, class.agent, batch);
                });
            }
            By::Phase { agent, phases } => {
                fingerprint.words(&[9, u64::from(self.warp) << 32 | u64::from(agent)]);
                fingerprint.time(agent, phases);
            }
        }
    }
}

impl Cell {
    /// Adds everything that decides the relation of this granule to future accesses.
    pub(crate) fn fingerprint(&self, fingerprint: &mut Fingerprinter<'_>, clocks: &Clocks) {
        fingerprint.words(&[u64::from(self.write.is_some()), self.others.len() as u64]);
        for (does, record) in self.all() {
            fingerprint.words(&[u64::from(does.code())]);
            record.fingerprint(fingerprint, clocks);
        }
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.write.is_none() && self.others.is_empty()
    }

    /// All recorded accesses with their effects.
    #[inline]
    pub(crate) fn all(&self) -> impl Iterator<Item = (Does, &Record)> {
        let write = self.write.iter().map(|record| (Does::Write, record));
        write.chain(self.others.iter().map(|(does, record)| (*does, record)))
    }
}

/// The relation of an earlier access to a later one, from best to worst.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Relation {
    /// One thread makes both, in program order.
    Same,
    Ordered,
    /// A fence between the proxies is missing.
    Unfenced,
    Unordered,
    /// The earlier access is in flight: no thread has waited for it.
    UnderWay,
}

impl Record {
    /// The relation of this access to a later one.
    #[inline]
    pub(crate) fn relation(&self, clocks: &Clocks, later: &Access) -> Relation {
        let knows = &clocks.class(later.thread).knows;
        let proxy = later.record.proxy;
        let crosses = self.proxy == Proxy::Generic && proxy != Proxy::Generic;
        let passed = |agent: Agent, time: u32| {
            !crosses || proxy != Proxy::Global && knows.fenced.get(agent) >= time
        };
        let own = self.lane_of(later.thread);
        match self.by {
            By::Lanes { lanes, time } => {
                let others = lanes & !own;
                if others == 0 && !crosses {
                    return Relation::Same;
                }
                let mut fenced = true;
                let mut known = true;
                self.each_class(clocks, lanes, |class, of_class| {
                    let agent = clocks.classes[class as usize].agent;
                    known &= of_class & others == 0 || knows.seen.get(agent) >= time;
                    fenced &= passed(agent, time);
                });
                match (known, fenced) {
                    (false, _) => Relation::Unordered,
                    (true, false) => Relation::Unfenced,
                    (true, true) => Relation::Ordered,
                }
            }
            By::Batch { lanes, engine, batch, reading } => {
                let mut found = Relation::UnderWay;
                self.each_class(clocks, lanes, |class, of_class| {
                    let class = &clocks.classes[class as usize];
                    let Some(b) = class.queue(engine).batches.get(batch as usize) else { return };
                    let done = if reading { b.done_reading } else { b.done };
                    let mut better = |relation: Relation| found = relation.min(found);
                    let fence = |fenced: bool| match fenced {
                        true => Relation::Ordered,
                        false => Relation::Unfenced,
                    };
                    if done > 0 {
                        let known = of_class & own != 0 || knows.seen.get(class.agent) >= done;
                        let fenced = passed(class.agent, done);
                        better(if known { fence(fenced) } else { Relation::Unordered });
                    }
                    if let Some((agent, phases)) = b.lands
                        && knows.seen.get(agent) >= phases
                    {
                        better(fence(passed(agent, phases)));
                    }
                });
                found
            }
            By::Phase { agent, phases } => match knows.seen.get(agent) >= phases {
                true => Relation::Ordered,
                false => Relation::UnderWay,
            },
        }
    }

    /// Calls `f` with each class that some of these lanes belong to, and with those lanes.
    #[inline]
    fn each_class(&self, clocks: &Clocks, lanes: u32, mut f: impl FnMut(u32, u32)) {
        if let Some(class) = clocks.of_warp(self.warp) {
            f(class, lanes);
            return;
        }
        let mut left = lanes;
        while left != 0 {
            let lane = left.trailing_zeros();
            let class = clocks.class_of[(self.warp * 32 + lane) as usize];
            let mut of_class = 0;
            for l in lane..32 {
                if left >> l & 1 == 1 && clocks.class_of[(self.warp * 32 + l) as usize] == class {
                    of_class |= 1 << l;
                }
            }
            left &= !of_class;
            f(class, of_class);
        }
    }

    /// The bit of a thread's lane; 0 for a thread of another warp.
    pub(crate) fn lane_of(&self, thread: u32) -> u32 {
        if thread / 32 == self.warp { 1 << (thread % 32) } else { 0 }
    }

    /// A thread that makes the access.
    pub(crate) fn thread(&self) -> u32 {
        match self.by {
            By::Lanes { lanes, .. } | By::Batch { lanes, .. } => {
                self.warp * 32 + lanes.trailing_zeros().min(31)
            }
            By::Phase { .. } => self.warp * 32,
        }
    }

    /// Whether one instruction of a warp makes both accesses at once.
    #[inline]
    pub(crate) fn is_together(&self, later: &Access) -> bool {
        self.serial == later.record.serial && self.warp == later.record.warp
    }
}

impl Cell {
    /// Records an access that has been checked. It replaces the recorded accesses that it follows.
    pub(crate) fn note(&mut self, clocks: &Clocks, Access { does, record, .. }: Access) {
        if does == Does::Write {
            self.write = Some(record);
            self.others.clear();
            return;
        }
        match record.by {
            By::Lanes { lanes, time } => {
                let class = |lane: u32| clocks.class_of[(record.warp * 32 + lane) as usize];
                let mine = class(lanes.trailing_zeros().min(31));
                let (mut merged, mut gone) = (false, false);
                for (did, old) in &mut self.others {
                    let By::Lanes { lanes: theirs, time: then } = &mut old.by else { continue };
                    if *did != does || old.warp != record.warp {
                        continue;
                    }
                    let same = *then == time
                        && old.serial == record.serial
                        && (clocks.of_warp(record.warp).is_some()
                            || class(theirs.trailing_zeros().min(31)) == mine);
                    if same && !merged {
                        *theirs |= lanes;
                        merged = true;
                    } else {
                        *theirs &= !lanes;
                        gone |= *theirs == 0;
                    }
                }
                if gone {
                    self.others.retain(|(_, old)| !matches!(old.by, By::Lanes { lanes: 0, .. }));
                }
                if merged {
                    return;
                }
            }
            // Groups complete in order, so that the last one represents the earlier ones.
            By::Batch { lanes, engine, .. } if engine != Engine::Copies => {
                let of = |old: &Record| match old.by {
                    By::Batch { lanes: l, engine: e, .. } => l == lanes && e == engine,
                    _ => false,
                };
                self.others
                    .retain(|(did, old)| *did != does || old.warp != record.warp || !of(old));
            }
            By::Batch { .. } => {}
            By::Phase { agent, .. } => {
                let of = |old: &Record| matches!(old.by, By::Phase { agent: a, .. } if a == agent);
                self.others.retain(|(did, old)| *did != does || !of(old));
            }
        }
        self.others.push((does, record));
    }
}
