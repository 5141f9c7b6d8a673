//! [`Graph`] is the computation of a kernel-level spec: values, and the steps from operands to
//! outputs. Strategies are matched against it.
//!
//! A view of an operand is also an operand. [`Graph::sliced`] removes the modes that every step
//! treats element by element; they become modes of the grid. [`Graph::joined`] merges modes that
//! are contiguous in all operands. Therefore a strategy with few modes suits tensors with many.

mod around;

use crate::access::ops;
use carbyne_ir::ast::Pad;
use carbyne_ir::ast::{
    BinaryOp, Expr, LayoutExpr, Name, Operand, Pick, ReduceOp, Spec, SpecKind, TupleExpr, UnaryOp,
    View, ViewOp,
};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{self, MeansInput, MeansOp, MeansStep, Program, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, HashMap};

/// Longest chain of steps through which a view is moved to operands.
const MOST_SEEN: usize = 64;

/// What a spec computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Graph {
    /// Operands, and what steps make.
    pub values: Vec<Value>,
    /// In an order in which each step reads what earlier ones make.
    pub steps: Vec<Step>,
    /// The output.
    pub outputs: Vec<Output>,
    /// Modes of the grid that count slices: names and extents.
    pub outer: Vec<(String, i64)>,
    /// Extents that stand for symbols, and the most that these can be.
    pub symbols: BTreeMap<i64, Option<i64>>,
    /// Whether elements around a value are chosen by coordinates, which are compared with numbers
    /// that follow from extents.
    pub chosen_around: bool,
}

/// A tensor, as a whole.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Value {
    /// Of each mode; none for a single number.
    pub extents: Vec<i64>,
    /// Of an operand its type. Of a result that of the steps before it: floats are real numbers,
    /// `f64`.
    pub scalar: Scalar,
    /// Of an operand.
    pub source: Option<Source>,
}

/// An operand, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    /// As it can be written.
    pub view: View,
    /// From coordinates to elements, where that is a layout.
    pub layout: Option<Layout>,
    /// Whether its elements are coordinates, which lie nowhere.
    pub counts: bool,
}

/// What is computed of some values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    /// A pointwise spec, a Select, a Reduction, a MatMul, a Move where it is broadcast, an Init.
    pub kind: SpecKind,
    /// The modes of a Reduction.
    pub axes: Vec<usize>,
    /// The type that a cast gives, or in which a MatMul accumulates.
    pub scalar: Option<Scalar>,
    /// Of a cast that rounds, its type ([`Means::roundings`]).
    ///
    /// [`Means::roundings`]: program::Means::roundings
    pub rounds: Option<Scalar>,
    /// What it reads.
    pub inputs: Vec<Input>,
    /// The value that it makes.
    pub output: usize,
}

/// What a step reads.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Input {
    /// A value, by number.
    Value(usize),
    /// A literal.
    Number(f64),
}

/// What a spec writes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    /// What it becomes.
    pub value: usize,
    /// The operand.
    pub to: Source,
    /// Its extents.
    pub extents: Vec<i64>,
    /// Its type.
    pub scalar: Scalar,
    /// Coordinates of the grid of whose slices it has one alone: those that are 0 write it.
    pub once: Vec<String>,
}

/// Why a spec has no graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Opaque {
    #[error("{0} is not in global memory")]
    NotGlobal(String),
    #[error("the sizes of {0} are not known")]
    Symbolic(String),
    #[error("the spec does not say what it means")]
    Meaningless,
    /// Which value of the `means` block.
    #[error("a result is used with another shape")]
    ViewOfResult(usize),
    #[error("with symbolic sizes only an operand can be padded, and only with 0")]
    ChosenAround,
    #[error("a result is used by its coordinates, but no operand has its extents")]
    Coordinates,
    #[error("the spec computes {0} products, but no strategy computes more than one")]
    Products(usize),
    #[error("{0} has no meaning on whole tensors")]
    Kind(SpecKind),
}

/// The kind of a step that replaces a spec. A product becomes one that begins at zero.
fn step_kind(kind: SpecKind) -> Result<SpecKind, Opaque> {
    match kind {
        SpecKind::MatMul => Ok(SpecKind::MatMulSet),
        SpecKind::MatMulSet | SpecKind::Reduction(_) => Ok(kind),
        _ if kind.is_elementwise() => Ok(kind),
        _ => Err(Opaque::Kind(kind)),
    }
}

/// How many products a `means` block has.
pub(crate) fn products(p: &Program, id: SpecId) -> usize {
    let is = |op: &MeansOp| matches!(op, MeansOp::Spec { kind, .. } if kind.is_product());
    p.specs[id].means.iter().flat_map(|m| &m.steps).filter(|s| is(&s.op)).count()
}

impl Graph {
    /// Of a spec of a program, which is written so.
    pub(crate) fn of(p: &Program, id: SpecId, written: &Spec) -> Result<Self, Opaque> {
        Self::built(p, id, written).map_err(|why| match why {
            // Whatever else is against it.
            Opaque::ViewOfResult(_) | Opaque::Coordinates if products(p, id) > 1 => {
                Opaque::Products(products(p, id))
            }
            why => why,
        })
    }

