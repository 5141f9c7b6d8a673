//! Warns about copies that the threads of a block do not share evenly, so that some threads repeat
//! the work of others, or idle ([`warnings`]).
//!
//! The text states the number of threads. A layout gives every thread the same number of elements,
//! so threads beyond the largest number that divides the tensor's vectors have no elements of their
//! own.

use super::copy::Candidate;
use super::state::Finished;
use crate::access::ops;
use crate::access::ops::Op;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{Program, SpecId};

/// How much more than its part a thread does, for a warning.
const FACTOR: i64 = 2;
/// Elements of one thread that are worth one.
const FEW: i64 = 8;

/// Warns of copies that spread a tensor over few of the threads.
pub(super) fn warnings(p: &Program, ops: &[Op], found: &Finished) -> Vec<Diagnostic> {
    let warps = found.solution.has_matmul();
    let all = &found.solution.assignments;
    let copies = all.iter().filter_map(|(id, a)| Some((id, a.how.copy()?)));
    let own = copies.filter(|(id, c)| {
        // Others follow from what is spread already, by a MatMul or a copy of which this is said.
        found.anchors.contains(id) || (!c.src_rf && !c.dst_rf && c.group == 1)
    });
    let threads = |id| ops.iter().find(|op| op.spec == id).map(|op| op.group.threads);
    own.filter_map(|(id, c)| warning(p, *id, c, threads(*id)?, warps)).collect()
}

fn warning(
    p: &Program,
    id: SpecId,
    c: &Candidate,
    threads: i64,
    warps: bool,
) -> Option<Diagnostic> {
    let spec = &p.specs[id];
    let (src, dst) = (spec.input_tensors().next()?, *spec.outputs.first()?);
    let (t, tv) = if c.src_rf { (src, &c.f) } else { (dst, &c.g) };
    let elements = ops::whole(p, t)?.size();
    // Threads that hold the same have stride 0.
    let different: i64 =
        tv.mode(0).ok()?.leaves().iter().filter(|(_, s)| *s != 0).map(|(n, _)| n).product();
    let each = elements / different.max(1);
    let even = c.n.max(1) * ((elements / c.n.max(1) + threads - 1) / threads.max(1));
    if each < FACTOR * even.max(1) || each < FEW {
        return None;
    }
    let what = match (c.src_rf, c.dst_rf) {
        (false, false) => format!("{different} threads move {each} elements each; the others idle"),
        _ => format!(
            "{different} threads hold {each} different elements each; the others hold copies of \
             them"
        ),
    };
    let near = near(threads, elements, p.scalar_of(t).bits(), warps);
    let help = match near.as_slice() {
        [] => "pad the tensor, so that the number of threads divides its elements".to_owned(),
        near => format!("use {} threads, which share it evenly", or(near)),
    };
    let message = format!(
        "{threads} threads do not share the {elements} elements of this {} evenly",
        spec.kind
    );
    Some(Diagnostic::warning(Code::Uneven, spec.span, message).label(what).help(help))
}

/// Numbers of threads near `threads`, other than it, that share so many elements evenly, by
/// accesses as wide as may be; of whole `warps` where these are needed. The next smaller one and
/// the next larger.
pub(super) fn near(threads: i64, elements: i64, bits: i64, warps: bool) -> Vec<i64> {
    let wide = |n: &i64| elements % n == 0 && n.saturating_mul(bits) <= 128;
    let n = (0..8).map(|i| 1 << i).filter(wide).max().unwrap_or(1);
    let unit = if warps { 32 } else { 1 };
    let fits = |t: &i64| elements / n % t == 0 && t % unit == 0;
    // Much fewer threads are no help.
    let below = (threads / 4..threads).rev().filter(|t| *t > 1).find(fits);
    let above = (threads + 1..=MAX_BLOCK_THREADS.min(4 * threads)).find(fits);
    below.into_iter().chain(above).collect()
}

/// `75 or 165`
pub(super) fn or(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(" or ")
}
