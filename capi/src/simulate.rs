//! Programs executed on the CPU, on tensors by name.

use crate::border::{
    Outcome, Status, answer, given, list, misuse, optional_word, options, place, word,
};
use crate::bytes::{Bytes, bytes};
use crate::diagnostics::Diagnostics;
use crate::program::{Program, refused};
use crate::tensors::{Given, NamedTensor, Symbol, misfit, symbols};
use crate::token::{Token, under};
use carbyne::documents;
use carbyne_codegen::results;
use carbyne_embed::{Code, Diagnostic, Inputs, Options, Report};
use carbyne_ir::program::{Buffer, BufferId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_char;

/// Options of a simulation. A field of 0 has its default.
#[repr(C)]
#[derive(Copy, Clone)]
pub struct SimulateOptions {
    /// `sizeof(CarbyneSimulateOptions)`.
    pub size: usize,
    /// `symbol_count` values of sizes that the program leaves open.
    pub symbols: *const Symbol,
    /// Elements of `symbols`.
    pub symbol_count: usize,
    /// Blocks of each kernel that run. 0 for all of them.
    pub blocks: u64,
    /// Draws another order of warps and asynchronous copies. 0 for that of the text.
    pub schedule: u64,
    /// Draws tensors that are not given.
    pub seed: u64,
    /// Steps of a kernel, some eight nanoseconds each. 0 for the usual limit.
    pub budget: u64,
}

/// A tensor of the program with the caller's memory.
struct Bound<'a> {
    name: &'a str,
    given: Given<'a>,
    is_result: bool,
    is_written: bool,
}

/// Tensors of the caller that an execution is given.
///
/// # Safety
/// Pointers are null or point to what their types say, and live as long as the result.
unsafe fn bound<'a>(
    program: &Program,
    (from, count): (*const NamedTensor, usize),
    options: &mut Options,
) -> Outcome<Vec<Bound<'a>>> {
    // SAFETY: the caller states it.
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
        // SAFETY: as above.
        let (name, given) = unsafe {
            let name = word(*name, "tensors.name")?;
            (name, Given::new(*tensor, name)?)
        };
        let Some((id, buffer)) = of_caller.get(name) else {
            let known: Vec<String> = of_caller.keys().map(|name| format!("`{name}`")).collect();
            let help = format!("the caller's tensors are {}", known.join(", "));
            return Err(misfit(name, "is no tensor of the caller", &help));
        };
        if bound.iter().any(|b| b.name == name) {
            return Err(misfit(name, "is given twice", "give it once"));
        }
        given.is_of(name, buffer.scalar)?;
        // Results hold nothing yet.
        let is_result = results.contains(id);
        if !is_result {
            options.arrays.insert(name.to_owned(), given.read(name, buffer.scalar)?);
        }
        bound.push(Bound { name, given, is_result, is_written: written.contains(id) });
    }
    Ok(bound)
}

/// Refuses a tensor that is written and shares memory with another one, or whose elements share
/// memory.
fn are_apart(bound: &[Bound<'_>]) -> Outcome<()> {
    for (i, Bound { name, given, .. }) in bound.iter().enumerate().filter(|(_, b)| b.is_written) {
        let own = given.0.bytes();
        let others = bound.iter().enumerate().filter(|(j, _)| *j != i);
        let mut ranges = others.map(|(_, b)| (b.name, b.given.0.bytes()));
        if let Some((other, _)) = ranges.find(|(_, r)| own.start.max(r.start) < own.end.min(r.end))
        {
            let what = format!("is written, and its memory overlaps that of `%{other}`");
            return Err(misfit(name, &what, "give it memory of its own"));
        }
        if !given.0.is_apart() {
            let what = "is written, and its strides put several elements in one place";
            return Err(misfit(name, what, "give a tensor of other strides"));
        }
    }
    Ok(())
}

/// Writes what was computed into the caller's tensors, if all of them fit. Returns a warning for
/// each one that is not whole.
fn write(report: &Report, bound: &[Bound<'_>]) -> Outcome<Vec<Diagnostic>> {
    let mut warnings = vec![];
    let mut computed = vec![];
    for Bound { name, given, is_result, .. } in bound.iter().filter(|b| b.is_written) {
        if let Some(array) = report.outputs.get(name) {
            given.fits(name, &array)?;
            computed.push((given, array));
            continue;
        }
        let text = format!("`%{name}` is left as it was: not all of its elements were computed");
        let warning = Diagnostic::warning(Code::BadInput, Default::default(), text);
        warnings.push(match is_result {
            true => warning.help("run all blocks"),
            false => warning,
        });
    }
    computed.iter().for_each(|(given, array)| given.write(array));
    Ok(warnings)
}

/// Executes a program on the CPU as it stands, thread by thread, and compares it with what it
/// means: races, reads of undefined elements and differences that rounding does not explain are
/// errors. `arch` may be null for the oldest architecture that has all instructions.
///
/// `tensor_count` tensors of the program are given, on the CPU; others are drawn. Tensors that
/// kernels write hold their results afterwards; unless a call succeeds, they are left as they were.
/// Integers of fewer than 8 bits take a byte each. `*report` is a list in JSON, one object for each
/// kernel; `report`, `options` and `token` may be null.
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
        // SAFETY: the head of `lib.rs`; the report may be left out.
        let to = unsafe { place(report, "report") }.ok();
        // SAFETY: the head of `lib.rs`.
        let (program, arch, asked) = unsafe {
            let asked = self::options(options, "options")?;
            (given(program, "program")?, optional_word(arch, "arch")?, asked)
        };
        // SAFETY: the head of `lib.rs`.
        let mut how = unsafe { self::how(program, &asked) }?;
        // SAFETY: the head of `lib.rs`.
        let bound = unsafe { bound(program, (tensors, tensor_count), &mut how) }?;
        are_apart(&bound)?;
        let run = || {
            let table = program.table(arch)?.ok_or_else(|| {
                misuse("no architecture has all instructions of the program", "give `arch`")
            })?;
            let ran = program.checked.simulate(&table, &how);
            ran.map_err(|errors| refused(&program.text, errors))
        };
        // SAFETY: the head of `lib.rs`.
        let report = unsafe { under(token, run) }?;
        let warnings = write(&report, &bound)?;
        if let Some(to) = to {
            let kernels: Vec<String> = report.kernels.iter().map(documents::simulated).collect();
            *to = bytes(format!("[{}]", kernels.join(",")));
        }
        Ok(Diagnostics::of(&program.text, &warnings))
    };
    // SAFETY: the head of `lib.rs`.
    unsafe { answer(diagnostics, work) }
}

/// # Safety
/// Pointers are null or point to what their types say.
unsafe fn how(program: &Program, asked: &SimulateOptions) -> Outcome<Options> {
    // SAFETY: the caller states it.
    let symbols = unsafe { symbols(asked.symbols, asked.symbol_count) }?;
    let program = program.checked.program();
    let known =
        |name: &&String| program.symbols.iter().all(|v| program.arena.var_info(*v).name != **name);
    if let Some(unknown) = symbols.keys().find(known) {
        let what = format!("the program has no symbol `{unknown}`");
        return Err(misuse(what, "name one that it declares"));
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