    fn built(p: &Program, id: SpecId, written: &Spec) -> Result<Self, Opaque> {
        let spec = &p.specs[id];
        let mut b = Builder { p, graph: Graph::default(), known: HashMap::new() };
        let inputs: Vec<TensorId> = spec.input_tensors().collect();
        let views = written.inputs.iter().filter_map(|o| match o {
            Operand::View(view) => Some(view),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        for (t, view) in inputs.iter().zip(views) {
            b.operand(*t, view)?;
        }
        for (t, view) in spec.outputs.iter().zip(&written.outputs) {
            let to = b.source(*t, view)?;
            let extents = b.extents(*t)?;
            let (value, scalar, once) = (usize::MAX, p.scalar_of(*t), vec![]);
            let output = Output { value, to, extents, scalar, once };
            b.graph.outputs.push(output);
        }
        match &spec.means {
            Some(means) => b.means(means, &spec.outputs, &written.outputs)?,
            None if spec.kind == SpecKind::Generic => return Err(Opaque::Meaningless),
            None => b.single(spec, written)?,
        }
        b.graph.without_broadcast_batches();
        b.graph.without_modes_of_one();
        b.graph.without_nests();
        b.graph.without_repeats();
        b.graph.without_unread();
        b.graph.outputs.iter_mut().for_each(|o| o.with_modes_of(&b.graph.values[o.value].extents));
        Ok(b.graph)
    }

    /// The most that an extent can be; none without a bound.
    pub(crate) fn most(&self, extent: i64) -> Option<i64> {
        self.symbols.get(&extent).copied().unwrap_or(Some(extent))
    }

    /// The step that makes a value.
    pub(crate) fn maker(&self, value: usize) -> Option<usize> {
        self.steps.iter().position(|s| s.output == value)
    }

    /// Whether a cast rounds to this type.
    pub(crate) fn rounds_to(&self, scalar: Scalar) -> bool {
        self.steps.iter().any(|s| s.rounds == Some(scalar))
    }

    /// The output that strategies tile: the largest, one that all blocks write before one that a
    /// few do, the first of them.
    pub(crate) fn main(&self) -> Option<usize> {
        let size = |e: &[i64]| e.iter().fold(1i64, |n, e| n.saturating_mul(*e));
        (0..self.outputs.len()).max_by_key(|i| {
            let Output { extents, once, .. } = &self.outputs[*i];
            (size(extents), once.is_empty(), std::cmp::Reverse(*i))
        })
    }

    /// The modes that an operand, a result or an output has at most.
    pub(crate) fn rank(&self) -> usize {
        let values = self.values.iter().map(|v| v.extents.len());
        values.chain(self.outputs.iter().map(|o| o.extents.len())).max().unwrap_or(0)
    }

    /// The largest extent of each mode, where all values have as many modes, or none.
    pub(crate) fn extents(&self) -> Option<Vec<i64>> {
        let mut all = vec![1; self.rank()];
        let values = self.values.iter().map(|v| &v.extents);
        for extents in values.chain(self.outputs.iter().map(|o| &o.extents)) {
            if extents.len() != all.len() && !extents.is_empty() {
                return None;
            }
            all.iter_mut().zip(extents).for_each(|(a, e)| *a = (*a).max(*e));
        }
        Some(all)
    }

    /// Removes values and steps that no output needs, and numbers the rest anew.
    fn without_unread(&mut self) {
        let mut read = vec![false; self.values.len()];
        self.outputs.iter().for_each(|o| read[o.value] = true);
        for step in self.steps.iter().rev() {
            if read.get(step.output) != Some(&true) {
                continue;
            }
            for input in &step.inputs {
                if let Input::Value(v) = input {
                    read[*v] = true;
                }
            }
        }
        self.steps.retain(|s| read[s.output]);
        let mut number = vec![0; read.len()];
        let mut next = 0;
        for (i, read) in read.iter().enumerate() {
            number[i] = next;
            next += usize::from(*read);
        }
        let mut at = 0..;
        self.values.retain(|_| at.next().is_some_and(|i: usize| read[i]));
        self.renumber(&number);
    }

    /// Gives values other numbers.
    fn renumber(&mut self, number: &[usize]) {
        self.outputs.iter_mut().for_each(|o| o.value = number[o.value]);
        for step in &mut self.steps {
            step.output = number[step.output];
            for input in &mut step.inputs {
                if let Input::Value(v) = input {
                    *v = number[*v];
                }
            }
        }
    }

    /// Removes broadcasts of factors along batches: each slice of the product reads the one factor.
    fn without_broadcast_batches(&mut self) {
        for i in 0..self.steps.len() {
            if !self.steps[i].kind.is_product() {
                continue;
            }
            let before = |input: Input| {
                let Input::Value(v) = input else { return None };
                let made = &self.steps[self.maker(v)?];
                let [Input::Value(from)] = made.inputs[..] else { return None };
                let (to, of) = (&self.values[v].extents, &self.values[from].extents);
                let matrix = to.len().saturating_sub(2);
                let only_batches = to.len() == of.len() && to != of && to[matrix..] == of[matrix..];
                (made.kind == SpecKind::Move && only_batches).then_some(Input::Value(from))
            };
            let inputs = self.steps[i].inputs.iter().map(|input| before(*input).unwrap_or(*input));
            self.steps[i].inputs = inputs.collect();
        }
    }

    /// Reduces modes of more than one element alone: of one element any Reduction is that element.
    fn without_modes_of_one(&mut self) {
        for step in self.steps.iter_mut().filter(|s| s.reduces().is_some()) {
            let Some(Input::Value(v)) = step.inputs.first() else { continue };
            let own = &self.values[*v].extents;
            step.axes.retain(|a| own[*a] != 1);
            if step.axes.is_empty() {
                step.kind = SpecKind::Move;
            }
        }
    }

    /// Merges a reduction of a reduction into one along the modes of both. A scale of floats
    /// between two sums moves behind the merged sum.
    fn without_nests(&mut self) {
        let mut i = 0;
        while i < self.steps.len() {
            match self.inner(i) {
                Some(inner) if self.steps[inner].reduces().is_some() => {
                    let Step { axes, inputs, .. } = self.steps[inner].clone();
                    let step = &mut self.steps[i];
                    step.axes.extend(axes);
                    step.axes.sort_unstable();
                    step.axes.dedup();
                    step.inputs = inputs;
                }
                Some(inner) => {
                    let mut scale = self.steps[inner].clone();
                    let scaled = self.steps[i].output;
                    let Value { extents, scalar, .. } = self.values[scaled].clone();
                    self.values.push(Value { extents, scalar, source: None });
                    let sum = self.values.len() - 1;
                    let step = &mut self.steps[i];
                    let is_value = |input: &&mut Input| matches!(input, Input::Value(_));
                    if let Some(input) = scale.inputs.iter_mut().find(is_value) {
                        step.inputs = vec![std::mem::replace(input, Input::Value(sum))];
                    }
                    step.output = sum;
                    scale.output = scaled;
                    self.steps.insert(i + 1, scale);
                }
                None => i += 1,
            }
        }
    }

    /// The step whose result a Reduction reduces, if that is a Reduction by the same operation or a
    /// scaled sum.
    fn inner(&self, step: usize) -> Option<usize> {
        let made = |step: &Step| self.maker(step.values().next()?);
        let scales = |scale: &Step| match (scale.kind, &scale.inputs[..]) {
            (SpecKind::Binary(BinaryOp::Mul), [Input::Value(_), Input::Number(_)])
            | (SpecKind::Binary(BinaryOp::Mul), [Input::Number(_), Input::Value(_)])
            | (SpecKind::Binary(BinaryOp::Div), [Input::Value(_), Input::Number(_)]) => true,
            (SpecKind::Unary(UnaryOp::Cast), _) => scale.rounds.is_none(),
            _ => false,
        };
        let outer = &self.steps[step];
        let op = outer.reduces()?;
        let scalar = self.values[outer.output].scalar;
        let inner = made(outer)?;
        let mut at = inner;
        while op == ReduceOp::Sum && scalar.is_float() && scales(&self.steps[at]) {
            at = made(&self.steps[at])?;
        }
        let is_same = self.steps[at].reduces() == Some(op);
        (is_same && self.values[self.steps[at].output].scalar == scalar).then_some(inner)
    }

    /// Computes once what several steps compute.
    fn without_repeats(&mut self) {
        let mut number: Vec<usize> = (0..self.values.len()).collect();
        // Operands that are the same view of the same tensor.
        for (i, value) in self.values.iter().enumerate().filter(|(_, v)| v.source.is_some()) {
            if let Some(first) = self.values[..i].iter().position(|v| v == value) {
                number[i] = first;
            }
        }
        let mut kept: Vec<Step> = vec![];
        for mut step in std::mem::take(&mut self.steps) {
            for input in &mut step.inputs {
                if let Input::Value(v) = input {
                    *v = number[*v];
                }
            }
            let alike = |s: &&Step| {
                let (a, b) = (&self.values[s.output], &self.values[step.output]);
                a == b && Step { output: step.output, ..(*s).clone() } == step
            };
            match kept.iter().find(alike) {
                Some(first) => number[step.output] = first.output,
                None => kept.push(step),
            }
        }
        self.steps = kept;
        self.outputs.iter_mut().for_each(|o| o.value = number[o.value]);
    }

    /// The graph of one slice: without these modes, along which nothing is reduced. `names`: of the
    /// coordinates. None where a step is no operation of slices.
    pub(crate) fn sliced(&self, modes: &[usize], names: &[String]) -> Option<Self> {
        let extents = self.extents()?;
        let mut out = self.clone();
        let at = |own: &[i64]| -> Vec<Option<Expr>> {
            let one = |m: usize| match modes.iter().position(|s| *s == m) {
                None => None,
                Some(_) if own[m] == 1 => Some(Expr::int(0)),
                Some(i) => Some(Expr::name(&names[i])),
            };
            (0..own.len()).map(one).collect()
        };
        let kept = |own: &[i64]| -> Vec<i64> {
            (0..own.len()).filter(|m| !modes.contains(m)).map(|m| own[m]).collect()
        };
        let slice = |source: &Source, own: &[i64]| -> Source {
            let layout = source.layout.as_ref().and_then(|l| {
                let all: Vec<_> = l.modes();
                Layout::concat(&kept_of(&all, modes)).ok()
            });
            let view = source.view.clone().then(ViewOp::Index(at(own)));
            Source { view, layout, counts: source.counts }
        };
        for value in out.values.iter_mut().filter(|v| !v.extents.is_empty()) {
            if let Some(source) = &mut value.source {
                *source = slice(source, &value.extents);
            }
            value.extents = kept(&value.extents);
        }
        for output in &mut out.outputs {
            let once = modes
                .iter()
                .zip(names)
                .filter(|(m, _)| output.extents.get(**m) == Some(&1) && extents[**m] > 1);
            output.once.extend(once.map(|(_, name)| name.clone()));
            output.to = slice(&output.to, &output.extents);
            output.extents = kept(&output.extents);
        }
        // What a strategy tiles is written by all blocks.
        if !out.outputs.get(out.main()?)?.once.is_empty() {
            return None;
        }
        for step in &mut out.steps {
            if step.axes.iter().any(|a| modes.contains(a)) {
                return None;
            }
            if step.kind.is_product() && modes.iter().any(|m| m + 2 >= extents.len()) {
                return None;
            }
            for axis in &mut step.axes {
                *axis -= modes.iter().filter(|m| **m < *axis).count();
            }
        }
        out.outer.extend(modes.iter().zip(names).map(|(m, name)| (name.clone(), extents[*m])));
        Some(out)
    }

    /// The graph with its modes sorted by the strides of the first output, the largest first, and
    /// modes merged that are contiguous in all operands. None if nothing changes.
    pub(crate) fn joined(&self) -> Option<Self> {
        let matmul = |s: &Step| s.kind.is_product();
        if self.steps.iter().any(matmul) {
            return None;
        }
        let extents = self.extents()?;
        // Products of symbols are no extents that anything is known of.
        if extents.iter().any(|n| self.symbols.contains_key(n)) {
            return None;
        }
        let rank = extents.len();
        let order = self.slowest_first(&extents)?;
        let operands = self.operand_strides()?;
        let groups = self.groups(&extents, order, &operands);
        if groups.iter().map(Vec::len).eq(std::iter::repeat_n(1, rank))
            && groups.iter().flatten().copied().eq(0..rank)
        {
            return None;
        }
        self.grouped(&groups)
    }

    /// The modes in the order of the strides of the largest operand, the largest first.
    fn slowest_first(&self, extents: &[i64]) -> Option<Vec<usize>> {
        let size = |own: &[i64]| own.iter().fold(1i64, |n, e| n.saturating_mul(*e));
        let outputs = self.outputs.iter().map(|o| (size(&o.extents), &o.to));
        let inputs = self.values.iter().filter(|v| !v.extents.is_empty());
        let inputs = inputs.filter_map(|v| Some((size(&v.extents), v.source.as_ref()?)));
        // The last of the largest: an output, where it is one.
        let (_, largest) = inputs.chain(outputs).max_by_key(|(size, _)| *size)?;
        let first = strides(largest)?;
        let mut order: Vec<usize> = (0..extents.len()).collect();
        // Modes of one element have no stride that means something.
        order.sort_by_key(|m| {
            (std::cmp::Reverse(if extents[*m] == 1 { i64::MAX } else { first[*m] }), *m)
        });
        Some(order)
    }

    /// Extents and strides of all operands of memory.
    fn operand_strides(&self) -> Option<Vec<(Vec<i64>, Vec<i64>)>> {
        let mut operands: Vec<(Vec<i64>, Vec<i64>)> = vec![];
        for value in self.values.iter().filter(|v| !v.extents.is_empty()) {
            if let Some(source) = &value.source {
                if source.counts {
                    return None;
                }
                operands.push((value.extents.clone(), strides(source)?));
            }
        }
        for output in self.outputs.iter().filter(|o| !o.extents.is_empty()) {
            operands.push((output.extents.clone(), strides(&output.to)?));
        }
        Some(operands)
    }

    /// Groups of modes that follow one another in all operands. Each group runs from the slowest
    /// mode to the fastest.
    fn groups(
        &self,
        extents: &[i64],
        order: Vec<usize>,
        operands: &[(Vec<i64>, Vec<i64>)],
    ) -> Vec<Vec<usize>> {
        let reduced =
            |m: usize| self.steps.iter().map(|s| s.axes.contains(&m)).collect::<Vec<bool>>();
        let follows = |a: usize, b: usize| {
            reduced(a) == reduced(b)
                && operands.iter().all(|(e, s)| match (e[a], e[b]) {
                    (1, 1) => true,
                    (ea, eb) => {
                        ea == extents[a] && eb == extents[b] && s[b].checked_mul(eb) == Some(s[a])
                    }
                })
                && self
                    .values
                    .iter()
                    .all(|v| v.extents.is_empty() || (v.extents[a] == 1) == (v.extents[b] == 1))
        };
        let mut groups: Vec<Vec<usize>> = vec![];
        for m in order {
            match groups.last_mut() {
                Some(last) if extents[m] == 1 || last.iter().all(|l| extents[*l] == 1) => {
                    last.push(m)
                }
                Some(last) if last.last().is_some_and(|l| follows(*l, m)) => last.push(m),
                _ => groups.push(vec![m]),
            }
        }
        groups
    }

    /// The graph whose modes are these groups of modes.
    fn grouped(&self, groups: &[Vec<usize>]) -> Option<Self> {
        let together = |own: &[i64]| -> Vec<i64> {
            groups.iter().map(|g| g.iter().map(|m| own[*m]).product()).collect()
        };
        let whole = |source: &Source, own: &[i64]| -> Option<Source> {
            Some(Source {
                view: regrouped(source.view.clone(), own, groups),
                layout: regrouped_layout(source.layout.as_ref()?, groups),
                counts: source.counts,
            })
        };
        let mut out = self.clone();
        for value in out.values.iter_mut().filter(|v| !v.extents.is_empty()) {
            if let Some(source) = &mut value.source {
                *source = whole(source, &value.extents)?;
            }
            value.extents = together(&value.extents);
        }
        for output in out.outputs.iter_mut().filter(|o| !o.extents.is_empty()) {
            output.to = whole(&output.to, &output.extents)?;
            output.extents = together(&output.extents);
        }
        for step in &mut out.steps {
            let has = |g: &[usize]| g.iter().any(|m| step.axes.contains(m));
            step.axes = (0..groups.len()).filter(|i| has(&groups[*i])).collect();
        }
        Some(out)
    }
}

/// The stride of each mode of an operand; none where a mode has several.
fn strides(source: &Source) -> Option<Vec<i64>> {
    // Elements around an operand do not follow its own in memory.
    if source.view.ops.iter().any(|op| matches!(op, ViewOp::Pad(_))) {
        return None;
    }
    let modes = source.layout.as_ref()?.modes();
    let one = |m: &Layout| {
        let m = m.coalesce();
        match m.leaves() {
            [] => Some(0),
            [(_, s)] => Some(*s),
            _ => None,
        }
    };
    modes.iter().map(one).collect()
}

impl Output {
    /// Sees the operand with the modes of extent 1 of the value that it becomes, where it lacks
    /// them.
    fn with_modes_of(&mut self, value: &[i64]) {
        let more = |e: &&i64| **e > 1;
        if value.len() <= self.extents.len()
            || !value.iter().filter(more).eq(self.extents.iter().filter(more))
        {
            return;
        }
        let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
        let mut modes =
            self.to.layout.as_ref().map(|l| l.modes().into_iter().filter(|m| m.size() > 1));
        let (mut step, mut stride, mut laid) = (1i64, vec![], vec![]);
        for extent in value {
            stride.push(leaf(if *extent > 1 { step } else { 0 }));
            step = step.saturating_mul(*extent);
            laid.push(match *extent > 1 {
                true => modes.as_mut().and_then(Iterator::next),
                false => Layout::of_mode(1, 0).ok(),
            });
        }
        let shape = TupleExpr::Tuple(value.iter().copied().map(leaf).collect());
        let (stride, span) = (TupleExpr::Tuple(stride), carbyne_ir::span::Span::default());
        self.to.view.ops.push(ViewOp::Reshape(LayoutExpr { shape, stride, span }));
        let laid: Option<Vec<Layout>> = laid.into_iter().collect();
        self.to.layout = laid.and_then(|l| Layout::concat(&l).ok());
        self.extents = value.to_vec();
    }
}

fn kept_of(all: &[Layout], without: &[usize]) -> Vec<Layout> {
    (0..all.len()).filter(|m| !without.contains(m)).map(|m| all[m].clone()).collect()
}

/// The view with groups of modes as modes, each group given from its slowest mode to its fastest.
fn regrouped(view: View, own: &[i64], groups: &[Vec<usize>]) -> View {
    let leaf = |v: i64| TupleExpr::Leaf(Expr::int(v));
    let order: Vec<usize> = groups.iter().flatten().copied().collect();
    let rank = own.len();
    // The fastest mode first, so that column-major order is that of memory.
    let reversed: Vec<usize> = order.iter().rev().copied().collect();
    let view = match reversed.iter().copied().eq(0..rank) {
        true => view,
        false => {
            view.then(ViewOp::Permute(reversed.iter().map(|m| Expr::int(*m as i64)).collect()))
        }
    };
    let mut step = 1i64;
    let mut steps = vec![];
    for group in groups.iter().rev() {
        steps.push(step);
        step = group.iter().fold(step, |n, m| n.saturating_mul(own[*m]));
    }
    steps.reverse();
    let extents = groups.iter().map(|g| g.iter().map(|m| own[*m]).product::<i64>());
    let (shape, stride): (Vec<_>, Vec<_>) =
        extents.map(leaf).zip(steps.into_iter().map(leaf)).unzip();
    view.then(ViewOp::Reshape(LayoutExpr {
        shape: TupleExpr::Tuple(shape),
        stride: TupleExpr::Tuple(stride),
        span: carbyne_ir::span::Span::default(),
    }))
}

fn regrouped_layout(layout: &Layout, groups: &[Vec<usize>]) -> Option<Layout> {
    let modes = layout.modes();
    let mut out = vec![];
    for group in groups {
        let own: Vec<Layout> = group.iter().rev().map(|m| modes[*m].clone()).collect();
        out.push(Layout::concat(&own).ok()?.coalesce());
    }
    Layout::concat(&out).ok()
}

struct Builder<'p> {
    p: &'p Program,
    graph: Graph,
    /// Values of operands.
    known: HashMap<TensorId, usize>,
}

impl Builder<'_> {
    fn extents(&self, t: TensorId) -> Result<Vec<i64>, Opaque> {
        ops::extents(self.p, t).ok_or_else(|| Opaque::Symbolic(self.p.tensor_name(t)))
    }

