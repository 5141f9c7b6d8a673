//! Computes the least [`Work`] that an operation of a tile-level body can take, before layouts are
//! known ([`Least`]).
//!
//! It assumes that every thread has its even share; that accesses of global memory are as wide as
//! contiguous elements allow; that shared memory is accessed without conflicts, by 16 bytes a
//! thread; that a MatMul takes the fastest row whose extents divide it, and its warps read their
//! parts of shared factors once each; and that lanes combine the values of a Reduction where a row
//! of its input is contiguous.

use super::constants::MANY_WARPS;
use super::outline::{Contiguous, Executors, Leaf, Outline, contiguous, elements};
use super::rates::{Product, Rates};
use super::work::Work;
use crate::access::ops;
use carbyne_atoms::{Unit, limits};
use carbyne_ir::ast::{Key, ReduceOp, SpecKind};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{BufferId, Operand, Program, Spec, SpecId, TensorId};
use carbyne_ir::scalar::Scalar;
use std::collections::{BTreeMap, BTreeSet};

/// Bits of the widest access of a thread.
const WIDEST: i64 = 128;
/// Bytes that a warp moves by one access of the widest.
const WARP_BYTES: f64 = 512.0;
/// Bytes of a sector of global memory.
const SECTOR: i64 = carbyne_atoms::SECTOR_BYTES;

/// How the warps of a MatMul share it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Spread {
    row: Product,
    /// Groups along M, N and K.
    groups: (i64, i64, i64),
    /// Extents.
    size: (i64, i64, i64),
}

/// What is known of the MatMuls of a kernel before its leaves are looked at.
#[derive(Debug, Default)]
pub(super) struct Products {
    spreads: BTreeMap<SpecId, Spread>,
    /// How many groups of threads hold the same part of a factor.
    repeats: BTreeMap<BufferId, i64>,
    /// The mode along which a tensor in shared memory must lie, where descriptors name no other.
    along: BTreeMap<BufferId, usize>,
    /// The factors that groups of warps read from shared memory, which are copied as boxes.
    boxed: BTreeSet<BufferId>,
}

pub(super) struct Least<'a> {
    pub(super) p: &'a Program,
    pub(super) rates: &'a Rates<'a>,
    pub(super) products: Products,
}

impl<'a> Least<'a> {
    pub(super) fn new(p: &'a Program, rates: &'a Rates<'a>, outline: &Outline) -> Self {
        let mut out = Least { p, rates, products: Products::default() };
        for leaf in &outline.leaves {
            let spec = &p.specs[leaf.spec];
            if !spec.kind.is_product() {
                continue;
            }
            let Some(spread) = out.spread(spec, leaf.by) else { continue };
            let (gm, gn, gk) = spread.groups;
            let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
            for (t, repeats) in tensors.zip([gn, gm, gk]) {
                let all = out.products.repeats.entry(p.tensors[t].buffer).or_insert(1);
                *all = (*all).max(repeats);
            }
            for (t, along) in spec.input_tensors().zip(spread.row.along) {
                let (id, buffer) = (p.tensors[t].buffer, p.buffer_of(t));
                if spread.row.group > 32 && buffer.is_shared() {
                    out.products.boxed.insert(id);
                }
                if let Some(mode) = along.filter(|_| buffer.open && buffer.tensor == t) {
                    out.products.along.insert(id, mode);
                }
            }
            out.products.spreads.insert(leaf.spec, spread);
        }
        out
    }

    /// How many groups of threads hold the same part of a register tensor, as factors of MatMuls
    /// are held.
    pub(super) fn repeats(&self, buffer: BufferId) -> i64 {
        self.products.repeats.get(&buffer).copied().unwrap_or(1)
    }

    /// Registers of the fragments that a MatMul loads for itself, where its factors lie in shared
    /// memory: those of one step of its row.
    pub(super) fn fragments(&self, id: SpecId) -> i64 {
        let Some(s) = self.products.spreads.get(&id) else { return 0 };
        let spec = &self.p.specs[id];
        let (m, n, _) = s.size;
        let (gm, gn, _) = s.groups;
        let shared = |t: TensorId| self.p.buffer_of(t).is_shared();
        let sizes = [(m / gm) * s.row.tile.2, (n / gn) * s.row.tile.2];
        let own = spec.input_tensors().zip(sizes).filter(|(t, _)| shared(*t) && s.row.group == 32);
        own.map(|(t, n)| n * self.p.scalar_of(t).bits() / 32 / s.row.group.max(1)).sum()
    }

