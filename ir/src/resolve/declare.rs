//! Declares the tensor that a result names for the first time, as `%x` in `%x = exp(%s)`: infers
//! extents and scalar type from the operands, and compares them with the stated part of a type.
//! Also expands the short forms of specs to an executor, allocations and a plain spec, and refuses
//! results that nothing reads (V0234).

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{
    self, ExtentRule, Key, Operand, ResultType, SpecKind, TupleExpr, TypeAttr, UnaryOp, View,
};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::leaf::{Decision, Leaf};
use crate::program::{BufferId, Stmt};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;

/// A tensor declared by a result.
pub(super) struct Declared {
    name: String,
    span: Span,
    buffer: BufferId,
}

/// The inferred shape and type of an operand or result.
#[derive(Clone, Debug)]
pub(super) struct Shaped {
    /// The extents, as a person would write them.
    pub(super) extents: Vec<Dim>,
    pub(super) scalar: Scalar,
}

impl Resolver {
    /// Expands the short forms of a spec, and allocates the tensors that it declares. `None` if it
    /// has no short form.
    pub(super) fn short_spec(
        &mut self,
        stmt: &ast::Stmt,
        spec: &ast::Spec,
        out: &mut Vec<Stmt>,
    ) -> Fallible<Option<ast::Spec>> {
        if let Some(ast::Exec::Launch(launch)) = &spec.exec {
            let spec = self.launched(stmt, spec, launch, out)?;
            return Ok(Some(spec));
        }
        let exec = self.executors(spec)?;
        let values = spec.inputs.iter().any(|i| matches!(i, Operand::Value(_)));
        let new: Vec<usize> = (0..spec.outputs.len())
            .filter(|i| {
                let typed = spec.declared.get(*i).is_some_and(Option::is_some);
                typed || self.depth > 0 && self.is_new(&spec.outputs[*i])
            })
            .collect();
        if exec.is_none() && !values && new.is_empty() {
            return Ok(None);
        }
        let mut spec = spec.clone();
        spec.exec = exec.or(spec.exec.take());
        for input in &mut spec.inputs {
            if let Operand::Value(e) = input {
                *input = self.number(e)?;
            }
        }
        for i in new {
            let ty = spec.declared.get(i).cloned().flatten();
            let view = &spec.outputs[i];
            if !view.ops.is_empty() {
                return fail(
                    Diagnostic::new(
                        Code::Expression,
                        view.span,
                        "an output that is a view has a type",
                    )
                    .label("a type belongs to a new name")
                    .help("remove the type, or write a new name in place of the view"),
                );
            }
            let accumulates = spec.kind.reads_output();
            if accumulates {
                let name = &view.base.text;
                let mut d = *self.unknown(Sigil::Data, name, view.base.span);
                d = d.label(format!("a {} accumulates in an existing tensor", spec.kind));
                // A name that differs only in case is usually that of the whole tensor.
                let near = self.scopes.nearest(Sigil::Data, name);
                if near.is_none_or(|near| near.eq_ignore_ascii_case(name)) {
                    // In a loop, `MatMul.set` would overwrite the sum in each iteration.
                    let in_loop = self.in_loop();
                    let (before, set) = match spec.kind {
                        SpecKind::MatMul if !in_loop => {
                            ("first", ", or write `MatMul.set` to overwrite")
                        }
                        _ if in_loop => ("before the loop", ""),
                        _ => ("first", ""),
                    };
                    let extents = match self.result_of(&spec, ty.as_ref()) {
                        Ok(Some(shaped)) => self.shown_extents(&shaped.extents),
                        Ok(None) | Err(_) => "[..]".to_owned(),
                    };
                    d = d.help(format!("define it {before}: `%{name}:{extents}.f32 = 0`{set}"));
                }
                return fail(d);
            }
            let shaped = self.result_of(&spec, ty.as_ref())?;
            let name = spec.outputs[i].base.clone();
            self.declare(&name, ty.as_ref(), shaped, true, stmt, out)?;
        }
        spec.declared.clear();
        Ok(Some(spec))
    }

    /// Whether a view is an undefined name.
    pub(super) fn is_new(&self, view: &View) -> bool {
        view.ops.is_empty() && self.scopes.get(Sigil::Data, &view.base.text).is_none()
    }

