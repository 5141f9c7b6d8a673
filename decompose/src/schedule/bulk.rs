//! Loops with `stages=` whose copies the copy engine makes, box by box, and whose tiles `wgmma` reads where they lie.
//!
//! One elected thread of the block asks for the boxes of an iteration; an mbarrier for each stage, `full`, counts their bytes,
//! another, `empty`, the warps that have read the stage. So no thread copies, and no barrier of the block stands in the loop.
//! Nobody but instructions that take descriptors reads the rings: these say how tiles lie, and boxes are written so.
//!
//! A MatMul that ends an iteration is left under way while the next one begins: it has read its stage when the one after it
//! has been issued and all but that one are done. The copies for the stage that is then free are S - 1 iterations ahead.
//! Otherwise an iteration has read its stage at its end, and copies are S iterations ahead.
//!
//! What is in the way of this leaves the loop to [`super::pipeline`].

use super::pipeline::{Loop, copied};
use super::roles::Handed;
use super::turns::{count, modulo, plus, referred, staged, sum, times, turns};
use crate::build::{
    barrier, block, counted, define, define_threads, dims, plain, sync, when, within,
};
use crate::instance::params::{Numbers, eval};
use crate::names::Names;
use crate::places::inherit;
use crate::solve::canonical::{self, Demand};
use crate::solve::ops::{self, Op, WARP};
use crate::solve::{matmul, tv};
use carbyne_atoms::{AtomTable, Visibility};
use carbyne_ir::ast::visit::{self, Rewriter, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{self, BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The module with such loops written out, and the rings that are handed over; none where there is no such loop. `p` is what
/// the module resolves to.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    table: &AtomTable,
    names: &mut Names,
) -> Option<(Module, Vec<Handed>)> {
    let has = |v: Visibility| table.atoms().iter().any(|a| a.visibility == v);
    if !has(Visibility::Mbarrier) || !has(Visibility::WgmmaGroup) {
        return None;
    }
    let known = Known::of(module);
    let mut found = HashMap::new();
    for &kernel in &p.kernels {
        let ops = ops::collect(p, kernel);
        for stmt in p.specs[kernel].body.iter().flatten() {
            if let Some(of) = Bulk::of(p, table, kernel, stmt, &ops) {
                found.insert(stmt.node.key(), of);
            }
        }
    }
    let mut by = Write { found, known, names, handed: vec![] };
    if by.found.is_empty() {
        return None;
    }
    let mut tree = module.clone();
    tree.items = visit::rewrite(tree.items, &mut by);
    (!by.handed.is_empty()).then_some((tree, by.handed))
}

/// What names of a module stand for.
pub(super) struct Known<'m> {
    /// How often each name is defined.
    defined: HashMap<&'m str, usize>,
    /// Views that are defined once.
    views: HashMap<&'m str, &'m View>,
    /// Numbers.
    numbers: Numbers,
}

impl<'m> Known<'m> {
    pub(super) fn of(module: &'m Module) -> Self {
        let defined = count(&module.items);
        let once = |name: &str| defined.get(name) == Some(&1);
        let (views, numbers) = (HashMap::new(), Numbers::new());
        let mut out = Known { defined: HashMap::new(), views, numbers };
        for stmt in Walk::new(&module.items).stmts() {
            match &stmt.kind {
                StmtKind::DataDef { name, view, .. } if once(&name.text) => {
                    out.views.insert(&name.text, view);
                }
                StmtKind::Let(list) => {
                    for (name, e) in list.iter().filter(|(name, _)| once(&name.text)) {
                        if let Some(n) = eval(e, &out.numbers) {
                            out.numbers.insert(name.text.clone(), n);
                        }
                    }
                }
                _ => {}
            }
        }
        Known { defined, ..out }
    }

