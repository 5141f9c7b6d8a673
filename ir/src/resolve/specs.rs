//! Resolves specs: operands, executor, attributes and body. It refuses, for example, unknown
//! attributes and wrong values of attributes (V0218), and literals that the type of a computation
//! cannot represent (V0241).

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{
    self, Attr, AttrValue, CacheHint, Key, Operand as A, Role, SpecKind, Takes, TupleExpr,
};
use crate::diag::{Code, Diagnostic, nearest};
use crate::expr::Dim;
use crate::program::{Exec, Operand, Spec, SpecId, Stmt, TensorId};
use crate::scalar::Scalar;

impl Resolver {
    pub(super) fn spec(&mut self, spec: &ast::Spec) -> Fallible<SpecId> {
        let top = self.depth == 0;
        if let Some(name) = spec.name.as_ref().filter(|_| !top) {
            return fail(
                Diagnostic::new(Code::Placement, name.span, "a spec in a body has a kernel name")
                    .label("only kernels have names")
                    .help("remove the name, or move the spec to the top"),
            );
        }
        if let Some(name) = &spec.name {
            self.bind(Sigil::Kernel, name, Binding::Broken)?;
        }
        let exec = self.executed_by(spec)?;
        let inputs = spec.inputs.iter().map(|i| self.input(i)).collect::<Fallible<Vec<_>>>()?;
        let outputs = spec.outputs.iter().map(|v| self.operand(v)).collect::<Fallible<Vec<_>>>()?;
        if !top && spec.body.is_none() {
            self.literals(spec, &inputs, &outputs);
        }
        let Attributes { acc, to, atom, ints, bar, multicast, cache, valid } =
            self.attributes(spec)?;
        if to.is_some() {
            return fail(
                Diagnostic::new(Code::Attribute, spec.span, "`to` outside of a `means` block")
                    .help("remove it: in a body, the output determines the type of a cast"),
            );
        }
        self.check_meant(spec, &inputs, &outputs)?;
        let acc = match spec.kind.is_product() {
            true => acc.or_else(|| outputs.first().map(|t| self.p.scalar_of(*t))),
            false => acc,
        };
        let id = self.p.specs.push(Spec {
            kind: spec.kind,
            name: spec.name.as_ref().map(|n| n.text.clone()),
            exec,
            inputs,
            outputs,
            attrs: spec.attrs.clone(),
            ints,
            acc,
            atom,
            bar,
            multicast,
            cache: cache.unwrap_or(CacheHint::Normal),
            valid,
            means: None,
            body: None,
            span: spec.span,
            line: self.line(spec.span),
            node: self.node,
        });
        let mut means = None;
        if let Some(block) = &spec.means {
            let head = self.p.specs[id].clone();
            let (found, block) = self.means(spec, &head, block)?;
            self.p.specs[id].means = Some(found);
            means = Some(block);
        }
        let mut written = None;
        if let Some(body) = &spec.body {
            let (body, block) = self.body(spec, exec, body);
            self.p.specs[id].body = Some(body);
            written = Some(block);
        }
        if self.written.is_some() && (means.is_some() || written.is_some()) {
            let head = ast::Spec {
                kind: spec.kind,
                name: spec.name.clone(),
                exec: spec.exec.clone(),
                inputs: spec.inputs.clone(),
                outputs: spec.outputs.clone(),
                declared: spec.declared.clone(),
                attrs: spec.attrs.clone(),
                means,
                body: written,
                span: spec.span,
            };
            self.rewritten = Some(ast::StmtKind::Spec(head));
        }
        Ok(id)
    }

    /// The executor of a spec.
    fn executed_by(&mut self, spec: &ast::Spec) -> Fallible<Option<Exec>> {
        match &spec.exec {
            Some(ast::Exec::Both(b, t)) => {
                Ok(Some(Exec { blocks: self.thread_view(b)?, threads: self.thread_view(t)? }))
            }
            None if self.depth == 0 && spec.body.is_none() => Ok(None),
            _ => {
                let d = Diagnostic::new(Code::ExecConfig, spec.span, "the spec has no executor");
                fail(d.help(
                    "write `<<<#blocks, #threads>>>` after its name, or declare them there: \
                     `<<<#grid:[8], #cta:[128]>>>`",
                ))
            }
        }
    }

