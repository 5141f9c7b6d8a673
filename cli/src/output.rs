//! Writes a result to standard output or to a file.

use crate::Io;
use crate::failure::{Failure, Outcome};
use crate::input::{is_stdin, reason};
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

/// Writes text about a result to standard error. A closed stream is no error of the program.
pub(crate) fn say(text: &str, io: &mut Io<'_>) {
    let _ = io.stderr.write_all(text.as_bytes());
}
