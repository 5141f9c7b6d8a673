//! Determines the threads that hold a register tensor with an open layout, one that is left to the
//! solver. These are the threads of the body that declares the tensor; or, if one group of them
//! executes all uses, that group.

use crate::layout::Layout;
use crate::program::{BufferId, Program, SpecId, TensorId, ThreadsId};
use std::collections::BTreeMap;

/// Assigns open register tensors to the one group of threads that uses them.
pub(super) fn narrow(p: &mut Program) {
    // `None` if two different groups, or single threads, use the tensor.
    let mut users: BTreeMap<BufferId, Option<ThreadsId>> = BTreeMap::new();
    for (id, spec) in p.specs.iter().filter(|(_, s)| s.body.is_none()) {
        let of = group(p, id);
        for t in spec.input_tensors().chain(spec.outputs.iter().copied()) {
            let buffer = p.tensors[t].buffer;
            let open = p.buffers[buffer].open && p.buffers[buffer].is_per_thread();
            if !open {
                continue;
            }
            let known = users.entry(buffer).or_insert(of);
            *known = known.zip(of).filter(|(a, b)| same(p, *a, *b)).map(|(a, _)| a);
        }
    }
    let ids: Vec<TensorId> = p.tensors.iter().map(|(id, _)| id).collect();
    for id in ids {
        let Some(Some(threads)) = users.get(&p.tensors[id].buffer) else { continue };
        if let Some(dist) = p.tensors[id].dist.as_mut().filter(|d| d.tv.is_none()) {
            dist.threads = Some(*threads);
        }
    }
}

/// The threads that execute a leaf as one group, if they are a known part of the block.
fn group(p: &Program, id: SpecId) -> Option<ThreadsId> {
    let threads = p.specs[id].exec?.threads;
    let t = &p.threads[threads];
    let own = fixed(p, threads)?;
    let all = fixed(p, t.root)?;
    let one = t.each.is_none() && t.elect.is_none() && t.levels.len() == 1;
    (one && own.1.size() != all.1.size()).then_some(threads)
}

fn fixed(p: &Program, id: ThreadsId) -> Option<(i64, Layout)> {
    let t = &p.threads[id];
    Some((t.offset.as_const()?, t.concat().to_fixed()?))
}

fn same(p: &Program, a: ThreadsId, b: ThreadsId) -> bool {
    fixed(p, a) == fixed(p, b)
}
