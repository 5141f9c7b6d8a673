//! Writes a solution back into the module ([`Emit`]): layouts into allocations, bodies under tile
//! operations, barriers and waits before statements, atoms on leaves. The other files write special
//! bodies, or rewrite a module before or after.
//!
//! Specs and buffers are those of the program that the module resolves to, found by the statements'
//! ids.

pub(crate) mod aliases;
mod described;
pub(crate) mod detours;
mod exchange;
mod through;

use crate::access::ops;
use crate::build::{
    self, compact, counted, define, define_threads, layout_expr, leaf, number, plain, reshape, word,
};
use crate::layouts::copy::Candidate;
use crate::layouts::tv::mode;
use crate::layouts::views::Part;
use crate::layouts::{matmul, pointwise, reduce};
use crate::names::Names;
use crate::origins::inherit;
use crate::plan::solution::{Assignment, Placement, Solution};
use crate::plan::sync::{Arrival, Barrier};
use carbyne_atoms::{Atom, AtomTable};
use carbyne_ir::ast::visit::{Rewriter, rewrite};
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::tuple::IntTuple;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Why what was chosen for a spec cannot be written: it is not of this spec.
#[derive(Copy, Clone, Debug, PartialEq, thiserror::Error)]
enum Unwritten {
    #[error("it reads no tensor")]
    NoInput,
    #[error("it writes no tensor")]
    NoOutput,
    #[error("it has a wrong number of operands")]
    Operands,
    #[error("the table has no row `{0}`")]
    NoRow(&'static str),
}

/// Values of one thread that are combined with those of others.
struct Values<'a> {
    /// Blocks, and single threads.
    each: (View, View),
    /// Whether the threads are a part of a block.
    part: bool,
    /// The register that the loop is at.
    own: &'a dyn Fn() -> View,
    /// A register for one value of another thread.
    other: &'a str,
    /// How many.
    n: i64,
    /// The function of two.
    op: SpecKind,
    /// Their type.
    scalar: Scalar,
}

/// What is written into the module.
pub(crate) struct Emit<'a> {
    /// Solutions of all kernels, merged.
    pub solution: &'a Solution,
    /// Atoms of leaves that were matched as they stand.
    pub atoms: &'a BTreeMap<SpecId, String>,
    /// The rows.
    pub table: &'a AtomTable,
    /// Names for what bodies define; sibling bodies share them.
    local: Local,
    specs: HashMap<NodeKey, SpecId>,
    buffers: HashMap<NodeKey, BufferId>,
    /// Operations of a part of a block.
    of_part: HashSet<SpecId>,
    /// Specs whose bodies cannot be written.
    errors: Diagnostics,
}

impl Rewriter for Emit<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let sync = self.solution.before.get(&stmt.id.key()).cloned().unwrap_or_default();
        let number = |n: i64| vec![SyncArg::Number(Expr::int(n))];
        // Comments and the blank line above stay above what is put before the statement.
        let put = |kind: StmtKind, stmt: &mut Stmt, out: &mut Vec<Stmt>| {
            let blank_above = std::mem::take(&mut stmt.blank_above);
            out.push(Stmt { blank_above, ..Stmt::derived(kind, stmt) });
        };
        let commit = || StmtKind::Sync { op: SyncOp::AsyncCommit, args: vec![] };
        let wait = |n: i64| StmtKind::Sync { op: SyncOp::AsyncWait, args: number(n) };
        if sync.commit_before {
            put(commit(), &mut stmt, out);
        }
        if let Some(n) = sync.wait {
            put(wait(n), &mut stmt, out);
        }
        if let Some(barrier) = &sync.barrier {
            let own = |name: &String| StmtKind::Barrier(Some(View::of(name)));
            let kind = match barrier {
                Barrier::Block => StmtKind::Barrier(None),
                Barrier::Here(name) => own(name),
                Barrier::Of { blocks, threads: name } => {
                    let exec = (View::of(blocks), View::of(name));
                    build::within(&exec, vec![], vec![], vec![Stmt::derived(own(name), &stmt)]).kind
                }
            };
            put(kind, &mut stmt, out);
        }
        let mut told = None;
        if let StmtKind::Sync { op, args } = &mut stmt.kind {
            if let (Some(n), Some(SyncArg::Number(count))) = (sync.count, args.last_mut()) {
                *count = Expr::int(n);
            }
            let plain = || StmtKind::Sync { op: SyncOp::MbarrierArrive, args: args.clone() };
            match sync.arrival {
                Some(Arrival::Both) => told = Some(plain()),
                Some(Arrival::Plain) => *op = SyncOp::MbarrierArrive,
                None => {}
            }
        }
        self.fill_in(&mut stmt);
        let after = [told, sync.commit.then(commit), sync.drain.then(|| wait(0))];
        let after = after.into_iter().flatten().map(|kind| Stmt::derived(kind, &stmt));
        let after: Vec<Stmt> = after.collect();
        out.push(stmt);
        out.extend(after);
    }
}

