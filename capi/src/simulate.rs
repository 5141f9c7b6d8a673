//! Simulates a program on the CPU. Inputs and outputs are tensors of the caller, matched by name.
//! The function first refuses a written tensor that shares memory with any other passed tensor. It
//! writes results only if the run succeeds.

use crate::border::{
    Outcome, Status, answer, given, list, misuse, optional_word, options, place, word,
};
use crate::bytes::{Bytes, bytes};
use crate::diagnostics::Diagnostics;
use crate::program::{Program, refused};
use crate::tensors::{Given, NamedTensor, Symbol, misfit, symbols};
use crate::token::{Token, run_with_token};
use carbyne::documents;
use carbyne_codegen::results;
use carbyne_embed::{Code, Diagnostic, Inputs, Options, Report};
use carbyne_ir::program::{Buffer, BufferId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;

/// Options of a simulation. A field with the value 0 has its default.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct SimulateOptions {
    /// `sizeof(CarbyneSimulateOptions)`.
    pub size: usize,
    /// `symbol_count` values of sizes that the program leaves open.
    pub symbols: *const Symbol,
    /// The number of elements of `symbols`.
    pub symbol_count: usize,
    /// The number of blocks of each kernel that are executed. 0 for all of them.
    pub blocks: u64,
    /// The seed of a random order of warps and asynchronous copies. 0 for the order of the text.
    pub schedule: u64,
    /// The seed of random contents for tensors that are not passed.
    pub seed: u64,
    /// Maximum number of steps of a kernel, of about eight nanoseconds each. 0 for the default
    /// limit.
    pub budget: u64,
}

/// A tensor of the program with memory of the caller.
struct Bound<'a> {
    name: &'a str,
    given: Given<'a>,
    is_result: bool,
    is_written: bool,
}

/// The tensors of the caller for an execution.
///
/// # Safety
/// Pointers are null or point to valid values of their types, and live as long as the result.
unsafe fn bound<'a>(
    program: &Program,
    (from, count): (*const NamedTensor, usize),
    options: &mut Options,
) -> Outcome<Vec<Bound<'a>>> {
    // SAFETY: the caller guarantees it.
    let all: &[NamedTensor] = unsafe { list(from, count, "tensors") }?;
    let program = program.checked.program();
    let results = results(program);
    let outputs = program.kernels.iter().flat_map(|k| &program.specs[*k].outputs);
    let written: BTreeSet<BufferId> = outputs.map(|t| program.tensors[*t].buffer).collect();
    let of_caller = |(_, b): &(BufferId, &Buffer)| b.is_global() || b.is_number();
    let of_caller: BTreeMap<&str, (BufferId, &Buffer)> =
        program.buffers.iter().filter(of_caller).map(|of| (&*of.1.name, of)).collect();
    let mut bound: Vec<Bound<'a>> = vec![];
    for NamedTensor { name, tensor } in all {
        // SAFETY: the caller guarantees it.
        let (name, given) = unsafe {
            let name = word(*name, "tensors.name")?;
            (name, Given::new(*tensor, name)?)
        };
        let Some((id, buffer)) = of_caller.get(name) else {
            let known: Vec<String> = of_caller.keys().map(|name| format!("`{name}`")).collect();
            let help = format!("use one of the program's tensors: {}", known.join(", "));
            return Err(misfit(name, "is not a tensor of the program's caller", &help));
        };
        if bound.iter().any(|b| b.name == name) {
            return Err(misfit(name, "was passed twice", "pass it once"));
        }
        given.is_of(name, buffer.scalar)?;
        // Results have no contents yet.
        let is_result = results.contains(id);
        if !is_result {
            options.arrays.insert(name.to_owned(), given.read(name, buffer.scalar)?);
        }
        bound.push(Bound { name, given, is_result, is_written: written.contains(id) });
    }
    Ok(bound)
}

