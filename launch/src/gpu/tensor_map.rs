//! Encodes tensor maps, the descriptors of tensors in global memory that TMA instructions read.
//!
//! The crate `cust` does not bind the driver's encoder; `driver/forwarders.rs` does.
#![allow(unsafe_code, reason = "the CUDA driver's interface")]

use super::driver::of_status;
use crate::{Fallible, MapValues, refused};
use carbyne_ir::diag::Code;
use std::ffi::c_void;
use std::ptr;

unsafe extern "C" {
    fn cuTensorMapEncodeTiled(
        map: *mut c_void,
        scalar: u32,
        rank: u32,
        address: *mut c_void,
        extents: *const u64,
        strides: *const u64,
        boxes: *const u32,
        element_strides: *const u32,
        interleave: u32,
        swizzle: u32,
        promotion: u32,
        fill: u32,
    ) -> u32;
}

/// An encoded tensor map: 128 bytes, aligned to 64.
#[derive(Clone, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct TensorMap {
    words: [u64; 16],
}

impl TensorMap {
    /// Encodes the tensor map of a tensor on the GPU, without interleaving. Elements outside are
    /// read as 0.
    ///
    /// # Errors
    /// [`Code::OldDriver`] if the driver has no tensor maps, [`Code::LaunchFailed`] for a map that
    /// it refuses.
    pub fn encode(values: &MapValues) -> Fallible<TensorMap> {
        let MapValues { address, data_type, extents, strides, sizes, swizzle, promotion } = values;
        let rank = extents.len();
        if !(1..=5).contains(&rank) || strides.len() + 1 != rank || sizes.len() != rank {
            let (s, b) = (strides.len(), sizes.len());
            let text =
                format!("a tensor map cannot have {rank} modes, {s} strides and {b} box extents");
            return Err(refused(Code::LaunchFailed, text, "give the tensor map 1 to 5 modes"));
        }
        let mut map = TensorMap { words: [0; 16] };
        let ones = [1u32; 5];
        // SAFETY: `map` is 128 bytes at a multiple of 64, the arrays have the length of the rank
        // (strides one less), and the driver keeps none of them.
        let status = unsafe {
            cuTensorMapEncodeTiled(
                (&raw mut map).cast(),
                *data_type,
                rank as u32,
                ptr::with_exposed_provenance_mut(*address as usize),
                extents.as_ptr(),
                strides.as_ptr(),
                sizes.as_ptr(),
                ones.as_ptr(),
                0,
                *swizzle,
                *promotion,
                0,
            )
        };
        match status {
            0 => Ok(map),
            status => Err(of_status(status, "the tensor map cannot be encoded")),
        }
    }

    /// The 128 bytes, as an argument of a launch.
    #[must_use]
    pub fn words(&self) -> [u64; 16] {
        self.words
    }
}
