//! Defines the Python type of functions that launch the kernels of a program on tensors of PyTorch,
//! CuPy and other libraries. `Program.jit` makes them. A function reads its arguments, creates the
//! results that the caller omits, and launches on the current stream of the tensors' library, or
//! runs the simulator.

use crate::dlpack;
use crate::kernels::{List, is_about_arguments, shown, word_of_integer, word_of_number};
use crate::tvm_ffi;
use crate::work::interruptible;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::expr::VarId;
use carbyne_launch::call::{Given, Kernels, Parameter, Place, Plan, RunsOn, Word};
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyTuple};
use std::collections::BTreeMap;
use std::sync::Arc;

pyo3::import_exception!(carbyne, ArgumentError);
pyo3::import_exception!(carbyne, Error);

/// The kernels of a program as a function of tensors; `Program.jit` makes it.
///
/// Tensors are given in the order of the text, or by name. They are tensors of PyTorch, CuPy, JAX
/// and NumPy, and of any library that supports DLPack. Results are tensors that the kernels write
/// completely before they read them. Results that are not given are created and returned. Sizes are
/// taken from shapes; sizes that no shape states are given by name. An argument that does not fit
/// is an `ArgumentError`, and nothing is launched.
///
/// Kernels are launched on the current stream of the tensors' library. The call does not wait for
/// them. JAX has no current stream: with its arrays, the call waits for the kernels.
#[pyclass(frozen, name = "Function", module = "carbyne")]
pub(crate) struct Function {
    kernels: Arc<Kernels>,
    /// `cuda:0` and so on, or `simulate`.
    #[pyo3(get)]
    device: String,
    /// The program that runs.
    #[pyo3(get)]
    decomposed: Py<PyAny>,
}

/// Arguments in the order of parameters.
struct Arguments<'py> {
    objects: List<Option<Bound<'py, PyAny>>>,
    tensors: List<Option<dlpack::Given<'py>>>,
    words: List<Word>,
    symbols: BTreeMap<VarId, i64>,
}

impl Function {
    /// `gpu` is the index of the GPU on which the kernels are loaded; None for the simulator.
    pub(crate) fn new(kernels: Kernels, gpu: Option<u32>, decomposed: Py<PyAny>) -> Function {
        let device = gpu.map_or("simulate".to_owned(), |gpu| format!("cuda:{gpu}"));
        Function { kernels: Arc::new(kernels), device, decomposed }
    }

    fn parameters(&self) -> &[Parameter] {
        self.kernels.parameters()
    }

    fn misfit(&self, what: &str) -> PyErr {
        PyTypeError::new_err(format!("{what}; call it as `{}`", self.signature()))
    }

    /// Converts an error of a call to an exception.
    fn wrong(&self, error: &Diagnostic) -> PyErr {
        let given = shown(&self.kernels, error);
        if is_about_arguments(error) {
            ArgumentError::new_err(given)
        } else {
            Error::new_err(given)
        }
    }

