//! Checks the definitions of sub-specs and strategies, and expands the uses of sub-specs. A
//! sub-spec is a spec with parameters, `def @scale[N] (%x) -> (%y) {`, which is used like a
//! function. A strategy is only checked here.
//!
//! A use becomes a generic spec with the body of the sub-spec. Operands replace formal operands;
//! numbers and types replace parameters. Names that the body defines are renamed if they are
//! already in scope.
//!
//! Invariant: a sub-spec uses only sub-specs above it, so that expansion terminates.
//! [`crate::limits::MAX_WRITTEN_OUT`] and [`crate::limits::MAX_CALLS`] bound its size.

use super::constants::literal;
use super::expressions::declared_again;
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::visit::{Of, Part as Piece, Step, Walk, parts};
use crate::ast::{
    self, AttrValue, Call, Def, Expr, ExprKind, Given, Name, Operand, ResultType, SpecKind,
    Substitution, TensorExpr, TypeAttr, Unfit, View,
};
use crate::diag::{Code, Diagnostic, count, nearest};
use crate::expr::Dim;
use crate::limits::{
    MAX_CALLS, MAX_EXPR_OPERATORS, MAX_NESTING, MAX_STRATEGY_STMTS, MAX_WRITTEN_OUT,
};
use crate::program::Stmt;
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

/// The number of names that an error lists.
const SHOWN: usize = 4;

/// A defined sub-spec.
struct Defined {
    def: Def,
    /// The names that its body defines.
    own: BTreeSet<(Sigil, String)>,
    /// All names in it.
    names: HashSet<String>,
    /// The nesting depth of its blocks.
    depth: usize,
    /// Whether another file defines it. Its places then do not belong to this text.
    imported: bool,
    /// Whether its definition has reported errors.
    broken: bool,
}

/// The sub-specs of a module.
pub(super) struct SubSpecs {
    known: BTreeMap<String, Rc<Defined>>,
    /// The names of all sub-specs of the module, with their places.
    all: BTreeMap<String, Span>,
    /// The remaining budget for expansion.
    budget: usize,
    /// The number of enclosing uses.
    calls: usize,
    /// Comments of definitions; expansion removes the definitions.
    pub(super) comments: Vec<String>,
}

impl Default for SubSpecs {
    fn default() -> Self {
        let (known, all) = (BTreeMap::new(), BTreeMap::new());
        SubSpecs { known, all, budget: MAX_WRITTEN_OUT, calls: 0, comments: vec![] }
    }
}

impl SubSpecs {
    /// Whether the current statement belongs to the body of a sub-spec.
    pub(super) fn is_inside(&self) -> bool {
        self.calls > 0
    }

    /// Collects the names of the sub-specs of a module.
    pub(super) fn of(module: &ast::Module) -> Self {
        let mut all = SubSpecs::default();
        for stmt in &module.items {
            if let ast::StmtKind::Def(def) = &stmt.kind {
                all.all.entry(def.name.text.clone()).or_insert(def.name.span);
            }
        }
        all
    }
}

/// The error for an unknown type parameter.
pub(super) fn no_type(name: &Name, span: Span) -> Diagnostic {
    Diagnostic::new(Code::SubSpec, span, format!("`{}` is not a scalar type", name.text))
        .label("not a type parameter of the enclosing sub-spec, either")
        .help("write a scalar type, or declare the parameter: `def @f[T:type]`")
}

fn sigil(of: Of) -> Sigil {
    match of {
        Of::Data => Sigil::Data,
        Of::Threads => Sigil::Thread,
        Of::Number => Sigil::Index,
    }
}

/// The tensors that a statement writes. The statement may declare names among them.
fn written(stmt: &ast::Stmt) -> &[View] {
    match &stmt.kind {
        ast::StmtKind::Assign { target, .. } => std::slice::from_ref(target),
        ast::StmtKind::Spec(spec) => &spec.outputs,
        ast::StmtKind::Call(call) => &call.outputs,
        _ => &[],
    }
}

impl Resolver {
    // ---- Definitions ---------------------------------------------------------------------------

