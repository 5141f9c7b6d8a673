//! Provides the contents of global memory before a program runs: the arrays of the caller, and
//! generated elements for all other tensors.
//!
//! Every generated element is a function of the seed, the tensor's name and the element's number in
//! its logical shape (column-major). Strides have no influence: a transposed layout holds an equal
//! matrix. Nothing is stored; elements are computed when they are read.
//! - [`Inputs::Seed`]: floats are uniform in [-1, 1), rounded to their type; integers are from -2
//!   to 2 (0 to 3 if unsigned), as far as the type allows. A float that is passed by value, such as
//!   a scale or an epsilon, lies in [0, 1). If a tensor declares a range of its integers, they are
//!   spread over that range. If a tensor splits a number (`%offsets:[G + 1].i32.GL splits T`), its
//!   elements are the starts of parts of about equal size, some of them empty; with one seed in
//!   four, one part contains everything. Where floats affect decisions of the program
//!   ([`Decisions`](crate::Decisions)), some of them are chosen differently:
//!   - Among the compared floats, one in eight is 0, -0, 1, -1, or a literal of a comparison or
//!     twice that literal, if the type can hold it. Half of these are at equal coordinates in
//!     tensors of one shape, so that they are equal. No divisor is 0.
//!   - For an extreme along some modes, the extreme of each row is at a different coordinate, with
//!     a magnitude above 1: in the first rows at the ends of the modes and next to powers of two,
//!     in the following rows at each coordinate in turn. One row in eight has no number with the
//!     sign of its extreme, so that an extreme that starts from 0 fails. One row in four contains a
//!     number of the other sign with a larger magnitude.
//!   - One in sixteen of the arguments of an exponential is eight times as large. If the argument
//!     is the difference to the largest number of a row, one row in sixteen is instead higher, and
//!     one lower, by 100 divided by the scale factor of the program.
//! - [`Inputs::Ints`]: integers from -2 to 2 (0 to 3 if unsigned) in every type. Products are at
//!   most 4 in magnitude, so a sum over k is exact in f16 up to k = 512, in bf16 up to 64, in f32
//!   up to 2^22. Extremes of rows are 3 and -3, at the coordinates described above; in rows of one
//!   sign, they are -1 and 1 among numbers of 2 to 4.
//!
//! Tensors that a program only writes begin undefined, so a read of them is an error.

use crate::array::Array;
use crate::decisions::Decides;
use crate::num::{decode, encode, int_range};
use carbyne_ir::scalar::Scalar;
use std::sync::Arc;

/// The elements of tensors without an array of the caller.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Inputs {
    /// Random numbers with this seed.
    Seed(u64),
    /// Random small integers with this seed, for exact comparisons.
    Ints(u64),
}

/// The initial elements of one tensor.
#[derive(Clone)]
pub(crate) enum Initial {
    /// The elements are undefined.
    Undefined,
    /// Random numbers of a stream.
    Random(u64),
    /// Random numbers of a stream; floats are not negative.
    Unsigned(u64),
    /// Random small integers of a stream.
    Ints(u64),
    /// Numbers some of which test the decisions that depend on them.
    Deciding(Arc<Deciding>),
    /// Random integers of a stream, at least the first bound and below the second.
    Between(u64, i64, i64),
    /// Distinct integers: (the place · the second number + the third) modulo the fourth, plus the
    /// first.
    Distinct([i64; 4]),
    /// The starts and the end of consecutive parts: stream, number of elements, number of parts.
    Splits(u64, i64, i64),
    /// The caller's array, and the extents of the tensor's modes.
    Array(Arc<Array>, Vec<i64>),
}

