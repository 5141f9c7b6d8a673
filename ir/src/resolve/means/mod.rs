//! Resolves `means` blocks, which state the meaning of a generic spec as a sequence of specs on
//! whole tensors. The simulator compares the results of the body with it.
//!
//! A value of the block is an operand as it is when the spec begins, or the result of a step.
//! Results have no memory; their extents and types are inferred, and floats are real numbers.
//! Moves, pointwise specs and Selects broadcast modes of extent 1. An output that is read before it
//! is assigned has its old value. The most important rules:
//!
//! - V0232 every output is assigned once, every result is read, and all names are operands.
//! - V0221 the block contains only views, constants, and specs without executors.
//! - V0207, V0208, V0217, V0218 types, extents, operands and attributes fit, as in a body.

mod types;

use super::exprs::refused;
use super::scope::Sigil;
use super::tensors::in_mode;
use super::{Fallible, Resolver, fail};
use crate::ast::{self, Attr, Expr, Key, Numbers, SpecKind, ViewOp};
use crate::diag::{Code, Diagnostic, apart};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::leaf::Leaf;
use crate::program::{Means, MeansInput, MeansOp, MeansStep, MeansValue, Operand, Spec, TensorId};
use crate::scalar::Scalar;
use crate::span::Span;
use crate::verify::no_literal;
use std::collections::HashMap;

/// The resolved part of a block.
struct Chain {
    means: Means,
    /// The current value of each name.
    names: HashMap<String, usize>,
    /// The outputs of the spec by name: index, and place of the assignment.
    outputs: HashMap<String, (usize, Option<Span>)>,
    /// For each value the place of its name, and whether it is read.
    seen: Vec<(Span, bool)>,
}

/// The operands of a step.
struct Found {
    inputs: Vec<MeansInput>,
    /// The inputs that are tensors.
    values: Vec<usize>,
}

impl Resolver {
    /// Resolves the `means` block of a spec whose head is resolved.
    pub(super) fn means(
        &mut self,
        spec: &ast::Spec,
        head: &Spec,
        block: &ast::Block,
    ) -> Fallible<(Means, ast::Block)> {
        if spec.kind != SpecKind::Generic {
            return fail(
                Diagnostic::new(
                    Code::Meaning,
                    spec.span,
                    format!("a {} has a `means` block", spec.kind),
                )
                .label("its name already states its meaning")
                .help("remove the `means` block, or write `Spec`"),
            );
        }
        self.scopes.enter();
        let found = self.chain(spec, head, block);
        self.scopes.leave();
        found
    }

    fn chain(
        &mut self,
        spec: &ast::Spec,
        head: &Spec,
        block: &ast::Block,
    ) -> Fallible<(Means, ast::Block)> {
        let mut c = Chain {
            means: Means::default(),
            names: HashMap::new(),
            outputs: HashMap::new(),
            seen: vec![],
        };
        for (written, operand) in spec.inputs.iter().zip(&head.inputs) {
            if let (ast::Operand::View(view), Operand::Tensor(t)) = (written, operand) {
                self.operand_value(&mut c, view, *t)?;
            }
        }
        for (i, (view, t)) in spec.outputs.iter().zip(&head.outputs).enumerate() {
            self.operand_value(&mut c, view, *t)?;
            c.means.outputs.push(usize::MAX);
            if view.ops.is_empty() {
                c.outputs.entry(view.base.text.clone()).or_insert((i, None));
            }
        }
        let mut written = ast::Block { stmts: vec![], footer: block.footer.clone() };
        for stmt in &block.stmts {
            let stored = stored_view(&c, stmt);
            let stmt = stored.as_ref().unwrap_or(stmt);
            let ast::StmtKind::Assign { target, ty, value } = &stmt.kind else {
                self.means_stmt(&mut c, stmt, head)?;
                written.stmts.push(stmt.clone());
                continue;
            };
            if let Some(ty) = ty {
                return fail(
                    Diagnostic::new(
                        Code::Placement,
                        ty.span,
                        "a `means` block cannot state a type",
                    )
                    .help("remove it: the operands determine types"),
                );
            }
            let mut steps = self.meant(stmt, target, value)?;
            for step in &steps {
                self.means_stmt(&mut c, step, head)?;
            }
            if let Some(first) = steps.first_mut() {
                first.blank_above = stmt.blank_above;
                first.leading.clone_from(&stmt.leading);
                first.trailing.clone_from(&stmt.trailing);
            }
            written.stmts.append(&mut steps);
        }
        if let Some(i) = c.means.outputs.iter().position(|v| *v == usize::MAX) {
            let name = self.p.tensor_name(head.outputs[i]);
            let named = spec.outputs[i].ops.is_empty();
            return fail(
                Diagnostic::new(
                    Code::Meaning,
                    spec.outputs[i].span,
                    format!("the `means` block does not assign {name}"),
                )
                .help(match named {
                    true => format!("add a spec with the output {name}"),
                    false => "name the operand before the spec, `%c = ..`, so that the block can \
                              refer to it"
                        .to_owned(),
                }),
            );
        }
        let unread = c.means.values.iter().zip(&c.seen).enumerate().find(|(i, (value, seen))| {
            value.operand.is_none() && !seen.1 && !c.means.outputs.contains(i)
        });
        if let Some((_, (value, (span, _)))) = unread {
            return fail(
                Diagnostic::new(
                    Code::Meaning,
                    *span,
                    format!("nothing reads `%{}`", value.name.clone().unwrap_or_default()),
                )
                .help("remove it, or correct the name in the step that should read it"),
            );
        }
        Ok((c.means, written))
    }