    fn input(&mut self, input: &A) -> Fallible<Operand> {
        match input {
            A::View(v) => {
                let t = self.operand(v)?;
                self.read.insert(self.p.tensors[t].buffer);
                Ok(Operand::Tensor(t))
            }
            A::Value(e) => self.real(e).map(Operand::Number),
            A::Number(n) => match n.text.parse::<f64>() {
                Ok(v) => Ok(Operand::Number(v)),
                Err(_) => fail(
                    Diagnostic::new(Code::Syntax, n.span, format!("`{}` is not a number", n.text))
                        .label("expected a decimal number, `inf` or `nan`")
                        .help("write a decimal number"),
                ),
            },
        }
    }

    /// Refuses `meant` at casts that do not round to a float.
    fn check_meant(
        &self,
        spec: &ast::Spec,
        inputs: &[Operand],
        outputs: &[TensorId],
    ) -> Fallible<()> {
        if let Some(attr) = spec.attr(Key::Meant)
            && let (Some(Operand::Tensor(from)), Some(to)) = (inputs.first(), outputs.first())
        {
            let (from, to) = (self.p.scalar_of(*from), self.p.scalar_of(*to));
            if !to.is_float() || to.holds(from) {
                let message = format!("`meant=` is not allowed at a cast from {from} to {to}");
                return fail(
                    Diagnostic::new(Code::Attribute, attr.name.span, message)
                        .label("only casts that round to a float have `meant=`")
                        .help("remove `meant=`"),
                );
            }
        }
        Ok(())
    }

    /// Resolves the body of a spec. Returns its statements and the expanded block.
    fn body(
        &mut self,
        spec: &ast::Spec,
        exec: Option<Exec>,
        body: &ast::Block,
    ) -> (Vec<Stmt>, ast::Block) {
        if body.stmts.is_empty() {
            self.errors.push(
                Diagnostic::new(
                    Code::EmptyBody,
                    spec.span,
                    format!("the body of this {} is empty", spec.kind),
                )
                .label("no statement between its braces")
                .help(match spec.kind == SpecKind::Generic {
                    true => "write its statements: the body defines a generic `Spec`",
                    false => {
                        "write the statements, or remove the braces and let the solver decompose \
                         the spec"
                    }
                }),
            );
        }
        self.depth += 1;
        let around = self.around.len();
        if let Some(ast::Exec::Both(blocks, threads)) = &spec.exec {
            let (blocks, threads) = (blocks.clone(), threads.clone());
            self.around.push(super::launch::Around { blocks, threads });
        }
        let executing = self.executing.len();
        self.executing.extend(exec.map(|e| e.threads));
        let resolved = self.block(body);
        self.executing.truncate(executing);
        self.around.truncate(around);
        self.depth -= 1;
        resolved
    }

    /// V0241: finite literals of leaves that the type of the computation cannot represent.
    fn literals(&mut self, spec: &ast::Spec, inputs: &[Operand], outputs: &[TensorId]) {
        let beside = match spec.kind {
            // The first operand is only the condition.
            SpecKind::Select => None,
            _ => inputs.iter().find_map(Operand::tensor),
        };
        let Some(t) = beside.or(outputs.first().copied()) else { return };
        let scalar = self.p.scalar_of(t);
        for (input, written) in inputs.iter().zip(&spec.inputs) {
            let span = match written {
                ast::Operand::View(_) => continue,
                ast::Operand::Number(n) => n.span,
                ast::Operand::Value(e) => e.span,
            };
            let Operand::Number(number) = input else { continue };
            let Some(why) = scalar.misses(*number) else { continue };
            let message = format!("{scalar} cannot represent {number}");
            self.errors.push(
                Diagnostic::new(Code::Literal, span, message)
                    .label(format!("the number {why} in {scalar}, in which the body computes here"))
                    .help(
                        "cast the tensors to a wider type first, `cast(.., f32)`, or write a \
                         number that the type can represent",
                    ),
            );
        }
    }

