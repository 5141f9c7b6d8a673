//! The kernels of a decomposed program as one function of tensors, on a GPU or on the simulator.

use crate::border::{Failure, Outcome, Status, answer, given, list, misuse, place, silent};
use crate::decomposed::Decomposed;
use crate::diagnostics::{Diagnostics, Text};
use crate::objects::{free, new};
use crate::tensors::{Given, Symbol, misfit, symbols};
use crate::token::{Token, under};
use carbyne_embed::{AtomTable, Diagnostic, Options, Program};
use carbyne_ir::expr::VarId;
use carbyne_launch::call::{self, Cache, Call, Device, DlTensor, Parameter, Place, Word};
use carbyne_launch::{Binary, Devices};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::ptr::null;

/// For `carbyne_function_new`: the simulator, in place of a GPU's number.
pub const SIMULATOR: i32 = -1;

/// The kernels of a program as one function of tensors. Threads may call it at once.
pub struct Function {
    calls: Cache,
    names: Vec<CString>,
    /// The program that runs, in which facts stand.
    text: Text,
    runs_on: RunsOn,
}

enum RunsOn {
    Gpus(Devices, i32),
    Simulator(Box<(Program, AtomTable)>),
}

impl Function {
    /// Of kernels for a GPU of that number, or for the simulator. `code` is that of the kernels; they are compiled if it is empty.
    fn new(of: &Decomposed, device: i32, code: &[u8]) -> Outcome<Function> {
        let (_, kernels) = of.kernels()?;
        let program = of.found.program.clone();
        let runs_on = match u32::try_from(device) {
            Ok(number) => {
                if !carbyne_launch::has_gpu_support() {
                    return Err(carbyne_launch::without_gpu().into());
                }
                let first = kernels.first().map_or("", |k| &k.name);
                let binary = match code {
                    [] => Binary::Cubin(of.compiled()?.cubin),
                    code => Binary::read("code", code.to_vec(), first)?,
                };
                let devices = Devices::new(binary);
                devices.load(number, &kernels)?;
                RunsOn::Gpus(devices, device)
            }
            Err(_) if device == SIMULATOR => {
                RunsOn::Simulator(Box::new((program.clone(), of.table.clone())))
            }
            Err(_) => {
                let help = "give the number of a GPU, or `CARBYNE_SIMULATOR`";
                return Err(misuse(format!("`device` is {device}"), help));
            }
        };
        let call = Call::new(program, kernels, &of.declared)?;
        let name = |p: &Parameter| CString::new(p.name.as_str()).unwrap_or_default();
        let names = call.parameters().iter().map(name).collect();
        let text = Text { name: "<program>".into(), text: of.found.text.as_str().into() };
        Ok(Function { calls: Cache::new(call), names, text, runs_on })
    }

    fn parameters(&self) -> &[Parameter] {
        self.calls.call().parameters()
    }

    /// An error of a call. A fact stands in the text; an argument does not.
    fn refused(&self, errors: Vec<Diagnostic>) -> Failure {
        let text = match errors.iter().all(|e| e.span.end == 0) {
            true => Text::default(),
            false => self.text.clone(),
        };
        Failure::Refused(text, errors)
    }

    fn symbols(&self, given: BTreeMap<String, i64>) -> Outcome<BTreeMap<VarId, i64>> {
        let var = |(name, value): (String, i64)| match self.calls.call().symbol(&name) {
            Some(var) => Ok((var, value)),
            None => {
                let what = format!("the program has no symbol `{name}`");
                Err(misuse(what, "name one that it declares"))
            }
        };
        given.into_iter().map(var).collect()
    }
}

/// Arguments of a call in the order of parameters.
struct Arguments<'a> {
    tensors: Vec<Option<Given<'a>>>,
    given: Vec<call::Given<'a>>,
    words: Vec<Word>,
}

impl<'a> Arguments<'a> {
    /// # Safety
    /// Pointers are null or point to what their types say, and live as long as the result.
    unsafe fn new(parameters: &[Parameter], all: &[*const DlTensor]) -> Outcome<Arguments<'a>> {
        if all.len() != parameters.len() {
            let names: Vec<&str> = parameters.iter().map(|p| &*p.name).collect();
            let what = format!("{} tensors are given, and {} are wanted", all.len(), names.len());
            return Err(misuse(what, &format!("give {}", names.join(", "))));
        }
        let mut arguments = Arguments { tensors: vec![], given: vec![], words: vec![] };
        for (parameter, tensor) in parameters.iter().zip(all) {
            // SAFETY: the caller states it.
            let tensor = unsafe { Given::new(*tensor, &parameter.name) }?;
            if parameter.is_number {
                tensor.is_of(&parameter.name, parameter.scalar)?;
                let array = tensor.read(&parameter.name, parameter.scalar)?;
                let [] = array.shape[..] else {
                    let help = "give a tensor without modes";
                    return Err(misfit(&parameter.name, "is a number", help));
                };
                arguments.words.extend(array.values);
                arguments.given.push(call::Given::Number);
                arguments.tensors.push(None);
            } else {
                arguments.words.push(tensor.view.address);
                arguments.given.push(call::Given::Tensor(tensor.view));
                arguments.tensors.push(Some(tensor));
            }
        }
        Ok(arguments)
    }
}

impl Function {
    /// Puts the kernels into a stream.
    fn launch(
        &self,
        (devices, device): (&Devices, i32),
        arguments: &Arguments<'_>,
        symbols: &BTreeMap<VarId, i64>,
        stream: u64,
    ) -> Outcome<()> {
        let own = Device { kind: Device::CUDA, number: device };
        let first = arguments.tensors.iter().flatten().next();
        let place = Place { device: first.map_or(own, |t| t.view.device), stream };
        let kernels = self.calls.call().kernels();
        let launched = self.calls.with(&arguments.given, symbols, |plan| {
            // SAFETY: the plan is that of the tensors, which the caller keeps until work on the stream is done.
            unsafe { devices.launch(plan, kernels, &arguments.words, place) }
        });
        launched.map_err(|e| self.refused(vec![*e]))
    }

