//! Writes an instance of a strategy: the statements of a syntax tree that take the place of a
//! kernel-level spec, as one kernel or several. [`Instance::write`] substitutes operands, types and
//! numbers in the strategy's body, and renames what the module already uses. Each sub-spec of the
//! match is replaced by the chain of operations that it stands for ([`super::chain`] writes these).
//! Constants are folded. If the text states `<<<..>>>`, the instance must have that many blocks and
//! threads, otherwise it is [`Refused`].

use super::chain::{self, Chains};
use super::extents::is_apart;
use super::graph::Graph;
use super::library::Source;
use super::maps;
use super::symbols::Symbols;
use crate::names::Names;
use crate::numbers::{Numbers, eval};
use crate::strategies::found::Found;
use crate::strategies::matched::Match;
use crate::strategies::unwritten::Unwritten;
use crate::tricks::clusters;
use carbyne_ir::ast::visit::{self, Of, Part, PartMut, Rewriter, Walk, parts, parts_mut_where};
use carbyne_ir::ast::{
    Apply, Attr, AttrValue, BinOp, Block, Chosen, Def, Exec, Expr, ExprKind, Given, Group, Key,
    Launch, Name, Operand, Role, Spec, SpecKind, Stmt, StmtKind, Strategy, Substitution,
    TensorExpr, UnaryOp, Unfit, View, ViewOp,
};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Statements and names that one instance may be written of.
const BUDGET: usize = 1 << 20;

/// Why an instance cannot be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Refused {
    #[error(transparent)]
    Chain(#[from] Unwritten),
    #[error("it cannot be written with these operands")]
    Unfit,
    #[error("`<<<..>>>` has {found} blocks, but the strategy needs others, such as {wanted}")]
    Grid { found: String, wanted: String },
    #[error("`<<<..>>>` has {found} threads, but the strategy needs others, such as {wanted}")]
    Threads { found: i64, wanted: i64 },
    #[error("it has several kernels, so `<<<..>>>` cannot state its grid")]
    Several,
    #[error("the spec would be left unchanged")]
    Same,
    #[error("it has several kernels, whose grids cannot have additional modes")]
    Slices,
    #[error("blocks of several slices of a batch form no clusters")]
    Clusters,
}

impl From<Unfit> for Refused {
    fn from(_: Unfit) -> Self {
        Refused::Unfit
    }
}

/// A strategy whose parameters have values.
pub(crate) struct Instance<'a> {
    pub def: &'a Def,
    pub file: &'a Source,
    pub graph: &'a Graph,
    pub found: &'a Found,
    pub numbers: &'a Numbers,
    /// What numbers are written as that stand for symbols; none of them where the module is one of
    /// constant sizes.
    pub symbols: BTreeMap<String, Expr>,
    /// What stands for symbols, there.
    pub sizes: Option<&'a Symbols>,
}

/// Who executes the spec, where the text says so: blocks along the modes of the grid, and threads.
pub(crate) struct Executors {
    pub exec: (View, View),
    pub grid: Vec<i64>,
    pub threads: i64,
}

impl<'a> Instance<'a> {
    /// Of constant sizes.
    pub(super) fn of(m: &'a Match<'_>, numbers: &'a Numbers) -> Self {
        Instance {
            def: m.def,
            file: m.file,
            graph: &m.graph,
            found: &m.found,
            numbers,
            symbols: BTreeMap::new(),
            sizes: None,
        }
    }
}

