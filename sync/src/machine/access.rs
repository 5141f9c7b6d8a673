//! Records the accesses of leaves in the granules of memory that they touch, and compares them
//! there with earlier accesses. `memory` explains granules.

use super::*;
use std::sync::Arc;

const NO_ATOM: &str =
    "the spec names no atom, so that the thread that accesses an element is unknown";

impl<'p, 'a> Machine<'p, 'a> {
    /// An access by a thread at the current statement.
    pub(super) fn access(
        &self,
        thread: u32,
        (does, by): (Does, By),
        proxy: Proxy,
        (site, buffer): (u32, BufferId),
    ) -> Access {
        let (warp, serial, buffer) = (thread / 32, self.serial, buffer.0);
        Access { thread, does, record: Record { by, warp, proxy, site, serial, buffer } }
    }

    /// An access that is complete when the thread continues.
    #[inline]
    pub(super) fn access_at_once(&self, thread: u32, does: Does, place: (u32, BufferId)) -> Access {
        let time = self.clocks.class(thread).time;
        let by = By::Lanes { lanes: 1 << (thread % 32), time };
        self.access(thread, (does, by), Proxy::Generic, place)
    }

    /// The loops that contain the threads. Reuses the last position if it is the same.
    fn position(&mut self, lockstep: &Lockstep<'p>) -> Position {
        let loops = || {
            lockstep.frames.iter().filter_map(|f| match &f.kind {
                Kind::Loop { trip, var, .. } => Some((first_of(f.stmts), *var, *trip)),
                _ => None,
            })
        };
        if !self.last_position.iter().copied().eq(loops()) {
            self.last_position = loops().collect();
        }
        Arc::clone(&self.last_position)
    }

    pub(super) fn leaf(
        &mut self,
        act: &Act<'_, 'p>,
        leaf: &'a LeafPlan,
        groups: &Groups,
    ) -> Goes<()> {
        self.serial = self.serial.wrapping_add(1);
        self.at.put(&act.lockstep.env, &act.mask);
        let position = self.position(act.lockstep);
        self.pairs.put(self.serial, position);
        let is_inexact = match &leaf.how {
            How::Bulk(bulk) => return self.bulk(act, leaf, bulk),
            How::Atom { .. } => false,
            How::Meaning => groups.groups.first().is_some_and(|g| g.len() > 1),
        };
        if !leaf.visibility.is_immediate() {
            let threads = self.threads_of(act.lockstep.rank, &act.mask);
            self.separate(&threads)?;
        }
        self.pairs.inexact = is_inexact.then_some(NO_ATOM);
        let done = self.leaf_operands(act, leaf);
        self.pairs.inexact = None;
        done
    }

    pub(super) fn leaf_operands(&mut self, act: &Act<'_, 'p>, leaf: &'a LeafPlan) -> Goes<()> {
        // All lanes read before any of them writes.
        let reads = |o: &&OperandPlan| o.reads && !(o.writes && leaf.accumulates.is_some());
        for o in leaf.operands.iter().filter(reads) {
            self.operand(act, leaf, o, Does::Read)?;
        }
        for o in leaf.operands.iter().filter(|o| o.writes) {
            self.operand(act, leaf, o, leaf.does(o))?;
        }
        let engine = match leaf.visibility {
            Visibility::AsyncGroup => Engine::Copies,
            Visibility::WgmmaGroup => Engine::MatMuls,
            Visibility::Immediate | Visibility::Mbarrier | Visibility::BulkGroup => return Ok(()),
        };
        for thread in self.threads_of(act.lockstep.rank, &act.mask) {
            let class = self.clocks.class_of[thread as usize];
            self.clocks.classes[class as usize].queue_mut(engine).issue(act.site);
        }
        Ok(())
    }

