//! Records which elements of global memory pending asynchronous copies read or write, so that an
//! access that conflicts with a copy is reported.
//!
//! From its issue to its completion, a copy may read its source, and its destination is not yet
//! valid (PTX ISA, Data Movement and Conversion Instructions: Asynchronous copy, Completion
//! Mechanisms). So a source may be read but not written, and a destination neither. The number of
//! pending reads and writes is stored for each element. Memory that a kernel does not write is not
//! tracked.

use super::clash::Clash;
use super::clock::{MANY, Who};
use super::groups::Content;
use super::shared::{Denied, Pending};
use carbyne_ir::ast::AccumulateOp;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// The work that a copy leaves to its completion: the elements of shared memory that it writes, and
/// the elements of global memory that it reads.
#[derive(Default)]
pub(crate) struct InFlight {
    /// The elements that the copies write.
    pub elements: Vec<Pending>,
    /// The elements that the copies read.
    pub sources: Vec<GlobalElement>,
    /// The copies that an mbarrier also counts.
    pub counted: Vec<Rc<Counted>>,
    /// The phases of mbarriers with which copies of this group arrived: agents, and numbers of
    /// complete phases.
    pub landed: Vec<(u16, u32)>,
}

/// Copies of a thread's group that complete with the phase of an mbarrier, or when the thread has
/// waited for the group.
pub(crate) struct Counted {
    /// The elements that the copies write.
    pub elements: Vec<Pending>,
    /// The elements that the copies read.
    pub sources: Vec<GlobalElement>,
    /// The thread at its arrival at the mbarrier.
    pub who: Who,
    /// Whether the copies have arrived, and with which phase: the mbarrier's agent, and its number
    /// of complete phases.
    pub done: Cell<Option<Option<(u16, u32)>>>,
}

/// An element of the global memory that a block of the cluster sees.
#[derive(Copy, Clone, Debug)]
pub(crate) struct GlobalElement {
    /// The rank of the block.
    pub rank: u16,
    /// The index in the kernel's order of buffers.
    pub buffer: u16,
    /// The offset.
    pub at: i64,
}

impl Content for InFlight {
    fn is_nothing(&self) -> bool {
        let Self { elements, sources, counted, landed } = self;
        elements.is_empty() && sources.is_empty() && counted.is_empty() && landed.is_empty()
    }
}

impl InFlight {
    /// The copies that no mbarrier counts yet, which one counts from now on; none if there are no
    /// such copies.
    pub(crate) fn count(&mut self, who: &Who) -> Option<Rc<Counted>> {
        self.settle();
        let elements = std::mem::take(&mut self.elements);
        let sources = std::mem::take(&mut self.sources);
        if elements.is_empty() && sources.is_empty() {
            return None;
        }
        let counted = Counted { elements, sources, who: who.clone(), done: Cell::new(None) };
        let counted = Rc::new(counted);
        self.counted.push(Rc::clone(&counted));
        Some(counted)
    }

    /// Moves everything to a later group, which completes after this one, if all copies have
    /// arrived with mbarriers.
    pub(crate) fn has_moved(&mut self, later: &mut InFlight) -> bool {
        self.settle();
        let Self { elements, sources, counted, landed } = self;
        let all = elements.is_empty() && sources.is_empty() && counted.is_empty();
        if all {
            later.landed.append(landed);
            later.settle();
        }
        all
    }

    /// Reduces the copies that have arrived with mbarriers to their phases.
    fn settle(&mut self) {
        let landed = &mut self.landed;
        self.counted.retain(|counted| {
            landed.extend(counted.done.get().flatten());
            counted.done.get().is_none()
        });
        // Only the last phase of each mbarrier is needed.
        landed.sort_unstable_by_key(|(agent, phases)| (*agent, std::cmp::Reverse(*phases)));
        landed.dedup_by_key(|(agent, _)| *agent);
    }
}

/// Bulk copies out of shared memory of one group of a thread, without an mbarrier.
#[derive(Default)]
pub(crate) struct Stores {
    /// The statement, and the granules of shared memory that a copy still reads.
    pub reads: Vec<(u32, Vec<u32>)>,
    /// The elements that the copies write.
    pub targets: Vec<GlobalElement>,
}

impl Content for Stores {
    fn is_nothing(&self) -> bool {
        self.reads.is_empty() && self.targets.is_empty()
    }
}

/// The elements of a buffer that pending copies use.
#[derive(Default)]
pub(crate) struct PendingUses {
    elements: HashMap<i64, Uses>,
    /// The largest number of elements so far.
    most: usize,
}

/// The copies that use an element.
#[derive(Default)]
struct Uses {
    /// The number of copies that read the element, and the statement of the last.
    reads: (u32, u32),
    /// The number of copies that write the element or accumulate into it, and the statement of
    /// the last.
    writes: (u32, u32),
    /// The operation by which they accumulate.
    adds: Option<AccumulateOp>,
    /// The copies that have read it and arrived with an mbarrier: agent, number of complete phases,
    /// and statement.
    landed: Vec<(u16, u32, u32)>,
}

/// The approximate number of bytes for an element.
pub(crate) const USES_BYTES: usize = 2 * size_of::<(i64, Uses)>();

impl PendingUses {
    /// Whether no copy uses any element.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// Records that a copy of a statement begins to read an element. Returns whether the number of
    /// elements exceeds its previous maximum.
    pub(crate) fn begin_read(&mut self, at: i64, site: u32) -> bool {
        let (n, by) = &mut self.elements.entry(at).or_default().reads;
        (*n, *by) = (*n + 1, site);
        self.grows()
    }

