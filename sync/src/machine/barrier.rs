//! Executes barriers: of a block, of some of its threads (`barrier(#w)`), and of each thread's own
//! group (`barrier(#w[@w])`). Afterwards every access that was ordered before one of these threads,
//! and their own accesses, are ordered before all of them. The file also splits classes of threads,
//! so that some classes consist of exactly the threads of a statement.

use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    /// The classes that consist of exactly these threads; splits other classes.
    pub(super) fn separate(&mut self, threads: &[u32]) -> Goes<Vec<usize>> {
        let n = self.clocks.classes.len() as u64;
        self.spend(threads.len() as u64 + n * n / 16)?;
        let classes = self.clocks.separate(threads);
        for (from, to) in &self.clocks.splits[self.n_splits..] {
            self.mbarriers.iter_mut().for_each(|m| m.split(*from, *to));
            self.cluster.arriving.split(*from, *to);
            self.cluster.complete.split(*from, *to);
        }
        self.n_splits = self.clocks.splits.len();
        match self.clocks.classes.len() > MAX_CLASSES {
            true => Err(Stop::Limit(format!(
                "its threads form more than {MAX_CLASSES} classes that synchronize differently"
            ))),
            false => Ok(classes),
        }
    }

    pub(super) fn threads_of(&self, rank: usize, mask: &Mask) -> Vec<u32> {
        mask.threads().map(|t| self.global_thread(rank, t)).collect()
    }

    pub(super) fn barrier(&mut self, rank: usize, mask: &Mask, site: u32) {
        let threads = self.threads_of(rank, mask);
        if let Ok(classes) = self.separate(&threads) {
            self.clocks.synchronize(&classes, site);
        }
    }

    /// A barrier that names, for each thread, the group of the thread.
    pub(super) fn own_barrier(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        threads: ThreadsId,
        mask: &Mask,
        site: u32,
    ) -> Goes<Step> {
        let Some(groups) = self.p.threads[threads].own_groups() else {
            return self.lost(site, "the threads of the barrier are unknown");
        };
        let mut meeting = vec![];
        for group in groups {
            let mut named = Mask::default();
            group.iter().filter_map(|t| usize::try_from(*t).ok()).for_each(|t| named.insert(t));
            if !mask.and(&named).is_empty() {
                meeting.push(named);
            }
        }
        if meeting.iter().all(|named| mask.contains(named)) {
            meeting.iter().for_each(|named| self.barrier(lockstep.rank, named, site));
            lockstep.advance();
            return Ok(Step::On);
        }
        let Some(named) = meeting.iter().find(|named| !mask.contains(named)).copied() else {
            lockstep.advance();
            return Ok(Step::On);
        };
        // Threads of other groups reach the barrier separately.
        if meeting.len() > 1
            && let Some(other) = lockstep.part(lockstep.all().warps() & !named.warps())
        {
            self.put(other);
        }
        self.named_barrier(lockstep, named, site)
    }

    pub(super) fn named_barrier(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        named: Mask,
        site: u32,
    ) -> Goes<Step> {
        let mask = lockstep.mask();
        if mask.contains(&named) {
            self.barrier(lockstep.rank, &named, site);
            lockstep.advance();
            return Ok(Step::On);
        }
        // Warps that the barrier does not name continue.
        let others = lockstep.all().warps() & !named.warps();
        if let Some(mut other) = lockstep.part(others) {
            other.advance();
            self.put(other);
        }
        lockstep.status = Status::Barrier(named);
        let same = |s: &Lockstep<'_>| s.rank == lockstep.rank && s.status == Status::Barrier(named);
        let arrived = self
            .locksteps
            .iter()
            .filter(|s| same(s))
            .fold(lockstep.mask(), |all, s| all.or(&s.mask()));
        if !arrived.contains(&named) {
            return Ok(Step::Waits);
        }
        self.barrier(lockstep.rank, &named, site);
        let rank = lockstep.rank;
        let (mut done, rest): (Vec<Lockstep<'p>>, Vec<Lockstep<'p>>) =
            std::mem::take(&mut self.locksteps)
                .into_iter()
                .partition(|s| s.rank == rank && s.status == Status::Barrier(named));
        self.locksteps = rest;
        for s in &mut done {
            s.status = Status::Ready;
            s.advance();
        }
        done.into_iter().for_each(|s| self.put(s));
        lockstep.status = Status::Ready;
        lockstep.advance();
        Ok(Step::On)
    }
}
