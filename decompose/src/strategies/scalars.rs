//! Decides in which scalar types the values of a chain are computed ([`computed`]) and kept
//! ([`scalar_of`]).

use super::graph::Graph;
use carbyne_ir::scalar::Scalar;

/// The type in which a value is computed.
pub(crate) fn computed(graph: &Graph, value: usize) -> Scalar {
    let of = &graph.values[value];
    match of.scalar {
        s if of.source.is_none() && s == Scalar::F64 => wide(graph),
        s if s.is_float() => {
            if s == Scalar::F64 {
                Scalar::F64
            } else {
                wide(graph)
            }
        }
        s => s,
    }
}

/// The type of floats in chains: binary64 where an operand or an output has it.
pub(super) fn wide(graph: &Graph) -> Scalar {
    let operands = graph.values.iter().filter(|v| v.source.is_some()).map(|v| v.scalar);
    match operands.chain(graph.outputs.iter().map(|o| o.scalar)).any(|s| s == Scalar::F64) {
        true => Scalar::F64,
        false => Scalar::F32,
    }
}

/// The type that a value has where it is not computed on: of an operand its own, of a result what a
/// cast says, or what the values before it have.
pub(crate) fn scalar_of(graph: &Graph, value: usize) -> Scalar {
    let mut at = value;
    for _ in 0..=graph.steps.len() {
        if graph.values[at].source.is_some() || !graph.values[at].scalar.is_float() {
            return graph.values[at].scalar;
        }
        let Some(step) = graph.maker(at).map(|s| &graph.steps[s]) else { break };
        if let Some(scalar) = step.scalar {
            return scalar;
        }
        // The largest operand, whose elements are what is computed on.
        let size =
            |v: &usize| graph.values[*v].extents.iter().fold(1i64, |n, e| n.saturating_mul(*e));
        match step.values().filter(|v| graph.values[*v].scalar.is_float()).max_by_key(size) {
            Some(v) => at = v,
            None => break,
        }
    }
    wide(graph)
}