    fn source(&self, t: TensorId, view: &View) -> Result<Source, Opaque> {
        let buffer = self.p.buffer_of(t);
        let number = buffer.memory.is_none_or(Memory::is_number);
        if !buffer.is_global() && !number {
            return Err(Opaque::NotGlobal(self.p.tensor_name(t)));
        }
        let flat = buffer.gather.is_none() && !number;
        let modes: Option<Vec<Layout>> =
            self.p.tensors[t].levels.iter().flat_map(Layout::modes).map(|m| m.to_fixed()).collect();
        let layout = modes.filter(|_| flat).and_then(|m| Layout::concat(&m).ok());
        Ok(Source { view: view.clone(), layout, counts: false })
    }

    fn operand(&mut self, t: TensorId, view: &View) -> Result<usize, Opaque> {
        let value = Value {
            extents: self.extents(t)?,
            scalar: self.p.scalar_of(t),
            source: Some(self.source(t, view)?),
        };
        self.graph.values.push(value);
        let id = self.graph.values.len() - 1;
        self.known.insert(t, id);
        Ok(id)
    }

    fn push(&mut self, extents: Vec<i64>, scalar: Scalar) -> usize {
        self.graph.values.push(Value { extents, scalar, source: None });
        self.graph.values.len() - 1
    }

