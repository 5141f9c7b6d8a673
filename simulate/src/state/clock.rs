//! Decides which accesses are ordered, by vector clocks: one for each thread, with one entry for
//! each warp. The race detector ([`super::race`]) asks it whether a thread comes after an earlier
//! access.
//!
//! The accesses of a warp carry its *time*. The time advances at every event that may order earlier
//! accesses before later ones: at a synchronization of the warp's lanes, and when lanes release
//! their accesses to other threads. A thread's *knowledge* of a warp, the accesses of that warp
//! which the thread comes after, is one [`Entry`]: all lanes up to one time, and some lanes up to
//! later times. The lanes of a warp share one clock while their knowledge is equal. If only some
//! lanes learn of accesses, each lane gets its own clock until the next synchronization of all
//! lanes.
//!
//! When a group of several warps executes a statement by its meaning, no thread is assigned to each
//! element. Such a statement accesses memory as an additional agent, the block's *collective*. Only
//! a barrier of all warps concerned orders its accesses with the accesses of a warp. Accesses of
//! the collective are ordered among themselves, because texts at the tile level may omit barriers.
//!
//! Asynchronous instructions access memory through another *proxy* than threads. They come after
//! writes of threads only if a proxy fence is between. A second clock contains the knowledge at the
//! last proxy fence, and is passed on together with the first (PTX ISA, Memory Consistency Model:
//! Proxies, Causality order).
//!
//! An event that *happened* before is not necessarily ordered before in memory: a copy that has
//! arrived was issued before, and a thread that waited for it knows that the issue happened, but
//! does not see the writes of the issuing thread. A third clock contains this relation, for
//! questions that do not concern memory: the phase in which an mbarrier counts an arrival
//! ([`super::arrivals`]).
//!
//! Invariant: every entry of a clock results from a synchronization.

use super::async_matmul::Issue;
use std::cell::Cell;
use std::rc::Rc;

/// The lane number for several lanes, or for the collective.
pub(crate) const MANY: u8 = u8::MAX;

/// Lanes of a warp.
pub(crate) const LANES: usize = 32;

/// The known accesses of a warp: those of its lanes up to a time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The time for all lanes.
    all: u32,
    /// A later time for some lanes.
    some: u32,
    /// The lanes with the later time.
    lanes: u32,
    /// A time for each lane, instead of `some` and `lanes`, if lanes are known up to different
    /// times.
    each: Option<Rc<[u32; LANES]>>,
}

impl Entry {
    pub(crate) fn up_to(all: u32) -> Self {
        Entry { all, ..Entry::default() }
    }

    /// All lanes up to one time, some lanes up to a later one.
    fn of(all: u32, lanes: u32, some: u32) -> Self {
        match lanes {
            u32::MAX => Entry::up_to(all.max(some)),
            _ => Entry { all, some, lanes, each: None },
        }
    }

    #[inline]
    fn knows(&self, time: u32, lane: u8) -> bool {
        time <= self.all || lane < LANES as u8 && time <= self.time(usize::from(lane))
    }

    /// Whether the entry contains all accesses of these lanes up to a time.
    #[inline]
    fn knows_all(&self, time: u32, lanes: u32) -> bool {
        time <= self.all
            || lanes == 0
            || match &self.each {
                None => time <= self.some && lanes & !self.lanes == 0,
                Some(each) => {
                    each.iter().enumerate().all(|(l, t)| lanes >> l & 1 == 0 || time <= *t)
                }
            }
    }

    /// Whether the entry contains the accesses of any lane up to a time.
    fn knows_any(&self, time: u32) -> bool {
        time <= self.all
            || self.lanes != 0 && time <= self.some
            || self.each.as_ref().is_some_and(|each| each.iter().any(|t| time <= *t))
    }

    /// The time up to which a lane is known.
    fn time(&self, lane: usize) -> u32 {
        let some = || if self.lanes >> lane & 1 == 1 { self.some } else { 0 };
        self.each.as_ref().map_or_else(some, |each| each[lane]).max(self.all)
    }

    /// Whether the entry contains everything in another entry, except for the lanes `except`.
    fn covers(&self, other: &Entry, except: u32) -> bool {
        match &other.each {
            None => {
                self.knows_all(other.all, !except)
                    && self.knows_all(other.some, other.lanes & !except)
            }
            Some(_) => (0..LANES as u32)
                .all(|l| except >> l & 1 == 1 || self.knows(other.time(l as usize), l as u8)),
        }
    }