impl Instance<'_> {
    /// The strategy and its parameters, as an attribute.
    pub(crate) fn by(&self) -> Attr {
        let chosen = self.def.params.iter().filter(|p| p.choices.is_some());
        let values = chosen.filter_map(|p| {
            let n = self.numbers.get(&p.name.text)?;
            Some((Name::new(p.name.text.clone()), number(*n)))
        });
        let name = Some(Name::new(self.def.name.text.clone()));
        let value = Chosen { name, values: values.collect(), span: Span::default() };
        Attr::new(Key::By, AttrValue::Chosen(value))
    }

    /// What takes the place of the kernel-level spec: the kernel with its body, and what stands
    /// before it.
    pub(crate) fn write(
        &self,
        stmt: &Stmt,
        executors: Option<&Executors>,
        names: &mut Names,
    ) -> Result<Vec<Stmt>, Refused> {
        let (StmtKind::Spec(spec), Some(strategy)) = (&stmt.kind, &self.def.strategy) else {
            return Err(Refused::Unfit);
        };
        let (mut by, views) = self.given(strategy, names);
        let carrier = Spec {
            exec: strategy.exec.clone(),
            attrs: strategy.attrs.clone(),
            body: Some(self.def.body.clone()),
            ..Spec::new(SpecKind::Generic)
        };
        let mut carrier = Block { stmts: vec![Stmt::new(StmtKind::Spec(carrier))], footer: vec![] };
        // Where a sub-spec takes a type, it is no number.
        visit::each_mut(&mut carrier.stmts, &mut |stmt| {
            let StmtKind::Call(call) = &mut stmt.kind else { return };
            for arg in &mut call.args {
                if let ExprKind::Name(name) = &arg.kind
                    && let Some(scalar) = self.found.types.get(name)
                {
                    *arg = Expr::name(scalar.as_str());
                }
            }
        });
        self.rename(&carrier, &mut by, names);
        let mut carrier = by.block(&carrier)?;
        fold_all(&mut carrier.stmts);
        maps::of_tensors(&mut carrier.stmts);
        let Some(Stmt { kind: StmtKind::Spec(inner), .. }) = carrier.stmts.first_mut() else {
            return Err(Refused::Unfit);
        };
        let mut body = inner.body.take().unwrap_or_default();
        let exec = inner.exec.take();
        // How many groups consume, and how many blocks form a cluster, is said of the kernel; what
        // else strategies say there answers pins.
        let said = |a: &&Attr| match a.key {
            Some(Key::Consumers) => clusters::number(a) != Some(0),
            Some(Key::Cluster) => clusters::number(a) != Some(1),
            _ => false,
        };
        let recomputes = inner.attr(Key::Recompute).and_then(clusters::number) == Some(1);
        let said: Vec<Attr> = inner.attrs.iter().filter(said).cloned().collect();
        let mut types = HashMap::new();
        for bound in self.found.operands.values() {
            types.insert(bound.source.view.base.text.clone(), bound.scalar);
        }
        chain::declared(&body.stmts, &mut types);
        converted(&mut body.stmts, &types);
        if exec.is_none() {
            if executors.is_some() {
                return Err(Refused::Several);
            }
            return self.several(stmt, spec, body, views, names);
        }
        body.stmts =
            self.chains(std::mem::take(&mut body.stmts), &types, (&[], recomputes), names)?;
        let Some(exec) = exec else { return Err(Refused::Several) };
        if !self.graph.outer.is_empty() && Attr::among(&said, Key::Cluster).is_some() {
            return Err(Refused::Clusters);
        }
        let exec = self.launched(exec, executors, &mut body, names)?;
        Ok(vec![self.kernel(stmt, exec, said, body)])
    }

    /// The substitution for the numbers, types and operands of the strategy, with definitions of
    /// the views that it names.
    fn given(&self, strategy: &Strategy, names: &mut Names) -> (Substitution, Vec<Stmt>) {
        let mut by = Substitution { budget: BUDGET, ..Substitution::default() };
        for (name, n) in self.numbers {
            let symbol = self.symbols.get(name).cloned();
            by.numbers.insert(name.clone(), symbol.unwrap_or_else(|| number(*n)));
        }
        for (name, scalar) in &self.found.types {
            by.types.insert(name.clone(), *scalar);
        }
        // Kernels refer to operands by name, so views that several kernels use get names.
        let mut views = vec![];
        for (name, bound) in &self.found.operands {
            let mut view = bound.source.view.clone();
            if strategy.exec.is_none() && !view.ops.is_empty() {
                let named = names.fresh_outside(name);
                views.push(Stmt::new(StmtKind::DataDef {
                    name: Name::new(&named),
                    ty: None,
                    view,
                }));
                view = View::of(named);
            }
            by.data.insert(name.clone(), Given::View(view));
        }
        (by, views)
    }

    /// The kernel-level spec with its body and with attributes that record the decomposition.
    fn kernel(&self, stmt: &Stmt, exec: Exec, said: Vec<Attr>, body: Block) -> Stmt {
        let mut kernel = stmt.clone();
        if let StmtKind::Spec(kernel) = &mut kernel.kind {
            kernel.exec = Some(exec);
            // Tiles of a slice of a batch are not those of the operands; `by=` says them.
            let whole = self.graph.outer.is_empty();
            kernel.attrs.retain(|a| match a.key {
                Some(Key::Tile) => whole,
                Some(Key::Warps) | None => true,
                Some(key) => !key.is(Role::Pin),
            });
            kernel.attrs.extend(said);
            kernel.attrs.push(self.by());
            kernel.body = Some(body);
        }
        kernel
    }

    /// Statements with chains in the place of the sub-specs of the match.
    fn chains(
        &self,
        stmts: Vec<Stmt>,
        types: &HashMap<String, Scalar>,
        (views, recomputes): (&[Stmt], bool),
        names: &mut Names,
    ) -> Result<Vec<Stmt>, Refused> {
        let (types, views) = (types.clone(), named(views));
        let (graph, found, sizes) = (self.graph, self.found, self.sizes);
        let chains = Chains { graph, found, names, types, views, sizes, recomputes };
        let mut writing = Holes { def: self.def, chains, failed: None };
        let stmts = visit::rewrite(stmts, &mut writing);
        match writing.failed {
            Some(why) => Err(why.into()),
            None => Ok(stmts),
        }
    }

    /// Whether its kernels have no bodies: others decompose them.
    pub(crate) fn is_apart(&self) -> bool {
        is_apart(self.def)
    }

    /// Whether a kernel of its own moves a factor, which lies otherwise then.
    pub(crate) fn prepares(&self) -> bool {
        let moves =
            |s: &Stmt| matches!(&s.kind, StmtKind::Spec(spec) if spec.kind == SpecKind::Move);
        self.def.body.stmts.iter().any(moves)
    }

    /// Several kernels in the place of one. Those that it has bodies for say `by=`; a sub-spec of
    /// the match is a kernel of its own, which says what it means.
    fn several(
        &self,
        stmt: &Stmt,
        spec: &Spec,
        mut body: Block,
        views: Vec<Stmt>,
        names: &mut Names,
    ) -> Result<Vec<Stmt>, Refused> {
        let mut out = views.clone();
        let mut types = HashMap::new();
        chain::declared(&body.stmts, &mut types);
        if !self.graph.outer.is_empty() {
            return Err(Refused::Slices);
        }
        if self.is_apart() && !self.prepares() && !self.found.computes() {
            return Err(Refused::Same);
        }
        for bound in self.found.operands.values() {
            types.insert(bound.source.view.base.text.clone(), bound.scalar);
            for stmt in &out {
                if let StmtKind::DataDef { name, view, .. } = &stmt.kind
                    && *view == bound.source.view
                {
                    types.insert(name.text.clone(), bound.scalar);
                }
            }
        }
        for mut own in std::mem::take(&mut body.stmts) {
            if let StmtKind::Call(call) = &own.kind
                && self.def.is_hole(&call.name.text)
            {
                let (types, views) = (types.clone(), named(&views));
                let (graph, found, sizes) = (self.graph, self.found, self.sizes);
                let recomputes = false;
                let mut chains = Chains { graph, found, names, types, views, sizes, recomputes };
                let kernel = chains.kernel(call)?;
                own.kind = StmtKind::Spec(kernel);
            } else if let StmtKind::Spec(kernel) = &mut own.kind {
                self.chains_of(kernel, &types, &views, names)?;
            }
            if let StmtKind::Spec(kernel) = &mut own.kind {
                if let Some(name) = &mut kernel.name {
                    let base = spec.name.as_ref().map_or("kernel", |n| &n.text);
                    name.text = names.fresh_kernel(&format!("{base}_{}", name.text));
                }
                if kernel.body.is_some() {
                    kernel.attrs.push(self.by());
                }
                own.blank_above = true;
            }
            out.push(own);
        }
        if let Some(first) = out.first_mut() {
            first.leading.clone_from(&stmt.leading);
        }
        Ok(out)
    }

    /// Puts what sub-specs stand for into the body of one of several kernels, which reads what they
    /// read.
    fn chains_of(
        &self,
        kernel: &mut Spec,
        types: &HashMap<String, Scalar>,
        views: &[Stmt],
        names: &mut Names,
    ) -> Result<(), Refused> {
        for block in kernel.means.iter_mut().chain(&mut kernel.body) {
            let stmts = std::mem::take(&mut block.stmts);
            let mut types = types.clone();
            chain::declared(&stmts, &mut types);
            block.stmts = self.chains(stmts, &types, (views, false), names)?;
        }
        let mut read = BTreeSet::new();
        for block in kernel.means.iter().chain(&kernel.body) {
            for stmt in Walk::new(&block.stmts).stmts() {
                parts(stmt, &mut |part| {
                    if let Part::View(view, _) = part {
                        read.insert(view.base.text.clone());
                    }
                });
            }
        }
        let own = |spec: &Spec, name: &str| {
            let views = spec.inputs.iter().filter_map(|o| match o {
                Operand::View(view) => Some(view),
                Operand::Number(_) | Operand::Value(_) => None,
            });
            views.chain(&spec.outputs).any(|v| v.base.text == name)
        };
        for source in self.graph.values.iter().filter_map(|v| v.source.as_ref()) {
            let name = &source.view.base.text;
            if read.contains(name) && !own(kernel, name) {
                kernel.inputs.push(Operand::View(View::of(name)));
            }
        }
        Ok(())
    }

    /// Gives the names that the body defines to others, where the module uses them.
    fn rename(&self, carrier: &Block, by: &mut Substitution, names: &mut Names) {
        // The coordinates of slices keep their names.
        self.graph.outer.iter().for_each(|(name, _)| drop(names.fresh(name)));
        let formal: BTreeSet<&str> =
            self.def.inputs.iter().chain(&self.def.outputs).map(|(n, _)| n.text.as_str()).collect();
        let mut data: BTreeSet<String> = BTreeSet::new();
        let (mut threads, mut indices) = (BTreeSet::new(), BTreeSet::new());
        for stmt in Walk::new(&carrier.stmts).stmts() {
            let written = match &stmt.kind {
                StmtKind::Assign { target, .. } => std::slice::from_ref(target),
                StmtKind::Spec(spec) => &spec.outputs[..],
                StmtKind::Call(call) => &call.outputs[..],
                _ => &[],
            };
            for view in written.iter().filter(|v| v.ops.is_empty()) {
                if !formal.contains(view.base.text.as_str()) {
                    data.insert(view.base.text.clone());
                }
            }
            parts(stmt, &mut |part| {
                if let Part::Defined(name, of) = part {
                    let set = match of {
                        Of::Data => &mut data,
                        Of::Threads => &mut threads,
                        Of::Number => &mut indices,
                    };
                    set.insert(name.text.clone());
                }
            });
        }
        // Tensors between several kernels are seen by all of the module.
        let several = self.def.strategy.as_ref().is_some_and(|s| s.exec.is_none());
        for name in data {
            let free = if several { names.fresh_outside(&name) } else { names.fresh(&name) };
            if free != name {
                by.rename_data(&name, &free);
            }
        }
        for name in threads {
            let free = names.fresh(&name);
            if free != name {
                by.threads.insert(name, free);
            }
        }
        for name in indices {
            let free = names.fresh(&name);
            if free != name {
                by.rename_number(&name, &free);
            }
        }
    }

    /// The head with the modes of slices, or that of the text with the names of its coordinates.
    fn launched(
        &self,
        exec: Exec,
        executors: Option<&Executors>,
        body: &mut Block,
        names: &mut Names,
    ) -> Result<Exec, Refused> {
        let Exec::Launch(launch) = exec else { return Err(Refused::Unfit) };
        let Launch { mut blocks, threads } = *launch;
        let Group::New { modes, .. } = &mut blocks else { return Err(Refused::Unfit) };
        for (name, extent) in &self.graph.outer {
            let symbol = self.sizes.and_then(|s| s.expression(*extent)).cloned();
            let extent = symbol.unwrap_or_else(|| Expr::int(*extent));
            modes.push((Some(Name::new(name.clone())), extent));
        }
        let none = Numbers::new();
        let Some(own) = executors else {
            // Modes of one block need no coordinate.
            let mut single = Substitution { budget: BUDGET, ..Substitution::default() };
            let one = |e: &Expr| eval(e, &none) == Some(1);
            while modes.len() > 1
                && let Some(i) = modes.iter().position(|(_, e)| one(e))
            {
                if let (Some(name), _) = modes.remove(i) {
                    single.numbers.insert(name.text, Expr::int(0));
                }
            }
            if !single.numbers.is_empty() {
                single.in_place(&mut body.stmts)?;
                fold_all(&mut body.stmts);
            }
            return Ok(Exec::Launch(Box::new(Launch { blocks, threads })));
        };
        let extents: Option<Vec<i64>> = modes.iter().map(|(_, e)| eval(e, &none)).collect();
        let extents = extents.ok_or(Refused::Unfit)?;
        let wanted = match &threads {
            Group::New { modes, .. } => {
                modes.iter().map(|(_, e)| eval(e, &none)).product::<Option<i64>>()
            }
            Group::Of(_) => None,
        };
        let wanted = wanted.ok_or(Refused::Unfit)?;
        if wanted != own.threads {
            return Err(Refused::Threads { found: own.threads, wanted });
        }
        let several = |e: &[i64]| -> Vec<i64> { e.iter().copied().filter(|n| *n > 1).collect() };
        let by = |e: &[i64]| e.iter().map(i64::to_string).collect::<Vec<_>>().join("x");
        let product = |e: &[i64]| e.iter().fold(1i64, |n, e| n.saturating_mul(*e));
        // The coordinates of the text's grid, by their modes.
        let given: Vec<String> = own.grid.iter().map(|_| names.fresh("@g")).collect();
        let mut by_names = Substitution { budget: BUDGET, ..Substitution::default() };
        if several(&extents) == several(&own.grid) {
            let mut own_modes = own.grid.iter().zip(&given).filter(|(n, _)| **n > 1);
            for ((name, _), extent) in modes.iter().zip(&extents) {
                let at = match *extent > 1 {
                    true => own_modes.next().map(|(_, name)| Expr::name(name)),
                    false => None,
                };
                if let Some(name) = name {
                    by_names.numbers.insert(name.text.clone(), at.unwrap_or_else(|| Expr::int(0)));
                }
            }
        } else if let ([(Some(name), _)], true) =
            (&modes[..], product(&extents) == product(&own.grid))
        {
            let mut step = 1i64;
            let mut sum: Option<Expr> = None;
            for (n, coordinate) in own.grid.iter().zip(&given) {
                let one = Expr::bin(BinOp::Mul, Expr::name(coordinate), Expr::int(step));
                let one = if step == 1 { Expr::name(coordinate) } else { one };
                sum = Some(match sum {
                    Some(sum) => Expr::bin(BinOp::Add, sum, one),
                    None => one,
                });
                step = step.saturating_mul(*n);
            }
            by_names.numbers.insert(name.text.clone(), sum.unwrap_or_else(|| Expr::int(0)));
        } else {
            return Err(Refused::Grid { found: by(&own.grid), wanted: by(&extents) });
        }
        *body = by_names.block(body)?;
        fold_all(&mut body.stmts);
        if let Group::New { name, .. } = &threads {
            let mut rename = Substitution { budget: BUDGET, ..Substitution::default() };
            rename.threads.insert(name.text.clone(), own.exec.1.base.text.clone());
            if let Group::New { name, .. } = &blocks {
                rename.threads.insert(name.text.clone(), own.exec.0.base.text.clone());
            }
            *body = rename.block(body)?;
        }
        if !given.is_empty() {
            let names = given.into_iter().map(Name::new).collect();
            let stmt = StmtKind::Indices { names, threads: own.exec.0.clone() };
            body.stmts.insert(0, Stmt::new(stmt));
        }
        Ok(Exec::Both(own.exec.0.clone(), own.exec.1.clone()))
    }
}

