//! Prints diagnostics for people: source lines with labels below them, 100 columns wide.
//!
//! Invariant: text from files reaches a diagnostic only through [`sanitize`].

use crate::Io;
use crate::failure::{Failure, Source};
use crate::sanitize::sanitize;
use carbyne_ir::diag::{Code, Diagnostic as Coded, Severity};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::fmt;
use std::io;

/// Columns of a report, for every terminal width.
const WIDTH: usize = 100;
/// Maximum length of source lines that are shown with labels.
const MAX_LINE: usize = 2_000;

/// Prints the reason why the command failed.
pub(crate) fn failure(failure: &Failure, io: &mut Io<'_>) -> io::Result<()> {
    match failure {
        Failure::Program { source, list } => {
            diagnostics(source, list, io)?;
            match list.len() {
                0 | 1 => Ok(()),
                n => writeln!(io.stderr, "{n} errors"),
            }
        }
        Failure::Usage { message, help } => {
            writeln!(io.stderr, "error: {}", sanitize(message))?;
            help.iter().try_for_each(|h| writeln!(io.stderr, "  help: {}", sanitize(h)))
        }
        Failure::Panic { what, place } => {
            let place = place.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
            writeln!(io.stderr, "internal error: {}{place}", sanitize(what))?;
            writeln!(io.stderr, "{DEFECT}")
        }
        Failure::Reported | Failure::Closed => Ok(()),
    }
}

/// The text below every internal error.
pub(crate) const DEFECT: &str = "This is a bug in carbyne, not in your program. \
    Please report it with the file and the command line.";

/// Prints errors of a program, or warnings.
pub(crate) fn diagnostics(source: &Source, list: &[Coded], io: &mut Io<'_>) -> io::Result<()> {
    write!(io.stderr, "{}", rendered(source, list, io.color))
}

/// Formats errors or warnings with their places in the source.
pub(crate) fn rendered(source: &Source, list: &[Coded], color: bool) -> String {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_width(WIDTH)
        .with_links(false)
        .with_context_lines(1);
    let shown = NamedSource::new(sanitize(&source.name), sanitize(&source.text));
    let mut out = String::new();
    for coded in list {
        let report = Report { coded, code: coded.code.to_string(), source, shown: &shown };
        let mut text = String::new();
        if handler.render_report(&mut text, &report).is_err() {
            text = coded.to_string();
        }
        out.push_str(text.trim_end());
        out.push('\n');
        if coded.code == Code::Internal {
            out.push_str(DEFECT);
            out.push('\n');
        }
    }
    out
}

/// A diagnostic in the form that miette needs.
struct Report<'a> {
    coded: &'a Coded,
    code: String,
    source: &'a Source,
    shown: &'a NamedSource<String>,
}

impl Report<'_> {
    /// Whether the source can be shown: the error has a place, the text was read, and its lines
    /// are short enough.
    fn shows_source(&self) -> bool {
        let text = &self.source.text;
        let short = || text.lines().all(|l| l.len() <= MAX_LINE);
        !self.coded.span.is_nowhere() && !text.is_empty() && short()
    }
}

/// All labeled places, the primary place first.
fn spans(d: &Coded) -> impl Iterator<Item = (carbyne_ir::span::Span, &str)> {
    let others = d.related.iter().map(|(span, why)| (*span, why.as_str()));
    std::iter::once((d.span, d.label.as_str())).chain(others)
}

/// The range limited to the text and widened to character boundaries.
pub(crate) fn clamp(text: &str, start: usize, end: usize) -> (usize, usize) {
    let border = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = border(start);
    (start, border(end).max(start))
}

impl fmt::Debug for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.coded)
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&sanitize(&self.coded.message))?;
        let code = self.coded.code;
        let of_machine = code.as_str().starts_with('R') || code == Code::NoNvrtc;
        let is_nowhere = of_machine && self.coded.span.is_nowhere();
        if !(self.shows_source() || is_nowhere) {
            let (line, column) = self.coded.span.line_col(&self.source.text);
            let at = match self.source.text.is_empty() || self.coded.span.is_nowhere() {
                true => String::new(),
                false => format!(":{line}:{column}"),
            };
            write!(f, " ({}{at})", sanitize(&self.source.name))?;
        }
        Ok(())
    }
}

impl std::error::Error for Report<'_> {}

impl Diagnostic for Report<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.coded.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let mut lines: Vec<String> = self.coded.help.iter().map(|h| sanitize(h)).collect();
        // Without source lines, print the label here.
        let is_shown = self.coded.is_labeled() && !self.shows_source();
        let label = is_shown.then_some(&self.coded.label);
        lines.extend(label.map(|l| format!("☞ {}", sanitize(l))));
        lines.extend(self.coded.notes.iter().map(|n| format!("☞ {}", sanitize(n))));
        if lines.is_empty() { None } else { Some(Box::new(lines.join("\n"))) }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.shows_source().then_some(self.shown as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let text = &self.source.text;
        Some(Box::new(spans(self.coded).enumerate().map(move |(i, (span, label))| {
            let (start, end) = clamp(text, span.start as usize, span.end as usize);
            let label = Some(sanitize(label)).filter(|l| !l.is_empty());
            if i == 0 {
                LabeledSpan::new_primary_with_span(label, start..end)
            } else {
                LabeledSpan::new_with_span(label, start..end)
            }
        })))
    }
}
