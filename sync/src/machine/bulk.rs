//! Bulk copies.

use super::*;
use crate::clocks::Path;

impl<'p, 'a> Machine<'p, 'a> {
    pub(super) fn peer(
        &mut self,
        dim: carbyne_ir::expr::Dim,
        env: &Env,
        t: usize,
        site: u32,
    ) -> Goes<usize> {
        let rank = self.fixed(dim, env).of(t);
        self.peer_of(rank, site)
    }

    /// The block of a cluster of that rank.
    pub(super) fn peer_of(&mut self, rank: i64, site: u32) -> Goes<usize> {
        match usize::try_from(rank).ok().filter(|r| *r < self.n_blocks) {
            Some(rank) => Ok(rank),
            None => self.stop(
                site,
                None,
                "it names a block that is none of the cluster",
                "ranks count the blocks of a cluster from 0",
            ),
        }
    }

    pub(super) fn bulk(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        bulk: &'a Bulk,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let plan = self.plan;
        let (source, target) = (&plan.views[bulk.source], &plan.views[bulk.target]);
        let adds = leaf.accumulates.map(sum);
        for t in active.threads() {
            self.serial = self.serial.wrapping_add(1);
            self.pairs.put(self.serial, Rc::clone(&self.last_position));
            let thread = self.global_thread(strand.rank, t);
            self.separate(&[thread])?;
            let (from, to) = (
                self.place(source.offset, &strand.env, source.space).of(t),
                self.place(target.offset, &strand.env, target.space).of(t),
            );
            let is_lost = |at: i64, space: Space| at == NOTHING && space != Space::Free;
            if is_lost(from, source.space) || is_lost(to, target.space) {
                return self.lost(site, "a place is not known");
            }
            let ranks = self.ranks_of(strand, bulk, t, site)?;
            let phases = self.phases_of(strand, bulk, &ranks, t, site)?;
            let inside = self.inside(bulk, strand, t, site)?;
            let (kept_source, kept_target) =
                (self.kept(source, &strand.env), self.kept(target, &strand.env));
            let inexact = self.pairs.inexact;
            if kept_source.is_unsure(t) || kept_target.is_unsure(t) {
                self.pairs.unsure(site);
            }
            let class = self.clocks.class(thread);
            let batch = class.queue(Engine::Bulk).open();
            let lanes = 1u32 << (t % 32);
            let make = |by: By, view: &crate::plan::View, serial: u32| Record {
                by,
                warp: thread / 32,
                proxy: match view.space {
                    Space::Shared(_) => Proxy::Async,
                    _ => Proxy::Global,
                },
                site,
                serial,
                buffer: view.buffer.0,
            };
            // What is read until it is complete.
            let read = match phases.as_slice() {
                [] => By::Batch { lanes, engine: Engine::Bulk, batch, reading: true },
                [m, ..] => By::Phase {
                    agent: self.mbarriers[*m].agent,
                    phases: self.mbarriers[*m].phase + 1,
                },
            };
            let of_target = bulk.boxed.as_ref().is_some_and(|b| !b.of_source);
            let record = make(read, source, self.serial);
            let who = Who { thread, proxy: record.proxy, serial: self.serial };
            self.touch_box((strand.rank, bulk.source), from, Does::Read, (&who, record), |e| {
                (of_target || inside(e)) && kept_source.has(t, e)
            })?;
            for (i, rank) in ranks.iter().enumerate() {
                let by = match phases.get(i) {
                    Some(m) => By::Phase {
                        agent: self.mbarriers[*m].agent,
                        phases: self.mbarriers[*m].phase + 1,
                    },
                    None => By::Batch { lanes, engine: Engine::Bulk, batch, reading: false },
                };
                let record = make(by, target, self.serial);
                let who = Who { thread, proxy: record.proxy, serial: self.serial };
                let does = adds.unwrap_or(Does::Write);
                self.touch_box((*rank, bulk.target), to, does, (&who, record), |e| {
                    (!of_target || inside(e)) && kept_target.has(t, e)
                })?;
            }
            self.pairs.inexact = inexact;
            self.issue(thread, bulk, phases, site)?;
        }
        Ok(())
    }

