//! Specs: operands, execution configuration, attributes, bodies.

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, AttrValue, CacheHint, Operand as A, SpecKind, TupleExpr};
use crate::diag::{Code, Diagnostic, nearest};
use crate::expr::Dim;
use crate::program::{Exec, Operand, Spec, SpecId, TensorId};
use crate::scalar::Scalar;

/// The attributes that specs know: key, what it takes, what it says.
pub(super) const SPEC_ATTRIBUTES: &[(&str, &str)] = &[
    ("acc", "a scalar type: in which a MatMul accumulates"),
    ("atom", "an atom's name: which instruction implements the spec"),
    ("axis", "modes: which a Reduction removes, or along which an Iota counts"),
    (
        "by",
        "a strategy and its parameters, `@name[P=1]`: how a kernel-level spec gets its dataflow",
    ),
    ("bar", "an mbarrier: which a copy into shared memory completes on"),
    ("cache", "normal, evict_first or evict_last: how long caches keep what is copied"),
    ("cluster", "a number: how many neighboring blocks form a cluster, for the solver"),
    (
        "consumers",
        "0, 1 or 2: how many groups of threads, each as many as the block has, take tiles in turn while a producer copies, for the solver",
    ),
    ("lane", "an integer: lane, distance or mask of a Shfl"),
    ("loc", "a text in quotes: where the spec comes from in a program that this one was made of"),
    (
        "math",
        "exact or fast: whether instructions that approximate implement it, whatever its result is rounded to",
    ),
    (
        "meant",
        "yes or no: whether a cast of a body rounds where the meaning does, or is a step on the way",
    ),
    ("multicast", "an integer: which blocks of the cluster get the copy, one bit each"),
    (
        "tile",
        "(m,n,k): block tile of a MatMul, of a Move or Reduction an extent a mode, for the solver",
    ),
    ("to", "a scalar type: what a cast in a `means` block gives"),
    ("valid", "an integer: how many elements a Move reads, from the first on; the others become 0"),
    (
        "warps",
        "(m,n), (m,n,k) or a count: warps of a block, or what else executes an instruction, for the solver",
    ),
];

