//! Evaluates meanings of several steps ([`Chain`]): the chains of `means` blocks, such as
//! `%e = exp(%X)` and then `%Y = %e / sum(%e, axis=1)`. The meaning of a single spec is a chain of
//! one step.
//!
//! A chain is evaluated in binary64 on a [`Region`] of an output. Each step is evaluated only on
//! the elements that later steps need: for a tile of the output of an attention, only the scores of
//! the tile's rows.
//!
//! Each number has a *scale*: the sum of the magnitudes that are added to compute it, carried
//! through functions by their derivatives. Rounding errors of binary64 are relative to the scale,
//! in any order in which a body adds. If rounding errors decide a comparison, the result is in
//! doubt: both results lie within its scale.

use super::NoMeaning;
use super::exact::{Exact, binary, collect, matmul, narrow, reduce, select, unary};
use super::region::{Axis, Region};
use carbyne_ir::ast::{BinaryOp, ReduceOp, SpecKind, UnaryOp};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::CastRole;
use carbyne_ir::scalar::Scalar;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A meaning as a chain of steps.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// The tensors: operands, and results of steps.
    pub values: Vec<Shape>,
    /// The steps, in order; each reads operands and results of earlier steps.
    pub steps: Vec<Step>,
    /// For each output, the index of its result in `values`.
    pub outputs: Vec<usize>,
}

/// A tensor of a chain.
#[derive(Clone, Debug)]
pub struct Shape {
    /// The extents.
    pub modes: Vec<i64>,
    /// The type. The type of a result of floats is not used.
    pub scalar: Scalar,
    /// For an operand, the number by which `fetch` identifies it.
    pub operand: Option<usize>,
}

/// A step of a chain.
#[derive(Clone, Debug)]
pub struct Step {
    /// The operation.
    pub op: StepOp,
    /// The inputs.
    pub inputs: Vec<Input>,
    /// The index of the result in [`Chain::values`].
    pub output: usize,
}

/// An input of a step.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Input {
    /// A tensor: an index into [`Chain::values`].
    Value(usize),
    /// A literal.
    Number(f64),
}

/// The operations of steps. Inputs of pointwise steps are broadcast along modes of extent 1.
#[derive(Clone, Debug, PartialEq)]
pub enum StepOp {
    /// Copies the input.
    Move,
    /// Takes the second input where the first is true, else the third.
    Select,
    /// A function of one input, element by element. A cast between floats keeps the numbers.
    Unary(UnaryOp),
    /// A cast to a type of floats, element by element.
    Cast(CastRole, Scalar),
    /// A function of two inputs, element by element.
    Binary(BinaryOp),
    /// A reduction over the marked modes.
    Reduction(ReduceOp, Vec<bool>),
    /// A·B, plus the third input if it exists.
    MatMul,
    /// The literal, for every element.
    Init,
    /// The coordinate along a mode of the input.
    Iota(usize),
    /// The elements of the first input at the coordinates along this mode that the second input
    /// holds.
    Gather(usize),
    /// The input, surrounded by elements of one value.
    Pad {
        /// For each mode, the number of elements before the first.
        before: Vec<i64>,
        /// The value of the surrounding elements.
        value: f64,
    },
    /// Elements of the input, by a layout from coordinates to element numbers, and the number at
    /// coordinate zero.
    View(Box<Layout<i64>>, i64),
}

impl StepOp {
    /// The step of a spec along `axes`. `modes` is the rank of its first input.
    ///
    /// # Errors
    /// The spec has no meaning of its own.
    pub fn of(kind: SpecKind, axes: &[usize], modes: usize) -> Result<Self, NoMeaning> {
        Ok(match kind {
            SpecKind::Move => StepOp::Move,
            SpecKind::Accumulate(op) => StepOp::Binary(op.binary()),
            SpecKind::Select => StepOp::Select,
            SpecKind::Unary(op) => StepOp::Unary(op),
            SpecKind::Binary(op) => StepOp::Binary(op),
            SpecKind::Reduction(op) => {
                StepOp::Reduction(op, (0..modes).map(|i| axes.contains(&i)).collect())
            }
            SpecKind::MatMul | SpecKind::MatMulSet => StepOp::MatMul,
            SpecKind::Init => StepOp::Init,
            SpecKind::Iota => StepOp::Iota(axes.first().copied().unwrap_or(0)),
            SpecKind::Shfl(_) => return Err(NoMeaning::Lanes),
            SpecKind::Generic => return Err(NoMeaning::Generic),
        })
    }
}

