//! Implements the C object that executes the kernels of a decomposed program on tensors of the
//! caller, on a GPU or on the simulator.

use crate::border::{Failure, Outcome, Status, answer, given, list, misuse, place, silent};
use crate::decomposed::Decomposed;
use crate::diagnostics::{Diagnostics, Text};
use crate::objects::{free, new};
use crate::tensors::{Given, Symbol, misfit, symbols};
use crate::token::{Token, run_with_token};
use carbyne_embed::Diagnostic;
use carbyne_ir::expr::VarId;
use carbyne_launch::Binary;
use carbyne_launch::call::{self, Call, Device, DlTensor, Kernels, Parameter, Place, RunsOn, Word};
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::ptr::null;

/// For `carbyne_function_new`: the simulator, instead of the index of a GPU.
pub const SIMULATOR: i32 = -1;

/// The kernels of a program as one function of tensors. Several threads may call it at once.
pub struct Function {
    kernels: Kernels,
    names: Vec<CString>,
    /// The GPU for calls without tensors.
    device: i32,
}

impl Function {
    /// Takes the index of a GPU, or `CARBYNE_SIMULATOR`. Compiles the kernels if `code` is empty.
    fn new(of: &Decomposed, device: i32, code: &[u8]) -> Outcome<Function> {
        let (_, kernels) = of.kernels()?;
        let text = of.found.text.clone();
        let call = |kernels| Call::new(of.found.program.clone(), kernels, &of.declared);
        let kernels = match u32::try_from(device) {
            Ok(number) => {
                if !carbyne_launch::has_gpu_support() {
                    return Err(carbyne_launch::without_gpu().into());
                }
                let first = kernels.first().map_or("", |k| &k.name);
                let binary = match code {
                    [] => Binary::Cubin(of.compiled()?.cubin),
                    code => Binary::read("code", code.to_vec(), first)?,
                };
                let kernels = Kernels::on_gpus(call(kernels)?, text, binary);
                kernels.load(number)?;
                kernels
            }
            Err(_) if device == SIMULATOR => {
                Kernels::on_simulator(call(kernels)?, text, of.table.clone())
            }
            Err(_) => {
                let help = "pass the index of a GPU, or `CARBYNE_SIMULATOR`";
                return Err(misuse(format!("`device` is {device}"), help));
            }
        };
        let name = |p: &Parameter| CString::new(p.name.as_str()).unwrap_or_default();
        let names = kernels.parameters().iter().map(name).collect();
        Ok(Function { kernels, names, device })
    }

    /// The failure for an error of a call.
    fn refused(&self, error: Diagnostic) -> Failure {
        let text = self.kernels.text_of(&error);
        let name = if text.is_empty() { "" } else { "<program>" };
        Failure::Refused(Text { name: name.into(), text: text.into() }, vec![error])
    }

    fn symbols(&self, given: BTreeMap<String, i64>) -> Outcome<BTreeMap<VarId, i64>> {
        let var = |(name, value): (String, i64)| match self.kernels.call().symbol(&name) {
            Some(var) => Ok((var, value)),
            None => {
                let what = format!("the program has no symbol `{name}`");
                Err(misuse(what, "use a symbol that the program declares"))
            }
        };
        given.into_iter().map(var).collect()
    }
}

/// The arguments of a call in the order of parameters.
struct Arguments<'a> {
    given: Vec<call::Given<'a>>,
    words: Vec<Word>,
}

