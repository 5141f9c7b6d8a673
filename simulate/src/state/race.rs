//! Detects races. For every granule of memory, it stores the last write and each agent's last read,
//! with their times. A granule is the largest run of bytes that every access takes as a whole: in
//! global memory an element, in shared memory as many bytes as the narrowest scalar there has.
//!
//! An access conflicts with an earlier access of another thread, at least one of them a write,
//! unless the accessing thread comes after it ([`super::clock`]). The lanes of one warp are
//! ordinary threads: another lane may access a written element only after a synchronization of the
//! warp. Accesses of one execution of one instruction do not conflict. *Accumulations* by one
//! operation do not conflict either, because they are atomic: their order changes the result only
//! by rounding. Accumulations conflict with plain accesses and with accumulations by other
//! operations. (The idea is from FastTrack, Flanagan and Freund, PLDI 2009.)
//!
//! FastTrack forgets an access when a later one comes after it, because an access that conflicts
//! with the first also conflicts with the second. Lanes of one execution, however, do not conflict
//! with the second. Therefore the accesses that an execution replaces are stored until the next
//! execution, and its other lanes are compared with them.

use super::clash::Clash;
use super::clock::{MANY, Proxy, Who};
use super::reads::LastReads;
use carbyne_ir::ast::AccumulateOp;

/// The last write of a granule.
#[derive(Copy, Clone, Default, PartialEq)]
pub(crate) struct LastWrite {
    time: u32,
    serial: u32,
    /// The statement.
    pub site: u32,
    agent: u16,
    /// The thread of its block, the first of several; `u16::MAX` for the collective.
    pub thread: u16,
    proxy: Proxy,
    /// The lanes that wrote the granule in this execution of the statement.
    lanes: u32,
}

impl LastWrite {
    /// A write by an agent.
    pub(crate) fn by(who: &Who) -> Self {
        LastWrite {
            time: who.time,
            serial: who.serial,
            site: who.site,
            agent: who.agent,
            thread: who.thread,
            proxy: who.proxy,
            lanes: who.lanes(),
        }
    }

    /// This write as one of the copy engine, to global memory.
    pub(crate) fn of_copy(self) -> Self {
        LastWrite { proxy: Proxy::Global, ..self }
    }

    /// The write of a copy that arrives with an mbarrier, issued by a statement.
    pub(crate) fn landing(agent: u16, time: u32, site: u32, proxy: Proxy) -> Self {
        LastWrite { time, serial: 0, site, agent, thread: u16::MAX, proxy, lanes: u32::MAX }
    }

    /// A lane whose write the agent does not come after, preferably that of the first thread;
    /// [`MANY`] for the collective.
    fn lane(&self, who: &Who) -> u8 {
        if self.thread == u16::MAX {
            return MANY;
        }
        let first = (self.thread % 32) as u8;
        let unknown = |lane: &u8| {
            self.lanes >> lane & 1 == 1 && !who.knows_all(self.agent, self.time, 1 << lane)
        };
        Some(first).into_iter().chain(0..32).find(unknown).unwrap_or(first)
    }

    /// Whether the write belongs to the agent's present execution of a statement.
    #[inline]
    fn is_together(&self, who: &Who) -> bool {
        self.agent == who.agent && self.serial == who.serial
    }

    /// The conflict of an access with this write, if any.
    #[inline]
    fn clash(&self, who: &Who) -> Result<(), Clash> {
        let known = who.knows_all(self.agent, self.time, self.lanes);
        if known && (who.proxy == self.proxy || who.proxy == Proxy::Generic || self.is_fenced(who))
        {
            return Ok(());
        }
        let LastWrite { agent, site, serial, .. } = *self;
        Err(Clash { agent, lane: self.lane(who), site, serial, wrote: true, unfenced: known })
    }

    /// Whether a proxy fence is between the write and an agent.
    fn is_fenced(&self, who: &Who) -> bool {
        who.proxy != Proxy::Global && who.is_fenced_from_all(self.agent, self.time, self.lanes)
    }
}

/// The last accesses to each of some granules of memory.
pub(crate) struct History {
    agents: usize,
    writes: Vec<LastWrite>,
    reads: LastReads,
    /// For each operation, each agent's last accumulations.
    sums: Vec<(AccumulateOp, LastReads)>,
    /// For each granule, the execution that overwrote it last and the overwritten write, if some
    /// lanes of its warp may not come after that write; empty until the first such write.
    overwritten: Vec<(u32, LastWrite)>,
}

