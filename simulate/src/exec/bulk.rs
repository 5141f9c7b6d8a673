//! Executes bulk copies (`cp.async.bulk`, with or without a tensor map): a thread issues a copy,
//! which reads its source at once, and the async proxy performs it. Elements written to shared
//! memory become visible with the phase of the mbarrier that counts their bytes. Shared memory that
//! a copy reads may be overwritten, and global memory that it writes may be read, after the issuing
//! thread has waited for the copy's group.

use super::Runner;
use super::errors::{self, ElementAccess};
use crate::plan::{Base, BoundBulk, BoxPlace, Checked, LeafSpec, Mask, Space, coordinates};
use crate::state::clock::{Message, Part, Proxy};
use crate::state::{Counted, GlobalElement, Pending, Value, Who};
use carbyne_ir::diag::{Code, Diagnostic};
use std::cell::Cell;
use std::rc::Rc;

/// A pending bulk copy into shared memory.
pub(super) struct Delivery {
    /// The statement that issued the copy.
    pub site: u32,
    rank: usize,
    byte: usize,
    bytes: i64,
    what: Rc<Counted>,
    /// The events that happened before the issue of the copy.
    issued: Rc<Message>,
}

impl Runner<'_> {
    /// Completes a pending bulk copy. Normally the oldest copy arrives, and only when no thread can
    /// continue without it. Returns whether the copy existed.
    pub(super) fn deliver(&mut self, i: usize) -> bool {
        let Some(Delivery { rank, byte, bytes, what, site, issued }) = self.flying.remove(i) else {
            return false;
        };
        self.wake |= self.blocks[rank].bulk_arrives(byte, bytes, what, (site, &issued));
        true
    }

    /// Executes the copy for the active threads, in order.
    pub(super) fn bulk(
        &mut self,
        i: usize,
        leaf: &LeafSpec,
        copy: &BoundBulk,
        active: &Mask,
    ) -> Checked<()> {
        for thread in active.threads() {
            let ranks: Vec<usize> = match &copy.mask {
                None => vec![self.rank],
                Some(mask) => {
                    let mask = self.index(mask, thread, leaf.site)?;
                    let n = self.blocks.len();
                    if mask < 1 || mask >> n.min(62) != 0 {
                        return Err(self.no_such_blocks(leaf.site, mask));
                    }
                    (0..n).filter(|r| mask >> r & 1 == 1).collect()
                }
            };
            self.copy(leaf.site, copy, thread, &ranks)?;
            let bytes = copy.bytes.unsigned_abs();
            let count = &mut self.counts.leaves[i];
            count.global.bytes += bytes;
            count.shared.bytes += bytes * ranks.len() as u64;
        }
        Ok(())
    }

    fn copy(&mut self, site: u32, copy: &BoundBulk, thread: usize, ranks: &[usize]) -> Checked<()> {
        let kernel = self.kernel;
        let (source, target) = (&kernel.views[copy.source], &kernel.views[copy.target]);
        let from = self.base(source, thread, site)?;
        let to = self.base(target, thread, site)?;
        let inside = self.inside(site, copy, thread)?;
        let within = |e: usize| inside.as_ref().is_none_or(|inside| inside(e as i64));
        let mut who = self.who(thread / 32, site);
        who.thread = thread as u16;
        let (mut near, mut far) = (who.clone(), who);
        (near.proxy, far.proxy) = (Proxy::Async, Proxy::Global);
        let way = |space: Space| match space {
            Space::Shared(_) => &near,
            _ => &far,
        };
        let all = match &inside {
            None => self.copy_tile(copy, (&from, &to), ranks, &near),
            Some(_) => None,
        };
        let n = if all.is_some() { 0 } else { usize::try_from(source.size).unwrap_or(0) };
        let mut elements = all.unwrap_or_else(|| ranks.iter().map(|_| Vec::new()).collect());
        let (mut granules, mut sources, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for e in 0..n {
            let within = within(e);
            let of_target = copy.boxed.as_ref().is_some_and(|b| !b.of_source);
            // Elements outside of the map's tensor read as zero and are not written.
            let mut value = Value::ZERO;
            if within || of_target {
                let at = source.place(&from, e);
                let by = way(source.space);
                let (block, counted) = (&mut self.blocks[self.rank], copy.bar.is_some());
                value = match block.read_by_copy(source, at, thread, by, counted) {
                    Ok(value) => value,
                    Err(failure) => {
                        let access = ElementAccess { view: copy.source, at, write: false, thread };
                        return errors::failed(kernel, self.env.block, by, &access, &failure);
                    }
                };
                match source.space {
                    Space::Shared(b) => {
                        let buffer = &kernel.shared.buffers[b];
                        self.blocks[self.rank].shared.granules(buffer, at, &mut granules);
                    }
                    Space::Global(b) if !source.is_outside(at) => sources.push((b, at)),
                    _ => {}
                }
            }
            if !within && of_target {
                continue;
            }
            let at = target.place(&to, e);
            if target.is_outside(at) {
                continue;
            }
            if let Space::Global(b) = target.space {
                targets.push((b, at));
            }
            let later = copy.bar.is_some();
            let by = way(target.space);
            for (rank, elements) in ranks.iter().zip(&mut elements) {
                let block = &mut self.blocks[*rank];
                let done = match copy.adds {
                    Some(op) => block.accumulate(target, at, value, thread, by, op).map(|()| None),
                    None => block.write(target, at, value, thread, by, later),
                };
                match done {
                    Ok(pending) => elements.extend(pending),
                    Err(failure) => {
                        let access = ElementAccess { view: copy.target, at, write: true, thread };
                        return errors::failed(kernel, self.env.block, by, &access, &failure);
                    }
                }
            }
        }
        if !granules.is_empty() {
            granules.sort_unstable();
            granules.dedup();
            self.blocks[self.rank].shared.begin_reads(1, &granules, site);
        }
        let n_copies = if copy.bar.is_some() { ranks.len() } else { 1 };
        let sources = self.read_until_complete(site, thread, (copy.source, &sources), n_copies)?;
        let Some(bar) = copy.bar else {
            let targets = self.written_until_complete(site, thread, (copy, &targets))?;
            let kept = self.blocks[self.rank].keep_store(thread, (site, granules), targets);
            return kept.ok_or_else(|| errors::too_many_pending(kernel, site));
        };
        self.fly(site, thread, (copy.bytes, bar), (ranks, elements), &sources)
    }

    /// Makes a copy to the shared memory of blocks pending. An mbarrier of each block counts its
    /// bytes.
    fn fly(
        &mut self,
        site: u32,
        thread: usize,
        (bytes, bar): (i64, usize),
        (ranks, elements): (&[usize], Vec<Vec<Pending>>),
        sources: &[GlobalElement],
    ) -> Checked<()> {
        let kernel = self.kernel;
        let part = Part { rank: self.rank, warp: thread / 32, lanes: 1 << (thread % 32) };
        let issued = Rc::new(self.clocks.release(part).without_memory());
        for (rank, elements) in ranks.iter().copied().zip(elements) {
            let found = self.mbarrier_at(rank, (bar, 0), thread, site, false)?;
            let Some((at, byte)) = found else { continue };
            self.blocks[rank]
                .takes_bulk(byte, &self.clocks, part)
                .map_err(|e| self.refused(site, thread, &kernel.element_name(bar, at), e))?;
            let issued = Rc::clone(&issued);
            let (sources, who, done) =
                (sources.to_vec(), self.who(part.warp, site), Cell::new(None));
            let what = Rc::new(Counted { elements, sources, who, done });
            self.flying.push_back(Delivery { site, rank, byte, bytes, what, issued });
        }
        Ok(())
    }

    /// Copies all elements into the shared memory of blocks, if no access needs a separate check.
    /// Returns the elements to complete later, by block.
    fn copy_tile(
        &mut self,
        copy: &BoundBulk,
        (from, to): (&Base, &Base),
        ranks: &[usize],
        who: &Who,
    ) -> Option<Vec<Vec<Pending>>> {
        let kernel = self.kernel;
        let (source, target) = (&kernel.views[copy.source], &kernel.views[copy.target]);
        let (Space::Global(g), Space::Shared(b)) = (source.space, target.space) else {
            return None;
        };
        let later = copy.bar.is_some() && copy.adds.is_none();
        let whole = !source.is_bounded() && !target.is_bounded() && !copy.order.is_empty();
        if !later || !whole || kernel.globals[g].written {
            return None;
        }
        let mut tile = std::mem::take(&mut self.scratch.output);
        tile.clear();
        let memory = self.blocks[self.rank].global[g].memory;
        for e in &copy.order {
            tile.push(memory.read(source.place(from, *e as usize))?, self.mode.shadows);
        }
        let (buffer, places) =
            (&kernel.shared.buffers[b], copy.order.iter().map(|e| target.place(to, *e as usize)));
        for rank in ranks {
            if !self.blocks[*rank].shared.takes_tile(buffer, places.clone(), who) {
                return None;
            }
        }
        let each =
            |rank: &usize| self.blocks[*rank].shared.write_tile(buffer, places.clone(), &tile, who);
        let elements = ranks.iter().map(each).collect();
        self.scratch.output = tile;
        Some(elements)
    }

    /// Whether an element of the box lies in the map's tensor; none if all elements do.
    fn inside(
        &self,
        site: u32,
        copy: &BoundBulk,
        thread: usize,
    ) -> Checked<Option<impl Fn(i64) -> bool + use<>>> {
        let view = match &copy.boxed {
            Some(b) if !b.of_source => copy.target,
            _ => copy.source,
        };
        let modes = self.kernel.views[view].modes.clone();
        let place = match &copy.boxed {
            None => None,
            Some(BoxPlace { at, extents, .. }) => {
                let at = at.iter().map(|i| self.index(i, thread, site));
                Some((at.collect::<Checked<Vec<i64>>>()?, extents.clone()))
            }
        };
        // A box that lies completely inside needs no further checks.
        let is_inside = |mode: &i64, at: &i64, n: &i64| {
            [0, mode - 1].iter().all(|c| (0..*n).contains(&at.saturating_add(*c)))
        };
        let place = place.filter(|(at, extents)| {
            !modes.iter().zip(at).zip(extents).all(|((mode, at), n)| is_inside(mode, at, n))
        });
        Ok(place.map(|(at, extents)| {
            move |e| {
                let local = coordinates(&modes, e);
                local
                    .iter()
                    .zip(&at)
                    .zip(&extents)
                    .all(|((c, at), n)| (0..*n).contains(&at.saturating_add(*c)))
            }
        }))
    }

    fn no_such_blocks(&self, site: u32, mask: i64) -> Box<Diagnostic> {
        let span = self.kernel.sites[site as usize].span;
        let n = self.blocks.len();
        let text = format!("the copy names blocks {mask:#b} of a cluster of {n} blocks");
        Box::new(
            Diagnostic::new(Code::BarrierMisuse, span, text)
                .label(format!("block {}", self.env.block))
                .help("name only blocks of the cluster: one bit each, the lowest for rank 0"),
        )
    }
}