impl Initial {
    /// The elements of the tensor of this name, or of the number with this name if `number`.
    pub(crate) fn generated(inputs: Inputs, name: &str, number: bool) -> Self {
        // FNV-1a: tensors with different names get unrelated streams for one seed.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        match inputs {
            Inputs::Seed(seed) if number => Initial::Unsigned(mix(seed ^ hash)),
            Inputs::Seed(seed) => Initial::Random(mix(seed ^ hash)),
            Inputs::Ints(seed) => Initial::Ints(mix(seed ^ hash)),
        }
    }

    /// The elements for a tensor of these modes whose elements affect decisions.
    pub(crate) fn deciding(self, decides: &Decides, scalar: Scalar, modes: &[i64]) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) if scalar != Scalar::Bool => {
                Initial::Deciding(Arc::new(Deciding::new(self, stream, decides, scalar, modes)))
            }
            other => other,
        }
    }

    /// The elements for a tensor that declares a range of its integers.
    pub(crate) fn within(self, (lo, hi): (i64, i64)) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) | Initial::Unsigned(stream) => {
                Initial::Between(stream, lo, hi)
            }
            other => other,
        }
    }

    /// The elements for a tensor that declares a range and `distinct`.
    pub(crate) fn distinct(self, (lo, hi): (i64, i64)) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) | Initial::Unsigned(stream) => {
                let n = hi.saturating_sub(lo).max(1);
                let drawn = |stream: u64| (mix(stream) >> 1) as i64 % n;
                // A factor coprime to the size of the range permutes the range.
                let mut by = drawn(stream).max(1);
                while num_integer::gcd(by, n) > 1 {
                    by += 1;
                }
                Initial::Distinct([lo, by, drawn(stream ^ GOLDEN), n])
            }
            other => other,
        }
    }

    /// The elements for a tensor of `parts + 1` elements that splits `n`.
    pub(crate) fn splitting(self, n: i64, parts: i64) -> Self {
        match self {
            Initial::Random(stream) | Initial::Ints(stream) | Initial::Unsigned(stream) => {
                Initial::Splits(stream, n, parts)
            }
            other => other,
        }
    }

    /// Element `e` of the logical shape, column-major.
    #[inline]
    pub(crate) fn value(&self, scalar: Scalar, e: i64) -> Option<u64> {
        match self {
            Initial::Undefined => None,
            Initial::Deciding(deciding) => deciding.value(scalar, e),
            Initial::Random(stream) if scalar.is_float() => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                // 52 random bits in [1, 2), moved to [-1, 1).
                let unit = f64::from_bits(0x3ff0_0000_0000_0000 | bits >> 12);
                Some(encode(scalar, 2.0 * unit - 3.0))
            }
            Initial::Unsigned(stream) if scalar.is_float() => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let unit = f64::from_bits(0x3ff0_0000_0000_0000 | bits >> 12);
                Some(encode(scalar, unit - 1.0))
            }
            Initial::Random(stream) | Initial::Unsigned(stream) | Initial::Ints(stream) => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let (lo, hi) = if scalar.is_float() { (-2, 2) } else { int_range(scalar) };
                let (lo, hi) = if lo < 0 { (lo.max(-2), hi.min(2)) } else { (0, hi.min(3)) };
                let n = (hi - lo + 1) as u64;
                let value = lo + i128::from(((bits >> 32) * n) >> 32);
                Some(if scalar.is_float() {
                    encode(scalar, value as f64)
                } else {
                    crate::num::truncate(scalar, value)
                })
            }
            Initial::Between(stream, lo, hi) => {
                let bits = mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN)));
                let n = i128::from(*hi) - i128::from(*lo);
                let offset = (i128::from(bits >> 1) * n.max(1)) >> 63;
                Some(crate::num::truncate(scalar, i128::from(*lo) + offset))
            }
            Initial::Distinct([lo, by, from, n]) => {
                let [lo, by, from, n] = [*lo, *by, *from, *n].map(i128::from);
                let at = (i128::from(e) * by + from).rem_euclid(n);
                Some(crate::num::truncate(scalar, lo + at))
            }
            // Some streams assign everything to one part.
            Initial::Splits(stream, n, parts) if stream % 4 == 0 => {
                let own = (mix(*stream) >> 1) as i64 % (*parts).max(1);
                Some(crate::num::truncate(scalar, i128::from(if e > own { *n } else { 0 })))
            }
            Initial::Splits(stream, n, parts) => {
                // Equal parts, with each end moved by up to half a part; ends that meet leave an
                // empty part.
                let moved = match e {
                    0 => 0,
                    e if e >= *parts => 0,
                    _ => {
                        (mix(stream.wrapping_add((e as u64).wrapping_mul(GOLDEN))) >> 62) as i128
                            * 2
                            - 3
                    }
                };
                let at =
                    (i128::from(e) * 6 + moved) * i128::from(*n) / (i128::from(*parts).max(1) * 6);
                Some(crate::num::truncate(scalar, at.clamp(0, i128::from(*n))))
            }
            Initial::Array(array, modes) => {
                // The array is row-major: the last mode varies fastest.
                let (mut rest, mut at) = (e, 0i64);
                let mut coordinates = [0i64; 8];
                if modes.len() <= coordinates.len() {
                    for (c, n) in coordinates.iter_mut().zip(modes) {
                        *c = rest % n;
                        rest /= n;
                    }
                    for (c, n) in coordinates.iter().zip(modes) {
                        at = at * n + c;
                    }
                } else {
                    for (c, n) in crate::plan::coordinates(modes, e).iter().zip(modes) {
                        at = at * n + c;
                    }
                }
                array.values.get(usize::try_from(at).ok()?).copied()
            }
        }
    }
}

