//! Performs the accesses of a thread to the elements of a view, with all checks: bounds, undefined
//! elements, pending copies, fences, races, bytes of mbarriers, and bytes that another tensor or
//! another loop iteration wrote last.
//!
//! In a partial tile, an element beyond the end of a mode reads as zero and is not written; such an
//! access touches no memory. The offset of such an element is [`crate::plan::OUTSIDE`].

use super::clash::Clash;
use super::register_use::RegisterFault;
use super::shared::Denied;
use super::{Block, Pending, Shared, Tile, Value, Who};
use crate::exec::accumulated;
use crate::plan::{Kernel, Space, View};
use carbyne_ir::ast::AccumulateOp;

/// An access that is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The access is outside of the buffer.
    Outside,
    /// The element was never written.
    Undefined,
    /// A pending copy, issued by the statement, writes the element.
    Pending(u32),
    /// A block accesses more elements of global memory than can be tracked.
    TooMuch,
    /// Another thread's access is not ordered with this access.
    Clash(Clash),
    /// Another thread wrote a different value in the same execution of the statement.
    Overlap(u16),
    /// An asynchronous instruction, issued by the statement, still reads the element.
    Busy(u32),
    /// Other instructions accessed the register since the warp's last fence.
    Unfenced,
    /// The element lies in the bytes of a live mbarrier.
    Mbarrier,
    /// The statement last wrote the bytes as an element of another tensor.
    Other(u32),
    /// The statement last wrote the element in another iteration of the loops around the tensor's
    /// allocation.
    Earlier(u32),
}

impl From<RegisterFault> for Failure {
    fn from(fault: RegisterFault) -> Self {
        match fault {
            RegisterFault::Outside => Failure::Outside,
            RegisterFault::Pending(site) => Failure::Pending(site),
            RegisterFault::Busy(site) => Failure::Busy(site),
            RegisterFault::Unfenced => Failure::Unfenced,
        }
    }
}

impl From<Denied> for Failure {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Outside => Failure::Outside,
            Denied::Undefined => Failure::Undefined,
            Denied::Pending(site) => Failure::Pending(site),
            Denied::TooMuch => Failure::TooMuch,
            Denied::Clash(clash) => Failure::Clash(clash),
            Denied::Overlap(thread) => Failure::Overlap(thread),
            Denied::Busy(site) => Failure::Busy(site),
            Denied::Mbarrier => Failure::Mbarrier,
            Denied::Other(site) => Failure::Other(site),
            Denied::Earlier(site) => Failure::Earlier(site),
        }
    }
}

