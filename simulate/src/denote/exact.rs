//! Computes each kind of step of a meaning in binary64, without rounding to the types of the
//! elements. A cast rounds only if the meaning states the rounding. Each number has a scale, to
//! which errors of binary64 are relative. By the scale, [`Exact::is`] tells a wrong number of a
//! body from a rounding error.

use super::pointwise;
use super::region::{Axis, Region};
use crate::num::{decode, encode, int_range, truncate, ulp};
use carbyne_ir::ast::{BinaryOp, ReduceOp, UnaryOp};
use carbyne_ir::program::CastRole;
use carbyne_ir::scalar::Scalar;

/// The largest allowed difference of shadows, relative to the scale.
pub const SLACK: f64 = 1.0 / (1u64 << 30) as f64;

/// Numbers on a region, with their scales.
#[derive(Clone, Debug, Default)]
pub struct Exact {
    /// The numbers, in binary64.
    pub numbers: Vec<f64>,
    /// The scales to which errors are relative.
    pub scales: Vec<f64>,
}

impl Exact {
    /// Whether a number equals the one at an element, up to rounding errors of binary64. Integers
    /// must be equal, unless a comparison in doubt decided them. `rounded`: the number may be
    /// rounded to its type, by a cast of the meaning.
    #[must_use]
    pub fn is(&self, e: usize, scalar: Scalar, number: f64, rounded: bool) -> bool {
        let (want, scale) = match (self.numbers.get(e), self.scales.get(e)) {
            (Some(want), Some(scale)) => (*want, *scale),
            _ => return false,
        };
        // A result in doubt may be any number. No number is near an infinite one.
        if scale == DOUBT || want == number || (want.is_nan() && number.is_nan()) {
            return true;
        }
        let own = if scalar.is_float() { scale.max(want.abs()) } else { scale };
        if want.is_finite() && (want - number).abs() <= SLACK * own {
            return true;
        }
        if !scalar.is_float() {
            return false;
        }
        // The output itself may saturate at the range of its type.
        let ends = [want - SLACK * own, want + SLACK * own];
        let beyond = |x: f64| narrowed(CastRole::Staged, scalar, x) == number && x != number;
        if ends.into_iter().any(beyond) {
            return true;
        }
        if !rounded {
            return false;
        }
        let (nearest, apart) = narrow(CastRole::Meant, scalar, (want, scale), SLACK);
        let same = encode(scalar, number) == encode(scalar, nearest);
        let is_value = decode(scalar, encode(scalar, number)) == number;
        is_value && (same || (nearest - number).abs() <= SLACK * apart)
    }

    /// Whether a number passes only because several numbers are acceptable at an element: a
    /// comparison is too close to decide, or binary64 rounds an integer. Such a number may differ
    /// by far more than the errors of binary64.
    #[must_use]
    pub fn is_undecided(&self, e: usize, number: f64) -> bool {
        let (Some(want), Some(scale)) = (self.numbers.get(e), self.scales.get(e)) else {
            return false;
        };
        let differs = (want - number).abs() > SLACK / 16.0 * scale;
        differs || *scale == DOUBT && *want != number && !number.is_nan()
    }

    /// Sums, with the sums of the added magnitudes as scales.
    #[must_use]
    pub fn of_sums(numbers: Vec<f64>, magnitudes: Vec<f64>) -> Exact {
        let scales = numbers.iter().zip(magnitudes).map(|(v, g)| sure(*v, g)).collect();
        Exact { numbers, scales }
    }
}

/// The scale of a result that depends on a comparison in doubt, where the other outcome is
/// infinitely far away.
const DOUBT: f64 = f64::INFINITY;

/// A number and its scale.
pub(super) type Pair = (f64, f64);

pub(super) fn collect(pairs: impl Iterator<Item = Pair>) -> Exact {
    let (numbers, scales) = pairs.unzip();
    Exact { numbers, scales }
}

/// A scale without doubt: a finite number, and 0 if the number is not finite or the scale is NaN.
fn sure(v: f64, g: f64) -> f64 {
    if v.is_finite() && !g.is_nan() { g.min(f64::MAX) } else { 0.0 }
}

/// Below the negative of this number, `gelu` and `silu` are zero in binary64.
const FLAT: f64 = 750.0;

