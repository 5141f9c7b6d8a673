//! Defines the Python types of a program and of a decomposed program, which parse, check, simulate,
//! decompose, print and compile. A decomposed program also makes the function that launches its
//! kernels, and can be restored from its text.

use crate::call::Function;
use crate::error::{of_command, refused};
use crate::work::{Listener, interruptible, reported};
use carbyne::documents;
use carbyne_codegen::{
    Element, Form, Host, handed_on, nvrtc, print_kernels, print_program, print_tvm_ffi, results,
    written_buffers,
};
use carbyne_embed::{
    Arch, Array, AtomTable, Checked, CudaKernel, Decomposed, Decomposition, Diagnostic, Inputs,
    LoadError, Module, Options, Program, Proved, Report, Search,
};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Buffer, BufferId};
use carbyne_ir::text;
use carbyne_launch::Binary;
use carbyne_launch::call::{Call, Kernels};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// Outputs by name as `.npy` files, and a report as JSON.
type Ran<'py> = (BTreeMap<String, Bound<'py, PyBytes>>, String);

/// The atom table of an architecture, without atoms that match a pattern.
pub(crate) fn table(arch: &str, forbidden: &[String]) -> PyResult<AtomTable> {
    let arch = arch.parse::<Arch>();
    let arch = arch.map_err(|e| PyValueError::new_err(format!("{e}; {}", e.help())))?;
    documents::without(AtomTable::new(arch), forbidden)
        .map_err(|e| PyValueError::new_err(format!("forbid: {e}; {}", e.help())))
}

/// The options of a decomposition: architecture, forbidden atoms, strategies by name and text, the
/// Python keywords, and the text of a database of tuned pins.
#[derive(FromPyObject)]
pub(crate) struct How(
    String,
    Vec<String>,
    Vec<(String, String)>,
    Option<usize>,
    Option<u64>,
    Option<u32>,
    bool,
    Option<String>,
);

impl How {
    fn read(&self) -> PyResult<(AtomTable, Decomposition, Option<documents::Tuned>)> {
        let How(arch, forbid, strategies, top, budget, sms, exhaustive, tuned) = self;
        let usual = Search::default();
        let search = Search {
            budget: budget.unwrap_or(usual.budget),
            top: top.unwrap_or(usual.top),
            exhaustive: *exhaustive,
            sms: *sms,
        };
        let mut how = Decomposition { search, ..Decomposition::default() };
        for (name, text) in strategies {
            let alone = &mut |_: &str, _: &str| Err(LoadError::Outside);
            how.strategies.add(text, name, alone).map_err(|e| refused(name, text, e))?;
        }
        let database = |text: &String| {
            documents::Tuned::read(text, None)
                .map_err(|d| refused("<tuned>", text, [*d].into_iter().collect()))
        };
        Ok((table(arch, forbid)?, how, tuned.as_ref().map(database).transpose()?))
    }
}

/// A well-formed program.
#[pyclass(frozen, name = "Program", module = "carbyne._native")]
pub(crate) struct Source {
    name: String,
    /// The file of the text.
    file: Option<PathBuf>,
    /// The module without its imports.
    written: Module,
    checked: Checked,
}

impl Source {
    /// The atom table of the given architecture, or of the oldest architecture that has all atoms
    /// of the program.
    fn table(&self, arch: Option<&str>) -> PyResult<Option<AtomTable>> {
        let given = arch.map(|arch| table(arch, &[])).transpose()?;
        let found = documents::fitting(self.checked.program(), given);
        found.map_err(|e| refused(&self.name, self.checked.text(), e))
    }
}

#[pymethods]
impl Source {
    /// Parses a text; `path` is the file of the text, if any.
    #[new]
    #[pyo3(signature = (text, path=None))]
    fn new(py: Python<'_>, text: &str, path: Option<PathBuf>) -> PyResult<Self> {
        let name = path.as_ref().map_or("<text>".to_owned(), |p| p.display().to_string());
        let read = interruptible(py, || {
            let written = text::parse(text)?;
            let linked = documents::imports(&written, path.as_deref())?;
            Ok((written, Checked::of_linked(linked, text)?))
        })?;
        let (written, checked) = read.map_err(|e| refused(&name, text, e))?;
        Ok(Source { name, file: path, written, checked })
    }

    #[getter]
    fn text(&self) -> &str {
        self.checked.text()
    }

    /// The text in the form of `carbyne fmt`.
    fn formatted(&self) -> String {
        text::print(&self.written)
    }

    /// The program with its imports, in the form of `carbyne fmt`. Programs are equal if these
    /// texts are equal.
    #[getter]
    fn linked(&self) -> String {
        text::print(self.checked.module())
    }

