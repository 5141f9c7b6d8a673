//! Who touched what last: for every granule of memory the last write, and the reads since.

use crate::clocks::{Agent, Clocks, Engine};
use crate::print::Print;
use carbyne_ir::ast::AccumulateOp;

/// By which way memory is accessed (PTX ISA, Memory Consistency Model: Proxies).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// As threads do.
    Generic,
    /// As asynchronous instructions do.
    Async,
    /// As the copy engine accesses global memory, for which `fence.async` does not stand.
    Global,
}

/// What an access does.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Does {
    Read,
    Write,
    /// Accumulates by an operation: those by one operation are atomic and need no order.
    Sum(u8),
}

pub(crate) fn sum(op: AccumulateOp) -> Does {
    Does::Sum(op as u8)
}

/// When an access is over.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// At once, by these lanes of a warp, at a time of their class.
    Lanes { lanes: u32, time: u32 },
    /// When a batch of these lanes is waited for, or lands.
    Batch { lanes: u32, engine: Engine, batch: u32, reading: bool },
    /// When so many phases of an agent are complete.
    Phase { agent: Agent, phases: u32 },
}

/// An access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Record {
    pub(crate) by: By,
    /// Warp of the cluster.
    pub(crate) warp: u32,
    pub(crate) proxy: Proxy,
    pub(crate) site: u32,
    pub(crate) serial: u32,
    pub(crate) buffer: u32,
}

/// The accesses of one granule.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    pub(crate) write: Option<Record>,
    pub(crate) reads: Vec<Record>,
    pub(crate) sums: Vec<(u8, Record)>,
}

impl Record {
    fn print(&self, print: &mut Print<'_>, clocks: &Clocks) {
        let proxy = u64::from(self.proxy != Proxy::Generic);
        print.words(&[u64::from(self.site) << 1 | proxy, u64::from(self.buffer)]);
        match self.by {
            By::Lanes { lanes, time } => {
                print.words(&[1, u64::from(self.warp) << 32 | u64::from(lanes)]);
                self.each_class(clocks, lanes, |class, _| {
                    print.time(clocks.classes[class as usize].agent, time);
                });
            }
            By::Batch { lanes, engine, batch, reading } => {
                let kind = 2 + engine as u64 * 2 + u64::from(reading);
                print.words(&[kind, u64::from(self.warp) << 32 | u64::from(lanes)]);
                self.each_class(clocks, lanes, |class, _| {
                    let class = &clocks.classes[class as usize];
                    class.queue(engine).print_batch(print, class.agent, batch);
                });
            }
            By::Phase { agent, phases } => {
                print.words(&[9, u64::from(self.warp) << 32 | u64::from(agent)]);
                print.time(agent, phases);
            }
        }
    }
}

impl Cell {
    /// Everything that decides how accesses to come are related to it.
    pub(crate) fn print(&self, print: &mut Print<'_>, clocks: &Clocks) {
        print.words(&[u64::from(self.write.is_some()), self.reads.len() as u64]);
        self.write.iter().chain(&self.reads).for_each(|r| r.print(print, clocks));
        for (op, record) in &self.sums {
            print.words(&[u64::from(*op)]);
            record.print(print, clocks);
        }
    }

    pub(crate) fn is_untouched(&self) -> bool {
        self.write.is_none() && self.reads.is_empty() && self.sums.is_empty()
    }
}

/// How an earlier access and a later one are related.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// One thread makes both, in its order.
    Same,
    Ordered,
    /// A fence between the proxies is missing.
    Unfenced,
    Unordered,
    /// The earlier one is under way: nobody has waited for it.
    UnderWay,
}

/// Who makes the later access.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Who {
    pub(crate) thread: u32,
    pub(crate) proxy: Proxy,
    pub(crate) serial: u32,
}

