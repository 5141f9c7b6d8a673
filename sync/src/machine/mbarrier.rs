//! Executes mbarrier statements: initialization, arrivals, expected bytes and waits. A wait orders
//! the arrivals of its phase, and all that was ordered before them, before the waiting threads. An
//! arrival or a wait that might belong to another phase in another schedule is an error.

use super::*;

/// The mbarriers that the threads at a statement name.
pub(super) struct Spots {
    view: usize,
    /// The rank of the block, if it may be another block of the cluster.
    rank: Option<Value>,
    /// The offset of the view.
    base: Value,
}

impl<'p, 'a> Machine<'p, 'a> {
    /// The mbarrier at an element of a thread's view. The use must come after the init.
    pub(super) fn mbarrier(
        &mut self,
        act: &Act<'_, 'p>,
        target: Target,
        element: usize,
        thread: u32,
    ) -> Goes<usize> {
        let (place, byte) = self.mbarrier_place(act, target, element)?;
        let Some(found) = self.mbarrier_at.get(&(target.rank, byte)).copied() else {
            let what = "an mbarrier is used before its `mbarrier.init`";
            let help = "initialize the mbarrier, then put a `barrier` before its first use";
            return self.stop(act.site, None, what, help);
        };
        // A thread that knows of the init by a fence and the cluster barrier comes after the init.
        let v = &self.plan.views[target.view];
        let m = &self.mbarriers[found];
        let (_, waited) = self.cluster.phases(thread);
        if matches!(m.told, Some(Some(phase)) if phase <= waited) {
            if m.made_by != thread {
                let waited_at = self.cluster.waited_at(thread);
                let steps = m.published_at.into_iter().chain([m.told_at, waited_at]).collect();
                let way = Way { steps, ..Way::default() };
                let (made, used) = ((m.made_at, Does::Write), (act.site, Does::Read));
                let agents = (AgentKind::Thread, AgentKind::Thread);
                let pair = (made, used, (m.buffer, v.buffer.0), agents);
                self.pairs.own(pair, thread, Ok(way), &self.at);
            }
            return Ok(found);
        }
        let Space::Shared(b) = v.space else { return Ok(found) };
        if let Some(mut cells) = self.plan.shared_cells(b, place)
            && let Some(i) = cells.next()
            && let Some(region) = self.regions.of(i)
            && let Some(write) = self.cells[target.rank][region].write
        {
            let used = self.access_at_once(thread, Does::Read, (act.site, v.buffer));
            let relation = write.relation(&self.clocks, &used);
            // The thread that executed the init needs no order.
            if relation != Relation::Same {
                let made = (write, Does::Write);
                self.pairs.meet(&self.clocks, made, &used, relation, &self.at);
            }
        }
        Ok(found)
    }

    /// The offset and the byte address of an mbarrier.
    fn mbarrier_place(
        &mut self,
        act: &Act<'_, 'p>,
        Target { view, base, .. }: Target,
        element: usize,
    ) -> Goes<(i64, i64)> {
        let v = &self.plan.views[view];
        if base == NOTHING {
            return self.lost(act.site, "the index of the mbarrier is unknown");
        }
        let place = base.saturating_add(v.places.get(element).copied().unwrap_or(0));
        let Space::Shared(b) = v.space else {
            return self.lost(act.site, "the address of the mbarrier is unknown");
        };
        let byte = self.plan.shared[b].at.saturating_add(place.saturating_mul(8));
        Ok((place, byte))
    }

    /// The numbers that threads pass to a synchronization statement.
    pub(super) fn numbers(&mut self, sync: &Sync, env: &Env) -> Value {
        let Some(dim) = sync.number else { return Value::Same(1) };
        // Only the last bit of a parity matters.
        let modulus = if sync.op == SyncOp::MbarrierWait { 2 } else { 1 };
        self.watch.still(self.exprs, dim, env, modulus);
        self.exprs.value(dim, env)
    }

    /// The number of one thread.
    pub(super) fn number_of(&mut self, numbers: &Value, t: usize, site: u32) -> Goes<i64> {
        match numbers.of(t) {
            NOTHING => self.lost(site, "the number of the statement is unknown"),
            n => Ok(n),
        }
    }

    /// Evaluates the mbarriers that threads name.
    pub(super) fn spots(&mut self, act: &Act<'_, 'p>, tensor: TensorId) -> Goes<Spots> {
        let view = match self.plan.view(tensor) {
            Ok(view) => view,
            Err(why) => return self.lost(act.site, &why.to_string()),
        };
        let (v, env) = (&self.plan.views[view], &act.lockstep.env);
        let rank = v.peer.map(|dim| self.fixed(dim, env));
        let base = self.fixed(v.offset, env);
        Ok(Spots { view, rank, base })
    }

    /// The mbarriers that one thread names.
    pub(super) fn named(
        &mut self,
        act: &Act<'_, 'p>,
        spots: &Spots,
        t: usize,
        out: &mut Vec<usize>,
    ) -> Goes<()> {
        let thread = self.global_thread(act.lockstep.rank, t);
        let rank = match &spots.rank {
            None => act.lockstep.rank,
            Some(ranks) => self.peer(act, ranks.of(t), thread)?,
        };
        let target = Target { rank, view: spots.view, base: spots.base.of(t) };
        out.clear();
        for e in 0..self.plan.views[spots.view].places.len() {
            out.push(self.mbarrier(act, target, e, thread)?);
        }
        Ok(())
    }

