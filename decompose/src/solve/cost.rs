//! What a decomposition costs (Hexcute, section VI): operations are issued in order, each for the cycles that
//! its instructions keep a scheduler, the banks or the path to global memory busy; what reads a result waits
//! until it is complete. Beyond the paper: 32-byte sectors of global memory, conflicts of banks as counted,
//! registers, and how many blocks a multiprocessor holds, which fill each other's waits.

use super::copy::Candidate;
use super::ops::Op;
use super::{Known, exchange, matmul, ops, pointwise, pressure, reduce};
use carbyne_atoms::{Atom, AtomTable, Visibility, limits};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{Buffer, BufferId, Program, SpecId, Stmt, StmtKind};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;

/// One execution of an operation by one block.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(crate) struct Work {
    /// Instructions of all warps together.
    pub instructions: f64,
    /// Their issue cycles, on one scheduler.
    pub issue: f64,
    /// Wavefronts of shared memory.
    pub wavefronts: f64,
    /// 32-byte sectors of global memory.
    pub sectors: f64,
    /// Cycles from the last issue until the result is there.
    pub completion: f64,
    /// Whether it goes on while others are issued, until it is waited for.
    pub asynchronous: bool,
}

impl Work {
    /// Cycles that keep the busiest part busy, four schedulers assumed: for comparing candidates.
    pub(crate) fn busy(&self) -> f64 {
        (self.issue / 4.0).max(self.wavefronts).max(self.sectors) + 0.01 * self.issue
    }
}

/// What a kernel costs.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// Cycles of one block, on a multiprocessor that holds as many as fit.
    pub cycles: f64,
    /// Instructions of all warps of one block.
    pub instructions: f64,
    /// Bytes of global memory that one block touches, in whole sectors.
    pub global_bytes: f64,
    /// Wavefronts of shared memory of one block.
    pub wavefronts: f64,
    /// 32-bit registers of one thread that tensors take at once.
    pub registers: i64,
    /// Bytes of shared memory of one block.
    pub shared_bytes: i64,
    /// Blocks that one multiprocessor holds.
    pub blocks_per_sm: i64,
}

/// A whole number that grows with the cycles, the same for cycles that differ by less than the estimate
/// can tell: some 2 percent.
pub(super) fn grade(cycles: f64) -> i64 {
    (libm::log(cycles.max(1.0)) / 0.02) as i64
}

/// A copy.
pub(super) fn copy(table: &AtomTable, op: &Op, c: &Candidate, wavefronts: f64) -> Work {
    let Some(atom) = table.get(c.atom) else { return Work::default() };
    let n = c.instructions;
    Work {
        instructions: n,
        issue: n * atom.cost.issue_cycles,
        wavefronts: wavefronts / op.trips.max(1) as f64,
        sectors: c.sectors * n,
        completion: atom.cost.completion_cycles,
        asynchronous: atom.visibility == Visibility::AsyncGroup,
    }
}

/// A MatMul.
pub(super) fn matmul(table: &AtomTable, c: &matmul::Choice) -> Option<Work> {
    let atom = table.get(c.atom)?;
    let (rm, rn, rk) = c.gemm.rest()?;
    let groups = c.gemm.groups.0 * c.gemm.groups.1 * c.gemm.groups.2;
    // A row of fewer threads than a warp is executed by all of its groups at once.
    let warps = (groups * atom.group + 31) / 32;
    let instructions = (rm * rn * rk * warps) as f64;
    let values = atom.operands.get(2)?.n_values();
    let partial = matmul::partial(&c.gemm, values, c.sum, table).unwrap_or_default();
    Some(Work {
        instructions: instructions + partial.instructions,
        issue: instructions * atom.cost.issue_cycles + partial.issue,
        wavefronts: partial.wavefronts,
        completion: atom.cost.completion_cycles + partial.completion,
        ..Work::default()
    })
}

/// An operation between registers.
pub(super) fn pointwise(table: &AtomTable, c: &pointwise::Choice) -> Work {
    let threads = c.layouts.last().and_then(|l| l.mode(0).ok()).map_or(32, |t| t.size());
    Work {
        issue: c.cost * ((threads + 31) / 32) as f64,
        completion: table.get(c.atom).map_or(0.0, |a| a.cost.completion_cycles),
        ..Work::default()
    }
}

