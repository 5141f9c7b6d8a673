//! Counts how often a text uses each rule of the grammar. With it, tests check that random modules
//! use every rule.

use super::generated::{Grammar, Rule};
use crate::limits::MAX_TEXT_BYTES;
use crate::text::comments::Comments;
use crate::text::scan;
use pest::Parser;
use std::collections::BTreeMap;

/// The number of uses of each grammar rule in a printed text, zero included. `None` for a text that
/// does not parse. Only for tests: rules change without notice.
#[doc(hidden)]
#[must_use]
pub fn rules(text: &str) -> Option<BTreeMap<String, usize>> {
    let mut comments = Comments::new(text, scan::scan(text, MAX_TEXT_BYTES).ok()?);
    let mut seen: BTreeMap<String, usize> =
        Rule::all_rules().iter().map(|rule| (format!("{rule:?}"), 0)).collect();
    let mut rule = Rule::version;
    let mut at = comments.gap(0).end;
    while at < text.len() {
        let pairs = Grammar::parse(rule, &text[at..]).ok()?;
        let end = at + pairs.clone().last().map_or(0, |p| p.as_span().end());
        for pair in pairs.flatten() {
            *seen.entry(format!("{:?}", pair.as_rule())).or_default() += 1;
        }
        comments.inside(end);
        at = comments.gap(end).end;
        rule = Rule::step;
    }
    Some(seen)
}
