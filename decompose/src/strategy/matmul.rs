//! Tiles a kernel-level MatMul for blocks, stages both factors in shared memory, accumulates in
//! registers.
//!
//! What it does: a grid of blocks over C, in bands; a loop over K in steps of the block tile, several stages of which
//! are under way; per step, tiles of A and B go GL → SH → RF, slice by slice as deep as the MatMul atom; C goes RF → GL,
//! converted if its type is not the accumulator's, by way of shared memory where the fragments of the atom are narrower
//! than what a thread stores at a time.
//!
//! When it applies: two modes each, static sizes, in global memory, and a MatMul atom of these types
//! whose extents, times the groups of threads along m and n, divide the block tile.
//!
//! Law: C\[m,n\] = Σ over k-tiles of A\[m,k\]·B\[k,n\], the accumulator carried in the order of k. `MatMul`
//! begins with C, `MatMul.set` with zero.

mod refusal;

use super::Planned;
use crate::build::{Writer, allocate, counted, declare, define, dims, index, indices};
use crate::names::Names;
use crate::schedule::pipeline::is_asynchronous;
use crate::solve::copy::matmul_rows;
use crate::solve::ops;
use crate::solve::work::MEETING;
use carbyne_atoms::bind::{self, Mismatch};
use carbyne_atoms::{Atom, AtomOp, AtomTable, limits};
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use refusal::Pins;

/// How much longer a wait for a stage takes than one load on an idle machine: queues, and two barriers.
/// Fitted to 4096³ on one H200 (1500 to 2000 cycles a step for tiles of 128×128×32, 128×128×64 and
/// 128×256×64).
const LOADED: f64 = 5.5;

// The following are fitted to 20 tiles at 4096³ and 11 each at 1024³ and 2048³ on one H100 (a step of 128×256×64 takes
// 1976 cycles there, of which 1536 are multiplications).

/// The part of the time of multiplications or of shared memory, whichever is shorter, that the other does not hide.
const NOT_HIDDEN: f64 = 0.28;

/// The same where a block that has a multiprocessor to itself has its first fragments still to load.
const FIRST_FRAGMENTS: f64 = 300.0;

/// The part of the time between a copy and its use that is not hidden by other stages.
const LATE: f64 = 0.06;

/// Cycles before the first step of a block, on top of those that the last ones store for.
const BEGINNING: f64 = 2500.0;

/// Bytes a cycle that a multiprocessor gets from the second-level cache, and stores.
const FROM_CACHE: f64 = 48.0;
const STORED: f64 = 18.0;

/// Tiles are at least so wide along each mode, and at most so wide along M and N and so deep.
const SMALLEST: i64 = 8;
const WIDEST: i64 = 256;
const DEEPEST: i64 = 64;
/// Threads of a block.
const MOST_THREADS: i64 = 512;
/// Stages of the ring.
const DEEPEST_RING: i64 = 5;
/// Blocks of one band: those that run side by side read as many rows of A as they can share.
const BAND: i64 = 16;
/// Bits that a thread stores to global memory at a time.
const WIDE: i64 = 128;

/// Along m, n and k.
type Extents = (i64, i64, i64);

/// What the strategy chose.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Choice {
    /// Block tile m, n, k.
    pub tile: Extents,
    /// Groups of threads along m and n.
    pub groups: (i64, i64),
    /// Threads of one group: the atom's.
    pub group: i64,
    /// Depth of one slice: the atom's k.
    pub slice: i64,
    /// Steps of the loop that are under way at a time.
    pub stages: i64,
    /// Whether a slice's operands are loaded while the slice before is multiplied.
    pub ahead: bool,
    /// Whether C goes to global memory by way of shared memory.
    pub staged_output: bool,
    /// Estimated cycles of the whole problem on one multiprocessor; for comparing only.
    pub cost: f64,
}

/// What a block tile needs, and the architecture has not.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum TooMuch {
    #[error("the instruction multiplies no matrices")]
    NoMatMul,
    #[error("the stage takes {bytes} bytes of shared memory, over {most}")]
    Shared { bytes: i64, most: i64 },
    #[error("each of {threads} threads would need {registers} registers, of {most}")]
    Registers { threads: i64, registers: i64, most: i64 },
}