pub(super) fn unary(op: UnaryOp, (from, to): (Scalar, Scalar), (x, g): Pair, slack: f64) -> Pair {
    if op == UnaryOp::Cast {
        return cast(from, to, (x, g), slack);
    }
    let v = pointwise::unary(op, x);
    if !from.is_float() {
        let wrapped = decode(to, truncate(to, v as i128));
        return (wrapped, g);
    }
    if g == DOUBT {
        return (v, DOUBT);
    }
    let size = v.abs();
    // A function that is constant near x passes on no error.
    let spread = || {
        let ends = [x - slack * g, x + slack * g].map(|end| (pointwise::unary(op, end) - v).abs());
        ends.into_iter().filter(|apart| !apart.is_nan()).fold(0.0, f64::max) / slack
    };
    // If the smallest result lies between the ends, the results at the ends may equal the one at x.
    let dip =
        || if x <= slack * g && x >= -FLAT - slack * g { (1.2 * g).min(0.3 / slack) } else { 0.0 };
    let g = match op {
        UnaryOp::Cast | UnaryOp::Neg | UnaryOp::Abs => g,
        UnaryOp::Relu => spread(),
        UnaryOp::Exp | UnaryOp::Exp2 => size * (1.0 + x.abs() + g),
        UnaryOp::Sigmoid => size * (1.0 + (1.0 - size) * x.abs()) + spread(),
        UnaryOp::Log => size + 1.0 + g / x.abs(),
        UnaryOp::Sqrt => size + (g / (2.0 * size)).min((g / slack).sqrt()),
        UnaryOp::Rsqrt => size * (1.0 + g / (2.0 * x.abs())),
        UnaryOp::Rcp => size * (1.0 + size * g),
        UnaryOp::Tanh => size + spread(),
        UnaryOp::Gelu | UnaryOp::Silu => size + x.abs().min(FLAT) + spread().max(dip()),
    };
    (v, sure(v, g))
}

/// A cast to a type of floats. If an error can change which number is nearest, the scale covers the
/// distance between the candidates.
pub(super) fn narrow(role: CastRole, to: Scalar, (x, g): Pair, slack: f64) -> Pair {
    let v = narrowed(role, to, x);
    if g == DOUBT {
        return (v, g);
    }
    let ends = [narrowed(role, to, x - slack * g), narrowed(role, to, x + slack * g)];
    let same = |end: &f64| *end == v || end.is_nan() && v.is_nan();
    let apart = ends.into_iter().filter(|end| !same(end)).map(|end| (end - v).abs());
    match apart.reduce(f64::max) {
        None => (v, 0.0),
        Some(apart) if apart.is_finite() => (v, apart / slack),
        Some(_) => (v, DOUBT),
    }
}

/// For a cast that splits a number, the part of its rounding error that remains. It is so small
/// that a product of two such parts, which algorithms omit, is within [`SLACK`], and so large that
/// a single missing or wrong part is not.
const PART: f64 = 1.0 / 4096.0;

/// The result of a cast to a type of floats without rounding, by the role of the cast in the
/// meaning. A number beyond the range of the type becomes the largest number or the infinity of the
/// type: this is not a rounding.
#[inline]
pub fn narrowed(role: CastRole, to: Scalar, x: f64) -> f64 {
    let nearest = decode(to, encode(to, x));
    let error = nearest - x;
    match role {
        CastRole::Staged | CastRole::Split if is_beyond(to, x, nearest) => nearest,
        CastRole::Staged => x,
        CastRole::Meant => nearest,
        CastRole::Split if error.is_finite() => x + error * PART,
        CastRole::Split => x,
    }
}

/// Whether the result of a cast differs from the number because the number lies beyond the range of
/// the type, rather than by rounding.
#[inline]
pub(crate) fn is_beyond(to: Scalar, number: f64, result: f64) -> bool {
    (result - number).abs() > 0.5 * ulp(to, number)
}

