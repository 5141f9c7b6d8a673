//! Computes the time of a kernel from the [`Work`] of each of its operations.
//!
//! *A block alone.* Its operations are issued in order; each begins when its operands are there and
//! keeps its units busy from then on. Registers are read as they arrive, memory when all of it is
//! written. A loop is followed for two iterations; the others take as long as the second, or as its
//! busiest unit. A ring is filled as many iterations ahead as it has stages, so that an iteration
//! takes no less than the copy's latency divided by that number. Threads of different roles have
//! times of their own.
//!
//! *The blocks of one multiprocessor* share its units. Together they take as long as the busiest of
//! these, or as one of them alone, whichever is longer; a part of the other units' cycles and of
//! the waits is not hidden.
//!
//! *The grid* is as many such sets of blocks as it takes, the last of which may be smaller. Each
//! byte of device memory is moved once, and again for every set of blocks if the bytes that the
//! previous set has read do not stay in the second-level cache.

use super::constants::Fitted;
use super::constants::{KEPT_REGISTERS, NEVER};
use super::estimate::{Estimate, Resource};
use super::outline::{Leaf, Node, Outline};
use super::work::Work;
use carbyne_atoms::{ArchLimits, Machine, SECTOR_BYTES};
use carbyne_ir::program::BufferId;

/// What a kernel is timed on, and with.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Timing<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) limits: &'a ArchLimits,
    pub(crate) fitted: &'a Fitted,
    pub(crate) grid: Grid,
    /// Threads of a block, those of a producer included.
    pub(crate) threads: i64,
    /// 32-bit registers that one of them can have.
    pub(crate) room: i64,
}

/// Which grid is timed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Grid {
    /// The kernel's own.
    Own,
    /// As many blocks as any kernel has room for on the machine, or more, the last of which end
    /// together, and whose tensors lie in the second-level cache: what is compared is the kernel.
    Full,
}

/// What one block holds.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Held {
    /// 32-bit registers of a thread that tensors take at once.
    pub(crate) registers: i64,
    /// Bytes of shared memory.
    pub(crate) shared_bytes: i64,
}

/// Units of a multiprocessor.
const UNITS: usize = 5;
const MATRIX: usize = 0;
const ISSUE: usize = 1;
const SPECIAL: usize = 2;
const SHARED: usize = 3;
const GLOBAL: usize = 4;

/// Busy cycles of the units of a multiprocessor: of one scheduler, of shared memory, sectors of
/// global memory.
type Units = [f64; UNITS];

/// Iterations of a loop that are followed before the rest are taken to be like the last.
const FOLLOWED: i64 = 2;

/// Cycles of what `units` says, of so many warps.
fn cycles(units: &Units, warps: f64, t: &Timing<'_>, sector: f64) -> Units {
    let lanes = t.limits.timing.schedulers.min(warps).max(1.0);
    let mut out = *units;
    for own in &mut out[..=SPECIAL] {
        *own /= lanes;
    }
    out[GLOBAL] *= sector;
    out
}

fn most(units: &Units) -> f64 {
    units.iter().copied().fold(0.0, f64::max)
}

fn units(w: &Work, t: &Timing<'_>) -> Units {
    let matrix = if w.asynchronous { w.matrix * t.fitted.sustained } else { w.matrix };
    [matrix, w.issue, w.special, w.wavefronts, w.sectors]
}

