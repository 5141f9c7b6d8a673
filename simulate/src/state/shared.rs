//! Stores the shared memory of a block ([`Shared`]): its bytes and their states. All accesses to it
//! are checked here.
//!
//! A byte is undefined, defined, *pending* (the destination of an asynchronous copy without a
//! completed wait), or part of an mbarrier. Pending bytes may be neither read nor written. Scalars
//! smaller than a byte share the state of their byte. Each granule also has its shadow, its history
//! for the race detector, the number of asynchronous instructions that still read it, and the
//! tensor and loop iteration that wrote it last.

mod tile;

use super::Who;
use super::race::{History, LastWrite};
use super::value::{Shadows, Value};
use crate::num::decode;
use crate::plan::{SharedBuffer, SharedPlan};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

#[derive(Copy, Clone, PartialEq, Eq)]
enum State {
    Undefined,
    Defined,
    Pending,
    /// Part of an initialized mbarrier; this state is permanent.
    Mbarrier,
}

/// The shared memory of one block.
pub(crate) struct Shared {
    bytes: Vec<u8>,
    /// The future contents of pending bytes.
    coming: Vec<u8>,
    states: Vec<State>,
    history: History,
    /// The binary logarithm of the number of bytes of a granule.
    granule: u32,
    /// For each granule, the number of asynchronous instructions that read it, and the statement of
    /// the last; empty until the first such instruction.
    busy: Vec<(u32, u32)>,
    /// The statements in which several threads wrote an equal value to one element.
    pub repeated: BTreeSet<u32>,
    /// The shadow of the scalar that begins at each granule, pending or defined.
    shadows: Shadows,
    /// The kind of the last write at each granule; empty without shadows.
    kinds: Vec<Kind>,
    /// The owner that last wrote each granule; empty if no buffers share bytes and none is
    /// allocated repeatedly.
    owners: Vec<Owner>,
    /// For each number of loops around an allocation, the current iterations of the threads.
    turns: Vec<u32>,
}

/// The scalar that a granule belongs to, by its last write.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Kind {
    /// No scalar with a shadow.
    Other,
    /// The first granule of a scalar of this type.
    First(Scalar),
    /// A later granule of that scalar.
    Rest,
}

/// A buffer, by its number, in an iteration of the loops around its allocation.
#[derive(Copy, Clone, PartialEq, Eq)]
struct Owner {
    buffer: u32,
    turn: u32,
}

/// Consecutive pending elements.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Pending {
    byte: u32,
    bytes: u32,
    site: u32,
}

impl Pending {
    /// The statement that issued the copy.
    pub(crate) fn site(&self) -> u32 {
        self.site
    }
}

/// The reason why an access to memory is not allowed.
pub(crate) enum Denied {
    /// The element is outside of the buffer.
    Outside,
    /// The element was never written.
    Undefined,
    /// A pending copy of this statement writes the element.
    Pending(u32),
    /// More elements are accessed than can be tracked.
    TooMuch,
    /// Another thread's access is not ordered with this access.
    Clash(super::clash::Clash),
    /// Another thread wrote a different value in the same execution of the statement.
    Overlap(u16),
    /// An asynchronous instruction, issued by the statement, still reads the element.
    Busy(u32),
    /// The access is one of data, in the bytes of a live mbarrier.
    Mbarrier,
    /// This statement last wrote the bytes as an element of another buffer.
    Other(u32),
    /// This statement last wrote the element in another iteration of the loops around the buffer's
    /// allocation.
    Earlier(u32),
}

impl Shared {
    /// Undefined memory for `agents` agents.
    pub(crate) fn new(plan: &SharedPlan, agents: usize, shadows: bool) -> Self {
        let granule = plan.granule.max(1).ilog2();
        let granules = plan.size.div_ceil(1 << granule);
        Shared {
            bytes: vec![0; plan.size],
            coming: vec![0; plan.size],
            states: vec![State::Undefined; plan.size],
            history: History::new(granules, agents),
            granule,
            busy: Vec::new(),
            repeated: BTreeSet::new(),
            shadows: Shadows::new(granules, shadows),
            kinds: vec![Kind::Other; if shadows { granules } else { 0 }],
            owners: vec![
                Owner { buffer: 0, turn: 0 };
                if plan.has_owners() { granules } else { 0 }
            ],
            turns: vec![],
        }
    }