impl Record {
    /// How it and a later access are related.
    #[inline]
    pub(crate) fn relation(&self, clocks: &Clocks, who: &Who) -> Relation {
        let observer = clocks.class(who.thread);
        let knows = &observer.knows;
        let crosses = self.proxy == Proxy::Generic && who.proxy != Proxy::Generic;
        let passed = |agent: Agent, time: u32| {
            !crosses || who.proxy != Proxy::Global && knows.fenced.get(agent) >= time
        };
        match self.by {
            By::Lanes { lanes, time } => {
                let own = if who.thread / 32 == self.warp { 1u32 << (who.thread % 32) } else { 0 };
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
                let own = if who.thread / 32 == self.warp { 1u32 << (who.thread % 32) } else { 0 };
                let mut found = Relation::UnderWay;
                self.each_class(clocks, lanes, |class, of_class| {
                    let class = &clocks.classes[class as usize];
                    let Some(b) = class.queue(engine).batches.get(batch as usize) else { return };
                    let done = if reading { b.done_reading } else { b.done };
                    let mut better = |relation: Relation| {
                        if rank(relation) < rank(found) {
                            found = relation;
                        }
                    };
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

    /// The classes of some of its warp's lanes, each with which of them it has.
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

    /// A thread that makes it.
    pub(crate) fn thread(&self) -> u32 {
        match self.by {
            By::Lanes { lanes, .. } | By::Batch { lanes, .. } => {
                self.warp * 32 + lanes.trailing_zeros().min(31)
            }
            By::Phase { .. } => self.warp * 32,
        }
    }

    /// Whether both are made at once, by one instruction of a warp.
    #[inline]
    pub(crate) fn is_together(&self, warp: u32, who: &Who) -> bool {
        self.serial == who.serial && self.warp == warp
    }
}

fn rank(r: Relation) -> u32 {
    match r {
        Relation::Same => 0,
        Relation::Ordered => 1,
        Relation::Unfenced => 2,
        Relation::Unordered => 3,
        Relation::UnderWay => 4,
    }
}

impl Cell {
    /// Notes an access that has been checked.
    pub(crate) fn note(&mut self, clocks: &Clocks, does: Does, record: Record) {
        match does {
            Does::Write => {
                self.write = Some(record);
                self.reads.clear();
                self.sums.clear();
            }
            Does::Read => note(&mut self.reads, clocks, record, |r| r, |r| r),
            Does::Sum(op) => {
                note(&mut self.sums, clocks, record, |(_, r)| r, |r| (op, r));
            }
        }
    }
}

/// Adds a record, in the place of those that it comes after.
fn note<T>(
    list: &mut Vec<T>,
    clocks: &Clocks,
    record: Record,
    of: impl Fn(&mut T) -> &mut Record,
    make: impl Fn(Record) -> T,
) {
    match record.by {
        By::Lanes { lanes, time } => {
            let class = |lane: u32| clocks.class_of[(record.warp * 32 + lane) as usize];
            let mine = class(lanes.trailing_zeros().min(31));
            let (mut merged, mut gone) = (false, false);
            for old in list.iter_mut().map(&of) {
                let By::Lanes { lanes: theirs, time: then } = &mut old.by else { continue };
                if old.warp != record.warp {
                    continue;
                }
                let same = *then == time
                    && old.proxy == record.proxy
                    && (clocks.of_warp(record.warp).is_some()
                        || class(theirs.trailing_zeros().min(31)) == mine);
                if same && !merged {
                    *theirs |= lanes;
                    (old.site, old.serial) = (record.site, record.serial);
                    merged = true;
                } else {
                    *theirs &= !lanes;
                    gone |= *theirs == 0;
                }
            }
            if gone {
                list.retain_mut(|old| !matches!(of(old).by, By::Lanes { lanes: 0, .. }));
            }
            if merged {
                return;
            }
        }
        By::Batch { lanes, engine, .. } => list.retain_mut(|old| {
            let old = of(old);
            // Groups are complete in their order.
            let older = old.warp == record.warp
                && engine != Engine::Copies
                && matches!(old.by, By::Batch { lanes: l, engine: e, .. } if l == lanes && e == engine);
            !older
        }),
        By::Phase { agent, .. } => list.retain_mut(
            |old| !matches!(of(old).by, By::Phase { agent: a, .. } if a == agent),
        ),
    }
    list.push(make(record));
}
