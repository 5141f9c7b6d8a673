//! Expands expressions over tensors, `%p = exp(%s - %max)`, to one spec for each operation, in
//! bodies and in `means` blocks.
//!
//! In a body, an operation writes over its operand if both have the same type and extents, so that
//! this example needs only one tensor. This is safe because nothing else uses intermediate results.

use super::declare::Shaped;
use super::scope::Sigil;
use super::{Fallible, Resolver, fail};
use crate::ast::{
    self, Apply, BinaryOp, Key, Operand, ResultType, SpecKind, TensorExpr, UnaryOp, View,
};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::program::{Stmt, StmtKind};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

/// The error for a stated type of a tensor that is already defined.
pub(super) fn declared_again(target: &View, ty: &ResultType) -> Diagnostic {
    let message = format!("`%{}` is defined twice", target.base.text);
    Diagnostic::new(Code::Redefined, target.span, message)
        .label("its type declares it again")
        .related(ty.span, "this type")
        .help("remove the type to write the tensor, or choose another name")
}

/// The error for a number known only at run time in a place that needs a constant.
fn no_operand(number: &ast::Expr) -> Diagnostic {
    Diagnostic::new(Code::NumberKind, number.span, "the number is not a constant")
        .label("its value is known only when the kernel runs")
        .help("combine it with a tensor: `%x + N`, `%x / N`, `%x.iota(1) < N`")
}

impl Resolver {
    /// Resolves `%p = exp(%s - %max)` in the body of a spec.
    pub(super) fn assign(
        &mut self,
        stmt: &ast::Stmt,
        target: &View,
        ty: Option<&ResultType>,
        value: &TensorExpr,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        let result = self.assigned(stmt, target, ty, value, out);
        if result.is_err() {
            self.silence([target]);
        }
        result
    }

