//! Refuses kernels that write elements which other blocks may still read, and kernels whose outputs
//! share elements ([`check`]). A kernel may update a tensor in place if that is its only output and
//! each element is read and written at one coordinate, so by one block. Blocks run in any order.

use crate::access::ops;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Means, MeansInput, MeansOp, MeansStep, Program, SpecId, TensorId};
use num_integer::gcd;

/// Elements that are compared one by one.
const MOST: i64 = 1 << 22;

/// Refuses an output that shares elements with an input, unless it is the only output, and each
/// element is read and written at one coordinate: by one block, then.
pub(crate) fn check(p: &Program, id: SpecId) -> Result<(), Box<Diagnostic>> {
    let spec = &p.specs[id];
    let adds = matches!(spec.kind, SpecKind::Accumulate(_));
    let elementwise =
        adds || spec.kind.is_elementwise() || spec.means.as_ref().is_some_and(is_pointwise);
    // A `means` block may read old values of outputs that the inputs do not name. An Iota reads
    // extents alone.
    let old = spec.means.iter().flat_map(|means| {
        let reads =
            |step: &&MeansStep| !matches!(step.op, MeansOp::Spec { kind: SpecKind::Iota, .. });
        let steps = means.steps.iter().filter(reads).flat_map(|step| &step.inputs);
        steps.filter_map(|input| match input {
            MeansInput::Value(v) => means.values.get(*v)?.operand,
            MeansInput::Number(_) | MeansInput::Size(_) => None,
        })
    });
    let read: Vec<TensorId> = spec.input_tensors().chain(old).collect();
    apart(p, id)?;
    for &to in &spec.outputs {
        let own = p.tensors[to].buffer;
        let same = read.iter().copied().filter(|t| p.tensors[*t].buffer == own);
        for from in same {
            let is_at_one = elementwise && coincide(p, from, to);
            let is_alone = spec.outputs.len() == 1;
            if (is_at_one && is_alone) || !meet(p, from, to) {
                continue;
            }
            let name = &p.buffers[own].name;
            if is_at_one {
                let message =
                    format!("`%{name}` is updated in place by a kernel with another result");
                return Err(Box::new(
                    Diagnostic::new(Code::NoStrategy, spec.span, message)
                        .label(
                            "the other result may need the old value after the new one is stored",
                        )
                        .help(format!(
                            "write a kernel for each result, with that of `%{name}` last"
                        )),
                ));
            }
            let message = format!("`%{name}` is read and written by one kernel");
            return Err(Box::new(
                Diagnostic::new(Code::NoStrategy, spec.span, message)
                    .label("a block would overwrite what other blocks still read")
                    .help(format!(
                        "write to another tensor; if the result must be in `%{name}`, move it \
                         there with a second kernel"
                    )),
            ));
        }
    }
    Ok(())
}

/// Refuses two outputs that share elements: which of both values is left would not be said.
fn apart(p: &Program, id: SpecId) -> Result<(), Box<Diagnostic>> {
    let spec = &p.specs[id];
    for (i, &a) in spec.outputs.iter().enumerate() {
        let other = |b: &&TensorId| p.tensors[**b].buffer == p.tensors[a].buffer && meet(p, a, **b);
        if spec.outputs[..i].iter().any(|b| other(&b)) {
            let name = &p.buffer_of(a).name;
            let message = format!("two outputs of one kernel are elements of `%{name}`");
            return Err(Box::new(
                Diagnostic::new(Code::NoStrategy, spec.span, message)
                    .label("it is not defined which of the two values remains")
                    .help(
                        "let only one output write each element, or write the second output in a \
                         later kernel",
                    ),
            ));
        }
    }
    Ok(())
}

/// Whether every coordinate is the same element of both.
fn coincide(p: &Program, a: TensorId, b: TensorId) -> bool {
    let modes = |t| -> Option<Vec<Layout>> {
        Some(ops::whole(p, t)?.modes().iter().map(Layout::coalesce).collect())
    };
    p.tensors[a].offset == p.tensors[b].offset
        && modes(a).is_some_and(|own| modes(b).is_some_and(|other| own == other))
}

/// Whether both have an element, as far as that is known.
fn meet(p: &Program, a: TensorId, b: TensorId) -> bool {
    let of = |t: TensorId| Some((p.tensors[t].offset.as_const()?, ops::whole(p, t)?));
    let (Some((first, a)), Some((second, b))) = (of(a), of(b)) else { return true };
    let (end_a, end_b) = (first.saturating_add(a.cosize()), second.saturating_add(b.cosize()));
    if end_a <= second || end_b <= first {
        return false;
    }
    // Both only have elements of one remainder each.
    let steps = a.leaves().iter().chain(b.leaves()).filter(|(n, _)| *n > 1);
    let step = steps.fold(0, |g, (_, s)| gcd(g, s.abs()));
    if step > 1 && (first - second) % step != 0 {
        return false;
    }
    let range = end_a.max(end_b) - first.min(second);
    if a.size() > MOST || b.size() > MOST || range > 16 * MOST {
        return true;
    }
    let start = first.min(second);
    let mut elements = vec![false; range as usize];
    let at = |offset: i64, l: &Layout, i: i64| usize::try_from(offset + l.at(i) - start).ok();
    for i in (0..a.size()).filter_map(|i| at(first, &a, i)) {
        if let Some(e) = elements.get_mut(i) {
            *e = true;
        }
    }
    let mut others = (0..b.size()).filter_map(|i| at(second, &b, i));
    others.any(|i| elements.get(i).copied().unwrap_or(true))
}

/// Whether each element needs only those at its own coordinate.
fn is_pointwise(means: &Means) -> bool {
    means.steps.iter().all(|step| match &step.op {
        MeansOp::Spec { kind, .. } => kind.is_elementwise(),
        MeansOp::Gather { .. } | MeansOp::View { .. } | MeansOp::Pad { .. } => false,
    })
}
