//! Executes bulk copies: the thread that issues a copy, the accesses of the copy engine, the blocks
//! of the cluster that receive it, and the mbarrier or the bulk group by which it completes.

use super::*;
use crate::plan::View;
use std::sync::Arc;

impl<'p, 'a> Machine<'p, 'a> {
    /// The block of the cluster with this rank. Records the access to its shared memory.
    pub(super) fn peer(&mut self, act: &Act<'_, 'p>, rank: i64, thread: u32) -> Goes<usize> {
        let Some(rank) = usize::try_from(rank).ok().filter(|r| *r < self.n_blocks) else {
            let what = "no block of the cluster has this rank";
            let help = "use a rank from 0 to the cluster size minus 1";
            return self.stop(act.site, None, what, help);
        };
        if rank != act.lockstep.rank {
            let time = self.clocks.class(thread).time;
            self.remote.insert((rank, thread, act.site), time);
        }
        Ok(rank)
    }

    pub(super) fn bulk(
        &mut self,
        act: &Act<'_, 'p>,
        leaf: &'a LeafPlan,
        bulk: &'a Bulk,
    ) -> Goes<()> {
        let [source, target] = &leaf.operands[..] else { return Ok(()) };
        let plan = self.plan;
        let (from, to) = (&plan.views[source.view], &plan.views[target.view]);
        let Act { lockstep, site, .. } = *act;
        for t in act.mask.threads() {
            self.serial = self.serial.wrapping_add(1);
            self.pairs.put(self.serial, Arc::clone(&self.last_position));
            let thread = self.global_thread(lockstep.rank, t);
            self.separate(&[thread])?;
            let mut place = |view: &View| {
                let base = self.place(view.offset, &lockstep.env, view.space).of(t);
                Some(base).filter(|at| *at != NOTHING || view.space == Space::Free)
            };
            let (Some(from_base), Some(to_base)) = (place(from), place(to)) else {
                return self.lost(site, "the address of the copy is unknown");
            };
            let ranks = self.ranks_of(act, bulk, t)?;
            let phases = self.phases_of(act, bulk, &ranks, t)?;
            let (in_source, in_target) =
                (self.in_box(act, source, t)?, self.in_box(act, target, t)?);
            let (kept_source, kept_target) =
                (self.in_bounds(from, &lockstep.env), self.in_bounds(to, &lockstep.env));
            let inexact = self.pairs.inexact;
            if kept_source.is_unsure(t) || kept_target.is_unsure(t) {
                self.pairs.unsure(site);
            }
            let class = self.clocks.class(thread);
            let batch = class.queue(Engine::Bulk).open();
            // The copy is complete with the phase that counts it, or else with its group.
            let over = |machine: &Self, m: Option<&usize>, reading: bool| match m {
                Some(m) => {
                    let Mbarrier { agent, phase, .. } = machine.mbarriers[*m];
                    By::Phase { agent, phases: phase + 1 }
                }
                None => By::Batch { lanes: 1 << (t % 32), engine: Engine::Bulk, batch, reading },
            };
            let made = |machine: &Self, does: Does, by: By, view: &View| {
                let proxy = match view.space {
                    Space::Shared(_) => Proxy::Async,
                    _ => Proxy::Global,
                };
                machine.access(thread, (does, by), proxy, (site, view.buffer))
            };
            let read = made(self, Does::Read, over(self, phases.first(), true), from);
            let place = Target { rank: lockstep.rank, view: source.view, base: from_base };
            self.touch_box(place, &read, |e| in_source(e) && kept_source.has(t, e))?;
            for (i, rank) in ranks.iter().enumerate() {
                let by = over(self, phases.get(i), false);
                let write = made(self, leaf.does(target), by, to);
                let place = Target { rank: *rank, view: target.view, base: to_base };
                self.touch_box(place, &write, |e| in_target(e) && kept_target.has(t, e))?;
            }
            self.pairs.inexact = inexact;
            self.issue(thread, bulk, phases, site)?;
        }
        Ok(())
    }

    /// The blocks of the cluster that receive a copy.
    fn ranks_of(&mut self, act: &Act<'_, 'p>, bulk: &'a Bulk, t: usize) -> Goes<Vec<usize>> {
        let Some(dim) = bulk.mask else { return Ok(vec![act.lockstep.rank]) };
        let mask = self.fixed(dim, &act.lockstep.env).of(t);
        if mask < 1 || mask >> self.n_blocks.min(62) != 0 {
            let what = "the multicast mask names blocks outside of the cluster";
            let help = "set one bit for each target block of the cluster, and no other bit";
            return self.stop(act.site, None, what, help);
        }
        Ok((0..self.n_blocks).filter(|r| mask >> r & 1 == 1).collect())
    }

