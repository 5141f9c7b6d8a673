//! Computes how many registers, or bytes of shared memory, the tensors of a kernel take at once
//! ([`most`]).
//!
//! A tensor is live from its first access to its last. In a loop, a tensor that is read before it
//! is written comes from the previous iteration, and a tensor that is also accessed outside of the
//! loop survives it, so that both are live during the whole loop. A tensor that only MatMuls read
//! and only copies from shared memory write counts by half: the compiler orders the instructions of
//! both, and loads a fragment when it is multiplied (the two attention kernels of `examples/` take
//! 221 and 255 registers where all would be 284 and 260). The compiler does not keep tensors
//! between two pointwise operations that follow each other either: it computes both of one element,
//! then of the next. Therefore the tensors that a pointwise operation reads last and those that it
//! writes first share their registers.

use carbyne_ir::ast::SpecKind;
use carbyne_ir::program::walk::Step;
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;

/// The most that is live of a memory at once; `size` is what one tensor takes: of a thread, in
/// registers.
pub(crate) fn most(
    p: &Program,
    kernel: SpecId,
    memory: Memory,
    size: &BTreeMap<BufferId, i64>,
) -> i64 {
    let mut walk = Walk {
        p,
        memory,
        multiplies: p.walk_body(kernel).specs().any(|s| p.specs[s].kind.is_product()),
        at: 0,
        accesses: BTreeMap::new(),
        fragments: BTreeMap::new(),
        computed: BTreeMap::new(),
        pointwise: vec![],
        computes: vec![],
        loops: vec![],
    };
    walk.body(kernel);
    let mut changes: BTreeMap<usize, i64> = BTreeMap::new();
    // Of each pointwise operation what it reads last, and what it writes first.
    let mut places: BTreeMap<usize, (i64, i64)> = BTreeMap::new();
    for (buffer, accesses) in &walk.accesses {
        let Some(&registers) = size.get(buffer) else { continue };
        if memory.is_per_thread() && walk.passes(*buffer, accesses) {
            continue;
        }
        let registers = match walk.fragments.get(buffer) {
            Some(true) if memory.is_per_thread() => (registers + 1) / 2,
            _ => registers,
        };
        let (first, last) = walk.range(accesses);
        *changes.entry(first).or_default() += registers;
        *changes.entry(last + 1).or_default() -= registers;
        let pointwise = |at: usize| memory.is_per_thread() && walk.pointwise.get(at) == Some(&true);
        if first < last && pointwise(last) {
            places.entry(last).or_default().0 += registers;
        }
        if first < last && pointwise(first) {
            places.entry(first).or_default().1 += registers;
        }
    }
    for (at, (read, written)) in places {
        *changes.entry(at).or_default() -= read.min(written);
        *changes.entry(at + 1).or_default() += read.min(written);
    }
    let (mut now, mut most) = (0i64, 0);
    for change in changes.into_values() {
        now = now.saturating_add(change);
        most = most.max(now);
    }
    most
}

struct Walk<'p> {
    p: &'p Program,
    memory: Memory,
    /// Whether there are products, which keep the order in which operations stand.
    multiplies: bool,
    /// Operations so far.
    at: usize,
    /// When each tensor is accessed, and whether all of it is written without being read.
    accesses: BTreeMap<BufferId, Vec<(usize, bool)>>,
    /// Whether MatMuls alone read a tensor, and copies from shared memory alone write it.
    fragments: BTreeMap<BufferId, bool>,
    /// Whether pointwise operations alone write and read a tensor.
    computed: BTreeMap<BufferId, bool>,
    /// Whether each operation is pointwise.
    pointwise: Vec<bool>,
    /// Whether each operation computes; what is copied alone is all loaded before it is stored.
    computes: Vec<bool>,
    /// First and last operation of each, inner ones first.
    loops: Vec<(usize, usize)>,
}

