//! Tiles that leave shared memory by the copy engine.
//!
//! A kernel whose loops have their rings filled box by box ([`super::bulk`]) sends what it has staged in shared memory away so,
//! too: threads pass what they wrote to the asynchronous proxy, and one elected thread asks for the boxes and stays until
//! they have been read. The staged tile takes the place of a ring that nobody needs any more, where a multiprocessor then
//! holds more blocks.

use super::bulk::{Boxes, Known};
use super::roles::Handed;
use crate::build::{barrier, define, sync, within};
use crate::names::Names;
use crate::places::inherit;
use crate::solve::canonical;
use crate::solve::ops::{self, WARP};
use carbyne_atoms::{AtomTable, Visibility, limits};
use carbyne_ir::ast::visit::{self, Rewriter, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::program::{self, BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::{BTreeSet, HashMap};

/// The module with such stores; none where there are none. `p` is what the module resolves to, `handed` are the rings that
/// the copy engine fills.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    table: &AtomTable,
    names: &mut Names,
    handed: &[Handed],
) -> Option<Module> {
    if !table.atoms().iter().any(|a| a.visibility == Visibility::BulkGroup) {
        return None;
    }
    let rings: BTreeSet<NodeKey> = handed.iter().flat_map(|h| &h.rings).copied().collect();
    let mut found = HashMap::new();
    for &kernel in &p.kernels {
        of_kernel(p, table, kernel, &rings, &mut found);
    }
    let known = Known::of(module);
    let mut by =
        Write { names, stores: HashMap::new(), tiles: HashMap::new(), writers: BTreeSet::new() };
    for stmt in Walk::new(&module.items).stmts() {
        let Some(of) = found.remove(&stmt.id.key()) else { continue };
        let StmtKind::Spec(Spec { inputs, outputs, .. }) = &stmt.kind else { continue };
        let ([Operand::View(from)], [to]) = (&inputs[..], &outputs[..]) else { continue };
        let to = known.whole(to);
        let Some((sizes, at)) = known.boxes(&to, &of.boxes) else { continue };
        if !from.ops.is_empty() {
            continue;
        }
        by.writers.extend(of.reuses.is_some().then_some(of.writer));
        by.tiles.insert(of.tile, stmt.id.key());
        let (tile, tensor) = (from.base.text.clone(), to.base.text.clone());
        by.stores.insert(stmt.id.key(), (of, Target { tile, tensor, sizes, at }));
    }
    if by.stores.is_empty() {
        return None;
    }
    let mut tree = module.clone();
    tree.items = visit::rewrite(tree.items, &mut by);
    Some(tree)
}

/// A Move of a tile that is staged in shared memory.
struct Store {
    boxes: Boxes,
    /// The tile's allocation, and what writes it.
    tile: NodeKey,
    writer: NodeKey,
    /// The ring whose place the tile takes.
    reuses: Option<String>,
    /// Names of the blocks and of the block's threads.
    exec: (String, String),
}

/// Names of the tile and of the tensor that it goes to; extents of the tensor's boxes, and where the tile's first one lies.
struct Target {
    tile: String,
    tensor: String,
    sizes: Vec<i64>,
    at: Vec<Vec<Expr>>,
}

/// The stores of a kernel, by the Moves.
fn of_kernel(
    p: &Program,
    table: &AtomTable,
    kernel: SpecId,
    rings: &BTreeSet<NodeKey>,
    found: &mut HashMap<NodeKey, Store>,
) {
    let (Some(body), Some(exec)) = (&p.specs[kernel].body, p.specs[kernel].exec) else { return };
    let name = |id: program::ThreadsId| p.threads[p.threads[id].root].name.clone();
    let (Some(blocks), Some(threads)) = (name(exec.blocks), name(exec.threads)) else { return };
    let allocated = |stmt: &program::Stmt| match stmt.kind {
        program::StmtKind::Allocate(t) => Some(p.tensors[t].buffer),
        _ => None,
    };
    let own: Vec<BufferId> =
        body.iter().filter(|s| rings.contains(&s.node.key())).filter_map(allocated).collect();
    if own.is_empty() {
        return;
    }
    let ops = ops::collect(p, kernel);
    let whole = |id: SpecId| ops.iter().any(|op| op.spec == id && op.group.whole);
    // Bytes of what is allocated, and of which tensors have been given the place of a ring.
    let mut taken: BTreeSet<BufferId> = BTreeSet::new();
    for (i, stmt) in body.iter().enumerate() {
        let program::StmtKind::Spec(id) = stmt.kind else { continue };
        let Some(staged) = Staged::of(p, body, (i, id)) else { continue };
        if !whole(id) || !whole(staged.by) {
            continue;
        }
        let Some(to) = p.specs[id].outputs.first() else { continue };
        let layouts = canonical::layouts(p, staged.buffer, &[]);
        let Some(boxes) = Boxes::of(p, *to, staged.extents, layouts) else { continue };
        let free = own.iter().filter(|b| !taken.contains(*b) && last(p, body, **b) < staged.at);
        let ring = free.max_by_key(|b| bytes(p, p.buffers[**b].tensor)).copied();
        let ring = ring.filter(|ring| makes_room(p, table, (kernel, body), staged.buffer, *ring));
        taken.extend(ring);
        let reuses = ring.map(|b| p.buffers[b].name.clone());
        let exec = (blocks.clone(), threads.clone());
        let (tile, writer) = (staged.tile, staged.writer);
        found.insert(stmt.node.key(), Store { boxes, tile, writer, reuses, exec });
    }
}

/// A tensor in shared memory that one operation of a body writes, and a Move behind it alone reads.
struct Staged {
    buffer: BufferId,
    extents: [i64; 2],
    /// The allocation.
    tile: NodeKey,
    /// Where it is written, and by what.
    at: usize,
    writer: NodeKey,
    by: SpecId,
}

impl Staged {
    fn of(p: &Program, body: &[program::Stmt], (i, id): (usize, SpecId)) -> Option<Self> {
        let spec = &p.specs[id];
        let moves = spec.kind == SpecKind::Move && spec.body.is_none() && spec.atom.is_none();
        let t = spec.input_tensors().next()?;
        let buffer = p.tensors[t].buffer;
        let open = p.buffers[buffer].open && p.buffer_of(t).memory == Some(Memory::Sh);
        let extents: [i64; 2] = ops::extents(p, p.buffers[buffer].tensor)?.try_into().ok()?;
        if !moves || !open || ops::extents(p, t)? != extents {
            return None;
        }
        let is = |t: TensorId| p.tensors[t].buffer == buffer;
        let touches = |id: SpecId| {
            let spec = &p.specs[id];
            spec.input_tensors().chain(spec.outputs.iter().copied()).any(is)
        };
        let all: Vec<SpecId> = p.walk(body).specs().filter(|id| touches(*id)).collect();
        let [by, last] = all[..] else { return None };
        let at = body[..i]
            .iter()
            .position(|s| matches!(s.kind, program::StmtKind::Spec(own) if own == by))?;
        let of = &p.specs[by];
        let in_registers = |t: TensorId| p.buffer_of(t).memory == Some(Memory::Rf);
        let writes = of.outputs.len() == 1 && !of.input_tensors().any(is) && of.body.is_none();
        let tile = body.iter().find(|s| match s.kind {
            program::StmtKind::Allocate(t) => is(t),
            _ => false,
        })?;
        let fits = last == id && writes && of.input_tensors().all(in_registers);
        let (tile, writer) = (tile.node.key(), body[at].node.key());
        fits.then_some(Staged { buffer, extents, tile, at, writer, by })
    }
}

/// Where the last of the statements stands that touches a tensor.
fn last(p: &Program, body: &[program::Stmt], buffer: BufferId) -> usize {
    let of = |t: TensorId| p.tensors[t].buffer == buffer;
    let touches = |stmt: &program::Stmt| {
        p.walk(std::slice::from_ref(stmt)).specs().any(|id| {
            let spec = &p.specs[id];
            spec.input_tensors().chain(spec.outputs.iter().copied()).any(of)
        })
    };
    body.iter().rposition(touches).unwrap_or(usize::MAX)
}

fn bytes(p: &Program, t: TensorId) -> i64 {
    let elements = ops::whole(p, t).map_or(0, |l| l.size());
    elements.saturating_mul(p.scalar_of(t).bits()) / 8
}

/// Whether a multiprocessor holds more blocks where one tensor takes the place of the other.
fn makes_room(
    p: &Program,
    table: &AtomTable,
    (kernel, body): (SpecId, &[program::Stmt]),
    tile: BufferId,
    ring: BufferId,
) -> bool {
    let (mut apart, mut stated) = (0i64, false);
    for stmt in p.walk(body).stmts() {
        let program::StmtKind::Allocate(t) = stmt.kind else { continue };
        let buffer = p.buffer_of(t);
        if buffer.memory == Some(Memory::Sh) {
            apart = apart.saturating_add(bytes(p, t));
            stated |= buffer.at.is_some() || buffer.reuses.is_some();
        }
    }
    let of = |b: BufferId| bytes(p, p.buffers[b].tensor);
    let together = apart - of(tile).min(of(ring));
    let limits = limits(table.arch);
    let threads = ops::block_threads(p, kernel).max(1);
    let blocks = |bytes: i64| match bytes <= limits.max_smem_per_block {
        true => limits.resident_blocks(threads, 0, bytes),
        false => 0,
    };
    !stated && blocks(together) > blocks(apart)
}

struct Write<'a> {
    names: &'a mut Names,
    /// By the Moves.
    stores: HashMap<NodeKey, (Store, Target)>,
    /// Moves, by the allocations of what they read.
    tiles: HashMap<NodeKey, NodeKey>,
    /// What writes tiles that take the place of a ring.
    writers: BTreeSet<NodeKey>,
}

