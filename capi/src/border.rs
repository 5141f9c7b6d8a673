//! The begin and the end of each function of the interface: pointers of C become references,
//! results and panics become statuses.

use crate::diagnostics::{Diagnostics, Text};
use crate::objects::new;
use carbyne_embed::Diagnostic;
use carbyne_ir::cancel::Cancelled;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;

/// How a call ended.
#[repr(i32)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// There is a result. Diagnostics, if there are any, are warnings.
    Ok = 0,
    /// The program, a tensor, NVRTC or the GPU is not as it must be; the diagnostics have a code.
    Refused = 1,
    /// The call itself is wrong: a null pointer, a text that is not UTF-8, a number that is none of
    /// those that are wanted. The diagnostic has no code.
    Misuse = 2,
    /// The work was cancelled by its token.
    Cancelled = 3,
    /// A defect of carbyne. Please report it.
    Internal = 4,
}

/// Why a call has no result.
pub(crate) enum Failure {
    /// Errors of a program, by the text in which they are.
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

/// An error that has no place in a text.
impl From<Box<Diagnostic>> for Failure {
    fn from(error: Box<Diagnostic>) -> Failure {
        Failure::Refused(Text::default(), vec![*error])
    }
}

/// A result, or why there is none.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Does the work of a function, which returns warnings. Puts diagnostics into their place.
///
/// # Safety
/// `diagnostics` is null, or a pointer may be written there.
pub(crate) unsafe fn answer(
    diagnostics: *mut *mut Diagnostics,
    work: impl FnOnce() -> Outcome<Diagnostics>,
) -> Status {
    // Objects of the caller do not change, and what the work makes is dropped.
    let caught = catch_unwind(AssertUnwindSafe(|| match work() {
        Ok(warnings) => (Status::Ok, warnings),
        Err(Failure::Refused(text, errors)) => (Status::Refused, Diagnostics::of(&text, &errors)),
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
        // SAFETY: the caller states it.
        unsafe { diagnostics.write(said) };
    }
    status
}

/// Work that has no warnings.
pub(crate) fn silent(work: Outcome<()>) -> Outcome<Diagnostics> {
    work.map(|()| Diagnostics::default())
}

/// The place of a result, which is null until there is one.
///
/// # Safety
/// The pointer is null, or a pointer may be written there.
pub(crate) unsafe fn place<'a, T>(place: *mut *mut T, name: &str) -> Outcome<&'a mut *mut T> {
    if !place.is_null() {
        // SAFETY: the caller states it; what was there before is not read.
        unsafe { place.write(std::ptr::null_mut()) };
    }
    // SAFETY: as above.
    unsafe { place.as_mut() }.ok_or_else(|| null(name))
}

/// The object behind a pointer.
///
/// # Safety
/// The pointer is null, or points to an object that lives as long as the reference.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, name: &str) -> Outcome<&'a T> {
    // SAFETY: the caller states it.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(name))
}

/// A list.
///
/// # Safety
/// The pointer is null, or points to as many elements, which live as long as the list.
pub(crate) unsafe fn list<'a, T>(from: *const T, count: usize, name: &str) -> Outcome<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(null(name));
    }
    let is_possible = count.checked_mul(size_of::<T>()).is_some_and(|n| isize::try_from(n).is_ok());
    if !is_possible || !from.is_aligned() {
        let what = format!("`{name}` is no list of {count} elements");
        return Err(misuse(what, "give a pointer to its first element and their number"));
    }
    // SAFETY: the caller states that there are as many, and they fit into memory.
    Ok(unsafe { slice::from_raw_parts(from, count) })
}

/// A text that ends with a NUL byte, if it is given.
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
    // SAFETY: the caller states it.
    let text = unsafe { CStr::from_ptr(from) }.to_str();
    let not_utf8 = |_| misuse(format!("`{name}` is not UTF-8"), "give UTF-8");
    text.map(Some).map_err(not_utf8)
}

/// A text that ends with a NUL byte.
///
/// # Safety
/// As [`optional_word`].
pub(crate) unsafe fn word<'a>(from: *const c_char, name: &str) -> Outcome<&'a str> {
    // SAFETY: the caller states it.
    unsafe { optional_word(from, name) }?.ok_or_else(|| null(name))
}

/// Reads a structure of options, whose first field is its size. An older caller's is shorter: its
/// missing fields are 0. A newer caller's may be longer, if the fields that are not known here
/// are 0.
///
/// # Safety
/// The pointer is null, or points to as many bytes as its first field says. A `T` of zeros is one.
pub(crate) unsafe fn options<T: Copy>(from: *const T, name: &str) -> Outcome<T> {
    let mut known = std::mem::MaybeUninit::<T>::zeroed();
    if from.is_null() {
        // SAFETY: the caller states that zeros are one.
        return Ok(unsafe { known.assume_init() });
    }
    // SAFETY: the first field is there, wherever the structure lies.
    let size = unsafe { from.cast::<usize>().read_unaligned() };
    let wrong = |what: String| misuse(what, "set its field `size` to `sizeof` of it");
    if !(size_of::<usize>()..=1 << 16).contains(&size) {
        return Err(wrong(format!("`{name}` says that it has {size} bytes")));
    }
    // SAFETY: there are as many bytes.
    let bytes = unsafe { slice::from_raw_parts(from.cast::<u8>(), size) };
    if bytes.iter().skip(size_of::<T>()).any(|b| *b != 0) {
        return Err(wrong(format!("`{name}` has fields that this version does not know")));
    }
    let n = size.min(size_of::<T>());
    // SAFETY: both have as many bytes. The structure is one of numbers and pointers, which are
    // checked when they are used.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), known.as_mut_ptr().cast(), n);
        Ok(known.assume_init())
    }
}

/// A call that is wrong, and what to do.
pub(crate) fn misuse(what: impl Into<String>, help: &str) -> Failure {
    Failure::Misuse(what.into(), help.to_owned())
}

fn null(name: &str) -> Failure {
    misuse(format!("`{name}` is null"), "give a pointer")
}
