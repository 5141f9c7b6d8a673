//! Derives the range and the divisor of an expression from those of its operands. Simplification
//! and decisions about symbolic layouts rest on them. (Facts of `where` are in `program/facts.rs`.)
//!
//! Invariant: every value of the expression lies in the range and is a multiple of the divisor. A
//! bound that does not fit in 64 bits is dropped.

use super::{Dim, Node, VarInfo};
use crate::leaf::gcd;

/// Inclusive bounds and a divisor. The divisor is 0 only for the constant zero.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Facts {
    pub(super) lo: Option<i64>,
    pub(super) hi: Option<i64>,
    pub(super) div: i64,
}

impl Facts {
    pub(super) fn of_const(v: i64) -> Self {
        Facts { lo: Some(v), hi: Some(v), div: v.checked_abs().unwrap_or(1) }
    }

    /// The declared range, reduced to multiples of the divisor. No lower bound if no multiple fits.
    pub(super) fn of_var(info: &VarInfo) -> Self {
        let div = info.div.max(1);
        let up = (div - info.lo.rem_euclid(div)) % div;
        let hi = info.hi.and_then(|hi| hi.checked_sub(hi.rem_euclid(div)));
        let hi = if info.hi.is_some() { hi.or(Some(i64::MIN)) } else { None };
        Facts { lo: info.lo.checked_add(up), hi, div }
    }

    pub(super) fn non_negative(self) -> bool {
        self.lo.is_some_and(|lo| lo >= 0)
    }
}

/// The facts of a node, from the facts of its operands.
pub(super) fn facts_of(node: &Node, facts: &dyn Fn(Dim) -> Facts) -> Facts {
    match *node {
        Node::Var(_) => Facts { lo: None, hi: None, div: 1 },
        Node::Linear { ref terms, constant } => {
            let (mut lo, mut hi) = (Some(i128::from(constant)), Some(i128::from(constant)));
            let mut div = Facts::of_const(constant).div;
            for &(id, coef) in terms.iter() {
                let term = facts(Dim::Expr(id));
                let at = |end: Option<i64>| end.map(|end| i128::from(end) * i128::from(coef));
                let (low, high) = if coef < 0 { (term.hi, term.lo) } else { (term.lo, term.hi) };
                lo = lo.zip(at(low)).and_then(|(a, b)| a.checked_add(b));
                hi = hi.zip(at(high)).and_then(|(a, b)| a.checked_add(b));
                let step = coef.checked_mul(term.div).and_then(i64::checked_abs);
                div = gcd(div, step.unwrap_or_else(|| term.div.max(1)));
            }
            Facts { lo: lo.and_then(fits), hi: hi.and_then(fits), div: div.max(1) }
        }
        Node::Mul(a, b) => product(facts(a), facts(b)),
        Node::Div(a, b) => {
            let (a, b) = (facts(a), facts(b));
            let (lo, hi) = quotient(a, b, i64::div_euclid);
            let exact = b.lo.filter(|&v| b.hi == Some(v) && v > 0 && a.div % v == 0);
            Facts { lo, hi, div: exact.map_or(1, |v| (a.div / v).max(1)) }
        }
        Node::CeilDiv(a, b) => {
            let up = |a: i64, b: i64| a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0);
            let (lo, hi) = quotient(facts(a), facts(b), up);
            Facts { lo, hi, div: 1 }
        }
        Node::Mod(a, b) => {
            let (a, b) = (facts(a), facts(b));
            // Below the divisor, and a multiple of the common divisor of both operands.
            let div = gcd(a.div, b.div).max(1);
            let below = b.hi.map(|hi| hi.saturating_sub(div).max(0));
            let hi = if a.non_negative() { min_known(a.hi, below) } else { below };
            Facts { lo: Some(0), hi, div }
        }
        Node::Min(a, b) => {
            let (a, b) = (facts(a), facts(b));
            let lo = a.lo.zip(b.lo).map(|(a, b)| a.min(b));
            Facts { lo, hi: min_known(a.hi, b.hi), div: gcd(a.div, b.div).max(1) }
        }
        Node::Max(a, b) => {
            let (a, b) = (facts(a), facts(b));
            let hi = a.hi.zip(b.hi).map(|(a, b)| a.max(b));
            Facts { lo: a.lo.max(b.lo), hi, div: gcd(a.div, b.div).max(1) }
        }
    }
}

fn product(a: Facts, b: Facts) -> Facts {
    let times = |x: i64, y: i64| i128::from(x) * i128::from(y);
    let div = a.div.checked_mul(b.div).unwrap_or(a.div.max(b.div)).max(1);
    if let (Some(al), Some(ah), Some(bl), Some(bh)) = (a.lo, a.hi, b.lo, b.hi) {
        let ends = [times(al, bl), times(al, bh), times(ah, bl), times(ah, bh)];
        let lo = ends.iter().min().copied().and_then(fits);
        let hi = ends.iter().max().copied().and_then(fits);
        return Facts { lo, hi, div };
    }
    let lo = match (a.lo, b.lo) {
        (Some(al), Some(bl)) if al >= 0 && bl >= 0 => fits(times(al, bl)),
        _ => None,
    };
    Facts { lo, hi: None, div }
}

/// The range of a quotient. The divisor is at least 1 wherever the quotient has a value.
fn quotient(a: Facts, b: Facts, div: impl Fn(i64, i64) -> i64) -> (Option<i64>, Option<i64>) {
    let small = b.lo.unwrap_or(1).max(1);
    let large = b.hi.map(|hi| hi.max(1));
    // A larger divisor moves the quotient towards zero. With an unbounded divisor, the quotient
    // reaches −1 or 0.
    let low = |lo: i64| {
        if lo < 0 {
            div(lo, small)
        } else {
            large.map_or(div(lo, i64::MAX).min(lo), |large| div(lo, large))
        }
    };
    let high = |hi: i64| {
        if hi >= 0 { div(hi, small) } else { div(hi, large.unwrap_or(i64::MAX)) }
    };
    (a.lo.map(low), a.hi.map(high))
}

fn min_known(a: Option<i64>, b: Option<i64>) -> Option<i64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (one, None) | (None, one) => one,
    }
}

fn fits(v: i128) -> Option<i64> {
    i64::try_from(v).ok()
}
