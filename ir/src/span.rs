//! Defines [`Span`], a byte range in a source text. Nodes of the syntax tree and diagnostics state
//! their places by spans.
//!
//! Invariant: all spans are equal to each other. Modules that differ only in the places of their
//! text compare equal, so `parse(print(m)) == m` is a plain `==`.

/// A half-open byte range `start..end` of the source text.
#[derive(Copy, Clone, Debug, Default)]
pub struct Span {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The range `start..end`. The parser refuses texts over [`crate::limits::MAX_TEXT_BYTES`], so
    /// every offset fits 32 bits.
    pub fn new(start: usize, end: usize) -> Self {
        Span { start: start as u32, end: end as u32 }
    }

    /// The smallest span that holds both spans.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Whether the span is empty because its object was not read from a text.
    pub fn is_nowhere(self) -> bool {
        self.end == 0
    }

    /// Whether both spans are at the same place; `==` ignores places.
    pub fn is_at(self, other: Span) -> bool {
        (self.start, self.end) == (other.start, other.end)
    }

    /// 1-based line and column (in bytes) of the start in `text`.
    pub fn line_col(self, text: &str) -> (usize, usize) {
        let at = (self.start as usize).min(text.len());
        let before = &text.as_bytes()[..at];
        let line = before.iter().filter(|&&b| b == b'\n').count() + 1;
        let col = before.iter().rev().take_while(|&&b| b != b'\n').count() + 1;
        (line, col)
    }
}

/// The start of every line of a text, for many queries of line numbers.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
}

impl LineIndex {
    /// The index of a text.
    pub fn new(text: &str) -> Self {
        let ends = text.match_indices('\n');
        LineIndex { starts: std::iter::once(0).chain(ends.map(|(i, _)| i as u32 + 1)).collect() }
    }

    /// The 1-based line that holds the byte. For the first byte of a span, the line of
    /// [`Span::line_col`].
    pub fn line(&self, byte: u32) -> usize {
        self.starts.partition_point(|start| *start <= byte)
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_says_the_same_lines() {
        for text in ["", "one", "\n", "one\ntwo\n\nfour", "\n\n"] {
            let index = LineIndex::new(text);
            for at in 0..=text.len() {
                let (line, _) = Span::new(at, at).line_col(text);
                assert_eq!(index.line(at as u32), line, "{text:?} at {at}");
            }
        }
    }
}
