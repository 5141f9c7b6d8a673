//! Lets shared tensors that are used one after the other take one place, if a multiprocessor then
//! holds more blocks ([`apply`]).
//!
//! A tensor lives from the first statement of the kernel's body that touches it to the last. Only
//! outermost statements count: inside of a loop another place costs a barrier in every iteration,
//! this way one in a block. A place that a user stated (`reuses=`, `at=`) stays.

use crate::access::ops;
use crate::order::tree::synchronizes;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::visit::{Rewriter, rewrite};
use carbyne_ir::ast::{Module, Name, NodeKey, Stmt, StmtKind, TypeAttr};
use carbyne_ir::program::{self, BufferId, Program, SpecId};
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;

/// A shared tensor.
struct Life {
    buffer: BufferId,
    node: NodeKey,
    bytes: i64,
    /// The first and the last of the outermost statements that touch it.
    first: usize,
    last: usize,
}

/// The module with `reuses=` where it makes room; none where it does not. `p` is what the module
/// resolves to.
pub(crate) fn apply(module: &Module, p: &Program, table: &AtomTable) -> Option<Module> {
    let mut found = BTreeMap::new();
    for kernel in &p.kernels {
        found.extend(of_kernel(p, *kernel, table).unwrap_or_default());
    }
    if found.is_empty() {
        return None;
    }
    let mut module = module.clone();
    module.items = rewrite(module.items, &mut Write(found));
    Some(module)
}

struct Write(BTreeMap<NodeKey, String>);

impl Rewriter for Write {
    fn leave(&mut self, mut stmt: Stmt, out: &mut Vec<Stmt>) {
        let other = self.0.get(&stmt.id.key());
        if let (StmtKind::Allocate { ty, .. }, Some(other)) = (&mut stmt.kind, other) {
            ty.attrs.push(TypeAttr::Reuses(Name::new(other)));
        }
        out.push(stmt);
    }
}

/// Allocations, each with the tensor whose place it takes.
fn of_kernel(p: &Program, kernel: SpecId, table: &AtomTable) -> Option<BTreeMap<NodeKey, String>> {
    let lives = lives(p, kernel)?;
    // Tensors of one place, the first one first.
    let mut places: Vec<Vec<&Life>> = vec![];
    for life in &lives {
        let free = |place: &&mut Vec<&Life>| place.iter().all(|l| l.last < life.first);
        let place = places.iter_mut().filter(free);
        match place.max_by_key(|place| place.first().map_or(0, |l| l.bytes)) {
            Some(place) => place.push(life),
            None => places.push(vec![life]),
        }
    }
    let sum = |bytes: &mut dyn Iterator<Item = i64>| bytes.fold(0, i64::saturating_add);
    let apart = sum(&mut lives.iter().map(|l| l.bytes));
    let most = |place: &Vec<&Life>| place.iter().map(|l| l.bytes).max().unwrap_or(0);
    let together = sum(&mut places.iter().map(most));
    let blocks = |bytes: i64| ops::resident(p, table, kernel, bytes);
    if blocks(together) <= blocks(apart) {
        return None;
    }
    let mut out = BTreeMap::new();
    for place in &places {
        let (Some(first), rest) = (place.first(), place.iter().skip(1)) else { continue };
        let name = &p.buffers[first.buffer].name;
        rest.for_each(|l| drop(out.insert(l.node, name.clone())));
    }
    Some(out)
}

/// The shared tensors of the outermost statements, in text order; none where some place is stated.
fn lives(p: &Program, kernel: SpecId) -> Option<Vec<Life>> {
    let body = p.specs[kernel].body.as_ref()?;
    let mut out: Vec<Life> = vec![];
    for (i, stmt) in body.iter().enumerate() {
        for inner in p.walk(std::slice::from_ref(stmt)).stmts() {
            let mut touched = vec![];
            match &inner.kind {
                program::StmtKind::Allocate(t) => {
                    let buffer = p.tensors[*t].buffer;
                    let b = &p.buffers[buffer];
                    if !b.is_shared() {
                        continue;
                    }
                    if b.reuses.is_some() || b.at.is_some() || b.scalar == Scalar::Mbarrier {
                        return None;
                    }
                    if inner.node.same(stmt.node) {
                        let elements = ops::whole(p, *t)?.size();
                        let bytes = elements.checked_mul(b.scalar.bits())? / 8;
                        let node = stmt.node.key();
                        out.push(Life { buffer, node, bytes, first: usize::MAX, last: 0 });
                    }
                }
                program::StmtKind::Spec(id) => {
                    let spec = &p.specs[*id];
                    touched.extend(spec.input_tensors().chain(spec.outputs.iter().copied()));
                }
                // What threads do by themselves may order what nobody sees here.
                _ if synchronizes(inner) => return None,
                _ => {}
            }
            for t in touched {
                if let Some(life) = out.iter_mut().find(|l| l.buffer == p.tensors[t].buffer) {
                    life.first = life.first.min(i);
                    life.last = life.last.max(i);
                }
            }
        }
    }
    out.retain(|l| l.first != usize::MAX);
    Some(out)
}
