//! Writes the operations that a sub-spec of a strategy stands for into the body, where the strategy
//! uses it on tiles ([`Chains`]).
//!
//! A chain is computed in binary32, or in the type of its values if these are wider or are no
//! floats; results are rounded once, to the type of the tensor that they are assigned to. Operands
//! of the spec that the strategy does not name are read at the place of the tile; a mode with
//! extent 1 in the strategy's operand but not in theirs is read as a whole.

use super::graph::{Graph, Input, Step};
use super::place::Place;
use super::scalars::computed;
use super::symbols::Symbols;
use super::unwritten::Unwritten;
use crate::build::word;
use crate::names::Names;
use crate::strategies::found::{Bound, Found, Hole};
use carbyne_ir::ast::{
    self, Apply, Attr, AttrValue, Call, Expr, ExprKind, Key, Name, Operand, ReduceOp, ResultType,
    Spec, SpecKind, Stmt, StmtKind, TensorExpr, TupleExpr, TypeAttr, UnaryOp, View, ViewOp,
};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Of how many Reductions of tiles what they read is computed again, at most: each has a copy of
/// what is before it.
const MOST_RECOMPUTED: usize = 3;

/// Writes uses of sub-specs into a body whose names have been replaced.
pub(crate) struct Chains<'a> {
    pub graph: &'a Graph,
    pub found: &'a Found,
    pub names: &'a mut Names,
    /// Types of tensors that the body declares, by name.
    pub types: HashMap<String, Scalar>,
    /// Names that stand for views of operands.
    pub views: HashMap<String, View>,
    /// What numbers stand for that are those of symbols.
    pub sizes: Option<&'a Symbols>,
    /// Whether what is computed of a tile is computed again behind a Reduction, of what the
    /// strategy gives.
    pub recomputes: bool,
}