    /// Adds an operand of the spec with its value when the spec begins.
    fn operand_value(&self, c: &mut Chain, view: &ast::View, t: TensorId) -> Fallible<()> {
        let name = &view.base.text;
        if !view.ops.is_empty() || c.names.contains_key(name) {
            return Ok(());
        }
        let tensor = &self.p.tensors[t];
        let whole = tensor.concat();
        let extents = whole
            .modes()
            .iter()
            .map(|m| m.size_in(&self.p.arena).map_err(|e| refused(view.span, &e)))
            .collect::<Fallible<Vec<Dim>>>()?;
        let scalar = self.p.scalar_of(t);
        if scalar == Scalar::Mbarrier {
            return Ok(());
        }
        let value = MeansValue { name: Some(name.clone()), scalar, extents, operand: Some(t) };
        let id = c.push(value, view.span);
        c.names.insert(name.clone(), id);
        Ok(())
    }

    fn means_stmt(&mut self, c: &mut Chain, stmt: &ast::Stmt, head: &Spec) -> Fallible<()> {
        let misplaced = |span: Span, what: &str, help: &str| {
            fail(
                Diagnostic::new(
                    Code::Placement,
                    span,
                    format!("{what} is not allowed in a `means` block"),
                )
                .label("the block contains only specs on whole tensors, views and constants")
                .help(help),
            )
        };
        match &stmt.kind {
            ast::StmtKind::Let(_) => self.stmt_kind(stmt).map(drop),
            ast::StmtKind::DataDef { name, ty: None, view } => {
                self.is_no_store(name, view)?;
                let value = self.means_view(c, view)?;
                self.name_value(c, name, value)
            }
            ast::StmtKind::DataDef { .. } => {
                misplaced(stmt.span, "a type", "remove it: the operands determine types")
            }
            ast::StmtKind::Spec(spec) => {
                if spec.exec.is_some() {
                    let help = "remove `<<<..>>>`: a meaning has no executor";
                    return misplaced(spec.span, "an executor", help);
                }
                if spec.means.is_some() || spec.body.is_some() {
                    return misplaced(
                        spec.span,
                        "a body",
                        "remove it: the block states the result, not the implementation",
                    );
                }
                if let Some(name) = &spec.name {
                    return misplaced(name.span, "a kernel's name", "remove it");
                }
                self.means_spec(c, spec, head, self.line(stmt.span))
            }
            _ => misplaced(stmt.span, "a statement of a body", "move it into the body"),
        }
    }

    /// Binds a name to a value.
    fn name_value(&self, c: &mut Chain, name: &ast::Name, value: usize) -> Fallible<()> {
        let taken = c.names.contains_key(&name.text);
        if taken || self.scopes.get(Sigil::Data, &name.text).is_some() {
            let text = &name.text;
            let operand = c.outputs.contains_key(text) || taken;
            return fail(
                Diagnostic::new(Code::Redefined, name.span, format!("`%{text}` is defined twice"))
                    .help(match operand {
                        true => "choose another name; each name is assigned once",
                        false => "choose another name; a name cannot hide one in scope",
                    }),
            );
        }
        c.means.values[value].name.get_or_insert_with(|| name.text.clone());
        c.names.insert(name.text.clone(), value);
        Ok(())
    }

