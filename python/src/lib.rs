//! The part of the Python package `carbyne` that is Rust: programs, what they are decomposed to, and layout algebra.
//!
//! The package in `../carbyne` wraps it: documents come as JSON texts, arrays as the bytes of `.npy` files. Long work
//! releases the interpreter's lock.

use carbyne::documents;
use carbyne_codegen::{Host, nvrtc, print_program};
use carbyne_draw::{DrawError, Field, Unit, elide, grid, parse, svg, tv};
use carbyne_embed::{
    Arch, Array, AtomTable, Checked, Decomposed, Decomposition, Diagnostic, Diagnostics, File,
    Inputs, LoadError, Memory, Options, Program, Report, Search,
};
use carbyne_ir::layout::ComposedLayout;
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::program::TensorId;
use carbyne_ir::text;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::{Path, PathBuf};

pyo3::import_exception!(carbyne, Error);

/// Outputs by name as `.npy` files, and a report as JSON.
type Ran<'py> = (BTreeMap<String, Bound<'py, PyBytes>>, String);

/// Errors of a program as an exception of Python: their text for people, and all of them as JSON.
fn refused(name: &str, text: &str, errors: Diagnostics) -> PyErr {
    let list = errors.into_vec();
    let documents = documents::diagnostics(name, text, &list);
    Error::new_err((
        documents::rendered(name, text, &list, false),
        serde_json::Value::from(documents).to_string(),
    ))
}

/// The atoms of an architecture, without those that match one of the patterns.
fn table(arch: &str, forbidden: &[String]) -> PyResult<AtomTable> {
    let arch = arch.parse::<Arch>();
    let arch = arch.map_err(|e| PyValueError::new_err(format!("{e}; {}", e.help())))?;
    documents::without(AtomTable::new(arch), forbidden).map_err(PyValueError::new_err)
}

/// Reads files that a text imports, from the folder of that text and below.
fn loader(folder: Option<PathBuf>) -> impl FnMut(&str, &str) -> Result<File, LoadError> {
    move |path: &str, from: &str| {
        let root = folder.as_ref().ok_or(LoadError::Outside)?;
        let beside = Path::new(from).parent().unwrap_or(root).join(path);
        let found = beside.canonicalize().map_err(|_| LoadError::Missing)?;
        if !found.starts_with(root) {
            return Err(LoadError::Outside);
        }
        let unreadable = |e: std::io::Error| LoadError::Unreadable(e.to_string());
        let file = std::fs::File::open(&found).map_err(unreadable)?;
        let mut text = String::new();
        file.take(MAX_TEXT_BYTES as u64 + 1).read_to_string(&mut text).map_err(unreadable)?;
        Ok(File { id: found.display().to_string(), text })
    }
}

/// A program that is well formed.
#[pyclass(frozen, name = "Program", module = "carbyne._native")]
struct Source {
    name: String,
    checked: Checked,
}

impl Source {
    /// The atoms of an architecture; of the oldest one that has all that the program names, if none is said.
    fn table(&self, arch: Option<&str>) -> PyResult<AtomTable> {
        match arch {
            Some(arch) => table(arch, &[]),
            None => self.checked.arch().map(AtomTable::new).ok_or_else(|| {
                PyValueError::new_err(
                    "no architecture has all instructions that the program names; say `arch=`",
                )
            }),
        }
    }
}

#[pymethods]
impl Source {
    /// Reads a text; `path` is that of the file that it comes from, if there is one.
    #[new]
    #[pyo3(signature = (text, path=None))]
    fn new(py: Python<'_>, text: &str, path: Option<PathBuf>) -> PyResult<Self> {
        let name = path.as_ref().map_or("<text>".to_owned(), |p| p.display().to_string());
        let file = path.and_then(|p| p.canonicalize().ok());
        let folder = file.as_ref().and_then(|p| p.parent()).map(Path::to_path_buf);
        let id = file.map_or_else(|| name.clone(), |f| f.display().to_string());
        let checked = py.detach(|| Checked::linked(text, &id, &mut loader(folder)));
        let checked = checked.map_err(|e| refused(&name, text, e))?;
        Ok(Source { name, checked })
    }

    #[getter]
    fn text(&self) -> &str {
        self.checked.text()
    }

    /// The text as `carbyne fmt` prints it.
    fn formatted(&self) -> PyResult<String> {
        let module = text::parse(self.checked.text());
        Ok(text::print(&module.map_err(|e| refused(&self.name, self.checked.text(), e))?))
    }

    /// Names of kernels; empty where one has none.
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

