//! Tests the edits in the help of synchronization errors: if one synchronization statement of a
//! hand-written kernel is removed, the edit must leave fewer errors. Most of these errors have an
//! edit.

use crate::support::{carbyne, changed, none, root};
use serde_json::Value;

/// Synchronization statements.
const SYNC: [&str; 6] = ["mbarrier.", "barrier", "async.", "wgmma.", "bulk.", "fence."];
const KERNELS: [(&str, &str); 3] = [
    ("hopper_gemm_roles.cby", "sm_90a"),
    ("ampere_gemm_by_hand.cby", "sm_80"),
    ("ampere_gemm_roles_by_hand.cby", "sm_80"),
];

#[test]
fn edits_of_errors_of_order_mend_what_was_removed() {
    let (mut errors, mut edits, mut wrong) = (0, 0, vec![]);
    for (file, arch) in KERNELS {
        let text = std::fs::read_to_string(root().join("examples").join(file)).expect("an example");
        let check = |text: &str| {
            let args = ["check", "-", "--arch", arch, "--message-format", "json"];
            carbyne(&args, text).errors()
        };
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let is_sync = |line: &&str| SYNC.iter().any(|s| line.trim_start().starts_with(s));
        for (i, line) in lines.iter().enumerate().filter(|(_, line)| is_sync(line)) {
            let without = [&lines[..i], &lines[i + 1..]].concat().concat();
            let said = check(&without);
            // A spec with an empty body is refused before the order is checked.
            if said.is_empty() || said[0]["code"] == "V0233" {
                continue;
            }
            errors += 1;
            let offered = said.iter().map(|d| &d["edits"]);
            let Some(offered) =
                offered.into_iter().find(|e| e.as_array().is_some_and(|e| !e.is_empty()))
            else {
                continue;
            };
            edits += 1;
            let edited = changed(&without, offered);
            let inserts = |e: &Value| e["byte_start"] == e["byte_end"];
            if offered.as_array().is_some_and(|all| all.iter().all(inserts)) {
                let lost = lost(&without, &edited);
                wrong.extend(lost.map(|line| format!("{file}:{}: changes `{line}`", i + 1)));
            }
            let left = check(&edited);
            if left.len() >= said.len() {
                wrong.push(format!("{file}:{}: without `{}`: {left:?}", i + 1, line.trim()));
            }
        }
    }
    assert!(errors >= 25 && edits >= 20, "{edits} of {errors} errors carry an edit");
    none(wrong);
}

/// The first line that the edited text lacks.
fn lost<'a>(text: &'a str, edited: &str) -> Option<&'a str> {
    let mut edited = edited.lines();
    text.lines().find(|line| !edited.any(|other| other == *line))
}