    /// The mbarriers that count the bytes, one for each of these blocks.
    fn phases_of(
        &mut self,
        act: &Act<'_, 'p>,
        bulk: &'a Bulk,
        ranks: &[usize],
        t: usize,
    ) -> Goes<Vec<usize>> {
        let (mut phases, site) = (vec![], act.site);
        let Some(view) = bulk.bar else { return Ok(phases) };
        let thread = self.global_thread(act.lockstep.rank, t);
        for rank in ranks {
            let base = self.fixed(self.plan.views[view].offset, &act.lockstep.env).of(t);
            let m = self.mbarrier(act, Target { rank: *rank, view, base }, 0, thread)?;
            if self.mbarriers[m].unpublished.is_some() {
                let what = "the copy may not see the init of its mbarrier yet";
                let help = "write `fence.mbarrier_init` or `fence.async` after the init and \
                            before the next barrier";
                return self.stop(site, None, what, help);
            }
            phases.push(m);
        }
        let class = self.separate(&[thread])?[0];
        for m in &phases {
            let b = &self.mbarriers[*m];
            if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, false) {
                let what = "nothing orders the copy after the previous phase of its mbarrier, so \
                    that its bytes may count in that phase";
                let help =
                    "let the thread wait for that phase before the copy, or correct the index";
                let other = (other, "an arrival of the previous phase");
                return self.stop(site, Some(other), what, help);
            }
            self.keep_phase(*m, class, site);
            let b = &self.mbarriers[*m];
            if b.made_by == thread {
                self.pairs.keep((Keeps::Ready, site, b.buffer), || {
                    let steps = b.published_at.into_iter().collect();
                    Some(Way { steps, with: vec![b.made_at], ..Way::default() })
                });
            }
        }
        Ok(phases)
    }

    /// Accesses the elements of a view for which `inside` holds.
    fn touch_box(
        &mut self,
        target: Target,
        new: &Access,
        inside: impl Fn(u32) -> bool,
    ) -> Goes<()> {
        let view = &self.plan.views[target.view];
        if view.space == Space::Free {
            return Ok(());
        }
        if view.first.iter().all(|e| inside(*e)) {
            return self.touch(target, &view.first, new);
        }
        let part: Vec<u32> = view.first.iter().copied().filter(|e| inside(*e)).collect();
        self.touch_part(target, &part, new)
    }

    /// Puts a copy in flight, as a part of a group of its thread or counted by phases.
    fn issue(&mut self, thread: u32, bulk: &Bulk, phases: Vec<usize>, site: u32) -> Goes<()> {
        let class = self.clocks.class_of[thread as usize] as usize;
        if phases.is_empty() {
            self.clocks.classes[class].queue_mut(Engine::Bulk).issue(site);
            return Ok(());
        }
        let mut issued = self.clocks.release(class, None, site);
        (issued.seen, issued.fenced) = Default::default();
        for m in phases {
            let b = &mut self.mbarriers[m];
            b.arriving.join(&issued);
            b.bytes = b.bytes.saturating_sub(bulk.bytes);
            b.current.bytes = Some(site);
            b.lands(site);
            self.settle(m, site)?;
        }
        Ok(())
    }

    /// The elements of an operand that lie in the tensor of its tensor map. This matters if the
    /// tensor may be written.
    fn in_box(
        &mut self,
        act: &Act<'_, 'p>,
        o: &'a OperandPlan,
        t: usize,
    ) -> Goes<impl Fn(u32) -> bool + use<'p, 'a>> {
        let view = &self.plan.views[o.view];
        let boxed = o.boxed.as_ref().filter(|_| view.space != Space::Free);
        let mut at = vec![];
        for dim in boxed.iter().flat_map(|b| &b.at) {
            match self.place(*dim, &act.lockstep.env, view.space).of(t) {
                NOTHING => return self.lost(act.site, "the coordinates of the box are unknown"),
                place => at.push(place),
            }
        }
        Ok(move |e: u32| boxed.is_none_or(|b| b.has(i64::from(e), &view.modes, &at)))
    }
}
