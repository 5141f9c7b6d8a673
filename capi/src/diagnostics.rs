//! Implements the C object for the errors or warnings that a call returns. Functions read the
//! fields of each error or warning: code, severity, message, places in the text, help. Others
//! return the whole list as text or JSON.

use crate::objects::free;
use carbyne::documents;
use carbyne_embed::Diagnostic;
use serde_json::{Value, json};
use std::any::Any;
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::Arc;

/// Errors, or warnings. All texts are valid until the list is freed.
#[derive(Default)]
pub struct Diagnostics {
    list: Vec<Entry>,
    rendered: CString,
    json: CString,
}

/// A text, and its name in messages.
#[derive(Clone, Default)]
pub(crate) struct Text {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

struct Entry {
    code: CString,
    severity: Severity,
    message: CString,
    help: Option<CString>,
    places: Vec<Place>,
}

/// A place as in [`Span`]: its bytes, its lines and columns.
struct Place {
    bytes: [usize; 2],
    start: [usize; 2],
    end: [usize; 2],
    label: CString,
}

/// Whether a diagnostic is an error or a warning.
#[repr(i32)]
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The call has no result.
    Error = 0,
    /// The call has a result, which may not be the intended one.
    Warning = 1,
}

/// A place in a text.
#[repr(C)]
#[derive(Copy, Clone, Debug)]
pub struct Span {
    /// The first byte, counted from 0.
    pub byte_start: usize,
    /// One past the last byte.
    pub byte_end: usize,
    /// The line of the first byte, counted from 1. 0 if the error has no place in a text.
    pub line: usize,
    /// The column of the first byte, counted from 1 in characters. 0 if there is no place.
    pub column: usize,
    /// The line of `byte_end`.
    pub end_line: usize,
    /// The column of `byte_end`.
    pub end_column: usize,
    /// A text about the place. May be empty.
    pub label: *const c_char,
}

impl Diagnostics {
    pub(crate) fn new(text: &Text, list: &[Diagnostic]) -> Diagnostics {
        if list.is_empty() {
            return Diagnostics::default();
        }
        let (name, text) = (&*text.name, &*text.text);
        let rendered = documents::rendered(name, text, list, false);
        Diagnostics::from_documents(documents::diagnostics(name, text, list), rendered)
    }

    /// One error that does not concern a program.
    pub(crate) fn without_code(message: &str, help: Option<&str>) -> Diagnostics {
        let rendered = match help {
            None => format!("error: {message}"),
            Some(help) => format!("error: {message}\n  help: {help}"),
        };
        Diagnostics::from_documents(vec![documents::mistake(message, help)], rendered)
    }

    /// A defect of carbyne.
    pub(crate) fn of_panic(panic: &(dyn Any + Send)) -> Diagnostics {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        let help = "report this defect of carbyne, with the program that caused it";
        Diagnostics::without_code(&format!("internal error: {text}"), Some(help))
    }

    /// Splits JSON documents into fields, so that all forms of a diagnostic agree.
    fn from_documents(documents: Vec<Value>, rendered: String) -> Diagnostics {
        let list = documents.iter().map(Entry::new).collect();
        let json = Value::from(documents).to_string();
        Diagnostics { list, rendered: c_string(&rendered), json: c_string(&json) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl Entry {
    fn new(document: &Value) -> Entry {
        let text = |key: &str| document[key].as_str().map(c_string);
        let is_warning = document["kind"] == json!("warning");
        let places = document["spans"].as_array().into_iter().flatten();
        Entry {
            code: text("code").unwrap_or_default(),
            severity: if is_warning { Severity::Warning } else { Severity::Error },
            message: text("message").unwrap_or_default(),
            help: text("help"),
            places: places.map(place).collect(),
        }
    }
}

fn place(span: &Value) -> Place {
    let number = |v: &Value| v.as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let at = |v: &Value| [number(&v["line"]), number(&v["column"])];
    Place {
        bytes: [number(&span["byte_start"]), number(&span["byte_end"])],
        start: at(&span["start"]),
        end: at(&span["end"]),
        label: c_string(span["label"].as_str().unwrap_or_default()),
    }
}

/// A C string. Replaces NUL bytes, which would end it.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// The diagnostic with index `i`, counted from 0.
///
/// # Safety
/// The pointer is null or alive.
unsafe fn entry<'a>(list: *const Diagnostics, i: usize) -> Option<&'a Entry> {
    // SAFETY: the caller guarantees it.
    unsafe { list.as_ref() }?.list.get(i)
}

/// The number of diagnostics. 0 for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_count(list: *const Diagnostics) -> usize {
    // SAFETY: see the header of `lib.rs`.
    unsafe { list.as_ref() }.map_or(0, |l| l.list.len())
}

/// The code of diagnostic `i`, such as "V0208". "" if the call itself was wrong or cancelled. Null
/// if there is no diagnostic `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_code(
    list: *const Diagnostics,
    i: usize,
) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    unsafe { entry(list, i) }.map_or(null(), |e| e.code.as_ptr())
}

/// Whether diagnostic `i` is an error or a warning. An error if there is no diagnostic `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_severity(
    list: *const Diagnostics,
    i: usize,
) -> Severity {
    // SAFETY: see the header of `lib.rs`.
    unsafe { entry(list, i) }.map_or(Severity::Error, |e| e.severity)
}

/// The message of diagnostic `i`, one sentence. Null if there is no diagnostic `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_message(
    list: *const Diagnostics,
    i: usize,
) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    unsafe { entry(list, i) }.map_or(null(), |e| e.message.as_ptr())
}

/// The help of diagnostic `i`: a way to fix it. Null if none is known, or if there is no diagnostic
/// `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_help(
    list: *const Diagnostics,
    i: usize,
) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    let help = unsafe { entry(list, i) }.and_then(|e| e.help.as_ref());
    help.map_or(null(), |h| h.as_ptr())
}

/// The number of places of diagnostic `i`. 0 if there is no diagnostic `i`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_span_count(
    list: *const Diagnostics,
    i: usize,
) -> usize {
    // SAFETY: see the header of `lib.rs`.
    unsafe { entry(list, i) }.map_or(0, |e| e.places.len())
}

/// Place `k` of diagnostic `i`. The first one is the place of the error; the others explain it. All
/// fields are 0 if there is no such place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_span(
    list: *const Diagnostics,
    i: usize,
    k: usize,
) -> Span {
    // SAFETY: see the header of `lib.rs`.
    let place = unsafe { entry(list, i) }.and_then(|e| e.places.get(k));
    let ([byte_start, byte_end], [line, column], [end_line, end_column], label) = match place {
        None => ([0, 0], [0, 0], [0, 0], null()),
        Some(p) => (p.bytes, p.start, p.end, p.label.as_ptr()),
    };
    Span { byte_start, byte_end, line, column, end_line, end_column, label }
}

/// All diagnostics as text for people, with the lines of the program, without color. Null for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_rendered(list: *const Diagnostics) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    unsafe { list.as_ref() }.map_or(null(), |l| l.rendered.as_ptr())
}

/// All diagnostics as a list in JSON. Each element is an object as the command line prints it with
/// `--message-format json`. Null for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_json(list: *const Diagnostics) -> *const c_char {
    // SAFETY: see the header of `lib.rs`.
    unsafe { list.as_ref() }.map_or(null(), |l| l.json.as_ptr())
}

/// Frees diagnostics. Does nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_diagnostics_free(list: *mut Diagnostics) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(list) }
}