    /// Sets the current loop iterations of the running threads, the outermost loop first.
    pub(crate) fn enter(&mut self, trips: impl Iterator<Item = u64>) {
        /// Odd, so that all iterations of the innermost loop differ.
        const FACTOR: u32 = 0x9e37_79b1;
        self.turns.clear();
        let turn = |all: &mut u32, trip: u64| {
            *all = all.wrapping_mul(FACTOR).wrapping_add(trip as u32);
            Some(*all)
        };
        self.turns.extend(trips.scan(0, turn));
    }

    /// The owner for a buffer in the current iteration.
    fn owner(&self, buffer: &SharedBuffer) -> Owner {
        let turn = buffer.loops.checked_sub(1).and_then(|i| self.turns.get(i));
        Owner { buffer: buffer.number as u32, turn: turn.copied().unwrap_or(0) }
    }

    /// Records the owner of a written element.
    #[inline]
    fn own(&mut self, buffer: &SharedBuffer, byte: usize) {
        if !self.owners.is_empty() {
            let (owner, span) = (self.owner(buffer), self.span(buffer, byte));
            self.owners[span].fill(owner);
        }
    }

    /// Checks that an element was written by its present owner.
    #[inline]
    fn is_own(&self, buffer: &SharedBuffer, byte: usize) -> Result<(), Denied> {
        if self.owners.is_empty() || buffer.mbarriers {
            return Ok(());
        }
        let owner = self.owner(buffer);
        let Some(granule) = self.span(buffer, byte).find(|g| self.owners[*g] != owner) else {
            return Ok(());
        };
        let site = self.history.last_write(granule).map_or(0, |w| w.site);
        Err(match self.owners[granule].buffer == owner.buffer {
            true => Denied::Earlier(site),
            false => Denied::Other(site),
        })
    }

    /// The granules of an element at a byte.
    fn span(&self, buffer: &SharedBuffer, byte: usize) -> std::ops::RangeInclusive<usize> {
        let n = buffer.bits.div_ceil(8) as usize;
        byte >> self.granule..=(byte + n - 1) >> self.granule
    }

    /// The bits at a byte with their shadow: that of the scalar that was written there, if the type
    /// is the buffer's and no part of the scalar was overwritten.
    fn value(&self, buffer: &SharedBuffer, byte: usize, bits: u64) -> Value {
        if !self.shadows.are_on() {
            return Value { bits, shadow: 0.0 };
        }
        let (first, last) = self.span(buffer, byte).into_inner();
        let kept = self.kinds[first] == Kind::First(buffer.scalar)
            && self.kinds[first + 1..=last].iter().all(|k| *k == Kind::Rest);
        let shadow = if kept { self.shadows.get(first) } else { decode(buffer.scalar, bits) };
        Value { bits, shadow }
    }

    /// Stores the shadow of a value written at a byte.
    fn keep(&mut self, buffer: &SharedBuffer, byte: usize, shadow: f64) {
        if !self.shadows.are_on() {
            return;
        }
        let (first, last) = self.span(buffer, byte).into_inner();
        if buffer.bits < 8 {
            // Several elements share a granule.
            self.kinds[first] = Kind::Other;
            return;
        }
        self.shadows.set(first, shadow);
        self.kinds[first] = Kind::First(buffer.scalar);
        self.kinds[first + 1..=last].fill(Kind::Rest);
    }

    /// Appends the granules of an element.
    pub(crate) fn granules(&self, buffer: &SharedBuffer, at: i64, to: &mut Vec<u32>) {
        if let Some((byte, _)) = Self::address(buffer, at) {
            to.extend(self.span(buffer, byte).map(|granule| granule as u32));
        }
    }

    /// Records that `reads` asynchronous instructions of a statement begin to read these granules.
    pub(crate) fn begin_reads(&mut self, reads: u32, granules: &[u32], site: u32) {
        if self.busy.is_empty() {
            self.busy = vec![(0, 0); self.bytes.len().div_ceil(1 << self.granule)];
        }
        for g in granules {
            let (n, by) = &mut self.busy[*g as usize];
            (*n, *by) = (*n + reads, site);
        }
    }

