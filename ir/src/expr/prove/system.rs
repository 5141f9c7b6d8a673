//! Converts expressions to sums over atoms (the parts of expressions that the prover does not take
//! apart), and collects the known inequalities between the atoms.
//!
//! An atom is a variable, a quotient, a minimum or maximum, or a product of atoms. A remainder
//! `a % n` is `a - n*(a/n)`. The following laws of atoms are exact for integers (`n >= 1` wherever
//! a quotient has a value):
//! - `n*(a/n) <= a <= n*(a/n) + n - 1`, and `a <= n*ceil_div(a, n) <= a + n - 1`;
//! - `min(a, b) <= a`, `max(a, b) >= a`, and each equals one of the two ([`Split`]);
//! - the product of two differences that are at least zero is at least zero;
//! - if all terms of a sum that is at least zero are multiples of `g`, its constant can be rounded
//!   down to a multiple of `g`.

use super::Budget;
use super::simplex::Bounds;
use super::sum::Sum;
use crate::expr::facts::{Facts, facts_of};
use crate::expr::{Dim, ExprArena, ExprId, Node};
use crate::leaf::gcd;
use std::collections::{HashMap, HashSet};

/// The maximum number of atoms of one proof.
const MAX_ATOMS: usize = 64;
/// The maximum number of factors of a product that is analyzed.
const MAX_DEGREE: usize = 4;
/// The maximum number of inequalities, including products.
pub(super) const MAX_KNOWN: usize = 140;

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Expr(ExprId),
    /// The quotient, rounded down.
    Quotient(Dim, Dim),
    /// Two or more factors, sorted.
    Product(Vec<u32>),
}

#[derive(Clone)]
pub(super) struct Atom {
    pub(super) key: Key,
    pub(super) lo: Option<i128>,
    pub(super) hi: Option<i128>,
    pub(super) div: i64,
}

/// An atom that equals the smaller or the larger of two sums.
#[derive(Clone)]
pub(super) struct Split {
    pub(super) atom: u32,
    pub(super) sides: [Sum; 2],
    pub(super) smaller: bool,
}

/// Inequalities and their atoms.
#[derive(Clone)]
pub(super) struct System<'a> {
    cx: &'a ExprArena,
    pub(super) atoms: Vec<Atom>,
    index: HashMap<Key, u32>,
    /// Atoms whose laws are not added yet.
    new: Vec<u32>,
    /// Sums that are at least zero.
    pub(super) known: Vec<Sum>,
    seen: HashSet<Sum>,
    pub(super) splits: Vec<Split>,
    /// Whether the bounds of an atom contradict each other.
    pub(super) empty: bool,
    /// Divisors of expressions beyond those that the arena knows.
    divisors: &'a [(ExprId, i64)],
}

impl std::hash::Hash for Sum {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.terms, self.constant).hash(state);
    }
}

impl<'a> System<'a> {
    pub(super) fn new(cx: &'a ExprArena, divisors: &'a [(ExprId, i64)]) -> Self {
        System {
            cx,
            atoms: vec![],
            index: HashMap::new(),
            new: vec![],
            known: vec![],
            seen: HashSet::new(),
            splits: vec![],
            empty: false,
            divisors,
        }
    }

    /// The sum of an expression. `None` if the sum is too large.
    pub(super) fn sum(&mut self, dim: Dim, budget: &mut Budget) -> Option<Sum> {
        // The recursion is bounded: the arena limits the depth of an expression, the budget the
        // number of visited nodes.
        budget.pay(1)?;
        let id = match dim {
            Dim::Const(v) => return Some(Sum::constant(v.into())),
            Dim::Expr(id) => id,
        };
        match self.cx.node(id) {
            Node::Linear { terms, constant } => {
                let mut total = Sum::constant(constant.into());
                for &(term, c) in terms.iter() {
                    total = total.plus(&self.sum(Dim::Expr(term), budget)?, c.into())?;
                }
                Some(total)
            }
            Node::Mul(a, b) => {
                let (left, right) = (self.sum(a, budget)?, self.sum(b, budget)?);
                self.product(&left, &right, budget)
            }
            Node::Div(a, n) => self.quotient(a, n).map(Sum::atom),
            Node::Mod(a, n) => {
                let quotient = Sum::atom(self.quotient(a, n)?);
                let n = self.sum(n, budget)?;
                let whole = self.product(&n, &quotient, budget)?;
                let rest = self.sum(a, budget)?.plus(&whole, -1)?;
                let facts = self.cx.facts(dim);
                if let Some(hi) = facts.hi {
                    self.know(rest.times(-1)?.shifted(hi.into())?);
                }
                Some(rest)
            }
            Node::Var(_) | Node::CeilDiv(..) | Node::Min(..) | Node::Max(..) => {
                self.atom(Key::Expr(id), self.cx.facts(dim)).map(Sum::atom)
            }
        }
    }

