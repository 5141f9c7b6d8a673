//! Reads standard input line by line, for the calculator.
//!
//! Invariant: an endless stream does not exhaust memory. A line of more than [`MAX_TEXT_BYTES`] is
//! skipped and reported as [`Line::TooLong`]. If it does not end within [`MAX_SKIPPED`] further
//! bytes, the report says so, and the caller must stop reading.

use crate::failure::Failure;
use carbyne_ir::limits::MAX_TEXT_BYTES;
use std::io::{ErrorKind, Read};

/// Maximum number of bytes of an overlong line that are skipped.
const MAX_SKIPPED: usize = 64 << 20;

/// A line of the input.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// The line without its line break.
    Text(String),
    /// The line is not UTF-8 from this byte on.
    NotUtf8(usize),
    /// The line is too long.
    TooLong {
        /// Whether the end of the line was found, so that reading can continue.
        ends: bool,
    },
}

/// Reads lines and buffers the input after them.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    kept: Vec<u8>,
    at: usize,
    done: bool,
}

impl Lines {
    /// The next complete line; `None` at the end.
    pub(crate) fn next(&mut self, from: &mut dyn Read) -> Result<Option<Line>, Failure> {
        let mut line: Vec<u8> = vec![];
        let mut skipped = 0;
        loop {
            let rest = &self.kept[self.at..];
            let end = rest.iter().position(|b| *b == b'\n');
            let part = &rest[..end.unwrap_or(rest.len())];
            let room = (MAX_TEXT_BYTES + 1).saturating_sub(line.len()).min(part.len());
            line.extend_from_slice(&part[..room]);
            skipped += part.len() - room;
            if end.is_some() {
                self.at += part.len() + 1;
                return Ok(Some(finished(line, true)));
            }
            if skipped > MAX_SKIPPED {
                return Ok(Some(finished(line, false)));
            }
            self.at = 0;
            self.kept.clear();
            if self.done || !self.fill(from)? {
                self.done = true;
                return Ok(if line.is_empty() { None } else { Some(finished(line, true)) });
            }
        }
    }

    /// Reads available bytes; false at the end.
    fn fill(&mut self, from: &mut dyn Read) -> Result<bool, Failure> {
        self.kept.resize(1 << 16, 0);
        loop {
            match from.read(&mut self.kept) {
                Ok(n) => {
                    self.kept.truncate(n);
                    return Ok(n > 0);
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => {
                    return Err(Failure::usage(format!("standard input cannot be read: {e}")));
                }
            }
        }
    }
}

fn finished(mut line: Vec<u8>, ends: bool) -> Line {
    if line.len() > MAX_TEXT_BYTES {
        return Line::TooLong { ends };
    }
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    match String::from_utf8(line) {
        Ok(text) => Line::Text(text),
        Err(e) => Line::NotUtf8(e.utf8_error().valid_up_to()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Line> {
        let (mut lines, mut from, mut out) = (Lines::default(), bytes, vec![]);
        while let Some(line) = lines.next(&mut from).unwrap() {
            out.push(line);
        }
        out
    }

    #[test]
    fn lines_come_whole() {
        let text = |t: &str| Line::Text(t.to_owned());
        assert_eq!(all(b""), []);
        assert_eq!(all(b"\n"), [text("")]);
        assert_eq!(all(b"a\r\n\nb"), [text("a"), text(""), text("b")]);
        assert_eq!(all(b"\xff\na"), [Line::NotUtf8(0), text("a")]);
        let mut long = vec![b'x'; MAX_TEXT_BYTES + 1];
        long.extend(b"\na\n");
        assert_eq!(all(&long), [Line::TooLong { ends: true }, text("a")]);
        assert_eq!(all(&long[1..]).len(), 2);
    }

    #[test]
    fn an_endless_line_is_given_up() {
        let line = Lines::default().next(&mut std::io::repeat(b'x')).unwrap();
        assert_eq!(line, Some(Line::TooLong { ends: false }));
    }
}
