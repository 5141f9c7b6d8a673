//! Extracts the parts of a kernel that its cost depends on, whatever its layouts ([`Outline`]):
//! leaves, the threads that execute them, loops around them, the buffers that they read and write,
//! and the bytes of device memory that they touch.

use crate::access::ops;
use crate::access::requests;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{
    BufferId, Condition, Program, Spec, SpecId, Stmt, StmtKind, TensorId, ThreadsId,
};
use num_integer::gcd;
use std::collections::{BTreeMap, HashMap};

/// A kernel, as its cost sees it.
#[derive(Debug)]
pub(crate) struct Outline {
    /// Threads of a block that execute the leaves.
    pub threads: i64,
    /// Groups of so many that a producer copies for ([`requests::consumers`]); 0 where they copy
    /// for themselves.
    pub consumers: i64,
    /// Blocks of the grid; none where a symbol says.
    pub blocks: Option<i64>,
    /// Its statements.
    pub body: Vec<Node>,
    /// Its leaf specs, in the order of the text.
    pub leaves: Vec<Leaf>,
    /// What its leaves touch of global memory.
    pub touched: Vec<Touched>,
    /// Buffers of the program.
    pub buffers: usize,
    /// How many iterations what lies in a buffer is filled ahead of what reads it, by the buffer; 0
    /// where it is not a ring.
    pub ahead: Vec<i64>,
    /// For which part of an iteration what lies in a ring is needed earlier than that, by the
    /// buffer: of the slices of an iteration some are read in the one before.
    pub early: Vec<f64>,
}

/// A statement.
#[derive(Debug)]
pub(crate) enum Node {
    /// A leaf, by its number.
    Leaf(usize),
    /// A loop.
    Loop {
        /// Its iterations, of the block that has most; loops of unknown length count as one.
        trips: i64,
        /// What is repeated.
        body: Vec<Node>,
    },
}

/// A leaf spec.
#[derive(Debug)]
pub(crate) struct Leaf {
    /// Which.
    pub spec: SpecId,
    /// Who executes it.
    pub by: Executors,
    /// What it reads.
    pub reads: Vec<BufferId>,
    /// What it writes.
    pub writes: Vec<BufferId>,
    /// Buffers in shared memory that it touches, and whether it writes them.
    pub shared: Vec<(BufferId, bool)>,
    /// Executions by one block.
    pub times: f64,
    /// In which part of the turns of the loops around it is executed.
    pub part: f64,
    /// Which part of what it reads of global memory a block copies itself: blocks of its cluster
    /// copy the rest.
    pub share: f64,
}

/// Threads that execute a leaf.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Executors {
    /// The first thread of them.
    pub first: i64,
    /// All of them.
    pub threads: i64,
    /// Those that execute it together: one execution.
    pub group: i64,
}

impl Executors {
    /// Warps of them, at least one.
    pub(crate) fn warps(&self) -> f64 {
        ((self.threads + 31) / 32).max(1) as f64
    }
}

/// What a leaf touches of a tensor in global memory.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    /// By which leaf.
    pub leaf: usize,
    /// Of which buffer.
    pub buffer: BufferId,
    /// Bytes of the buffer, if they are known.
    pub whole: Option<f64>,
    /// Different bytes that one block touches.
    pub block: f64,
    /// Where that begins, in the first turns of loops; none where it is not known.
    pub first: Option<i64>,
    /// Sectors that lie apart, for each that it touches: one of those that lie side by side. What
    /// is shorter than a sector shares it with what other threads touch.
    pub apart: f64,
    /// For the parts of the number of a block (extent, step): those on which the bytes depend.
    pub digits: Vec<(i64, i64)>,
}

impl Touched {
    /// How many different parts so many consecutive blocks touch.
    pub(crate) fn parts(&self, blocks: f64) -> f64 {
        let along = |(n, step): &(i64, i64)| (blocks / *step as f64).ceil().clamp(1.0, *n as f64);
        self.digits.iter().map(along).product()
    }

    /// Different bytes that so many consecutive blocks touch.
    pub(crate) fn bytes(&self, blocks: f64) -> f64 {
        let bytes = self.block * self.parts(blocks).min(blocks.max(1.0));
        self.whole.map_or(bytes, |whole| bytes.min(whole))
    }
}

