//! Decides whether a symbolic expression is at least zero, or a multiple of a number, under
//! assumptions such as the facts of `where`. This folder is the prover. Checks of index ranges and
//! of equal extents, and the synchronization check, use it. If it cannot decide, it names a fact
//! that is missing, if possible one about a single symbol that would suffice.
//!
//! The prover reads an expression as a sum over its atoms (`system.rs`): the parts that it does not
//! take apart, such as variables and quotients. It adds the negated claim to the assumptions and
//! the laws of these atoms, and searches for a combination of them that is a contradiction
//! (`simplex.rs`).
//!
//! Invariants:
//! - An answer `Known` holds for all values of the variables, within their ranges and divisors,
//!   that satisfy the assumptions and for which the expressions have a value. Under contradictory
//!   assumptions any answer is correct.
//! - Equal questions get equal answers. Each takes a bounded number of steps (`Budget`) and creates
//!   no expression in the arena.
//!
//! The prover is incomplete: it does not prove claims that need case distinctions between integers
//! or products of more than two differences.

mod budget;
mod consequences;
mod simplex;
mod sum;
mod system;
#[cfg(test)]
mod tests;

use super::{Dim, ExprArena, ExprId, Node, VarId};
use crate::leaf::{Decision, Fact, gcd};
pub(crate) use budget::Budget;
use budget::MAX_STEPS;
use sum::Sum;
use system::System;

/// The maximum number of assumptions of one proof; the latest come first.
const MAX_ASSUMED: usize = 48;
/// The maximum number of minima and maxima that are split into two cases.
const MAX_SPLITS: usize = 3;
/// The maximum number of variables to set, one at a time, to the opposite end of their range.
#[cfg(feature = "text")]
const MAX_CORNERS: usize = 4;
/// The maximum number of candidates for a missing fact.
const MAX_TRIED: usize = 12;

/// Expressions that are assumed to be at least zero.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    /// The expressions, each with its variables.
    holds: Vec<(Dim, Box<[VarId]>)>,
    /// Variables that a missing fact may mention.
    symbols: Vec<VarId>,
}

impl Assumptions {
    /// Assumes that these expressions are at least zero.
    pub fn new(cx: &ExprArena, holds: impl IntoIterator<Item = Dim>) -> Self {
        let mut all = Assumptions::default();
        holds.into_iter().for_each(|dim| all.push(cx, dim));
        all
    }

    /// Allows an answer [`Decision::Needs`] to state a fact about this variable.
    pub fn about(&mut self, symbol: VarId) {
        self.symbols.push(symbol);
    }

    /// Assumes that another expression is at least zero.
    pub fn push(&mut self, cx: &ExprArena, dim: Dim) {
        self.holds.push((dim, cx.vars_of(dim).into()));
    }

    /// The number of assumptions.
    pub fn len(&self) -> usize {
        self.holds.len()
    }

    /// Whether there are no assumptions.
    pub fn is_empty(&self) -> bool {
        self.holds.is_empty()
    }

    /// Removes all assumptions but the first `n`.
    pub fn truncate(&mut self, n: usize) {
        self.holds.truncate(n);
    }

    /// The assumed expressions in the order of `push`.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Dim> + '_ {
        self.holds.iter().map(|(dim, _)| *dim)
    }

    /// The assumptions that are connected to `goals` by shared variables, directly or through other
    /// assumptions. The latest come first.
    fn relevant(&self, cx: &ExprArena, goals: &[Dim], budget: &mut Budget) -> Vec<Dim> {
        let mut vars: Vec<VarId> = goals.iter().flat_map(|goal| cx.vars_of(*goal)).collect();
        vars.sort_unstable();
        let mut rest: Vec<&(Dim, Box<[VarId]>)> = self.holds.iter().rev().collect();
        let mut found = vec![];
        while budget.pay(rest.len()).is_some() {
            let (near, far): (Vec<_>, Vec<_>) = rest
                .into_iter()
                .partition(|(_, own)| own.iter().any(|v| vars.binary_search(v).is_ok()));
            let room = MAX_ASSUMED - found.len();
            found.extend(near.iter().take(room).map(|(dim, _)| *dim));
            if near.is_empty() || found.len() >= MAX_ASSUMED {
                break;
            }
            vars.extend(near.iter().flat_map(|(_, own)| own.iter()));
            vars.sort_unstable();
            vars.dedup();
            rest = far;
        }
        found
    }
}