    pub(super) fn attributes(&mut self, spec: &ast::Spec) -> Fallible<Attributes> {
        let mut all = Attributes::default();
        for (i, attr) in spec.attrs.iter().enumerate() {
            let wrong = |message: String, label: &str, help: String| {
                let d = Diagnostic::new(Code::Attribute, attr.name.span, message);
                fail(d.label(label).help(help))
            };
            let Some(key) = attr.key.filter(|key| !key.is(Role::OfStrategy)) else {
                return fail(unknown_attribute(attr));
            };
            if Attr::among(&spec.attrs[..i], key).is_some() {
                let message = format!("`{key}` is written twice");
                return wrong(message, "written before", "remove one of them".to_owned());
            }
            if !key.fits(spec.kind, self.depth == 0) {
                let shown = crate::text::print_attribute(attr);
                let instead = match (key, attr.as_word()) {
                    (Key::To, Some(to)) => {
                        format!("; to convert the result, write `cast(.., {to})`")
                    }
                    (Key::Axis, _) => "; to reduce modes, write a Reduction".to_owned(),
                    _ => String::new(),
                };
                let message = format!("`{key}` does not belong to this spec");
                return fail(
                    Diagnostic::new(Code::Attribute, attr.name.span, message)
                        .label(format!("{} has no `{key}`", spec.kind.with_article()))
                        .note(format!("`{key}=` takes {}", key.says()))
                        .help(format!("remove `{shown}`{instead}")),
                );
            }
            match (key.takes(), &attr.value) {
                (Takes::Type, AttrValue::Word(w)) => match w.parse() {
                    Ok(s) if key == Key::Acc => all.acc = Some(s),
                    Ok(s) => all.to = Some(s),
                    Err(()) => {
                        return wrong(
                            format!("`{w}` is not a scalar type"),
                            "expected a scalar type",
                            "write `acc=f32`, or another scalar type".to_owned(),
                        );
                    }
                },
                (Takes::Text, AttrValue::Text(_)) | (Takes::Strategy, AttrValue::Chosen(_)) => {}
                (Takes::Strategy, AttrValue::Tuple(TupleExpr::Leaf(e)))
                    if matches!(
                        &e.kind,
                        ast::ExprKind::Name(name) if name.starts_with('@')
                    ) => {}
                (Takes::Atom, AttrValue::Word(w)) => all.atom = Some(w.clone()),
                (Takes::Tensor, AttrValue::View(view)) => all.bar = Some(self.operand(view)?),
                (Takes::OneOf(words), AttrValue::Word(w)) if words.contains(&w.as_str()) => {
                    // The words of other keys are not cache hints.
                    all.cache = w.parse().ok().or(all.cache);
                }
                (Takes::Constants(_), _) => all.ints.push((key, self.attr_ints(key, attr)?)),
                (Takes::Integer, AttrValue::Tuple(t)) if key == Key::Lane => {
                    if let [lane] = self.tuple(t)?.flatten()[..] {
                        all.integer(key, lane);
                    }
                }
                (Takes::Integer, AttrValue::Word(w)) => {
                    all.integer(key, self.expr(&named(w, attr))?);
                }
                (Takes::Integer, AttrValue::Tuple(TupleExpr::Leaf(e))) => {
                    all.integer(key, self.expr(e)?);
                }
                (takes, value) => {
                    let (expected, sense) = key.says().split_once(": ").unwrap_or((key.says(), ""));
                    let help = match (takes, value) {
                        (Takes::Text, AttrValue::Word(w)) => format!("write `{key}=\"{w}\"`"),
                        (Takes::Atom, AttrValue::Text(text)) => format!("write `{key}={text}`"),
                        _ => format!("write {expected}, which says {sense}"),
                    };
                    return wrong(
                        format!("`{key}` does not accept this value"),
                        &format!("expected {expected}"),
                        help,
                    );
                }
            }
        }
        Ok(all)
    }