    /// The value of a name.
    fn value_named(&self, c: &mut Chain, name: &ast::Name) -> Fallible<usize> {
        if let Some(id) = c.names.get(&name.text) {
            c.seen[*id].1 = true;
            return Ok(*id);
        }
        if self.scopes.get(Sigil::Data, &name.text).is_some() {
            return fail(
                Diagnostic::new(
                    Code::Meaning,
                    name.span,
                    format!("`%{}` is not an operand of the spec", name.text),
                )
                .help("add it to the inputs of the spec"),
            );
        }
        let near = c.names.keys().map(|n| (apart(n, &name.text), n)).filter(|(d, _)| d.0 <= 2);
        let d = self.unknown(Sigil::Data, &name.text, name.span);
        Err(match near.min() {
            Some((_, near)) => Box::new(d.did_you_mean(&format!("%{near}"))),
            None => d,
        })
    }

    /// Resolves a name, or a view of a value.
    fn means_view(&self, c: &mut Chain, view: &ast::View) -> Fallible<usize> {
        let mut value = self.value_named(c, &view.base)?;
        let mut begin = 0;
        for (at, op) in view.ops.iter().enumerate() {
            if let ViewOp::Pad(pad) = op {
                value = self.means_part(c, value, view, begin..at)?;
                value = self.means_pad(c, value, view, pad)?;
                begin = at + 1;
            }
        }
        self.means_part(c, value, view, begin..view.ops.len())
    }

    /// Adds a step for `%x.pad([1,1], [1,1], -inf)`.
    fn means_pad(
        &self,
        c: &mut Chain,
        from: usize,
        view: &ast::View,
        pad: &ast::Pad,
    ) -> Fallible<usize> {
        let MeansValue { scalar, extents, .. } = c.means.values[from].clone();
        let value = pad.value.as_ref().map_or(Ok(0.0), |e| self.real(e))?;
        if !scalar.takes(value) {
            let span = pad.value.as_ref().map_or(view.span, |e| e.span);
            let (message, help) = no_literal(value, scalar);
            return fail(Diagnostic::new(Code::ScalarMismatch, span, message).help(help));
        }
        let sizes = self.pad_sizes(pad, extents.len(), view.span)?;
        let around = sizes.before.iter().copied().zip(sizes.behind);
        let longer = extents.iter().zip(around).map(|(n, by)| self.pad_extent(*n, by, view.span));
        let extents = longer.collect::<Fallible<Vec<Dim>>>()?;
        let op = MeansOp::Pad { before: sizes.before, value, pad: Box::new(pad.clone()) };
        Ok(self.step(c, op, &[from], (scalar, extents), view.span))
    }

    /// Adds steps for the operations `part` of a view.
    fn means_part(
        &self,
        c: &mut Chain,
        mut base: usize,
        view: &ast::View,
        part: std::ops::Range<usize>,
    ) -> Fallible<usize> {
        let end = part.end;
        let mut ops = &view.ops[part];
        let MeansValue { mut scalar, mut extents, .. } = c.means.values[base].clone();
        let mut whole = self.col_major(&extents, view.span)?;
        if let [ViewOp::Pick(picks), rest @ ..] = ops
            && let Some(axis) = picks.iter().position(|p| matches!(p, ast::Pick::From(_)))
        {
            (base, ops) =
                (self.means_gather(c, (base, &extents, scalar), picks, axis, view)?, rest);
            extents.clone_from(&c.means.values[base].extents);
            whole = self.col_major(&extents, view.span)?;
        }
        let mut is_whole = true;
        if let [ViewOp::Iota(axis), rest @ ..] = ops {
            (base, whole) = self.means_iota(c, (base, &extents), axis, view)?;
            (scalar, ops) = (Scalar::I32, rest);
            // Broadcast to the shape of the tensor, so that a reduction along another mode counts
            // every element.
            is_whole = extents.len() == 1;
        }
        if ops.is_empty() {
            return Ok(if is_whole { base } else { self.broadcast(c, base, extents, view.span) });
        }
        let mut levels = if whole.rank() == 0 { vec![] } else { vec![whole] };
        let mut offset = Dim::Const(0);
        for at in end - ops.len()..end {
            self.see(&mut levels, &mut offset, view, at)?;
        }
        self.check_joined(&levels, view.span)?;
        let modes: Vec<Layout<Dim>> = levels.iter().flat_map(Layout::modes).collect();
        let layout = self.joined(&modes, view.span)?;
        let extents = self.extents(&modes, view.span)?;
        let op = MeansOp::View { layout: Box::new(layout), offset, ops: ops.to_vec() };
        Ok(self.step(c, op, &[base], (scalar, extents), view.span))
    }

