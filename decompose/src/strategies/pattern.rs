//! Matches the computation of a spec with the meaning of a strategy ([`Pattern::find`]).
//!
//! A `means` block of a strategy is a pattern: its specs are found among the steps of a [`Graph`],
//! and the steps between them belong to the sub-specs that it uses without defining them. Such a
//! sub-spec stands for any chain of pointwise operations, and of Reductions within the tiles that
//! it is given; one whose result has extent 1 where its operand has more stands for the Reduction
//! along these modes. Names, the order of commutative operands and views of operands make no
//! difference.

use super::found::{Bound, Found, Hole};
use super::graph::{Graph, Input, Step};
use carbyne_ir::ast::{
    Apply, AttrValue, Call, Def, Expr, ExprKind, Key, Operand, ResultType, SpecKind, StmtKind,
    TensorExpr, TupleExpr, TypeAttr,
};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;

/// What a strategy means.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    parts: Vec<Part>,
}

/// A statement of the `means` block.
#[derive(Clone, Debug)]
enum Part {
    /// A spec.
    Op {
        kind: SpecKind,
        axes: Vec<usize>,
        scalar: Option<String>,
        inputs: Vec<String>,
        output: String,
    },
    /// A sub-spec that the match defines.
    Hole { name: String, inputs: Vec<String>, outputs: Vec<(String, Option<ResultType>)> },
}

/// Why a strategy does not implement a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unlike {
    #[error("its `means` block has a statement that is no pattern")]
    NoPattern,
    #[error("it means something else: the spec has no {0}")]
    Lacks(SpecKind),
    #[error("it means something else: {0} is computed differently")]
    Otherwise(String),
    #[error("it means something else: {0} is left over")]
    LeftOver(SpecKind),
    #[error("`%{name}` has {wanted} modes in the strategy, but {found} here")]
    Rank { name: String, wanted: usize, found: usize },
    #[error("it means something else: its operands are not computed first")]
    Nothing,
    #[error("the strides of `%{0}` are not those of the strategy")]
    Strides(String),
    #[error("it means something else: `{name}` would be {first} and {second}")]
    Clash { name: String, first: String, second: String },
}

impl Unlike {
    /// Whether the strategy means something else.
    pub(crate) fn is_of_meaning(&self) -> bool {
        !matches!(self, Unlike::NoPattern | Unlike::Rank { .. } | Unlike::Strides(_))
    }
}

impl Pattern {
    /// Of a strategy.
    pub(crate) fn of(def: &Def) -> Result<Self, Unlike> {
        let mut parts = vec![];
        for stmt in def.means.iter().flat_map(|block| &block.stmts) {
            match &stmt.kind {
                StmtKind::Call(call) => parts.push(hole(call)?),
                StmtKind::Assign { target, value, .. } if target.ops.is_empty() => {
                    let TensorExpr::Apply(apply) = value else { return Err(Unlike::NoPattern) };
                    let mut fresh = 0;
                    flat(apply, target.base.text.clone(), &mut fresh, &mut parts)?;
                }
                StmtKind::Spec(spec) => {
                    let inputs: Option<Vec<String>> = spec.inputs.iter().map(plain).collect();
                    let (Some(inputs), [output]) = (inputs, &spec.outputs[..]) else {
                        return Err(Unlike::NoPattern);
                    };
                    let (axes, scalar) = said(&spec.attrs);
                    let output = output.base.text.clone();
                    parts.push(Part::Op { kind: spec.kind, axes, scalar, inputs, output });
                }
                _ => return Err(Unlike::NoPattern),
            }
        }
        Ok(Pattern { parts })
    }

    /// Every way in which a graph is an instance of it; why there is none.
    pub(crate) fn find(&self, def: &Def, graph: &Graph) -> Result<Vec<Found>, Unlike> {
        let concrete: Vec<usize> =
            (0..self.parts.len()).filter(|i| matches!(self.parts[*i], Part::Op { .. })).collect();
        let mut out = vec![];
        let mut why = None;
        let mut chosen = vec![];
        self.choose(def, graph, &concrete, &mut chosen, &mut out, &mut why);
        if out.is_empty() { Err(why.unwrap_or(Unlike::NoPattern)) } else { Ok(out) }
    }

