//! Solves a tile-level body: thread-value layouts, shared-memory layouts, instructions, barriers.
//!
//! 1. MatMuls are anchors: atom and tiling of the block by groups of threads are chosen by cost among
//!    those that agree with pinned layouts; Fig. 19(b) gives f_a, f_b, f_c.
//! 2. Layouts spread through operations between registers (Fig. 19(c): equal).
//! 3. Every copy gets candidates: one per row, with the other side by Fig. 19(a).
//! 4. For each shared tensor, the choice of candidates whose runs unify and whose cost, wavefronts
//!    included, is least; the swizzle by counted conflicts.
//! 5. Barriers and waits from dependences.
//!
//! Invariant: every layout that a person wrote stands in the solution as written, or the solver says
//! which of them cannot hold.

pub mod barriers;
pub mod certificate;
pub mod copy;
pub mod ops;
pub mod smem;
pub mod tv;

use crate::matching;
use carbyne_atoms::{Atom, AtomOp, AtomTable};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use certificate::Certificate;
use copy::{Candidate, Side};
use ops::Op;
use smem::{Access, Banks};
use std::collections::BTreeMap;
use tv::Gemm;

/// What the solver found for one kernel.
#[derive(Clone, Debug, Default)]
pub struct Solution {
    /// Thread-value layouts of open register tensors, and the name of the threads they count.
    pub tv: BTreeMap<BufferId, (Layout, String)>,
    /// Layouts and swizzles of open shared tensors.
    pub shared: BTreeMap<BufferId, (Layout, Option<Swizzle>)>,
    /// How each copy and conversion is implemented.
    pub copies: BTreeMap<SpecId, Candidate>,
    /// How each MatMul is implemented.
    pub matmuls: BTreeMap<SpecId, (&'static str, Gemm)>,
    /// The row that implements each Init, and how many values a thread initializes.
    pub inits: BTreeMap<SpecId, (&'static str, i64)>,
    /// Barriers and waits, and where they are put.
    pub before: BTreeMap<barriers::Place, barriers::Sync>,
    /// One per relation.
    pub certificates: Vec<Certificate>,
}

/// Solves the tile operations of a kernel; empty where it has none.
///
/// # Errors
/// The first operation that cannot be implemented, with the nearest atoms; or pins that conflict.
pub fn solve(p: &Program, kernel: SpecId, table: &AtomTable) -> Result<Solution, Box<Diagnostic>> {
    let ops = ops::collect(p, kernel);
    if ops.is_empty() {
        return Ok(Solution::default());
    }
    let mut s = Solver {
        p,
        table,
        threads: ops::block_threads(p, kernel),
        block: ops::block_name(p, kernel),
        known: BTreeMap::new(),
        out: Solution::default(),
    };
    s.check_block(kernel)?;
    s.pins(&ops);
    for op in &ops {
        if matches!(p.specs[op.spec].kind, SpecKind::MatMul) {
            s.matmul(op)?;
        }
    }
    s.spread(&ops)?;
    let choices = s.copies(&ops)?;
    s.shared(&ops, choices)?;
    for op in &ops {
        if p.specs[op.spec].kind == SpecKind::Init {
            s.init(op)?;
        }
    }
    s.check_done(&ops)?;
    s.out.before = barriers::plan(p, kernel, &s.out, table);
    certificate::certify(p, &s.known, &mut s.out, table)?;
    Ok(s.out)
}

struct Solver<'p> {
    p: &'p Program,
    table: &'p AtomTable,
    threads: i64,
    /// The name of the block's threads.
    block: String,
    /// Thread-value layouts, pinned and found.
    known: BTreeMap<BufferId, Layout>,
    out: Solution,
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

impl Solution {
    /// Adds what was found for another kernel.
    pub fn merge(&mut self, other: Solution) {
        self.tv.extend(other.tv);
        self.shared.extend(other.shared);
        self.copies.extend(other.copies);
        self.matmuls.extend(other.matmuls);
        self.inits.extend(other.inits);
        self.before.extend(other.before);
        self.certificates.extend(other.certificates);
    }
}

impl Solver<'_> {
    fn fail<T>(&self, code: Code, spec: SpecId, message: String, help: &str) -> Fallible<T> {
        Err(Box::new(Diagnostic::new(code, self.p.specs[spec].span, message).help(help)))
    }

    fn buffer(&self, t: TensorId) -> BufferId {
        self.p.tensors[t].buffer
    }

    /// Threads must be numbered as the hardware numbers them.
    fn check_block(&self, kernel: SpecId) -> Fallible<()> {
        let whole =
            self.p.specs[kernel].exec.and_then(|e| self.p.threads[e.threads].concat().to_fixed());
        if whole.is_some_and(|l| (0..l.size()).all(|i| l.at(i) == i)) {
            return Ok(());
        }
        self.fail(
            Code::NoStrategy,
            kernel,
            "tile operations need threads in the hardware's order".to_owned(),
            "declare the block's threads as `[n].thread`, or first mode fastest",
        )
    }

    fn pins(&mut self, ops: &[Op]) {
        for op in ops {
            let spec = &self.p.specs[op.spec];
            for t in spec.input_tensors().chain(spec.outputs.iter().copied()) {
                let dist = self.p.tensors[t].dist.as_ref();
                if let Some(tv) = dist.and_then(|d| d.tv.as_ref()).and_then(|tv| tv.to_fixed()) {
                    self.known.insert(self.buffer(t), tv);
                }
            }
        }
    }

    /// Whether a layout is the one known for the tensor, or none is known.
    fn agrees(&self, t: TensorId, tv: &Layout) -> bool {
        self.known.get(&self.buffer(t)).is_none_or(|k| same(k, tv))
    }

    fn matmul(&mut self, op: &Op) -> Fallible<()> {
        let spec = &self.p.specs[op.spec];
        let tensors: Vec<TensorId> =
            spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
        let [a, b, c] = tensors[..] else {
            return self.fail(
                Code::NoAtom,
                op.spec,
                "a MatMul has three operands".into(),
                "correct it",
            );
        };
        if let Some(t) = tensors.iter().find(|t| self.p.buffer_of(**t).memory != Some(Memory::Rf)) {
            let name = self.p.tensor_name(*t);
            return self.fail(
                Code::NoAtom,
                op.spec,
                format!(
                    "{name} does not lie in registers, where the MatMul atoms of {} read",
                    self.table.arch
                ),
                "move it to an open register tensor first, `.RF{?}`",
            );
        }
        let (sa, sb, sc) = (self.p.scalar_of(a), self.p.scalar_of(b), self.p.scalar_of(c));
        let rows = copy::matmul_rows(self.table, sa, sb, sc);
        if rows.is_empty() {
            return Err(Box::new(self.no_matmul(op.spec)));
        }
        let (ea, ec) = (ops::extents(self.p, a), ops::extents(self.p, c));
        let (Some(&[_, k]), Some(&[m, n])) = (ea.as_deref(), ec.as_deref()) else {
            return self.fail(
                Code::NoAtom,
                op.spec,
                "only MatMuls of two modes and known sizes are decomposed".into(),
                "write a loop over the batch",
            );
        };
        let pin = match spec.ints("warps") {
            Some([m, n]) => Some((*m, *n)),
            _ => None,
        };
        let mut best: Option<(f64, &Atom, Gemm, [Layout; 3])> = None;
        let mut clash = false;
        for atom in &rows {
            let AtomOp::MatMul { m: im, n: inn, k: ik, .. } = atom.op else { continue };
            let groups = self.threads / atom.group;
            if groups < 1 || self.threads % atom.group != 0 {
                continue;
            }
            for gm in (1..=groups).filter(|g| groups % g == 0) {
                let gemm =
                    Gemm { inst: (im, inn, ik), block: (m, n, k), groups: (gm, groups / gm) };
                if pin.is_some_and(|w| w != gemm.groups) {
                    continue;
                }
                let ops = &atom.operands;
                let Ok((fa, fb, fc)) = gemm.layouts(&ops[0].tv, &ops[1].tv, &ops[2].tv) else {
                    continue;
                };
                if !self.agrees(a, &fa) || !self.agrees(b, &fb) || !self.agrees(c, &fc) {
                    clash = true;
                    continue;
                }
                let cost = gemm_cost(&gemm, atom, [(&fa, sa), (&fb, sb), (&fc, sc)]);
                if best.as_ref().is_none_or(|(c, ..)| cost < *c) {
                    best = Some((cost, *atom, gemm, [fa, fb, fc]));
                }
            }
        }
        let Some((_, atom, gemm, layouts)) = best else {
            let (message, code) = if clash {
                (
                    "the pinned thread-value layouts fit no MatMul atom".to_owned(),
                    Code::PinsConflict,
                )
            } else {
                let shapes: Vec<String> = rows.iter().map(|r| format!("`{}`", r.name)).collect();
                (
                    format!(
                        "{} threads do not tile a MatMul of {m}x{n}x{k} with {}",
                        self.threads,
                        shapes.join(" or ")
                    ),
                    Code::PinsConflict,
                )
            };
            return self.fail(
                code,
                op.spec,
                message,
                "choose tile sizes that the atom's extents times the warps along each mode divide",
            );
        };
        for (t, tv) in [a, b, c].into_iter().zip(layouts) {
            self.found(t, tv);
        }
        self.out.matmuls.insert(op.spec, (atom.name, gemm));
        Ok(())
    }

    /// The error for element types that no row multiplies.
    fn no_matmul(&self, id: SpecId) -> Diagnostic {
        let rejected: Vec<_> = self
            .table
            .implementing(self.p.specs[id].kind)
            .filter_map(|atom| {
                Some((atom.name, matching::match_atom(self.p, id, &[], atom).err()?))
            })
            .collect();
        matching::no_atom(self.p, id, self.table, &rejected)
    }

    fn found(&mut self, t: TensorId, tv: Layout) {
        let buffer = self.buffer(t);
        self.known.entry(buffer).or_insert_with(|| tv.clone());
        if self.p.buffers[buffer].open {
            self.out.tv.entry(buffer).or_insert((tv, self.block.clone()));
        }
    }

    fn side(&self, t: TensorId) -> Side {
        if self.p.buffer_of(t).memory != Some(Memory::Rf) {
            return Side::Memory;
        }
        self.known.get(&self.buffer(t)).map_or(Side::Open, |tv| Side::Registers(tv.clone()))
    }

    fn ends(&self, op: &Op) -> Option<(TensorId, TensorId)> {
        let spec = &self.p.specs[op.spec];
        match spec.kind {
            SpecKind::Move | SpecKind::Unary(_) => {
                Some((spec.input_tensors().next()?, *spec.outputs.first()?))
            }
            _ => None,
        }
    }

    /// Spreads known layouts between registers; then anchors the copy that moves most, and again.
    fn spread(&mut self, ops: &[Op]) -> Fallible<()> {
        loop {
            let mut anchor: Option<(i64, &Op)> = None;
            let mut progress = false;
            for op in ops {
                let Some((src, dst)) = self.ends(op) else { continue };
                match (self.side(src), self.side(dst)) {
                    (Side::Registers(tv), Side::Open) => {
                        self.found(dst, tv);
                        progress = true;
                    }
                    (Side::Open, Side::Registers(tv)) => {
                        self.found(src, tv);
                        progress = true;
                    }
                    (Side::Open, Side::Memory) | (Side::Memory, Side::Open) => {
                        let size = ops::whole(self.p, dst).map_or(0, |l| l.size());
                        let bytes = size.saturating_mul(self.p.scalar_of(dst).bits());
                        if anchor.is_none_or(|(b, _)| bytes > b) {
                            anchor = Some((bytes, op));
                        }
                    }
                    _ => {}
                }
            }
            if progress {
                continue;
            }
            let Some((_, op)) = anchor else { return Ok(()) };
            let Some((src, dst)) = self.ends(op) else { return Ok(()) };
            let list = self.candidates(op, src, dst)?;
            // A register tensor needs every thread, or its values would have no owner elsewhere.
            let Some(c) = list.into_iter().find(|c| c.threads == self.threads) else {
                return self.fail(
                    Code::NoAtom,
                    op.spec,
                    format!("{} threads cannot share the tensor evenly", self.threads),
                    "choose a number of threads that divides the tensor's vectors",
                );
            };
            let (t, tv) =
                if matches!(self.side(src), Side::Open) { (src, c.f) } else { (dst, c.g) };
            self.found(t, tv);
        }
    }

    fn candidates(&self, op: &Op, src: TensorId, dst: TensorId) -> Fallible<Vec<Candidate>> {
        let sides = (self.side(src), self.side(dst));
        copy::candidates(self.p, op.spec, sides.0, sides.1, self.table, self.threads)
            .map_err(|r| Box::new(matching::no_atom(self.p, op.spec, self.table, &r)))
    }

    /// Candidates of every copy.
    fn copies(&self, ops: &[Op]) -> Fallible<BTreeMap<SpecId, Vec<Candidate>>> {
        let mut all = BTreeMap::new();
        for op in ops {
            let Some((src, dst)) = self.ends(op) else { continue };
            let mut list = self.candidates(op, src, dst)?;
            if let (Side::Registers(_), Side::Registers(g)) = (self.side(src), self.side(dst)) {
                list.retain(|c| same(&c.g, &g));
                if list.is_empty() {
                    return self.fail(
                        Code::PinsConflict,
                        op.spec,
                        "source and destination are spread over threads differently".into(),
                        "leave one of the thread-value layouts open, or move through shared memory",
                    );
                }
            }
            all.insert(op.spec, list);
        }
        Ok(all)
    }

    /// Chooses candidates buffer by buffer, so that the runs of each shared tensor unify.
    fn shared(&mut self, ops: &[Op], choices: BTreeMap<SpecId, Vec<Candidate>>) -> Fallible<()> {
        let mut groups: BTreeMap<BufferId, Vec<&Op>> = BTreeMap::new();
        for op in ops {
            let Some((src, dst)) = self.ends(op) else { continue };
            let open = [src, dst]
                .into_iter()
                .map(|t| self.buffer(t))
                .find(|b| self.p.buffers[*b].open && self.p.buffers[*b].memory == Some(Memory::Sh));
            match open {
                Some(b) => groups.entry(b).or_default().push(op),
                None => {
                    self.out.copies.insert(op.spec, choices[&op.spec][0].clone());
                }
            }
        }
        for (buffer, ops) in groups {
            self.shared_tensor(buffer, &ops, &choices)?;
        }
        Ok(())
    }

    fn shared_tensor(
        &mut self,
        id: BufferId,
        ops: &[&Op],
        choices: &BTreeMap<SpecId, Vec<Candidate>>,
    ) -> Fallible<()> {
        let buffer = &self.p.buffers[id];
        let shape = ops::extents(self.p, buffer.tensor).unwrap_or_default();
        let bytes = (buffer.scalar.bits() / 8).max(1);
        let limits = carbyne_atoms::limits(self.table.arch);
        let banks = Banks { n: limits.smem_banks, bytes: limits.bank_bytes };
        let lists: Vec<&[Candidate]> = ops.iter().map(|o| choices[&o.spec].as_slice()).collect();
        let mut best: Option<(f64, Vec<usize>, Layout, Option<Swizzle>)> = None;
        let mut conflict = String::new();
        let mut pick = vec![0usize; ops.len()];
        loop {
            let chosen: Vec<&Candidate> = pick.iter().zip(&lists).map(|(i, l)| &l[*i]).collect();
            let base: f64 = chosen.iter().zip(ops).map(|(c, o)| c.cost * o.trips as f64).sum();
            if best.as_ref().is_none_or(|(cost, ..)| base < *cost) {
                let runs: Vec<smem::Run> = chosen
                    .iter()
                    .flat_map(|c| c.src_run.iter().chain(&c.dst_run))
                    .filter(|r| !r.is_empty())
                    .cloned()
                    .collect();
                match smem::unify(&shape, &runs) {
                    Ok(layout) => {
                        let accesses: Vec<Access> = ops
                            .iter()
                            .zip(&chosen)
                            .filter_map(|(o, c)| self.access(o, c, id, bytes))
                            .collect();
                        let (swizzle, w) = smem::best_swizzle(&layout, bytes, &accesses, banks);
                        let cost = base + w;
                        if best.as_ref().is_none_or(|(c, ..)| cost < *c) {
                            best = Some((cost, pick.clone(), layout, swizzle));
                        }
                    }
                    Err(why) => conflict = why,
                }
            }
            // The next combination, last operation fastest.
            let Some(i) = (0..pick.len()).rev().find(|&i| pick[i] + 1 < lists[i].len()) else {
                break;
            };
            pick[i] += 1;
            pick[i + 1..].fill(0);
        }
        let Some((_, pick, layout, swizzle)) = best else {
            let mut d = Diagnostic::new(
                Code::PinsConflict,
                buffer.span,
                format!("no layout of `%{}` serves all its accesses", buffer.name),
            )
            .label(conflict)
            .help("copy through registers, or pin a scalar atom on one of the accesses");
            for op in ops {
                d = d.related(self.p.specs[op.spec].span, "accesses it");
            }
            return Err(Box::new(d));
        };
        for ((op, list), i) in ops.iter().zip(&lists).zip(pick) {
            self.out.copies.insert(op.spec, list[i].clone());
        }
        self.out.shared.insert(id, (layout, swizzle));
        Ok(())
    }

    /// Which elements the lanes of each warp address, instruction by instruction.
    fn access(&self, op: &Op, c: &Candidate, id: BufferId, bytes: i64) -> Option<Access> {
        /// Enough to see every conflict pattern of a regular access.
        const MAX_LISTS: usize = 32;
        let (src, dst) = self.ends(op)?;
        let (t, tv) = if self.buffer(src) == id { (src, &c.f) } else { (dst, &c.g) };
        let inside = ops::whole(self.p, t)?;
        let (tm, vm) = (tv.mode(0).ok()?, tv.mode(1).ok()?);
        let rest = vm.mode(1).ok()?.size();
        let inst = vm.mode(0).ok()?.size();
        let all = (tm.size() + 31) / 32 * rest;
        let mut lanes = vec![];
        'all: for first in (0..tm.size()).step_by(32) {
            for r in 0..rest {
                if lanes.len() == MAX_LISTS {
                    break 'all;
                }
                lanes.push(
                    (first..(first + 32).min(tm.size()))
                        .map(|t| inside.at(tv.at(t + tm.size() * inst * r)))
                        .collect(),
                );
            }
        }
        let weight = op.trips as f64 * all as f64 / lanes.len().max(1) as f64;
        Some(Access { lanes, bytes: inst * bytes, weight })
    }

