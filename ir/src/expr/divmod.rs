//! Constructs symbolic quotients and remainders. They are simplified by the ranges and divisors of
//! the operands, because index expressions of tiled tensors consist of quotients and remainders. If
//! the divisor is not constant, `symbolic.rs` simplifies.
//!
//! Laws (`n` positive, `/` rounds down, `g` a common divisor):
//! - `(n*q + b) / n = q + b/n` and `(n*q + b) % n = b%n`;
//! - if `b` lies in `k*n ..= k*n + n-1`: `b/n = k` and `b%n = b - k*n`;
//! - if `0 <= w < g` and `g` divides `h`: `(h + w) / (g*m) = h/(g*m)`,
//!   `(h + w) % (g*m) = h%(g*m) + w`; and `(g*y) / (g*m) = y/m`, `(g*y) % (g*m) = (y%m)*g`;
//! - `(y/a + c) / n = (y + a*c) / (a*n)`, `(y % (n*m)) / n = (y/n) % m`;
//! - if `n` divides `c*m`: `(c*(y%m) + b) % n = (c*y + b) % n`.

use super::linear::{Sum, times};
use super::{Dim, ExprArena, ExprId, Node};
use crate::layout::LayoutError;
use crate::leaf::{Leaf, gcd};
use std::cell::Cell;

/// The maximum nesting of rewriting. Beyond it the result is exact, but may not be the simplest.
const MAX_NESTING: u32 = 256;

impl ExprArena {
    /// `a / b`, rounded down.
    ///
    /// # Errors
    /// [`LayoutError::Divisor`] if `b` is never positive, overflow and limits.
    pub fn div(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        let n = match (a, b) {
            (_, Dim::Const(n)) if n > 0 => n,
            _ => return self.div_symbolic(a, b),
        };
        if let Dim::Const(a) = a {
            return Ok(Dim::Const(a.div_euclid(n)));
        }
        let Some(_nesting) = Nesting::enter() else {
            return self.intern(Node::Div(a, b));
        };
        let (whole, rest) = self.split(&self.sum_of(a), n)?;
        let quotient = self.div_reduced(rest, n)?;
        self.linear(whole.plus(&self.sum_of(quotient), 1)?)
    }

    /// `a % b`, never negative.
    ///
    /// # Errors
    /// [`LayoutError::Divisor`] if `b` is never positive, overflow and limits.
    pub fn rem(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        let n = match (a, b) {
            (_, Dim::Const(n)) if n > 0 => n,
            _ => return self.rem_symbolic(a, b),
        };
        if let Dim::Const(a) = a {
            return Ok(Dim::Const(a.rem_euclid(n)));
        }
        let Some(_nesting) = Nesting::enter() else {
            return self.intern(Node::Mod(a, b));
        };
        let (_, rest) = self.split(&self.sum_of(a), n)?;
        let value = self.linear(rest)?;
        if let Some(k) = self.constant_quotient(value, n) {
            return self.sub(value, Dim::Const(times(k, n)?));
        }
        let rest = self.sum_of(value);
        // An inner remainder is redundant if its multiples vanish modulo `n`.
        for &(id, coef) in &rest.terms {
            if let Node::Mod(y, Dim::Const(m)) = self.node(id)
                && i128::from(coef) * i128::from(m) % i128::from(n) == 0
            {
                let inner = rest.plus(&Sum { terms: vec![(id, coef)], constant: 0 }, -1)?;
                let opened = self.linear(inner.plus(&self.sum_of(y), coef)?)?;
                return self.rem(opened, Dim::Const(n));
            }
        }
        if let Some((high, low)) = self.low_digit(&rest, n)? {
            let high = self.rem(high, Dim::Const(n))?;
            return self.add(high, low);
        }
        if let Some((g, y)) = self.common_factor(&rest, n)? {
            let digit = self.rem(y, Dim::Const(n / g))?;
            return self.mul(digit, Dim::Const(g));
        }
        self.intern(Node::Mod(value, Dim::Const(n)))
    }

    /// `a % b` of a variable as written, not simplified by the bounds of the variable.
    ///
    /// # Errors
    /// As [`ExprArena::rem`].
    #[cfg(feature = "text")]
    pub(crate) fn remainder_of_var(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        match (self.var_id(a), b) {
            (Some(_), Dim::Const(n)) if n > 1 => self.intern(Node::Mod(a, b)),
            _ => self.rem(a, b),
        }
    }

    /// `a / b`, rounded up.
    ///
    /// # Errors
    /// [`LayoutError::Divisor`] if `b` is never positive, overflow and limits.
    pub fn ceil_div(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        match (a, b) {
            (Dim::Const(a), Dim::Const(n)) => Ok(Dim::Const(i64::ceil_div(&(), a, n)?)),
            (_, Dim::Const(n)) if n > 0 => {
                let raised = self.add(a, Dim::Const(n - 1))?;
                self.div(raised, b)
            }
            _ => {
                let exact = self.rem_symbolic(a, b)? == Dim::Const(0);
                if exact { self.div(a, b) } else { self.intern(Node::CeilDiv(a, b)) }
            }
        }
    }

