//! Stores for each granule of memory (see [`super::race`]) the last read, or the last accumulation,
//! by each warp and by the collective of the block: the statements that several warps execute
//! together without an assignment of elements to threads (see [`super::clock`]). The race detector
//! compares later accesses with it.
//!
//! A warp has one entry for all of its lanes. The entry has a separate time for each lane if lanes
//! accessed the granule at different times of the warp, and no synchronization orders these
//! accesses. Granules with equal entries share one record.

use super::clash::Clash;
use super::clock::{LANES, MANY, Proxy, Who};
use std::collections::BTreeMap;

/// An agent's last read of a granule.
#[derive(Copy, Clone, Default)]
pub(super) struct LastRead {
    time: u32,
    serial: u32,
    site: u32,
    /// The lanes that have read the granule since their last synchronization; 0 if they read it at
    /// different times, which are stored separately.
    lanes: u32,
    /// Whether the warp as a whole has read it, in an instruction that each lane waits for: a
    /// thread that comes after any lane's wait comes after the read.
    of_warp: bool,
}

impl LastRead {
    fn by(who: &Who) -> Self {
        LastRead {
            time: who.time,
            serial: who.serial,
            site: who.site,
            lanes: who.lanes(),
            of_warp: false,
        }
    }

    /// The lane, if there is only one; [`MANY`] for several.
    fn lane(&self) -> u8 {
        if self.lanes.is_power_of_two() { self.lanes.trailing_zeros() as u8 } else { MANY }
    }
}

/// The last accesses of agents to each granule.
///
/// Granules with equal accesses share a *record*, so that recording an access to many granules is
/// cheap: the record that follows from another one by an access is created once.
pub(super) struct LastReads {
    agents: usize,
    /// The record of each granule. Empty until the first access: granules that are only written
    /// need none.
    of: Vec<u32>,
    /// The number of references to each record, from granules and from `steps`. The first record,
    /// without accesses, has one additional reference and is never freed.
    uses: Vec<u32>,
    /// The records without references.
    free: Vec<u32>,
    /// Entries of records, at `record * agents + agent`.
    last: Vec<LastRead>,
    /// By entry, the last time of each lane, if lanes without mutual knowledge have different
    /// times.
    apart: BTreeMap<usize, Box<[u32; LANES]>>,
    /// By agent, the last access that created a record; for several agents at once, at the first.
    steps: Vec<Option<Step>>,
    /// A record, and an agent that comes after all of its accesses.
    known: Option<(u32, Reader)>,
    /// The current execution, if it may write memory that it also reads.
    current: u32,
    /// By granule and agent, the entries before the current execution.
    before: BTreeMap<(usize, u16), Before>,
}

/// An agent's accesses to a granule before the current execution.
struct Before {
    last: LastRead,
    /// The last time of each lane, if stored separately.
    apart: Option<Box<[u32; LANES]>>,
}

/// The key of a check against earlier accesses: the snapshot, the thread, and whether a fence is
/// needed.
type Reader = (u64, u16, bool);

/// The step from one record to another.
struct Step {
    access: Access,
    from: u32,
    to: u32,
}

/// The key of a step: accesses with equal keys change a record equally.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Access {
    /// The snapshot of the first agent; it determines all other agents.
    snapshot: u64,
    thread: u16,
    site: u32,
    /// The number of agents.
    n: usize,
    /// For the end of an access, whether all lanes of the warp have waited for it.
    end: Option<bool>,
}

impl LastReads {
    /// No accesses, for `agents` agents.
    pub(super) fn new(agents: usize) -> Self {
        LastReads {
            agents,
            of: Vec::new(),
            uses: Vec::new(),
            free: Vec::new(),
            last: Vec::new(),
            apart: BTreeMap::new(),
            steps: Vec::new(),
            known: None,
            current: 0,
            before: BTreeMap::new(),
        }
    }

    /// Records accesses to some granules, one after the other, each by several agents at once.
    /// `granules` is the number of all granules.
    #[inline]
    pub(super) fn note(&mut self, some: &[u32], granules: usize, whos: &[Who]) {
        if self.of.is_empty() {
            self.of = vec![0; granules];
            self.uses = vec![granules as u32 + 1];
            self.last = vec![LastRead::default(); self.agents];
            self.steps = (0..self.agents).map(|_| None).collect();
        }
        for who in whos.iter().filter(|who| who.updates) {
            some.iter().for_each(|granule| self.keep(*granule as usize, who));
        }
        self.step(some, whos, None);
    }