impl Chains<'_> {
    /// The strategy's operand that a view is of, and what the view does to it.
    fn bound(&self, view: &View) -> Option<(&Bound, Vec<ViewOp>)> {
        let (base, mut ops) = match self.views.get(&view.base.text) {
            Some(of) => (&of.base.text, of.ops.clone()),
            None => (&view.base.text, vec![]),
        };
        ops.extend(view.ops.iter().cloned());
        let own =
            |b: &&Bound| b.source.view.base.text == *base && ops.starts_with(&b.source.view.ops);
        let bound = self.found.operands.values().find(own)?;
        let rest = ops.split_off(bound.source.view.ops.len());
        Some((bound, rest))
    }

    /// The statements in the place of a use.
    pub(crate) fn write(&mut self, call: &Call) -> Result<Vec<Stmt>, Unwritten> {
        let name = &call.name.text;
        match self.found.holes.get(name) {
            Some(Hole::Chain { steps, inputs, output, all }) => {
                self.chain(call, steps, inputs, *output, *all)
            }
            Some(Hole::Fold { step }) => self.fold(call, &self.graph.steps[*step]),
            None => Err(Unwritten::Operands(name.clone())),
        }
    }

    /// Where a view is a tile of one of the strategy's operands.
    fn place(&self, view: &View) -> Option<Place> {
        // Of several operands that are views of one, that which the tile is cut from.
        if self.views.contains_key(&view.base.text) {
            let (bound, rest) = self.bound(view)?;
            return Place::of(&rest, &bound.extents);
        }
        self.found.operands.values().find_map(|bound| {
            let own = &bound.source.view;
            let ours = view.base.text == own.base.text && view.ops.starts_with(&own.ops);
            ours.then(|| Place::of(&view.ops[own.ops.len()..], &bound.extents)).flatten()
        })
    }

    fn chain(
        &mut self,
        call: &Call,
        steps: &[usize],
        inputs: &[usize],
        output: usize,
        all: bool,
    ) -> Result<Vec<Stmt>, Unwritten> {
        let graph = self.graph;
        let name = &call.name.text;
        let given: Vec<&View> = call
            .inputs
            .iter()
            .filter_map(|o| match o {
                Operand::View(view) => Some(view),
                Operand::Number(_) | Operand::Value(_) => None,
            })
            .collect();
        let ([target], true) = (&call.outputs[..], given.len() >= inputs.len()) else {
            return Err(Unwritten::Operands(name.clone()));
        };
        // A tile of rows holds also what is reduced to one element a row.
        let places = std::iter::once(target).chain(given.iter().rev().copied());
        let place = places
            .filter_map(|view| self.place(view))
            .reduce(|all, of| if of.is_wider_than(&all) { of } else { all })
            .ok_or_else(|| Unwritten::NoTile(name.clone()))?;
        let said = call.declared.first().and_then(Option::as_ref);
        let to = self
            .bound(target)
            .map(|(bound, _)| bound.scalar)
            .or_else(|| said.and_then(|ty| ty.scalar))
            .or_else(|| self.types.get(&target.base.text).copied())
            .unwrap_or_else(|| computed(graph, output));
        let (mut known, same) = (BTreeMap::new(), BTreeMap::new());
        for (value, view) in inputs.iter().zip(&given) {
            let own = self.bound(view).map(|(bound, _)| bound.scalar);
            let own = own.or_else(|| self.types.get(&view.base.text).copied());
            let own = own.ok_or_else(|| Unwritten::Untyped(view.base.text.clone()))?;
            known.insert(*value, Known::Given { view: (*view).clone(), scalar: own });
        }
        let (out, sizes) = (vec![], self.sizes);
        let given = if self.recomputes { known.clone() } else { BTreeMap::new() };
        let (casts, names, means) = (BTreeMap::new(), &mut *self.names, false);
        let place = &place;
        let mut w = Writing { graph, place, out, known, given, same, casts, means, names, sizes };
        // What is computed of the tile is computed where something reads it.
        let reduced = steps.iter().filter(|s| graph.steps[**s].reduces().is_some());
        let reduced: Vec<&Vec<i64>> = reduced
            .flat_map(|s| graph.steps[*s].values())
            .map(|v| &graph.values[v].extents)
            .collect();
        let recomputes = self.recomputes && reduced.len() <= MOST_RECOMPUTED;
        for step in steps {
            let step = &graph.steps[*step];
            let is_tile = reduced.contains(&&graph.values[step.output].extents);
            if recomputes && is_tile && step.reduces().is_none() {
                continue;
            }
            w.step(step)?;
            if recomputes && step.reduces().is_some() {
                w.forget(step);
            }
        }
        w.result(output, target.clone(), call.declared.first().cloned().flatten(), to)?;
        if target.ops.is_empty() && !self.types.contains_key(&target.base.text) {
            self.types.insert(target.base.text.clone(), to);
        }
        if all {
            for other in graph.outputs.iter() {
                let main = self.found.operands.values().any(|b| b.source.view == other.to.view);
                if !main {
                    let view = place.view(&other.to, &other.extents)?;
                    let before = w.out.len();
                    w.result(other.value, view, None, other.scalar)?;
                    let cond = place.first_of(&other.extents, &other.once);
                    if !cond.is_empty() {
                        // One of the blocks that compute it stores it.
                        let stmts = w.out.split_off(before);
                        let then = ast::Block { stmts, footer: vec![] };
                        let store = StmtKind::If { cond, then, otherwise: None };
                        w.out.push(Stmt::new(store));
                    }
                }
            }
        }
        Ok(w.out)
    }

    /// A kernel that computes a chain of whole tensors, for other strategies.
    pub(crate) fn kernel(&mut self, call: &Call) -> Result<Spec, Unwritten> {
        let name = &call.name.text;
        let Some(Hole::Chain { steps, inputs, output, all }) = self.found.holes.get(name) else {
            return Err(Unwritten::Operands(name.clone()));
        };
        let graph = self.graph;
        let given: Vec<&View> = call
            .inputs
            .iter()
            .filter_map(|o| match o {
                Operand::View(view) => Some(view),
                Operand::Number(_) | Operand::Value(_) => None,
            })
            .collect();
        let ([target], [value], [from]) = (&call.outputs[..], &inputs[..], &given[..]) else {
            return Err(Unwritten::Operands(name.clone()));
        };
        let from_type = self
            .types
            .get(&from.base.text)
            .copied()
            .ok_or_else(|| Unwritten::Untyped(from.base.text.clone()))?;
        let place = Place::whole(&graph.values[*output].extents);
        let (known, same) = (BTreeMap::new(), BTreeMap::new());
        let (out, sizes, given) = (vec![], self.sizes, BTreeMap::new());
        let (casts, names, means) = (BTreeMap::new(), &mut *self.names, true);
        let place = &place;
        let mut w = Writing { graph, place, out, known, given, same, casts, means, names, sizes };
        w.known.insert(*value, Known::Given { view: (*from).clone(), scalar: from_type });
        // Operands by names, which a `means` block speaks of.
        let mut reads: Vec<View> = vec![(*from).clone()];
        let leaves = steps.iter().flat_map(|s| graph.steps[*s].values());
        for v in leaves.filter(|v| v != value) {
            if let Some(source) = &graph.values[v].source {
                if !source.view.ops.is_empty() {
                    return Err(Unwritten::Modes);
                }
                if !reads.contains(&source.view) && source.view.base.text != target.base.text {
                    reads.push(source.view.clone());
                }
            }
        }
        for step in steps {
            w.step(&graph.steps[*step])?;
        }
        let to = self.found.operands.values().find(|b| b.source.view.base.text == target.base.text);
        let to = to.map(|b| b.scalar).or_else(|| self.types.get(&target.base.text).copied());
        w.result(*output, target.clone(), None, to.unwrap_or_else(|| computed(graph, *output)))?;
        let mut outputs = vec![target.clone()];
        for other in
            graph.outputs.iter().filter(|o| *all && o.to.view.base.text != target.base.text)
        {
            if !other.to.view.ops.is_empty() {
                return Err(Unwritten::Modes);
            }
            w.result(other.value, other.to.view.clone(), None, other.scalar)?;
            outputs.push(other.to.view.clone());
        }
        let stmts = std::mem::take(&mut w.out);
        let inputs = reads.into_iter().map(Operand::View).collect();
        let means = Some(ast::Block { stmts, footer: vec![] });
        let name = Some(Name::new(name.clone()));
        Ok(Spec { name, inputs, outputs, means, ..Spec::new(SpecKind::Generic) })
    }

    /// A Reduction of a tile: of one operand the result, of two what both are together, of none
    /// what changes nothing.
    fn fold(&mut self, call: &Call, step: &Step) -> Result<Vec<Stmt>, Unwritten> {
        let op = step.reduces().ok_or_else(|| Unwritten::Operands(call.name.text.clone()))?;
        let [target] = &call.outputs[..] else {
            return Err(Unwritten::Operands(call.name.text.clone()));
        };
        let declared = call.declared.clone();
        let outputs = vec![target.clone()];
        let spec = match &call.inputs[..] {
            [] => {
                let scalar = self.types.get(&target.base.text).copied();
                let scalar = call.declared.first().and_then(|d| d.as_ref()?.scalar).or(scalar);
                let scalar = scalar.ok_or_else(|| Unwritten::Untyped(target.base.text.clone()))?;
                let inputs = vec![neutral(op, scalar)];
                Spec { inputs, outputs, declared, ..Spec::new(SpecKind::Init) }
            }
            [_] => {
                let axes: Vec<TupleExpr> =
                    step.axes.iter().map(|a| TupleExpr::Leaf(Expr::int(*a as i64))).collect();
                let axes = match &axes[..] {
                    [one] => one.clone(),
                    _ => TupleExpr::Tuple(axes),
                };
                let attrs = vec![Attr::new(Key::Axis, AttrValue::Tuple(axes))];
                Spec {
                    inputs: call.inputs.clone(),
                    outputs,
                    declared,
                    attrs,
                    ..Spec::new(step.kind)
                }
            }
            [_, _] => {
                let combine = op.combining().ok_or(Unwritten::Combines(op))?;
                let kind = SpecKind::Binary(combine);
                Spec { inputs: call.inputs.clone(), outputs, declared, ..Spec::new(kind) }
            }
            _ => return Err(Unwritten::Operands(call.name.text.clone())),
        };
        Ok(vec![Stmt::new(StmtKind::Spec(spec))])
    }
}

