//! Lays out open tensors that no operation of the solver touches ([`lay_out`]). An unused one gets
//! a compact layout, so that the text is complete, and a warning. One that is used, but by neither
//! the whole block nor consecutive whole warps, is an error, because nothing determines its layout.

use super::tv;
use crate::access::ops;
use crate::plan::solution::{Placement, Solution};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId, StmtKind};
use std::collections::{BTreeMap, BTreeSet};

/// Lays out what is still open.
///
/// # Errors
/// [`Code::NotDecomposed`] for a tensor that is used, but not by an operation of the whole block.
pub(crate) fn lay_out(p: &Program, solution: &mut Solution) -> Result<(), Box<Diagnostic>> {
    for &kernel in &p.kernels {
        let content = Content::of(p, kernel);
        for id in content.open {
            if solution.placements.contains_key(&id) {
                continue;
            }
            let buffer = &p.buffers[id];
            if let Some(spec) = content.used.get(&id) {
                let message =
                    format!("the layout of `%{}` is open, and nothing determines it", buffer.name);
                let d = Diagnostic::new(Code::NotDecomposed, p.specs[*spec].span, message)
                    .label(
                        "layouts are found only for operations of a whole block or of whole warps",
                    )
                    .related(buffer.span, "left open here")
                    .help(
                        "write the layout, or let the whole block or consecutive warps access the \
                         tensor",
                    );
                return Err(Box::new(d));
            }
            let Some(layout) = row_major(p, id) else { continue };
            if buffer.is_per_thread() {
                let threads = ops::block_name(p, kernel);
                let Some(tv) = tv::spread_evenly(&layout, ops::block_threads(p, kernel)) else {
                    continue;
                };
                solution.placements.insert(id, Placement::Registers { tv, threads });
            } else {
                let swizzle = buffer.swizzle;
                solution.placements.insert(id, Placement::Shared { layout, swizzle });
            }
            if !content.reused.contains(&id) {
                let message = format!("`%{}` is allocated and never used", buffer.name);
                solution.warnings.push(
                    Diagnostic::warning(Code::Unused, buffer.span, message)
                        .label("its layout is open; it gets a compact one")
                        .help(format!("remove `%{}`, or use it", buffer.name)),
                );
            }
        }
    }
    Ok(())
}

/// What a kernel allocates without a layout, and what accesses it first.
#[derive(Default)]
struct Content {
    open: Vec<BufferId>,
    used: BTreeMap<BufferId, SpecId>,
    /// Whose memory another tensor takes.
    reused: BTreeSet<BufferId>,
}

impl Content {
    fn of(p: &Program, kernel: SpecId) -> Self {
        let mut content = Content::default();
        for stmt in p.walk_body(kernel).stmts() {
            match &stmt.kind {
                StmtKind::Allocate(t) => {
                    let id = p.tensors[*t].buffer;
                    if p.buffers[id].open {
                        content.open.push(id);
                    }
                    content.reused.extend(p.buffers[id].reuses);
                }
                StmtKind::Spec(id) if p.specs[*id].body.is_none() => {
                    let spec = &p.specs[*id];
                    for t in spec.input_tensors().chain(spec.outputs.iter().copied()) {
                        content.used.entry(p.tensors[t].buffer).or_insert(*id);
                    }
                }
                _ => {}
            }
        }
        content
    }
}

/// The last mode consecutive, stages outside.
fn row_major(p: &Program, id: BufferId) -> Option<Layout> {
    let extents = ops::extents(p, p.buffers[id].tensor)?;
    let mut step = 1;
    let mut modes = vec![];
    for n in extents.iter().rev() {
        modes.push(tv::mode(*n, step));
        step *= n;
    }
    modes.reverse();
    Layout::concat(&modes).ok()
}
