//! Bulk copies: executed whole at their issue, by the issuing thread. Into shared memory they become
//! visible with the phase of the mbarrier that counts their bytes.

use super::Runner;
use super::blame::{self, Access};
use super::cluster::Outgoing;
use crate::plan::{BoundBulk, BoxPlace, Checked, Leaf, Mask, coordinates};
use crate::state::Arrival;
use carbyne_ir::diag::{Code, Diagnostic};

impl Runner<'_> {
    /// Executes the copy for the active threads, in their order.
    pub(super) fn bulk(&mut self, leaf: &Leaf, copy: &BoundBulk, active: &Mask) -> Checked<()> {
        for thread in active.threads() {
            let mask = match &copy.mask {
                Some(mask) => Some(self.index(mask, thread, leaf.site)?),
                None => None,
            };
            self.copy(leaf.site, copy, thread, mask)?;
        }
        Ok(())
    }

    fn copy(
        &mut self,
        site: u32,
        copy: &BoundBulk,
        thread: usize,
        mask: Option<i64>,
    ) -> Checked<()> {
        if let Some(mask) = mask.filter(|m| *m < 1 || *m >> self.kernel.cluster.min(62) != 0) {
            return Err(self.no_such_blocks(site, mask));
        }
        let gets = |rank: usize| mask.is_none_or(|m| m >> rank & 1 == 1);
        let own = mask.is_none() || gets(self.rank);
        let mut sent = Vec::new();
        let kernel = self.kernel;
        let (source, target) = (&kernel.views[copy.source], &kernel.views[copy.target]);
        let from = self.index(&source.offset, thread, site)?;
        let to = self.index(&target.offset, thread, site)?;
        let inside = self.inside(site, copy, thread)?;
        let mut who = self.block.clocks.warp(thread / 32, site);
        who.thread = thread as u16;
        let mut elements = Vec::new();
        for e in 0..usize::try_from(source.size).unwrap_or(0) {
            let within = inside(e as i64);
            // Outside of the map's tensor zeros are read, and nothing is written.
            let read = within || copy.boxed.as_ref().is_some_and(|b| !b.of_source);
            let mut raw = 0;
            if read {
                let at = from.saturating_add(source.element(e));
                raw = match self.block.read(source, at, thread, &who) {
                    Ok(raw) => raw,
                    Err(failure) => {
                        let access = Access { view: copy.source, at, write: false, thread };
                        let block = self.block.env.block;
                        return blame::failed(kernel, block, &who, &access, &failure);
                    }
                };
            }
            if !within && copy.boxed.as_ref().is_some_and(|b| !b.of_source) {
                continue;
            }
            let at = to.saturating_add(target.element(e));
            if mask.is_some() {
                sent.push((at, raw));
            }
            if !own {
                continue;
            }
            let later = copy.bar.is_some();
            match self.block.write(target, at, raw, thread, &who, later) {
                Ok(pending) => elements.extend(pending),
                Err(failure) => {
                    let access = Access { view: copy.target, at, write: true, thread };
                    return blame::failed(kernel, self.block.env.block, &who, &access, &failure);
                }
            }
        }
        let Some(bar) = copy.bar else { return Ok(()) };
        let Some((byte, name)) = self.mbarrier_at(bar, 0, thread, site, false)? else {
            return Ok(());
        };
        for rank in
            (0..self.kernel.cluster).filter(|r| mask.is_some() && *r != self.rank && gets(*r))
        {
            let arrival =
                Arrival::Bytes { n: copy.bytes, view: copy.target, elements: sent.clone() };
            let name = name.clone();
            self.outgoing.push(Outgoing { rank, site, thread, byte, name, arrival });
        }
        if !own {
            return Ok(());
        }
        let done = self.block.bulk_arrives(byte, thread, copy.bytes, elements);
        done.map_err(|fault| self.barrier_fault(site, thread, &name, fault))
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

    fn no_such_blocks(&self, site: u32, mask: i64) -> Box<Diagnostic> {
        let span = self.kernel.sites[site as usize].span;
        let n = self.kernel.cluster;
        Box::new(
            Diagnostic::new(
                Code::BarrierMisuse,
                span,
                format!("the copy goes to blocks {mask:#b} of a cluster of {n}"),
            )
            .label(format!("block {}", self.block.env.block))
            .help("name blocks of the cluster, one bit each, the lowest for rank 0"),
        )
    }
}
