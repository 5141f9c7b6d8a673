//! Tensors of the caller, and arrays of the simulator.

use crate::border::{Failure, Outcome, given, list, word};
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

/// Elements of the largest array that is read or written.
const MAX_ELEMENTS: i64 = 1 << 28;

/// Values by names.
///
/// # Safety
/// Pointers are null or point to what their types say.
pub(crate) unsafe fn symbols(from: *const Symbol, count: usize) -> Outcome<BTreeMap<String, i64>> {
    // SAFETY: the caller states it.
    let all = unsafe { list(from, count, "symbols") }?;
    // SAFETY: as above.
    let one = |s: &Symbol| Ok((unsafe { word(s.name, "symbols.name") }?.to_owned(), s.value));
    all.iter().map(one).collect()
}

/// An error about a tensor.
pub(crate) fn misfit(name: &str, what: &str, help: &str) -> Failure {
    let text = format!("`%{name}` {what}");
    Box::new(Diagnostic::new(Code::BadInput, Default::default(), text).help(help)).into()
}

/// A tensor of the caller.
pub(crate) struct Given<'a> {
    first: *mut u8,
    pub(crate) view: View<'a>,
}

impl<'a> Given<'a> {
    /// # Safety
    /// The pointer is null or points to a tensor, which lives as long as the result.
    pub(crate) unsafe fn new(tensor: *const DlTensor, name: &str) -> Outcome<Given<'a>> {
        // SAFETY: the caller states it.
        let tensor = unsafe { given(tensor, name) }?;
        // SAFETY: as above.
        let whole = unsafe { tensor.whole() };
        let whole = whole.map_err(|e| misfit(name, &format!("is {e}"), "give a tensor"))?;
        let offset = usize::try_from(whole.byte_offset).unwrap_or(usize::MAX);
        let first = whole.data.cast::<u8>().wrapping_add(offset);
        // SAFETY: as above.
        Ok(Given { first, view: unsafe { whole.view(false) } })
    }

    /// That the memory is the CPU's and that elements are those of the scalar type.
    pub(crate) fn is_of(&self, name: &str, scalar: Scalar) -> Outcome<()> {
        let View { device, element, shape, .. } = self.view;
        if device.kind != Device::CPU {
            let what = format!("lies on {device}, and the simulator runs on the CPU");
            return Err(misfit(name, &what, "copy it to the CPU"));
        }
        if !element.holds(scalar) {
            let what = format!("has elements of {element}");
            let wanted = carbyne_launch::call::Element::of(scalar);
            return Err(misfit(name, &what, &format!("give a tensor of {wanted}")));
        }
        if shape.iter().any(|n| *n < 0) || self.view.elements() > MAX_ELEMENTS {
            let what = format!("has extents {shape:?}");
            return Err(misfit(name, &what, &format!("give at most {MAX_ELEMENTS} elements")));
        }
        Ok(())
    }

    /// The elements. [`Given::is_of`] holds for the scalar type.
    pub(crate) fn read(&self, name: &str, scalar: Scalar) -> Outcome<Array> {
        let width = self.view.element.bytes() as usize;
        let mut data = vec![0; width * self.view.elements() as usize];
        for (to, at) in data.chunks_exact_mut(width).zip(self.elements()) {
            // SAFETY: the caller says that elements lie there, each of so many bytes, and keeps them during the call.
            unsafe { std::ptr::copy_nonoverlapping(at, to.as_mut_ptr(), width) };
        }
        let array = Array::from_bytes(scalar, &self.extents(), &data);
        array.map_err(|e| misfit(name, &format!("cannot be read: {e}"), "correct its elements"))
    }

    /// Writes the elements of an array. [`Given::is_of`] holds for its scalar type.
    pub(crate) fn write(&self, name: &str, array: &Array) -> Outcome<()> {
        if array.shape != self.extents() {
            let what =
                format!("has extents {:?}, and {:?} are wanted", self.view.shape, array.shape);
            return Err(misfit(name, &what, "give a tensor of the program's shape"));
        }
        let width = self.view.element.bytes() as usize;
        for (from, at) in array.to_bytes().chunks_exact(width).zip(self.elements()) {
            // SAFETY: as above; the caller lets the elements be written.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), at, width) };
        }
        Ok(())
    }

    fn extents(&self) -> Vec<u64> {
        self.view.shape.iter().map(|n| n.cast_unsigned()).collect()
    }

    /// Where elements lie, the last mode the fastest.
    fn elements(&self) -> impl Iterator<Item = *mut u8> {
        let strides = self.view.strides();
        let width = self.view.element.bytes().cast_signed();
        (0..self.view.elements()).map(move |i| {
            let (mut rest, mut at) = (i, 0i64);
            for (extent, stride) in self.view.shape.iter().zip(&strides).rev() {
                at = at.wrapping_add((rest % extent).wrapping_mul(*stride));
                rest /= extent;
            }
            self.first.wrapping_offset(at.wrapping_mul(width) as isize)
        })
    }
}