/// Numbers some of which test the decisions that depend on them.
pub(crate) struct Deciding {
    /// All other elements.
    others: Initial,
    stream: u64,
    /// The numbers that elements are compared with; empty if comparisons need no special elements.
    compared: Vec<f64>,
    /// The number of literals in `compared`; they come first.
    literals: usize,
    /// Whether the elements are arguments of an exponential.
    exponential: bool,
    /// The amount by which some rows are moved, for an exponential of the difference to the row's
    /// largest number; 0 if rows are not moved.
    shift: f64,
    /// The rows whose largest element is computed, and those whose smallest element is.
    extremes: [Option<Rows>; 2],
}

/// The rows of a tensor, each with one extreme element.
struct Rows {
    /// The extents of the tensor's modes, and whether each mode is a mode of the row.
    modes: Vec<(i64, bool)>,
    /// The number of elements of a row.
    len: i64,
    /// The places of the extremes in the first rows.
    first: Vec<i64>,
    /// The offset of the places in the following rows.
    moved: i64,
}

impl Rows {
    fn new(axes: &[usize], modes: &[i64], stream: u64) -> Option<Self> {
        let modes: Vec<(i64, bool)> =
            modes.iter().enumerate().map(|(i, n)| (*n, axes.contains(&i))).collect();
        let of_row = modes.iter().filter(|(_, own)| *own);
        let len = of_row.clone().try_fold(1i64, |p, (n, _)| p.checked_mul(*n))?;
        if len < 2 || of_row.count() == 0 {
            return None;
        }
        // The ends, and places where tiles and vectors may end.
        let mut first = vec![len - 1, 0];
        let mut power = 1i64;
        while power < len {
            first.extend([power - 1, power, len - 1 - power, len - power]);
            power = power.saturating_mul(2);
        }
        let mut seen = std::collections::BTreeSet::new();
        first.retain(|at| seen.insert(*at));
        Some(Rows { modes, len, first, moved: (mix(stream) >> 1) as i64 % len })
    }

    /// The row of an element of the logical shape, and its place in the row.
    fn at(&self, e: i64) -> (i64, i64) {
        let (mut rest, mut row, mut place) = (e, (0i64, 1i64), (0i64, 1i64));
        for (n, own) in &self.modes {
            let to = if *own { &mut place } else { &mut row };
            to.0 += rest % n * to.1;
            to.1 *= n;
            rest /= n;
        }
        (row.0, place.0)
    }

    /// The place of the row's extreme.
    fn extreme(&self, row: i64) -> i64 {
        let first = self.first.len() as i64;
        // The places of `first` in turn, then all places.
        let turn = row % (first + self.len);
        match usize::try_from(turn).ok().and_then(|t| self.first.get(t)) {
            Some(at) => *at,
            None => (turn - first + self.moved) % self.len,
        }
    }
}

/// The kinds of rows with an extreme.
enum Kind {
    /// The extreme is beyond all other elements.
    Ordinary,
    /// No element has the sign of an ordinary extreme.
    OneSided,
    /// The element at this place has the other sign and a larger magnitude.
    Opposite(i64),
}

impl Deciding {
    fn new(others: Initial, stream: u64, decides: &Decides, scalar: Scalar, modes: &[i64]) -> Self {
        let is_random = matches!(others, Initial::Random(_)) && scalar.is_float();
        let has = |n: &f64| decode(scalar, encode(scalar, *n)) == *n;
        let mut compared = vec![];
        if decides.compared && is_random {
            let moderate = decides.literals.iter().filter(|n| n.abs() <= 256.0 && **n != 0.0);
            let twice = moderate.flat_map(|n| [*n, n * 2.0]).filter(has);
            compared.extend(twice);
        }
        let literals = compared.len();
        if decides.compared && is_random {
            compared.extend([1.0, -1.0]);
            if !decides.divides {
                compared.extend([0.0, -0.0]);
            }
        }
        // If both extremes are computed, the smallest lies in the other half of the rows.
        let rows = |axes: &[usize]| Rows::new(axes, modes, stream);
        let extremes = [rows(&decides.largest), rows(&decides.smallest)];
        let exponential = decides.exponential && is_random;
        let scale = decides.scale.abs().clamp(0.1, 1000.0);
        let shifts = exponential && decides.shifted && scalar.bits() >= 16;
        let shift = if shifts { 100.0 / scale } else { 0.0 };
        Deciding { others, stream, compared, literals, exponential, shift, extremes }
    }