fn cast(from: Scalar, to: Scalar, (x, g): Pair, slack: f64) -> Pair {
    match (from, to) {
        (_, Scalar::Bool) => {
            let doubt = x != 0.0 && x.abs() <= slack * g;
            (f64::from(x != 0.0), if doubt { DOUBT } else { 0.0 })
        }
        (_, to) if to.is_float() => (x, g),
        (from, to) => {
            let v = decode(to, encode(to, x));
            if g == DOUBT {
                return (v, DOUBT);
            }
            // If x is so near to the middle between two integers that an error decides, both are
            // acceptable; exactly in the middle, the even integer is right.
            let tie = ((x - x.floor()) - 0.5).abs();
            let ends = [x - slack * g, x + slack * g].map(|end| decode(to, encode(to, end)));
            let doubt = from.is_float() && tie > 0.0 && tie <= slack * g && ends != [v; 2];
            (
                v,
                if doubt {
                    1.0 / slack
                } else if from.is_float() {
                    0.0
                } else {
                    g
                },
            )
        }
    }
}

/// Whether binary64 may have rounded an integer of 64 bits.
fn is_rounded(from: Scalar, x: f64) -> bool {
    int_range(from).1 > 1 << 53 && x.abs() >= (1u64 << 53) as f64
}

pub(super) fn binary(op: BinaryOp, from: Scalar, (x, gx): Pair, (y, gy): Pair, slack: f64) -> Pair {
    // A rounded integer has lost its low bits, and its products may be any number.
    let lost = !from.is_float() && (is_rounded(from, x) || is_rounded(from, y));
    let both = if lost { DOUBT } else { gx + gy };
    if op.compares() {
        let v = pointwise::binary(op, x, y);
        // The comparison is too close to decide. Numbers that are equal here are equal in the body
        // as well.
        let doubt = both == DOUBT || x != y && (x - y).abs() <= slack * both;
        return (v, if doubt { DOUBT } else { 0.0 });
    }
    if !from.is_float() {
        let v = pointwise::integers(op, from, x, y);
        let g = match op {
            _ if lost || is_rounded(from, v) => DOUBT,
            BinaryOp::Add | BinaryOp::Sub => both,
            BinaryOp::Mul => times(x, gy) + times(y, gx),
            BinaryOp::Min | BinaryOp::Max => gx.max(gy),
            _ if both > 0.0 => (gx + v.abs() * gy) / y.abs() + 1.0 / slack,
            _ => 0.0,
        };
        return (v, g);
    }
    let v = pointwise::binary(op, x, y);
    let exact = is_exact(op, x, y, v);
    let own = |size: f64| if exact { 0.0 } else { size };
    let g = match op {
        BinaryOp::Add | BinaryOp::Sub => own(x.abs() + y.abs()) + both,
        BinaryOp::Mul => own(v.abs()) + times(x, gy) + times(y, gx),
        BinaryOp::Div => own(v.abs()) + (gx + times(v, gy)) / y.abs(),
        BinaryOp::Max | BinaryOp::Maximum => {
            of_extreme((x, gx), v, 1.0, slack).max(of_extreme((y, gy), v, 1.0, slack))
        }
        BinaryOp::Min | BinaryOp::Minimum => {
            of_extreme((x, gx), v, -1.0, slack).max(of_extreme((y, gy), v, -1.0, slack))
        }
        _ => gx.max(gy),
    };
    let zero = |x: f64, g: f64| x == 0.0 && g == 0.0;
    let doubt = both == DOUBT && !(op == BinaryOp::Mul && (zero(x, gx) || zero(y, gy)));
    (v, if doubt { DOUBT } else { sure(v, g) })
}

/// Whether a result in binary64 is exact, however it is computed. A quotient may be computed as the
/// product with a rounded reciprocal, which is exact for powers of two only.
fn is_exact(op: BinaryOp, x: f64, y: f64, v: f64) -> bool {
    let is_power_of_two = |y: f64| y.is_normal() && y.to_bits().trailing_zeros() >= 52;
    // For smaller results, binary64 cannot hold the error of a product.
    let is_large = || v.abs() >= f64::MIN_POSITIVE / f64::EPSILON;
    let error_of_sum = |y: f64| {
        let of_y = v - x;
        (x - (v - of_y)) + (y - of_y)
    };
    match op {
        BinaryOp::Add => error_of_sum(y) == 0.0,
        BinaryOp::Sub => error_of_sum(-y) == 0.0,
        BinaryOp::Mul if x == 0.0 || y == 0.0 => true,
        BinaryOp::Mul => is_large() && libm::fma(x, y, -v) == 0.0,
        BinaryOp::Div => is_power_of_two(y) && (x == 0.0 || is_large()),
        _ => false,
    }
}