/// Leaves out casts that convert nothing: of parameters that are one type.
fn converted(stmts: &mut [Stmt], types: &HashMap<String, Scalar>) {
    visit::each_mut(stmts, &mut |stmt| {
        let StmtKind::Assign { value, .. } = &mut stmt.kind else { return };
        let mut todo = vec![(value, true)];
        while let Some((value, outermost)) = todo.pop() {
            let TensorExpr::Apply(apply) = &mut *value else { continue };
            let to = target(apply);
            let own = apply.args.first().and_then(|arg| scalar(arg, types));
            if apply.kind == SpecKind::Unary(UnaryOp::Cast) && to.is_some() && to == own {
                if outermost && matches!(apply.args[..], [TensorExpr::View(_)]) {
                    (apply.kind, apply.attrs) = (SpecKind::Move, vec![]);
                } else if let Some(arg) = apply.args.pop() {
                    *value = arg;
                    todo.push((value, outermost));
                }
                continue;
            }
            let TensorExpr::Apply(apply) = value else { continue };
            todo.extend(apply.args.iter_mut().map(|a| (a, false)));
        }
    });
}

/// The type that an operation converts to.
fn target(apply: &Apply) -> Option<Scalar> {
    Attr::among(&apply.attrs, Key::To)?.as_word()?.parse().ok()
}