    /// Records that a copy of a statement begins to write an element or to accumulate into it.
    /// Returns whether the number of elements exceeds its previous maximum.
    pub(crate) fn begin_write(&mut self, at: i64, site: u32, adds: Option<AccumulateOp>) -> bool {
        let uses = self.elements.entry(at).or_default();
        uses.writes = (uses.writes.0 + 1, site);
        uses.adds = adds;
        self.grows()
    }

    fn grows(&mut self) -> bool {
        let more = self.elements.len() > self.most;
        self.most += usize::from(more);
        more
    }

    /// Records that a copy has read an element; `landed`: with an mbarrier.
    pub(crate) fn end_read(&mut self, at: i64, landed: Option<(u16, u32)>) {
        let Some(uses) = self.elements.get_mut(&at) else { return };
        uses.reads.0 = uses.reads.0.saturating_sub(1);
        if let Some((agent, phases)) = landed {
            match uses.landed.iter_mut().find(|(a, ..)| *a == agent) {
                Some((_, last, site)) => (*last, *site) = (phases.max(*last), uses.reads.1),
                None => uses.landed.push((agent, phases, uses.reads.1)),
            }
        }
        self.tidy(at);
    }

    /// Records that a copy has written an element, or accumulated into it by the returned
    /// operation.
    pub(crate) fn end_write(&mut self, at: i64) -> Option<AccumulateOp> {
        let uses = self.elements.get_mut(&at)?;
        uses.writes.0 = uses.writes.0.saturating_sub(1);
        let adds = uses.adds;
        self.tidy(at);
        adds
    }

    fn tidy(&mut self, at: i64) {
        let Entry::Occupied(uses) = self.elements.entry(at) else { return };
        if uses.get().reads.0 == 0 && uses.get().writes.0 == 0 && uses.get().landed.is_empty() {
            uses.remove();
        }
    }

    /// Checks that an element may be read.
    ///
    /// # Errors
    /// A pending copy writes the element.
    pub(crate) fn before_read(&self, at: i64) -> Result<(), Denied> {
        match self.elements.get(&at) {
            Some(Uses { writes: (1.., site), .. }) => Err(Denied::Pending(*site)),
            _ => Ok(()),
        }
    }

    /// Checks that an element may be written, or accumulated into by an operation. If so, copies
    /// that have read it no longer matter.
    ///
    /// # Errors
    /// A pending copy reads or writes it, unless the copy accumulates into it by that operation; or
    /// a copy has read it and the read is not known to be complete.
    pub(crate) fn before_write(
        &mut self,
        at: i64,
        adds: Option<AccumulateOp>,
        who: &Who,
    ) -> Result<(), Denied> {
        let Some(uses) = self.elements.get_mut(&at) else { return Ok(()) };
        if uses.reads.0 > 0 {
            return Err(Denied::Busy(uses.reads.1));
        }
        if uses.writes.0 > 0 && (adds.is_none() || uses.adds != adds) {
            return Err(Denied::Pending(uses.writes.1));
        }
        let unknown =
            uses.landed.iter().find(|(agent, phases, _)| !who.knows(*agent, *phases, MANY));
        if let Some((agent, _, site)) = unknown {
            let (agent, site) = (*agent, *site);
            let lane = MANY;
            let clash = Clash { agent, lane, site, serial: 0, wrote: false, unfenced: false };
            return Err(Denied::Clash(clash));
        }
        uses.landed.clear();
        self.tidy(at);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::clock::{Clocks, Part};
    use super::*;

    #[test]
    fn threads_after_the_phase_may_overwrite_sources() {
        let mut clocks = Clocks::new(1, 64, 1);
        let mbarrier = clocks.mbarrier(0, 0, 1);
        let mut uses = PendingUses::default();
        uses.begin_read(5, 7);
        uses.begin_read(5, 8);
        assert!(uses.before_read(5).is_ok());
        let who = clocks.warp(0, 0, 1, 1);
        assert!(matches!(uses.before_write(5, None, &who), Err(Denied::Busy(8))));
        uses.end_read(5, Some((mbarrier, 1)));
        uses.end_read(5, None);
        let unknown = uses.before_write(5, None, &who);
        assert!(matches!(unknown, Err(Denied::Clash(Clash { site: 8, wrote: false, .. }))));
        let first = Part { rank: 0, warp: 0, lanes: u32::MAX };
        let mut message = clocks.release(Part { rank: 0, warp: 1, lanes: u32::MAX });
        message.add(mbarrier, 1);
        clocks.acquire(first, &message);
        assert!(uses.before_write(5, None, &clocks.warp(0, 0, 1, 2)).is_ok());
        assert!(uses.is_empty());
    }

    #[test]
    fn accumulating_copies_do_not_wait_for_each_other() {
        let clocks = Clocks::new(1, 32, 0);
        let who = clocks.warp(0, 0, 1, 1);
        let (add, max) = (Some(AccumulateOp::Add), Some(AccumulateOp::Max));
        let mut uses = PendingUses::default();
        uses.begin_write(0, 3, add);
        assert!(uses.before_write(0, add, &who).is_ok());
        assert!(matches!(uses.before_write(0, max, &who), Err(Denied::Pending(3))));
        assert!(matches!(uses.before_write(0, None, &who), Err(Denied::Pending(3))));
        assert!(matches!(uses.before_read(0), Err(Denied::Pending(3))));
        assert_eq!(uses.end_write(0), add);
        assert!(uses.is_empty());
    }
}
