//! Recovers after a syntax error: finds the statement at which parsing continues, so that one run
//! reports the errors of several statements.
//!
//! The next statement is searched at the beginning of a line: a closing brace, a keyword, a
//! definition (`%x =`, `#x:`), or a sigil outside of the brackets of the wrong statement. Skipped
//! opening braces open bodies without a head, so that the closing braces still match.

use super::super::scan::{is_blank, literal_end};
use super::{Part, Reader};
use crate::ast::{SpecKind, SyncOp};
use crate::diag::Diagnostic;
use crate::limits::MAX_NESTING;

impl Reader<'_> {
    /// Reports `d` in the step that begins at `start`. Returns the place to continue.
    pub(super) fn recover(&mut self, start: usize, d: Diagnostic) -> usize {
        let error = (d.span.start as usize).max(start);
        self.errors.push(d);
        let end = self.next_start(start, error);
        self.recovered(end)
    }

    /// Reports `d` in a statement that follows the grammar and ends at `end`.
    pub(super) fn recover_after(&mut self, end: usize, d: Diagnostic) -> usize {
        self.errors.push(d);
        if self.text.as_bytes().get(end.wrapping_sub(1)) == Some(&b'{') {
            self.open_body(None, Part::Body, end);
        }
        self.recovered(end)
    }

    fn recovered(&mut self, end: usize) -> usize {
        self.skipped = true;
        self.comments.inside(end);
        end
    }

    /// The start of the statement after the one at `start`, whose error is at `error`. It is always
    /// after `start` and at a character boundary: after a blank, at a brace, or at the end.
    fn next_start(&mut self, start: usize, error: usize) -> usize {
        let bytes = self.text.as_bytes();
        let (mut brackets, mut braces) = (0usize, 0usize);
        let mut line_start = false;
        let mut at = start;
        while let Some(&byte) = bytes.get(at) {
            if byte == b'/'
                && let Some(comment) = self.comments.holding(at)
            {
                at = comment.end as usize;
                continue;
            }
            if byte == b'"'
                && let Some(end) = literal_end(bytes, at)
            {
                (at, line_start) = (end, false);
                continue;
            }
            if line_start
                && at >= error
                && at > start
                && starts_statement(&self.text[at..], brackets > 0)
            {
                break;
            }
            match byte {
                b'(' | b'[' => brackets += 1,
                b')' | b']' => brackets = brackets.saturating_sub(1),
                b'{' => braces += 1,
                b'}' if braces > 0 => braces -= 1,
                b'}' if at >= error && at > start => break,
                _ => {}
            }
            line_start = byte == b'\n' || line_start && is_blank(byte);
            at += 1;
        }
        for _ in 0..braces.min(MAX_NESTING) {
            self.open_body(None, Part::Body, at);
        }
        at
    }
}

/// Whether a line that begins with `rest` begins a statement. In brackets, the name of a tensor may
/// be an operand, unless it is being defined.
fn starts_statement(rest: &str, in_brackets: bool) -> bool {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let bytes = rest.as_bytes();
    let sigil = usize::from(matches!(bytes.first(), Some(b'%' | b'#' | b'@')));
    let len = bytes.iter().skip(sigil).take_while(|b| is_word(b)).count();
    if sigil == 1 {
        let behind = bytes.iter().skip(1 + len).find(|b| !is_blank(**b));
        return len > 0 && (!in_brackets || matches!(behind, Some(b'=' | b':')));
    }
    const STARTS: [&str; 6] = ["let", "sym", "for", "if", "barrier", "Allocate"];
    let word = &rest[..len];
    let sync = || SyncOp::ALL.iter().any(|op| op.as_str().split('.').next() == Some(word));
    bytes.first() == Some(&b'}')
        || STARTS.contains(&word)
        || SpecKind::words().any(|of| of == word)
        || sync()
}