impl Chain {
    /// The chain of a single spec along `axes`, with operands of these modes and types; `inputs`
    /// contains the numbers of literals.
    ///
    /// # Errors
    /// The spec has no meaning of its own.
    pub fn of(
        kind: SpecKind,
        axes: &[usize],
        inputs: &[Result<Shape, f64>],
        output: Shape,
    ) -> Result<Self, NoMeaning> {
        let mut chain = Chain::default();
        let mut read = Vec::new();
        for input in inputs {
            read.push(match input {
                Ok(shape) => {
                    chain.values.push(shape.clone());
                    Input::Value(chain.values.len() - 1)
                }
                Err(literal) => Input::Number(*literal),
            });
        }
        let before = chain.values.len();
        if kind.reads_output() {
            chain.values.push(output.clone());
            match kind {
                SpecKind::Accumulate(_) => read.insert(0, Input::Value(before)),
                _ => read.push(Input::Value(before)),
            }
        }
        let modes =
            |input: &Result<Shape, f64>| input.as_ref().map_or(0, |shape| shape.modes.len());
        let op = StepOp::of(kind, axes, inputs.first().map_or(0, modes))?;
        chain.values.push(Shape { operand: None, ..output });
        let output = chain.values.len() - 1;
        chain.steps.push(Step { op, inputs: read, output });
        chain.outputs.push(output);
        Ok(chain)
    }

    /// Whether the chain reads a tensor among the operands.
    #[must_use]
    pub fn reads(&self, operand: usize) -> bool {
        let is = |input: &Input| match input {
            Input::Value(v) => self.values[*v].operand == Some(operand),
            Input::Number(_) => false,
        };
        let looks = |s: &&Step| !matches!(s.op, StepOp::Init | StepOp::Iota(_));
        self.steps.iter().filter(looks).any(|s| s.inputs.iter().any(is))
    }

    /// The multiply-adds of all MatMuls on complete tensors.
    #[must_use]
    pub fn multiply_adds(&self) -> u64 {
        let whole: Vec<Option<Region>> =
            self.values.iter().map(|v| Some(Region::whole(&v.modes))).collect();
        let matmuls = self.steps.iter().filter(|s| s.op == StepOp::MatMul);
        matmuls.fold(0u64, |sum, s| sum.saturating_add(self.step_work(s, &whole)))
    }

    /// The number of computed numbers, or of multiply-adds, in an evaluation of an output on a
    /// region.
    #[must_use]
    pub fn work(&self, output: usize, region: &Region) -> u64 {
        let Some(value) = self.outputs.get(output) else { return 0 };
        let needs = self.needs(*value, region, &Rows::new());
        let sizes = needs.iter().flatten().fold(0u64, |sum, r| sum.saturating_add(r.size()));
        self.steps.iter().fold(sizes, |sum, s| sum.saturating_add(self.step_work(s, &needs)))
    }

    /// The largest number of numbers held at once in an evaluation of an output on a region.
    #[must_use]
    pub fn numbers(&self, output: usize, region: &Region) -> u64 {
        let Some(value) = self.outputs.get(output) else { return 0 };
        let needs = self.needs(*value, region, &Rows::new());
        needs.iter().flatten().fold(0u64, |sum, r| sum.saturating_add(r.size()))
    }

    fn step_work(&self, step: &Step, needs: &[Option<Region>]) -> u64 {
        let Some(Some(region)) = needs.get(step.output) else { return 0 };
        let deep = match (&step.op, step.inputs.first()) {
            (StepOp::MatMul, Some(Input::Value(a))) => {
                self.values[*a].modes.last().map_or(1, |k| k.unsigned_abs())
            }
            _ => 1,
        };
        region.size().saturating_mul(deep)
    }

