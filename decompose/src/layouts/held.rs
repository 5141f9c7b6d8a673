//! Finds the threads that hold each register tensor ([`by()`]): those of the operations that use
//! it. An error results if different threads use one tensor.

use crate::access::ops;
use crate::access::ops::{Group, Op};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, Program, SpecId};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

/// The holders of register tensors.
pub(super) type Held = BTreeMap<BufferId, Rc<Group>>;

/// The holders of all register tensors that the operations use.
///
/// # Errors
/// Threads that no name stands for; a tensor that several groups use, or that other threads hold
/// than use it.
pub(super) fn by(p: &Program, ops: &[Op]) -> Result<Held, Box<Diagnostic>> {
    let mut out: BTreeMap<BufferId, (Rc<Group>, SpecId)> = BTreeMap::new();
    for op in ops {
        let spec = &p.specs[op.spec];
        if op.group.name.is_empty() {
            let message = "the threads of this spec have no name".to_owned();
            let (first, last) = (op.group.first, op.group.first + op.group.threads);
            return Err(Box::new(
                Diagnostic::new(Code::NotDecomposed, spec.span, message)
                    .label("a layout must name the threads over which a tensor is spread")
                    .help(format!(
                        "name them in the body of the kernel: `#w = #cta[{first}..{last}]`"
                    )),
            ));
        }
        for t in spec.input_tensors().chain(spec.outputs.iter().copied()) {
            let Some(dist) = &p.tensors[t].dist else { continue };
            let buffer = p.tensors[t].buffer;
            let name = &p.buffers[buffer].name;
            let stated = dist.tv.is_some().then_some(dist.threads).flatten();
            if let Some(threads) = stated.filter(|_| !op.group.whole)
                && ops::range(p, threads) != Some((op.group.first, op.group.threads))
            {
                let message = format!(
                    "`%{name}` is held by other threads than those that execute this {}",
                    spec.kind
                );
                return Err(Box::new(
                    Diagnostic::new(Code::NotDecomposed, spec.span, message)
                        .label(format!("#{} executes it", op.group.name))
                        .related(p.buffers[buffer].span, "its layout states which threads hold it")
                        .help(format!(
                            "spread it over #{}, or leave its layout open",
                            op.group.name
                        )),
                ));
            }
            match out.entry(buffer) {
                Entry::Vacant(e) => drop(e.insert((Rc::clone(&op.group), op.spec))),
                Entry::Occupied(e) => {
                    let (other, first) = e.get();
                    if *other == op.group {
                        continue;
                    }
                    let message = format!(
                        "#{} holds `%{name}` in registers, and #{} uses it here",
                        other.name, op.group.name
                    );
                    return Err(Box::new(
                        Diagnostic::new(Code::NotDecomposed, spec.span, message)
                            .label("threads can access only their own registers")
                            .related(p.specs[*first].span, format!("#{} uses it here", other.name))
                            .help(
                                "let the same threads execute both, or give the others a copy \
                                 through a tensor in SH",
                            ),
                    ));
                }
            }
        }
    }
    Ok(out.into_iter().map(|(buffer, (group, _))| (buffer, group)).collect())
}
