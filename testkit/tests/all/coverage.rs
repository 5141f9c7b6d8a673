//! Tests that generated modules use every rule of the grammar often enough. Otherwise the tests of
//! parser and printer would not reach some rules.
//!
//! The list of rules comes from the grammar, so a new rule fails here until [`generate`] draws it.

use carbyne_ir::text::{print, rules};
use carbyne_testkit::generate;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;
use std::sync::LazyLock;

const CASES: usize = 300;

/// Rules without a trace in the parser's result, each with the reason.
const SILENT: [(&str, &str); 25] = [
    ("step", "silent: stands for statement, block_end or else_head"),
    ("operand", "silent: stands for data_view or number"),
    ("lone_word", "silent: stands for word"),
    ("sync_family", "silent: within sync_op"),
    ("sync_arg", "silent: stands for data_view or value"),
    ("spec_name", "silent: within spec_kind"),
    ("view_op", "silent: stands for method or index"),
    ("mode", "silent: stands for keep or layout"),
    ("side", "silent: stands for modes_list or value"),
    ("entries", "silent: stands for a list of entry"),
    ("entry", "silent: stands for keep or value"),
    ("tensor_part", "silent: stands for a call, a group, data_view or a number"),
    ("tensor_arg", "silent: stands for attr or tensors"),
    ("executor", "silent: stands for new_group or thread_view"),
    ("literal", "silent: stands for number"),
    ("output", "silent: stands for data_view and a type"),
    ("pick", "silent: stands for keep, data_name or value and range"),
    ("exponent", "silent: within real"),
    ("blank", "lexical: looked for behind a word"),
    ("part", "silent: stands for int, call, name or group"),
    ("word_char", "lexical: a letter within a word"),
    ("first", "lexical: a letter within a word"),
    ("WHITESPACE", "lexical: in every text"),
    ("COMMENT", "lexical: skipped; the properties compare comments"),
    ("follow", "looks ahead only"),
];

/// The number of uses of each rule in each of the modules.
fn drawn() -> &'static [BTreeMap<String, usize>] {
    static DRAWN: LazyLock<Vec<BTreeMap<String, usize>>> = LazyLock::new(|| {
        let mut runner = TestRunner::deterministic();
        let modules = generate::module();
        let of_one = |_| {
            let module = modules.new_tree(&mut runner).expect("a module").current();
            rules(&print(&module)).expect("a printed text parses")
        };
        (0..CASES).map(of_one).collect()
    });
    &DRAWN
}

#[test]
fn generated_modules_use_every_rule() {
    let mut cases: BTreeMap<String, usize> = BTreeMap::new();
    for used in drawn() {
        for (rule, n) in used {
            *cases.entry(rule.clone()).or_default() += usize::from(*n > 0);
        }
    }
    for (silent, why) in SILENT {
        assert!(cases.remove(silent).is_some(), "`{silent}`, {why}, is no rule");
    }
    let mut table: Vec<(usize, String)> = cases.into_iter().map(|(rule, n)| (n, rule)).collect();
    table.sort();
    let lines: Vec<_> = table
        .iter()
        .map(|(n, rule)| format!("{:5.1} %  {rule}", *n as f64 * 100.0 / CASES as f64))
        .collect();
    let histogram = lines.join("\n");
    // `cargo test -- --nocapture` shows this, and a rare rule fails with it.
    std::io::Write::write_all(&mut std::io::stdout(), format!("{histogram}\n").as_bytes())
        .expect("stdout");
    let rare: Vec<_> = table.iter().filter(|(n, _)| n * 100 < CASES).collect();
    assert!(rare.is_empty(), "rules in less than 1 % of the modules: {rare:?}\n{histogram}");
}

#[test]
fn only_rules_without_a_trace_are_left_out() {
    for used in drawn() {
        for (rule, why) in SILENT {
            assert!(rule == "follow" || used[rule] == 0, "{rule} is not {why}");
        }
    }
}
