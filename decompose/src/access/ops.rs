//! Collects the operations of a tile-level body: leaf specs that a [`Group`] of threads executes
//! together, which is the whole block or consecutive warps of it ([`collect`]). It also answers
//! questions about a kernel's threads and the trip counts of its loops.

use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::BufferId;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{Program, SpecId, StmtKind, TensorId, Threads, ThreadsId};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Threads of a warp.
pub(crate) const WARP: i64 = 32;

/// Threads of a block that execute operations together: all of them, or consecutive warps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    /// The thread tensor that names them; empty where none does.
    pub name: String,
    /// The first.
    pub first: i64,
    /// How many.
    pub threads: i64,
    /// Whether they are the whole block.
    pub whole: bool,
}

/// A leaf spec of a group, and how often it runs.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    /// Which.
    pub spec: SpecId,
    /// Who executes it.
    pub group: Rc<Group>,
    /// Executions in one block; loops of unknown length count once.
    pub trips: i64,
}

/// Leaf specs of `kernel` that a group of threads executes on logical operands, in text order.
pub(crate) fn collect(p: &Program, kernel: SpecId) -> Vec<Op> {
    let mut ops = vec![];
    let mut groups: Vec<Rc<Group>> = vec![];
    // Of the loops around, from the outside in.
    let mut trips = vec![1i64];
    for step in p.walk_body(kernel) {
        let (Step::Enter(stmt) | Step::Leave(stmt)) = step;
        let entered = matches!(step, Step::Enter(_));
        match &stmt.kind {
            StmtKind::Spec(spec) if entered && p.specs[*spec].body.is_none() => {
                let Some(group) = group_of(p, kernel, *spec) else { continue };
                let known = groups.iter().find(|g| ***g == group).cloned();
                let group = known.unwrap_or_else(|| {
                    groups.push(Rc::new(group.clone()));
                    Rc::new(group)
                });
                ops.push(Op { spec: *spec, group, trips: trips.last().copied().unwrap_or(1) });
            }
            StmtKind::For { start, end, step, .. } if entered => {
                let around = trips.last().copied().unwrap_or(1);
                trips
                    .push(around.saturating_mul(about(p, *start, *end, *step).unwrap_or(1).max(1)));
            }
            StmtKind::For { .. } => drop(trips.pop()),
            _ => {}
        }
    }
    ops
}

/// Threads of a block.
pub(crate) fn block_threads(p: &Program, kernel: SpecId) -> i64 {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[e.threads].concat().to_fixed())
        .map_or(0, |l| l.size())
}

/// The name of the kernel's threads.
pub(crate) fn block_name(p: &Program, kernel: SpecId) -> String {
    p.specs[kernel]
        .exec
        .and_then(|e| p.threads[p.threads[e.threads].root].name.clone())
        .unwrap_or_default()
}

/// Iterations of a loop, if they are known. The step is positive, as the verifier has checked.
pub(crate) fn trips(start: Dim, end: Dim, step: i64) -> Option<i64> {
    let (Dim::Const(s), Dim::Const(e)) = (start, end) else { return None };
    Some(if e > s { (e.saturating_sub(s) - 1) / step + 1 } else { 0 })
}

/// Iterations of a loop at most, if they are about as many whatever its ends are, as those of the
/// blocks of a persistent grid.
pub(crate) fn about(p: &Program, start: Dim, end: Dim, step: i64) -> Option<i64> {
    trips(start, end, step).or_else(|| {
        let ((Some(first), Some(last)), (Some(low), Some(high))) =
            (p.arena.range(start), p.arena.range(end))
        else {
            return None;
        };
        let of = |start, end| trips(Dim::Const(start), Dim::Const(end), step);
        let (least, most) = (of(last, low)?, of(first, high)?);
        (most / 2 <= least).then_some(most)
    })
}

/// Whether a tensor is all of the tensor that it is a view of.
pub(crate) fn is_whole(p: &Program, t: TensorId) -> bool {
    let (own, all) = (&p.tensors[t], &p.tensors[p.buffer_of(t).tensor]);
    own.levels == all.levels && own.offset == all.offset && own.dist == all.dist
}