    /// The view of a value: a view of an operand, or the same pointwise steps on views of their
    /// inputs. None for other values.
    fn seen(&mut self, v: usize, seen: &Seen<'_>, depth: usize) -> Option<usize> {
        let Value { extents: own, scalar, source } = self.graph.values.get(v)?.clone();
        let extents = seen.extents.clone();
        if let Some(source) = source {
            let mut view = source.view.clone();
            view.ops.extend(seen.ops.iter().cloned());
            let layout = source.layout.as_ref().zip(seen.layout.as_ref());
            let layout = layout.and_then(|(own, seen)| composed(own, seen));
            let source = Some(Source { view, layout, counts: source.counts });
            self.graph.values.push(Value { extents, scalar, source });
            return Some(self.graph.values.len() - 1);
        }
        let mut step = self.graph.steps.get(self.graph.maker(v)?)?.clone();
        if !step.is_pointwise() || depth > MOST_SEEN {
            return None;
        }
        for input in &mut step.inputs {
            let Input::Value(from) = input else { continue };
            let theirs = self.graph.values.get(*from)?.extents.clone();
            if theirs.is_empty() {
                continue;
            }
            *from = if theirs == own {
                self.seen(*from, seen, depth + 1)?
            } else {
                let (layout, reshape) = seen.broadcast(&own, &theirs)?;
                let extents = layout.modes().iter().map(Layout::size).collect();
                let (layout, ops) = (Some(layout), &[ViewOp::Reshape(reshape)][..]);
                self.seen(*from, &Seen { layout, is_first: true, ops, extents }, depth + 1)?
            };
        }
        step.output = self.push(extents, scalar);
        let output = step.output;
        self.graph.steps.push(step);
        Some(output)
    }

