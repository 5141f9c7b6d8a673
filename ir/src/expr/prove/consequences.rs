//! Derives consequences of known inequalities and of the negated claim: bounds of the prover's
//! atoms (the parts of an expression that it does not take apart, such as variables and quotients),
//! and sums and products of inequalities. If they are contradictory, the claim is proved; `simplex`
//! decides that for rational numbers.

use super::Budget;
use super::simplex::{self, Bounds};
use super::sum::Sum;
use super::system::{Atom, Key, MAX_KNOWN, System, up};
use crate::expr::Dim;
use std::collections::HashSet;

/// The number of rounds that derive products.
const PRODUCT_ROUNDS: usize = 2;
/// The number of rounds that derive bounds of atoms from each other.
const BOUND_ROUNDS: usize = 4;

impl System<'_> {
    /// Derives integer bounds of atoms from the inequalities.
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
        let total = bounded.into_iter().try_fold(sum.constant, i128::checked_add);
        let Some(total) = total else { return false };
        if first.is_none() && total < 0 {
            self.empty = true;
            return true;
        }
        let mut changed = false;
        for term in first.map_or(&sum.terms[..], std::slice::from_ref) {
            // `others` is the largest value of the other terms. So `c*x` is at least `-others`.
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

    /// Multiplies inequalities whose product says something about an existing product atom.
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

    /// Multiplies the inequalities with atom `x`, including its bounds, by the bounds of the
    /// product `rest`.
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

    /// Drops low digits: if a multiple of 128 plus a value of at most 127 is at least zero, the
    /// multiple alone is at least zero.
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
            let most = most.into_iter().try_fold(sum.constant, |total, t| total.checked_add(t?));
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

    /// Adds laws of quotients to bounds of their dividends. `4*q <= t + 3*u` and `t + 3*u <= 7`
    /// give `q <= 1`; over the rationals they only give `q <= 7/4`.
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

    /// The quotient by a constant whose law the sum is, and the sum.
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

    /// Whether the inequalities are contradictory.
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
        simplex::is_infeasible(&self.known, &bounds, budget)
    }
}
