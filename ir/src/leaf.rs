//! Defines [`Leaf`], the interface of the numbers in layouts (innermost extents and strides, the
//! "leaves" of a shape): plain `i64`, or [`Dim`](crate::expr::Dim) with symbols. Operations of the
//! layout algebra are written once for both, except for a few on plain numbers only.
//!
//! Invariant: arithmetic is checked, and a comparison answers [`Decision::Known`] only where it
//! holds for every value the symbols may take; otherwise it names the [`Fact`] that would decide.
//! Division and remainder round down and take positive divisors only.

pub use crate::fact::{Fact, listed};
use crate::layout::LayoutError;
use std::fmt;

/// A number a layout can be made of. `Cx` holds what the symbols mean; it is `()` for `i64`.
pub trait Leaf: Copy + Eq + std::hash::Hash + fmt::Debug + Send + Sync + 'static {
    /// Where the symbols live.
    type Cx: ?Sized + Sync;

    /// The constant `v`.
    fn constant(v: i64) -> Self;
    /// The value of a constant.
    fn known(self) -> Option<i64>;
    /// The text of the number.
    fn show(self, cx: &Self::Cx) -> String;

    /// `a + b`. Errors: overflow, arena limits; the same holds for the other operations.
    fn add(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// `a - b`.
    fn sub(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// `a * b`.
    fn mul(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// `a / b`, rounded down. Errors also where `b` is not positive.
    fn div(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// `a - (a / b) * b`, never negative.
    fn rem(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// `a / b`, rounded up.
    fn ceil_div(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// The smaller of the two.
    fn min(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// The larger of the two.
    fn max(cx: &Self::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;

    /// Whether `b` is a multiple of `a`. Zero divides only zero.
    fn divides(cx: &Self::Cx, a: Self, b: Self) -> Decision;
    /// Whether `a < b`.
    fn lt(cx: &Self::Cx, a: Self, b: Self) -> Decision;
    /// Whether `a == b`.
    fn eq(cx: &Self::Cx, a: Self, b: Self) -> Decision;
}

/// The answer to a question about numbers that may hold symbols.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It is so, or is not so, whatever the symbols are.
    Known(bool),
    /// It depends; this fact would make it true.
    Needs(Fact),
}

impl Decision {
    /// Whether the answer is a certain yes.
    #[must_use]
    #[inline]
    pub fn is_true(&self) -> bool {
        matches!(self, Decision::Known(true))
    }

    /// Whether the answer is a certain no.
    #[must_use]
    #[inline]
    pub fn is_false(&self) -> bool {
        matches!(self, Decision::Known(false))
    }

    /// The answer to the opposite question. A missing fact stays the same.
    #[must_use]
    pub(crate) fn not(self) -> Self {
        match self {
            Decision::Known(answer) => Decision::Known(!answer),
            needs @ Decision::Needs(_) => needs,
        }
    }

    /// The answer, or an error that names the missing fact.
    ///
    /// # Errors
    /// [`LayoutError::NeedsFact`].
    #[inline]
    pub fn require(self) -> Result<bool, LayoutError> {
        match self {
            Decision::Known(answer) => Ok(answer),
            Decision::Needs(fact) => Err(LayoutError::NeedsFact { fact }),
        }
    }
}

impl Leaf for i64 {
    type Cx = ();

    #[inline]
    fn constant(v: i64) -> Self {
        v
    }
    #[inline]
    fn known(self) -> Option<i64> {
        Some(self)
    }
    #[inline]
    fn show(self, (): &()) -> String {
        self.to_string()
    }

    #[inline]
    fn add((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        a.checked_add(b).ok_or(LayoutError::Overflow { what: "a sum" })
    }
    #[inline]
    fn sub((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        a.checked_sub(b).ok_or(LayoutError::Overflow { what: "a difference" })
    }
    #[inline]
    fn mul((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        a.checked_mul(b).ok_or(LayoutError::Overflow { what: "a product" })
    }
    #[inline]
    fn div((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        positive(b)?;
        Ok(if is_power(b) { a >> b.trailing_zeros() } else { a.div_euclid(b) })
    }
    #[inline]
    fn rem((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        positive(b)?;
        Ok(if is_power(b) { a & (b - 1) } else { a.rem_euclid(b) })
    }
    #[inline]
    fn ceil_div((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        positive(b)?;
        if is_power(b) {
            return Ok((a >> b.trailing_zeros()) + i64::from(a & (b - 1) != 0));
        }
        Ok(a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0))
    }
    #[inline]
    fn min((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        Ok(Ord::min(a, b))
    }
    #[inline]
    fn max((): &(), a: Self, b: Self) -> Result<Self, LayoutError> {
        Ok(Ord::max(a, b))
    }

    #[inline]
    fn divides((): &(), a: Self, b: Self) -> Decision {
        if a > 0 && is_power(a) {
            return Decision::Known(b & (a - 1) == 0);
        }
        // `checked_rem` is `None` for a zero divisor and for MIN % -1, where -1 does divide.
        Decision::Known(if a == 0 { b == 0 } else { b.checked_rem(a).unwrap_or(0) == 0 })
    }
    #[inline]
    fn lt((): &(), a: Self, b: Self) -> Decision {
        Decision::Known(a < b)
    }
    #[inline]
    fn eq((): &(), a: Self, b: Self) -> Decision {
        Decision::Known(a == b)
    }
}

/// Whether a positive number is a power of two. Most extents are, and a division takes as long as a
/// whole leaf of the rest of the work; a shift rounds down as well.
#[inline]
fn is_power(v: i64) -> bool {
    v & (v - 1) == 0
}

#[inline]
fn positive(divisor: i64) -> Result<(), LayoutError> {
    if divisor > 0 { Ok(()) } else { Err(LayoutError::Divisor { divisor: divisor.to_string() }) }
}

/// The greatest common divisor, never negative. Of two numbers that only 2⁶³ divides, 2⁶².
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let common = num_integer::gcd(a.unsigned_abs(), b.unsigned_abs());
    i64::try_from(common).unwrap_or(1 << 62)
}