/// A Reduction.
pub(super) fn reduction(table: &AtomTable, c: &reduce::Choice) -> Work {
    let of = |kind: SpecKind| -> (f64, f64) {
        let takes = |a: &&Atom| {
            a.operands.iter().all(|o| o.elem.scalars_per_unit(c.scalar) == Some(o.n_values()))
                || a.operands.iter().all(|o| o.n_values() == 1 && o.is_of(c.scalar))
        };
        table
            .implementing(kind)
            .find(takes)
            .map_or((1.0, 20.0), |a| (a.cost.issue_cycles, a.cost.completion_cycles))
    };
    let (op, op_latency) = of(SpecKind::Binary(c.op));
    let (exchange, latency) = of(SpecKind::Shfl(carbyne_ir::ast::ShflOp::Bfly));
    let threads = c.input.mode(0).map_or(32, |t| t.size());
    let warps = ((threads + 31) / 32) as f64;
    let n = c.n() as f64;
    let (reduced, masks) = (c.values.1.size() as f64, c.masks.len() as f64);
    let mut work = Work {
        issue: warps * n * (reduced * op + masks * (exchange + op)),
        completion: op_latency + masks * (latency + op_latency),
        ..Work::default()
    };
    for s in c.shared.iter().flat_map(reduce::Through::steps) {
        let others = s.others.size() as f64;
        work.wavefronts += warps * n * (1.0 + others);
        work.issue += warps * n * others * op;
        let t = &limits(table.arch).timing;
        work.completion += t.shared_store_cycles + t.shared_load_cycles + others * op_latency;
    }
    work
}

/// A Move by exchanges between lanes.
pub(super) fn exchange(c: &exchange::Choice) -> Work {
    Work {
        instructions: c.instructions,
        issue: c.issue,
        completion: c.completion,
        ..Work::default()
    }
}

/// Costs a leaf of the search.
pub(super) fn estimate(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    work: &BTreeMap<SpecId, Work>,
    known: &Known,
    shared: &BTreeMap<BufferId, (Layout, Option<Swizzle>)>,
) -> Estimate {
    let limits = limits(table.arch);
    let mut t = Timeline {
        p,
        work,
        schedulers: limits.timing.schedulers,
        sector: 32.0 / limits.timing.global_bytes.max(1.0),
        now: 0.0,
        busy: 0.0,
        all: 0.0,
        ready: BTreeMap::new(),
        total: Estimate::default(),
    };
    if let Some(body) = &p.specs[kernel].body {
        t.stmts(body, 1.0);
    }
    let done = t.ready.values().copied().fold(t.now, f64::max);
    let (busy, all, mut total) = (t.busy, t.all, t.total);
    let threads = ops::block_threads(p, kernel).max(1);
    let size = |(b, tv): (&BufferId, &Layout)| {
        let bits = tv.mode(1).map_or(0, |v| v.size()).saturating_mul(p.buffers[*b].scalar.bits());
        (*b, (bits + 31) / 32)
    };
    total.registers = pressure::most(p, kernel, &known.iter().map(size).collect());
    let own = |b: &Buffer| b.memory == Some(Memory::Sh) && b.reuses.is_none();
    for (id, buffer) in p.buffers.iter().filter(|(_, b)| own(b)) {
        let cosize = match shared.get(&id) {
            Some((layout, _)) => layout.cosize(),
            None => buffer.cosize.as_const().unwrap_or(0),
        };
        let bytes = cosize.saturating_mul(buffer.scalar.bits()) / 8;
        total.shared_bytes = total.shared_bytes.saturating_add(bytes);
    }
    let registers = total.registers.saturating_add(24).max(1);
    let own = registers.min(limits.regs_per_thread);
    let blocks = limits.resident_blocks(threads, own, total.shared_bytes).max(1);
    total.blocks_per_sm = blocks;
    let spill = 1.0 + (registers - limits.regs_per_thread).max(0) as f64 / 32.0;
    // Waits are filled by the other blocks; what is busy is not, and hides the rest but for a part.
    total.cycles = busy.max(done / blocks as f64) * spill + OVERLAP * all + 1e-3 * done;
    total
}

/// The part of what every unit does that the busiest does not hide: queues are not endless.
const OVERLAP: f64 = 0.1;

struct Timeline<'a> {
    p: &'a Program,
    work: &'a BTreeMap<SpecId, Work>,
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
    total: Estimate,
}

/// Executions of a loop's body that are followed before the rest are taken to be like the last.
const FOLLOWED: i64 = 2;

impl Timeline<'_> {
    /// `times`: how often all this is executed, for what is counted.
    fn stmts(&mut self, stmts: &[Stmt], times: f64) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Spec(id) => match (&self.p.specs[*id].body, self.work.get(id)) {
                    (_, Some(w)) => self.run(*id, *w, times),
                    (Some(body), None) => self.stmts(body, times),
                    _ => {}
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

    fn run(&mut self, id: SpecId, w: Work, times: f64) {
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
