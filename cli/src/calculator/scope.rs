//! Declares the symbols of the calculator and the facts about them ([`Scope`]), as in
//! `(M,4):(4,1) where M % 8 == 0`.
//!
//! [`carbyne_ir`] parses, checks and uses them like the facts of a program, as in
//! `sym M where M % 8 == 0`.
//!
//! Invariant: a symbol is at least 1, or at least 0 if a fact states a lower bound. An answer over
//! symbols holds for all values that satisfy the facts.

use super::ops;
use super::value::Value;
use carbyne_ir::ast::{
    CmpOp, Compare, Expr, ExprKind, FORMAT_VERSION, Module, Name, Stmt, StmtKind, Substitution,
    Symbols,
};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::resolve;
use carbyne_ir::span::Span;
use carbyne_ir::text::{self, print_compare};
use indexmap::IndexSet;
use std::collections::{BTreeMap, BTreeSet};

/// Symbols, and the arena of expressions over them.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(super) arena: ExprArena,
    /// The variable of each symbol, or the number given for the symbol.
    symbols: BTreeMap<String, Dim>,
    /// The facts as written.
    stated: Vec<Compare>,
    values: BTreeMap<String, i64>,
    /// The facts about symbols without values.
    facts: Vec<Known>,
}

/// A fact and its symbols.
#[derive(Debug)]
struct Known {
    text: String,
    names: BTreeSet<String>,
}

impl Scope {
    /// This scope with additional facts and values of symbols; `None` if none of them is new.
    ///
    /// # Errors
    /// The facts contradict each other or a value, or the text is not a list of facts. The place
    /// of errors is `span`.
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
        let names: IndexSet<&str> = facts.iter().flat_map(names_of).collect();
        if let Some(name) = names.iter().find(|name| !may_be_bound(name)) {
            return Err(not_bindable(name, span));
        }
        let least = names.iter().map(|name| {
            let least = i64::from(!facts.iter().any(|fact| bounds_below(fact, name)));
            Compare { lhs: Expr::name(*name), op: CmpOp::Ge, rhs: Expr::int(least) }
        });
        let all = facts.iter().cloned().chain(least).collect();
        let (given, open): (Vec<&str>, Vec<&str>) =
            names.iter().partition(|name| values.contains_key(**name));
        let program = resolve::resolve(&module(&open, all, &values), "");
        let program = program.map_err(|errors| first_at(errors, span))?;
        let vars = program.symbols.iter().filter_map(|var| program.arena.dim_of(*var));
        let numbers = given.iter().map(|name| Dim::Const(values[*name]));
        let all = open.iter().zip(vars).chain(given.iter().zip(numbers));
        let symbols = all.map(|(name, symbol)| ((*name).to_owned(), symbol)).collect();
        let known = program.facts.iter().zip(&facts).map(|(resolved, fact)| {
            let names = names_of(fact).into_iter().filter(|name| !values.contains_key(*name));
            Known { text: resolved.text.clone(), names: names.map(str::to_owned).collect() }
        });
        let known = known.filter(|known| !known.names.is_empty()).collect();
        Ok(Some(Scope { arena: program.arena, symbols, stated: facts, values, facts: known }))
    }

    /// The symbol, or the number given for it.
    pub(super) fn symbol(&self, name: &str) -> Option<Dim> {
        self.symbols.get(name).copied()
    }

    /// The value as an expression, with the facts about its symbols and about all symbols that
    /// these facts relate to them.
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

/// Whether a name can be bound: it is not the name of an operation, and expressions can use it.
pub(super) fn may_be_bound(name: &str) -> bool {
    let said = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    said && ops::find(name).is_none() && !["o", "Sw", "true", "false", "where"].contains(&name)
}

/// The error for a name that cannot be bound.
pub(super) fn not_bindable(name: &str, span: Span) -> Box<Diagnostic> {
    let d = Diagnostic::new(Code::CalcName, span, format!("`{name}` cannot be bound"))
        .label("has another meaning")
        .help("choose another name, such as `A`");
    Box::new(d)
}

/// Parses a list of facts such as `M >= 1, K % 64 == 0`.
fn read(facts: &str, span: Span) -> Result<Vec<Compare>, Box<Diagnostic>> {
    if facts.trim().is_empty() {
        return Ok(vec![]);
    }
    let read = text::parse(&format!("carbyne {FORMAT_VERSION}\nsym a where {facts}\n"));
    let read = read.map_err(|errors| {
        let help = no_facts(span).help;
        Box::new(Diagnostic { help, ..*first_at(errors, span) })
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
    let message = "the text after `where` is not a list of facts";
    let d = Diagnostic::new(Code::CalcSyntax, span, message).label("not only facts");
    Box::new(d.help("write comparisons, separated by commas: `where M >= 1, K % 64 == 0`"))
}

/// A program that contains only these facts, with values substituted for symbols that have
/// values.
fn module(open: &[&str], facts: Vec<Compare>, values: &BTreeMap<String, i64>) -> Module {
    // A statement needs at least one symbol. The facts are checked even if all their symbols have
    // values.
    let names = if open.is_empty() { &["none_is_open"] } else { open };
    let names = names.iter().map(|name| Name { text: (*name).to_owned(), span: Span::default() });
    let symbols = Symbols { names: names.collect(), facts, typical: vec![] };
    let mut items = [Stmt::new(StmtKind::Symbols(symbols))];
    let numbers = values.iter().map(|(name, value)| (name.clone(), Expr::int(*value)));
    let mut by = Substitution {
        numbers: numbers.collect(),
        span: Some(Span::default()),
        budget: usize::MAX,
        ..Substitution::default()
    };
    // A number is valid wherever a fact has a name.
    let _ = by.in_place(&mut items);
    Module { header: vec![], items: items.into(), footer: vec![] }
}

/// The first of the errors, with the whole clause as its place.
fn first_at(errors: Diagnostics, span: Span) -> Box<Diagnostic> {
    let first = errors.into_vec().into_iter().next();
    let mut d = first.unwrap_or_else(|| *no_facts(span));
    (d.span, d.related, d.edits) = (span, vec![], vec![]);
    if !d.is_labeled() {
        d.label = "in these facts".to_owned();
    }
    d.help.get_or_insert_with(|| "change the facts".to_owned());
    Box::new(d)
}

fn names_of(fact: &Compare) -> Vec<&str> {
    [fact.lhs.names(), fact.rhs.names()].concat()
}

/// Whether the fact states a lower bound of a symbol: `M >= 0`, `0 < M`, `M == 4`.
fn bounds_below(fact: &Compare, name: &str) -> bool {
    let is = |e: &Expr| matches!(&e.kind, ExprKind::Name(n) if n == name);
    match fact.op {
        CmpOp::Ge | CmpOp::Gt => is(&fact.lhs),
        CmpOp::Le | CmpOp::Lt => is(&fact.rhs),
        CmpOp::Eq => is(&fact.lhs) || is(&fact.rhs),
        CmpOp::Ne => false,
    }
}
