//! Tracks which elements of partial tiles in registers and shared memory exist, and inserts Selects
//! that give the others a neutral value, so that a reduction over a partial tile is correct.
//!
//! A copy of a partial tile writes zeros for the elements outside of the tensor. Operations then
//! compute with these elements, too. For most operations, which work element by element, the values
//! outside do not matter, because they are never stored. But operations that combine elements need
//! neutral values outside: zero for a sum, -inf for a maximum. If the values are not known to be
//! neutral, a Select is inserted before the operation. (Graphene, section 3.4, predicates
//! statements; Selects on values keep all threads on one path.)
//!
//! Only operations of groups of threads on whole tensors are tracked. Threads that compute with
//! their own registers must contain the Select explicitly.

use super::exprs::overflow;
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{
    self, AccumulateOp, Apply, BinOp, BinaryOp, Expr, ExprKind, Key, Operand, Pick, ReduceOp,
    SpecKind, TensorExpr, UnaryOp, View, ViewOp,
};
use crate::diag::{Code, Diagnostic};
use crate::expand::expression;
use crate::expr::{Dim, VarId};
use crate::layout::Layout;
use crate::program::{Bound, BufferId, Stmt, Tensor};
use crate::scalar::Scalar;
use crate::span::Span;
use crate::tuple::IntTuple;
use std::collections::BTreeMap;

/// A bound of a tensor's elements, mode by mode. Without modes, it is unknown which elements are
/// outside: after accesses to parts of a tensor, after loops, and after branches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    /// For each mode of the tensor, the coordinate along the bounded mode that it adds to `offset`.
    modes: Vec<Layout<Dim>>,
    offset: Dim,
    extent: Dim,
    /// The value of the elements outside, if it is a single known number.
    outside: Option<f64>,
}

impl Edge {
    /// Whether it bounds the same elements, ignoring their value.
    fn is_same(&self, other: &Edge) -> bool {
        (&self.modes, self.offset, self.extent) == (&other.modes, other.offset, other.extent)
    }

    /// Whether a coordinate along one of these modes decides if an element is inside.
    fn depends_on(&self, modes: impl IntoIterator<Item = usize>) -> bool {
        self.modes.is_empty()
            || modes.into_iter().any(|m| self.modes.get(m).is_some_and(|mode| !is_constant(mode)))
    }

    /// The mode on which the bound depends, if it is only one.
    fn varying(&self) -> Option<(usize, &Layout<Dim>)> {
        let mut varying = self.modes.iter().enumerate().filter(|(_, mode)| !is_constant(mode));
        let first = varying.next();
        first.filter(|_| varying.next().is_none())
    }

    /// This edge without modes: it is unknown which elements are outside.
    fn unclear(&self) -> Edge {
        let (offset, extent) = (Dim::Const(0), Dim::Const(0));
        Edge { modes: vec![], offset, extent, outside: self.outside }
    }
}

/// Adds an edge. If the same elements are already bounded with another value, the value becomes
/// unknown.
fn add_edge(edges: &mut Vec<Edge>, edge: Edge) {
    match edges.iter_mut().find(|e| e.is_same(&edge)) {
        Some(known) if known.outside != edge.outside => known.outside = None,
        Some(_) => {}
        None => edges.push(edge),
    }
}

fn is_constant(mode: &Layout<Dim>) -> bool {
    mode.leaves()
        .iter()
        .all(|(extent, stride)| *stride == Dim::Const(0) || *extent == Dim::Const(1))
}

/// Known facts about the elements of buffers in the current body.
#[derive(Default)]
pub(super) struct Domains {
    /// Whether tracking is enabled; it is not for elaborated modules, which contain all Selects.
    pub(super) derives: bool,
    edges: BTreeMap<BufferId, Vec<Edge>>,
    /// Buffers whose elements all have this value.
    numbers: BTreeMap<BufferId, f64>,
    /// Buffers that contain maxima of another buffer along some modes.
    largest: BTreeMap<BufferId, BufferId>,
    /// Buffers of conditions that hold exactly inside of an edge.
    conditions: BTreeMap<BufferId, Edge>,
    loops: Vec<OpenLoop>,
    /// The number of open loops when a buffer was last written completely.
    depths: BTreeMap<BufferId, usize>,
}

/// A loop whose body is being resolved.
struct OpenLoop {
    var: VarId,
    /// The number of buffers before the loop.
    buffers: usize,
    /// The required values of operands in the body.
    asked: Vec<Asked>,
}

impl Domains {
    /// The variable of the outermost loop that began after a buffer was last written completely. In
    /// this loop, an operation in place may combine values of different iterations.
    fn first_loop(&self, buffer: BufferId) -> Option<VarId> {
        let depth = self.depths.get(&buffer).copied().unwrap_or(0);
        self.loops.get(depth).map(|open| open.var)
    }
}

/// A required value of an operand outside of its edges.
struct Asked {
    buffer: BufferId,
    /// `edges` are those known at the access; `own` are those of the result.
    edges: Vec<Edge>,
    own: Vec<Edge>,
    /// The modes along which elements are combined; `None` if the operand is a part of a tensor.
    modes: Option<Vec<usize>>,
    number: f64,
    span: Span,
}