    /// The constants of an attribute; a lone name is a constant.
    pub(super) fn attr_ints(&self, key: Key, attr: &Attr) -> Fallible<Vec<i64>> {
        let leaves = match &attr.value {
            AttrValue::Tuple(t) => self.tuple(t)?.flatten(),
            AttrValue::Word(w) => vec![self.expr(&named(w, attr))?],
            AttrValue::View(_) | AttrValue::Text(_) | AttrValue::Chosen(_) => vec![],
        };
        let least = if let Takes::Constants(least) = key.takes() { least } else { i64::MIN };
        let constants: Option<Vec<i64>> =
            leaves.into_iter().map(|d| d.as_const().filter(|c| *c >= least)).collect();
        let numbers = matches!(attr.value, AttrValue::Tuple(_) | AttrValue::Word(_));
        let sound = constants.as_deref().is_none_or(|found| match key {
            Key::Cluster => found.len() == 1,
            Key::Consumers => matches!(found, [0..=2]),
            _ => true,
        });
        if !sound {
            let what = if key == Key::Cluster { "one number" } else { "0, 1 or 2" };
            return fail(
                Diagnostic::new(Code::Attribute, attr.name.span, format!("`{key}` takes {what}"))
                    .label("found another value")
                    .help(format!("write `{key}=2`, or remove it")),
            );
        }
        let twice = constants.as_deref().filter(|_| key == Key::Axis);
        let twice = twice.and_then(|all| {
            all.iter().enumerate().find(|(i, axis)| all[..*i].contains(axis)).map(|(_, axis)| axis)
        });
        if let Some(axis) = twice {
            let message = format!("`axis` names mode {axis} twice");
            return fail(
                Diagnostic::new(Code::Attribute, attr.name.span, message)
                    .label("a mode can be removed only once")
                    .help("name each mode once, as in `axis=(0,1)`"),
            );
        }
        match constants.filter(|_| numbers) {
            Some(list) => Ok(list),
            None => fail(
                Diagnostic::new(
                    Code::Attribute,
                    attr.name.span,
                    format!("`{key}` takes constants of at least {least}"),
                )
                .label("a value is too small, or not a constant")
                .help(match key {
                    Key::Axis => "count modes from 0: the last of a matrix is `axis=1`",
                    _ => "write numbers or `let` constants",
                }),
            ),
        }
    }
}

/// The error for an unknown attribute. It suggests the most similar one, or the one that has this
/// name in other languages.
fn unknown_attribute(attr: &Attr) -> Diagnostic {
    let key = attr.name.text.as_str();
    let mut known: Vec<&str> =
        Key::ALL.iter().filter(|key| !key.is(Role::OfStrategy)).map(|key| key.as_str()).collect();
    known.sort_by_key(|name| name.chars().next());
    let d = Diagnostic::new(Code::Attribute, attr.name.span, format!("unknown attribute `{key}`"))
        .label("no spec has this attribute");
    let elsewhere = match key {
        "dim" | "dims" | "axes" => Some(Key::Axis),
        "accum" | "accumulate" => Some(Key::Acc),
        "dtype" => Some(Key::To),
        _ => None,
    };
    match elsewhere.map(Key::as_str).or_else(|| nearest(key, known.iter().copied())) {
        Some(meant) => d.did_you_mean(meant),
        None if matches!(key, "keepdims" | "keepdim") => {
            d.help("remove it: reduced modes always stay, with extent 1")
        }
        None => d.help(format!("remove it, or write one of {}", known.join(", "))),
    }
}

/// The values of a spec's attributes.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) acc: Option<Scalar>,
    /// The result type of a cast in a `means` block.
    pub(super) to: Option<Scalar>,
    atom: Option<String>,
    ints: Vec<(Key, Vec<i64>)>,
    bar: Option<TensorId>,
    multicast: Option<Dim>,
    cache: Option<CacheHint>,
    valid: Option<Dim>,
}

impl Attributes {
    /// The modes of `axis=`.
    pub(super) fn axes(&self) -> Vec<usize> {
        let list = self.ints.iter().find(|(k, _)| *k == Key::Axis).map_or(&[][..], |(_, v)| &v[..]);
        list.iter().filter_map(|a| usize::try_from(*a).ok()).collect()
    }

    /// Stores the value of a key that takes an integer. A lane is stored only if it is a constant
    /// of at least 0.
    fn integer(&mut self, key: Key, n: Dim) {
        match key {
            Key::Lane => self.ints.extend(n.as_const().filter(|l| *l >= 0).map(|l| (key, vec![l]))),
            Key::Multicast => self.multicast = Some(n),
            _ => self.valid = Some(n),
        }
    }
}

/// A lone name as an expression.
fn named(name: &str, attr: &Attr) -> ast::Expr {
    ast::Expr { kind: ast::ExprKind::Name(name.to_owned()), span: attr.name.span }
}