    /// The coordinates of a value along a mode.
    fn coordinates(&mut self, v: usize, mode: usize) -> Option<usize> {
        let Value { extents, source, .. } = self.graph.values.get(v)?.clone();
        // A result has the coordinates of any operand of its extents.
        let alike = || {
            let inputs = self.graph.values.iter().filter(|i| i.extents == extents);
            let outputs = self.graph.outputs.iter().filter(|o| o.extents == extents);
            let inputs = inputs.filter_map(|i| i.source.clone());
            let outputs = outputs.map(|o| o.to.clone());
            inputs.filter(|s| !s.counts).chain(outputs).next()
        };
        let view = source.or_else(alike)?.view.then(ViewOp::Iota(Expr::int(mode as i64)));
        let source = Some(Source { view, layout: None, counts: true });
        self.graph.values.push(Value { extents, scalar: Scalar::I32, source });
        Some(self.graph.values.len() - 1)
    }

    /// A spec that is no generic one.
    fn single(&mut self, spec: &program::Spec, written: &Spec) -> Result<(), Opaque> {
        let Some(output) = self.graph.outputs.first().cloned() else {
            return Err(Opaque::Kind(spec.kind));
        };
        let mut inputs = vec![];
        for operand in &spec.inputs {
            inputs.push(match operand {
                program::Operand::Tensor(t) => Input::Value(self.known[t]),
                program::Operand::Number(n) => Input::Number(*n),
            });
        }
        let axes = spec.axes().unwrap_or_default();
        let real = |s: Scalar| if s.is_float() { Scalar::F64 } else { s };
        let scalar = real(output.scalar);
        let mut extents = output.extents.clone();
        // Onto what is there.
        let mut onto: Option<BinaryOp> = None;
        let (kind, typed) = match spec.kind {
            kind if kind.is_product() => {
                onto = kind.reads_output().then_some(BinaryOp::Add);
                (step_kind(kind)?, spec.acc)
            }
            SpecKind::Reduction(_) => {
                // The result has removed modes as 1; the output may lack them.
                if let Some(Input::Value(v)) = inputs.first() {
                    extents.clone_from(&self.graph.values[*v].extents);
                    for axis in &axes {
                        if let Some(e) = extents.get_mut(*axis) {
                            *e = 1;
                        }
                    }
                }
                (step_kind(spec.kind)?, None)
            }
            SpecKind::Accumulate(op) => {
                onto = Some(op.binary());
                (SpecKind::Move, None)
            }
            SpecKind::Unary(UnaryOp::Cast) => (spec.kind, Some(output.scalar)),
            kind => (step_kind(kind)?, None),
        };
        let mut value = self.push(extents.clone(), scalar);
        let rounds = None;
        self.graph.steps.push(Step { kind, axes, scalar: typed, rounds, inputs, output: value });
        if let Some(op) = onto {
            let (Some(view), Some(t)) = (written.outputs.first(), spec.outputs.first()) else {
                return Err(Opaque::Kind(spec.kind));
            };
            let before = self.operand(*t, view)?;
            let sum = self.push(extents, scalar);
            let inputs = vec![Input::Value(before), Input::Value(value)];
            let kind = SpecKind::Binary(op);
            let (axes, scalar) = (vec![], None);
            self.graph.steps.push(Step { kind, axes, scalar, rounds, inputs, output: sum });
            value = sum;
        }
        self.graph.outputs[0].value = value;
        Ok(())
    }

