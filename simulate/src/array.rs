//! Defines [`Array`], a dense array of scalars: the form of the inputs and the outputs of a run. An
//! array is read from and written to files in NumPy's `.npy` format, and is made from bytes or
//! numbers in memory. Files of versions 1 to 3 in C or Fortran order are read, and version 1 in C
//! order is written.
//!
//! Elements are bits of the tensor's scalar type, row-major. Types that NumPy lacks are stored as
//! integers of their width: bf16 as `u2`, the 8-bit floats as `u1`; integers below 8 bits as `i1`
//! or `u1`, checked against their range; tf32 as `f4`. Only little-endian files can be read.
//!
//! This module parses the format itself, because a header is one line:
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. Invariant: no allocation depends
//! on a size that the file merely claims.

mod error;
mod header;

pub use error::ArrayError;

use crate::num::{decode, encode, int_range, truncate};
use carbyne_ir::scalar::Scalar;
use header::{Header, MAX_MODES};

/// A dense array.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// The scalar type of the elements.
    pub scalar: Scalar,
    /// The extents, the slowest mode first.
    pub shape: Vec<u64>,
    /// The elements as bits, row-major.
    pub values: Vec<u64>,
}

const MAGIC: &[u8] = b"\x93NUMPY";
/// The error for data that is too long or too short.
const UNFIT: ArrayError = ArrayError::Format("its number of elements does not match its shape");
/// The longest accepted header, in bytes.
const MAX_HEADER: usize = 1 << 14;

impl Array {
    /// Reads the bytes of a file as elements of a scalar type.
    ///
    /// # Errors
    /// [`ArrayError`].
    pub fn from_npy(bytes: &[u8], scalar: Scalar) -> Result<Self, ArrayError> {
        let (header, data) = split(bytes)?;
        let wanted = type_of(scalar);
        let Header { descr: found, fortran_order, shape } = Header::read(header)?;
        let spelled = found.strip_prefix(['<', '|', '=']).unwrap_or(found);
        if spelled != wanted {
            let found = found.chars().take(32).collect();
            return Err(ArrayError::Type { found, wanted });
        }
        if shape.len() > MAX_MODES {
            return Err(UNFIT);
        }
        let mut array = Array::from_bytes(scalar, &shape, data)?;
        if fortran_order {
            array.values = transposed(&array.shape, &array.values);
        }
        Ok(array)
    }

    /// An array from elements in memory, row-major: the lowest byte first, and each integer of
    /// fewer than 8 bits in its own byte.
    ///
    /// ```
    /// use carbyne_ir::scalar::Scalar;
    /// use carbyne_simulate::Array;
    ///
    /// let a = Array::from_bytes(Scalar::I4, &[2], &[7, 0xf8]).unwrap();
    /// assert_eq!(a.numbers().collect::<Vec<_>>(), [7.0, -8.0]);
    /// assert_eq!(a.to_bytes(), [7, 0xf8]);
    /// assert!(Array::from_bytes(Scalar::I4, &[2], &[7, 8]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Format`] if the number of bytes does not match the shape,
    /// [`ArrayError::Range`] for a value outside the range of an integer of fewer than 8 bits or of
    /// `bool`.
    pub fn from_bytes(scalar: Scalar, shape: &[u64], data: &[u8]) -> Result<Self, ArrayError> {
        let width = (scalar.bits() as usize / 8).max(1);
        let size = shape.iter().try_fold(width as u64, |p, n| p.checked_mul(*n));
        if size != Some(data.len() as u64) {
            return Err(UNFIT);
        }
        let element = |c: &[u8]| {
            let mut le = [0u8; 8];
            le[..width].copy_from_slice(c);
            u64::from_le_bytes(le)
        };
        let mut values: Vec<u64> = data.chunks_exact(width).map(element).collect();
        check_range(scalar, &mut values)?;
        Ok(Array { scalar, shape: shape.to_vec(), values })
    }

