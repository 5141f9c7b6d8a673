//! Computes the ranges of the integers in a `means` block. They prove that such integers are valid
//! coordinates where a step indexes a tensor by them.

use super::{Means, MeansInput, MeansOp, MeansStep, Program};
use crate::ast::{BinaryOp, ReduceOp, SpecKind};
use crate::expr::Dim;

/// The lower bound and the exclusive upper bound of integers; `None` if unknown.
type Range = (Option<Dim>, Option<Dim>);

const UNKNOWN: Range = (None, None);

impl Program {
    /// The range of the integers of a value of a `means` block.
    pub fn range_of(&self, means: &Means, value: usize) -> Range {
        let mut known: Vec<Range> = means
            .values
            .iter()
            .map(|v| v.operand.and_then(|t| self.buffer_of(t).range))
            .map(|range| range.map_or(UNKNOWN, |(lo, hi)| (Some(lo), Some(hi))))
            .collect();
        for step in &means.steps {
            let range = self.range_of_step(means, step, &known);
            if let Some(of) = known.get_mut(step.output) {
                *of = range;
            }
        }
        known.get(value).copied().unwrap_or(UNKNOWN)
    }

    fn range_of_step(&self, means: &Means, step: &MeansStep, known: &[Range]) -> Range {
        let cx = &self.arena;
        let up = |n: Dim| cx.add(n, Dim::Const(1)).ok();
        let exactly = |v: f64| match v.fract() == 0.0 && v.abs() < 1e15 {
            true => (Some(Dim::Const(v as i64)), up(Dim::Const(v as i64))),
            false => UNKNOWN,
        };
        let of = |i: usize| match step.inputs.get(i) {
            Some(MeansInput::Value(v)) => known.get(*v).copied().unwrap_or(UNKNOWN),
            Some(MeansInput::Number(v)) => exactly(*v),
            Some(MeansInput::Size(n)) => (Some(*n), up(*n)),
            None => UNKNOWN,
        };
        let least = |a: Dim, b: Dim| cx.min(a, b).ok();
        let most = |a: Dim, b: Dim| cx.max(a, b).ok();
        // `both` needs both bounds; `any` also accepts a single known one.
        let both = |a: Option<Dim>, b: Option<Dim>, f: &dyn Fn(Dim, Dim) -> Option<Dim>| {
            a.zip(b).and_then(|(a, b)| f(a, b))
        };
        let any = |a: Option<Dim>, b: Option<Dim>, f: &dyn Fn(Dim, Dim) -> Option<Dim>| {
            both(a, b, f).or(a).or(b)
        };
        let kind = match step.op {
            MeansOp::View { .. } | MeansOp::Gather { .. } => return of(0),
            MeansOp::Pad { value, .. } => {
                let (own, around) = (of(0), exactly(value));
                return (both(own.0, around.0, &least), both(own.1, around.1, &most));
            }
            MeansOp::Spec { kind, .. } => kind,
        };
        match kind {
            SpecKind::Move => of(0),
            SpecKind::Unary(crate::ast::UnaryOp::Cast) => {
                let scalar = means.values.get(step.output).map(|v| v.scalar);
                let from = match step.inputs.first() {
                    Some(MeansInput::Value(v)) => means.values.get(*v).map(|v| v.scalar),
                    _ => None,
                };
                let integer = |s: Option<crate::scalar::Scalar>| {
                    s.is_some_and(|s| s.int_range().is_some() && s.bits() >= 32)
                };
                let truth = from == Some(crate::scalar::Scalar::Bool);
                match (truth, integer(scalar) && integer(from)) {
                    (true, _) => (Some(Dim::Const(0)), Some(Dim::Const(2))),
                    (_, true) => of(0),
                    _ => UNKNOWN,
                }
            }
            SpecKind::Iota => {
                let counted = means.values.get(step.output).map(|v| v.extents.as_slice());
                let MeansOp::Spec { axes, .. } = &step.op else { return UNKNOWN };
                let n = axes.first().and_then(|axis| counted?.get(*axis)).copied();
                (Some(Dim::Const(0)), n)
            }
            SpecKind::Init => of(0),
            SpecKind::Select => {
                let (a, b) = (of(1), of(2));
                (both(a.0, b.0, &least), both(a.1, b.1, &most))
            }
            SpecKind::Binary(BinaryOp::Min) => {
                let (a, b) = (of(0), of(1));
                (both(a.0, b.0, &least), any(a.1, b.1, &least))
            }
            SpecKind::Binary(BinaryOp::Max) => {
                let (a, b) = (of(0), of(1));
                (any(a.0, b.0, &most), both(a.1, b.1, &most))
            }
            // If all elements are at least zero, so is their sum, provided that it does not
            // overflow.
            SpecKind::Reduction(ReduceOp::Sum) => {
                let (lo, hi) = of(0);
                let from_zero = lo.is_some_and(|lo| cx.range(lo).0.is_some_and(|lo| lo >= 0));
                let MeansOp::Spec { axes, .. } = &step.op else { return UNKNOWN };
                let Some(MeansInput::Value(summed)) = step.inputs.first() else { return UNKNOWN };
                let extents = means.values.get(*summed).map(|v| v.extents.as_slice());
                let largest = |d: Dim| cx.range(d).1;
                let count = axes
                    .iter()
                    .try_fold(1i64, |n, axis| n.checked_mul(largest(*extents?.get(*axis)?)?));
                let total = count.zip(hi.and_then(largest)).and_then(|(n, hi)| n.checked_mul(hi));
                match from_zero && total.is_some_and(|t| i32::try_from(t).is_ok()) {
                    true => (Some(Dim::Const(0)), None),
                    false => UNKNOWN,
                }
            }
            SpecKind::Reduction(ReduceOp::Min | ReduceOp::Max) => of(0),
            _ => UNKNOWN,
        }
    }
}
