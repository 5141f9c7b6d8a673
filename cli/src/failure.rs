//! Why a command did not succeed, and which exit code that is.

use carbyne_decompose::Theirs;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::span::LineIndex;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// A text with the name that messages call it by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The path as given, or `<stdin>`.
    pub(crate) name: String,
    /// The whole text; empty where it could not be read as text.
    pub(crate) text: String,
    /// What it may import.
    pub(crate) imports: Imports,
    /// Of a text that was decomposed, where kernels begin, and the strategies of users that have written them.
    pub(crate) theirs: Vec<(u32, Option<Theirs>)>,
    /// For a decomposed text: each line on which a statement begins, with the number and the text of the user's line behind it.
    pub(crate) given: BTreeMap<usize, (usize, String)>,
}

impl Source {
    /// Adds notes: the user's line behind the place, and the user's strategy that wrote the kernel.
    fn noted(&self, d: Diagnostic) -> Diagnostic {
        let d = self.given_lines(&d).into_iter().fold(d, Diagnostic::note);
        let before = self.theirs.iter().rfind(|(at, _)| *at <= d.span.start);
        match before.and_then(|(_, theirs)| theirs.as_ref()) {
            Some(theirs) => d.note(format!("written by {theirs}")),
            None => d,
        }
    }
}

impl Source {
    /// The user's lines behind the places of a diagnostic, each once.
    fn given_lines(&self, d: &Diagnostic) -> Vec<String> {
        if self.given.is_empty() {
            return vec![];
        }
        let lines = LineIndex::new(&self.text);
        let spans = std::iter::once(d.span).chain(d.related.iter().map(|(span, _)| *span));
        let mut notes = BTreeMap::new();
        for span in spans.filter(|span| !span.is_nowhere()) {
            let line = lines.line(span.start);
            if let Some((_, (given, text))) = self.given.range(..=line).next_back() {
                let text = text.split("//").next().unwrap_or("").trim();
                let said =
                    format!("line {line} is made of line {given} of what was given: `{text}`");
                notes.entry(*given).or_insert(said);
            }
        }
        notes.into_values().collect()
    }
}

/// Where imported files may lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports {
    /// The file itself, or what stands for it in its folder; none of what no user wrote, which imports nothing.
    pub(crate) file: Option<PathBuf>,
    /// Folders beside those of the files that import.
    pub(crate) allowed: Vec<PathBuf>,
    /// Files of strategies that the command line names.
    pub(crate) strategies: Vec<PathBuf>,
}

/// What a command ends with.
pub(crate) type Outcome = Result<(), Failure>;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program has errors, all about one text.
    Program {
        /// What the spans point into.
        source: Box<Source>,
        /// At least one.
        list: Vec<Diagnostic>,
    },
    /// The program is well formed and yet not as asked for; what there is to say has been said.
    Said,
    /// The command line, a file or the machine is not as needed.
    Usage {
        /// One line.
        message: String,
        /// A way out.
        help: Option<String>,
    },
    /// A library panicked.
    Panic {
        /// The panic's message.
        what: String,
        /// Where in carbyne's sources, if known.
        place: Option<String>,
    },
    /// Whoever read the output has gone.
    Closed,
}

impl Failure {
    /// Errors of the program in `source`.
    pub(crate) fn program(source: &Source, errors: Diagnostics) -> Self {
        let list = errors.into_iter().map(|d| source.noted(d)).collect();
        Failure::Program { source: Box::new(source.clone()), list }
    }

    /// One error of the program in `source`.
    pub(crate) fn one(source: &Source, error: Diagnostic) -> Self {
        Failure::Program { source: Box::new(source.clone()), list: vec![source.noted(error)] }
    }

    /// A mistake outside of the program.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: None }
    }

    /// A mistake outside of the program, and what to do about it.
    pub(crate) fn usage_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: Some(help.into()) }
    }

    /// An error of writing to standard output.
    pub(crate) fn written(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::usage(format!("standard output cannot be written: {e}")),
        }
    }

    /// The process's exit code.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Failure::Program { list, .. } => list.iter().map(|d| of(d.code)).max().unwrap_or(3),
            Failure::Said => 1,
            Failure::Usage { .. } => 2,
            Failure::Panic { .. } => 3,
            Failure::Closed => 0,
        }
    }
}

/// Most codes are about the program; these are about the file, the machine, or carbyne.
fn of(code: Code) -> i32 {
    match code {
        Code::NotUtf8 | Code::NoNvrtc | Code::NvrtcLacksArch | Code::NoThreads => 2,
        Code::NoDriver | Code::NoGpu | Code::OldDriver | Code::WrongGpu | Code::GpuMemory => 2,
        Code::WithoutGpu | Code::BadBinary | Code::NoCublas | Code::CublasFailed => 2,
        Code::BadTuned => 2,
        Code::Internal => 3,
        _ => 1,
    }
}