    /// Records that the contribution of a class to the current phase comes after the previous
    /// phase.
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
                let what = "the thread may reach this wait only after its phase and the next \
                            phase are complete";
                let help = "order the arrivals of the next phase after this wait, or correct the \
                            parity";
                let label = "this arrival may complete the next phase before".to_owned();
                self.pairs.fault(Found {
                    site: wait,
                    label: String::new(),
                    other: Some((site, label)),
                    what: what.to_owned(),
                    help: help.to_owned(),
                    certain: false,
                });
            }
        }
        Ok(())
    }

    pub(super) fn init(&mut self, act: &Act<'_, 'p>, sync: &Sync, t: usize) -> Goes<()> {
        let (rank, site) = (act.lockstep.rank, act.site);
        let Some(tensor) = sync.tensor else { return Ok(()) };
        let spots = self.spots(act, tensor)?;
        let counts = self.numbers(sync, &act.lockstep.env);
        let count = self.number_of(&counts, t, site)?;
        let thread = self.global_thread(rank, t);
        let view = &self.plan.views[spots.view];
        let target = Target { rank, view: spots.view, base: spots.base.of(t) };
        for e in 0..view.places.len() {
            let (_, byte) = self.mbarrier_place(act, target, e)?;
            if self.mbarrier_at.contains_key(&(rank, byte)) {
                let what = "an mbarrier is initialized twice";
                let help = "execute the init once, by one thread: `Spec <<<#cta[0]>>>`, or by \
                            threads with `.elect()`";
                return self.stop(site, None, what, help);
            }
            if self.mbarriers.len() >= MAX_MBARRIERS {
                return Err(Stop::Limit(format!(
                    "the kernel has more than {MAX_MBARRIERS} mbarriers"
                )));
            }
            let agents = (self.clocks.agent(), self.clocks.agent());
            self.mbarrier_at.insert((rank, byte), self.mbarriers.len());
            self.mbarriers.push(Mbarrier::new(agents, count, thread, site, view.buffer.0));
            let new = self.access_at_once(thread, Does::Write, (site, view.buffer));
            self.touch_part(target, &[e as u32], &new)?;
        }
        Ok(())
    }

    /// Groups threads by the mbarrier that they name and the number that they pass.
    fn by_mbarrier(
        &mut self,
        act: &Act<'_, 'p>,
        sync: &Sync,
    ) -> Goes<BTreeMap<(usize, i64), Vec<u32>>> {
        let mut by: BTreeMap<(usize, i64), Vec<u32>> = BTreeMap::new();
        let Some(tensor) = sync.tensor else { return Ok(by) };
        let numbers = self.numbers(sync, &act.lockstep.env);
        let spots = self.spots(act, tensor)?;
        let mut named = vec![];
        for t in act.mask.threads() {
            let number = match sync.op {
                SyncOp::MbarrierAsyncArrive => 1,
                _ => self.number_of(&numbers, t, act.site)?,
            };
            self.named(act, &spots, t, &mut named)?;
            let thread = self.global_thread(act.lockstep.rank, t);
            named.iter().for_each(|m| by.entry((*m, number)).or_default().push(thread));
        }
        Ok(by)
    }

    pub(super) fn arrive(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<()> {
        let (site, later) = (act.site, sync.op == SyncOp::MbarrierAsyncArrive);
        if let Some(read) = self.plan.afters.get(&site) {
            self.leaf_operands(act, read)?;
        }
        for ((m, number), threads) in self.by_mbarrier(act, sync)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, later) {
                    let what = "nothing orders the arrival after the previous phase of its \
                        mbarrier, so that the arrival may count in that phase";
                    let help = "let the thread wait for that phase, or for a thread that has \
                        waited for it; or correct the index or the count";
                    let other = (other, "an arrival of the previous phase");
                    return self.stop(site, Some(other), what, help);
                }
                self.keep_phase(m, class, site);
                let b = &self.mbarriers[m];
                let (agent, phase, arrivals) = (b.agent, b.phase, b.arrivals);
                let c = &self.clocks.classes[class];
                let (threads, time) = (c.members.clone(), c.time);
                let converged = (c.warps.clone(), c.converged.clone());
                let each = if sync.op == SyncOp::MbarrierArrive { number } else { 1 };
                let n = each.saturating_mul(threads.len() as i64);
                if n > b.pending || each < 1 {
                    let what = "more threads arrive on an mbarrier than its phase expects";
                    let help = "make the count of `mbarrier.init` match the threads that arrive";
                    let (made, count) = b.made();
                    return self.stop(site, Some((made, &count)), what, help);
                }
                if later {
                    let copies = self.clocks.classes[class].queue_mut(Engine::Copies);
                    copies.land(agent, phase + 1, site);
                }
                let message = self.clocks.release(class, Some(arrivals), site);
                let b = &mut self.mbarriers[m];
                b.arrived_at = Some(site);
                b.arriving.join(&message);
                b.current.list.push(Arrival { threads, time, later, site, converged });
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

    pub(super) fn pass(&mut self, act: &Act<'_, 'p>, sync: &Sync) -> Goes<()> {
        let site = act.site;
        for ((m, _), threads) in self.by_mbarrier(act, sync)? {
            for class in self.separate(&threads)? {
                let b = &self.mbarriers[m];
                if let Some(other) = b.before.unordered(&self.clocks, class, b.agent, false) {
                    let what = "nothing orders the wait after the previous phase: it may return \
                        for the phase before that one, which has the same parity";
                    let help = "let every thread wait for each phase in turn, or for a thread \
                                that has waited";
                    let other = (other, "an arrival of that earlier phase");
                    return self.stop(site, Some(other), what, help);
                }
                let (message, agent): (Message, _) = (b.complete.clone(), b.agent);
                self.clocks.acquire(class, &message, Some(agent), site);
                self.mbarriers[m].pass(&self.clocks, class, site);
            }
        }
        Ok(())
    }
}
