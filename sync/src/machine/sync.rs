//! Executes synchronization statements: commits, waits, fences, cluster barriers and changes of the
//! register budget here, statements about mbarriers with the functions of `mbarrier`. It also
//! checks that all threads that must execute such a statement together reach it.

use super::*;
use carbyne_atoms::SyncForm;
use carbyne_ir::limits::MAX_BLOCK_THREADS;

impl<'p, 'a> Machine<'p, 'a> {
    /// The absent threads among those that must execute a statement together. Threads beyond the
    /// block's size count as absent: 160 threads are one warp group and a part of another one.
    fn absent(&mut self, sync: &Sync, mask: &Mask, site: u32) -> Mask {
        let (p, atoms) = (self.p, self.atoms);
        let group = *self.together.entry(site).or_insert_with(|| {
            let form = SyncForm::of_stmt(p, sync);
            let number = sync.number.map(|d| {
                let (lo, hi) = p.arena.range(d);
                (lo, hi, p.arena.divisor(d))
            });
            atoms.sync(sync.op, number, form).map_or(1, |a| a.group as usize)
        });
        // The last warp may have fewer than 32 threads; a warp group has four warps.
        match group / 32 {
            0 => Mask::default(),
            1 => mask.absent(&Mask::first(self.n_threads), 1),
            warps => mask.absent(&Mask::first(MAX_BLOCK_THREADS as usize), warps.min(32)),
        }
    }

    pub(super) fn sync_stmt(
        &mut self,
        lockstep: &mut Lockstep<'p>,
        sync: &'p Sync,
        site: u32,
    ) -> Goes<Step> {
        self.serial = self.serial.wrapping_add(1);
        let mask = lockstep.mask();
        self.at.put(&lockstep.env, &mask);
        let absent = self.absent(sync, &mask, site);
        if !absent.is_empty() {
            if self.may_come(lockstep, &absent) {
                lockstep.status = Status::Meets;
                return Ok(Step::Waits);
            }
            let (n, op) = (absent.len(), sync.op);
            let what = format!(
                "`{op}` needs whole warps or warp groups, and {n} of their threads are absent"
            );
            let help = match absent.and(&Mask::first(self.n_threads)).is_empty() {
                true => {
                    "let whole warp groups execute the statement, or give the block more threads"
                }
                false => "move the statement out of the condition, so that whole warps reach it",
            };
            return self.stop(site, None, &what, help);
        }
        let act = Act { lockstep, mask, site };
        let waiting = self.waiting(&act, sync)?;
        if waiting.is_empty() {
            self.sync(&act, sync)?;
            lockstep.advance();
            return Ok(Step::On);
        }
        let ready = mask.without(&waiting);
        if !ready.is_empty()
            && let Some(mut other) = lockstep.part(ready.warps() & !waiting.warps())
        {
            self.sync(&Act { lockstep: &other, mask: other.mask(), site }, sync)?;
            other.advance();
            self.put(other);
        }
        lockstep.status = Status::Waits;
        Ok(Step::Waits)
    }