    /// Checks the names in a definition, and its uses of other sub-specs. Types and shapes are
    /// checked at each use.
    pub(super) fn define(&mut self, stmt: &ast::Stmt, def: &Def) -> Fallible<()> {
        if !self.scopes.is_top() {
            return fail(
                Diagnostic::new(Code::Placement, def.span, "a definition of a sub-spec in a body")
                    .label("definitions are allowed at top level only")
                    .help("move it to the top, above the kernels that use it"),
            );
        }
        self.subspecs.comments.extend(stmt.leading.iter().chain(&stmt.trailing).cloned());
        self.bind(Sigil::Kernel, &def.name, Binding::Broken)?;
        let before = self.errors.len();
        let mut part = Defined {
            def: def.clone(),
            own: BTreeSet::new(),
            names: HashSet::new(),
            depth: 0,
            imported: stmt.span.is_at(def.span),
            broken: false,
        };
        self.scopes.enter();
        for param in &def.params {
            self.formal(Sigil::Index, &param.name);
        }
        for (name, _) in def.inputs.iter().chain(&def.outputs) {
            self.formal(Sigil::Data, name);
        }
        for (name, ty) in &def.inputs {
            let said = ty.iter().flat_map(|ty| ty.attrs.iter());
            if let (Some(ty), true) = (ty, said.clone().any(|a| !matches!(a, TypeAttr::Scalar(_))))
            {
                self.errors.push(
                    Diagnostic::new(
                        Code::SubSpec,
                        ty.span,
                        format!("the type of the operand `%{}` states a layout", name.text),
                    )
                    .label("only extents, scalar type and memory of an operand are allowed")
                    .help("remove the braces: the caller determines the layout"),
                );
            }
        }
        self.strategy_names(def, &mut part);
        if def.body.stmts.is_empty() && (def.means.is_none() || def.strategy.is_some()) {
            self.errors.push(
                Diagnostic::new(
                    Code::EmptyBody,
                    def.span,
                    format!("the body of `@{}` is empty", def.name.text),
                )
                .label("no statement between its braces")
                .help("write the statements that replace a use"),
            );
        }
        self.type_names(def, &mut part);
        for block in def.means.iter().chain(std::iter::once(&def.body)) {
            self.scopes.enter();
            self.block_names(&block.stmts, def, &mut part);
            self.scopes.leave();
        }
        self.scopes.leave();
        if def.strategy.is_some() && self.errors.len() == before {
            self.strategy_size(def, &part);
        }
        part.broken = self.errors.len() > before;
        self.subspecs.known.insert(def.name.text.clone(), Rc::new(part));
        Ok(())
    }

    /// Looks up the names in the additional parts of a strategy, and binds the threads of its head.
    fn strategy_names(&mut self, def: &Def, part: &mut Defined) {
        let Some(strategy) = &def.strategy else { return };
        // Construct statements with these names: a use with the choices as arguments, an `if` with
        // the conditions, and a spec with the head and the attributes.
        let mut numbers = vec![];
        for param in &def.params {
            match &param.choices {
                None => {}
                Some(ast::Choices::Among(values)) => numbers.extend(leaves(values).cloned()),
                Some(ast::Choices::Range { start, end, step }) => {
                    numbers.extend(
                        [Some(start), Some(end), step.as_ref()].into_iter().flatten().cloned(),
                    );
                }
            }
        }
        let conditions = [&strategy.conditions[..], &strategy.habits].concat();
        let (then, otherwise) = (ast::Block::default(), None);
        let conditions = ast::StmtKind::If { cond: conditions, then, otherwise };
        let head = ast::Spec {
            exec: strategy.exec.clone(),
            attrs: strategy.attrs.clone(),
            ..ast::Spec::new(SpecKind::Generic)
        };
        let values = ast::Call {
            name: def.name.clone(),
            args: numbers,
            inputs: vec![],
            outputs: vec![],
            declared: vec![],
            span: def.span,
        };
        self.referred(&ast::Stmt::new(ast::StmtKind::Call(values)), def, part);
        self.referred(&ast::Stmt::new(conditions), def, part);
        self.referred(&ast::Stmt::new(ast::StmtKind::Spec(head)), def, part);
    }

    /// X0010 for too many statements, V0234 for unused parameters. The solver would try each value
    /// of an unused parameter with all combinations of the others.
    fn strategy_size(&mut self, def: &Def, part: &Defined) {
        let blocks = def.means.iter().chain([&def.body]);
        let n: usize = blocks.map(|b| Walk::new(&b.stmts).with_means().stmts().count()).sum();
        if n > MAX_STRATEGY_STMTS {
            let message = format!("the strategy `@{}` has {n} statements", def.name.text);
            self.errors.push(
                Diagnostic::new(Code::StrategyTooLarge, def.span, message)
                    .label(format!("at most {MAX_STRATEGY_STMTS} are allowed"))
                    .help("use loops, or move repeated statements to sub-specs"),
            );
        }
        let unread = |p: &&ast::Param| p.choices.is_some() && !part.names.contains(&p.name.text);
        let unread: Vec<&Name> = def.params.iter().filter(unread).map(|p| &p.name).collect();
        let Some(first) = unread.first() else { return };
        let names = unread.iter().take(SHOWN).map(|name| format!("`{}`", name.text));
        let names = names.collect::<Vec<_>>().join(", ");
        let more = match unread.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let own = &def.name.text;
        let (parameters, them) =
            if unread.len() == 1 { ("parameter", "it") } else { ("parameters", "them") };
        let message =
            format!("nothing reads the {parameters} {names}{more} of the strategy `@{own}`");
        self.errors.push(
            Diagnostic::new(Code::Unread, first.span, message)
                .label("all of its values give the same body")
                .help(format!(
                    "remove {them}, or use {them} in the body, in an attribute or in a condition"
                )),
        );
    }