impl Outline {
    /// The outline of a kernel; none where it has no body, or its threads are not known.
    pub(crate) fn of(p: &Program, kernel: SpecId) -> Option<Self> {
        let spec = &p.specs[kernel];
        let exec = spec.exec?;
        let body = spec.body.as_ref()?;
        let threads = p.threads[exec.threads].concat().to_fixed()?.size();
        let grid: Option<Layout> = p.threads[exec.blocks].concat().to_fixed();
        let block = p.threads[exec.blocks].var;
        let mut walk = Walk {
            p,
            threads,
            grid: grid.as_ref().map(digits).unwrap_or_default(),
            block,
            cluster: requests::cluster(p, kernel),
            loops: vec![],
            ranges: vec![],
            part: 1.0,
            out: Outline {
                threads,
                consumers: requests::consumers(spec),
                blocks: grid.map(|g| g.size()),
                body: vec![],
                leaves: vec![],
                touched: vec![],
                buffers: p.buffers.len(),
                ahead: vec![0; p.buffers.len()],
                early: vec![0.0; p.buffers.len()],
            },
            stages: BTreeMap::new(),
        };
        let body = walk.stmts(body);
        for (buffer, read) in walk.stages {
            let early = &mut walk.out.early[usize::from(buffer)];
            *early = early.max(read.others / (read.first + read.others));
        }
        Some(Outline { body, ..walk.out })
    }
}

/// The parts of the number of a block: extent and step.
fn digits(grid: &Layout) -> Vec<(i64, i64)> {
    grid.leaves().iter().copied().filter(|(n, s)| *n > 1 && *s > 0).collect()
}

struct Walk<'p> {
    p: &'p Program,
    threads: i64,
    grid: Vec<(i64, i64)>,
    block: Option<VarId>,
    /// Blocks of a cluster.
    cluster: i64,
    /// Variables and trips of the loops around, from the outside in, at most and in the mean.
    loops: Vec<(VarId, i64, f64)>,
    /// Where the loops around begin, and their steps.
    ranges: Vec<(Dim, i64)>,
    /// In which part of the turns of the loops around what follows is executed.
    part: f64,
    out: Outline,
    /// How rings are read in loops.
    stages: BTreeMap<BufferId, Stages>,
}

/// How the stages of a ring are read in an iteration.
struct Stages {
    /// Which is read first.
    stage: i64,
    /// Executions that read it.
    first: f64,
    /// Executions that read others.
    others: f64,
}