impl<'a> Emit<'a> {
    /// An emitter for a module with these names, which resolves to `p`.
    pub(crate) fn new(
        p: &Program,
        solution: &'a Solution,
        atoms: &'a BTreeMap<SpecId, String>,
        table: &'a AtomTable,
        mut names: Names,
    ) -> Self {
        let mut fresh = |n: &str| names.fresh(n);
        let local = Local {
            threads: fresh("t"),
            part: fresh("part"),
            source: fresh("s"),
            target: fresh("d"),
            factors: [fresh("a"), fresh("b"), fresh("c")],
            loops: [fresh("i"), fresh("j"), fresh("kk")],
            other: fresh("o"),
            pair: [fresh("two"), fresh("one")],
            exchange: [fresh("x"), fresh("put"), fresh("get")],
            partial: fresh("sums"),
            groups: [fresh("wg"), fresh("g")],
            lane: fresh("l"),
            second: [fresh("x"), fresh("put"), fresh("get")],
        };
        let (specs, buffers) = (p.specs_by_node(), p.buffers_by_node());
        let ops = p.kernels.iter().flat_map(|k| ops::collect(p, *k));
        let of_part = ops.filter(|op| !op.group.whole).map(|op| op.spec).collect();
        let errors = Diagnostics::default();
        Emit { solution, atoms, table, local, specs, buffers, of_part, errors }
    }

    /// The module with the solution written in.
    ///
    /// # Errors
    /// A solution that is not one of its spec, which is our defect.
    pub(crate) fn module(mut self, mut module: Module) -> Result<Module, Diagnostics> {
        module.items = rewrite(module.items, &mut self);
        if self.errors.is_empty() { Ok(module) } else { Err(self.errors) }
    }

    /// Writes into a statement what was chosen for it.
    fn fill_in(&mut self, stmt: &mut Stmt) {
        let id = stmt.id;
        match &mut stmt.kind {
            StmtKind::Allocate { ty, .. } => {
                if let Some(buffer) = self.buffers.get(&id.key()) {
                    self.allocation(*buffer, ty);
                }
            }
            StmtKind::Spec(spec) => {
                if let Some(spec_id) = self.specs.get(&id.key()) {
                    match self.leaf(*spec_id, spec) {
                        Ok(Some(mut body)) => {
                            inherit(&mut body.stmts, id, spec.span);
                            spec.body = Some(body);
                        }
                        Ok(None) => {}
                        Err(why) => self.errors.push(unwritten(spec, why)),
                    }
                }
            }
            _ => {}
        }
    }

