//! Tensors of the caller, and arrays of the simulator.

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
    /// Where it lies.
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

/// Elements of the largest tensor that is read or written.
const MAX_ELEMENTS: i64 = 1 << 28;

/// Values by names.
///
/// # Safety
/// Pointers are null or point to what their types say.
pub(crate) unsafe fn symbols(from: *const Symbol, count: usize) -> Outcome<BTreeMap<String, i64>> {
    // SAFETY: the caller states it.
    let all = unsafe { list(from, count, "symbols") }?;
    let mut values = BTreeMap::new();
    for Symbol { name, value } in all {
        // SAFETY: as above.
        let name = unsafe { word(*name, "symbols.name") }?;
        if values.insert(name.to_owned(), *value).is_some() {
            return Err(misuse(format!("the symbol `{name}` is given twice"), "give it once"));
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
    /// # Safety
    /// The pointer is null or points to a tensor, which lives as long as the result.
    pub(crate) unsafe fn new(tensor: *const DlTensor, name: &str) -> Outcome<Given<'a>> {
        // SAFETY: the caller states it.
        let tensor = unsafe { given(tensor, name) }?;
        // SAFETY: as above.
        let whole = unsafe { tensor.whole() };
        let whole = whole.map_err(|e| misfit(name, &format!("is {e}"), "give a tensor"))?;
        // SAFETY: as above.
        Ok(Given(unsafe { whole.view(false) }))
    }

    /// Refuses memory that is not the CPU's, and elements that the scalar type does not have.
    pub(crate) fn is_of(&self, name: &str, scalar: Scalar) -> Outcome<()> {
        let View { device, element, shape, .. } = self.0;
        if device.kind != Device::CPU {
            let what = format!("lies on {device}, and the simulator runs on the CPU");
            return Err(misfit(name, &what, "copy it to the CPU"));
        }
        if !element.holds(scalar) {
            let what = format!("has elements of {element}");
            let wanted = carbyne_launch::call::Element::of(scalar);
            return Err(misfit(name, &what, &format!("give a tensor of {wanted}")));
        }
        if shape.iter().any(|n| *n < 0) || self.0.elements() > MAX_ELEMENTS {
            let what = format!("has extents {shape:?}");
            return Err(misfit(name, &what, &format!("give at most {MAX_ELEMENTS} elements")));
        }
        Ok(())
    }

    /// The elements. [`Given::is_of`] holds for the scalar type.
    pub(crate) fn read(&self, name: &str, scalar: Scalar) -> Outcome<Array> {
        // SAFETY: the caller says that elements lie there, and keeps them during the call.
        let array = unsafe { self.0.read(scalar) };
        array.map_err(|e| misfit(name, &format!("cannot be read: {e}"), "correct its elements"))
    }

    /// Refuses a tensor whose shape is not that of an array.
    pub(crate) fn fits(&self, name: &str, array: &Array) -> Outcome<()> {
        if array.shape != self.0.extents() {
            let what = format!("has extents {:?}, and {:?} are wanted", self.0.shape, array.shape);
            return Err(misfit(name, &what, "give a tensor of the program's shape"));
        }
        Ok(())
    }

    /// Writes the elements of an array. [`Given::is_of`] holds for its scalar type, and
    /// [`Given::fits`].
    pub(crate) fn write(&self, array: &Array) {
        // SAFETY: the caller lets the elements be written.
        unsafe { self.0.write(array) };
    }
}
