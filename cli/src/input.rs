//! Reads a program from a file or standard input, with the files that it imports. It also reads the
//! strategies of the files that the command line names, and converts bytes to text.
//!
//! Invariant: at most [`MAX_TEXT_BYTES`] + 1 bytes are read from any file. Invariant: an imported
//! file is in the folder of the importing file or below, or in a folder that the command line
//! allows.

use crate::Io;
use crate::failure::{Failure, Imports, Source};
use crate::regular_file::{NO_FILE, open};
use carbyne_decompose::Strategies;
use carbyne_ir::ast::Module;
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::link::{self, LoadError, link};
use carbyne_ir::span::Span;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

/// Whether the path means standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads the text at `path`; `-` is standard input.
pub(crate) fn read(path: &Path, io: &mut Io<'_>) -> Result<Source, Failure> {
    let (file, bytes) = bytes_at(path, io)?;
    Ok(with_imports(text(file.display().to_string(), bytes)?, &file, io))
}

/// Reads the text at `path` for a reader with an error of its own for a text that is too long: one
/// byte more than [`MAX_TEXT_BYTES`] stays of such a text.
pub(crate) fn read_whole(path: &Path, io: &mut Io<'_>) -> Result<Source, Failure> {
    let (file, bytes) = bytes_at(path, io)?;
    let name = file.display().to_string();
    match bytes.len() > MAX_TEXT_BYTES {
        true => {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Ok(Source { name, text, ..Source::default() })
        }
        false => text(name, bytes),
    }
}

/// The path of a text in messages, and its bytes.
fn bytes_at(path: &Path, io: &mut Io<'_>) -> Result<(PathBuf, Vec<u8>), Failure> {
    if is_stdin(path) {
        let bytes = bounded(&mut io.stdin)
            .map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
        return Ok((io.stdin_file.clone().unwrap_or_else(|| "<stdin>".into()), bytes));
    }
    Ok((path.to_owned(), bytes_of(path)?))
}

/// Reads a file.
pub(crate) fn file(path: &Path) -> Result<Source, Failure> {
    text(path.display().to_string(), bytes_of(path)?)
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let name = path.display().to_string();
    let refused = |what: String| {
        Failure::usage_help(
            format!("`{name}` cannot be read: {what}"),
            "give a text file, or `-` for standard input",
        )
    };
    if path.is_dir() {
        return Err(refused("it is a directory".to_owned()));
    }
    open(path).and_then(|f| bounded(&mut { f })).map_err(|e| refused(reason(&e)))
}

/// Adds the sub-specs of imported files to a module. `file` is the file of the module's text;
/// imported files must be in its folder or below.
///
/// # Errors
/// An imported file cannot be read.
pub fn imports(module: &Module, file: Option<&Path>) -> Result<Module, Diagnostics> {
    let imports = Imports { file: file.map(Path::to_owned), ..Imports::default() };
    linked(&Source { imports, ..Source::default() }, module)
}

fn with_imports(source: Source, file: &Path, io: &Io<'_>) -> Source {
    let (file, allowed) = (Some(file.to_owned()), io.allow_import.clone());
    let imports = Imports { file, allowed, strategies: io.strategies.clone() };
    Source { imports, ..source }
}

/// The identity of a file for [`carbyne_ir::link`]: its path without links.
fn id(path: &Path) -> Option<String> {
    let name = path.file_name()?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let whole = path.canonicalize().or_else(|_| folder.canonicalize().map(|f| f.join(name)));
    whole.ok()?.to_str().map(str::to_owned)
}

/// The built-in strategies and those of the files that the command line names.
pub(crate) fn strategies(source: &Source) -> Result<Strategies, Failure> {
    let mut all = Strategies::default();
    for path in &source.imports.strategies {
        let own = file(path)?;
        let id = id(path).unwrap_or_else(|| own.name.clone());
        let allowed = &source.imports.allowed;
        let names = (&*id, &*own.name);
        all.add_as(&own.text, names, &mut |path, from| imported(path, Path::new(from), allowed))
            .map_err(|e| Failure::program(&own, e))?;
    }
    Ok(all)
}

/// The strategies of one text.
pub(crate) fn strategies_of(source: &Source) -> Result<Strategies, Failure> {
    with(source, Strategies::none())
}

/// The strategies of one text and the built-in ones.
pub(crate) fn with_ours(source: &Source) -> Result<Strategies, Failure> {
    with(source, Strategies::default())
}

