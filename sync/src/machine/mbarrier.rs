//! Barrier objects: who arrives, who waits.

use super::*;

impl<'p, 'a> Machine<'p, 'a> {
    /// The mbarrier at an element of a thread's view, which is used.
    pub(super) fn mbarrier(
        &mut self,
        rank: usize,
        view: usize,
        element: usize,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<usize> {
        let (place, who) = self.mbarrier_place(rank, view, element, env, t, site)?;
        let found = self.mbarrier_at.get(&(rank, place.1)).copied();
        let Some(found) = found else {
            return self.stop(
                site,
                None,
                "an mbarrier is used before its `mbarrier.init`",
                "initialize it, then put a `barrier` before its first use",
            );
        };
        // It must come after the init; whom a fence and the cluster's barrier have told does.
        let (_, waited) = self.cluster.phases(who.thread);
        if matches!(self.mbarriers[found].told, Some(Some(phase)) if phase <= waited) {
            return Ok(found);
        }
        let v = &self.plan.views[view];
        let class = self.clocks.class(who.thread);
        let record = Record {
            by: By::Lanes { lanes: 1 << (t % 32), time: class.time },
            warp: who.thread / 32,
            proxy: Proxy::Generic,
            site,
            serial: self.serial,
            buffer: v.buffer.0,
        };
        let Space::Shared(b) = v.space else { return Ok(found) };
        if let Some(mut cells) = self.plan.shared_cells(b, place.0)
            && let Some(i) = cells.next()
            && let Some(region) = self.regions.of(i)
            && let Some(write) = self.cells[rank][region].write
        {
            let relation = write.relation(&self.clocks, &who);
            // The thread that made it is behind itself.
            if relation != Relation::Same {
                self.pairs.meet(
                    &self.clocks,
                    (write, Does::Write),
                    (record, Does::Read),
                    &who,
                    relation,
                    &self.at,
                );
            }
        }
        Ok(found)
    }

    /// The offset and the byte of a thread's mbarrier.
    pub(super) fn mbarrier_place(
        &mut self,
        rank: usize,
        view: usize,
        element: usize,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<((i64, i64), Who)> {
        let _ = rank;
        let v = &self.plan.views[view];
        let Some(base) = self.fixed_at(v.offset, env, t) else {
            return self.lost(site, "it is not known which mbarrier is used");
        };
        let place = base.saturating_add(v.places.get(element).copied().unwrap_or(0));
        let Space::Shared(b) = v.space else {
            return self.lost(site, "it is not known where the mbarrier is");
        };
        let byte = self.plan.shared[b].at.saturating_add(place.saturating_mul(8));
        let own = self.who_of(env, t);
        Ok(((place, byte), own))
    }

    pub(super) fn who_of(&self, env: &Env, t: usize) -> Who {
        let rank = usize::try_from(env.block - self.first_block).unwrap_or(0);
        self.who(rank, t, Proxy::Generic)
    }

    pub(super) fn number(&mut self, sync: &Sync, env: &Env, t: usize, site: u32) -> Goes<i64> {
        let Some(dim) = sync.number else { return Ok(1) };
        // Of a parity the last bit matters.
        let modulus = if sync.op == SyncOp::MbarrierWait { 2 } else { 1 };
        self.watch.still(self.exprs, dim, env, modulus);
        match self.exprs.at(dim, env, t) {
            Some(n) => Ok(n),
            None => self.lost(site, "the number of a synchronization is not known"),
        }
    }

    /// The mbarriers that a thread names.
    pub(super) fn named(
        &mut self,
        strand: &Strand<'p>,
        tensor: TensorId,
        t: usize,
        site: u32,
    ) -> Goes<Vec<usize>> {
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(site, &why),
        };
        let rank = match self.plan.views[view].peer {
            None => strand.rank,
            Some(dim) => self.peer(dim, &strand.env, t, site)?,
        };
        let n = self.plan.views[view].places.len();
        let mut out = Vec::with_capacity(n);
        for e in 0..n {
            out.push(self.mbarrier(rank, view, e, &strand.env, t, site)?);
        }
        if rank != strand.rank {
            let thread = self.global_thread(strand.rank, t);
            let time = self.clocks.class(thread).time;
            self.remote.insert((rank, thread, site), time);
        }
        Ok(out)
    }

    pub(super) fn settle(&mut self, m: usize, site: u32) -> Goes<()> {
        let settled = self.mbarriers[m].settle(&self.clocks);
        if !matches!(settled, Settled::Not) {
            self.wake = true;
            let b = &self.mbarriers[m];
            self.clocks.complete(b.arrivals, b.agent);
        }
        match settled {
            Settled::Not | Settled::Complete => {}
            Settled::Late(wait) => {
                self.fault(wait, Some(site), "the phase that is waited for may be over, and the next one too, before the thread comes to wait", "let those who complete the next phase come after this wait, or correct the parity", false);
            }
        }
        Ok(())
    }

    pub(super) fn init(
        &mut self,
        strand: &Strand<'p>,
        sync: &Sync,
        t: usize,
        site: u32,
    ) -> Goes<()> {
        let Some(tensor) = sync.tensor else { return Ok(()) };
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(site, &why),
        };
        let count = self.number(sync, &strand.env, t, site)?;
        let thread = self.global_thread(strand.rank, t);
        for e in 0..self.plan.views[view].places.len() {
            let (place, who) = self.mbarrier_place(strand.rank, view, e, &strand.env, t, site)?;
            if self.mbarrier_at.contains_key(&(strand.rank, place.1)) {
                return self.stop(
                    site,
                    None,
                    "an mbarrier is initialized twice",
                    "let one thread initialize it, once",
                );
            }
            if self.mbarriers.len() >= MAX_MBARRIERS {
                return Err(Stop::Limit(format!("it has more than {MAX_MBARRIERS} mbarriers")));
            }
            let agents = (self.clocks.agent(), self.clocks.agent());
            self.mbarrier_at.insert((strand.rank, place.1), self.mbarriers.len());
            self.mbarriers.push(Mbarrier::new(agents, count, thread, site));
            let class = self.clocks.class(thread);
            let record = Record {
                by: By::Lanes { lanes: 1 << (t % 32), time: class.time },
                warp: thread / 32,
                proxy: Proxy::Generic,
                site,
                serial: self.serial,
                buffer: self.plan.views[view].buffer.0,
            };
            let base = place.0 - self.plan.views[view].places.get(e).copied().unwrap_or(0);
            self.touch_part((strand.rank, view), &[e as u32], base, Does::Write, &who, record)?;
        }
        Ok(())
    }

