//! Defines [`Fact`], a comparison that a module states about its symbols (`where M % 64 == 0`), and
//! [`Residue`], the remainder that such facts fix.

use crate::ast::CmpOp;
use crate::expr::{Dim, ExprArena};
use crate::span::Span;

/// A comparison of expressions over symbols that holds at every launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The left side, as written, without simplification by known facts about its symbols.
    pub lhs: Dim,
    /// The comparison.
    pub op: CmpOp,
    /// The right side.
    pub rhs: Dim,
    /// The printed form, `M % 8 == 0`.
    pub text: String,
    /// Its place in the text.
    pub span: Span,
}

/// A residue class: the numbers with remainder `rest` modulo `by`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Residue {
    /// The modulus, at least 1.
    pub by: i64,
    /// The remainder, at least 0 and less than `by`.
    pub rest: i64,
}

impl Residue {
    /// The intersection of two residue classes; `None` if it is empty. If its modulus does not fit
    /// 64 bits, returns `self`.
    #[must_use]
    pub fn and(self, other: Residue) -> Option<Residue> {
        let [a, b] = [self.by, other.by].map(i128::from);
        let (mut old, mut rest) = ((a, 1i128), (b, 0i128));
        while rest.0 != 0 {
            let q = old.0 / rest.0;
            (old, rest) = (rest, (old.0 - q * rest.0, old.1 - q * rest.1));
        }
        let (gcd, of_a) = old;
        let apart = i128::from(other.rest) - i128::from(self.rest);
        if apart % gcd != 0 {
            return None;
        }
        let Ok(by) = i64::try_from(a / gcd * b) else { return Some(self) };
        let turns = (apart / gcd * of_a).rem_euclid(b / gcd);
        let rest = i64::try_from(i128::from(self.rest) + a * turns);
        Some(rest.map_or(self, |rest| Residue { by, rest }))
    }

    /// The least number of the class that is at least `from`.
    #[must_use]
    pub fn least(self, from: i64) -> Option<i64> {
        from.checked_add(self.rest.checked_sub(from)?.rem_euclid(self.by))
    }
}

/// The differences that are at least zero if the comparison holds. Those that do not fit 64 bits
/// are omitted.
pub fn differences(cx: &ExprArena, lhs: Dim, op: CmpOp, rhs: Dim) -> Vec<Dim> {
    let less = |a: Dim, b: Dim, by: i64| cx.sub(b, a).and_then(|d| cx.sub(d, Dim::Const(by))).ok();
    let found = match op {
        CmpOp::Lt => [less(lhs, rhs, 1), None],
        CmpOp::Le => [less(lhs, rhs, 0), None],
        CmpOp::Gt => [less(rhs, lhs, 1), None],
        CmpOp::Ge => [less(rhs, lhs, 0), None],
        CmpOp::Eq => [less(lhs, rhs, 0), less(rhs, lhs, 0)],
        CmpOp::Ne => [None, None],
    };
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn residues_together_are_the_numbers_of_both() {
        let all = || (1..=12i64).flat_map(|by| (0..by).map(move |rest| Residue { by, rest }));
        for (a, b) in all().flat_map(|a| all().map(move |b| (a, b))) {
            let is = |n: i64, r: Residue| n.rem_euclid(r.by) == r.rest;
            let both: Vec<i64> = (-200..200).filter(|n| is(*n, a) && is(*n, b)).collect();
            let found = a.and(b);
            let same = (-200..200).filter(|n| found.is_some_and(|r| is(*n, r)));
            assert_eq!(same.collect::<Vec<_>>(), both, "{a:?} {b:?}");
            let least = found.and_then(|r| r.least(-200));
            assert!(both.is_empty() || least == both.first().copied(), "{a:?} {b:?}");
        }
        let large = Residue { by: i64::MAX, rest: 5 };
        assert_eq!(large.and(Residue { by: 2, rest: 1 }), Some(large));
    }
}