    fn value(&self, scalar: Scalar, e: i64) -> Option<u64> {
        let bits = mix(self.stream ^ GOLDEN.wrapping_mul(e as u64 ^ 0x5bd1_e995));
        let moved = self.moved(e);
        if let Some(value) = self.extreme(scalar, e, bits, moved) {
            return Some(value);
        }
        let place = mix(GOLDEN ^ e as u64);
        let one_sided =
            self.rows(e).filter(|_| scalar.is_float()).map_or(0, |(sign, kind)| match kind {
                Kind::OneSided => sign,
                Kind::Ordinary | Kind::Opposite(_) => 0,
            });
        if moved == 0.0 && one_sided == 0 && !self.compared.is_empty() && place.is_multiple_of(8) {
            // The choice depends on the place alone, or also on the tensor.
            let pick = if place >> 8 & 1 == 0 { place >> 9 } else { bits };
            let from = match self.literals {
                0 => &self.compared[..],
                n if pick % 2 == 0 => &self.compared[..n],
                n => &self.compared[n..],
            };
            return Some(encode(scalar, from[(pick >> 1) as usize % from.len()]));
        }
        let value = self.others.value(scalar, e)?;
        if one_sided != 0 && moved == 0.0 {
            let least = if matches!(self.others, Initial::Random(_)) { 1.0 } else { 2.0 };
            let away = decode(scalar, value).abs() + least;
            return Some(encode(scalar, -one_sided as f64 * away));
        }
        let larger = self.exponential && self.shift == 0.0 && bits.is_multiple_of(16);
        match (moved, larger) {
            (0.0, false) => Some(value),
            (_, false) => Some(encode(scalar, decode(scalar, value) + moved)),
            (_, true) => Some(encode(scalar, 8.0 * decode(scalar, value))),
        }
    }

    /// The amount by which the element's row is moved.
    fn moved(&self, e: i64) -> f64 {
        let Some(rows) = self.extremes[0].as_ref().filter(|_| self.shift != 0.0) else {
            return 0.0;
        };
        let (row, _) = rows.at(e);
        // The first rows are ordinary.
        match mix(self.stream ^ row as u64) % 16 {
            0 if row > 0 => self.shift,
            1 if row > 0 => -self.shift,
            _ => 0.0,
        }
    }

    /// The sign of the extreme and the kind of the element's row, if only one extreme is computed.
    fn rows(&self, e: i64) -> Option<(i64, Kind)> {
        let (rows, sign) = match &self.extremes {
            [Some(rows), None] => (rows, 1),
            [None, Some(rows)] => (rows, -1),
            _ => return None,
        };
        let (row, _) = rows.at(e);
        let drawn = mix(self.stream.rotate_left(17) ^ row as u64);
        let kind = match drawn % 8 {
            // The first rows are ordinary.
            0 if row > 1 => Kind::OneSided,
            1 | 2 if row > 1 => {
                let behind = 1 + (drawn >> 8) as i64 % (rows.len - 1).max(1);
                Kind::Opposite((rows.extreme(row) + behind.abs()) % rows.len)
            }
            _ => Kind::Ordinary,
        };
        Some((sign, kind))
    }

    /// The element, if it is the extreme of its row.
    fn extreme(&self, scalar: Scalar, e: i64, bits: u64, moved: f64) -> Option<u64> {
        // If both extremes are computed, rows take turns.
        let both = self.extremes.iter().all(Option::is_some);
        let kind = self.rows(e).filter(|_| scalar.is_float() && moved == 0.0).map(|(_, kind)| kind);
        let is_random = matches!(self.others, Initial::Random(_));
        for (rows, sign) in self.extremes.iter().zip([1i64, -1]) {
            let Some(rows) = rows else { continue };
            let (row, place) = rows.at(e);
            let own = !both || (row % 2 == 0) == (sign > 0);
            if let Some(Kind::Opposite(at)) = kind
                && at == place
            {
                return Some(encode(scalar, -sign as f64 * if is_random { 2.0 } else { 4.0 }));
            }
            if !own || rows.extreme(if both { row / 2 } else { row }) != place {
                continue;
            }
            if let Some(Kind::OneSided) = kind {
                return Some(encode(scalar, -sign as f64 * if is_random { 0.5 } else { 1.0 }));
            }
            if scalar.is_float() {
                let beyond = match self.others {
                    // Above 1, and below 2.
                    Initial::Random(_) => 1.25 + 0.5 * (bits >> 12) as f64 * 0.5f64.powi(52),
                    _ => 3.0,
                };
                return Some(encode(scalar, sign as f64 * beyond + moved));
            }
            let (lo, hi) = int_range(scalar);
            let beyond = i128::from(if lo < 0 { 3 * sign } else { 4 * sign });
            if (lo..=hi).contains(&beyond) {
                return Some(crate::num::truncate(scalar, beyond));
            }
        }
        None
    }
}

