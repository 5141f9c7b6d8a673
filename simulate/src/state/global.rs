//! Stores global memory as a block sees it: the caller's tensors before the kernel, and the block's
//! own writes. In buffers that the kernel writes, it also records the block's accesses, to detect
//! races within the block here and races between blocks in [`crate::grid`].
//!
//! Blocks do not see each other's writes, because nothing orders blocks. Memory is stored in pages
//! of [`PAGE`] elements, and inputs are generated when they are read, so large problems need little
//! memory.

use super::Who;
use super::pending_global::{PendingUses, USES_BYTES};
use super::race::{History, LastWrite};
use super::shared::Denied;
use super::value::{Shadows, Value};
use crate::inputs::Initial;
use crate::plan::Inverse;
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::scalar::Scalar;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// The largest number of bytes stored for one block and buffer.
const MAX_BYTES: usize = 1 << 28;

/// The number of elements of a page.
pub(crate) const PAGE: usize = 64;

/// The written elements of a page.
#[derive(Clone)]
pub(crate) struct Written {
    values: [u64; PAGE],
    shadows: Shadows,
    /// The written elements, one bit each.
    pub mask: u64,
}

impl Written {
    /// A page without written elements.
    pub(crate) fn new(shadows: bool) -> Self {
        Written { values: [0; PAGE], shadows: Shadows::new(PAGE, shadows), mask: 0 }
    }

    /// The number of written elements.
    pub(crate) fn n_written(&self) -> u32 {
        self.mask.count_ones()
    }

    /// Removes an element.
    pub(crate) fn remove(&mut self, i: usize) {
        self.mask &= !(1 << i);
    }

    /// Whether an element was written.
    #[inline]
    pub(crate) fn has(&self, i: usize) -> bool {
        self.mask >> i & 1 == 1
    }

    /// The written value of an element.
    #[inline]
    pub(crate) fn get(&self, i: usize) -> Option<Value> {
        self.has(i).then(|| Value { bits: self.values[i], shadow: self.shadows.get(i) })
    }

    /// Writes an element.
    #[inline]
    pub(crate) fn set(&mut self, i: usize, value: Value) {
        self.values[i] = value.bits;
        self.shadows.set(i, value.shadow);
        self.mask |= 1 << i;
    }

    /// Adds the elements of another page that this page lacks.
    pub(crate) fn merge_missing(&mut self, other: &Written) {
        for i in (0..PAGE).filter(|i| !self.has(*i)).collect::<Vec<_>>() {
            if let Some(value) = other.get(i) {
                self.set(i, value);
            }
        }
    }

    /// Adds the elements of another page, and overwrites present ones.
    pub(crate) fn merge(&mut self, other: &Written) {
        for i in 0..PAGE {
            if let Some(value) = other.get(i) {
                self.set(i, value);
            }
        }
    }
}

/// The written elements of a buffer, by pages.
#[derive(Default)]
pub(crate) struct Pages {
    map: HashMap<u64, Written, BuildHasherDefault<PageHasher>>,
}

impl Pages {
    /// The written value of an element.
    #[inline]
    pub(crate) fn get(&self, at: i64) -> Option<Value> {
        if self.map.is_empty() || at < 0 {
            return None;
        }
        self.map.get(&(at as u64 / PAGE as u64))?.get(at as usize % PAGE)
    }

    /// Whether no element was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Writes an element; ignores negative offsets.
    pub(crate) fn set(&mut self, at: i64, value: Value, shadows: bool) {
        let Ok(at) = u64::try_from(at) else { return };
        self.page(at / PAGE as u64, shadows).set(at as usize % PAGE, value);
    }

    /// A page for writes.
    pub(crate) fn page(&mut self, number: u64, shadows: bool) -> &mut Written {
        self.map.entry(number).or_insert_with(|| Written::new(shadows))
    }

    /// Adds the elements of other pages; `over`: overwrites present ones.
    pub(crate) fn merge(&mut self, others: &Pages, shadows: bool, over: bool) {
        // Pages are independent, so their order does not matter.
        for (number, other) in others.sorted() {
            let page = self.page(number, shadows);
            match over {
                true => page.merge(other),
                false => page.merge_missing(other),
            }
        }
    }

