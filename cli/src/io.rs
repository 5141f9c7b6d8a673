//! Defines [`Io`], the streams that a command reads and writes, and their properties. Tests and
//! other programs that call the command line as a library replace them.

use std::io::{Read, Write};
use std::path::PathBuf;

/// The streams of a run.
pub struct Io<'a> {
    /// Standard input, which `-` names.
    pub stdin: &'a mut (dyn Read + Send),
    /// Whether `stdin` is the process's own stream, and the process exits after the run. Then a
    /// thread may still wait for input at the end.
    pub own_stdin: bool,
    /// The file that `-` reads, if any. It may import files from its folder and subfolders.
    pub stdin_file: Option<PathBuf>,
    /// The stream for results.
    pub stdout: &'a mut dyn Write,
    /// The stream for diagnostics, reports and measurements.
    pub stderr: &'a mut dyn Write,
    /// Whether diagnostics are colored.
    pub color: bool,
    /// Whether results are colored, for commands that color results.
    pub stdout_color: bool,
    /// Whether long commands draw a progress bar on the process's standard error.
    pub progress: bool,
    /// Folders for imports, in addition to the text's own; the command line adds more.
    pub allow_import: Vec<PathBuf>,
    /// Strategy files; the command line adds more.
    pub strategies: Vec<PathBuf>,
}

impl<'a> Io<'a> {
    /// Streams that are not terminals.
    pub fn plain(
        stdin: &'a mut (dyn Read + Send),
        stdout: &'a mut dyn Write,
        stderr: &'a mut dyn Write,
    ) -> Self {
        Io {
            stdin,
            own_stdin: false,
            stdin_file: None,
            stdout,
            stderr,
            color: false,
            stdout_color: false,
            progress: false,
            allow_import: vec![],
            strategies: vec![],
        }
    }
}