/// The operands and sizes of the spec.
struct Problem<'p> {
    p: &'p Program,
    id: SpecId,
    size: Extents,
    scalars: (Scalar, Scalar, Scalar),
    acc: Scalar,
}

/// The statements that replace the kernel-level spec: thread declarations where it had none, then the
/// spec with its body.
///
/// # Errors
/// Why the strategy does not apply, or which pins cannot hold.
pub(crate) fn apply(
    p: &Program,
    id: SpecId,
    stmt: &Stmt,
    table: &AtomTable,
    names: &mut Names,
) -> Result<Planned, Box<Diagnostic>> {
    let problem = Problem::new(p, id)?;
    let choice = problem.choose(table)?;
    Ok(Planned { stmts: problem.write(&choice, stmt, names), warnings: vec![] })
}

impl<'p> Problem<'p> {
    fn new(p: &'p Program, id: SpecId) -> Result<Self, Box<Diagnostic>> {
        let spec = &p.specs[id];
        let refuse = |message: String, help: &str| {
            Err(Box::new(Diagnostic::new(Code::NoStrategy, spec.span, message).help(help)))
        };
        let tensors: Vec<TensorId> =
            spec.input_tensors().chain(spec.outputs.iter().copied()).collect();
        let [a, b, c] = tensors[..] else {
            return refuse("a MatMul has three operands".into(), "correct the operands");
        };
        for t in [a, b, c] {
            if p.buffer_of(t).memory != Some(Memory::Gl) {
                return refuse(
                    format!("{} does not lie in global memory", p.tensor_name(t)),
                    "declare it at the top, in GL",
                );
            }
        }
        let (ea, ec) = (ops::extents(p, a), ops::extents(p, c));
        if ea.is_none() || ec.is_none() {
            return refuse(
                "the sizes of a kernel-level MatMul must be known".into(),
                "give them as numbers or with `let`, instead of `sym`",
            );
        }
        let (Some(&[_, k]), Some(&[m, n])) = (ea.as_deref(), ec.as_deref()) else {
            return refuse(
                "no strategy decomposes a kernel-level MatMul with a batch yet".into(),
                "write its body: count the batch by a mode of the grid, `@b` of `#grid.indices()`, and \
                 multiply tiles of `%A[@b, _, _]` and `%B[@b, _, _]`",
            );
        };
        let scalars = (p.scalar_of(a), p.scalar_of(b), p.scalar_of(c));
        let acc = spec.acc.unwrap_or(scalars.2);
        if spec.attr("acc").is_none() && acc.bits() < 32 && acc.is_float() {
            return refuse(
                format!("the MatMul does not say in which type it accumulates into {acc}"),
                &format!("write `acc=f32` for single precision, or `acc={acc}`"),
            );
        }
        Ok(Problem { p, id, size: (m, n, k), scalars, acc })
    }