    /// Adds a step for the coordinates along one mode of a value. Also returns a layout that
    /// broadcasts them to the shape of the value.
    fn means_iota(
        &self,
        c: &mut Chain,
        (base, extents): (usize, &[Dim]),
        axis: &Expr,
        view: &ast::View,
    ) -> Fallible<(usize, Layout<Dim>)> {
        let mode = self.constant(axis, "the mode of the coordinates")?;
        let Some(mode) = usize::try_from(mode).ok().filter(|m| *m < extents.len()) else {
            return fail(
                Diagnostic::new(Code::WrongRank, view.span, format!("mode {mode} does not exist"))
                    .label(format!("`%{}` has {} modes", view.base.text, extents.len()))
                    .help("name a mode of the tensor, counted from 0"),
            );
        };
        // Coordinates are constant along the other modes.
        let is_mode = |i: usize| i == mode;
        let ones = (0..extents.len()).map(|i| if is_mode(i) { extents[i] } else { Dim::Const(1) });
        let op = MeansOp::Spec { kind: SpecKind::Iota, axes: vec![mode], scalar: None };
        let counted = self.step(c, op, &[base], (Scalar::I32, ones.collect()), view.span);
        let stride = (0..extents.len()).map(|i| Dim::Const(i64::from(is_mode(i))));
        let stride: Vec<Dim> = stride.collect();
        let whole = Layout::new_in(&self.p.arena, extents.to_vec(), stride)
            .map_err(|e| refused(view.span, &e))?;
        Ok((counted, whole))
    }

    fn col_major(&self, extents: &[Dim], span: Span) -> Fallible<Layout<Dim>> {
        Layout::col_major_in(&self.p.arena, extents.to_vec()).map_err(|e| refused(span, &e))
    }

    /// Applies operation `at` of a view to levels with this offset.
    fn see(
        &self,
        levels: &mut Vec<Layout<Dim>>,
        offset: &mut Dim,
        view: &ast::View,
        at: usize,
    ) -> Fallible<()> {
        let in_mode = |d| in_mode(d, view, at);
        match &view.ops[at] {
            ViewOp::Tile(tiler) => {
                let level = self.outermost(levels, view.span)?.clone();
                let (rest, tile) = self.tile(&level, tiler, false, view.span)?;
                levels.splice(0..1, [rest, tile]);
            }
            ViewOp::Reshape(l) => {
                let level = self.outermost(levels, view.span)?.clone();
                levels[0] = self.reshape(&level, l)?;
            }
            ViewOp::Index(args) => {
                let (first, kept) = self.index(levels.first(), args, view.span).map_err(in_mode)?;
                *offset = Dim::add(&self.p.arena, *offset, first)
                    .map_err(|e| super::exprs::overflow(view.span, &e))?;
                match kept {
                    Some(level) => levels[0] = level,
                    None => drop(levels.splice(0..usize::from(!levels.is_empty()), [])),
                }
            }
            ViewOp::Permute(order) => {
                let level = self.outermost(levels, view.span)?.clone();
                levels[0] = self.permuted(&level, order, view.span)?;
            }
            ViewOp::Pick(picks) if !picks.iter().any(|p| matches!(p, ast::Pick::From(_))) => {
                let level = self.outermost(levels, view.span)?.clone();
                let (first, entries) =
                    self.entries(Some(&level), picks, view.span).map_err(in_mode)?;
                *offset = Dim::add(&self.p.arena, *offset, first)
                    .map_err(|e| super::exprs::overflow(view.span, &e))?;
                let modes: Vec<_> = entries.into_iter().map(|(mode, _)| mode).collect();
                levels[0] = self.joined(&modes, view.span)?;
            }
            ViewOp::Iota(_) | ViewOp::Pick(_) => {
                return fail(
                    Diagnostic::new(
                        Code::Placement,
                        view.span,
                        "`.iota` or a gather after another operation in a `means` block",
                    )
                    .label("`.iota(..)` and `[%rows, _]` must directly follow the name")
                    .help("name the view before this operation"),
                );
            }
            ViewOp::Mine
            | ViewOp::Tv(..)
            | ViewOp::Scalar
            | ViewOp::Elect
            | ViewOp::Peer(_)
            | ViewOp::Plus(_)
            | ViewOp::Pad(_)
            | ViewOp::TensorMap { .. } => {
                return fail(
                    Diagnostic::new(
                        Code::Placement,
                        view.span,
                        "an operation on threads or memory is not allowed in a `means` block",
                    )
                    .help("use `.tile`, `.reshape`, `.pad` and indices"),
                );
            }
        }
        Ok(())
    }