/// How many blocks of a kernel a multiprocessor holds, of so many bytes of shared memory each. How
/// many registers a thread takes is not known yet.
pub(crate) fn resident(p: &Program, table: &AtomTable, kernel: SpecId, bytes: i64) -> i64 {
    limits(table.arch).resident_blocks(block_threads(p, kernel).max(1), 0, bytes)
}

/// The group that executes a leaf on tensors that belong to all of it; none where other threads do.
/// An atom that it names is that of its instructions.
pub(crate) fn group_of(p: &Program, kernel: SpecId, id: SpecId) -> Option<Group> {
    let spec = &p.specs[id];
    let own = spec.exec?.threads;
    let threads = &p.threads[own];
    if threads.each.is_some() || threads.elect.is_some() || threads.levels.len() != 1 {
        return None;
    }
    if spec.input_tensors().chain(spec.outputs.iter().copied()).any(|t| p.is_private(t)) {
        return None;
    }
    let n = threads.concat().to_fixed()?.size();
    if n == block_threads(p, kernel) {
        let name = block_name(p, kernel);
        return Some(Group { name, first: 0, threads: n, whole: true });
    }
    let first = range(p, own)?.0;
    Some(Group { name: name_of(p, kernel, (first, n)), first, threads: n, whole: false })
}

/// The first of consecutive whole warps in the order of the hardware, and how many threads they
/// are.
pub(crate) fn range(p: &Program, id: ThreadsId) -> Option<(i64, i64)> {
    let t = &p.threads[id];
    let (first, l) = (t.offset.as_const()?, t.concat().to_fixed()?);
    let in_order = l.size() <= MAX_BLOCK_THREADS && (0..l.size()).all(|i| l.at(i) == i);
    let warps = l.size() > 0 && l.size() % WARP == 0 && first % WARP == 0;
    (in_order && warps && t.each.is_none() && t.elect.is_none()).then_some((first, l.size()))
}

/// The first name that a kernel gives to these threads, the outermost; empty where none does.
pub(crate) fn name_of(p: &Program, kernel: SpecId, threads: (i64, i64)) -> String {
    let Some(root) = p.specs[kernel].exec.map(|e| p.threads[e.threads].root) else {
        return String::new();
    };
    let named = |(id, t): (ThreadsId, &Threads)| {
        let own = t.root == root && t.levels.len() == 1 && range(p, id) == Some(threads);
        t.name.clone().filter(|_| own)
    };
    p.threads.iter().find_map(named).unwrap_or_default()
}

/// All modes of an operand as one layout over its column-major index, if its extents are known. A
/// stride that is a symbol stands for the number of [`far`].
pub(crate) fn whole(p: &Program, t: TensorId) -> Option<Layout> {
    constant_strides(p, &p.tensors[t].concat())
}

/// A layout of known extents with the number of [`far`] for each stride that is a symbol.
pub(crate) fn constant_strides(p: &Program, all: &Layout<Dim>) -> Option<Layout> {
    if let Some(fixed) = all.to_fixed() {
        return Some(fixed);
    }
    let shape = all.shape().try_map(&mut |extent: &Dim| extent.as_const().ok_or(())).ok()?;
    let stride = all.stride().try_map(&mut |stride: &Dim| far(p, *stride).ok_or(())).ok()?;
    Layout::with_strides(&shape, &stride).ok()
}

/// A number in place of a stride: the same, or for a symbol one that no extent reaches, so that
/// nothing goes on over it, and that no power of two divides but those that divide the symbol, so
/// that nothing is aligned by it that the symbol does not align.
fn far(p: &Program, stride: Dim) -> Option<i64> {
    /// Odd, and beyond what a block touches at once.
    const ODD: i64 = (1 << 31) + 1;
    match stride.as_const() {
        Some(n) => Some(n),
        None => p.arena.divisor(stride).max(1).checked_mul(ODD),
    }
}

/// Constant extents of the operand's modes.
pub(crate) fn extents(p: &Program, t: TensorId) -> Option<Vec<i64>> {
    let extent = |mode: &Layout<Dim>| {
        mode.leaves().iter().try_fold(1i64, |n, (extent, _)| n.checked_mul(extent.as_const()?))
    };
    p.tensors[t].levels.iter().flat_map(Layout::modes).map(|mode| extent(&mode)).collect()
}

/// Thread-value layouts of register tensors.
pub(crate) type Known = BTreeMap<BufferId, Layout>;
