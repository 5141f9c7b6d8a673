//! Which accesses are ordered: vector clocks over the warps of a block.
//!
//! Every warp counts its epochs; a barrier makes each of its warps know all epochs that any of them knew,
//! and begins a new one. For every granule of memory the last write and each warp's last read are kept
//! with their epochs. An access conflicts with an earlier one of another warp, one of them writing, unless
//! the accessing warp knows that epoch. (The idea is FastTrack's, Flanagan and Freund, PLDI 2009.)
//!
//! Statements that a group of several warps executes by its meaning alone do not say which thread touches
//! which element. They access memory as one more agent, the *collective*: its accesses are ordered with a
//! warp's only by a barrier of all warps concerned. Among themselves they are in step, as statements of
//! the tile level are, where barriers may still be left out.
//!
//! Lanes of one warp run in lockstep and never conflict.

use super::access::Who;

/// Most warps of a block.
const MAX_WARPS: usize = 32;
/// Warps and the collective.
pub(crate) const MAX_AGENTS: usize = MAX_WARPS + 1;

/// The last epoch of each agent that somebody comes after.
#[derive(Copy, Clone)]
pub(crate) struct Known([u32; MAX_AGENTS]);

impl Default for Known {
    fn default() -> Self {
        Known([0; MAX_AGENTS])
    }
}

impl Known {
    /// Adds what another knows.
    pub(crate) fn join(&mut self, other: &Known) {
        self.add(&other.0);
    }

    fn add(&mut self, other: &[u32; MAX_AGENTS]) {
        for (sum, one) in self.0.iter_mut().zip(other) {
            *sum = (*sum).max(*one);
        }
    }
}

/// What each warp knows.
pub(crate) struct Clocks {
    n_warps: usize,
    /// `known[w][a]`: the last epoch of agent `a` that warp `w` comes after; `known[w][w]` is its own.
    known: Vec<[u32; MAX_AGENTS]>,
    /// The collective's epoch and the warps that took part in it.
    collective: u32,
    members: u32,
}

impl Clocks {
    /// Nobody knows anything.
    pub(crate) fn new(n_warps: usize) -> Self {
        let n_warps = n_warps.min(MAX_WARPS);
        let known = (0..n_warps)
            .map(|w| {
                let mut row = [0; MAX_AGENTS];
                row[w] = 1;
                row
            })
            .collect();
        Clocks { n_warps, known, collective: 1, members: 0 }
    }

    /// A warp's own epoch.
    pub(crate) fn epoch(&self, warp: usize) -> u32 {
        self.known[warp][warp]
    }

    /// A thread of a warp, about to access memory.
    pub(crate) fn warp(&self, warp: usize, site: u32) -> Who {
        Who {
            agent: warp as u16,
            thread: (warp * 32) as u16,
            site,
            epoch: self.epoch(warp),
            seen: self.known[warp],
        }
    }

    /// A group of threads acting together. Of one warp it is that warp.
    pub(crate) fn group(&mut self, group: &[u16], site: u32) -> Who {
        let first = group.first().map_or(0, |t| usize::from(*t) / 32);
        if group.iter().all(|t| usize::from(*t) / 32 == first) {
            return self.warp(first, site);
        }
        let mut seen = [u32::MAX; MAX_AGENTS];
        for t in group {
            let warp = usize::from(*t) / 32;
            self.members |= 1 << warp;
            for (all, one) in seen.iter_mut().zip(&self.known[warp]) {
                *all = (*all).min(*one);
            }
        }
        seen[self.n_warps] = u32::MAX;
        let agent = self.n_warps as u16;
        Who { agent, thread: u16::MAX, site, epoch: self.collective, seen }
    }

    /// Hands on what a warp knows, and begins a new epoch of it: what it does later is not handed on.
    pub(crate) fn release(&mut self, warp: usize, to: &mut Known) {
        to.add(&self.known[warp]);
        self.known[warp][warp] += 1;
    }

    /// Lets a warp come after what was handed on.
    pub(crate) fn acquire(&mut self, warp: usize, from: &Known) {
        for (sum, one) in self.known[warp].iter_mut().zip(&from.0) {
            *sum = (*sum).max(*one);
        }
    }

    /// A barrier of these warps, one bit each.
    pub(crate) fn barrier(&mut self, warps: u32) {
        let mut all = [0; MAX_AGENTS];
        let within = |w: &usize| warps >> w & 1 == 1;
        for w in (0..self.n_warps).filter(within) {
            for (sum, one) in all.iter_mut().zip(&self.known[w]) {
                *sum = (*sum).max(*one);
            }
        }
        if self.members & !warps == 0 {
            all[self.n_warps] = self.collective;
            self.collective += 1;
            self.members = 0;
        }
        for w in (0..self.n_warps).filter(within) {
            self.known[w] = all;
            self.known[w][w] += 1;
        }
    }
}

/// An earlier access that a new one conflicts with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    /// Warp, or the number of warps for the collective.
    pub agent: u16,
    /// Its statement.
    pub site: u32,
    /// Whether it wrote.
    pub wrote: bool,
}

/// The last write of a granule.
#[derive(Copy, Clone, Default)]
pub(crate) struct LastWrite {
    epoch: u32,
    /// The statement.
    pub site: u32,
    agent: u16,
    /// The thread; `u16::MAX` for the collective.
    pub thread: u16,
}

