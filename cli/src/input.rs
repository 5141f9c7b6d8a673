//! Reads a program from a file or standard input.
//!
//! Invariant: no more than [`MAX_TEXT_BYTES`] and one byte are read, whatever the file is.

use crate::Io;
use crate::failure::{Failure, Source};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::span::Span;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Whether the path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads the text at `path`; `-` is standard input.
pub(crate) fn read(path: &Path, io: &mut Io<'_>) -> Result<Source, Failure> {
    if is_stdin(path) {
        let bytes = bounded(&mut io.stdin)
            .map_err(|e| Failure::usage(format!("standard input cannot be read: {e}")))?;
        return text("<stdin>".to_owned(), bytes);
    }
    let name = path.display().to_string();
    let refused = |what: String| {
        Failure::usage_help(
            format!("`{name}` cannot be read: {what}"),
            "name a text file, or `-` for standard input",
        )
    };
    if path.is_dir() {
        return Err(refused("it is a directory".to_owned()));
    }
    let bytes =
        File::open(path).and_then(|f| bounded(&mut { f })).map_err(|e| refused(reason(&e)))?;
    text(name, bytes)
}

fn bounded(from: &mut dyn Read) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    from.take(MAX_TEXT_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(name: String, bytes: Vec<u8>) -> Result<Source, Failure> {
    let refused =
        |name: String, d: Diagnostic| Failure::one(&Source { name, text: String::new() }, d);
    if bytes.len() > MAX_TEXT_BYTES {
        let d = Diagnostic::new(
            Code::TextTooLong,
            Span::new(MAX_TEXT_BYTES, MAX_TEXT_BYTES + 1),
            format!("the text is longer than {MAX_TEXT_BYTES} bytes"),
        )
        .label("too much from here on")
        .help("split the text into several modules");
        return Err(refused(name, d));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source { name, text }),
        Err(e) => {
            let at = e.utf8_error().valid_up_to();
            let d = Diagnostic::new(Code::NotUtf8, Span::new(at, at + 1), "the text is not UTF-8")
                .label(format!("byte {at} is no part of a character"))
                .help("save the file as UTF-8");
            Err(refused(name, d))
        }
    }
}

/// The reason in words, without the operating system's number.
pub(crate) fn reason(e: &io::Error) -> String {
    match e.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission is denied".to_owned(),
        io::ErrorKind::IsADirectory => "it is a directory".to_owned(),
        io::ErrorKind::StorageFull => "the disk is full".to_owned(),
        io::ErrorKind::QuotaExceeded => "no more may be stored there".to_owned(),
        io::ErrorKind::FileTooLarge => "the file would be too large".to_owned(),
        _ => e.to_string(),
    }
}