    /// The cheapest choice that agrees with the pins.
    fn choose(&self, table: &AtomTable) -> Result<Choice, Box<Diagnostic>> {
        let spec = &self.p.specs[self.id];
        let (sa, sb, _) = self.scalars;
        let mut rows = matmul_rows(table, sa, sb, self.acc);
        if rows.is_empty() {
            // Rows that accumulate as asked are nearer than those that do not.
            let wrong = |acc: Scalar| -> Vec<_> {
                let in_registers = |a: &&Atom| a.operands.iter().all(|o| o.allows(Memory::Rf));
                let rows = table.implementing(SpecKind::MatMul).filter(in_registers);
                rows.filter(|a| a.writes().all(|o| o.is_of(acc)))
                    .filter_map(|a| Some((a.name, self.scalar_mismatch(a)?)))
                    .collect()
            };
            let mut rejected = wrong(self.acc);
            if rejected.is_empty() {
                rejected = wrong(Scalar::F32);
            }
            // The most multiply-adds first among equals.
            rejected.reverse();
            return Err(Box::new(bind::no_atom(self.p, self.id, table, &rejected)));
        }
        if let Some(name) = &spec.atom {
            if !rows.iter().any(|r| r.name == *name) {
                return Err(Box::new(self.not_by(name, &rows, table)));
            }
            rows.retain(|r| r.name == *name);
        }
        let pins = Pins::of(self.p, self.id);
        let mut best: Option<Choice> = None;
        let mut why = None;
        for atom in &rows {
            let AtomOp::MatMul { m, n, k, .. } = atom.op else { continue };
            for tile in self.tiles((m, n, k), pins.tile.as_deref()) {
                if pins.grid.as_ref().is_some_and(|g| *g != self.grid(tile)) {
                    continue;
                }
                for groups in self.groups(tile, (m, n), atom.group) {
                    if !pins.allow(groups, atom.group) {
                        continue;
                    }
                    for stages in 1..=DEEPEST_RING.min(self.size.2 / tile.2) {
                        let ahead = stages > 1 && (tile.2 / k) % 2 == 0;
                        let with = self.cost(atom, tile, groups, (stages, ahead), table);
                        let (ahead, cost) = match with {
                            Err(TooMuch::Registers { .. }) if ahead => {
                                (false, self.cost(atom, tile, groups, (stages, false), table))
                            }
                            _ => (ahead, with),
                        };
                        match cost {
                            Ok(cost) if best.as_ref().is_none_or(|b| cost < b.cost) => {
                                let staged_output =
                                    self.narrow(atom) && self.fits(tile, stages, table);
                                best = Some(Choice {
                                    tile,
                                    groups,
                                    group: atom.group,
                                    slice: k,
                                    stages,
                                    ahead,
                                    staged_output,
                                    cost,
                                });
                            }
                            Ok(_) => {}
                            Err(e) if stages == 1 => why = Some(e),
                            Err(_) => break,
                        }
                    }
                }
            }
            // The fastest instruction that tiles the problem at all (Hexcute, algorithm 1, line 8).
            if best.is_some() {
                break;
            }
        }
        best.ok_or_else(|| Box::new(self.no_tile(&rows, &pins, why)))
    }

    /// Blocks along m and n.
    fn grid(&self, tile: Extents) -> Vec<i64> {
        vec![self.size.0 / tile.0, self.size.1 / tile.1]
    }

    /// The scalar in which a row differs: nearer than the rest when no row takes the types.
    fn scalar_mismatch(&self, atom: &Atom) -> Option<Mismatch> {
        let scalars = [self.scalars.0, self.scalars.1, self.acc];
        atom.operands.iter().zip(scalars).find_map(|(o, s)| bind::scalar(s, o).err())
    }

    /// Block tiles to consider: the pinned one, or divisors of the problem near the usual sizes.
    fn tiles(&self, inst: Extents, pin: Option<&[i64]>) -> Vec<Extents> {
        let (m, n, k) = self.size;
        let fits = |size: i64, inst: i64, t: i64| t > 0 && size % t == 0 && t % inst == 0;
        if let Some(pin) = pin {
            return match *pin {
                [a, b, c] if fits(m, inst.0, a) && fits(n, inst.1, b) && fits(k, inst.2, c) => {
                    vec![(a, b, c)]
                }
                _ => vec![],
            };
        }
        let along = |size: i64, inst: i64, most: i64| -> Vec<i64> {
            let unit = inst.max(SMALLEST);
            (1..=most / unit).map(|i| i * unit).filter(|t| fits(size, inst, *t)).collect()
        };
        let mut out = vec![];
        for bm in along(m, inst.0, WIDEST) {
            for bn in along(n, inst.1, WIDEST) {
                for bk in along(k, inst.2, DEEPEST) {
                    out.push((bm, bn, bk));
                }
            }
        }
        out
    }

    /// Ways to spread groups of threads over a block tile.
    fn groups(&self, tile: Extents, inst: (i64, i64), group: i64) -> Vec<(i64, i64)> {
        let along = |t: i64, i: i64| {
            let n = t / i;
            (1..=n.min(1024)).filter(move |g| n % g == 0)
        };
        let mut out = vec![];
        for a in along(tile.0, inst.0) {
            for b in along(tile.1, inst.1) {
                let threads = a * b * group;
                if threads % 32 == 0 && threads <= MOST_THREADS {
                    out.push((a, b));
                }
            }
        }
        out
    }