    /// Looks up the names in the types of formal operands.
    fn type_names(&mut self, def: &Def, part: &mut Defined) {
        for ty in def.inputs.iter().chain(&def.outputs).filter_map(|(_, ty)| ty.as_ref()) {
            let spec =
                ast::Spec { declared: vec![Some(ty.clone())], ..ast::Spec::new(SpecKind::Generic) };
            self.names_in(&ast::Stmt::new(ast::StmtKind::Spec(spec)), def, part);
        }
    }

    fn formal(&mut self, sigil: Sigil, name: &Name) {
        if let Err(d) = self.bind(sigil, name, Binding::Broken) {
            self.errors.push(*d);
        }
    }

    fn block_names(&mut self, stmts: &[ast::Stmt], def: &Def, part: &mut Defined) {
        let mut walk = Walk::new(stmts).with_means();
        let mut depth = 1;
        while let Some(step) = walk.next() {
            match step {
                Step::Open(_) => {
                    depth += 1;
                    part.depth = part.depth.max(depth);
                    self.scopes.enter();
                }
                Step::Close(_) => {
                    depth -= 1;
                    self.scopes.leave();
                }
                Step::Enter(stmt) => {
                    if let ast::StmtKind::Def(inner) = &stmt.kind {
                        if let Err(d) = self.define(stmt, inner) {
                            self.errors.push(*d);
                        }
                        walk.skip_inside();
                        continue;
                    }
                    // The variable of a loop is in scope only in the loop.
                    if matches!(stmt.kind, ast::StmtKind::For { .. }) {
                        self.scopes.enter();
                    }
                    self.names_in(stmt, def, part);
                }
                Step::Leave(stmt) => {
                    if matches!(stmt.kind, ast::StmtKind::For { .. }) {
                        self.scopes.leave();
                    }
                }
            }
            if self.errors.is_full() {
                break;
            }
        }
    }

    /// Looks up the names of a statement, checks uses of sub-specs, and binds names that it
    /// defines.
    fn names_in(&mut self, stmt: &ast::Stmt, def: &Def, part: &mut Defined) {
        let is_type = |name: &str| def.params.iter().any(|p| p.is_type && p.name.text == name);
        if let ast::StmtKind::Call(call) = &stmt.kind
            && !def.is_hole(&call.name.text)
        {
            match self.callable(call, Some(def)) {
                Ok(callee) => {
                    for (arg, param) in call.args.iter().zip(&callee.def.params) {
                        let named = match &arg.kind {
                            ExprKind::Name(name) => is_type(name),
                            _ => false,
                        };
                        let checked = match param.is_type {
                            true if named => Ok(()),
                            true => self.type_argument(arg, &callee.def, &param.name).map(drop),
                            false => Ok(()),
                        };
                        if let Err(d) = checked {
                            self.errors.push(*d);
                        }
                    }
                }
                Err(d) if d.message.is_empty() => {}
                Err(d) => self.errors.push(*d),
            }
        }
        for view in written(stmt) {
            if self.is_new(view) {
                part.own.insert((Sigil::Data, view.base.text.clone()));
                self.formal(Sigil::Data, &view.base);
            }
        }
        self.referred(stmt, def, part);
    }

