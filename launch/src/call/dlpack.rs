//! Defines the C structures by which DLPack describes tensors, checks them, and converts them to a
//! [`View`]: <https://dmlc.github.io/dlpack/latest/c_api.html>.
#![allow(unsafe_code, reason = "pointers of other libraries")]

use super::{Device, Element, View};
use std::ffi::c_void;
use std::fmt;

/// Maximum number of modes of a tensor.
const MAX_RANK: i32 = 64;

/// A tensor: `DLTensor` of DLPack, with equal layout. Fields have DLPack's names.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DlTensor {
    /// Memory of the device. The first element is at `byte_offset` bytes from here.
    pub data: *mut c_void,
    /// The device of the memory.
    pub device: DlDevice,
    /// The number of modes, at most 64.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DlDataType,
    /// `ndim` extents, the outermost first.
    pub shape: *const i64,
    /// `ndim` strides in elements. Null for a contiguous tensor whose last mode is the fastest.
    pub strides: *const i64,
    /// Bytes from `data` to the first element.
    pub byte_offset: u64,
}

/// A device: `DLDevice` of DLPack.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DlDevice {
    /// 1 for the CPU, 2 for CUDA.
    pub device_type: i32,
    /// The index among devices of this type, from 0.
    pub device_id: i32,
}

/// A type of elements: `DLDataType` of DLPack.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DlDataType {
    /// 0 for signed integers, 1 for unsigned ones, 2 for IEEE floats, 4 for bfloat16, 6 for bool,
    /// 10 for float8_e4m3fn, 12 for float8_e5m2.
    pub code: u8,
    /// The number of bits.
    pub bits: u8,
    /// Must be 1.
    pub lanes: u16,
}

/// Why a structure describes no valid tensor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoTensor {
    /// The number of modes is negative or too large.
    Rank(i32),
    /// There are modes, but `shape` is null.
    NoExtents,
    /// `shape` or `strides` is not aligned to 8 bytes.
    Misaligned,
    /// There are elements, but `data` is null.
    NoMemory,
}

impl fmt::Display for NoTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTensor::Rank(rank) => {
                write!(f, "a tensor has {rank} modes, but 0 to {MAX_RANK} are supported")
            }
            NoTensor::NoExtents => f.write_str("a tensor without extents"),
            NoTensor::Misaligned => {
                f.write_str("a tensor's extents or strides are not aligned to 8 bytes")
            }
            NoTensor::NoMemory => f.write_str("a tensor without memory"),
        }
    }
}

impl std::error::Error for NoTensor {}

impl DlTensor {
    /// Checks that the structure describes a tensor, so that its parts may be read.
    ///
    /// # Safety
    /// `shape` is null or points to `ndim` numbers.
    ///
    /// # Errors
    /// [`NoTensor`]
    pub unsafe fn checked(self) -> Result<DlTensor, NoTensor> {
        let rank = usize::try_from(self.ndim).ok().filter(|_| self.ndim <= MAX_RANK);
        let rank = rank.ok_or(NoTensor::Rank(self.ndim))?;
        if rank > 0 && self.shape.is_null() {
            return Err(NoTensor::NoExtents);
        }
        if !self.shape.is_aligned() || !self.strides.is_aligned() {
            return Err(NoTensor::Misaligned);
        }
        // SAFETY: `shape` points to as many extents as there are modes.
        let has_elements = (0..rank).all(|i| unsafe { *self.shape.add(i) } != 0);
        if has_elements && self.data.is_null() {
            return Err(NoTensor::NoMemory);
        }
        Ok(self)
    }

    /// The tensor as a [`View`].
    ///
    /// # Safety
    /// [`DlTensor::checked`] has returned it. `shape`, and `strides` unless it is null, point to
    /// `ndim` numbers for as long as the view is used.
    #[must_use]
    pub unsafe fn view<'a>(&self, is_read_only: bool) -> View<'a> {
        let rank = usize::try_from(self.ndim).unwrap_or(0);
        let list = |from: *const i64| match rank {
            0 => &[][..],
            // SAFETY: the caller states that there are as many numbers as modes.
            rank => unsafe { std::slice::from_raw_parts(from, rank) },
        };
        let DlDataType { code, bits, lanes } = self.dtype;
        View {
            address: (self.data.expose_provenance() as u64).wrapping_add(self.byte_offset),
            device: Device { kind: self.device.device_type, number: self.device.device_id },
            element: Element { code, bits, lanes },
            shape: list(self.shape),
            strides: (!self.strides.is_null()).then(|| list(self.strides)),
            is_read_only,
        }
    }
}
