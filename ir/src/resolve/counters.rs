//! Resolves counters: `counter @q = 0` declares an integer, and steps such as `@q += 1` change it.
//! A persistent kernel counts the stages of a ring with one, if the number of iterations of an
//! inner loop differs from tile to tile. Only the body of the spec that declares a counter may step
//! it.
//!
//! Each step gives the counter a new variable ([`VarKind::Counter`]), and so does each loop and
//! each condition that contains a step. An expression thereby states which value of the counter it
//! uses. It is an error to use a name for an earlier value, such as a view, after a step (V0243),
//! because later stages keep only the current value.

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast;
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, VarId, VarInfo};
use crate::limits::MAX_COUNTER;
use crate::program::walk::Step;
use crate::program::{Program, SpecId, StmtKind, VarKind, sides};
use crate::span::Span;
use std::collections::{HashMap, HashSet};
use std::fmt;

/// A counter in scope.
pub(super) struct Counter {
    /// The name, with `@`.
    name: String,
    /// The variable of the declaration.
    id: VarId,
    /// The variable of the current value.
    current: VarId,
    /// The last step, or the declaration.
    changed: Span,
    /// The number of specs around the declaration.
    depth: usize,
}

impl Resolver {
    /// `counter @q = 0`
    pub(super) fn counter(
        &mut self,
        name: &ast::Name,
        start: &ast::Expr,
        span: Span,
    ) -> Fallible<StmtKind> {
        let made = self.counted(name, start, span);
        let binding = made.as_ref().map_or(Binding::Broken, |(dim, ..)| Binding::Index(*dim));
        self.bind(Sigil::Index, name, binding)?;
        let (_, id, value) = made?;
        self.p.vars.insert(id, VarKind::Counter(id));
        self.counters.push(Counter {
            name: name.text.clone(),
            id,
            current: id,
            changed: span,
            depth: self.depth,
        });
        Ok(StmtKind::Step { counter: id, var: id, value })
    }

    /// `@q += 1`, `@q = 2 * k`
    pub(super) fn step_counter(
        &mut self,
        name: &ast::Name,
        (adds, value): (bool, &ast::Expr),
        span: Span,
    ) -> Fallible<StmtKind> {
        let Some(at) = self.counters.iter().position(|c| c.name == name.text) else {
            return match self.scopes.get(Sigil::Index, &name.text) {
                Some(Binding::Broken) => Err(Box::new(self.silent(name.span))),
                Some(_) => fail(
                    Diagnostic::new(
                        Code::Counter,
                        name.span,
                        format!("`{}` is not a counter", name.text),
                    )
                    .label("its value does not change")
                    .help(format!(
                        "choose another name, or declare it by `counter {} = ..`",
                        name.text
                    )),
                ),
                None => fail(
                    Diagnostic::new(
                        Code::UnknownName,
                        name.span,
                        format!("`{}` is not defined here", name.text),
                    )
                    .label("a step needs a counter")
                    .help(format!("write `counter {} = ..` before it", name.text)),
                ),
            };
        };
        if self.counters[at].depth != self.depth {
            return fail(
                Diagnostic::new(
                    Code::Counter,
                    span,
                    format!("`{}` is stepped by another spec than it is declared in", name.text),
                )
                .label("only some of the threads that have the counter may execute this")
                .related(self.counters[at].changed, "declared or stepped here")
                .help("declare the counter in the body of the spec that steps it"),
            );
        }
        let mut written = match adds {
            true => ast::Expr::bin(ast::BinOp::Add, ast::Expr::name(&*name.text), value.clone()),
            false => value.clone(),
        };
        written.span = value.span;
        let (dim, var, value) = self.counted(name, &written, span)?;
        let id = self.counters[at].id;
        self.p.vars.insert(var, VarKind::Counter(id));
        self.changes(at, (var, dim), span);
        Ok(StmtKind::Step { counter: id, var, value })
    }

