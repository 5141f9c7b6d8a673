//! Implements [`Leaf`] for symbolic numbers, so that the layout algebra works with symbolic extents
//! and strides: arithmetic in the arena, comparisons by range and divisor. An undecided comparison
//! names the missing fact.

use super::{Dim, ExprArena};
use crate::layout::LayoutError;
use crate::leaf::{Decision, Fact, Leaf};

impl Leaf for Dim {
    type Cx = ExprArena;

    fn constant(v: i64) -> Self {
        Dim::Const(v)
    }
    fn known(self) -> Option<i64> {
        self.as_const()
    }
    fn show(self, cx: &ExprArena) -> String {
        cx.display(self)
    }

    fn add(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.add(a, b)
    }
    fn sub(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.sub(a, b)
    }
    fn mul(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.mul(a, b)
    }
    fn div(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.div(a, b)
    }
    fn rem(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.rem(a, b)
    }
    fn ceil_div(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.ceil_div(a, b)
    }
    fn min(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.min(a, b)
    }
    fn max(cx: &ExprArena, a: Self, b: Self) -> Result<Self, LayoutError> {
        cx.max(a, b)
    }

    fn divides(cx: &ExprArena, a: Self, b: Self) -> Decision {
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return i64::divides(&(), a, b);
        }
        if b == Dim::Const(0) || a == Dim::Const(1) || a == b {
            return Decision::Known(true);
        }
        let magnitude = match a {
            Dim::Const(v) => v.checked_abs().filter(|&v| v > 0).map(Dim::Const),
            Dim::Expr(_) => Some(a),
        };
        // A remainder decides something only if the divisor is known to be positive.
        let magnitude = magnitude.filter(|&a| cx.range(a).0.is_some_and(|lo| lo > 0));
        if let Some(remainder) = magnitude.and_then(|a| cx.rem(b, a).ok()) {
            let (lo, hi) = cx.range(remainder);
            if hi == Some(0) {
                return Decision::Known(true);
            }
            if lo.is_some_and(|lo| lo > 0) {
                return Decision::Known(false);
            }
        }
        Decision::Needs(Fact::Divides { divisor: cx.display(a), value: cx.display(b) })
    }

    fn lt(cx: &ExprArena, a: Self, b: Self) -> Decision {
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return Decision::Known(a < b);
        }
        let ((a_lo, a_hi), (b_lo, b_hi)) = (cx.range(a), cx.range(b));
        if a_hi.zip(b_lo).is_some_and(|(a, b)| a < b) {
            return Decision::Known(true);
        }
        if a_lo.zip(b_hi).is_some_and(|(a, b)| a >= b) {
            return Decision::Known(false);
        }
        // The difference cancels common terms.
        match cx.sub(b, a).map(|room| cx.range(room)) {
            Ok((Some(lo), _)) if lo > 0 => Decision::Known(true),
            Ok((_, Some(hi))) if hi <= 0 => Decision::Known(false),
            _ => Decision::Needs(Fact::Less { smaller: cx.display(a), larger: cx.display(b) }),
        }
    }

    fn eq(cx: &ExprArena, a: Self, b: Self) -> Decision {
        if a == b {
            return Decision::Known(true);
        }
        if let (Some(a), Some(b)) = (a.known(), b.known()) {
            return Decision::Known(a == b);
        }
        if Self::lt(cx, a, b).is_true() || Self::lt(cx, b, a).is_true() {
            return Decision::Known(false);
        }
        match cx.sub(a, b).map(|apart| cx.range(apart)) {
            Ok((Some(0), Some(0))) => Decision::Known(true),
            _ => Decision::Needs(Fact::Equal { left: cx.display(a), right: cx.display(b) }),
        }
    }
}
