//! Global memory: what the caller provides, and what each block writes over it.
//!
//! Blocks do not see each other's writes: nothing orders them. Memory is kept in pages of [`PAGE`]
//! elements, and inputs are generated where they are read, so that large problems take little
//! memory.

use super::Who;
use super::race::{LastWrite, Shadow};
use super::shared::Denied;
use super::pending_global::{USES_BYTES, UnderWay};
use super::value::{Shadows, Value};
use crate::inputs::Initial;
use crate::plan::Inverse;
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::scalar::Scalar;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Most bytes that are kept of what one block does to one buffer.
const MAX_BYTES: usize = 1 << 28;

/// Elements of a page.
pub(crate) const PAGE: usize = 64;

/// Elements that have been written.
#[derive(Clone)]
pub(crate) struct Written {
    values: [u64; PAGE],
    shadows: Shadows,
    /// One bit an element.
    pub mask: u64,
}

impl Written {
    /// None yet.
    pub(crate) fn new(shadows: bool) -> Self {
        Written { values: [0; PAGE], shadows: Shadows::new(PAGE, shadows), mask: 0 }
    }

    /// How many elements have been written.
    pub(crate) fn n_written(&self) -> u32 {
        self.mask.count_ones()
    }

    /// Forgets an element.
    pub(crate) fn remove(&mut self, i: usize) {
        self.mask &= !(1 << i);
    }

    /// Whether an element has been written.
    #[inline]
    pub(crate) fn has(&self, i: usize) -> bool {
        self.mask >> i & 1 == 1
    }

    /// What an element was written to be.
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

    /// Takes over what another page holds and this one does not.
    pub(crate) fn merge_missing(&mut self, other: &Written) {
        for i in (0..PAGE).filter(|i| !self.has(*i)).collect::<Vec<_>>() {
            if let Some(value) = other.get(i) {
                self.set(i, value);
            }
        }
    }

    /// Takes over what another page holds.
    pub(crate) fn merge(&mut self, other: &Written) {
        for i in 0..PAGE {
            if let Some(value) = other.get(i) {
                self.set(i, value);
            }
        }
    }
}

/// Elements of a buffer that have been written, by pages.
#[derive(Default)]
pub(crate) struct Pages {
    map: HashMap<u64, Written, BuildHasherDefault<PageHasher>>,
}

impl Pages {
    /// What an element was written to be.
    #[inline]
    pub(crate) fn get(&self, at: i64) -> Option<Value> {
        if self.map.is_empty() || at < 0 {
            return None;
        }
        self.map.get(&(at as u64 / PAGE as u64))?.get(at as usize % PAGE)
    }

    /// Whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Writes an element; none at a negative offset.
    pub(crate) fn set(&mut self, at: i64, value: Value, shadows: bool) {
        let Ok(at) = u64::try_from(at) else { return };
        self.page(at / PAGE as u64, shadows).set(at as usize % PAGE, value);
    }

    /// A page to write to.
    pub(crate) fn page(&mut self, number: u64, shadows: bool) -> &mut Written {
        self.map.entry(number).or_insert_with(|| Written::new(shadows))
    }

    /// Takes over what others hold: what is there already, too, or only what is not.
    pub(crate) fn merge(&mut self, others: &Pages, shadows: bool, over: bool) {
        // Each page for itself, in any order.
        for (number, other) in others.sorted() {
            let page = self.page(number, shadows);
            match over {
                true => page.merge(other),
                false => page.merge_missing(other),
            }
        }
    }

    /// Gives every element that was written another shadow.
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

    /// The elements in order, by offset.
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

/// A buffer of the caller, as it is before a kernel.
pub(crate) struct GlobalMemory {
    /// Its name, without `%`.
    pub name: String,
    /// The scalar type of its elements.
    pub scalar: Scalar,
    /// Scalars.
    pub len: i64,
    /// From offsets to elements of the declared tensor.
    pub inverse: Inverse,
    /// What the caller put there.
    pub initial: Initial,
    /// What earlier kernels wrote.
    pub pages: Pages,
    /// All of it as a device left it, where one computed it; then nothing else counts.
    pub image: Option<Arc<[u8]>>,
    /// Whether values have shadows.
    pub shadows: bool,
}

impl GlobalMemory {
    /// The scalar at an offset; none outside, in gaps and where undefined.
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

/// A page of a block's own.
pub(crate) struct Page {
    /// What it wrote.
    pub written: Written,
    /// Who accessed it.
    pub shadow: Shadow,
    /// What was put to elements that the block touched in no other way since, in its order. What
    /// they were before is another block's business too.
    pub sums: BTreeMap<usize, Sum>,
    /// Elements that were read by copies which an mbarrier counts, each with the last one's
    /// statement.
    copied: BTreeMap<usize, u32>,
}

/// Values accumulated into an element by one operation.
pub(crate) struct Sum {
    /// The operation.
    pub op: AccumulateOp,
    /// In the block's order.
    pub values: Vec<Value>,
}

impl Page {
    /// A read of an element, if any: its statement.
    pub(crate) fn any_read(&self, i: usize) -> Option<u32> {
        self.shadow.any_read(i).or_else(|| self.copied.get(&i).copied())
    }