    #[inline]
    pub(crate) fn join(&mut self, other: &Entry) {
        let all = self.all.max(other.all);
        let later = |e: &Entry| e.each.is_some() || e.some > all;
        match (later(self), later(other)) {
            (false, false) => *self = Entry::up_to(all),
            (true, false) => self.all = all,
            (false, true) => *self = Entry { all, ..other.clone() },
            (true, true) => self.join_lanes(other, all),
        }
    }

    /// Joins entries that both know more of some lanes than of all.
    fn join_lanes(&mut self, other: &Entry, all: u32) {
        let (first, last) = if self.some <= other.some { (&*self, other) } else { (other, &*self) };
        let at_once = first.some == last.some;
        if self.each.is_none()
            && other.each.is_none()
            && (at_once || first.lanes & !last.lanes == 0)
        {
            let lanes = if at_once { first.lanes | last.lanes } else { last.lanes };
            *self = Entry::of(all, lanes, last.some);
            return;
        }
        let each: [u32; LANES] = std::array::from_fn(|l| self.time(l).max(other.time(l)));
        let (least, most) = each.iter().fold((u32::MAX, 0), |(a, b), t| (a.min(*t), b.max(*t)));
        let all = all.max(least);
        *self = match each.iter().all(|t| *t <= all || *t == most) {
            true => {
                let latest = each.iter().enumerate().filter(|(_, t)| **t == most);
                Entry::of(all, latest.fold(0, |bits, (l, _)| bits | 1 << l), most)
            }
            false => Entry { all, each: Some(Rc::new(each)), ..Entry::default() },
        };
    }
}

/// The knowledge of an agent about all agents.
pub(crate) type Clock = Vec<Entry>;

/// Adds the knowledge of another clock.
fn join(into: &mut Clock, other: &[Entry]) {
    if into.is_empty() {
        into.extend_from_slice(other);
    } else {
        into.iter_mut().zip(other).for_each(|(a, b)| a.join(b));
    }
}

/// The knowledge that threads release to others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Message {
    seen: Clock,
    fenced: Clock,
    /// Empty if no mbarrier needs the relation.
    happened: Clock,
}

impl Message {
    /// Adds the accesses of an agent up to a time.
    pub(crate) fn add(&mut self, agent: u16, time: u32) {
        for clock in [&mut self.seen, &mut self.fenced, &mut self.happened] {
            if let Some(entry) = clock.get_mut(usize::from(agent)) {
                entry.join(&Entry::up_to(time));
            }
        }
    }

    /// Adds another message.
    pub(crate) fn join(&mut self, other: &Message) {
        join(&mut self.seen, &other.seen);
        join(&mut self.fenced, &other.fenced);
        join(&mut self.happened, &other.happened);
    }

    /// Keeps only the happened-before relation.
    pub(crate) fn without_memory(self) -> Self {
        Message { happened: self.happened, ..Message::default() }
    }
}

/// The ways to access memory.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Proxy {
    /// The proxy of threads.
    #[default]
    Generic,
    /// The proxy of asynchronous instructions.
    Async,
    /// The copy engine's accesses to global memory, to which `fence.async` does not apply.
    Global,
}

/// The clocks of the lanes of a warp: one clock while they are equal, else one for each lane.
#[derive(Clone)]
struct Known {
    together: Rc<Clock>,
    apart: Option<Rc<[Rc<Clock>]>>,
}

impl Known {
    #[inline]
    fn of(&self, lane: usize) -> &Rc<Clock> {
        self.apart.as_ref().map_or(&self.together, |lanes| &lanes[lane])
    }

    /// The knowledge that all of these lanes together have.
    fn all(&self, lanes: u32) -> Clock {
        let mut clock = Clock::clone(self.of(lanes.trailing_zeros().min(31) as usize));
        if self.apart.is_some() {
            for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
                join(&mut clock, self.of(lane));
            }
        }
        clock
    }

    /// Adds knowledge to some lanes of a warp with the lanes `threads`.
    fn learn(&mut self, lanes: u32, threads: u32, what: &[Entry]) {
        if what.is_empty() {
            return;
        }
        if lanes == threads && self.apart.is_none() {
            join(Rc::make_mut(&mut self.together), what);
            return;
        }
        let mut apart: Vec<Rc<Clock>> = (0..32).map(|l| Rc::clone(self.of(l))).collect();
        for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
            join(Rc::make_mut(&mut apart[lane]), what);
        }
        self.apart = Some(apart.into());
    }
}

