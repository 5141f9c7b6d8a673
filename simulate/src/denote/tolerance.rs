//! Computes the allowed difference between a body's result and the reference (the meaning in
//! binary64), from the types and the sum alone. It bounds the error of any correct order of
//! summation, so a larger difference is an error of the body.
//!
//! Let u(t) be half a unit in the last place of type t at 1, η(t) its smallest positive number, e
//! the reference, S = |c| + Σ|a·b| the sum of the added magnitudes, and γ(n, u) = e^(n·u) − 1,
//! which bounds (1 + u)^n − 1.
//! - Sums (MatMul over k, Reduction.sum over n elements, `Move.add` as a sum of 2): γ(k + 1,
//!   2·u(acc) + 2⁻⁵²)·S + u(out)·|e| + η(out). Any order of summation stays within γ(k + 1, u). The
//!   factor 2 allows for sums that are truncated instead of rounded, as tensor cores may do, and
//!   2⁻⁵² allows for errors of the reference itself. For atoms of the body that state that they
//!   keep fewer bits of a sum, the stated error for k products is added.
//! - Reduction.prod: γ(n + 1, u(out) + 2⁻⁵²)·|e| + η(out).
//! - Functions that instructions round once (casts, sqrt, functions of two operands): (u(out) +
//!   2⁻⁵²)·|e| + η(out).
//! - The other functions of one operand, which take several instructions: 8·(u(out) + 2⁻⁵²)·|e| +
//!   η(out).
//! - If the body implements the function with atoms that state an error: the largest of these
//!   errors (they hold for rounded results), but at least one rounding u(out)·|e| + η(out), and
//!   2⁻⁵²·|e| for the reference.
//! - Moves, Select, Init, neg, abs, relu, and reductions that choose an element or combine bits:
//!   the results must be equal. Integer outputs must be equal, too, except for half a unit for
//!   casts.
//!
//! If all added numbers are small integers, and accumulator and output can hold S exactly, every
//! order of summation is exact and no difference is allowed. An integer S alone does not imply
//! integer terms. No difference is allowed from a reference that is infinite or NaN.