    /// Stores an agent's accesses before the current execution. Lanes that write in this execution
    /// need not come after the reads of other lanes in it, but after their earlier accesses.
    fn keep(&mut self, granule: usize, who: &Who) {
        if self.current != who.serial {
            self.current = who.serial;
            self.before.clear();
        }
        let entry = self.of[granule] as usize * self.agents + usize::from(who.agent);
        let last = self.last[entry];
        if last.time > 0 && last.serial != who.serial {
            let apart = self.apart.get(&entry).cloned();
            self.before.insert((granule, who.agent), Before { last, apart });
        }
    }

    /// Records the end of accesses that began earlier. `of_warp`: all lanes of the warp have waited
    /// for them.
    #[inline]
    pub(super) fn note_end(&mut self, some: &[u32], who: &Who, of_warp: bool) {
        if !self.of.is_empty() {
            self.step(some, std::slice::from_ref(who), Some(of_warp));
        }
    }

    /// Moves granules, one after the other, to the records that follow from an access.
    #[inline]
    fn step(&mut self, some: &[u32], whos: &[Who], end: Option<bool>) {
        let Some(Who { agent, snapshot, thread, site, .. }) = whos.first() else { return };
        let (agent, n) = (usize::from(*agent), whos.len());
        let access = Access { snapshot: *snapshot, thread: *thread, site: *site, n, end };
        // The records before and after the access, for the last granule.
        let mut known = match &self.steps[agent] {
            Some(step) if step.access == access => Some((step.from, step.to)),
            _ => None,
        };
        for (i, granule) in some.iter().enumerate() {
            let from = self.of[*granule as usize];
            let to = match known {
                Some((known, to)) if known == from => to,
                _ => {
                    // The following granules have this record as well; ascending granules are
                    // distinct.
                    let same = |two: &&[u32]| two[0] < two[1] && self.of[two[1] as usize] == from;
                    let n = 1 + some[i..].windows(2).take_while(same).count();
                    self.lead((from, n as u32), whos, (agent, access))
                }
            };
            known = Some((from, to));
            if to != from {
                self.of[*granule as usize] = to;
                self.uses[to as usize] += 1;
                self.release(from);
            }
        }
    }

    /// Removes a reference to a record.
    #[inline]
    fn release(&mut self, record: u32) {
        let uses = &mut self.uses[record as usize];
        *uses -= 1;
        if *uses == 0 {
            self.forget(record);
        }
    }

    /// Makes a record available again.
    fn forget(&mut self, record: u32) {
        let first = record as usize * self.agents;
        for entry in first..first + self.agents {
            if self.last[entry].time > 0 && self.last[entry].lanes == 0 {
                self.apart.remove(&entry);
            }
        }
        self.free.push(record);
    }

    /// The record that follows from an access to `n` granules: the same record, modified, if no
    /// other granules refer to it.
    fn lead(
        &mut self,
        (from, n): (u32, u32),
        whos: &[Who],
        (first, access): (usize, Access),
    ) -> u32 {
        if let Some(old) = self.steps[first].take() {
            self.release(old.from);
            self.release(old.to);
        }
        self.known = None;
        let alone = self.uses[from as usize] == n;
        let to = if alone { from } else { self.copy(from) };
        for who in whos {
            self.note_entry(to as usize * self.agents + usize::from(who.agent), who, access.end);
        }
        if !alone {
            self.uses[from as usize] += 1;
            self.uses[to as usize] += 1;
            self.steps[first] = Some(Step { access, from, to });
        }
        to
    }

    /// A copy of a record.
    fn copy(&mut self, record: u32) -> u32 {
        let first = record as usize * self.agents;
        let to = self.free.pop().unwrap_or_else(|| {
            self.uses.push(0);
            self.last.resize(self.last.len() + self.agents, LastRead::default());
            self.uses.len() as u32 - 1
        });
        let start = to as usize * self.agents;
        self.last.copy_within(first..first + self.agents, start);
        if !self.apart.is_empty() {
            let apart = self.apart.range(first..first + self.agents);
            let apart: Vec<_> = apart.map(|(entry, times)| (*entry, times.clone())).collect();
            self.apart.extend(apart.into_iter().map(|(e, times)| (e - first + start, times)));
        }
        to
    }