/// An agent that accesses memory.
#[derive(Clone)]
pub(crate) struct Who {
    /// The warp of the cluster, or the number of a collective.
    pub agent: u16,
    /// The thread of its block; `u16::MAX` for the collective.
    pub thread: u16,
    /// The statement.
    pub site: u32,
    /// The number of the statement's execution. Lanes of one execution do not race with each other.
    pub serial: u32,
    /// Whether the execution may write memory that it also reads.
    pub updates: bool,
    /// The time of the agent.
    pub time: u32,
    /// The proxy of the accesses.
    pub proxy: Proxy,
    /// The issue, for an asynchronous MatMul.
    pub issue: Option<Issue>,
    /// The number of this agent's knowledge; agents with equal numbers have equal knowledge.
    pub snapshot: u64,
    seen: Known,
    fenced: Known,
}

impl Who {
    /// The lane of the thread; [`MANY`] for the collective.
    #[inline]
    pub(crate) fn lane(&self) -> u8 {
        if self.thread == u16::MAX { MANY } else { (self.thread % 32) as u8 }
    }

    /// Whether the agent comes after an access.
    #[inline]
    pub(crate) fn knows(&self, agent: u16, time: u32, lane: u8) -> bool {
        if agent == self.agent && lane == self.lane() && (lane != MANY || self.thread == u16::MAX) {
            return true;
        }
        self.holds(&self.seen, agent, time, lane)
    }

    /// Whether the agent comes after accesses of several lanes up to a time. A collective always
    /// comes after its own accesses.
    #[inline]
    pub(crate) fn knows_all(&self, agent: u16, time: u32, lanes: u32) -> bool {
        let own = match (agent == self.agent, self.thread) {
            (false, _) => 0,
            (true, u16::MAX) => return true,
            (true, thread) => 1 << (thread % 32),
        };
        let others = lanes & !own;
        others == 0 || self.entry(&self.seen, agent).is_some_and(|e| e.knows_all(time, others))
    }

    /// Whether the agent comes after accesses of any lane of an agent up to a time. It always comes
    /// after those of its own warp.
    #[inline]
    pub(crate) fn knows_any(&self, agent: u16, time: u32) -> bool {
        agent == self.agent || self.entry(&self.seen, agent).is_some_and(|e| e.knows_any(time))
    }

    /// Whether every lane of its warp comes after accesses of several lanes up to a time.
    #[inline]
    pub(crate) fn knows_as_warp(&self, agent: u16, time: u32, lanes: u32) -> bool {
        self.thread == u16::MAX
            || self.seen.apart.is_none()
                && self.entry(&self.seen, agent).is_some_and(|e| e.knows_all(time, lanes))
    }

    /// The lane as a bit; all bits for a collective.
    #[inline]
    pub(crate) fn lanes(&self) -> u32 {
        if self.thread == u16::MAX { u32::MAX } else { 1 << (self.thread % 32) }
    }

    /// Whether a proxy fence is between accesses of several lanes and this agent, which must come
    /// after them.
    #[inline]
    pub(crate) fn is_fenced_from_all(&self, agent: u16, time: u32, lanes: u32) -> bool {
        self.entry(&self.fenced, agent).is_some_and(|e| e.knows_all(time, lanes))
    }

    #[inline]
    fn holds(&self, known: &Known, agent: u16, time: u32, lane: u8) -> bool {
        self.entry(known, agent).is_some_and(|e| e.knows(time, lane))
    }

    #[inline]
    fn entry<'a>(&self, known: &'a Known, agent: u16) -> Option<&'a Entry> {
        let clock = match self.thread {
            u16::MAX => &known.together,
            thread => known.of(usize::from(thread) % 32),
        };
        clock.get(usize::from(agent))
    }
}

/// The clocks of a warp.
struct Warp {
    /// The time of present accesses.
    time: u32,
    /// The threads of the warp, one bit for each lane.
    threads: u32,
    /// The accesses that its lanes come after; its own entry ends at the last synchronization of
    /// all lanes.
    seen: Known,
    /// The accesses before proxy fences.
    fenced: Known,
    /// The events that happened before; without agents if no mbarrier needs the relation.
    happened: Known,
}

