//! Compares the calculator for layout algebra with stored results of NVIDIA's CuTe. Absent files
//! are skipped, with a message.
//!
//! For `public.jsonl`, an answer must equal CuTe's text, except for [`DIFFERENT`]. For
//! `public_dynamic.jsonl`, whose numbers are known to CuTe only at run time, it must be an equal
//! function. For `unsound.jsonl`, in which CuTe's answer is not the promised function, the
//! calculator must answer exactly, round up so that tiles cover the layout, or refuse. Another test
//! evaluates the differences that `docs/cute.md` lists.

#![expect(clippy::print_stderr, reason = "the log says how many vectors were compared")]

use crate::calculator::answers;
use crate::support::{carbyne, none, root};
use carbyne_ir::layout::{ComposedLayout, Layout};
use serde_json::{Value, json};

/// Intended differences: operation, first argument, the calculator's answer.
const DIFFERENT: [(&str, &str, &str); 1] = [
    // CuTe's answer has a negative extent.
    ("left_inverse", "(4):(-1)", "4:-1"),
];

fn vectors(name: &str) -> Option<Vec<Value>> {
    match std::fs::read_to_string(root().join("../shared/golden").join(name)) {
        Ok(text) => Some(text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()),
        Err(_) => {
            eprintln!("golden vectors {name} absent: skipped");
            None
        }
    }
}

fn asked(lines: &[Value]) -> Vec<Value> {
    let request = |l: &Value| json!({"op": l["op"], "args": l["args"]}).to_string() + "\n";
    let got = answers(&lines.iter().map(request).collect::<String>());
    assert_eq!(got.len(), lines.len());
    got
}

#[test]
fn public_vectors_are_answered_in_their_words() {
    let Some(lines) = vectors("public.jsonl") else { return };
    let mut failures = vec![];
    let mut n_different = 0;
    for (line, got) in lines.iter().zip(asked(&lines)) {
        let refused = line["expect"]["error"] == json!(true) && got["error"] == json!(true);
        if refused || got == line["expect"] {
            continue;
        }
        let ours = (line["op"].as_str(), line["args"][0].as_str(), got.as_str());
        match DIFFERENT.iter().find(|d| (Some(d.0), Some(d.1), Some(d.2)) == ours) {
            Some(_) => n_different += 1,
            None => failures.push(format!("{line}: got {got}")),
        }
    }
    eprintln!("golden vectors: {} compared, {n_different} differ on purpose", lines.len());
    none(failures);
    assert_eq!(n_different, DIFFERENT.len());
}

#[test]
fn run_time_vectors_are_the_same_functions() {
    let Some(mut lines) = vectors("public_dynamic.jsonl") else { return };
    // CuTe distinguishes static and run-time numbers; here all are constants.
    let plain = |v: &Value| match v {
        Value::String(text) => json!(text.replace('_', "")),
        other => other.clone(),
    };
    let mut failures = vec![];
    for line in &mut lines {
        let args: Vec<Value> = line["args"].as_array().unwrap().iter().map(plain).collect();
        line["args"] = json!(args);
        line["expect"] = plain(&line["expect"]);
    }
    for (line, got) in lines.iter().zip(asked(&lines)) {
        let agree = match (composed(&got), composed(&line["expect"]), line["op"].as_str()) {
            // CuTe's right inverse uses only numbers that are known at compile time.
            (Some(got), Some(want), Some("right_inverse")) => {
                let of = composed(&line["args"][0]).unwrap();
                got.size() >= want.size() && (0..got.size()).all(|i| of.at(got.at(i)) == i)
            }
            (Some(got), Some(want), _) => {
                got.size() == want.size() && (0..got.size()).all(|i| got.at(i) == want.at(i))
            }
            _ => false,
        };
        if !agree {
            failures.push(format!("{line}: got {got}"));
        }
    }
    eprintln!("golden vectors with run-time numbers: {} compared", lines.len());
    none(failures);
}

fn composed(v: &Value) -> Option<ComposedLayout> {
    v.as_str().and_then(|text| text.parse().ok())
}

fn layout(v: &Value) -> Option<Layout> {
    match v {
        Value::String(text) => text.parse().ok(),
        extent => Layout::new(extent.as_i64()?, 1).ok(),
    }
}

#[test]
fn unsound_vectors_are_exact_or_refused() {
    let Some(lines) = vectors("unsound.jsonl") else { return };
    let (mut refused, mut exact, mut ragged, mut failures) = (0, 0, 0, vec![]);
    for (line, got) in lines.iter().zip(asked(&lines)) {
        if got["error"] == json!(true) {
            refused += 1;
            continue;
        }
        let args = &line["args"];
        let (a, result) = (layout(&args[0]).unwrap(), layout(&got).unwrap());
        let right = match line["op"].as_str().unwrap() {
            "composition" | "with_shape" => {
                exact += 1;
                let inner = layout(&args[1]);
                inner.is_some_and(|b| (0..b.size()).all(|i| result.at(i) == a.at(b.at(i))))
            }
            // Rounded up: the result contains all of the layout at the expected coordinates.
            op if op.ends_with("divide") => {
                ragged += 1;
                covers(&result, &a)
            }
            // The copies of the repeated mode do not overlap.
            _ => {
                exact += 1;
                let half = |k: usize| result.mode(k).and_then(|half| half.mode(0)).unwrap();
                Layout::concat(&[half(0), half(1)]).unwrap().is_injective() == Ok(true)
            }
        };
        if !right {
            failures.push(format!("{line}: got {got}"));
        }
    }
    eprintln!("unsound vectors: {refused} refused, {exact} exact, {ragged} ragged and rounded up");
    none(failures);
}

/// Whether the result contains every index of `a`, at least as often as `a`.
fn covers(result: &Layout, a: &Layout) -> bool {
    let values = |l: &Layout| {
        let mut all: Vec<i64> = (0..l.size()).map(|i| l.at(i)).collect();
        all.sort_unstable();
        all
    };
    let all = values(result);
    let mut rest = all.iter();
    values(a).iter().all(|wanted| rest.any(|v| v == wanted))
}

#[test]
fn the_page_of_differences_is_true() {
    let page = std::fs::read_to_string(root().join("docs/cute.md")).unwrap();
    let (mut n, mut wrong) = (0, vec![]);
    for row in page.lines().filter(|l| l.starts_with("| `")) {
        let cells: Vec<&str> = row.split(" | ").map(|c| c.trim_matches(['|', ' '])).collect();
        let (expression, ours) = (cells[0].trim_matches('`'), cells[1].trim_matches('`'));
        let ran = carbyne(&["layout", expression], "");
        let right = match ran.code {
            0 => ran.text().trim_end() == ours,
            _ => ran.stderr.starts_with(ours),
        };
        n += 1;
        if !right {
            wrong.push(format!("{expression}: {}{}", ran.text(), ran.stderr));
        }
    }
    none(wrong);
    assert!(n > 10, "only {n} rows");
}
