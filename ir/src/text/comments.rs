//! Assigns each comment of a text to a statement, so that printing a parsed module keeps all
//! comments.
//!
//! The reader walks the text once and takes each comment exactly once:
//! - comments before the version line, or on it, become the header of the module;
//! - whole lines above a statement, and comments between its words, are printed above the
//!   statement;
//! - a comment after a statement on its last line (for a body: after its `{`) stays there;
//! - comments before a closing brace, or after it on its line, become the footer of the block.
//!
//! Invariant: no comment is lost, and comments keep their order within a statement.

use super::scan::is_blank;
use crate::span::Span;

/// The comments of a text. The first `next` ones are taken.
pub(super) struct Comments<'s> {
    text: &'s str,
    all: Vec<Span>,
    next: usize,
}

/// The space between two words: comments and possibly an empty line.
pub(super) struct Gap {
    /// The start of the next word.
    pub(super) end: usize,
    /// Whether there is an empty line above the first comment, or above the word if there is no
    /// comment.
    pub(super) blank: bool,
    /// The comments.
    pub(super) comments: Vec<String>,
}

impl<'s> Comments<'s> {
    pub(super) fn new(text: &'s str, all: Vec<Span>) -> Self {
        Comments { text, all, next: 0 }
    }

    /// Takes the comment after `at` on the same line, if only blanks are between.
    pub(super) fn trailing(&mut self, at: usize) -> Option<String> {
        let comment = *self.all.get(self.next)?;
        let between = self.text.as_bytes().get(at..comment.start as usize)?;
        // A gap is read at most twice: here and in `gap`.
        if between.contains(&b'\n') || !between.iter().all(|&b| is_blank(b)) {
            return None;
        }
        self.next += 1;
        Some(self.text_of(comment))
    }

    /// The end of the last taken comment, or `at` if this is later.
    pub(super) fn end_after(&self, at: usize) -> usize {
        let last = self.next.checked_sub(1).and_then(|i| self.all.get(i));
        last.map_or(at, |c| at.max(c.end as usize))
    }

    /// Takes the comments from `at` to the next word.
    pub(super) fn gap(&mut self, at: usize) -> Gap {
        let bytes = self.text.as_bytes();
        let mut gap = Gap { end: at, blank: false, comments: vec![] };
        let mut breaks = 0;
        loop {
            match bytes.get(gap.end) {
                Some(&byte) if is_blank(byte) => {
                    breaks += usize::from(byte == b'\n');
                    gap.blank |= breaks >= 2 && gap.comments.is_empty();
                    gap.end += 1;
                }
                Some(_) => match self.all.get(self.next) {
                    Some(comment) if comment.start as usize == gap.end => {
                        gap.comments.push(self.text_of(*comment));
                        gap.end = comment.end as usize;
                        self.next += 1;
                    }
                    _ => return gap,
                },
                None => return gap,
            }
        }
    }

    /// Takes the remaining comments before `end`: those between the words of a statement.
    pub(super) fn inside(&mut self, end: usize) -> Vec<String> {
        let mut taken = Vec::new();
        while let Some(comment) = self.all.get(self.next).filter(|c| (c.start as usize) < end) {
            taken.push(self.text_of(*comment));
            self.next += 1;
        }
        taken
    }

    /// The end of `start..end` without trailing blanks and comments.
    pub(super) fn trimmed(&self, start: usize, mut end: usize) -> usize {
        let bytes = self.text.as_bytes();
        let cut = |mut end: usize| {
            while end > start && is_blank(bytes[end - 1]) {
                end -= 1;
            }
            end
        };
        end = cut(end);
        let before = self.all.partition_point(|c| (c.start as usize) < end);
        for c in self.all[..before].iter().rev() {
            if (c.start as usize) < start || end > c.end as usize {
                break;
            }
            end = cut(c.start as usize);
        }
        end
    }

    /// The comment that contains the byte at `at`.
    pub(super) fn holding(&self, at: usize) -> Option<Span> {
        let before = self.all.partition_point(|c| c.start as usize <= at);
        let comment = *self.all.get(before.checked_sub(1)?)?;
        (at < comment.end as usize).then_some(comment)
    }

    fn text_of(&self, comment: Span) -> String {
        let text = self.text.get(comment.start as usize + 2..comment.end as usize).unwrap_or("");
        text.strip_prefix(' ').unwrap_or(text).trim_end().to_owned()
    }
}