    fn quotient(&mut self, a: Dim, n: Dim) -> Option<u32> {
        let mut facts = facts_of(&Node::Div(a, n), &|dim| self.cx.facts(dim));
        if let (Dim::Expr(id), Dim::Const(n)) = (a, n)
            && let Some(of_a) = self.given_divisor(id)
            && n > 0
            && of_a % n == 0
        {
            facts.div = facts.div.max(of_a / n);
        }
        self.atom(Key::Quotient(a, n), facts)
    }

    fn given_divisor(&self, id: ExprId) -> Option<i64> {
        self.divisors.iter().find(|(of, _)| *of == id).map(|(_, div)| *div)
    }

    fn atom(&mut self, key: Key, facts: Facts) -> Option<u32> {
        if let Some(&atom) = self.index.get(&key) {
            return Some(atom);
        }
        if self.atoms.len() >= MAX_ATOMS {
            return None;
        }
        let mut div = facts.div.max(1);
        if let Key::Expr(id) = key
            && let Some(given) = self.given_divisor(id)
        {
            div = (div / gcd(div, given)).checked_mul(given).unwrap_or(div);
        }
        let atom = self.atoms.len() as u32;
        let wide = |end: Option<i64>| end.map(i128::from);
        self.atoms.push(Atom { key: key.clone(), lo: wide(facts.lo), hi: wide(facts.hi), div });
        self.index.insert(key, atom);
        self.new.push(atom);
        Some(atom)
    }

    pub(super) fn factors(&self, atom: u32) -> Vec<u32> {
        match &self.atoms[atom as usize].key {
            Key::Product(factors) => factors.clone(),
            _ => vec![atom],
        }
    }

    pub(super) fn product(&mut self, a: &Sum, b: &Sum, budget: &mut Budget) -> Option<Sum> {
        budget.pay((a.terms.len() + 1) * (b.terms.len() + 1))?;
        let mut total = b.times(a.constant)?;
        for &(x, c) in &a.terms {
            total = total.plus(&Sum::atom(x), c.checked_mul(b.constant)?)?;
            for &(y, d) in &b.terms {
                let mut factors = self.factors(x);
                factors.extend(self.factors(y));
                factors.sort_unstable();
                let atom = self.product_atom(factors)?;
                total = total.plus(&Sum::atom(atom), c.checked_mul(d)?)?;
            }
        }
        Some(total)
    }

    pub(super) fn product_atom(&mut self, factors: Vec<u32>) -> Option<u32> {
        if factors.len() > MAX_DEGREE {
            return None;
        }
        if let [one] = factors[..] {
            return Some(one);
        }
        let mut range: Bounds = (Some(1), Some(1));
        let mut div = 1i64;
        for factor in &factors {
            let Atom { lo, hi, div: own, .. } = &self.atoms[*factor as usize];
            range = multiplied(range, (*lo, *hi));
            div = div.checked_mul(*own).unwrap_or(div);
        }
        let atom = self.atom(Key::Product(factors), Facts { lo: None, hi: None, div })?;
        let known = &mut self.atoms[atom as usize];
        (known.lo, known.hi) = (known.lo.max(range.0), smaller(known.hi, range.1));
        Some(atom)
    }

    /// The common divisor of all terms of a sum.
    fn step(&self, sum: &Sum) -> i128 {
        sum.terms.iter().fold(0i128, |step, (atom, c)| {
            let own = c.checked_mul(self.atoms[*atom as usize].div.into()).unwrap_or(*c);
            num_integer::gcd(step, own)
        })
    }

    /// The greatest common divisor of `by` and all terms, and the remainder of the sum modulo this
    /// number.
    pub(super) fn remainder(&self, sum: &Sum, by: i128) -> (i128, i128) {
        let step = num_integer::gcd(self.step(sum), by);
        (step, if step == 0 { 0 } else { sum.constant.rem_euclid(step) })
    }

