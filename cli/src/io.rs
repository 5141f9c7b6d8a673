//! The streams of a run, and who looks at them.

use std::io::{Read, Write};
use std::path::PathBuf;

/// The streams of a run.
pub struct Io<'a> {
    /// Where `-` reads from.
    pub stdin: &'a mut (dyn Read + Send),
    /// Whether `stdin` is the process's own, and the process exits when the run has ended: a thread
    /// may still wait for input then.
    pub own_stdin: bool,
    /// The file that `-` reads, if it is a file. It may import files of its folder and below.
    pub stdin_file: Option<PathBuf>,
    /// Where results go.
    pub stdout: &'a mut dyn Write,
    /// Where diagnostics, reports and figures go.
    pub stderr: &'a mut dyn Write,
    /// Whether diagnostics are colored.
    pub color: bool,
    /// Whether results are, where a command colors them.
    pub stdout_color: bool,
    /// Whether a bar of progress is drawn on the process's standard error by commands that take
    /// long.
    pub progress: bool,
    /// Folders that texts may import from, beside their own; those of the command line are added.
    pub allow_import: Vec<PathBuf>,
    /// Files of strategies; those of the command line are added.
    pub strategies: Vec<PathBuf>,
}

impl<'a> Io<'a> {
    /// Streams that are no terminals.
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