    /// Binds the names that an incorrect statement would have declared, so that their uses report
    /// no errors.
    pub(super) fn silence<'v>(&mut self, results: impl IntoIterator<Item = &'v View>) {
        for result in results {
            if self.is_new(result) {
                let _ = self.bind(Sigil::Data, &result.base, Binding::Broken);
            }
        }
    }

    /// Allocates a tensor for a result. `named` tells whether its name is in the text.
    pub(super) fn declare(
        &mut self,
        name: &ast::Name,
        ty: Option<&ResultType>,
        shaped: Option<Shaped>,
        named: bool,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        let levels = match (ty.filter(|t| !t.levels.is_empty()), &shaped) {
            (Some(ty), _) => ty.levels.clone(),
            (None, Some(shaped)) => {
                let modes = shaped
                    .extents
                    .iter()
                    .map(|d| self.written_extent(*d, name.span).map(TupleExpr::Leaf))
                    .collect::<Fallible<Vec<_>>>()?;
                vec![ast::Dims { modes, strides: None, span: name.span }]
            }
            (None, None) => {
                return fail(
                    Diagnostic::new(
                        Code::Expression,
                        name.span,
                        format!("the spec does not determine the extents of `%{}`", name.text),
                    )
                    .label("declared here")
                    .help(format!(
                        "write its type, `%{}:[8,8].f32`, or allocate it first",
                        name.text
                    )),
                );
            }
        };
        let scalar = match (ty.and_then(|t| t.scalar), &shaped) {
            (Some(scalar), _) => scalar,
            (None, Some(shaped)) => shaped.scalar,
            (None, None) => {
                return fail(
                    Diagnostic::new(
                        Code::Expression,
                        name.span,
                        format!("the spec does not determine the type of `%{}`", name.text),
                    )
                    .help("write its scalar type"),
                );
            }
        };
        let mut attrs = ty.map_or(vec![], |t| t.attrs.clone());
        let memory = ty.and_then(|t| t.memory).unwrap_or(Memory::Rf);
        let pinned = attrs.iter().any(|a| matches!(a, TypeAttr::Tv(..) | TypeAttr::Open));
        let strides = levels.iter().any(|l| l.strides.is_some());
        // Private registers of a thread have no open layout.
        let private = memory.is_per_thread() && self.is_single()?;
        // An unstated layout is open, in shared memory and in registers.
        if !pinned && !strides && !private && scalar != Scalar::Mbarrier {
            attrs.insert(0, TypeAttr::Open);
        }
        let span = ty.map_or(name.span, |t| t.span);
        let whole = ast::TensorType { levels, scalar, memory: Some(memory), attrs, span };
        if let (Some(ty), Some(shaped)) = (ty, &shaped) {
            self.agrees(name, ty, &whole, shaped)?;
        }
        let kind = ast::StmtKind::Allocate { name: name.clone(), ty: whole };
        self.plain(&ast::Stmt::derived(kind, stmt), out)?;
        if let Some(Binding::Tensor(t)) = self.scopes.get(Sigil::Data, &name.text)
            && named
        {
            let buffer = self.p.tensors[t].buffer;
            self.declared.push(Declared { name: name.text.clone(), span: name.span, buffer });
        }
        Ok(())
    }

    /// Compares the stated parts of a type with the inferred type.
    fn agrees(
        &self,
        name: &ast::Name,
        ty: &ResultType,
        whole: &ast::TensorType,
        shaped: &Shaped,
    ) -> Fallible<()> {
        let mismatch = |label: String, help: String| {
            fail(
                Diagnostic::new(
                    Code::TypeMismatch,
                    ty.span,
                    format!("the stated type of `%{}` contradicts its spec", name.text),
                )
                .label(label)
                .help(help),
            )
        };
        if whole.scalar != shaped.scalar {
            return mismatch(
                format!("stated {}, the spec gives {}", whole.scalar, shaped.scalar),
                format!("convert it, `cast(.., {})`, or remove the type", whole.scalar),
            );
        }
        let levels = self.declared_levels(&whole.levels)?;
        let sizes = self.sizes(&levels, ty.span)?;
        if ty.levels.is_empty() || self.same_extents(&sizes, &shaped.extents) {
            return Ok(());
        }
        let (written, given) = (self.shown_extents(&sizes), self.shown_extents(&shaped.extents));
        mismatch(
            format!("stated {written}, the spec gives {given}"),
            "correct or remove the extents".to_owned(),
        )
    }

    /// An extent as an expression of a type.
    fn written_extent(&self, d: Dim, span: Span) -> Fallible<ast::Expr> {
        match d {
            Dim::Const(n) => Ok(ast::Expr { kind: ast::ExprKind::Int(n), span }),
            Dim::Expr(_) => fail(
                Diagnostic::new(Code::Expression, span, "an extent of the result is not constant")
                    .label(format!("it is {}", self.p.arena.display(d)))
                    .help("allocate the tensor with constant extents"),
            ),
        }
    }

    /// The shape and type of a spec's result; `None` if its operands do not determine it.
    fn result_of(&mut self, spec: &ast::Spec, ty: Option<&ResultType>) -> Fallible<Option<Shaped>> {
        let mut inputs = vec![];
        for input in &spec.inputs {
            inputs.push(match input {
                Operand::View(v) => Some(self.looked_at(v)?),
                Operand::Number(_) | Operand::Value(_) => None,
            });
        }
        self.gives(spec.kind, &inputs, &spec.attrs, ty.and_then(|t| t.scalar), spec.span)
    }

    /// The extents of all modes, outermost level first.
    pub(super) fn sizes(&self, levels: &[Layout<Dim>], span: Span) -> Fallible<Vec<Dim>> {
        let size =
            |m: Layout<Dim>| m.size_in(&self.p.arena).map_err(|e| super::exprs::overflow(span, &e));
        levels.iter().flat_map(Layout::modes).map(size).collect()
    }

    /// Whether extents are provably equal, mode by mode.
    pub(super) fn same_extents(&self, a: &[Dim], b: &[Dim]) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| self.is_equal(*a, *b))
    }

    /// Whether two extents are equal for all values of the symbols, also with the known facts.
    pub(super) fn is_equal(&self, a: Dim, b: Dim) -> bool {
        match Leaf::eq(&self.p.arena, a, b) {
            Decision::Known(known) => known,
            Decision::Needs(_) => self.proves(a, b, 0) && self.proves(b, a, 0),
        }
    }

    /// The beginning of a help: the fact that two extents are equal, if a module may state it.
    pub(super) fn state_equal(&self, a: Dim, b: Dim) -> String {
        let fact = self.p.may_state_equal(a, b);
        fact.map_or(String::new(), |fact| format!("state `where {fact}`; "))
    }

    /// Extents as text: `[64,n]`.
    pub(super) fn shown_extents(&self, extents: &[Dim]) -> String {
        let all: Vec<String> =
            extents.iter().map(|d| self.p.arena.display(*d).to_string()).collect();
        format!("[{}]", all.join(","))
    }

    /// The shape and type of a view, without adding it to the program.
    pub(super) fn looked_at(&mut self, view: &View) -> Fallible<Shaped> {
        let tensor = self.viewed(view)?;
        let extents = self.sizes(&tensor.levels, view.span)?;
        Ok(Shaped { extents, scalar: self.p.buffers[tensor.buffer].scalar })
    }

    /// The shape and type of a spec's result for these inputs; a literal is `None`. Returns `None`
    /// if they do not determine it.
    pub(super) fn gives(
        &mut self,
        kind: SpecKind,
        inputs: &[Option<Shaped>],
        attrs: &[ast::Attr],
        wanted: Option<Scalar>,
        span: Span,
    ) -> Fallible<Option<Shaped>> {
        let tensors: Vec<&Shaped> = inputs.iter().flatten().collect();
        let word = |key| ast::Attr::among(attrs, key)?.as_word()?.parse::<Scalar>().ok();
        Ok(match kind.extents() {
            ExtentRule::Any | ExtentRule::Counted => None,
            ExtentRule::Product => {
                let [a, b] = tensors[..] else { return Ok(None) };
                product(a, b, word(Key::Acc).or(wanted))
            }
            ExtentRule::Reduced => {
                let [a] = tensors[..] else { return Ok(None) };
                Some(self.reduced(kind, a, attrs, span)?)
            }
            ExtentRule::Same if kind == SpecKind::Unary(UnaryOp::Cast) => {
                let [a] = tensors[..] else { return Ok(None) };
                let Some(scalar) = word(Key::To).or(wanted) else {
                    return fail(
                        Diagnostic::new(
                            Code::Expression,
                            span,
                            "the cast does not name the type of its result",
                        )
                        .help("write the type of the result: `-> (%y:f16)`, or `cast(%x, f16)`"),
                    );
                };
                Some(Shaped { extents: a.extents.clone(), scalar })
            }
            ExtentRule::Same | ExtentRule::Broadcast => {
                let Some(first) = tensors.first() else { return Ok(None) };
                let scalar = match kind {
                    SpecKind::Binary(op) if op.compares() => Scalar::Bool,
                    SpecKind::Select => chosen_type(inputs, wanted, span)?,
                    _ => first.scalar,
                };
                Some(Shaped { extents: broadcast(&tensors), scalar })
            }
        })
    }

    fn reduced(
        &mut self,
        kind: SpecKind,
        a: &Shaped,
        attrs: &[ast::Attr],
        span: Span,
    ) -> Fallible<Shaped> {
        let axes = self.axes_of(attrs, span)?;
        if axes.is_empty() || axes.iter().any(|x| *x >= a.extents.len()) {
            return fail(
                Diagnostic::new(
                    Code::Attribute,
                    span,
                    format!("`axis=` of the {kind} does not name a mode of its operand"),
                )
                .label(format!("the operand has {} modes", a.extents.len()))
                .help("name the modes to remove: `axis=1`, `axis=(0,1)`"),
            );
        }
        let extents = a.extents.iter().enumerate();
        let one = |(i, d): (usize, &Dim)| if axes.contains(&i) { Dim::Const(1) } else { *d };
        Ok(Shaped { extents: extents.map(one).collect(), scalar: a.scalar })
    }

    /// The modes of `axis=`.
    pub(super) fn axes_of(&mut self, attrs: &[ast::Attr], span: Span) -> Fallible<Vec<usize>> {
        let Some(attr) = ast::Attr::among(attrs, Key::Axis) else {
            return fail(
                Diagnostic::new(Code::Attribute, span, "the reduction does not name its modes")
                    .help("name the modes to remove: `axis=1`"),
            );
        };
        let list = self.attr_ints(Key::Axis, attr)?;
        Ok(list.into_iter().filter_map(|a| usize::try_from(a).ok()).collect())
    }

    /// Reports results declared since `from` that are never read.
    pub(super) fn unread(&mut self, from: usize) {
        let declared = self.declared.split_off(from);
        // After other errors, reads may be missing.
        if !self.errors.iter().all(|d| d.code == Code::Unread) {
            return;
        }
        for d in declared {
            if self.errors.is_full() {
                break;
            }
            if self.read.contains(&d.buffer) {
                continue;
            }
            let others = self.scopes.nearest_other(Sigil::Data, &d.name);
            self.errors.push(
                Diagnostic::new(Code::Unread, d.span, format!("nothing reads `%{}`", d.name))
                    .label("declared by this result")
                    .help(match others {
                        Some(near) => {
                            format!("did you mean `%{near}`? An undefined name declares a tensor")
                        }
                        None => {
                            "remove it, or read it: an undefined name declares a tensor".to_owned()
                        }
                    }),
            );
        }
    }
}