    /// The blocks of the cluster to which a copy goes.
    fn ranks_of(
        &mut self,
        strand: &Strand<'p>,
        bulk: &'a Bulk,
        t: usize,
        site: u32,
    ) -> Goes<Vec<usize>> {
        Ok(match bulk.mask {
            None => vec![strand.rank],
            Some(dim) => {
                let mask = self.fixed_at(dim, &strand.env, t).unwrap_or(0);
                if mask < 1 || mask >> self.n_blocks.min(62) != 0 {
                    return self.stop(
                        site,
                        None,
                        "it goes to blocks that are none of the cluster",
                        "name blocks of the cluster, one bit each",
                    );
                }
                (0..self.n_blocks).filter(|r| mask >> r & 1 == 1).collect()
            }
        })
    }

    /// The barrier objects that count its bytes, one for each of these blocks.
    fn phases_of(
        &mut self,
        strand: &Strand<'p>,
        bulk: &'a Bulk,
        ranks: &[usize],
        t: usize,
        site: u32,
    ) -> Goes<Vec<usize>> {
        let mut phases = vec![];
        if let Some(bar) = bulk.bar {
            for rank in ranks {
                let base = self.fixed(self.plan.views[bar].offset, &strand.env);
                let m = self.mbarrier(*rank, (bar, 0), base.of(t), &strand.env, t, site)?;
                if self.mbarriers[m].unpublished.is_some() {
                    return self.stop(site, None, "the copy is given an mbarrier whose init it may not see yet", "write `fence.mbarrier_init` or `fence.async` behind the init, before the barrier that follows");
                }
                phases.push(m);
            }
            let class = self.separate(&[self.global_thread(strand.rank, t)])?[0];
            for m in &phases {
                let b = &self.mbarriers[*m];
                if let Some(other) = b.last.unordered(&self.clocks, class, b.agent, false) {
                    return self.stop(site, Some(other), "nothing orders the copy behind the last phase of its mbarrier, in which its bytes may count", "let the thread wait for that phase first, or correct the index");
                }
                self.keep_phase(*m, class, site);
                let b = &self.mbarriers[*m];
                if b.made_by == self.global_thread(strand.rank, t) {
                    self.pairs.keep((Keeps::Ready, site, b.buffer), || {
                        Some(Path {
                            steps: b.published_at.into_iter().collect(),
                            with: vec![b.made_at],
                        })
                    });
                }
            }
        }
        Ok(phases)
    }

    /// Elements of a view are accessed, those that are inside.
    fn touch_box(
        &mut self,
        of: (usize, usize),
        base: i64,
        does: Does,
        (who, record): (&Who, Record),
        inside: impl Fn(u32) -> bool,
    ) -> Goes<()> {
        let view = &self.plan.views[of.1];
        if view.space == Space::Free {
            return Ok(());
        }
        if view.first.iter().all(|e| inside(*e)) {
            return self.touch(of, &view.first, base, does, who, record);
        }
        let part: Vec<u32> = view.first.iter().copied().filter(|e| inside(*e)).collect();
        self.touch_part(of, &part, base, does, who, record)
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

    /// Which elements of a box lie in the tensor of its map.
    pub(super) fn inside(
        &mut self,
        bulk: &'a Bulk,
        strand: &Strand<'p>,
        t: usize,
        site: u32,
    ) -> Goes<impl Fn(u32) -> bool + use<'p, 'a>> {
        let plan = self.plan;
        let space = |b: &crate::plan::BoxPlace| {
            plan.views[if b.of_source { bulk.source } else { bulk.target }].space
        };
        // Which part of it lies in the tensor matters where that may be written.
        let place = match bulk.boxed.as_ref().filter(|b| space(b) != Space::Free) {
            None => None,
            Some(b) => {
                let space = space(b);
                let at: Option<Vec<i64>> =
                    b.at.iter()
                        .map(|d| {
                            Some(self.place(*d, &strand.env, space).of(t)).filter(|v| *v != NOTHING)
                        })
                        .collect();
                let Some(at) = at else {
                    return self.lost(site, "the place of a box is not known");
                };
                let view = if b.of_source { bulk.source } else { bulk.target };
                Some((at, &b.extents, &self.plan.views[view].modes))
            }
        };
        Ok(move |e: u32| {
            place
                .as_ref()
                .is_none_or(|(at, extents, modes)| is_inside(i64::from(e), modes, at, extents))
        })
    }
}

/// Whether an element of a box that begins at these coordinates lies in a tensor of these extents.
pub(crate) fn is_inside(e: i64, modes: &[i64], at: &[i64], extents: &[i64]) -> bool {
    let mut rest = e;
    modes.iter().zip(at).zip(extents).all(|((n, at), extent)| {
        let c = rest % (*n).max(1);
        rest /= (*n).max(1);
        (0..*extent).contains(&at.saturating_add(c))
    })
}