pub(crate) const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::num::decode;

    #[test]
    fn numbers_are_spread_and_never_all_zero() {
        let initial = Initial::generated(Inputs::Seed(1), "A", false);
        let values: Vec<f64> = (0..10_000)
            .map(|e| decode(Scalar::F32, initial.value(Scalar::F32, e).unwrap()))
            .collect();
        let mean = values.iter().sum::<f64>() / 10_000.0;
        let square = values.iter().map(|v| v * v).sum::<f64>() / 10_000.0;
        assert!(mean.abs() < 0.03 && (square - 1.0 / 3.0).abs() < 0.02, "{mean} {square}");
        assert!(values.iter().all(|v| (-1.0..1.0).contains(v)));
        let other = Initial::generated(Inputs::Seed(1), "B", false);
        assert_ne!(initial.value(Scalar::F32, 0), other.value(Scalar::F32, 0));
    }

    #[test]
    fn integers_cover_their_range() {
        let initial = Initial::generated(Inputs::Ints(7), "A", false);
        for (scalar, lo, hi) in [
            (Scalar::F16, -2.0, 2.0),
            (Scalar::I8, -2.0, 2.0),
            (Scalar::U4, 0.0, 3.0),
            (Scalar::I1, -1.0, 0.0),
            (Scalar::Bool, 0.0, 1.0),
        ] {
            let values: Vec<f64> =
                (0..1000).map(|e| decode(scalar, initial.value(scalar, e).unwrap())).collect();
            assert_eq!(values.iter().copied().fold(f64::INFINITY, f64::min), lo, "{scalar}");
            assert_eq!(values.iter().copied().fold(f64::NEG_INFINITY, f64::max), hi, "{scalar}");
        }
    }

    fn deciding(inputs: Inputs, decides: &Decides, scalar: Scalar, modes: &[i64]) -> Vec<f64> {
        let initial = Initial::generated(inputs, "X", false).deciding(decides, scalar, modes);
        let n = modes.iter().product();
        (0..n).map(|e| decode(scalar, initial.value(scalar, e).unwrap())).collect()
    }

    #[test]
    fn extremes_lie_everywhere_in_turn() {
        let (m, n) = (64usize, 33usize);
        let decides = Decides { largest: vec![1], compared: true, ..Decides::default() };
        for (inputs, scalar) in [
            (Inputs::Seed(0), Scalar::F32),
            (Inputs::Seed(7), Scalar::F16),
            (Inputs::Ints(3), Scalar::F32),
            (Inputs::Seed(1), Scalar::I32),
            (Inputs::Seed(1), Scalar::U8),
        ] {
            let values = deciding(inputs, &decides, scalar, &[m as i64, n as i64]);
            let mut places = std::collections::BTreeSet::new();
            for row in 0..m {
                let of = |place: usize| values[row + m * place];
                let most = (0..n).map(of).fold(f64::NEG_INFINITY, f64::max);
                let all: Vec<usize> = (0..n).filter(|p| of(*p) == most).collect();
                assert_eq!(all.len(), 1, "{scalar}: {all:?} of row {row}");
                places.extend(all.iter().copied());
                if row < 2 {
                    assert_eq!(all[0], if row == 0 { n - 1 } else { 0 });
                }
            }
            assert_eq!(places.len(), n, "{scalar}: {places:?}");
        }
    }

    #[test]
    fn compared_numbers_are_sometimes_equal() {
        let decides = |divides| Decides {
            compared: true,
            literals: vec![6.0, 0.1, 1e30],
            divides,
            ..Decides::default()
        };
        let all = deciding(Inputs::Seed(2), &decides(false), Scalar::F16, &[1000]);
        let count = |v: f64| all.iter().filter(|x| **x == v).count();
        let zeros = all.iter().filter(|x| x.to_bits() == 0 || x.to_bits() == 1 << 63).count();
        assert!(zeros > 10 && zeros < 60 && count(6.0) > 10 && count(12.0) > 10, "{zeros}");
        assert!(all.iter().all(|x| x.abs() <= 12.0));
        let ordinary = all.iter().filter(|x| x.abs() < 1.0 && **x != 0.0).count();
        assert!(ordinary > 800, "{ordinary}");
        let divisors = deciding(Inputs::Seed(2), &decides(true), Scalar::F16, &[1000]);
        assert!(divisors.iter().all(|x| *x != 0.0));
    }
}
