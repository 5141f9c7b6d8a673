//! Functions of Python that launch the kernels of a program on tensors of other libraries.

use crate::dlpack;
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_launch::Binary;
use carbyne_launch::call::{Cache, Call, Given, Parameter, Place, Plan, Word};
use carbyne_simulate::num;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyTuple};
use smallvec::SmallVec;
use std::collections::BTreeMap;

pyo3::import_exception!(carbyne, ArgumentError);
pyo3::import_exception!(carbyne, Error);

/// The device of a function that the simulator executes.
const SIMULATE: &str = "simulate";

/// The kernels of a program as a function of tensors: `Program.jit` makes it.
///
/// Tensors are given in the order of the text, or by name. They are those of PyTorch, CuPy, JAX and NumPy, and of any library that has
/// DLPack. Results, which the kernels write as a whole before they read them, may be left out: they are made and returned. Sizes are
/// taken from shapes; those that no shape states are given by name. An argument that does not fit is an `ArgumentError`, and nothing
/// is launched.
///
/// Kernels are launched on the current stream of the tensors' library, and are not waited for. JAX has no current stream: with its
/// arrays, the call waits for the kernels.
#[pyclass(frozen, name = "Function", module = "carbyne")]
pub(crate) struct Function {
    calls: Cache,
    /// Its text, in which facts stand.
    text: String,
    /// The program that runs.
    #[pyo3(get)]
    decomposed: Py<PyAny>,
    /// `cuda:0` and so on, or `simulate`.
    #[pyo3(get)]
    device: String,
    /// None for the simulator.
    devices: Option<Devices>,
}

/// One thing for each of a few parameters.
type List<T> = SmallVec<[T; 8]>;

/// Arguments in the order of parameters.
struct Arguments<'py> {
    objects: List<Option<Bound<'py, PyAny>>>,
    tensors: List<Option<dlpack::Given<'py>>>,
    words: List<Word>,
    symbols: BTreeMap<VarId, i64>,
}

impl Function {
    /// Of kernels that run on a GPU, or that the simulator executes.
    pub(crate) fn new(
        call: Call,
        (decomposed, text): (Py<PyAny>, String),
        on: Option<(Binary, u32)>,
    ) -> Function {
        let device = on.as_ref().map_or(SIMULATE.to_owned(), |(_, gpu)| format!("cuda:{gpu}"));
        Function {
            calls: Cache::new(call),
            text,
            decomposed,
            device,
            devices: on.map(|(binary, _)| Devices::new(binary)),
        }
    }

    /// Loads the kernels on a device.
    pub(crate) fn load(&self, device: u32) -> Result<(), Box<Diagnostic>> {
        let kernels = self.calls.call().kernels();
        self.devices.as_ref().map_or(Ok(()), |devices| devices.load(device, kernels))
    }

    fn parameters(&self) -> &[Parameter] {
        self.calls.call().parameters()
    }