/// The type of an expression over tensors of known types. Operands have one type, that of the
/// result, but for casts.
fn scalar(value: &TensorExpr, types: &HashMap<String, Scalar>) -> Option<Scalar> {
    match value {
        TensorExpr::View(view) => types.get(&view.base.text).copied(),
        TensorExpr::Apply(apply) if apply.kind == SpecKind::Unary(UnaryOp::Cast) => target(apply),
        // The parser bounds how deep expressions lie in one another.
        TensorExpr::Apply(apply) => apply.args.iter().find_map(|arg| scalar(arg, types)),
        TensorExpr::Number(_) => None,
    }
}

/// A number, also one below zero.
pub(crate) fn number(n: i64) -> Expr {
    match n.checked_neg().filter(|_| n < 0) {
        Some(m) => Expr { kind: ExprKind::Neg(Box::new(Expr::int(m))), span: Span::default() },
        None => Expr::int(n.max(0)),
    }
}

/// Computes what is constant. What is left out may leave more that changes nothing.
fn fold_all(stmts: &mut [Stmt]) {
    let none = Numbers::new();
    let named = constants(stmts);
    loop {
        let mut less = false;
        visit::each_mut(stmts, &mut |stmt| {
            parts_mut_where(stmt, &mut |part| {
                if let PartMut::Expr(e) = part
                    && matches!(e.kind, ExprKind::Bin(..))
                {
                    if let Some(n) = eval(e, &none) {
                        let span = e.span;
                        **e = number(n);
                        e.span = span;
                        less = true;
                        return false;
                    }
                    less |= simplify(e, &named);
                }
                true
            });
        });
        if !less {
            break;
        }
    }
    // Pads of nothing.
    visit::each_mut(stmts, &mut |stmt| {
        parts_mut_where(stmt, &mut |part| {
            if let PartMut::View(view, _) = part {
                let nothing = |n: &Expr| eval(n, &none) == Some(0);
                view.ops.retain(|op| match op {
                    ViewOp::Pad(by) => !by.before.iter().chain(&by.behind).all(nothing),
                    _ => true,
                });
            }
            true
        });
    });
}