    /// The elements in the memory layout of [`Array::from_bytes`].
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let width = (self.scalar.bits() as usize / 8).max(1);
        let is_signed = int_range_of(self.scalar).0 < 0;
        let wide = |v: &u64| match is_signed {
            true => crate::num::decode_int(self.scalar, *v) as u64,
            false => *v,
        };
        self.values.iter().flat_map(|v| wide(v).to_le_bytes().into_iter().take(width)).collect()
    }

    /// The bytes of a file, version 1, C order.
    ///
    /// # Errors
    /// [`ArrayError::Format`] if the number of elements does not match the shape.
    pub fn to_npy(&self) -> Result<Vec<u8>, ArrayError> {
        let size = self.shape.iter().try_fold(1u64, |p, n| p.checked_mul(*n));
        if size != Some(self.values.len() as u64) || self.shape.len() > MAX_MODES {
            return Err(ArrayError::Format("its shape does not match its number of elements"));
        }
        let kind = type_of(self.scalar);
        let order = if kind.ends_with('1') { '|' } else { '<' };
        let shape: String = self.shape.iter().map(|n| format!("{n}, ")).collect();
        let shape =
            if self.shape.len() > 1 { shape.trim_end_matches(", ") } else { shape.trim_end() };
        let mut header =
            format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
        // The data begins at a multiple of 64 bytes.
        while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
            header.push(' ');
        }
        header.push('\n');
        let mut bytes = MAGIC.to_vec();
        bytes.extend([1, 0]);
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(self.to_bytes());
        Ok(bytes)
    }

    /// An array of numbers, row-major; floating-point types round each number.
    ///
    /// ```
    /// use carbyne_ir::scalar::Scalar;
    /// use carbyne_simulate::Array;
    ///
    /// let a = Array::from_numbers(Scalar::F16, &[2, 2], &[1.0, 2.0, 3.0, 0.1]).unwrap();
    /// assert_eq!(a.numbers().collect::<Vec<_>>(), [1.0, 2.0, 3.0, 0.0999755859375]);
    /// assert!(Array::from_numbers(Scalar::I8, &[1], &[300.0]).is_err());
    /// ```
    ///
    /// # Errors
    /// [`ArrayError::Count`] if the number of numbers does not match the shape,
    /// [`ArrayError::Number`] for a number that an integer type or `bool` cannot hold.
    pub fn from_numbers(
        scalar: Scalar,
        shape: &[u64],
        numbers: &[f64],
    ) -> Result<Self, ArrayError> {
        let wanted = shape.iter().fold(1u64, |n, extent| n.saturating_mul(*extent));
        if wanted != numbers.len() as u64 {
            return Err(ArrayError::Count { found: numbers.len(), wanted });
        }
        if let Some(value) = numbers.iter().find(|n| !scalar.takes(**n)) {
            return Err(ArrayError::Number { value: value.to_string(), scalar });
        }
        let values = numbers.iter().map(|n| encode(scalar, *n)).collect();
        Ok(Array { scalar, shape: shape.to_vec(), values })
    }

    /// The elements as numbers, row-major.
    pub fn numbers(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().map(|v| decode(self.scalar, *v))
    }

    /// The element at an index of the row-major list, as a number.
    #[must_use]
    pub fn number(&self, i: usize) -> Option<f64> {
        self.values.get(i).map(|v| decode(self.scalar, *v))
    }
}

/// Splits a file into header and data.
fn split(bytes: &[u8]) -> Result<(&str, &[u8]), ArrayError> {
    let cut = ArrayError::Format("it is cut off");
    let rest =
        bytes.strip_prefix(MAGIC).ok_or(ArrayError::Format("the magic bytes are missing"))?;
    let (start, len) = match rest {
        [1, _, a, b, ..] => (4, usize::from(u16::from_le_bytes([*a, *b]))),
        [2 | 3, _, a, b, c, d, ..] => (6, u32::from_le_bytes([*a, *b, *c, *d]) as usize),
        [v, ..] if *v > 3 => return Err(ArrayError::Format("its version is unknown")),
        _ => return Err(cut),
    };
    if len > MAX_HEADER {
        return Err(ArrayError::Format("its header is too long"));
    }
    let header = rest.get(start..start + len).ok_or(cut)?;
    let header =
        std::str::from_utf8(header).map_err(|_| ArrayError::Format("its header is not UTF-8"))?;
    Ok((header, &rest[start + len..]))
}

/// The numpy name of an element type, without the byte order.
fn type_of(scalar: Scalar) -> &'static str {
    use Scalar as S;
    match scalar {
        S::F64 => "f8",
        S::F32 | S::Tf32 => "f4",
        S::F16 => "f2",
        S::Bf16 | S::U16 => "u2",
        S::I64 => "i8",
        S::I32 => "i4",
        S::I16 => "i2",
        S::I8 | S::I4 | S::I2 | S::I1 => "i1",
        S::U64 | S::Mbarrier => "u8",
        S::U32 => "u4",
        S::U8 | S::U4 | S::U2 | S::U1 | S::E4m3 | S::E5m2 => "u1",
        S::Bool => "b1",
    }
}