    /// The extents of the boxes of a tensor, and the coordinates, in boxes, of the first that a view of tiles begins with: terms of
    /// sums. None where the view is not made of tiles, or they of boxes.
    pub(super) fn boxes(&self, view: &View, boxes: &Boxes) -> Option<(Vec<i64>, Vec<Vec<Expr>>)> {
        let mut ops = &view.ops[..];
        // A slice of a tensor of more modes.
        let mut slice = None;
        if let [ViewOp::Index(at), rest @ ..] = ops {
            slice = Some(at);
            ops = rest;
        }
        let extents = boxes.extents_of_box();
        let mut own: [Vec<Expr>; 2] = Default::default();
        let mut last = None;
        while let [ViewOp::Tile(Tiler::Sizes(sizes)), ViewOp::Index(at), rest @ ..] = ops {
            let ([Some(m), Some(k)], [Some(i), Some(j)]) = (&sizes[..], &at[..]) else {
                return None;
            };
            let tile = [eval(m, &self.numbers)?, eval(k, &self.numbers)?];
            for (mode, index) in [i, j].into_iter().enumerate() {
                if tile[mode] % extents[mode] != 0 {
                    return None;
                }
                if !matches!(index.kind, ExprKind::Int(0)) {
                    own[mode].push(times(index.clone(), tile[mode] / extents[mode]));
                }
            }
            last = Some(tile);
            ops = rest;
        }
        if !ops.is_empty() || last? != boxes.extents {
            return None;
        }
        let Some(slice) = slice else { return Some((extents.to_vec(), own.to_vec())) };
        let mut left = extents.into_iter().zip(own);
        let (mut sizes, mut at) = (vec![], vec![]);
        for e in slice {
            let (size, terms) = match e {
                Some(e) => (1, vec![e.clone()]),
                None => left.next()?,
            };
            sizes.push(size);
            at.push(terms);
        }
        // The modes of a slice come first, so that the others are those of the tile.
        let [.., None, None] = &slice[..] else { return None };
        left.next().is_none().then_some((sizes, at))
    }

    /// A view with what its base is a view of before it.
    pub(super) fn whole(&self, view: &View) -> View {
        let mut out = view.clone();
        // A chain of views is no longer than there are names.
        for _ in 0..self.views.len() {
            let Some(of) = self.views.get(out.base.text.as_str()) else { break };
            let mut base = (*of).clone();
            base.ops.append(&mut out.ops);
            out = base;
        }
        out
    }
}

/// A loop whose copies are boxes.
struct Bulk {
    stages: i64,
    step: i64,
    trips: Option<i64>,
    /// Warps of the block.
    warps: i64,
    /// Names of the blocks and of the block's threads.
    exec: (String, String),
    rings: BTreeMap<NodeKey, Ring>,
    /// The MatMul at the end of an iteration, if it may be left under way.
    last: Option<NodeKey>,
}

/// A tensor of the loop that becomes a ring.
struct Ring {
    /// The copy that fills it.
    copy: NodeKey,
    boxes: Boxes,
}

/// How a tile lies in shared memory so that boxes of global memory fit it.
pub(super) struct Boxes {
    /// The tile's extents.
    pub(super) extents: [i64; 2],
    scalar: Scalar,
    layout: Layout,
    swizzle: Option<Swizzle>,
    /// Which mode is contiguous in global memory, and how much of it is a box.
    row: (usize, i64),
}

/// Extents of a box, at most (PTX ISA, Tensor Size, Traversal Stride and Bounding Box).
const MOST_OF_BOX: i64 = 256;

impl Bulk {
    fn of(
        p: &Program,
        table: &AtomTable,
        kernel: SpecId,
        stmt: &program::Stmt,
        ops: &[Op],
    ) -> Option<Self> {
        let program::StmtKind::For { start, end, step, stages: 2.., unroll, body, .. } = &stmt.kind
        else {
            return None;
        };
        let of_block: BTreeSet<SpecId> = ops.iter().map(|op| op.spec).collect();
        let facts = Loop::of(p, stmt, &of_block, true)?;
        let threads = ops::block_threads(p, kernel);
        if *unroll == Unroll::Full
            || threads % WARP != 0
            || facts.fills().is_empty()
            || facts.has_others()
        {
            return None;
        }
        let op = |id: SpecId| ops.iter().find(|op| op.spec == id && op.group.whole);
        let mut rings = BTreeMap::new();
        let mut buffers = BTreeSet::new();
        for (allocation, copies) in facts.fills() {
            let [copy] = copies[..] else { return None };
            let find = |s: &&program::Stmt| s.node.key() == *allocation;
            let program::StmtKind::Allocate(t) = body.iter().find(find)?.kind else { return None };
            let id = body.iter().find_map(|s| match s.kind {
                program::StmtKind::Spec(id) if s.node.key() == copy => Some(id),
                _ => None,
            })?;
            op(id)?;
            buffers.insert(p.tensors[t].buffer);
            rings.insert(*allocation, Ring::of(p, table, (t, id, copy), body, &op)?);
        }
        let exec = p.specs[kernel].exec?;
        let name = |id: program::ThreadsId| p.threads[p.threads[id].root].name.clone();
        Some(Bulk {
            stages: facts.stages,
            step: facts.step,
            trips: ops::trips(*start, *end, *step),
            warps: threads / WARP,
            exec: (name(exec.blocks)?, name(exec.threads)?),
            rings,
            last: last(p, body, &buffers),
        })
    }
}