impl Walk<'_> {
    fn body(&mut self, kernel: SpecId) {
        let p = self.p;
        // First operations of the loops around.
        let mut first = vec![];
        for step in p.walk_body(kernel) {
            match step {
                Step::Enter(Stmt { kind: StmtKind::Spec(id), .. })
                    if p.specs[*id].body.is_none() =>
                {
                    self.leaf(*id);
                }
                Step::Enter(Stmt { kind: StmtKind::For { .. }, .. }) => first.push(self.at),
                Step::Leave(Stmt { kind: StmtKind::For { .. }, .. }) => {
                    if let Some(first) = first.pop().filter(|first| self.at > *first) {
                        self.loops.push((first, self.at - 1));
                    }
                }
                _ => {}
            }
        }
    }

    fn leaf(&mut self, id: SpecId) {
        let p = self.p;
        let spec = &p.specs[id];
        let accumulates = matches!(spec.kind, SpecKind::MatMul);
        let n = spec.input_tensors().count();
        let reads = spec.input_tensors().map(|t| (t, false));
        let writes = spec.outputs.iter().map(|t| (*t, !accumulates));
        let from = spec.input_tensors().next().and_then(|t| p.buffer_of(t).memory);
        let loads = spec.kind == SpecKind::Move && from.is_some_and(Memory::is_shared);
        let in_registers = |t: TensorId| p.buffer_of(t).is_per_thread();
        let in_shared = |t: TensorId| p.buffer_of(t).is_shared();
        let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        let computes =
            matches!(spec.kind, SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select);
        let pointwise = match spec.kind {
            _ if computes => true,
            // From registers to registers nothing is copied in the end.
            SpecKind::Move if self.multiplies => tensors.all(in_registers),
            // Loads, what is computed of them and stores go together a vector at a time.
            SpecKind::Move => !tensors.any(in_shared),
            SpecKind::Init => !self.multiplies && tensors.all(in_registers),
            _ => false,
        };
        self.computes.push(computes || self.multiplies);
        self.pointwise.push(pointwise);
        for (i, (t, sets)) in reads.chain(writes).enumerate() {
            let buffer = p.tensors[t].buffer;
            if p.buffers[buffer].memory == Some(self.memory) {
                let streams = if i < n { accumulates } else { loads };
                *self.fragments.entry(buffer).or_insert(true) &= streams;
                *self.computed.entry(buffer).or_insert(true) &= pointwise;
                // A part of a tensor leaves the rest as it is.
                let whole = p.buffers[buffer].tensor == t || {
                    let size = |t| crate::access::ops::whole(p, t).map(|l| l.size());
                    size(t) == size(p.buffers[buffer].tensor)
                };
                self.accesses.entry(buffer).or_default().push((self.at, sets && whole));
            }
        }
        self.at += 1;
    }

    /// Whether each element of a tensor is used as soon as it is computed.
    fn passes(&self, buffer: BufferId, accesses: &[(usize, bool)]) -> bool {
        let (Some((first, true)), Some((last, _))) = (accesses.first(), accesses.last()) else {
            return false;
        };
        let between = self.pointwise.get(*first..=*last).unwrap_or_default();
        let computes = self.computes.get(*first..=*last).unwrap_or_default();
        self.computed.get(&buffer) == Some(&true)
            && between.iter().all(|p| *p)
            && computes.contains(&true)
    }

    fn range(&self, accesses: &[(usize, bool)]) -> (usize, usize) {
        let first = accesses.first().map_or(0, |a| a.0);
        let last = accesses.last().map_or(first, |a| a.0);
        let mut range = (first, last);
        for &(start, end) in &self.loops {
            let mut inside = accesses.iter().filter(|a| (start..=end).contains(&a.0));
            let Some((_, sets)) = inside.next() else { continue };
            let outside = range.0 < start || range.1 > end;
            if outside || !sets {
                range = (range.0.min(start), range.1.max(end));
            }
        }
        range
    }
}