    /// For each tensor, the region that a result on a region needs.
    fn needs(&self, value: usize, region: &Region, rows: &Rows) -> Vec<Option<Region>> {
        let mut needs: Vec<Option<Region>> = vec![None; self.values.len()];
        needs[value] = Some(region.clone());
        for step in self.steps.iter().rev() {
            let Some(wanted) = needs[step.output].clone() else { continue };
            for (i, input) in step.inputs.iter().enumerate() {
                let Input::Value(v) = input else { continue };
                let Some(own) = self.needed(step, i, &wanted, rows) else { continue };
                needs[*v] = Some(match &needs[*v] {
                    None => own,
                    Some(before) => before.union(&own),
                });
            }
        }
        needs
    }

    /// The region of an input that a step needs for its output on a region; none if it needs no
    /// element.
    fn needed(&self, step: &Step, input: usize, wanted: &Region, rows: &Rows) -> Option<Region> {
        let Input::Value(v) = step.inputs[input] else { return None };
        let modes = &self.values[v].modes;
        Some(match &step.op {
            StepOp::Init | StepOp::Iota(_) => return None,
            StepOp::Move
            | StepOp::Select
            | StepOp::Unary(_)
            | StepOp::Cast(..)
            | StepOp::Binary(_) => spread(modes, wanted),
            StepOp::Reduction(_, removed) => {
                let axes = kept_axes(removed, wanted, modes);
                let of = |(i, n): (usize, &i64)| match &axes[i] {
                    Some(axis) => axis.clone(),
                    None => Axis::Whole(*n),
                };
                Region { axes: modes.iter().enumerate().map(of).collect() }
            }
            StepOp::MatMul => {
                let [batch @ .., m, n] = &wanted.axes[..] else {
                    return Some(spread(modes, wanted));
                };
                let k = |i: usize| modes.get(i).map_or(Axis::Whole(1), |n| Axis::Whole(*n));
                let inner = modes.len();
                let two = match input {
                    0 => [m.clone(), k(inner.saturating_sub(1))],
                    1 => [k(inner.saturating_sub(2)), n.clone()],
                    _ => [m.clone(), n.clone()],
                };
                Region { axes: batch.iter().cloned().chain(two).collect() }
            }
            StepOp::Gather(axis) => {
                let rank = modes.len();
                let gone = wanted.axes.len() < if input == 0 { rank } else { rank + 1 };
                match input {
                    0 => {
                        let mut kept = wanted.axes.iter();
                        let of = |(i, n): (usize, &i64)| {
                            if i == *axis {
                                let many = if gone { None } else { kept.next() };
                                return self.rows(step, *n, many.map_or(1, Axis::len), rows);
                            }
                            kept.next().cloned().unwrap_or(Axis::Whole(*n))
                        };
                        Region { axes: modes.iter().enumerate().map(of).collect() }
                    }
                    _ if rank == 0 => Region::whole(modes),
                    _ => Region {
                        axes: vec![wanted.axes.get(*axis).cloned().unwrap_or(Axis::Whole(1))],
                    },
                }
            }
            StepOp::Pad { before, .. } => {
                let axes = wanted.axes.iter().zip(before).zip(modes);
                Region { axes: axes.map(|((axis, before), n)| axis.without(*before, *n)).collect() }
            }
            StepOp::View(layout, offset) => {
                let own = self.values[step.output].modes.clone();
                if wanted.size() == Region::whole(&own).size() {
                    return Some(Region::whole(modes));
                }
                let mut lists: Vec<Vec<i64>> = modes.iter().map(|_| Vec::new()).collect();
                for e in wanted.elements(&own) {
                    let mut at = layout.at(e).saturating_add(*offset);
                    for (list, n) in lists.iter_mut().zip(modes) {
                        let c = at % (*n).max(1);
                        at /= (*n).max(1);
                        if list.last() != Some(&c) {
                            list.push(c);
                        }
                    }
                }
                Region { axes: lists.into_iter().map(Axis::of).collect() }
            }
        })
    }

    /// The coordinates of a mode that a step gathers from. Before the coordinates are known, only
    /// their number is used. Computed coordinates may be any coordinate of the mode.
    fn rows(&self, step: &Step, extent: i64, many: usize, rows: &Rows) -> Axis {
        if let Some(known) = rows.get(&step.output) {
            return known.clone();
        }
        let many = i64::try_from(many).unwrap_or(extent).min(extent);
        match self.coordinates(step) {
            Some(_) => Axis::of((0..many).collect()),
            None => Axis::Whole(extent),
        }
    }