/// Whether an expression is at least zero.
#[must_use]
pub fn nonnegative(cx: &ExprArena, dim: Dim, assumptions: &Assumptions) -> Decision {
    at_most(cx, Dim::Const(0), dim, assumptions)
}

/// Whether `a < b`.
#[must_use]
pub fn less(cx: &ExprArena, a: Dim, b: Dim, assumptions: &Assumptions) -> Decision {
    let missing = || Fact::Less { smaller: cx.display(a), larger: cx.display(b) };
    decide(cx, a, b, 1, assumptions, missing)
}

/// Whether `a <= b`.
#[must_use]
pub fn at_most(cx: &ExprArena, a: Dim, b: Dim, assumptions: &Assumptions) -> Decision {
    let missing = || Fact::AtMost { smaller: cx.display(a), larger: cx.display(b) };
    decide(cx, a, b, 0, assumptions, missing)
}

/// Whether `a == b`.
#[must_use]
pub fn equal(cx: &ExprArena, a: Dim, b: Dim, assumptions: &Assumptions) -> Decision {
    if a == b {
        return Decision::Known(true);
    }
    match (at_most(cx, a, b, assumptions), at_most(cx, b, a, assumptions)) {
        (Decision::Known(false), _) | (_, Decision::Known(false)) => Decision::Known(false),
        (Decision::Known(true), Decision::Known(true)) => Decision::Known(true),
        _ => Decision::Needs(Fact::Equal { left: cx.display(a), right: cx.display(b) }),
    }
}

/// Whether an expression is a multiple of a positive number.
#[must_use]
pub fn divides(cx: &ExprArena, n: i64, dim: Dim, assumptions: &Assumptions) -> Decision {
    let value = |value: Dim| {
        let (divisor, value) = (n.to_string(), cx.display(value));
        Decision::Needs(Fact::Divides { divisor, value })
    };
    if n < 1 {
        return value(dim);
    }
    if cx.divisor(dim) % n == 0 {
        return Decision::Known(true);
    }
    let mut budget = Budget::new(MAX_STEPS);
    let question = Question { cx, holds: assumptions.relevant(cx, &[dim], &mut budget) };
    let divisors = question.divisors();
    let mut system = System::new(cx, &divisors);
    let Some(sum) = system.sum(dim, &mut budget) else { return value(dim) };
    match system.remainder(&sum, n.into()) {
        (step, 0) if step == i128::from(n) => return Decision::Known(true),
        (_, 1..) => return Decision::Known(false),
        _ => {}
    }
    for answer in [true, false] {
        if question.leaves_nothing(n, dim, answer, &divisors, &mut budget) {
            return Decision::Known(answer);
        }
    }
    for symbol in assumptions.symbols.iter().filter_map(|v| cx.expr_of(*v)).take(MAX_TRIED) {
        let with = also(&divisors, symbol, n);
        let mut system = System::new(cx, &with);
        let sum = system.sum(dim, &mut budget);
        if sum.is_some_and(|sum| system.remainder(&sum, n.into()) == (n.into(), 0)) {
            return value(Dim::Expr(symbol));
        }
    }
    value(dim)
}