/// The last accesses of a block's collective.
#[derive(Clone, Default)]
struct Collective {
    time: u32,
    /// The warps that took part since the last barrier, one bit each.
    members: u32,
}

/// The clocks of a cluster.
pub(crate) struct Clocks {
    /// The number of warps of a block.
    n_warps: usize,
    warps: Vec<Warp>,
    collectives: Vec<Collective>,
    /// The number of snapshots so far.
    snapshots: Cell<u64>,
}

/// Lanes of a warp that synchronize.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Part {
    /// The rank of the block in the cluster.
    pub rank: usize,
    /// The warp of the block.
    pub warp: usize,
    /// The lanes, one bit each.
    pub lanes: u32,
}

impl Part {
    fn lanes(self) -> impl Iterator<Item = usize> {
        (0..LANES).filter(move |l| self.lanes >> l & 1 == 1)
    }
}

impl Clocks {
    /// Empty clocks, for blocks with `n_threads` threads and `n_mbarriers` mbarriers each.
    pub(crate) fn new(n_blocks: usize, n_threads: usize, n_mbarriers: usize) -> Self {
        let n_warps = n_threads.div_ceil(32);
        let agents = n_blocks * (n_warps + 1 + n_mbarriers);
        let of = |agents| Known { together: Rc::new(vec![Entry::default(); agents]), apart: None };
        let (nothing, happened) = (of(agents), of(if n_mbarriers == 0 { 0 } else { agents }));
        let threads = |w: usize| match n_threads - w * 32 {
            n if n >= 32 => u32::MAX,
            n => (1 << n) - 1,
        };
        let warps = (0..n_blocks * n_warps)
            .map(|w| Warp {
                time: 1,
                threads: threads(w % n_warps),
                seen: nothing.clone(),
                fenced: nothing.clone(),
                happened: happened.clone(),
            })
            .collect();
        let collectives = vec![Collective { time: 1, members: 0 }; n_blocks];
        Clocks { n_warps, warps, collectives, snapshots: Cell::new(0) }
    }

    /// The number of agents that read: the warps of the cluster and the collectives of its blocks.
    pub(crate) fn n_readers(&self) -> usize {
        self.warps.len() + self.collectives.len()
    }

    /// The agent of a block's mbarrier. Elements that arrive with the mbarrier count as written by
    /// this agent, at the time of the phase.
    pub(crate) fn mbarrier(&self, rank: usize, number: usize, n_mbarriers: usize) -> u16 {
        (self.n_readers() + rank * n_mbarriers + number) as u16
    }

    /// A thread of a warp, for an access to memory; by default the first lane.
    pub(crate) fn warp(&self, rank: usize, warp: usize, site: u32, serial: u32) -> Who {
        let agent = rank * self.n_warps + warp;
        let w = &self.warps[agent];
        self.snapshots.update(|n| n + 1);
        Who {
            agent: agent as u16,
            thread: (warp * 32) as u16,
            site,
            serial,
            updates: true,
            time: w.time,
            proxy: Proxy::Generic,
            issue: None,
            snapshot: self.snapshots.get(),
            seen: w.seen.clone(),
            fenced: w.fenced.clone(),
        }
    }

    /// A group of threads as one agent. A group within one warp is that warp.
    pub(crate) fn group(&mut self, rank: usize, group: &[u16], site: u32, serial: u32) -> Who {
        let first = group.first().map_or(0, |t| usize::from(*t) / 32);
        let mut who = self.warp(rank, first, site, serial);
        if group.iter().all(|t| usize::from(*t) / 32 == first) {
            return who;
        }
        let mut members = 0u32;
        group.iter().for_each(|t| members |= 1 << (t / 32));
        let mut seen = Clock::new();
        for w in (0..self.n_warps).filter(|w| members >> w & 1 == 1) {
            let agent = rank * self.n_warps + w;
            let warp = &self.warps[agent];
            let mut own = warp.seen.all(warp.threads);
            own[agent] = Entry::up_to(warp.time);
            if seen.is_empty() {
                seen = own.iter().map(|e| Entry::up_to(e.all)).collect();
            } else {
                seen.iter_mut().zip(&own).for_each(|(a, b)| a.all = a.all.min(b.all));
            }
        }
        let collective = &mut self.collectives[rank];
        collective.members |= members;
        let agent = self.warps.len() + rank;
        seen[agent] = Entry::up_to(u32::MAX);
        (who.agent, who.thread, who.time) = (agent as u16, u16::MAX, collective.time);
        who.seen = Known { together: Rc::new(seen), apart: None };
        who
    }