    fn arguments<'py>(
        &self,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Arguments<'py>> {
        let parameters = self.parameters();
        let mut objects: List<Option<Bound<'py, PyAny>>> = List::from_elem(None, parameters.len());
        let mut symbols = BTreeMap::new();
        let by_name = |name: &str| parameters.iter().position(|p| p.name == name);
        for (key, value) in named.into_iter().flatten() {
            let name: String = key.extract()?;
            if let Some(i) = by_name(&name) {
                objects[i] = Some(value);
            } else if let Some(var) = self.kernels.call().symbol(&name) {
                let size = integer(&name, &value)?.and_then(|n| i64::try_from(n).ok());
                let size = size.ok_or_else(|| {
                    PyValueError::new_err(format!("`{name}` does not fit 64 bits: {value}"))
                })?;
                symbols.insert(var, size);
            } else {
                return Err(self.misfit(&format!("there is no argument `{name}`")));
            }
        }
        if given.len() == parameters.len() {
            // The usual case: all arguments are given by position, or one of them is also named.
            for (place, value) in objects.iter_mut().zip(given) {
                if place.replace(value).is_some() {
                    return Err(self.misfit("an argument is given twice"));
                }
            }
        } else {
            let open = |all: bool| {
                let open = |i: &usize| objects[*i].is_none() && (all || !parameters[*i].is_result);
                (0..parameters.len()).filter(open).collect::<Vec<_>>()
            };
            let places = [open(true), open(false)].into_iter().find(|p| p.len() == given.len());
            let Some(places) = places else {
                return Err(self.misfit(&format!("{} arguments do not fit", given.len())));
            };
            for (i, value) in places.into_iter().zip(given) {
                objects[i] = Some(value);
            }
        }
        for object in &mut objects {
            object.take_if(|o| o.is_none());
        }
        let mut arguments =
            Arguments { tensors: List::new(), words: List::new(), symbols, objects: List::new() };
        for (parameter, object) in parameters.iter().zip(&objects) {
            let (tensor, word) = match object {
                None => (None, 0),
                Some(number) if parameter.is_number => (None, word(parameter, number)?),
                Some(object) => {
                    let Some(library) = dlpack::library(object)? else {
                        let kind = object.get_type().name()?;
                        let text =
                            format!("`{}` is {kind}, and a tensor is wanted", parameter.name);
                        return Err(PyTypeError::new_err(text));
                    };
                    let read = dlpack::Given::read(object, library);
                    let read = read.map_err(|e| about(object.py(), parameter, e))?;
                    let word = read.view().address;
                    (Some(read), word)
                }
            };
            arguments.tensors.push(tensor);
            arguments.words.push(word);
        }
        arguments.objects = objects;
        Ok(arguments)
    }

    /// Creates the missing results with the library of the first given tensor. Returns the indices
    /// of their parameters.
    fn fill(&self, arguments: &mut Arguments<'_>) -> PyResult<Vec<usize>> {
        if arguments.objects.iter().all(Option::is_some) {
            return Ok(vec![]);
        }
        let given = arguments.given(self.parameters());
        let results = |plan: &mut Plan| Ok(plan.results().to_vec());
        let results = self.kernels.calls().with(&given, &arguments.symbols, results);
        let results = results.map_err(|e| self.wrong(&e))?;
        drop(given);
        let like = arguments.objects.iter().zip(&arguments.tensors);
        let mut like = like.filter_map(|(object, t)| Some((object.clone()?, t.as_ref()?.library)));
        let Some((like, library)) = like.next() else {
            return Err(self.misfit("no tensor is given, so the device of a result is unknown"));
        };
        for (i, shape) in &results {
            let made = library.empty(&like, shape)?;
            let read = dlpack::Given::read(&made, library)?.writable();
            arguments.words[*i] = read.view().address;
            arguments.tensors[*i] = Some(read);
            arguments.objects[*i] = Some(made);
        }
        Ok(results.into_iter().map(|(i, _)| i).collect())
    }
}

impl Arguments<'_> {
    fn given<'a>(&'a self, parameters: &[Parameter]) -> List<Given<'a>> {
        let given =
            |(tensor, (p, object)): (&'a Option<dlpack::Given<'_>>, (&Parameter, &Option<_>))| {
                match tensor {
                    Some(tensor) => Given::Tensor(tensor.view()),
                    None if p.is_number && object.is_some() => Given::Number,
                    None => Given::Nothing,
                }
            };
        self.tensors.iter().zip(parameters.iter().zip(&self.objects)).map(given).collect()
    }
}

