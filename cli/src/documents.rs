//! Parts of the commands for other front ends: reading, checking, and the JSON and the messages that commands print.

pub use crate::commands::check::fitting;
pub use crate::input::{imports, utf8};
pub use crate::order::{Reports, checked as order};
pub use crate::pipeline::{declared, without};

use crate::commands::{abi, certificates, check, simulate};
use crate::failure::{Given, Source};
use crate::{human, json};
use carbyne_atoms::AtomTable;
use carbyne_codegen::CudaKernel;
use carbyne_decompose::{Decomposed, Options};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::program::{Program, SpecId};
use carbyne_simulate::KernelReport;
use carbyne_sync::Report;
use serde_json::Value;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() }
}

/// Diagnostics as `--message-format json` prints them. `name` is that of the file, and `text` is what it holds.
#[must_use]
pub fn diagnostics(name: &str, text: &str, list: &[Diagnostic]) -> Vec<Value> {
    let source = source(name, text);
    list.iter().map(|d| json::diagnostic(&source, d)).collect()
}

/// An error that is not about a program, as `--message-format json` prints it.
#[must_use]
pub fn mistake(message: &str, help: Option<&str>) -> Value {
    json::plain(message, help)
}

/// Diagnostics for people, with their places in the text; in color for terminals.
#[must_use]
pub fn rendered(name: &str, text: &str, list: &[Diagnostic], color: bool) -> String {
    human::rendered(&source(name, text), list, color).trim_end().to_owned()
}

/// The JSON of `check --pairs`: pairs of accesses of a kernel and the statements that order them. Lines are those of `text`.
#[must_use]
pub fn pairs(program: &Program, kernel: SpecId, report: &Report, text: &str) -> Value {
    check::object(program, kernel, report, text)
}

/// The JSON of `decompose --emit json`: the choices and why they are right. `text` is the one that was decomposed.
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

/// The JSON of `compile --emit abi`: all that a launcher must know of kernels, in the order in which they are launched.
#[must_use]
pub fn abi(kernels: &[CudaKernel], program: &Program, table: &AtomTable) -> String {
    abi::module(kernels, program, table)
}

/// The JSON of `simulate --message-format json`: the work of a simulated kernel and its differences.
#[must_use]
pub fn simulated(kernel: &KernelReport) -> String {
    simulate::json(kernel, &Given::default())
}

/// The answer to a request of layout algebra, one JSON object, as `layout --json` gives it.
#[must_use]
pub fn calculated(request: &str) -> Value {
    crate::calculator::json::answer(request)
}
