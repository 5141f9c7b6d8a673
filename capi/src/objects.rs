//! Creates and frees objects on the heap. The caller holds pointers to them.

/// Moves an object to the heap for the caller.
pub(crate) fn new<T>(object: T) -> *mut T {
    Box::into_raw(Box::new(object))
}

/// Frees an object. Does nothing for null.
///
/// # Safety
/// The pointer is null, or [`new`] has returned it and it has not been freed.
pub(crate) unsafe fn free<T>(object: *mut T) {
    if !object.is_null() {
        // SAFETY: the caller guarantees it. No destructor of these objects unwinds.
        drop(unsafe { Box::from_raw(object) });
    }
}