    /// Runs a command of the command line and returns its output. `-` in the arguments stands for
    /// the text.
    #[pyo3(signature = (arguments, progress=None))]
    fn command(
        &self,
        py: Python<'_>,
        arguments: Vec<String>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let (text, file) = (self.checked.text(), self.file.as_deref());
        let listener = Listener::of(progress)?;
        let done = reported(py, &listener, || documents::command(&arguments, text, file))?;
        done.map_err(|said| of_command(&said))
    }

    /// The data for a launcher as JSON; the program must name its instructions.
    #[pyo3(signature = (arch=None))]
    fn abi(&self, arch: Option<&str>) -> PyResult<String> {
        let table = self.table(arch)?.ok_or_else(no_architecture)?;
        let program = self.checked.program();
        let all: Vec<_> = program.kernels.iter().map(|id| (program, *id)).collect();
        let printed = print_kernels(&all, &table, None);
        let (_, kernels) = printed.map_err(|e| refused(&self.name, self.checked.text(), e))?;
        Ok(documents::abi(&kernels, program, &table))
    }

    /// Names of kernels; empty for a kernel without a name.
    #[getter]
    fn kernels(&self) -> Vec<String> {
        kernels(self.checked.program())
    }

    /// Names of symbols.
    #[getter]
    fn symbols(&self) -> Vec<String> {
        let program = self.checked.program();
        program.symbols.iter().map(|v| program.arena.var_info(*v).name).collect()
    }

    /// Tensors and numbers of the caller as JSON: name, scalar type, extents, whether a kernel
    /// writes it.
    #[getter]
    fn tensors(&self) -> String {
        Value::from(tensors(self.checked.program())).to_string()
    }

    /// The pairs of accesses of each kernel that names its instructions, as JSON, and warnings, as
    /// JSON.
    #[pyo3(signature = (arch=None))]
    fn check(&self, py: Python<'_>, arch: Option<&str>) -> PyResult<(Vec<String>, String)> {
        let (program, text) = (self.checked.program(), self.checked.text());
        let table = self.table(arch)?;
        let prove = || table.map_or(Ok(Proved::default()), |table| self.checked.proved(&table));
        let proved = interruptible(py, prove)?;
        let (reports, warnings) = proved.map_err(|e| refused(&self.name, text, e))?;
        let pairs = reports.iter().map(|(k, r)| documents::pairs(program, *k, r, text).to_string());
        let warnings = documents::diagnostics(&self.name, text, &warnings);
        Ok((pairs.collect(), Value::from(warnings).to_string()))
    }

    #[pyo3(signature = (how, progress=None))]
    fn decompose(
        &self,
        py: Python<'_>,
        how: How,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Found> {
        let (table, how, tuned) = how.read()?;
        let listener = Listener::of(progress)?;
        let text = self.checked.text();
        let found = reported(py, &listener, || {
            let by = (&table, &how);
            let found = documents::tuned(self.checked.module(), text, by, tuned.as_ref())?;
            let (reports, warnings) = documents::order(text, &found, &table)?;
            Ok((found, reports, warnings))
        })?;
        let (mut found, reports, unknown) = found.map_err(|e| refused(&self.name, text, e))?;
        found.warnings.extend(unknown);
        let (name, text) = (self.name.clone(), text.to_owned());
        let declared = documents::declared(self.checked.module());
        let known = None;
        Ok(Found { name, text, found, reports, table, how, declared, known })
    }

    /// Restores a decomposition from its text and its warnings. The text is parsed and checked
    /// again, and the order of its accesses is proved. None if the text is incomplete or wrong.
    fn restored(
        &self,
        py: Python<'_>,
        how: How,
        decomposed: &str,
        warnings: String,
    ) -> PyResult<Option<Found>> {
        let (table, how, _) = how.read()?;
        let again = interruptible(py, || -> Option<Decomposed> {
            let checked = Checked::new(decomposed).ok()?;
            let found = checked.decompose_by(&table, &how).ok()?;
            checked.proved(&table).ok()?;
            let theirs = tensors(checked.program());
            let is_same = tensors(self.checked.program()).iter().all(|t| theirs.contains(t));
            (found.text == decomposed && is_same).then_some(found)
        })?;
        let (name, text) = (self.name.clone(), self.checked.text().to_owned());
        let declared = documents::declared(self.checked.module());
        let (reports, known) = (vec![], Some(warnings));
        let found = |found| Found { name, text, found, reports, table, how, declared, known };
        Ok(again.map(found))
    }

    /// Executes the program without decomposing it.
    #[pyo3(signature = (arch, arrays, symbols, blocks=None, schedule=None, seed=0, budget=None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        arch: Option<&str>,
        arrays: BTreeMap<String, Vec<u8>>,
        symbols: BTreeMap<String, i64>,
        blocks: Option<u64>,
        schedule: Option<u64>,
        seed: u64,
        budget: Option<u64>,
    ) -> PyResult<Ran<'py>> {
        let options = options(self.checked.program(), arrays, symbols, seed)?;
        let budget = budget.unwrap_or(options.budget);
        let options = Options { blocks, schedule, budget, ..options };
        let table = self.table(arch)?.ok_or_else(no_architecture)?;
        let report = interruptible(py, || self.checked.simulate(&table, &options))?;
        ran(py, report.map_err(|e| refused(&self.name, self.checked.text(), e))?)
    }
}

