//! What a leaf accesses, granule by granule.

use super::*;

const NO_ATOM: &str =
    "it is not said which thread of a group accesses what: the spec names no atom";

impl<'p, 'a> Machine<'p, 'a> {
    pub(super) fn who(&self, rank: usize, t: usize, proxy: Proxy) -> Who {
        Who { thread: self.global_thread(rank, t), proxy, serial: self.serial }
    }

    /// The loops that threads are in, of which the last one need not be told anew.
    fn position(&mut self, strand: &Strand<'p>) -> Position {
        let loops = || {
            strand.frames.iter().filter_map(|f| match &f.kind {
                Kind::Loop { trip, var, .. } => Some((f.stmts.as_ptr().addr(), *var, *trip)),
                _ => None,
            })
        };
        if !self.last_position.iter().copied().eq(loops()) {
            self.last_position = loops().collect();
        }
        Rc::clone(&self.last_position)
    }

    pub(super) fn leaf(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        groups: &Groups,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        self.serial = self.serial.wrapping_add(1);
        self.at.put(&strand.env, active);
        let position = self.position(strand);
        self.pairs.put(self.serial, position);
        let inexact = match &leaf.how {
            How::Bulk(bulk) => return self.bulk(strand, leaf, bulk, active, site),
            How::Atom { .. } => false,
            How::Meaning => groups.groups.first().is_some_and(|g| g.len() > 1),
        }
        .then_some(NO_ATOM);
        if let How::Atom { visibility: Visibility::AsyncGroup | Visibility::WgmmaGroup, .. } =
            leaf.how
        {
            let threads = self.threads_of(strand.rank, active);
            self.separate(&threads)?;
        }
        self.pairs.inexact = inexact;
        let done = self.leaf_operands(strand, leaf, active, site);
        self.pairs.inexact = None;
        done
    }

