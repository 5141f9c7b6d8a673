//! Comparison of a device with the simulator, where a program's meaning is what its bodies do.

use crate::Array;
use crate::num::ulp;
use crate::report::Outputs;

/// Sums in another order and approximations differ by less than this part of a tensor's largest element, as
/// long as they are carried in binary32: results of 256 sums of 2^-24 each.
const CARRIED: f64 = 1.0 / 65536.0;

/// How the tensors that a device left behind compare with those that the simulator did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Near {
    /// Elements compared, of all tensors.
    pub elements: u64,
    /// Largest difference.
    pub max_error: f64,
    /// Largest difference in units of what is allowed: of floats, a unit in the last place of the type and
    /// 2^-16, both of the tensor's largest element; of integers, nothing.
    pub max_ratio: f64,
    /// The first element that is farther apart: tensor, row-major index, found, wanted.
    pub first: Option<(String, usize, f64, f64)>,
}

/// Compares all tensors of the caller of which the simulator knows every element; none where that is none.
#[must_use]
pub fn near(found: &Outputs, wanted: &Outputs) -> Option<Near> {
    let mut out = Near::default();
    for name in wanted.names() {
        let (Some(found), Some(wanted)) = (found.get(name), wanted.get(name)) else { continue };
        compare(name, &found, &wanted, &mut out);
    }
    (out.elements > 0).then_some(out)
}

fn compare(name: &str, found: &Array, wanted: &Array, out: &mut Near) {
    let numbers = |a: &Array| (0..a.values.len()).filter_map(|i| a.number(i)).collect::<Vec<_>>();
    let (found, scalar, wanted) = (numbers(found), wanted.scalar, numbers(wanted));
    let finite = wanted.iter().filter(|x| x.is_finite());
    let largest = finite.fold(0.0f64, |m, x| m.max(x.abs()));
    let allowed = match scalar.is_float() {
        true => ulp(scalar, largest) + CARRIED * largest,
        false => 0.0,
    };
    out.elements += wanted.len() as u64;
    for (i, (f, w)) in found.iter().zip(&wanted).enumerate() {
        let same = f == w || (f.is_nan() && w.is_nan());
        let error = if same { 0.0 } else { (f - w).abs() };
        let ratio = match error {
            0.0 => 0.0,
            e if e <= allowed => e / allowed,
            e if allowed > 0.0 && e.is_finite() => e / allowed,
            _ => f64::INFINITY,
        };
        out.max_error = out.max_error.max(error);
        out.max_ratio = out.max_ratio.max(ratio);
        if ratio > 1.0 && out.first.is_none() {
            out.first = Some((name.to_owned(), i, *f, *w));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::scalar::Scalar;

    fn array(scalar: Scalar, values: &[u64]) -> Array {
        Array { scalar, shape: vec![values.len() as u64], values: values.to_vec() }
    }

    fn compared(scalar: Scalar, found: &[u64], wanted: &[u64]) -> Near {
        let mut out = Near::default();
        compare("x", &array(scalar, found), &array(scalar, wanted), &mut out);
        out
    }

    #[test]
    fn a_neighbor_is_near_and_the_next_is_not() {
        // 1.0 of f16 and its neighbors.
        let near = compared(Scalar::F16, &[0x3c00, 0x3c01], &[0x3c00, 0x3c00]);
        assert!(near.first.is_none() && near.max_error > 0.0 && near.elements == 2, "{near:?}");
        let far = compared(Scalar::F16, &[0x3c00, 0x3c02], &[0x3c00, 0x3c00]);
        assert_eq!(far.first.map(|f| f.1), Some(1));
        // No number is near nothing but no number.
        assert!(compared(Scalar::F16, &[0x7e00], &[0x3c00]).first.is_some());
        assert!(compared(Scalar::F16, &[0x7e00], &[0x7e00]).first.is_none());
    }

    #[test]
    fn integers_are_exact() {
        assert!(compared(Scalar::I32, &[5], &[5]).first.is_none());
        assert!(compared(Scalar::I32, &[5], &[6]).first.is_some());
    }
}