/// A minimal list of facts about symbols that make all these expressions multiples of a positive
/// number. The list is empty if they are multiples already. `None` if no divisors of symbols are
/// sufficient.
#[must_use]
pub fn divisors_missing(
    cx: &ExprArena,
    n: i64,
    dims: &[Dim],
    assumptions: &Assumptions,
) -> Option<Vec<Fact>> {
    let mut open = vec![];
    for dim in dims {
        match divides(cx, n, *dim, assumptions) {
            Decision::Known(true) => {}
            Decision::Known(false) => return None,
            Decision::Needs(_) => open.push(*dim),
        }
    }
    let mut budget = Budget::new(MAX_STEPS);
    let question = Question { cx, holds: assumptions.relevant(cx, &open, &mut budget) };
    let known = question.divisors();
    let mut suffices = |divided: &[(ExprId, i64)]| {
        let with = divided.iter().fold(known.clone(), |all, (symbol, by)| also(&all, *symbol, *by));
        open.iter().all(|dim| {
            let mut system = System::new(cx, &with);
            let sum = system.sum(*dim, &mut budget);
            sum.is_some_and(|sum| system.remainder(&sum, n.into()) == (n.into(), 0))
        })
    };
    let vars: Vec<VarId> = open.iter().flat_map(|dim| cx.vars_of(*dim)).collect();
    let own = assumptions.symbols.iter().filter(|v| vars.contains(v)).take(MAX_TRIED);
    let mut divided: Vec<(ExprId, i64)> = own.filter_map(|v| Some((cx.expr_of(*v)?, n))).collect();
    if !suffices(&divided) {
        return None;
    }
    // The search tries to remove the first factors of a product first. The last factor is often the
    // extent of the consecutive mode, and a divisor of it is the most useful fact.
    let mut at = 0;
    while at < divided.len() {
        let mut less = divided.clone();
        let (_, by) = less.remove(at);
        if suffices(&less) {
            divided = less;
            continue;
        }
        let halves = std::iter::successors(Some(by), |by| (by % 2 == 0).then_some(by / 2));
        for by in halves.skip(1).take_while(|by| *by > 1) {
            let mut less = divided.clone();
            less[at].1 = by;
            if !suffices(&less) {
                break;
            }
            divided = less;
        }
        at += 1;
    }
    let fact = |(symbol, by): (ExprId, i64)| {
        let (divisor, value) = (by.to_string(), cx.display(Dim::Expr(symbol)));
        Fact::Divides { divisor, value }
    };
    Some(divided.into_iter().map(fact).collect())
}

/// Whether the prover proves `a + by <= b` within a budget.
#[cfg(feature = "text")]
pub(crate) fn proves(
    cx: &ExprArena,
    (a, b, by): (Dim, Dim, i64),
    assumptions: &Assumptions,
    budget: &mut Budget,
) -> bool {
    let question = Question { cx, holds: assumptions.relevant(cx, &[a, b], budget) };
    !question.is_wrong(a, b, by)
        && budget.share(|own| question.holds(a, b, by, &question.divisors(), own))
}

/// A fact about a symbol that is sufficient to prove `a + by <= b`.
#[cfg(feature = "text")]
pub(crate) fn missing(
    cx: &ExprArena,
    (a, b, by): (Dim, Dim, i64),
    assumptions: &Assumptions,
    budget: &mut Budget,
) -> Option<Fact> {
    let question = Question { cx, holds: assumptions.relevant(cx, &[a, b], budget) };
    question.missing(a, b, by, &assumptions.symbols, budget)
}

/// Decides whether `a + by <= b`.
fn decide(
    cx: &ExprArena,
    a: Dim,
    b: Dim,
    by: i64,
    assumptions: &Assumptions,
    missing: impl Fn() -> Fact,
) -> Decision {
    let apart = |a: Dim, b: Dim, by: i64| {
        let room = i128::from(cx.range(b).0?) - i128::from(cx.range(a).1?);
        Some(room >= i128::from(by))
    };
    if apart(a, b, by) == Some(true) {
        return Decision::Known(true);
    }
    if apart(b, a, 1 - by) == Some(true) {
        return Decision::Known(false);
    }
    let mut budget = Budget::new(MAX_STEPS);
    let question = Question { cx, holds: assumptions.relevant(cx, &[a, b], &mut budget) };
    let divisors = question.divisors();
    if question.holds(a, b, by, &divisors, &mut Budget::new(MAX_STEPS)) {
        return Decision::Known(true);
    }
    // The negation of `a + by <= b` is `b + 1 - by <= a`.
    if question.holds(b, a, 1 - by, &divisors, &mut Budget::new(MAX_STEPS)) {
        return Decision::Known(false);
    }
    let fact = question.missing(a, b, by, &assumptions.symbols, &mut Budget::new(4 * MAX_STEPS));
    Decision::Needs(fact.unwrap_or_else(missing))
}