/// The error that a factor passes on.
fn times(factor: f64, g: f64) -> f64 {
    if g == 0.0 || factor == 0.0 { 0.0 } else { factor.abs() * g }
}

pub(super) fn select((p, doubt): Pair, x: Pair, y: Pair, slack: f64) -> Pair {
    let chosen = if p == 0.0 { y } else { x };
    if doubt == 0.0 {
        return chosen;
    }
    // Either number is acceptable.
    let apart = if x.0 == y.0 { 0.0 } else { (x.0 - y.0).abs() / slack };
    (chosen.0, if apart.is_nan() { DOUBT } else { x.1.max(y.1) + apart })
}

/// The amount by which a number increases the scale of the largest of several numbers, or with
/// `sign` -1 of the smallest. A number that is too far away, including its error, adds nothing.
fn of_extreme((x, g): Pair, v: f64, sign: f64, slack: f64) -> f64 {
    match x == v {
        true => g,
        false => Some(sign * (x - v) / slack + g).filter(|g| *g > 0.0).unwrap_or(0.0),
    }
}

pub(super) fn reduce(
    op: ReduceOp,
    from: Scalar,
    removed: &[bool],
    need: &Region,
    n: usize,
    input: &Exact,
    slack: f64,
) -> Exact {
    let mut values: Vec<Option<f64>> = vec![None; n];
    let (mut sizes, mut scales) = (vec![0.0f64; n], vec![0.0f64; n]);
    // For `bool`, a single element without doubt may decide.
    let decides = match op {
        ReduceOp::Or if from == Scalar::Bool => Some(1.0),
        ReduceOp::And if from == Scalar::Bool => Some(0.0),
        _ => None,
    };
    let mut decided = vec![false; n];
    let lens: Vec<usize> = need.axes.iter().map(|a| a.len().max(1)).collect();
    for (e, (x, g)) in input.numbers.iter().zip(&input.scales).enumerate() {
        let at = reduced_to(e, &lens, removed);
        let Some(value) = values.get_mut(at) else { continue };
        *value = Some(match value {
            None => *x,
            Some(v) => pointwise::fold(op, from, *v, *x),
        });
        sizes[at] += x.abs();
        decided[at] |= *g == 0.0 && decides == Some(*x);
        match op {
            ReduceOp::Sum => scales[at] += g,
            ReduceOp::Prod => scales[at] += 1.0 + if *g == 0.0 { 0.0 } else { g / x.abs() },
            ReduceOp::Min | ReduceOp::Max | ReduceOp::Minimum | ReduceOp::Maximum => {}
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor if *g > 0.0 => scales[at] = DOUBT,
            ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => {}
        }
    }
    let sign = match op {
        ReduceOp::Max | ReduceOp::Maximum => 1.0,
        ReduceOp::Min | ReduceOp::Minimum => -1.0,
        _ => 0.0,
    };
    if sign != 0.0 {
        for (e, (x, g)) in input.numbers.iter().zip(&input.scales).enumerate() {
            let at = reduced_to(e, &lens, removed);
            if let (Some(Some(v)), Some(scale)) = (values.get(at), scales.get_mut(at)) {
                *scale = scale.max(of_extreme((*x, *g), *v, sign, slack));
            }
        }
    }
    let doubt = input.scales.contains(&DOUBT);
    let of = |(i, v): (usize, Option<f64>)| {
        let v = v.unwrap_or_else(|| pointwise::of_none(op, from));
        if scales[i] == DOUBT && doubt && !decided[i] {
            return (v, DOUBT);
        }
        let g = match op {
            ReduceOp::Sum if from.is_float() => scales[i] + sizes[i],
            ReduceOp::Prod if from.is_float() => scales[i] * v.abs(),
            ReduceOp::Prod => 0.0,
            _ if decided[i] => 0.0,
            _ => scales[i],
        };
        (v, sure(v, g))
    };
    collect(values.into_iter().enumerate().map(of))
}