/// What changes nothing.
fn neutral(op: ReduceOp, scalar: Scalar) -> Operand {
    let number =
        |text: String| Operand::Number(carbyne_ir::ast::Number { text, span: Span::default() });
    let bits = scalar.bits().min(63) as u32;
    let signed = scalar.as_str().starts_with('i');
    let (least, most) = match (scalar.is_float(), signed) {
        (true, _) => ("-inf".to_owned(), "inf".to_owned()),
        (false, true) if scalar.bits() >= 64 => (i64::MIN.to_string(), i64::MAX.to_string()),
        (false, true) => {
            let half = 1i64 << (bits - 1);
            ((-half).to_string(), (half - 1).to_string())
        }
        (false, false) if scalar.bits() >= 64 => ("0".to_owned(), u64::MAX.to_string()),
        (false, false) => ("0".to_owned(), ((1i64 << bits) - 1).to_string()),
    };
    number(match op {
        ReduceOp::Sum | ReduceOp::Or | ReduceOp::Xor => "0".to_owned(),
        ReduceOp::Prod => "1".to_owned(),
        ReduceOp::Min | ReduceOp::Minimum => most,
        ReduceOp::Max | ReduceOp::Maximum => least,
        ReduceOp::And if signed => "-1".to_owned(),
        ReduceOp::And => most,
    })
}

