//! Computes the pointwise functions and the reductions of meanings, in binary64. Results have equal
//! bits on every machine.

use crate::num::{decode_int, int_range, truncate};
use carbyne_ir::ast::{BinaryOp, ReduceOp, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// The function of one operand. A cast is the identity here, because the output rounds.
pub fn unary(op: UnaryOp, x: f64) -> f64 {
    match op {
        UnaryOp::Cast => x,
        UnaryOp::Neg => -x,
        UnaryOp::Abs => x.abs(),
        UnaryOp::Exp => libm::exp(x),
        UnaryOp::Exp2 => libm::exp2(x),
        UnaryOp::Log => libm::log(x),
        UnaryOp::Sqrt => x.sqrt(),
        UnaryOp::Rsqrt => 1.0 / x.sqrt(),
        UnaryOp::Rcp => 1.0 / x,
        UnaryOp::Tanh => libm::tanh(x),
        UnaryOp::Sigmoid => 1.0 / (1.0 + libm::exp(-x)),
        UnaryOp::Relu => binary(BinaryOp::Max, x, 0.0),
        UnaryOp::Gelu => 0.5 * x * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2),
        UnaryOp::Silu => x / (1.0 + libm::exp(-x)),
    }
}

/// The function of two operands. As on the device, `min` and `max` of a NaN and a number give the
/// number, `minimum` and `maximum` give NaN.
pub fn binary(op: BinaryOp, x: f64, y: f64) -> f64 {
    match op {
        BinaryOp::Add => x + y,
        BinaryOp::Sub => x - y,
        BinaryOp::Mul => x * y,
        BinaryOp::Div => x / y,
        BinaryOp::Min => x.min(y),
        BinaryOp::Max => x.max(y),
        BinaryOp::Minimum | BinaryOp::Maximum if x.is_nan() || y.is_nan() => f64::NAN,
        BinaryOp::Minimum => x.min(y),
        BinaryOp::Maximum => x.max(y),
        BinaryOp::Lt => number(x < y),
        BinaryOp::Le => number(x <= y),
        BinaryOp::Eq => number(x == y),
        BinaryOp::Ne => number(x != y),
        BinaryOp::Ge => number(x >= y),
        BinaryOp::Gt => number(x > y),
    }
}

/// The function of two integers of a type. Sums, differences and products are truncated to the
/// type.
pub fn integers(op: BinaryOp, scalar: Scalar, x: f64, y: f64) -> f64 {
    let (a, b) = (x as i128, y as i128);
    let exact = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => return quotient(scalar, x, y),
        _ => return binary(op, x, y),
    };
    let (lo, hi) = int_range(scalar);
    (lo + (exact - lo).rem_euclid(hi - lo + 1)) as f64
}

/// The function of two integers of a type, as bits of another type, to which the result is
/// truncated. A comparison gives 0 or 1. As on the device, division by zero gives all ones.
pub fn integers_of_bits(op: BinaryOp, from: Scalar, to: Scalar, x: u64, y: u64) -> u64 {
    let (a, b) = (decode_int(from, x), decode_int(from, y));
    let exact = match op {
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a.wrapping_mul(b),
        BinaryOp::Div => a.checked_div(b).unwrap_or(-1),
        BinaryOp::Min | BinaryOp::Minimum => a.min(b),
        BinaryOp::Max | BinaryOp::Maximum => a.max(b),
        BinaryOp::Lt => i128::from(a < b),
        BinaryOp::Le => i128::from(a <= b),
        BinaryOp::Eq => i128::from(a == b),
        BinaryOp::Ne => i128::from(a != b),
        BinaryOp::Ge => i128::from(a >= b),
        BinaryOp::Gt => i128::from(a > b),
    };
    truncate(to, exact)
}

/// A `bool` as a number.
fn number(holds: bool) -> f64 {
    if holds { 1.0 } else { 0.0 }
}

/// The quotient of two integers of a type, rounded toward zero. As on the device, a quotient beyond
/// the type wraps around, and division by zero gives all ones.
pub fn quotient(scalar: Scalar, x: f64, y: f64) -> f64 {
    let (lo, hi) = int_range(scalar);
    match (x / y).trunc() {
        _ if y == 0.0 => (if lo < 0 { -1 } else { hi }) as f64,
        q if q > hi as f64 => lo as f64,
        q => q,
    }
}

/// Combines a reduction's result with one more element. Sums and products of integers are truncated
/// to the type.
pub fn fold(op: ReduceOp, scalar: Scalar, x: f64, y: f64) -> f64 {
    match op.combining() {
        Some(op) if scalar.is_float() => binary(op, x, y),
        Some(op) => integers(op, scalar, x, y),
        None => bits(op, x, y),
    }
}

/// The result of a reduction of no elements.
pub(super) fn of_none(op: ReduceOp, scalar: Scalar) -> f64 {
    op.neutral(scalar).unwrap_or(0.0)
}

/// The bits of two integers combined by `and`, `or` or `xor`; the first integer for any other
/// operation. Exact up to 53 bits, as binary64 holds integers.
fn bits(op: ReduceOp, x: f64, y: f64) -> f64 {
    let (a, b) = (x as i64, y as i64);
    let both = match op {
        ReduceOp::And => a & b,
        ReduceOp::Or => a | b,
        ReduceOp::Xor => a ^ b,
        ReduceOp::Sum
        | ReduceOp::Prod
        | ReduceOp::Min
        | ReduceOp::Max
        | ReduceOp::Minimum
        | ReduceOp::Maximum => a,
    };
    both as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reduction_of_no_elements_is_neutral() {
        for scalar in [Scalar::F32, Scalar::I8, Scalar::U8, Scalar::Bool] {
            let of_bits = [ReduceOp::And, ReduceOp::Or, ReduceOp::Xor];
            let ops = [ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Min, ReduceOp::Max];
            let fits = of_bits.into_iter().filter(|_| !scalar.is_float()).chain(ops);
            for op in fits {
                for x in [0.0, 1.0] {
                    let none = of_none(op, scalar);
                    assert_eq!(fold(op, scalar, none, x), x, "{op:?} {scalar} {x}");
                }
            }
        }
        assert_eq!(of_none(ReduceOp::Max, Scalar::I8), -128.0);
    }

    /// Checks all bits of results, which must not depend on the math library of the machine.
    #[test]
    fn results_have_equal_bits_on_every_machine() {
        let ops = [
            UnaryOp::Exp,
            UnaryOp::Exp2,
            UnaryOp::Log,
            UnaryOp::Tanh,
            UnaryOp::Sigmoid,
            UnaryOp::Silu,
            UnaryOp::Gelu,
        ];
        let bits = |op: UnaryOp| {
            (1..=2000u64).fold(0u64, |all, i| {
                let x = i as f64 / 77.0 * if i % 2 == 0 { -1.0 } else { 1.0 };
                let x = if op == UnaryOp::Log { x.abs() } else { x };
                all.rotate_left(7) ^ unary(op, x).to_bits()
            })
        };
        let found = ops.map(|op| format!("{op} {:016x}", bits(op)));
        // The bits are those of the `libm` in Cargo.lock.
        assert_eq!(
            found,
            [
                "exp 40260994f147adac",
                "exp2 ed02c48109a0ccee",
                "log 99524bbcd026a3cd",
                "tanh 8f729da5900ebc7d",
                "sigmoid 31cfa87e6c239cd6",
                "silu 1c9c3febf00568dc",
                "gelu bc5ac3fc58de0ef5"
            ]
        );
    }
}
