//! Tensors as DLPack's structures for C give them:
//! <https://dmlc.github.io/dlpack/latest/c_api.html>.
#![allow(unsafe_code, reason = "pointers of other libraries")]

use super::{Device, Element, View};
use std::ffi::c_void;
use std::fmt;

/// Modes that a tensor has at most.
const MAX_RANK: i32 = 64;

/// A tensor that its owner describes: `DLTensor` of DLPack, byte for byte. Fields have DLPack's
/// names.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DlTensor {
    /// Memory of the device. The first element lies `byte_offset` bytes behind it.
    pub data: *mut c_void,
    /// Where the memory is.
    pub device: DlDevice,
    /// The number of modes, at most 64.
    pub ndim: i32,
    /// Type of the elements.
    pub dtype: DlDataType,
    /// `ndim` extents, the outermost first.
    pub shape: *const i64,
    /// `ndim` distances from one element to the next of a mode, in elements. Null: the last mode is
    /// the fastest, without gaps.
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
    /// Counted from 0 among devices of the type.
    pub device_id: i32,
}

/// A type of elements: `DLDataType` of DLPack.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct DlDataType {
    /// 0 for signed integers, 1 for unsigned ones, 2 for IEEE floats, 4 for bfloat16, 6 for bool,
    /// 10 for float8_e4m3fn, 12 for float8_e5m2.
    pub code: u8,
    /// Bits of a number.
    pub bits: u8,
    /// Numbers of an element: 1.
    pub lanes: u16,
}

/// A structure that describes no tensor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoTensor {
    /// The number of modes is negative or too large.
    Rank(i32),
    /// There are modes, and no extents.
    NoExtents,
    /// Extents or strides lie where no numbers of 64 bits do.
    Misaligned,
    /// There are elements, and no memory.
    NoMemory,
}

impl fmt::Display for NoTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoTensor::Rank(rank) => {
                write!(f, "a tensor of {rank} modes, and 0 to {MAX_RANK} are wanted")
            }
            NoTensor::NoExtents => f.write_str("a tensor without extents"),
            NoTensor::Misaligned => {
                f.write_str("a tensor whose extents or strides begin at no multiple of 8")
            }
            NoTensor::NoMemory => f.write_str("a tensor without memory"),
        }
    }
}

impl std::error::Error for NoTensor {}

impl DlTensor {
    /// The tensor, if it is one: what is read of it afterwards is there.
    ///
    /// # Safety
    /// `shape` is null or points to as many numbers as there are modes.
    ///
    /// # Errors
    /// A structure that describes no tensor.
    pub unsafe fn whole(self) -> Result<DlTensor, NoTensor> {
        let rank = usize::try_from(self.ndim).ok().filter(|_| self.ndim <= MAX_RANK);
        let rank = rank.ok_or(NoTensor::Rank(self.ndim))?;
        if rank > 0 && self.shape.is_null() {
            return Err(NoTensor::NoExtents);
        }
        if !self.shape.is_aligned() || !self.strides.is_aligned() {
            return Err(NoTensor::Misaligned);
        }
        // SAFETY: there are as many extents as modes.
        let has_elements = (0..rank).all(|i| unsafe { *self.shape.add(i) } != 0);
        if has_elements && self.data.is_null() {
            return Err(NoTensor::NoMemory);
        }
        Ok(self)
    }

    /// The tensor as a launcher takes it.
    ///
    /// # Safety
    /// [`DlTensor::whole`] has returned it. `shape`, and `strides` unless it is null, point to as
    /// many numbers as there are modes, for as long as the view is used.
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
