//! Computes the shadows of results of instructions: the instruction's function of the operands'
//! shadows, in binary64, without rounding to the floating-point type of the result. See
//! [`crate::state::Value`].
//!
//! Shadows of integers stay within their types; a cast from a float to an integer rounds the
//! shadow. A cast between floats keeps the shadow, unless the meaning states the cast or the number
//! is beyond the range of the type.

use super::products::add_products;
use crate::denote;
use crate::num::{decode, encode, truncate};
use crate::plan::BoundOp;
use carbyne_ir::ast::{BinaryOp, ReduceOp, UnaryOp};
use carbyne_ir::program::CastRole;
use carbyne_ir::scalar::Scalar;

/// The shadow of a result of a type: floats are unchanged, integers are rounded to integers.
#[inline]
pub(super) fn settled(to: Scalar, shadow: f64) -> f64 {
    match to {
        Scalar::Bool => f64::from(shadow != 0.0),
        _ if to.is_float() => shadow,
        _ => decode(to, encode(to, shadow)),
    }
}

/// Narrows the results of a cast between floats, by the role of the cast in the meaning
/// ([`denote::narrowed`]). Returns the first number beyond the range of the type and its result,
/// unless the meaning contains the cast.
pub(super) fn narrow(role: CastRole, to: Scalar, results: &mut [f64]) -> Option<(f64, f64)> {
    let mut beyond = None;
    for x in results {
        let narrowed = denote::narrowed(role, to, *x);
        if role != CastRole::Meant && denote::is_beyond(to, *x, narrowed) {
            beyond = beyond.or(Some((*x, narrowed)));
        }
        *x = narrowed;
    }
    beyond
}

/// A function of one operand.
#[inline]
fn unary(op: UnaryOp, from: Scalar, to: Scalar, x: f64) -> f64 {
    let exact = denote::unary(op, x);
    match op {
        UnaryOp::Cast => settled(to, exact),
        _ if from.is_float() => exact,
        _ => decode(to, truncate(to, exact as i128)),
    }
}

/// A function of two operands of one type.
#[inline]
pub(super) fn binary(op: BinaryOp, from: Scalar, x: f64, y: f64) -> f64 {
    match from.is_float() || op.compares() {
        true => denote::binary(op, x, y),
        false => denote::integers(op, from, x, y),
    }
}

/// Reduces all elements to one, in order.
fn reduce(op: ReduceOp, scalar: Scalar, tile: &[f64]) -> f64 {
    tile.iter().copied().reduce(|x, y| denote::fold(op, scalar, x, y)).unwrap_or(0.0)
}

/// D += A·B on tiles in column-major order, batch first: `extents` are l, m, n, k.
pub(super) fn matmul([l, m, _, k]: [usize; 4], to: Scalar, a: &[f64], b: &[f64], d: &mut [f64]) {
    add_products([l, l * m, k], a, b, d, |s, p, q| s + p * q);
    if !to.is_float() {
        d.iter_mut().for_each(|s| *s = denote::integers(BinaryOp::Add, to, *s, 0.0));
    }
}

/// The shadows of an atom's results from the shadows of its tiles. `output` holds the shadows of
/// the accumulator, for an atom that reads it. Atoms that only move elements are handled elsewhere.
pub(super) fn compute<'t>(
    op: &BoundOp,
    tile: &impl Fn(usize) -> &'t [f64],
    n_tiles: usize,
    n_written: usize,
    output: &mut Vec<f64>,
) {
    match *op {
        BoundOp::Tf32Away => output.extend_from_slice(tile(0)),
        BoundOp::Unary(op, from, to) => {
            output.extend(tile(0).iter().map(|x| unary(op, from, to, *x)));
        }
        BoundOp::Binary(op, from, _) => {
            output.extend(tile(0).iter().zip(tile(1)).map(|(x, y)| binary(op, from, *x, *y)));
        }
        BoundOp::Init(to) => {
            let value = if n_tiles > 0 { tile(0).first().copied() } else { None };
            output.resize(n_written, settled(to, value.unwrap_or(0.0)));
        }
        BoundOp::Reduction(op, scalar) => output.push(reduce(op, scalar, tile(0))),
        BoundOp::MatMul { extents, to, .. } => {
            let [l, m, n, _] = extents;
            output.resize(l * m * n, 0.0);
            matmul(extents, to, tile(0), tile(1), output);
        }
        BoundOp::Move | BoundOp::Accumulate(_) | BoundOp::Select | BoundOp::Shuffle { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shadows_round_to_integers_only() {
        use Scalar::{Bool, F16, F32, I8, I32};
        let x = 1.0 + 0.5f64.powi(40);
        assert_eq!(unary(UnaryOp::Cast, F32, F16, x), x);
        assert_eq!(unary(UnaryOp::Cast, F32, I8, 3.7), 4.0);
        assert_eq!(unary(UnaryOp::Cast, F32, I8, 1e9), 127.0);
        assert_eq!(unary(UnaryOp::Cast, I32, Bool, -7.0), 1.0);
        assert_eq!(unary(UnaryOp::Neg, I8, I8, -128.0), -128.0);
        assert_eq!(binary(BinaryOp::Add, I8, 127.0, 1.0), -128.0);
        assert_eq!(binary(BinaryOp::Lt, F16, x, 1.0), 0.0);
        assert_eq!(binary(BinaryOp::Div, I32, 7.0, -2.0), -3.0);
    }

    #[test]
    fn products_of_batches_are_separate() {
        // l = 2, m = n = k = 1: two products.
        let mut d = [1.0, 2.0];
        matmul([2, 1, 1, 1], Scalar::F16, &[3.0, 5.0], &[7.0, 11.0], &mut d);
        assert_eq!(d, [22.0, 57.0]);
        // m = 2, n = 1, k = 2.
        let mut d = [0.0, 0.0];
        matmul([1, 2, 1, 2], Scalar::F32, &[1.0, 2.0, 3.0, 4.0], &[10.0, 100.0], &mut d);
        assert_eq!(d, [310.0, 420.0]);
        let mut d = [127.0];
        matmul([1, 1, 1, 1], Scalar::I8, &[1.0], &[1.0], &mut d);
        assert_eq!(d, [-128.0]);
    }
}