    /// The row and the spread of a MatMul: those that it names, else those that read least.
    fn spread(&self, spec: &Spec, by: Executors) -> Option<Spread> {
        let p = self.p;
        let mut inputs = spec.input_tensors();
        let (a, b, c) = (inputs.next()?, inputs.next()?, *spec.outputs.first()?);
        let of = |t: TensorId| elements(p, t).max(1);
        let (ea, eb, ec) = (of(a), of(b), of(c));
        // m·k, k·n and m·n.
        let k = num_integer::sqrt((ea as i128 * eb as i128 / ec as i128).max(1)) as i64;
        let (m, n) = (ea / k.max(1), eb / k.max(1));
        let acc = spec.acc.filter(|_| !p.buffer_of(c).is_per_thread());
        let scalars = [p.scalar_of(a), p.scalar_of(b), acc.unwrap_or(p.scalar_of(c))];
        let named = spec.atom.as_deref().map(|name| self.rates.product(name));
        let rows = match named {
            Some(row) => row.into_iter().collect(),
            None => {
                let shared = |t: TensorId| p.buffer_of(t).is_shared();
                let mut rows = match shared(b) && p.buffer_of(c).is_per_thread() {
                    true => self.rates.described(scalars, shared(a)),
                    false => vec![],
                };
                rows.extend(self.rates.products(scalars));
                rows
            }
        };
        let pin = match spec.ints(Key::Warps) {
            Some([m, n]) => Some((*m, *n, 1)),
            Some([m, n, k]) => Some((*m, *n, *k)),
            _ => None,
        };
        if let (Some(Some(row)), true) = (named, p.is_private(c)) {
            return Some(Spread { row, groups: (1, 1, 1), size: row.tile });
        }
        let bits = (scalars[0].bits(), scalars[1].bits());
        for row in rows {
            let groups = (by.group / row.group.max(1)).max(1);
            let (im, inn, ik) = row.tile;
            let fits = |(gm, gn, gk): (i64, i64, i64)| {
                m % (gm * im) == 0 && n % (gn * inn) == 0 && k % (gk * ik) == 0
            };
            let size = (m, n, k);
            if let Some((warps, gn, gk)) = pin {
                // Warps of a warp group stand side by side along M.
                let pin = (warps / (row.group / ops::WARP).max(1), gn, gk);
                if pin.0 > 0 && pin.1 > 0 && pin.2 > 0 && fits(pin) {
                    return Some(Spread { row, groups: pin, size });
                }
                continue;
            }
            let read = |(gm, gn): (i64, i64)| ea * gn * bits.0 + eb * gm * bits.1;
            let spreads = (1..=groups).filter(|gm| groups % gm == 0).map(|gm| (gm, groups / gm));
            let found = spreads.filter(|(gm, gn)| fits((*gm, *gn, 1))).min_by_key(|g| read(*g));
            if let Some((gm, gn)) = found {
                return Some(Spread { row, groups: (gm, gn, 1), size });
            }
            // Threads of one execution are the group of an atom.
            if named.is_some() {
                return Some(Spread { row, groups: (1, 1, 1), size });
            }
        }
        None
    }

    /// What one execution of a leaf takes at least.
    pub(super) fn of(&self, leaf: &Leaf) -> Work {
        let own = self.work(leaf.spec, leaf.by);
        Work { sectors: own.sectors * leaf.share, ..own }
    }

