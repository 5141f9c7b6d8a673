//! Objects that the caller holds by pointers.

/// An object for the caller.
pub(crate) fn new<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Frees an object. Null is nothing.
///
/// # Safety
/// The pointer is null, or [`new`] has made it and it has not been freed.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller states it. No destructor of ours unwinds.
        drop(unsafe { Box::from_raw(object) });
    }
}