    /// Cycles of the whole problem per multiprocessor, roughly: multiply-adds, shared-memory and global
    /// traffic at the rates of the table, and too few blocks or too many registers punished.
    fn cost(
        &self,
        atom: &Atom,
        tile: Extents,
        groups: (i64, i64),
        (stages, sliced): (i64, bool),
        table: &AtomTable,
    ) -> Result<f64, TooMuch> {
        let AtomOp::MatMul { m: im, n: inn, k: ik, .. } = atom.op else {
            return Err(TooMuch::NoMatMul);
        };
        let (m, n, k) = self.size;
        let (bm, bn, bk) = tile;
        let limits = limits(table.arch);
        let (ba, bb, bacc) = (self.scalars.0.bits(), self.scalars.1.bits(), self.acc.bits());
        let stage = (bm * bk * ba + bk * bn * bb) / 8;
        let shared = stage * stages;
        let most = limits.max_smem_per_block;
        if shared > most {
            return Err(TooMuch::Shared { bytes: shared, most });
        }
        // Registers of one thread: accumulators, one slice of both factors, and addresses.
        let (wm, wn) = (bm / groups.0, bn / groups.1);
        let per_thread =
            |elements: i64, bits: i64| (elements * bits / 32 + atom.group - 1) / atom.group;
        let threads = groups.0 * groups.1 * atom.group;
        // The stage that is on its way, where it is there.
        let ahead = match stages > 1 && !is_asynchronous(table) {
            true => stage / 4 / threads,
            false => 0,
        };
        let registers = ahead
            + per_thread(wm * wn, bacc)
            + (per_thread(wm * ik, ba) + per_thread(ik * wn, bb)) * if sliced { 2 } else { 1 }
            + 24;
        // What one thread may have, and its part of the multiprocessor's.
        let most = limits.regs_per_thread.min(limits.regs_per_sm / threads);
        let pinned = self.p.specs[self.id].ints("tile").is_some();
        if registers > most && !pinned {
            return Err(TooMuch::Registers { threads, registers, most });
        }
        let spill = 1.0 + (registers - (most - 31)).max(0) as f64 / 64.0;
        // One step of K of one block that has the multiprocessor to itself. Each group reads its part of
        // both factors from shared memory; the block fills it once.
        let step = (bm * bn * bk) as f64;
        let warps = atom.group as f64 / 32.0;
        let blocks = (m / bm) as f64 * (n / bn) as f64;
        let resident = limits.resident_blocks(threads, registers, shared).max(1) as f64;
        // Some 100 multiprocessors want a block each.
        let resident = resident.min((blocks / 100.0).max(1.0));
        let fill = (100.0 / blocks).max(1.0);
        // Each scheduler has a tensor core, and wants a warp.
        let busy = (threads as f64 / 32.0 * resident).min(limits.timing.schedulers);
        let multiply = step / (im * inn * ik) as f64 * atom.cost.issue_cycles * warps / busy;
        let filled = stage as f64;
        let read = step * (ba as f64 / wn as f64 + bb as f64 / wm as f64) / 8.0;
        let from_shared = (read + filled) / (limits.smem_banks * limits.bank_bytes) as f64;
        let from_global = filled / FROM_CACHE;
        let busy =
            multiply.max(from_shared).max(from_global) + NOT_HIDDEN * multiply.min(from_shared);
        // The step waits for global memory once; other stages and other blocks of the multiprocessor fill the wait.
        let wait = limits.timing.global_cycles * LOADED;
        let late = (wait + busy) / (resident * stages as f64);
        let first = if sliced { 0.0 } else { FIRST_FRAGMENTS / (resident * resident) };
        let step = busy.max(late) + LATE * late + MEETING + first;
        let stored = (bm * bn * self.scalars.2.bits() / 8) as f64 / STORED;
        let steps = (k / bk) as f64 * step + (BEGINNING + stored) / resident;
        Ok(blocks * steps * fill * spill)
    }

    /// Whether what a thread holds of C side by side is less than it can store at a time.
    fn narrow(&self, atom: &Atom) -> bool {
        let Some(o) = atom.writes().next() else { return false };
        let values = o.tv.mode(1).map_or(1, |v| v.size());
        // Values that follow one another along either mode of C.
        let side_by_side = |step: i64| {
            (1..values).take_while(|v| o.tv.at(v * o.n_threads()) - o.tv.at(0) == v * step).count()
        };
        let rows = o.tile.first().copied().unwrap_or(1);
        let run = 1 + side_by_side(1).max(side_by_side(rows)) as i64;
        run * self.scalars.2.bits() < WIDE
    }