#[pymethods]
impl Function {
    /// Names of parameters in the order of the text.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.parameters().iter().map(|p| p.name.clone()).collect()
    }

    /// The call in words, such as `f(A, B, [C])`: brackets surround results that a call may omit.
    #[getter]
    fn signature(&self) -> String {
        let name =
            |p: &Parameter| if p.is_result { format!("[{}]", p.name) } else { p.name.clone() };
        format!("f({})", self.parameters().iter().map(name).collect::<Vec<_>>().join(", "))
    }

    /// Launches the kernels on the current stream and does not wait for them. Returns the results
    /// that were not given.
    #[pyo3(signature = (*given, **named))]
    fn __call__<'py>(
        &self,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut arguments = self.arguments(given, named)?;
        let results = self.fill(&mut arguments)?;
        self.launch(given.py(), &arguments)?;
        let left_out = results.iter().filter_map(|i| arguments.objects[*i].clone());
        let mut left_out: Vec<_> = left_out.collect();
        Ok(match left_out.len() {
            0 => None,
            1 => left_out.pop(),
            _ => Some(PyTuple::new(given.py(), left_out)?.into_any()),
        })
    }

    /// Names of the parameters that a call may omit.
    #[getter]
    fn results(&self) -> Vec<String> {
        let results = self.parameters().iter().filter(|p| p.is_result);
        results.map(|p| p.name.clone()).collect()
    }

    /// The signature for `inspect`.
    #[getter]
    fn __signature__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("carbyne._signature")?.call_method1("of", (slf,))
    }

    /// Returns the function itself, which is immutable.
    fn __copy__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __deepcopy__(slf: Py<Self>, _memo: Py<PyAny>) -> Py<Self> {
        slf
    }

    /// When the pickle is read, the kernels are compiled again, or machine code is taken from the
    /// cache.
    fn __reduce__(&self, py: Python<'_>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((self.decomposed.getattr(py, "jit")?, (self.device.clone(),)))
    }

    /// The function as a function of tvm-ffi, a `tvm_ffi.Function`. Any library that calls such
    /// functions launches the kernels, without the Python interpreter.
    ///
    /// It takes all tensors and numbers in the order of the text, including results, followed by
    /// sizes that no tensor states. Kernels are launched on the stream of tvm-ffi's environment. An
    /// argument that does not fit is a `ValueError` or a `TypeError`. It needs the package
    /// `apache-tvm-ffi`: `pip install carbyne[tvm-ffi]`.
    fn tvm_ffi<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        tvm_ffi::function(py, &self.kernels)
    }

    /// Converts the function to a tvm-ffi object if it is an argument of a tvm-ffi function.
    fn __tvm_ffi_object__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.tvm_ffi(py)
    }

    fn __repr__(&self) -> String {
        format!("<Function {} on {}>", self.signature(), self.device)
    }
}

impl Function {
    #[expect(unsafe_code, reason = "tensors of other libraries")]
    fn launch(&self, py: Python<'_>, arguments: &Arguments<'_>) -> PyResult<()> {
        let (kernels, given) = (&self.kernels, arguments.given(self.parameters()));
        let (words, symbols) = (&arguments.words, &arguments.symbols);
        let devices = match kernels.runs_on() {
            RunsOn::Gpus(devices) => devices,
            RunsOn::Simulator(simulator) => {
                // SAFETY: their libraries keep the tensors during the call.
                let run = || unsafe { kernels.simulate(simulator, &given, words, symbols) };
                return interruptible(py, run)?.map_err(|e| self.wrong(&e));
            }
        };
        let Some(first) = arguments.tensors.iter().flatten().next() else {
            return Err(self.misfit("no tensor is given"));
        };
        let device = first.view().device;
        let place = Place { device, stream: if device.is_cuda() { first.stream() } else { 0 } };
        // SAFETY: the tensors' libraries keep them until the work on the stream is complete,
        // because they free memory in stream order.
        let launched = unsafe { kernels.launch(devices, &given, words, symbols, place) };
        launched.map_err(|e| self.wrong(&e))?;
        if arguments.tensors.iter().flatten().any(|t| t.library.waits) {
            let waited = py.detach(|| devices.wait(place));
            waited.map_err(|e| self.wrong(&e))?;
        }
        Ok(())
    }
}

/// Converts a Python integer; `None` if it has more than 128 bits.
fn integer(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Option<i128>> {
    if !value.is_instance_of::<PyInt>() && !value.hasattr("__index__")? {
        let kind = value.get_type().name()?;
        let text = format!("`{name}` is {kind}, and an integer is wanted");
        return Err(PyTypeError::new_err(text));
    }
    Ok(value.call_method0("__index__")?.extract().ok())
}

/// The bytes of a number.
fn word(parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<Word> {
    let (name, scalar) = (&parameter.name, parameter.scalar);
    if scalar.int_range().is_some() {
        return integer(name, value)?.and_then(|n| word_of_integer(scalar, n)).ok_or_else(|| {
            PyValueError::new_err(format!("`{name}` does not fit {scalar}: {value}"))
        });
    }
    if value.is_instance_of::<PyBool>()
        || !(value.is_instance_of::<PyFloat>() || value.hasattr("__float__")?)
    {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("`{name}` is {kind}, and a number is wanted")));
    }
    let number: f64 = value.call_method0("__float__")?.extract()?;
    Ok(word_of_number(scalar, number))
}

/// Converts an error of another library about an argument. Exceptions that end a program, such as
/// that of Ctrl-C, are unchanged.
fn about(py: Python<'_>, parameter: &Parameter, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let said = format!("`{}` cannot be read by DLPack: {error}", parameter.name);
    let said = PyValueError::new_err(said);
    said.set_cause(py, Some(error));
    said
}