fn int_range_of(scalar: Scalar) -> (i128, i128) {
    if scalar.is_float() { (0, 0) } else { int_range(scalar) }
}

/// Integers below 8 bits are stored in bytes, whose values may be out of range.
fn check_range(scalar: Scalar, values: &mut [u64]) -> Result<(), ArrayError> {
    if scalar.bits() >= 8 && scalar != Scalar::Bool {
        return Ok(());
    }
    let (lo, hi) = int_range(scalar);
    for v in values {
        let value = if lo < 0 { i128::from(*v as u8 as i8) } else { i128::from(*v) };
        if !(lo..=hi).contains(&value) {
            return Err(ArrayError::Range { value, scalar });
        }
        *v = truncate(scalar, value);
    }
    Ok(())
}

/// Converts from first-mode-fastest to last-mode-fastest order.
fn transposed(shape: &[u64], values: &[u64]) -> Vec<u64> {
    let modes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    let mut out = vec![0; values.len()];
    for (e, v) in values.iter().enumerate() {
        let coordinates = crate::plan::coordinates(&modes, e as i64);
        let at = coordinates.iter().zip(&modes).fold(0, |at, (c, n)| at * n + c);
        out[at as usize] = *v;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_round_trip() {
        for scalar in Scalar::ALL {
            let values = (0..6).map(|i| truncate(*scalar, i % 2)).collect();
            for shape in [vec![6], vec![2, 3], vec![1, 6, 1]] {
                let array = Array { scalar: *scalar, shape, values: Vec::clone(&values) };
                let bytes = array.to_npy().unwrap();
                assert_eq!(bytes.len() % 64, 6 * (scalar.bits() as usize / 8).max(1) % 64);
                assert_eq!(Array::from_npy(&bytes, *scalar).as_ref(), Ok(&array), "{scalar}");
            }
        }
        let scalar = Array { scalar: Scalar::F32, shape: vec![], values: vec![7] };
        assert_eq!(Array::from_npy(&scalar.to_npy().unwrap(), Scalar::F32), Ok(scalar));
    }

    #[test]
    fn fortran_order_is_turned() {
        let array =
            Array { scalar: Scalar::I32, shape: vec![2, 3], values: vec![0, 1, 2, 3, 4, 5] };
        let bytes = array.to_npy().unwrap();
        let text = String::from_utf8_lossy(&bytes).replace("False,", "True, ");
        assert!(text.contains("True"));
        let at = bytes.windows(6).position(|w| w == b"False,").unwrap();
        let mut bytes = bytes;
        bytes[at..at + 6].copy_from_slice(b"True, ");
        let turned = Array::from_npy(&bytes, Scalar::I32).unwrap();
        assert_eq!(turned.values, [0, 2, 4, 1, 3, 5]);
    }

    #[test]
    fn refuses_files_that_are_not_arrays() {
        let good = Array { scalar: Scalar::F32, shape: vec![2], values: vec![1, 2] };
        let good = good.to_npy().unwrap();
        for n in 0..good.len() {
            assert!(Array::from_npy(&good[..n], Scalar::F32).is_err(), "{n}");
        }
        assert!(matches!(Array::from_npy(&good, Scalar::F16), Err(ArrayError::Type { .. })));
        let text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'shape': (2,), }\n";
        let mut twice = good[..8].to_vec();
        twice.extend((text.len() as u16).to_le_bytes());
        twice.extend(text.bytes().chain(good[good.len() - 8..].iter().copied()));
        let error = Array::from_npy(&twice, Scalar::F32).unwrap_err();
        assert_eq!(error, ArrayError::Format("its header has a duplicate key"));
        let huge = String::from_utf8_lossy(&good[..128]).replace("(2,)", "(99999999999999,)");
        assert!(Array::from_npy(huge.as_bytes(), Scalar::F32).is_err());
        let nibble = Array { scalar: Scalar::U8, shape: vec![1], values: vec![16] };
        let nibble = nibble.to_npy().unwrap();
        assert_eq!(
            Array::from_npy(&nibble, Scalar::U4),
            Err(ArrayError::Range { value: 16, scalar: Scalar::U4 })
        );
    }
}
