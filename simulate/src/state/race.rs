//! Which accesses are ordered: for every granule of memory the last write and each agent's last read, with
//! their times.
//!
//! An access conflicts with an earlier one of another thread, one of them writing, unless the accessing
//! thread comes after it ([`super::clock`]). The lanes of one warp are threads like others: what one
//! writes another may touch after a synchronization of the warp only. Accesses of one execution of one
//! instruction do not conflict, nor do *accumulations* by one operation, which are atomic: in whatever order
//! they come, the result is the same but for rounding. With plain accesses, and by different operations, they do. (The idea is FastTrack's, Flanagan and Freund, PLDI 2009.)

use super::clock::{MANY, Proxy, Who};
use super::reads::LastReads;
use carbyne_ir::ast::AccumulateOp;

/// An earlier access that a new one conflicts with.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Clash {
    /// Warp of the cluster, or a collective's number.
    pub agent: u16,
    /// Its lane; [`MANY`] for several, or the collective.
    pub lane: u8,
    /// Its statement.
    pub site: u32,
    /// Which execution of a statement; 0 where a copy landed with an mbarrier.
    pub serial: u32,
    /// Whether it wrote.
    pub wrote: bool,
    /// Whether the accesses are ordered, and only the fence between the proxies is missing.
    pub unfenced: bool,
}

/// The last write of a granule.
#[derive(Copy, Clone, Default)]
pub(crate) struct LastWrite {
    time: u32,
    serial: u32,
    /// The statement.
    pub site: u32,
    agent: u16,
    /// The thread of its block; `u16::MAX` for the collective.
    pub thread: u16,
    proxy: Proxy,
}

impl LastWrite {
    /// By whom a write was.
    pub(crate) fn by(who: &Who) -> Self {
        LastWrite {
            time: who.time,
            serial: who.serial,
            site: who.site,
            agent: who.agent,
            thread: who.thread,
            proxy: who.proxy,
        }
    }

    /// The same of the copy engine, to global memory.
    pub(crate) fn of_copy(self) -> Self {
        LastWrite { proxy: Proxy::Global, ..self }
    }

    /// A copy that lands with an mbarrier, issued by a statement.
    pub(crate) fn landing(agent: u16, time: u32, site: u32, proxy: Proxy) -> Self {
        LastWrite { time, serial: 0, site, agent, thread: u16::MAX, proxy }
    }

    fn lane(&self) -> u8 {
        if self.thread == u16::MAX { MANY } else { (self.thread % 32) as u8 }
    }
}

/// The accesses of some granules of memory.
pub(crate) struct Shadow {
    writes: Vec<LastWrite>,
    reads: LastReads,
    /// As `reads`, each agent's last accumulation.
    sums: LastReads,
    /// The operation of a granule's accumulations; empty until there is one.
    ops: Vec<Option<AccumulateOp>>,
}

impl Shadow {
    /// Nothing has been accessed.
    pub(crate) fn new(granules: usize, agents: usize) -> Self {
        let writes = vec![LastWrite::default(); granules];
        let none = || LastReads::new(agents);
        Shadow { writes, reads: none(), sums: none(), ops: Vec::new() }
    }

    #[inline]
    fn after_write(&self, granule: usize, who: &Who) -> Result<(), Clash> {
        let last = &self.writes[granule];
        let together = last.agent == who.agent && last.serial == who.serial;
        if last.time == 0 || together {
            return Ok(());
        }
        let unfenced = who.knows(last.agent, last.time, last.lane());
        if unfenced
            && (who.proxy == last.proxy
                || who.proxy == Proxy::Generic
                || who.is_fenced_from(last.agent, last.time, last.lane()))
        {
            return Ok(());
        }
        let LastWrite { agent, site, serial, .. } = *last;
        Err(Clash { agent, lane: last.lane(), site, serial, wrote: true, unfenced })
    }

    /// What a read conflicts with, if anything.
    #[inline]
    pub(crate) fn before_read(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.sums.after(granule, who, true)
    }

    /// Notes a read, or says what it conflicts with.
    #[inline]
    pub(crate) fn read(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.before_read(granule, who)?;
        self.note_reads(granule, std::slice::from_ref(who));
        Ok(())
    }

    /// Notes reads that conflict with nothing.
    #[inline]
    pub(crate) fn note_reads(&mut self, granule: usize, whos: &[Who]) {
        self.reads.note(granule, self.writes.len(), whos);
    }

