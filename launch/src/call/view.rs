//! Defines [`View`], a tensor of the caller: address, device, type, extents and strides, as DLPack
//! defines them. DLPack is the standard C structure by which array libraries pass tensors.

use carbyne_codegen::Element;
use std::fmt;
use std::ops::Range;

/// The device of a tensor (`DLDevice`).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Device {
    /// `DLDeviceType`.
    pub kind: i32,
    /// The index among devices of this kind, from 0.
    pub number: i32,
}

impl Device {
    /// The host's memory.
    pub const CPU: i32 = 1;
    /// The memory of a CUDA device.
    pub const CUDA: i32 = 2;
    /// Memory that the driver moves between a CUDA device and the host.
    pub const CUDA_MANAGED: i32 = 13;

    /// Whether it is memory of a CUDA device.
    #[must_use]
    pub fn is_cuda(self) -> bool {
        matches!(self.kind, Device::CUDA | Device::CUDA_MANAGED)
    }

    /// Whether both are memory of one device.
    #[must_use]
    pub fn is(self, other: Device) -> bool {
        self.number == other.number
            && (self.kind == other.kind || self.is_cuda() && other.is_cuda())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Device::CPU if self.number == 0 => f.write_str("the CPU"),
            Device::CPU => write!(f, "cpu:{}", self.number),
            Device::CUDA | Device::CUDA_MANAGED => write!(f, "cuda:{}", self.number),
            kind => write!(f, "a device of DLPack's type {kind}"),
        }
    }
}

/// A tensor of the caller.
#[derive(Copy, Clone, Debug)]
pub struct View<'a> {
    /// Address of the first element.
    pub address: u64,
    /// The device of the memory.
    pub device: Device,
    /// Type of its elements.
    pub element: Element,
    /// Extents, the outermost first.
    pub shape: &'a [i64],
    /// Strides in elements; `None` for a row-major tensor.
    pub strides: Option<&'a [i64]>,
    /// Whether it must not be written.
    pub is_read_only: bool,
}

impl View<'_> {
    /// The strides in elements.
    #[must_use]
    pub fn strides(&self) -> Vec<i64> {
        self.strides.map_or_else(|| row_major(self.shape), <[i64]>::to_vec)
    }

    /// The number of elements.
    #[must_use]
    pub fn elements(&self) -> i64 {
        self.shape.iter().fold(1, |n, extent| n.saturating_mul(*extent))
    }

    /// The range of addresses from the first byte to after the last one. Empty for a tensor without
    /// elements.
    #[must_use]
    pub fn bytes(&self) -> Range<u64> {
        if self.elements() == 0 {
            return self.address..self.address;
        }
        let (mut below, mut above) = (0u64, self.element.bytes());
        for (extent, stride) in self.shape.iter().zip(self.strides()) {
            let steps = (extent - 1).unsigned_abs().saturating_mul(stride.unsigned_abs());
            let far = steps.saturating_mul(self.element.bytes());
            let side = if stride < 0 { &mut below } else { &mut above };
            *side = side.saturating_add(far);
        }
        self.address.saturating_sub(below)..self.address.saturating_add(above)
    }

    /// Whether the strides show that no two elements share an address: each stride exceeds the
    /// reach of all smaller ones together.
    #[must_use]
    pub fn is_apart(&self) -> bool {
        let strides = self.strides();
        let modes = self.shape.iter().zip(&strides).filter(|(n, _)| **n > 1);
        let mut modes: Vec<(u64, u64)> =
            modes.map(|(n, s)| (s.unsigned_abs(), n.unsigned_abs())).collect();
        modes.sort_unstable();
        let mut reach = 0u64;
        self.elements() == 0
            || modes.iter().all(|(stride, extent)| {
                let is_beyond = *stride > reach;
                reach = reach.saturating_add(stride.saturating_mul(extent - 1));
                is_beyond
            })
    }

    /// Whether it is contiguous, with the last mode as the fastest.
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