    /// What the block put to an element that it touched in no other way.
    pub(crate) fn only_sum(&self, i: usize) -> Option<&Sum> {
        self.sums.get(&i).filter(|_| self.any_read(i).is_none())
    }
}

/// A buffer as one block sees it.
pub(crate) struct BlockGlobal<'m> {
    /// As it was.
    pub memory: &'m GlobalMemory,
    /// Whether the kernel writes it; else nothing is noted.
    tracked: bool,
    agents: usize,
    /// Bytes that pages may still take.
    room: usize,
    /// As of shared memory.
    pub repeated: BTreeSet<u32>,
    under_way: UnderWay,
    pages: HashMap<u64, Box<Page>, BuildHasherDefault<PageHasher>>,
}

/// Spreads page numbers, which come in runs. Their order never reaches an output.
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
    /// Nothing written yet.
    pub(crate) fn new(memory: &'m GlobalMemory, tracked: bool, agents: usize) -> Self {
        let (repeated, pages) = (BTreeSet::new(), HashMap::default());
        let under_way = UnderWay::default();
        BlockGlobal { memory, tracked, agents, room: MAX_BYTES, repeated, under_way, pages }
    }

    fn page(&mut self, at: i64) -> Result<(&mut Page, &mut usize, usize), Denied> {
        let (agents, room) = (self.agents, &mut self.room);
        let page = match self.pages.entry(at as u64 / PAGE as u64) {
            Entry::Occupied(page) => page.into_mut(),
            Entry::Vacant(place) => {
                let shadow = Shadow::new(PAGE, agents);
                let written = Written::new(self.memory.shadows);
                let bytes = shadow.bytes() + size_of::<Page>() + written.shadows.bytes();
                *room = room.checked_sub(bytes).ok_or(Denied::TooMuch)?;
                let page = Page { written, shadow, sums: BTreeMap::new(), copied: BTreeMap::new() };
                place.insert(Box::new(page))
            }
        };
        Ok((page, room, at as usize % PAGE))
    }

    /// Whether the offset is inside.
    pub(crate) fn holds(&self, at: i64) -> bool {
        (0..self.memory.len).contains(&at)
    }

    /// Reads the scalar at an offset inside; none where undefined.
    #[inline]
    pub(crate) fn read(&mut self, at: i64, who: &Who) -> Result<Option<Value>, Denied> {
        if !self.tracked {
            return Ok(self.memory.read(at));
        }
        if !self.under_way.is_empty() {
            self.under_way.before_read(at)?;
        }
        let (page, room, i) = self.page(at)?;
        let before = page.shadow.bytes();
        page.shadow.read(i, who).map_err(Denied::Clash)?;
        *room = room.checked_sub(page.shadow.bytes() - before).ok_or(Denied::TooMuch)?;
        match page.written.get(i) {
            Some(value) => Ok(Some(value)),
            None => Ok(self.memory.read(at)),
        }
    }

    /// As [`BlockGlobal::read`], for a copy that an mbarrier counts: when it has read is known to
    /// who waits for that, and not to the thread that issued it.
    pub(crate) fn read_by_copy(&mut self, at: i64, who: &Who) -> Result<Option<Value>, Denied> {
        if self.tracked {
            self.under_way.before_read(at)?;
            let (page, _, i) = self.page(at)?;
            page.shadow.before_read(i, who).map_err(Denied::Clash)?;
            page.copied.insert(i, who.site);
        }
        Ok(self.peek(at))
    }