/// A program in which every statement names its instruction.
#[pyclass(frozen, name = "Decomposed", module = "carbyne._native")]
pub(crate) struct Found {
    name: String,
    /// The text that was decomposed.
    text: String,
    found: Decomposed,
    reports: documents::Reports,
    table: AtomTable,
    how: Decomposition,
    /// Names of the tensors that the text declares; strategies may add others.
    declared: BTreeSet<String>,
    /// The warnings of a restored program as JSON. Its choices are unknown.
    known: Option<String>,
}

impl Found {
    /// The kernels as CUDA C++ without host functions.
    fn kernels_printed(&self, lines: Option<&str>) -> PyResult<(String, Vec<CudaKernel>)> {
        let program = &self.found.program;
        let all: Vec<_> = program.kernels.iter().map(|id| (program, *id)).collect();
        print_kernels(&all, &self.table, lines)
            .map_err(|e| refused(&self.name, &self.found.text, e))
    }
}

#[pymethods]
impl Found {
    #[getter]
    fn text(&self) -> &str {
        &self.found.text
    }

    #[getter]
    fn arch(&self) -> &str {
        self.table.arch.as_str()
    }

    #[getter]
    fn kernels(&self) -> Vec<String> {
        kernels(&self.found.program)
    }

    /// The choices and their certificates, as JSON.
    fn document(&self, py: Python<'_>) -> PyResult<String> {
        let how = (&self.table, &self.how);
        interruptible(py, || documents::decomposition(&self.found, &self.reports, &self.text, how))
    }

    /// Whether the program was restored, so that its choices are unknown.
    #[getter]
    fn is_restored(&self) -> bool {
        self.known.is_some()
    }

    /// Warnings with places in the source text, as JSON.
    #[getter]
    fn warnings(&self) -> String {
        if let Some(known) = &self.known {
            return known.clone();
        }
        let list = documents::diagnostics(&self.name, &self.text, &self.found.warnings);
        Value::from(list).to_string()
    }

    /// A CUDA C++ file: all kernels, and host functions whose names begin with `name`; with
    /// `tvm_ffi`, also a function of tvm-ffi.
    #[pyo3(signature = (name, tvm_ffi=false))]
    fn cuda(&self, name: &str, tvm_ffi: bool) -> PyResult<String> {
        let program = &self.found.program;
        let host = Host { name, declared: &self.declared, lines: None };
        let print = if tvm_ffi { print_tvm_ffi } else { print_program };
        let printed = print(program, &program.kernels, &self.table, host);
        Ok(printed.map_err(|e| refused(&self.name, &self.found.text, e))?.0)
    }

    /// The data for a launcher, as JSON.
    fn abi(&self) -> PyResult<String> {
        let (_, kernels) = self.kernels_printed(None)?;
        Ok(documents::abi(&kernels, &self.found.program, &self.table))
    }

    /// The kernels as CUDA C++ for NVRTC.
    fn source(&self) -> PyResult<String> {
        Ok(self.kernels_printed(None)?.0)
    }

    /// The kernels as a function of tensors: with machine code for the GPU of this index, or in the
    /// simulator.
    fn function(
        &self,
        py: Python<'_>,
        owner: Py<PyAny>,
        on: Option<(Vec<u8>, u32)>,
    ) -> PyResult<Function> {
        let about = |d: Box<Diagnostic>| refused(&self.name, "", [*d].into_iter().collect());
        let (_, kernels) = self.kernels_printed(None)?;
        let call = Call::new(self.found.program.clone(), kernels, &self.declared).map_err(about)?;
        let text = self.found.text.clone();
        let Some((code, gpu)) = on else {
            let kernels = Kernels::on_simulator(call, text, self.table.clone());
            return Ok(Function::new(kernels, None, owner));
        };
        let kernels = Kernels::on_gpus(call, text, Binary::Cubin(code));
        py.detach(|| kernels.load(gpu)).map_err(about)?;
        Ok(Function::new(kernels, Some(gpu), owner))
    }