    fn init(&mut self, op: &Op) -> Fallible<()> {
        let spec = &self.p.specs[op.spec];
        let out = spec.outputs[0];
        let scalar = self.p.scalar_of(out);
        let fits = |atom: &&Atom| {
            atom.op == AtomOp::Init
                && atom.group == 1
                && atom.operands.iter().any(|o| {
                    o.access != carbyne_atoms::Access::Read
                        && o.n_values() == 1
                        && o.elem.scalars_per_unit(scalar) == Some(1)
                        && o.allows(Memory::Rf)
                })
        };
        if self.p.buffer_of(out).memory != Some(Memory::Rf) {
            return self.fail(
                Code::NoAtom,
                op.spec,
                "only register tensors are initialized by the whole block".into(),
                "initialize registers and move them",
            );
        }
        match self.table.implementing(spec.kind).find(fits) {
            Some(atom) => {
                let tv = self.known.get(&self.buffer(out));
                let n = tv.and_then(|tv| tv.mode(1).ok()).map_or(1, |v| v.size());
                self.out.inits.insert(op.spec, (atom.name, n));
                Ok(())
            }
            None => Err(Box::new(self.no_matmul(op.spec))),
        }
    }

    /// Every operation must have been implemented.
    fn check_done(&self, ops: &[Op]) -> Fallible<()> {
        for op in ops {
            let id = &op.spec;
            let done = self.out.copies.contains_key(id)
                || self.out.matmuls.contains_key(id)
                || self.out.inits.contains_key(id);
            if !done {
                return self.fail(
                    Code::NotDecomposed,
                    op.spec,
                    format!(
                        "a {} of the whole block has no decomposition yet",
                        self.p.specs[*id].kind
                    ),
                    "write its body",
                );
            }
        }
        Ok(())
    }
}