/// The MatMul at the end of the statements, if nothing else of them reads the rings, or has to do with its sums.
fn last(p: &Program, body: &[program::Stmt], rings: &BTreeSet<BufferId>) -> Option<NodeKey> {
    let of = |t: TensorId| p.tensors[t].buffer;
    let end = body.last()?;
    let program::StmtKind::Spec(id) = end.kind else { return None };
    let spec = &p.specs[id];
    let sums = of(*spec.outputs.first()?);
    let in_registers = |t: TensorId| p.buffer_of(t).memory == Some(Memory::Rf);
    let touches = |id: SpecId| {
        let spec = &p.specs[id];
        let reads = spec.input_tensors().any(|t| rings.contains(&of(t)) || of(t) == sums);
        reads || spec.outputs.iter().any(|t| of(*t) == sums)
    };
    let others = p.walk(&body[..body.len() - 1]).specs().any(touches);
    let alone = spec.kind == SpecKind::MatMul && !spec.input_tensors().any(in_registers);
    (alone && !others).then(|| end.node.key())
}

impl Ring {
    fn of<'o>(
        p: &Program,
        table: &AtomTable,
        (t, id, copy): (TensorId, SpecId, NodeKey),
        body: &[program::Stmt],
        op: &impl Fn(SpecId) -> Option<&'o Op>,
    ) -> Option<Self> {
        let buffer = p.tensors[t].buffer;
        if !p.buffers[buffer].open {
            return None;
        }
        let extents: [i64; 2] = ops::extents(p, t)?.try_into().ok()?;
        let spec = &p.specs[id];
        let to = *spec.outputs.first()?;
        if spec.atom.is_some() || ops::extents(p, to)? != extents || to != spec.outputs[0] {
            return None;
        }
        let demands = demands(p, table, (buffer, id), body, op)?;
        let from = spec.input_tensors().next()?;
        let all = canonical::layouts(p, buffer, &demands);
        Some(Ring { copy, boxes: Boxes::of(p, from, extents, all)? })
    }
}

impl Boxes {
    /// Those of a tile in global memory, in one of the layouts.
    pub(super) fn of(
        p: &Program,
        tile: TensorId,
        extents: [i64; 2],
        layouts: Vec<(Layout, Option<Swizzle>)>,
    ) -> Option<Self> {
        let scalar = p.scalar_of(tile);
        let row = contiguous(p, tile, extents, scalar)?;
        let lies = |l: &Layout| l.mode(row).is_ok_and(|m| m.size() == 1 || m.at(1) == 1);
        let (layout, swizzle) = layouts.into_iter().find(|(layout, _)| lies(layout))?;
        let width = match layout.mode(row).ok()?.leaves() {
            [(n, _)] | [(n, _), _] => *n,
            _ => return None,
        };
        let lines = extents[1 - row];
        let sizes = width <= MOST_OF_BOX && lines <= MOST_OF_BOX && extents[row] % width == 0;
        // Without a swizzle a box is a unit of 16 bytes wide, and there are many.
        let row = (row, width);
        (sizes && swizzle.is_some()).then_some(Boxes { extents, scalar, layout, swizzle, row })
    }

    pub(super) fn bytes(&self) -> i64 {
        self.extents[0] * self.extents[1] * self.scalar.bits() / 8
    }

