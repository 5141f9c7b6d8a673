//! Expressions as sums over atoms, and what is known of the atoms.
//!
//! An atom is a variable, a quotient, a minimum or maximum, or a product of atoms. A remainder `a % n` is `a - n*(a/n)`.
//! Laws of the atoms that occur, each exact for integers (`n >= 1` wherever a quotient has a value):
//! - `n*(a/n) <= a <= n*(a/n) + n - 1`, and `a <= n*ceil_div(a, n) <= a + n - 1`;
//! - `min(a, b) <= a`, `max(a, b) >= a`, and each is one of the two ([`Split`]);
//! - the product of two differences that are at least zero is;
//! - a sum of multiples of `g` that is at least zero is at least zero without what `g` leaves of its constant.

use super::Budget;
use super::simplex::Bounds;
use super::sum::Sum;
use crate::expr::facts::{Facts, facts_of};
use crate::expr::{Dim, ExprArena, ExprId, Node};
use crate::leaf::gcd;
use std::collections::{HashMap, HashSet};

/// Most atoms of one proof.
const MAX_ATOMS: usize = 64;
/// Most factors of a product that is looked into.
const MAX_DEGREE: usize = 4;
/// Most inequalities, products included.
const MAX_KNOWN: usize = 140;
/// How often products are made of what there is.
const PRODUCT_ROUNDS: usize = 2;
/// How often bounds of atoms follow from each other.
const BOUND_ROUNDS: usize = 4;

#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Expr(ExprId),
    /// Rounded down.
    Quotient(Dim, Dim),
    /// Two factors or more, sorted.
    Product(Vec<u32>),
}

#[derive(Clone)]
struct Atom {
    key: Key,
    lo: Option<i128>,
    hi: Option<i128>,
    div: i64,
}

/// An atom that is one of two sums, the smaller or the larger.
#[derive(Clone)]
pub(super) struct Split {
    pub(super) atom: u32,
    pub(super) sides: [Sum; 2],
    pub(super) smaller: bool,
}

