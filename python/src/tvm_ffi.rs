//! Makes kernels available as functions of tvm-ffi, a C interface for functions of tensors. Other
//! libraries call them without the Python interpreter. The files `tvm/ffi/c_api.h` and
//! `tvm/ffi/extra/c_env_api.h` in the Python package `apache-tvm-ffi` declare the C interface.
//!
//! The library of that package is opened when the first function is made.
#![allow(unsafe_code, reason = "the C interface of tvm-ffi")]

use crate::kernels::{List, is_about_arguments, shown, word_of_integer, word_of_number};
use crate::work::until;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::expr::VarId;
use carbyne_launch::call::{Device, DlTensor, Given, Kernels, Parameter, Place, RunsOn, Word};
use libloading::Library;
use pyo3::exceptions::{PyImportError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::Arc;

/// `TVMFFIAny`
#[repr(C)]
#[derive(Copy, Clone)]
struct Any {
    kind: i32,
    padding: u32,
    value: Value,
}

#[repr(C)]
#[derive(Copy, Clone)]
union Value {
    integer: i64,
    float: f64,
    pointer: *mut c_void,
}

/// `TVMFFIObject`
#[repr(C)]
struct Object {
    references: u64,
    kind: i32,
    padding: u32,
    deleter: *const c_void,
}

/// `TVMFFITypeIndex`
mod kind {
    pub(super) const NONE: i32 = 0;
    pub(super) const INT: i32 = 1;
    pub(super) const BOOL: i32 = 2;
    pub(super) const FLOAT: i32 = 3;
    pub(super) const TENSOR_POINTER: i32 = 7;
    pub(super) const RAW_STRING: i32 = 8;
    /// A reference that the callee may take over.
    pub(super) const MOVED: i32 = 10;
    pub(super) const SMALL_STRING: i32 = 11;
    pub(super) const STRING: i32 = 65;
    pub(super) const FUNCTION: i32 = 68;
    pub(super) const TENSOR: i32 = 70;
}

/// `TVMFFISafeCallType`
type SafeCall = unsafe extern "C" fn(*mut c_void, *const Any, i32, *mut Any) -> c_int;

/// The functions of tvm-ffi that this module uses.
struct Api {
    function_create: unsafe extern "C" fn(
        *mut c_void,
        SafeCall,
        Option<unsafe extern "C" fn(*mut c_void)>,
        *mut *mut c_void,
    ) -> c_int,
    set_raised: unsafe extern "C" fn(*const c_char, *const c_char),
    get_stream: unsafe extern "C" fn(i32, i32) -> *mut c_void,
    check_signals: unsafe extern "C" fn() -> c_int,
    _library: Library,
}

impl Api {
    fn open(path: &str) -> Result<Api, libloading::Error> {
        // SAFETY: Python has already opened the library; the functions have the signatures of its
        // headers.
        unsafe {
            let library = Library::new(path)?;
            Ok(Api {
                function_create: *library.get(b"TVMFFIFunctionCreate\0")?,
                set_raised: *library.get(b"TVMFFIErrorSetRaisedFromCStr\0")?,
                get_stream: *library.get(b"TVMFFIEnvGetStream\0")?,
                check_signals: *library.get(b"TVMFFIEnvCheckSignals\0")?,
                _library: library,
            })
        }
    }

    /// Opens the library of the package `apache-tvm-ffi`, once.
    fn of_package(tvm_ffi: &Bound<'_, PyModule>) -> PyResult<&'static Api> {
        static API: PyOnceLock<Api> = PyOnceLock::new();
        let py = tvm_ffi.py();
        API.get_or_try_init(py, || {
            let path = py.import("tvm_ffi.libinfo")?.call_method0("find_libtvm_ffi")?;
            let path: String = path.str()?.extract()?;
            Api::open(&path).map_err(|e| PyImportError::new_err(format!("`{path}`: {e}")))
        })
    }

    fn raise(&self, Refusal { kind, message }: Refusal) {
        let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
        // SAFETY: both are C strings, which the function copies.
        unsafe { (self.set_raised)(kind.as_ptr(), message.as_ptr()) };
    }
}

/// An error for tvm-ffi: the name of a Python exception, and a message.
struct Refusal {
    kind: &'static CStr,
    message: String,
}

/// The kernels of a tvm-ffi function.
struct Exported {
    kernels: Arc<Kernels>,
    api: &'static Api,
    /// Sizes that follow tensors and numbers, because no tensor states them.
    open_sizes: Vec<VarId>,
}

thread_local! {
    /// The function that [`hand_over`] returns.
    static MADE: Cell<*mut c_void> = const { Cell::new(null_mut()) };
}

/// The kernels as a `tvm_ffi.Function`.
pub(crate) fn function<'py>(
    py: Python<'py>,
    kernels: &Arc<Kernels>,
) -> PyResult<Bound<'py, PyAny>> {
    let tvm_ffi = py.import("tvm_ffi")?;
    let api = Api::of_package(&tvm_ffi)?;
    let open_sizes = kernels.call().open_sizes();
    let open_sizes = open_sizes.map_err(|e| PyRuntimeError::new_err(e.message.clone()))?;
    let exported = Exported { kernels: kernels.clone(), api, open_sizes };
    let (own, mut made) = (Box::into_raw(Box::new(exported)).cast(), null_mut());
    // SAFETY: the functions take the boxed kernels, and `dropped` is called last and frees them.
    let status = unsafe { (api.function_create)(own, called, Some(dropped), &mut made) };
    if status != 0 {
        // SAFETY: no function owns the kernels.
        unsafe { dropped(own) };
        return Err(PyRuntimeError::new_err("tvm-ffi cannot create a function"));
    }
    // A tvm-ffi function that returns this function converts it to a Python object.
    MADE.set(made);
    let address = (hand_over as SafeCall as *const c_void).expose_provenance();
    tvm_ffi.getattr("Function")?.call_method1("__from_extern_c__", (address,))?.call0()
}