    /// Adds a step that broadcasts a value along its modes of extent 1.
    fn broadcast(&self, c: &mut Chain, from: usize, extents: Vec<Dim>, span: Span) -> usize {
        let scalar = c.means.values[from].scalar;
        let op = MeansOp::Spec { kind: SpecKind::Move, axes: vec![], scalar: None };
        self.step(c, op, &[from], (scalar, extents), span)
    }

    /// Adds a step whose result has no name in the text.
    fn step(
        &self,
        c: &mut Chain,
        op: MeansOp,
        inputs: &[usize],
        (scalar, extents): (Scalar, Vec<Dim>),
        span: Span,
    ) -> usize {
        let output = c.push(MeansValue { name: None, scalar, extents, operand: None }, span);
        c.seen[output].1 = true;
        c.means.steps.push(MeansStep {
            op,
            inputs: inputs.iter().copied().map(MeansInput::Value).collect(),
            output,
            span,
            line: self.line(span),
        });
        output
    }

    /// Broadcasts the factors of a product along batches in which the other one has more than 1.
    fn broadcast_batches(&self, c: &mut Chain, found: &mut Found, span: Span) {
        let of = |i: usize| c.means.values[found.values[i]].extents.clone();
        let (mut a, mut b) = (of(0), of(1));
        let batches = a.len().saturating_sub(2);
        if a.len() != b.len() {
            return;
        }
        let before = (a.clone(), b.clone());
        for (a, b) in a.iter_mut().zip(&mut b).take(batches) {
            match (*a, *b) {
                (Dim::Const(1), more) => *a = more,
                (more, Dim::Const(1)) => *b = more,
                _ => {}
            }
        }
        for (i, (extents, before)) in [(a, before.0), (b, before.1)].into_iter().enumerate() {
            if extents != before {
                let value = self.broadcast(c, found.values[i], extents, span);
                found.values[i] = value;
                found.inputs[i] = MeansInput::Value(value);
            }
        }
    }

    /// Adds a step for `%A[%rows, _]`: elements whose coordinates along a mode are in another
    /// value.
    fn means_gather(
        &self,
        c: &mut Chain,
        (from, extents, scalar): (usize, &[Dim], Scalar),
        picks: &[ast::Pick],
        axis: usize,
        view: &ast::View,
    ) -> Fallible<usize> {
        let refuse = |message: String, help: &str| {
            fail(Diagnostic::new(Code::DataIndex, view.span, message).help(help))
        };
        let plain = |p: &ast::Pick| matches!(p, ast::Pick::Keep);
        if picks.len() != extents.len() {
            let message = format!("{} indices for {} modes", picks.len(), extents.len());
            return refuse(message, "write one entry for each mode; `_` takes the whole mode");
        }
        if picks.iter().enumerate().any(|(i, p)| i != axis && !plain(p)) {
            let message = "a gather also indexes other modes".to_owned();
            return refuse(message, "write `_` for them, and index the result");
        }
        let ast::Pick::From(name) = &picks[axis] else { return Ok(from) };
        let index = self.value_named(c, name)?;
        let MeansValue { scalar: of, extents: own, .. } = c.means.values[index].clone();
        if of.is_float() || of == Scalar::Bool || own.len() > 1 {
            let message = format!("`%{}` is not a tensor of coordinates", name.text);
            return refuse(message, "use integers with one mode or without modes");
        }
        let (lo, hi) = self.p.range_of(&c.means, index);
        let cx = &self.p.arena;
        if !self.is_within(lo.zip(hi), extents[axis]) {
            let n = cx.display(extents[axis]);
            let index = &name.text;
            let message = format!("cannot prove that the elements of `%{index}` are below {n}");
            let help = format!(
                "declare their range, `%{index}:[..].{of}.GL in 0..{n}`; bound computed ones, \
                 `min(max(%{index}, 0), {n} - 1)`"
            );
            return refuse(message, &help);
        }
        let mut result = extents.to_vec();
        match own.first() {
            Some(n) => result[axis] = *n,
            None => drop(result.remove(axis)),
        }
        let op = MeansOp::Gather { axis };
        Ok(self.step(c, op, &[from, index], (scalar, result), view.span))
    }

