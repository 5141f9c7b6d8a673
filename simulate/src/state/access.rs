//! Accesses of a thread to the elements of a view, with everything that is checked about them.
//!
//! An element that there is not, of a view whose tile reaches over the end of a mode, is zero and
//! is not written; nothing is accessed for it. Its offset is [`crate::plan::OUTSIDE`].

use super::race::Clash;
use super::shared::Denied;
use super::register_use::RegisterFault;
use super::{Block, Pending, Shared, Tile, Value, Who};
use crate::exec::accumulated;
use crate::plan::{Kernel, Space, View};
use carbyne_ir::ast::AccumulateOp;

/// An access that is an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// Outside the buffer.
    Outside,
    /// Read before anything was written.
    Undefined,
    /// A copy, issued by the statement, has not been waited for.
    Pending(u32),
    /// More global memory is touched by a block than can be kept track of.
    TooMuch,
    /// Another thread's access is not ordered with it.
    Clash(Clash),
    /// Another thread wrote another value in the same execution of the statement.
    Overlap(u16),
    /// An asynchronous instruction, issued by the statement, still reads it.
    Busy(u32),
    /// A register that was accessed since the warp's last fence.
    Unfenced,
    /// Data where a live mbarrier is.
    Mbarrier,
    /// It was written last, by the statement, as an element of another tensor that lies there.
    Other(u32),
    /// It was written last, by the statement, in another turn of the loops in which its tensor is
    /// allocated.
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
    /// Keeps who was denied an access, and because of which earlier one.
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

    /// Where an offset of a gathered buffer is in its source: through the coordinate, which is
    /// read.
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

    /// The same without trace; none where nothing is known of the coordinate.
    fn found(&self, i: usize, at: i64) -> Option<(usize, i64)> {
        let g = &self.kernel.gathers[i];
        let value = self.global[g.index].peek(at.div_euclid(g.unit))?;
        Some((g.source, g.place(at, value)))
    }

    /// Reads the scalar at an offset of a view's buffer, of `thread`'s own for registers.
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

    /// As [`Block::read`] of shared memory, by several, one after the other. An error says whose
    /// access it was. Adds the granules of the element to others.
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

    /// As [`Block::read_by_all`] of the elements at some offsets, each with its place in the tile,
    /// which has as many. None where one of them cannot be read; then nothing has been.
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

    /// As [`Block::read`], by a copy; `counted`: by an mbarrier.
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

    /// Writes the scalar at an offset of a view's buffer. With `later`, shared memory gets it after
    /// a wait.
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
            // Refused before anything runs.
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

    /// Accumulates a value into the scalar at an offset, by an atomic operation.
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

    /// The scalar at an offset as it is or will be after its wait, without trace.
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

    /// Thread and statement of the last write at an offset; the thread is none for the collective.
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

    /// Byte offset from the start of the buffer at which an element's vector begins; none in
    /// registers, and of an element that there is not.
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