    /// Whether C's tile fits into shared memory, beside the stages or in the place of one factor's, which are done with then.
    fn fits(&self, (bm, bn, bk): Extents, stages: i64, table: &AtomTable) -> bool {
        let (sa, sb, sc) = self.scalars;
        let (a, b) = (stages * bm * bk * sa.bits() / 8, stages * bk * bn * sb.bits() / 8);
        a.min(b) + a.max(b).max(bm * bn * sc.bits() / 8) <= limits(table.arch).max_smem_per_block
    }

    /// The layout of the grid: bands of blocks along M, one after the other along N.
    fn grid_layout(&self, tile: Extents) -> Dims {
        let (m, n) = (self.size.0 / tile.0, self.size.1 / tile.1);
        if m <= BAND || m % BAND != 0 {
            return dims(&[m, n], true);
        }
        let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
        let both = |a: i64, b: i64| TupleExpr::Tuple(vec![leaf(a), leaf(b)]);
        Dims {
            modes: vec![both(BAND, m / BAND), leaf(n)],
            strides: Some(vec![both(1, BAND * n), leaf(BAND)]),
            span: Span::default(),
        }
    }

    fn write(&self, c: &Choice, stmt: &Stmt, names: &mut Names) -> Vec<Stmt> {
        let StmtKind::Spec(spec) = &stmt.kind else { return vec![stmt.clone()] };
        let [Operand::View(a), Operand::View(b)] = &spec.inputs[..] else {
            return vec![stmt.clone()];
        };
        let Some(out) = spec.outputs.first() else { return vec![stmt.clone()] };
        let k = self.size.2;
        let (bm, bn, bk) = c.tile;
        let (sa, sb, sc) = self.scalars;
        let acc = self.acc;
        let mut items = vec![];
        let (grid, cta) = match spec.both() {
            Some((g, t)) => (g.clone(), t.clone()),
            None => {
                let (g, t) = (names.fresh("grid"), names.fresh("cta"));
                let threads = c.groups.0 * c.groups.1 * c.group;
                items.push(declare(&g, self.grid_layout(c.tile), ThreadScalar::Block));
                items.push(declare(&t, dims(&[threads], false), ThreadScalar::Thread));
                (View::of(g), View::of(t))
            }
        };
        if let Some(first) = items.first_mut() {
            first.blank_above = true;
        }
        let w = Writer { exec: (grid.clone(), cta) };
        let mut f = |n: &str| names.fresh(n);
        let (ib, jb) = (f("@bm"), f("@bn"));
        let (ta, tb, tc) = (f("gA"), f("gB"), f("gC"));
        let (sha, shb) = (f("sA"), f("sB"));
        let (ra, rb, racc) = (f("rA"), f("rB"), f("acc"));
        let (kk, jj) = (f("k"), f("j"));
        let mut body = vec![
            indices(&[&ib, &jb], grid),
            define(&ta, tile(a, bm, bk).then(index(&[Some(&ib), None]))),
            define(&tb, tile(b, bk, bn).then(index(&[None, Some(&jb)]))),
            define(&tc, tile(out, bm, bn).then(index(&[Some(&ib), Some(&jb)]))),
            allocate(&racc, &[bm, bn], acc, Memory::Rf),
        ];
        let v = |n: &str| View::of(n);
        if spec.kind == SpecKind::MatMulSet {
            let zero = Number { text: "0".into(), span: Span::default() };
            body.push(w.spec(SpecKind::Init, vec![Operand::Number(zero)], v(&racc), vec![]));
        } else if acc == sc {
            body.push(w.spec(SpecKind::Move, vec![Operand::View(v(&tc))], v(&racc), vec![]));
        } else {
            let old = f("rC0");
            body.push(allocate(&old, &[bm, bn], sc, Memory::Rf));
            body.push(w.spec(SpecKind::Move, vec![Operand::View(v(&tc))], v(&old), vec![]));
            let cast = SpecKind::Unary(UnaryOp::Cast);
            body.push(w.spec(cast, vec![Operand::View(v(&old))], v(&racc), vec![]));
        }
        let at = |t: &str| v(t).then(index(&[Some(&kk)]));
        let mut attrs =
            vec![Attr { key: Name::new("acc"), value: AttrValue::Word(acc.as_str().to_owned()) }];
        attrs.push(Attr { key: Name::new("warps"), value: pair(c.groups) });
        attrs.extend(spec.attrs.iter().filter(|a| a.key.text == "atom").cloned());
        let slice =
            |t: &str, m: i64, n: i64, at: &[Option<&str>]| tile(&v(t), m, n).then(index(at));
        let one_slice = bk == c.slice;
        let z = "0";
        let jx: &str = if one_slice { z } else { &jj };
        let operands = [
            allocate(&ra, &[bm, c.slice], sa, Memory::Rf),
            allocate(&rb, &[c.slice, bn], sb, Memory::Rf),
        ];
        let multiply = [
            w.spec(
                SpecKind::Move,
                vec![Operand::View(slice(&sha, bm, c.slice, &[Some(z), Some(jx)]))],
                v(&ra),
                vec![],
            ),
            w.spec(
                SpecKind::Move,
                vec![Operand::View(slice(&shb, c.slice, bn, &[Some(jx), Some(z)]))],
                v(&rb),
                vec![],
            ),
            w.spec(
                SpecKind::MatMul,
                vec![Operand::View(v(&ra)), Operand::View(v(&rb))],
                v(&racc),
                attrs,
            ),
        ];
        let mut step = vec![
            allocate(&sha, &[bm, bk], sa, Memory::Sh),
            allocate(&shb, &[bk, bn], sb, Memory::Sh),
            w.spec(SpecKind::Move, vec![Operand::View(at(&ta))], v(&sha), vec![]),
            w.spec(SpecKind::Move, vec![Operand::View(at(&tb))], v(&shb), vec![]),
        ];
        if one_slice {
            body.extend(operands);
            step.extend(multiply);
        } else if c.ahead {
            let inner = operands.into_iter().chain(multiply).collect();
            let mut slices = counted(&jj, (0, bk / c.slice), Unroll::Full, inner);
            if let StmtKind::For { stages, .. } = &mut slices.kind {
                *stages = Some(Expr::int(2));
            }
            step.push(slices);
        } else {
            body.extend(operands);
            step.push(counted(&jj, (0, bk / c.slice), Unroll::Full, multiply.into()));
        }
        let mut over_k = counted(&kk, (0, k / bk), Unroll::Default, step);
        if let StmtKind::For { stages, .. } = &mut over_k.kind {
            *stages = (c.stages > 1).then(|| Expr::int(c.stages));
        }
        body.push(over_k);
        let mut result = racc;
        if acc != sc {
            let rc = f("rC");
            body.push(allocate(&rc, &[bm, bn], sc, Memory::Rf));
            let cast = SpecKind::Unary(UnaryOp::Cast);
            body.push(w.spec(cast, vec![Operand::View(v(&result))], v(&rc), vec![]));
            result = rc;
        }
        if c.staged_output {
            let shc = f("sC");
            body.push(allocate(&shc, &[bm, bn], sc, Memory::Sh));
            body.push(w.spec(SpecKind::Move, vec![Operand::View(v(&result))], v(&shc), vec![]));
            result = shc;
        }
        body.push(w.spec(SpecKind::Move, vec![Operand::View(v(&result))], v(&tc), vec![]));
        let mut kernel = stmt.clone();
        if let StmtKind::Spec(s) = &mut kernel.kind {
            s.exec = Some(crate::build::both(&w.exec));
            s.attrs.retain(|a| !matches!(a.key.text.as_str(), "acc" | "tile" | "warps" | "atom"));
            s.attrs.push(Attr {
                key: Name::new("acc"),
                value: AttrValue::Word(acc.as_str().to_owned()),
            });
            let number = |v: i64| TupleExpr::Leaf(Expr::int(v));
            s.attrs.push(Attr {
                key: Name::new("tile"),
                value: AttrValue::Tuple(TupleExpr::Tuple(vec![number(bm), number(bn), number(bk)])),
            });
            s.attrs.push(Attr { key: Name::new("warps"), value: pair(c.groups) });
            s.body = Some(Block { stmts: body, footer: vec![] });
        }
        items.push(kernel);
        items
    }
}

fn pair(v: (i64, i64)) -> AttrValue {
    let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
    AttrValue::Tuple(TupleExpr::Tuple(vec![leaf(v.0), leaf(v.1)]))
}

fn tile(view: &View, m: i64, n: i64) -> View {
    let sizes = vec![Some(Expr::int(m)), Some(Expr::int(n))];
    view.clone().then(ViewOp::Tile(Tiler::Sizes(sizes)))
}