    fn extents(&self, modes: &[Layout<Dim>], span: Span) -> Fallible<Vec<Dim>> {
        let size = |m: &Layout<Dim>| m.size_in(&self.p.arena).map_err(|e| refused(span, &e));
        modes.iter().map(size).collect()
    }

    /// Resolves a spec of the block.
    fn means_spec(
        &mut self,
        c: &mut Chain,
        spec: &ast::Spec,
        head: &Spec,
        line: u32,
    ) -> Fallible<()> {
        let kind = spec.kind;
        let attributes = self.attributes(spec)?;
        self.means_attributes(spec)?;
        let n_in = n_inputs(kind, spec.span)?;
        let (given, wrote) = (spec.inputs.len(), spec.outputs.len());
        if (given, wrote) != (n_in, 1) {
            let message =
                format!("{kind} takes {n_in} inputs and 1 output, found {given} and {wrote}");
            return fail(
                Diagnostic::new(Code::Arity, spec.span, message).help("correct the operands"),
            );
        }
        let mut found = self.means_inputs(c, spec)?;
        if kind.is_product() {
            self.broadcast_batches(c, &mut found, spec.span);
        }
        let to = &spec.outputs[0];
        let output = unassigned(c, to)?;
        let target = match output {
            Some(i) => {
                let entry = head.outputs[i];
                let modes = self.p.tensors[entry].concat().modes();
                Some((self.p.scalar_of(entry), self.extents(&modes, to.span)?))
            }
            None => None,
        };
        let scalar = self.means_scalar(c, spec, &found, &attributes, target.as_ref())?;
        self.check_literals(c, spec, &found, scalar)?;
        let axes = attributes.axes();
        let extents = self.means_extents(c, spec, &found, &axes, target.as_ref())?;
        let name = Some(to.base.text.clone());
        let id = c.push(MeansValue { name, scalar, extents, operand: None }, to.span);
        match output {
            Some(i) => {
                c.means.outputs[i] = id;
                c.outputs.insert(to.base.text.clone(), (i, Some(to.span)));
                c.names.insert(to.base.text.clone(), id);
            }
            None => self.name_value(c, &to.base, id)?,
        }
        c.means.steps.push(MeansStep {
            op: MeansOp::Spec { kind, axes, scalar: attributes.to.or(attributes.acc) },
            inputs: found.inputs,
            output: id,
            span: spec.span,
            line,
        });
        Ok(())
    }

    /// Refuses literals that the type of the computation cannot represent.
    fn check_literals(
        &self,
        c: &Chain,
        spec: &ast::Spec,
        found: &Found,
        scalar: Scalar,
    ) -> Fallible<()> {
        let beside = match (spec.kind, found.values.first()) {
            (SpecKind::Select, _) | (_, None) => scalar,
            (_, Some(v)) => c.means.values[*v].scalar,
        };
        let wrong = |input: &MeansInput| match input {
            MeansInput::Number(n) if !beside.takes(*n) => Some(*n),
            _ => None,
        };
        if let Some(n) = found.inputs.iter().find_map(wrong) {
            let (message, help) = no_literal(n, beside);
            return fail(Diagnostic::new(Code::ScalarMismatch, spec.span, message).help(help));
        }
        if beside.is_float() {
            for operand in &spec.inputs {
                if let ast::Operand::Value(e) = operand
                    && self.real(e).is_err()
                {
                    self.unrounded(e)?;
                }
            }
        }
        Ok(())
    }

    /// Refuses attributes that belong to implementations.
    fn means_attributes(&self, spec: &ast::Spec) -> Fallible<()> {
        let says_what = |a: &Attr| matches!(a.key, Some(Key::Axis | Key::Acc | Key::To | Key::Loc));
        match spec.attrs.iter().find(|a| !says_what(a)) {
            None => Ok(()),
            Some(attr) => {
                let message = format!("`{}` is not allowed in a `means` block", attr.name.text);
                let d = Diagnostic::new(Code::Attribute, attr.name.span, message);
                fail(d.label("a choice of the implementation").help(format!(
                    "remove `{}`: the block states the result, not the implementation",
                    crate::text::print_attribute(attr)
                )))
            }
        }
    }

