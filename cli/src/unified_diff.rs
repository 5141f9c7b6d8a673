//! Computes the unified diff of two texts, in the format of `diff -u`, for `fmt --check` and for
//! failures of tests.

use similar::TextDiff;

/// Number of context lines around a change.
const CONTEXT: usize = 3;
/// Maximum number of line pairs to compare. Beyond that, the diff replaces all lines.
const MAX_PAIRS: usize = 1 << 26;

/// The unified diff from `old` to `new`; empty if they are equal.
#[must_use]
pub fn diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let (n, m) = different(old, new);
    if n.saturating_mul(m) > MAX_PAIRS {
        return whole(old_name, new_name, old, new);
    }
    let diff = TextDiff::from_lines(old, new);
    diff.unified_diff().context_radius(CONTEXT).header(old_name, new_name).to_string()
}

/// The number of lines of each text between the first and the last difference.
fn different(old: &str, new: &str) -> (usize, usize) {
    let head = old.lines().zip(new.lines()).take_while(|(a, b)| a == b).count();
    let rest = |text: &str| text.lines().count() - head;
    let (n, m) = (rest(old), rest(new));
    let ends = old.lines().rev().zip(new.lines().rev()).take(n.min(m));
    let tail = ends.take_while(|(a, b)| a == b).count();
    (n - tail, m - tail)
}

/// A diff that removes every line of `old` and adds every line of `new`.
fn whole(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    let (n, m) = (old.lines().count(), new.lines().count());
    let mut out = format!("--- {old_name}\n+++ {new_name}\n@@ -1,{n} +1,{m} @@\n");
    for (sign, text) in [('-', old), ('+', new)] {
        for line in text.lines() {
            out.push(sign);
            out.push_str(line);
            out.push('\n');
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_no_difference() {
        assert_eq!(diff("a", "b", "x\n", "x\n"), "");
    }

    #[test]
    fn hunks_have_context_and_counts() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten";
        assert_eq!(
            diff("old", "new", old, new),
            "--- old\n+++ new\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n\
             +ten\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn distant_changes_are_two_hunks() {
        let old: String = (0..30).map(|i| format!("{i}\n")).collect();
        let new = old.replace("3\n", "three\n").replace("27\n", "");
        assert!(diff("a", "b", &old, &new).matches("@@ -").count() >= 2);
        assert_eq!(diff("a", "b", "", "x\n"), "--- a\n+++ b\n@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn texts_that_differ_everywhere_are_shown_whole() {
        let old = "x\n".repeat(10_000);
        let new: String = (0..10_000).map(|i| format!("{i}\n")).collect();
        let all = diff("a", "b", &old, &new);
        assert!(all.starts_with("--- a\n+++ b\n@@ -1,10000 +1,10000 @@\n-x\n"));
        assert!(all.ends_with("\n+9999\n"));
        assert_eq!(diff("a", "b", &old, &old), "");
    }
}
