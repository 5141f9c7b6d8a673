//! What each thread comes after: vector clocks, one entry a warp.
//!
//! A warp's accesses carry its *time*, which passes whenever something may order what came before with what
//! comes after: at a synchronisation of its lanes, and when lanes release what they did to others. What a
//! thread knows of a warp is one [`Entry`]: all lanes up to one time, and some lanes up to a later one. The
//! lanes of a warp share one clock while they agree; where only some of them learn something, each gets its
//! own until the next synchronisation of them all.
//!
//! Statements that a group of several warps executes by its meaning alone do not say which thread touches
//! which element. They access memory as one more agent, the block's *collective*: its accesses are ordered
//! with a warp's only by a barrier of all warps concerned. Among themselves they are in step, as statements
//! of the tile level are, where barriers may still be left out.
//!
//! Invariant: nothing is known that no synchronisation taught, save that several lanes of one warp that
//! release at different times between two synchronisations of the warp count as having released at the last.

use std::rc::Rc;

/// Stands for several lanes, or for the collective.
pub(crate) const MANY: u8 = u8::MAX;

/// What is known of a warp: every access of its lanes up to a time.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The time for all lanes.
    all: u32,
    /// A later time for some lanes.
    some: u32,
    /// Those lanes.
    lanes: u32,
}

impl Entry {
    fn up_to(all: u32) -> Self {
        Entry { all, some: 0, lanes: 0 }
    }

    #[inline]
    fn knows(self, time: u32, lane: u8) -> bool {
        time <= self.all || time <= self.some && lane < 32 && self.lanes >> lane & 1 == 1
    }

    fn join(&mut self, other: Entry) {
        let all = self.all.max(other.all);
        let (mut some, mut lanes) = (0, 0);
        for e in [*self, other] {
            if e.some > all {
                some = some.max(e.some);
                lanes |= e.lanes;
            }
        }
        *self = Entry { all, some, lanes };
    }
}

/// What somebody knows of every agent.
pub(crate) type Clock = Vec<Entry>;

/// Adds what another knows.
pub(crate) fn join(into: &mut Clock, other: &[Entry]) {
    into.iter_mut().zip(other).for_each(|(a, b)| a.join(*b));
}

/// Who accesses memory.
#[derive(Clone)]
pub(crate) struct Who {
    /// Warp of the cluster, or a collective's number.
    pub agent: u16,
    /// Thread of its block; `u16::MAX` for the collective.
    pub thread: u16,
    /// Statement.
    pub site: u32,
    /// Which execution of a statement; the lanes of one do not race with each other.
    pub serial: u32,
    /// The agent's time.
    pub time: u32,
    seen: Rc<Clock>,
    apart: Option<Rc<[Rc<Clock>]>>,
}

impl Who {
    /// The thread's lane; [`MANY`] for the collective.
    #[inline]
    pub(crate) fn lane(&self) -> u8 {
        if self.thread == u16::MAX { MANY } else { (self.thread % 32) as u8 }
    }

    /// Whether it comes after an access.
    #[inline]
    pub(crate) fn knows(&self, agent: u16, time: u32, lane: u8) -> bool {
        if agent == self.agent && lane == self.lane() && (lane != MANY || self.thread == u16::MAX) {
            return true;
        }
        let seen = match &self.apart {
            Some(lanes) if self.thread != u16::MAX => &lanes[usize::from(self.lane())],
            _ => &self.seen,
        };
        seen.get(usize::from(agent)).is_some_and(|e| e.knows(time, lane))
    }
}

/// A warp's clock.
struct Warp {
    /// Of accesses made now.
    time: u32,
    /// Its threads, one bit a lane.
    threads: u32,
    /// What all lanes know; its own entry ends at the last synchronisation of all lanes.
    together: Rc<Clock>,
    /// What each lane knows, where they differ.
    apart: Option<Rc<[Rc<Clock>]>>,
}

impl Warp {
    fn of(&self, lane: usize) -> &Rc<Clock> {
        self.apart.as_ref().map_or(&self.together, |lanes| &lanes[lane])
    }

    /// What these lanes know together.
    fn known(&self, lanes: u32) -> Clock {
        let mut clock = Clock::clone(self.of(lanes.trailing_zeros().min(31) as usize));
        if self.apart.is_some() {
            for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
                join(&mut clock, self.of(lane));
            }
        }
        clock
    }
}

/// What a block's collective did last.
#[derive(Clone, Default)]
struct Collective {
    time: u32,
    /// Warps that took part since the last barrier, one bit each.
    members: u32,
}

/// The clocks of a cluster.
pub(crate) struct Clocks {
    /// Warps of a block.
    n_warps: usize,
    warps: Vec<Warp>,
    collectives: Vec<Collective>,
}

/// Lanes of a warp that synchronize.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Part {
    /// Block of the cluster.
    pub rank: usize,
    /// Warp of the block.
    pub warp: usize,
    /// One bit a lane.
    pub lanes: u32,
}