    /// The operand and the value that hold the coordinates from which a step gathers; none if the
    /// coordinates are computed.
    fn coordinates(&self, step: &Step) -> Option<(usize, usize)> {
        match step.inputs.get(1) {
            Some(Input::Value(v)) => Some((self.values[*v].operand?, *v)),
            _ => None,
        }
    }

    /// The coordinates of the steps that gather from coordinates in an operand.
    fn gathered<E>(
        &self,
        value: usize,
        region: &Region,
        fetch: &mut impl FnMut(usize, &Region) -> Result<Vec<f64>, E>,
    ) -> Result<Rows, E> {
        let mut rows = Rows::new();
        if !self.steps.iter().any(|s| matches!(s.op, StepOp::Gather(_))) {
            return Ok(rows);
        }
        let needs = self.needs(value, region, &rows);
        for step in &self.steps {
            let (StepOp::Gather(axis), Some((operand, v))) = (&step.op, self.coordinates(step))
            else {
                continue;
            };
            let (Some(need), Some(Input::Value(from))) = (&needs[v], step.inputs.first()) else {
                continue;
            };
            let extent = self.values[*from].modes.get(*axis).copied().unwrap_or(1);
            let all = fetch(operand, need)?.into_iter().map(|n| n as i64);
            // A coordinate outside of the mode selects no element.
            let own = Axis::of(all.filter(|n| (0..extent).contains(n)).collect());
            rows.insert(step.output, own);
        }
        Ok(rows)
    }

    /// Evaluates an output on a region. `fetch` returns the numbers of an operand on a region, in
    /// the order of its elements. `slack` is the largest error of a number, relative to its scale:
    /// roundings and comparisons that such an error can change are in doubt.
    ///
    /// # Errors
    /// The errors of `fetch`.
    pub fn evaluate<E>(
        &self,
        output: usize,
        region: &Region,
        slack: f64,
        fetch: &mut impl FnMut(usize, &Region) -> Result<Vec<f64>, E>,
    ) -> Result<Exact, E> {
        let Some(value) = self.outputs.get(output).copied() else { return Ok(Exact::default()) };
        let rows = self.gathered(value, region, fetch)?;
        let needs = self.needs(value, region, &rows);
        let mut found: Vec<Option<Exact>> = vec![None; self.values.len()];
        for (i, need) in needs.iter().enumerate() {
            if let (Some(region), Some(operand)) = (need, self.values[i].operand) {
                let numbers = fetch(operand, region)?;
                let scales = vec![0.0; numbers.len()];
                found[i] = Some(Exact { numbers, scales });
            }
        }
        for step in &self.steps {
            if let Some(wanted) = &needs[step.output] {
                let evaluation = Evaluation {
                    chain: self,
                    step,
                    wanted,
                    needs: &needs,
                    rows: &rows,
                    found: &found,
                };
                found[step.output] = Some(evaluation.result(slack));
            }
        }
        Ok(found[value].take().unwrap_or_default())
    }
}

/// The evaluation of one step on a region.
struct Evaluation<'a> {
    chain: &'a Chain,
    step: &'a Step,
    wanted: &'a Region,
    /// For each tensor, the region that is needed.
    needs: &'a [Option<Region>],
    rows: &'a Rows,
    /// The tensors that were evaluated, each on its needed region.
    found: &'a [Option<Exact>],
}

