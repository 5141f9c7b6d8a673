//! Who holds a register tensor whose layout is open: the threads of the body that declares it, or,
//! where all that uses it is executed by one part of these, that part.

use crate::layout::Layout;
use crate::program::{BufferId, Program, SpecId, TensorId, ThreadsId};
use std::collections::BTreeMap;

/// Gives open register tensors to the group of threads that alone uses them.
pub(super) fn narrow(p: &mut Program) {
    // None once two groups, or threads by themselves, use a tensor.
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

/// The threads that execute a leaf as one group, where they are a part of the block and known.
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
