//! How often generated modules use each rule of the grammar.
//!
//! The list of rules comes from pest, so a new rule fails here until [`crate::generate`] draws it.

use super::generated::{Grammar, Rule};
use crate::generate;
use crate::limits::MAX_TEXT_BYTES;
use crate::text::comments::Comments;
use crate::text::{print, scan};
use pest::Parser;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

const CASES: usize = 500;

/// Rules that leave no trace in what pest returns, and why.
const SILENT: [(Rule, &str); 26] = [
    (Rule::step, "silent: stands for statement, block_end or else_head"),
    (Rule::operand, "silent: stands for data_view or number"),
    (Rule::lone_word, "silent: stands for word"),
    (Rule::sync_family, "silent: within sync_op"),
    (Rule::sync_arg, "silent: stands for data_view or value"),
    (Rule::spec_name, "silent: within spec_kind"),
    (Rule::view_op, "silent: stands for method or index"),
    (Rule::mode, "silent: stands for keep or layout"),
    (Rule::side, "silent: stands for modes_list or value"),
    (Rule::entries, "silent: stands for a list of entry"),
    (Rule::entry, "silent: stands for keep or value"),
    (Rule::tensor_part, "silent: stands for a call, a group, data_view or a number"),
    (Rule::tensor_arg, "silent: stands for attr or tensors"),
    (Rule::executor, "silent: stands for new_group or thread_view"),
    (Rule::literal, "silent: stands for number"),
    (Rule::output, "silent: stands for data_view and a type"),
    (Rule::pick, "silent: stands for keep, data_name or value and range"),
    (Rule::exponent, "silent: within real"),
    (Rule::blank, "lexical: looked for behind a word"),
    (Rule::part, "silent: stands for int, call, name or group"),
    (Rule::word_char, "lexical: a letter within a word"),
    (Rule::first, "lexical: a letter within a word"),
    (Rule::WHITESPACE, "lexical: in every text"),
    (Rule::COMMENT, "lexical: skipped; the properties compare comments"),
    (Rule::EOI, "lexical: the end of every text"),
    (Rule::follow, "looks ahead only"),
];

/// The rules in `text`, each once.
fn rules(text: &str) -> BTreeMap<Rule, usize> {
    let mut comments =
        Comments::new(text, scan::scan(text, MAX_TEXT_BYTES).expect("a printed text is in bounds"));
    let mut seen = BTreeMap::new();
    let mut rule = Rule::version;
    let mut at = comments.gap(0).end;
    while at < text.len() {
        let pairs = Grammar::parse(rule, &text[at..]).expect("a printed text parses");
        let end = at + pairs.clone().last().map_or(0, |p| p.as_span().end());
        for pair in pairs.flatten() {
            *seen.entry(pair.as_rule()).or_default() += 1;
        }
        comments.inside(end);
        at = comments.gap(end).end;
        rule = Rule::step;
    }
    seen
}

#[test]
fn generated_modules_use_every_rule() {
    let mut runner = TestRunner::deterministic();
    let modules = generate::module();
    let mut cases: BTreeMap<Rule, usize> = BTreeMap::new();
    for _ in 0..CASES {
        let module = modules.new_tree(&mut runner).expect("a module").current();
        for rule in rules(&print(&module)).into_keys() {
            *cases.entry(rule).or_default() += 1;
        }
    }
    let mut table: Vec<(usize, Rule)> = Rule::all_rules()
        .iter()
        .filter(|rule| !SILENT.iter().any(|(silent, _)| silent == *rule))
        .map(|rule| (cases.get(rule).copied().unwrap_or(0), *rule))
        .collect();
    table.sort();
    let lines: Vec<_> = table
        .iter()
        .map(|(n, rule)| format!("{:5.1} %  {rule:?}", *n as f64 * 100.0 / CASES as f64))
        .collect();
    let histogram = lines.join("\n");
    // Shown by `cargo test -- --nocapture`, and when a rule is too rare.
    std::io::Write::write_all(&mut std::io::stdout(), format!("{histogram}\n").as_bytes())
        .expect("stdout");
    let rare: Vec<_> = table.iter().filter(|(n, _)| n * 100 < CASES).collect();
    assert!(rare.is_empty(), "rules in less than 1 % of the modules: {rare:?}\n{histogram}");
}

#[test]
fn only_rules_without_a_trace_are_left_out() {
    let mut runner = TestRunner::deterministic();
    let modules = generate::module();
    for _ in 0..100 {
        let module = modules.new_tree(&mut runner).expect("a module").current();
        let seen = rules(&print(&module));
        for (rule, why) in SILENT {
            assert!(rule == Rule::follow || !seen.contains_key(&rule), "{rule:?} is not {why}");
        }
    }
}
