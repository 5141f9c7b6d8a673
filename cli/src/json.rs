//! Prints diagnostics for other programs (`--message-format json`): one JSON object per line on
//! standard error. [`schema`] contains the versions of all JSON documents.
//!
//! Every object has a `kind`:
//!
//! - `error`: a diagnostic. Its `code` is null for errors outside of the program.
//! - `warning`: a diagnostic that accompanies a result.
//! - `report`, `note` and others: information about a result, which the commands themselves print.
//!
//! Errors and warnings have a `schema_version`; `docs/schemas/diagnostic.schema.json` describes
//! them. Lines and columns count from 1, columns count characters. `byte_start` and `byte_end` are
//! offsets into the file. If the help is a change of the text, `edits` contains the change: each
//! edit replaces a place by its `text`, and all edits are applied together.

use crate::Io;
use crate::failure::{Failure, Source};
use crate::human::{DEFECT, clamp};
use carbyne_ir::diag::{Diagnostic, Severity};
use carbyne_ir::span::Span;
use serde_json::{Value, json};
use std::io;

/// Versions of the JSON documents that other programs read. Each document has its version as
/// `schema_version`, and `docs/schemas` describes its fields.
///
/// A version increases when a field is removed or renamed, or when its type or meaning changes.
/// New fields do not change the version.
pub(crate) mod schema {
    /// `compile --emit abi`, for a file and for one kernel.
    pub(crate) const ABI: u32 = 1;
    /// `decompose --emit json`, which contains the certificates.
    pub(crate) const DECOMPOSITION: u32 = 1;
    /// Errors and warnings with `--message-format json`.
    pub(crate) const DIAGNOSTIC: u32 = 1;
    /// `check --pairs --message-format json`: the order of accesses.
    pub(crate) const PAIRS: u32 = 1;
    /// Responses of `carbyne serve`.
    pub(crate) const ANSWER: u32 = 1;
}

/// Prints the reason why the command failed.
pub(crate) fn failure(failure: &Failure, io: &mut Io<'_>) -> io::Result<()> {
    match failure {
        Failure::Program { source, list } => diagnostics(source, list, io),
        Failure::Usage { message, help } => {
            writeln!(io.stderr, "{}", plain(message, help.as_deref()))
        }
        Failure::Panic { what, place } => {
            let place = place.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
            let mut object = plain(&format!("internal error: {what}{place}"), Some(DEFECT));
            object["code"] = json!(carbyne_ir::diag::Code::Internal.as_str());
            writeln!(io.stderr, "{object}")
        }
        Failure::Reported | Failure::Closed => Ok(()),
    }
}

/// Prints errors of a program, or warnings.
pub(crate) fn diagnostics(source: &Source, list: &[Diagnostic], io: &mut Io<'_>) -> io::Result<()> {
    list.iter().try_for_each(|d| writeln!(io.stderr, "{}", diagnostic(source, d)))
}

/// An error outside of a program.
pub(crate) fn plain(message: &str, help: Option<&str>) -> Value {
    json!({
        "schema_version": schema::DIAGNOSTIC,
        "kind": "error",
        "code": null,
        "message": message,
        "spans": [],
        "help": help,
        "edits": [],
        "notes": [],
    })
}

/// A diagnostic. Its first span is the primary one.
pub(crate) fn diagnostic(source: &Source, d: &Diagnostic) -> Value {
    let mut spans = vec![place(source, d.span, &d.label, true)];
    spans.extend(d.related.iter().map(|(span, why)| place(source, *span, why, false)));
    json!({
        "schema_version": schema::DIAGNOSTIC,
        "kind": match d.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        "code": d.code.as_str(),
        "message": d.message,
        "file": source.name,
        "spans": spans,
        "help": d.help,
        "edits": d.edits.iter().map(|edit| {
            let mut change = place(source, edit.span, "", false);
            if let Some(change) = change.as_object_mut() {
                change.retain(|key, _| key != "primary" && key != "label");
                change.insert("text".to_owned(), json!(edit.text));
            }
            change
        }).collect::<Vec<_>>(),
        "notes": d.notes,
    })
}

/// The place of a line as a whole, which counts from 1.
pub(crate) fn line(source: &Source, number: usize, label: &str) -> Value {
    let mut lines = source.text.split_inclusive('\n');
    let start: usize = lines.by_ref().take(number.saturating_sub(1)).map(str::len).sum();
    let end = start + lines.next().unwrap_or_default().trim_end().len();
    let [start, end] = [start, end].map(|at| u32::try_from(at).unwrap_or(u32::MAX));
    place(source, Span { start, end }, label, true)
}

fn place(source: &Source, span: Span, label: &str, primary: bool) -> Value {
    // Without the text there are offsets, but no lines.
    let (start, end) = match source.text.is_empty() {
        true => (span.start as usize, span.end as usize),
        false => clamp(&source.text, span.start as usize, span.end as usize),
    };
    json!({
        "primary": primary,
        "label": label,
        "start": line_column(&source.text, start),
        "end": line_column(&source.text, end),
        "byte_start": start,
        "byte_end": end,
    })
}

fn line_column(text: &str, at: usize) -> Value {
    let Some(before) = text.get(..at) else { return Value::Null };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    json!({ "line": line, "column": column })
}
