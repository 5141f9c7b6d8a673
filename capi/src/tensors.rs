//! Copies tensors of the caller to arrays of the simulator and back. DLPack, the standard C
//! structure of a tensor, describes the tensors. [`Given::is_of`] checks device, type and number of
//! elements before anything is read or written; [`Given::fits`] checks the shape before results are
//! written. This file also reads the values of symbols, which the caller passes by name.

use crate::border::{Failure, Outcome, given, list, misuse, word};
use carbyne_embed::{Array, Code, Diagnostic, Scalar};
use carbyne_launch::call::{Device, DlTensor, View};
use std::collections::BTreeMap;
use std::ffi::c_char;

/// A tensor of the program, or a number, which is a tensor without modes.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct NamedTensor {
    /// Its name in the text, without `%`.
    pub name: *const c_char,
    /// The tensor with its memory.
    pub tensor: *const DlTensor,
}

/// The value of a size that the program leaves open.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct Symbol {
    /// Its name in the text.
    pub name: *const c_char,
    /// Its value.
    pub value: i64,
}

/// Maximum number of elements of a tensor that is read or written.
const MAX_ELEMENTS: i64 = 1 << 28;

/// The values by name.
///
/// # Safety
/// Pointers are null or point to valid values of their types.
pub(crate) unsafe fn symbols(from: *const Symbol, count: usize) -> Outcome<BTreeMap<String, i64>> {
    // SAFETY: the caller guarantees it.
    let all = unsafe { list(from, count, "symbols") }?;
    let mut values = BTreeMap::new();
    for Symbol { name, value } in all {
        // SAFETY: the caller guarantees it.
        let name = unsafe { word(*name, "symbols.name") }?;
        if values.insert(name.to_owned(), *value).is_some() {
            return Err(misuse(format!("the symbol `{name}` was passed twice"), "pass it once"));
        }
    }
    Ok(values)
}

/// An error about a tensor.
pub(crate) fn misfit(name: &str, what: &str, help: &str) -> Failure {
    let text = format!("`%{name}` {what}");
    Box::new(Diagnostic::new(Code::BadInput, Default::default(), text).help(help)).into()
}

/// A tensor of the caller.
pub(crate) struct Given<'a>(pub(crate) View<'a>);

impl<'a> Given<'a> {
    /// Checks the structure of a tensor.
    ///
    /// # Safety
    /// The pointer is null or points to a tensor, which lives as long as the result.
    pub(crate) unsafe fn new(tensor: *const DlTensor, name: &str) -> Outcome<Given<'a>> {
        // SAFETY: the caller guarantees it.
        let tensor = unsafe { given(tensor, name) }?;
        // SAFETY: the caller guarantees it.
        let checked = unsafe { tensor.checked() };
        let checked = checked.map_err(|e| {
            misfit(name, &format!("is not a valid tensor: {e}"), "pass a valid tensor")
        })?;
        // SAFETY: the caller guarantees it.
        Ok(Given(unsafe { checked.view(false) }))
    }

    /// Refuses a tensor on another device than the CPU, or with elements of another type.
    pub(crate) fn is_of(&self, name: &str, scalar: Scalar) -> Outcome<()> {
        let View { device, element, shape, .. } = self.0;
        if device.kind != Device::CPU {
            let what = format!("lies on {device}, but the simulator runs on the CPU");
            return Err(misfit(name, &what, "copy it to the CPU"));
        }
        if !element.holds(scalar) {
            let what = format!("has elements of {element}");
            let wanted = carbyne_launch::call::Element::of(scalar);
            return Err(misfit(name, &what, &format!("pass a tensor of {wanted}")));
        }
        if shape.iter().any(|n| *n < 0) || self.0.elements() > MAX_ELEMENTS {
            let what = format!("has extents {shape:?}");
            return Err(misfit(name, &what, &format!("pass at most {MAX_ELEMENTS} elements")));
        }
        Ok(())
    }

    /// Reads the elements. [`Given::is_of`] must have accepted the scalar type.
    pub(crate) fn read(&self, name: &str, scalar: Scalar) -> Outcome<Array> {
        // SAFETY: the caller guarantees that elements lie there during the call.
        let array = unsafe { self.0.read(scalar) };
        array.map_err(|e| misfit(name, &format!("cannot be read: {e}"), "correct its elements"))
    }

    /// Refuses a tensor whose shape differs from that of the array.
    pub(crate) fn fits(&self, name: &str, array: &Array) -> Outcome<()> {
        if array.shape != self.0.extents() {
            let what = format!("has extents {:?}, but must have {:?}", self.0.shape, array.shape);
            return Err(misfit(name, &what, "pass a tensor of the program's shape"));
        }
        Ok(())
    }

    /// Writes the elements of an array. [`Given::is_of`] and [`Given::fits`] must have accepted it.
    pub(crate) fn write(&self, array: &Array) {
        // SAFETY: the caller allows writing the elements.
        unsafe { self.0.write(array) };
    }
}