    /// Looks up the names to which a statement refers, and binds names that it defines.
    fn referred(&mut self, stmt: &ast::Stmt, def: &Def, part: &mut Defined) {
        // In a strategy, a type parameter stands for its width where a number is expected.
        let is_type = |name: &str| {
            let is = |p: &ast::Param| p.is_type && p.name.text == name;
            def.strategy.is_none() && def.params.iter().any(is)
        };
        let is_known = |name: &str| {
            let of_machine =
                [ast::MULTIPROCESSORS, ast::WIDEST_GROUP, ast::BLOCK_SHARED].contains(&name);
            matches!(name, "inf" | "nan") || def.strategy.is_some() && of_machine
        };
        let types_too = match &stmt.kind {
            ast::StmtKind::Call(call) => call.args.as_slice(),
            _ => &[],
        };
        // A constant may use the constants before it in the same `let`.
        let earlier = |name: &str, at: Span| match &stmt.kind {
            ast::StmtKind::Let(all) => {
                let before = all.iter().take_while(|(_, value)| !within(value.span, at));
                before.into_iter().any(|(n, _)| n.text == name)
            }
            _ => false,
        };
        let mut unknown = vec![];
        let mut defined = vec![];
        parts(stmt, &mut |piece| match piece {
            Piece::Defined(name, of) => defined.push((sigil(*of), (*name).clone())),
            Piece::Referred(name, of) => {
                part.names.insert(name.text.clone());
                if self.scopes.get(sigil(*of), &name.text).is_none() {
                    unknown.push(self.unknown(sigil(*of), &name.text, name.span));
                }
            }
            Piece::Expr(Expr { kind: ExprKind::Name(name), span }) => {
                part.names.insert(name.clone());
                let argument = types_too.iter().any(|e| e.span.is_at(*span) && is_named(e, name));
                if is_type(name) && !argument {
                    unknown.push(Box::new(
                        Diagnostic::new(Code::SubSpec, *span, format!("`{name}` is a type"))
                            .label("expected a number")
                            .help("write a number, or declare the parameter without `:type`"),
                    ));
                } else if self.scopes.get(Sigil::Index, name).is_none()
                    && !(is_known(name) || earlier(name, *span))
                    && !(argument && name.parse::<Scalar>().is_ok())
                {
                    unknown.push(self.unknown(Sigil::Index, name, *span));
                }
            }
            Piece::Attr(ast::Attr { value: AttrValue::Word(word), .. }) => {
                part.names.insert(word.clone());
            }
            _ => {}
        });
        for mut d in unknown {
            // A sub-spec sees its parameters, and nothing of the text that uses it.
            if d.help.as_deref() == Some(super::exprs::DEFINE_ABOVE) {
                let own = &def.name.text;
                d.help = Some(format!("define it above, or make it a parameter of `@{own}`"));
            }
            self.errors.push(*d);
        }
        for (sigil, name) in defined {
            part.names.insert(name.text.clone());
            part.own.insert((sigil, name.text.clone()));
            self.formal(sigil, &name);
        }
    }

    /// The error for an import in a body, or for imports that were not linked.
    pub(super) fn unread_import(&self, path: &ast::Text) -> Diagnostic {
        if !self.scopes.is_top() {
            return Diagnostic::new(Code::Placement, path.span, "an import in a body")
                .label("imports are allowed at top level only")
                .help("move it to the top, above the kernels that use its sub-specs");
        }
        let shown: String = path.text.chars().take(128).collect();
        Diagnostic::new(Code::Import, path.span, format!("`{shown}` was not read"))
            .label("imports were not linked")
            .help("link imports with `link::link`, or write the sub-specs here")
    }

    // ---- Uses ----------------------------------------------------------------------------------

    /// Looks up the used sub-spec, and checks the numbers of parameters and operands.
    fn callable(&self, call: &Call, inside: Option<&Def>) -> Fallible<Rc<Defined>> {
        let name = &call.name.text;
        let Some(part) = self.subspecs.known.get(name) else {
            return fail(self.uncallable(call, inside));
        };
        if part.broken {
            return Err(Box::new(self.silent(call.span)));
        }
        let counts = [
            (part.def.params.len(), call.args.len(), "parameter"),
            (part.def.inputs.len(), call.inputs.len(), "input"),
            (part.def.outputs.len(), call.outputs.len(), "output"),
        ];
        for (has, given, what) in counts {
            if has != given {
                let has = count(has, what);
                return fail(
                    Diagnostic::new(
                        Code::SubSpec,
                        call.span,
                        format!("`@{name}` has {has}, found {given}"),
                    )
                    .label("used here")
                    .related(part.def.span, "defined here")
                    .help(format!("write {has}: `{}`", shown(&part.def))),
                );
            }
        }
        Ok(part.clone())
    }