/// Returns the function that this thread has made.
unsafe extern "C" fn hand_over(_: *mut c_void, _: *const Any, _: i32, result: *mut Any) -> c_int {
    let pointer = MADE.replace(null_mut());
    let kind = if pointer.is_null() { kind::NONE } else { kind::FUNCTION };
    // SAFETY: tvm-ffi gives a place for the result, which then owns the reference.
    unsafe { *result = Any { kind, padding: 0, value: Value { pointer } } };
    0
}

unsafe extern "C" fn dropped(own: *mut c_void) {
    // SAFETY: tvm-ffi calls this once, with the data of the function.
    drop(unsafe { Box::from_raw(own.cast::<Exported>()) });
}

unsafe extern "C" fn called(
    own: *mut c_void,
    args: *const Any,
    count: i32,
    result: *mut Any,
) -> c_int {
    // SAFETY: tvm-ffi keeps the data of the function during the call.
    let exported = unsafe { &*own.cast::<Exported>() };
    let given = match usize::try_from(count) {
        Ok(count) if count > 0 => {
            // SAFETY: tvm-ffi gives `count` arguments and keeps them during the call.
            unsafe { std::slice::from_raw_parts(args, count) }
        }
        _ => &[],
    };
    let done = catch_unwind(AssertUnwindSafe(|| exported.call(given)));
    let refused = match done {
        Ok(Ok(())) => {
            let value = Value { integer: 0 };
            // SAFETY: tvm-ffi gives a place for the result.
            unsafe { *result = Any { kind: kind::NONE, padding: 0, value } };
            return 0;
        }
        Ok(Err(refusal)) => refusal,
        Err(_) => Refusal::new(c"RuntimeError", "internal error of carbyne"),
    };
    exported.api.raise(refused);
    -1
}

impl Refusal {
    fn new(kind: &'static CStr, message: impl Into<String>) -> Refusal {
        Refusal { kind, message: message.into() }
    }
}

impl Exported {
    fn call(&self, args: &[Any]) -> Result<(), Refusal> {
        let parameters = self.kernels.parameters();
        if args.len() != parameters.len() + self.open_sizes.len() {
            let (given, call) = (args.len(), self.signature());
            let text = format!("{given} arguments do not fit; call it as `{call}`");
            return Err(Refusal::new(c"TypeError", text));
        }
        let (given, sizes) = args.split_at(parameters.len());
        let mut all: List<Given<'_>> = List::new();
        let mut words: List<Word> = List::new();
        for (parameter, any) in parameters.iter().zip(given) {
            let (given, word) = self.read(parameter, any)?;
            all.push(given);
            words.push(word);
        }
        let mut symbols = BTreeMap::new();
        for (var, any) in self.open_sizes.iter().zip(sizes) {
            let name = self.kernels.call().name(*var);
            let value = any.integer().ok_or_else(|| self.other(&name, any, "an integer"))?;
            symbols.insert(*var, value);
        }
        self.execute(&all, &words, &symbols)
    }

