//! Bulk copies.

use super::*;
use crate::plan::View;
use std::sync::Arc;

impl<'p, 'a> Machine<'p, 'a> {
    /// The block of a cluster of that rank, whose shared memory a thread accesses.
    pub(super) fn peer(&mut self, act: &Act<'_, 'p>, rank: i64, thread: u32) -> Goes<usize> {
        let Some(rank) = usize::try_from(rank).ok().filter(|r| *r < self.n_blocks) else {
            let what = "it names a block that is none of the cluster";
            let help = "ranks count the blocks of a cluster from 0";
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
                return self.lost(site, "a place is not known");
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
            // When it is over: with a phase that counts it, or with the group.
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

    /// The blocks of the cluster to which a copy goes.
    fn ranks_of(&mut self, act: &Act<'_, 'p>, bulk: &'a Bulk, t: usize) -> Goes<Vec<usize>> {
        let Some(dim) = bulk.mask else { return Ok(vec![act.lockstep.rank]) };
        let mask = self.fixed(dim, &act.lockstep.env).of(t);
        if mask < 1 || mask >> self.n_blocks.min(62) != 0 {
            let what = "it goes to blocks that are none of the cluster";
            return self.stop(act.site, None, what, "name blocks of the cluster, one bit each");
        }
        Ok((0..self.n_blocks).filter(|r| mask >> r & 1 == 1).collect())
    }

    /// The barrier objects that count its bytes, one for each of these blocks.
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
                return self.stop(site, None, "the copy is given an mbarrier whose init it may not see yet", "write `fence.mbarrier_init` or `fence.async` behind the init, before the barrier that follows");
            }
            phases.push(m);
        }
        let class = self.separate(&[thread])?[0];
        for m in &phases {
            let b = &self.mbarriers[*m];
            if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, false) {
                return self.stop(site, Some(other), "nothing orders the copy behind the last phase of its mbarrier, in which its bytes may count", "let the thread wait for that phase first, or correct the index");
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

    /// Elements of a view are accessed, those that are inside.
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

    /// A copy is under way: of a group of its thread, or counted by phases.
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

    /// Which elements of an operand lie in the tensor of its map. That matters where the tensor may
    /// be written.
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
                NOTHING => return self.lost(act.site, "the place of a box is not known"),
                place => at.push(place),
            }
        }
        Ok(move |e: u32| boxed.is_none_or(|b| b.has(i64::from(e), &view.modes, &at)))
    }
}