/// The time of a kernel whose leaves take so much each.
/// `detours`: cycles of one block besides.
pub(crate) fn estimate(
    outline: &Outline,
    works: &[Work],
    held: Held,
    detours: f64,
    t: &Timing<'_>,
) -> Estimate {
    let limits = t.limits;
    let registers = held.registers.saturating_add(t.fitted.addresses as i64).max(1);
    // Registers are given to threads when a block begins, to all as many.
    let own = registers.min(limits.registers_for(t.threads));
    let resident = limits.resident_blocks(t.threads, own, held.shared_bytes).max(1);
    let fits = limits.has_shared(held.shared_bytes);
    let slots = resident.saturating_mul(t.machine.sms).max(1);
    let blocks = outline.blocks.unwrap_or(slots).max(0);
    let mut total = Units::default();
    let (mut instructions, mut barriers) = (0.0, 0.0);
    for (leaf, w) in outline.leaves.iter().zip(works) {
        let own = units(w, t);
        (0..UNITS).for_each(|i| total[i] += own[i] * leaf.times);
        instructions += w.instructions * leaf.times;
    }
    // Of so many values each goes to memory and back.
    let excess = (registers - limits.regs_per_thread).max(0) as f64;
    let spill = 1.0 + excess / limits.regs_per_thread as f64;
    // Of threads so many that they have fewer than they could address the compiler leaves the
    // fewest, where these are not enough.
    let scarce =
        t.room < limits.regs_per_thread && held.registers.saturating_add(KEPT_REGISTERS) > t.room;
    // Anything that can run is better than what cannot.
    let spill = if fits { spill } else { spill * NEVER };
    let (bytes, far) = traffic(outline, blocks, slots, t);
    let of_block = match t.grid {
        Grid::Own => far / blocks.max(1) as f64,
        Grid::Full => 0.0,
    };
    // A block that has its multiprocessor to itself has its share of device memory, too: that of
    // those that have a block.
    let sms = t.machine.sms.min(blocks).max(1) as f64;
    let dram = of_block / dram_rate(t, sms) / total[GLOBAL].max(1.0);
    let sector = dram.max(SECTOR_BYTES as f64 / l2_rate(t, sms));
    let mut alone = Alone::new(outline, works, sector, t);
    alone.nodes(&outline.body, 1.0);
    // Where groups take turns, one works while the other waits.
    if outline.consumers <= 1 {
        barriers += alone.barriers;
    }
    // What is not written out yet is waited for, and keeps units busy.
    let latency = (alone.end() + t.fitted.start + detours) * spill;
    let mut out = Estimate {
        threads: t.threads,
        room: t.room,
        blocks: outline.blocks,
        blocks_per_sm: resident,
        waves: blocks as f64 / slots as f64,
        registers: held.registers,
        shared_bytes: held.shared_bytes,
        instructions,
        scarce,
        ..Estimate::default()
    };
    let amounts = [
        (Resource::Matrix, total[MATRIX]),
        (Resource::Issue, total[ISSUE]),
        (Resource::Special, total[SPECIAL]),
        (Resource::Shared, total[SHARED]),
        (Resource::L2, total[GLOBAL] * SECTOR_BYTES as f64),
        (Resource::Barriers, barriers),
    ];
    for (resource, of_block) in amounts {
        out[resource].amount = of_block * blocks as f64;
    }
    out[Resource::Dram].amount = bytes;
    out[Resource::Latency].amount = latency;
    // Full sets of blocks, then what is left.
    let block = Block { units: total, barriers, latency, spill, detours, dram: of_block };
    let (full, rest) = ((blocks / slots) as f64, blocks % slots);
    if t.grid == Grid::Full {
        let sets = full_blocks(outline, t) / slots as f64;
        block.add(&mut out, sets, resident, t.machine.sms, t);
        out.microseconds = t.machine.microseconds(out.cycles) + t.fitted.launch_us;
        return out;
    }
    if full > 0.0 {
        block.add(&mut out, full, resident, t.machine.sms, t);
    }
    if rest > 0 {
        let deep = (rest + t.machine.sms - 1) / t.machine.sms;
        block.add(&mut out, 1.0, deep, rest.min(t.machine.sms), t);
    }
    out.microseconds = t.machine.microseconds(out.cycles) + t.fitted.launch_us;
    out
}

/// Blocks of [`Grid::Full`].
pub(super) fn full_blocks(outline: &Outline, t: &Timing<'_>) -> f64 {
    let room = t.limits.blocks_per_sm.saturating_mul(t.machine.sms);
    outline.blocks.unwrap_or(room).max(room) as f64
}

/// What one block takes.
struct Block {
    units: Units,
    barriers: f64,
    latency: f64,
    spill: f64,
    detours: f64,
    dram: f64,
}