impl<'a> Arguments<'a> {
    /// Checks the number and the types of arguments.
    ///
    /// # Safety
    /// Pointers are null or point to valid values of their types, and live as long as the result.
    unsafe fn new(parameters: &[Parameter], all: &[*const DlTensor]) -> Outcome<Arguments<'a>> {
        if all.len() != parameters.len() {
            let names: Vec<&str> = parameters.iter().map(|p| &*p.name).collect();
            let what = format!("{} tensors were passed, but {} are needed", all.len(), names.len());
            return Err(misuse(what, &format!("pass {}", names.join(", "))));
        }
        let mut arguments = Arguments { given: vec![], words: vec![] };
        for (parameter, tensor) in parameters.iter().zip(all) {
            // SAFETY: the caller guarantees it.
            let tensor = unsafe { Given::new(*tensor, &parameter.name) }?;
            if parameter.is_number {
                tensor.is_of(&parameter.name, parameter.scalar)?;
                let array = tensor.read(&parameter.name, parameter.scalar)?;
                let [] = array.shape[..] else {
                    let help = "pass a tensor without modes";
                    return Err(misfit(&parameter.name, "is a number", help));
                };
                arguments.words.extend(array.values);
                arguments.given.push(call::Given::Number);
            } else {
                arguments.words.push(tensor.0.address);
                arguments.given.push(call::Given::Tensor(tensor.0));
            }
        }
        Ok(arguments)
    }
}

/// The kernels of a decomposed program as one function. `device` is the index of a GPU, on which
/// the kernels are loaded, or `CARBYNE_SIMULATOR`. `code` is a result of
/// `carbyne_decomposed_compile` of `code_size` bytes. If it is null, the kernels are compiled.
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
        // SAFETY: see the header of `lib.rs`.
        let (function, of, code) = unsafe {
            let function = place(function, "function")?;
            let code = list(code.cast::<u8>(), code_size, "code")?;
            (function, given(decomposed, "decomposed")?, code)
        };
        // SAFETY: there is no token.
        *function = new(unsafe { run_with_token(null(), || Function::new(of, device, code)) }?);
        Ok(())
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// The number of arguments of a call: tensors and numbers. 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_parameter_count(function: *const Function) -> usize {
    // SAFETY: see the header of `lib.rs`.
    unsafe { function.as_ref() }.map_or(0, |f| f.names.len())
}

/// The name of parameter `i`, counted from 0, without `%`. It is valid until the function is freed.
/// Null if there is no parameter `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_parameter(
    function: *const Function,
    i: usize,
) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    let name = unsafe { function.as_ref() }.and_then(|f| f.names.get(i));
    name.map_or(null(), |name| name.as_ptr())
}

/// Calls a function. `arguments` are `count` tensors in the order of parameters. A number is a
/// tensor on the CPU without modes. Sizes follow from shapes; `symbols` are `symbol_count` sizes
/// that do not. All arguments are checked before anything is launched.
///
/// On a GPU the kernels are enqueued in `stream`, and the call does not wait for them: tensors must
/// stay valid until the kernels are complete. `stream` is a `cudaStream_t` or `CUstream` of the
/// device on which the tensors lie, or null for the legacy default stream. On the simulator the
/// tensors lie on the CPU, `stream` is ignored, and the results are complete when the call returns.
/// `token` cancels a simulation; it may be null.
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
        // SAFETY: see the header of `lib.rs`.
        let (function, arguments, symbols) = unsafe {
            let function = given(function, "function")?;
            let all = list(arguments, count, "arguments")?;
            let arguments = Arguments::new(function.kernels.parameters(), all)?;
            (function, arguments, self::symbols(symbols, symbol_count)?)
        };
        let symbols = function.symbols(symbols)?;
        let (kernels, Arguments { given, words }) = (&function.kernels, &arguments);
        match kernels.runs_on() {
            RunsOn::Gpus(devices) => {
                let own = Device { kind: Device::CUDA, number: function.device };
                let device = given.iter().find_map(call::Given::device).unwrap_or(own);
                let place = Place { device, stream: stream.addr() as u64 };
                // SAFETY: the caller keeps the tensors until work in the stream is complete.
                let launched = unsafe { kernels.launch(devices, given, words, &symbols, place) };
                launched.map_err(|e| function.refused(*e))
            }
            RunsOn::Simulator(simulator) => {
                let run = || {
                    // SAFETY: the caller keeps the tensors during the call.
                    let ran = unsafe { kernels.simulate(simulator, given, words, &symbols) };
                    ran.map_err(|e| function.refused(*e))
                };
                // SAFETY: see the header of `lib.rs`.
                unsafe { run_with_token(token, run) }
            }
        }
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// Frees a function that no call uses anymore, and whose kernels are complete. Does nothing for
/// null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_function_free(function: *mut Function) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(function) }
}