    /// `dim % n`
    pub(super) fn remainder_of(&mut self, dim: Dim, n: i64, budget: &mut Budget) -> Option<Sum> {
        let quotient = self.quotient(dim, Dim::Const(n))?;
        self.sum(dim, budget)?.plus(&Sum::atom(quotient), i128::from(n).checked_neg()?)
    }

    /// Whether an expression is one of the atoms.
    pub(super) fn mentions(&self, id: ExprId) -> bool {
        self.index.contains_key(&Key::Expr(id))
    }

    /// Candidates for a divisor of a symbol: first the constants that divide it in quotients, then
    /// the factors of other atoms. Each group is sorted from largest to smallest, and known
    /// divisors are left out.
    pub(super) fn divisors_wanted(&self, goal: &Sum, symbol: ExprId) -> Vec<i64> {
        let Some(&atom) = self.index.get(&Key::Expr(symbol)) else { return vec![] };
        let known = self.atoms[atom as usize].div;
        let by_symbol = |key: &Key| match key {
            Key::Quotient(a, Dim::Const(n)) => {
                let is_in = self.cx.sum_of(*a).terms.iter().any(|(id, _)| *id == symbol);
                is_in.then_some(*n)
            }
            _ => None,
        };
        let mut divided: Vec<i64> = self.atoms.iter().filter_map(|a| by_symbol(&a.key)).collect();
        let factors = goal.terms.iter().filter_map(|(_, c)| i64::try_from(c.checked_abs()?).ok());
        let mut factors: Vec<i64> = factors.collect();
        for list in [&mut divided, &mut factors] {
            list.sort_unstable_by(|a, b| b.cmp(a));
        }
        let mut all = vec![];
        for n in divided.into_iter().chain(factors).filter(|n| *n > 1 && known % n != 0) {
            if !all.contains(&n) {
                all.push(n);
            }
        }
        all
    }

    /// The bound of a symbol that makes a sum at least zero for all values of the other atoms, and
    /// whether it is an upper bound. `None` if the others are unbounded, or if the symbol has no
    /// value beyond the bound.
    pub(super) fn bound_wanted(&self, goal: &Sum, symbol: ExprId) -> Option<(bool, i128)> {
        let atom = *self.index.get(&Key::Expr(symbol))?;
        let mut least = goal.constant;
        let mut own = None;
        for (other, c) in &goal.terms {
            let Atom { lo, hi, .. } = self.atoms[*other as usize];
            match *other == atom {
                true => own = Some(*c),
                false => {
                    let end = if *c > 0 { lo } else { hi };
                    least = least.checked_add(end?.checked_mul(*c)?)?;
                }
            }
        }
        let Atom { lo, hi, .. } = self.atoms[atom as usize];
        match own? {
            c @ 1.. => {
                let v = up(least.checked_neg()?, c)?;
                hi.is_none_or(|hi| v <= hi).then_some((false, v))
            }
            c => {
                let v = least.div_euclid(c.checked_neg()?);
                lo.is_none_or(|lo| v > lo).then_some((true, v))
            }
        }
    }

    /// Adds the inequality that a sum is at least zero.
    pub(super) fn know(&mut self, mut sum: Sum) {
        let step = self.step(&sum);
        if step > 1
            && let Some(lower) = sum.constant.checked_sub(sum.constant.rem_euclid(step))
        {
            sum.constant = lower;
        }
        match sum.terms[..] {
            [] => self.empty |= sum.constant < 0,
            [(atom, c)] => {
                // c*x + b >= 0
                let Some(below) = sum.constant.checked_neg() else { return };
                if c > 0 {
                    self.at_least(atom, up(below, c));
                } else {
                    self.at_most(atom, c.checked_neg().map(|c| sum.constant.div_euclid(c)));
                }
            }
            _ if self.known.len() < MAX_KNOWN && self.seen.insert(sum.clone()) => {
                self.known.push(sum);
            }
            _ => {}
        }
    }

    pub(super) fn at_least(&mut self, atom: u32, v: Option<i128>) -> bool {
        let a = &mut self.atoms[atom as usize];
        let raised = v.and_then(|v| up(v, a.div.into())?.checked_mul(a.div.into()));
        let Some(raised) = raised.filter(|v| a.lo.is_none_or(|lo| *v > lo)) else { return false };
        a.lo = Some(raised);
        self.empty |= a.hi.is_some_and(|hi| raised > hi);
        true
    }