impl Block {
    /// Adds so many sets of blocks, `deep` on each of so many multiprocessors.
    fn add(&self, out: &mut Estimate, n: f64, deep: i64, sms: i64, t: &Timing<'_>) {
        let (deep, sms) = (deep as f64, sms.max(1) as f64);
        let warps = ((t.threads + 31) / 32) as f64 * deep;
        let sector = SECTOR_BYTES as f64 / l2_rate(t, sms);
        let busy = cycles(&self.units, warps, t, sector);
        let dram = self.dram / dram_rate(t, sms);
        let resources = [
            (Resource::Matrix, busy[MATRIX]),
            (Resource::Issue, busy[ISSUE]),
            (Resource::Special, busy[SPECIAL]),
            (Resource::Shared, busy[SHARED]),
            (Resource::L2, busy[GLOBAL]),
            (Resource::Dram, dram),
        ];
        let (mut longest, mut all) = (0f64, 0f64);
        for (resource, of_block) in resources {
            let own = of_block * self.spill * deep;
            out[resource].cycles += own * n;
            (longest, all) = (longest.max(own), all + own);
        }
        let f = t.fitted;
        // Blocks begin one after the other.
        longest = longest.max(f.block * deep);
        all = all.max(longest);
        let meeting = f.meeting * self.barriers;
        out[Resource::Latency].cycles += self.latency * n;
        out[Resource::Barriers].cycles += meeting * n;
        // Of several blocks some work while others wait.
        let waited = self.latency.min(longest) / deep.max(1.0);
        let set = longest.max(self.latency)
            + f.unhidden * (all - longest + waited + self.detours * deep)
            + meeting;
        out.cycles += set * n;
    }
}

/// Bytes a cycle that one of so many busy multiprocessors gets from the second-level cache.
fn l2_rate(t: &Timing<'_>, sms: f64) -> f64 {
    let share = t.machine.l2_bytes_per_cycle / sms.max(1.0);
    share.min(t.limits.timing.global_bytes).max(1e-9)
}

/// Bytes of device memory a cycle that one of so many busy multiprocessors gets.
fn dram_rate(t: &Timing<'_>, sms: f64) -> f64 {
    let share = t.machine.dram_bytes_per_cycle() * t.fitted.dram / sms.max(1.0);
    share.min(t.limits.timing.global_bytes).max(1e-9)
}

/// Bytes of device memory that a grid moves, and how many of them that lie side by side would take
/// as long.
fn traffic(o: &Outline, blocks: i64, slots: i64, t: &Timing<'_>) -> (f64, f64) {
    let blocks = blocks as f64;
    let slots = (slots as f64).min(blocks.max(1.0));
    let waves = (blocks / slots).max(1.0);
    let (mut once, mut again, mut set) = ([0.0; 2], [0.0; 2], 0.0);
    for (i, touched) in o.touched.iter().enumerate() {
        // What another leaf touches, too, is moved once.
        let same = |(j, other): (usize, &super::outline::Touched)| {
            other.buffer == touched.buffer
                && other.digits == touched.digits
                && (other.block > touched.block
                    || j < i && other.block >= touched.block && other.first == touched.first)
                && o.leaves[other.leaf].writes.contains(&other.buffer)
                    == o.leaves[touched.leaf].writes.contains(&touched.buffer)
        };
        if o.touched.iter().enumerate().any(same) {
            continue;
        }
        let (all, of_set) = (touched.bytes(blocks), touched.bytes(slots));
        for (i, far) in [1.0, 1.0 + t.fitted.apart * touched.apart].into_iter().enumerate() {
            once[i] += all * far;
            again[i] += (of_set * waves).max(all) * far;
        }
        set += of_set;
    }
    let kept = (t.machine.l2_bytes as f64 / set.max(1.0)).min(1.0);
    let of = |i: usize| once[i] + (again[i] - once[i]) * (1.0 - kept);
    (of(0), of(1))
}

