//! Parts of the commands for other front ends: reading, checking, and the JSON and the messages
//! that commands print.

pub use crate::commands::check::fitting;
pub use crate::input::{imports, utf8};
pub use crate::order::{Reports, checked as order};
pub use crate::pipeline::{declared, without};

use crate::args::Args;
use crate::commands::{abi, certificates, check, simulate};
use crate::failure::{Failure, Given, Source};
use crate::tuned::{self, Tuning};
use crate::{Io, human, json};
use carbyne_atoms::AtomTable;
use carbyne_codegen::CudaKernel;
use carbyne_decompose::{Decomposed, Options};
use carbyne_ir::ast::Module;
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use carbyne_simulate::KernelReport;
use carbyne_sync::Report;
use clap::Parser;
use serde_json::Value;
use std::path::Path;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned(), ..Source::default() }
}

/// Diagnostics as `--message-format json` prints them. `name` is that of the file, and `text` is
/// what it holds.
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

/// The JSON of `check --pairs`: pairs of accesses of a kernel and the statements that order them.
/// Lines are those of `text`.
#[must_use]
pub fn pairs(program: &Program, kernel: SpecId, report: &Report, text: &str) -> Value {
    check::object(program, kernel, report, text)
}

/// The JSON of `decompose --emit json`: the choices and why they are right. `text` is the one that
/// was decomposed.
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

/// The JSON of `compile --emit abi`: all that a launcher must know of kernels, in the order in
/// which they are launched.
#[must_use]
pub fn abi(kernels: &[CudaKernel], program: &Program, table: &AtomTable) -> String {
    abi::module(kernels, program, table)
}

/// The JSON of `simulate --message-format json`: the work of a simulated kernel and its
/// differences.
#[must_use]
pub fn simulated(kernel: &KernelReport) -> String {
    simulate::json(kernel, &Given::default())
}

/// The answer to a request of layout algebra, one JSON object, as `layout --json` gives it.
#[must_use]
pub fn calculated(request: &str) -> Value {
    crate::calculator::json::answer(request)
}

/// A command that did not succeed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The exit code of the process, as the crate lists them.
    pub exit_code: i32,
    /// Its message for people, without color.
    pub rendered: String,
    /// Its errors as `--message-format json` prints them; the code of a mistake outside of the
    /// program is null.
    pub errors: Vec<Value>,
}

impl Refused {
    fn of(failure: &Failure) -> Refused {
        let said = |write: fn(&Failure, &mut Io<'_>) -> std::io::Result<()>| {
            let mut text = vec![];
            // Writing to memory does not fail.
            let _ = write(failure, &mut Io::plain(&mut &b""[..], &mut vec![], &mut text));
            String::from_utf8_lossy(&text).into_owned()
        };
        let errors = said(json::failure);
        Refused {
            exit_code: failure.exit_code(),
            rendered: said(human::failure).trim_end().to_owned(),
            errors: errors.lines().filter_map(|line| serde_json::from_str(line).ok()).collect(),
        }
    }
}

/// Runs a command of the command line, such as `["draw", "-", "--tensor", "%A"]`, in which `-`
/// stands for the text. `file` is the file of the text, if there is one: the text may import files
/// of its folder and below. Returns the command's standard output.
///
/// # Errors
/// The command did not succeed.
pub fn command(
    arguments: &[String],
    text: &str,
    file: Option<&Path>,
) -> Result<String, Box<Refused>> {
    let (mut stdin, mut stdout, mut stderr) = (text.as_bytes(), vec![], vec![]);
    let file = file.unwrap_or(Path::new("<text>"));
    let mut io =
        Io { stdin_file: Some(file.to_owned()), ..Io::plain(&mut stdin, &mut stdout, &mut stderr) };
    let all = std::iter::once("carbyne").chain(arguments.iter().map(String::as_str));
    let ended = match Args::try_parse_from(all) {
        Ok(args) => crate::outcome(&args, &mut io),
        Err(e) => {
            let said = e.render().to_string();
            let first = said.lines().next().unwrap_or_default();
            Err(Failure::usage(first.trim_start_matches("error: ")))
        }
    };
    ended.map_err(|failure| Box::new(Refused::of(&failure)))?;
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// A database of pins that `carbyne tune` has measured to be the best.
#[derive(Clone, Debug)]
pub struct Tuned(Tuning);

impl Tuned {
    /// Reads one. Without a card, entries of any card are taken.
    ///
    /// # Errors
    /// [`carbyne_ir::diag::Code::BadTuned`] with the place.
    pub fn read(text: &str, card: Option<&str>) -> Result<Tuned, Box<Diagnostic>> {
        Tuning::read(text, card).map(Tuned)
    }
}

/// Decomposes a module as `decompose --tuned` does: kernel-level specs without a pin of their own
/// take the pins that were tuned. `text` is the text of the module.
///
/// # Errors
/// As [`carbyne_decompose::decompose_by`].
pub fn tuned(
    module: &Module,
    text: &str,
    (table, options): (&AtomTable, &Options),
    tuned: Option<&Tuned>,
) -> Result<Decomposed, Diagnostics> {
    let tuning = tuned.map(|t| &t.0);
    let found = tuned::decomposed(&source("", text), module, table, options, tuning);
    found.map(|(mut found, notes)| {
        found.warnings.extend(notes.warnings);
        found
    })
}