    /// Gives each spec of the pattern a step.
    fn choose(
        &self,
        def: &Def,
        graph: &Graph,
        concrete: &[usize],
        chosen: &mut Vec<usize>,
        out: &mut Vec<Found>,
        why: &mut Option<Unlike>,
    ) {
        let Some(part) = concrete.get(chosen.len()) else {
            // Operands of a commutative operation in both orders.
            match self.assemble(def, graph, concrete, chosen) {
                Ok(found) => out.push(found),
                Err(e) => drop(why.get_or_insert(e)),
            }
            return;
        };
        let Part::Op { kind, axes, .. } = &self.parts[*part] else { return };
        let same = |s: &Step| {
            let wanted = if *kind == SpecKind::MatMul { SpecKind::MatMulSet } else { *kind };
            s.kind == wanted && (axes.is_empty() || s.axes == *axes)
        };
        let mut any = false;
        for (i, step) in graph.steps.iter().enumerate() {
            if same(step) && !chosen.contains(&i) {
                any = true;
                chosen.push(i);
                self.choose(def, graph, concrete, chosen, out, why);
                chosen.pop();
            }
        }
        if !any {
            why.get_or_insert(Unlike::Lacks(*kind));
        }
    }

    fn assemble(
        &self,
        def: &Def,
        graph: &Graph,
        concrete: &[usize],
        chosen: &[usize],
    ) -> Result<Found, Unlike> {
        let mut all = Assembly {
            pattern: self,
            def,
            graph,
            found: Found {
                operands: BTreeMap::new(),
                numbers: BTreeMap::new(),
                types: BTreeMap::new(),
                holes: BTreeMap::new(),
            },
            values: BTreeMap::new(),
            used: vec![false; graph.steps.len()],
        };
        all.specs(concrete, chosen)?;
        all.outputs()?;
        // Chains end where the pattern begins again: at results of its specs.
        let ends: Vec<usize> = chosen.iter().map(|s| graph.steps[*s].output).collect();
        for part in self.parts.iter().rev() {
            if let Part::Hole { name, inputs, outputs } = part {
                all.hole(name, inputs, outputs, &ends)?;
            }
        }
        self.something_before(def, &all.found, graph, &all.values)?;
        if let Some(left) = all.used.iter().position(|u| !u) {
            return Err(Unlike::LeftOver(graph.steps[left].kind));
        }
        all.operands()?;
        all.types()?;
        Ok(all.found)
    }

    /// What stands between operands and a spec of the pattern computes something, if a cast to one
    /// type; where nothing does, another strategy is meant.
    fn something_before(
        &self,
        def: &Def,
        found: &Found,
        graph: &Graph,
        values: &BTreeMap<&str, usize>,
    ) -> Result<(), Unlike> {
        let formal = |name: &String| def.inputs.iter().any(|(n, _)| n.text == *name);
        let before = self.parts.iter().filter_map(|part| match part {
            Part::Hole { name, inputs, outputs } => {
                let [(output, _)] = &outputs[..] else { return None };
                (inputs.iter().all(formal) && self.is_factor(output)).then_some(name)
            }
            Part::Op { .. } => None,
        });
        let steps = |name: &String| match found.holes.get(name) {
            Some(Hole::Chain { steps, .. }) => steps.len(),
            Some(Hole::Fold { .. }) | None => 0,
        };
        let casts = |name: &String| match found.holes.get(name) {
            Some(Hole::Chain { output, .. }) => {
                let mut names = values.iter().filter(|(_, v)| *v == output).map(|(n, _)| *n);
                let own = super::scalars::scalar_of(graph, *output);
                names.any(|n| self.factor(n, graph, values).is_some_and(|s| s != own))
            }
            Some(Hole::Fold { .. }) | None => false,
        };
        let all: Vec<bool> = before.map(|name| steps(name) > 0 || casts(name)).collect();
        match all.iter().all(|some| !some) && !all.is_empty() {
            true => Err(Unlike::Nothing),
            false => Ok(()),
        }
    }

    /// The type of a factor of a MatMul: that which holds the values of both, since no instruction
    /// takes two of most types.
    fn factor(&self, name: &str, graph: &Graph, values: &BTreeMap<&str, usize>) -> Option<Scalar> {
        self.parts.iter().find_map(|part| {
            let Part::Op { kind: SpecKind::MatMul | SpecKind::MatMulSet, inputs, .. } = part else {
                return None;
            };
            let [a, b] = &inputs[..] else { return None };
            let other = match (a == name, b == name) {
                (true, _) => b,
                (_, true) => a,
                _ => return None,
            };
            let of = |n: &str| Some(super::scalars::scalar_of(graph, *values.get(n)?));
            Some(both(of(name)?, of(other)?))
        })
    }

