//! Exchanges tensors with other Python libraries through DLPack 1.x (the standard C structure of a
//! tensor), without copying elements: <https://dmlc.github.io/dlpack/latest/c_api.html>. It reads
//! the description of a given tensor and the current stream of its library, and creates tensors for
//! results with that library.
//!
//! If the tensor type of a library has the attribute `__dlpack_c_exchange_api__` (DLPack 1.3), its
//! C functions are used, otherwise the method `__dlpack__`.
#![allow(unsafe_code, reason = "structures that DLPack defines for C")]

use carbyne_launch::call::{Device, DlDataType, DlDevice, DlTensor, NoTensor, Shape, View};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyTuple, PyType};
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, PoisonError};

/// The read part of `DLManagedTensor`.
#[repr(C)]
struct Managed {
    tensor: DlTensor,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
struct Versioned {
    version: [u32; 2],
    manager: *mut c_void,
    deleter: *const c_void,
    flags: u64,
    tensor: DlTensor,
}

/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;

/// `DLPackExchangeAPI`
#[repr(C)]
pub(crate) struct Exchange {
    version: [u32; 2],
    previous: *const Exchange,
    allocate: *const c_void,
    managed_from_object: *const c_void,
    object_from_managed: *const c_void,
    tensor_from_object: Option<unsafe extern "C" fn(*mut c_void, *mut DlTensor) -> c_int>,
    current_stream: Option<unsafe extern "C" fn(i32, i32, *mut *mut c_void) -> c_int>,
}

// SAFETY: the table is constant, and any thread that holds the interpreter's lock may call its
// functions.
unsafe impl Sync for Exchange {}

/// The functions that read and create the tensors of a library.
pub(crate) struct Library {
    /// The C functions of the library, if any.
    exchange: Option<&'static Exchange>,
    /// An object of `carbyne._arrays.Library`.
    python: Py<PyAny>,
    /// Whether the tensors are immutable.
    is_read_only: bool,
    /// Whether the library does not support streams of others, so that a call waits for its
    /// kernels.
    pub(crate) waits: bool,
}

/// The libraries of the tensors given so far, by type. Types and libraries are never freed.
static LIBRARIES: Mutex<Vec<(usize, &'static Library)>> = Mutex::new(vec![]);

thread_local! {
    /// The type of this thread's last tensor, with its library.
    static LAST: Cell<(usize, Option<&'static Library>)> = const { Cell::new((0, None)) };
}

/// The library of a tensor; `None` if the object is not a tensor.
pub(crate) fn library(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Library>> {
    let address = object.get_type_ptr().addr();
    let (last, library) = LAST.get();
    if last == address {
        return Ok(library);
    }
    let found = found(object)?;
    // The address of a type that is not in the table may be reused by another type.
    if found.is_some() {
        LAST.set((address, found));
    }
    Ok(found)
}

fn found(object: &Bound<'_, PyAny>) -> PyResult<Option<&'static Library>> {
    static FIND: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = object.py();
    let kind = object.get_type();
    let address = kind.as_type_ptr().addr();
    {
        let known = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = known.iter().find(|(of, _)| *of == address) {
            return Ok(Some(found));
        }
    }
    if !kind.hasattr("__dlpack__")? {
        return Ok(None);
    }
    let find = FIND.get_or_try_init(py, || {
        Ok::<_, PyErr>(py.import("carbyne._arrays")?.getattr("library")?.unbind())
    })?;
    let python = find.bind(py).call1((&kind,))?;
    let library: &'static Library = Box::leak(Box::new(Library {
        exchange: exchange(&kind)?,
        is_read_only: python.getattr("is_read_only")?.extract()?,
        waits: python.getattr("waits")?.extract()?,
        python: python.unbind(),
    }));
    // Never free the type, so that its address stays unique.
    std::mem::forget(kind);
    let mut known = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    known.push((address, library));
    Ok(Some(library))
}

impl Library {
    /// Creates a tensor on the device of another one.
    pub(crate) fn empty<'py>(
        &self,
        like: &Bound<'py, PyAny>,
        shape: &Shape,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = like.py();
        let extents = PyTuple::new(py, &shape.extents)?;
        let strides = PyTuple::new(py, &shape.strides)?;
        let given = (like, shape.element.to_string(), extents, strides);
        self.python.bind(py).call_method1("empty", given)
    }
}

/// The C functions of DLPack version 1; `None` if the type has none of this version.
fn exchange(kind: &Bound<'_, PyType>) -> PyResult<Option<&'static Exchange>> {
    const NAME: &CStr = c"dlpack_exchange_api";
    let Some(capsule) = kind.getattr_opt("__dlpack_c_exchange_api__")? else { return Ok(None) };
    let Ok(capsule) = capsule.cast_into::<PyCapsule>() else { return Ok(None) };
    let Ok(pointer) = capsule.pointer_checked(Some(NAME)) else { return Ok(None) };
    let mut table: *const Exchange = pointer.as_ptr().cast_const().cast();
    // SAFETY: DLPack states that the table lives as long as the process, and how tables of other
    // versions are linked.
    unsafe {
        while !table.is_null() && (*table).version[0] != 1 {
            table = (*table).previous;
        }
        Ok(table.as_ref().filter(|t| t.tensor_from_object.is_some() && t.current_stream.is_some()))
    }
}

/// A tensor of another library during a call.
pub(crate) struct Given<'py> {
    tensor: DlTensor,
    is_read_only: bool,
    /// The stream that waits for the library's work on the tensor, if one was requested.
    stream: Option<u64>,
    pub(crate) library: &'static Library,
    /// The owner of extents and strides. If `None`, the object itself owns them.
    _kept: Option<Bound<'py, PyCapsule>>,
}

impl<'py> Given<'py> {
    /// Reads the description of a tensor. No stream waits, unless the library has no current
    /// stream: then the legacy default stream of CUDA waits for the library's work on the tensor.
    pub(crate) fn read(
        object: &Bound<'py, PyAny>,
        library: &'static Library,
    ) -> PyResult<Given<'py>> {
        let exchange = library.exchange;
        if let Some(read) = exchange.and_then(|t| t.tensor_from_object) {
            let mut tensor = DlTensor {
                data: null_mut(),
                device: DlDevice { device_type: 0, device_id: 0 },
                ndim: 0,
                dtype: DlDataType { code: 0, bits: 0, lanes: 0 },
                shape: null(),
                strides: null(),
                byte_offset: 0,
            };
            // SAFETY: the table belongs to the type of the object, and the result has DLPack's
            // layout.
            let status = unsafe { read(object.as_ptr().cast(), &mut tensor) };
            if status != 0 {
                return Err(PyErr::take(object.py())
                    .unwrap_or_else(|| PyBufferError::new_err("a tensor cannot be read")));
            }
            let (tensor, is_read_only) = (whole(tensor)?, library.is_read_only);
            return Ok(Given { tensor, is_read_only, stream: None, library, _kept: None });
        }
        let (capsule, stream) = capsule(object, library)?;
        let (name, versioned) = (c"dltensor", c"dltensor_versioned");
        if let Ok(pointer) = capsule.pointer_checked(Some(versioned)) {
            let managed: *const Versioned = pointer.as_ptr().cast_const().cast();
            // SAFETY: a capsule with this name contains this structure until it is consumed. The
            // beginning of the structure is equal in all versions.
            let managed = unsafe { &*managed };
            if managed.version[0] != 1 {
                let [major, minor] = managed.version;
                let text = format!("a tensor of DLPack {major}.{minor}; version 1.x is needed");
                return Err(PyBufferError::new_err(text));
            }
            let is_read_only = library.is_read_only || managed.flags & READ_ONLY != 0;
            let (tensor, stream, kept) = (whole(managed.tensor)?, Some(stream), Some(capsule));
            return Ok(Given { tensor, is_read_only, stream, library, _kept: kept });
        }
        let pointer = capsule.pointer_checked(Some(name))?;
        let managed: *const Managed = pointer.as_ptr().cast_const().cast();
        // SAFETY: as above.
        let tensor = whole(unsafe { (*managed).tensor })?;
        let is_read_only = library.is_read_only;
        Ok(Given { tensor, is_read_only, stream: Some(stream), library, _kept: Some(capsule) })
    }

