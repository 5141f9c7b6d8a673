//! The first look at a text: its length, forbidden bytes, how deep brackets nest, where comments
//! are. Neither brackets nor `//` in a text in quotes are such.
//!
//! Invariant: a text that passes holds no bracket nested deeper than [`MAX_NESTING`], so the
//! parser's recursion is bounded. Every closing bracket counts one level down, whatever it closes:
//! the grammar enters a bracket only where this scan did, and leaves it by the bracket that fits.

use crate::diag::{Code, Diagnostic};
use crate::limits::MAX_NESTING;
use crate::span::Span;

/// Checks the limits and returns the comments, from `//` to before the line break.
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

/// Where a text in quotes that begins at `at` ends, as the rule `string` says; none where it is no
/// such text.
pub(super) fn literal_end(bytes: &[u8], at: usize) -> Option<usize> {
    let inside = bytes.get(at + 1..)?;
    let end = inside.iter().position(|b| matches!(b, b'"' | b'\n' | b'\\' | 0))?;
    (inside[end] == b'"').then_some(at + end + 2)
}

/// Where the line that holds `at` ends, before its line break.
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
    .label("too much from here on")
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