    /// Whether a spec of the pattern reads what that name stands for.
    fn is_factor(&self, name: &str) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Op { inputs, .. } => inputs.iter().any(|i| i == name),
            Part::Hole { .. } => false,
        })
    }

    /// Of a hole behind a Reduction of the pattern the value where it begins: the only Reduction's
    /// result.
    fn folds_before(
        &self,
        inputs: &[String],
        graph: &Graph,
        values: &BTreeMap<&str, usize>,
    ) -> Option<usize> {
        let folds = |name: &str| {
            self.parts.iter().any(|p| match p {
                Part::Hole { inputs, outputs, .. } => {
                    let sized = |(n, ty): &(String, Option<ResultType>)| {
                        n == name && ty.as_ref().is_some_and(reduces)
                    };
                    inputs.len() == 1 && outputs.iter().any(sized)
                }
                Part::Op { .. } => false,
            })
        };
        let [input] = inputs else { return None };
        if values.contains_key(input.as_str()) || !folds(input) {
            return None;
        }
        let mut all = graph.steps.iter().filter(|s| s.reduces().is_some());
        let first = all.next()?;
        all.next().is_none().then_some(first.output)
    }
}

/// An unfinished match.
struct Assembly<'a> {
    pattern: &'a Pattern,
    def: &'a Def,
    graph: &'a Graph,
    found: Found,
    /// The values of the names of the pattern.
    values: BTreeMap<&'a str, usize>,
    /// Whether each step belongs to the match.
    used: Vec<bool>,
}