/// The result of a matrix product; `None` if the shapes do not fit.
fn product(a: &Shaped, b: &Shaped, stated: Option<Scalar>) -> Option<Shaped> {
    let (n, m) = (a.extents.len(), b.extents.len());
    if n != m || n < 2 {
        return None;
    }
    let mut extents = a.extents[..n - 1].to_vec();
    extents.push(b.extents[n - 1]);
    // Only numbers have products.
    let natural = match a.scalar {
        Scalar::F64 => Scalar::F64,
        float if float.is_float() => Scalar::F32,
        _ => Scalar::I32,
    };
    Some(Shaped { extents, scalar: stated.unwrap_or(natural) })
}

/// The type of a Select: that of the first tensor among the alternatives.
fn chosen_type(inputs: &[Option<Shaped>], wanted: Option<Scalar>, span: Span) -> Fallible<Scalar> {
    let chosen = inputs.get(1..).unwrap_or_default().iter().flatten().next();
    match chosen.map(|s| s.scalar).or(wanted) {
        Some(scalar) => Ok(scalar),
        None => fail(
            Diagnostic::new(
                Code::Expression,
                span,
                "a Select between numbers does not determine a type",
            )
            .label("both alternatives are numbers")
            .help("write the type of the result: `%m:f32 = select(%p, 1.0, 0.0)`"),
        ),
    }
}

/// The extents after broadcasting: those of the tensors with the most modes. Of two different
/// extents, the one that is not 1.
fn broadcast(tensors: &[&Shaped]) -> Vec<Dim> {
    let rank = tensors.iter().map(|t| t.extents.len()).max().unwrap_or(0);
    let mut extents = vec![Dim::Const(1); rank];
    for t in tensors.iter().filter(|t| t.extents.len() == rank) {
        for (mine, theirs) in extents.iter_mut().zip(&t.extents) {
            if *mine == Dim::Const(1) {
                *mine = *theirs;
            }
        }
    }
    extents
}
