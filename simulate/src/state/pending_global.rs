//! Global memory that asynchronous copies still read or write.
//!
//! From its issue to its completion a copy may read its source, and its destination is not there
//! yet (PTX ISA, Data Movement and Conversion Instructions: Asynchronous copy, Completion
//! Mechanisms). So what is kept of each element that copies under way use is how many read it, and
//! how many write it. Of memory that a kernel does not write nothing is.

use super::clock::{MANY, Who};
use super::groups::Content;
use super::race::Clash;
use super::shared::{Denied, Pending};
use carbyne_ir::ast::AccumulateOp;
use std::cell::Cell;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::rc::Rc;

/// What a copy leaves to its completion: elements of shared memory that it brings, and of global
/// memory that it reads.
#[derive(Default)]
pub(crate) struct InFlight {
    /// Brought.
    pub elements: Vec<Pending>,
    /// Read.
    pub sources: Vec<GlobalElement>,
    /// The same of copies that an mbarrier counts, too.
    pub counted: Vec<Rc<Counted>>,
    /// Phases of mbarriers with which copies of this group landed: their agents, and how many
    /// phases were complete.
    pub landed: Vec<(u16, u32)>,
}

/// Copies of a thread's group that land with the phase of an mbarrier, or when the thread has
/// waited for the group.
pub(crate) struct Counted {
    /// Brought.
    pub elements: Vec<Pending>,
    /// Read.
    pub sources: Vec<GlobalElement>,
    /// The thread when it let the mbarrier count them.
    pub who: Who,
    /// Whether they have landed, and with which phase: the mbarrier's agent, and how many phases
    /// were complete.
    pub done: Cell<Option<Option<(u16, u32)>>>,
}

/// An element of the global memory that a block of the cluster sees.
#[derive(Copy, Clone, Debug)]
pub(crate) struct GlobalElement {
    /// The block.
    pub rank: u16,
    /// In the kernel's order of buffers.
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
    /// What no mbarrier counts yet, counted from now on; none where there is nothing.
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

    /// Moves all to a later group, of whose completion follows that of this one, where all has
    /// landed with mbarriers.
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

    /// Keeps of copies that have landed with mbarriers no more than the phases.
    fn settle(&mut self) {
        let landed = &mut self.landed;
        self.counted.retain(|counted| {
            landed.extend(counted.done.get().flatten());
            counted.done.get().is_none()
        });
        // The last phase of each mbarrier.
        landed.sort_unstable_by_key(|(agent, phases)| (*agent, std::cmp::Reverse(*phases)));
        landed.dedup_by_key(|(agent, _)| *agent);
    }
}

/// Bulk copies out of shared memory that no mbarrier counts, of one group of a thread.
#[derive(Default)]
pub(crate) struct Stores {
    /// The statement, and the granules of shared memory that a copy still reads.
    pub reads: Vec<(u32, Vec<u32>)>,
    /// What they write.
    pub targets: Vec<GlobalElement>,
}

impl Content for Stores {
    fn is_nothing(&self) -> bool {
        self.reads.is_empty() && self.targets.is_empty()
    }
}

/// The elements of a buffer that copies use.
#[derive(Default)]
pub(crate) struct UnderWay {
    elements: HashMap<i64, Uses>,
    /// The most that there were.
    most: usize,
}

/// The copies that use an element.
#[derive(Default)]
struct Uses {
    /// How many copies read it, and the statement of the last.
    reads: (u32, u32),
    /// How many copies write it or accumulate into it, and the statement of the last.
    writes: (u32, u32),
    /// The operation by which they accumulate into it.
    adds: Option<AccumulateOp>,
    /// Copies that have read it and arrived with an mbarrier: its agent, how many phases were
    /// complete, the statement.
    landed: Vec<(u16, u32, u32)>,
}

/// Bytes that an element takes, about.
pub(crate) const USES_BYTES: usize = 2 * size_of::<(i64, Uses)>();

impl UnderWay {
    /// Whether no copy uses anything.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }

    /// A copy of a statement reads an element from now on. Whether there are more than ever.
    pub(crate) fn begin_read(&mut self, at: i64, site: u32) -> bool {
        let (n, by) = &mut self.elements.entry(at).or_default().reads;
        (*n, *by) = (*n + 1, site);
        self.grows()
    }

    /// A copy of a statement writes an element from now on, or accumulates into it. Returns whether
    /// more copies are under way than ever.
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

    /// A copy has read an element; `landed`: with an mbarrier.
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

    /// A copy has written an element, or accumulated into it by the returned operation.
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

    /// Whether an element may be read.
    ///
    /// # Errors
    /// A copy to it is under way.
    pub(crate) fn before_read(&self, at: i64) -> Result<(), Denied> {
        match self.elements.get(&at) {
            Some(Uses { writes: (1.., site), .. }) => Err(Denied::Pending(*site)),
            _ => Ok(()),
        }
    }

    /// Whether an element may be written, or a value put to it by an operation. If so, no copy that
    /// has read it matters any more.
    ///
    /// # Errors
    /// A copy from it or to it is under way, except one that accumulates into it by that operation;
    /// or a copy has read it, and that is not known to have happened before.
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
    fn who_has_waited_for_the_phase_may_write_what_a_copy_has_read() {
        let mut clocks = Clocks::new(1, 64, 1);
        let mbarrier = clocks.mbarrier(0, 0, 1);
        let mut uses = UnderWay::default();
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
    fn values_are_put_to_elements_together() {
        let clocks = Clocks::new(1, 32, 0);
        let who = clocks.warp(0, 0, 1, 1);
        let (add, max) = (Some(AccumulateOp::Add), Some(AccumulateOp::Max));
        let mut uses = UnderWay::default();
        uses.begin_write(0, 3, add);
        assert!(uses.before_write(0, add, &who).is_ok());
        assert!(matches!(uses.before_write(0, max, &who), Err(Denied::Pending(3))));
        assert!(matches!(uses.before_write(0, None, &who), Err(Denied::Pending(3))));
        assert!(matches!(uses.before_read(0), Err(Denied::Pending(3))));
        assert_eq!(uses.end_write(0), add);
        assert!(uses.is_empty());
    }
}
