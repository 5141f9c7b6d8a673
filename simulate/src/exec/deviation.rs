//! Measures the distance between the results of a statement and their shadows (the results without
//! rounding), if the options ask for it. In every run with shadows, it also counts the comparisons
//! and the conversions to integers whose results rounding has changed. The report shows both.

use super::{Near, Runner};
use crate::num::{decode, ulp};
use crate::state::{Tile, same_shadow};
use carbyne_ir::ast::{BinaryOp, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// The rounding that a statement applies to values, but not to their shadows.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Rounds {
    /// No rounding: the statement moves values, or they are integers.
    Not,
    /// The statement rounds floats.
    Floats,
    /// The statement makes a decision: its result is that of a comparison, or an integer from a
    /// float.
    Decides,
}

impl Rounds {
    /// The rounding of a function of one operand.
    pub(super) fn unary(op: UnaryOp, from: Scalar, to: Scalar) -> Self {
        match op {
            _ if to.is_float() => Rounds::Floats,
            UnaryOp::Cast if from.is_float() => Rounds::Decides,
            _ => Rounds::Not,
        }
    }

    /// The rounding of a function of two operands of one type.
    pub(super) fn binary(op: BinaryOp, from: Scalar) -> Self {
        match from.is_float() {
            true if op.compares() => Rounds::Decides,
            true => Rounds::Floats,
            false => Rounds::Not,
        }
    }

    /// The rounding of a sum of this type.
    pub(super) fn sum(to: Scalar) -> Self {
        if to.is_float() { Rounds::Floats } else { Rounds::Not }
    }
}

impl Runner<'_> {
    /// Measures the results of a leaf.
    pub(super) fn measure(&mut self, leaf: usize, rounds: Rounds, scalar: Scalar, results: &Tile) {
        if rounds == Rounds::Not || results.shadows.is_empty() {
            return;
        }
        let both = results.bits.iter().zip(&results.shadows);
        if rounds == Rounds::Decides {
            let turned = both.filter(|(b, s)| !same_shadow(decode(scalar, **b), **s)).count();
            if turned > 0 {
                let site = self.kernel.leaves[leaf].site;
                *self.counts.turned.entry(site).or_default() += turned as u64;
            }
            return;
        }
        if self.counts.first_nan.is_none() && results.shadows.iter().any(|s| s.is_nan()) {
            self.counts.first_nan = Some(self.kernel.leaves[leaf].site);
        }
        let Some(of) = self.counts.rounding.get_mut(leaf) else { return };
        of.executions += 1;
        for (bits, shadow) in both {
            let distance = (decode(scalar, *bits) - shadow).abs();
            if distance.is_finite() {
                let near = Near {
                    error: 0.0,
                    allowed: 0.0,
                    distance,
                    ulp: ulp(scalar, *shadow),
                    reference: *shadow,
                    undecided: 0,
                };
                of.add(&near, 0.0);
            }
        }
    }
}
