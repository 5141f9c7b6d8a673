//! Defines [`Sum`], `coefficient * atom + .. + constant`, the form in which the prover computes. An
//! atom is a part of an expression that the prover does not take apart (`system.rs`). Coefficients
//! have 128 bits, and a sum that does not fit makes the proof fail.

/// The maximum number of terms of one sum. A proof with a longer sum fails.
const MAX_TERMS: usize = 64;

/// The maximum coefficient. Its product with a divisor still fits.
const MAX_COEFFICIENT: u128 = i64::MAX as u128;

/// The sum of `coefficient * atom` and a constant. Terms are sorted by atom, and no coefficient is
/// zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) terms: Vec<(u32, i128)>,
    pub(super) constant: i128,
}

impl Sum {
    pub(super) fn constant(v: i128) -> Sum {
        Sum { terms: vec![], constant: v }
    }

    pub(super) fn atom(atom: u32) -> Sum {
        Sum { terms: vec![(atom, 1)], constant: 0 }
    }

    /// `self + k * other`. `None` if a number does not fit.
    pub(super) fn plus(&self, other: &Sum, k: i128) -> Option<Sum> {
        let mut terms = Vec::with_capacity(self.terms.len() + other.terms.len());
        let (mut a, mut b) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        while a.peek().is_some() || b.peek().is_some() {
            let left = a.next_if(|(x, _)| b.peek().is_none_or(|(y, _)| x <= y));
            let right = b.next_if(|(y, _)| left.is_none_or(|(x, _)| x == y));
            let atom = left.or(right)?.0;
            let more = right.map_or(Some(0), |(_, c)| c.checked_mul(k))?;
            let c = left.map_or(0, |(_, c)| *c).checked_add(more)?;
            if c.unsigned_abs() > MAX_COEFFICIENT {
                return None;
            }
            if c != 0 {
                terms.push((atom, c));
            }
        }
        let constant = self.constant.checked_add(other.constant.checked_mul(k)?)?;
        (terms.len() <= MAX_TERMS).then_some(Sum { terms, constant })
    }

    /// `self + by`
    pub(super) fn shifted(mut self, by: i128) -> Option<Sum> {
        self.constant = self.constant.checked_add(by)?;
        Some(self)
    }

    pub(super) fn times(&self, k: i128) -> Option<Sum> {
        Sum::default().plus(self, k)
    }
}