impl<'a> Evaluation<'a> {
    fn result(&self, slack: f64) -> Exact {
        let n = self.n_elements();
        let scalar = self.chain.values[self.step.output].scalar;
        let from = self.tensor(0).or_else(|| self.tensor(1)).map_or(scalar, |t| t.scalar);
        let pairs = |e: Exact| e.numbers.into_iter().zip(e.scales);
        match &self.step.op {
            StepOp::Move => self.wide(0),
            StepOp::Init => self.input(0).into_owned(),
            StepOp::Unary(op) => {
                collect(pairs(self.wide(0)).map(|x| unary(*op, (from, scalar), x, slack)))
            }
            StepOp::Cast(role, to) => {
                collect(pairs(self.wide(0)).map(|x| narrow(*role, *to, x, slack)))
            }
            StepOp::Binary(op) => {
                let both = pairs(self.wide(0)).zip(pairs(self.wide(1)));
                collect(both.map(|(x, y)| binary(*op, from, x, y, slack)))
            }
            StepOp::Select => {
                let chosen = pairs(self.wide(1)).zip(pairs(self.wide(2)));
                collect(pairs(self.wide(0)).zip(chosen).map(|(p, (x, y))| select(p, x, y, slack)))
            }
            StepOp::Reduction(op, removed) => {
                let Some(need) = self.needed(0) else {
                    return Exact::default();
                };
                reduce(*op, from, removed, &need, n, &self.input(0), slack)
            }
            StepOp::MatMul => {
                let before = (self.step.inputs.len() > 2).then(|| self.input(2).into_owned());
                let deep = self.modes(0).and_then(|modes| modes.last()).copied().unwrap_or(1);
                matmul(self.wanted, deep, scalar, &self.input(0), &self.input(1), before)
            }
            StepOp::Iota(axis) => self.iota(*axis),
            StepOp::Gather(axis) => self.gather(*axis).unwrap_or_default(),
            StepOp::Pad { before, value } => self.pad(before, *value).unwrap_or_default(),
            StepOp::View(layout, offset) => self.view(layout, *offset).unwrap_or_default(),
        }
    }

    fn n_elements(&self) -> usize {
        usize::try_from(self.wanted.size()).unwrap_or(0)
    }

    /// The region in which an input is needed.
    fn needed(&self, input: usize) -> Option<Region> {
        self.chain.needed(self.step, input, self.wanted, self.rows)
    }