    /// A new variable for a value of a counter, with the value.
    fn counted(
        &mut self,
        name: &ast::Name,
        value: &ast::Expr,
        span: Span,
    ) -> Fallible<(Dim, VarId, Dim)> {
        let value_span = value.span;
        let value = self.expr(value)?;
        let (lo, hi) = self.p.arena.range(value);
        let natural = lo.is_some_and(|lo| lo >= 0) || self.proves(Dim::Const(0), value, 0);
        if !natural {
            return fail(
                Diagnostic::new(
                    Code::Counter,
                    value_span,
                    format!("`{}` may become negative", name.text),
                )
                .label(format!("the value is {}", self.p.arena.display(value)))
                .help("give it a value of at least 0, as `max(0, ..)` is"),
            );
        }
        let lo = lo.unwrap_or(0).max(0);
        if lo > MAX_COUNTER {
            return fail(
                Diagnostic::new(
                    Code::Counter,
                    value_span,
                    format!("`{}` would be at least {lo}", name.text),
                )
                .label(format!("a counter has values from 0 to {MAX_COUNTER}"))
                .help("count in smaller steps, and compute larger numbers from the counter"),
            );
        }
        // If the limit ends the range, the range does not begin near it: no remainder of the value
        // is simplified because of the limit.
        let (lo, hi) = match hi.filter(|hi| *hi <= MAX_COUNTER) {
            Some(hi) => (lo, hi.max(lo)),
            None => (lo.min(MAX_COUNTER / 2), MAX_COUNTER),
        };
        let info = VarInfo { name: name.text.clone(), lo, hi: Some(hi), div: 1 };
        let (dim, var) = self.variable(info, VarKind::Loop, span)?;
        Ok((dim, var, value))
    }

    fn changes(&mut self, at: usize, (var, dim): (VarId, Dim), span: Span) {
        self.counters[at].current = var;
        self.counters[at].changed = span;
        let name = self.counters[at].name.clone();
        self.scopes.rebind(Sigil::Index, &name, Binding::Index(dim));
    }

    /// The counters in scope that statements of a block step, as indices.
    pub(super) fn stepped_in(&self, block: &ast::Block) -> Vec<usize> {
        if self.counters.is_empty() {
            return vec![];
        }
        let steps = ast::visit::Walk::new(&block.stmts).stmts();
        let names: HashSet<&str> = steps
            .filter_map(|s| match &s.kind {
                ast::StmtKind::Step { name, .. } => Some(name.text.as_str()),
                _ => None,
            })
            .collect();
        let own = self.counters.iter().enumerate();
        own.filter(|(_, c)| names.contains(&*c.name)).map(|(at, _)| at).collect()
    }

    /// Gives counters new variables of which only the range is known: at the beginning of a loop
    /// that steps them, and after a condition that does.
    pub(super) fn forget(&mut self, stepped: &[usize], span: Span) -> Fallible<()> {
        for &at in stepped {
            let (name, id) = (self.counters[at].name.clone(), self.counters[at].id);
            let info = VarInfo { name, lo: 0, hi: Some(MAX_COUNTER), div: 1 };
            let (dim, var) = self.variable(info, VarKind::Counter(id), span)?;
            self.changes(at, (var, dim), span);
        }
        Ok(())
    }

    /// The variables of counters at this place, to return to by [`Resolver::return_to`].
    pub(super) fn counters_here(&self) -> Vec<(VarId, Span)> {
        self.counters.iter().map(|c| (c.current, c.changed)).collect()
    }

    /// Gives the counters in scope the variables that they had at another place.
    pub(super) fn return_to(&mut self, place: &[(VarId, Span)]) {
        for (at, (var, span)) in place.iter().enumerate() {
            if let Some(dim) = self.p.arena.dim_of(*var) {
                self.changes(at, (*var, dim), *span);
            }
        }
    }