    fn means_inputs(&self, c: &mut Chain, spec: &ast::Spec) -> Fallible<Found> {
        let mut found = Found { inputs: vec![], values: vec![] };
        for operand in &spec.inputs {
            match operand {
                ast::Operand::View(view) => {
                    let value = self.means_view(c, view)?;
                    found.inputs.push(MeansInput::Value(value));
                    found.values.push(value);
                }
                ast::Operand::Value(e) => found.inputs.push(match (self.real(e), self.size(e)) {
                    (Ok(v), _) => MeansInput::Number(v),
                    (Err(_), Some(size)) => MeansInput::Size(size),
                    (Err(refused), None) => return Err(refused),
                }),
                ast::Operand::Number(n) => match n.text.parse::<f64>() {
                    Ok(v) => found.inputs.push(MeansInput::Number(v)),
                    Err(_) => {
                        let message = format!("`{}` is not a number", n.text);
                        return fail(
                            Diagnostic::new(Code::Syntax, n.span, message)
                                .help("write a decimal number"),
                        );
                    }
                },
            }
        }
        let tensors = found.values.len();
        let literals = match spec.kind.numbers() {
            Numbers::Alone => tensors == 0,
            Numbers::Beside => tensors >= 1,
            Numbers::Chosen => matches!(found.inputs.first(), Some(MeansInput::Value(_))),
            Numbers::Nowhere => tensors == found.inputs.len(),
        };
        if literals {
            return Ok(found);
        }
        fail(
            Diagnostic::new(
                Code::Arity,
                spec.span,
                format!("{} does not accept this number or tensor", spec.kind),
            )
            .help(
                "write a number only as the input of an Init, beside the tensor of a \
                 BinaryPointwise, or as an alternative of a Select",
            ),
        )
    }
}

/// The number of inputs of a spec in a `means` block; an error for kinds that a block cannot
/// contain.
fn n_inputs(kind: SpecKind, span: Span) -> Fallible<usize> {
    kind.n_inputs().filter(|_| kind.may_be_meant()).ok_or_else(|| {
        let help = match kind {
            SpecKind::Accumulate(_) => "state the sum: `BinaryPointwise.add (%C, %t) -> (%C)`",
            _ => "state the result with specs on whole tensors",
        };
        let message = format!("a {kind} is not allowed in a `means` block");
        Box::new(Diagnostic::new(Code::Meaning, span, message).help(help))
    })
}

/// The output of the spec with the name `to`; `None` if it is not an output. An error for a part of
/// a tensor, and for an output that is already assigned.
fn unassigned(c: &Chain, to: &ast::View) -> Fallible<Option<usize>> {
    if !to.ops.is_empty() {
        let help = format!(
            "assign it as a whole: declare `%{0}` with a mode for the parts, `[2,N]`, and write \
             `%{0} = select(%{0}.iota(0) < 1, %first, %second)` with parts of `[1,N]`",
            to.base.text
        );
        let message = "a `means` block assigns only a part of a tensor";
        return fail(Diagnostic::new(Code::Meaning, to.span, message).help(help));
    }
    let output = c.outputs.get(&to.base.text).copied();
    if let Some((_, Some(first))) = output {
        let message = format!("`%{}` is assigned twice", to.base.text);
        return fail(
            Diagnostic::new(Code::Meaning, to.span, message)
                .related(first, "first assigned here")
                .help("give the first result another name"),
        );
    }
    Ok(output.map(|(i, _)| i))
}

/// Rewrites `%Y = %X.transpose()` of an output `%Y` as an assignment, instead of a name for the
/// view.
fn stored_view(c: &Chain, stmt: &ast::Stmt) -> Option<ast::Stmt> {
    let ast::StmtKind::DataDef { name, ty: None, view } = &stmt.kind else { return None };
    c.outputs.get(&name.text)?;
    let target = ast::View { base: name.clone(), ops: vec![], span: name.span };
    let value = ast::TensorExpr::View(view.clone());
    let kind = ast::StmtKind::Assign { target, ty: None, value };
    Some(ast::Stmt { kind, ..stmt.clone() })
}

impl Chain {
    fn push(&mut self, value: MeansValue, span: Span) -> usize {
        self.means.values.push(value);
        self.seen.push((span, false));
        self.means.values.len() - 1
    }
}