    pub(super) fn at_most(&mut self, atom: u32, v: Option<i128>) -> bool {
        let a = &mut self.atoms[atom as usize];
        let lowered = v.and_then(|v| v.checked_sub(v.rem_euclid(a.div.into())));
        let Some(lowered) = lowered.filter(|v| a.hi.is_none_or(|hi| *v < hi)) else { return false };
        a.hi = Some(lowered);
        self.empty |= a.lo.is_some_and(|lo| lowered < lo);
        true
    }

    /// Adds the laws of all new atoms.
    pub(super) fn close(&mut self, budget: &mut Budget) {
        while let Some(atom) = self.new.pop() {
            // A law that is too large is skipped; the others remain.
            let _ = self.laws(atom, budget);
        }
    }

    fn laws(&mut self, atom: u32, budget: &mut Budget) -> Option<()> {
        let own = Sum::atom(atom);
        match self.atoms[atom as usize].key.clone() {
            Key::Product(_) => {}
            Key::Quotient(a, n) => {
                self.rounded(&own, a, n, budget)?;
                if self.cx.facts(a).non_negative() && n.as_const().is_none() {
                    let dividend = self.sum(a, budget)?;
                    self.know(dividend.plus(&own, -1)?);
                }
            }
            Key::Expr(id) => match self.cx.node(id) {
                Node::CeilDiv(a, n) => {
                    // The rounded-up quotient equals `(a + n - 1) / n`.
                    let (dividend, n) = (self.sum(a, budget)?, self.sum(n, budget)?);
                    let whole = self.product(&n, &own, budget)?;
                    self.know(whole.plus(&dividend, -1)?);
                    self.know(dividend.plus(&n, 1)?.plus(&whole, -1)?.shifted(-1)?);
                    self.know(n.shifted(-1)?);
                }
                Node::Min(a, b) => self.either(atom, a, b, true, budget)?,
                Node::Max(a, b) => self.either(atom, a, b, false, budget)?,
                _ => {}
            },
        }
        Some(())
    }

    /// `n*q <= a <= n*q + n - 1`
    fn rounded(&mut self, quotient: &Sum, a: Dim, n: Dim, budget: &mut Budget) -> Option<()> {
        let (dividend, n) = (self.sum(a, budget)?, self.sum(n, budget)?);
        let whole = self.product(&n, quotient, budget)?;
        let rest = dividend.plus(&whole, -1)?;
        self.know(n.clone().shifted(-1)?);
        self.know(n.plus(&rest, -1)?.shifted(-1)?);
        self.know(rest);
        Some(())
    }

    fn either(&mut self, atom: u32, a: Dim, b: Dim, min: bool, budget: &mut Budget) -> Option<()> {
        let sides = [self.sum(a, budget)?, self.sum(b, budget)?];
        let sign = if min { 1 } else { -1 };
        for side in &sides {
            self.know(side.plus(&Sum::atom(atom), -1)?.times(sign)?);
        }
        self.splits.push(Split { atom, sides, smaller: min });
        Some(())
    }

    /// Assumes that the atom of a split equals one of its sides.
    pub(super) fn choose(&mut self, split: &Split, side: usize) -> Option<()> {
        let sign = if split.smaller { 1 } else { -1 };
        self.know(Sum::atom(split.atom).plus(&split.sides[side], -1)?.times(sign)?);
        Some(())
    }
}

/// `a / b` rounded up, for a positive `b`.
pub(super) fn up(a: i128, b: i128) -> Option<i128> {
    a.div_euclid(b).checked_add(i128::from(a.rem_euclid(b) != 0))
}

fn smaller(a: Option<i128>, b: Option<i128>) -> Option<i128> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

/// The bounds of a product.
fn multiplied(a: Bounds, b: Bounds) -> Bounds {
    if let ((Some(al), Some(ah)), (Some(bl), Some(bh))) = (a, b) {
        let ends =
            [(al, bl), (al, bh), (ah, bl), (ah, bh)].map(|(x, y): (i128, i128)| x.checked_mul(y));
        let known: Option<Vec<i128>> = ends.into_iter().collect();
        return known.map_or((None, None), |k| (k.iter().min().copied(), k.iter().max().copied()));
    }
    match (a.0, b.0) {
        (Some(al), Some(bl)) if al >= 0 && bl >= 0 => (al.checked_mul(bl), None),
        _ => (None, None),
    }
}
