//! Tests the report of `carbyne simulate`: which blocks ran, and which results were compared.

use crate::support::carbyne;

/// A grid of 4096 blocks; the first `busy` ones copy 64 numbers per iteration of a loop.
fn persistent(busy: i64) -> String {
    format!(
        "carbyne 2
%A:[4096,8192].f32.GL
%B:[4096,8192].f32.GL
Spec @rows <<<#grid:[@b < 4096], #cta:[64]>>> (%A) -> (%B) means {{
  %B = move(%A)
}} {{
  for (r = @b; r < {busy}; r += 4096) {{
    for (i = 0; i < 128; i += 1) {{
      Move (%A.tile([1,64])[r, i]) -> (%x)
      Move (%x) -> (%B.tile([1,64])[r, i])
    }}
  }}
}}
"
    )
}

fn said(args: &[&str], text: &str) -> String {
    carbyne(&[&["simulate", "-"], args].concat(), text).ok().stderr
}

#[test]
fn a_summary_of_asked_blocks_says_how_to_run_all() {
    let said = said(&["--blocks", "3"], &persistent(4096));
    let lines: Vec<&str> = said.lines().take(3).collect();
    let wanted = [
        "rows: 3 of 4096 blocks ran, from 0 to 2730; `--blocks all` runs all",
        "  compared with the meaning: the elements that these blocks wrote; 24576 elements",
        "  no difference",
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn blocks_without_work_are_said_to_have_none() {
    let two = said(&["--blocks", "2"], &persistent(1));
    assert!(two.contains("  1 of them had no work and wrote nothing\n"), "{two}");
    let wanted = "  8192 of 33554432 elements of %B were written; the share of these blocks is \
                  16384; use `--blocks all` to check the rest\n";
    assert!(two.contains(wanted), "{two}");
    // Only block 1 has work.
    let text = persistent(2).replace("r = @b;", "r = max(@b, 2 - 2 * @b);");
    let none = said(&["--blocks", "2"], &text);
    let wanted =
        "  none of them had work: nothing was written; without `--blocks`, others are tried\n";
    assert!(none.contains(wanted), "{none}");
    assert!(none.contains("  nothing compared with the meaning\n"), "{none}");
}

#[test]
fn a_sample_is_of_blocks_with_work() {
    // In an evenly spaced sample, most blocks would have no work.
    let said = said(&["--message-format", "json"], &persistent(512));
    let report: serde_json::Value = serde_json::from_str(said.lines().next().unwrap_or_default())
        .unwrap_or_else(|e| panic!("{e}: {said}"));
    let ran = report["blocks_run"].as_array().map_or(0, Vec::len) as u64;
    let idle = report["blocks_without_work"].as_u64().unwrap_or_default();
    assert_eq!(report["sampled"], true, "{said}");
    assert!(ran > 64 && ran - idle > ran / 8, "{ran} ran, {idle} found no work");
}

#[test]
fn all_blocks_are_said_to_have_run() {
    let text = "carbyne 2\n%A:[64].f32.GL\n%B:[64].f32.GL\n\
                Move @k <<<#grid:[@b < 2], #cta:[32]>>> (%A) -> (%B) {\n  \
                Move (%A.tile([32])[@b]) -> (%x)\n  Move (%x) -> (%B.tile([32])[@b])\n}\n";
    let said = said(&[], text);
    assert!(said.starts_with("k: all 2 blocks ran\n"), "{said}");
    assert!(said.contains("the elements that the blocks wrote; 64 elements\n"), "{said}");
}