/// The accesses of some granules of memory.
pub(crate) struct Shadow {
    agents: usize,
    writes: Vec<LastWrite>,
    granules: usize,
    /// `granule * agents + agent`: epoch and statement of the last read. Empty until there is one: what is
    /// only written needs none of it.
    reads: Vec<(u32, u32)>,
}

impl Shadow {
    /// Nothing has been accessed.
    pub(crate) fn new(granules: usize, agents: usize) -> Self {
        Shadow { agents, writes: vec![LastWrite::default(); granules], granules, reads: Vec::new() }
    }

    /// Notes a read, or says what it conflicts with.
    #[inline]
    pub(crate) fn read(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        let last = &self.writes[granule];
        if last.epoch > who.seen[usize::from(last.agent)] {
            return Err(Clash { agent: last.agent, site: last.site, wrote: true });
        }
        if self.reads.is_empty() {
            self.reads = vec![(0, 0); self.granules * self.agents];
        }
        self.reads[granule * self.agents + usize::from(who.agent)] = (who.epoch, who.site);
        Ok(())
    }

    /// Notes a write by a thread, or says what it conflicts with.
    #[inline]
    pub(crate) fn write(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        let last = &self.writes[granule];
        if last.epoch > who.seen[usize::from(last.agent)] {
            return Err(Clash { agent: last.agent, site: last.site, wrote: true });
        }
        let reads = self.reads_of(granule);
        for (agent, (epoch, site)) in reads.iter().enumerate() {
            if *epoch > who.seen[agent] {
                return Err(Clash { agent: agent as u16, site: *site, wrote: false });
            }
        }
        self.note_write(granule, who.agent, who.thread, who.site, who.epoch);
        Ok(())
    }

    fn reads_of(&self, granule: usize) -> &[(u32, u32)] {
        self.reads.get(granule * self.agents..(granule + 1) * self.agents).unwrap_or(&[])
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.len() * size_of::<LastWrite>() + self.reads.len() * size_of::<(u32, u32)>()
    }

    /// Notes a write that has been checked.
    pub(crate) fn note_write(
        &mut self,
        granule: usize,
        agent: u16,
        thread: u16,
        site: u32,
        epoch: u32,
    ) {
        self.writes[granule] = LastWrite { epoch, site, agent, thread };
    }

    /// The last write of a granule; none if there was none.
    pub(crate) fn last_write(&self, granule: usize) -> Option<LastWrite> {
        self.writes.get(granule).copied().filter(|w| w.epoch > 0)
    }

    /// A read of the granule, if any: its statement.
    pub(crate) fn any_read(&self, granule: usize) -> Option<u32> {
        self.reads_of(granule).iter().find(|(epoch, _)| *epoch > 0).map(|(_, site)| *site)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn barriers_order_accesses() {
        let mut clocks = Clocks::new(3);
        let mut shadow = Shadow::new(1, 4);
        shadow.write(0, &clocks.warp(0, 7)).unwrap();
        shadow.read(0, &clocks.warp(0, 8)).unwrap();
        assert_eq!(
            shadow.read(0, &clocks.warp(1, 9)),
            Err(Clash { agent: 0, site: 7, wrote: true })
        );
        clocks.barrier(0b011);
        shadow.read(0, &clocks.warp(1, 9)).unwrap();
        assert!(shadow.read(0, &clocks.warp(2, 9)).is_err(), "warp 2 was not at the barrier");
        // A write after a read, without a barrier between.
        assert_eq!(
            shadow.write(0, &clocks.warp(0, 5)),
            Err(Clash { agent: 1, site: 9, wrote: false })
        );
        clocks.barrier(0b111);
        shadow.write(0, &clocks.warp(2, 5)).unwrap();
    }

    #[test]
    fn what_one_barrier_taught_the_next_passes_on() {
        let mut clocks = Clocks::new(3);
        let mut shadow = Shadow::new(1, 4);
        shadow.write(0, &clocks.warp(0, 1)).unwrap();
        clocks.barrier(0b011);
        clocks.barrier(0b110);
        shadow.read(0, &clocks.warp(2, 2)).unwrap();
    }

    #[test]
    fn what_is_handed_on_orders_accesses() {
        let mut clocks = Clocks::new(2);
        let mut shadow = Shadow::new(2, 3);
        let mut handed = Known::default();
        shadow.write(0, &clocks.warp(0, 1)).unwrap();
        clocks.release(0, &mut handed);
        shadow.write(1, &clocks.warp(0, 2)).unwrap();
        assert!(shadow.read(0, &clocks.warp(1, 3)).is_err());
        clocks.acquire(1, &handed);
        shadow.read(0, &clocks.warp(1, 3)).unwrap();
        assert!(shadow.read(1, &clocks.warp(1, 3)).is_err(), "written after the arrival");
    }

    #[test]
    fn a_collective_is_nobodys_own() {
        let mut clocks = Clocks::new(2);
        let mut shadow = Shadow::new(1, 3);
        let all: Vec<u16> = (0..64).collect();
        shadow.write(0, &clocks.group(&all, 1)).unwrap();
        assert!(shadow.read(0, &clocks.warp(0, 2)).is_err());
        assert!(shadow.read(0, &clocks.group(&all, 2)).is_ok(), "its own parts are in step");
        clocks.barrier(0b11);
        shadow.read(0, &clocks.warp(0, 2)).unwrap();
    }
}