impl Resolver {
    /// Inserts Selects before a spec whose operands may have values outside of their edges that are
    /// not neutral. Returns the changed spec.
    pub(super) fn guarded(
        &mut self,
        spec: &ast::Spec,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<Option<ast::Spec>> {
        if spec.body.is_some() || !self.follows(spec)? {
            return Ok(None);
        }
        let mut wanted: Vec<(usize, Vec<Edge>, f64)> = vec![];
        // The edges of the result, and for each operand the modes along which elements are
        // combined.
        let (mut of_result, mut meet): (Vec<Edge>, Vec<Vec<usize>>) = (vec![], vec![]);
        match spec.kind {
            SpecKind::Reduction(op) => {
                let (axes, edges) = (self.modes_that_meet(spec)?, self.edges_of(spec, 0)?);
                let scalar = self.scalar_of_input(spec, 0)?;
                let neutral = op.neutral(scalar);
                let lacking = edges.into_iter().filter(|e| e.depends_on(axes.iter().copied()));
                meet.push(axes.clone());
                wanted.push((
                    0,
                    lacking.filter(|e| e.outside != neutral).collect(),
                    neutral.unwrap_or(0.0),
                ));
            }
            SpecKind::MatMul | SpecKind::MatMulSet => {
                let (a, b) = (self.edges_of(spec, 0)?, self.edges_of(spec, 1)?);
                let rank = self.rank_of_input(spec, 0)?;
                let (of_a, of_b) = (rank.saturating_sub(1), rank.saturating_sub(2));
                meet.extend([vec![of_a], vec![of_b]]);
                let along = |edges: Vec<Edge>, k: usize| -> Vec<Edge> {
                    edges.into_iter().filter(|e| e.depends_on([k])).collect()
                };
                let (a, b) = (along(a, of_a), along(b, of_b));
                let zero = |edges: &[Edge]| edges.iter().all(|e| e.outside == Some(0.0));
                let finite =
                    |edges: &[Edge]| edges.iter().all(|e| e.outside.is_some_and(f64::is_finite));
                let cancels = zero(&a) && !a.is_empty() && finite(&b)
                    || zero(&b) && !b.is_empty() && finite(&a);
                for (i, edges) in [(0, a), (1, b)] {
                    let lacking = edges.into_iter().filter(|e| !cancels && e.outside != Some(0.0));
                    wanted.push((i, lacking.collect(), 0.0));
                }
            }
            SpecKind::Accumulate(op) => {
                let own = self.edges_of_output(spec)?;
                let scalar = self.scalar_of_input(spec, 0)?;
                let neutral = of_accumulate(op).neutral(scalar);
                let lacking = self
                    .edges_of(spec, 0)?
                    .into_iter()
                    .filter(|e| e.outside != neutral && !own.iter().any(|o| o.is_same(e)));
                wanted.push((0, lacking.collect(), neutral.unwrap_or(0.0)));
                of_result = own;
            }
            SpecKind::Binary(op) => {
                if let Some((i, neutral)) = self.accumulated_input(spec, op)? {
                    let own = self.edges_of_output(spec)?;
                    let lacking = self.edges_of(spec, i)?.into_iter().filter(|e| {
                        e.outside != Some(neutral) && !own.iter().any(|o| o.is_same(e))
                    });
                    wanted.push((i, lacking.collect(), neutral));
                    of_result = own;
                }
            }
            SpecKind::Move
            | SpecKind::Unary(_)
            | SpecKind::Select
            | SpecKind::Shfl(_)
            | SpecKind::Init
            | SpecKind::Iota
            | SpecKind::Generic => {}
        }
        for (i, _, number) in &wanted {
            self.ask(spec, (*i, meet.get(*i)), &of_result, *number);
        }
        wanted.retain(|(_, edges, _)| !edges.is_empty());
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut guarded = spec.clone();
        for (i, edges, neutral) in wanted {
            for edge in edges {
                let Some(Operand::View(view)) = guarded.inputs.get(i).cloned() else { continue };
                let chosen = self.chosen(&view, &edge, neutral, stmt, out)?;
                guarded.inputs[i] = Operand::View(chosen);
            }
        }
        Ok(Some(guarded))
    }

    /// Inserts a Select, `select(%x.iota(1) < N - @j * 64, %x, -inf)`, and returns its result.
    fn chosen(
        &mut self,
        view: &View,
        edge: &Edge,
        neutral: f64,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<View> {
        let span = view.span;
        let unclear = |why: &str| {
            fail(
                Diagnostic::new(
                    Code::TileDivides,
                    span,
                    format!(
                        "cannot derive a condition for the elements of `%{}` that exist",
                        view.base.text
                    ),
                )
                .label(why.to_owned())
                .help(
                    "choose a value for the others, for example `select(%x.iota(1) < N, %x, 0)`, \
                     or tiles that divide the mode",
                ),
            )
        };
        let Some((axis, mode)) = edge.varying() else {
            return unclear(
                "they result from parts or earlier iterations, or depend on several modes",
            );
        };
        let Some((op, limit)) = self.limit(edge, mode, span)? else {
            return unclear("their coordinates do not have a constant distance");
        };
        let Some(limit) = expression(&self.p, limit) else {
            return unclear("they depend on a number without a name here");
        };
        let limit = Expr { span, kind: limit.kind.clone() };
        let mut coordinate = view.clone();
        coordinate.ops.push(ViewOp::Iota(Expr { span, kind: ExprKind::Int(axis as i64) }));
        // The condition compares with a constant; the coordinates absorb anything else.
        let limit = match limit.kind {
            ExprKind::Int(_) => limit,
            _ => {
                let below = Expr::bin(BinOp::Sub, Expr::int(0), limit);
                coordinate.ops.push(ViewOp::Plus(Expr { span, kind: below.kind.clone() }));
                Expr { span, kind: ExprKind::Int(0) }
            }
        };
        let apply =
            |kind, args| TensorExpr::Apply(Box::new(Apply { kind, args, attrs: vec![], span }));
        let inside = apply(
            SpecKind::Binary(op),
            vec![TensorExpr::View(coordinate), TensorExpr::Number(limit)],
        );
        let neutral_text = super::constants::literal(neutral);
        let number = TensorExpr::Number(ast::literal(&neutral_text, span));
        let value = apply(SpecKind::Select, vec![inside, TensorExpr::View(view.clone()), number]);
        // In registers, the values outside are not needed, so the Select may work in place.
        let own = self.buffer_of_whole(Some(&Operand::View(view.clone())));
        let in_place = own.is_some_and(|b| {
            let whole = &self.p.tensors[self.p.buffers[b].tensor];
            self.p.buffers[b].is_per_thread()
                && whole.name.as_deref() == Some(view.base.text.as_str())
        });
        let target = match in_place {
            true => view.clone(),
            false => View { base: self.fresh(&view.base), ops: vec![], span },
        };
        self.assigned(stmt, &target, None, &value, out)?;
        Ok(target)
    }

    /// The condition for coordinates of a mode to be inside of an edge: below a number between 0
    /// and the size of the mode; or at least such a number, if the bounded coordinates decrease.
    fn limit(
        &self,
        edge: &Edge,
        mode: &Layout<Dim>,
        span: Span,
    ) -> Fallible<Option<(BinaryOp, Dim)>> {
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| overflow(span, &e);
        let mode = mode.coalesce_in(cx).map_err(e)?;
        let [(_, Dim::Const(step))] = *mode.leaves() else { return Ok(None) };
        let size = mode.size_in(cx).map_err(e)?;
        let (op, number) = match step {
            1.. => {
                let room = cx.sub(edge.extent, edge.offset).map_err(e)?;
                (BinaryOp::Lt, cx.ceil_div(room, Dim::Const(step)).map_err(e)?)
            }
            -1 => {
                let above = cx.sub(edge.offset, edge.extent).map_err(e)?;
                (BinaryOp::Ge, cx.add(above, Dim::Const(1)).map_err(e)?)
            }
            _ => return Ok(None),
        };
        let most = cx.min(number, size).map_err(e)?;
        Ok(Some((op, cx.max(most, Dim::Const(0)).map_err(e)?)))
    }

    /// Whether a spec is tracked: it runs on a group of threads, on whole tensors.
    fn follows(&mut self, spec: &ast::Spec) -> Fallible<bool> {
        if !self.domains.derives || self.depth == 0 || spec.kind == SpecKind::Generic {
            return Ok(false);
        }
        let Some(ast::Exec::Both(_, threads)) = &spec.exec else { return Ok(false) };
        let id = self.thread_view(&threads.clone())?;
        let t = &self.p.threads[id];
        Ok(t.each.is_none() && t.elect.is_none() && !t.levels.is_empty())
    }

    /// The modes along which a Reduction combines elements: those of `axis=`. An instruction that
    /// combines the values of threads has no `axis=`; it combines along all modes.
    fn modes_that_meet(&mut self, spec: &ast::Spec) -> Fallible<Vec<usize>> {
        match spec.attr(Key::Atom).is_some() && spec.attr(Key::Axis).is_none() {
            true => Ok((0..self.rank_of_input(spec, 0)?).collect()),
            false => self.axes_of(&spec.attrs, spec.span),
        }
    }

    /// Updates the known facts after a spec is resolved.
    pub(super) fn follow(&mut self, spec: &ast::Spec) -> Fallible<()> {
        if !self.follows(spec)? {
            return Ok(());
        }
        let Some(to) = spec.outputs.first() else { return Ok(()) };
        let Some(Binding::Tensor(t)) = self.scopes.get(Sigil::Data, &to.base.text) else {
            return Ok(());
        };
        let buffer = self.p.tensors[t].buffer;
        if self.p.buffers[buffer].memory.is_some_and(|m| !m.is_allocated()) {
            return Ok(());
        }
        let accumulates = match spec.kind {
            SpecKind::Binary(op) => self.accumulated_input(spec, op)?.is_some(),
            kind => kind.reads_output(),
        };
        let combined = if accumulates { self.edges_of_combined(spec, to, buffer)? } else { vec![] };
        self.domains.largest.retain(|of, from| *of != buffer && *from != buffer);
        if accumulates {
            self.domains.numbers.remove(&buffer);
            self.domains.conditions.remove(&buffer);
            match combined.is_empty() {
                true => drop(self.domains.edges.remove(&buffer)),
                false => drop(self.domains.edges.insert(buffer, combined)),
            }
            return Ok(());
        }
        let mut edges = self.edges_of_result(spec, to)?;
        let in_place = spec.inputs.iter().any(|operand| match operand {
            Operand::View(view) => view.base.text == to.base.text,
            Operand::Number(_) | Operand::Value(_) => false,
        });
        if !in_place {
            let depth = self.domains.loops.len();
            let known = self.domains.depths.entry(buffer).or_insert(depth);
            if to.ops.is_empty() {
                *known = depth;
            }
        } else if self.domains.first_loop(buffer).is_some() {
            // The next iteration starts with the result of this one, so only a stable value is
            // known.
            let before = self.domains.edges.get(&buffer).map_or(&[][..], |e| &e[..]);
            for edge in &mut edges {
                let same = before.iter().find(|e| e.is_same(edge));
                edge.outside =
                    edge.outside.filter(|_| same.is_some_and(|e| e.outside == edge.outside));
            }
        }
        let number = match (spec.kind, spec.inputs.first()) {
            (SpecKind::Init, Some(Operand::Number(n))) => n.text.parse::<f64>().ok(),
            _ => None,
        };
        let condition = self.condition_of(spec)?;
        let whole = to.ops.is_empty();
        if let (SpecKind::Reduction(ReduceOp::Max | ReduceOp::Maximum), Some(from), true) =
            (spec.kind, self.buffer_of_whole(spec.inputs.first()), whole)
        {
            self.domains.largest.insert(buffer, from);
        }
        let all = &mut self.domains;
        all.numbers.remove(&buffer);
        all.conditions.remove(&buffer);
        if let Some(number) = number.filter(|_| whole) {
            all.numbers.insert(buffer, number);
        }
        if let Some(condition) = condition.filter(|_| whole) {
            all.conditions.insert(buffer, condition);
        }
        if !whole {
            // The other parts of the buffer do not change.
            let mut parts = vec![];
            let before = all.edges.remove(&buffer).unwrap_or_default();
            before.iter().chain(&edges).for_each(|e| add_edge(&mut parts, e.unclear()));
            if !parts.is_empty() {
                all.edges.insert(buffer, parts);
            }
            return Ok(());
        }
        match edges.is_empty() {
            true => drop(all.edges.remove(&buffer)),
            false => drop(all.edges.insert(buffer, edges)),
        }
        Ok(())
    }

    /// The edges of a buffer after an operation that accumulates in it: the edges before, and those
    /// of the added operand. Edges that change with the iteration are dropped, because other
    /// iterations add other elements.
    fn edges_of_combined(
        &mut self,
        spec: &ast::Spec,
        to: &View,
        buffer: BufferId,
    ) -> Fallible<Vec<Edge>> {
        let before = self.domains.edges.get(&buffer).cloned().unwrap_or_default();
        let number = self.domains.numbers.get(&buffer).copied();
        let first_loop = self.domains.first_loop(buffer);
        let (op, i) = match spec.kind {
            SpecKind::Binary(op) => {
                (Some(op), self.accumulated_input(spec, op)?.map_or(0, |(i, _)| i))
            }
            SpecKind::Accumulate(AccumulateOp::Add) => (Some(BinaryOp::Add), 0),
            SpecKind::Accumulate(AccumulateOp::Min) => (Some(BinaryOp::Min), 0),
            SpecKind::Accumulate(AccumulateOp::Max) => (Some(BinaryOp::Max), 0),
            _ => (None, 0),
        };
        let sizes = self.sizes_of(to)?;
        let mut inputs: Vec<Vec<Edge>> = vec![];
        for i in 0..spec.inputs.len() {
            inputs.push(self.edges_of(spec, i)?);
        }
        let added = match op {
            Some(_) => {
                let own = inputs.get(i).cloned().unwrap_or_default();
                own.into_iter().filter_map(|e| self.spread(e, &sizes)).collect()
            }
            None => self.edges_of_product(inputs.clone(), &sizes, to.span)?,
        };
        if !to.ops.is_empty() {
            // The other parts of the buffer do not change.
            let mut parts = vec![];
            before.iter().chain(&added).for_each(|e| {
                let edge = Edge { outside: None, ..e.unclear() };
                if !self.is_of(e, first_loop) {
                    add_edge(&mut parts, edge);
                }
            });
            return Ok(parts);
        }
        let spread: Vec<Vec<Edge>> = inputs
            .into_iter()
            .map(|edges| edges.into_iter().filter_map(|e| self.spread(e, &sizes)).collect())
            .collect();
        let added_number = self.number_of(spec.inputs.get(i));
        let mut out = vec![];
        for edge in before {
            let of_input = added.iter().find(|e| e.is_same(&edge)).and_then(|e| e.outside);
            let outside = match spec.kind {
                SpecKind::Binary(_) => self.computed_outside(spec, &spread, &edge)?,
                SpecKind::Accumulate(_) => op
                    .zip(edge.outside.zip(added_number.or(of_input)))
                    .and_then(|(op, (x, y))| of_binary(op, x, y)),
                _ => None,
            };
            // In a loop, the value must be the same after any number of iterations.
            let outside = outside.filter(|_| first_loop.is_none() || outside == edge.outside);
            out.push(Edge { outside, ..edge });
        }
        for edge in added {
            if self.is_of(&edge, first_loop) || out.iter().any(|e| e.is_same(&edge)) {
                continue;
            }
            let outside =
                op.zip(number.zip(edge.outside)).and_then(|(op, (x, y))| of_binary(op, x, y));
            let outside = outside.filter(|_| first_loop.is_none() || outside == number);
            out.push(Edge { outside, ..edge });
        }
        Ok(out)
    }

    /// Whether an edge may differ in another iteration of this loop or of a loop inside it.
    fn is_of(&self, edge: &Edge, first_loop: Option<VarId>) -> bool {
        let vars = [edge.offset, edge.extent].map(|d| self.p.arena.vars_of(d)).concat();
        first_loop.is_some_and(|first| vars.iter().any(|v| *v >= first))
    }

    /// The edges of a matrix product: those of the factors along modes of the product.
    fn edges_of_product(
        &self,
        inputs: Vec<Vec<Edge>>,
        sizes: &[Dim],
        span: Span,
    ) -> Fallible<Vec<Edge>> {
        let mut inputs = inputs.into_iter();
        let (a, b) = (inputs.next().unwrap_or_default(), inputs.next().unwrap_or_default());
        let rank = sizes.len();
        if rank < 2 {
            return Ok(vec![]);
        }
        let mut found = vec![];
        for (edges, contracted, own) in [(a, rank - 1, rank - 2), (b, rank - 2, rank - 1)] {
            for mut edge in edges {
                if edge.depends_on([contracted]) || edge.modes.len() != rank {
                    continue;
                }
                let other = if own == rank - 2 { rank - 1 } else { rank - 2 };
                edge.modes[other] = self.flat(sizes[other], span)?;
                found.push(Edge { outside: None, ..edge });
            }
        }
        Ok(found)
    }

    /// The value of an operand that is a number or a buffer of equal elements.
    fn number_of(&self, operand: Option<&Operand>) -> Option<f64> {
        match operand {
            Some(Operand::Number(n)) => n.text.parse::<f64>().ok(),
            operand => {
                let buffer = self.buffer_of_whole(operand)?;
                self.domains.numbers.get(&buffer).copied()
            }
        }
    }

    /// Records the required value of an operand, to check it for later iterations.
    fn ask(
        &mut self,
        spec: &ast::Spec,
        (i, meet): (usize, Option<&Vec<usize>>),
        own: &[Edge],
        number: f64,
    ) {
        let Some(Operand::View(view)) = spec.inputs.get(i) else { return };
        let Some(Binding::Tensor(t)) = self.scopes.get(Sigil::Data, &view.base.text) else {
            return;
        };
        let buffer = self.p.tensors[t].buffer;
        let edges = self.domains.edges.get(&buffer).cloned().unwrap_or_default();
        if let Some(open) = self.domains.loops.last_mut() {
            let modes = meet.filter(|_| view.ops.is_empty()).cloned();
            open.asked.push(Asked {
                buffer,
                edges,
                own: own.to_vec(),
                modes,
                number,
                span: view.span,
            });
        }
    }

    /// The edges of a result: those of all inputs, with the computed values outside.
    fn edges_of_result(&mut self, spec: &ast::Spec, to: &View) -> Fallible<Vec<Edge>> {
        let rank_and_sizes = self.sizes_of(to)?;
        let mut inputs: Vec<Vec<Edge>> = vec![];
        for i in 0..spec.inputs.len() {
            inputs.push(self.edges_of(spec, i)?);
        }
        match spec.kind {
            SpecKind::Move | SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select => {
                let mut found: Vec<Edge> = vec![];
                let spread: Vec<Vec<Edge>> = inputs
                    .into_iter()
                    .map(|edges| {
                        edges.into_iter().filter_map(|e| self.spread(e, &rank_and_sizes)).collect()
                    })
                    .collect();
                // A Select by coordinates states the values outside, even if the edges are unclear.
                let chooses = spec.kind == SpecKind::Select
                    && self
                        .buffer_of_whole(spec.inputs.first())
                        .is_some_and(|c| self.domains.conditions.contains_key(&c));
                for edge in spread.iter().flatten() {
                    if chooses && edge.modes.is_empty() {
                        continue;
                    }
                    let outside = self.computed_outside(spec, &spread, edge)?;
                    add_edge(&mut found, Edge { outside, ..edge.clone() });
                }
                Ok(found)
            }
            SpecKind::Reduction(_) => {
                let axes = self.modes_that_meet(spec)?;
                let kept_rank = rank_and_sizes.len();
                let edges = inputs.into_iter().next().unwrap_or_default();
                let kept = edges.into_iter().filter(|e| !e.depends_on(axes.iter().copied()));
                Ok(kept.filter_map(|e| reduced(e, &axes, kept_rank)).collect())
            }
            SpecKind::MatMulSet => self.edges_of_product(inputs, &rank_and_sizes, to.span),
            SpecKind::Accumulate(_)
            | SpecKind::MatMul
            | SpecKind::Shfl(_)
            | SpecKind::Init
            | SpecKind::Iota
            | SpecKind::Generic => Ok(vec![]),
        }
    }

    /// A mode along which a coordinate is constant.
    fn flat(&self, size: Dim, span: Span) -> Fallible<Layout<Dim>> {
        Layout::new_in(&self.p.arena, IntTuple::Leaf(size), IntTuple::Leaf(Dim::Const(0)))
            .map_err(|e| super::exprs::refused(span, &e))
    }

    /// The edge after broadcasting modes of extent 1; `None` if the ranks differ.
    fn spread(&self, edge: Edge, sizes: &[Dim]) -> Option<Edge> {
        if edge.modes.is_empty() {
            return Some(edge);
        }
        if edge.modes.len() != sizes.len() {
            return None;
        }
        let mut modes = vec![];
        for (mode, size) in edge.modes.iter().zip(sizes) {
            let own = mode.size_in(&self.p.arena).ok()?;
            modes.push(match own == *size || !is_constant(mode) {
                true => mode.clone(),
                false => self.flat(*size, Span::default()).ok()?,
            });
        }
        Some(Edge { modes, ..edge })
    }

    /// The value that an operation computes for elements outside of an edge.
    fn computed_outside(
        &mut self,
        spec: &ast::Spec,
        inputs: &[Vec<Edge>],
        edge: &Edge,
    ) -> Fallible<Option<f64>> {
        if spec.kind == SpecKind::Select {
            // If the condition is that of the edge, the Select takes the second alternative
            // outside.
            let condition = self.buffer_of_whole(spec.inputs.first());
            let same = condition
                .and_then(|c| self.domains.conditions.get(&c))
                .is_some_and(|c| self.tells(c, edge));
            if same {
                let other = self.buffer_of_whole(spec.inputs.get(2));
                return Ok(other.and_then(|b| self.domains.numbers.get(&b)).copied());
            }
        }
        let mut values = vec![];
        for (i, edges) in inputs.iter().enumerate() {
            let number = self.number_of(spec.inputs.get(i));
            let outside = edges.iter().find(|e| e.is_same(edge)).and_then(|e| e.outside);
            values.push(number.or(outside));
        }
        Ok(match (spec.kind, &values[..]) {
            (SpecKind::Move | SpecKind::Unary(UnaryOp::Cast), [x]) => *x,
            (SpecKind::Unary(op), [Some(x)]) => of_unary(op, *x),
            // Both alternatives are equal.
            (SpecKind::Select, [_, Some(x), Some(y)]) if x == y => Some(*x),
            (SpecKind::Binary(op), [Some(x), Some(y)]) => of_binary(op, *x, *y),
            // -inf minus a row's maximum is -inf, or NaN if the maximum is -inf; in that case the
            // elements inside are NaN, too.
            (SpecKind::Binary(BinaryOp::Sub), [Some(x), None]) if *x == f64::NEG_INFINITY => {
                let [from, largest] = [0, 1].map(|i| self.buffer_of_whole(spec.inputs.get(i)));
                let own = largest.and_then(|b| self.domains.largest.get(&b)).copied();
                (from.is_some() && own == from).then_some(*x)
            }
            _ => None,
        })
    }

    /// Whether a condition holds exactly inside of an edge.
    fn tells(&self, condition: &Edge, edge: &Edge) -> bool {
        let cx = &self.p.arena;
        let same_modes = condition.modes.len() == edge.modes.len()
            && condition.modes.iter().zip(&edge.modes).all(|(c, e)| {
                is_constant(c) && is_constant(e)
                    || match (c.coalesce_in(cx), e.coalesce_in(cx)) {
                        (Ok(c), Ok(e)) => c.leaves() == e.leaves(),
                        _ => false,
                    }
            });
        let room = |e: &Edge| cx.sub(e.extent, e.offset).ok();
        if same_modes && room(condition).is_some() && room(condition) == room(edge) {
            return true;
        }
        // Otherwise, compare with the condition that `limit` derives.
        let Some((axis, mode)) = edge.varying() else { return false };
        let Some((op, limit)) = self.limit(edge, mode, Span::default()).ok().flatten() else {
            return false;
        };
        // For `>=`, the coordinates count down.
        let (step, room) = match op {
            BinaryOp::Ge => {
                let room = room(condition).and_then(|room| cx.sub(Dim::Const(1), room).ok());
                (Dim::Const(-1), room)
            }
            _ => (Dim::Const(1), room(condition)),
        };
        let counts = condition.modes.iter().enumerate().all(|(i, m)| {
            let coalesced = m.coalesce_in(cx);
            match coalesced {
                Ok(m) if i == axis => matches!(m.leaves(), [(_, by)] if *by == step),
                Ok(m) => is_constant(&m),
                Err(_) => false,
            }
        });
        counts && room == Some(limit)
    }

    /// The edge that corresponds to a condition such as `%x.iota(1) < N`.
    fn condition_of(&mut self, spec: &ast::Spec) -> Fallible<Option<Edge>> {
        let (
            SpecKind::Binary(op @ (BinaryOp::Lt | BinaryOp::Ge)),
            [Operand::View(coordinate), number],
        ) = (spec.kind, &spec.inputs[..])
        else {
            return Ok(None);
        };
        let extent = match number {
            Operand::Number(n) => n.text.parse::<i64>().ok().map(Dim::Const),
            Operand::Value(_) | Operand::View(_) => None,
        };
        let Some(extent) = extent else { return Ok(None) };
        let t = match coordinate.ops.is_empty() {
            true => match self.scopes.get(Sigil::Data, &coordinate.base.text) {
                Some(Binding::Tensor(t)) => self.p.tensors[t].clone(),
                _ => return Ok(None),
            },
            false => self.data_view(coordinate)?,
        };
        if !self.p.buffers[t.buffer].is_computed() {
            return Ok(None);
        }
        let modes: Vec<Layout<Dim>> = t.levels.iter().flat_map(Layout::modes).collect();
        let edge = Edge { modes, offset: t.offset, extent, outside: None };
        Ok(if op == BinaryOp::Ge { self.counted_down(&edge) } else { Some(edge) })
    }

    /// The elements whose coordinate is at least the extent, as an edge.
    fn counted_down(&self, edge: &Edge) -> Option<Edge> {
        let cx = &self.p.arena;
        let negative = |d: Dim| cx.sub(Dim::Const(0), d).ok();
        let mut modes = vec![];
        for mode in &edge.modes {
            let mut strides = vec![];
            for stride in mode.stride().flatten() {
                strides.push(negative(stride)?);
            }
            let mut strides = strides.into_iter();
            let stride = mode.stride().map(&mut |_| strides.next().unwrap_or(Dim::Const(0)));
            modes.push(Layout::new_in(cx, mode.shape(), stride).ok()?);
        }
        let extent = cx.sub(Dim::Const(1), edge.extent).ok()?;
        Some(Edge { modes, offset: negative(edge.offset)?, extent, outside: None })
    }

    fn buffer_of_whole(&self, operand: Option<&Operand>) -> Option<BufferId> {
        let Some(Operand::View(view)) = operand else { return None };
        match self.scopes.get(Sigil::Data, &view.base.text) {
            Some(Binding::Tensor(t)) if view.ops.is_empty() => Some(self.p.tensors[t].buffer),
            _ => None,
        }
    }

    /// The input of an operation that accumulates in its output, and its neutral value.
    fn accumulated_input(
        &mut self,
        spec: &ast::Spec,
        op: BinaryOp,
    ) -> Fallible<Option<(usize, f64)>> {
        let Some(to) = spec.outputs.first() else { return Ok(None) };
        let is_output = |i: usize| {
            matches!(
                spec.inputs.get(i),
                Some(Operand::View(v)) if v.base.text == to.base.text && v.ops == to.ops
            )
        };
        let i = match (is_output(0), is_output(1)) {
            (true, false) => 1,
            (false, true) if op != BinaryOp::Sub && op != BinaryOp::Div => 0,
            _ => return Ok(None),
        };
        if !matches!(spec.inputs.get(i), Some(Operand::View(_))) {
            return Ok(None);
        }
        let scalar = self.scalar_of_input(spec, i)?;
        let op = match op {
            BinaryOp::Add | BinaryOp::Sub => ReduceOp::Sum,
            BinaryOp::Mul | BinaryOp::Div => ReduceOp::Prod,
            BinaryOp::Min => ReduceOp::Min,
            BinaryOp::Max => ReduceOp::Max,
            BinaryOp::Minimum => ReduceOp::Minimum,
            BinaryOp::Maximum => ReduceOp::Maximum,
            BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Eq
            | BinaryOp::Ne
            | BinaryOp::Ge
            | BinaryOp::Gt => {
                return Ok(None);
            }
        };
        Ok(op.neutral(scalar).map(|n| (i, n)))
    }

    fn scalar_of_input(&mut self, spec: &ast::Spec, i: usize) -> Fallible<Scalar> {
        match spec.inputs.get(i) {
            Some(Operand::View(v)) => Ok(self.looked_at(v)?.scalar),
            _ => Ok(Scalar::F32),
        }
    }

    fn rank_of_input(&mut self, spec: &ast::Spec, i: usize) -> Fallible<usize> {
        match spec.inputs.get(i) {
            Some(Operand::View(v)) => Ok(self.looked_at(v)?.extents.len()),
            _ => Ok(0),
        }
    }

    fn sizes_of(&mut self, view: &View) -> Fallible<Vec<Dim>> {
        Ok(self.looked_at(view)?.extents)
    }

    fn edges_of(&mut self, spec: &ast::Spec, i: usize) -> Fallible<Vec<Edge>> {
        match spec.inputs.get(i) {
            Some(Operand::View(view)) => self.edges_of_view(view),
            _ => Ok(vec![]),
        }
    }

    fn edges_of_output(&mut self, spec: &ast::Spec) -> Fallible<Vec<Edge>> {
        spec.outputs.first().map_or(Ok(vec![]), |to| self.edges_of_view(to))
    }

    /// The edges of a view.
    fn edges_of_view(&mut self, view: &View) -> Fallible<Vec<Edge>> {
        let id = self.tensor_named(&view.base.text, view.base.span)?;
        let buffer = self.p.tensors[id].buffer;
        if self.p.buffers[buffer].is_global() {
            let t = self.viewed(view)?;
            // Filled elements are not outside.
            let bounds = t.bounds.iter().filter(|b| !b.filled);
            return Ok(bounds.map(|b| edge_of(b, Some(0.0))).collect());
        }
        let Some(edges) = self.domains.edges.get(&buffer).cloned() else { return Ok(vec![]) };
        let own = |op: &ViewOp| match op {
            ViewOp::Tile(_) | ViewOp::Index(_) | ViewOp::Permute(_) | ViewOp::Reshape(_) => true,
            ViewOp::Pick(picks) => !picks.iter().any(|p| matches!(p, Pick::From(_))),
            _ => false,
        };
        if self.p.buffers[buffer].tensor != id {
            // A named view. For the values of one thread nothing is tracked; for parts, the edges
            // are unclear.
            let whole = &self.p.tensors[self.p.buffers[buffer].tensor];
            let own = whole.dist.is_some() && self.p.tensors[id].dist.is_none();
            return Ok(if own { vec![] } else { edges.iter().map(Edge::unclear).collect() });
        }
        if view.ops.is_empty() {
            return Ok(edges);
        }
        let (edges, unclear): (Vec<Edge>, Vec<Edge>) =
            edges.into_iter().partition(|e| !e.modes.is_empty());
        if !view.ops.iter().all(own) {
            return Ok(vec![]);
        }
        let mut t = self.p.tensors[id].clone();
        let ranks: Vec<usize> = t.levels.iter().map(Layout::rank).collect();
        for edge in &edges {
            let mut modes = edge.modes.iter().cloned();
            let mut levels = vec![];
            for rank in &ranks {
                let own: Vec<Layout<Dim>> = modes.by_ref().take(*rank).collect();
                levels.push(self.joined(&own, view.span)?);
            }
            let (offset, extent) = (edge.offset, edge.extent);
            t.bounds.push(Bound { levels, offset, extent, filled: false });
        }
        for op in &view.ops {
            self.apply_to_bounds(&mut t, op, view)?;
        }
        let found = t.bounds.iter().zip(&edges).map(|(b, e)| edge_of(b, e.outside));
        Ok(found.chain(unclear).collect())
    }

    fn apply_to_bounds(&mut self, t: &mut Tensor, op: &ViewOp, view: &View) -> Fallible<()> {
        // Use positions of the tensor instead of registers.
        t.dist = None;
        self.apply(t, op, view)
    }

    /// Enters a loop.
    pub(super) fn begin_loop(&mut self, var: VarId) {
        let buffers = self.p.buffers.len();
        self.domains.loops.push(OpenLoop { var, buffers, asked: vec![] });
    }

    /// Whether the current statement is in a loop.
    pub(super) fn in_loop(&self) -> bool {
        !self.domains.loops.is_empty()
    }

    /// Leaves a loop. Values that the next iteration reads must satisfy the requirements of the
    /// first one. Edges that depend on the loop variable become unclear.
    pub(super) fn end_loop(&mut self) -> Fallible<()> {
        let Some(OpenLoop { var, buffers, asked }) = self.domains.loops.pop() else {
            return Ok(());
        };
        let open = self.domains.loops.len();
        self.domains.depths.values_mut().for_each(|depth| *depth = open.min(*depth));
        let cx = &self.p.arena;
        let mut changed = None;
        for one in &asked {
            let now = self.domains.edges.get(&one.buffer).map_or(&[][..], |e| &e[..]);
            let before = usize::from(one.buffer) < buffers;
            let apart =
                |e: &Edge| one.modes.as_ref().is_some_and(|m| !e.depends_on(m.iter().copied()));
            // If a Select precedes the access, the values outside do not matter.
            let chosen =
                |e: &Edge| one.edges.iter().any(|o| o.is_same(e) && o.outside != Some(one.number));
            let holds = |e: &Edge| {
                e.outside == Some(one.number)
                    || one.edges.contains(e)
                    || one.own.iter().any(|o| o.is_same(e))
                    || chosen(e)
                    || apart(e)
            };
            if before && !now.iter().all(holds) {
                changed = changed.or(Some((one.buffer, one.span)));
            }
        }
        for edges in self.domains.edges.values_mut() {
            let depends =
                |e: &Edge| [e.offset, e.extent].iter().any(|d| cx.vars_of(*d).contains(&var));
            if edges.iter().any(depends) {
                let mut all = vec![];
                for edge in edges.iter() {
                    let edge = if depends(edge) { edge.unclear() } else { edge.clone() };
                    add_edge(&mut all, edge);
                }
                *edges = all;
            }
        }
        if let Some(outer) = self.domains.loops.last_mut() {
            outer.asked.extend(asked);
        }
        let Some((buffer, at)) = changed else { return Ok(()) };
        let name = &self.p.buffers[buffer].name;
        fail(
            Diagnostic::new(
                Code::TileDivides,
                at,
                format!("the existing elements of `%{name}` change from iteration to iteration"),
            )
            .label("read before the next write")
            .help("choose tiles that divide the mode, or read it after the write"),
        )
    }

    /// Leaves the first branch: returns its edges, and restores those before the branch.
    pub(super) fn end_branch(&mut self, before: Known) -> Known {
        Known(std::mem::replace(&mut self.domains.edges, before.0))
    }

    /// Leaves the second branch, which may be missing. Edges that differ between the branches
    /// become unclear.
    pub(super) fn join_branches(&mut self, first: &Known) {
        let mut joined: BTreeMap<BufferId, Vec<Edge>> = BTreeMap::new();
        let now = std::mem::take(&mut self.domains.edges);
        for (buffer, edges) in first.0.iter().chain(&now) {
            if first.0.get(buffer) == now.get(buffer) {
                joined.insert(*buffer, edges.clone());
                continue;
            }
            let all = joined.entry(*buffer).or_default();
            edges.iter().for_each(|e| add_edge(all, e.unclear()));
        }
        self.domains.edges = joined;
    }

    /// The current edges.
    pub(super) fn known_edges(&self) -> Known {
        Known(self.domains.edges.clone())
    }
}

/// The edges of buffers at one place.
pub(super) struct Known(BTreeMap<BufferId, Vec<Edge>>);

/// The edge of a bound.
fn edge_of(bound: &Bound, outside: Option<f64>) -> Edge {
    let modes = bound.levels.iter().flat_map(Layout::modes).collect();
    Edge { modes, offset: bound.offset, extent: bound.extent, outside }
}

/// The edge of a reduction's result, without the removed modes or with extent 1 for them.
fn reduced(edge: Edge, axes: &[usize], rank: usize) -> Option<Edge> {
    if edge.modes.len() == rank {
        let one = |(i, mode): (usize, &Layout<Dim>)| match axes.contains(&i) {
            false => Some(mode.clone()),
            true => Layout::of_mode(Dim::Const(1), Dim::Const(0)).ok(),
        };
        let modes = edge.modes.iter().enumerate().map(one).collect::<Option<_>>()?;
        return Some(Edge { modes, outside: None, ..edge });
    }
    let modes = edge.modes.iter().enumerate();
    let modes: Vec<Layout<Dim>> =
        modes.filter(|(i, _)| !axes.contains(i)).map(|(_, m)| m.clone()).collect();
    (modes.len() == rank).then_some(Edge { modes, outside: None, ..edge })
}

fn of_accumulate(op: AccumulateOp) -> ReduceOp {
    match op {
        AccumulateOp::Add => ReduceOp::Sum,
        AccumulateOp::Min => ReduceOp::Min,
        AccumulateOp::Max => ReduceOp::Max,
    }
}

/// The result of an operation, if every type represents it exactly.
fn of_unary(op: UnaryOp, x: f64) -> Option<f64> {
    match op {
        UnaryOp::Cast => Some(x),
        UnaryOp::Neg => Some(-x),
        UnaryOp::Abs => Some(x.abs()),
        UnaryOp::Relu => Some(x.max(0.0)),
        UnaryOp::Exp | UnaryOp::Exp2 if x == 0.0 => Some(1.0),
        UnaryOp::Exp | UnaryOp::Exp2 if x == f64::NEG_INFINITY => Some(0.0),
        UnaryOp::Sqrt | UnaryOp::Tanh | UnaryOp::Gelu | UnaryOp::Silu if x == 0.0 => Some(0.0),
        _ => None,
    }
}

/// The result of an operation with two operands. Sums, products and extrema of 0, 1 and infinities
/// are exact.
fn of_binary(op: BinaryOp, x: f64, y: f64) -> Option<f64> {
    let exact = |v: f64| [0.0, 1.0].contains(&v.abs()) || v.is_infinite();
    if !exact(x) || !exact(y) {
        return None;
    }
    let v = match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        // The operands are not NaN.
        BinaryOp::Min | BinaryOp::Minimum => x.min(y),
        BinaryOp::Max | BinaryOp::Maximum => x.max(y),
        BinaryOp::Div
        | BinaryOp::Lt
        | BinaryOp::Le
        | BinaryOp::Eq
        | BinaryOp::Ne
        | BinaryOp::Ge
        | BinaryOp::Gt => {
            return None;
        }
    };
    (exact(v) && !v.is_nan()).then_some(v)
}