/// A block that has a multiprocessor to itself.
struct Alone<'a> {
    o: &'a Outline,
    works: &'a [Work],
    t: &'a Timing<'a>,
    sector: f64,
    /// When the threads from one on, before another, can issue the next operation.
    clocks: Vec<(i64, i64, f64)>,
    /// Until when each unit is busy.
    free: Units,
    /// When the first and the last of what was written to a buffer is there.
    ready: Vec<(f64, f64)>,
    /// Whether what lies in a buffer came from global memory, and is waited for.
    loaded: Vec<bool>,
    /// How often each buffer was written so far: rings are not waited for after their first time.
    filled: Vec<bool>,
    /// Buffers in shared memory accessed since the last barrier, and whether they were written.
    touched: Vec<(BufferId, bool)>,
    /// Copies of this iteration that are ahead of who reads them: to which buffer, when they are
    /// complete after they were asked for, and how long they keep units busy.
    copies: Vec<(BufferId, f64, f64)>,
    /// Busy cycles since the beginning, for iterations of loops.
    busy: Units,
    /// Those of operations that threads wait for before they issue the next.
    held: Units,
    barriers: f64,
    in_loop: usize,
    /// Cycles in loops whose copies are ahead of them.
    ringed: f64,
    /// When the statements began that no loop and no barrier parts: the compiler puts loads there
    /// that need nothing of them.
    begun: f64,
}

impl<'a> Alone<'a> {
    fn new(o: &'a Outline, works: &'a [Work], sector: f64, t: &'a Timing<'a>) -> Self {
        Alone {
            o,
            works,
            t,
            sector,
            clocks: vec![(0, o.threads, 0.0)],
            free: Units::default(),
            ready: vec![(0.0, 0.0); o.buffers],
            loaded: vec![false; o.buffers],
            filled: vec![false; o.buffers],
            touched: vec![],
            copies: vec![],
            busy: Units::default(),
            held: Units::default(),
            barriers: 0.0,
            in_loop: 0,
            ringed: 0.0,
            begun: 0.0,
        }
    }

    /// When all is done.
    fn end(&self) -> f64 {
        let clocks = self.clocks.iter().map(|c| c.2);
        clocks.chain(self.ready.iter().map(|r| r.1)).chain(self.free).fold(0.0, f64::max)
    }

    /// When the last of the threads can issue.
    fn now(&self) -> f64 {
        self.clocks.iter().map(|c| c.2).fold(0.0, f64::max)
    }

    fn at(&self, (first, end): (i64, i64)) -> f64 {
        let overlap = self.clocks.iter().filter(|c| c.0 < end && first < c.1);
        overlap.map(|c| c.2).fold(0.0, f64::max)
    }

    fn set(&mut self, (first, end): (i64, i64), now: f64) {
        self.clocks.retain(|c| c.0 < first || end < c.1);
        self.clocks.push((first, end, now));
    }

    /// `times`: how often all this is executed, for what is counted.
    fn nodes(&mut self, nodes: &[Node], times: f64) {
        for node in nodes {
            match node {
                Node::Leaf(i) => {
                    if let (Some(leaf), Some(work)) = (self.o.leaves.get(*i), self.works.get(*i)) {
                        self.run(leaf, work, times);
                    }
                }
                Node::Loop { trips, body } => self.turns(*trips, body, times),
            }
        }
    }

