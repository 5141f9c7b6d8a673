//! Splits a body into parts that share no open tensor ([`split`]), and combines the best choices of
//! all parts ([`together`]). A choice for one part leaves the others as they are, so each is
//! searched alone and its choices do not multiply.

use super::state::{Detours, Finished};
use crate::access::ops::Op;
use crate::cost::Estimate;
use carbyne_ir::program::{BufferId, Program};
use std::collections::BTreeMap;

/// The operations, those that are connected through open tensors together; parts and operations in
/// text order. What has no open tensor leaves nothing to choose and belongs to the first part.
pub(super) fn split(p: &Program, ops: &[Op]) -> Vec<Vec<Op>> {
    let mut of: Vec<usize> = (0..ops.len()).collect();
    let mut first: BTreeMap<BufferId, usize> = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        let spec = &p.specs[op.spec];
        let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        let open = tensors.map(|t| p.tensors[t].buffer).filter(|b| p.buffers[*b].open);
        let mut closed = true;
        for buffer in open {
            closed = false;
            let other = *first.entry(buffer).or_insert(i);
            join(&mut of, i, other);
        }
        if closed {
            join(&mut of, i, 0);
        }
    }
    let mut parts: BTreeMap<usize, Vec<Op>> = BTreeMap::new();
    for (i, op) in ops.iter().enumerate() {
        parts.entry(root(&mut of, i)).or_default().push(op.clone());
    }
    parts.into_values().collect()
}

/// The first operation of a part.
fn root(of: &mut [usize], mut i: usize) -> usize {
    while of[i] != i {
        of[i] = of[of[i]];
        i = of[i];
    }
    i
}

fn join(of: &mut [usize], a: usize, b: usize) {
    let (a, b) = (root(of, a), root(of, b));
    of[a.max(b)] = a.min(b);
}

/// The best choices for all parts together, best first: the best of each, and those in which one
/// part has another of its own.
pub(super) fn together(
    found: &[Vec<Finished>],
    (top, by): (usize, Detours),
    estimate: impl Fn(&Finished) -> Estimate,
) -> Vec<Finished> {
    if let [only] = found {
        return only.clone();
    }
    let merged = |part: usize, choice: usize| {
        let mut all = Finished::default();
        for (i, list) in found.iter().enumerate() {
            let own = list.get(if i == part { choice } else { 0 });
            own.iter().for_each(|f| all.merge((*f).clone()));
        }
        all.solution.estimate = estimate(&all);
        all
    };
    let mut out = vec![merged(0, 0)];
    for (part, list) in found.iter().enumerate() {
        out.extend((1..list.len()).map(|choice| merged(part, choice)));
    }
    // The best of each part stay together.
    let order = |a: &Finished, b: &Finished| a.rank(by).partial_cmp(&b.rank(by));
    out[1..].sort_by(|a, b| order(a, b).unwrap_or(std::cmp::Ordering::Equal));
    out.truncate(top.max(1));
    out
}