    /// The call as a person writes it, such as `f(A, B[, C])`.
    fn signature(&self) -> String {
        let shown =
            |p: &Parameter| if p.is_result { format!("[{}]", p.name) } else { p.name.clone() };
        format!("f({})", self.parameters().iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    fn misfit(&self, what: &str) -> PyErr {
        PyTypeError::new_err(format!("{what}; call it as `{}`", self.signature()))
    }

    /// An error about arguments or the GPU as an exception.
    fn wrong(&self, error: &Diagnostic) -> PyErr {
        let list = std::slice::from_ref(error);
        // A fact stands in the text; an argument does not.
        let text = if error.span.end == 0 { "" } else { &self.text };
        let given = crate::error::shown("<program>", text, list);
        match error.code {
            Code::BadInput | Code::SymbolValue | Code::Symbolic => ArgumentError::new_err(given),
            _ => Error::new_err(given),
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
            } else if let Some(var) = self.calls.call().symbol(&name) {
                symbols.insert(var, value.extract()?);
            } else {
                return Err(self.misfit(&format!("there is no argument `{name}`")));
            }
        }
        if given.len() == parameters.len() {
            // Nothing is left out, and nothing is named, or it is named twice.
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

    /// Makes the results that are left out, by the library of the first tensor that is given. Returns the numbers of their parameters.
    fn fill(&self, arguments: &mut Arguments<'_>) -> PyResult<Vec<usize>> {
        if arguments.objects.iter().all(Option::is_some) {
            return Ok(vec![]);
        }
        let results = self.with_plan(arguments, |plan| Ok(plan.results().to_vec()))?;
        let like = arguments.objects.iter().zip(&arguments.tensors);
        let mut like = like.filter_map(|(object, t)| Some((object.clone()?, t.as_ref()?.library)));
        let Some((like, library)) = like.next() else {
            return Err(self.misfit("no tensor is given, so that a result would lie nowhere"));
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

    /// Uses the plan for these arguments.
    fn with_plan<T>(
        &self,
        arguments: &Arguments<'_>,
        then: impl FnOnce(&mut Plan) -> Result<T, Box<Diagnostic>>,
    ) -> PyResult<T> {
        let given = arguments.given(self.parameters());
        self.calls.with(&given, &arguments.symbols, then).map_err(|e| self.wrong(&e))
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

    /// The call as a person writes it: results that may be left out stand in brackets.
    #[getter(signature)]
    fn shown(&self) -> String {
        self.signature()
    }

    /// Checks arguments as a call does, and makes results that are left out. Returns all arguments by name, sizes by name, and names
    /// of results that were left out.
    #[pyo3(signature = (*given, **named))]
    #[expect(clippy::type_complexity, reason = "a tuple of Python")]
    fn bind<'py>(
        &self,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(BTreeMap<String, Bound<'py, PyAny>>, BTreeMap<String, i64>, Vec<String>)> {
        let parameters = self.parameters();
        let mut arguments = self.arguments(given, named)?;
        let results = self.fill(&mut arguments)?;
        let sizes = self.with_plan(&arguments, |plan| {
            plan.check(&arguments.words).map(|()| plan.sizes().to_vec())
        })?;
        let names = parameters.iter().map(|p| p.name.clone());
        let given = names.zip(arguments.objects).filter_map(|(name, o)| Some((name, o?)));
        let sizes = sizes.into_iter().map(|(var, n)| (self.calls.call().name(var), n));
        let results = results.iter().map(|i| parameters[*i].name.clone());
        Ok((given.collect(), sizes.collect(), results.collect()))
    }

    /// Launches the kernels on the current stream, and does not wait for them. Returns the results that were left out.
    #[pyo3(signature = (*given, **named))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        given: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (this, py) = (slf.get(), given.py());
        if this.device == SIMULATE {
            let named = named.cloned().unwrap_or_else(|| PyDict::new(py));
            let simulate = py.import("carbyne._call")?.getattr("simulate")?;
            return Ok(Some(simulate.call1((slf, given, named))?));
        }
        this.called(given, named)
    }

    fn __repr__(&self) -> String {
        format!("<Function {} on {}>", self.signature(), self.device)
    }
}

impl Function {
    fn called<'py>(
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

    fn launch(&self, py: Python<'_>, arguments: &Arguments<'_>) -> PyResult<()> {
        let Some(devices) = &self.devices else {
            return Err(PyValueError::new_err("the function is for the simulator"));
        };
        let Some(first) = arguments.tensors.iter().flatten().next() else {
            return Err(self.misfit("no tensor is given"));
        };
        let device = first.view().device;
        let place = Place { device, stream: if device.is_cuda() { first.stream() } else { 0 } };
        let kernels = self.calls.call().kernels();
        self.with_plan(arguments, |plan| {
            launched(devices, plan, kernels, &arguments.words, place)
        })?;
        if arguments.tensors.iter().flatten().any(|t| t.library.waits) {
            let waited = py.detach(|| devices.wait(place));
            waited.map_err(|e| self.wrong(&e))?;
        }
        Ok(())
    }
}

#[cfg(feature = "gpu")]
use carbyne_launch::Devices;

/// Stands for kernels on GPUs in a package that was built without GPU support.
#[cfg(not(feature = "gpu"))]
struct Devices;

#[cfg(not(feature = "gpu"))]
impl Devices {
    fn new(_: Binary) -> Devices {
        Devices
    }

    fn load(&self, _: u32, _: &[CudaKernel]) -> Result<(), Box<Diagnostic>> {
        Err(carbyne_launch::without_gpu())
    }

    fn wait(&self, _: Place) -> Result<(), Box<Diagnostic>> {
        Err(carbyne_launch::without_gpu())
    }
}

#[cfg(not(feature = "gpu"))]
fn launched(
    _: &Devices,
    _: &mut Plan,
    _: &[CudaKernel],
    _: &[Word],
    _: Place,
) -> Result<(), Box<Diagnostic>> {
    Err(carbyne_launch::without_gpu())
}

#[cfg(feature = "gpu")]
#[expect(unsafe_code, reason = "launches kernels on memory of others")]
fn launched(
    devices: &Devices,
    plan: &mut Plan,
    kernels: &[CudaKernel],
    words: &[Word],
    place: Place,
) -> Result<(), Box<Diagnostic>> {
    // SAFETY: the plan is that of the tensors, which their libraries keep until work on the stream is done: they free memory in
    // the order of the stream.
    unsafe { devices.launch(plan, kernels, words, place) }
}

/// The bytes of a number.
fn word(parameter: &Parameter, value: &Bound<'_, PyAny>) -> PyResult<Word> {
    let (name, scalar) = (&parameter.name, parameter.scalar);
    if let Some((least, most)) = scalar.int_range() {
        let is_integer = value.is_instance_of::<PyInt>() || value.hasattr("__index__")?;
        if !is_integer {
            let kind = value.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "`{name}` is {kind}, and an integer is wanted"
            )));
        }
        let number: i128 = value
            .call_method0("__index__")?
            .extract()
            .ok()
            .filter(|n| (least..=most).contains(n))
            .ok_or_else(|| {
                PyValueError::new_err(format!("`{name}` does not fit {scalar}: {value}"))
            })?;
        return Ok(number as u64 & (u64::MAX >> (64 - scalar.bits().max(8))));
    }
    if value.is_instance_of::<PyBool>()
        || !(value.is_instance_of::<PyFloat>() || value.hasattr("__float__")?)
    {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!("`{name}` is {kind}, and a number is wanted")));
    }
    let number: f64 = value.call_method0("__float__")?.extract()?;
    Ok(num::encode(scalar, number))
}

/// An error of another library about an argument. What ends a program, such as Ctrl-C, stays what it is.
fn about(py: Python<'_>, parameter: &Parameter, error: PyErr) -> PyErr {
    if !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let said = format!("`{}` cannot be read by DLPack: {error}", parameter.name);
    let said = PyValueError::new_err(said);
    said.set_cause(py, Some(error));
    said
}