    fn turns(&mut self, trips: i64, body: &[Node], times: f64) {
        if trips == 0 {
            return;
        }
        let outer = std::mem::take(&mut self.copies);
        self.in_loop += 1;
        let begin = self.now();
        let (mut last, mut own, mut held) = (0.0, Units::default(), Units::default());
        let mut ringed = 0.0;
        // A producer has copied for these turns during those before.
        let runs_on = self.o.consumers > 0 && self.refills(body);
        let followed = trips.min(FOLLOWED);
        let mut before = (self.clocks.clone(), self.ready.clone());
        for i in 0..followed {
            before.0.clone_from(&self.clocks);
            before.1.clone_from(&self.ready);
            let (now, busy, waited) = (self.now(), self.busy, self.held);
            let multiplied = self.ringed;
            let rest = if i + 1 == followed { trips - i } else { 1 };
            self.begun = now;
            self.copies.clear();
            self.nodes(body, times * rest as f64);
            last = self.now() - now;
            ringed = self.ringed - multiplied;
            (0..UNITS).for_each(|u| own[u] = self.busy[u] - busy[u]);
            (0..UNITS).for_each(|u| held[u] = self.held[u] - waited[u]);
        }
        // An iteration takes no less than its busiest unit, and than a copy that is so many
        // iterations ahead. What goes on by itself is as far ahead as rings let it be: without one,
        // threads are done before it is.
        let (ring, completion) = self.ring(body, trips, outer);
        let units = if ring > 0.0 { &own } else { &held };
        let contended =
            if self.described(body) { self.t.fitted.contended * own[SHARED] } else { 0.0 };
        // Where another unit than that of products is the busiest, half of it: products of small
        // tiles, of which some are as fast as shared memory and some a tenth slower.
        let least = (units[MATRIX] + contended).max(most(units) + contended / 2.0).max(ring);
        let more = (trips - followed) as f64;
        // Groups that take turns overlap but for the loop that is fed.
        let turns = if ringed > 0.0 && self.in_loop == 1 { self.o.consumers.max(1) } else { 1 };
        let each = (last / turns as f64).max(ringed).max(least);
        let now = self.now();
        let early = (followed - 1) as f64 * (last - each).max(0.0);
        let mut end = (now + more * each - early).max(begin + trips as f64 * least);
        // The last of what a ring holds has come before it is read.
        if ring > 0.0 && !runs_on {
            end = end.max(self.free[GLOBAL] + own[GLOBAL] * more + completion);
        }
        if ring > 0.0 {
            self.ringed += end - begin;
        }
        let shift = end - now;
        // Clocks of roles that wait for others move on as the slowest does.
        for clock in &mut self.clocks {
            let moved = before.0.iter().any(|b| (b.0, b.1) == (clock.0, clock.1) && b.2 == clock.2);
            if !moved {
                clock.2 += shift;
            }
        }
        let mut late = end;
        let units = self.busy.iter_mut().zip(&mut self.free).zip(own);
        for ((busy, free), own) in units.filter(|(_, own)| *own > 0.0) {
            *busy += own * more;
            *free = (*free + shift).min(end).max(*free + own * more);
            late = late.max(*free);
        }
        (0..UNITS).for_each(|u| self.held[u] += held[u] * more);
        for (ready, before) in self.ready.iter_mut().zip(&before.1) {
            if ready != before {
                // What units have queued by now is done by the end, or when they are.
                let last = (ready.1 + shift).min(end + (ready.0 - now).max(0.0));
                let queued = if late > end { late } else { 0.0 };
                *ready = (ready.0 + shift, ready.1.max(last).max(queued));
            }
        }
        self.in_loop -= 1;
        self.begun = self.now();
    }

    /// How long an iteration of a loop takes at least for the copies that are read in it, too, so
    /// many iterations later. Others are left to the loops around. And how long the slowest of them
    /// takes.
    fn ring(&mut self, body: &[Node], trips: i64, outer: Vec<(BufferId, f64, f64)>) -> (f64, f64) {
        let (mut ring, mut slowest) = (0f64, 0f64);
        for (b, completion, busy) in std::mem::replace(&mut self.copies, outer) {
            if self.reads(body, b) {
                let (ahead, early) = (self.o.ahead[usize::from(b)], self.o.early[usize::from(b)]);
                let iterations = (ahead.max(1) as f64 - early).max(0.25);
                ring = ring.max((completion + busy) / iterations);
                slowest = slowest.max(completion);
            } else {
                self.copied(b, completion, busy * trips as f64);
            }
        }
        (ring, slowest)
    }

    fn copied(&mut self, b: BufferId, completion: f64, busy: f64) {
        match self.copies.iter_mut().find(|c| c.0 == b) {
            Some(c) => *c = (b, c.1.max(completion), c.2 + busy),
            None => self.copies.push((b, completion, busy)),
        }
    }

    /// Whether a body writes to a ring that has been filled before.
    fn refills(&self, body: &[Node]) -> bool {
        body.iter().any(|node| match node {
            Node::Leaf(i) => self.o.leaves.get(*i).is_some_and(|leaf| {
                let again = |b: usize| self.o.ahead[b] > 0 && self.filled[b];
                leaf.writes.iter().any(|b| again(usize::from(*b)))
            }),
            Node::Loop { .. } => false,
        })
    }

    /// Whether a body multiplies what lies in shared memory, which copies are written to besides.
    fn described(&self, body: &[Node]) -> bool {
        body.iter().any(|node| match node {
            Node::Leaf(i) => self.works.get(*i).is_some_and(|w| w.asynchronous && w.matrix > 0.0),
            Node::Loop { .. } => false,
        })
    }