    /// The error for a use of a name that is no sub-spec above.
    fn uncallable(&self, call: &Call, inside: Option<&Def>) -> Diagnostic {
        let name = &call.name.text;
        if let Some(def) = inside.filter(|def| def.name.text == *name) {
            return Diagnostic::new(Code::SubSpec, call.span, format!("`@{name}` uses itself"))
                .label("used here")
                .related(def.span, "in its own definition")
                .help("use a loop, or write the repetitions explicitly");
        }
        if let Some(below) = self.subspecs.all.get(name) {
            return Diagnostic::new(
                Code::SubSpec,
                call.span,
                format!("`@{name}` is defined below its use"),
            )
            .label("used here")
            .related(*below, "defined here")
            .help("move the definition above; uses of sub-specs cannot form a cycle");
        }
        let near = nearest(name, self.subspecs.all.keys().map(String::as_str));
        let message = format!("no sub-spec is named `@{name}`");
        let d = Diagnostic::new(Code::SubSpec, call.span, message).label("unknown name");
        match near {
            Some(near) => {
                d.help(format!("did you mean `@{near}`?")).edit(call.name.span, format!("@{near}"))
            }
            None => d.help(format!(
                "define it above, `def @{name} (%x) -> (%y) {{ .. }}`, or import it"
            )),
        }
    }

    /// Expands a use of a sub-spec, and resolves the result.
    pub(super) fn call(
        &mut self,
        stmt: &ast::Stmt,
        call: &Call,
        out: &mut Vec<Stmt>,
    ) -> Fallible<()> {
        let before = self.errors.len();
        let result = self.called(stmt, call, out);
        if result.is_err() {
            self.silence(&call.outputs);
        }
        let imported = self.subspecs.known.get(&call.name.text).is_some_and(|part| part.imported);
        let note = format!("this is in `@{}`, which is imported", call.name.text);
        let said = |d: &mut Diagnostic| {
            let within = call.span.start <= d.span.start && d.span.end <= call.span.end;
            if !within && !d.related.iter().any(|(span, _)| span.is_at(call.span)) {
                d.related.push((call.span, format!("`@{}` is used here", call.name.text)));
            }
            if imported && d.code != Code::SubSpec && !d.notes.contains(&note) {
                d.notes.push(note.clone());
            }
        };
        self.errors.iter_mut_from(before).for_each(&said);
        result.map_err(|mut d| {
            if !d.message.is_empty() {
                said(&mut d);
            }
            d
        })
    }