struct Question<'a> {
    cx: &'a ExprArena,
    /// Expressions that are at least zero.
    holds: Vec<Dim>,
}

/// Expressions, each with a number that divides it.
type Divisors = Vec<(ExprId, i64)>;

/// The divisors and one more.
fn also(divisors: &Divisors, x: ExprId, n: i64) -> Divisors {
    let mut all = divisors.clone();
    match all.iter_mut().find(|(of, _)| *of == x) {
        Some((_, div)) => *div = (*div / gcd(*div, n)).checked_mul(n).unwrap_or(*div),
        None => all.push((x, n)),
    }
    all
}

impl Question<'_> {
    /// The divisors that assumptions of the form `0 - x % n >= 0` state.
    fn divisors(&self) -> Divisors {
        let mut found: Divisors = vec![];
        for hold in &self.holds {
            if let Some((x, n)) = self.divisor_of(*hold) {
                found = also(&found, x, n);
            }
        }
        found
    }

    fn divisor_of(&self, hold: Dim) -> Option<(ExprId, i64)> {
        let Dim::Expr(id) = hold else { return None };
        let Node::Linear { terms, constant: 0 } = self.cx.node(id) else { return None };
        let &[(term, c @ ..0)] = &terms[..] else { return None };
        let Node::Mod(Dim::Expr(x), Dim::Const(n)) = self.cx.node(term) else { return None };
        match self.cx.node(x) {
            // `x/k % n * k == 0` for a divisor `k` of `x`.
            Node::Div(Dim::Expr(x), Dim::Const(k)) if c.checked_neg() == Some(k) => {
                let all = k.checked_mul(n)?;
                (self.cx.divisor(Dim::Expr(x)) % k == 0).then_some((x, all))
            }
            _ => Some((x, n)),
        }
    }

    /// Whether some values of the variables refute `a + by <= b`, so that no proof exists. Tries
    /// the ends of the ranges: all variables at one end, then single variables at the other end.
    #[cfg(feature = "text")]
    fn is_wrong(&self, a: Dim, b: Dim, by: i64) -> bool {
        let cx = self.cx;
        // Ranges do not express the order of variables.
        if cx.has_order() {
            return false;
        }
        let mut vars: Vec<VarId> =
            [a, b].iter().chain(&self.holds).flat_map(|dim| cx.vars_of(*dim)).collect();
        vars.sort_unstable();
        vars.dedup();
        let ends: Vec<(VarId, [i64; 2])> = vars
            .iter()
            .map(|var| {
                let info = cx.var_info(*var);
                let div = info.div.max(1);
                let lo = info.lo.checked_add(div - 1).map_or(info.lo, |n| n.div_euclid(div) * div);
                (*var, [lo, info.hi.map_or(lo, |hi| hi.div_euclid(div) * div)])
            })
            .collect();
        let are_values = ends.iter().all(|(var, [lo, hi])| lo <= hi && *lo >= cx.var_info(*var).lo);
        if !are_values {
            return false;
        }
        let others = (0..vars.len()).take(MAX_CORNERS).map(Some);
        let corners = std::iter::once(None).chain(others);
        corners.flat_map(|other| [(other, 1), (other, 0)]).any(|(other, end)| {
            let value = |var: VarId| {
                let at = vars.binary_search(&var).ok()?;
                let end = if other == Some(at) { 1 - end } else { end };
                Some(ends.get(at)?.1[end])
            };
            let of = |dim| cx.eval(dim, &value).ok();
            let wrong = || of(a)?.checked_add(by).zip(of(b)).map(|(a, b)| a > b);
            wrong() == Some(true) && self.holds.iter().all(|hold| of(*hold).is_some_and(|n| n >= 0))
        })
    }

    /// Whether the prover proves `a + by <= b`.
    fn holds(&self, a: Dim, b: Dim, by: i64, divisors: &Divisors, budget: &mut Budget) -> bool {
        let mut system = System::new(self.cx, divisors);
        let refuted = || {
            let room = difference(&mut system, a, b, by, budget)?;
            system.know(room.times(-1)?.shifted(-1)?);
            self.assume(&mut system, budget);
            Some(is_refuted(system, MAX_SPLITS, budget))
        };
        refuted().unwrap_or(false)
    }

    fn assume(&self, system: &mut System<'_>, budget: &mut Budget) {
        for hold in &self.holds {
            if let Some(sum) = system.sum(*hold, budget) {
                system.know(sum);
            }
        }
        system.close(budget);
    }

    /// Whether the prover proves that `dim % n` is always zero (`always`), or that it is never
    /// zero.
    fn leaves_nothing(
        &self,
        n: i64,
        dim: Dim,
        always: bool,
        divisors: &Divisors,
        budget: &mut Budget,
    ) -> bool {
        let mut system = System::new(self.cx, divisors);
        let refuted = || {
            // A remainder is at least zero in any case.
            let rest = system.remainder_of(dim, n, budget)?;
            system.know(if always { rest.shifted(-1)? } else { rest.times(-1)? });
            self.assume(&mut system, budget);
            Some(is_refuted(system, MAX_SPLITS, budget))
        };
        refuted().unwrap_or(false)
    }

    /// The first fact about one of the symbols that is sufficient to prove `a + by <= b`.
    fn missing(
        &self,
        a: Dim,
        b: Dim,
        by: i64,
        symbols: &[VarId],
        budget: &mut Budget,
    ) -> Option<Fact> {
        let divisors = self.divisors();
        let mut system = System::new(self.cx, &divisors);
        let room = difference(&mut system, a, b, by, budget)?;
        self.assume(&mut system, budget);
        let symbols = symbols.iter().filter_map(|v| self.cx.expr_of(*v));
        let symbols: Vec<ExprId> = symbols.filter(|id| system.mentions(*id)).collect();
        let bounds = || {
            symbols.iter().find_map(|symbol| {
                let name = || self.cx.display(Dim::Expr(*symbol));
                system.bound_wanted(&room, *symbol).map(|(at_most, v)| match at_most {
                    true => Fact::AtMost { smaller: name(), larger: v.to_string() },
                    false => Fact::AtMost { smaller: v.to_string(), larger: name() },
                })
            })
        };
        if room.terms.len() == 1 {
            return bounds();
        }
        let mut tried = 0;
        for symbol in &symbols {
            for n in system.divisors_wanted(&room, *symbol) {
                if tried == MAX_TRIED {
                    break;
                }
                tried += 1;
                let with = also(&divisors, *symbol, n);
                if budget.share(|own| self.holds(a, b, by, &with, own)) {
                    let (divisor, value) = (n.to_string(), self.cx.display(Dim::Expr(*symbol)));
                    return Some(Fact::Divides { divisor, value });
                }
            }
        }
        bounds()
    }
}

/// `b - a - by`
fn difference(
    system: &mut System<'_>,
    a: Dim,
    b: Dim,
    by: i64,
    budget: &mut Budget,
) -> Option<Sum> {
    let a = system.sum(a, budget)?;
    system.sum(b, budget)?.plus(&a, -1)?.shifted(-i128::from(by))
}

/// Whether the inequalities are contradictory in every case of the minima and maxima.
fn is_refuted(mut system: System<'_>, splits: usize, budget: &mut Budget) -> bool {
    if system.clone().is_refuted(budget) {
        return true;
    }
    if splits == 0 || system.splits.is_empty() || budget.left == 0 {
        return false;
    }
    // The recursion is bounded: each level has fewer splits.
    let split = system.splits.remove(0);
    (0..2).all(|side| {
        let mut chosen = system.clone();
        let is_chosen = chosen.choose(&split, side).is_some();
        is_chosen && is_refuted(chosen, splits - 1, budget)
    })
}