/// Refuses a written tensor that shares memory with another one, or whose elements share memory.
fn are_apart(bound: &[Bound<'_>]) -> Outcome<()> {
    for (i, Bound { name, given, .. }) in bound.iter().enumerate().filter(|(_, b)| b.is_written) {
        let own = given.0.bytes();
        let others = bound.iter().enumerate().filter(|(j, _)| *j != i);
        let mut ranges = others.map(|(_, b)| (b.name, b.given.0.bytes()));
        if let Some((other, _)) = ranges.find(|(_, r)| own.start.max(r.start) < own.end.min(r.end))
        {
            let what = format!("is written, but its memory overlaps that of `%{other}`");
            return Err(misfit(name, &what, "pass a copy of one of them"));
        }
        if !given.0.is_apart() {
            let what = "is written, but its strides give several elements the same address";
            return Err(misfit(name, what, "pass a tensor with other strides"));
        }
    }
    Ok(())
}

/// Writes the results to the caller's tensors, if all of them fit. Returns a warning for each
/// tensor whose result is incomplete.
fn write(report: &Report, bound: &[Bound<'_>]) -> Outcome<Vec<Diagnostic>> {
    let mut warnings = vec![];
    let mut computed = vec![];
    for Bound { name, given, is_result, .. } in bound.iter().filter(|b| b.is_written) {
        if let Some(array) = report.outputs.get(name) {
            given.fits(name, &array)?;
            computed.push((given, array));
            continue;
        }
        let text = format!("`%{name}` is unchanged: not all of its elements were computed");
        let warning = Diagnostic::warning(Code::BadInput, Default::default(), text);
        warnings.push(match is_result {
            true => warning.help("execute all blocks"),
            false => warning,
        });
    }
    computed.iter().for_each(|(given, array)| given.write(array));
    Ok(warnings)
}

/// Executes a program on the CPU, thread by thread, and compares bodies with what their specs mean.
/// Races, reads of undefined elements, and differences that rounding does not explain are errors.
/// `arch` may be null for the oldest architecture that has all instructions.
///
/// `tensors` are `tensor_count` tensors of the program on the CPU; the contents of others are
/// random. If the call succeeds, tensors that kernels write contain the results; otherwise they are
/// unchanged. Integers of less than 8 bits take one byte each. `*report` is a list in JSON with one
/// object per kernel. `report`, `options` and `token` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_simulate(
    program: *const Program,
    arch: *const c_char,
    tensors: *const NamedTensor,
    tensor_count: usize,
    options: *const SimulateOptions,
    token: *const Token,
    report: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: see the header of `lib.rs`; `report` may be null.
        let to = unsafe { place(report, "report") }.ok();
        // SAFETY: see the header of `lib.rs`.
        let (program, arch, asked) = unsafe {
            let asked = self::options(options, "options")?;
            (given(program, "program")?, optional_word(arch, "arch")?, asked)
        };
        // SAFETY: see the header of `lib.rs`.
        let mut how = unsafe { self::how(program, &asked) }?;
        // SAFETY: see the header of `lib.rs`.
        let bound = unsafe { bound(program, (tensors, tensor_count), &mut how) }?;
        are_apart(&bound)?;
        let run = || {
            let table = program.table(arch)?.ok_or_else(|| {
                misuse("no architecture has all instructions of the program", "pass `arch`")
            })?;
            let ran = program.checked.simulate(&table, &how);
            ran.map_err(|errors| refused(&program.text, errors))
        };
        // SAFETY: see the header of `lib.rs`.
        let report = unsafe { run_with_token(token, run) }?;
        let warnings = write(&report, &bound)?;
        if let Some(to) = to {
            let kernels: Vec<String> = report.kernels.iter().map(documents::simulated).collect();
            *to = bytes(format!("[{}]", kernels.join(",")));
        }
        Ok(Diagnostics::new(&program.text, &warnings))
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, work) }
}

/// The options of the caller.
///
/// # Safety
/// Pointers are null or point to valid values of their types.
unsafe fn how(program: &Program, asked: &SimulateOptions) -> Outcome<Options> {
    // SAFETY: the caller guarantees it.
    let symbols = unsafe { symbols(asked.symbols, asked.symbol_count) }?;
    let program = program.checked.program();
    let known =
        |name: &&String| program.symbols.iter().all(|v| program.arena.var_info(*v).name != **name);
    if let Some(unknown) = symbols.keys().find(known) {
        let what = format!("the program has no symbol `{unknown}`");
        return Err(misuse(what, "use a symbol that the program declares"));
    }
    let usual = Options::default();
    Ok(Options {
        symbols,
        inputs: Inputs::Seed(asked.seed),
        blocks: (asked.blocks != 0).then_some(asked.blocks),
        schedule: (asked.schedule != 0).then_some(asked.schedule),
        budget: if asked.budget == 0 { usual.budget } else { asked.budget },
        ..usual
    })
}