    /// Records an access by an agent, or the end of one.
    fn note_entry(&mut self, entry: usize, who: &Who, end: Option<bool>) {
        let before = self.last[entry];
        let lanes = before.lanes;
        let alone = before.time == 0
            || before.of_warp
            || lanes != 0 && who.knows_all(who.agent, before.time, lanes);
        if alone {
            self.last[entry] = LastRead::by(who);
        } else if lanes != 0 && before.time == who.time {
            self.last[entry] = LastRead { lanes: lanes | who.lanes(), ..LastRead::by(who) };
        } else {
            self.note_apart(entry, who);
        }
        if let Some(of_warp) = end {
            self.last[entry].site = before.site;
            // Together with reads by lanes without mutual knowledge, it counts as a read of its
            // first lane.
            self.last[entry].of_warp = of_warp && alone;
        }
    }

    /// Records reads by lanes without mutual knowledge at different times.
    #[cold]
    fn note_apart(&mut self, entry: usize, who: &Who) {
        let last = &mut self.last[entry];
        let LastRead { time, lanes, .. } = *last;
        let times = self.apart.entry(entry).or_insert_with(|| {
            Box::new(std::array::from_fn(|l| if lanes >> l & 1 == 1 { time } else { 0 }))
        });
        let known = |(l, t): (usize, &u32)| *t == 0 || who.knows_all(who.agent, *t, 1 << l);
        if times.iter().enumerate().all(known) {
            self.apart.remove(&entry);
            *last = LastRead::by(who);
            return;
        }
        if let Some(own) = times.get_mut(usize::from(who.lane())) {
            *own = who.time;
        }
        *last = LastRead { lanes: 0, ..LastRead::by(who) };
    }

    /// Checks that an agent comes after all accesses to a granule; `wrote`: the accesses are
    /// writes, so that a fence is needed before an access through the other proxy.
    #[inline]
    pub(super) fn after(&mut self, granule: usize, who: &Who, wrote: bool) -> Result<(), Clash> {
        let Some(record) = self.of.get(granule).copied() else { return Ok(()) };
        // The proxy of accumulations into global memory is not stored.
        let fence = wrote && who.proxy == Proxy::Async;
        let known = Some((record, (who.snapshot, who.thread, fence)));
        // Entries before the current execution are stored by granule.
        if who.updates {
            self.after_all(granule, record, who, wrote, fence)?;
        } else if self.known != known {
            self.after_all(granule, record, who, wrote, fence)?;
            self.known = known;
        }
        Ok(())
    }

    /// Checks the accesses in a granule's record; see [`LastReads::after`].
    fn after_all(
        &self,
        granule: usize,
        record: u32,
        who: &Who,
        wrote: bool,
        fence: bool,
    ) -> Result<(), Clash> {
        let first = record as usize * self.agents;
        let of_granule = &self.last[first..first + self.agents];
        for (agent, last) in of_granule.iter().enumerate() {
            if last.time == 0 {
                continue;
            }
            let together =
                who.updates && agent == usize::from(who.agent) && last.serial == who.serial;
            let earlier = match together {
                false => None,
                true => match self.before.get(&(granule, who.agent)) {
                    Some(before) if self.current == who.serial => Some(before),
                    _ => continue,
                },
            };
            let last = earlier.map_or(last, |before| &before.last);
            let (known, fenced) = match last.lanes {
                _ if last.of_warp && !fence => (who.knows_any(agent as u16, last.time), true),
                0 => {
                    let entry = first + agent;
                    let apart =
                        earlier.map_or_else(|| self.apart.get(&entry), |b| b.apart.as_ref());
                    apart.map_or((true, true), |times| comes_after_each(times, agent as u16, who))
                }
                lanes => (
                    who.knows_all(agent as u16, last.time, lanes),
                    !fence || who.is_fenced_from_all(agent as u16, last.time, lanes),
                ),
            };
            if !known || fence && !fenced {
                let (agent, lane) = (agent as u16, last.lane());
                let LastRead { site, serial, .. } = *last;
                return Err(Clash { agent, lane, site, serial, wrote, unfenced: known });
            }
        }
        Ok(())
    }