    /// The tensor in the form that the launcher needs.
    pub(crate) fn view(&self) -> View<'_> {
        // SAFETY: DLPack states that there is one extent and one stride per mode; `_kept` owns
        // them.
        unsafe { self.tensor.view(self.is_read_only) }
    }

    /// The current stream of the library on the tensor's CUDA device.
    pub(crate) fn stream(&self) -> u64 {
        let (mut stream, device) = (null_mut(), self.tensor.device);
        let current = self.library.exchange.and_then(|t| t.current_stream);
        if self.stream.is_none()
            && let Some(current) = current
        {
            // SAFETY: the function writes a handle.
            unsafe { current(device.device_type, device.device_id, &mut stream) };
        }
        self.stream.unwrap_or(stream.addr() as u64)
    }

    /// Marks a new tensor as writable.
    pub(crate) fn writable(self) -> Self {
        Given { is_read_only: false, ..self }
    }
}

/// Checks that the description is a tensor.
fn whole(tensor: DlTensor) -> PyResult<DlTensor> {
    // SAFETY: DLPack states that there are as many extents as modes.
    let whole = unsafe { tensor.checked() };
    whole.map_err(|e: NoTensor| PyBufferError::new_err(e.to_string()))
}

/// A tensor as a capsule in the newest version that its library supports, and the library's current
/// stream. The stream waits for the library's work on the tensor.
fn capsule<'py>(
    object: &Bound<'py, PyAny>,
    library: &Library,
) -> PyResult<(Bound<'py, PyCapsule>, u64)> {
    /// The number of CUDA's legacy default stream in DLPack; elsewhere it is 0.
    const LEGACY: u64 = 1;
    let py = object.py();
    let (kind, _): (i32, i32) = object.call_method0("__dlpack_device__")?.extract()?;
    let keywords = PyDict::new(py);
    let mut stream = 0;
    if matches!(kind, Device::CUDA | Device::CUDA_MANAGED) {
        stream = library.python.bind(py).call_method1("stream", (object,))?.extract()?;
        keywords.set_item("stream", if stream == 0 { LEGACY } else { stream })?;
    }
    let older = keywords.copy()?;
    keywords.set_item("max_version", (1, 1))?;
    let made = match object.call_method("__dlpack__", (), Some(&keywords)) {
        Err(e) if e.is_instance_of::<PyTypeError>(py) => {
            object.call_method("__dlpack__", (), Some(&older))
        }
        made => made,
    };
    Ok((made?.cast_into::<PyCapsule>()?, stream))
}