    /// The same by all who execute it, where each block copies for itself.
    pub(super) fn work(&self, id: SpecId, by: Executors) -> Work {
        let spec = &self.p.specs[id];
        let multiplies = spec.kind.is_product();
        let row = match self.products.spreads.get(&id) {
            Some(spread) => Some(spread.row.group),
            None if multiplies => self.whole(id).map(|row| row.group),
            None => None,
        };
        let by = row.map_or(by, |row| Executors { group: self.group(id, by, row), ..by });
        let buffer = |t: TensorId| self.p.buffer_of(t);
        let input = spec.input_tensors().next();
        let output = spec.outputs.first().copied();
        let repeats = match (spec.kind, output) {
            (SpecKind::Move, Some(to)) if buffer(to).is_per_thread() => {
                self.repeats(self.p.tensors[to].buffer)
            }
            _ => 1,
        };
        let shares = self.products.spreads.get(&id).map(|s| (s.groups.1, s.groups.0));
        let mut all = Work::default();
        for (i, t) in spec.input_tensors().enumerate() {
            let again = match (shares, i) {
                (Some((a, _)), 0) => a,
                (Some((_, b)), 1) => b,
                _ => repeats,
            };
            let own = match buffer(t) {
                b if b.is_global() => self.global(t, by),
                b if b.is_shared() => self.shared(t, by).times(again as f64),
                _ => continue,
            };
            all = Work { completion: all.completion.max(own.completion), ..all.and(own) };
        }
        for &t in &spec.outputs {
            let own = match buffer(t) {
                b if b.is_global() && matches!(spec.kind, SpecKind::Accumulate(_)) => {
                    let own = self.global(t, by);
                    let times = limits(self.rates.table.arch).timing.red_times();
                    Work { sectors: own.sectors * times, ..own }
                }
                b if b.is_global() => self.global(t, by),
                b if b.is_shared() => self.shared(t, by),
                _ => continue,
            };
            // Nobody waits for a store.
            all = Work { completion: all.completion, ..all.and(own) };
        }
        if spec.kind == SpecKind::Move
            && let (Some(from), Some(to)) = (input, output)
            && buffer(from).is_global()
            && buffer(to).is_shared()
        {
            all.asynchronous = match &spec.atom {
                Some(name) => self.rates.is_asynchronous(name),
                None => self.rates.asynchronous,
            };
            if all.asynchronous {
                // One instruction reads and writes.
                let read = self.global(from, by);
                (all.instructions, all.issue) = (read.instructions, read.issue);
                all.wavefronts -= read.wavefronts;
            }
            all.sectors *= self.lines(from, to);
            if self.turns(from, to) {
                all = self.by_elements(from, to, all, by);
            }
        }
        let tensors = || spec.input_tensors().chain(spec.outputs.iter().copied());
        let boxed = tensors().any(|t| self.p.tensors[t].map.is_some());
        if spec.kind == SpecKind::Move && (boxed || spec.bar.is_some()) {
            // One thread asks for all of it; lines go by once, and nobody waits where nobody says
            // so.
            let in_shared = |t: &TensorId| buffer(*t).is_shared();
            (all.instructions, all.issue, all.asynchronous) = (1.0, 1.0, true);
            if all.sectors > 0.0 {
                let timing = &limits(self.rates.table.arch).timing;
                all.completion += timing.bulk_cycles - timing.global_cycles;
            }
            // So many blocks of the cluster copy a part each to all of them.
            let blocks = spec.multicast.and_then(|m| m.as_const()).map_or(1, i64::count_ones);
            let own: f64 = tensors().filter(in_shared).map(|t| self.shared(t, by).wavefronts).sum();
            all.wavefronts = own * f64::from(blocks);
        }
        let computed = self.computed(spec, id, by);
        Work { completion: all.completion + computed.completion, ..all.and(computed) }
    }

    /// Whether elements that lie side by side in global memory must lie apart in shared memory.
    fn turns(&self, from: TensorId, to: TensorId) -> bool {
        let p = self.p;
        let (buffer, tensor) = (p.buffer_of(to), &p.tensors[from]);
        let Some(mode) = self.products.along.get(&p.tensors[to].buffer) else { return false };
        let ([level], true) = (&tensor.levels[..], buffer.tensor == to) else { return false };
        let Ok(along) = level.mode(*mode) else { return false };
        let steps =
            |(n, s): &(Dim, Dim)| n.as_const() != Some(1) && s.as_const().is_none_or(|s| s == 1);
        level.rank() == 2 && !along.leaves().iter().any(steps)
    }

