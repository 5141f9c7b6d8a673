//! Constructs symbolic sums and products. Each sum is brought to a canonical form, so that
//! `i + 8*k` and `8*k + i` get one handle.
//!
//! Laws, applied until none matches (`/` rounds down, every letter is an expression):
//! - `y/a*a + y%a = y`, and for part of the digits `((y/a)%b)*a + y%a = y%(a*b)`;
//! - `y - y/a*a = y%a`, and `y/a*a = y` if `a` divides `y`.
//!
//! Each law is exact for every integer `y` and positive `a`, `b`. Each one reduces the number of
//! divisions, so rewriting ends. Products distribute over short sums only, so expressions do not
//! blow up.

use super::{Dim, ExprArena, ExprId, Node};
use crate::layout::LayoutError;
use crate::leaf::gcd;

/// The maximum number of products after distribution; larger products are not multiplied out.
const MAX_DISTRIBUTED: usize = 16;
/// The maximum number of rewriting steps. After it the result is exact, but may not be the
/// simplest.
const MAX_STEPS: usize = 64;

/// A sum under construction. Terms are sorted by id, coefficients are not zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sum {
    pub(super) terms: Vec<(ExprId, i64)>,
    pub(super) constant: i64,
}

impl ExprArena {
    /// `a + b`.
    ///
    /// # Errors
    /// Overflow of a coefficient, and the limits on expressions. All operations have these errors.
    pub fn add(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        self.linear(self.sum_of(a).plus(&self.sum_of(b), 1)?)
    }

    /// `a - b`.
    ///
    /// # Errors
    /// As [`ExprArena::add`].
    pub fn sub(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        self.linear(self.sum_of(a).plus(&self.sum_of(b), -1)?)
    }

    /// `a * b`.
    ///
    /// # Errors
    /// As [`ExprArena::add`].
    pub fn mul(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        let (x, y) = match (a, b) {
            (Dim::Const(k), other) | (other, Dim::Const(k)) => {
                return self.linear(Sum::default().plus(&self.sum_of(other), k)?);
            }
            (Dim::Expr(x), Dim::Expr(y)) => (x, y),
        };
        let (left, right) = (self.sum_of(a), self.sum_of(b));
        if (left.terms.len() + 1) * (right.terms.len() + 1) > MAX_DISTRIBUTED {
            let mut factors = self.factors(x);
            factors.extend(self.factors(y));
            return self.linear(Sum::of_term(self.product(&factors)?));
        }
        let mut total = Sum::default().plus(&right, left.constant)?;
        let shifted = Sum { constant: 0, ..left };
        total = total.plus(&shifted, right.constant)?;
        for &(s, cs) in &shifted.terms {
            for &(t, ct) in &right.terms {
                let mut factors = self.factors(s);
                factors.extend(self.factors(t));
                let term = Sum::of_term(self.product(&factors)?);
                total = total.plus(&term, times(cs, ct)?)?;
            }
        }
        // `total` counts the product of the constants once, in its first line.
        self.linear(total)
    }

    /// The factors of a product, in order. The expression must not be a sum.
    pub(super) fn factors(&self, id: ExprId) -> Vec<ExprId> {
        let mut factors = Vec::new();
        let mut todo = vec![id];
        while let Some(id) = todo.pop() {
            match self.node(id) {
                Node::Mul(Dim::Expr(a), Dim::Expr(b)) => todo.extend([b, a]),
                _ => factors.push(id),
            }
        }
        factors
    }

    /// The product of factors. A factor is not a product, and a sum only if it is too long to
    /// multiply out.
    pub(super) fn product(&self, factors: &[ExprId]) -> Result<Dim, LayoutError> {
        let mut sorted = factors.to_vec();
        sorted.sort_unstable();
        let mut sorted = sorted.into_iter().map(Dim::Expr);
        let first = sorted.next().unwrap_or(Dim::Const(1));
        sorted.try_fold(first, |a, b| self.intern(Node::Mul(a, b)))
    }

    pub(super) fn sum_of(&self, dim: Dim) -> Sum {
        match dim {
            Dim::Const(constant) => Sum { terms: Vec::new(), constant },
            Dim::Expr(id) => match self.node(id) {
                Node::Linear { terms, constant } => Sum { terms: terms.to_vec(), constant },
                _ => Sum { terms: vec![(id, 1)], constant: 0 },
            },
        }
    }

    /// The simplest expression of a sum.
    pub(super) fn linear(&self, mut sum: Sum) -> Result<Dim, LayoutError> {
        if let Some(known) = self.find_sum(&sum) {
            return Ok(known);
        }
        for _ in 0..MAX_STEPS {
            match self.recombine(&sum)? {
                Some(simpler) => sum = simpler,
                None => break,
            }
        }
        match self.find_sum(&sum) {
            Some(known) => Ok(known),
            None => self.intern(Node::Linear { terms: sum.terms.into(), constant: sum.constant }),
        }
    }

    /// The handle of an existing, and therefore simplified, sum.
    fn find_sum(&self, sum: &Sum) -> Option<Dim> {
        match sum.terms[..] {
            [] => Some(Dim::Const(sum.constant)),
            [(id, 1)] if sum.constant == 0 => Some(Dim::Expr(id)),
            _ => self
                .find(&Node::Linear { terms: sum.terms.as_slice().into(), constant: sum.constant }),
        }
    }

