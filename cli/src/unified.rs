//! The difference of two texts, as `diff -u` prints it.

/// Lines around a change that are shown.
const CONTEXT: usize = 3;
/// Most cells of the table that finds the shortest difference; beyond it the middle is one change.
const MAX_CELLS: usize = 1 << 24;

/// One line of a difference.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Edit {
    Keep,
    Remove,
    Add,
}

/// The unified difference from `old` to `new`; empty where they are equal.
#[must_use]
pub fn diff(old_name: &str, new_name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (lines(old), lines(new));
    let edits = edits(&a, &b);
    let mut out = format!("--- {old_name}\n+++ {new_name}\n");
    let mut at = 0;
    while let Some(first) = (at..edits.len()).find(|&i| edits[i] != Edit::Keep) {
        // A hunk ends where more than twice the context is unchanged.
        let mut last = first;
        while let Some(next) =
            (last + 1..edits.len().min(last + 2 + 2 * CONTEXT)).find(|&i| edits[i] != Edit::Keep)
        {
            last = next;
        }
        let (start, end) =
            (first.saturating_sub(CONTEXT).max(at), (last + 1 + CONTEXT).min(edits.len()));
        hunk(&mut out, &a, &b, &edits, start, end);
        at = end;
    }
    out
}

/// Lines with their line breaks.
fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

fn hunk(out: &mut String, a: &[&str], b: &[&str], edits: &[Edit], start: usize, end: usize) {
    let count = |upto: &[Edit], skip: Edit| upto.iter().filter(|e| **e != skip).count();
    let (mut i, mut j) = (count(&edits[..start], Edit::Add), count(&edits[..start], Edit::Remove));
    let body = &edits[start..end];
    let (n, m) = (count(body, Edit::Add), count(body, Edit::Remove));
    let first = |at: usize, n: usize| if n == 0 { at } else { at + 1 };
    out.push_str(&format!("@@ -{},{n} +{},{m} @@\n", first(i, n), first(j, m)));
    for edit in body {
        let (sign, line) = match edit {
            Edit::Keep => (' ', a[i]),
            Edit::Remove => ('-', a[i]),
            Edit::Add => ('+', b[j]),
        };
        i += usize::from(*edit != Edit::Add);
        j += usize::from(*edit != Edit::Remove);
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The shortest list of edits, by the longest common subsequence of the part that differs.
fn edits(a: &[&str], b: &[&str]) -> Vec<Edit> {
    let head = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[head..], &b[head..]);
    let tail = a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count();
    let (a, b) = (&a[..a.len() - tail], &b[..b.len() - tail]);
    let mut out = vec![Edit::Keep; head];
    let (n, m) = (a.len(), b.len());
    if (n + 1).saturating_mul(m + 1) > MAX_CELLS {
        out.extend(std::iter::repeat_n(Edit::Remove, n));
        out.extend(std::iter::repeat_n(Edit::Add, m));
    } else {
        // table[i][j]: the longest common subsequence of a[i..] and b[j..].
        let width = m + 1;
        let mut table = vec![0u32; (n + 1) * width];
        for i in (0..n).rev() {
            for j in (0..m).rev() {
                table[i * width + j] = if a[i] == b[j] {
                    table[(i + 1) * width + j + 1] + 1
                } else {
                    table[(i + 1) * width + j].max(table[i * width + j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < n || j < m {
            let edit = if i < n && j < m && a[i] == b[j] {
                Edit::Keep
            } else if j == m || (i < n && table[(i + 1) * width + j] >= table[i * width + j + 1]) {
                Edit::Remove
            } else {
                Edit::Add
            };
            i += usize::from(edit != Edit::Add);
            j += usize::from(edit != Edit::Remove);
            out.push(edit);
        }
    }
    out.extend(std::iter::repeat_n(Edit::Keep, tail));
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
            "--- old\n+++ new\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n\\ No newline at end of file\n"
        );
    }

    #[test]
    fn distant_changes_are_two_hunks() {
        let old: String = (0..30).map(|i| format!("{i}\n")).collect();
        let new = old.replace("3\n", "three\n").replace("27\n", "");
        assert!(diff("a", "b", &old, &new).matches("@@ -").count() >= 2);
        assert_eq!(diff("a", "b", "", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x\n");
    }
}
