//! Converts between C and Rust at the beginning and the end of each function of the C interface.
//! Pointers of the caller become references, and results, errors and panics become a [`Status`]. A
//! structure of options may come from a caller of an older or a newer version of the interface.

use crate::diagnostics::{Diagnostics, Text};
use crate::objects::new;
use carbyne_embed::Diagnostic;
use carbyne_ir::cancel::Cancelled;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// The status of a call.
#[repr(i32)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// The call has a result. Its diagnostics, if there are any, are warnings.
    Ok = 0,
    /// The program, a tensor, NVRTC or the GPU does not meet the requirements. The diagnostics have
    /// codes.
    Refused = 1,
    /// The call itself is wrong: a null pointer, a text that is not UTF-8, or an invalid number.
    /// The diagnostic has no code.
    Misuse = 2,
    /// The work was cancelled by its token.
    Cancelled = 3,
    /// A defect of carbyne. Please report it.
    Internal = 4,
}

/// The reason why a call has no result.
pub(crate) enum Failure {
    /// Errors of a program, and the text to which they refer.
    Refused(Text, Vec<Diagnostic>),
    /// A message about a wrong call, and a help.
    Misuse(String, String),
    Cancelled,
}

impl From<Cancelled> for Failure {
    fn from(_: Cancelled) -> Failure {
        Failure::Cancelled
    }
}

/// An error without a place in a text.
impl From<Box<Diagnostic>> for Failure {
    fn from(error: Box<Diagnostic>) -> Failure {
        Failure::Refused(Text::default(), vec![*error])
    }
}

/// A result, or the reason why there is none.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Executes the work of a function, which returns warnings. Writes diagnostics to `diagnostics`.
///
/// # Safety
/// `diagnostics` is null, or a pointer may be written to it.
pub(crate) unsafe fn answer(
    diagnostics: *mut *mut Diagnostics,
    work: impl FnOnce() -> Outcome<Diagnostics>,
) -> Status {
    // Unwind safety: objects of the caller are immutable, and objects that the work creates are
    // dropped.
    let caught = catch_unwind(AssertUnwindSafe(|| match work() {
        Ok(warnings) => (Status::Ok, warnings),
        Err(Failure::Refused(text, errors)) => (Status::Refused, Diagnostics::new(&text, &errors)),
        Err(Failure::Misuse(what, help)) => {
            (Status::Misuse, Diagnostics::without_code(&what, Some(&help)))
        }
        Err(Failure::Cancelled) => {
            (Status::Cancelled, Diagnostics::without_code(&Cancelled.to_string(), None))
        }
    }));
    let (status, said) =
        caught.unwrap_or_else(|panic| (Status::Internal, Diagnostics::of_panic(&*panic)));
    if !diagnostics.is_null() {
        let said = if said.is_empty() { std::ptr::null_mut() } else { new(said) };
        // SAFETY: the caller guarantees it.
        unsafe { diagnostics.write(said) };
    }
    status
}

/// Converts the outcome of work without warnings.
pub(crate) fn silent(work: Outcome<()>) -> Outcome<Diagnostics> {
    work.map(|()| Diagnostics::default())
}

/// The place for a result, which is set to null.
///
/// # Safety
/// The pointer is null, or a pointer may be written to it.
pub(crate) unsafe fn place<'a, T>(place: *mut *mut T, name: &str) -> Outcome<&'a mut *mut T> {
    if !place.is_null() {
        // SAFETY: the caller guarantees it; the old value is not read.
        unsafe { place.write(std::ptr::null_mut()) };
    }
    // SAFETY: the caller guarantees it.
    unsafe { place.as_mut() }.ok_or_else(|| null(name))
}

/// The object at a pointer.
///
/// # Safety
/// The pointer is null, or points to an object that lives as long as the reference.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: the caller guarantees it.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// A list of `count` elements.
///
/// # Safety
/// The pointer is null, or points to `count` elements, which live as long as the list.
pub(crate) unsafe fn list<'a, T>(from: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(null(name));
    }
    let is_possible = count.checked_mul(size_of::<T>()).is_some_and(|n| isize::try_from(n).is_ok());
    if !is_possible || !from.is_aligned() {
        let what = format!("`{name}` is not a valid list of {count} elements");
        return Err(misuse(
            what,
            "pass a pointer to the first element, and the number of elements",
        ));
    }
    // SAFETY: the caller guarantees that there are `count` elements, and they fit into memory.
    Ok(unsafe { slice::from_raw_parts(from, count) })
}

/// A text that ends with a NUL byte, or `None` for null.
///
/// # Safety
/// The pointer is null, or points to a text that ends with a NUL byte and lives as long as the
/// result.
pub(crate) unsafe fn optional_word<'a>(
    from: *const c_char,
    name: &str,
) -> Outcome<Option<&'a str>> {
    if from.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller guarantees it.
    let text = unsafe { CStr::from_ptr(from) }.to_str();
    let not_utf8 = |_| misuse(format!("`{name}` is not UTF-8"), "pass UTF-8");
    text.map(Some).map_err(not_utf8)
}

/// A text that ends with a NUL byte.
///
/// # Safety
/// The conditions of [`optional_word`].
pub(crate) unsafe fn word<'a>(from: *const c_char, name: &str) -> Outcome<&'a str> {
    // SAFETY: the caller guarantees it.
    unsafe { optional_word(from, name) }?.ok_or_else(|| null(name))
}

/// Reads a structure of options, whose first field is its size. The structure of an older caller is
/// shorter; its missing fields are 0. That of a newer caller may be longer, if the unknown fields
/// are 0.
///
/// # Safety
/// The pointer is null, or points to as many bytes as its first field says. A `T` of zeros is
/// valid.
pub(crate) unsafe fn options<T: Copy>(from: *const T, name: &str) -> Outcome<T> {
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    if from.is_null() {
        // SAFETY: the caller guarantees that a `T` of zeros is valid.
        return Ok(unsafe { known.assume_init() });
    }
    // SAFETY: the first field exists; the structure need not be aligned.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    let wrong = |what: String| misuse(what, "set the field `size` to `sizeof` of the structure");
    if !(size_of::<usize>()..=1 << 16).contains(&size) {
        return Err(wrong(format!("the field `size` of `{name}` is {size}")));
    }
    // SAFETY: the caller guarantees that there are `size` bytes.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), size) };
    if bytes.iter().skip(size_of::<T>()).any(|b| *b != 0) {
        return Err(wrong(format!("`{name}` has fields that this version does not know")));
    }
    let n = size.min(size_of::<T>());
    // SAFETY: both have at least `n` bytes. The structure consists of numbers and pointers, which
    // are checked when they are used.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), known.as_mut_ptr().cast(), n);
        Ok(known.assume_init())
    }
}

/// The failure of a wrong call, with a help.
pub(crate) fn misuse(what: impl Into<String>, help: &str) -> Failure {
    Failure::Misuse(what.into(), help.to_owned())
}

fn null(name: &str) -> Failure {
    misuse(format!("`{name}` is null"), "pass a pointer")
}