impl Walk<'_> {
    /// Turns of a loop at most, and in the mean of blocks and threads where it begins at a
    /// coordinate. 1 where they are not known.
    fn trips(&self, start: Dim, end: Dim, step: i64) -> (i64, f64) {
        if let Some(known) = ops::trips(start, end, step) {
            return (known, known as f64);
        }
        let about = ops::about(self.p, start, end, step).unwrap_or(1);
        let (low, high) = self.p.arena.range(start);
        let (Some(low), Some(high)) = (low, high) else { return (about, about as f64) };
        let of = |start: i64| ops::trips(Dim::Const(start), end, step);
        let Some(most) = of(low) else { return (about, about as f64) };
        let n = high.saturating_sub(low).clamp(0, MOST_STARTS - 1) + 1;
        let each = |i: i64| low + (high - low) / n * i + (high - low) % n * i / n;
        let sum: f64 = (0..n).filter_map(|i| of(each(i))).map(|trips| trips as f64).sum();
        (most, sum / n as f64)
    }

    /// In which part of the turns of one loop around a condition holds; none where more than that
    /// loop tells.
    fn held(&self, cond: &[Condition]) -> Option<f64> {
        let (&(var, trips, _), &(start, step)) = self.loops.iter().zip(&self.ranges).next_back()?;
        let start = start.as_const()?;
        let of_turn = |turn: i64| {
            let value = turn.checked_mul(step)?.checked_add(start)?;
            let of = |d: Dim| self.p.arena.eval(d, &|v| (v == var).then_some(value)).ok();
            let holds = |(a, op, b): &Condition| Some(op.holds(of(*a)?, of(*b)?));
            cond.iter().try_fold(true, |all, c| Some(all & holds(c)?))
        };
        let seen = trips.clamp(0, MOST_TURNS);
        let mut held = 0i64;
        for i in 0..seen {
            held += i64::from(of_turn(i * trips / seen)?);
        }
        (seen > 0).then(|| held as f64 / seen as f64)
    }

    // The parser bounds how deep statements lie in one another.
    fn stmts(&mut self, stmts: &[Stmt]) -> Vec<Node> {
        let mut out = vec![];
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Spec(id) => match &self.p.specs[*id].body {
                    Some(body) => out.extend(self.stmts(body)),
                    None => out.extend(self.leaf(*id)),
                },
                StmtKind::For { var, start, end, step, stages, body, .. } => {
                    let (trips, mean) = self.trips(*start, *end, *step);
                    if *stages > 1 {
                        self.rings(body, *stages);
                    }
                    self.loops.push((*var, trips, mean));
                    self.ranges.push((*start, *step));
                    let body = self.stmts(body);
                    self.ranges.pop();
                    self.loops.pop();
                    if !body.is_empty() {
                        out.push(Node::Loop { trips, body });
                    }
                }
                StmtKind::If { cond, then, otherwise } => {
                    let (part, around) = (self.held(cond), self.part);
                    self.part = around * part.unwrap_or(1.0);
                    out.extend(self.stmts(then));
                    self.part = around * part.map_or(1.0, |part| 1.0 - part);
                    out.extend(self.stmts(otherwise));
                    self.part = around;
                }
                // A ring that is written out: its outermost level are its stages.
                StmtKind::Allocate(t) => {
                    let tensor = &self.p.tensors[*t];
                    if let ([stages, _, ..], true) = (&tensor.levels[..], self.is_shared(*t)) {
                        let n = stages.to_fixed().map_or(1, |l| l.size());
                        let ahead = &mut self.out.ahead[usize::from(tensor.buffer)];
                        *ahead = (*ahead).max(n - 1);
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// Notes the tensors of a loop that are filled ahead: those that it declares.
    fn rings(&mut self, body: &[Stmt], stages: i64) {
        for stmt in body {
            let StmtKind::Allocate(t) = stmt.kind else { continue };
            let buffer = self.p.tensors[t].buffer;
            let shared = self.p.buffers[buffer].is_shared();
            let comes = |t: TensorId| {
                let from = self.p.buffer_of(t);
                if shared { from.is_global() } else { from.is_shared() }
            };
            let fills = |id: SpecId| {
                let spec = &self.p.specs[id];
                let writes = spec.outputs.iter().any(|t| self.p.tensors[*t].buffer == buffer);
                writes && spec.input_tensors().next().is_some_and(comes)
            };
            if self.p.walk(body).specs().any(fills) {
                self.out.ahead[usize::from(buffer)] = stages - 1;
            }
        }
    }

    fn is_shared(&self, t: TensorId) -> bool {
        self.p.buffer_of(t).is_shared()
    }

    fn leaf(&mut self, id: SpecId) -> Option<Node> {
        let p = self.p;
        let spec = &p.specs[id];
        let by = self.executors(spec)?;
        let of = |t: TensorId| p.tensors[t].buffer;
        let number = self.out.leaves.len();
        let times = self.loops.iter().fold(self.part, |n, (.., mean)| n * mean);
        let (mut shared, mut share) = (vec![], 1.0);
        let (inputs, outputs) = (spec.input_tensors(), spec.outputs.iter().copied());
        for (t, writes) in inputs.map(|t| (t, false)).chain(outputs.map(|t| (t, true))) {
            if self.is_shared(t) {
                shared.push((of(t), writes));
            }
            if p.buffer_of(t).is_global() {
                let touched = self.touched(number, t, by);
                // A tensor that is written as boxes already names its part.
                let copies = spec.kind == SpecKind::Move && spec.bar.is_none() && !writes;
                if let (Some(touched), true) = (&touched, copies && self.cluster > 1) {
                    let blocks = self.cluster as f64;
                    share = touched.parts(blocks) / blocks;
                }
                self.out.touched.extend(touched);
            }
        }
        let rings: Vec<TensorId> = spec.input_tensors().filter(|t| self.is_shared(*t)).collect();
        rings.into_iter().for_each(|t| self.early(spec, t, by));
        self.out.leaves.push(Leaf {
            spec: id,
            by,
            reads: spec.input_tensors().map(of).collect(),
            writes: spec.outputs.iter().map(|t| of(*t)).collect(),
            share: if shared.iter().any(|(_, writes)| *writes) { share } else { 1.0 },
            shared,
            times,
            part: self.part,
        });
        Some(Node::Leaf(number))
    }

    /// Notes which stage of a ring a leaf reads, or how many slices ahead.
    fn early(&mut self, spec: &Spec, t: TensorId, by: Executors) {
        let p = self.p;
        let buffer = p.tensors[t].buffer;
        let Some((_, turns, mean)) = self.loops.last() else { return };
        let (turns, mean) = (*turns as f64, *mean);
        // Slices that are to be loaded ahead into registers.
        let slices = spec.outputs.iter().map(|t| self.out.ahead[usize::from(p.tensors[*t].buffer)]);
        let slices = slices.max().unwrap_or(0) as f64;
        if slices > 0.0 && turns > slices {
            let early = &mut self.out.early[usize::from(buffer)];
            *early = early.max(slices / turns);
        }
        // Stages that are written out.
        let Some(stage) = self.stage(t, by) else { return };
        let read = self.stages.entry(buffer).or_insert(Stages { stage, first: 0.0, others: 0.0 });
        match read.stage == stage {
            true => read.first += mean,
            false => read.others += mean,
        }
    }

    /// Which stage of its ring a view is of in the first turns of the loops around: by so much it
    /// is ahead of the stage that comes first. None where no loop goes around the ring.
    fn stage(&self, t: TensorId, by: Executors) -> Option<i64> {
        let p = self.p;
        let whole = &p.tensors[p.buffer_of(t).tensor];
        let [stages, _, ..] = &whole.levels[..] else { return None };
        let (n, step) = stages.to_fixed()?.leaves().first().copied()?;
        let mut values = self.first_turns(by, 0);
        self.loops.iter().zip(&self.ranges).rev().find_map(|((var, ..), (_, by_turn))| {
            let begin = values.get(var).copied().unwrap_or_default();
            let mut all = vec![];
            for turn in 0..n.min(MOST_STAGES) {
                values.insert(*var, begin.saturating_add(turn.saturating_mul(*by_turn)));
                all.push(p.value_at(p.tensors[t].offset, by.first, &values)?);
            }
            values.insert(*var, begin);
            let least = all.iter().min().copied()?;
            let first = all.first()? - least;
            all.sort_unstable();
            let around = all.windows(2).all(|w| w[1] - w[0] == step) && step > 0 && n > 1;
            (around && n <= MOST_STAGES).then_some(first / step)
        })
    }

    fn executors(&self, spec: &Spec) -> Option<Executors> {
        let own = &self.p.threads[spec.exec?.threads];
        let all = |id: ThreadsId| self.p.threads[id].concat().to_fixed().map(|l| l.size());
        let first = own.offset.as_const().unwrap_or(0);
        let known = match own.each {
            Some(each) => all(each).map(|threads| (threads, 1)),
            None => own.concat().to_fixed().map(|l| {
                let of = |l: &Layout<Dim>| l.to_fixed().map_or(1, |l| l.size());
                let group: i64 = own.inner().iter().map(of).product();
                (l.size(), if own.elect.is_some() { 1 } else { group })
            }),
        };
        let (threads, group) = known.unwrap_or((self.threads, self.threads));
        Some(Executors { first, threads: threads.max(1), group: group.max(1) })
    }

    /// The values of the loops around in the first turns of a block.
    fn first_turns(&self, by: Executors, block: i64) -> HashMap<VarId, i64> {
        let mut values: HashMap<VarId, i64> =
            self.block.map(|var| (var, block)).into_iter().collect();
        for ((var, ..), (start, _)) in self.loops.iter().zip(&self.ranges) {
            let begin = self.p.value_at(*start, by.first, &values);
            values.insert(*var, begin.unwrap_or_else(|| self.p.arena.var_info(*var).lo));
        }
        values
    }

    /// What a view touches of global memory, whoever executes it, and on which blocks and loops
    /// that depends.
    fn touched(&self, leaf: usize, t: TensorId, by: Executors) -> Option<Touched> {
        let p = self.p;
        let tensor = &p.tensors[t];
        let mut buffer = tensor.buffer;
        let bits = p.buffers[buffer].scalar.bits() as f64;
        let mut block = elements(p, t) as f64 * bits / 8.0 * (by.threads / by.group).max(1) as f64;
        let at = |values: &HashMap<VarId, i64>| p.value_at(tensor.offset, by.first, values);
        let mut values = self.first_turns(by, 0);
        let first = at(&values);
        for ((var, trips, mean), (_, step)) in self.loops.iter().zip(&self.ranges) {
            let begin = values.get(var).copied().unwrap_or_default();
            let mut moves = |by: i64| {
                values.insert(*var, begin.saturating_add(by));
                at(&values) != first
            };
            if *trips > 1 && (first.is_none() || moves(1) || moves(*step)) {
                block *= mean;
            }
            values.insert(*var, begin);
        }
        // Coordinates that are read from memory differ from block to block.
        let gather = p.buffers[buffer].gather;
        let depends = |b: i64| {
            let unknown = self.block.is_none() || gather.is_some() || first.is_none();
            unknown || at(&self.first_turns(by, b)) != first
        };
        let digits = self.grid.iter().flat_map(|digit| parts_of(*digit, &depends)).collect();
        buffer = gather.map_or(buffer, |g| g.source);
        let whole = p.buffers[buffer].cosize.as_const().map(|n| n as f64 * bits / 8.0);
        let block = whole.map_or(block, |whole| block.min(whole));
        let run = contiguous(p, t, 128).run as f64 * bits / 8.0;
        let sector = carbyne_atoms::SECTOR_BYTES as f64;
        let apart = sector / run.max(sector);
        Some(Touched { leaf, buffer, whole, block, first, apart, digits })
    }
}

/// The parts of a digit on which something depends: factors of two one by one, for blocks go over
/// tiles in bands, and what is left of it; those side by side are one.
fn parts_of((n, step): (i64, i64), depends: &dyn Fn(i64) -> bool) -> Vec<(i64, i64)> {
    let mut out: Vec<(i64, i64)> = vec![];
    let (mut left, mut at) = (n, step);
    while left > 1 {
        let own = if left % 2 == 0 { 2 } else { left };
        let some = [1, own / 2, own - 1];
        if some.iter().any(|i| *i > 0 && depends(at.saturating_mul(*i))) {
            match out.last_mut() {
                Some((n, step)) if step.saturating_mul(*n) == at => *n *= own,
                _ => out.push((own, at)),
            }
        }
        (left, at) = (left / own, at.saturating_mul(own));
    }
    out
}

/// Extents and steps of a view, extents of 1 left out; what a symbol says counts as 1 element, and
/// as a step that it divides.
fn modes(p: &Program, t: TensorId) -> impl Iterator<Item = (i64, i64)> {
    let leaves = p.tensors[t].levels.iter().flat_map(Layout::leaves);
    leaves.filter_map(|(n, step)| {
        let step = step.as_const().unwrap_or_else(|| p.arena.divisor(*step).saturating_mul(FAR));
        let n = n.as_const().unwrap_or(1);
        (n > 1).then_some((n, step))
    })
}

/// Coordinates at which loops begin that are looked at.
const MOST_STARTS: i64 = 1024;

/// Stages of rings that are told apart.
const MOST_STAGES: i64 = 16;

/// Turns of a loop in which conditions are looked at.
const MOST_TURNS: i64 = 64;

/// A factor of steps that are not known, farther than what is side by side.
const FAR: i64 = 1 << 20;

/// Elements of a view.
pub(crate) fn elements(p: &Program, t: TensorId) -> i64 {
    modes(p, t).fold(1, |n, (extent, _)| n.saturating_mul(extent))
}

/// How the elements of a view lie in memory.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Contiguous {
    /// Elements.
    pub elements: i64,
    /// Of these side by side.
    pub run: i64,
    /// Elements that one access may take, aligned: a power of two.
    pub vector: i64,
}

/// How the elements of a view lie in memory; accesses take at most so many bits.
pub(crate) fn contiguous(p: &Program, t: TensorId, widest: i64) -> Contiguous {
    let mut modes: Vec<(i64, i64)> = modes(p, t).collect();
    modes.sort_unstable_by_key(|(_, step)| *step);
    let elements = modes.iter().fold(1i64, |n, (extent, _)| n.saturating_mul(*extent));
    let (mut run, mut aligned) = (1i64, 0i64);
    for (n, step) in &modes {
        match *step == run && aligned == 0 {
            true => run = run.saturating_mul(*n),
            // The same elements again are read once.
            false if *step == 0 => {}
            false => aligned = gcd(aligned, *step),
        }
    }
    let offset = &p.tensors[t].offset;
    let aligned = gcd(gcd(run, aligned), p.arena.divisor(*offset));
    let bits = p.scalar_of(t).bits().max(1);
    let mut vector = 1;
    while aligned % (2 * vector) == 0 && 2 * vector * bits <= widest {
        vector *= 2;
    }
    Contiguous { elements, run, vector }
}