impl Block<'_> {
    /// Records the thread of a failed access, and the conflicting earlier access.
    #[cold]
    fn denied(&mut self, who: &Who, denied: Denied) -> Failure {
        let failure = Failure::from(denied);
        let clash = match failure {
            Failure::Clash(clash) => Some(clash),
            _ => None,
        };
        self.accused = Some((who.thread, clash));
        failure
    }

    /// The buffer and the offset in the source for an offset of a gathered buffer. Reads the
    /// coordinate.
    fn gathered(&mut self, i: usize, at: i64, who: &Who) -> Result<(usize, i64), Failure> {
        let g = &self.kernel.gathers[i];
        let position = at.div_euclid(g.unit);
        if !self.global[g.index].holds(position) {
            return Err(Failure::Outside);
        }
        match self.global[g.index].read(position, who) {
            Ok(Some(value)) => Ok((g.source, g.place(at, value))),
            Ok(None) => Err(Failure::Undefined),
            Err(denied) => Err(self.denied(who, denied)),
        }
    }

    /// Like [`Block::gathered`], without recording the read; none if the coordinate is undefined.
    fn found(&self, i: usize, at: i64) -> Option<(usize, i64)> {
        let g = &self.kernel.gathers[i];
        let value = self.global[g.index].peek(at.div_euclid(g.unit))?;
        Some((g.source, g.place(at, value)))
    }

    /// Reads the scalar at an offset of a view's buffer; registers are those of `thread`.
    #[inline]
    pub(crate) fn read(
        &mut self,
        view: &View,
        at: i64,
        thread: usize,
        who: &Who,
    ) -> Result<Value, Failure> {
        match view.space {
            Space::Index if view.is_outside(at) => Ok(Value::ZERO),
            Space::Index => Ok(Value::coordinate(at)),
            Space::Gathered(_) if view.is_outside(at) => Ok(Value::ZERO),
            Space::Gathered(i) => {
                let (source, at) = self.gathered(i, at, who)?;
                if !self.global[source].holds(at) {
                    return Err(Failure::Outside);
                }
                match self.global[source].read(at, who) {
                    Ok(value) => value.ok_or(Failure::Undefined),
                    Err(denied) => Err(self.denied(who, denied)),
                }
            }
            Space::Registers(i) => {
                let value = self.registers[i].read(thread, at, who, &self.flights)?;
                value.ok_or(Failure::Undefined)
            }
            Space::Shared(i) => {
                let kernel: &Kernel<'_> = self.kernel;
                let read = self.shared.read(&kernel.shared.buffers[i], at, who);
                read.map_err(|denied| self.denied(who, denied))
            }
            Space::Global(i) | Space::Param(i) => {
                if !self.global[i].holds(at) {
                    return if view.is_outside(at) {
                        Ok(Value::ZERO)
                    } else {
                        Err(Failure::Outside)
                    };
                }
                match self.global[i].read(at, who) {
                    Ok(Some(raw)) => Ok(raw),
                    Ok(None) => Err(Failure::Undefined),
                    Err(denied) => Err(self.denied(who, denied)),
                }
            }
        }
    }

    /// Reads an element of shared memory, like [`Block::read`], by several agents one after the
    /// other. An error contains the index of the failing agent. Appends the granules of the element
    /// to `granules`.
    pub(crate) fn read_by_all<'w>(
        &mut self,
        view: &View,
        at: i64,
        whos: &'w [Who],
        granules: &mut Vec<u32>,
    ) -> Result<Value, (&'w Who, Failure)> {
        let Space::Shared(i) = view.space else { return Err((&whos[0], Failure::Outside)) };
        let kernel: &Kernel<'_> = self.kernel;
        let buffer = &kernel.shared.buffers[i];
        match self.shared.read_by_all(buffer, at, whos) {
            Ok(value) => {
                self.shared.granules(buffer, at, granules);
                Ok(value)
            }
            Err((who, denied)) => Err((who, self.denied(who, denied))),
        }
    }

    /// Reads the elements at `places`, like [`Block::read_by_all`]; each place has its position in
    /// the tile. None if an element cannot be read; then nothing is recorded.
    pub(crate) fn read_tile(
        &mut self,
        view: &View,
        places: impl Iterator<Item = (usize, i64)>,
        whos: &[Who],
        tile: &mut Tile,
        granules: &mut Vec<u32>,
    ) -> Option<()> {
        let Space::Shared(i) = view.space else { return None };
        let buffer = &self.kernel.shared.buffers[i];
        let n = granules.len();
        let read = self.shared.read_tile(buffer, places, whos, tile, granules);
        if read.is_none() {
            granules.truncate(n);
            tile.clear();
        }
        read
    }

    /// Reads an element, like [`Block::read`], by a copy; `counted`: an mbarrier counts the copy.
    pub(crate) fn read_by_copy(
        &mut self,
        view: &View,
        at: i64,
        thread: usize,
        who: &Who,
        counted: bool,
    ) -> Result<Value, Failure> {
        let Space::Global(i) = view.space else { return self.read(view, at, thread, who) };
        if !counted || !self.global[i].holds(at) {
            return self.read(view, at, thread, who);
        }
        match self.global[i].read_by_copy(at, who) {
            Ok(value) => value.ok_or(Failure::Undefined),
            Err(denied) => Err(self.denied(who, denied)),
        }
    }

    /// Writes the scalar at an offset of a view's buffer. With `later`, shared memory receives the
    /// value after a wait.
    #[inline]
    pub(crate) fn write(
        &mut self,
        view: &View,
        at: i64,
        value: Value,
        thread: usize,
        who: &Who,
        later: bool,
    ) -> Result<Option<Pending>, Failure> {
        match view.space {
            // Lowering refuses such writes.
            Space::Index | Space::Param(_) | Space::Gathered(_) => Err(Failure::Outside),
            Space::Registers(i) => {
                self.registers[i].write(thread, at, value, who, &self.flights)?;
                Ok(None)
            }
            Space::Shared(i) => {
                let kernel: &Kernel<'_> = self.kernel;
                let buffer = &kernel.shared.buffers[i];
                let written = self.shared.write(buffer, at, value, who, later);
                written.map_err(|denied| self.denied(who, denied))
            }
            Space::Global(i) => {
                if !self.global[i].holds(at) {
                    return if view.is_outside(at) { Ok(None) } else { Err(Failure::Outside) };
                }
                let written = self.global[i].write(at, value, who).map(|()| None);
                written.map_err(|denied| self.denied(who, denied))
            }
        }
    }

    /// Writes the scalar at an offset, or accumulates a value into it.
    pub(crate) fn put(
        &mut self,
        view: &View,
        at: i64,
        value: Value,
        thread: usize,
        who: &Who,
        op: Option<AccumulateOp>,
    ) -> Result<(), Failure> {
        match op {
            None => self.write(view, at, value, thread, who, false).map(drop),
            Some(op) => self.accumulate(view, at, value, thread, who, op),
        }
    }

    /// Accumulates a value into the scalar at an offset, with an atomic operation.
    pub(crate) fn accumulate(
        &mut self,
        view: &View,
        at: i64,
        value: Value,
        thread: usize,
        who: &Who,
        op: AccumulateOp,
    ) -> Result<(), Failure> {
        let shadows = self.shadows;
        let combine = |old| accumulated(op, view.scalar, old, value, shadows);
        match view.space {
            Space::Index | Space::Param(_) | Space::Gathered(_) => Err(Failure::Outside),
            Space::Registers(_) => {
                let old = self.read(view, at, thread, who)?;
                self.write(view, at, combine(old), thread, who, false).map(drop)
            }
            Space::Shared(i) => {
                let kernel: &Kernel<'_> = self.kernel;
                let buffer = &kernel.shared.buffers[i];
                let done = self.shared.accumulate(buffer, at, op, combine, who);
                done.map_err(|denied| self.denied(who, denied))
            }
            Space::Global(i) => {
                if !self.global[i].holds(at) {
                    return if view.is_outside(at) { Ok(()) } else { Err(Failure::Outside) };
                }
                let done = self.global[i].accumulate(at, value, op, combine, who);
                done.map_err(|denied| self.denied(who, denied))
            }
        }
    }

    /// The scalar at an offset, including pending writes, without recording the read.
    #[inline]
    pub(crate) fn peek(&self, view: &View, at: i64, thread: usize) -> Option<Value> {
        if view.is_outside(at) {
            return Some(Value::ZERO);
        }
        match view.space {
            Space::Index => Some(Value::coordinate(at)),
            Space::Gathered(i) => {
                let (source, at) = self.found(i, at)?;
                self.global[source].peek(at)
            }
            Space::Registers(i) => self.registers[i].peek(thread, at),
            Space::Shared(i) => self.shared.peek(&self.kernel.shared.buffers[i], at),
            Space::Global(i) | Space::Param(i) => self.global[i].peek(at),
        }
    }

    /// The thread and the statement of the last write at an offset; no thread for the collective.
    pub(crate) fn writer(&self, view: &View, at: i64, thread: usize) -> Option<(Option<u16>, u32)> {
        if view.is_outside(at) {
            return None;
        }
        let last = match view.space {
            Space::Index | Space::Param(_) => return None,
            Space::Gathered(i) => {
                let (source, at) = self.found(i, at)?;
                self.global[source].writer(at)?
            }
            Space::Registers(i) => {
                return Some((Some(thread as u16), self.registers[i].writer(thread, at)?));
            }
            Space::Shared(i) => self.shared.writer(&self.kernel.shared.buffers[i], at)?,
            Space::Global(i) => self.global[i].writer(at)?,
        };
        Some(((last.thread != u16::MAX).then_some(last.thread), last.site))
    }

    /// The byte offset of an element's vector from the start of the buffer; none for registers and
    /// for elements that do not exist.
    pub(crate) fn byte_offset(&self, view: &View, at: i64) -> Option<i64> {
        if view.is_outside(at) {
            return None;
        }
        let bits = view.scalar.bits();
        match view.space {
            Space::Registers(_) | Space::Index | Space::Param(_) => None,
            Space::Global(_) => Some(at.saturating_mul(bits).div_euclid(8)),
            Space::Gathered(i) => {
                self.found(i, at).map(|(_, at)| at.saturating_mul(bits).div_euclid(8))
            }
            Space::Shared(i) => {
                let buffer = &self.kernel.shared.buffers[i];
                Shared::address(buffer, at).map(|(byte, _)| byte as i64)
            }
        }
    }
}