    /// Boxes of a tile along the contiguous mode.
    fn number(&self) -> i64 {
        self.extents[self.row.0] / self.row.1
    }

    /// The extents of a box.
    fn extents_of_box(&self) -> [i64; 2] {
        let mut out = self.extents;
        out[self.row.0] = self.row.1;
        out
    }

    /// The type of a tensor in shared memory that lies so.
    pub(super) fn lay_out(&self, ty: &mut TensorType) -> Option<()> {
        let level = ty.levels.first_mut()?;
        let (shape, stride) = (self.layout.shape(), self.layout.stride());
        level.modes = shape.modes().iter().map(TupleExpr::constant).collect();
        level.strides = Some(stride.modes().iter().map(TupleExpr::constant).collect());
        ty.attrs.retain(|a| *a != TypeAttr::Open && !matches!(a, TypeAttr::Swizzle(..)));
        ty.attrs.extend(self.swizzle_numbers().map(TypeAttr::Swizzle));
        Some(())
    }

    fn swizzle_numbers(&self) -> Option<Box<[Expr; 3]>> {
        self.swizzle.map(|s| Expr::swizzle(s.bits(), s.base(), s.shift().unsigned_abs()))
    }

    /// The tensor map of a tensor that is accessed by boxes of these extents.
    pub(super) fn map(&self, tensor: &str, sizes: &[i64]) -> View {
        View::of(tensor).then(ViewOp::TensorMap {
            sizes: sizes.iter().map(|n| Expr::int(*n)).collect(),
            swizzle: self.swizzle_numbers(),
        })
    }

    /// Views of the boxes of a tile: in the tensor map of this name, of which the first box is `at`, and in the tile itself.
    pub(super) fn views(&self, map: &str, at: &[Vec<Expr>], tile: &View) -> Vec<(View, View)> {
        let row = at.len() - 2 + self.row.0;
        let of_box = |i: i64| {
            let index = at.iter().enumerate().map(|(mode, terms)| {
                let own = terms.iter().cloned().reduce(sum).unwrap_or_else(|| Expr::int(0));
                Some(if mode == row { plus(own, i) } else { own })
            });
            let mut own = tile.clone();
            if self.number() > 1 {
                let sizes = self.extents_of_box().map(|n| Some(Expr::int(n))).to_vec();
                let mut at = vec![Some(Expr::int(0)); 2];
                at[self.row.0] = Some(Expr::int(i));
                own = own.then(ViewOp::Tile(Tiler::Sizes(sizes))).then(ViewOp::Index(at));
            }
            (View::of(map).then(ViewOp::Index(index.collect())), own)
        };
        (0..self.number()).map(of_box).collect()
    }
}

/// What instructions that read a tensor of the loop by descriptors want of it; none where others read it.
fn demands<'o>(
    p: &Program,
    table: &AtomTable,
    (buffer, copy): (BufferId, SpecId),
    body: &[program::Stmt],
    op: &impl Fn(SpecId) -> Option<&'o Op>,
) -> Option<Vec<Demand>> {
    let of = |t: TensorId| p.tensors[t].buffer == buffer;
    let mut out = vec![];
    for stmt in body {
        let mut touching = p.walk(std::slice::from_ref(stmt)).specs().filter(|id| {
            let spec = &p.specs[*id];
            *id != copy && spec.input_tensors().chain(spec.outputs.iter().copied()).any(of)
        });
        let Some(id) = touching.next() else { continue };
        let is_top = matches!(stmt.kind, program::StmtKind::Spec(top) if top == id);
        let (spec, op) = (&p.specs[id], op(id)?);
        let multiplies = matches!(spec.kind, SpecKind::MatMul | SpecKind::MatMulSet);
        if !is_top || !multiplies || spec.outputs.iter().any(|t| of(*t)) {
            return None;
        }
        let options = matmul::described(p, table, op, &tv::Known::new());
        let atom = table.get(options.first()?.choice.atom)?;
        for (t, operand) in spec.input_tensors().zip(&atom.operands).filter(|(t, _)| of(*t)) {
            out.push(Demand::new(t, operand)?);
        }
    }
    (!out.is_empty()).then_some(out)
}