    pub(super) fn leaf_operands(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let visibility = match &leaf.how {
            How::Atom { visibility, .. } => *visibility,
            How::Bulk(_) | How::Meaning => Visibility::Immediate,
        };
        // All lanes read before any of them writes.
        let both = leaf.operands.iter().filter(|o| o.reads && leaf.accumulates.is_none());
        let reads: Vec<&OperandPlan> = both.collect();
        let sums = leaf.accumulates.map(sum);
        for o in reads {
            self.operand(strand, leaf, o, Does::Read, visibility, active, site)?;
        }
        if let Some(does) = sums {
            let (sources, targets): (Vec<_>, Vec<_>) =
                leaf.operands.iter().partition(|o| !o.writes);
            for o in sources {
                self.operand(strand, leaf, o, Does::Read, visibility, active, site)?;
            }
            for o in targets {
                self.operand(strand, leaf, o, does, visibility, active, site)?;
            }
            return Ok(());
        }
        for o in leaf.operands.iter().filter(|o| o.writes) {
            self.operand(strand, leaf, o, Does::Write, visibility, active, site)?;
        }
        if visibility == Visibility::AsyncGroup {
            for t in active.threads() {
                let class = self.clocks.class_of[self.global_thread(strand.rank, t) as usize];
                self.clocks.classes[class as usize].queue_mut(Engine::Copies).issue(site);
            }
        }
        if visibility == Visibility::WgmmaGroup {
            for t in active.threads() {
                let class = self.clocks.class_of[self.global_thread(strand.rank, t) as usize];
                self.clocks.classes[class as usize].queue_mut(Engine::MatMuls).issue(site);
            }
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one access, and what is known of it")]
    pub(super) fn operand(
        &mut self,
        strand: &Strand<'p>,
        leaf: &'a LeafPlan,
        o: &'a OperandPlan,
        does: Does,
        visibility: Visibility,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        match view.space {
            Space::Free | Space::Gathered => return Ok(()),
            Space::Registers(r) => {
                return self.register_operand(strand, leaf, r, o, does, visibility, active, site);
            }
            Space::Shared(_) | Space::Global(_) => {}
        }
        let bases = self.place(view.offset, &strand.env, view.space);
        if o.described {
            return self.described(strand, o, active, site);
        }
        let valid = match (does, leaf.valid) {
            (Does::Read, Some(dim)) => Some(self.valid(dim, &strand.env, view.places.len())),
            _ => None,
        };
        let kept = self.kept(view, &strand.env);
        let lane_of: Option<&Vec<Vec<u16>>> = match &leaf.how {
            How::Atom { groups, size, .. } if *size > 1 => Some(groups),
            _ => None,
        };
        let window = match &leaf.how {
            How::Atom { window, .. } => *window,
            _ => 32,
        };
        // Of each thread of a window which place it takes in its group.
        let mut places: Vec<Option<usize>> = vec![None; window.max(1)];
        if let (Some(groups), Some(_)) = (lane_of, &o.of_thread) {
            for (place, lane) in groups.iter().flat_map(|g| g.iter().enumerate()) {
                places[usize::from(*lane)] = Some(place);
            }
        }
        for t in active.threads() {
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(site, "a place is not known");
            }
            let who = self.who(strand.rank, t, Proxy::Generic);
            let record = self.record_of(&who, visibility, site, view.buffer.0);
            let rank = match view.peer {
                None => strand.rank,
                Some(dim) => self.peer(dim, &strand.env, t, site)?,
            };
            if rank != strand.rank {
                let time = self.clocks.class(who.thread).time;
                self.remote.insert((rank, who.thread, site), time);
            }
            let most = valid.as_ref().map(|v| v.of(t));
            let list: &[u32] = match (&o.of_thread, places[t % places.len()]) {
                (Some(all), Some(place)) => all.get(place).map_or(&[], |l| l.as_slice()),
                _ => &view.first,
            };
            let most = most.filter(|n| *n < view.places.len() as i64);
            let inexact = self.pairs.inexact;
            if kept.is_unsure(t) {
                self.pairs.unsure(site);
            }
            let touched = if most.is_none() && kept.has_all(t) {
                self.touch((rank, o.view), list, base, does, &who, record)
            } else {
                let is_valid = |e: u32| most.is_none_or(|n| i64::from(e) < n);
                let is_there = |e: &u32| is_valid(*e) && kept.has(t, *e);
                let list: Vec<u32> = list.iter().copied().filter(is_there).collect();
                self.touch_part((rank, o.view), &list, base, does, &who, record)
            };
            self.pairs.inexact = inexact;
            touched?;
        }
        Ok(())
    }

    /// The access of a thread, at once or by its queue of copies.
    #[inline]
    fn record_of(&self, who: &Who, visibility: Visibility, site: u32, buffer: u32) -> Record {
        let lanes = 1u32 << (who.thread % 32);
        let class = self.clocks.class(who.thread);
        let by = match visibility {
            Visibility::AsyncGroup => By::Batch {
                lanes,
                engine: Engine::Copies,
                batch: class.queue(Engine::Copies).open(),
                reading: false,
            },
            _ => By::Lanes { lanes, time: class.time },
        };
        let (warp, serial) = (who.thread / 32, self.serial);
        Record { by, warp, proxy: Proxy::Generic, site, serial, buffer }
    }

    /// Elements of a view at a place are accessed, the same list each time.
    #[inline]
    pub(super) fn touch(
        &mut self,
        (rank, view): (usize, usize),
        list: &[u32],
        base: i64,
        does: Does,
        who: &Who,
        record: Record,
    ) -> Goes<()> {
        /// Fewer are as soon found as looked up.
        const FEW: usize = 2;
        if let [e] = list
            && let Space::Shared(b) = self.plan.views[view].space
            && let place = base.saturating_add(self.plan.views[view].places[*e as usize])
            && let Some(granules) = self.plan.shared_cells(b, place)
            && granules.start() == granules.end()
            && let Some(region) = self.regions.alone(*granules.start())
        {
            return self.touch_regions(rank, &[region], does, who, record);
        }
        if list.len() <= FEW || !matches!(self.plan.views[view].space, Space::Shared(_)) {
            return self.touch_part((rank, view), list, base, does, who, record);
        }
        let footprint = (list.as_ptr().addr(), view, base);
        let regions = match self.regions.known(footprint) {
            Some(known) => known,
            None => self.take(Some(footprint), view, list, base, record.site)?,
        };
        self.touch_regions(rank, &regions, does, who, record)
    }

    /// Some elements of a view at a place are accessed.
    pub(super) fn touch_part(
        &mut self,
        (rank, view): (usize, usize),
        list: &[u32],
        base: i64,
        does: Does,
        who: &Who,
        record: Record,
    ) -> Goes<()> {
        let v = &self.plan.views[view];
        match v.space {
            Space::Shared(_) => {
                let regions = self.take(None, view, list, base, record.site)?;
                self.touch_regions(rank, &regions, does, who, record)
            }
            Space::Global(g) => {
                self.spend(list.len() as u64)?;
                for e in list {
                    self.touch_global(
                        g,
                        base.saturating_add(v.places[*e as usize]),
                        does,
                        who,
                        record,
                    )?;
                }
                Ok(())
            }
            Space::Registers(_) | Space::Free | Space::Gathered => Ok(()),
        }
    }

    /// The regions that elements of a view in shared memory are.
    fn take(
        &mut self,
        footprint: Option<Footprint>,
        view: usize,
        list: &[u32],
        base: i64,
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
                    return self.stop(
                        site,
                        None,
                        "an access leaves its buffer",
                        "run `carbyne simulate`, which says which element",
                    );
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

    fn touch_regions(
        &mut self,
        rank: usize,
        regions: &[u32],
        does: Does,
        who: &Who,
        record: Record,
    ) -> Goes<()> {
        self.spend(regions.len() as u64)?;
        let Some(cells) = self.cells.get_mut(rank) else { return Ok(()) };
        let is_mbarrier = |b: u32| self.p.buffers[BufferId(b)].scalar == Scalar::Mbarrier;
        for region in regions {
            if let Some(cell) = cells.get_mut(*region as usize) {
                // What an mbarrier lies in is written by its init, and by nothing else from then on.
                if let Some(Record { buffer, site, .. }) = cell.write
                    && buffer != record.buffer
                    && is_mbarrier(buffer)
                {
                    let (what, help) = (
                        "data is accessed where an mbarrier is live: nothing ends one that has been initialized",
                        "give one of them memory of its own: leave out `reuses=`",
                    );
                    return self.stop(record.site, Some(site), what, help);
                }
                access(&self.clocks, &mut self.pairs, cell, does, who, record, &self.at);
            }
        }
        Ok(())
    }

    fn touch_global(
        &mut self,
        g: usize,
        place: i64,
        does: Does,
        who: &Who,
        record: Record,
    ) -> Goes<()> {
        if self.globals[g].len() > MAX_GLOBAL {
            return Err(Stop::Limit(format!(
                "a block accesses more than {MAX_GLOBAL} granules of a tensor that is written"
            )));
        }
        let key = place.div_euclid(self.plan.globals[g].granule);
        let Some(cell) = self.globals[g].touch(key) else { return Ok(()) };
        access(&self.clocks, &mut self.pairs, cell, does, who, record, &self.at);
        Ok(())
    }

    /// Every warp of a group reads the whole tile that a descriptor names.
    pub(super) fn described(
        &mut self,
        strand: &Strand<'p>,
        o: &'a OperandPlan,
        active: &Mask,
        site: u32,
    ) -> Goes<()> {
        let view = &self.plan.views[o.view];
        let bases = self.place(view.offset, &strand.env, view.space);
        for w in 0..32 {
            let lanes = active.0[w];
            if lanes == 0 {
                continue;
            }
            let t = w * 32 + lanes.trailing_zeros() as usize;
            let base = bases.of(t);
            if base == NOTHING {
                return self.lost(site, "a place is not known");
            }
            let who = self.who(strand.rank, t, Proxy::Async);
            let class = self.clocks.class(who.thread);
            let batch = class.queue(Engine::MatMuls).open();
            let record = Record {
                by: By::Batch { lanes, engine: Engine::MatMuls, batch, reading: true },
                warp: who.thread / 32,
                proxy: Proxy::Async,
                site,
                serial: self.serial,
                buffer: view.buffer.0,
            };
            self.touch((strand.rank, o.view), &view.first, base, Does::Read, &who, record)?;
        }
        Ok(())
    }
}

/// An access is checked against those before it, and noted.
#[inline]
pub(super) fn access(
    clocks: &Clocks,
    pairs: &mut Pairs,
    cell: &mut Cell,
    does: Does,
    who: &Who,
    record: Record,
    at: &At<'_>,
) {
    if let Some(write) = &cell.write {
        if write.is_together(record.warp, who) {
            if does == Does::Write && write.thread() != record.thread() {
                pairs.overlap(*write, record, at);
            }
        } else {
            let relation = write.relation(clocks, who);
            if relation != Relation::Same {
                pairs.meet(clocks, (*write, Does::Write), (record, does), who, relation, at);
            }
        }
    }
    if does != Does::Read {
        for read in &cell.reads {
            if read.is_together(record.warp, who) {
                continue;
            }
            // A write after a read needs no fence between the proxies.
            let relation = match read.relation(clocks, who) {
                Relation::Unfenced => Relation::Ordered,
                other => other,
            };
            if relation != Relation::Same {
                pairs.meet(clocks, (*read, Does::Read), (record, does), who, relation, at);
            }
        }
    }
    for (op, other) in &cell.sums {
        if does == Does::Sum(*op) || other.is_together(record.warp, who) {
            continue;
        }
        let relation = other.relation(clocks, who);
        if relation != Relation::Same {
            pairs.meet(clocks, (*other, Does::Sum(*op)), (record, does), who, relation, at);
        }
    }
    cell.note(clocks, does, record);
}
