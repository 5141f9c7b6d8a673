//! Rewrites kernels so that tiles leave shared memory by the copy engine ([`apply`]).
//!
//! This applies to kernels whose loops have their rings filled box by box ([`super::bulk`]) and
//! that stage results in shared memory. Threads pass the tile that they wrote to the asynchronous
//! proxy, and one elected thread asks for the boxes and waits until they have been read. The staged
//! tile takes the place of a ring that nothing needs any more, if a multiprocessor then holds more
//! blocks. If it takes no ring's place, it may be staged part by part, in the fewest parts with
//! which a multiprocessor holds the most blocks. In a loop that thread waits only before the tile
//! is written again, so that the next iteration begins meanwhile.

use super::bulk::boxes::{Boxes, Known, mapped};
use super::bulk::{is_once, written};
use crate::access::ops;
use crate::access::ops::WARP;
use crate::build::{barrier, define, sync, within};
use crate::layouts::canonical;
use crate::names::Names;
use crate::origins::inherit;
use crate::plan::roles::Handed;
use carbyne_atoms::{AtomTable, tensor_map};
use carbyne_ir::ast::visit::{self, Rewriter, Walk};
use carbyne_ir::ast::*;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{self, BufferId, Program, SpecId, TensorId};
use std::collections::{BTreeSet, HashMap};