    fn allocation(&self, id: BufferId, ty: &mut TensorType) {
        let Some(placement) = self.solution.placements.get(&id) else { return };
        ty.attrs.retain(|a| *a != TypeAttr::Open);
        match placement {
            Placement::Registers { tv, threads } => {
                ty.attrs.push(TypeAttr::Tv(layout_expr(tv), Name::new(threads.clone())));
            }
            Placement::Shared { layout, swizzle } => {
                let modes = |t: IntTuple<i64>| -> Vec<TupleExpr> {
                    t.modes().iter().map(TupleExpr::constant).collect()
                };
                let mut shapes = modes(layout.shape()).into_iter();
                let mut strides = modes(layout.stride()).into_iter();
                for level in &mut ty.levels {
                    let n = level.modes.len();
                    level.modes = shapes.by_ref().take(n).collect();
                    level.strides = Some(strides.by_ref().take(n).collect());
                }
                let stated = ty.attrs.iter().any(|a| matches!(a, TypeAttr::Swizzle(..)));
                if let Some(s) = swizzle.filter(|_| !stated) {
                    let shift = s.shift().unsigned_abs();
                    ty.attrs.push(TypeAttr::Swizzle(Expr::swizzle(s.bits(), s.base(), shift)));
                }
            }
        }
    }

    /// Writes what was chosen for a spec into its head; its body, if it gets one.
    fn leaf(&self, id: SpecId, spec: &mut Spec) -> Result<Option<Block>, Unwritten> {
        if let Some(atom) = self.atoms.get(&id) {
            spec.attrs.push(word(Key::Atom, atom));
        }
        let Some(how) = self.solution.how(id) else { return Ok(None) };
        let body = match how {
            Assignment::Copy(c) => self.copy_body(spec, c)?,
            Assignment::Pointwise(c) => self.pointwise_body(spec, c)?,
            Assignment::Reduction(c) => self.reduction_body(id, spec, c)?,
            Assignment::Exchange(c) => self.exchange_body(spec, c)?,
            Assignment::MatMul(c) => self.matmul_body(id, spec, c)?,
        };
        spec.attrs.retain(|a| !matches!(a.key, Some(Key::Warps | Key::Tile | Key::Atom)));
        Ok(Some(body))
    }

    /// The thread tensor of the spec by name, defined in the body where it is a view.
    fn threads(&self, spec: &Spec, body: &mut Vec<Stmt>) -> (View, String) {
        let Some((blocks, threads)) = spec.both() else { return (View::of("grid"), "cta".into()) };
        if threads.ops.is_empty() {
            return (blocks.clone(), threads.base.text.clone());
        }
        let name = self.local.threads.clone();
        body.push(define_threads(&name, threads.clone()));
        (blocks.clone(), name)
    }