    /// Replaces the shadow of every written element.
    pub(crate) fn each_shadow(&mut self, shadow: impl Fn(Value) -> f64) {
        #[expect(clippy::iter_over_hash_type, reason = "each page for itself, in any order")]
        for page in self.map.values_mut() {
            for i in 0..PAGE {
                if let Some(value) = page.get(i) {
                    page.shadows.set(i, shadow(value));
                }
            }
        }
    }

    /// The pages in order.
    pub(crate) fn sorted(&self) -> Vec<(u64, &Written)> {
        let mut all: Vec<_> = self.map.iter().map(|(n, page)| (*n, page)).collect();
        all.sort_unstable_by_key(|(n, _)| *n);
        all
    }

    /// The elements in order, with their offsets.
    pub(crate) fn elements(&self) -> impl Iterator<Item = (i64, Value)> + '_ {
        self.sorted().into_iter().flat_map(|(number, page)| {
            let at = move |i: usize| (number as usize * PAGE + i) as i64;
            (0..PAGE).filter_map(move |i| Some((at(i), page.get(i)?)))
        })
    }
}

impl FromIterator<(u64, Written)> for Pages {
    fn from_iter<I: IntoIterator<Item = (u64, Written)>>(pages: I) -> Self {
        Pages { map: pages.into_iter().collect() }
    }
}

/// A buffer of the caller, before a kernel.
pub(crate) struct GlobalMemory {
    /// The name, without `%`.
    pub name: String,
    /// The scalar type of its elements.
    pub scalar: Scalar,
    /// The number of scalars.
    pub len: i64,
    /// The map from offsets to elements of the declared tensor.
    pub inverse: Inverse,
    /// The initial elements.
    pub initial: Initial,
    /// The writes of earlier kernels.
    pub pages: Pages,
    /// The complete contents after a kernel on a device; replaces `initial` and `pages`.
    pub image: Option<Arc<[u8]>>,
    /// Whether values have shadows.
    pub shadows: bool,
}

impl GlobalMemory {
    /// The scalar at an offset; none outside of the buffer, in gaps, and for undefined elements.
    #[inline]
    pub(crate) fn read(&self, at: i64) -> Option<Value> {
        if !(0..self.len).contains(&at) {
            return None;
        }
        if let Some(value) = self.pages.get(at) {
            return Some(value);
        }
        let element = self.inverse.element(at)?;
        let bits = match &self.image {
            Some(bytes) => crate::packed::unpacked(bytes, self.scalar, at),
            None => self.initial.value(self.scalar, element),
        };
        bits.map(|bits| Value::begin(self.scalar, bits, self.shadows))
    }
}

/// A page of a block.
pub(crate) struct Page {
    /// The written elements.
    pub written: Written,
    /// The accesses.
    pub history: History,
    /// The accumulations, in order, into elements that the block has not accessed in other ways
    /// since. The previous values of these elements depend on other blocks, too.
    pub sums: BTreeMap<usize, Sum>,
    /// The elements that copies counted by an mbarrier have read, each with the statement of the
    /// last copy.
    copied: BTreeMap<usize, u32>,
}

/// Values accumulated into an element by one operation.
pub(crate) struct Sum {
    /// The operation.
    pub op: AccumulateOp,
    /// The values, in the block's order.
    pub values: Vec<Value>,
}

impl Page {
    /// The statement of a read of an element, if any.
    pub(crate) fn any_read(&self, i: usize) -> Option<u32> {
        self.history.any_read(i).or_else(|| self.copied.get(&i).copied())
    }

    /// The accumulations into an element that the block has not accessed in other ways.
    pub(crate) fn only_sum(&self, i: usize) -> Option<&Sum> {
        self.sums.get(&i).filter(|_| self.any_read(i).is_none())
    }
}

/// A buffer as one block sees it.
pub(crate) struct BlockGlobal<'m> {
    /// The buffer before the kernel.
    pub memory: &'m GlobalMemory,
    /// Whether the kernel writes the buffer; otherwise accesses are not recorded.
    tracked: bool,
    agents: usize,
    /// The number of bytes that new pages may still use.
    room: usize,
    /// The statements in which several threads wrote an equal value to one element.
    pub repeated: BTreeSet<u32>,
    pending_uses: PendingUses,
    pages: HashMap<u64, Box<Page>, BuildHasherDefault<PageHasher>>,
}