    /// An input on the region that the step needs.
    fn input(&self, i: usize) -> Cow<'a, Exact> {
        let n = self.n_elements();
        let all = |v: f64| Cow::Owned(Exact { numbers: vec![v; n], scales: vec![0.0; n] });
        match self.step.inputs.get(i) {
            Some(Input::Number(v)) => all(*v),
            Some(Input::Value(v)) => {
                let (Some(region), Some(own), Some(need)) =
                    (&self.needs[*v], &self.found[*v], self.needed(i))
                else {
                    return all(0.0);
                };
                match *region == need {
                    true => Cow::Borrowed(own),
                    false => Cow::Owned(Exact {
                        numbers: region.gather(&own.numbers, &need),
                        scales: region.gather(&own.scales, &need),
                    }),
                }
            }
            None => Cow::default(),
        }
    }

    /// An input, broadcast to the output's elements.
    fn wide(&self, i: usize) -> Exact {
        let n = self.n_elements();
        let own = self.input(i).into_owned();
        match self.step.inputs.get(i) {
            Some(Input::Value(_)) => match self.needed(i) {
                // One element, for an output of any rank.
                Some(need) if need.axes.is_empty() => {
                    let all = |list: &[f64]| vec![list.first().copied().unwrap_or(0.0); n];
                    Exact { numbers: all(&own.numbers), scales: all(&own.scales) }
                }
                Some(need) if need.size() != self.wanted.size() => Exact {
                    numbers: need.gather(&own.numbers, self.wanted),
                    scales: need.gather(&own.scales, self.wanted),
                },
                _ => own,
            },
            _ => own,
        }
    }

    /// An input, if it is a tensor.
    fn tensor(&self, input: usize) -> Option<&'a Shape> {
        match self.step.inputs.get(input) {
            Some(Input::Value(v)) => Some(&self.chain.values[*v]),
            _ => None,
        }
    }

    fn modes(&self, input: usize) -> Option<&'a [i64]> {
        self.tensor(input).map(|tensor| &*tensor.modes)
    }

    fn iota(&self, axis: usize) -> Exact {
        let modes = &self.chain.values[self.step.output].modes;
        let inner: i64 = modes.iter().take(axis).product();
        let extent = modes.get(axis).copied().unwrap_or(1);
        let at = |e: i64| (e / inner.max(1) % extent.max(1)) as f64;
        collect(self.wanted.elements(modes).map(|e| (at(e), 0.0)))
    }

    fn gather(&self, axis: usize) -> Option<Exact> {
        let (modes, coordinates) = (self.modes(0)?, self.modes(1)?);
        let (from, at) = (self.needed(0)?, self.needed(1)?);
        let (data, index) = (self.input(0), self.input(1));
        let scalar_index = coordinates.is_empty();
        let out = &self.chain.values[self.step.output].modes;
        let element = |e: i64| {
            let (mut rest, mut place, mut weight) = (e, 0usize, 1usize);
            let mut own = out.iter();
            for (m, (axis_of, n)) in from.axes.iter().zip(modes).enumerate() {
                let c = if m == axis {
                    let j = match scalar_index {
                        true => 0,
                        false => {
                            let n = own.next().copied().unwrap_or(1).max(1);
                            let j = rest % n;
                            rest /= n;
                            at.axes.first().map_or(0, |a| a.position_of(j))
                        }
                    };
                    index.numbers.get(j).copied().unwrap_or(0.0) as i64
                } else {
                    let n = own.next().copied().unwrap_or(1).max(1);
                    let c = rest % n;
                    rest /= n;
                    c
                };
                // A coordinate outside of the mode gives NaN, which matches no correct element.
                if !(0..*n).contains(&c) {
                    return (f64::NAN, 0.0);
                }
                place += axis_of.position_of(c) * weight;
                weight *= axis_of.len().max(1);
            }
            element_at(&data, place)
        };
        Some(collect(self.wanted.elements(out).map(element)))
    }

    fn pad(&self, before: &[i64], value: f64) -> Option<Exact> {
        let (modes, need, own) = (self.modes(0)?, self.needed(0)?, self.input(0));
        let longer = &self.chain.values[self.step.output].modes;
        let element = |e: i64| {
            let (mut rest, mut place, mut weight) = (e, 0usize, 1usize);
            for (((axis, n), more), before) in need.axes.iter().zip(modes).zip(longer).zip(before) {
                let c = rest % (*more).max(1) - before;
                rest /= (*more).max(1);
                if !(0..*n).contains(&c) {
                    return (value, 0.0);
                }
                place += axis.position_of(c) * weight;
                weight *= axis.len().max(1);
            }
            element_at(&own, place)
        };
        Some(collect(self.wanted.elements(longer).map(element)))
    }

    fn view(&self, layout: &Layout<i64>, offset: i64) -> Option<Exact> {
        let (modes, need, own) = (self.modes(0)?, self.needed(0)?, self.input(0));
        let shape = &self.chain.values[self.step.output].modes;
        let element = |e: i64| {
            let mut at = layout.at(e).saturating_add(offset);
            let (mut place, mut weight) = (0usize, 1usize);
            for (axis, n) in need.axes.iter().zip(modes) {
                let c = at % (*n).max(1);
                at /= (*n).max(1);
                place += axis.position_of(c) * weight;
                weight *= axis.len().max(1);
            }
            element_at(&own, place)
        };
        Some(collect(self.wanted.elements(shape).map(element)))
    }
}

/// The number at a position and its scale; zeros beyond the end.
fn element_at(of: &Exact, place: usize) -> (f64, f64) {
    let pick = |list: &[f64]| list.get(place).copied().unwrap_or(0.0);
    (pick(&of.numbers), pick(&of.scales))
}

/// For each step that gathers, by its output, the coordinates that it gathers from.
type Rows = BTreeMap<usize, Axis>;

impl Axis {
    /// The coordinates in a mode of `extent` elements, for coordinates of a mode with `before` more
    /// elements at its start.
    fn without(&self, before: i64, extent: i64) -> Axis {
        match self {
            Axis::Whole(_) => Axis::Whole(extent),
            Axis::Some(list) => {
                let own = list.iter().map(|c| c - before);
                Axis::of(own.filter(|c| (0..extent).contains(c)).collect())
            }
        }
    }

    fn position_of(&self, index: i64) -> usize {
        match self {
            Axis::Whole(_) => usize::try_from(index).unwrap_or(0),
            Axis::Some(list) => list.binary_search(&index).unwrap_or(0),
        }
    }
}