fn with(source: &Source, mut all: Strategies) -> Result<Strategies, Failure> {
    let Imports { file, allowed, .. } = &source.imports;
    let id = file.as_deref().and_then(id).unwrap_or_else(|| source.name.clone());
    let names = (&*id, &*source.name);
    all.add_as(&source.text, names, &mut |path, from| imported(path, Path::new(from), allowed))
        .map_err(|e| Failure::program(source, e))?;
    Ok(all)
}

/// An empty program, for a command that reads none.
pub(crate) fn empty_source(io: &Io<'_>) -> Source {
    with_imports(Source::default(), Path::new("."), io)
}

/// Adds the sub-specs of imported files to a module.
pub(crate) fn linked(source: &Source, module: &Module) -> Result<Module, Diagnostics> {
    let Imports { file, allowed, .. } = &source.imports;
    let Some(id) = file.as_deref().and_then(id) else { return Ok(module.clone()) };
    link(module, &id, &mut |path, from| imported(path, Path::new(from), allowed))
}

/// Reads an imported file. For a path that is not allowed, the file system is not accessed.
fn imported(path: &str, from: &Path, allowed: &[PathBuf]) -> Result<link::File, LoadError> {
    let path = Path::new(path);
    let below = path.components().all(|c| matches!(c, Component::Normal(_) | Component::CurDir));
    if !below && allowed.is_empty() {
        return Err(LoadError::Outside);
    }
    let folder = from.parent().unwrap_or(Path::new("."));
    let file = folder.join(path).canonicalize().map_err(|e| match e.kind() {
        _ if !below => LoadError::Outside,
        io::ErrorKind::NotFound => LoadError::Missing,
        _ => LoadError::Unreadable(reason(&e)),
    })?;
    let allowed = allowed.iter().filter_map(|f| f.canonicalize().ok());
    if !file.starts_with(folder) && !allowed.into_iter().any(|f| file.starts_with(f)) {
        return Err(LoadError::Outside);
    }
    // Other files, such as pipes, may never end.
    if !file.is_file() {
        return Err(LoadError::Unreadable(NO_FILE.to_owned()));
    }
    let unreadable = |e: io::Error| LoadError::Unreadable(reason(&e));
    let bytes = File::open(&file).and_then(|f| bounded(&mut { f })).map_err(unreadable)?;
    if bytes.len() > MAX_TEXT_BYTES {
        let why = format!("the file is longer than {MAX_TEXT_BYTES} bytes");
        return Err(LoadError::Unreadable(why));
    }
    let not_utf8 = |what: &str| LoadError::Unreadable(format!("its {what} is not UTF-8"));
    let id = file.to_str().ok_or_else(|| not_utf8("path"))?.to_owned();
    let text = String::from_utf8(bytes).map_err(|_| not_utf8("text"))?;
    Ok(link::File { id, text })
}

fn bounded(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: String, bytes: Vec<u8>) -> Result<Source, Failure> {
    match utf8(bytes) {
        Ok(text) => Ok(Source { name, text, ..Source::default() }),
        Err(d) => Err(Failure::one(&Source { name, ..Source::default() }, *d)),
    }
}

/// Converts the bytes of a file to text.
///
/// # Errors
/// X0001: more than [`MAX_TEXT_BYTES`] bytes. P0005: the bytes are not UTF-8.
pub fn utf8(bytes: Vec<u8>) -> Result<String, Box<Diagnostic>> {
    if bytes.len() > MAX_TEXT_BYTES {
        let d = Diagnostic::new(
            Code::TextTooLong,
            Span::new(MAX_TEXT_BYTES, MAX_TEXT_BYTES + 1),
            format!("the text is longer than {MAX_TEXT_BYTES} bytes"),
        )
        .label("too long from here on")
        .help("split the text into several modules");
        return Err(Box::new(d));
    }
    String::from_utf8(bytes).map_err(|e| {
        let at = e.utf8_error().valid_up_to();
        let d = Diagnostic::new(Code::NotUtf8, Span::new(at, at + 1), "the text is not UTF-8")
            .label(format!("byte {at} is not part of a character"))
            .help("save the file as UTF-8");
        Box::new(d)
    })
}

/// The reason in words, without the number of the operating system.
pub(crate) fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "the disk quota is exceeded".to_owned(),
        io::ErrorKind::FileTooLarge => "the file would be too large".to_owned(),
        _ => e.to_string(),
    }
}
