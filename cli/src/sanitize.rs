//! Makes text from files safe to print on a terminal: it replaces control characters and characters
//! that reorder a line.
//!
//! Invariant: the length in bytes does not change, so spans stay valid.

/// Replaces control characters and characters that reorder a line by `?`, one per byte. Line breaks
/// stay; tabs and carriage returns become blanks.
pub(crate) fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            '\t' | '\r' => out.push(' '),
            _ if is_harmful(c) => out.extend(std::iter::repeat_n('?', c.len_utf8())),
            _ => out.push(c),
        }
    }
    out
}

/// Control characters, line and paragraph separators, and direction embeddings and overrides.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_stay() {
        for text in ["a\x1b[31mb", "a\u{202e}b\r\n\tc", "\u{85}", "é∘日"] {
            assert_eq!(sanitize(text).len(), text.len());
        }
        assert_eq!(sanitize("a\x1b[31mb\u{202e}"), "a?[31mb???");
        assert_eq!(sanitize("é∘日\n"), "é∘日\n");
    }
}
