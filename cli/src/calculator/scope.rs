//! Symbols: the names that facts are about, `(M,4):(4,1) where M % 8 == 0`.
//!
//! Facts are read, checked and put to use by [`carbyne_ir`], as those of `sym M where M % 8 == 0` in a program.
//!
//! Invariant: a symbol is 1 or more, or 0 or more where a fact says what it is at least; whatever values within its
//! facts it has, an answer over symbols is the answer over these values.

use super::ops;
use super::value::Value;
use carbyne_ir::ast::{CmpOp, Compare, Expr, ExprKind, FORMAT_VERSION, Module, Name, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::resolve;
use carbyne_ir::span::Span;
use carbyne_ir::text::{self, print_compare};
use std::collections::{BTreeMap, BTreeSet};

/// Symbols, and the arena in which expressions over them live.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(super) arena: ExprArena,
    /// What each symbol is: a variable, or the number that it was given.
    symbols: BTreeMap<String, Dim>,
    /// The facts as they were stated.
    stated: Vec<Compare>,
    values: BTreeMap<String, i64>,
    /// The facts about symbols without values.
    facts: Vec<Known>,
}

/// A fact and the symbols that it is about.
#[derive(Debug)]
struct Known {
    text: String,
    names: BTreeSet<String>,
}

impl Scope {
    /// The symbols of this scope and of further facts, some of which have values; none where nothing is new.
    ///
    /// # Errors
    /// Facts that contradict each other or a value, or that are no facts; they are said of `span`.
    pub(super) fn with(
        &self,
        further: &str,
        values: &BTreeMap<String, i64>,
        span: Span,
    ) -> Result<Option<Scope>, Box<Diagnostic>> {
        let mut facts = self.stated.clone();
        let mut seen: BTreeSet<String> = facts.iter().map(print_compare).collect();
        facts.extend(
            read(further, span)?.into_iter().filter(|fact| seen.insert(print_compare(fact))),
        );
        let values = self.values.iter().chain(values).map(|(name, value)| (name.clone(), *value));
        let values: BTreeMap<String, i64> = values.collect();
        if facts.len() == self.stated.len() && values == self.values {
            return Ok(None);
        }
        let names: Vec<String> = distinct(facts.iter().flat_map(names_of));
        if let Some(name) = names.iter().find(|name| !may_be_bound(name)) {
            return Err(not_bindable(name, span));
        }
        let given = |name: &String| values.get(name).copied();
        let least = names.iter().map(|name| {
            let least = i64::from(!facts.iter().any(|fact| bounds_below(fact, name)));
            Compare { lhs: Expr::name(name), op: CmpOp::Ge, rhs: Expr::int(least) }
        });
        let all: Vec<Compare> = facts.iter().cloned().chain(least).collect();
        let all = all.into_iter().map(|c| Compare {
            lhs: put(&c.lhs, &values),
            op: c.op,
            rhs: put(&c.rhs, &values),
        });
        let open: Vec<&String> = names.iter().filter(|name| given(name).is_none()).collect();
        let program = resolve::resolve(&module(&open, all.collect()), "");
        let program = program.map_err(|errors| at(errors, span))?;
        let vars = program.symbols.iter().filter_map(|var| program.arena.dim_of(*var));
        let mut symbols: BTreeMap<String, Dim> = open.into_iter().cloned().zip(vars).collect();
        let numbers =
            names.iter().filter_map(|name| Some((name.clone(), Dim::Const(given(name)?))));
        symbols.extend(numbers);
        let known = program.facts.iter().zip(&facts).map(|(resolved, fact)| {
            let names = names_of(fact).into_iter().filter(|name| !values.contains_key(*name));
            Known { text: resolved.text.clone(), names: names.map(str::to_owned).collect() }
        });
        let known = known.filter(|known| !known.names.is_empty()).collect();
        Ok(Some(Scope { arena: program.arena, symbols, stated: facts, values, facts: known }))
    }

    /// The symbol or the number that it was given.
    pub(super) fn symbol(&self, name: &str) -> Option<Dim> {
        self.symbols.get(name).copied()
    }

    /// The value as an expression, with the facts that its symbols have, directly or by way of each other.
    pub(super) fn text(&self, value: &Value) -> String {
        let mut names: BTreeSet<String> = BTreeSet::new();
        value.for_each(&mut |number| {
            let vars = self.arena.vars_of(number);
            names.extend(vars.into_iter().map(|var| self.arena.var_info(var).name));
        });
        let text = value.text(&self.arena);
        if names.is_empty() {
            return text;
        }
        loop {
            let reached = names.len();
            for known in &self.facts {
                if !known.names.is_disjoint(&names) {
                    names.extend(known.names.iter().cloned());
                }
            }
            if names.len() == reached {
                break;
            }
        }
        let facts = self.facts.iter().filter(|known| !known.names.is_disjoint(&names));
        let facts: BTreeSet<&str> = facts.map(|known| &*known.text).collect();
        format!("{text} where {}", facts.into_iter().collect::<Vec<_>>().join(", "))
    }
}

