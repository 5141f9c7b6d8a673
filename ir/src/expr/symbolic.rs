//! Simplifies quotients and remainders by divisors that are not constant, such as `i / N`.
//! `divmod.rs` simplifies those by constants.
//!
//! Laws (`b` positive): if `0 <= a < b`, then `a/b = 0` and `a%b = a`. For terms that are written
//! as multiples of `b`, `(b*q + r) / b = q + r/b` and `(b*q + r) % b = r%b`.

use super::linear::Sum;
use super::{Dim, ExprArena, ExprId, Node};
use crate::layout::LayoutError;

impl ExprArena {
    pub(super) fn div_symbolic(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        self.check_divisor(b)?;
        if self.is_below(a, b) {
            return Ok(Dim::Const(0));
        }
        let (whole, rest) = self.split_by(&self.sum_of(a), b)?;
        if whole != Sum::default() {
            let rest = self.linear(rest)?;
            let quotient = self.div(rest, b)?;
            return self.linear(whole.plus(&self.sum_of(quotient), 1)?);
        }
        self.intern(Node::Div(a, b))
    }

    pub(super) fn rem_symbolic(&self, a: Dim, b: Dim) -> Result<Dim, LayoutError> {
        self.check_divisor(b)?;
        if self.is_below(a, b) {
            return Ok(a);
        }
        let (whole, rest) = self.split_by(&self.sum_of(a), b)?;
        if whole != Sum::default() {
            let rest = self.linear(rest)?;
            return self.rem(rest, b);
        }
        self.intern(Node::Mod(a, b))
    }

    fn check_divisor(&self, b: Dim) -> Result<(), LayoutError> {
        match self.range(b).1 {
            Some(hi) if hi <= 0 => Err(LayoutError::Divisor { divisor: self.display(b) }),
            _ => Ok(()),
        }
    }

    /// Whether `0 <= a < b` holds for all values.
    fn is_below(&self, a: Dim, b: Dim) -> bool {
        let remainder = |id| matches!(self.node(id), Node::Mod(_, n) if n == b);
        if matches!(a, Dim::Expr(id) if remainder(id)) {
            return true;
        }
        let room = self.sub(b, a).ok().and_then(|room| self.range(room).0);
        self.facts(a).non_negative() && room.is_some_and(|room| room > 0)
    }

    /// `(q, r)` with `sum == b*q + r`: `q` gets the terms that are written as multiples of `b`.
    fn split_by(&self, sum: &Sum, b: Dim) -> Result<(Sum, Sum), LayoutError> {
        let divisor = self.sum_of(b);
        let &[(unit, k), ..] = &divisor.terms[..] else {
            return Ok((Sum::default(), sum.clone()));
        };
        if divisor.terms.len() == 1 && divisor.constant == 0 {
            return self.split_by_product(sum, unit, k);
        }
        // A sum is factored out only as a whole.
        let found =
            sum.terms.iter().find(|(id, coef)| *id == unit && coef.checked_rem(k) == Some(0));
        if let Some((_, coef)) = found
            && let Some(times) = coef.checked_div(k)
        {
            let rest = sum.plus(&divisor, times.checked_neg().unwrap_or(0))?;
            if rest.terms.is_empty() {
                return Ok((Sum { terms: Vec::new(), constant: times }, rest));
            }
        }
        Ok((Sum::default(), sum.clone()))
    }

    /// As [`ExprArena::split_by`], for the divisor `k * unit`.
    fn split_by_product(&self, sum: &Sum, unit: ExprId, k: i64) -> Result<(Sum, Sum), LayoutError> {
        let wanted = self.factors(unit);
        let mut whole = Sum::default();
        let mut rest = Sum { terms: Vec::new(), constant: sum.constant };
        for &(id, coef) in &sum.terms {
            let mut factors = self.factors(id);
            let has_all = wanted.iter().all(|want| {
                let found = factors.iter().position(|factor| factor == want);
                found.map(|at| factors.remove(at)).is_some()
            });
            match coef.checked_div(k) {
                Some(times) if has_all && coef.checked_rem(k) == Some(0) => {
                    whole = whole.plus(&self.sum_of(self.product(&factors)?), times)?;
                }
                _ => rest.terms.push((id, coef)),
            }
        }
        Ok((whole, rest))
    }
}