    /// The steps of a `means` block.
    fn means(
        &mut self,
        means: &program::Means,
        outputs: &[TensorId],
        written: &[View],
    ) -> Result<(), Opaque> {
        let constant = |v: &program::MeansValue| -> Result<Vec<i64>, Opaque> {
            let all: Option<Vec<i64>> = v.extents.iter().map(|e| e.as_const()).collect();
            all.ok_or_else(|| Opaque::Symbolic(v.name.clone().unwrap_or_else(|| "a result".into())))
        };
        let mut of: Vec<Option<usize>> = vec![None; means.values.len()];
        for (i, value) in means.values.iter().enumerate() {
            let Some(t) = value.operand else { continue };
            of[i] = match self.known.get(&t) {
                Some(v) => Some(*v),
                None => {
                    // An output, as it is before.
                    let Some(n) = outputs.iter().position(|o| *o == t) else { continue };
                    Some(self.operand(t, &written[n])?)
                }
            };
        }
        for (step, rounds) in means.steps.iter().zip(means.roundings()) {
            let extents = constant(&means.values[step.output])?;
            let scalar = means.values[step.output].scalar;
            let scalar = if scalar.is_float() { Scalar::F64 } else { scalar };
            let mut inputs = vec![];
            for input in &step.inputs {
                inputs.push(match input {
                    MeansInput::Value(v) => Input::Value(of[*v].ok_or(Opaque::Meaningless)?),
                    MeansInput::Number(n) => Input::Number(*n),
                    MeansInput::Size(_) => return Err(Opaque::Symbolic("a number".into())),
                });
            }
            of[step.output] = Some(self.means_step(step, inputs, (extents, scalar), rounds)?);
        }
        for (output, value) in self.graph.outputs.iter_mut().zip(&means.outputs) {
            output.value = of.get(*value).copied().flatten().ok_or(Opaque::Meaningless)?;
        }
        Ok(())
    }