/// The mode of a tile in global memory whose elements are neighbors, where the others are whole units of 16 bytes apart.
fn contiguous(p: &Program, t: TensorId, extents: [i64; 2], scalar: Scalar) -> Option<usize> {
    /// Bits of the unit of strides.
    const UNIT: i64 = 128;
    if p.buffer_of(t).memory != Some(Memory::Gl) || ops::extents(p, t)? != extents {
        return None;
    }
    let modes: Vec<_> = p.tensors[t].levels.iter().flat_map(Layout::modes).collect();
    let stride = |mode: &Layout<carbyne_ir::expr::Dim>| match mode.leaves() {
        [(_, s)] => s.as_const(),
        _ => None,
    };
    let [first, second] = &modes[..] else { return None };
    let strides = [stride(first)?, stride(second)?];
    let row = strides.iter().position(|s| *s == 1)?;
    let apart = strides[1 - row].checked_mul(scalar.bits())?;
    (apart % UNIT == 0).then_some(row)
}

/// Puts loops over boxes in the places of loops.
struct Write<'a> {
    found: HashMap<NodeKey, Bulk>,
    known: Known<'a>,
    names: &'a mut Names,
    handed: Vec<Handed>,
}

impl Rewriter for Write<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let Some(bulk) = self.found.remove(&stmt.id.key()) else { return out.push(stmt) };
        let Some((mut stmts, handed)) = self.written(&bulk, &stmt) else { return out.push(stmt) };
        inherit(&mut stmts, stmt.id, stmt.span);
        if let Some(first) = stmts.first_mut() {
            first.blank_above = stmt.blank_above;
            first.leading = std::mem::take(&mut stmt.leading);
        }
        self.handed.push(handed);
        out.append(&mut stmts);
    }
}

/// What stands around the loop, and what an iteration copies.
struct Around {
    /// Views and names.
    before: Vec<Stmt>,
    /// The copies of the iteration of the loop's variable into the stage of that name.
    copies: Vec<Stmt>,
    stage: String,
    /// Names of tensors that are read, and of the rings.
    sources: Vec<String>,
    rings: Vec<String>,
    /// By their allocations, the names of rings in the loop and before it.
    renamed: Vec<(String, String)>,
    allocations: BTreeSet<NodeKey>,
    full: String,
    empty: String,
    lead: (View, View),
    leads: (View, View),
}