impl<'a> Assembly<'a> {
    /// Enters the steps that were chosen for the specs of the pattern.
    fn specs(&mut self, concrete: &[usize], chosen: &[usize]) -> Result<(), Unlike> {
        let (graph, def) = (self.graph, self.def);
        for (part, step) in concrete.iter().zip(chosen) {
            let Part::Op { scalar, output, inputs, .. } = &self.pattern.parts[*part] else {
                continue;
            };
            let step_of = &graph.steps[*step];
            self.used[*step] = true;
            self.values.insert(output, step_of.output);
            for (name, input) in inputs.iter().zip(&step_of.inputs) {
                let Input::Value(v) = input else {
                    return Err(Unlike::Otherwise(format!("%{name}")));
                };
                if *self.values.entry(name).or_insert(*v) != *v {
                    return Err(Unlike::Otherwise(format!("%{name}")));
                }
            }
            if let Some(name) = scalar {
                let made = step_of.scalar.unwrap_or_else(|| accumulates(graph, step_of));
                typed(def, &mut self.found, name, made)?;
            }
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<(), Unlike> {
        let Some(main) = self.graph.main() else {
            return Err(Unlike::NoPattern);
        };
        let output = &self.graph.outputs[main];
        for (name, _) in &self.def.outputs {
            self.values.entry(&name.text).or_insert(output.value);
            if self.values[name.text.as_str()] != output.value {
                return Err(Unlike::Otherwise(format!("%{}", name.text)));
            }
            let (source, extents) = (output.to.clone(), output.extents.clone());
            let bound = Bound { source, extents, scalar: output.scalar };
            self.found.operands.insert(name.text.clone(), bound);
        }
        Ok(())
    }

    /// Finds the steps that match a sub-spec of the pattern.
    fn hole(
        &mut self,
        name: &str,
        inputs: &'a [String],
        outputs: &'a [(String, Option<ResultType>)],
        ends: &[usize],
    ) -> Result<(), Unlike> {
        let [(output, ty)] = outputs else { return Err(Unlike::NoPattern) };
        let Some(&value) = self.values.get(output.as_str()) else {
            return Err(Unlike::Otherwise(format!("%{output}")));
        };
        let hole = match inputs {
            [input] if ty.as_ref().is_some_and(reduces) => self.fold(input, output, value)?,
            _ => {
                let last = self.def.outputs.iter().any(|(n, _)| n.text == *output);
                self.chain(inputs, value, last, ends)?
            }
        };
        self.found.holes.insert(name.to_owned(), hole);
        Ok(())
    }

    /// Matches a sub-spec with a Reduction.
    fn fold(&mut self, input: &'a str, output: &str, value: usize) -> Result<Hole, Unlike> {
        let step = self.graph.maker(value).filter(|s| self.graph.steps[*s].reduces().is_some());
        let Some(step) = step else { return Err(Unlike::Otherwise(format!("%{output}"))) };
        let Some(Input::Value(from)) = self.graph.steps[step].inputs.first().copied() else {
            return Err(Unlike::Otherwise(format!("%{output}")));
        };
        self.used[step] = true;
        if *self.values.entry(input).or_insert(from) != from {
            return Err(Unlike::Otherwise(format!("%{input}")));
        }
        Ok(Hole::Fold { step })
    }

    /// Matches a sub-spec with the chain of steps that ends in `value`. The last chain ends in all
    /// outputs.
    fn chain(
        &mut self,
        inputs: &'a [String],
        value: usize,
        last: bool,
        ends: &[usize],
    ) -> Result<Hole, Unlike> {
        let graph = self.graph;
        // The walk back from `value` stops at values of the pattern and at results of its specs.
        let stop: Vec<usize> = inputs
            .iter()
            .filter_map(|n| self.values.get(n.as_str()).copied())
            .chain(ends.iter().copied())
            .collect();
        let folded = self.pattern.folds_before(inputs, graph, &self.values);
        let mut from: Vec<usize> = vec![value];
        if last {
            from.extend(graph.outputs.iter().map(|o| o.value));
        }
        let (steps, reached) =
            self.steps_before(from, |v| stop.contains(&v) || folded == Some(v))?;
        let mut own = vec![];
        for input in inputs {
            own.push(self.chain_input(input, value, &steps, folded)?);
        }
        if let Some(v) = reached.iter().find(|v| !own.contains(v)) {
            let step = graph.maker(*v).map_or(SpecKind::Move, |s| graph.steps[s].kind);
            return Err(Unlike::LeftOver(step));
        }
        Ok(Hole::Chain { steps, inputs: own, output: value, all: last })
    }

    /// The steps that compute the `open` values, and the values where they end.
    fn steps_before(
        &mut self,
        mut open: Vec<usize>,
        ends: impl Fn(usize) -> bool,
    ) -> Result<(Vec<usize>, Vec<usize>), Unlike> {
        let (mut steps, mut reached) = (vec![], vec![]);
        while let Some(v) = open.pop() {
            if ends(v) {
                reached.push(v);
                continue;
            }
            let Some(s) = self.graph.maker(v) else { continue };
            if steps.contains(&s) {
                continue;
            }
            let step = &self.graph.steps[s];
            if !step.is_pointwise() && step.reduces().is_none() {
                return Err(Unlike::LeftOver(step.kind));
            }
            self.used[s] = true;
            steps.push(s);
            open.extend(step.values());
        }
        steps.sort_unstable();
        Ok((steps, reached))
    }

    /// The value that a chain of these steps reads under a name of the pattern.
    fn chain_input(
        &mut self,
        input: &'a str,
        value: usize,
        steps: &[usize],
        folded: Option<usize>,
    ) -> Result<usize, Unlike> {
        if let Some(v) = self.values.get(input) {
            return Ok(*v);
        }
        let is_formal = self.def.inputs.iter().any(|(n, _)| n.text == input);
        let found = if is_formal { self.operand_of(steps, value) } else { folded };
        let Some(found) = found else {
            return Err(Unlike::Otherwise(format!("%{input}")));
        };
        self.values.insert(input, found);
        Ok(found)
    }

    /// The first operand with the extents of the result; without one, the first whose rows are
    /// reduced to the result.
    fn operand_of(&self, steps: &[usize], value: usize) -> Option<usize> {
        let graph = self.graph;
        let wanted = &graph.values[value].extents;
        let operands = steps
            .iter()
            .flat_map(|s| graph.steps[*s].values())
            .chain([value])
            .filter(|v| graph.values[*v].source.as_ref().is_some_and(|s| !s.counts));
        let is_reduced = |v: &usize| {
            let of = &graph.values[*v].extents;
            let mut modes = of.iter().zip(wanted);
            of.len() == wanted.len() && modes.all(|(n, left)| n == left || *left == 1)
        };
        let mut all = operands.clone();
        let alike = all.find(|v| graph.values[*v].extents == *wanted);
        alike.or_else(|| operands.clone().find(is_reduced))
    }

    /// Enters the operands that the pattern reads.
    fn operands(&mut self) -> Result<(), Unlike> {
        for (name, _) in &self.def.inputs {
            let Some(v) = self.values.get(name.text.as_str()) else {
                return Err(Unlike::Otherwise(format!("%{}", name.text)));
            };
            let value = &self.graph.values[*v];
            let Some(source) = value.source.clone().filter(|s| !s.counts) else {
                return Err(Unlike::Otherwise(format!("%{}", name.text)));
            };
            let (extents, scalar) = (value.extents.clone(), value.scalar);
            self.found.operands.insert(name.text.clone(), Bound { source, extents, scalar });
        }
        Ok(())
    }

    /// Enters the numbers and types that follow from the types of operands and of results of
    /// sub-specs.
    fn types(&mut self) -> Result<(), Unlike> {
        let (graph, def) = (self.graph, self.def);
        for (name, ty) in def.inputs.iter().chain(&def.outputs) {
            let Some(ty) = ty else { continue };
            let bound = self.found.operands[&name.text].clone();
            let layout = bound.source.layout.as_ref();
            formal(def, &mut self.found, &name.text, ty, (&bound.extents, layout), bound.scalar)?;
        }
        for part in &self.pattern.parts {
            let Part::Hole { name, outputs, .. } = part else { continue };
            let [(output, Some(ty))] = &outputs[..] else { continue };
            let value = match self.found.holes.get(name) {
                Some(Hole::Fold { step }) => graph.steps[*step].output,
                Some(Hole::Chain { output, .. }) => *output,
                None => continue,
            };
            let extents = graph.values[value].extents.clone();
            // An input of a spec has a type of memory, a computed value a type of registers.
            let scalar = match self.pattern.is_factor(output) {
                true => self
                    .pattern
                    .factor(output, graph, &self.values)
                    .unwrap_or_else(|| super::scalars::scalar_of(graph, value)),
                false => super::scalars::computed(graph, value),
            };
            formal(def, &mut self.found, output, ty, (&extents, None), scalar)?;
        }
        Ok(())
    }
}

/// Whether the type of a result has modes of one element: what gives it is a Reduction.
fn reduces(ty: &ResultType) -> bool {
    let one = |m: &TupleExpr| matches!(m, TupleExpr::Leaf(Expr { kind: ExprKind::Int(1), .. }));
    ty.levels.iter().flat_map(|l| &l.modes).any(one)
}

/// The type of floats that holds the values of two; the first where that is no matter of width.
fn both(own: Scalar, other: Scalar) -> Scalar {
    match (own, other) {
        _ if !own.is_float() || !other.is_float() => own,
        (Scalar::F16, Scalar::Bf16) | (Scalar::Bf16, Scalar::F16) => Scalar::F32,
        _ if other.bits() > own.bits() => other,
        _ => own,
    }
}

/// The type in which a MatMul accumulates that does not say so.
pub(super) fn accumulates(graph: &Graph, step: &Step) -> Scalar {
    let factors = step.values().map(|v| super::scalars::scalar_of(graph, v));
    match factors.reduce(both) {
        Some(s) if !s.is_float() => Scalar::I32,
        Some(Scalar::F64) => Scalar::F64,
        _ => Scalar::F32,
    }
}

/// Compares the type of an operand with what stands for it.
fn formal(
    def: &Def,
    found: &mut Found,
    name: &str,
    ty: &ResultType,
    (extents, layout): (&[i64], Option<&Layout>),
    scalar: Scalar,
) -> Result<(), Unlike> {
    let modes: Vec<&TupleExpr> = ty.levels.iter().flat_map(|l| &l.modes).collect();
    if !ty.levels.is_empty() && modes.len() != extents.len() {
        let (wanted, found) = (modes.len(), extents.len());
        return Err(Unlike::Rank { name: name.to_owned(), wanted, found });
    }
    for (mode, extent) in modes.iter().zip(extents) {
        match mode {
            TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => {
                number(def, found, n, *extent)?
            }
            TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. }) if n == extent => {}
            _ => {
                return Err(Unlike::Clash {
                    name: format!("%{name}"),
                    first: "another extent".to_owned(),
                    second: extent.to_string(),
                });
            }
        }
    }
    let strides: Vec<&TupleExpr> =
        ty.levels.iter().flat_map(|l| l.strides.iter().flatten()).collect();
    if !strides.is_empty() {
        let own = layout.and_then(strides_of).filter(|own| own.len() == strides.len());
        let Some(own) = own else { return Err(Unlike::Strides(name.to_owned())) };
        for (stride, own) in strides.iter().zip(own) {
            match stride {
                TupleExpr::Leaf(Expr { kind: ExprKind::Name(n), .. }) => {
                    number(def, found, n, own)?
                }
                TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. }) if *n == own => {}
                _ => return Err(Unlike::Strides(name.to_owned())),
            }
        }
    }
    match (ty.attrs.first(), ty.scalar) {
        (Some(TypeAttr::Scalar(n)), _) => typed(def, found, &n.text, scalar),
        (_, Some(s)) if s != scalar => Err(Unlike::Clash {
            name: format!("%{name}"),
            first: s.to_string(),
            second: scalar.to_string(),
        }),
        _ => Ok(()),
    }
}