/// The element of a reduction's output for an element of its input.
pub(super) fn reduced_to(e: usize, lens: &[usize], removed: &[bool]) -> usize {
    let (mut rest, mut at, mut weight) = (e, 0, 1);
    for (len, gone) in lens.iter().zip(removed) {
        if !gone {
            at += rest % len * weight;
            weight *= len;
        }
        rest /= len;
    }
    at
}

/// Adds Σ a·b and Σ |a·b| of matrices without scales, in the order of k. Rows and columns are
/// processed in blocks whose sums fit the L1 cache.
pub(super) fn products(
    [rows, n, k]: [usize; 3],
    a: &[f64],
    b: &[f64],
    (sums, sizes): (&mut [f64], &mut [f64]),
) {
    const ROWS: usize = 256;
    const COLUMNS: usize = 4;
    const DEEP: usize = 4;
    for first in (0..n).step_by(COLUMNS) {
        let columns = first..(first + COLUMNS).min(n);
        for top in (0..rows).step_by(ROWS) {
            let of_rows = top..(top + ROWS).min(rows);
            let mut i = 0;
            while i < k {
                let left = |deep: usize| &a[(i + deep) * rows..][of_rows.clone()];
                let deep = if i + DEEP <= k { DEEP } else { 1 };
                for column in columns.clone() {
                    let factor = |deep: usize| b[i + deep + k * column];
                    let sums = &mut sums[column * rows..][of_rows.clone()];
                    let sizes = &mut sizes[column * rows..][of_rows.clone()];
                    match deep {
                        DEEP => add_products::<DEEP>(left, factor, sums, sizes),
                        _ => add_products::<1>(left, factor, sums, sizes),
                    }
                }
                i += deep;
            }
        }
    }
}

/// Adds `DEEP` products to each sum, one after the other.
fn add_products<'a, const DEEP: usize>(
    left: impl Fn(usize) -> &'a [f64],
    factor: impl Fn(usize) -> f64,
    sums: &mut [f64],
    sizes: &mut [f64],
) {
    let n = sums.len();
    let (sizes, left) = (&mut sizes[..n], std::array::from_fn::<_, DEEP, _>(|i| &left(i)[..n]));
    let factors: [f64; DEEP] = std::array::from_fn(factor);
    for r in 0..n {
        let (mut sum, mut size) = (sums[r], sizes[r]);
        for (left, factor) in left.iter().zip(factors) {
            let product = left[r] * factor;
            sum += product;
            size += product.abs();
        }
        (sums[r], sizes[r]) = (sum, size);
    }
}