    /// A copy to shared memory that writes element by element: asynchronously where an instruction
    /// does so, else by way of registers.
    fn by_elements(&self, from: TensorId, to: TensorId, all: Work, by: Executors) -> Work {
        let bits = self.p.scalar_of(to).bits();
        let each = ceil(elements(self.p, to), by.group) as f64 * by.warps();
        let asynchronous = all.asynchronous && bits >= self.rates.narrowest;
        let read = self.global(from, by);
        let instructions = if asynchronous { each } else { read.instructions + each };
        Work {
            instructions,
            issue: instructions,
            wavefronts: all.wavefronts.max(each),
            asynchronous,
            ..all
        }
    }

    /// Accesses of global memory.
    fn global(&self, t: TensorId, by: Executors) -> Work {
        let timing = &limits(self.rates.table.arch).timing;
        let Contiguous { elements, run, vector } = contiguous(self.p, t, WIDEST);
        let bits = self.p.scalar_of(t).bits();
        let line = limits(self.rates.table.arch).smem_bytes_per_cycle() as f64;
        let groups = (by.threads / by.group).max(1) as f64;
        let accesses = ceil(ceil(elements, vector), by.group) as f64 * by.warps();
        let runs = elements / run.max(1);
        let sectors = runs as f64 * ceil(run * bits, 8 * SECTOR) as f64 * groups;
        // What lies apart may lie in one sector all the same.
        let least = elements as f64 * bits as f64 / 8.0 / SECTOR as f64 * groups;
        let near = self.steps_within(t, SECTOR * 8 / bits.max(1));
        Work {
            instructions: accesses,
            issue: accesses,
            sectors: if near { least } else { sectors.max(least) },
            // Through the cache beside shared memory, a line at a time.
            wavefronts: accesses * (32.0 * (vector * bits) as f64 / 8.0 / line).max(1.0),
            completion: timing.global_cycles,
            ..Work::default()
        }
    }

    /// How much longer rows take than whole lines of the second-level cache, as an average over
    /// those of a tile: rows that do not begin at lines, and boxes that are narrower, as where rows
    /// are no multiple of a line.
    fn lines(&self, from: TensorId, to: TensorId) -> f64 {
        let line = limits(self.rates.table.arch).timing.line_bytes;
        let bits = self.p.scalar_of(from).bits();
        let run = contiguous(self.p, from, WIDEST).run.saturating_mul(bits) / 8;
        if line == 0 || run < SECTOR {
            return 1.0;
        }
        let leaves = self.p.tensors[from].levels.iter().flat_map(|l| l.leaves());
        let known = leaves.filter_map(|(n, s)| Some((n.as_const()?, s.as_const()?)));
        let apart = known.filter(|(n, s)| *n > 1 && s.saturating_mul(bits) / 8 >= run);
        let pitch =
            apart.fold(line, |all, (_, s)| num_integer::gcd(all, s.saturating_mul(bits) / 8));
        let narrow = num_integer::gcd(run, line);
        let is_boxed = self.products.boxed.contains(&self.p.tensors[to].buffer) && narrow < line;
        let piece = if is_boxed { narrow } else { run };
        // A narrow row that begins within a sector takes no second line by that.
        let whole = |at: i64| is_boxed || at % SECTOR == 0;
        let taken = |at: i64| ceil(at % line + piece, line) * if whole(at) { 1 } else { 2 };
        let starts = (line / pitch.max(1)).max(1);
        let row = |at: i64| (0..run / piece).map(|j| taken(at + j * piece)).sum::<i64>();
        if !is_boxed && (0..starts).all(|i| row(i * pitch) == row(0)) {
            return 1.0;
        }
        let all: i64 = (0..starts).map(|i| row(i * pitch)).sum();
        (all * line) as f64 / (starts * run) as f64
    }

    /// Whether all neighbors of a view lie within so many elements of each other, so that sectors
    /// are used whole.
    fn steps_within(&self, t: TensorId, elements: i64) -> bool {
        let leaves = self.p.tensors[t].levels.iter().flat_map(|l| l.leaves());
        let known = leaves.filter_map(|(n, s)| Some((n.as_const()?, s.as_const()?)));
        let mut dense: Vec<(i64, i64)> = known.filter(|(n, _)| *n > 1).collect();
        dense.sort_unstable_by_key(|(_, s)| *s);
        let mut run = 1i64;
        for (n, s) in dense {
            if s > run {
                break;
            }
            run = run.max(n.saturating_mul(s));
        }
        run >= elements
    }

