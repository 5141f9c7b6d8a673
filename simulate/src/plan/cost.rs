//! An upper bound of the steps that a block takes, before it runs.
//!
//! A step is the reading or writing of one element, or eight multiply-adds. Invariant: the bound saturates,
//! and every iteration counts at least one, so no loop outruns it.

use super::{Check, How, Kernel, Leaf, Node, Reference, Source};
use crate::denote::Region;

/// Steps of a block that does nothing.
const START: u64 = 256;

/// Steps of one block. Saturates.
pub(crate) fn block_steps(kernel: &Kernel<'_>, check: bool) -> u64 {
    let registers: usize = kernel.registers.iter().map(|r| r.len).sum();
    let setting_up = START
        + kernel.n_threads as u64
        + (registers * kernel.n_threads) as u64 / 16
        + kernel.shared.size as u64 / 4;
    nodes(kernel, &kernel.body, check).saturating_add(setting_up)
}

fn nodes(kernel: &Kernel<'_>, list: &[Node], check: bool) -> u64 {
    list.iter().fold(0, |sum: u64, node| sum.saturating_add(node_steps(kernel, node, check)))
}

fn node_steps(kernel: &Kernel<'_>, node: &Node, check: bool) -> u64 {
    let warps = kernel.n_warps as u64;
    match node {
        Node::Leaf(i) => leaf(kernel, &kernel.leaves[*i]),
        Node::Body { check: c, body, .. } => {
            let compared = match c {
                Some(i) if check => compare(kernel, &kernel.checks[*i]),
                _ => 0,
            };
            nodes(kernel, body, check).saturating_add(compared).saturating_add(1)
        }
        Node::For { trips, body, .. } => nodes(kernel, body, check)
            .saturating_add(warps)
            .saturating_mul(*trips)
            .saturating_add(1),
        Node::If { then, otherwise, .. } => nodes(kernel, then, check)
            .saturating_add(nodes(kernel, otherwise, check))
            .saturating_add(kernel.n_threads as u64),
        Node::Allocate(buffer) => buffer.map_or(1, |b| {
            (kernel.registers[b].len as u64).saturating_mul(kernel.n_threads as u64)
        }),
        Node::Barrier { .. } => kernel.n_threads as u64,
        Node::Sync(sync) => {
            let n = sync.view.map_or(1, |v| kernel.views[v].size.unsigned_abs());
            n.saturating_mul(kernel.n_threads as u64)
        }
    }
}

fn leaf(kernel: &Kernel<'_>, leaf: &Leaf) -> u64 {
    let crew = &kernel.crews[leaf.crew];
    let (groups, threads) = (crew.n_groups() as u64, (crew.n_groups() * crew.group_size()) as u64);
    let elements = operands(kernel, &leaf.inputs, &leaf.outputs);
    match &leaf.how {
        How::Row(row) => {
            let instances = threads.div_ceil(row.group.max(1) as u64);
            row.work().saturating_mul(instances)
        }
        How::Meaning(m) => (m.multiply_adds() / 8).saturating_add(elements).saturating_mul(groups),
        How::Bulk(_) | How::Shuffle { .. } => elements.saturating_mul(threads),
    }
    .saturating_add(threads)
}

/// Steps of evaluating a check's reference and comparing with it.
pub(super) fn compare(kernel: &Kernel<'_>, check: &Check) -> u64 {
    let Reference { chain, inputs, outputs, .. } = &check.reference;
    let work = outputs
        .iter()
        .enumerate()
        .map(|(i, v)| chain.work(i, &Region::whole(&kernel.views[*v].modes)));
    let one = (work.fold(0, u64::saturating_add) / 8)
        .saturating_add(operands(kernel, inputs, outputs).saturating_mul(2));
    one.saturating_mul(kernel.crews[check.crew].n_groups() as u64)
}

fn operands(kernel: &Kernel<'_>, inputs: &[Source], outputs: &[usize]) -> u64 {
    let input = |s: &Source| match s {
        Source::View(v) => kernel.views[*v].size.unsigned_abs(),
        Source::Number(_) => 0,
    };
    let read = inputs.iter().fold(0u64, |sum, s| sum.saturating_add(input(s)));
    outputs.iter().fold(read, |sum, v| sum.saturating_add(kernel.views[*v].size.unsigned_abs()))
}