    fn called(&mut self, stmt: &ast::Stmt, call: &Call, out: &mut Vec<Stmt>) -> Fallible<()> {
        if self.depth == 0 {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    call.span,
                    "a sub-spec is used outside of every kernel",
                )
                .label("the top level contains only declarations and kernels")
                .help(
                    "use it in the body of a spec: `Spec @name <<<#grid, #cta>>> (..) -> (..) {`",
                ),
            );
        }
        let part = self.callable(call, None)?;
        let def = &part.def;
        self.check_depth(call, &part)?;
        let mut by = self.arguments(call, &part)?;
        let inputs = self.inputs_of_call(stmt, call, def, &mut by, out)?;
        let outputs = self.outputs_of_call(stmt, call, def, &mut by, out)?;
        self.rename_own(&part, &mut by);
        let means = def.means.as_ref().map(|means| by.block(means)).transpose();
        let body = by.block(&def.body);
        self.subspecs.budget = by.budget;
        let (means, body) = match (means, body) {
            (Ok(means), Ok(body)) => (means, body),
            (Err(e), _) | (_, Err(e)) => return Err(unfit(&e, call, def)),
        };
        // With an empty body, the `means` block alone defines the spec.
        let body = (means.is_none() || !body.stmts.is_empty()).then_some(body);
        let span = call.span;
        let spec =
            ast::Spec { inputs, outputs, means, body, span, ..ast::Spec::new(SpecKind::Generic) };
        let spec = ast::Stmt::derived(ast::StmtKind::Spec(spec), stmt);
        self.subspecs.calls += 1;
        let result = self.written_out(&spec, out);
        self.subspecs.calls -= 1;
        result
    }

    fn check_depth(&self, call: &Call, part: &Defined) -> Fallible<()> {
        if self.subspecs.calls >= MAX_CALLS || self.blocks + part.depth + 1 > MAX_NESTING {
            return fail(
                Diagnostic::new(
                    Code::TooDeep,
                    call.span,
                    format!("the use of `@{}` is nested too deeply", part.def.name.text),
                )
                .label(format!(
                    "uses nest deeper than {MAX_CALLS}, or the braces of their bodies deeper than \
                     {MAX_NESTING}"
                ))
                .help("use it in a body with fewer enclosing sub-specs or braces"),
            );
        }
        Ok(())
    }

    /// Creates a substitution for the parameters of a sub-spec with the arguments of a use.
    fn arguments(&mut self, call: &Call, part: &Defined) -> Fallible<Substitution> {
        let def = &part.def;
        let mut by = Substitution {
            budget: self.subspecs.budget,
            span: part.imported.then_some(call.span),
            ..Substitution::default()
        };
        for (param, arg) in def.params.iter().zip(&call.args) {
            if param.is_type {
                let scalar = self.type_argument(arg, def, &param.name)?;
                by.types.insert(param.name.text.clone(), scalar);
                by.numbers.insert(param.name.text.clone(), Expr::name(scalar.as_str()));
            } else {
                let number = self.number_argument(arg, def, &param.name)?;
                by.numbers.insert(param.name.text.clone(), number);
            }
        }
        Ok(by)
    }

    /// Adds the inputs of a use to the substitution. Returns those that are views.
    fn inputs_of_call(
        &mut self,
        stmt: &ast::Stmt,
        call: &Call,
        def: &Def,
        by: &mut Substitution,
        out: &mut Vec<Stmt>,
    ) -> Fallible<Vec<Operand>> {
        let mut inputs = vec![];
        for (input, (name, ty)) in call.inputs.iter().zip(&def.inputs) {
            let number = match input {
                Operand::View(view) => {
                    self.looked_at(view)?;
                    if let Some(ty) = ty {
                        let ty = substituted(by, ty, call, def)?;
                        self.fits(view, name, &ty, def)?;
                    }
                    let view = self.spoken_of(view, name, def, stmt, out)?;
                    inputs.push(Operand::View(view.clone()));
                    by.data.insert(name.text.clone(), Given::View(view));
                    continue;
                }
                Operand::Number(_) => input.clone(),
                Operand::Value(e) => self.number(e)?,
            };
            by.data.insert(name.text.clone(), Given::Number(number));
        }
        Ok(inputs)
    }

    /// Adds the outputs of a use to the substitution, and declares new ones.
    fn outputs_of_call(
        &mut self,
        stmt: &ast::Stmt,
        call: &Call,
        def: &Def,
        by: &mut Substitution,
        out: &mut Vec<Stmt>,
    ) -> Fallible<Vec<View>> {
        let mut outputs = vec![];
        for (i, (view, (name, ty))) in call.outputs.iter().zip(&def.outputs).enumerate() {
            let said = call.declared.get(i).cloned().flatten();
            let ty = ty.as_ref().map(|ty| substituted(by, ty, call, def)).transpose()?;
            if self.is_new(view) {
                let ty = self.declared_type(&view.base, said, ty.as_ref(), name, def)?;
                self.declare(&view.base, Some(&ty), None, true, stmt, out)?;
            } else if let Some(said) = said {
                return fail(declared_again(view, &said));
            }
            if let Some(ty) = &ty {
                self.fits(view, name, ty, def)?;
            }
            let view = self.spoken_of(view, name, def, stmt, out)?;
            outputs.push(view.clone());
            by.data.insert(name.text.clone(), Given::View(view));
        }
        Ok(outputs)
    }

    /// Renames the definitions in the body whose names are already in scope.
    fn rename_own(&mut self, part: &Defined, by: &mut Substitution) {
        for (sigil, name) in &part.own {
            if self.scopes.get(*sigil, name).is_some() {
                let free = self.free_name(*sigil, name, &part.names);
                match sigil {
                    Sigil::Data => by.rename_data(name, &free),
                    Sigil::Thread => drop(by.threads.insert(name.clone(), free)),
                    Sigil::Index => by.rename_number(name, &free),
                    Sigil::Kernel => {}
                }
            }
        }
    }

    /// The scalar type passed for a type parameter.
    fn type_argument(&self, arg: &Expr, def: &Def, param: &Name) -> Fallible<Scalar> {
        let word = match &arg.kind {
            ExprKind::Name(name) => name.as_str(),
            _ => "",
        };
        word.parse().map_err(|()| {
            Box::new(
                Diagnostic::new(
                    Code::SubSpec,
                    arg.span,
                    format!("the parameter `{}` of `@{}` is a type", param.text, def.name.text),
                )
                .label("not a scalar type")
                .related(param.span, "declared as a type here")
                .help(format!("write a scalar type: `{}`", shown(def))),
            )
        })
    }

    /// The number passed for a parameter. Constants are evaluated, so that nested uses do not build
    /// up long expressions.
    fn number_argument(&mut self, arg: &Expr, def: &Def, param: &Name) -> Fallible<Expr> {
        match &arg.kind {
            ExprKind::Int(_) | ExprKind::Real(_) => return Ok(arg.clone()),
            ExprKind::Name(name) => {
                let known = self.scopes.get(Sigil::Index, name).is_some();
                if known || matches!(name.as_str(), "inf" | "nan") {
                    return Ok(arg.clone());
                }
                if name.parse::<Scalar>().is_ok() {
                    return fail(
                        Diagnostic::new(
                            Code::SubSpec,
                            arg.span,
                            format!(
                                "the parameter `{}` of `@{}` is a number",
                                param.text, def.name.text
                            ),
                        )
                        .label("a scalar type")
                        .related(param.span, "declared as a number here")
                        .help("write a number, or declare the parameter with `:type`"),
                    );
                }
                return Err(self.unknown(Sigil::Index, name, arg.span));
            }
            ExprKind::Bin(..) | ExprKind::Neg(_) | ExprKind::Sqrt(_) => {}
        }
        let computed = |v: f64| ast::literal(&literal(v), arg.span);
        if !self.is_integer(arg) {
            return Ok(computed(self.real(arg)?));
        }
        if let Dim::Const(n) = self.expr(arg)?
            && self.real(arg).is_ok_and(|v| v == n as f64)
        {
            return Ok(computed(n as f64));
        }
        if ast::nodes(arg) > 2 * MAX_EXPR_OPERATORS {
            return fail(
                Diagnostic::new(
                    Code::ExprTooLong,
                    arg.span,
                    format!("an expression has more than {MAX_EXPR_OPERATORS} operators"),
                )
                .label("after expansion")
                .help("name parts of it with `let`"),
            );
        }
        Ok(arg.clone())
    }

    /// The type of a declared result. The parts that the use states take precedence over those of
    /// the definition.
    fn declared_type(
        &self,
        name: &Name,
        said: Option<ResultType>,
        formal: Option<&ResultType>,
        of: &Name,
        def: &Def,
    ) -> Fallible<ResultType> {
        let mut ty = match (said, formal) {
            (None, Some(formal)) => formal.clone(),
            (Some(mut said), formal) => {
                if let Some(formal) = formal {
                    if said.levels.is_empty() {
                        said.levels.clone_from(&formal.levels);
                    }
                    said.scalar = said.scalar.or(formal.scalar);
                    said.memory = said.memory.or(formal.memory);
                }
                said
            }
            (None, None) => ResultType {
                levels: vec![],
                scalar: None,
                memory: None,
                attrs: vec![],
                span: name.span,
            },
        };
        ty.span = name.span;
        if !ty.levels.is_empty() && ty.scalar.is_some() {
            return Ok(ty);
        }
        fail(
            Diagnostic::new(
                Code::SubSpec,
                name.span,
                format!("`@{}` does not state the type of `%{}`", def.name.text, name.text),
            )
            .label("declared by this use")
            .related(of.span, format!("`%{}` has no extents or no scalar type here", of.text))
            .help(format!(
                "write its type in the definition, `-> (%{}:[8,8].f32)`, or here: \
                 `-> (%{}:[8,8].f32)`",
                of.text, name.text
            )),
        )
    }

    /// Compares an operand with the stated type of the formal operand.
    fn fits(&mut self, view: &View, name: &Name, ty: &ResultType, def: &Def) -> Fallible<()> {
        let shaped = self.looked_at(view)?;
        let tensor = self.tensor_named(&view.base.text, view.base.span)?;
        let memory = self.p.buffers[self.p.tensors[tensor].buffer].memory;
        let levels = self.declared_levels(&ty.levels)?;
        let sizes = self.sizes(&levels, view.span)?;
        let extents = ty.levels.is_empty() || self.same_extents(&sizes, &shaped.extents);
        let scalar = ty.scalar.is_none_or(|s| s == shaped.scalar);
        // A type without a memory accepts every memory.
        let place = ty.memory.is_none_or(|m| Some(m) == memory);
        if extents && scalar && place {
            return Ok(());
        }
        let show = |all: &[Dim], scalar: Option<Scalar>, memory: Option<Memory>| {
            let all = if ty.levels.is_empty() { None } else { Some(self.shown_extents(all)) };
            let scalar = scalar.map(|s| s.as_str().to_owned());
            let memory = memory.map(|m| m.as_str().to_owned());
            all.into_iter().chain(scalar).chain(memory).collect::<Vec<_>>().join(".")
        };
        let wanted = show(&sizes, ty.scalar, ty.memory);
        let found = show(&shaped.extents, ty.scalar.map(|_| shaped.scalar), ty.memory.and(memory));
        fail(
            Diagnostic::new(
                Code::SubSpec,
                view.span,
                format!("`%{}` of `@{}` is {wanted}, found {found}", name.text, def.name.text),
            )
            .label(format!("this is {found}"))
            .related(name.span, "declared here")
            .help(format!("pass an operand of type {wanted}, or other parameters")),
        )
    }

    /// Defines a name for a view if the sub-spec has a `means` block, because such a block can only
    /// refer to names.
    fn spoken_of(
        &mut self,
        view: &View,
        formal: &Name,
        def: &Def,
        stmt: &ast::Stmt,
        out: &mut Vec<Stmt>,
    ) -> Fallible<View> {
        if def.means.is_none() || view.ops.is_empty() {
            return Ok(view.clone());
        }
        let name = Name { span: view.span, ..self.fresh(formal) };
        let kind = ast::StmtKind::DataDef { name: name.clone(), ty: None, view: view.clone() };
        self.plain(&ast::Stmt::derived(kind, stmt), out)?;
        Ok(View { base: name, ops: vec![], span: view.span })
    }

    /// A free name for a definition of a body whose own name is in scope.
    fn free_name(&mut self, sigil: Sigil, name: &str, not: &HashSet<String>) -> String {
        let mut n = 2;
        loop {
            let text = format!("{name}_{n}");
            let used = self.scopes.get(sigil, &text).is_some()
                || not.contains(&text)
                || sigil == Sigil::Data && !self.taken.insert(text.clone());
            if !used {
                return text;
            }
            n += 1;
        }
    }
}