impl Write<'_> {
    /// The statements in the place of a loop; none where a view is no box.
    fn written(&mut self, bulk: &Bulk, stmt: &Stmt) -> Option<(Vec<Stmt>, Handed)> {
        let StmtKind::For { var, start, end, unroll, body, .. } = &stmt.kind else { return None };
        let depth = bulk.trips.map_or(bulk.stages, |n| n.min(bulk.stages));
        if depth < 2 {
            return None;
        }
        let around = self.around(bulk, (&var.text, body), depth)?;
        let copies = |at: &Expr, stage: &Expr| -> Option<Vec<Stmt>> {
            let mut by =
                Substitution { budget: super::pipeline::BUDGET, ..Substitution::default() };
            by.numbers.insert(var.text.clone(), at.clone());
            by.numbers.insert(around.stage.clone(), stage.clone());
            copied(&mut by, &around.copies)
        };
        let views = |names: &[String]| -> Vec<View> { names.iter().map(View::of).collect() };
        let turn = turns(Expr::name(&var.text), start, bulk.step);
        let reach = if bulk.last.is_some() { depth - 1 } else { depth };

        // Before the loop.
        let mut out = around.before.clone();
        let init = sync(SyncOp::MbarrierInit, Some(View::of(&around.full)), Some(Expr::int(1)));
        let handed =
            Handed { rings: around.allocations.clone(), init: init.id.key(), arrivals: vec![] };
        let warps = Some(Expr::int(bulk.warps));
        let mut first = vec![
            init,
            sync(SyncOp::MbarrierInit, Some(View::of(&around.empty)), warps),
            sync(SyncOp::FenceAsync, None, None),
        ];
        let s = self.names.fresh("s");
        let at = sum(start.clone(), times(Expr::name(&s), bulk.step));
        let mut ahead = copies(&at, &Expr::name(&s))?;
        if bulk.trips.is_none_or(|n| n < reach) {
            ahead = vec![when(at, CmpOp::Lt, end.clone(), ahead)];
        }
        first.push(counted(&s, (0, reach), Unroll::Default, ahead));
        let barriers = [around.full.clone(), around.empty.clone()];
        let filled: Vec<String> = barriers.iter().chain(&around.rings).cloned().collect();
        out.push(within(&around.lead, views(&around.sources), views(&filled), first));
        out.push(barrier(None));

        // An iteration.
        let stage = modulo(turn.clone(), depth);
        let used = Expr::bin(BinOp::Div, turn.clone(), Expr::int(depth));
        let bar = |name: &str, stage: &Expr| Some(staged(name, stage));
        let wait = |name: &str, stage: &Expr, parity: Expr| {
            sync(SyncOp::MbarrierWait, bar(name, stage), Some(parity))
        };
        let mut all = vec![wait(&around.full, &stage, modulo(used.clone(), 2))];
        let is_ring = |s: &Stmt| bulk.rings.contains_key(&s.id.key());
        let is_copy = |s: &Stmt| bulk.rings.values().any(|r| r.copy == s.id.key());
        let mut own: Vec<Stmt> =
            body.stmts.iter().filter(|s| !is_ring(s) && !is_copy(s)).cloned().collect();
        let mut uses = Substitution { budget: super::pipeline::BUDGET, ..Default::default() };
        for (name, ring) in &around.renamed {
            uses.data.insert(name.clone(), Given::View(staged(ring, &stage)));
        }
        uses.in_place(&mut own).ok()?;
        all.append(&mut own);
        let later = sum(Expr::name(&var.text), Expr::int(reach.checked_mul(bulk.step)?));
        let ahead = plus(turn.clone(), reach);
        let next = if reach == depth { stage.clone() } else { modulo(ahead.clone(), depth) };
        let arrive = within(
            &around.leads,
            vec![View::of(&around.empty)],
            vec![],
            vec![sync(SyncOp::MbarrierArrive, bar(&around.empty, &next), None)],
        );
        if bulk.last.is_some() {
            all.push(sync(SyncOp::WgmmaWait, None, Some(Expr::int(1))));
            all.push(when(turn, CmpOp::Gt, Expr::int(0), vec![arrive]));
        } else {
            all.push(arrive);
        }
        if bulk.trips.is_none_or(|n| n > reach) {
            // A fresh barrier passes parity 1.
            let before = match reach == depth {
                true => used,
                false => plus(Expr::bin(BinOp::Div, ahead, Expr::int(depth)), 1),
            };
            let mut fill = vec![wait(&around.empty, &next, modulo(before, 2))];
            fill.extend(copies(&later, &next)?);
            let read: Vec<String> = around.sources.iter().chain(&barriers).cloned().collect();
            let fill = within(&around.lead, views(&read), views(&around.rings), fill);
            all.push(when(later, CmpOp::Lt, end.clone(), vec![fill]));
        }
        let mut body_of_loop = block(all);
        body_of_loop.footer.clone_from(&body.footer);
        let kind = StmtKind::For {
            var: var.clone(),
            start: start.clone(),
            end: end.clone(),
            step: Expr::int(bulk.step),
            unroll: *unroll,
            stages: None,
            body: body_of_loop,
        };
        let trailing = stmt.trailing.clone();
        out.push(Stmt { id: stmt.id, from: stmt.from, trailing, ..Stmt::derived(kind, stmt) });
        if bulk.last.is_some() {
            out.push(sync(SyncOp::WgmmaWait, None, Some(Expr::int(0))));
        }
        Some((out, handed))
    }

    /// Rings, barriers, threads and maps.
    fn around(&mut self, bulk: &Bulk, (var, body): (&str, &Block), depth: i64) -> Option<Around> {
        let inside = count(&body.stmts);
        let (mut before, mut maps) = (vec![], vec![]);
        let [full, empty, warps, lead, leads, stage] =
            ["full", "empty", "warps", "lead", "leads", "stage"].map(|n| self.names.fresh(n));
        let mut out = Around {
            before: vec![],
            copies: vec![],
            stage,
            sources: vec![],
            rings: vec![],
            renamed: vec![],
            allocations: BTreeSet::new(),
            full,
            empty,
            lead: (View::of(&bulk.exec.0), View::of(&lead)),
            leads: (View::of(&bulk.exec.0), View::of(&leads)),
        };
        let bar = staged(&out.full, &Expr::name(&out.stage));
        let bytes: i64 = bulk.rings.values().map(|r| r.boxes.bytes()).sum();
        out.copies.push(sync(SyncOp::MbarrierExpect, Some(bar.clone()), Some(Expr::int(bytes))));
        for own in &body.stmts {
            let Some(ring) = bulk.rings.get(&own.id.key()) else { continue };
            let StmtKind::Allocate { name, ty } = &own.kind else { return None };
            let copy = body.stmts.iter().find(|s| s.id.key() == ring.copy)?;
            let StmtKind::Spec(Spec { inputs, outputs, .. }) = &copy.kind else { return None };
            let [Operand::View(from)] = &inputs[..] else { return None };
            if outputs.iter().any(|to| !to.ops.is_empty()) || ty.levels.len() != 1 {
                return None;
            }
            // It now stands beside what is around the loop.
            let own_name = match self.known.defined.get(name.text.as_str()) {
                Some(1) => name.text.clone(),
                _ => self.names.fresh(&name.text),
            };
            let mut ty = ty.clone();
            ring.boxes.lay_out(&mut ty)?;
            ty.levels.insert(0, dims(&[depth], false));
            let allocation = StmtKind::Allocate { name: Name::new(&own_name), ty };
            let allocation = Stmt::derived(allocation, own);
            out.allocations.insert(allocation.id.key());
            before.push(allocation);

            let whole = self.known.whole(from);
            let (sizes, at) = self.known.boxes(&whole, &ring.boxes)?;
            for e in at.iter().flatten() {
                let mut fine = true;
                let mut check = |name: &str| fine &= name == var || !inside.contains_key(name);
                names_of(e, &mut check);
                if !fine {
                    return None;
                }
            }
            let map = define("", ring.boxes.map(&whole.base.text, &sizes));
            let known = maps.iter().find(|(_, m): &&(String, StmtKind)| *m == map.kind);
            let map_name = match known {
                Some((name, _)) => name.clone(),
                None => {
                    let name = self.names.fresh(&format!("m{}", whole.base.text));
                    maps.push((name.clone(), map.kind));
                    name
                }
            };
            let to = staged(&own_name, &Expr::name(&out.stage));
            for (from, to) in ring.boxes.views(&map_name, &at, &to) {
                let mut copy = Spec::new(SpecKind::Move);
                copy.inputs = vec![Operand::View(from)];
                copy.outputs = vec![to];
                copy.attrs = vec![crate::build::view("bar", bar.clone())];
                out.copies.push(Stmt::new(StmtKind::Spec(copy)));
            }
            if !out.sources.contains(&whole.base.text) {
                out.sources.push(whole.base.text.clone());
            }
            out.rings.push(own_name.clone());
            out.renamed.push((name.text.clone(), own_name));
        }
        for name in [&out.full, &out.empty] {
            before.push(plain(name, &[depth], Scalar::Mbarrier, Memory::Sh));
        }
        let all = View::of(&bulk.exec.1);
        let of_warp = Tiler::Sizes(vec![Some(Expr::int(WARP))]);
        before.push(define_threads(&warps, all.then(ViewOp::Tile(of_warp))));
        let first = ViewOp::Index(vec![Some(Expr::int(0))]);
        before.push(define_threads(&lead, View::of(&warps).then(first).then(ViewOp::Elect)));
        before.push(define_threads(&leads, View::of(&warps).then(ViewOp::Elect)));
        for (name, kind) in maps {
            if let StmtKind::DataDef { view, .. } = kind {
                before.push(define(&name, view));
            }
        }
        out.before = before;
        Some(out)
    }
}

/// The names in an expression.
pub(super) fn names_of(e: &Expr, each: &mut impl FnMut(&str)) {
    let stmt = Stmt::new(StmtKind::Let(vec![(Name::new(""), e.clone())]));
    referred(&stmt, &mut |name, _| each(name));
}