/// A value that can be used.
#[derive(Clone, Debug)]
enum Known {
    /// A tile that the strategy gives, not yet in the type that is computed in.
    Given { view: View, scalar: Scalar },
    /// In the type that is computed in.
    Ready(String),
}

struct Writing<'a> {
    graph: &'a Graph,
    place: &'a Place,
    out: Vec<Stmt>,
    known: BTreeMap<usize, Known>,
    /// What the strategy gives, where values are computed of it again.
    given: BTreeMap<usize, Known>,
    /// Values that are the same as others.
    same: BTreeMap<usize, usize>,
    /// Values that are others in a type: casts that round, and those of integers. They are written
    /// where something reads them.
    casts: BTreeMap<usize, (usize, Scalar)>,
    /// Whether statements of a `means` block are written.
    means: bool,
    names: &'a mut Names,
    sizes: Option<&'a Symbols>,
}

impl Writing<'_> {
    /// A literal, or the symbol for which it stands.
    fn number(&self, n: f64) -> Expr {
        let whole = Some(n as i64).filter(|whole| *whole as f64 == n);
        let symbol = whole.and_then(|n| self.sizes?.expression(n));
        symbol.cloned().unwrap_or_else(|| number(n))
    }

    fn assign(&mut self, target: View, ty: Option<ResultType>, value: TensorExpr) {
        self.out.push(Stmt::new(StmtKind::Assign { target, ty, value }));
    }

    /// A new tensor that an expression gives.
    fn named(&mut self, name: &str, value: TensorExpr) -> String {
        let name = self.names.fresh(name);
        self.assign(View::of(&name), None, value);
        name
    }

    /// A value, in the type in which it is computed on.
    fn value(&mut self, v: usize) -> Result<TensorExpr, Unwritten> {
        let v = self.first(v);
        let wanted = computed(self.graph, v);
        let known = self.known.get(&v).cloned();
        if let (None, Some((from, to))) = (&known, self.casts.get(&v).copied()) {
            let value = self.narrow(from, to)?;
            let value = if to == wanted { value } else { cast(value, wanted) };
            let name = self.named("t", value);
            self.known.insert(v, Known::Ready(name.clone()));
            return Ok(TensorExpr::View(View::of(name)));
        }
        let (view, scalar) = match known {
            Some(Known::Ready(name)) => return Ok(TensorExpr::View(View::of(name))),
            Some(Known::Given { view, scalar }) => (view, scalar),
            None => {
                let of = &self.graph.values[v];
                let Some(source) = &of.source else {
                    self.again(v)?;
                    let first = self.first(v);
                    return match first != v || self.known.contains_key(&v) {
                        true => self.value(first),
                        false => Err(Unwritten::Modes),
                    };
                };
                let view = self.place.view(source, &of.extents)?;
                if of.extents.is_empty() || source.counts {
                    // A number, or coordinates: nothing is loaded.
                    if of.scalar == wanted {
                        return Ok(TensorExpr::View(view));
                    }
                    let name = self.named("x", cast(TensorExpr::View(view), wanted));
                    self.known.insert(v, Known::Ready(name.clone()));
                    return Ok(TensorExpr::View(View::of(name)));
                }
                let plain = TensorExpr::View(view.clone());
                let name = match of.scalar == wanted {
                    true => self.named("x", TensorExpr::apply(SpecKind::Move, vec![plain])),
                    false => self.named("x", cast(plain, wanted)),
                };
                self.known.insert(v, Known::Ready(name.clone()));
                return Ok(TensorExpr::View(View::of(name)));
            }
        };
        let plain = TensorExpr::View(view.clone());
        let own = self.place_of_tile(&view);
        let name = match (scalar == wanted, own) {
            (true, false) => return Ok(plain),
            (true, true) => self.named("x", TensorExpr::apply(SpecKind::Move, vec![plain])),
            (false, _) => self.named("x", cast(plain, wanted)),
        };
        self.known.insert(v, Known::Ready(name.clone()));
        Ok(TensorExpr::View(View::of(name)))
    }

    /// A value in a type that does not hold all of its values.
    fn narrow(&mut self, from: usize, to: Scalar) -> Result<TensorExpr, Unwritten> {
        Ok(cast(self.value(from)?, to))
    }

    /// Gives up the values of the tile that a Reduction has read and that can be computed again:
    /// registers need not hold them until something else reads them.
    fn forget(&mut self, step: &Step) {
        let graph = self.graph;
        let tiles: Vec<&Vec<i64>> = step.values().map(|v| &graph.values[v].extents).collect();
        let given = &self.given;
        self.known.retain(|v, _| {
            let computed = graph.maker(*v).is_some_and(|s| graph.steps[s].reduces().is_none());
            !(tiles.contains(&&graph.values[*v].extents) && (computed || given.contains_key(v)))
        });
        self.known.extend(
            given
                .iter()
                .filter(|(v, _)| tiles.contains(&&graph.values[**v].extents))
                .map(|(v, known)| (*v, known.clone())),
        );
    }

    /// Computes a value, and what it is computed of, where these are not known or are known no
    /// more.
    fn again(&mut self, v: usize) -> Result<(), Unwritten> {
        let graph = self.graph;
        let (mut steps, mut todo) = (BTreeSet::new(), vec![v]);
        while let Some(v) = todo.pop() {
            let v = self.first(v);
            if self.known.contains_key(&v) || graph.values[v].source.is_some() {
                continue;
            }
            let maker = graph.maker(v).ok_or(Unwritten::Modes)?;
            if steps.insert(maker) {
                todo.extend(graph.steps[maker].values());
            }
        }
        for step in steps {
            self.step(&graph.steps[step])?;
        }
        Ok(())
    }

    /// The value that this one is the same as.
    fn first(&self, v: usize) -> usize {
        self.same.get(&v).copied().unwrap_or(v)
    }

    /// Whether a view is one of global memory.
    fn place_of_tile(&self, view: &View) -> bool {
        let outputs = self.graph.outputs.iter().map(|o| &o.to);
        self.graph
            .values
            .iter()
            .filter_map(|v| v.source.as_ref())
            .chain(outputs)
            .any(|s| s.view.base.text == view.base.text && view.ops.starts_with(&s.view.ops))
    }

    fn step(&mut self, step: &Step) -> Result<(), Unwritten> {
        if let ([Input::Value(v)], SpecKind::Unary(UnaryOp::Cast)) = (&step.inputs[..], step.kind) {
            let (from, to) = (computed(self.graph, *v), computed(self.graph, step.output));
            let of_integer = step.scalar.filter(|s| s.is_float() && !from.is_float());
            if let Some(narrow) = step.rounds.or(of_integer).filter(|_| to.is_float()) {
                let from = self.first(*v);
                self.casts.insert(step.output, (from, narrow));
                return Ok(());
            }
        }
        if let [Input::Value(v)] = step.inputs[..] {
            // A real number stays what it is until it is stored.
            let keeps = match step.kind {
                SpecKind::Unary(UnaryOp::Cast) => {
                    computed(self.graph, v) == computed(self.graph, step.output)
                }
                SpecKind::Move => true,
                _ => false,
            };
            if keeps && self.graph.values[v].extents == self.graph.values[step.output].extents {
                let first = self.first(v);
                self.same.insert(step.output, first);
                return Ok(());
            }
        }
        let mut args = vec![];
        for input in &step.inputs {
            args.push(match input {
                Input::Value(v) => self.value(*v)?,
                Input::Number(n) => TensorExpr::Number(self.number(*n)),
            });
        }
        let from = step.values().next();
        let wanted = computed(self.graph, step.output);
        let mut attrs = vec![];
        match step.kind {
            SpecKind::Init => {
                // A tensor of one number.
                let own = &self.graph.values[step.output].extents;
                let extents = if own.is_empty() { vec![] } else { self.place.extents_of(own) };
                let name = self.names.fresh("x");
                let modes = extents.iter().map(|e| TupleExpr::Leaf(Expr::int(*e))).collect();
                let levels =
                    vec![carbyne_ir::ast::Dims { modes, strides: None, span: Span::default() }];
                let (memory, attrs, span) = (None, vec![], Span::default());
                let ty = ResultType { levels, scalar: Some(wanted), memory, attrs, span };
                let Some(value) = args.pop() else { return Err(Unwritten::Modes) };
                self.assign(View::of(&name), Some(ty), value);
                self.known.insert(step.output, Known::Ready(name));
                return Ok(());
            }
            SpecKind::Unary(UnaryOp::Cast) => attrs.push(to(wanted)),
            SpecKind::Reduction(_) => {
                let own = from.map(|v| self.graph.values[v].extents.clone()).unwrap_or_default();
                let tile = self.place.held_of(&own);
                for mode in &step.axes {
                    // An operand that is broadcast along the mode would get as many elements as the
                    // padded result.
                    if self.place.is_padded(*mode) && own[*mode] > 1 {
                        return Err(Unwritten::Modes);
                    }
                    let Some(extent) = self.graph.most(own[*mode]) else {
                        return Err(Unwritten::Unbounded { mode: *mode });
                    };
                    if tile[*mode] < extent {
                        let tile = tile[*mode];
                        return Err(Unwritten::Reduces { mode: *mode, extent, tile });
                    }
                }
                let axes: Vec<TupleExpr> =
                    step.axes.iter().map(|a| TupleExpr::Leaf(Expr::int(*a as i64))).collect();
                let axes = match &axes[..] {
                    [one] => one.clone(),
                    _ => TupleExpr::Tuple(axes),
                };
                attrs.push(Attr::new(Key::Axis, AttrValue::Tuple(axes)));
            }
            _ => {}
        }
        // The type of a choice between numbers follows from nothing else.
        let numbers = matches!(step.inputs[..], [_, Input::Number(_), Input::Number(_)]);
        let ty = (step.kind == SpecKind::Select && numbers).then(|| ResultType {
            levels: vec![],
            scalar: Some(wanted),
            memory: None,
            attrs: vec![],
            span: Span::default(),
        });
        let apply = Apply { kind: step.kind, args, attrs, span: Span::default() };
        let name = self.names.fresh("t");
        self.assign(View::of(&name), ty, TensorExpr::Apply(Box::new(apply)));
        self.known.insert(step.output, Known::Ready(name));
        Ok(())
    }

    /// A cast that the meaning knows nothing of.
    fn staged(&self, value: TensorExpr, from: Scalar, scalar: Scalar) -> TensorExpr {
        let mut value = cast(value, scalar);
        let narrows = scalar.is_float() && !scalar.holds(from);
        if let TensorExpr::Apply(apply) = &mut value
            && narrows
            && !self.means
            && self.graph.rounds_to(scalar)
        {
            apply.attrs.push(word(Key::Meant, "no"));
        }
        value
    }

    /// Assigns a value.
    fn result(
        &mut self,
        v: usize,
        target: View,
        ty: Option<ResultType>,
        scalar: Scalar,
    ) -> Result<(), Unwritten> {
        let v = self.first(v);
        let plain = match self.known.get(&v).cloned() {
            Some(Known::Given { view, scalar: own }) if own == scalar => Some(view),
            // An operand as it is.
            None => {
                let of = &self.graph.values[v];
                match &of.source {
                    Some(source) if of.scalar == scalar && !source.counts => {
                        Some(self.place.view(source, &of.extents)?)
                    }
                    _ => None,
                }
            }
            _ => None,
        };
        let value = match plain {
            Some(view) => {
                let mut value = TensorExpr::View(view.clone());
                if self.place_of_tile(&view) && self.place_of_tile(&target) {
                    // By way of registers.
                    let name = self.named("x", TensorExpr::apply(SpecKind::Move, vec![value]));
                    value = TensorExpr::View(View::of(name));
                }
                TensorExpr::apply(SpecKind::Move, vec![value])
            }
            None => {
                let own = computed(self.graph, v);
                match self.casts.get(&v).copied() {
                    // Rounded once.
                    Some((from, to)) if to == scalar && !self.known.contains_key(&v) => {
                        self.narrow(from, to)?
                    }
                    _ => {
                        let value = self.value(v)?;
                        match own == scalar {
                            true => TensorExpr::apply(SpecKind::Move, vec![value]),
                            false => self.staged(value, own, scalar),
                        }
                    }
                }
            }
        };
        self.assign(target, ty, value);
        Ok(())
    }
}

