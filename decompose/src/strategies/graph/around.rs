//! Adds elements around values of a graph: `.pad([1,1], [1,1], -inf)` of a `means` block.
//!
//! A padded operand is a view, whose elements outside are read as zeros. A padded result that is
//! computed element by element is made by its steps on such views. If the elements outside then
//! have another number than the requested one, a selection by coordinates replaces them.

use super::Around;
use super::{Builder, Input, MOST_SEEN, Source, Step, Value};
use carbyne_ir::ast::{BinaryOp, Expr, Pad, SpecKind, UnaryOp, ViewOp};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;

/// A padded value.
struct Padded {
    value: usize,
    /// Value of its elements outside, where that is one known number.
    outside: Option<f64>,
}

/// Elements of a mode that a value has, by their coordinate.
#[derive(Copy, Clone)]
struct Inside {
    mode: usize,
    op: BinaryOp,
    limit: i64,
}

impl Around<'_> {
    /// Whether there are elements around along a mode.
    fn is_longer(&self, mode: usize) -> bool {
        self.own[mode] != self.extents[mode]
    }

    /// Extents of an input with the elements around; along modes in which it is broadcast there are
    /// none.
    fn extents_of(&self, input: &[i64]) -> Option<Vec<i64>> {
        let modes = input.iter().zip(self.own).zip(self.extents);
        let longer = |((input, own), longer): ((&i64, &i64), &i64)| match (input == own, *input) {
            (true, _) => Some(*longer),
            (false, 1) => Some(1),
            (false, _) => None,
        };
        (input.len() == self.own.len()).then(|| modes.map(longer).collect())?
    }

    /// The operation of a view of an operand of these extents.
    fn view(&self, input: &[i64]) -> ViewOp {
        let along = |list: &[Expr]| -> Vec<Expr> {
            let number = |(m, n): (usize, &Expr)| match input[m] == self.own[m] {
                true => n.clone(),
                false => Expr::int(0),
            };
            list.iter().enumerate().map(number).collect()
        };
        let (before, behind) = (along(&self.pad.before), along(&self.pad.behind));
        ViewOp::Pad(Box::new(Pad { before, behind, value: Some(Expr::int(0)) }))
    }

    /// Conditions that coordinates of elements inside keep, mode by mode.
    fn inside(&self) -> Vec<Inside> {
        let mut all = vec![];
        for (mode, before) in self.before.iter().copied().enumerate() {
            if before > 0 {
                all.push(Inside { mode, op: BinaryOp::Ge, limit: before });
            }
            let limit = before + self.own[mode];
            if limit < self.extents[mode] {
                all.push(Inside { mode, op: BinaryOp::Lt, limit });
            }
        }
        all
    }
}

impl Builder<'_> {
    /// The padded value; none of what is no operand, and not computed of operands element by
    /// element.
    pub(super) fn padded(&mut self, v: usize, around: &Around<'_>) -> Option<usize> {
        let Padded { mut value, outside } = self.lengthened(v, around, 0)?;
        if outside == Some(around.value) {
            return Some(value);
        }
        for inside in around.inside() {
            value = self.chosen(value, around, inside)?;
        }
        Some(value)
    }

    /// The value with elements around it, whatever they are.
    fn lengthened(&mut self, v: usize, around: &Around<'_>, depth: usize) -> Option<Padded> {
        let Value { extents: own, scalar, source } = self.graph.values.get(v)?.clone();
        if own.is_empty() {
            return Some(Padded { value: v, outside: None });
        }
        let extents = around.extents_of(&own)?;
        if let Some(source) = source {
            return self.operand_padded(&own, scalar, &source, around);
        }
        let mut step = self.graph.steps.get(self.graph.maker(v)?)?.clone();
        if !step.is_pointwise() || depth > MOST_SEEN {
            return None;
        }
        let mut outside = vec![];
        for input in &mut step.inputs {
            match input {
                Input::Number(n) => outside.push(Some(*n)),
                Input::Value(from) => {
                    let padded = self.lengthened(*from, around, depth + 1)?;
                    *from = padded.value;
                    outside.push(padded.outside);
                }
            }
        }
        step.output = self.push(extents, scalar);
        let outside = computed(step.kind, &outside);
        let value = step.output;
        self.graph.steps.push(step);
        Some(Padded { value, outside })
    }

    fn operand_padded(
        &mut self,
        own: &[i64],
        scalar: Scalar,
        source: &Source,
        around: &Around<'_>,
    ) -> Option<Padded> {
        // Coordinates lie nowhere, and what is gathered has no neighbors.
        let layout = source.layout.as_ref().filter(|_| !source.counts)?;
        let extents = around.extents_of(own)?;
        let mut modes = layout.modes();
        for (mode, (own, longer)) in modes.iter_mut().zip(own.iter().zip(&extents)) {
            if own != longer {
                let [(_, stride)] = *mode.leaves() else { return None };
                *mode = Layout::of_mode(*longer, stride).ok()?;
            }
        }
        let layout = Some(Layout::concat(&modes).ok()?);
        let view = source.view.clone().then(around.view(own));
        // Along modes in which it is broadcast its elements are those inside.
        let is_zero = (0..own.len()).all(|m| !around.is_longer(m) || own[m] != extents[m]);
        let source = Some(Source { view, layout, counts: false });
        self.graph.values.push(Value { extents, scalar, source });
        let outside = is_zero.then_some(0.0);
        Some(Padded { value: self.graph.values.len() - 1, outside })
    }

    /// The value where coordinates are inside, and the number of the pad elsewhere.
    fn chosen(&mut self, value: usize, around: &Around<'_>, inside: Inside) -> Option<usize> {
        let Value { extents, scalar, .. } = self.graph.values.get(value)?.clone();
        let coordinate = self.coordinates(value, inside.mode)?;
        let condition = self.push(extents.clone(), Scalar::Bool);
        let limit = Input::Number(inside.limit as f64);
        self.graph.chosen_around = true;
        self.pointwise(
            SpecKind::Binary(inside.op),
            vec![Input::Value(coordinate), limit],
            condition,
        );
        let scalar = if scalar.is_float() { Scalar::F64 } else { scalar };
        let chosen = self.push(extents, scalar);
        let inputs =
            vec![Input::Value(condition), Input::Value(value), Input::Number(around.value)];
        self.pointwise(SpecKind::Select, inputs, chosen);
        Some(chosen)
    }

    fn pointwise(&mut self, kind: SpecKind, inputs: Vec<Input>, output: usize) {
        let step = Step { kind, axes: vec![], scalar: None, rounds: None, inputs, output };
        self.graph.steps.push(step);
    }
}

/// The number that a step makes of elements that are these numbers, where they are known.
fn computed(kind: SpecKind, inputs: &[Option<f64>]) -> Option<f64> {
    match (kind, inputs) {
        (SpecKind::Move | SpecKind::Unary(UnaryOp::Cast) | SpecKind::Init, [x]) => *x,
        (
            SpecKind::Unary(UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Sqrt),
            [Some(x)],
        ) if *x == 0.0 => Some(0.0),
        (SpecKind::Binary(op), [Some(x), Some(y)]) => match op {
            BinaryOp::Add => Some(x + y),
            BinaryOp::Sub => Some(x - y),
            BinaryOp::Mul => Some(x * y),
            _ => None,
        }
        // Other numbers may be rounded.
        .filter(|v| *v == 0.0),
        _ => None,
    }
}