/// The module with such stores; none where there are none. `p` is what the module resolves to,
/// `handed` are the rings that the copy engine fills.
pub(crate) fn apply(
    module: &Module,
    p: &Program,
    table: &AtomTable,
    names: &mut Names,
    handed: &[Handed],
) -> Option<Module> {
    if !table.atoms().iter().any(|a| a.visibility.is_bulk() && !a.visibility.names_barrier()) {
        return None;
    }
    let rings: BTreeSet<NodeKey> = handed.iter().flat_map(|h| &h.rings).copied().collect();
    let mut found = HashMap::new();
    for &kernel in &p.kernels {
        of_kernel(p, table, kernel, &rings, &mut found);
    }
    let known = Known::of(module);
    let mut by = Write {
        names,
        stores: HashMap::new(),
        tiles: HashMap::new(),
        writers: HashMap::new(),
        written: HashMap::new(),
        loops: HashMap::new(),
    };
    let mut stores = vec![];
    for stmt in Walk::new(&module.items).stmts() {
        let Some(of) = found.remove(&stmt.id.key()) else { continue };
        let StmtKind::Spec(Spec { inputs, outputs, attrs, .. }) = &stmt.kind else { continue };
        let ([Operand::View(from)], [to]) = (&inputs[..], &outputs[..]) else { continue };
        let (tensor, tiles) = mapped(&known.whole(to));
        let Some((sizes, at)) = known.boxes(&tiles, &of.all) else { continue };
        if !from.ops.is_empty() {
            continue;
        }
        let tile = from.base.text.clone();
        let cache = Attr::among(attrs, Key::Cache).cloned().into_iter().collect();
        stores.push((stmt.id.key(), of, Target { tile, tensor, sizes, at, cache }));
    }
    let ids: BTreeSet<SpecId> = stores.iter().map(|(_, of, _)| of.spec).collect();
    for (key, of, target) in stores {
        if written(p, of.kernel, &ids).contains(&of.to) {
            continue;
        }
        by.writers.insert(of.writer, key);
        by.loops.extend(of.outer.map(|outer| (outer, of.exec.clone())));
        by.tiles.insert(of.tile, key);
        by.stores.insert(key, (of, target));
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
    /// The Move, its kernel, and where it goes.
    spec: SpecId,
    kernel: SpecId,
    to: BufferId,
    /// Of the tile, and of a part of it.
    all: Boxes,
    boxes: Boxes,
    /// In how many parts the tile is staged.
    parts: i64,
    /// The tile's allocation, and what writes it.
    tile: NodeKey,
    writer: NodeKey,
    /// The ring whose place the tile takes.
    reuses: Option<String>,
    /// The loop that this is done in.
    outer: Option<NodeKey>,
    /// Names of the blocks and of the block's threads.
    exec: (String, String),
}

/// The name of the tile and the tensor that it goes to, or its transpose; extents of the tensor's
/// boxes, and where the tile's first one lies.
struct Target {
    tile: String,
    tensor: View,
    sizes: Vec<i64>,
    at: Vec<Vec<Expr>>,
    /// What the Move says of caches.
    cache: Vec<Attr>,
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
    let name = |id: program::ThreadsId| {
        p.threads[id].name.clone().or_else(|| p.threads[p.threads[id].root].name.clone())
    };
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
    let loops = body.iter().filter_map(|stmt| match &stmt.kind {
        program::StmtKind::For { body, unroll: Unroll::Default | Unroll::Never, .. } => {
            Some((&body[..], (!is_once(p, stmt)).then(|| stmt.node.key())))
        }
        _ => None,
    });
    // The tensors that have been given the place of a ring.
    let mut taken: BTreeSet<BufferId> = BTreeSet::new();
    let bodies = std::iter::once((&body[..], None)).chain(loops);
    let all = bodies.flat_map(|(body, outer)| (0..body.len()).map(move |i| (body, i, outer)));
    for (body, i, outer) in all {
        let stmt = &body[i];
        let program::StmtKind::Spec(id) = stmt.kind else { continue };
        let Some(staged) = Staged::of(p, body, (i, id)) else { continue };
        if !whole(id) || !whole(staged.by) {
            continue;
        }
        let Some(to) = p.specs[id].outputs.first() else { continue };
        let layouts = canonical::layouts(p, staged.buffer, &[]);
        let boxes = Boxes::of(p, *to, staged.extents, layouts).map(|b| b.widened().unwrap_or(b));
        let Some(boxes) = boxes.filter(|_| ends_whole(p, *to)) else { continue };
        let free = own.iter().filter(|b| !taken.contains(*b) && last(p, body, **b) < staged.at);
        let ring = free.max_by_key(|b| bytes(p, p.buffers[**b].tensor)).copied();
        // In a loop they are needed again.
        let ring = ring.filter(|_| outer.is_none());
        let ring = ring.filter(|ring| makes_room(p, table, kernel, staged.buffer, *ring));
        taken.extend(ring);
        let reuses = ring.map(|b| p.buffers[b].name.clone());
        let parts = match ring {
            None if is_plain(p, staged.by) && !changes(p, &body[staged.at + 1..i], staged.by) => {
                parts(p, table, kernel, staged.buffer, &boxes)
            }
            _ => 1,
        };
        let all = boxes;
        let Some(boxes) = all.part(parts) else { continue };
        let exec = (blocks.clone(), threads.clone());
        let (tile, writer) = (staged.tile, staged.writer);
        let (spec, to) = (id, p.tensors[*to].buffer);
        let store =
            Store { spec, kernel, to, all, boxes, parts, tile, writer, reuses, outer, exec };
        found.insert(stmt.node.key(), store);
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
        let open = p.buffers[buffer].open && p.buffer_of(t).is_shared();
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
        let in_registers = |t: TensorId| p.buffer_of(t).is_per_thread();
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

/// Whether the copy engine may store to the tensor that a view is of: it writes the last unit of a
/// row whole.
fn ends_whole(p: &Program, view: TensorId) -> bool {
    let buffer = p.buffer_of(view);
    let whole = p.tensors[buffer.tensor].concat();
    let mut rows = whole.leaves().iter().filter(|(_, stride)| *stride == Dim::Const(1));
    rows.all(|(extent, _)| {
        *extent == Dim::Const(1) || tensor_map::ends_whole(&p.arena, *extent, buffer.scalar)
    })
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
    kernel: SpecId,
    tile: BufferId,
    ring: BufferId,
) -> bool {
    let (apart, stated) = taken(p, kernel);
    let bytes = |b: BufferId| bytes(p, p.buffers[b].tensor);
    let together = apart - bytes(tile).min(bytes(ring));
    let blocks = |bytes: i64| ops::resident(p, table, kernel, bytes);
    !stated && blocks(together) > blocks(apart)
}

/// In how many parts a tile is staged.
fn parts(p: &Program, table: &AtomTable, kernel: SpecId, tile: BufferId, boxes: &Boxes) -> i64 {
    let (apart, stated) = taken(p, kernel);
    let tile = bytes(p, p.buffers[tile].tensor);
    let (number, _) = boxes.along();
    let blocks = |n: i64| ops::resident(p, table, kernel, apart - tile + tile / n);
    let most = blocks(number);
    let mut all = (1..=number).filter(|n| number % n == 0);
    if stated { 1 } else { all.find(|n| blocks(*n) == most).unwrap_or(1) }
}

/// Whether an operation moves all of a tensor to all of another.
fn is_plain(p: &Program, id: SpecId) -> bool {
    let spec = &p.specs[id];
    let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
    spec.kind == SpecKind::Move && spec.atom.is_none() && tensors.all(|t| ops::is_whole(p, t))
}

/// Whether statements write what an operation reads.
fn changes(p: &Program, stmts: &[program::Stmt], by: SpecId) -> bool {
    let of = |t: TensorId| p.tensors[t].buffer;
    let reads: Vec<BufferId> = p.specs[by].input_tensors().map(of).collect();
    let writes = |id: SpecId| p.specs[id].outputs.iter().any(|t| reads.contains(&of(*t)));
    p.walk(stmts).specs().any(writes)
}

/// Bytes of all that a kernel has in shared memory, and whether the text says where something lies.
fn taken(p: &Program, kernel: SpecId) -> (i64, bool) {
    let (mut all, mut stated) = (0i64, false);
    for stmt in p.walk_body(kernel).stmts() {
        let program::StmtKind::Allocate(t) = stmt.kind else { continue };
        let buffer = p.buffer_of(t);
        if buffer.is_shared() {
            all = all.saturating_add(bytes(p, t));
            stated |= buffer.at.is_some() || buffer.reuses.is_some();
        }
    }
    (all, stated)
}

struct Write<'a> {
    names: &'a mut Names,
    /// By the Moves.
    stores: HashMap<NodeKey, (Store, Target)>,
    /// Moves, by the allocations of what they read.
    tiles: HashMap<NodeKey, NodeKey>,
    /// Moves, by what writes their tiles.
    writers: HashMap<NodeKey, NodeKey>,
    /// That, by the Moves: it is written beside them.
    written: HashMap<NodeKey, Stmt>,
    /// Who has stores under way when a loop ends.
    loops: HashMap<NodeKey, (String, String)>,
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
        if let Some(of) = self.writers.get(&key)
            && let Some((store, _)) = self.stores.get(of)
        {
            if store.parts == 1 {
                out.append(&mut before(store, &stmt, 0));
                return out.push(stmt);
            }
            self.written.insert(*of, stmt);
            return;
        }
        if let Some(exec) = self.loops.get(&key) {
            let mut last = vec![stay(exec)];
            inherit(&mut last, stmt.id, stmt.span);
            out.push(stmt);
            return out.append(&mut last);
        }
        let Some((store, target)) = self.stores.get(&key) else { return out.push(stmt) };
        let writer = self.written.remove(&key);
        let (map, mut stmts) = (self.names.fresh(&format!("m{}", target.tensor.base.text)), vec![]);
        let mut defined = vec![define(&map, store.boxes.map(target.tensor.clone(), &target.sizes))];
        inherit(&mut defined, stmt.id, stmt.span);
        stmts.append(&mut defined);
        for i in 0..store.parts {
            if let Some(writer) = &writer {
                stmts.append(&mut before(store, writer, i));
                stmts.push(part(writer, store, i));
            }
            let mut own = stored(store, target, &map, i, self.names);
            inherit(&mut own, stmt.id, stmt.span);
            stmts.append(&mut own);
        }
        if let Some(first) = stmts.first_mut() {
            first.blank_above = stmt.blank_above;
            first.leading = std::mem::take(&mut stmt.leading);
        }
        out.append(&mut stmts);
    }
}

/// What stands before what stages a part of a tile.
fn before(store: &Store, writer: &Stmt, i: i64) -> Vec<Stmt> {
    let again = store.outer.is_some() || i > 0;
    let mut out = vec![];
    // Behind another part that thread stays where it is.
    out.extend((again && i == 0).then(|| stay(&store.exec)));
    // Everybody has read the ring, and what was stored before has been read.
    out.extend((again || store.reuses.is_some()).then(|| barrier(None)));
    inherit(&mut out, writer.id, writer.span);
    out
}

/// What stages a part of a tile.
fn part(writer: &Stmt, store: &Store, i: i64) -> Stmt {
    let mut kind = writer.kind.clone();
    if let StmtKind::Spec(Spec { inputs, .. }) = &mut kind
        && let [Operand::View(from)] = &mut inputs[..]
    {
        let (_, row) = store.boxes.along();
        let sizes = store.boxes.extents.map(|n| Some(Expr::int(n))).to_vec();
        let mut at = vec![Some(Expr::int(0)); 2];
        at[row] = Some(Expr::int(i));
        from.ops.extend([ViewOp::Tile(Tiler::Sizes(sizes)), ViewOp::Index(at)]);
    }
    Stmt::derived(kind, writer)
}

/// What sends a part of a tile away.
fn stored(store: &Store, target: &Target, map: &str, i: i64, names: &mut Names) -> Vec<Stmt> {
    let tile = View::of(&target.tile);
    let (boxes, row) = store.boxes.along();
    let mut at = target.at.clone();
    let mode = at.len() - 2 + row;
    at[mode].extend((i > 0).then(|| Expr::int(i * boxes)));
    let mut all = store.boxes.each((map, &at, &tile), None, names, |to, from| {
        let mut copy = Spec::new(SpecKind::Move);
        copy.inputs = vec![Operand::View(from)];
        copy.outputs = vec![to];
        copy.attrs.clone_from(&target.cache);
        Stmt::new(StmtKind::Spec(copy))
    });
    all.push(sync(SyncOp::BulkCommit, None, None));
    if store.outer.is_none() || i + 1 < store.parts {
        // A block keeps its memory until it ends; the next part takes the place of this one.
        all.push(read());
    }
    vec![
        sync(SyncOp::FenceAsync, None, None),
        barrier(None),
        within(&lead(&store.exec), vec![tile], vec![View::of(&target.tensor.base.text)], all),
    ]
}

/// The thread of a block that asks for boxes.
fn lead((blocks, threads): &(String, String)) -> (View, View) {
    let of_warp = ViewOp::Tile(Tiler::Sizes(vec![Some(Expr::int(WARP))]));
    let first = ViewOp::Index(vec![Some(Expr::int(0))]);
    (View::of(blocks), View::of(threads).then(of_warp).then(first).then(ViewOp::Elect))
}

/// Waits until all has been read that this thread has asked to be stored.
fn read() -> Stmt {
    sync(SyncOp::BulkWaitRead, None, Some(Expr::int(0)))
}

/// That thread waits so.
fn stay(exec: &(String, String)) -> Stmt {
    within(&lead(exec), vec![], vec![], vec![read()])
}
