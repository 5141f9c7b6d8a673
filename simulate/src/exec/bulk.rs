//! Bulk copies: issued by a thread, made by another proxy. What they write to shared memory becomes visible
//! with the phase of the mbarrier that counts their bytes; what they read of it may be overwritten after the
//! issuing thread has waited for its group.

use super::Runner;
use super::blame::{self, Access};
use crate::plan::{BoundBulk, BoxPlace, Checked, Leaf, Mask, Space, coordinates};
use crate::state::Pending;
use crate::state::clock::Proxy;
use carbyne_ir::diag::{Code, Diagnostic};

/// A bulk copy into shared memory that has not arrived.
pub(super) struct Delivery {
    /// The statement that issued it.
    pub site: u32,
    byte: usize,
    bytes: i64,
    elements: Vec<Pending>,
}

impl Runner<'_> {
    /// Lets the oldest bulk copy arrive, as late as can be: when no thread can go on without. Whether there
    /// was one.
    pub(super) fn deliver(&mut self) -> bool {
        let Some(Delivery { byte, bytes, elements, .. }) = self.flying.pop_front() else {
            return false;
        };
        self.wake |= self.block.bulk_arrives(byte, bytes, elements);
        true
    }

    /// Executes the copy for the active threads, in their order.
    pub(super) fn bulk(&mut self, leaf: &Leaf, copy: &BoundBulk, active: &Mask) -> Checked<()> {
        for thread in active.threads() {
            if let Some(mask) = &copy.mask {
                let mask = self.index(mask, thread, leaf.site)?;
                if mask != 1 {
                    return Err(self.only_own_block(leaf.site));
                }
            }
            self.copy(leaf.site, copy, thread)?;
        }
        Ok(())
    }

    fn copy(&mut self, site: u32, copy: &BoundBulk, thread: usize) -> Checked<()> {
        let kernel = self.kernel;
        let (source, target) = (&kernel.views[copy.source], &kernel.views[copy.target]);
        let from = self.index(&source.offset, thread, site)?;
        let to = self.index(&target.offset, thread, site)?;
        let inside = self.inside(site, copy, thread)?;
        let mut who = self.who(thread / 32, site);
        who.thread = thread as u16;
        // Only shared memory is reached by the other proxy; in global memory the copy is the thread's.
        let mut by_proxy = who.clone();
        by_proxy.proxy = Proxy::Async;
        let way = |space: Space| match space {
            Space::Shared(_) => &by_proxy,
            Space::Global(_) | Space::Registers(_) => &who,
        };
        let (mut elements, mut granules) = (Vec::new(), Vec::new());
        for e in 0..usize::try_from(source.size).unwrap_or(0) {
            let within = inside(e as i64);
            let of_target = copy.boxed.as_ref().is_some_and(|b| !b.of_source);
            // Outside of the map's tensor zeros are read, and nothing is written.
            let mut raw = 0;
            if within || of_target {
                let at = from.saturating_add(source.element(e));
                raw = match self.block.read(source, at, thread, way(source.space)) {
                    Ok(raw) => raw,
                    Err(failure) => {
                        let access = Access { view: copy.source, at, write: false, thread };
                        let by = way(source.space);
                        return blame::failed(kernel, self.env.block, by, &access, &failure);
                    }
                };
                if let Space::Shared(b) = source.space {
                    let buffer = &kernel.shared.buffers[b];
                    self.block.shared.granules(buffer, at, &mut granules);
                }
            }
            if !within && of_target {
                continue;
            }
            let at = to.saturating_add(target.element(e));
            let later = copy.bar.is_some();
            match self.block.write(target, at, raw, thread, way(target.space), later) {
                Ok(pending) => elements.extend(pending),
                Err(failure) => {
                    let access = Access { view: copy.target, at, write: true, thread };
                    let by = way(target.space);
                    return blame::failed(kernel, self.env.block, by, &access, &failure);
                }
            }
        }
        if !granules.is_empty() {
            granules.sort_unstable();
            granules.dedup();
            self.block.shared.begin_read(&granules, site);
        }
        let Some(bar) = copy.bar else {
            self.block.bulks[thread].open.push((site, granules));
            return Ok(());
        };
        let Some((at, byte)) = self.mbarrier_at(bar, 0, thread, site, false)? else {
            return Ok(());
        };
        self.block
            .takes_bulk(byte)
            .map_err(|misuse| self.refused(site, thread, &kernel.element_name(bar, at), misuse))?;
        self.flying.push_back(Delivery { site, byte, bytes: copy.bytes, elements });
        Ok(())
    }

    /// Whether an element of the box lies in the map's tensor.
    fn inside(
        &self,
        site: u32,
        copy: &BoundBulk,
        thread: usize,
    ) -> Checked<impl Fn(i64) -> bool + use<>> {
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
        Ok(move |e| {
            place.as_ref().is_none_or(|(at, extents)| {
                let local = coordinates(&modes, e);
                local
                    .iter()
                    .zip(at)
                    .zip(extents)
                    .all(|((c, at), n)| (0..*n).contains(&at.saturating_add(*c)))
            })
        })
    }

    fn only_own_block(&self, site: u32) -> Box<Diagnostic> {
        let span = self.kernel.sites[site as usize].span;
        Box::new(
            Diagnostic::new(Code::NoDenotation, span, "the copy goes to another block")
                .label("blocks are simulated one by one, each a cluster of its own")
                .help("run the kernel on a GPU, or copy to the own block: `multicast=1`"),
        )
    }
}