/// Whether a name is free to be bound: no operation has it, and expressions can say it.
pub(super) fn may_be_bound(name: &str) -> bool {
    let said = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    said && ops::find(name).is_none() && !["o", "Sw", "true", "false", "where"].contains(&name)
}

/// The error for a name that is not free.
pub(super) fn not_bindable(name: &str, span: Span) -> Box<Diagnostic> {
    let d = Diagnostic::new(Code::CalcName, span, format!("`{name}` cannot be bound"))
        .label("has a meaning already")
        .help("choose another name, such as `A`");
    Box::new(d)
}

/// The facts of a text such as `M >= 1, K % 64 == 0`.
fn read(facts: &str, span: Span) -> Result<Vec<Compare>, Box<Diagnostic>> {
    if facts.trim().is_empty() {
        return Ok(vec![]);
    }
    let read = text::parse(&format!("carbyne {FORMAT_VERSION}\nsym a where {facts}\n"));
    let read = read.map_err(|errors| {
        let help = no_facts(span).help;
        Box::new(Diagnostic { help, ..*at(errors, span) })
    })?;
    match &read.items[..] {
        [one] => match &one.kind {
            StmtKind::Symbols(symbols) if symbols.typical.is_empty() => Ok(symbols.facts.clone()),
            _ => Err(no_facts(span)),
        },
        _ => Err(no_facts(span)),
    }
}

fn no_facts(span: Span) -> Box<Diagnostic> {
    let message = "what stands behind `where` is more than facts";
    let d = Diagnostic::new(Code::CalcSyntax, span, message).label("these are no facts alone");
    Box::new(d.help("write comparisons, separated by commas: `where M >= 1, K % 64 == 0`"))
}

/// A program that says no more than these facts.
fn module(names: &[&String], facts: Vec<Compare>) -> Module {
    let names = names.iter().map(|name| Name { text: (*name).clone(), span: Span::default() });
    let names: Vec<Name> = names.collect();
    // Without symbols there is still something to check.
    let none = Name { text: "none_is_open".to_owned(), span: Span::default() };
    let names = if names.is_empty() { vec![none] } else { names };
    let symbols = carbyne_ir::ast::Symbols { names, facts, typical: vec![] };
    let statement = carbyne_ir::ast::Stmt::new(StmtKind::Symbols(symbols));
    Module { header: vec![], items: vec![statement], footer: vec![] }
}

/// The first of the errors, said of the whole clause.
fn at(errors: Diagnostics, span: Span) -> Box<Diagnostic> {
    let first = errors.into_vec().into_iter().next();
    let mut d = first.unwrap_or_else(|| *no_facts(span));
    (d.span, d.related, d.edits) = (span, vec![], vec![]);
    if d.label.is_empty() {
        d.label = "of these facts".to_owned();
    }
    d.help.get_or_insert_with(|| "change the facts".to_owned());
    Box::new(d)
}

/// The expression with numbers in the place of names.
fn put(e: &Expr, values: &BTreeMap<String, i64>) -> Expr {
    let kind = match &e.kind {
        ExprKind::Name(name) => match values.get(name) {
            Some(value) => return Expr::int(*value),
            None => ExprKind::Name(name.clone()),
        },
        ExprKind::Neg(a) => ExprKind::Neg(Box::new(put(a, values))),
        ExprKind::Sqrt(a) => ExprKind::Sqrt(Box::new(put(a, values))),
        ExprKind::Bin(op, a, b) => {
            ExprKind::Bin(*op, Box::new(put(a, values)), Box::new(put(b, values)))
        }
        ExprKind::Int(v) => ExprKind::Int(*v),
        ExprKind::Real(text) => ExprKind::Real(text.clone()),
    };
    Expr { kind, span: Span::default() }
}

fn names_of(fact: &Compare) -> Vec<&str> {
    [fact.lhs.names(), fact.rhs.names()].concat()
}

/// In order, each once.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all: Vec<String> = vec![];
    for name in names {
        if !all.iter().any(|other| other == name) {
            all.push(name.to_owned());
        }
    }
    all
}

/// Whether the fact says what a symbol is at least: `M >= 0`, `0 < M`, `M == 4`.
fn bounds_below(fact: &Compare, name: &str) -> bool {
    let is = |e: &Expr| matches!(&e.kind, ExprKind::Name(n) if n == name);
    match fact.op {
        CmpOp::Ge | CmpOp::Gt => is(&fact.lhs),
        CmpOp::Le | CmpOp::Lt => is(&fact.rhs),
        CmpOp::Eq => is(&fact.lhs) || is(&fact.rhs),
        CmpOp::Ne => false,
    }
}