    /// Synchronizes all parts: each part then has the knowledge of all, and comes after their
    /// accesses.
    pub(crate) fn synchronize(&mut self, parts: &[Part]) {
        let mut all = Message::default();
        for part in parts {
            all.join(&self.release(*part));
        }
        for rank in 0..self.collectives.len() {
            let here = parts.iter().filter(|p| p.rank == rank);
            let warps = here.fold(0u32, |bits, p| bits | 1 << p.warp);
            let collective = &mut self.collectives[rank];
            if warps != 0 && collective.members & !warps == 0 {
                if let Some(entry) = all.seen.get_mut(self.warps.len() + rank) {
                    entry.join(&Entry::up_to(collective.time));
                }
                collective.time += 1;
                collective.members = 0;
            }
        }
        let all = [all.seen, all.fenced, all.happened].map(Rc::new);
        for part in parts {
            let warp = &mut self.warps[part.rank * self.n_warps + part.warp];
            if part.lanes & warp.threads == warp.threads {
                let [seen, fenced, happened] =
                    all.each_ref().map(|c| Known { together: Rc::clone(c), apart: None });
                (warp.seen, warp.fenced, warp.happened) = (seen, fenced, happened);
            } else {
                warp.learn(part.lanes, &all[0], &all[1], &all[2]);
            }
        }
    }

    /// The knowledge and the accesses of some lanes, for others to acquire.
    pub(crate) fn release(&mut self, part: Part) -> Message {
        let agent = part.rank * self.n_warps + part.warp;
        let warp = &mut self.warps[agent];
        let lanes = part.lanes & warp.threads;
        let [mut seen, fenced, mut happened] =
            [&warp.seen, &warp.fenced, &warp.happened].map(|known| known.all(lanes));
        let own = warp.own(lanes);
        seen[agent].join(&own);
        if let Some(entry) = happened.get_mut(agent) {
            entry.join(&own);
        }
        warp.time = warp.time.saturating_add(1);
        Message { seen, fenced, happened }
    }

    /// The agent of a part, and the accesses of its lanes so far.
    pub(crate) fn so_far(&self, part: Part) -> (u16, Entry) {
        let agent = part.rank * self.n_warps + part.warp;
        let warp = &self.warps[agent];
        (agent as u16, warp.own(part.lanes & warp.threads))
    }

    /// Whether the accesses of an agent's lanes happened before the present point of each of these
    /// lanes.
    pub(crate) fn happened(&self, part: Part, (agent, did): (u16, &Entry)) -> bool {
        let own = part.rank * self.n_warps + part.warp;
        let warp = &self.warps[own];
        let knows = |lane: usize, except: u32| {
            warp.happened.of(lane).get(usize::from(agent)).is_some_and(|e| e.covers(did, except))
        };
        if warp.happened.apart.is_none() && knows(0, 0) {
            return true;
        }
        // The earlier accesses of a lane itself happened before. Lanes that do not exist have no
        // accesses.
        let itself = |lane: usize| match usize::from(agent) == own {
            true => 1 << lane | !warp.threads,
            false => 0,
        };
        part.lanes().all(|lane| knows(lane, itself(lane)))
    }

    /// Whether each of these lanes alone made the accesses.
    pub(crate) fn are_its_own(&self, part: Part, (agent, did): (u16, &Entry)) -> bool {
        let own = part.rank * self.n_warps + part.warp;
        let none = !self.warps[own].threads;
        usize::from(agent) == own
            && part.lanes().all(|lane| Entry::default().covers(did, 1 << lane | none))
    }

    /// Adds released knowledge to some lanes.
    pub(crate) fn acquire(&mut self, part: Part, message: &Message) {
        let warp = &mut self.warps[part.rank * self.n_warps + part.warp];
        warp.learn(part.lanes, &message.seen, &message.fenced, &message.happened);
    }