impl Rewriter for Write<'_> {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let key = stmt.id.key();
        if let Some((store, _)) = self.tiles.get(&key).and_then(|of| self.stores.get(of))
            && let StmtKind::Allocate { ty, .. } = &mut stmt.kind
        {
            // Its levels are those that it was found by.
            let _ = store.boxes.lay_out(ty);
            ty.attrs.extend(store.reuses.as_ref().map(|r| TypeAttr::Reuses(Name::new(r))));
        }
        if self.writers.contains(&key) {
            // Everybody has read the ring.
            let mut before = vec![barrier(None)];
            inherit(&mut before, stmt.id, stmt.span);
            out.append(&mut before);
        }
        let Some((store, target)) = self.stores.get(&key) else { return out.push(stmt) };
        let mut stmts = written(store, target, self.names);
        inherit(&mut stmts, stmt.id, stmt.span);
        if let Some(first) = stmts.first_mut() {
            first.blank_above = stmt.blank_above;
            first.leading = std::mem::take(&mut stmt.leading);
        }
        out.append(&mut stmts);
    }
}

/// The statements in the place of a Move.
fn written(store: &Store, target: &Target, names: &mut Names) -> Vec<Stmt> {
    let map = names.fresh(&format!("m{}", target.tensor));
    let tile = View::of(&target.tile);
    let mut all = vec![];
    for (to, from) in store.boxes.views(&map, &target.at, &tile) {
        let mut copy = Spec::new(SpecKind::Move);
        copy.inputs = vec![Operand::View(from)];
        copy.outputs = vec![to];
        all.push(Stmt::new(StmtKind::Spec(copy)));
    }
    all.push(sync(SyncOp::BulkCommit, None, None));
    // A block keeps its memory until it ends.
    all.push(sync(SyncOp::BulkWaitRead, None, Some(Expr::int(0))));
    let (blocks, threads) = (View::of(&store.exec.0), View::of(&store.exec.1));
    let of_warp = ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(WARP))]));
    let first = ViewOp::Index(vec![Some(Expr::int(0))]);
    let lead = threads.then(of_warp).then(first).then(ViewOp::Elect);
    let read = vec![tile];
    vec![
        define(&map, store.boxes.map(&target.tensor, &target.sizes)),
        sync(SyncOp::FenceAsync, None, None),
        barrier(None),
        within(&(blocks, lead), read, vec![View::of(&target.tensor)], all),
    ]
}
