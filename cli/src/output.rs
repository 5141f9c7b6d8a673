//! Writes a result to standard output or to a file.

use crate::args::MessageFormat;
use crate::failure::{Failure, Outcome, Source};
use crate::input::{is_stdin, reason};
use crate::{Io, human, json};
use carbyne_ir::diag::Diagnostic;
use std::path::Path;

/// Writes `bytes` to the file, or to standard output where there is none or it is `-`.
pub(crate) fn write(to: Option<&Path>, bytes: &[u8], io: &mut Io<'_>) -> Outcome {
    match to.filter(|p| !is_stdin(p)) {
        None => io.stdout.write_all(bytes).map_err(Failure::written),
        Some(path) => std::fs::write(path, bytes).map_err(|e| {
            Failure::usage(format!("`{}` cannot be written: {}", path.display(), reason(&e)))
        }),
    }
}

/// Says what a result comes with on standard error. A closed stream is no error of the program.
pub(crate) fn warn(source: &Source, list: &[Diagnostic], format: MessageFormat, io: &mut Io<'_>) {
    let _ = match format {
        MessageFormat::Human => human::diagnostics(source, list, io),
        MessageFormat::Json => json::diagnostics(source, list, io),
    };
}

/// Writes text about a result to standard error. A closed stream is no error of the program.
pub(crate) fn say(text: &str, io: &mut Io<'_>) {
    let _ = io.stderr.write_all(text.as_bytes());
}