    /// Orders lanes of a warp after the accesses of an agent up to a time.
    pub(crate) fn learn(&mut self, part: Part, agent: u16, time: u32) {
        let warp = &self.warps[part.rank * self.n_warps + part.warp];
        let none = |of: &Known| vec![Entry::default(); of.together.len()];
        let [seen, fenced, happened] = [&warp.seen, &warp.fenced, &warp.happened].map(none);
        let mut message = Message { seen, fenced, happened };
        message.add(agent, time);
        self.acquire(part, &message);
    }

    /// Whether a thread of the block comes after the access of an agent's lane at a time.
    pub(crate) fn known_in(&self, rank: usize, (agent, time, lane): (u16, u32, u8)) -> bool {
        let warps = &self.warps[rank * self.n_warps..(rank + 1) * self.n_warps];
        let knows = |clock: &Clock| clock[usize::from(agent)].knows(time, lane);
        warps.iter().any(|w| (0..32).any(|l| knows(w.seen.of(l))))
    }

    /// A proxy fence of some lanes: passes the knowledge and the accesses of each lane to the other
    /// proxy.
    pub(crate) fn fence(&mut self, part: Part) {
        let agent = part.rank * self.n_warps + part.warp;
        let collective = &self.collectives[part.rank];
        // Each thread passes on its own share of the group's accesses.
        if collective.members >> part.warp & 1 == 1 {
            let mut share = vec![Entry::default(); self.warps[agent].seen.together.len()];
            share[self.warps.len() + part.rank] = Entry::up_to(collective.time);
            let warp = &mut self.warps[agent];
            warp.fenced.learn(part.lanes & warp.threads, warp.threads, &share);
        }
        let warp = &mut self.warps[agent];
        let lanes = part.lanes & warp.threads;
        if lanes == warp.threads && warp.seen.apart.is_none() {
            let mut clock = warp.seen.all(lanes);
            clock[agent].join(&warp.own(lanes));
            warp.fenced.learn(lanes, warp.threads, &clock);
        } else {
            for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
                let mut clock = warp.seen.all(1 << lane);
                clock[agent].join(&warp.own(1 << lane));
                warp.fenced.learn(1 << lane, warp.threads, &clock);
            }
        }
        warp.time = warp.time.saturating_add(1);
    }
}

impl Warp {
    /// Adds knowledge to some lanes.
    fn learn(&mut self, lanes: u32, seen: &[Entry], fenced: &[Entry], happened: &[Entry]) {
        let lanes = lanes & self.threads;
        self.seen.learn(lanes, self.threads, seen);
        self.fenced.learn(lanes, self.threads, fenced);
        self.happened.learn(lanes, self.threads, happened);
    }

    /// The accesses of these lanes so far.
    fn own(&self, lanes: u32) -> Entry {
        // Missing lanes of a partial warp have no accesses.
        Entry::of(0, lanes | !self.threads, self.time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_track_each_lane_exactly() {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 11) % n
        };
        for _ in 0..2000 {
            let (mut entry, mut plain) = (Entry::default(), [0u32; LANES]);
            for _ in 0..below(6) {
                let (mut other, mut of_other) = (Entry::default(), [0u32; LANES]);
                for _ in 0..=below(3) {
                    let half = 0xffff << (below(2) * 16);
                    let lanes = [u32::MAX, half, 1 << below(32), below(1 << 32) as u32];
                    let (lanes, time) = (lanes[below(4) as usize], below(5) as u32);
                    other.join(&Entry::of(0, lanes, time));
                    let known = of_other.iter_mut().enumerate();
                    known.filter(|(l, _)| lanes >> l & 1 == 1).for_each(|(_, t)| *t = time.max(*t));
                }
                entry.join(&other);
                plain.iter_mut().zip(of_other).for_each(|(a, b)| *a = b.max(*a));
            }
            let of_all = plain.iter().fold(u32::MAX, |a, b| a.min(*b));
            for time in 0..6 {
                for (lane, last) in plain.iter().enumerate() {
                    assert_eq!(entry.knows(time, lane as u8), time <= *last, "{entry:?}");
                }
                assert_eq!(entry.knows(time, MANY), time <= of_all, "{entry:?}");
                let lanes = below(1 << 32) as u32;
                let wanted = (0..LANES).all(|l| lanes >> l & 1 == 0 || time <= plain[l]);
                assert_eq!(entry.knows_all(time, lanes), wanted, "{entry:?} {lanes:#x} {time}");
            }
        }
    }
}