    pub(super) fn assigned(
        &mut self,
        stmt: &ast::Stmt,
        target: &View,
        ty: Option<&ResultType>,
        value: &TensorExpr,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        if self.depth == 0 {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    stmt.span,
                    "an expression over tensors outside of every kernel",
                )
                .label("the top level contains only declarations and kernels")
                .help("move it into the body of a spec; `let` defines constants"),
            );
        }
        let is_new = self.is_new(target);
        if let Some(ty) = ty.filter(|_| !is_new) {
            return fail(declared_again(target, ty));
        }
        let wanted = match is_new {
            true => ty.and_then(|t| t.scalar),
            false => Some(self.looked_at(target)?.scalar),
        };
        let shaped = match value {
            TensorExpr::Number(_) => None,
            TensorExpr::View(v) => Some(self.looked_at(v)?),
            TensorExpr::Apply(apply) => self.typed(apply, wanted)?,
        };
        if is_new {
            let ty = match (value, ty) {
                // A number takes the stated type.
                (TensorExpr::Number(_), Some(ty)) if !ty.levels.is_empty() => Some(ty),
                (TensorExpr::Number(e), _) => {
                    return fail(
                        Diagnostic::new(
                            Code::Expression,
                            target.span,
                            format!(
                                "a number does not determine the type of `%{}`",
                                target.base.text
                            ),
                        )
                        .label("declared without extents")
                        .related(e.span, "this number")
                        .help(format!(
                            "write its type, `%{}:[8,8].f32 = ..`; constants are defined by `let`",
                            target.base.text
                        )),
                    );
                }
                (_, ty) => ty,
            };
            self.declare(&target.base, ty, shaped.clone(), true, stmt, out)?;
        }
        match value {
            TensorExpr::Number(e) => {
                let number = Operand::Number(self.computed(e)?);
                self.leaf(SpecKind::Init, vec![number], target, vec![], stmt, e.span, out)?;
            }
            TensorExpr::View(v) => {
                let from = Operand::View(v.clone());
                self.leaf(SpecKind::Move, vec![from], target, vec![], stmt, v.span, out)?;
            }
            TensorExpr::Apply(apply) => {
                // Intermediate results must not be in shared memory.
                let memory = ty.and_then(|t| t.memory);
                let own = is_new && memory.is_none_or(Memory::is_per_thread);
                self.give_to(apply, target, shaped.filter(|_| own), stmt, out)?;
            }
        }
        // The last operation is the statement itself; the others were made from it.
        if let Some(last) = self.written.as_mut().and_then(|w| w.last_mut()) {
            (last.id, last.from) = (stmt.id, stmt.from);
        }
        if let Some(last) = out.last_mut() {
            last.node = stmt.id;
            if let StmtKind::Spec(id) = last.kind {
                self.p.specs[id].node = stmt.id;
            }
        }
        Ok(())
    }

    /// Refuses a view definition with the name of an existing tensor: a store is probably intended.
    pub(super) fn is_no_store(&self, name: &ast::Name, view: &View) -> Fallible<()> {
        let Some(first) = self.scopes.defined_at(Sigil::Data, &name.text) else { return Ok(()) };
        let text = &name.text;
        fail(
            Diagnostic::new(Code::Redefined, name.span, format!("`%{text}` is defined twice"))
                .label("a view without an operation defines a name, it does not store")
                .related(first, "first definition")
                .help(format!(
                    "to store it, write `%{text} = move({})`",
                    crate::text::print_view(view)
                )),
        )
    }

    /// The shape and type of an operation's result; `None` if its operands do not determine it.
    fn typed(&mut self, apply: &Apply, wanted: Option<Scalar>) -> Fallible<Option<Shaped>> {
        let mut inputs = vec![];
        for arg in &apply.args {
            inputs.push(match arg {
                TensorExpr::View(v) => Some(self.looked_at(v)?),
                TensorExpr::Number(_) => None,
                TensorExpr::Apply(a) => Some(self.known(a, None)?),
            });
        }
        self.gives(apply.kind, &inputs, &apply.attrs, wanted, apply.span)
    }

    /// Like [`Resolver::typed`], but an undetermined type is an error.
    fn known(&mut self, apply: &Apply, wanted: Option<Scalar>) -> Fallible<Shaped> {
        match self.typed(apply, wanted)? {
            Some(shaped) => Ok(shaped),
            None => fail(
                Diagnostic::new(
                    Code::Expression,
                    apply.span,
                    format!("the result of this {} has no type", apply.kind),
                )
                .label("its operands do not determine one")
                .help("correct the operands, or define the result with its type first"),
            ),
        }
    }

    /// Expands an operation that writes to `to`. If `own` is given, `to` has this shape and may
    /// hold intermediate results.
    fn give_to(
        &mut self,
        apply: &Apply,
        to: &View,
        own: Option<Shaped>,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        let in_place = match apply.kind {
            SpecKind::Unary(op) => op != UnaryOp::Cast,
            SpecKind::Binary(op) => !op.compares(),
            SpecKind::Select => true,
            _ => false,
        };
        let mut own = own.filter(|_| in_place);
        let mut inputs = vec![];
        for arg in &apply.args {
            inputs.push(match arg {
                TensorExpr::View(v) => Operand::View(v.clone()),
                TensorExpr::Number(e) => self.number(e)?,
                TensorExpr::Apply(inner) => {
                    let shaped = self.known(inner, None)?;
                    if own.as_ref().is_some_and(|own| self.is_same(own, &shaped)) {
                        own = None;
                        self.give_to(inner, to, Some(shaped), stmt, out)?;
                        Operand::View(to.clone())
                    } else {
                        let name = self.fresh(&to.base);
                        self.declare(&name, None, Some(shaped.clone()), false, stmt, out)?;
                        let view = View { base: name, ops: vec![], span: inner.span };
                        self.give_to(inner, &view, Some(shaped), stmt, out)?;
                        Operand::View(view)
                    }
                }
            });
        }
        let kind = self.with_sizes(apply, &mut inputs, to, stmt, out)?;
        if apply.kind == SpecKind::Select {
            self.chosen_numbers(&mut inputs, to, stmt, out)?;
        }
        // The first attribute of a cast is its type.
        let typed = usize::from(apply.kind == SpecKind::Unary(UnaryOp::Cast));
        if typed > 0 {
            self.agrees_with_cast(apply, to)?;
        }
        let attrs = apply.attrs.iter().skip(typed).cloned().collect();
        let kind = match (kind, inputs.first()) {
            // A cast to a type parameter may be to the type of the operand.
            (SpecKind::Unary(UnaryOp::Cast), Some(Operand::View(from)))
                if self.subspecs.is_inside()
                    && self.looked_at(from)?.scalar == self.looked_at(to)?.scalar =>
            {
                SpecKind::Move
            }
            (kind, _) => kind,
        };
        self.leaf(kind, inputs, to, attrs, stmt, apply.span, out)
    }

    /// Replaces an operand that is known only at run time. Next to coordinates it becomes part of a
    /// view, `.plus(n)`; otherwise it becomes a tensor of one element. Returns the kind of the
    /// resulting operation.
    fn with_sizes(
        &mut self,
        apply: &Apply,
        inputs: &mut Vec<Operand>,
        to: &View,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<SpecKind> {
        let at = inputs.iter().position(|i| matches!(i, Operand::Value(_)));
        let (Some(at), Some(Operand::Value(number))) =
            (at, at.and_then(|at| inputs.get(at)).cloned())
        else {
            return Ok(apply.kind);
        };
        let beside = inputs.iter().find_map(|i| match i {
            Operand::View(v) => Some(v.clone()),
            Operand::Number(_) | Operand::Value(_) => None,
        });
        let (Some(beside), SpecKind::Binary(op)) = (beside, apply.kind) else {
            return Err(Box::new(no_operand(&number)));
        };
        let tensor = self.viewed(&beside)?;
        let of = |kind: ast::ExprKind| ast::Expr { kind, span: number.span };
        let negative = || {
            let zero = ast::Expr::int(0);
            of(ast::Expr::bin(ast::BinOp::Sub, zero, number.clone()).kind.clone())
        };
        let is_counted = self.p.buffers[tensor.buffer].is_computed();
        if is_counted && (op.compares() || op == BinaryOp::Add || op == BinaryOp::Sub && at == 1) {
            let by = if op == BinaryOp::Add { number.clone() } else { negative() };
            let moved = Operand::View(beside.then(ast::ViewOp::Plus(by)));
            if op.compares() {
                inputs[1 - at] = moved;
                let text = "0".to_owned();
                inputs[at] = Operand::Number(ast::Number { text, span: number.span });
                return Ok(apply.kind);
            }
            *inputs = vec![moved];
            return Ok(SpecKind::Move);
        }
        let scalar = self.p.buffers[tensor.buffer].scalar;
        let rank = tensor.levels.iter().map(Layout::rank).sum::<usize>();
        if rank == 0 || tensor.levels.len() > 1 {
            return Err(Box::new(no_operand(&number)));
        }
        if scalar.is_float() {
            self.unrounded(&number)?;
        }
        // A coordinate view with one element, 0 plus the number.
        let zeros = vec![Some(of(ast::ExprKind::Int(0))); rank];
        let first = beside
            .then(ast::ViewOp::Iota(of(ast::ExprKind::Int(0))))
            .then(ast::ViewOp::Index(zeros))
            .then(ast::ViewOp::Plus(number.clone()));
        let name = self.fresh(&to.base);
        let extents = vec![Dim::Const(1); rank];
        let counted = Shaped { extents: extents.clone(), scalar: Scalar::I32 };
        self.declare(&name, None, Some(counted), false, stmt, out)?;
        let view = View { base: name, ops: vec![], span: number.span };
        let from = vec![Operand::View(first)];
        self.leaf(SpecKind::Move, from, &view, vec![], stmt, number.span, out)?;
        if scalar == Scalar::I32 {
            inputs[at] = Operand::View(view);
            return Ok(apply.kind);
        }
        let name = self.fresh(&to.base);
        self.declare(&name, None, Some(Shaped { extents, scalar }), false, stmt, out)?;
        let own = View { base: name, ops: vec![], span: number.span };
        let cast = SpecKind::Unary(UnaryOp::Cast);
        self.leaf(cast, vec![Operand::View(view)], &own, vec![], stmt, number.span, out)?;
        inputs[at] = Operand::View(own);
        Ok(apply.kind)
    }

    /// Compares the type of a cast with the type of the tensor to which it is stored.
    fn agrees_with_cast(&mut self, apply: &Apply, to: &View) -> Fallible<()> {
        let Some(ty) = ast::Attr::among(&apply.attrs, Key::To) else { return Ok(()) };
        let ast::AttrValue::Word(word) = &ty.value else { return Ok(()) };
        let scalar = self.looked_at(to)?.scalar;
        if word.parse::<Scalar>().is_ok_and(|named| named == scalar) {
            return Ok(());
        }
        fail(
            Diagnostic::new(
                Code::TypeMismatch,
                apply.span,
                format!("a cast to {word} is stored to `%{}`, which is {scalar}", to.base.text),
            )
            .label(format!("gives {word}"))
            .help(format!(
                "write `cast(.., {scalar})`, or `cast(cast(.., {word}), {scalar})` to round to \
                 {word} first"
            )),
        )
    }

    /// Replaces numbers as alternatives of a Select by tensors of one element.
    fn chosen_numbers(
        &mut self,
        inputs: &mut [Operand],
        to: &View,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        if !inputs.iter().any(|i| matches!(i, Operand::Number(_))) {
            return Ok(());
        }
        let result = self.looked_at(to)?;
        for input in inputs.iter_mut().skip(1) {
            let Operand::Number(number) = input else { continue };
            let span = number.span;
            let extents = vec![Dim::Const(1); result.extents.len()];
            let name = self.fresh(&to.base);
            let shaped = Shaped { extents, scalar: result.scalar };
            self.declare(&name, None, Some(shaped), false, stmt, out)?;
            let view = View { base: name, ops: vec![], span };
            let number = std::mem::replace(input, Operand::View(view.clone()));
            self.leaf(SpecKind::Init, vec![number], &view, vec![], stmt, span, out)?;
        }
        Ok(())
    }

    fn is_same(&self, a: &Shaped, b: &Shaped) -> bool {
        a.scalar == b.scalar && self.same_extents(&a.extents, &b.extents)
    }

    /// A fresh name derived from `base`, for an intermediate result.
    pub(super) fn fresh(&mut self, base: &ast::Name) -> ast::Name {
        let stem = match base.text.rsplit_once('_') {
            // The base may itself be a derived name.
            Some((stem, n)) if !stem.is_empty() && n.bytes().all(|b| b.is_ascii_digit()) => stem,
            _ => &base.text,
        };
        let mut n = 1;
        loop {
            let text = format!("{stem}_{n}");
            if self.taken.insert(text.clone()) {
                return ast::Name { text, span: base.span };
            }
            n += 1;
        }
    }

    /// Resolves a spec without a body, executed by the enclosing threads.
    #[expect(clippy::too_many_arguments, reason = "the parts of one statement")]
    fn leaf(
        &mut self,
        kind: SpecKind,
        inputs: Vec<Operand>,
        to: &View,
        attrs: Vec<ast::Attr>,
        stmt: &ast::Stmt,
        span: Span,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        let spec =
            ast::Spec { inputs, outputs: vec![to.clone()], attrs, span, ..ast::Spec::new(kind) };
        let spec = ast::Spec { exec: self.executors(&spec)?, ..spec };
        let mut one = ast::Stmt::derived(ast::StmtKind::Spec(spec), stmt);
        one.span = span;
        self.plain(&one, out)
    }

    /// Expands an expression of a `means` block to specs on whole tensors.
    pub(super) fn meant(
        &mut self,
        stmt: &ast::Stmt,
        target: &View,
        value: &TensorExpr,
    ) -> Fallible<Vec<ast::Stmt>> {
        let mut out = vec![];
        match value {
            TensorExpr::Apply(apply) => self.meant_into(apply, target, stmt, &mut out)?,
            TensorExpr::Number(e) => {
                let number = Operand::Number(self.computed(e)?);
                out.push(meant_leaf(SpecKind::Init, vec![number], target, vec![], stmt, e.span));
            }
            TensorExpr::View(v) => {
                let from = vec![Operand::View(v.clone())];
                out.push(meant_leaf(SpecKind::Move, from, target, vec![], stmt, v.span));
            }
        }
        Ok(out)
    }

    fn meant_into(
        &mut self,
        apply: &Apply,
        to: &View,
        stmt: &ast::Stmt,
        out: &mut Vec<ast::Stmt>,
    ) -> Fallible<()> {
        let mut inputs = vec![];
        for arg in &apply.args {
            inputs.push(match arg {
                TensorExpr::View(v) => Operand::View(v.clone()),
                TensorExpr::Number(e) => self.number(e)?,
                TensorExpr::Apply(inner) => {
                    let base = self.fresh(&to.base);
                    let view = View { base, ops: vec![], span: inner.span };
                    self.meant_into(inner, &view, stmt, out)?;
                    Operand::View(view)
                }
            });
        }
        // A `means` block sums products exactly, so both kinds have one meaning.
        let kind = match apply.kind {
            SpecKind::MatMulSet => SpecKind::MatMul,
            kind => kind,
        };
        out.push(meant_leaf(kind, inputs, to, apply.attrs.clone(), stmt, apply.span));
        Ok(())
    }
}

fn meant_leaf(
    kind: SpecKind,
    inputs: Vec<Operand>,
    to: &View,
    attrs: Vec<ast::Attr>,
    stmt: &ast::Stmt,
    span: Span,
) -> ast::Stmt {
    let spec = ast::Spec { inputs, outputs: vec![to.clone()], attrs, span, ..ast::Spec::new(kind) };
    let mut one = ast::Stmt::derived(ast::StmtKind::Spec(spec), stmt);
    one.span = span;
    one
}