/// The region of an input that is broadcast over another region.
fn spread(modes: &[i64], wanted: &Region) -> Region {
    if modes.len() != wanted.axes.len() {
        // Equal elements with equal numbers, in modes that differ only by modes of extent 1.
        return matched(modes, wanted);
    }
    let of = |(n, axis): (&i64, &Axis)| if *n == 1 { Axis::Whole(1) } else { axis.clone() };
    Region { axes: modes.iter().zip(&wanted.axes).map(of).collect() }
}

/// The region of equal elements in other modes, if the modes differ only by modes of extent 1; else
/// all elements.
fn matched(modes: &[i64], wanted: &Region) -> Region {
    let mut real = wanted.axes.iter().filter(|a| **a != Axis::Whole(1));
    let axes: Vec<Axis> = modes
        .iter()
        .map(|n| match n {
            1 => Axis::Whole(1),
            _ => real.next().cloned().unwrap_or(Axis::Whole(*n)),
        })
        .collect();
    let region = Region { axes };
    if region.size() == wanted.size() { region } else { Region::whole(modes) }
}

/// For each mode of a reduction's input, the axis of the output that corresponds to it; none for
/// removed modes.
fn kept_axes(removed: &[bool], wanted: &Region, modes: &[i64]) -> Vec<Option<Axis>> {
    let stays = wanted.axes.len() == modes.len();
    let mut kept = wanted.axes.iter();
    let of = |(i, gone): (usize, &bool)| match (gone, stays) {
        (true, _) => None,
        (false, true) => wanted.axes.get(i).cloned(),
        (false, false) => kept.next().cloned(),
    };
    removed.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::denote::SLACK;

    fn shape(modes: &[i64], operand: Option<usize>) -> Shape {
        Shape { modes: modes.to_vec(), scalar: Scalar::F64, operand }
    }

    /// The softmax of each row of a matrix.
    fn softmax(m: i64, n: i64) -> Chain {
        let values = vec![
            shape(&[m, n], Some(0)),
            shape(&[m, 1], None),
            shape(&[m, n], None),
            shape(&[m, n], None),
            shape(&[m, 1], None),
            shape(&[m, n], None),
        ];
        let rows = || vec![false, true];
        let step = |op, inputs: &[usize], output| Step {
            op,
            inputs: inputs.iter().map(|v| Input::Value(*v)).collect(),
            output,
        };
        let steps = vec![
            step(StepOp::Reduction(ReduceOp::Max, rows()), &[0], 1),
            step(StepOp::Binary(BinaryOp::Sub), &[0, 1], 2),
            step(StepOp::Unary(UnaryOp::Exp), &[2], 3),
            step(StepOp::Reduction(ReduceOp::Sum, rows()), &[3], 4),
            step(StepOp::Binary(BinaryOp::Div), &[3, 4], 5),
        ];
        Chain { values, steps, outputs: vec![5] }
    }

    #[test]
    fn a_part_equals_that_part_of_the_whole() {
        let (m, n) = (5i64, 7i64);
        let chain = softmax(m, n);
        let x = |e: i64| ((e * 37 % 11) as f64 - 5.0) / 3.0;
        let mut fetched = 0;
        let mut fetch = |_: usize, r: &Region| -> Result<Vec<f64>, ()> {
            fetched += r.size();
            Ok(r.elements(&[m, n]).map(x).collect())
        };
        let whole = chain.evaluate(0, &Region::whole(&[m, n]), SLACK, &mut fetch).unwrap();
        let part = Region { axes: vec![Axis::of(vec![1, 3]), Axis::of(vec![0, 2, 6])] };
        let of_part = chain.evaluate(0, &part, SLACK, &mut fetch).unwrap();
        for (i, e) in part.elements(&[m, n]).enumerate() {
            assert_eq!(of_part.numbers[i], whole.numbers[e as usize]);
        }
        // The part needed all elements of two rows.
        assert_eq!(fetched, 35 + 14);
        let row: f64 = (0..n).map(|j| whole.numbers[(j * m) as usize]).sum();
        assert!((row - 1.0).abs() < 1e-12);
        assert!(chain.work(0, &part) < chain.work(0, &Region::whole(&[m, n])));
    }

    #[test]
    fn padding_has_one_value() {
        let values = vec![shape(&[2, 3], Some(0)), shape(&[4, 4], None)];
        let op = StepOp::Pad { before: vec![1, 0], value: 9.0 };
        let steps = vec![Step { op, inputs: vec![Input::Value(0)], output: 1 }];
        let chain = Chain { values, steps, outputs: vec![1] };
        let mut fetch = |_: usize, r: &Region| -> Result<Vec<f64>, ()> {
            Ok(r.elements(&[2, 3]).map(|e| e as f64).collect())
        };
        let whole = chain.evaluate(0, &Region::whole(&[4, 4]), SLACK, &mut fetch).unwrap();
        let column = |c: f64| [9.0, c, c + 1.0, 9.0];
        let expected = [column(0.0), column(2.0), column(4.0), [9.0; 4]].concat();
        assert_eq!(whole.numbers, expected);
        for axes in [[vec![0, 2], vec![1, 3]], [vec![0, 3], vec![0]], [vec![1], vec![3]]] {
            let part = Region { axes: axes.map(Axis::of).to_vec() };
            let found = chain.evaluate(0, &part, SLACK, &mut fetch).unwrap();
            let own: Vec<f64> = part.elements(&[4, 4]).map(|e| expected[e as usize]).collect();
            assert_eq!(found.numbers, own);
        }
    }

    #[test]
    fn scales_include_cancelled_terms() {
        // (x + y) - x with a large x: the scale of the result is that of x, because the sum is
        // rounded.
        let values =
            vec![shape(&[1], Some(0)), shape(&[1], Some(1)), shape(&[1], None), shape(&[1], None)];
        let step = |op, a, b, output| Step {
            op: StepOp::Binary(op),
            inputs: vec![Input::Value(a), Input::Value(b)],
            output,
        };
        let steps = vec![step(BinaryOp::Add, 0, 1, 2), step(BinaryOp::Sub, 2, 0, 3)];
        let chain = Chain { values, steps, outputs: vec![3] };
        let mut fetch = |i: usize, _: &Region| -> Result<Vec<f64>, ()> {
            Ok(vec![if i == 0 { 1e9 + 1.0 / 3.0 } else { 1.1 }])
        };
        let found = chain.evaluate(0, &Region::whole(&[1]), SLACK, &mut fetch).unwrap();
        assert!((found.numbers[0] - 1.1).abs() < 1e-6, "{found:?}");
        assert!(
            found.is(0, Scalar::F32, 1.5, false) && !found.is(0, Scalar::F32, 10.0, false),
            "{found:?}"
        );
    }

    #[test]
    fn a_comparison_in_doubt_allows_both_results() {
        // Select (x < y, 1, 5), where x and y are the same sum.
        let values = vec![
            shape(&[1], Some(0)),
            shape(&[1], None),
            Shape { modes: vec![1], scalar: Scalar::Bool, operand: None },
            shape(&[1], None),
        ];
        let two = |op, a: Input, b: Input, output| Step {
            op: StepOp::Binary(op),
            inputs: vec![a, b],
            output,
        };
        let steps = vec![
            two(BinaryOp::Add, Input::Value(0), Input::Number(1.0), 1),
            two(BinaryOp::Lt, Input::Value(1), Input::Number(1.5), 2),
            Step {
                op: StepOp::Select,
                inputs: vec![Input::Value(2), Input::Number(1.0), Input::Number(5.0)],
                output: 3,
            },
        ];
        let chain = Chain { values, steps, outputs: vec![3] };
        let at = |x: f64| {
            let mut fetch = |_: usize, _: &Region| -> Result<Vec<f64>, ()> { Ok(vec![x]) };
            chain.evaluate(0, &Region::whole(&[1]), SLACK, &mut fetch).unwrap()
        };
        let sure = at(0.25);
        assert!(sure.is(0, Scalar::F32, 1.0, false) && !sure.is(0, Scalar::F32, 5.0, false));
        let equal = at(0.5);
        assert!(equal.is(0, Scalar::F32, 5.0, false) && !equal.is(0, Scalar::F32, 1.0, false));
        let doubtful = at(0.5 + 1e-12);
        assert!(doubtful.is(0, Scalar::F32, 1.0, false) && doubtful.is(0, Scalar::F32, 5.0, false));
    }
}