    /// PTX or machine code of all kernels, by NVRTC. With `lines`, the name of a file with the
    /// text, profilers show its lines.
    #[pyo3(signature = (emit, lines=None))]
    fn compile<'py>(
        &self,
        py: Python<'py>,
        emit: &str,
        lines: Option<&str>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (source, _) = self.kernels_printed(lines)?;
        let arch = self.table.arch.nvrtc_name();
        let how = nvrtc::Options { line_info: lines.is_some(), ..nvrtc::Options::default() };
        let made = interruptible(py, || nvrtc::compile(&source, arch, nvrtc::Emit::Cubin, &how))?;
        let made = made.map_err(|d| refused(&self.name, "", [*d].into_iter().collect()))?;
        Ok(match emit {
            "ptx" => PyBytes::new(py, made.ptx.as_bytes()),
            _ => PyBytes::new(py, &made.cubin),
        })
    }
}

fn no_architecture() -> PyErr {
    PyValueError::new_err("no architecture has all instructions of the program; give `arch`")
}

fn kernels(program: &Program) -> Vec<String> {
    let name = |k: &carbyne_ir::program::SpecId| program.specs[*k].name.clone().unwrap_or_default();
    program.kernels.iter().map(name).collect()
}

/// Tensors and numbers of the caller; a number is a tensor without modes.
fn of_caller(program: &Program) -> impl Iterator<Item = (BufferId, &Buffer)> {
    program.buffers.iter().filter(|(_, b)| b.is_global() || b.is_number())
}

/// The caller's tensors and numbers: name, scalar type, type name in array libraries, extents,
/// strides (if each mode has one stride and elements are not packed), whether a kernel writes it,
/// whether it is written before it is read, and whether it only passes data between kernels.
fn tensors(program: &Program) -> Vec<Value> {
    let (written, results, handed_on) =
        (written_buffers(program), results(program), handed_on(program));
    let of = |(id, b): (BufferId, &Buffer)| {
        let modes = program.tensors[b.tensor].levels.iter().flat_map(|l| l.modes());
        let extent = |m: Layout<Dim>| m.size_in(&program.arena).map(|n| program.arena.display(n));
        json!({
            "name": b.name,
            "scalar": b.scalar.as_str(),
            "element": Element::of(b.scalar).to_string(),
            "extents": modes.map(|m| extent(m).unwrap_or_default()).collect::<Vec<_>>(),
            "strides": strides(program, id),
            "is_output": written.contains(&id),
            "is_result": results.contains(&id),
            "is_handed_on": handed_on.contains(&id),
        })
    };
    of_caller(program).map(of).collect()
}

/// The strides of a tensor's modes; `None` if a mode has several strides, or if elements are
/// packed.
fn strides(program: &Program, buffer: BufferId) -> Option<Vec<String>> {
    match Form::of(program, buffer).ok()? {
        Form::Modes(modes) if program.buffers[buffer].scalar.bits() >= 8 => {
            Some(modes.iter().map(|(_, s)| program.arena.display(*s).to_string()).collect())
        }
        Form::Modes(_) | Form::Flat(_) => None,
    }
}

/// The options of a run, with arrays as `.npy` files by the names of tensors.
fn options(
    program: &Program,
    arrays: BTreeMap<String, Vec<u8>>,
    symbols: BTreeMap<String, i64>,
    seed: u64,
) -> PyResult<Options> {
    let mut read = BTreeMap::new();
    for (name, bytes) in arrays {
        let Some((_, buffer)) = of_caller(program).find(|(_, b)| b.name == name) else {
            return Err(PyValueError::new_err(format!("the caller has no tensor `%{name}`")));
        };
        let array = Array::from_npy(&bytes, buffer.scalar)
            .map_err(|e| PyValueError::new_err(format!("`%{name}`: {e}")))?;
        read.insert(name, array);
    }
    Ok(Options { arrays: read, symbols, inputs: Inputs::Seed(seed), ..Options::default() })
}

fn ran(py: Python<'_>, report: Report) -> PyResult<Ran<'_>> {
    let mut outputs = BTreeMap::new();
    let names: Vec<String> = report.outputs.names().map(str::to_owned).collect();
    for name in names {
        let Some(array) = report.outputs.get(&name) else { continue };
        let bytes = array.to_npy().map_err(|e| PyValueError::new_err(format!("`%{name}`: {e}")))?;
        outputs.insert(name, PyBytes::new(py, &bytes));
    }
    let kernels: Vec<String> = report.kernels.iter().map(documents::simulated).collect();
    Ok((outputs, format!("[{}]", kernels.join(","))))
}