    /// The threads whose warps must wait here.
    fn waiting(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<Mask> {
        let Act { lockstep, mask, site } = *act;
        let mut waiting = Mask::default();
        match sync.op {
            SyncOp::MbarrierWait => {
                let Some(tensor) = sync.tensor else { return Ok(waiting) };
                let parities = self.numbers(sync, &lockstep.env);
                let spots = self.spots(act, tensor)?;
                let mut named = vec![];
                for t in mask.threads() {
                    if waiting.has(t) {
                        continue;
                    }
                    let parity = self.number_of(&parities, t, site)?;
                    self.named(act, &spots, t, &mut named)?;
                    if named.iter().any(|m| !self.mbarriers[*m].passes(parity)) {
                        waiting = waiting.or(&mask.of_warps(1 << (t / 32)));
                    }
                }
            }
            SyncOp::RegistersInc => {
                let numbers = self.numbers(sync, &lockstep.env);
                for warps in warp_groups(&mask) {
                    let first = warps.trailing_zeros() as usize * 32;
                    let wanted = self.number_of(&numbers, first, site)?;
                    if self.registers_wanted(lockstep.rank, warps, wanted)
                        > self.registers_left[lockstep.rank].0
                    {
                        waiting = waiting.or(&mask.of_warps(warps));
                    }
                }
            }
            SyncOp::ClusterWait => {
                for t in mask.threads() {
                    let thread = self.global_thread(lockstep.rank, t);
                    match self.cluster.passes(thread) {
                        Ok(true) => {}
                        Ok(false) => waiting = waiting.or(&mask.of_warps(1 << (t / 32))),
                        Err(()) => {
                            let what =
                                "a thread waits at the cluster barrier without having arrived";
                            let help = "write `cluster.arrive` before the wait";
                            return self.stop(site, None, what, help);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(waiting)
    }

    fn sync(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<()> {
        let site = act.site;
        let threads = self.threads_of(act.lockstep.rank, &act.mask);
        if matches!(sync.op, SyncOp::WgmmaFence | SyncOp::WgmmaCommit | SyncOp::WgmmaWait) {
            let classes = self.separate(&threads)?;
            self.clocks.converge(&classes);
        }
        let left = self.groups_left(act, sync)?;
        match sync.op {
            SyncOp::AsyncCommit | SyncOp::BulkCommit | SyncOp::WgmmaCommit => {
                let engine = engine(sync.op);
                for class in self.separate(&threads)? {
                    self.clocks.classes[class].queue_mut(engine).commit(site);
                }
            }
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait => {
                let engine = engine(sync.op);
                let reading = sync.op == SyncOp::BulkWaitRead;
                for class in self.separate(&threads)? {
                    let class = &mut self.clocks.classes[class];
                    let time = class.time;
                    class.queue_mut(engine).wait(left, time, reading, site);
                }
            }
            SyncOp::FenceAsync => {
                for class in self.separate(&threads)? {
                    self.clocks.fence(class, site);
                }
                self.publish(&threads, site);
            }
            SyncOp::FenceMbarrierInit => {
                self.publish(&threads, site);
                let own = |m: &&mut Mbarrier| threads.binary_search(&m.made_by).is_ok();
                let made = self.mbarriers.iter_mut().filter(own).filter(|m| m.told.is_none());
                made.for_each(|m| (m.told, m.published_at) = (Some(None), Some(site)));
            }
            SyncOp::WgmmaFence => {
                self.serial = self.serial.wrapping_add(1);
                for t in &threads {
                    self.fences[(*t / 32) as usize] = (self.serial, site);
                }
            }
            SyncOp::ClusterArrive | SyncOp::ClusterArriveRelaxed => {
                self.cluster_arrive(sync.op, &threads, site)?;
            }
            SyncOp::ClusterWait => {
                threads.iter().for_each(|t| self.cluster.pass(*t, site));
                let (message, agent) = (self.cluster.complete.clone(), self.cluster.agent);
                for class in self.separate(&threads)? {
                    self.clocks.acquire(class, &message, Some(agent), site);
                }
            }
            SyncOp::MbarrierInit => {
                for t in act.mask.threads() {
                    self.init(act, sync, t)?;
                }
            }
            SyncOp::MbarrierArrive | SyncOp::MbarrierExpect | SyncOp::MbarrierAsyncArrive => {
                self.arrive(act, sync)?;
            }
            SyncOp::MbarrierWait => self.pass(act, sync)?,
            SyncOp::RegistersInc | SyncOp::RegistersDec => self.change_registers(act, sync)?,
            SyncOp::GridWait | SyncOp::GridLaunch | SyncOp::Prefetch => {}
        }
        Ok(())
    }

    /// The number of groups that a wait leaves in flight.
    fn groups_left(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<u32> {
        let Act { lockstep, mask, site } = *act;
        if !matches!(
            sync.op,
            SyncOp::AsyncWait | SyncOp::BulkWait | SyncOp::BulkWaitRead | SyncOp::WgmmaWait
        ) {
            return Ok(0);
        }
        let t = mask.threads().next().unwrap_or(0);
        let all = self.numbers(sync, &lockstep.env);
        let n = self.number_of(&all, t, site)?;
        if mask.threads().any(|t| all.of(t) != n) {
            return self.lost(site, "threads wait for different numbers of groups");
        }
        if n < 0 {
            let what = "the number of groups that may stay in flight is negative";
            return self.stop(site, None, what, "write 0 to wait for all");
        }
        Ok(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// Threads arrive at the barrier of the cluster.
    fn cluster_arrive(&mut self, op: SyncOp, threads: &[u32], site: u32) -> Goes<()> {
        let all = self.n_blocks * self.n_threads;
        let (agent, arrivals) = (self.cluster.agent, self.cluster.arrivals);
        let relaxed = op == SyncOp::ClusterArriveRelaxed;
        for class in self.separate(threads)? {
            let to = (!relaxed).then_some(arrivals);
            let mut message = self.clocks.release(class, to, site);
            if relaxed {
                (message.seen, message.fenced) = Default::default();
            }
            self.cluster.arriving.join(&message);
        }
        self.cluster.arrives(site);
        for t in threads {
            let (phase, _) = self.cluster.phases(*t);
            let own = |m: &&mut Mbarrier| m.made_by == *t && m.told == Some(None);
            let fenced = self.mbarriers.iter_mut().filter(own);
            fenced.for_each(|m| (m.told, m.told_at) = (Some(Some(phase + 1)), site));
            match self.cluster.arrive(*t, all) {
                Ok(true) => {
                    self.wake = true;
                    let parts = self.cluster.parts();
                    self.clocks.complete(arrivals, agent, parts);
                }
                Ok(false) => {}
                Err(()) => {
                    let what = "a thread arrives twice at the cluster barrier";
                    let help = "write `cluster.wait` between the arrivals";
                    return self.stop(site, None, what, help);
                }
            }
        }
        Ok(())
    }

    /// Warp groups acquire registers or release them.
    fn change_registers(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<()> {
        let Act { lockstep, mask, site } = *act;
        let rank = lockstep.rank;
        let numbers = self.numbers(sync, &lockstep.env);
        for warps in warp_groups(&mask) {
            let first = warps.trailing_zeros() as usize * 32;
            let number = self.number_of(&numbers, first, site)?;
            let wanted = self.registers_wanted(rank, warps, number);
            let wrong = if sync.op == SyncOp::RegistersInc { wanted < 0 } else { wanted > 0 };
            if wrong {
                let what = "the statement changes the number of registers in the wrong direction";
                let help = "write `registers.dec` to release registers; to acquire more, write \
                            `registers.inc` here, and `registers.dec` in other warp groups";
                return self.stop(site, None, what, help);
            }
            let (left, held) = &mut self.registers_left[rank];
            *left -= wanted;
            for (w, held) in held.iter_mut().enumerate() {
                if warps >> w & 1 == 1 {
                    *held = number;
                }
            }
            self.wake = true;
        }
        Ok(())
    }

    /// The registers that warps need in addition, to have `number` per thread.
    pub(super) fn registers_wanted(&self, rank: usize, warps: u32, number: i64) -> i64 {
        let held = self.registers_left[rank].1.iter().enumerate();
        let of = held.filter(|(w, _)| warps >> w & 1 == 1);
        of.map(|(_, held)| number.saturating_sub(*held).saturating_mul(32)).sum()
    }

    pub(super) fn publish(&mut self, threads: &[u32], site: u32) {
        for m in &mut self.mbarriers {
            if m.unpublished.is_some_and(|by| threads.binary_search(&by).is_ok()) {
                (m.unpublished, m.published_at) = (None, Some(site));
            }
        }
    }
}

/// The warps of each warp group with any of these threads, one bit each.
pub(super) fn warp_groups(mask: &Mask) -> Vec<u32> {
    let warps = mask.warps();
    (0..8).map(|g| warps & 0xf << (g * 4)).filter(|w| *w != 0).collect()
}

pub(super) fn engine(op: SyncOp) -> Engine {
    match op {
        SyncOp::AsyncCommit | SyncOp::AsyncWait => Engine::Copies,
        SyncOp::WgmmaCommit | SyncOp::WgmmaWait => Engine::MatMuls,
        _ => Engine::Bulk,
    }
}