impl Clocks {
    /// Nobody knows anything. Blocks have `n_threads` threads each.
    pub(crate) fn new(n_blocks: usize, n_threads: usize) -> Self {
        let n_warps = n_threads.div_ceil(32);
        let agents = n_blocks * (n_warps + 1);
        let nothing = Rc::new(vec![Entry::default(); agents]);
        let threads = |w: usize| match n_threads - w * 32 {
            n if n >= 32 => u32::MAX,
            n => (1 << n) - 1,
        };
        let warps = (0..n_blocks * n_warps)
            .map(|w| Warp {
                time: 1,
                threads: threads(w % n_warps),
                together: Rc::clone(&nothing),
                apart: None,
            })
            .collect();
        let collectives = vec![Collective { time: 1, members: 0 }; n_blocks];
        Clocks { n_warps, warps, collectives }
    }

    /// Warps of the cluster and collectives of its blocks.
    pub(crate) fn n_agents(&self) -> usize {
        self.warps.len() + self.collectives.len()
    }

    /// A thread of a warp, about to access memory; its first lane until told otherwise.
    pub(crate) fn warp(&self, rank: usize, warp: usize, site: u32, serial: u32) -> Who {
        let agent = rank * self.n_warps + warp;
        let w = &self.warps[agent];
        Who {
            agent: agent as u16,
            thread: (warp * 32) as u16,
            site,
            serial,
            time: w.time,
            seen: Rc::clone(&w.together),
            apart: w.apart.clone(),
        }
    }

    /// A group of threads acting together. Of one warp it is that warp.
    pub(crate) fn group(&mut self, rank: usize, group: &[u16], site: u32, serial: u32) -> Who {
        let first = group.first().map_or(0, |t| usize::from(*t) / 32);
        if group.iter().all(|t| usize::from(*t) / 32 == first) {
            return self.warp(rank, first, site, serial);
        }
        let mut members = 0u32;
        group.iter().for_each(|t| members |= 1 << (t / 32));
        let mut seen: Option<Clock> = None;
        for w in (0..self.n_warps).filter(|w| members >> w & 1 == 1) {
            let agent = rank * self.n_warps + w;
            let warp = &self.warps[agent];
            let mut own = warp.known(warp.threads);
            own[agent] = Entry::up_to(warp.time);
            match &mut seen {
                None => seen = Some(own.iter().map(|e| Entry::up_to(e.all)).collect()),
                Some(all) => all.iter_mut().zip(&own).for_each(|(a, b)| a.all = a.all.min(b.all)),
            }
        }
        let mut seen = seen.unwrap_or_default();
        let collective = &mut self.collectives[rank];
        collective.members |= members;
        let agent = self.warps.len() + rank;
        seen[agent] = Entry::up_to(u32::MAX);
        Who {
            agent: agent as u16,
            thread: u16::MAX,
            site,
            serial,
            time: collective.time,
            seen: Rc::new(seen),
            apart: None,
        }
    }

    /// All parts wait for each other: each then knows what any of them knew and did.
    pub(crate) fn synchronize(&mut self, parts: &[Part]) {
        let mut all = vec![Entry::default(); self.n_agents()];
        for part in parts {
            join(&mut all, &self.release(*part));
        }
        for rank in 0..self.collectives.len() {
            let here = parts.iter().filter(|p| p.rank == rank);
            let warps = here.fold(0u32, |bits, p| bits | 1 << p.warp);
            let collective = &mut self.collectives[rank];
            if warps != 0 && collective.members & !warps == 0 {
                all[self.warps.len() + rank].join(Entry::up_to(collective.time));
                collective.time += 1;
                collective.members = 0;
            }
        }
        let all = Rc::new(all);
        for part in parts {
            let warp = &mut self.warps[part.rank * self.n_warps + part.warp];
            if part.lanes & warp.threads == warp.threads {
                (warp.together, warp.apart) = (Rc::clone(&all), None);
            } else {
                self.acquire(*part, &all);
            }
        }
    }

    /// What some lanes know and did, for others to acquire.
    pub(crate) fn release(&mut self, part: Part) -> Clock {
        let agent = part.rank * self.n_warps + part.warp;
        let warp = &mut self.warps[agent];
        let lanes = part.lanes & warp.threads;
        let mut clock = warp.known(lanes);
        let mine = match lanes == warp.threads {
            true => Entry::up_to(warp.time),
            false => Entry { all: 0, some: warp.time, lanes },
        };
        clock[agent].join(mine);
        warp.time = warp.time.saturating_add(1);
        clock
    }

    /// Some lanes learn what was released.
    pub(crate) fn acquire(&mut self, part: Part, released: &[Entry]) {
        let agent = part.rank * self.n_warps + part.warp;
        let warp = &mut self.warps[agent];
        let lanes = part.lanes & warp.threads;
        if lanes == warp.threads && warp.apart.is_none() {
            join(Rc::make_mut(&mut warp.together), released);
            return;
        }
        let mut apart: Vec<Rc<Clock>> = (0..32).map(|l| Rc::clone(warp.of(l))).collect();
        for lane in (0..32).filter(|l| lanes >> l & 1 == 1) {
            join(Rc::make_mut(&mut apart[lane]), released);
        }
        warp.apart = Some(apart.into());
    }
}