/// The stride of each mode; none where one has several.
fn strides_of(layout: &Layout) -> Option<Vec<i64>> {
    let one = |m: &Layout| match m.coalesce().leaves() {
        [] => Some(0),
        [(_, s)] => Some(*s),
        _ => None,
    };
    layout.modes().iter().map(one).collect()
}

fn number(def: &Def, found: &mut Found, name: &str, n: i64) -> Result<(), Unlike> {
    if !def.params.iter().any(|p| p.name.text == name) {
        return Err(Unlike::NoPattern);
    }
    let first = *found.numbers.entry(name.to_owned()).or_insert(n);
    if first == n {
        return Ok(());
    }
    let (first, second) = (first.to_string(), n.to_string());
    Err(Unlike::Clash { name: name.to_owned(), first, second })
}

fn typed(def: &Def, found: &mut Found, name: &str, scalar: Scalar) -> Result<(), Unlike> {
    let first = match name.parse::<Scalar>() {
        Ok(first) => first,
        Err(()) if def.params.iter().any(|p| p.is_type && p.name.text == name) => {
            *found.types.entry(name.to_owned()).or_insert(scalar)
        }
        Err(()) => return Err(Unlike::NoPattern),
    };
    if first == scalar {
        return Ok(());
    }
    let (first, second) = (first.to_string(), scalar.to_string());
    Err(Unlike::Clash { name: name.to_owned(), first, second })
}