    fn execute(
        &self,
        given: &[Given<'_>],
        words: &[Word],
        symbols: &BTreeMap<VarId, i64>,
    ) -> Result<(), Refusal> {
        let kernels = &*self.kernels;
        let devices = match kernels.runs_on() {
            RunsOn::Gpus(devices) => devices,
            RunsOn::Simulator(simulator) => {
                // SAFETY: the function has no arguments.
                let signalled = |_: &_| unsafe { (self.api.check_signals)() } != 0;
                // SAFETY: tvm-ffi keeps the tensors during the call.
                let run = || unsafe { kernels.simulate(simulator, given, words, symbols) };
                let run = until(signalled, run);
                let run = run.map_err(|e| Refusal::new(c"RuntimeError", e.to_string()))?;
                // The interpreter has a pending exception, which tvm-ffi raises for an error of
                // this kind.
                let run = run.map_err(|_| Refusal::new(c"EnvErrorAlreadySet", ""))?;
                return run.map_err(|e| self.wrong(&e));
            }
        };
        let Some(device) = given.iter().find_map(Given::device) else {
            return Err(Refusal::new(c"TypeError", "no tensor is given"));
        };
        let stream = match device.is_cuda() {
            // SAFETY: the function takes any numbers.
            true => unsafe { (self.api.get_stream)(Device::CUDA, device.number) }.addr() as u64,
            false => 0,
        };
        let place = Place { device, stream };
        // SAFETY: the owners of the tensors keep them until the work on the stream is complete.
        let launched = unsafe { kernels.launch(devices, given, words, symbols, place) };
        launched.map_err(|e| self.wrong(&e))
    }

    /// An argument in the form that the launcher needs, and its address or its bytes.
    fn read<'a>(&self, parameter: &Parameter, any: &'a Any) -> Result<(Given<'a>, Word), Refusal> {
        let (name, scalar) = (&parameter.name, parameter.scalar);
        if !parameter.is_number {
            let tensor = any.tensor().ok_or_else(|| self.other(name, any, "a tensor"))?;
            // SAFETY: tvm-ffi's tensors are DLPack's, and live while the function is called.
            let view = unsafe { tensor.checked().map(|tensor| tensor.view(false)) };
            let view = view.map_err(|e| Refusal::new(c"ValueError", format!("`{name}` is {e}")))?;
            return Ok((Given::Tensor(view), view.address));
        }
        let word = if scalar.int_range().is_some() {
            let n = any.integer().ok_or_else(|| self.other(name, any, "an integer"))?;
            word_of_integer(scalar, i128::from(n)).ok_or_else(|| {
                Refusal::new(c"ValueError", format!("`{name}` does not fit {scalar}: {n}"))
            })?
        } else {
            let n = any.number().ok_or_else(|| self.other(name, any, "a number"))?;
            word_of_number(scalar, n)
        };
        Ok((Given::Number, word))
    }

    fn wrong(&self, error: &Diagnostic) -> Refusal {
        let (message, _) = shown(&self.kernels, error);
        let kind = if is_about_arguments(error) { c"ValueError" } else { c"RuntimeError" };
        Refusal { kind, message }
    }

    /// The error for an argument of another type.
    fn other(&self, name: &str, any: &Any, wanted: &str) -> Refusal {
        let (is, call) = (any.described(), self.signature());
        let text = format!("`{name}` is {is}, and {wanted} is wanted; call it as `{call}`");
        Refusal::new(c"TypeError", text)
    }

    fn signature(&self) -> String {
        let call = self.kernels.call();
        let names = call.parameters().iter().map(|p| p.name.clone());
        let all = names.chain(self.open_sizes.iter().map(|v| call.name(*v)));
        format!("f({})", all.collect::<Vec<_>>().join(", "))
    }
}

impl Any {
    fn tensor(&self) -> Option<DlTensor> {
        let of_object = |object: *const Object| {
            // SAFETY: the pointer refers to an object; the `DLTensor` of a tensor follows the
            // object's header.
            let is_tensor = unsafe { object.as_ref() }.is_some_and(|o| o.kind == kind::TENSOR);
            // SAFETY: as above.
            is_tensor.then(|| unsafe { *object.add(1).cast::<DlTensor>() })
        };
        // SAFETY: the type index tells which field is set.
        unsafe {
            match self.kind {
                kind::TENSOR_POINTER => self.value.pointer.cast::<DlTensor>().as_ref().copied(),
                kind::TENSOR => of_object(self.value.pointer.cast()),
                kind::MOVED => {
                    self.value.pointer.cast::<*const Object>().as_ref().copied().and_then(of_object)
                }
                _ => None,
            }
        }
    }

    fn integer(&self) -> Option<i64> {
        // SAFETY: as above.
        matches!(self.kind, kind::INT | kind::BOOL).then(|| unsafe { self.value.integer })
    }

    fn number(&self) -> Option<f64> {
        // SAFETY: as above.
        match self.kind {
            kind::FLOAT => Some(unsafe { self.value.float }),
            kind::INT => Some(unsafe { self.value.integer } as f64),
            _ => None,
        }
    }

    fn described(&self) -> String {
        let known = match self.kind {
            kind::NONE => "None",
            kind::INT => "an integer",
            kind::BOOL => "a bool",
            kind::FLOAT => "a float",
            kind::TENSOR_POINTER | kind::TENSOR => "a tensor",
            kind::RAW_STRING | kind::SMALL_STRING | kind::STRING => "a string",
            kind => return format!("a value of tvm-ffi's type {kind}"),
        };
        known.to_owned()
    }
}
