//! Converts the caller's numbers to bytes, and errors to messages, for both ways to call kernels:
//! the Python function (`call`) and the tvm-ffi function (`tvm_ffi`).

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;
use carbyne_launch::call::{Kernels, Word};
use smallvec::SmallVec;

/// A list with one entry per parameter.
pub(crate) type List<T> = SmallVec<[T; 8]>;

/// An error of a call as text for people, and as JSON.
pub(crate) fn shown(kernels: &Kernels, error: &Diagnostic) -> (String, String) {
    crate::error::shown("<program>", kernels.text_of(error), std::slice::from_ref(error))
}

/// Whether an error is about arguments, not about the program or the GPU.
pub(crate) fn is_about_arguments(error: &Diagnostic) -> bool {
    matches!(error.code, Code::BadInput | Code::SymbolValue | Code::Symbolic)
}

/// The bytes of an integer; `None` if the type cannot represent it.
pub(crate) fn word_of_integer(scalar: Scalar, value: i128) -> Option<Word> {
    let (least, most) = scalar.int_range()?;
    let fits = (least..=most).contains(&value);
    fits.then_some(value as u64 & (u64::MAX >> (64 - scalar.bits().max(8))))
}

/// The bytes of a floating-point number, rounded to the type.
pub(crate) fn word_of_number(scalar: Scalar, value: f64) -> Word {
    carbyne_simulate::num::encode(scalar, value)
}
