//! Checks the length of a text, that it has no NUL byte, and the nesting of its brackets, and finds
//! its comments, before the parser reads it. Brackets and `//` within quotes are ignored.
//!
//! Invariant: in an accepted text no bracket nests deeper than [`MAX_NESTING`], so the recursion of
//! the parser is bounded. Every closing bracket decreases the count by one, whatever its kind: the
//! grammar enters a bracket only where this pass did, and leaves it at the matching bracket.

use crate::diag::{Code, Diagnostic};
use crate::limits::MAX_NESTING;
use crate::span::Span;

/// Checks the limits. Returns the comments, each from `//` to the line break.
pub(super) fn scan(text: &str, most: usize) -> Result<Vec<Span>, Box<Diagnostic>> {
    let bytes = text.as_bytes();
    if bytes.len() > most {
        return Err(Box::new(too_long(bytes.len(), most)));
    }
    let mut comments = Vec::new();
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            0 => return Err(nul(at)),
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                let end = line_end(bytes, at);
                if let Some(i) = bytes[at..end].iter().position(|&b| b == 0) {
                    return Err(nul(at + i));
                }
                comments.push(Span::new(at, end));
                at = end;
                continue;
            }
            b'"' => {
                if let Some(end) = literal_end(bytes, at) {
                    at = end;
                    continue;
                }
            }
            b'(' | b'[' | b'{' => {
                depth += 1;
                if depth > MAX_NESTING {
                    return Err(too_deep(at));
                }
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    Ok(comments)
}

/// The end of a quoted text that begins at `at`, by the rule `string`. `None` if there is no such
/// text.
pub(super) fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = bytes.get(at + 1..)?;
    let end = inside.iter().position(|b| matches!(b, b'"' | b'\n' | b'\\' | 0))?;
    (inside[end] == b'"').then_some(at + end + 2)
}

/// The end of the line that contains `at`, before its line break.
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |i| at + i)
}

/// Whether the grammar ignores `byte` between words.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n')
}

/// The error for a text of `len` bytes.
pub(super) fn too_long(len: usize, most: usize) -> Diagnostic {
    Diagnostic::new(
        Code::TextTooLong,
        Span::new(most, len.min(u32::MAX as usize)),
        format!("the text has {len} bytes, {most} are allowed"),
    )
    .label("the text exceeds the limit here")
    .help("split the text into several modules")
}

fn nul(at: usize) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::NulByte, Span::new(at, at + 1), "the text holds a NUL byte")
            .label("NUL byte")
            .help("remove the byte; carbyne texts are UTF-8"),
    )
}

fn too_deep(at: usize) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(
            Code::TooDeep,
            Span::new(at, at + 1),
            format!("brackets nest deeper than {MAX_NESTING}"),
        )
        .label(format!("bracket number {} that is still open", MAX_NESTING + 1))
        .help("name inner parts with `let` or a view of their own"),
    )
}