    /// Records that an instruction has read these granules; later writes must come after this.
    pub(crate) fn end_read(&mut self, granules: &[u32], who: &Who, of_warp: bool) {
        for g in granules {
            let (n, _) = &mut self.busy[*g as usize];
            *n = n.saturating_sub(1);
        }
        self.history.end_reads(granules, who, of_warp);
    }

    /// The byte address of a scalar and its first bit there; none outside of the buffer.
    #[inline]
    pub(crate) fn address(buffer: &SharedBuffer, at: i64) -> Option<(usize, u32)> {
        if at < 0 || at >= buffer.len {
            return None;
        }
        let bit = at * i64::from(buffer.bits);
        let mut byte = bit / 8;
        if let Some(swizzle) = buffer.swizzle {
            byte = swizzle.apply(byte);
        }
        let end = (buffer.len * i64::from(buffer.bits) + 7) / 8;
        let size = i64::from(buffer.bits.div_ceil(8));
        (byte >= 0 && byte + size <= end).then_some((buffer.at + byte as usize, (bit % 8) as u32))
    }

    #[inline]
    fn load(bytes: &[u8], byte: usize, bit: u32, bits: u32) -> u64 {
        let at = &bytes[byte..];
        match bits {
            64 => at.first_chunk().map_or(0, |raw| u64::from_le_bytes(*raw)),
            32 => at.first_chunk().map_or(0, |raw| u64::from(u32::from_le_bytes(*raw))),
            16 => at.first_chunk().map_or(0, |raw| u64::from(u16::from_le_bytes(*raw))),
            8 => u64::from(at[0]),
            _ => u64::from(at[0]) >> bit & ((1 << bits) - 1),
        }
    }

    #[inline]
    fn store(bytes: &mut [u8], byte: usize, bit: u32, bits: u32, value: u64) {
        let at = &mut bytes[byte..];
        match bits {
            64 => at[..8].copy_from_slice(&value.to_le_bytes()),
            32 => at[..4].copy_from_slice(&(value as u32).to_le_bytes()),
            16 => at[..2].copy_from_slice(&(value as u16).to_le_bytes()),
            8 => at[0] = value as u8,
            _ => {
                let mask = ((1u16 << bits) - 1) as u8;
                at[0] = at[0] & !(mask << bit) | (value as u8 & mask) << bit;
            }
        }
    }

    /// Reads an element.
    #[inline]
    pub(crate) fn read(
        &mut self,
        buffer: &SharedBuffer,
        at: i64,
        who: &Who,
    ) -> Result<Value, Denied> {
        self.read_by_all(buffer, at, std::slice::from_ref(who)).map_err(|(_, denied)| denied)
    }

