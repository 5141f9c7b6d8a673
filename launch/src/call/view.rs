//! Tensors of the caller, as DLPack describes them.

use carbyne_ir::scalar::Scalar;
use std::fmt;

/// Where a tensor lies (`DLDevice`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// `DLDeviceType`.
    pub kind: i32,
    /// Counted from 0 among devices of the kind.
    pub number: i32,
}

impl Device {
    /// The host's memory.
    pub const CPU: i32 = 1;
    /// The memory of a CUDA device.
    pub const CUDA: i32 = 2;
    /// Memory that the driver moves between a CUDA device and the host.
    pub const CUDA_MANAGED: i32 = 13;

    /// Whether it is a CUDA device's memory.
    #[must_use]
    pub fn is_cuda(self) -> bool {
        matches!(self.kind, Device::CUDA | Device::CUDA_MANAGED)
    }

    /// Whether both are the memory of one device.
    #[must_use]
    pub fn is(self, other: Device) -> bool {
        self.number == other.number
            && (self.kind == other.kind || self.is_cuda() && other.is_cuda())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Device::CPU => f.write_str("the CPU"),
            Device::CUDA | Device::CUDA_MANAGED => write!(f, "cuda:{}", self.number),
            kind => write!(f, "a device of DLPack's type {kind}"),
        }
    }
}

/// The type of a tensor's elements (`DLDataType`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// `DLDataTypeCode`.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an element.
    pub lanes: u16,
}

/// `DLDataTypeCode` of DLPack 1.3.
mod code {
    pub(super) const INT: u8 = 0;
    pub(super) const UINT: u8 = 1;
    pub(super) const FLOAT: u8 = 2;
    pub(super) const BFLOAT: u8 = 4;
    pub(super) const BOOL: u8 = 6;
    pub(super) const E4M3: u8 = 8;
    pub(super) const E4M3FN: u8 = 10;
    pub(super) const E5M2: u8 = 12;
}

impl Element {
    /// The element in which a scalar is stored; several of them if it has fewer than 8 bits.
    #[must_use]
    pub fn of(scalar: Scalar) -> Element {
        let code = match scalar {
            Scalar::F64 | Scalar::F32 | Scalar::Tf32 | Scalar::F16 => code::FLOAT,
            Scalar::Bf16 => code::BFLOAT,
            Scalar::E4m3 => code::E4M3FN,
            Scalar::E5m2 => code::E5M2,
            Scalar::I64 | Scalar::I32 | Scalar::I16 | Scalar::I8 => code::INT,
            Scalar::Bool => code::BOOL,
            Scalar::U64 | Scalar::U32 | Scalar::U16 | Scalar::U8 | Scalar::Mbarrier => code::UINT,
            Scalar::I4 | Scalar::I2 | Scalar::I1 | Scalar::U4 | Scalar::U2 | Scalar::U1 => {
                code::UINT
            }
        };
        Element { code, bits: scalar.bits().max(8) as u8, lanes: 1 }
    }

    /// Whether elements of this type are those of a tensor of the scalar. Types that libraries of arrays lack are also given as
    /// unsigned integers of as many bits.
    #[must_use]
    pub fn holds(self, scalar: Scalar) -> bool {
        let own = Element::of(scalar);
        let by_bits = match scalar {
            Scalar::Bf16 | Scalar::E4m3 | Scalar::E5m2 | Scalar::Bool => self.code == code::UINT,
            Scalar::I4 | Scalar::I2 | Scalar::I1 => self.code == code::INT,
            _ => false,
        };
        let other_name = scalar == Scalar::E4m3 && self.code == code::E4M3;
        (self == own) || (Element { code: own.code, ..self } == own && (by_bits || other_name))
    }

    /// Bytes of an element.
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
            code::E4M3 | code::E4M3FN => f.write_str("float8_e4m3fn")?,
            code::E5M2 => f.write_str("float8_e5m2")?,
            code => write!(f, "DLPack's type {code} of {bits} bits")?,
        }
        match lanes {
            1 => Ok(()),
            n => write!(f, "x{n}"),
        }
    }
}

/// A tensor of the caller.
#[derive(Copy, Clone, Debug)]
pub struct View<'a> {
    /// Of the first element.
    pub address: u64,
    /// Where it lies.
    pub device: Device,
    /// Type of its elements.
    pub element: Element,
    /// Extents, the outermost first.
    pub shape: &'a [i64],
    /// Elements from one to the next along each mode; row-major if they are left out.
    pub strides: Option<&'a [i64]>,
    /// Whether it may not be written.
    pub is_read_only: bool,
}

impl View<'_> {
    /// Elements from one to the next along each mode.
    #[must_use]
    pub fn strides(&self) -> Vec<i64> {
        self.strides.map_or_else(|| row_major(self.shape), <[i64]>::to_vec)
    }

    /// Elements in all.
    #[must_use]
    pub fn elements(&self) -> i64 {
        self.shape.iter().fold(1, |n, extent| n.saturating_mul(*extent))
    }

    /// Whether it has its elements side by side, the last mode the fastest.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let strides = self.strides();
        let wanted = row_major(self.shape);
        let all = self.shape.iter().zip(strides.iter().zip(&wanted));
        self.elements() == 0 || all.into_iter().all(|(n, (is, wanted))| *n == 1 || is == wanted)
    }
}

/// The strides of a tensor whose last mode is the fastest.
fn row_major(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for i in (1..shape.len()).rev() {
        strides[i - 1] = shape[i].saturating_mul(strides[i]);
    }
    strides
}