    /// Tensors of the caller as JSON: name, scalar type, extents, whether a kernel writes it.
    #[getter]
    fn tensors(&self) -> String {
        let program = self.checked.program();
        let written: BTreeSet<TensorId> = program
            .kernels
            .iter()
            .flat_map(|k| program.specs[*k].outputs.iter().copied())
            .collect();
        let of = program.buffers.iter().filter(|(_, b)| b.memory == Some(Memory::Gl)).map(|(_, b)| {
            let modes = program.tensors[b.tensor].levels.iter().flat_map(|l| l.modes());
            let extents = modes.map(|m| m.size_in(&program.arena).map(|n| program.arena.display(n)));
            json!({
                "name": b.name,
                "scalar": b.scalar.as_str(),
                "extents": extents.map(Result::unwrap_or_default).collect::<Vec<_>>(),
                "is_output": written.iter().any(|t| program.tensors[*t].buffer == program.tensors[b.tensor].buffer),
            })
        });
        serde_json::Value::from_iter(of).to_string()
    }

    /// Pairs of accesses of each kernel that names its instructions, as JSON, and warnings, as JSON.
    #[pyo3(signature = (arch=None))]
    fn check(&self, py: Python<'_>, arch: Option<&str>) -> PyResult<(Vec<String>, String)> {
        let table = self.table(arch)?;
        let (program, text) = (self.checked.program(), self.checked.text());
        let reports = py.detach(|| self.checked.order(&table));
        let said = reports.iter().flat_map(|(k, r)| carbyne_embed::diagnostics(r, program, *k));
        let (errors, warnings): (Vec<Diagnostic>, Vec<Diagnostic>) =
            said.partition(|d| d.severity == carbyne_ir::diag::Severity::Error);
        if !errors.is_empty() {
            return Err(refused(&self.name, text, errors.into_iter().collect()));
        }
        let pairs = reports.iter().map(|(k, r)| documents::pairs(program, *k, r, text).to_string());
        let warnings = documents::diagnostics(&self.name, text, &warnings);
        Ok((pairs.collect(), serde_json::Value::from(warnings).to_string()))
    }

    #[pyo3(signature = (arch, forbid, strategies, top=None, budget=None, sms=None, exhaustive=false))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn decompose(
        &self,
        py: Python<'_>,
        arch: &str,
        forbid: Vec<String>,
        strategies: Vec<(String, String)>,
        top: Option<usize>,
        budget: Option<u64>,
        sms: Option<u32>,
        exhaustive: bool,
    ) -> PyResult<Found> {
        let table = table(arch, &forbid)?;
        let usual = Search::default();
        let search = Search {
            budget: budget.unwrap_or(usual.budget),
            top: top.unwrap_or(usual.top),
            exhaustive,
            sms,
        };
        let mut how = Decomposition { search, ..Decomposition::default() };
        for (name, text) in &strategies {
            let added = how.strategies.add(text, name, &mut loader(None));
            added.map_err(|e| refused(name, text, e))?;
        }
        let text = self.checked.text();
        let found = py.detach(|| {
            let found = self.checked.decompose_by(&table, &how)?;
            let (reports, warnings) = documents::order((&self.name, text), &found, &table)?;
            let document = documents::decomposition(&found, &reports, text, (&table, &how));
            Ok((found, warnings, document))
        });
        let (found, unknown, document) = found.map_err(|e| refused(&self.name, text, e))?;
        let said = [&found.warnings[..], &unknown].concat();
        let warnings = documents::diagnostics(&self.name, text, &said);
        let warnings = serde_json::Value::from(warnings).to_string();
        let declared = declared(self.checked.program());
        Ok(Found { name: self.name.clone(), found, table, document, warnings, declared })
    }

    /// Executes the program as it stands.
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
        let table = self.table(arch)?;
        let report = py.detach(|| self.checked.simulate(&table, &options));
        ran(py, report.map_err(|e| refused(&self.name, self.checked.text(), e))?)
    }
}

/// A program in which every statement names its instruction.
#[pyclass(frozen, name = "Decomposed", module = "carbyne._native")]
struct Found {
    name: String,
    found: Decomposed,
    table: AtomTable,
    document: String,
    warnings: String,
    declared: BTreeSet<String>,
}