use super::Meaning;
use crate::num::{exact_integers, smallest, unit_roundoff};
use carbyne_atoms::ErrorBound;
use carbyne_ir::ast::{AccumulateOp, ReduceOp, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// The largest allowed difference. `value` is the reference, `magnitude` the sum of the added
/// magnitudes (for a function, the magnitude of its first operand), `stated` the errors that the
/// body's atoms state.
pub fn tolerance(
    meaning: &Meaning,
    out: Scalar,
    value: f64,
    magnitude: f64,
    small_ints: bool,
    stated: &[ErrorBound],
) -> f64 {
    if !value.is_finite() {
        return 0.0;
    }
    let approximate =
        matches!(meaning, Meaning::Unary(_) | Meaning::Binary(_) | Meaning::Accumulate(..));
    if approximate && !stated.is_empty() && out.is_float() {
        let largest = stated.iter().map(|b| b.at(magnitude, value)).fold(0.0, f64::max);
        // An exact result may still lie between two numbers of the type.
        let rounding = unit_roundoff(out) * value.abs() + smallest(out);
        return largest.max(rounding) + 0.5f64.powi(52) * value.abs();
    }
    let (u, eta) = (unit_roundoff(out), smallest(out));
    let reference = 0.5f64.powi(52);
    let rounded =
        |n: f64| if out.is_float() { n * (u + reference) * value.abs() + eta } else { 0.0 };
    match meaning {
        Meaning::Move | Meaning::Select | Meaning::Init | Meaning::Integers(..) => 0.0,
        // For a body that adds in several steps: the tolerance of a sum of two terms.
        Meaning::Accumulate(AccumulateOp::Add, _) => {
            sum(2, out, out, value, magnitude, small_ints && magnitude.fract() == 0.0)
        }
        Meaning::Accumulate(AccumulateOp::Min | AccumulateOp::Max, _) => 0.0,
        Meaning::MatMul { k, acc, .. } => {
            let ints = small_ints && magnitude.fract() == 0.0;
            let kept = sum(*k, *acc, out, value, magnitude, ints);
            let cut = stated.iter().map(|b| b.per_product).fold(0.0, f64::max);
            if kept == 0.0 { kept } else { kept + cut * *k as f64 * magnitude }
        }
        Meaning::Reduction { op, .. } => {
            let n = meaning.terms().unwrap_or(1);
            match op {
                ReduceOp::Sum => {
                    sum(n, out, out, value, magnitude, small_ints && magnitude.fract() == 0.0)
                }
                ReduceOp::Prod => gamma(n as f64 + 1.0, u + reference) * value.abs() + eta,
                ReduceOp::Min
                | ReduceOp::Max
                | ReduceOp::Minimum
                | ReduceOp::Maximum
                | ReduceOp::And
                | ReduceOp::Or
                | ReduceOp::Xor => 0.0,
            }
        }
        Meaning::Unary(op) => match op {
            UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu => 0.0,
            UnaryOp::Cast if !out.is_float() => 0.5,
            UnaryOp::Cast | UnaryOp::Sqrt => rounded(1.0),
            _ => rounded(8.0),
        },
        Meaning::Binary(_) => rounded(1.0),
    }
}

fn sum(k: usize, acc: Scalar, out: Scalar, value: f64, magnitude: f64, ints: bool) -> f64 {
    if !acc.is_float() && !out.is_float() {
        return 0.0;
    }
    if ints && magnitude <= exact_integers(acc) && magnitude <= exact_integers(out) {
        return 0.0;
    }
    let u = 2.0 * unit_roundoff(acc) + 0.5f64.powi(52);
    gamma(k as f64 + 1.0, u) * magnitude + unit_roundoff(out) * value.abs() + smallest(out)
}

/// At least e^(n·u) − 1, and hardly more.
#[inline]
fn gamma(n: f64, u: f64) -> f64 {
    let x = n * u;
    // The rest of the series is below x³ for these x.
    if x < 1e-3 { x + x * x * (0.5 + x) } else { libm::expm1(x) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_integers_allow_nothing() {
        let m = Meaning::MatMul { l: 1, m: 1, n: 1, k: 64, set: true, acc: Scalar::F16 };
        assert_eq!(tolerance(&m, Scalar::F16, 3.0, 256.0, true, &[]), 0.0);
        assert!(tolerance(&m, Scalar::F16, 3.0, 4096.0, true, &[]) > 0.0);
        assert!(tolerance(&m, Scalar::F16, 3.0, 256.0, false, &[]) > 0.0);
    }

    #[test]
    fn nothing_is_near_infinity_or_nan() {
        let bound = ErrorBound::relative(0.5f64.powi(11));
        let sum = Meaning::MatMul { l: 1, m: 1, n: 1, k: 64, set: true, acc: Scalar::F32 };
        for m in
            [Meaning::Unary(UnaryOp::Exp), Meaning::Accumulate(AccumulateOp::Add, Scalar::F32), sum]
        {
            for value in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
                assert_eq!(tolerance(&m, Scalar::F32, value, value.abs(), false, &[]), 0.0);
                assert_eq!(tolerance(&m, Scalar::F32, value, value.abs(), false, &[bound]), 0.0);
            }
            assert!(tolerance(&m, Scalar::F32, 1e30, 1e30, false, &[bound]) > 0.0);
        }
    }

    #[test]
    fn a_stated_error_is_the_bound() {
        let bound = ErrorBound::relative(0.5f64.powi(11));
        let tanh = Meaning::Unary(UnaryOp::Tanh);
        let with = tolerance(&tanh, Scalar::F32, 0.5, 0.55, false, &[bound]);
        assert!((with - 0.5f64.powi(12)).abs() < 1e-12, "{with}");
        assert!(tolerance(&tanh, Scalar::F32, 0.5, 0.55, false, &[]) < 1e-6);
    }

    #[test]
    fn the_bound_of_many_roundings_is_one() {
        for x in [1e-18f64, 1e-9, 3e-5, 9.99e-4, 1e-3, 0.5] {
            let (bound, exact) = (gamma(4.0, x / 4.0), libm::expm1(x));
            assert!(
                bound >= exact && bound <= exact * (1.0 + 0.5f64.powi(19)),
                "{x}: {bound} {exact}"
            );
        }
    }

    #[test]
    fn the_bound_is_far_below_one_wrong_term() {
        // Sixteen products of numbers near 1/2 in f32: a missing product exceeds the tolerance.
        let m = Meaning::MatMul { l: 1, m: 1, n: 1, k: 16, set: false, acc: Scalar::F32 };
        assert!(tolerance(&m, Scalar::F32, 1.0, 4.0, false, &[]) < 1e-5);
    }
}