    /// Refuses the end of a loop that depends on a counter which the loop steps.
    pub(super) fn keeps_end(&self, end: Dim, stepped: &[usize], span: Span) -> Fallible<()> {
        let vars = self.p.vars_in(end);
        let Some(at) = stepped.iter().find(|at| vars.contains(&self.counters[**at].current)) else {
            return Ok(());
        };
        let name = &self.counters[*at].name;
        fail(
            Diagnostic::new(
                Code::Counter,
                span,
                format!("the loop changes `{name}`, on which its end depends"),
            )
            .label("this is computed once, before the loop")
            .help(format!(
                "write the bound as a further condition: `for (i = 0; i < N && i < {name}; i += 1)`"
            )),
        )
    }

    /// Refuses expressions that use an earlier value of a counter.
    pub(super) fn is_current(
        &self,
        dims: impl Iterator<Item = Dim>,
        of: impl fmt::Display,
        span: Span,
    ) -> Fallible<()> {
        if self.counters.is_empty() {
            return Ok(());
        }
        for var in dims.flat_map(|dim| self.p.vars_in(dim)) {
            let Some(VarKind::Counter(id)) = self.p.vars.get(&var) else { continue };
            let Some(counter) = self.counters.iter().find(|c| c.id == *id) else { continue };
            if counter.current == var {
                continue;
            }
            return fail(
                Diagnostic::new(
                    Code::Counter,
                    span,
                    format!("`{of}` uses an earlier value of `{}`", counter.name),
                )
                .label("the counter has changed since the definition")
                .related(counter.changed, "the counter changes here")
                .help(format!(
                    "move the step of `{}` behind this use; or define `{of}` again after the \
                     step, if its new value is meant",
                    counter.name
                )),
            );
        }
        Ok(())
    }
}

/// Finds the variables on which the values of each counter depend ([`Program::counters`]).
pub(super) fn find_sources(p: &mut Program) {
    let steps = p.kernels.iter().flat_map(|kernel| steps_of(p, *kernel));
    let mut used: HashMap<VarId, HashSet<VarId>> = HashMap::new();
    for (counter, vars) in steps {
        used.entry(counter).or_default().extend(vars);
    }
    // A counter also depends on the sources of other counters that its steps use, and on the first
    // values of loop variables.
    for counter in used.keys().copied().collect::<Vec<_>>() {
        let (mut seen, mut todo) = (HashSet::new(), vec![counter]);
        let mut sources = vec![];
        while let Some(next) = todo.pop() {
            if !seen.insert(next) {
                continue;
            }
            match p.vars.get(&next) {
                Some(VarKind::Counter(id)) => {
                    todo.push(*id);
                    todo.extend(used.get(id).into_iter().flatten());
                }
                _ => {
                    sources.push(next);
                    todo.extend(p.starts.get(&next).into_iter().flat_map(|d| p.vars_in(*d)));
                }
            }
        }
        sources.sort_unstable();
        p.counters.insert(counter, sources);
    }
}

/// For each step in a kernel: the counter, and the variables in its value and in the bounds and
/// conditions of the statements around it, up to the spec that declares the counter.
fn steps_of(p: &Program, kernel: SpecId) -> Vec<(VarId, Vec<VarId>)> {
    let mut found = vec![];
    let mut walk = p.walk_body(kernel);
    while let Some(step) = walk.next() {
        let Step::Enter(stmt) = step else { continue };
        let StmtKind::Step { counter, value, .. } = &stmt.kind else { continue };
        let around = walk.around().iter().rev().skip(1);
        let inside = around.take_while(|s| !matches!(s.kind, StmtKind::Spec(_)));
        let deciding = inside.flat_map(|s| match &s.kind {
            StmtKind::For { start, end, also, .. } => {
                [*start, *end].into_iter().chain(sides(also)).collect()
            }
            StmtKind::If { cond, .. } => sides(cond).collect(),
            _ => vec![],
        });
        let vars = deciding.chain([*value]).flat_map(|dim| p.vars_in(dim)).collect();
        found.push((*counter, vars));
    }
    found
}