    /// The value that a step of a `means` block makes.
    fn means_step(
        &mut self,
        step: &MeansStep,
        inputs: Vec<Input>,
        (mut extents, scalar): (Vec<i64>, Scalar),
        rounds: Option<Scalar>,
    ) -> Result<usize, Opaque> {
        let first = match inputs.first() {
            Some(Input::Value(v)) => Some(*v),
            _ => None,
        };
        let opaque = || Opaque::ViewOfResult(read(&step.inputs, 0));
        match &step.op {
            MeansOp::View { layout, offset, ops } => {
                let Some(v) = first else { return Err(Opaque::Meaningless) };
                let is_first = offset.as_const() == Some(0);
                let seen = Seen { layout: layout.to_fixed(), is_first, ops, extents };
                self.seen(v, &seen, 0).ok_or_else(opaque)
            }
            MeansOp::Pad { before, value, pad } => {
                let v = first.ok_or(Opaque::Meaningless)?;
                let before: Option<Vec<i64>> = before.iter().map(|n| n.as_const()).collect();
                let before = before.ok_or_else(|| Opaque::Symbolic("a pad".into()))?;
                let own = self.graph.values[v].extents.clone();
                let (before, own) = (&before[..], &own[..]);
                let around = Around { pad, before, own, extents: &extents, value: *value };
                self.padded(v, &around).ok_or_else(opaque)
            }
            MeansOp::Gather { axis } => self.gathered(step, &inputs, *axis, extents),
            MeansOp::Spec { kind: SpecKind::Iota, axes, .. } => {
                let Some(v) = first else { return Err(Opaque::Coordinates) };
                let mode = axes.first().copied().unwrap_or_default();
                self.coordinates(v, mode).ok_or(Opaque::Coordinates)
            }
            MeansOp::Spec { kind, axes, scalar: typed } => {
                if let (SpecKind::Reduction(_), Some(v)) = (kind, first) {
                    extents.clone_from(&self.graph.values[v].extents);
                    axes.iter().for_each(|a| extents[*a] = 1);
                }
                let kind = step_kind(*kind)?;
                let output = self.push(extents, scalar);
                let (axes, scalar) = (axes.clone(), *typed);
                self.graph.steps.push(Step { kind, axes, scalar, rounds, inputs, output });
                Ok(output)
            }
        }
    }

    /// An operand with one mode indexed by another operand.
    fn gathered(
        &mut self,
        step: &MeansStep,
        inputs: &[Input],
        axis: usize,
        extents: Vec<i64>,
    ) -> Result<usize, Opaque> {
        let opaque = |i: usize| Opaque::ViewOfResult(read(&step.inputs, i));
        let [Input::Value(first), Input::Value(rows), ..] = *inputs else {
            return Err(opaque(0));
        };
        let Some(source) = self.graph.values[first].source.clone() else {
            return Err(opaque(0));
        };
        let Some(rows) = self.graph.values[rows].source.clone() else {
            return Err(opaque(1));
        };
        if !rows.view.ops.is_empty() {
            return Err(opaque(1));
        }
        let rank = self.graph.values[first].extents.len();
        let name = Name::new(rows.view.base.text.clone());
        let picks = (0..rank)
            .map(|m| if m == axis { Pick::From(name.clone()) } else { Pick::Keep })
            .collect();
        let view = source.view.then(ViewOp::Pick(picks));
        let scalar = self.graph.values[first].scalar;
        let source = Some(Source { view, layout: None, counts: false });
        self.graph.values.push(Value { extents, scalar, source });
        Ok(self.graph.values.len() - 1)
    }
}