    /// Accesses of shared memory.
    fn shared(&self, t: TensorId, by: Executors) -> Work {
        let limits = limits(self.rates.table.arch);
        let groups = (by.threads / by.group).max(1) as f64;
        let bytes = (elements(self.p, t) * self.p.scalar_of(t).bits()) as f64 / 8.0 * groups;
        let accesses = (bytes / WARP_BYTES).ceil().max(by.warps().min(bytes / 4.0).min(1.0));
        Work {
            instructions: accesses,
            issue: accesses,
            wavefronts: bytes / limits.smem_bytes_per_cycle() as f64,
            completion: limits.timing.shared_load_cycles,
            ..Work::default()
        }
    }

    /// What is computed.
    fn computed(&self, spec: &Spec, id: SpecId, by: Executors) -> Work {
        let Some(&to) = spec.outputs.first() else { return Work::default() };
        // A thread's own registers are not shared out.
        let each = |t: TensorId| match self.p.is_private(t) {
            true => elements(self.p, t) as f64,
            false => ceil(elements(self.p, t), by.group) as f64,
        };
        match spec.kind {
            SpecKind::MatMul | SpecKind::MatMulSet => self.multiplied(id, by),
            SpecKind::Move | SpecKind::Generic | SpecKind::Accumulate(_) => Work::default(),
            SpecKind::Reduction(op) => self.reduced(spec, op, to, by),
            SpecKind::Shfl(_) => {
                let n = each(to) * by.warps();
                Work { instructions: n, issue: n, wavefronts: n, ..Work::default() }
            }
            // An instruction for each element, or for as many as an atom takes.
            _ => self.pointwise(spec, each(to), by),
        }
    }

    fn pointwise(&self, spec: &Spec, each: f64, by: Executors) -> Work {
        let to = spec.outputs.first().map_or(Scalar::F32, |t| self.p.scalar_of(*t));
        let scalar = |o: &Operand| match o {
            Operand::Tensor(t) => self.p.scalar_of(*t),
            Operand::Number(_) => spec.input_tensors().next().map_or(to, |t| self.p.scalar_of(t)),
        };
        let mut scalars: Vec<Scalar> = spec.inputs.iter().map(scalar).collect();
        scalars.push(to);
        if matches!(spec.kind, SpecKind::Init | SpecKind::Iota) {
            let registers = (each * to.bits() as f64 / 32.0).ceil() * by.warps();
            return Work { instructions: registers, issue: registers, ..Work::default() };
        }
        let Some(row) = self.rates.pointwise(spec.kind, &scalars) else {
            let n = each * by.warps();
            return Work { instructions: n, issue: n, ..Work::default() };
        };
        let cycles = each * row.issue * by.warps();
        let instructions = (each / row.values).ceil() * by.warps();
        let special = row.unit == Unit::Special;
        Work {
            instructions,
            issue: if special { instructions } else { cycles },
            special: if special { cycles } else { 0.0 },
            completion: row.completion,
            ..Work::default()
        }
    }