    /// One rewriting step by the laws of the module header.
    fn recombine(&self, sum: &Sum) -> Result<Option<Sum>, LayoutError> {
        if sum.terms.len() > MAX_STEPS {
            return Ok(None);
        }
        for &(id, coef) in &sum.terms {
            let term = Sum { terms: vec![(id, coef)], constant: 0 };
            let step = match self.node(id) {
                Node::Div(y, Dim::Const(a)) if coef % a == 0 => {
                    let whole = Sum::default().plus(&self.sum_of(y), coef / a)?;
                    if gcd(self.divisor(y), a) == a {
                        sum.plus(&term, -1)?.plus(&whole, 1).map(Some)
                    } else {
                        self.fold_remainder(sum, &term, whole, y, a)
                    }
                }
                Node::Mod(y, a) => self.fold_digits(sum, &term, coef, y, a),
                _ => Ok(None),
            };
            // A law is skipped if its result exceeds a limit.
            if let Ok(Some(simpler)) = step {
                return Ok(Some(simpler));
            }
        }
        Ok(None)
    }

    /// `y - y/a*a = y%a`; `whole` is `k*y` and `term` is `k*(y/a*a)`.
    fn fold_remainder(
        &self,
        sum: &Sum,
        term: &Sum,
        whole: Sum,
        y: Dim,
        a: i64,
    ) -> Result<Option<Sum>, LayoutError> {
        let negated = Sum::default().plus(&whole, -1)?;
        let whole_constant = negated.constant;
        if !sum.contains(&negated) || (whole_constant != 0 && whole_constant != sum.constant) {
            return Ok(None);
        }
        let Some(&(_, coef)) = term.terms.first() else { return Ok(None) };
        let remainder = self.sum_of(self.rem(y, Dim::Const(a))?);
        let rest = sum.plus(term, -1)?.plus(&negated, -1)?;
        rest.plus(&remainder, -(coef / a)).map(Some)
    }

    /// `y/a*a + y%a = y` and `((y/a)%b)*a + y%a = y%(a*b)`; `term` is `coef*(y%a)`.
    fn fold_digits(
        &self,
        sum: &Sum,
        term: &Sum,
        coef: i64,
        y: Dim,
        a: Dim,
    ) -> Result<Option<Sum>, LayoutError> {
        if sum.terms.len() < 2 {
            return Ok(None);
        }
        let quotient = self.div(y, a)?;
        let high = Sum::default().plus(&self.sum_of(self.mul(quotient, a)?), coef)?;
        if sum.contains(&high) {
            return sum.plus(term, -1)?.plus(&high, -1)?.plus(&self.sum_of(y), coef).map(Some);
        }
        let Dim::Const(a) = a else { return Ok(None) };
        let high_coef = times(coef, a)?;
        for &(other, other_coef) in &sum.terms {
            if other_coef != high_coef {
                continue;
            }
            if let Node::Mod(z, Dim::Const(b)) = self.node(other)
                && z == quotient
            {
                let joined = self.sum_of(self.rem(y, Dim::Const(times(a, b)?))?);
                let high = Sum { terms: vec![(other, other_coef)], constant: 0 };
                return sum.plus(term, -1)?.plus(&high, -1)?.plus(&joined, coef).map(Some);
            }
        }
        Ok(None)
    }
}

impl Sum {
    pub(super) fn of_term(dim: Dim) -> Sum {
        match dim {
            Dim::Const(constant) => Sum { terms: Vec::new(), constant },
            Dim::Expr(id) => Sum { terms: vec![(id, 1)], constant: 0 },
        }
    }

    /// `self + k * other`.
    pub(super) fn plus(&self, other: &Sum, k: i64) -> Result<Sum, LayoutError> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(&&(x, cx)), Some(&&(y, cy))) if x == y => {
                    a.next();
                    b.next();
                    (x, plus(cx, times(cy, k)?)?)
                }
                (Some(&&(x, cx)), Some(&&(y, _))) if x < y => {
                    a.next();
                    (x, cx)
                }
                (_, Some(&&(y, cy))) => {
                    b.next();
                    (y, times(cy, k)?)
                }
                (Some(&&(x, cx)), None) => {
                    a.next();
                    (x, cx)
                }
                (None, None) => break,
            };
            if next.1 != 0 {
                terms.push(next);
            }
        }
        Ok(Sum { terms, constant: plus(self.constant, times(other.constant, k)?)? })
    }

    /// Whether `part` is not empty and this sum contains all of its terms with equal coefficients.
    fn contains(&self, part: &Sum) -> bool {
        !part.terms.is_empty()
            && part.terms.iter().all(|term| self.terms.binary_search(term).is_ok())
    }
}

pub(super) fn plus(a: i64, b: i64) -> Result<i64, LayoutError> {
    a.checked_add(b).ok_or(LayoutError::Overflow { what: "a coefficient" })
}

pub(super) fn times(a: i64, b: i64) -> Result<i64, LayoutError> {
    a.checked_mul(b).ok_or(LayoutError::Overflow { what: "a coefficient" })
}