    /// Executes the kernels.
    ///
    /// # Safety
    /// The token is null or alive until the work has ended.
    unsafe fn simulate(
        &self,
        (program, table): (&Program, &AtomTable),
        arguments: &Arguments<'_>,
        symbols: &BTreeMap<VarId, i64>,
        token: *const Token,
    ) -> Outcome<()> {
        // Others may call meanwhile: the simulation does not hold the plan.
        let sizes = self.calls.with(&arguments.given, symbols, |plan| {
            plan.check(&arguments.words).map(|()| plan.sizes().to_vec())
        });
        let sizes = sizes.map_err(|e| self.refused(vec![*e]))?;
        let mut options = Options::default();
        let name = |(var, n)| (self.calls.call().name(var), n);
        options.symbols = sizes.into_iter().map(name).collect();
        let all = || self.parameters().iter().zip(&arguments.tensors);
        for ((parameter, tensor), word) in all().zip(&arguments.words) {
            let (name, scalar) = (&parameter.name, parameter.scalar);
            let array = match tensor {
                None => carbyne_embed::Array { scalar, shape: vec![], values: vec![*word] },
                Some(tensor) => {
                    tensor.is_of(name, scalar)?;
                    if scalar.bits() < 8 || parameter.is_flat() {
                        let what = "is packed, or a mode has several strides";
                        let help =
                            "use `carbyne_program_simulate`, which takes elements by coordinates";
                        return Err(misfit(name, what, help));
                    }
                    // Results hold nothing yet.
                    if parameter.is_result {
                        continue;
                    }
                    tensor.read(name, scalar)?
                }
            };
            options.arrays.insert(name.clone(), array);
        }
        let run = || {
            let ran = carbyne_simulate::simulate(program, table, &options);
            ran.map_err(|error| self.refused(vec![*error]))
        };
        // SAFETY: the caller states it.
        let report = unsafe { under(token, run) }?;
        for (parameter, tensor) in all().filter(|(p, _)| p.is_written) {
            if let (Some(array), Some(tensor)) = (report.outputs.get(&parameter.name), tensor) {
                tensor.write(&parameter.name, &array)?;
            }
        }
        Ok(())
    }
}

/// The kernels of a decomposed program as one function. `device` is the number of a GPU, on which the kernels are loaded, or
/// `CARBYNE_SIMULATOR`. `code` has `code_size` bytes that `carbyne_decomposed_compile` has made; if it is null, the kernels are compiled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_new(
    decomposed: *const Decomposed,
    device: i32,
    code: *const c_char,
    code_size: usize,
    function: *mut *mut Function,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: the head of `lib.rs`.
        let (function, of, code) = unsafe {
            let function = place(function, "function")?;
            let code = list(code.cast::<u8>(), code_size, "code")?;
            (function, given(decomposed, "decomposed")?, code)
        };
        // SAFETY: there is no token.
        *function = new(unsafe { under(null(), || Function::new(of, device, code)) }?);
        Ok(())
    };
    // SAFETY: the head of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// The number of tensors and numbers that a call takes. 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_parameter_count(function: *const Function) -> usize {
    // SAFETY: the head of `lib.rs`.
    unsafe { function.as_ref() }.map_or(0, |f| f.names.len())
}

/// The name in the text of parameter `i`, counted from 0, without `%`. It is there until the function is freed. Null if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_parameter(
    function: *const Function,
    i: usize,
) -> *const c_char {
    // SAFETY: the head of `lib.rs`.
    let name = unsafe { function.as_ref() }.and_then(|f| f.names.get(i));
    name.map_or(null(), |name| name.as_ptr())
}

/// Calls a function. `arguments` are `count` tensors in the order of parameters; a number is a tensor on the CPU without modes. Sizes are
/// taken from shapes; `symbols` are `symbol_count` sizes that no shape states. All is checked before anything is launched.
///
/// On a GPU, kernels are put into `stream`, a `cudaStream_t` or `CUstream` of the device on which the tensors lie, null for the legacy
/// default stream, and are not waited for: tensors must stay until they are done. On the simulator, tensors lie on the CPU, `stream` is not
/// used, and results are there when the call returns. `token` ends a simulation; it may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_call(
    function: *const Function,
    arguments: *const *const DlTensor,
    count: usize,
    symbols: *const Symbol,
    symbol_count: usize,
    stream: *mut c_void,
    token: *const Token,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: the head of `lib.rs`.
        let (function, arguments, symbols) = unsafe {
            let function = given(function, "function")?;
            let all = list(arguments, count, "arguments")?;
            let arguments = Arguments::new(function.parameters(), all)?;
            (function, arguments, self::symbols(symbols, symbol_count)?)
        };
        let symbols = function.symbols(symbols)?;
        match &function.runs_on {
            RunsOn::Gpus(devices, device) => {
                let stream = stream.addr() as u64;
                function.launch((devices, *device), &arguments, &symbols, stream)
            }
            RunsOn::Simulator(of) => {
                // SAFETY: the head of `lib.rs`.
                unsafe { function.simulate((&of.0, &of.1), &arguments, &symbols, token) }
            }
        }
    };
    // SAFETY: the head of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// Frees a function that no call uses anymore, and whose kernels are done. Null is nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_free(function: *mut Function) {
    // SAFETY: the head of `lib.rs`.
    unsafe { free(function) }
}