    /// Reads an element by several agents, one after the other. An error contains the index of the
    /// failing agent.
    #[inline]
    pub(crate) fn read_by_all<'w>(
        &mut self,
        buffer: &SharedBuffer,
        at: i64,
        whos: &'w [Who],
    ) -> Result<Value, (&'w Who, Denied)> {
        let Some((byte, bit)) = Self::address(buffer, at) else {
            return Err((&whos[0], Denied::Outside));
        };
        let granules = self.span(buffer, byte);
        for (i, who) in whos.iter().enumerate() {
            for granule in granules.clone() {
                let clash = self.history.before_read(granule, who);
                clash.map_err(|clash| (who, Denied::Clash(clash)))?;
            }
            if i == 0 {
                self.is_readable(buffer, byte).map_err(|denied| (who, denied))?;
            }
        }
        let (first, last) = granules.into_inner();
        let all: [u32; 8] = std::array::from_fn(|i| (first + i) as u32);
        self.history.note_reads(&all[..=last - first], whos);
        Ok(self.value(buffer, byte, Self::load(&self.bytes, byte, bit, buffer.bits)))
    }

    /// Checks that an element at a byte is defined and was written by its present owner.
    #[inline]
    fn is_readable(&self, buffer: &SharedBuffer, byte: usize) -> Result<(), Denied> {
        let n = buffer.bits.div_ceil(8) as usize;
        for state in &self.states[byte..byte + n] {
            match state {
                State::Defined => {}
                State::Undefined => return Err(Denied::Undefined),
                State::Pending => return Err(self.pending(byte)),
                State::Mbarrier if buffer.mbarriers => {}
                State::Mbarrier => return Err(Denied::Mbarrier),
            }
        }
        self.is_own(buffer, byte)
    }

    fn pending(&self, byte: usize) -> Denied {
        Denied::Pending(self.history.last_write(byte >> self.granule).map_or(0, |w| w.site))
    }

    /// Writes an element. With `later`, an asynchronous copy writes it, and the caller stores the
    /// returned pending element until the wait.
    #[inline]
    pub(crate) fn write(
        &mut self,
        buffer: &SharedBuffer,
        at: i64,
        value: Value,
        who: &Who,
        later: bool,
    ) -> Result<Option<Pending>, Denied> {
        let (byte, bit) = Self::address(buffer, at).ok_or(Denied::Outside)?;
        let n = buffer.bits.div_ceil(8) as usize;
        if let Some(neighbor) = self.history.neighbor(byte >> self.granule, who) {
            let from = if later { &self.coming } else { &self.bytes };
            if Self::load(from, byte, bit, buffer.bits) != value.bits {
                return Err(Denied::Overlap(neighbor));
            }
            for granule in self.span(buffer, byte) {
                self.history.write(granule, who).map_err(Denied::Clash)?;
            }
            self.repeated.insert(who.site);
            return Ok(None);
        }
        let granules = self.span(buffer, byte);
        if let Some((_, site)) =
            self.busy.get(granules.clone()).and_then(|b| b.iter().find(|(n, _)| *n > 0))
        {
            return Err(Denied::Busy(*site));
        }
        // Several elements of less than a byte are written at once.
        let beside = buffer.bits < 8 && self.history.itself(byte >> self.granule, who);
        for granule in granules {
            self.history.write(granule, who).map_err(Denied::Clash)?;
        }
        let states = &mut self.states[byte..byte + n];
        if later && beside && states.contains(&State::Pending) {
            Self::store(&mut self.coming, byte, bit, buffer.bits, value.bits);
            return Ok(None);
        }
        if states.contains(&State::Pending) {
            return Err(self.pending(byte));
        }
        if !buffer.mbarriers && states.contains(&State::Mbarrier) {
            return Err(Denied::Mbarrier);
        }
        if later {
            states.fill(State::Pending);
            self.own(buffer, byte);
            self.coming[byte..byte + n].copy_from_slice(&self.bytes[byte..byte + n]);
            Self::store(&mut self.coming, byte, bit, buffer.bits, value.bits);
            // No thread can read the shadow before the element is complete.
            self.keep(buffer, byte, value.shadow);
            return Ok(Some(Pending { byte: byte as u32, bytes: n as u32, site: who.site }));
        }
        states.fill(if buffer.mbarriers { State::Mbarrier } else { State::Defined });
        self.own(buffer, byte);
        Self::store(&mut self.bytes, byte, bit, buffer.bits, value.bits);
        self.keep(buffer, byte, value.shadow);
        Ok(None)
    }

    /// Accumulates a value into an element. `combine` is the operation's function for its type.
    pub(crate) fn accumulate(
        &mut self,
        buffer: &SharedBuffer,
        at: i64,
        op: AccumulateOp,
        combine: impl Fn(Value) -> Value,
        who: &Who,
    ) -> Result<(), Denied> {
        let (byte, bit) = Self::address(buffer, at).ok_or(Denied::Outside)?;
        let n = buffer.bits.div_ceil(8) as usize;
        let granules = self.span(buffer, byte);
        let busy = self.busy.get(granules.clone());
        if let Some((_, site)) = busy.and_then(|b| b.iter().find(|(n, _)| *n > 0)) {
            return Err(Denied::Busy(*site));
        }
        for granule in granules {
            self.history.accumulate(granule, op, who).map_err(Denied::Clash)?;
        }
        for state in &self.states[byte..byte + n] {
            match state {
                State::Defined => {}
                State::Undefined => return Err(Denied::Undefined),
                State::Pending => return Err(self.pending(byte)),
                State::Mbarrier => return Err(Denied::Mbarrier),
            }
        }
        self.is_own(buffer, byte)?;
        let old = Self::load(&self.bytes, byte, bit, buffer.bits);
        let value = combine(self.value(buffer, byte, old));
        Self::store(&mut self.bytes, byte, bit, buffer.bits, value.bits);
        self.keep(buffer, byte, value.shadow);
        Ok(())
    }

    /// Completes pending elements: threads that come after `write` may read them.
    pub(crate) fn complete(&mut self, pending: &Pending, mut write: LastWrite) {
        write.site = pending.site;
        let (from, to) = (pending.byte as usize, (pending.byte + pending.bytes) as usize);
        self.bytes[from..to].copy_from_slice(&self.coming[from..to]);
        self.states[from..to].fill(State::Defined);
        for granule in from >> self.granule..=(to - 1) >> self.granule {
            self.history.note_write(granule, write);
        }
    }

    /// The value of an element, including pending writes; none if undefined or outside of the
    /// buffer.
    pub(crate) fn peek(&self, buffer: &SharedBuffer, at: i64) -> Option<Value> {
        let (byte, bit) = Self::address(buffer, at)?;
        let n = buffer.bits.div_ceil(8) as usize;
        let states = &self.states[byte..byte + n];
        if states.contains(&State::Undefined) {
            return None;
        }
        let from = if states.contains(&State::Pending) { &self.coming } else { &self.bytes };
        Some(self.value(buffer, byte, Self::load(from, byte, bit, buffer.bits)))
    }

    /// The last write of an element.
    pub(crate) fn writer(&self, buffer: &SharedBuffer, at: i64) -> Option<LastWrite> {
        let (byte, _) = Self::address(buffer, at)?;
        self.history.last_write(byte >> self.granule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Names;
    use crate::state::clock::Clocks;

    /// Two buffers on the same bytes.
    fn buffers() -> (SharedPlan, [SharedBuffer; 2]) {
        let buffer = |scalar: Scalar| SharedBuffer {
            at: 0,
            len: 64 / scalar.bits(),
            scalar,
            bits: scalar.bits() as u32,
            mbarriers: false,
            number: 0,
            loops: 0,
            swizzle: None,
            names: Names::numbered("s"),
        };
        let plan = SharedPlan { size: 8, granule: 2, buffers: Vec::new() };
        (plan, [buffer(Scalar::F32), buffer(Scalar::F16)])
    }

    #[test]
    fn shadows_begin_again_where_bits_become_another_type() {
        let (plan, [wide, narrow]) = buffers();
        let clocks = Clocks::new(1, 32, 0);
        let mut shared = Shared::new(&plan, clocks.n_readers(), true);
        let who = |serial| clocks.warp(0, 0, 0, serial);
        let third = Value { bits: u64::from((1.0f32 / 3.0).to_bits()), shadow: 1.0 / 3.0 };
        shared.write(&wide, 0, third, &who(1), false).ok().unwrap();
        shared.write(&wide, 1, third, &who(2), false).ok().unwrap();
        let shadow = |shared: &mut Shared, buffer: &SharedBuffer, at| {
            shared.read(buffer, at, &who(9)).ok().unwrap().shadow
        };
        assert_eq!(shadow(&mut shared, &wide, 0), 1.0 / 3.0);
        // Half of the bits is a different number, which starts a new shadow.
        let half = decode(Scalar::F16, third.bits & 0xffff);
        assert_eq!(shadow(&mut shared, &narrow, 0), half);
        // After half of it is overwritten, the shadow of the rest is lost.
        let zero = Value { bits: 0, shadow: 1e-9 };
        shared.write(&narrow, 1, zero, &who(3), false).ok().unwrap();
        assert_eq!(shadow(&mut shared, &narrow, 1), 1e-9);
        let cut = f64::from(f32::from_bits(third.bits as u32 & 0xffff));
        assert_eq!(shadow(&mut shared, &wide, 0), cut);
        assert_eq!(shadow(&mut shared, &wide, 1), 1.0 / 3.0);
    }
}
