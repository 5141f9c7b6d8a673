//! [`Fix`] is a set of changes of a text that belong together and that a tool can apply. A further
//! change of the changed text can be added to it.

pub use carbyne_ir::diag::Edit;
use carbyne_ir::span::Span;

/// Changes that belong together.
#[derive(Clone, Debug, Default)]
pub struct Fix {
    /// The steps, in words.
    pub steps: Vec<String>,
    /// The edits in text order; no two overlap.
    pub edits: Vec<Edit>,
}

impl Fix {
    /// Applies all edits to a text. `None` if they do not belong to this text.
    pub fn apply(&self, text: &str) -> Option<String> {
        Edit::apply(&self.edits, text)
    }

    /// This fix, then `edits` of the text that it makes of `text`.
    pub(super) fn then(&self, text: &str, step: String, edits: &[Edit]) -> Option<Fix> {
        let mut fix = self.clone();
        fix.steps.push(step);
        let mut last: Vec<&Edit> = edits.iter().collect();
        // From the end, so that earlier places stay where they are.
        last.sort_by_key(|e| std::cmp::Reverse(e.start()));
        for e in last {
            fix.edits = fix.with(text, e)?;
        }
        Some(fix)
    }

    /// The edits and one more, of the text that they make; those that touch become one.
    fn with(&self, text: &str, next: &Edit) -> Option<Vec<Edit>> {
        let made = self.apply(text)?;
        let (mut from, mut to) = (next.start(), next.end());
        // Places of the edits in the made text.
        let mut places = vec![];
        let mut shift = 0i64;
        for e in &self.edits {
            let start = (e.start() as i64 + shift) as usize;
            places.push((start, start + e.text.len()));
            shift += e.text.len() as i64 - (e.end() - e.start()) as i64;
        }
        let touches = |from: usize, to: usize, p: &(usize, usize)| from <= p.1 && p.0 <= to;
        for p in &places {
            if touches(from, to, p) {
                (from, to) = (from.min(p.0), to.max(p.1));
            }
        }
        let (mut out, mut before) = (vec![], 0i64);
        let mut grown = 0i64;
        for (e, p) in self.edits.iter().zip(&places) {
            let change = e.text.len() as i64 - (e.end() - e.start()) as i64;
            if touches(from, to, p) {
                grown += change;
            } else {
                if p.1 < from {
                    before += change;
                }
                out.push(e.clone());
            }
        }
        let start = from as i64 - before;
        let end = to as i64 - before - grown;
        let new =
            format!("{}{}{}", made.get(from..next.start())?, next.text, made.get(next.end()..to)?);
        let span = Span::new(usize::try_from(start).ok()?, usize::try_from(end).ok()?);
        out.push(Edit::new(span, new));
        out.sort_by_key(Edit::start);
        Some(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_an_edited_text_are_edits_of_the_text() {
        let text = "one two three four";
        let first = Fix { steps: vec![], edits: vec![Edit::new(Span::new(4, 7), "2")] };
        assert_eq!(first.apply(text).as_deref(), Some("one 2 three four"));
        let apart = first.then(text, String::new(), &[Edit::new(Span::new(6, 11), "3")]).unwrap();
        assert_eq!(apart.apply(text).as_deref(), Some("one 2 3 four"));
        assert_eq!(apart.edits.len(), 2);
        let touching =
            apart.then(text, String::new(), &[Edit::new(Span::new(2, 5), "EE")]).unwrap();
        assert_eq!(touching.apply(text).as_deref(), Some("onEE 3 four"));
        let inserted =
            touching.then(text, String::new(), &[Edit::new(Span::new(11, 11), "!")]).unwrap();
        assert_eq!(inserted.apply(text).as_deref(), Some("onEE 3 four!"));
    }
}