    fn reduced(&self, spec: &Spec, op: ReduceOp, to: TensorId, by: Executors) -> Work {
        let Some(from) = spec.input_tensors().next() else { return Work::default() };
        let scalar = self.p.scalar_of(from);
        let (all, kept) = (elements(self.p, from).max(1), elements(self.p, to).max(1));
        let timing = &limits(self.rates.table.arch).timing;
        let combining = op.combining().map(SpecKind::Binary);
        let row = combining.and_then(|kind| self.rates.pointwise(kind, &[scalar; 3]));
        let (cycles, completion) = row.map_or((1.0, 4.0), |r| (r.issue, r.completion));
        // Lanes along what is reduced: as many as a row has vectors, where lanes are left over.
        let vectors = ceil((all / kept) * scalar.bits(), WIDEST);
        let over = (by.group / kept).max(1);
        let along = vectors.min(32).max(over).min(by.group).min(all / kept).max(1);
        let values = ceil(kept * along, by.group) as f64;
        let exchanges = f64::from((along.min(32) as u64).next_power_of_two().ilog2());
        let shuffles = values * exchanges * by.warps();
        let added = ceil(all, by.group) as f64 * by.warps() + shuffles;
        // Each value is added to the sum of those before it.
        let chain = ceil(all / kept, along) as f64 * completion;
        let mut work = Work {
            instructions: added + shuffles,
            issue: added * cycles + shuffles,
            wavefronts: shuffles * 32.0 / timing.shuffle_lanes,
            completion: chain + exchanges * (timing.shared_load_cycles + completion),
            ..Work::default()
        };
        if along > 32 {
            let lanes = lanes_of(along / 32);
            let exchanges = 2.0 * f64::from(lanes.ilog2());
            let warps = (along / 32 / lanes) as f64 + exchanges;
            let read = values * by.warps() * (1.0 + warps);
            work = work.and(Work {
                instructions: read,
                issue: read + values * by.warps() * warps * cycles,
                wavefronts: read,
                completion: timing.shared_store_cycles
                    + timing.shared_load_cycles
                    + warps * completion,
                barriers: 2.0,
                ..Work::default()
            });
        }
        work
    }

    fn multiplied(&self, id: SpecId, by: Executors) -> Work {
        let Some(s) = self.products.spreads.get(&id) else { return self.by_one(id, by) };
        let (m, n, k) = s.size;
        let (im, inn, ik) = s.row.tile;
        let executions = (by.threads / self.group(id, by, s.row.group)).max(1) as f64;
        let count = ceil(m, im) as f64 * ceil(n, inn) as f64 * ceil(k, ik) as f64 * executions;
        // Rows of single threads are executed by the 32 of a warp at once.
        let warps = s.row.group as f64 / 32.0;
        let cycles = count * s.row.issue * warps;
        let matrix = s.row.unit == Unit::Matrix;
        Work {
            instructions: count * warps,
            issue: if matrix { count * warps } else { cycles },
            matrix: if matrix { cycles } else { 0.0 },
            completion: s.row.completion,
            asynchronous: s.row.asynchronous,
            ..Work::default()
        }
    }

    /// Threads that multiply together: those of the instruction where each thread has its own sums.
    fn group(&self, id: SpecId, by: Executors, row: i64) -> i64 {
        let private = self.p.specs[id].outputs.first().is_some_and(|c| self.p.is_private(*c));
        if private { row.max(1) } else { by.group }
    }

    /// The row of a product by one instruction of each group, whose factors may lie in shared
    /// memory.
    fn whole(&self, id: SpecId) -> Option<Product> {
        let spec = &self.p.specs[id];
        let tensors: Vec<TensorId> =
            spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
        let [a, b, c] = tensors[..] else { return None };
        let (ea, eb) = (ops::extents(self.p, a)?, ops::extents(self.p, b)?);
        let ([m, k], [_, n]) = (&ea[..], &eb[..]) else { return None };
        let scalars = [a, b, c].map(|t| self.p.scalar_of(t));
        self.rates.whole(scalars, (*m, *n, *k))
    }

    /// A product by one instruction of each group, whose factors may lie in shared memory.
    fn by_one(&self, id: SpecId, by: Executors) -> Work {
        let Some(row) = self.whole(id) else { return Work::default() };
        let executions = (by.threads / row.group).max(1) as f64;
        let warps = row.group as f64 / 32.0;
        Work {
            instructions: executions * warps,
            issue: executions * warps,
            matrix: executions * row.issue * warps,
            // Those that follow it into the same accumulators do not wait.
            asynchronous: row.asynchronous,
            ..Work::default()
        }
    }
}

/// The quotient, rounded up.
pub(super) fn ceil(a: i64, b: i64) -> i64 {
    a.saturating_add(b - 1) / b.max(1)
}

/// How many lanes of a warp read values of different warps, of so many warps that exchange one
/// value.
pub(crate) fn lanes_of(warps: i64) -> i64 {
    if (MANY_WARPS..=32).contains(&warps) { 1 << warps.trailing_zeros() } else { 1 }
}