/// Inequalities, and the atoms that they are over.
#[derive(Clone)]
pub(super) struct System<'a> {
    cx: &'a ExprArena,
    atoms: Vec<Atom>,
    index: HashMap<Key, u32>,
    /// Atoms whose laws are not yet written.
    new: Vec<u32>,
    /// Sums that are at least zero.
    known: Vec<Sum>,
    seen: HashSet<Sum>,
    pub(super) splits: Vec<Split>,
    /// A bound of an atom was found that cannot be.
    empty: bool,
    /// Numbers that divide expressions, beyond what the arena knows.
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

    /// The sum that an expression is; none where it is too large.
    pub(super) fn sum(&mut self, dim: Dim, budget: &mut Budget) -> Option<Sum> {
        // Recursion ends: the arena bounds the depth of an expression, the budget how much is looked at.
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

    fn factors(&self, atom: u32) -> Vec<u32> {
        match &self.atoms[atom as usize].key {
            Key::Product(factors) => factors.clone(),
            _ => vec![atom],
        }
    }

    fn product(&mut self, a: &Sum, b: &Sum, budget: &mut Budget) -> Option<Sum> {
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

    fn product_atom(&mut self, factors: Vec<u32>) -> Option<u32> {
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

    /// What the terms of a sum are all multiples of.
    fn step(&self, sum: &Sum) -> i128 {
        sum.terms.iter().fold(0i128, |step, (atom, c)| {
            let own = c.checked_mul(self.atoms[*atom as usize].div.into()).unwrap_or(*c);
            num_integer::gcd(step, own)
        })
    }

    /// The largest divisor of `by` that all terms are multiples of, and the remainder of the sum by that.
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

    /// Numbers that it may help to know as divisors of a symbol: those that it is divided by, then the factors that stand
    /// before other atoms. Of each kind the largest first, and none that it is known to be a multiple of.
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

    /// The bound of a symbol with which a sum is at least zero, whatever the others are: whether it is an upper one, and
    /// what it is. None where the others have no bounds, or the symbol no value beyond it.
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

    /// Notes that a sum is at least zero.
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

    fn at_least(&mut self, atom: u32, v: Option<i128>) -> bool {
        let a = &mut self.atoms[atom as usize];
        let raised = v.and_then(|v| up(v, a.div.into())?.checked_mul(a.div.into()));
        let Some(raised) = raised.filter(|v| a.lo.is_none_or(|lo| *v > lo)) else { return false };
        a.lo = Some(raised);
        self.empty |= a.hi.is_some_and(|hi| raised > hi);
        true
    }

    fn at_most(&mut self, atom: u32, v: Option<i128>) -> bool {
        let a = &mut self.atoms[atom as usize];
        let lowered = v.and_then(|v| v.checked_sub(v.rem_euclid(a.div.into())));
        let Some(lowered) = lowered.filter(|v| a.hi.is_none_or(|hi| *v < hi)) else { return false };
        a.hi = Some(lowered);
        self.empty |= a.lo.is_some_and(|lo| lowered < lo);
        true
    }

    /// Writes the laws of the atoms that occur.
    pub(super) fn close(&mut self, budget: &mut Budget) {
        while let Some(atom) = self.new.pop() {
            // Where a law is too large, the others do.
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
                    // It is (a + n - 1) / n.
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

    /// Assumes that the atom of a split is that one of its sides.
    pub(super) fn choose(&mut self, split: &Split, side: usize) -> Option<()> {
        let sign = if split.smaller { 1 } else { -1 };
        self.know(Sum::atom(split.atom).plus(&split.sides[side], -1)?.times(sign)?);
        Some(())
    }

    /// Bounds of atoms that follow from the inequalities, as integers.
    fn bound(&mut self, budget: &mut Budget) -> Option<()> {
        for _ in 0..BOUND_ROUNDS {
            let mut changed = false;
            for k in 0..self.known.len() {
                budget.pay(self.known[k].terms.len())?;
                changed |= self.bound_by(k);
                if self.empty {
                    return Some(());
                }
            }
            if !changed {
                break;
            }
        }
        Some(())
    }

    fn bound_by(&mut self, k: usize) -> bool {
        let sum = self.known[k].clone();
        let mut unbounded = sum.terms.iter().filter(|t| self.most(t).is_none());
        let (first, second) = (unbounded.next(), unbounded.next());
        if second.is_some() {
            return false;
        }
        let bounded = sum.terms.iter().filter_map(|t| self.most(t));
        let total = bounded.fold(Some(sum.constant), |total, t| total?.checked_add(t));
        let Some(total) = total else { return false };
        if first.is_none() && total < 0 {
            self.empty = true;
            return true;
        }
        let mut changed = false;
        for term in first.map_or(&sum.terms[..], std::slice::from_ref) {
            // What the others are at most, and c*x at least the negative of.
            let others = total.checked_sub(self.most(term).unwrap_or(0));
            let (atom, c) = *term;
            changed |= match (others.and_then(i128::checked_neg), c > 0) {
                (Some(least), true) => self.at_least(atom, up(least, c)),
                (Some(least), false) => {
                    let most = least.checked_neg().zip(c.checked_neg());
                    self.at_most(atom, most.map(|(most, c)| most.div_euclid(c)))
                }
                (None, _) => false,
            };
        }
        changed
    }

    /// Multiplies what is at least zero by what is at least zero, where products occur that this says something of.
    fn multiply(&mut self, budget: &mut Budget) -> Option<()> {
        let linear = |system: &Self, sum: &Sum| {
            let is_product =
                |t: &(u32, i128)| matches!(system.atoms[t.0 as usize].key, Key::Product(_));
            !sum.terms.iter().any(is_product)
        };
        let base: Vec<Sum> = self.known.iter().filter(|s| linear(self, s)).cloned().collect();
        let mut done = HashSet::new();
        for _ in 0..PRODUCT_ROUNDS {
            let mut occurring: Vec<u32> =
                self.known.iter().flat_map(|s| s.terms.iter().map(|t| t.0)).collect();
            occurring.sort_unstable();
            occurring.dedup();
            for product in occurring {
                let factors = self.factors(product);
                if factors.len() < 2 || !done.insert(product) {
                    continue;
                }
                for (k, x) in factors.iter().enumerate() {
                    let mut rest = factors.clone();
                    rest.remove(k);
                    if k > 0 && factors[k - 1] == *x {
                        continue;
                    }
                    self.multiply_by(*x, rest, &base, budget)?;
                }
            }
        }
        Some(())
    }

    /// Multiplies the inequalities with an atom, its bounds among them, by a product that has bounds.
    fn multiply_by(
        &mut self,
        x: u32,
        rest: Vec<u32>,
        base: &[Sum],
        budget: &mut Budget,
    ) -> Option<()> {
        let rest = self.product_atom(rest)?;
        let over = |atom: &Atom| atom.lo.and_then(|lo| lo.checked_neg());
        let Atom { hi, .. } = self.atoms[rest as usize];
        let above = over(&self.atoms[rest as usize]).and_then(|by| Sum::atom(rest).shifted(by));
        let below = hi.and_then(|hi| Sum::atom(rest).times(-1)?.shifted(hi));
        let own = &self.atoms[x as usize];
        let mut of_x = vec![];
        of_x.extend(over(own).and_then(|by| Sum::atom(x).shifted(by)));
        of_x.extend(own.hi.and_then(|hi| Sum::atom(x).times(-1)?.shifted(hi)));
        of_x.extend(base.iter().filter(|s| s.terms.iter().any(|t| t.0 == x)).cloned());
        for factor in above.iter().chain(&below) {
            for sum in &of_x {
                if self.known.len() >= MAX_KNOWN {
                    return None;
                }
                if let Some(product) = self.product(sum, factor, budget) {
                    self.know(product);
                }
            }
        }
        Some(())
    }

    /// Leaves digits out: of a multiple of 128 and at most 127 that are at least zero together, the multiple is.
    fn leave_out(&mut self, budget: &mut Budget) -> Option<()> {
        for k in 0..self.known.len() {
            let sum = self.known[k].clone();
            budget.pay(sum.terms.len())?;
            let step = |t: &(u32, i128)| {
                t.1.checked_mul(self.atoms[t.0 as usize].div.into()).unwrap_or(1).unsigned_abs()
            };
            let Some(largest) = sum.terms.iter().map(step).max() else { continue };
            let (whole, digits): (Vec<_>, Vec<_>) =
                sum.terms.iter().partition(|t| step(t) % largest.max(1) == 0);
            let most = digits.iter().map(|t| self.most(t));
            let most = most.fold(Some(sum.constant), |total, t| total?.checked_add(t?));
            if let Some(constant) = most.filter(|_| !digits.is_empty()) {
                self.know(Sum { terms: whole, constant });
            }
        }
        Some(())
    }

    /// The largest value of a term.
    fn most(&self, (atom, c): &(u32, i128)) -> Option<i128> {
        let Atom { lo, hi, .. } = &self.atoms[*atom as usize];
        (if *c > 0 { *hi } else { *lo })?.checked_mul(*c)
    }

    /// Adds laws of quotients to what bounds their dividends: `4*q <= t + 3*u` and `t + 3*u <= 7` give `q <= 1`, which as
    /// fractions they do not.
    fn combine(&mut self, budget: &mut Budget) -> Option<()> {
        let laws: Vec<(u32, Sum)> = self.known.iter().filter_map(|s| self.law(s)).collect();
        for (quotient, law) in laws {
            for k in 0..self.known.len() {
                let other = &self.known[k];
                budget.pay(law.terms.len() + other.terms.len())?;
                let opposite = |&&(x, c): &&(u32, i128)| {
                    let theirs = other.terms.iter().find(|(y, _)| *y == x)?.1;
                    (x != quotient && (theirs < 0) != (c < 0)).then_some((c, theirs))
                };
                let Some((own, theirs)) = law.terms.iter().find_map(|t| opposite(&t)) else {
                    continue;
                };
                let both = law.times(theirs.checked_abs()?)?.plus(other, own.checked_abs()?)?;
                let about = both.terms.iter().any(|(x, _)| *x == quotient);
                if about && both.terms.len() < law.terms.len().min(3) {
                    self.know(both);
                }
            }
        }
        Some(())
    }

    /// The quotient by a constant that a sum is a law of, with the sum.
    fn law(&self, sum: &Sum) -> Option<(u32, Sum)> {
        let is_quotient = |atom: u32| match &self.atoms[atom as usize].key {
            Key::Quotient(_, Dim::Const(n)) => Some(i128::from(*n)),
            _ => None,
        };
        let own =
            |&(atom, c): &(u32, i128)| is_quotient(atom).filter(|n| c.abs() == *n).map(|_| atom);
        let quotient = sum.terms.iter().find_map(own)?;
        (sum.terms.len() > 1).then(|| (quotient, sum.clone()))
    }

    /// Whether nothing keeps all that is known.
    pub(super) fn is_refuted(&mut self, budget: &mut Budget) -> bool {
        let _ = self.bound(budget);
        if self.empty || self.solve(budget) {
            return true;
        }
        let _ = self.leave_out(budget);
        let _ = self.combine(budget);
        let _ = self.multiply(budget);
        let _ = self.bound(budget);
        self.empty || self.solve(budget)
    }

    fn solve(&self, budget: &mut Budget) -> bool {
        let bounds: Vec<Bounds> = self.atoms.iter().map(|a| (a.lo, a.hi)).collect();
        super::simplex::is_infeasible(&self.known, &bounds, budget)
    }
}

/// `a / b` rounded up, of a positive `b`.
fn up(a: i128, b: i128) -> Option<i128> {
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