impl Found {
    fn printed(&self, name: &str) -> PyResult<(String, Vec<carbyne_embed::CudaKernel>)> {
        let program = &self.found.program;
        let host = Host { name, declared: &self.declared };
        print_program(program, &program.kernels, &self.table, host)
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

    /// What was chosen and why it is right, as JSON.
    #[getter]
    fn document(&self) -> &str {
        &self.document
    }

    /// Warnings in the text that was decomposed, as JSON.
    #[getter]
    fn warnings(&self) -> &str {
        &self.warnings
    }

    /// A file of CUDA C++: all kernels, and a host function of this name that launches them.
    fn cuda(&self, name: &str) -> PyResult<String> {
        Ok(self.printed(name)?.0)
    }

    /// What a launcher must know, as JSON.
    fn abi(&self) -> PyResult<String> {
        let (_, kernels) = self.printed("carbyne")?;
        Ok(documents::abi(&kernels, &self.found.program, &self.table))
    }

    /// PTX or machine code of all kernels, by NVRTC.
    fn compile<'py>(&self, py: Python<'py>, emit: &str) -> PyResult<Bound<'py, PyBytes>> {
        let (source, _) = self.printed("carbyne")?;
        let arch = self.table.arch.nvrtc_name();
        let how = nvrtc::Options::default();
        let made = py.detach(|| nvrtc::compile(&source, arch, nvrtc::Emit::Cubin, &how));
        let made = made.map_err(|d| refused(&self.name, "", [*d].into_iter().collect()))?;
        Ok(match emit {
            "ptx" => PyBytes::new(py, made.ptx.as_bytes()),
            _ => PyBytes::new(py, &made.cubin),
        })
    }
}

fn kernels(program: &Program) -> Vec<String> {
    let name = |k: &carbyne_ir::program::SpecId| program.specs[*k].name.clone().unwrap_or_default();
    program.kernels.iter().map(name).collect()
}

/// Tensors that a text declares; strategies may add others.
fn declared(program: &Program) -> BTreeSet<String> {
    program.buffers.iter().map(|(_, b)| b.name.clone()).collect()
}

/// A run's options: arrays as `.npy` files, of tensors by name.
fn options(
    program: &Program,
    arrays: BTreeMap<String, Vec<u8>>,
    symbols: BTreeMap<String, i64>,
    seed: u64,
) -> PyResult<Options> {
    let mut read = BTreeMap::new();
    for (name, bytes) in arrays {
        let mut global = program.buffers.iter().filter(|(_, b)| b.memory == Some(Memory::Gl));
        let Some((_, buffer)) = global.find(|(_, b)| b.name == name) else {
            return Err(PyValueError::new_err(format!(
                "the program has no tensor `%{name}` in global memory"
            )));
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

/// The answer to a request of layout algebra, both as JSON.
#[pyfunction]
fn calculate(request: &str) -> String {
    documents::calculated(request).to_string()
}

/// A layout as an SVG; with a tile's shape, a thread-value layout of that tile.
#[pyfunction]
#[pyo3(signature = (layout, tile=None))]
fn draw(layout: &str, tile: Option<&str>) -> PyResult<String> {
    let refused = |e: DrawError| {
        let help = e.help().map(|help| format!("; {help}")).unwrap_or_default();
        PyValueError::new_err(format!("{e}{help}"))
    };
    let layout = layout.parse::<ComposedLayout>();
    let layout = layout.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let picture = match tile {
        Some(tile) => {
            let plain = layout.plain();
            let plain = plain
                .ok_or_else(|| PyValueError::new_err("a thread-value layout has no swizzle"))?;
            tv::tv(plain, &parse::shape(tile).map_err(refused)?)
        }
        None => grid::layout(&Field::of(&layout, 8), Unit::Element),
    };
    Ok(svg::svg(&elide::elide(picture.map_err(refused)?, "`carbyne draw --whole`")))
}

/// The command line; the first argument is the program's own name. Returns its exit code.
#[pyfunction]
fn main(py: Python<'_>, arguments: Vec<String>) -> i32 {
    py.detach(|| {
        let (mut stdin, mut stdout, mut stderr) =
            (std::io::stdin(), std::io::stdout(), std::io::stderr());
        carbyne::run(arguments, &mut stdin, &mut stdout, &mut stderr)
    })
}

/// Names of architectures, the oldest first.
#[pyfunction]
fn architectures() -> Vec<&'static str> {
    Arch::ALL.iter().map(|arch| arch.as_str()).collect()
}

#[pymodule]
fn _native(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<Source>()?;
    m.add_class::<Found>()?;
    m.add_function(wrap_pyfunction!(calculate, m)?)?;
    m.add_function(wrap_pyfunction!(draw, m)?)?;
    m.add_function(wrap_pyfunction!(main, m)?)?;
    m.add_function(wrap_pyfunction!(architectures, m)?)
}