    fn operand(
        &mut self,
        act: &Act<'_, 'p>,
        leaf: &'a LeafPlan,
        o: &'a OperandPlan,
        does: Does,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        let (env, rank) = (&act.lockstep.env, act.lockstep.rank);
        match view.space {
            Space::Free | Space::Gathered => return Ok(()),
            Space::Registers(r) => return self.register_operand(act, leaf, r, view, does),
            Space::Shared(_) | Space::Global(_) => {}
        }
        let bases = self.place(view.offset, env, view.space);
        if o.described {
            return self.described(act, o, &bases);
        }
        let valid = match (does, leaf.valid) {
            (Does::Read, Some(dim)) => Some(self.valid(dim, env, view.places.len())),
            _ => None,
        };
        let kept = self.in_bounds(view, env);
        let place = (act.site, view.buffer);
        for t in act.mask.threads() {
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(act.site, "the address of the access is unknown");
            }
            let thread = self.global_thread(rank, t);
            let new = match leaf.visibility.is_async_copy() {
                true => {
                    let (lanes, engine) = (1 << (thread % 32), Engine::Copies);
                    let batch = self.clocks.class(thread).queue(engine).open();
                    let by = By::Batch { lanes, engine, batch, reading: false };
                    self.access(thread, (does, by), Proxy::Generic, place)
                }
                false => self.access_at_once(thread, does, place),
            };
            let rank = match view.peer {
                None => rank,
                Some(dim) => {
                    let peer = self.fixed(dim, env).of(t);
                    self.peer(act, peer, thread)?
                }
            };
            let target = Target { rank, view: o.view, base };
            let list = self.plan.elements(leaf, o, t);
            let most = valid.as_ref().map(|v| v.of(t)).filter(|n| *n < view.places.len() as i64);
            let inexact = self.pairs.inexact;
            if kept.is_unsure(t) {
                self.pairs.unsure(act.site);
            }
            let touched = if most.is_none() && kept.has_all(t) {
                self.touch(target, list, &new)
            } else {
                let is_valid = |e: u32| most.is_none_or(|n| i64::from(e) < n);
                let is_there = |e: &u32| is_valid(*e) && kept.has(t, *e);
                let list: Vec<u32> = list.iter().copied().filter(is_there).collect();
                self.touch_part(target, &list, &new)
            };
            self.pairs.inexact = inexact;
            touched?;
        }
        Ok(())
    }

    /// Accesses elements of a view at an offset. Callers pass the same list each time, so its
    /// regions are cached.
    #[inline]
    pub(super) fn touch(&mut self, target: Target, list: &[u32], new: &Access) -> Goes<()> {
        /// Shorter lists are not worth a lookup.
        const FEW: usize = 2;
        let Target { rank, view, base } = target;
        if let [e] = list
            && let Space::Shared(b) = self.plan.views[view].space
            && let place = base.saturating_add(self.plan.views[view].places[*e as usize])
            && let Some(granules) = self.plan.shared_cells(b, place)
            && granules.start() == granules.end()
            && let Some(region) = self.regions.alone(*granules.start())
        {
            return self.touch_regions(rank, &[region], new);
        }
        if list.len() <= FEW || !matches!(self.plan.views[view].space, Space::Shared(_)) {
            return self.touch_part(target, list, new);
        }
        let footprint = (list.as_ptr().addr(), view, base);
        let regions = match self.regions.known(footprint) {
            Some(known) => known,
            None => self.take(Some(footprint), target, list, new.record.site)?,
        };
        self.touch_regions(rank, &regions, new)
    }

    /// Accesses some elements of a view at an offset.
    pub(super) fn touch_part(&mut self, target: Target, list: &[u32], new: &Access) -> Goes<()> {
        let view = &self.plan.views[target.view];
        match view.space {
            Space::Shared(_) => {
                let regions = self.take(None, target, list, new.record.site)?;
                self.touch_regions(target.rank, &regions, new)
            }
            Space::Global(g) => {
                self.spend(list.len() as u64)?;
                let at = |e: &u32| target.base.saturating_add(view.places[*e as usize]);
                list.iter().try_for_each(|e| self.touch_global(g, at(e), new))
            }
            Space::Registers(_) | Space::Free | Space::Gathered => Ok(()),
        }
    }

    /// The regions that contain elements of a view in shared memory.
    fn take(
        &mut self,
        footprint: Option<Footprint>,
        Target { view, base, .. }: Target,
        list: &[u32],
        site: u32,
    ) -> Goes<Rc<[u32]>> {
        let v = &self.plan.views[view];
        let Space::Shared(b) = v.space else { return Ok(Rc::new([])) };
        let mut granules = Vec::with_capacity(list.len());
        for e in list {
            let place = base.saturating_add(v.places[*e as usize]);
            match self.plan.shared_cells(b, place) {
                Some(all) => granules.extend(all.map(|g| g as u32)),
                None => {
                    let help = "run `carbyne simulate` to find the element";
                    return self.stop(site, None, "an access is outside of its buffer", help);
                }
            }
        }
        self.spend(granules.len() as u64 / 4)?;
        let (regions, splits) = self.regions.take(footprint, granules);
        for (old, _) in splits {
            for cells in &mut self.cells {
                let part = cells[old].clone();
                cells.push(part);
            }
        }
        Ok(regions)
    }

    fn touch_regions(&mut self, rank: usize, regions: &[u32], new: &Access) -> Goes<()> {
        self.spend(regions.len() as u64)?;
        let Some(cells) = self.cells.get_mut(rank) else { return Ok(()) };
        let is_mbarrier = |b: u32| self.p.buffers[BufferId(b)].scalar == Scalar::Mbarrier;
        for region in regions {
            if let Some(cell) = cells.get_mut(*region as usize) {
                // The init of an mbarrier writes its memory; nothing else may write there from then
                // on.
                if let Some(Record { buffer, site, .. }) = cell.write
                    && buffer != new.record.buffer
                    && is_mbarrier(buffer)
                {
                    let (what, help) = (
                        "data shares memory with a live mbarrier: an initialized mbarrier stays \
                         live until the kernel ends",
                        "give each of them memory of its own: remove `reuses=`",
                    );
                    let made = (site, "the mbarrier is initialized here");
                    return self.stop(new.record.site, Some(made), what, help);
                }
                access(&self.clocks, &mut self.pairs, cell, new, &self.at);
            }
        }
        Ok(())
    }

    fn touch_global(&mut self, g: usize, place: i64, new: &Access) -> Goes<()> {
        if self.globals[g].len() > MAX_GLOBAL {
            return Err(Stop::Limit(format!(
                "a block accesses more than {MAX_GLOBAL} granules of a tensor that the kernel \
                 writes"
            )));
        }
        let key = place.div_euclid(self.plan.globals[g].granule);
        let Some(cell) = self.globals[g].touch(key) else { return Ok(()) };
        access(&self.clocks, &mut self.pairs, cell, new, &self.at);
        Ok(())
    }

    /// Every warp of a group reads the whole tile of a matrix descriptor.
    fn described(&mut self, act: &Act<'_, 'p>, o: &'a OperandPlan, bases: &Value) -> Goes<()> {
        let (view, rank) = (&self.plan.views[o.view], act.lockstep.rank);
        for (t, lanes) in act.mask.by_warp() {
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(act.site, "the address of the access is unknown");
            }
            let thread = self.global_thread(rank, t);
            let engine = Engine::MatMuls;
            let batch = self.clocks.class(thread).queue(engine).open();
            let by = By::Batch { lanes, engine, batch, reading: true };
            let place = (act.site, view.buffer);
            let new = self.access(thread, (Does::Read, by), Proxy::Async, place);
            self.touch(Target { rank, view: o.view, base }, &view.first, &new)?;
        }
        Ok(())
    }
}

/// Checks an access against the recorded ones, and records it.
#[inline]
fn access(clocks: &Clocks, pairs: &mut Pairs, cell: &mut Cell, new: &Access, at: &At<'_>) {
    for (did, old) in cell.all() {
        if old.is_together(new) {
            let both_write = did == Does::Write && new.does == Does::Write;
            if both_write && old.thread() != new.record.thread() {
                pairs.overlap(*old, new.record, at);
            }
        } else if did.conflicts(new.does) {
            // A write after a read needs no fence between the proxies.
            let relation = match old.relation(clocks, new) {
                Relation::Unfenced if did == Does::Read => Relation::Ordered,
                relation => relation,
            };
            if relation != Relation::Same {
                pairs.meet(clocks, (*old, did), new, relation, at);
            }
        }
    }
    cell.note(clocks, *new);
}