    /// Writes the scalar at an offset inside.
    #[inline]
    pub(crate) fn write(&mut self, at: i64, value: Value, who: &Who) -> Result<(), Denied> {
        if !self.under_way.is_empty() {
            self.under_way.before_write(at, None, who)?;
        }
        let (page, _, i) = self.page(at)?;
        if let Some(neighbor) = page.shadow.neighbor(i, who) {
            if page.written.get(i).is_none_or(|there| there.bits != value.bits) {
                return Err(Denied::Overlap(neighbor));
            }
            page.shadow.write(i, who).map_err(Denied::Clash)?;
            self.repeated.insert(who.site);
            return Ok(());
        }
        page.shadow.write(i, who).map_err(Denied::Clash)?;
        page.sums.remove(&i);
        page.written.set(i, value);
        Ok(())
    }

    /// Accumulates a value into the element at an offset inside by `combine`, the function of its
    /// type for the operation.
    pub(crate) fn accumulate(
        &mut self,
        at: i64,
        value: Value,
        op: AccumulateOp,
        combine: impl Fn(Value) -> Value,
        who: &Who,
    ) -> Result<(), Denied> {
        let memory = self.memory;
        if !self.under_way.is_empty() {
            self.under_way.before_write(at, Some(op), who)?;
        }
        let (page, room, i) = self.page(at)?;
        let before = page.shadow.bytes();
        page.shadow.accumulate(i, op, who).map_err(Denied::Clash)?;
        let grown = page.shadow.bytes() - before + size_of::<Sum>();
        *room = room.checked_sub(grown).ok_or(Denied::TooMuch)?;
        let is_written = page.written.has(i);
        let old = page.written.get(i).or_else(|| memory.read(at));
        page.written.set(i, combine(old.ok_or(Denied::Undefined)?));
        match page.sums.get_mut(&i) {
            Some(sum) if sum.op == op => sum.values.push(value),
            // With another operation before, or a plain write, the order counts.
            Some(_) => drop(page.sums.remove(&i)),
            None if is_written => {}
            None => drop(page.sums.insert(i, Sum { op, values: vec![value] })),
        }
        Ok(())
    }

    /// A copy of a statement reads an offset until it is complete. Whether anybody has to know:
    /// whether the kernel writes the buffer.
    pub(crate) fn begin_read(&mut self, at: i64, site: u32) -> Result<bool, Denied> {
        if self.tracked && self.under_way.begin_read(at, site) {
            self.room = self.room.checked_sub(USES_BYTES).ok_or(Denied::TooMuch)?;
        }
        Ok(self.tracked)
    }

    /// It has read it, and somebody has waited for it.
    pub(crate) fn end_read(&mut self, at: i64, who: &Who) {
        self.under_way.end_read(at, None);
        if let Some(page) = self.pages.get_mut(&(at as u64 / PAGE as u64)) {
            page.shadow.end_reads(&[(at as usize % PAGE) as u32], who, false);
        }
    }

    /// It has read it, which those know who waited for an mbarrier: its agent, and how many phases
    /// are complete.
    pub(crate) fn land_read(&mut self, at: i64, agent: u16, phases: u32) {
        self.under_way.end_read(at, Some((agent, phases)));
    }

    /// A copy of a statement writes an offset until it is complete, or accumulates into it.
    pub(crate) fn begin_write(
        &mut self,
        at: i64,
        site: u32,
        adds: Option<AccumulateOp>,
    ) -> Result<(), Denied> {
        if self.under_way.begin_write(at, site, adds) {
            self.room = self.room.checked_sub(USES_BYTES).ok_or(Denied::TooMuch)?;
        }
        Ok(())
    }

    /// It has written it, and a thread has waited for it.
    pub(crate) fn end_write(&mut self, at: i64, who: &Who) {
        let adds = self.under_way.end_write(at);
        let Some(page) = self.pages.get_mut(&(at as u64 / PAGE as u64)) else { return };
        let i = at as usize % PAGE;
        match (adds, page.shadow.last_write(i)) {
            (None, Some(last)) => {
                let mut write = LastWrite::by(who).of_copy();
                write.site = last.site;
                page.shadow.note_write(i, write);
            }
            (None, None) => {}
            (Some(op), _) => page.shadow.note_sum(i, op, who),
        }
    }

    /// The scalar at an offset, without trace.
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
        page.shadow.last_write(at as usize % PAGE)
    }

    /// The pages in order.
    pub(crate) fn into_pages(self) -> Vec<(u64, Box<Page>)> {
        let mut pages: Vec<_> = self.pages.into_iter().collect();
        pages.sort_unstable_by_key(|(i, _)| *i);
        pages
    }
}