    /// Notes an accumulation, or says what it conflicts with.
    pub(crate) fn accumulate(
        &mut self,
        granule: usize,
        op: AccumulateOp,
        who: &Who,
    ) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.reads.after(granule, who, false)?;
        if self.ops.is_empty() {
            self.ops = vec![None; self.writes.len()];
        }
        if self.ops[granule].is_some_and(|other| other != op) {
            self.sums.after(granule, who, true)?;
        }
        self.ops[granule] = Some(op);
        self.sums.note(granule, self.writes.len(), std::slice::from_ref(who));
        Ok(())
    }

    /// Notes that a read which began earlier ends now.
    /// `of_warp`: all lanes of the warp have waited for it.
    pub(crate) fn note_read(&mut self, granule: usize, who: &Who, of_warp: bool) {
        self.reads.note_end(granule, who, of_warp);
    }

    /// Notes that values put there by an operation that began earlier are there now.
    pub(crate) fn note_sum(&mut self, granule: usize, who: &Who) {
        self.sums.note_end(granule, who, false);
    }

    /// Notes a write by a thread, or says what it conflicts with.
    #[inline]
    pub(crate) fn write(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.reads.after(granule, who, false)?;
        self.sums.after(granule, who, true)?;
        self.writes[granule] = LastWrite::by(who);
        Ok(())
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.len() * size_of::<LastWrite>()
            + self.reads.bytes()
            + self.sums.bytes()
            + self.ops.len() * size_of::<Option<AccumulateOp>>()
    }

    /// Notes a write that has been checked.
    pub(crate) fn note_write(&mut self, granule: usize, write: LastWrite) {
        self.writes[granule] = write;
    }

    /// The last write of a granule; none if there was none.
    pub(crate) fn last_write(&self, granule: usize) -> Option<LastWrite> {
        self.writes.get(granule).copied().filter(|w| w.time > 0)
    }

    /// The other thread of the warp that last wrote the granule in the same execution of a statement.
    #[inline]
    pub(crate) fn neighbor(&self, granule: usize, who: &Who) -> Option<u16> {
        let last = &self.writes[granule];
        let together = (last.agent, last.serial) == (who.agent, who.serial);
        (last.time > 0 && together && last.thread != who.thread).then_some(last.thread)
    }

    /// An accumulation of the granule, if any: its statement.
    pub(crate) fn any_sum(&self, granule: usize) -> Option<u32> {
        self.sums.any(granule)
    }

    /// Whether the thread wrote the granule last, in the same execution of a statement.
    pub(crate) fn itself(&self, granule: usize, who: &Who) -> bool {
        let last = &self.writes[granule];
        last.time > 0
            && (last.agent, last.serial, last.thread) == (who.agent, who.serial, who.thread)
    }

    /// A read of the granule, if any: its statement.
    pub(crate) fn any_read(&self, granule: usize) -> Option<u32> {
        self.reads.any(granule)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Clocks, Part};
    use super::*;

    /// Three warps, one granule; every access is of an instruction of its own.
    struct World {
        clocks: Clocks,
        shadow: Shadow,
        serial: u32,
    }

    fn world() -> World {
        let clocks = Clocks::new(1, 96, 0);
        let shadow = Shadow::new(1, clocks.n_readers());
        World { clocks, shadow, serial: 0 }
    }

    impl World {
        fn who(&mut self, thread: u16) -> Who {
            self.serial += 1;
            let mut who = self.clocks.warp(0, usize::from(thread / 32), self.serial, self.serial);
            who.thread = thread;
            who
        }
        fn write(&mut self, thread: u16) -> Result<(), Clash> {
            let who = self.who(thread);
            self.shadow.write(0, &who)
        }
        fn read(&mut self, thread: u16) -> Result<(), Clash> {
            let who = self.who(thread);
            self.shadow.read(0, &who)
        }
        fn barrier(&mut self, warps: &[usize]) {
            let parts: Vec<Part> =
                warps.iter().map(|w| Part { rank: 0, warp: *w, lanes: u32::MAX }).collect();
            self.clocks.synchronize(&parts);
        }
    }

    #[test]
    fn barriers_order_accesses() {
        let mut w = world();
        w.write(0).unwrap();
        w.read(0).unwrap();
        assert_eq!(
            w.read(32),
            Err(Clash { agent: 0, lane: 0, site: 1, serial: 1, wrote: true, unfenced: false })
        );
        w.barrier(&[0, 1]);
        w.read(32).unwrap();
        assert!(w.read(64).is_err(), "warp 2 was not at the barrier");
        assert!(w.write(0).is_err_and(|c| !c.wrote), "a write after a read");
        w.barrier(&[0, 1, 2]);
        w.write(64).unwrap();
    }

    #[test]
    fn accumulations_conflict_with_other_accesses_only() {
        use AccumulateOp::{Add, Max};
        let mut w = world();
        let sum = |w: &mut World, op, thread| {
            let who = w.who(thread);
            w.shadow.accumulate(0, op, &who)
        };
        w.write(0).unwrap();
        assert!(sum(&mut w, Add, 32).is_err(), "nothing orders it with the write");
        w.barrier(&[0, 1, 2]);
        for thread in [0, 1, 32, 64] {
            sum(&mut w, Add, thread).unwrap();
        }
        assert!(sum(&mut w, Max, 0).is_err(), "sums and maxima do not commute");
        w.barrier(&[0, 1]);
        assert!(w.read(0).is_err_and(|c| c.agent == 2 && c.wrote), "warp 2 was not at the barrier");
        assert!(w.write(0).is_err());
        w.barrier(&[1, 2]);
        w.barrier(&[0, 1]);
        w.read(0).unwrap();
        assert!(sum(&mut w, Add, 32).is_err_and(|c| !c.wrote), "it was read meanwhile");
        w.barrier(&[0, 1]);
        sum(&mut w, Max, 32).unwrap();
    }

    #[test]
    fn what_one_barrier_taught_the_next_passes_on() {
        let mut w = world();
        w.write(0).unwrap();
        w.barrier(&[0, 1]);
        w.barrier(&[1, 2]);
        w.read(64).unwrap();
    }

    #[test]
    fn lanes_are_ordered_by_synchronizing_their_warp() {
        let mut w = world();
        w.write(3).unwrap();
        w.read(3).unwrap();
        assert!(w.read(4).is_err());
        w.barrier(&[0]);
        w.read(4).unwrap();
        w.read(5).unwrap();
        assert!(w.write(5).is_err_and(|c| c.lane == MANY), "lane 4 has read it too");
        w.barrier(&[0]);
        w.write(5).unwrap();
    }

    #[test]
    fn half_a_warp_learns_nothing_from_the_other_half() {
        let mut w = world();
        w.write(3).unwrap();
        w.clocks.synchronize(&[Part { rank: 0, warp: 0, lanes: 0xffff }]);
        w.read(4).unwrap();
        assert!(w.read(20).is_err());
        assert!(w.read(32).is_err());
    }

    #[test]
    fn who_releases_and_who_acquires_are_lanes() {
        let mut w = world();
        w.write(3).unwrap();
        let lane = |warp, l: u32| Part { rank: 0, warp, lanes: 1 << l };
        let nothing = w.clocks.release(lane(0, 4));
        w.clocks.acquire(lane(1, 0), &nothing);
        assert!(w.read(32).is_err(), "lane 4 knows nothing of lane 3");
        let message = w.clocks.release(lane(0, 3));
        w.clocks.acquire(lane(1, 0), &message);
        w.read(32).unwrap();
        assert!(w.read(33).is_err(), "lane 1 has not waited");
        w.barrier(&[1]);
        w.read(33).unwrap();
        // What comes after the release is not known.
        w.clocks.acquire(lane(0, 3), &message);
        let mut w = world();
        let message = w.clocks.release(lane(0, 3));
        w.write(3).unwrap();
        w.clocks.acquire(lane(1, 0), &message);
        assert!(w.read(32).is_err());
    }

    #[test]
    fn asynchronous_reads_come_after_a_fence() {
        let mut w = world();
        let both: [usize; 2] = [0, 1];
        let read = |w: &mut World| {
            let mut who = w.who(32);
            who.proxy = Proxy::Async;
            w.shadow.read(0, &who)
        };
        w.write(3).unwrap();
        w.barrier(&both);
        assert!(read(&mut w).is_err_and(|c| c.unfenced));
        // A fence by somebody who does not come after the write is of no use.
        w.clocks.fence(Part { rank: 0, warp: 2, lanes: u32::MAX });
        w.barrier(&[0, 1, 2]);
        assert!(read(&mut w).is_err_and(|c| c.unfenced));
        w.clocks.fence(Part { rank: 0, warp: 0, lanes: 1 << 3 });
        assert!(read(&mut w).is_err_and(|c| c.unfenced), "warp 1 does not come after the fence");
        w.barrier(&both);
        read(&mut w).unwrap();
        w.write(3).unwrap_err();
        w.barrier(&both);
        w.write(3).unwrap();
        w.barrier(&both);
        assert!(read(&mut w).is_err_and(|c| c.unfenced), "each write wants a fence of its own");
    }

    #[test]
    fn a_collective_is_nobodys_own() {
        let mut w = world();
        let all: Vec<u16> = (0..96).collect();
        let who = w.clocks.group(0, &all, 1, 1);
        w.shadow.write(0, &who).unwrap();
        assert!(w.read(0).is_err());
        let again = w.clocks.group(0, &all, 2, 9);
        assert!(w.shadow.read(0, &again).is_ok(), "its own parts are in step");
        w.barrier(&[0, 1, 2]);
        w.read(0).unwrap();
    }
}
