//! Defines [`Failure`], the reasons why a command fails, and the exit code for each. Errors in a
//! decomposed text are moved to the line of the user's text for which the statement was generated.

use carbyne_decompose::Theirs;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::span::{LineIndex, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

/// A text and its name in messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Source {
    /// The path from the command line, or `<stdin>`.
    pub(crate) name: String,
    /// The whole text; empty if the file could not be read as text.
    pub(crate) text: String,
    /// The files that the text may import.
    pub(crate) imports: Imports,
    /// For a decomposed text: the offsets of its kernels, and the user's strategies that generated
    /// them.
    pub(crate) theirs: Vec<(u32, Option<Theirs>)>,
    /// The user's text, if this text was decomposed from it.
    pub(crate) given: Given,
}

/// The user's text from which another text was decomposed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    /// The name of the text.
    pub(crate) name: String,
    /// The whole text.
    pub(crate) text: String,
    /// Maps each decomposed line on which a statement begins to the user's line. Empty if the text
    /// was not decomposed.
    pub(crate) lines: BTreeMap<usize, usize>,
}

impl Given {
    /// The user's line that a line of the decomposed text was generated for.
    pub(crate) fn line(&self, decomposed: usize) -> Option<usize> {
        let behind = self.lines.range(..=decomposed).next_back().or(self.lines.first_key_value());
        behind.map(|(_, given)| *given)
    }

    /// Replaces line numbers of the decomposed text in a message by those of the user's text.
    /// Quoted text and the place in another program (`loc=`) stay.
    fn renamed(&self, message: &str) -> String {
        if Diagnostic::is_origin(message) {
            return message.to_owned();
        }
        // Every second part is quoted.
        let parts = message.split('`').enumerate();
        let part = |(i, part)| if i % 2 == 0 { self.renumbered(part) } else { String::from(part) };
        parts.map(part).collect::<Vec<_>>().join("`")
    }

    fn renumbered(&self, words: &str) -> String {
        let mut parts = words.split("line ");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = &part[..part.len() - rest.len()];
            let is_word = !out.ends_with(|c: char| c.is_ascii_alphanumeric());
            let given = number.parse().ok().filter(|_| is_word);
            let given = given.and_then(|line| self.line(line));
            let number = given.map_or(number.to_owned(), |line| line.to_string());
            out.extend(["line ", &number, rest]);
        }
        out
    }

    /// The name of a decomposed line in messages: the user's line, then the generated line.
    pub(crate) fn name(&self, line: usize) -> String {
        match self.line(line) {
            Some(given) if given != line => format!("line {given}, generated line {line}"),
            _ => format!("line {line}"),
        }
    }
}

impl Source {
    /// Moves diagnostics of a decomposed text to the user's text, and quotes the decomposed lines
    /// in notes. Returns the text that the new places point into.
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
            // The edits change the decomposed text, not the user's.
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

/// A line without surrounding blanks and without its comment, and its place.
fn line_of(text: &str, line: usize) -> (Span, &str) {
    let before: usize = text.split_inclusive('\n').take(line.wrapping_sub(1)).map(str::len).sum();
    let line = text[before..].lines().next().unwrap_or("");
    let said = line.split("//").next().unwrap_or("").trim_end();
    let start = before + said.len() - said.trim_start().len();
    (Span::new(start, before + said.len()), said.trim_start())
}

/// The files that a text may import.
#[derive(Clone, Debug, Default)]
pub(crate) struct Imports {
    /// The file of the text, or a path in its folder that stands for standard input; `None` for a
    /// generated text, which imports nothing.
    pub(crate) file: Option<PathBuf>,
    /// Allowed folders in addition to the folder of the importing file.
    pub(crate) allowed: Vec<PathBuf>,
    /// Strategy files of the command line.
    pub(crate) strategies: Vec<PathBuf>,
}

/// The result of a command.
pub(crate) type Outcome = Result<(), Failure>;

/// The reason why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The program has errors. All of them refer to one text.
    Program {
        /// The text of the spans.
        source: Box<Source>,
        /// At least one error.
        list: Vec<Diagnostic>,
    },
    /// The program is well formed, but the requested check failed. The message has been printed.
    Reported,
    /// The command line is wrong, or a file or device is missing or unsuitable.
    Usage {
        /// One line.
        message: String,
        /// The help: how to correct it.
        help: Option<String>,
    },
    /// A library panicked.
    Panic {
        /// The message of the panic.
        what: String,
        /// The file and line in carbyne's sources, if known.
        place: Option<String>,
    },
    /// The reader of the output has closed it.
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

    /// An error outside of the program.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: None }
    }

    /// An error outside of the program, and how to correct it.
    pub(crate) fn usage_help(message: impl Into<String>, help: impl Into<String>) -> Self {
        Failure::Usage { message: message.into(), help: Some(help.into()) }
    }

    /// An error of writing to standard output.
    pub(crate) fn stdout(e: io::Error) -> Self {
        match e.kind() {
            io::ErrorKind::BrokenPipe => Failure::Closed,
            _ => Failure::usage(format!("standard output cannot be written: {e}")),
        }
    }

    /// The exit code of the process.
    pub(crate) fn exit_code(&self) -> i32 {
        match self {
            Failure::Program { list, .. } => {
                list.iter().map(|d| exit_code_of(d.code)).max().unwrap_or(3)
            }
            Failure::Reported => 1,
            Failure::Usage { .. } => 2,
            Failure::Panic { .. } => 3,
            Failure::Closed => 0,
        }
    }
}

/// The exit code for an error code. Most errors are about the program (1); the others are about a
/// file or the machine (2), or a bug in carbyne (3).
fn exit_code_of(code: Code) -> i32 {
    match code {
        Code::NotUtf8 | Code::NoNvrtc | Code::NvrtcLacksArch | Code::NoThreads => 2,
        Code::NoDriver | Code::NoGpu | Code::OldDriver | Code::WrongGpu | Code::GpuMemory => 2,
        Code::WithoutGpu | Code::BadBinary | Code::NoCublas | Code::CublasFailed => 2,
        Code::BadTuned => 2,
        Code::Internal => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::Given;

    #[test]
    fn only_unquoted_line_numbers_are_renamed() {
        let given = Given { lines: [(7, 3)].into(), ..Given::default() };
        for (message, renamed) in [
            ("put it between line 7 and line 9", "put it between line 3 and line 3"),
            ("write `Move (%line 7)` in line 7", "write `Move (%line 7)` in line 3"),
            ("baseline 7 is no number of a line", "baseline 7 is no number of a line"),
            ("comes from line 7 of model.py", "comes from line 7 of model.py"),
        ] {
            assert_eq!(given.renamed(message), renamed);
        }
    }
}