/// Whether two thread-value layouts are one function.
fn same(a: &Layout, b: &Layout) -> bool {
    let size = |l: &Layout, i| l.mode(i).map_or(0, |m| m.size());
    size(a, 0) == size(b, 0)
        && size(a, 1) == size(b, 1)
        && (a.coalesce() == b.coalesce() || (0..a.size()).all(|i| a.at(i) == b.at(i)))
}

/// Cycles of one execution by one warp: multiplications and the loads of both factors, with a penalty
/// where registers would spill.
fn gemm_cost(gemm: &Gemm, atom: &Atom, tensors: [(&Layout, carbyne_ir::scalar::Scalar); 3]) -> f64 {
    let Some((rm, rn, rk)) = gemm.rest() else { return f64::INFINITY };
    let warps = 32.0 / atom.group as f64;
    let multiply = (rm * rn * rk) as f64 * atom.cost.issue_cycles / warps;
    let registers = |(l, s): (&Layout, carbyne_ir::scalar::Scalar)| {
        l.mode(1).map_or(0, |v| v.size()) * s.bits() / 32
    };
    let [a, b, c] = tensors.map(registers);
    // A warp of 32 threads loads one 32-bit register a thread per wavefront of shared memory.
    let loads = (a + b) as f64;
    let spill = (a + b + c - 216).max(0) as f64 * 64.0;
    multiply + loads + spill
}
