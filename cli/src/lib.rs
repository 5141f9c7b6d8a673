//! The command line of carbyne as a function: it takes arguments and streams, and returns an exit
//! code.
//!
//! Reading order: [`run`], `args`, `pipeline`, then `commands` with one file per command.
//!
//! Exit codes:
//!
//! - 0: success.
//! - 1: the program has errors.
//! - 2: the command line is wrong, or a file or device is missing or unsuitable.
//! - 3: a bug in carbyne.
//!
//! Invariant: no input causes a panic or an endless wait. A panic of any library is caught and
//! becomes exit code 3. Invariant: results go to standard output, diagnostics and reports to
//! standard error.

#![warn(missing_docs)]

mod access_order;
mod annotate;
mod args;
pub mod calculator;
mod commands;
mod data;
pub mod documents;
mod failure;
mod human;
mod input;
mod io;
mod json;
mod output;
mod panics;
mod pipeline;
mod progress;
mod regular_file;
mod sanitize;
mod stdin_lines;
mod tuned;
pub mod unified_diff;

pub use io::Io;
pub use panics::catch_panics_quietly;
pub use progress::Bar;

use args::{Args, MessageFormat};
use clap::Parser;
use failure::{Failure, Outcome};
use std::ffi::OsString;
use std::io::{IsTerminal, Read, Write};

/// Whether this stream of the process is a terminal and `NO_COLOR` is not set.
#[must_use]
pub fn wants_color(stream: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && stream.is_terminal()
}

/// Runs the command line without color. The first argument is the program name.
pub fn run<I, A>(
    args: I,
    stdin: &mut (dyn Read + Send),
    stdout: &mut dyn Write,
    stderr: &mut dyn Write,
) -> i32
where
    I: IntoIterator<Item = A>,
    A: Into<OsString>,
{
    run_on(args, &mut Io::plain(stdin, stdout, stderr))
}

/// Runs the command line. The first argument is the program name.
pub fn run_on<I, A>(args: I, io: &mut Io<'_>) -> i32
where
    I: IntoIterator<Item = A>,
    A: Into<OsString>,
{
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    run_parsed(&args, Args::try_parse_from(&args), io)
}

/// Runs a parsed command line and reports its failure.
fn run_parsed(args: &[OsString], parsed: Result<Args, clap::Error>, io: &mut Io<'_>) -> i32 {
    let args = match parsed {
        Ok(args) => args,
        Err(e) => return usage(&e, wants_json(args), io),
    };
    let Err(failure) = outcome(&args, io) else { return 0 };
    // If standard error is closed, only the exit code reports the failure.
    let _ = match args.message_format {
        MessageFormat::Human => human::failure(&failure, io),
        MessageFormat::Json => json::failure(&failure, io),
    };
    let _ = io.stderr.flush();
    failure.exit_code()
}

/// Runs a command.
fn outcome(args: &Args, io: &mut Io<'_>) -> Outcome {
    io.allow_import.extend(args.allow_import.iter().cloned());
    io.strategies.extend(args.strategy.iter().cloned());
    let (outcome, place) = panics::caught(|| commands::run(args, io));
    outcome.unwrap_or_else(|what| Err(Failure::Panic { what, place }))?;
    // A closed output stream is no error: the reader needs no more output.
    io.stdout.flush().map_err(Failure::stdout)
}

/// Whether a command line that does not parse asks for JSON messages.
fn wants_json(args: &[OsString]) -> bool {
    args.iter().any(|a| a == "--message-format=json")
        || args.windows(2).any(|w| w[0] == "--message-format" && w[1] == "json")
}

/// Prints help and version to standard output, and usage errors to standard error.
fn usage(e: &clap::Error, json: bool, io: &mut Io<'_>) -> i32 {
    let text = e.render().to_string();
    let (stream, code) = match e.use_stderr() {
        true => (&mut *io.stderr, 2),
        false => (&mut *io.stdout, 0),
    };
    let text = match json && code == 2 {
        true => format!("{}\n", json::plain(text.trim_end(), None)),
        false => text,
    };
    let _ = stream.write_all(text.as_bytes()).and_then(|()| stream.flush());
    code
}