/// A view of a value.
struct Seen<'a> {
    /// From coordinates to column-major indices of the value, if both are constants.
    layout: Option<Layout>,
    /// Whether coordinate zero of the view is coordinate zero of the value.
    is_first: bool,
    /// As it is written.
    ops: &'a [ViewOp],
    /// Of each mode.
    extents: Vec<i64>,
}

impl Seen<'_> {
    /// Moves the view before the broadcast of an input with extents `from`: modes along its extents
    /// of 1 get extent 1. None if a mode runs along both kinds of extents.
    fn broadcast(&self, own: &[i64], from: &[i64]) -> Option<(Layout, LayoutExpr)> {
        let layout = self.layout.as_ref().filter(|_| self.is_first && own.len() == from.len())?;
        let leaf = |n: i64| TupleExpr::Leaf(Expr::int(n));
        let (mut modes, mut shape, mut stride) = (vec![], vec![], vec![]);
        for mode in layout.modes() {
            let mut pieces = vec![];
            for (n, step) in mode.leaves() {
                pieces.extend(self::pieces(*n, *step, own)?);
            }
            pieces.retain(|(_, m, _)| own[*m] != from[*m] || from[*m] != 1);
            let is_one = |(_, m, _): &(i64, usize, i64)| from[*m] == 1;
            if pieces.iter().any(is_one) {
                if !pieces.iter().all(is_one) {
                    return None;
                }
                pieces.clear();
            }
            let before = |m: usize| from[..m].iter().try_fold(1i64, |n, e| n.checked_mul(*e));
            let steps: Option<Vec<(i64, i64)>> =
                pieces.iter().map(|(n, m, by)| Some((*n, before(*m)?.checked_mul(*by)?))).collect();
            let steps = steps.filter(|s| !s.is_empty()).unwrap_or_else(|| vec![(1, 0)]);
            let laid: Option<Vec<Layout>> =
                steps.iter().map(|(n, by)| Layout::of_mode(*n, *by).ok()).collect();
            match (&steps[..], laid?) {
                ([(n, by)], laid) => {
                    modes.extend(laid);
                    shape.push(leaf(*n));
                    stride.push(leaf(*by));
                }
                (steps, laid) => {
                    modes.push(Layout::concat(&laid).ok()?);
                    let (n, by) = steps.iter().map(|(n, by)| (leaf(*n), leaf(*by))).unzip();
                    shape.push(TupleExpr::Tuple(n));
                    stride.push(TupleExpr::Tuple(by));
                }
            }
        }
        let (shape, stride) = (TupleExpr::Tuple(shape), TupleExpr::Tuple(stride));
        let span = carbyne_ir::span::Span::default();
        Some((Layout::concat(&modes).ok()?, LayoutExpr { shape, stride, span }))
    }
}

/// Splits a leaf of a layout to column-major indices by the modes that it runs along: extent, mode
/// and step of each piece.
fn pieces(mut n: i64, step: i64, own: &[i64]) -> Option<Vec<(i64, usize, i64)>> {
    let mut out = vec![];
    let (mut before, mut at) = (1i64, step);
    for (m, extent) in own.iter().enumerate() {
        let next = before.checked_mul(*extent)?;
        if n > 1 && *extent > 1 && at < next {
            if at % before != 0 || *extent % (at / before) != 0 {
                return None;
            }
            let by = at / before;
            let here = n.min(extent / by);
            if n % here != 0 {
                return None;
            }
            out.push((here, m, by));
            n /= here;
            at = next;
        }
        before = next;
    }
    (n == 1).then_some(out)
}

/// The value that input `i` of a step of a `means` block reads.
fn read(inputs: &[MeansInput], i: usize) -> usize {
    match inputs.get(i) {
        Some(MeansInput::Value(v)) => *v,
        _ => usize::MAX,
    }
}

/// The layout of a view, whose layout names elements by column-major indices.
fn composed(own: &Layout, seen: &Layout) -> Option<Layout> {
    let modes: Option<Vec<Layout>> = seen.modes().iter().map(|m| own.compose(m).ok()).collect();
    Layout::concat(&modes?).ok()
}

impl Step {
    /// The values that it reads.
    pub(crate) fn values(&self) -> impl Iterator<Item = usize> + Clone {
        self.inputs.iter().filter_map(|i| match i {
            Input::Value(v) => Some(*v),
            Input::Number(_) => None,
        })
    }

    /// Whether an element of the result needs one element of each input alone, broadcast where that
    /// has extent 1.
    pub(crate) fn is_pointwise(&self) -> bool {
        self.kind.is_elementwise()
    }

    /// The operation of a Reduction.
    pub(crate) fn reduces(&self) -> Option<ReduceOp> {
        match self.kind {
            SpecKind::Reduction(op) => Some(op),
            _ => None,
        }
    }
}

/// How a value is padded.
struct Around<'a> {
    /// As it is written.
    pad: &'a Pad,
    /// How many elements are before the first of each mode.
    before: &'a [i64],
    /// Extents of the value, and with the elements around.
    own: &'a [i64],
    extents: &'a [i64],
    /// Value of these elements.
    value: f64,
}