/// The numbers in a tuple.
fn leaves(tuple: &ast::TupleExpr) -> impl Iterator<Item = &Expr> {
    let mut todo = vec![tuple];
    std::iter::from_fn(move || {
        loop {
            match todo.pop()? {
                ast::TupleExpr::Leaf(e) => return Some(e),
                ast::TupleExpr::Tuple(all) => todo.extend(all.iter().rev()),
            }
        }
    })
}

fn within(outer: Span, inner: Span) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn is_named(e: &Expr, name: &str) -> bool {
    matches!(&e.kind, ExprKind::Name(n) if n == name)
}

/// An example of its use: `@scale[N, T] (%x, %s) -> (%y)`.
fn shown(def: &Def) -> String {
    let params: Vec<&str> = def.params.iter().map(|p| p.name.text.as_str()).collect();
    let list = |all: &[(Name, Option<ResultType>)]| {
        all.iter().map(|(n, _)| format!("%{}", n.text)).collect::<Vec<_>>().join(", ")
    };
    let params = match params.is_empty() {
        true => String::new(),
        false => format!("[{}]", params.join(", ")),
    };
    format!("@{}{params} ({}) -> ({})", def.name.text, list(&def.inputs), list(&def.outputs))
}

/// Substitutes parameters in a type of a sub-spec.
fn substituted(
    by: &mut Substitution,
    ty: &ResultType,
    call: &Call,
    def: &Def,
) -> Fallible<ResultType> {
    // Substitution works on statements, so a statement carries the type.
    let mut carrier = ast::Stmt::new(ast::StmtKind::Assign {
        target: View::of("x"),
        ty: Some(ty.clone()),
        value: TensorExpr::Number(Expr::int(0)),
    });
    by.head(&mut carrier).map_err(|e| unfit(&e, call, def))?;
    match &mut carrier.kind {
        ast::StmtKind::Assign { ty: Some(ty), .. } => Ok(ty.clone()),
        _ => Ok(ty.clone()),
    }
}

/// The error for a use that cannot be expanded.
fn unfit(why: &Unfit, call: &Call, def: &Def) -> Box<Diagnostic> {
    let name = &def.name.text;
    Box::new(match why {
        Unfit::NotAName(of) => Diagnostic::new(
            Code::SubSpec,
            call.span,
            format!("`@{name}` needs a complete tensor for `%{}`", of.text),
        )
        .label("found a view or a number")
        .related(of.span, "this operand must be the name of a tensor")
        .help("name the view first: `%rows = %A[0, _]`"),
        Unfit::NotATensor(of) => Diagnostic::new(
            Code::SubSpec,
            call.span,
            format!("`@{name}` needs a tensor for `%{}`", of.text),
        )
        .label("found a number")
        .related(of.span, "this operand must be a tensor")
        .help("pass a tensor"),
        Unfit::TooMuch => {
            Diagnostic::new(Code::SubSpec, call.span, "the expansion of sub-specs is too large")
                .label(format!("this use of `@{name}` exceeds the limit"))
                .related(def.span, "defined here")
                .note(format!("at most {MAX_WRITTEN_OUT} names, numbers, views and statements"))
                .help("use loops, or fewer nested sub-specs")
        }
    })
}