/// A·B on a region of the output, plus the previous elements of the output.
pub(super) fn matmul(
    wanted: &Region,
    deep: i64,
    to: Scalar,
    a: &Exact,
    b: &Exact,
    before: Option<Exact>,
) -> Exact {
    let lens: Vec<usize> = wanted.axes.iter().map(Axis::len).collect();
    let (l, m, n) = match lens[..] {
        // The batch modes come first; the first of them varies fastest.
        [ref l @ .., m, n] => (l.iter().product(), m, n),
        _ => (1, lens.iter().product(), 1),
    };
    let (rows, k) = (l * m, usize::try_from(deep).unwrap_or(0));
    let mut out = Exact { numbers: vec![0.0; rows * n], scales: vec![0.0; rows * n] };
    // Errors of the factors matter only if any factor has an error.
    let carried = a.scales.iter().chain(&b.scales).any(|g| *g != 0.0);
    let before_doubt = before.as_ref().is_some_and(|c| c.scales.contains(&DOUBT));
    let doubt = before_doubt || carried && a.scales.iter().chain(&b.scales).any(|g| *g == DOUBT);
    if l == 1 && !carried {
        let sums = (&mut out.numbers[..], &mut out.scales[..]);
        products([rows, n, k], &a.numbers, &b.numbers, sums);
    } else {
        for column in 0..n {
            let of_column = column * rows..(column + 1) * rows;
            let sums = &mut out.numbers[of_column.clone()];
            let scales = &mut out.scales[of_column];
            for i in 0..k {
                let left = &a.numbers[i * rows..(i + 1) * rows];
                let of_left = &a.scales[i * rows..(i + 1) * rows];
                for r in 0..rows {
                    let at = r % l + l * (i + k * column);
                    let (x, y) = (left[r], b.numbers[at]);
                    sums[r] += x * y;
                    scales[r] += (x * y).abs() + times(x, b.scales[at]) + times(y, of_left[r]);
                }
            }
        }
    }
    if let Some(before) = before {
        let old = before.numbers.iter().zip(&before.scales);
        let both = out.numbers.iter_mut().zip(&mut out.scales).zip(old);
        both.for_each(|((s, g), (c, gc))| (*s, *g) = (*s + c, *g + c.abs() + gc));
    }
    if !to.is_float() {
        let wrapped = |v: f64| pointwise::integers(BinaryOp::Add, to, v, 0.0);
        out.numbers.iter_mut().for_each(|v| *v = wrapped(*v));
        // Products of integers are exact.
        if !carried {
            out.scales.fill(0.0);
        }
    }
    let kept = |(v, g): (&f64, &f64)| if doubt && *g == DOUBT { DOUBT } else { sure(*v, *g) };
    let scales = out.numbers.iter().zip(&out.scales).map(kept).collect();
    Exact { numbers: out.numbers, scales }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masked_scores_have_no_weight() {
        let real = (Scalar::F64, Scalar::F64);
        let exp = unary(UnaryOp::Exp, real, (f64::NEG_INFINITY, 3.0), SLACK);
        assert_eq!(collect([exp].into_iter()).scales, [0.0]);
        assert_eq!(exp.0, 0.0);
    }

    #[test]
    fn a_number_near_the_middle_may_be_rounded_either_way() {
        let rounded = |x: f64, g: f64| {
            let pair = narrow(CastRole::Meant, Scalar::Bf16, (x, g), SLACK);
            collect([pair].into_iter())
        };
        let is = |of: &Exact, v: f64| of.is(0, Scalar::F32, v, false);
        let (below, above) = (1.0, 1.0 + 0.5f64.powi(7));
        let middle = 1.0 + 0.5f64.powi(8);
        let sure = rounded(middle - 1e-6, 1.0);
        assert!(is(&sure, below) && !is(&sure, above));
        let doubtful = rounded(middle - 1e-11, 1.0);
        assert!(is(&doubtful, below) && is(&doubtful, above) && !is(&doubtful, 1.02));
        // Numbers without errors are never in doubt; the even neighbor is nearest.
        let exact = rounded(middle, 0.0);
        assert!(is(&exact, below) && !is(&exact, above));
        // A number beyond the largest one of the type is infinitely far from it.
        let largest = 448.0;
        let saturated = narrow(CastRole::Meant, Scalar::E4m3, (1e9, 1e9), SLACK);
        assert_eq!(saturated, (largest, 0.0));
    }

    #[test]
    fn nothing_is_near_an_infinite_number() {
        let of = |v| collect([(v, 1.0)].into_iter());
        assert!(of(f64::INFINITY).is(0, Scalar::F32, f64::INFINITY, false));
        assert!(!of(f64::INFINITY).is(0, Scalar::F32, f64::NEG_INFINITY, false));
        assert!(!of(f64::NEG_INFINITY).is(0, Scalar::F32, -1e30, false));
        assert!(!of(1e30).is(0, Scalar::F32, f64::INFINITY, false));
    }

    #[test]
    fn blocked_products_equal_separate_products() {
        let (rows, n, k) = (300, 7, 6);
        let number = |i: usize| ((i * 37 % 101) as f64 - 50.0) / 8.0;
        let a: Vec<f64> = (0..rows * k).map(number).collect();
        let b: Vec<f64> = (0..k * n).map(|i| number(3 * i + 1)).collect();
        let mut out = Exact { numbers: vec![0.0; rows * n], scales: vec![0.0; rows * n] };
        products([rows, n, k], &a, &b, (&mut out.numbers, &mut out.scales));
        for (r, c) in (0..rows).flat_map(|r| (0..n).map(move |c| (r, c))) {
            let products = (0..k).map(|i| a[r + rows * i] * b[i + k * c]);
            let (sum, size) = products.fold((0.0, 0.0), |(s, g), p| (s + p, g + p.abs()));
            assert_eq!((out.numbers[r + rows * c], out.scales[r + rows * c]), (sum, size));
        }
    }
}
