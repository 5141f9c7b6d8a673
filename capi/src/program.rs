//! Implements the C object for a well-formed program. Its functions parse and check a text with its
//! imports, print the program, and prove that its accesses are ordered. `simulate.rs` executes it.

use crate::border::{Failure, Outcome, Status, answer, given, list, optional_word, place, silent};
use crate::bytes::{Bytes, bytes};
use crate::diagnostics::{Diagnostics, Text};
use crate::objects::{free, new};
use crate::token::{Token, make_object, run_with_token};
use carbyne::documents;
use carbyne_embed::{Arch, AtomTable, Checked, Diagnostic, Module, Proved};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::text;
use serde_json::Value;
use std::ffi::c_char;
use std::path::PathBuf;
use std::ptr::null;

/// A well-formed program.
pub struct Program {
    pub(crate) text: Text,
    /// The module of the text, without its imports.
    written: Module,
    pub(crate) checked: Checked,
}

impl Program {
    pub(crate) fn new(source: String, path: Option<PathBuf>) -> Outcome<Program> {
        let name = path.as_ref().map_or("<text>".to_owned(), |p| p.display().to_string());
        let text = Text { name: name.into(), text: source.as_str().into() };
        let read = || {
            let written = text::parse(&source)?;
            let linked = documents::imports(&written, path.as_deref())?;
            Ok((written, Checked::of_linked(linked, &source)?))
        };
        match read() {
            Ok((written, checked)) => Ok(Program { text, written, checked }),
            Err(errors) => Err(refused(&text, errors)),
        }
    }

    /// The atom table of `arch`, or that of the oldest architecture that has all instructions of
    /// the program. `None` if no architecture has all of them.
    pub(crate) fn table(&self, arch: Option<&str>) -> Outcome<Option<AtomTable>> {
        let given = arch.map(|arch| table(arch, &[])).transpose()?;
        let found = documents::fitting(self.checked.program(), given);
        found.map_err(|errors| refused(&self.text, errors))
    }
}

/// The text of bytes, with a name for messages.
pub(crate) fn utf8(name: &str, text: Vec<u8>) -> Outcome<String> {
    let unreadable = Text { name: name.into(), ..Text::default() };
    documents::utf8(text).map_err(|e| Failure::Refused(unreadable, vec![*e]))
}

/// The failure for errors in a text.
pub(crate) fn refused(text: &Text, errors: carbyne_embed::Diagnostics) -> Failure {
    Failure::Refused(text.clone(), errors.into_vec())
}

/// The atom table of an architecture, without atoms that match one of the patterns.
pub(crate) fn table(arch: &str, forbidden: &[String]) -> Outcome<AtomTable> {
    let arch = arch.parse::<Arch>();
    let arch = arch.map_err(|e| Failure::Misuse(format!("`arch`: {e}"), e.help()))?;
    documents::without(AtomTable::new(arch), forbidden)
        .map_err(|e| Failure::Misuse(format!("`forbid`: {e}"), e.help()))
}

/// Reads and checks a program. `text` has `size` bytes of UTF-8. `path` is the path of its file,
/// which messages contain. Imported files lie below the folder of this file. Null for a text
/// without a file. If the text has errors, `*program` is null afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_new(
    text: *const c_char,
    size: usize,
    path: *const c_char,
    program: *mut *mut Program,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: see the header of `lib.rs`.
        let (program, text, path) = unsafe {
            let program = place(program, "program")?;
            let text = list(text.cast::<u8>(), size, "text")?;
            (program, text, optional_word(path, "path")?)
        };
        // One byte beyond the limit suffices for the error.
        let text = text[..size.min(MAX_TEXT_BYTES + 1)].to_vec();
        let read = move || {
            let source = utf8(path.unwrap_or("<text>"), text)?;
            Program::new(source, path.map(PathBuf::from))
        };
        // SAFETY: there is no token.
        *program = new(unsafe { run_with_token(null(), read) }?);
        Ok(())
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// The text of a program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_text(
    program: *const Program,
    text: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: see the header of `lib.rs`.
        let (text, program) = unsafe { (place(text, "text")?, given(program, "program")?) };
        *text = bytes(program.checked.text());
        Ok(())
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, || silent(work())) }
}

/// The text of a program as `carbyne fmt` prints it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_format(
    program: *const Program,
    text: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let print = |of: &Program| Ok(Bytes::new(text::print(&of.written)));
    // SAFETY: see the header of `lib.rs`.
    unsafe { make_object((program, "program"), null(), (text, "text"), diagnostics, print) }
}

/// Proves that the accesses of kernels are ordered. Kernels that do not name all of their
/// instructions are skipped. `arch` is an architecture such as "sm_80", or null for the oldest one
/// that has all instructions. `*pairs` is a list in JSON with one object per kernel, as
/// `carbyne check --pairs` prints it. `pairs` and `token` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_check(
    program: *const Program,
    arch: *const c_char,
    token: *const Token,
    pairs: *mut *mut Bytes,
    diagnostics: *mut *mut Diagnostics,
) -> Status {
    let work = || {
        // SAFETY: see the header of `lib.rs`; `pairs` may be null.
        let pairs = unsafe { place(pairs, "pairs") }.ok();
        // SAFETY: see the header of `lib.rs`.
        let (program, arch) = unsafe { (given(program, "program")?, optional_word(arch, "arch")?) };
        // SAFETY: see the header of `lib.rs`.
        let (documents, warnings) = unsafe { run_with_token(token, || checked(program, arch)) }?;
        if let Some(pairs) = pairs {
            *pairs = bytes(documents.to_string());
        }
        Ok(Diagnostics::new(&program.text, &warnings))
    };
    // SAFETY: see the header of `lib.rs`.
    unsafe { answer(diagnostics, work) }
}

/// The pairs of accesses of each kernel, and warnings.
fn checked(of: &Program, arch: Option<&str>) -> Outcome<(Value, Vec<Diagnostic>)> {
    let program = of.checked.program();
    let proved = of.table(arch)?.map_or(Ok(Proved::default()), |t| of.checked.proved(&t));
    let (reports, warnings) = proved.map_err(|errors| refused(&of.text, errors))?;
    let text = of.checked.text();
    let pairs = reports.iter().map(|(k, report)| documents::pairs(program, *k, report, text));
    Ok((pairs.collect(), warnings))
}

/// Frees a program that no call uses anymore. Objects that were created from it remain valid. Does
/// nothing for null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn carbyne_program_free(program: *mut Program) {
    // SAFETY: see the header of `lib.rs`.
    unsafe { free(program) }
}
