//! Bounds the deviation of a kernel's results from the results without rounding, from the types of
//! its tensors and the number of its operations alone. Results of a device may differ from the
//! meaning of a kernel by this bound ([`crate::device`]).
//!
//! Every operation on the way to a result rounds to the type of a tensor or of an accumulator. Let
//! u be the largest unit roundoff of the types of the kernel's computed floats, v the largest of
//! its sums, and n the number of operations that may follow each other on one element: executions
//! of leaves in loops that return to that element, for sums the number of added terms. To first
//! order the result differs by at most (4·u + 2·v·n + e) of its scale ([`crate::denote::Exact`]). e
//! is the sum of the errors that approximate instructions state. The factor 4 is for roundings to
//! the coarsest type: of factors, of probabilities, and of the result; all other roundings are to
//! the type of sums. The factor 2 is because tensor cores may truncate addends instead of rounding
//! them.

use super::{BoundOp, How, Kernel, LeafSpec, Node, Source, Space};
use crate::denote::Meaning;
use crate::num::unit_roundoff;
use carbyne_atoms::ErrorBound;

/// The counts of a kernel.
#[derive(Default)]
struct Count {
    coarsest: f64,
    of_sums: f64,
    /// The number of operations on one element.
    steps: f64,
    /// The error of approximations, relative to the scale.
    stated: f64,
}

/// The largest deviation, relative to the scale. `stated` are the errors of the used atoms.
pub(super) fn largest_part(kernel: &Kernel<'_>, stated: &[ErrorBound]) -> f64 {
    let mut count = Count::default();
    nodes(kernel, &kernel.body, &mut Vec::new(), &mut count);
    for bound in stated {
        let other = bound.relative + bound.slope + bound.absolute + bound.per_product;
        count.stated += bound.of_results().unwrap_or(other);
    }
    let sums = if count.of_sums > 0.0 { count.of_sums } else { unit_roundoff_of_f32() };
    4.0 * count.coarsest + 2.0 * sums * count.steps + count.stated
}

fn unit_roundoff_of_f32() -> f64 {
    unit_roundoff(carbyne_ir::scalar::Scalar::F32)
}

/// Counts a list of statements. `loops` are the enclosing loops: slot and trips.
fn nodes(kernel: &Kernel<'_>, list: &[Node], loops: &mut Vec<(usize, u64)>, count: &mut Count) {
    for node in list {
        match node {
            Node::Leaf(i) => leaf(kernel, &kernel.leaves[*i], loops, count),
            Node::Body { body, .. } => nodes(kernel, body, loops, count),
            Node::For { slot, trips, body, .. } => {
                loops.push((*slot, *trips));
                nodes(kernel, body, loops, count);
                loops.pop();
            }
            Node::If { then, otherwise, .. } => {
                nodes(kernel, then, loops, count);
                nodes(kernel, otherwise, loops, count);
            }
            Node::Allocate(_)
            | Node::Element { .. }
            | Node::Step { .. }
            | Node::Barrier { .. }
            | Node::Sync(_) => {}
        }
    }
}

fn leaf(kernel: &Kernel<'_>, leaf: &LeafSpec, loops: &[(usize, u64)], count: &mut Count) {
    // The number of terms that one execution adds to an element; statements that only move are
    // skipped.
    let terms = match &leaf.how {
        How::Atom(atom) => match atom.op {
            BoundOp::Move | BoundOp::Select | BoundOp::Init(_) | BoundOp::Shuffle { .. } => return,
            BoundOp::MatMul { extents, .. } => Some(extents[3] as f64),
            BoundOp::Reduction(..) => Some(atom.reads.first().map_or(1, |r| r.reads.len()) as f64),
            BoundOp::Accumulate(_) => Some(kernel.n_blocks as f64),
            BoundOp::Unary(..) | BoundOp::Binary(..) | BoundOp::Tf32Away => None,
        },
        How::Meaning(meaning) => match meaning {
            Meaning::Accumulate(..) => Some(kernel.n_blocks as f64),
            meaning if meaning.copies() => return,
            meaning => meaning.terms().map(|n| n as f64),
        },
        How::Bulk(copy) if copy.adds.is_some() => Some(kernel.n_blocks as f64),
        How::Bulk(_) | How::Shuffle { .. } => return,
    };
    for output in &leaf.outputs {
        let view = &kernel.views[*output];
        if !view.scalar.is_float() {
            continue;
        }
        let u = unit_roundoff(view.scalar);
        count.coarsest = count.coarsest.max(u);
        if terms.is_some() {
            count.of_sums = count.of_sums.max(u);
        }
        // Loop iterations that select other registers concern other elements.
        let again = |(slot, _): &&(usize, u64)| {
            !(matches!(view.space, Space::Registers(_)) && view.offset.mentions(*slot))
        };
        let turns: f64 = loops.iter().filter(again).map(|(_, trips)| *trips as f64).product();
        count.steps += turns * terms.unwrap_or(1.0);
    }
    let literal = leaf.inputs.iter().any(|s| matches!(s, Source::Number(_)));
    count.steps += f64::from(literal);
}