impl History {
    /// No accesses.
    pub(crate) fn new(granules: usize, agents: usize) -> Self {
        let writes = vec![LastWrite::default(); granules];
        let (reads, sums) = (LastReads::new(agents), Vec::new());
        History { agents, writes, reads, sums, overwritten: Vec::new() }
    }

    #[inline]
    fn after_write(&self, granule: usize, who: &Who) -> Result<(), Clash> {
        let last = &self.writes[granule];
        if last.time == 0 {
            return Ok(());
        }
        if last.is_together(who) {
            let before = self.overwritten.get(granule).filter(|(by, _)| *by == who.serial);
            return before.map_or(Ok(()), |(_, last)| last.clash(who));
        }
        last.clash(who)
    }

    /// Checks that an agent comes after all accumulations into a granule, except for those by `op`.
    #[inline]
    fn after_sums(
        &mut self,
        granule: usize,
        who: &Who,
        except: Option<AccumulateOp>,
    ) -> Result<(), Clash> {
        let mut others = self.sums.iter_mut().filter(|(op, _)| Some(*op) != except);
        others.try_for_each(|(_, sums)| sums.after(granule, who, true))
    }

    /// Checks a read for conflicts.
    #[inline]
    pub(crate) fn before_read(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.after_sums(granule, who, None)
    }

    /// Checks and records a read.
    #[inline]
    pub(crate) fn read(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.before_read(granule, who)?;
        self.note_reads(&[granule as u32], std::slice::from_ref(who));
        Ok(())
    }

    /// Whether no agent has accumulated, and all readers come after the last write of a granule.
    /// `known` is a write that all readers come after.
    #[inline]
    pub(crate) fn is_readable(&self, granule: usize, whos: &[Who], known: &mut LastWrite) -> bool {
        let last = &self.writes[granule];
        if last == known && self.sums.is_empty() {
            return true;
        }
        let after = |who: &Who| !last.is_together(who) && last.clash(who).is_ok();
        let is_readable = self.sums.is_empty() && (last.time == 0 || whos.iter().all(after));
        *known = *last;
        is_readable
    }

    /// Whether a write of a granule comes after all previous accesses to it; `known` as in
    /// [`History::is_readable`].
    #[inline]
    pub(crate) fn is_writable(&mut self, granule: usize, who: &Who, known: &mut LastWrite) -> bool {
        self.is_readable(granule, std::slice::from_ref(who), known)
            && self.reads.after(granule, who, false).is_ok()
    }

    /// Records a write of a granule without conflicts that is the first of its execution.
    #[inline]
    pub(crate) fn note_only_write(&mut self, granule: usize, who: &Who) {
        let last = self.writes[granule];
        self.overwrite(granule, &last, who);
        self.writes[granule] = LastWrite::by(who);
    }

    /// Records reads of several granules by several agents, without conflicts.
    #[inline]
    pub(crate) fn note_reads(&mut self, granules: &[u32], whos: &[Who]) {
        self.reads.note(granules, self.writes.len(), whos);
    }

