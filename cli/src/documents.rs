//! Provides the commands as functions, for the C interface and the Python package. They return the
//! JSON documents and the messages that commands print, run a command on a text, and decompose with
//! tuned pins. It also makes available the steps of commands that these packages use: imports, the
//! search for an atom table, and the proof of the order of accesses.

pub use crate::access_order::{Reports, checked as order};
pub use crate::commands::check::fitting;
pub use crate::input::{imports, utf8};
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

/// Diagnostics in the format of `--message-format json`. `name` is the file name, `text` is the
/// content of the file.
#[must_use]
pub fn diagnostics(name: &str, text: &str, list: &[Diagnostic]) -> Vec<Value> {
    let source = source(name, text);
    list.iter().map(|d| json::diagnostic(&source, d)).collect()
}

/// An error outside of a program, in the format of `--message-format json`.
#[must_use]
pub fn mistake(message: &str, help: Option<&str>) -> Value {
    json::plain(message, help)
}

/// Diagnostics for people, with source lines. `color` adds colors for terminals.
#[must_use]
pub fn rendered(name: &str, text: &str, list: &[Diagnostic], color: bool) -> String {
    human::rendered(&source(name, text), list, color).trim_end().to_owned()
}

/// The JSON of `check --pairs`: the pairs of dependent accesses of a kernel, and the statements
/// that order them. Line numbers refer to `text`.
#[must_use]
pub fn pairs(program: &Program, kernel: SpecId, report: &Report, text: &str) -> Value {
    check::object(program, kernel, report, text)
}

/// The JSON of `decompose --emit json`: the choices and their certificates. `text` is the source
/// text that was decomposed.
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

/// The JSON of `compile --emit abi`: the data of kernels that a launcher needs, in launch order.
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

/// Answers a JSON request of layout algebra, as `layout --json` does.
#[must_use]
pub fn calculated(request: &str) -> Value {
    crate::calculator::json::answer(request)
}

/// A command that failed.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The exit code of the process; the crate documentation lists the codes.
    pub exit_code: i32,
    /// Its message for people, without color.
    pub rendered: String,
    /// The errors in the format of `--message-format json`. The code of an error outside of the
    /// program is null.
    pub errors: Vec<Value>,
}

impl Refused {
    fn of(failure: &Failure) -> Refused {
        let said = |write: fn(&Failure, &mut Io<'_>) -> std::io::Result<()>| {
            let mut text = vec![];
            // Writing to memory cannot fail.
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

/// Runs a command of the command line, such as `["draw", "-", "--tensor", "%A"]`. `-` stands for
/// `text`. `file` is the file of the text, if any: the text may import files from its folder and
/// subfolders. Returns the standard output of the command.
///
/// # Errors
/// The command failed.
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

/// A database of the fastest pins, written by `carbyne tune`.
#[derive(Clone, Debug)]
pub struct Tuned(Tuning);

impl Tuned {
    /// Reads a database. Without a GPU name, entries of all GPUs are used.
    ///
    /// # Errors
    /// [`carbyne_ir::diag::Code::BadTuned`] with its place.
    pub fn read(text: &str, card: Option<&str>) -> Result<Tuned, Box<Diagnostic>> {
        Tuning::read(text, card).map(Tuned)
    }
}

/// Decomposes a module like `decompose --tuned`: kernel-level specs without a pin take the tuned
/// pins. `text` is the text of the module.
///
/// # Errors
/// The errors of [`carbyne_decompose::decompose_by`].
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