    /// `rest / n` for a sum whose multiples of `n` are already split off.
    fn div_reduced(&self, rest: Sum, n: i64) -> Result<Dim, LayoutError> {
        let value = self.linear(rest)?;
        if let Some(k) = self.constant_quotient(value, n) {
            return Ok(Dim::Const(k));
        }
        let rest = self.sum_of(value);
        if let Some((high, _)) = self.low_digit(&rest, n)? {
            return self.div(high, Dim::Const(n));
        }
        if let Some((g, y)) = self.common_factor(&rest, n)? {
            return self.div(y, Dim::Const(n / g));
        }
        if let [(id, 1)] = rest.terms[..] {
            match self.node(id) {
                Node::Div(y, Dim::Const(a)) if a.checked_mul(n).is_some() => {
                    let inner = self.add(y, Dim::Const(times(a, rest.constant)?))?;
                    return self.div(inner, Dim::Const(times(a, n)?));
                }
                Node::Mod(y, Dim::Const(m)) if rest.constant == 0 && m % n == 0 => {
                    let digits = self.div(y, Dim::Const(n))?;
                    return self.rem(digits, Dim::Const(m / n));
                }
                _ => {}
            }
        }
        self.intern(Node::Div(value, Dim::Const(n)))
    }

    /// `(q, b)` with `sum == n*q + b`: multiples of `n` go to `q`.
    fn split(&self, sum: &Sum, n: i64) -> Result<(Sum, Sum), LayoutError> {
        let mut whole = Sum { terms: Vec::new(), constant: sum.constant.div_euclid(n) };
        let mut rest = Sum { terms: Vec::new(), constant: sum.constant.rem_euclid(n) };
        for &(id, coef) in &sum.terms {
            let g = gcd(coef, n);
            let exact = coef % n != 0 && self.divisor(Dim::Expr(id)) % (n / g) == 0;
            if exact {
                let part = self.exact_quotient(id, n / g)?;
                whole = whole.plus(&self.sum_of(part), coef / g)?;
                continue;
            }
            let term = Sum { terms: vec![(id, 1)], constant: 0 };
            whole = whole.plus(&term, coef / n)?;
            rest = rest.plus(&term, coef % n)?;
        }
        Ok((whole, rest))
    }

    /// `id / k` for a divisor `k` of `id`. The division moves into products and remainders, where
    /// it is easiest to read.
    fn exact_quotient(&self, id: ExprId, k: i64) -> Result<Dim, LayoutError> {
        match self.node(id) {
            Node::Mul(a, b) if self.divisor(a) % k == 0 => {
                let a = self.div(a, Dim::Const(k))?;
                self.mul(a, b)
            }
            Node::Mul(a, b) if self.divisor(b) % k == 0 => {
                let b = self.div(b, Dim::Const(k))?;
                self.mul(a, b)
            }
            Node::Div(y, Dim::Const(a)) if a.checked_mul(k).is_some() => {
                self.div(y, Dim::Const(times(a, k)?))
            }
            Node::Mod(y, Dim::Const(m)) if m % k == 0 => {
                let y = self.div(y, Dim::Const(k))?;
                self.rem(y, Dim::Const(m / k))
            }
            _ => self.intern(Node::Div(Dim::Expr(id), Dim::Const(k))),
        }
    }

    /// `value / n` if the quotient is constant over the whole range.
    fn constant_quotient(&self, value: Dim, n: i64) -> Option<i64> {
        let (lo, hi) = self.range(value);
        let k = lo?.div_euclid(n);
        (hi?.div_euclid(n) == k).then_some(k)
    }

    /// `(h, w)` with `sum == h + w`. The part `w` is not zero and never reaches the next multiple
    /// of a common divisor of `h` and `n`, so it does not affect the quotient by `n`.
    fn low_digit(&self, sum: &Sum, n: i64) -> Result<Option<(Dim, Dim)>, LayoutError> {
        // The part of the divisor of each term that is relevant to `n`.
        let factor = |&(id, coef): &(ExprId, i64)| {
            let all = coef.checked_mul(self.divisor(Dim::Expr(id)));
            gcd(all.unwrap_or(coef), n)
        };
        let mut candidates: Vec<i64> = sum.terms.iter().map(factor).collect();
        let common = candidates.iter().fold(n, |g, &f| gcd(g, f));
        candidates.push(common);
        candidates.sort_unstable();
        candidates.dedup();
        for &g in candidates.iter().rev().take_while(|&&g| g > 1) {
            let mut low = Sum { terms: Vec::new(), constant: sum.constant.rem_euclid(g) };
            let mut high = Sum { terms: Vec::new(), constant: sum.constant - low.constant };
            for term in &sum.terms {
                let side = if factor(term) % g == 0 { &mut high } else { &mut low };
                side.terms.push(*term);
            }
            if high.terms.is_empty() || low == Sum::default() {
                continue;
            }
            let low = self.linear(low)?;
            if self.constant_quotient(low, g) == Some(0) {
                return Ok(Some((self.linear(high)?, low)));
            }
        }
        Ok(None)
    }

    /// `(g, y)` with `sum == g*y`, where `g > 1` is a common factor of the coefficients and divides
    /// `n`.
    fn common_factor(&self, sum: &Sum, n: i64) -> Result<Option<(i64, Dim)>, LayoutError> {
        let g = sum.terms.iter().fold(gcd(n, sum.constant), |g, &(_, coef)| gcd(g, coef));
        if g <= 1 {
            return Ok(None);
        }
        let terms = sum.terms.iter().map(|&(id, coef)| (id, coef / g)).collect();
        Ok(Some((g, self.linear(Sum { terms, constant: sum.constant / g })?)))
    }
}

/// The nesting of rewriting in this thread. Every law makes its operand smaller; this counter
/// bounds the stack even if a law does not.
struct Nesting;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

impl Nesting {
    fn enter() -> Option<Self> {
        DEPTH.with(|depth| {
            (depth.get() < MAX_NESTING).then(|| {
                depth.set(depth.get() + 1);
                Nesting
            })
        })
    }
}

impl Drop for Nesting {
    fn drop(&mut self) {
        DEPTH.with(|depth| depth.set(depth.get() - 1));
    }
}
