//! Defines the byte strings that functions of the C interface return: texts, JSON documents, PTX
//! and machine code. The caller reads them with `carbyne_bytes_data` and frees them with
//! `carbyne_bytes_free`.

use crate::objects::{free, new};
use std::ffi::c_char;

/// A text in UTF-8, or machine code.
pub struct Bytes {
    /// The bytes, and a NUL byte.
    data: Vec<u8>,
}

impl Bytes {
    pub(crate) fn new(data: impl Into<Vec<u8>>) -> Bytes {
        let mut data = data.into();
        data.push(0);
        Bytes { data }
    }
}

/// A new object for the caller.
pub(crate) fn bytes(data: impl Into<Vec<u8>>) -> *mut Bytes {
    new(Bytes::new(data))
}

/// The bytes. A NUL byte follows the last one, so that a text is a C string. They are valid until
/// `bytes` is freed. Null for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_data(bytes: *const Bytes) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    unsafe { bytes.as_ref() }.map_or(std::ptr::null(), |b| b.data.as_ptr().cast())
}

/// The number of bytes, without the NUL byte after the last one. 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_size(bytes: *const Bytes) -> usize {
    // SAFETY: see the header of `lib.rs`.
    unsafe { bytes.as_ref() }.map_or(0, |b| b.data.len() - 1)
}

/// Frees bytes. Does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_bytes_free(bytes: *mut Bytes) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(bytes) }
}