/// Constants that `let` defines, once in all statements.
fn constants(stmts: &[Stmt]) -> Numbers {
    let (mut found, mut seen) = (Numbers::new(), BTreeSet::new());
    for stmt in Walk::new(stmts).stmts() {
        let StmtKind::Let(list) = &stmt.kind else { continue };
        for (name, e) in list {
            match eval(e, &Numbers::new()).filter(|_| seen.insert(name.text.clone())) {
                Some(n) => drop(found.insert(name.text.clone(), n)),
                None => drop(found.remove(&name.text)),
            }
        }
    }
    found
}

/// Leaves out what changes nothing: `x + 0`, `x * 1`, `x / 1`, and divides whole multiples. Whether
/// there was some.
fn simplify(e: &mut Expr, named: &Numbers) -> bool {
    let none = Numbers::new();
    let mut less = false;
    loop {
        let ExprKind::Bin(op, a, b) = &mut e.kind else { return less };
        let (left, right) = (eval(a, &none), eval(b, &none));
        let keep = match (*op, left, right) {
            (BinOp::Add, Some(0), _) | (BinOp::Mul, Some(1), _) => {
                std::mem::replace(&mut **b, Expr::int(0))
            }
            (BinOp::Add | BinOp::Sub, _, Some(0)) | (BinOp::Mul | BinOp::Div, _, Some(1)) => {
                std::mem::replace(&mut **a, Expr::int(0))
            }
            (BinOp::Mul, Some(0), _) | (BinOp::Mul, _, Some(0)) | (BinOp::Mod, _, Some(1)) => {
                Expr::int(0)
            }
            // A remainder of whole multiples.
            (BinOp::Mod, _, Some(of)) => {
                let ExprKind::Bin(BinOp::Mul, _, by) = &a.kind else { return less };
                let Some(_) = eval(by, &none).filter(|by| of > 0 && by % of == 0) else {
                    return less;
                };
                Expr::int(0)
            }
            (BinOp::Div, _, _) => {
                let Some(d) = eval(b, named) else { return less };
                let ExprKind::Bin(BinOp::Mul, _, by) = &a.kind else { return less };
                let Some(by) = eval(by, &none).filter(|by| d > 0 && by % d == 0) else {
                    return less;
                };
                let ExprKind::Bin(_, of, _) = &mut a.kind else { return less };
                let of = std::mem::replace(&mut **of, Expr::int(0));
                Expr::bin(BinOp::Mul, of, Expr::int(by / d))
            }
            _ => return less,
        };
        *e = keep;
        less = true;
    }
}

/// Puts what sub-specs stand for in their places.
struct Holes<'a> {
    def: &'a Def,
    chains: Chains<'a>,
    failed: Option<Unwritten>,
}

impl Rewriter for Holes<'_> {
    fn leave(&mut self, stmt: Stmt, out: &mut Vec<Stmt>) {
        match &stmt.kind {
            StmtKind::Call(call) if self.def.is_hole(&call.name.text) => {
                match self.chains.write(call) {
                    Ok(mut stmts) => {
                        if let Some(first) = stmts.first_mut() {
                            first.leading.clone_from(&stmt.leading);
                            first.blank_above = stmt.blank_above;
                        }
                        out.append(&mut stmts);
                    }
                    Err(why) => drop(self.failed.get_or_insert(why)),
                }
            }
            _ => out.push(stmt),
        }
    }
}

/// Names that stand for views.
fn named(stmts: &[Stmt]) -> HashMap<String, View> {
    let one = |stmt: &Stmt| match &stmt.kind {
        StmtKind::DataDef { name, view, .. } => Some((name.text.clone(), view.clone())),
        _ => None,
    };
    stmts.iter().filter_map(one).collect()
}
