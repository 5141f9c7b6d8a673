//! Diagnostics for people: the source with labels under it, 100 columns wide.
//!
//! Invariant: what a stranger wrote reaches the terminal only through [`sanitize`].

use crate::Io;
use crate::failure::{Failure, Source};
use crate::sanitize::sanitize;
use carbyne_ir::diag::{Diagnostic as Coded, Severity};
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use std::fmt;
use std::io;

/// Columns of a report, whatever the terminal.
const WIDTH: usize = 100;
/// The longest line that is shown with labels under it.
const MAX_LINE: usize = 2_000;

/// Says why the command failed.
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
        Failure::Said | Failure::Closed => Ok(()),
    }
}

/// What is said of every error that is ours.
pub(crate) const DEFECT: &str = "This is a defect of carbyne, not of your program. \
    Please report it with the file and the command line that led here.";

/// Says errors of a program, or warnings.
pub(crate) fn diagnostics(source: &Source, list: &[Coded], io: &mut Io<'_>) -> io::Result<()> {
    write!(io.stderr, "{}", rendered(source, list, io.color))
}

/// Errors or warnings with the places in the source.
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
        if coded.code == carbyne_ir::diag::Code::Internal {
            out.push_str(DEFECT);
            out.push('\n');
        }
    }
    out
}

/// A diagnostic as miette wants it.
struct Report<'a> {
    coded: &'a Coded,
    code: String,
    source: &'a Source,
    shown: &'a NamedSource<String>,
}

impl Report<'_> {
    /// Whether the error has a place, the source is there and its lines are short enough to be
    /// shown.
    fn shows_source(&self) -> bool {
        let text = &self.source.text;
        let short = || text.lines().all(|l| l.len() <= MAX_LINE);
        !self.coded.span.is_nowhere() && !text.is_empty() && short()
    }
}

/// The primary place first.
fn spans(d: &Coded) -> impl Iterator<Item = (carbyne_ir::span::Span, &str)> {
    let others = d.related.iter().map(|(span, why)| (*span, why.as_str()));
    std::iter::once((d.span, d.label.as_str())).chain(others)
}

/// The range inside the text, at borders of characters.
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
        if !self.shows_source() {
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
        // What the label under the source would say.
        let label = Some(&self.coded.label).filter(|l| !l.is_empty() && !self.shows_source());
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
