//! Defines [`ErrorBound`], a bound on the error of an approximate instruction. Such bounds are
//! added to the tolerance when a body is compared with the meaning of its spec, and when the
//! simulator's results are compared with those of a device.
//!
//! Documents state bounds in units in the last place (ulp) or as powers of two. [`ErrorBound`]
//! stores them in a form that is easy to evaluate: |r − f(x)| ≤ (a + b·|x|)·|f(x)| + c, where r is
//! the result of the instruction and f(x) the exact one. With u half an ulp at 1, one ulp of a
//! normal result y is at most 2·u·|y|. One ulp of a subnormal result is the smallest positive
//! number. A bound of a sum of products has one more term, for each product. A bound may hold only
//! for a range of the last operand.

use std::fmt;

/// A bound on the error of a function's result, including rounding.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct ErrorBound {
    /// Error relative to the exact result.
    pub relative: f64,
    /// Error relative to the exact result, for each unit of |x|. x is the first operand.
    pub slope: f64,
    /// An error that does not depend on the result.
    pub absolute: f64,
    /// For a sum of products: error for each product, relative to the sum of the magnitudes.
    pub per_product: f64,
    /// The smallest and the largest magnitude of the last operand for which the bound holds.
    pub domain: (f64, f64),
}

impl ErrorBound {
    /// A bound that is relative to the result only.
    #[must_use]
    pub const fn relative(relative: f64) -> Self {
        let domain = (0.0, f64::INFINITY);
        ErrorBound { relative, slope: 0.0, absolute: 0.0, per_product: 0.0, domain }
    }

    /// A bound for a sum of `k` products and an accumulator, all aligned to the largest of them.
    /// Bits more than `bits` below the first bit of the largest are cut off, also from the sum.
    pub(crate) const fn aligned(k: i64, bits: u32) -> Self {
        let mut bound = ErrorBound::relative(0.0);
        bound.per_product = (k + 2) as f64 / k as f64 / (1u64 << bits) as f64;
        bound
    }

    /// `n` ulps of binary32.
    pub(crate) const fn f32_ulps(n: f64) -> Self {
        ErrorBound::relative(n * F32_ULP).plus(n * F32_SMALLEST)
    }

    /// `n` ulps of binary64.
    pub(crate) const fn f64_ulps(n: f64) -> Self {
        ErrorBound::relative(n * f64::EPSILON).plus(5e-324)
    }

    /// `n` ulps of binary16.
    pub(crate) const fn f16_ulps(n: f64) -> Self {
        ErrorBound::relative(n * F16_ULP).plus(n / 16_777_216.0)
    }

    /// `n` ulps of bfloat16. Instructions may flush its subnormal numbers to zero.
    pub(crate) const fn bf16_ulps(n: f64) -> Self {
        ErrorBound::relative(n * BF16_ULP).plus(n * F32_NORMAL)
    }

    /// Adds `ulps` ulps of binary32 for each unit of |x|.
    pub(crate) const fn sloped(mut self, ulps: f64) -> Self {
        self.slope = ulps * F32_ULP;
        self
    }

    /// Adds an error that does not depend on the result.
    pub(crate) const fn plus(mut self, absolute: f64) -> Self {
        self.absolute += absolute;
        self
    }

    /// Restricts the bound to a last operand of a magnitude from `lo` to `hi`.
    pub(crate) const fn within(mut self, lo: f64, hi: f64) -> Self {
        self.domain = (lo, hi);
        self
    }

    /// Whether the bound holds for a last operand of this value.
    #[must_use]
    pub fn covers(&self, operand: f64) -> bool {
        let (lo, hi) = self.domain;
        (lo, hi) == (0.0, f64::INFINITY) || (lo..=hi).contains(&operand.abs())
    }

    /// The largest error relative to the result. `None` if the bound does not hold for every
    /// operand, or is not relative. Two ranges are ignored: results within 2⁻¹¹⁹ of zero, because
    /// instructions may treat subnormal numbers as zeros, and operands beyond ±89, because their
    /// exponential is not a normal binary32.
    #[must_use]
    pub fn of_results(&self) -> Option<f64> {
        let everywhere = self.domain == (0.0, f64::INFINITY) && self.per_product == 0.0;
        let relative = everywhere && self.absolute <= NEGLIGIBLE;
        relative.then_some(self.relative + self.slope * MOST_OPERAND)
    }