fn plain(operand: &Operand) -> Option<String> {
    match operand {
        Operand::View(view) if view.ops.is_empty() => Some(view.base.text.clone()),
        Operand::View(_) | Operand::Number(_) | Operand::Value(_) => None,
    }
}

fn hole(call: &Call) -> Result<Part, Unlike> {
    let inputs: Option<Vec<String>> = call.inputs.iter().map(plain).collect();
    let inputs = inputs.ok_or(Unlike::NoPattern)?;
    let outputs = call.outputs.iter().enumerate().map(|(i, view)| {
        let ty = call.declared.get(i).cloned().flatten();
        (view.base.text.clone(), ty)
    });
    Ok(Part::Hole { name: call.name.text.clone(), inputs, outputs: outputs.collect() })
}

/// The specs of an expression, each with a name for its result.
fn flat(
    apply: &Apply,
    output: String,
    fresh: &mut usize,
    parts: &mut Vec<Part>,
) -> Result<(), Unlike> {
    let mut inputs = vec![];
    for arg in &apply.args {
        inputs.push(match arg {
            TensorExpr::View(view) if view.ops.is_empty() => view.base.text.clone(),
            TensorExpr::Apply(inner) => {
                *fresh += 1;
                let name = format!("{output}.{fresh}");
                flat(inner, name.clone(), fresh, parts)?;
                name
            }
            TensorExpr::View(_) | TensorExpr::Number(_) => return Err(Unlike::NoPattern),
        });
    }
    let (axes, scalar) = said(&apply.attrs);
    parts.push(Part::Op { kind: apply.kind, axes, scalar, inputs, output });
    Ok(())
}

/// The modes and the type that attributes say.
fn said(attrs: &[carbyne_ir::ast::Attr]) -> (Vec<usize>, Option<String>) {
    let mut axes = vec![];
    let mut scalar = None;
    for attr in attrs {
        match (attr.key, &attr.value) {
            (Some(Key::Axis), AttrValue::Tuple(t)) => {
                let mut todo = vec![t];
                while let Some(t) = todo.pop() {
                    match t {
                        TupleExpr::Leaf(Expr { kind: ExprKind::Int(n), .. }) => {
                            axes.extend(usize::try_from(*n));
                        }
                        TupleExpr::Leaf(_) => {}
                        TupleExpr::Tuple(all) => todo.extend(all.iter().rev()),
                    }
                }
            }
            (Some(Key::Acc | Key::To), AttrValue::Word(word)) => scalar = Some(word.clone()),
            _ => {}
        }
    }
    (axes, scalar)
}