    /// The statement of an access to a granule, if any.
    pub(super) fn any(&self, granule: usize) -> Option<u32> {
        let first = *self.of.get(granule)? as usize * self.agents;
        let of_granule = &self.last[first..first + self.agents];
        of_granule.iter().find(|r| r.time > 0).map(|r| r.site)
    }

    /// The number of bytes of memory if no granules share a record. Separate times of lanes, at
    /// most eight times as much, are not counted.
    pub(super) fn bytes(&self) -> usize {
        self.of.len() * self.agents * size_of::<LastRead>()
    }
}

/// Whether an agent comes after the access of each lane, and whether fences are between.
#[cold]
fn comes_after_each(times: &[u32; LANES], agent: u16, who: &Who) -> (bool, bool) {
    let each = |is: &dyn Fn(u32, u32) -> bool| {
        times.iter().enumerate().all(|(l, t)| *t == 0 || is(*t, 1 << l))
    };
    (
        each(&|time, lane| who.knows_all(agent, time, lane)),
        each(&|time, lane| who.is_fenced_from_all(agent, time, lane)),
    )
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Clocks, Part};
    use super::*;

    #[test]
    fn shared_records_equal_separate_records() {
        const N: usize = 6;
        let mut clocks = Clocks::new(1, 64, 0);
        let new = || LastReads::new(3);
        let (mut all, mut each) = (new(), [(); N].map(|()| new()));
        let mut x = 88_172_645_463_325_252u64;
        let mut below = |n: u64| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x % n) as usize
        };
        for (g, one) in each.iter_mut().enumerate() {
            let who = [clocks.warp(0, 0, 0, 0)];
            all.note(&[g as u32], N, &who);
            one.note(&[0], 1, &who);
        }
        let mut clashes = 0;
        for serial in 1..100_000u32 {
            let first = below(N as u64);
            let some = first..first + 1 + below((N - first) as u64);
            let warp = below(2);
            let by = |warp: usize, lane: usize| {
                let mut who = clocks.warp(0, warp, serial, serial);
                who.thread = (warp * 32 + lane) as u16;
                who.updates = serial % 2 == 0;
                who
            };
            let both = [by(warp, below(3)), by(1 - warp, below(3))];
            let whos = &both[..1 + below(2)];
            match below(8) {
                0 => {
                    let lanes = [u32::MAX, 0b11, 0b110][below(3)];
                    let part = |warp| Part { rank: 0, warp, lanes };
                    clocks.synchronize(&[part(warp), part(1 - warp)][..whos.len()]);
                }
                1 => {
                    let of_warp = below(2) == 0;
                    let granules: Vec<u32> = some.clone().map(|g| g as u32).collect();
                    all.note_end(&granules, &whos[0], of_warp);
                    for g in some {
                        each[g].note_end(&[0], &whos[0], of_warp);
                    }
                }
                2..5 => {
                    let granules: Vec<u32> = some.clone().map(|g| g as u32).collect();
                    all.note(&granules, N, whos);
                    for g in some {
                        whos.iter()
                            .for_each(|who| each[g].note(&[0], 1, std::slice::from_ref(who)));
                    }
                }
                _ => {
                    for g in some {
                        let alone = each[g].after(0, &whos[0], false);
                        assert_eq!(all.after(g, &whos[0], false), alone);
                        clashes += usize::from(alone.is_err());
                    }
                }
            }
            for (g, one) in each.iter().enumerate() {
                assert_eq!(all.any(g), one.any(0));
            }
        }
        assert!((10_000..100_000).contains(&clashes), "{clashes}");
    }

    #[test]
    fn lanes_come_after_reads_of_earlier_statements() {
        let clocks = Clocks::new(1, 32, 0);
        let mut reads = LastReads::new(clocks.n_readers());
        let by = |lane, serial| {
            let mut who = clocks.warp(0, 0, serial, serial);
            who.thread = lane;
            who
        };
        reads.note(&[0], 1, &[by(0, 1)]);
        for lane in 0..3 {
            reads.note(&[0], 1, &[by(lane, 2)]);
        }
        let clash = reads.after(0, &by(1, 2), false).unwrap_err();
        assert_eq!((clash.lane, clash.site), (0, 1));
        assert_eq!(reads.after(0, &by(0, 2), false), Ok(()), "it read that itself");
        let clash = reads.after(0, &by(1, 3), false).unwrap_err();
        assert_eq!((clash.lane, clash.site), (MANY, 2));
    }
}