/// Spreads page numbers, which are consecutive. The order of the hash map does not affect any
/// output.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }
    fn write_u64(&mut self, v: u64) {
        let product = (self.0 ^ v).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }
}

impl<'m> BlockGlobal<'m> {
    /// A buffer without writes.
    pub(crate) fn new(memory: &'m GlobalMemory, tracked: bool, agents: usize) -> Self {
        let (repeated, pages) = (BTreeSet::new(), HashMap::default());
        let pending_uses = PendingUses::default();
        BlockGlobal { memory, tracked, agents, room: MAX_BYTES, repeated, pending_uses, pages }
    }

    fn page(&mut self, at: i64) -> Result<(&mut Page, &mut usize, usize), Denied> {
        let (agents, room) = (self.agents, &mut self.room);
        let page = match self.pages.entry(at as u64 / PAGE as u64) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(place) => {
                let history = History::new(PAGE, agents);
                let written = Written::new(self.memory.shadows);
                let bytes = history.bytes() + size_of::<Page>() + written.shadows.bytes();
                *room = room.checked_sub(bytes).ok_or(Denied::TooMuch)?;
                let page =
                    Page { written, history, sums: BTreeMap::new(), copied: BTreeMap::new() };
                place.insert(Box::new(page))
            }
        };
        Ok((page, room, at as usize % PAGE))
    }

    /// Whether the offset is inside of the buffer.
    pub(crate) fn holds(&self, at: i64) -> bool {
        (0..self.memory.len).contains(&at)
    }

    /// Reads the scalar at an offset inside of the buffer; none if undefined.
    #[inline]
    pub(crate) fn read(&mut self, at: i64, who: &Who) -> Result<Option<Value>, Denied> {
        if !self.tracked {
            return Ok(self.memory.read(at));
        }
        if !self.pending_uses.is_empty() {
            self.pending_uses.before_read(at)?;
        }
        let (page, room, i) = self.page(at)?;
        let before = page.history.bytes();
        page.history.read(i, who).map_err(Denied::Clash)?;
        *room = room.checked_sub(page.history.bytes() - before).ok_or(Denied::TooMuch)?;
        match page.written.get(i) {
            Some(value) => Ok(Some(value)),
            None => Ok(self.memory.read(at)),
        }
    }

    /// Reads a scalar, like [`BlockGlobal::read`], by a copy that an mbarrier counts. Threads that
    /// wait for the mbarrier know that the read is complete; the issuing thread does not.
    pub(crate) fn read_by_copy(&mut self, at: i64, who: &Who) -> Result<Option<Value>, Denied> {
        if self.tracked {
            self.pending_uses.before_read(at)?;
            let (page, _, i) = self.page(at)?;
            page.history.before_read(i, who).map_err(Denied::Clash)?;
            page.copied.insert(i, who.site);
        }
        Ok(self.peek(at))
    }

    /// Writes the scalar at an offset inside of the buffer.
    #[inline]
    pub(crate) fn write(&mut self, at: i64, value: Value, who: &Who) -> Result<(), Denied> {
        if !self.pending_uses.is_empty() {
            self.pending_uses.before_write(at, None, who)?;
        }
        let (page, _, i) = self.page(at)?;
        if let Some(neighbor) = page.history.neighbor(i, who) {
            if page.written.get(i).is_none_or(|there| there.bits != value.bits) {
                return Err(Denied::Overlap(neighbor));
            }
            page.history.write(i, who).map_err(Denied::Clash)?;
            self.repeated.insert(who.site);
            return Ok(());
        }
        page.history.write(i, who).map_err(Denied::Clash)?;
        page.sums.remove(&i);
        page.written.set(i, value);
        Ok(())
    }

    /// Accumulates a value into the element at an offset inside of the buffer. `combine` is the
    /// operation's function for its type.
    pub(crate) fn accumulate(
        &mut self,
        at: i64,
        value: Value,
        op: AccumulateOp,
        combine: impl Fn(Value) -> Value,
        who: &Who,
    ) -> Result<(), Denied> {
        let memory = self.memory;
        if !self.pending_uses.is_empty() {
            self.pending_uses.before_write(at, Some(op), who)?;
        }
        let (page, room, i) = self.page(at)?;
        let before = page.history.bytes();
        page.history.accumulate(i, op, who).map_err(Denied::Clash)?;
        let grown = page.history.bytes() - before + size_of::<Sum>();
        *room = room.checked_sub(grown).ok_or(Denied::TooMuch)?;
        let is_written = page.written.has(i);
        let old = page.written.get(i).or_else(|| memory.read(at));
        page.written.set(i, combine(old.ok_or(Denied::Undefined)?));
        match page.sums.get_mut(&i) {
            Some(sum) if sum.op == op => sum.values.push(value),
            // After another operation or a plain write, the order matters.
            Some(_) => drop(page.sums.remove(&i)),
            None if is_written => {}
            None => drop(page.sums.insert(i, Sum { op, values: vec![value] })),
        }
        Ok(())
    }

    /// Records that a copy of a statement reads an offset until it is complete. Returns whether the
    /// read matters, because the kernel writes the buffer.
    pub(crate) fn begin_read(&mut self, at: i64, site: u32) -> Result<bool, Denied> {
        if self.tracked && self.pending_uses.begin_read(at, site) {
            self.room = self.room.checked_sub(USES_BYTES).ok_or(Denied::TooMuch)?;
        }
        Ok(self.tracked)
    }

    /// Records that a copy has read an element, and that a thread has waited for it.
    pub(crate) fn end_read(&mut self, at: i64, who: &Who) {
        self.pending_uses.end_read(at, None);
        if let Some(page) = self.pages.get_mut(&(at as u64 / PAGE as u64)) {
            page.history.end_reads(&[(at as usize % PAGE) as u32], who, false);
        }
    }

    /// Records that a copy has read an element. Threads that waited for an mbarrier know it: the
    /// mbarrier's agent, and its number of complete phases.
    pub(crate) fn land_read(&mut self, at: i64, agent: u16, phases: u32) {
        self.pending_uses.end_read(at, Some((agent, phases)));
    }

    /// Records that a copy of a statement writes an offset, or accumulates into it, until it is
    /// complete.
    pub(crate) fn begin_write(
        &mut self,
        at: i64,
        site: u32,
        adds: Option<AccumulateOp>,
    ) -> Result<(), Denied> {
        if self.pending_uses.begin_write(at, site, adds) {
            self.room = self.room.checked_sub(USES_BYTES).ok_or(Denied::TooMuch)?;
        }
        Ok(())
    }

    /// Records that a copy has written an element, and that a thread has waited for it.
    pub(crate) fn end_write(&mut self, at: i64, who: &Who) {
        let adds = self.pending_uses.end_write(at);
        let Some(page) = self.pages.get_mut(&(at as u64 / PAGE as u64)) else { return };
        let i = at as usize % PAGE;
        match (adds, page.history.last_write(i)) {
            (None, Some(last)) => {
                let mut write = LastWrite::by(who).of_copy();
                write.site = last.site;
                page.history.note_write(i, write);
            }
            (None, None) => {}
            (Some(op), _) => page.history.note_sum(i, op, who),
        }
    }

    /// The scalar at an offset, without recording a read.
    pub(crate) fn peek(&self, at: i64) -> Option<Value> {
        if self.tracked
            && at >= 0
            && let Some(page) = self.pages.get(&(at as u64 / PAGE as u64))
            && let Some(value) = page.written.get(at as usize % PAGE)
        {
            return Some(value);
        }
        self.memory.read(at)
    }

    /// The last write of the scalar at an offset.
    pub(crate) fn writer(&self, at: i64) -> Option<LastWrite> {
        let page = self.pages.get(&(u64::try_from(at).ok()? / PAGE as u64))?;
        page.history.last_write(at as usize % PAGE)
    }

    /// The pages in order.
    pub(crate) fn into_pages(self) -> Vec<(u64, Box<Page>)> {
        let mut pages: Vec<_> = self.pages.into_iter().collect();
        pages.sort_unstable_by_key(|(i, _)| *i);
        pages
    }
}
