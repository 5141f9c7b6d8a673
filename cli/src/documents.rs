//! Documents about programs: the JSON and the messages that commands print, for other front ends of the same libraries.

use crate::commands::{abi, certificates, check, simulate};
use crate::failure::{Failure, Given, Source};
use crate::{Io, human, json, order, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::CudaKernel;
use carbyne_decompose::{Decomposed, Options};
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use carbyne_simulate::KernelReport;
use carbyne_sync::Report;
use serde_json::Value;

/// How the accesses of each kernel are ordered.
pub type Reports = Vec<(SpecId, Report)>;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() }
}

/// Diagnostics as `--message-format json` prints them. `name` is that of the file, and `text` is what it holds.
#[must_use]
pub fn diagnostics(name: &str, text: &str, list: &[Diagnostic]) -> Vec<Value> {
    let source = source(name, text);
    list.iter().map(|d| json::diagnostic(&source, d)).collect()
}

/// Diagnostics for people, with their places in the text; in color for terminals.
#[must_use]
pub fn rendered(name: &str, text: &str, list: &[Diagnostic], color: bool) -> String {
    let (mut out, mut unused) = (vec![], vec![]);
    let mut io = Io {
        stdin: &mut std::io::empty(),
        stdout: &mut unused,
        stderr: &mut out,
        color,
        stdout_color: false,
        progress: false,
        allow_import: vec![],
        strategies: vec![],
    };
    // Writing to memory does not fail.
    let _ = human::diagnostics(&source(name, text), list, &mut io);
    String::from_utf8_lossy(&out).trim_end().to_owned()
}

/// Which pairs of accesses of a kernel are ordered, and by what, as `check --pairs` prints it. Lines are those of `text`.
#[must_use]
pub fn pairs(program: &Program, kernel: SpecId, report: &Report, text: &str) -> Value {
    check::object(program, kernel, report, text)
}

/// The order of accesses in a decomposed program, proved. Returns warnings in the text that was decomposed.
///
/// # Errors
/// As `carbyne decompose`: accesses that are not ordered.
pub fn order(
    (name, text): (&str, &str),
    found: &Decomposed,
    table: &AtomTable,
) -> Result<(Reports, Vec<Diagnostic>), Diagnostics> {
    order::checked(&source(name, text), found, table).map_err(|failure| match failure {
        Failure::Program { list, .. } => list.into_iter().collect(),
        _ => Diagnostics::default(),
    })
}

/// What was chosen and why it is right, as `decompose --emit json` prints it. `text` is what was decomposed.
#[must_use]
pub fn decomposition(
    found: &Decomposed,
    reports: &Reports,
    text: &str,
    (table, options): (&AtomTable, &Options),
) -> String {
    let loops = found.schedules(text, table, options);
    certificates::document(found, (reports, &loops), text, table.arch.as_str())
}

/// What a launcher must know of kernels, in the order in which they are launched, as `compile --emit abi` prints it.
#[must_use]
pub fn abi(kernels: &[CudaKernel], program: &Program, table: &AtomTable) -> String {
    abi::module(kernels, program, table)
}

/// What a simulated kernel did, as `simulate --message-format json` prints it.
#[must_use]
pub fn simulated(kernel: &KernelReport) -> String {
    simulate::json(kernel, &Given::default())
}

/// The table without the atoms whose names match one of the patterns.
///
/// # Errors
/// A pattern that no atom matches, with what to write instead.
pub fn without(table: AtomTable, patterns: &[String]) -> Result<AtomTable, String> {
    pipeline::without(table, patterns).map_err(|failure| match failure {
        Failure::Usage { message, help } => {
            [message].into_iter().chain(help).collect::<Vec<_>>().join("; ")
        }
        _ => String::new(),
    })
}

/// The answer to a request of layout algebra, one JSON object, as `layout --json` gives it.
#[must_use]
pub fn calculated(request: &str) -> Value {
    crate::calculator::json::answer(request)
}