    /// Whether something of a body reads a buffer.
    fn reads(&self, body: &[Node], b: BufferId) -> bool {
        body.iter().any(|node| match node {
            Node::Leaf(i) => self.o.leaves.get(*i).is_some_and(|leaf| leaf.reads.contains(&b)),
            Node::Loop { body, .. } => self.reads(body, b),
        })
    }

    /// Counts the barriers that an operation needs, each of which orders all accesses before it.
    fn meet(&mut self, leaf: &Leaf, w: &Work, times: f64) -> bool {
        self.barriers += w.barriers * times;
        // Of a ring another stage is written than is read, and mbarriers say when what products
        // read has come.
        let ahead = |b: BufferId| self.o.ahead[usize::from(b)] > 0;
        let multiplies = w.matrix > 0.0 && w.asynchronous;
        let conflicts = |&(b, writes): &(BufferId, bool)| {
            let before = self.touched.iter().find(|t| t.0 == b);
            before.is_some_and(|t| match ahead(b) {
                true => t.1 && !writes && !multiplies,
                false => writes || t.1,
            })
        };
        let meets = leaf.shared.iter().any(conflicts);
        if meets {
            self.barriers += times;
            self.touched.clear();
        }
        for &(b, writes) in &leaf.shared {
            match self.touched.iter_mut().find(|t| t.0 == b) {
                Some(t) => t.1 |= writes,
                None => self.touched.push((b, writes)),
            }
        }
        meets
    }

    /// Whether a leaf brings to registers what the kernel does not write.
    fn is_input(&self, leaf: &Leaf) -> bool {
        let written = |b: &BufferId| self.o.leaves.iter().any(|l| l.writes.contains(b));
        let global = |b: &BufferId| self.o.touched.iter().any(|t| t.buffer == *b);
        !leaf.writes.iter().any(global) && !leaf.reads.iter().any(written)
    }

    fn run(&mut self, leaf: &Leaf, w: &Work, times: f64) {
        if self.meet(leaf, w, times) {
            self.begun = self.now();
        }
        let range = (leaf.by.first, leaf.by.first.saturating_add(leaf.by.threads));
        let whole = cycles(&units(w, self.t), leaf.by.warps(), self.t, self.sector);
        // In the mean of the iterations, of which some may leave it out.
        let own = whole.map(|cycles| cycles * leaf.part);
        let in_memory = |b: BufferId| leaf.shared.iter().any(|s| s.0 == b);
        let now = self.at(range);
        let loads =
            w.sectors > 0.0 && !w.asynchronous && leaf.shared.is_empty() && self.is_input(leaf);
        let (mut start, mut last, mut come) =
            (if loads { self.begun.min(now) } else { now }, 0f64, 0f64);
        for &b in &leaf.reads {
            let ready = self.ready[usize::from(b)];
            start = start.max(if in_memory(b) { ready.1 } else { ready.0 });
            last = last.max(ready.1);
            if self.loaded[usize::from(b)] {
                come = come.max(ready.1);
            }
        }
        let mut end = start;
        let units = self.busy.iter_mut().zip(&mut self.free).zip(own);
        for ((busy, free), own) in units.filter(|(_, own)| *own > 0.0) {
            *busy += own;
            *free = free.max(start) + own;
            end = end.max(*free);
        }
        if !w.asynchronous {
            (0..UNITS).for_each(|u| self.held[u] += own[u]);
        }
        // Threads go on when the last of what they wait for has come.
        self.set(range, (start.max(now) + own[ISSUE]).max(come));
        let completion = match w.sectors > 0.0 {
            true => w.completion * self.t.fitted.loaded,
            false => w.completion,
        };
        let ready = (start + completion, end.max(last) + completion);
        for &b in &leaf.writes {
            let i = usize::from(b);
            let ahead = self.o.ahead[i];
            if ahead > 0 && self.in_loop > 0 && self.filled[i] {
                // Who reads it reads what was filled before.
                self.copied(b, completion, most(&whole));
                continue;
            }
            self.filled[i] = true;
            self.ready[i] = ready;
            self.loaded[i] = w.sectors > 0.0 && !w.asynchronous;
        }
    }
}
