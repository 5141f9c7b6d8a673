//! Texts and machine code that functions return.

use crate::objects::{free, new};
use std::ffi::c_char;

/// A text in UTF-8, or machine code.
pub struct Bytes {
    /// With a NUL byte at the end.
    data: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(data: impl Into<Vec<u8>>) -> Bytes {
        let mut data = data.into();
        data.push(0);
        Bytes { data }
    }
}

/// Bytes for the caller.
pub(crate) fn bytes(data: impl Into<Vec<u8>>) -> *mut Bytes {
    new(Bytes::new(data))
}

/// The bytes. A NUL byte follows the last one, so that a text is one of C. They are there until
/// `bytes` is freed. Null for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_data(bytes: *const Bytes) -> *const c_char {
    // SAFETY: the head of `lib.rs`.
    unsafe { bytes.as_ref() }.map_or(std::ptr::null(), |b| b.data.as_ptr().cast())
}

/// Their number, without the NUL byte behind them. 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_size(bytes: *const Bytes) -> usize {
    // SAFETY: the head of `lib.rs`.
    unsafe { bytes.as_ref() }.map_or(0, |b| b.data.len() - 1)
}

/// Frees bytes. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_free(bytes: *mut Bytes) {
    // SAFETY: the head of `lib.rs`.
    unsafe { free(bytes) }
}
