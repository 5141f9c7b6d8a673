//! Barrier objects: who arrives, who waits.

use super::*;

/// By what the threads at a statement name mbarriers.
pub(super) struct Spots {
    view: usize,
    /// The block of the cluster, where it may be another.
    rank: Option<Value>,
    /// Where the view begins.
    base: Value,
}

impl<'p, 'a> Machine<'p, 'a> {
    /// The mbarrier at an element of a thread's view, which is used.
    pub(super) fn mbarrier(
        &mut self,
        rank: usize,
        (view, element): (usize, usize),
        base: i64,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<usize> {
        let place = self.mbarrier_place(view, element, base, site)?;
        let who = self.who_of(env, t);
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
        let v = &self.plan.views[view];
        let m = &self.mbarriers[found];
        let (_, waited) = self.cluster.phases(who.thread);
        if matches!(m.told, Some(Some(phase)) if phase <= waited) {
            if m.made_by != who.thread {
                let waited_at = self.cluster.waited_at(who.thread);
                let steps = m.published_at.into_iter().chain([m.told_at, waited_at]).collect();
                let way = Way { steps, ..Way::default() };
                let (made, used) = ((m.made_at, Does::Write), (site, Does::Read));
                let agents = (AgentKind::Thread, AgentKind::Thread);
                let pair = (made, used, (m.buffer, v.buffer.0), agents);
                self.pairs.own(pair, who.thread, Ok(way), &self.at);
            }
            return Ok(found);
        }
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

    /// The offset and the byte of an mbarrier, where its view begins at `base`.
    fn mbarrier_place(
        &mut self,
        view: usize,
        element: usize,
        base: i64,
        site: u32,
    ) -> Goes<(i64, i64)> {
        let v = &self.plan.views[view];
        if base == NOTHING {
            return self.lost(site, "it is not known which mbarrier is used");
        }
        let place = base.saturating_add(v.places.get(element).copied().unwrap_or(0));
        let Space::Shared(b) = v.space else {
            return self.lost(site, "it is not known where the mbarrier is");
        };
        let byte = self.plan.shared[b].at.saturating_add(place.saturating_mul(8));
        Ok((place, byte))
    }

    fn who_of(&self, env: &Env, t: usize) -> Who {
        let rank = usize::try_from(env.block - self.first_block).unwrap_or(0);
        self.who(rank, t, Proxy::Generic)
    }

    /// The numbers that threads give to a synchronization.
    pub(super) fn numbers(&mut self, sync: &Sync, env: &Env) -> Value {
        let Some(dim) = sync.number else { return Value::Same(1) };
        // Of a parity the last bit matters.
        let modulus = if sync.op == SyncOp::MbarrierWait { 2 } else { 1 };
        self.watch.still(self.exprs, dim, env, modulus);
        self.exprs.value(dim, env)
    }

    /// That of one thread.
    pub(super) fn number_of(&mut self, numbers: &Value, t: usize, site: u32) -> Goes<i64> {
        match numbers.of(t) {
            NOTHING => self.lost(site, "the number of a synchronization is not known"),
            n => Ok(n),
        }
    }

    /// By what threads name mbarriers.
    pub(super) fn spots(
        &mut self,
        strand: &Strand<'p>,
        tensor: TensorId,
        site: u32,
    ) -> Goes<Spots> {
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(site, &why),
        };
        let v = &self.plan.views[view];
        let rank = v.peer.map(|dim| self.fixed(dim, &strand.env));
        let base = self.fixed(v.offset, &strand.env);
        Ok(Spots { view, rank, base })
    }

    /// The mbarriers that a thread names.
    pub(super) fn named(
        &mut self,
        strand: &Strand<'p>,
        spots: &Spots,
        t: usize,
        site: u32,
        out: &mut Vec<usize>,
    ) -> Goes<()> {
        let rank = match &spots.rank {
            None => strand.rank,
            Some(ranks) => self.peer_of(ranks.of(t), site)?,
        };
        out.clear();
        for e in 0..self.plan.views[spots.view].places.len() {
            let base = spots.base.of(t);
            out.push(self.mbarrier(rank, (spots.view, e), base, &strand.env, t, site)?);
        }
        if rank != strand.rank {
            let thread = self.global_thread(strand.rank, t);
            let time = self.clocks.class(thread).time;
            self.remote.insert((rank, thread, site), time);
        }
        Ok(())
    }

    /// What a class does for the phase to come stands behind the last one: notes by what.
    pub(super) fn keep_phase(&mut self, m: usize, class: usize, site: u32) {
        let (clocks, b) = (&self.clocks, &self.mbarriers[m]);
        if b.last.phases() > 0 {
            self.pairs.keep((Keeps::LastPhase, site, b.buffer), || {
                let since = clocks.since_phase(b.agent, b.last.phases())?;
                clocks.path(since, clocks.classes[class].agent, false, false)
            });
        }
    }

    pub(super) fn settle(&mut self, m: usize, site: u32) -> Goes<()> {
        let settled = self.mbarriers[m].settle(&self.clocks);
        if !matches!(settled, Settled::Not) {
            self.wake = true;
            let b = &self.mbarriers[m];
            self.clocks.complete(b.arrivals, b.agent, b.parts());
        }
        match settled {
            Settled::Not => {}
            Settled::Complete(passed) => {
                let (clocks, b) = (&self.clocks, &self.mbarriers[m]);
                for p in passed {
                    self.pairs.keep((Keeps::NextPhase, p.site, b.buffer), || {
                        let since = clocks.since(clocks.class(p.thread()), p.time);
                        clocks.path(since, b.agent, true, false)
                    });
                }
            }
            Settled::Late(wait) => {
                self.late.insert(wait);
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
        let counts = self.numbers(sync, &strand.env);
        let count = self.number_of(&counts, t, site)?;
        let thread = self.global_thread(strand.rank, t);
        let base = self.fixed(self.plan.views[view].offset, &strand.env).of(t);
        let who = self.who_of(&strand.env, t);
        for e in 0..self.plan.views[view].places.len() {
            let place = self.mbarrier_place(view, e, base, site)?;
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
            let buffer = self.plan.views[view].buffer.0;
            self.mbarriers.push(Mbarrier::new(agents, count, thread, site, buffer));
            let class = self.clocks.class(thread);
            let record = Record {
                by: By::Lanes { lanes: 1 << (t % 32), time: class.time },
                warp: thread / 32,
                proxy: Proxy::Generic,
                site,
                serial: self.serial,
                buffer: self.plan.views[view].buffer.0,
            };
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
        let numbers = self.numbers(sync, &strand.env);
        let spots = self.spots(strand, tensor, site)?;
        let mut named = vec![];
        for t in mask.threads() {
            let number = match sync.op {
                SyncOp::MbarrierAsyncArrive => 1,
                _ => self.number_of(&numbers, t, site)?,
            };
            self.named(strand, &spots, t, site, &mut named)?;
            for m in &named {
                by.entry((*m, number)).or_default().push(self.global_thread(strand.rank, t));
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
                self.keep_phase(m, class, site);
                let b = &self.mbarriers[m];
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
