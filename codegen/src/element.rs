//! Defines [`Element`], the type of a tensor's elements as DLPack names it. Launchers compare it
//! with the tensors that a caller passes: <https://dmlc.github.io/dlpack/latest/c_api.html>.

use carbyne_ir::scalar::Scalar;
use std::fmt;

/// The type of a tensor's elements (`DLDataType`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// The bits of a number.
    pub bits: u8,
    /// The numbers per element.
    pub lanes: u16,
}

/// `DLDataTypeCode` of DLPack 1.3.
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const BOOL: u8 = 6;
    pub(super) const E4M3FN: u8 = 10;
    pub(super) const E5M2: u8 = 12;
}

/// The type codes that a tensor of a scalar may have. The scalar's own code comes first, then those
/// used by libraries without that code.
fn codes(scalar: Scalar) -> &'static [u8] {
    match scalar {
        Scalar::F64 | Scalar::F32 | Scalar::Tf32 | Scalar::F16 => &[code::FLOAT],
        Scalar::Bf16 => &[code::BFLOAT, code::UINT],
        Scalar::E4m3 => &[code::E4M3FN, code::UINT],
        Scalar::E5m2 => &[code::E5M2, code::UINT],
        Scalar::I64 | Scalar::I32 | Scalar::I16 | Scalar::I8 => &[code::INT],
        Scalar::Bool => &[code::BOOL, code::UINT],
        Scalar::U64 | Scalar::U32 | Scalar::U16 | Scalar::U8 | Scalar::Mbarrier => &[code::UINT],
        Scalar::I4 | Scalar::I2 | Scalar::I1 => &[code::UINT, code::INT],
        Scalar::U4 | Scalar::U2 | Scalar::U1 => &[code::UINT],
    }
}

impl Element {
    /// The element in which a scalar is stored. An element holds several scalars of fewer than 8
    /// bits.
    #[must_use]
    pub fn of(scalar: Scalar) -> Element {
        Element { code: codes(scalar)[0], bits: scalar.bits().max(8) as u8, lanes: 1 }
    }

    /// Whether a tensor of the scalar may have elements of this type. Types that array libraries
    /// lack may also be passed as unsigned integers of the same number of bits.
    #[must_use]
    pub fn holds(self, scalar: Scalar) -> bool {
        let own = Element::of(scalar);
        codes(scalar).contains(&self.code) && Element { code: own.code, ..self } == own
    }

    /// The names of the type codes that a tensor of a scalar may have, as in DLPack's header.
    pub(crate) fn code_names(scalar: Scalar) -> impl Iterator<Item = &'static str> {
        codes(scalar).iter().map(|of| match *of {
            code::INT => "kDLInt",
            code::UINT => "kDLUInt",
            code::BFLOAT => "kDLBfloat",
            code::BOOL => "kDLBool",
            code::E4M3FN => "kDLFloat8_e4m3fn",
            code::E5M2 => "kDLFloat8_e5m2",
            _ => "kDLFloat",
        })
    }

    /// The bytes of an element.
    #[must_use]
    pub fn bytes(self) -> u64 {
        (u64::from(self.bits) * u64::from(self.lanes)).div_ceil(8)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Element { code, bits, lanes } = self;
        match *code {
            code::INT => write!(f, "int{bits}")?,
            code::UINT => write!(f, "uint{bits}")?,
            code::FLOAT => write!(f, "float{bits}")?,
            code::BFLOAT => write!(f, "bfloat{bits}")?,
            code::BOOL => f.write_str("bool")?,
            code::E4M3FN => f.write_str("float8_e4m3fn")?,
            code::E5M2 => f.write_str("float8_e5m2")?,
            code => write!(f, "DLPack's type {code} of {bits} bits")?,
        }
        match lanes {
            1 => Ok(()),
            n => write!(f, "x{n}"),
        }
    }
}