    /// Checks and records an accumulation.
    pub(crate) fn accumulate(
        &mut self,
        granule: usize,
        op: AccumulateOp,
        who: &Who,
    ) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.reads.after(granule, who, false)?;
        self.after_sums(granule, who, Some(op))?;
        let i = self.sums.iter().position(|(other, _)| *other == op).unwrap_or_else(|| {
            self.sums.push((op, LastReads::new(self.agents)));
            self.sums.len() - 1
        });
        self.sums[i].1.note(&[granule as u32], self.writes.len(), std::slice::from_ref(who));
        Ok(())
    }

    /// Records the end of reads that began earlier. `of_warp`: all lanes of the warp have waited
    /// for them.
    pub(crate) fn end_reads(&mut self, granules: &[u32], who: &Who, of_warp: bool) {
        self.reads.note_end(granules, who, of_warp);
    }

    /// Records the end of accumulations by an operation that began earlier.
    pub(crate) fn note_sum(&mut self, granule: usize, op: AccumulateOp, who: &Who) {
        let of_op = self.sums.iter_mut().filter(|(other, _)| *other == op);
        of_op.for_each(|(_, sums)| sums.note_end(&[granule as u32], who, false));
    }

    /// Checks and records a write by a thread.
    #[inline]
    pub(crate) fn write(&mut self, granule: usize, who: &Who) -> Result<(), Clash> {
        self.after_write(granule, who)?;
        self.reads.after(granule, who, false)?;
        self.after_sums(granule, who, None)?;
        let last = self.writes[granule];
        let mut write = LastWrite::by(who);
        if last.time > 0 && last.is_together(who) {
            write = LastWrite { lanes: last.lanes | write.lanes, thread: last.thread, ..write };
        } else {
            self.overwrite(granule, &last, who);
        }
        self.writes[granule] = write;
        Ok(())
    }

    /// Stores an overwritten write if other lanes of the warp may not come after it.
    #[inline]
    fn overwrite(&mut self, granule: usize, last: &LastWrite, who: &Who) {
        let near = who.proxy == last.proxy || who.proxy == Proxy::Generic;
        if last.time == 0 || near && who.knows_as_warp(last.agent, last.time, last.lanes) {
            if let Some((by, _)) = self.overwritten.get_mut(granule) {
                *by = 0;
            }
            return;
        }
        if self.overwritten.is_empty() {
            self.overwritten = vec![Default::default(); self.writes.len()];
        }
        self.overwritten[granule] = (who.serial, *last);
    }

    /// The number of bytes of memory that this structure uses.
    pub(crate) fn bytes(&self) -> usize {
        self.writes.len() * size_of::<LastWrite>()
            + self.reads.bytes()
            + self.sums.iter().map(|(_, sums)| sums.bytes()).sum::<usize>()
    }

    /// Records a write that has been checked.
    pub(crate) fn note_write(&mut self, granule: usize, write: LastWrite) {
        self.writes[granule] = write;
    }

    /// The last write of a granule, if any.
    pub(crate) fn last_write(&self, granule: usize) -> Option<LastWrite> {
        self.writes.get(granule).copied().filter(|w| w.time > 0)
    }

    /// The other thread of the warp that wrote the granule last in the same execution of a
    /// statement.
    #[inline]
    pub(crate) fn neighbor(&self, granule: usize, who: &Who) -> Option<u16> {
        let last = &self.writes[granule];
        let together = (last.agent, last.serial) == (who.agent, who.serial);
        (last.time > 0 && together && last.thread != who.thread).then_some(last.thread)
    }

    /// The statement of an accumulation into the granule, if any.
    pub(crate) fn any_sum(&self, granule: usize) -> Option<u32> {
        self.sums.iter().find_map(|(_, sums)| sums.any(granule))
    }

    /// Whether this thread wrote the granule last, in the same execution of a statement.
    pub(crate) fn itself(&self, granule: usize, who: &Who) -> bool {
        let last = &self.writes[granule];
        last.time > 0
            && (last.agent, last.serial, last.thread) == (who.agent, who.serial, who.thread)
    }

    /// The statement of a read of the granule, if any.
    pub(crate) fn any_read(&self, granule: usize) -> Option<u32> {
        self.reads.any(granule)
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Clocks, Part};
    use super::*;

    /// Three warps and one granule; every access is a separate execution.
    struct World {
        clocks: Clocks,
        history: History,
        serial: u32,
    }

    fn world() -> World {
        let clocks = Clocks::new(1, 96, 0);
        let history = History::new(1, clocks.n_readers());
        World { clocks, history, serial: 0 }
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
            self.history.write(0, &who)
        }
        fn read(&mut self, thread: u16) -> Result<(), Clash> {
            let who = self.who(thread);
            self.history.read(0, &who)
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
            w.history.accumulate(0, op, &who)
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
    fn barriers_are_transitive() {
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
    fn lanes_release_and_acquire_separately() {
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
        // Accesses after the release are not known.
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
            w.history.read(0, &who)
        };
        w.write(3).unwrap();
        w.barrier(&both);
        assert!(read(&mut w).is_err_and(|c| c.unfenced));
        // A fence by a thread that does not come after the write has no effect.
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
    fn a_collective_is_a_separate_agent() {
        let mut w = world();
        let all: Vec<u16> = (0..96).collect();
        let who = w.clocks.group(0, &all, 1, 1);
        w.history.write(0, &who).unwrap();
        assert!(w.read(0).is_err());
        let again = w.clocks.group(0, &all, 2, 9);
        assert!(w.history.read(0, &again).is_ok(), "its own parts are in step");
        w.barrier(&[0, 1, 2]);
        w.read(0).unwrap();
    }

    /// A simple reference implementation: it stores every access of each lane, and compares a new
    /// access with all of them.
    #[derive(Default)]
    struct Referee {
        accesses: Vec<Did>,
    }

    #[derive(Copy, Clone, PartialEq, Eq, Debug)]
    enum Does {
        Read,
        Write,
        Sum(AccumulateOp),
    }

    struct Did {
        granule: usize,
        does: Does,
        agent: u16,
        lane: u8,
        time: u32,
        serial: u32,
    }

    impl Referee {
        /// Whether an access comes after all accesses that it conflicts with.
        fn allows(&self, granule: usize, does: Does, who: &Who) -> bool {
            let conflicts = |did: &&Did| {
                let reads = did.does == Does::Read && does == Does::Read;
                let sums = matches!(does, Does::Sum(_)) && did.does == does;
                let together = (did.agent, did.serial) == (who.agent, who.serial);
                did.granule == granule && !reads && !sums && !together
            };
            self.accesses
                .iter()
                .filter(conflicts)
                .all(|did| who.knows_all(did.agent, did.time, 1 << did.lane))
        }

        fn note(&mut self, granule: usize, does: Does, who: &Who) {
            let Who { agent, time, serial, .. } = *who;
            self.accesses.push(Did { granule, does, agent, lane: who.lane(), time, serial });
        }
    }

    /// Two warps run statements in which some lanes read some granules and then write or accumulate
    /// into some. Only accesses without a conflict are made.
    #[test]
    fn detection_equals_a_reference_with_all_accesses() {
        const N: usize = 3;
        const LANES: usize = 4;
        let mut x = 88_172_645_463_325_252u64;
        let mut below = |n: usize| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x % n as u64) as usize
        };
        let mut counts = [[0u32; 2]; 3];
        for _ in 0..3000 {
            let mut clocks = Clocks::new(1, 64, 0);
            let mut history = History::new(N, clocks.n_readers());
            let mut referee = Referee::default();
            for serial in 1..24u32 {
                let warps = [below(2), below(2)];
                match below(6) {
                    0 => {
                        let lanes = [u32::MAX, 0b11, 0b110, 0b1100, 0b1001][below(5)];
                        let part = |warp| Part { rank: 0, warp, lanes };
                        let both = below(3) == 0;
                        clocks.synchronize(&[part(0), part(1)][..if both { 2 } else { 1 }]);
                        continue;
                    }
                    1 => {
                        let part = |warp, lane| Part { rank: 0, warp, lanes: 1u32 << lane };
                        let message = clocks.release(part(warps[0], below(LANES)));
                        clocks.acquire(part(warps[1], below(LANES)), &message);
                        continue;
                    }
                    _ => {}
                }
                let op = [AccumulateOp::Add, AccumulateOp::Max][below(2)];
                let writes = [None, Some(Does::Write), Some(Does::Write), Some(Does::Sum(op))];
                let writes = writes[below(4)];
                let reads = writes.is_none() || below(2) == 0;
                let first = warps[0];
                let n = if below(4) == 0 { 2 } else { 1 };
                let whos: Vec<Who> = (0..n)
                    .flat_map(|i| (0..LANES).map(move |lane| (i, lane)))
                    .map(|(i, lane)| {
                        let mut who = clocks.warp(0, (first + i) % 2, serial, serial);
                        who.thread = ((first + i) % 2 * 32 + lane) as u16;
                        who.updates = reads && writes.is_some();
                        who
                    })
                    .collect();
                let steps = [reads.then_some(Does::Read), writes];
                for does in steps.into_iter().flatten() {
                    for who in &whos {
                        // One of three lanes takes part.
                        let granule = below(3 * N);
                        if granule >= N {
                            continue;
                        }
                        let allowed = referee.allows(granule, does, who);
                        let (found, kind) = match does {
                            Does::Read => (history.read(granule, who), 0),
                            Does::Write => (history.write(granule, who), 1),
                            Does::Sum(op) => (history.accumulate(granule, op, who), 2),
                        };
                        assert_eq!(found.is_ok(), allowed, "{does:?} {granule} {found:?}");
                        counts[kind][usize::from(allowed)] += 1;
                        if allowed {
                            referee.note(granule, does, who);
                        }
                    }
                }
            }
        }
        assert!(counts.iter().flatten().all(|n| *n > 3000), "{counts:?}");
    }
}