    /// The largest error of a result for the operand `x`. `exact` is the exact result.
    #[must_use]
    pub fn at(&self, x: f64, exact: f64) -> f64 {
        let sloped = if self.slope == 0.0 || exact == 0.0 { 0.0 } else { self.slope * x.abs() };
        (self.relative + sloped) * exact.abs() + self.absolute
    }

    /// The largest error of a result that is far from the subnormal numbers. Instructions may treat
    /// those as zeros.
    #[must_use]
    pub fn of_normal(&self, x: f64, exact: f64) -> f64 {
        let absolute = if self.absolute <= NEGLIGIBLE { 0.0 } else { self.absolute };
        ErrorBound { absolute, ..*self }.at(x, exact)
    }
}

/// One ulp of binary32 at 1: 2⁻²³.
pub(crate) const F32_ULP: f64 = 1.0 / 8_388_608.0;
/// One ulp of binary16 at 1: 2⁻¹⁰.
pub(crate) const F16_ULP: f64 = 1.0 / 1024.0;
/// One ulp of bfloat16 at 1: 2⁻⁷.
pub(crate) const BF16_ULP: f64 = 1.0 / 128.0;
/// The smallest normal binary32: 2⁻¹²⁶.
pub(crate) const F32_NORMAL: f64 = f32::MIN_POSITIVE as f64;
/// An absolute error of at most this size is ignored in comparison with a result.
const NEGLIGIBLE: f64 = 128.0 * F32_NORMAL;
/// The largest operand whose exponential, or that of its negative, is a normal binary32.
const MOST_OPERAND: f64 = 89.0;
/// The smallest binary32: 2⁻¹⁴⁹.
const F32_SMALLEST: f64 = F32_NORMAL * F32_ULP;

impl fmt::Display for ErrorBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut terms = vec![];
        match (self.relative > 0.0, self.slope > 0.0) {
            (true, true) => {
                terms.push(format!("({:.2e} + {:.2e}·|x|)·|y|", self.relative, self.slope))
            }
            (true, false) => terms.push(format!("{:.2e}·|y|", self.relative)),
            (false, _) => {}
        }
        if self.absolute > 0.0 {
            terms.push(format!("{:.2e}", self.absolute));
        }
        if self.per_product > 0.0 {
            terms.push(format!("{:.2e}·k·(|d| + Σ|a·b|)", self.per_product));
        }
        f.write_str(&terms.join(" + "))?;
        match self.domain {
            (0.0, f64::INFINITY) => Ok(()),
            (lo, hi) => write!(f, ", for a last operand from {lo:.2e} to {hi:.2e} in magnitude"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_evaluated() {
        let bound = ErrorBound::f32_ulps(2.0).sloped(1.0).plus(0.5);
        let want = (2.0 + 3.0) * F32_ULP * 4.0 + 0.5;
        assert!((bound.at(-3.0, 4.0) - want).abs() < 1e-12);
        assert!(bound.at(f64::INFINITY, 0.0) < 0.6);
        assert_eq!(ErrorBound::f32_ulps(2.0).of_normal(1.0, 4.0), 8.0 * F32_ULP);
        assert!(bound.of_normal(-3.0, 4.0) > 0.5);
        assert_eq!(ErrorBound::f16_ulps(1.0).to_string(), "9.77e-4·|y| + 5.96e-8");
        assert_eq!(ErrorBound::f32_ulps(2.0).sloped(1.0).of_results(), Some(91.0 * F32_ULP));
        assert_eq!(bound.of_results(), None);
        assert_eq!(ErrorBound::relative(0.5).within(1.0, 2.0).of_results(), None);
        let aligned = ErrorBound::aligned(32, 13);
        assert_eq!(aligned.per_product, 34.0 / 32.0 / 8192.0);
        assert_eq!(aligned.to_string(), "1.30e-4·k·(|d| + Σ|a·b|)");
        let part = ErrorBound::relative(0.5).within(1.0, 2.0);
        assert!(part.covers(-2.0) && !part.covers(0.5) && !part.covers(f64::NAN));
        assert!(bound.covers(f64::NAN));
    }
}