fn to(scalar: Scalar) -> Attr {
    word(Key::To, scalar.as_str())
}

fn cast(value: TensorExpr, scalar: Scalar) -> TensorExpr {
    let (kind, attrs) = (SpecKind::Unary(UnaryOp::Cast), vec![to(scalar)]);
    TensorExpr::Apply(Box::new(Apply { kind, args: vec![value], attrs, span: Span::default() }))
}

/// A literal.
fn number(n: f64) -> Expr {
    let kind = match n.abs() {
        a if a.is_nan() => ExprKind::Name("nan".into()),
        a if a.is_infinite() => ExprKind::Name("inf".into()),
        a if a == a.trunc() && a < 9e15 => ExprKind::Int(a as i64),
        a => ExprKind::Real(decimal(a)),
    };
    let span = Span::default();
    let e = Expr { kind, span };
    match n.is_sign_negative() && !n.is_nan() && n != 0.0 {
        true => Expr { kind: ExprKind::Neg(Box::new(e)), span },
        false => e,
    }
}

/// A number above zero as the text has it: digits, a point, digits, an exponent.
fn decimal(a: f64) -> String {
    let text = format!("{a:e}");
    match text.split_once('e') {
        Some((digits, "0")) if digits.contains('.') => digits.to_owned(),
        Some((digits, exponent)) => format!("{digits}e{exponent}"),
        None => text,
    }
}