    fn copy_body(&self, spec: &Spec, c: &Candidate) -> Result<Block, Unwritten> {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let mut name = all;
        if let Some(threads) = &c.part {
            let part = self.local.part.clone();
            let first = threads.coalesce().leaves() == [(threads.size(), 1)];
            let tiler = if first {
                Tiler::Sizes(vec![Some(Expr::int(threads.size()))])
            } else {
                Tiler::Modes(vec![Some(layout_expr(threads))])
            };
            let view = View::of(name)
                .then(ViewOp::Tile(tiler))
                .then(ViewOp::Index(vec![Some(Expr::int(0))]));
            body.push(define_threads(&part, view));
            name = part;
        }
        let r = c.f.mode(1).and_then(|v| v.mode(1)).map_or(1, |r| r.size());
        let Some(Operand::View(src)) = spec.inputs.first() else {
            return Err(Unwritten::NoInput);
        };
        let dst = spec.outputs.first().ok_or(Unwritten::NoOutput)?;
        let (in_s, in_d) = (self.local.source.clone(), self.local.target.clone());
        let s = self.side(src, &c.f, &name, c.src_rf, &[c.n, r]);
        let d = self.side(dst, &c.g, &name, c.dst_rf, &[c.n, r]);
        body.push(define(&in_s, s));
        body.push(define(&in_d, d));
        let exec = (blocks, self.group(&name, c.group));
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], r);
        let kind = spec.kind;
        let at = |t: &str| View::of(t).then(ViewOp::Index(vec![None, Some(i.clone())]));
        let atom = vec![word(Key::Atom, c.atom)];
        let leaf = leaf(kind, &exec, vec![at(&in_s)], at(&in_d), atom);
        body.extend(nest.around(vec![leaf]));
        Ok(Block { stmts: body, footer: vec![] })
    }

    /// One thread's values of an operand, as (values of an instruction, instructions).
    fn side(
        &self,
        view: &View,
        tv: &Layout,
        threads: &str,
        registers: bool,
        shape: &[i64],
    ) -> View {
        if registers {
            return view.clone().then(ViewOp::Mine).then(compact(shape));
        }
        view.clone().then(ViewOp::Tv(layout_expr(tv), Name::new(threads)))
    }

    /// `#t.scalar()`, or `#t` in groups of so many.
    fn group(&self, threads: &str, group: i64) -> View {
        let view = View::of(threads);
        if group == 1 {
            return view.then(ViewOp::Scalar);
        }
        view.then(ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(group))])))
    }

    /// The same in groups of an atom, whose threads need not be neighbors.
    fn groups_of(&self, threads: &str, atom: &Atom) -> View {
        if atom.thread_layout.cosize() == atom.group {
            return self.group(threads, atom.group);
        }
        let tiler = Tiler::Modes(vec![Some(layout_expr(&atom.thread_layout))]);
        View::of(threads).then(ViewOp::Tile(tiler))
    }

    fn matmul_body(&self, id: SpecId, spec: &Spec, c: &matmul::Choice) -> Result<Block, Unwritten> {
        if c.maps.iter().any(Option::is_none) {
            return self.described_body(spec, c);
        }
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let row = self.table.get(c.atom).ok_or(Unwritten::NoRow(c.atom))?;
        let (rm, rn, rk) = c.gemm.rest().unwrap_or((1, 1, 1));
        let [Operand::View(a), Operand::View(b)] = &spec.inputs[..] else {
            return Err(Unwritten::Operands);
        };
        let to = spec.outputs.first().ok_or(Unwritten::NoOutput)?;
        let names = self.local.factors.clone();
        let counts = [[rm, rk], [rn, rk], [rm, rn]];
        let partial = self.partial(c, to, (&blocks, &all), &mut body);
        for (((name, view), map), counts) in names.iter().zip([a, b, to]).zip(&c.maps).zip(&counts)
        {
            let Some(map) = map else { continue };
            // Values of an instruction, then the instructions along the modes that have several.
            let modes: Vec<Layout> = map.modes().to_vec();
            let real = modes
                .iter()
                .enumerate()
                .filter(|(i, _)| *i == 0 || counts[i - 1] > 1)
                .map(|(_, m)| m.coalesce());
            let parts: Vec<Layout> = real.collect();
            let own = match &partial {
                Some(p) if name == &names[2] => View::of(&p.name),
                _ => view.clone().then(ViewOp::Mine),
            };
            body.push(define(name, own.then(reshape(&parts))));
        }
        if let Some(p) = &partial {
            self.zero(p, &mut body);
        }
        let exec = (blocks, self.groups_of(&all, row));
        let mut nest = Nest::default();
        let k = nest.var(&self.local.loops[2], rk);
        let i = nest.var(&self.local.loops[0], rm);
        let j = nest.var(&self.local.loops[1], rn);
        let at = |t: usize, x: &Expr, y: &Expr| {
            let mut index = vec![None];
            for (e, n) in [x, y].into_iter().zip(counts[t]) {
                index.extend((n > 1).then(|| Some(e.clone())));
            }
            View::of(&names[t]).then(ViewOp::Index(index))
        };
        let atom = word(Key::Atom, c.atom);
        let attrs = spec.attr(Key::Acc).cloned().into_iter().chain([atom]).collect();
        let factors = vec![at(0, &i, &k), at(1, &j, &k)];
        body.extend(nest.around(vec![leaf(spec.kind, &exec, factors, at(2, &i, &j), attrs)]));
        if let Some(p) = &partial {
            self.sum(p, self.of_part.contains(&id), &mut body);
        }
        Ok(Block { stmts: body, footer: vec![] })
    }

    fn pointwise_body(&self, spec: &Spec, c: &pointwise::Choice) -> Result<Block, Unwritten> {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let dst = spec.outputs.first().ok_or(Unwritten::NoOutput)?;
        let mut nest = Nest::default();
        let vars: Vec<Expr> = c
            .loops
            .iter()
            .enumerate()
            .map(|(i, n)| match self.local.loops.get(i) {
                Some(name) => nest.var(name, *n),
                None => nest.var(&format!("{}{i}", self.local.loops[0]), *n),
            })
            .collect();
        let mut views = spec.inputs.iter().filter_map(|o| match o {
            Operand::View(v) => Some(v),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        let [first, second, third] = self.local.factors.clone();
        let sources = if spec.inputs.len() > 1 {
            vec![first, second, third]
        } else {
            vec![self.local.source.clone()]
        };
        let mut operands = vec![];
        let outputs = c.steps.len() - 1;
        for (o, (steps, n)) in c.steps.iter().enumerate() {
            let (view, name) = if o == outputs {
                (dst, self.local.target.clone())
            } else {
                let view = views.next().ok_or(Unwritten::Operands)?;
                let name = sources.get(o).ok_or(Unwritten::Operands)?;
                (view, name.clone())
            };
            let mut modes = vec![mode(*n, 1)];
            let mut index = if *n > 1 { vec![None] } else { vec![] };
            if *n == 1 {
                modes.clear();
            }
            for ((extent, step), var) in c.loops.iter().zip(steps).zip(&vars) {
                if let Some(step) = step {
                    modes.push(mode(*extent, *step));
                    index.push(Some(var.clone()));
                }
            }
            if modes.is_empty() {
                modes.push(mode(1, 1));
                index.push(Some(Expr::int(0)));
            }
            let own = match c.parts.get(o) {
                Some(Some(part)) => registers(part),
                _ => view.clone().then(ViewOp::Mine),
            };
            body.push(define(&name, own.then(reshape(&modes))));
            operands.push(View::of(name).then(ViewOp::Index(index)));
        }
        let exec = (blocks, self.group(&all, 1));
        let output = operands.pop().ok_or(Unwritten::NoOutput)?;
        let mut inputs = operands.into_iter();
        let operands = spec.inputs.iter().filter_map(|o| match o {
            Operand::View(_) => inputs.next().map(Operand::View),
            number => Some(number.clone()),
        });
        let operands = operands.collect();
        let atom = vec![word(Key::Atom, c.atom)];
        let leaf = build::spec(spec.kind, Some(build::both(&exec)), operands, output, atom);
        body.extend(nest.around(vec![leaf]));
        Ok(Block { stmts: body, footer: vec![] })
    }

    /// Statements that make of a register and another value what they are combined to.
    fn combined(&self, op: SpecKind, each: &(View, View), own: View, other: View) -> Vec<Stmt> {
        let SpecKind::Reduction(_) = op else {
            return vec![leaf(op, each, vec![own.clone(), other], own, vec![])];
        };
        let [pair, one] = &self.local.pair;
        let moved = |from: View, to: View| leaf(SpecKind::Move, each, vec![from], to, vec![]);
        let element = |t: &str, i: i64| at(t, vec![Expr::int(i)]);
        vec![
            moved(own.clone(), element(pair, 0)),
            moved(other, element(pair, 1)),
            leaf(op, each, vec![View::of(pair)], View::of(one), vec![number(Key::Axis, 0)]),
            moved(element(one, 0), own),
        ]
    }

    fn reduction_body(
        &self,
        id: SpecId,
        spec: &Spec,
        c: &reduce::Choice,
    ) -> Result<Block, Unwritten> {
        let mut body = vec![];
        let (blocks, all) = self.threads(spec, &mut body);
        let (Some(Operand::View(src)), Some(dst)) = (spec.inputs.first(), spec.outputs.first())
        else {
            return Err(Unwritten::Operands);
        };
        let each = (blocks.clone(), self.group(&all, 1));
        let (s, d, o) =
            (self.local.source.clone(), self.local.target.clone(), self.local.other.clone());
        let n = c.n();
        let one = |m: &Layout| if m.size() == 1 { mode(1, 1) } else { m.coalesce() };
        let (stay, reduced) = (one(&c.values.0), one(&c.values.1));
        body.push(define(&s, src.clone().then(ViewOp::Mine).then(reshape(&[stay, reduced]))));
        body.push(define(&d, dst.clone().then(ViewOp::Mine).then(reshape(&[mode(n, 1)]))));
        if !c.masks.is_empty() || c.shared.is_some() {
            body.push(plain(&o, &[1], c.scalar, Memory::Rf));
        }
        let mut nest = Nest::default();
        let i = nest.var(&self.local.loops[0], n);
        if let SpecKind::Reduction(_) = c.op {
            body.push(plain(&self.local.pair[0], &[2], c.scalar, Memory::Rf));
            body.push(plain(&self.local.pair[1], &[1], c.scalar, Memory::Rf));
        }
        let own = || at(&d, vec![i.clone()]);
        let zero = || Expr::int(0);
        // Each thread over its own values.
        let mut steps =
            vec![leaf(SpecKind::Move, &each, vec![at(&s, vec![i.clone(), zero()])], own(), vec![])];
        let j = &self.local.loops[1];
        if c.values.1.size() > 1 {
            let value = at(&s, vec![i.clone(), Expr::name(j)]);
            let next = self.combined(c.op, &each, own(), value);
            steps.push(unrolled(j, (1, c.values.1.size()), next));
        }
        let part = self.of_part.contains(&id);
        let values = Values { each, part, own: &own, other: &o, n, op: c.op, scalar: c.scalar };
        steps.extend(self.by_lanes(&values, &c.masks, &all));
        let Some(through) = &c.shared else {
            body.extend(nest.around(steps));
            return Ok(Block { stmts: body, footer: vec![] });
        };
        self.through(&values, through, steps, &all, &mut body);
        Ok(Block { stmts: body, footer: vec![] })
    }
}

/// Names that bodies define.
struct Local {
    threads: String,
    part: String,
    source: String,
    target: String,
    factors: [String; 3],
    loops: [String; 3],
    other: String,
    pair: [String; 2],
    exchange: [String; 3],
    partial: String,
    /// Groups of threads, and which of them a thread is in.
    groups: [String; 2],
    lane: String,
    /// Of a second exchange.
    second: [String; 3],
}

/// Loops around a leaf; none for a count of 1.
#[derive(Clone, Default)]
struct Nest {
    loops: Vec<(String, i64)>,
}

impl Nest {
    /// A loop variable below `n`, or zero.
    fn var(&mut self, name: &str, n: i64) -> Expr {
        if n == 1 {
            return Expr::int(0);
        }
        self.loops.push((name.to_owned(), n));
        Expr::name(name)
    }

    fn around(self, mut stmts: Vec<Stmt>) -> Vec<Stmt> {
        for (var, n) in self.loops.into_iter().rev() {
            stmts = vec![unrolled(&var, (0, n), stmts)];
        }
        stmts
    }
}

fn unrolled(var: &str, range: (i64, i64), stmts: Vec<Stmt>) -> Stmt {
    counted(var, range, Unroll::Full, stmts)
}

/// A thread's values of a part of a tensor: `%t.mine.reshape([8]:[1]).tile([4])[1]`
fn registers(part: &Part) -> View {
    let all = View::of(&part.of).then(ViewOp::Mine).then(reshape(&[mode(part.all, 1)]));
    let in_order = part.registers.coalesce().leaves() == [(part.registers.size(), 1)];
    if in_order && part.registers.size() == part.all {
        return all;
    }
    let tiler = match in_order {
        true => Tiler::Sizes(vec![Some(Expr::int(part.registers.size()))]),
        false => Tiler::Modes(vec![Some(layout_expr(&part.registers))]),
    };
    all.then(ViewOp::Tile(tiler)).then(ViewOp::Index(vec![Some(Expr::int(part.copy))]))
}

/// `%t[..]`
fn at(t: &str, index: Vec<Expr>) -> View {
    View::of(t).then(ViewOp::Index(index.into_iter().map(Some).collect()))
}

/// The error for a spec whose solution cannot be written.
fn unwritten(spec: &Spec, why: Unwritten) -> Diagnostic {
    let message = format!("the solution does not belong to this {}: {why}", spec.kind);
    Diagnostic::new(Code::Internal, spec.span, message).help("please report this with the file")
}