impl Resolver {
    pub(super) fn spec(&mut self, spec: &ast::Spec) -> Fallible<SpecId> {
        let top = self.depth == 0;
        if let Some(name) = spec.name.as_ref().filter(|_| !top) {
            return fail(
                Diagnostic::new(Code::Placement, name.span, "only kernels have names")
                    .label("this spec stands in a body")
                    .help("remove the name, or move the spec to the top"),
            );
        }
        if let Some(name) = &spec.name {
            self.bind(Sigil::Kernel, name, Binding::Broken)?;
        }
        let exec = match &spec.exec {
            Some(ast::Exec::Both(b, t)) => {
                Some(Exec { blocks: self.thread_view(b)?, threads: self.thread_view(t)? })
            }
            None if top && spec.body.is_none() => None,
            _ => {
                let d = Diagnostic::new(
                    Code::ExecConfig,
                    spec.span,
                    "the spec does not say who executes it",
                );
                return fail(d.help(
                    "write `<<<#blocks, #threads>>>` after its name, or declare them there: \
                     `<<<#grid:[8], #cta:[128]>>>`",
                ));
            }
        };
        let mut inputs = vec![];
        for input in &spec.inputs {
            inputs.push(match input {
                A::View(v) => {
                    let t = self.operand(v)?;
                    self.read.insert(self.p.tensors[t].buffer);
                    Operand::Tensor(t)
                }
                A::Value(e) => Operand::Number(self.real(e)?),
                A::Number(n) => match n.text.parse::<f64>() {
                    Ok(v) => Operand::Number(v),
                    Err(_) => {
                        return fail(
                            Diagnostic::new(
                                Code::Syntax,
                                n.span,
                                format!("`{}` is no number", n.text),
                            )
                            .label("expected a decimal number, `inf` or `nan`")
                            .help("write a decimal number"),
                        );
                    }
                },
            });
        }
        let outputs = spec.outputs.iter().map(|v| self.operand(v)).collect::<Fallible<Vec<_>>>()?;
        if !top && spec.body.is_none() {
            self.literals(spec, &inputs, &outputs);
        }
        let Attributes { acc, to, atom, ints, bar, multicast, cache, valid } =
            self.attributes(spec)?;
        if to.is_some() {
            return fail(
                Diagnostic::new(Code::Attribute, spec.span, "`to` stands in `means` blocks only")
                    .help("remove it: a cast in a body gives the type of its output"),
            );
        }
        if let Some(attr) = spec.attrs.iter().find(|a| a.key.text == "meant")
            && let (Some(Operand::Tensor(from)), Some(to)) = (inputs.first(), outputs.first())
        {
            let (from, to) = (self.p.scalar_of(*from), self.p.scalar_of(*to));
            if !to.is_float() || to.holds(from) {
                let message = format!("`meant` of a cast from {from} to {to}");
                return fail(
                    Diagnostic::new(Code::Attribute, attr.key.span, message)
                        .label("it is said of casts that round to a float")
                        .help("remove it"),
                );
            }
        }
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
            attrs: spec
                .attrs
                .iter()
                .map(|a| (a.key.text.clone(), a.value.clone(), a.key.span))
                .collect(),
            ints,
            acc,
            atom,
            bar,
            multicast,
            cache,
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
            if body.stmts.is_empty() {
                self.errors.push(
                    Diagnostic::new(
                        Code::EmptyBody,
                        spec.span,
                        format!("the body of this {} is empty", spec.kind),
                    )
                    .label("nothing stands between its braces")
                    .help(match spec.kind == SpecKind::Generic {
                        true => "write what it does: a generic `Spec` means its body",
                        false => "write what implements it, or remove the braces: the solver writes the body then",
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
            let (body, block) = self.block(body);
            self.executing.truncate(executing);
            self.around.truncate(around);
            self.depth -= 1;
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

    /// V0241: finite literals of a leaf of a body that the type they are computed in does not have.
    fn literals(&mut self, spec: &ast::Spec, inputs: &[Operand], outputs: &[TensorId]) {
        let beside = match spec.kind {
            // The first operand only decides.
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
            let message = format!("{number} is no number of {scalar}");
            self.errors.push(
                Diagnostic::new(Code::Literal, span, message)
                    .label(format!("it {why}, and the body computes in {scalar} here"))
                    .help("cast the tensors to a wider type before, `cast(.., f32)`, or write a number that the type has"),
            );
        }
    }

    pub(super) fn attributes(&mut self, spec: &ast::Spec) -> Fallible<Attributes> {
        let mut all = Attributes::default();
        for (i, attr) in spec.attrs.iter().enumerate() {
            let key = attr.key.text.as_str();
            let wrong = |message: String, label: &str, help: String| {
                let d = Diagnostic::new(Code::Attribute, attr.key.span, message);
                fail(d.label(label).help(help))
            };
            let Some((_, takes)) = SPEC_ATTRIBUTES.iter().find(|(k, _)| *k == key) else {
                return fail(unknown_attribute(attr));
            };
            if spec.attrs[..i].iter().any(|a| a.key.text == key) {
                let message = format!("`{key}` is given twice");
                return wrong(message, "given before", "remove one of them".to_owned());
            }
            let matmul = matches!(spec.kind, SpecKind::MatMul | SpecKind::MatMulSet);
            let fits = match key {
                "acc" => matmul,
                "tile" | "warps" => {
                    let kind = matches!(spec.kind, SpecKind::Move | SpecKind::Reduction(_));
                    matmul || kind || self.depth == 0
                }
                "cluster" | "consumers" => self.depth == 0,
                "axis" => spec.kind.has_axis(),
                "meant" | "to" => matches!(spec.kind, SpecKind::Unary(ast::UnaryOp::Cast)),
                "lane" => matches!(spec.kind, SpecKind::Shfl(_)),
                "bar" | "multicast" | "valid" => spec.kind == SpecKind::Move,
                "cache" => matches!(spec.kind, SpecKind::Move | SpecKind::Accumulate(_)),
                _ => true,
            };
            if !fits {
                return wrong(
                    format!("`{key}` does not belong to this spec"),
                    &format!("a {} has no `{key}`", spec.kind),
                    format!("remove it: `{key}` is {takes}"),
                );
            }
            match (key, &attr.value) {
                ("acc" | "to", AttrValue::Word(w)) => match w.parse() {
                    Ok(s) if key == "acc" => all.acc = Some(s),
                    Ok(s) => all.to = Some(s),
                    Err(()) => {
                        return wrong(
                            format!("`{w}` is no scalar type"),
                            "expected a scalar type",
                            "write `acc=f32`, or another scalar type".to_owned(),
                        );
                    }
                },
                ("loc", AttrValue::Text(_)) => {}
                ("by", AttrValue::Chosen(_)) => {}
                ("by", AttrValue::Tuple(TupleExpr::Leaf(e))) if matches!(&e.kind, ast::ExprKind::Name(name) if name.starts_with('@')) =>
                    {}
                ("atom", AttrValue::Word(w)) => all.atom = Some(w.clone()),
                ("bar", AttrValue::View(view)) => all.bar = Some(self.operand(view)?),
                ("cache", AttrValue::Word(w)) if w.parse::<CacheHint>().is_ok() => {
                    all.cache = w.parse().unwrap_or(CacheHint::Normal);
                }
                ("math", AttrValue::Word(w)) if matches!(w.as_str(), "exact" | "fast") => {}
                ("meant", AttrValue::Word(w)) if matches!(w.as_str(), "yes" | "no") => {}
                ("multicast", AttrValue::Word(w)) => {
                    all.multicast = Some(self.expr(&named(w, attr))?);
                }
                ("multicast", AttrValue::Tuple(TupleExpr::Leaf(e))) => {
                    all.multicast = Some(self.expr(e)?);
                }
                ("valid", AttrValue::Word(w)) => all.valid = Some(self.expr(&named(w, attr))?),
                ("valid", AttrValue::Tuple(TupleExpr::Leaf(e))) => {
                    all.valid = Some(self.expr(e)?);
                }
                ("axis" | "cluster" | "consumers" | "tile" | "warps", value) => {
                    all.ints.push((key.to_owned(), self.attr_ints(key, value, attr)?));
                }
                ("lane", AttrValue::Tuple(t)) => {
                    let leaves = self.tuple(t)?.flatten();
                    all.ints.extend(lane(&leaves));
                }
                ("lane", AttrValue::Word(w)) => {
                    let leaf = self.expr(&named(w, attr))?;
                    all.ints.extend(lane(&[leaf]));
                }
                _ => {
                    return wrong(
                        format!("the value of `{key}` does not fit"),
                        "takes a value of another sort",
                        format!("write for `{key}` {takes}"),
                    );
                }
            }
        }
        Ok(all)
    }

    /// The constants of an attribute; a lone name is the constant of that name.
    pub(super) fn attr_ints(
        &self,
        key: &str,
        value: &AttrValue,
        attr: &ast::Attr,
    ) -> Fallible<Vec<i64>> {
        let leaves = match value {
            AttrValue::Tuple(t) => self.tuple(t)?.flatten(),
            AttrValue::Word(w) => vec![self.expr(&named(w, attr))?],
            AttrValue::View(_) | AttrValue::Text(_) | AttrValue::Chosen(_) => vec![],
        };
        let least = if matches!(key, "axis" | "consumers") { 0 } else { 1 };
        let constants: Option<Vec<i64>> =
            leaves.into_iter().map(|d| d.as_const().filter(|c| *c >= least)).collect();
        let numbers = matches!(value, AttrValue::Tuple(_) | AttrValue::Word(_));
        let sound = constants.as_deref().is_none_or(|found| match key {
            "cluster" => found.len() == 1,
            "consumers" => matches!(found, [0..=2]),
            _ => true,
        });
        if !sound {
            let what = if key == "cluster" { "one number" } else { "0, 1 or 2" };
            return fail(
                Diagnostic::new(Code::Attribute, attr.key.span, format!("`{key}` takes {what}"))
                    .label("takes another value")
                    .help(format!("write `{key}=2`, or remove it")),
            );
        }
        let twice = constants.as_deref().filter(|_| key == "axis");
        let twice = twice.and_then(|all| {
            all.iter().enumerate().find(|(i, axis)| all[..*i].contains(axis)).map(|(_, axis)| axis)
        });
        if let Some(axis) = twice {
            let message = format!("`axis` names mode {axis} twice");
            return fail(
                Diagnostic::new(Code::Attribute, attr.key.span, message)
                    .label("each mode is removed once")
                    .help("name each mode once, as in `axis=(0,1)`"),
            );
        }
        match constants.filter(|_| numbers) {
            Some(list) => Ok(list),
            None => fail(
                Diagnostic::new(
                    Code::Attribute,
                    attr.key.span,
                    format!("`{key}` takes constants of at least {least}"),
                )
                .label("one of its values is less, or not constant")
                .help(match key {
                    "axis" => "count modes from 0: the last of a matrix is `axis=1`",
                    _ => "write numbers or `let` constants",
                }),
            ),
        }
    }
}

/// The error for an attribute that no spec has: the nearest that one has, and others by the names that they have elsewhere.
fn unknown_attribute(attr: &ast::Attr) -> Diagnostic {
    const ELSEWHERE: [(&str, &str); 6] = [
        ("dim", "axis"),
        ("dims", "axis"),
        ("axes", "axis"),
        ("accum", "acc"),
        ("accumulate", "acc"),
        ("dtype", "to"),
    ];
    let key = attr.key.text.as_str();
    let known = SPEC_ATTRIBUTES.iter().map(|(k, _)| *k);
    let d = Diagnostic::new(
        Code::Attribute,
        attr.key.span,
        format!("no spec knows the attribute `{key}`"),
    )
    .label("unknown attribute");
    let elsewhere = ELSEWHERE.iter().find(|(name, _)| *name == key).map(|(_, here)| *here);
    match elsewhere.or_else(|| nearest(key, known.clone())) {
        Some(meant) => d.did_you_mean(meant),
        None if matches!(key, "keepdims" | "keepdim") => {
            d.help("remove it: a mode that is reduced stays, with extent 1")
        }
        None => {
            let known: Vec<&str> = known.collect();
            d.help(format!("remove it, or write one of {}", known.join(", ")))
        }
    }
}

/// What the attributes of a spec say.
pub(super) struct Attributes {
    pub(super) acc: Option<Scalar>,
    /// What a cast of a `means` block gives.
    pub(super) to: Option<Scalar>,
    atom: Option<String>,
    ints: Vec<(String, Vec<i64>)>,
    bar: Option<TensorId>,
    multicast: Option<Dim>,
    cache: CacheHint,
    valid: Option<Dim>,
}

impl Attributes {
    /// The modes of `axis=`.
    pub(super) fn axes(&self) -> Vec<usize> {
        let list = self.ints.iter().find(|(k, _)| k == "axis").map_or(&[][..], |(_, v)| &v[..]);
        list.iter().filter_map(|a| usize::try_from(*a).ok()).collect()
    }
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes {
            acc: None,
            to: None,
            atom: None,
            ints: vec![],
            bar: None,
            multicast: None,
            cache: CacheHint::Normal,
            valid: None,
        }
    }
}

/// The lane of a Shfl, where it is one constant of at least 0.
fn lane(leaves: &[Dim]) -> Option<(String, Vec<i64>)> {
    match leaves {
        [lane] => lane.as_const().filter(|l| *l >= 0).map(|l| ("lane".to_owned(), vec![l])),
        _ => None,
    }
}

/// A lone name as an expression.
fn named(name: &str, attr: &ast::Attr) -> ast::Expr {
    ast::Expr { kind: ast::ExprKind::Name(name.to_owned()), span: attr.key.span }
}
