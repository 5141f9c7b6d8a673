//! What a leaf of the search costs: its operations in order, what each waits for, and how many blocks fill each other's
//! waits.

use super::solution::Assigned;
use super::state::Finished;
use super::work::{Estimate, MEETING, Work};
use super::{ops, pressure};
use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Buffer, BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;

/// Costs a leaf of the search.
pub(super) fn estimate(p: &Program, kernel: SpecId, table: &AtomTable, f: &Finished) -> Estimate {
    let limits = limits(table.arch);
    let mut t = Timeline {
        p,
        assignments: &f.solution.assignments,
        schedulers: limits.timing.schedulers,
        sector: 32.0 / limits.timing.global_bytes.max(1.0),
        now: 0.0,
        busy: 0.0,
        all: 0.0,
        ready: BTreeMap::new(),
        touched: BTreeMap::new(),
        barriers: 0.0,
        total: Estimate::default(),
    };
    if let Some(body) = &p.specs[kernel].body {
        t.stmts(body, 1.0);
    }
    let done = t.ready.values().copied().fold(t.now, f64::max);
    let (busy, all, barriers, mut total) = (t.busy, t.all, t.barriers, t.total);
    let threads = ops::block_threads(p, kernel).max(1);
    let size = |(b, tv): (&BufferId, &Layout)| {
        let bits = tv.mode(1).map_or(0, |v| v.size()).saturating_mul(p.buffers[*b].scalar.bits());
        (*b, (bits + 31) / 32)
    };
    total.registers = pressure::most(p, kernel, &f.known.iter().map(size).collect());
    let own = |b: &Buffer| b.memory == Some(Memory::Sh) && b.reuses.is_none();
    for (id, buffer) in p.buffers.iter().filter(|(_, b)| own(b)) {
        let cosize = match f.solution.in_memory(id) {
            Some(layout) => layout.cosize(),
            None => buffer.cosize.as_const().unwrap_or(0),
        };
        let bytes = cosize.saturating_mul(buffer.scalar.bits()) / 8;
        total.shared_bytes = total.shared_bytes.saturating_add(bytes);
    }
    let registers = total.registers.saturating_add(24).max(1);
    let own = registers.min(limits.regs_per_thread);
    let blocks = limits.resident_blocks(threads, own, total.shared_bytes).max(1);
    total.blocks_per_sm = blocks;
    // Of so many values each goes to memory and back.
    let excess = (registers - limits.regs_per_thread).max(0) as f64;
    let spill = 1.0 + excess / limits.regs_per_thread as f64;
    // Waits are filled by the other blocks; what is busy is not, and hides the rest but for a part.
    total.cycles = busy.max(done / blocks as f64) * spill + OVERLAP * all + 1e-3 * done;
    total.cycles += f.detours + MEETING * barriers / blocks as f64;
    total
}

/// The part of what every unit does that the busiest does not hide: queues are not endless.
const OVERLAP: f64 = 0.1;

struct Timeline<'a> {
    p: &'a Program,
    assignments: &'a BTreeMap<SpecId, Assigned>,
    schedulers: f64,
    /// Cycles of a sector.
    sector: f64,
    /// When the next operation can be issued.
    now: f64,
    /// Cycles in which something is issued.
    busy: f64,
    /// Cycles of all units: schedulers, for the instructions and for their addresses, banks, global memory.
    all: f64,
    /// When what was written to a buffer is there.
    ready: BTreeMap<BufferId, f64>,
    /// Shared buffers accessed since the last barrier, and whether they were written.
    touched: BTreeMap<BufferId, bool>,
    /// Barriers that are executed.
    barriers: f64,
    total: Estimate,
}

/// Executions of a loop's body that are followed before the rest are taken to be like the last.
const FOLLOWED: i64 = 2;

impl Timeline<'_> {
    /// `times`: how often all this is executed, for what is counted.
    fn stmts(&mut self, stmts: &[Stmt], times: f64) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Spec(id) => match (&self.p.specs[*id].body, self.assignments.get(id)) {
                    (_, Some(a)) => self.run(*id, a.work, times),
                    (Some(body), None) => self.stmts(body, times),
                    (None, None) => {}
                },
                StmtKind::For { start, end, step, body, .. } => {
                    let n = ops::trips(*start, *end, *step).unwrap_or(1);
                    let mut last = (0.0, 0.0);
                    for i in 0..n.min(FOLLOWED) {
                        let before = (self.now, self.busy);
                        let rest = if i + 1 == n.min(FOLLOWED) { n - i } else { 1 };
                        self.stmts(body, times * rest as f64);
                        last = (self.now - before.0, self.busy - before.1);
                    }
                    let more = (n - FOLLOWED).max(0) as f64;
                    self.now += last.0 * more;
                    self.busy += last.1 * more;
                    for ready in self.ready.values_mut() {
                        *ready += last.0 * more;
                    }
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.stmts(then, times);
                    self.stmts(otherwise, times);
                }
                _ => {}
            }
        }
    }

    /// Counts the barriers that an operation needs, each of which orders all accesses before it.
    fn meet(&mut self, id: SpecId, w: Work, times: f64) {
        self.barriers += w.barriers * times;
        let (p, spec) = (self.p, &self.p.specs[id]);
        let shared = |t: TensorId| {
            let b = p.tensors[t].buffer;
            (p.buffers[b].memory == Some(Memory::Sh)).then_some(b)
        };
        let reads = spec.input_tensors().filter_map(shared).map(|b| (b, false));
        let writes = spec.outputs.iter().filter_map(|t| shared(*t)).map(|b| (b, true));
        let own: Vec<(BufferId, bool)> = reads.chain(writes).collect();
        // Of a ring another stage is written than is read.
        let ring = |b: BufferId| p.tensors[p.buffers[b].tensor].levels.len() > 1;
        let conflicts = |(b, write): &(BufferId, bool)| {
            let before = self.touched.get(b);
            before.is_some_and(|written| if *write { !ring(*b) } else { *written })
        };
        if own.iter().any(conflicts) {
            self.barriers += times;
            self.touched.clear();
        }
        for (b, write) in own {
            *self.touched.entry(b).or_default() |= write;
        }
    }

    fn run(&mut self, id: SpecId, w: Work, times: f64) {
        self.meet(id, w, times);
        let spec = &self.p.specs[id];
        let buffer = |t| self.p.tensors[t].buffer;
        let mut start = self.now;
        for t in spec.input_tensors() {
            start = start.max(self.ready.get(&buffer(t)).copied().unwrap_or(0.0));
        }
        let sectors = w.sectors * self.sector;
        let issue = (w.issue / self.schedulers).max(w.wavefronts).max(sectors);
        self.now = if w.asynchronous { start + w.issue / self.schedulers } else { start + issue };
        self.busy += issue;
        let complete = start + issue + w.completion;
        for t in &spec.outputs {
            self.ready.insert(buffer(*t), complete);
        }
        self.total.instructions += w.instructions * times;
        let scheduled = (w.issue + w.instructions) / self.schedulers;
        self.all += (scheduled + w.wavefronts + sectors) * times;
        self.total.global_bytes += w.sectors * 32.0 * times;
        self.total.wavefronts += w.wavefronts * times;
    }
}