/// The type that a product is summed up in, where it says so.
fn summed(value: &TensorExpr) -> Option<Scalar> {
    match value {
        TensorExpr::Apply(apply) if apply.kind.is_product() => acc(&apply.attrs),
        _ => None,
    }
}

fn acc(attrs: &[Attr]) -> Option<Scalar> {
    Attr::among(attrs, Key::Acc)?.as_word()?.parse().ok()
}

/// Types of the tensors that statements declare, where these say them.
pub(crate) fn declared(stmts: &[Stmt], types: &mut HashMap<String, Scalar>) {
    let of = |ty: &ResultType| match ty.attrs.first() {
        Some(TypeAttr::Scalar(_)) => None,
        _ => ty.scalar,
    };
    for stmt in carbyne_ir::ast::visit::Walk::new(stmts).stmts() {
        match &stmt.kind {
            StmtKind::Allocate { name, ty } | StmtKind::DataDecl { name, ty, .. } => {
                types.insert(name.text.clone(), ty.scalar);
            }
            StmtKind::Assign { target, ty, value, .. } => {
                if let Some(scalar) = ty.as_ref().and_then(of).or_else(|| summed(value)) {
                    types.insert(target.base.text.clone(), scalar);
                }
            }
            StmtKind::Spec(Spec { inputs, outputs, declared, kind, attrs, .. }) => {
                for (i, view) in outputs.iter().enumerate() {
                    if types.contains_key(&view.base.text) {
                        continue;
                    }
                    let said = declared.get(i).and_then(|d| of(d.as_ref()?));
                    let moved = match (kind, &inputs[..]) {
                        (SpecKind::Move, [Operand::View(from)]) => {
                            types.get(&from.base.text).copied()
                        }
                        (SpecKind::MatMul | SpecKind::MatMulSet, _) => acc(attrs),
                        _ => None,
                    };
                    if let Some(scalar) = said.or(moved) {
                        types.insert(view.base.text.clone(), scalar);
                    }
                }
            }
            StmtKind::Call(Call { outputs, declared, .. }) => {
                for (i, view) in outputs.iter().enumerate() {
                    if let Some(scalar) = declared.get(i).and_then(|d| of(d.as_ref()?)) {
                        types.insert(view.base.text.clone(), scalar);
                    }
                }
            }
            _ => {}
        }
    }
}
