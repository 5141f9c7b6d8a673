//! Why a command did not succeed, and which exit code that is.

use carbyne_decompose::Theirs;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::span::{LineIndex, Span};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Of a text that was decomposed, where kernels begin, and the strategies of users that have
    /// written them.
    pub(crate) theirs: Vec<(u32, Option<Theirs>)>,
    /// The user's text behind a decomposed one.
    pub(crate) given: Given,
}

/// The user's text from which another was decomposed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// Its name.
    pub(crate) name: String,
    /// The whole of it.
    pub(crate) text: String,
    /// Each decomposed line on which a statement begins, with the user's line behind it. Empty
    /// where both texts are one.
    pub(crate) lines: BTreeMap<usize, usize>,
}

impl Given {
    /// The user's line behind a line of the decomposed text, if there is a user's text.
    pub(crate) fn line(&self, decomposed: usize) -> Option<usize> {
        let behind = self.lines.range(..=decomposed).next_back().or(self.lines.first_key_value());
        behind.map(|(_, given)| *given)
    }

    /// A message about the decomposed text with the numbers of the user's lines.
    fn renamed(&self, message: &str) -> String {
        let mut parts = message.split("line ");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = &part[..part.len() - rest.len()];
            let given = number.parse().ok().and_then(|line| self.line(line));
            let number = given.map_or(number.to_owned(), |line| line.to_string());
            out.extend(["line ", &number, rest]);
        }
        out
    }

    /// A line by its number in the user's text, with that of the decomposed text beside it.
    pub(crate) fn name(&self, line: usize) -> String {
        match self.line(line) {
            Some(given) if given != line => format!("line {given}, generated line {line}"),
            _ => format!("line {line}"),
        }
    }
}

impl Source {
    /// Diagnostics with the text that their places point into: of a decomposed text the user's,
    /// with the decomposed lines as notes.
    fn placed(&self, list: Vec<Diagnostic>) -> (Box<Source>, Vec<Diagnostic>) {
        let written = |d: Diagnostic| {
            let before = self.theirs.iter().rfind(|(at, _)| *at <= d.span.start);
            match before.and_then(|(_, theirs)| theirs.as_ref()) {
                Some(theirs) => d.note(format!("written by {theirs}")),
                None => d,
            }
        };
        if self.given.lines.is_empty() {
            return (Box::new(self.clone()), list.into_iter().map(written).collect());
        }
        let lines = LineIndex::new(&self.text);
        let moved = |mut d: Diagnostic| {
            let texts = d.related.iter_mut().map(|(_, text)| text).chain(&mut d.help);
            for text in texts.chain(&mut d.notes).chain([&mut d.message, &mut d.label]) {
                *text = self.given.renamed(text);
            }
            let mut d = written(d);
            // They are edits of the decomposed text.
            d.edits.clear();
            let mut generated = BTreeSet::new();
            let related = d.related.iter_mut().map(|(span, _)| span);
            for span in std::iter::once(&mut d.span).chain(related).filter(|s| !s.is_nowhere()) {
                let line = lines.line(span.start);
                let (_, own) = line_of(&self.text, line);
                let Some(given) = self.given.line(line) else { continue };
                let (place, theirs) = line_of(&self.given.text, given);
                *span = place;
                if own != theirs {
                    generated.insert((line, own));
                }
            }
            let note = |(line, text)| format!("generated line {line}: `{text}`");
            generated.into_iter().map(note).fold(d, Diagnostic::note)
        };
        let Given { name, text, .. } = &self.given;
        let source = Source { name: name.clone(), text: text.clone(), ..Source::default() };
        (Box::new(source), list.into_iter().map(moved).collect())
    }
}

/// A line without the space around it and without its comment.
fn line_of(text: &str, line: usize) -> (Span, &str) {
    let before: usize = text.split_inclusive('\n').take(line.wrapping_sub(1)).map(str::len).sum();
    let line = text[before..].lines().next().unwrap_or("");
    let said = line.split("//").next().unwrap_or("").trim_end();
    let start = before + said.len() - said.trim_start().len();
    (Span::new(start, before + said.len()), said.trim_start())
}

/// Where imported files may lie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports {
    /// The file itself, or what stands for it in its folder; none of what no user wrote, which
    /// imports nothing.
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
        let (source, list) = source.placed(errors.into_iter().collect());
        Failure::Program { source, list }
    }

    /// One error of the program in `source`.
    pub(crate) fn one(source: &Source, error: Diagnostic) -> Self {
        let (source, list) = source.placed(vec![error]);
        Failure::Program { source, list }
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