    /// Threads by the mbarrier that they name, with the number that they give.
    pub(super) fn by_mbarrier(
        &mut self,
        strand: &Strand<'p>,
        sync: &Sync,
        mask: &Mask,
        site: u32,
    ) -> Goes<BTreeMap<(usize, i64), Vec<u32>>> {
        let mut by: BTreeMap<(usize, i64), Vec<u32>> = BTreeMap::new();
        let Some(tensor) = sync.tensor else { return Ok(by) };
        for t in mask.threads() {
            let number = match sync.op {
                SyncOp::MbarrierAsyncArrive => 1,
                _ => self.number(sync, &strand.env, t, site)?,
            };
            for m in self.named(strand, tensor, t, site)? {
                by.entry((m, number)).or_default().push(self.global_thread(strand.rank, t));
            }
        }
        Ok(by)
    }

    pub(super) fn arrive(
        &mut self,
        strand: &Strand<'p>,
        sync: &'p Sync,
        mask: &Mask,
        site: u32,
    ) -> Goes<()> {
        let later = sync.op == SyncOp::MbarrierAsyncArrive;
        for ((m, number), threads) in self.by_mbarrier(strand, sync, mask, site)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, later) {
                    return self.stop(site, Some(other), "nothing orders the arrival behind the last phase of its mbarrier, in which it may count", "let the thread wait first, for that phase or for those who waited for it; or correct the index, or the count");
                }
                let members = self.clocks.classes[class].members.clone();
                let time = self.clocks.classes[class].time;
                let (agent, phase, arrivals) = (b.agent, b.phase, b.arrivals);
                let each = if sync.op == SyncOp::MbarrierArrive { number } else { 1 };
                let n = each.saturating_mul(members.len() as i64);
                if n > b.pending || each < 1 {
                    return self.stop(
                        site,
                        None,
                        "an mbarrier gets more arrivals than its phase takes",
                        "compare the count of `mbarrier.init` with the threads that arrive",
                    );
                }
                if later {
                    self.clocks.land(class, agent, phase + 1, site);
                }
                let c = &self.clocks.classes[class];
                let converged = (c.warps.clone(), c.converged.clone());
                let message = self.clocks.release(class, Some(arrivals), site);
                let b = &mut self.mbarriers[m];
                b.arrived_at = Some(site);
                b.arriving.join(&message);
                b.current.list.push(Arrival { threads: members, time, later, site, converged });
                b.pending -= n;
                if later {
                    b.lands(site);
                }
                if sync.op == SyncOp::MbarrierExpect {
                    b.bytes = b.bytes.saturating_add(number.saturating_mul(n));
                    if number > 0 {
                        b.current.bytes = Some(site);
                    }
                }
                self.settle(m, site)?;
            }
        }
        Ok(())
    }

    pub(super) fn pass(
        &mut self,
        strand: &Strand<'p>,
        sync: &'p Sync,
        mask: &Mask,
        site: u32,
    ) -> Goes<()> {
        for ((m, _), threads) in self.by_mbarrier(strand, sync, mask, site)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.before.unordered(&self.clocks, class, b.agent, false) {
                    return self.stop(site, Some(other), "nothing orders the wait behind the phase before: it may have passed two phases ago, as the parity is the same", "let every thread wait for each phase in turn, or for those who have waited");
                }
                let (message, agent): (Message, _) = (b.complete.clone(), b.agent);
                self.clocks.acquire(class, &message, Some(agent), site);
                self.mbarriers[m].pass(&self.clocks, class, site);
            }
        }
        Ok(())
    }
}
