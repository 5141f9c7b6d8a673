//! Checks the rules of `cargo xtask tidy` for comments and documentation: no line of a comment and
//! no heading begins with `What` or `The same`, so that sentences begin with their subject; lines
//! have at most 100 columns.
//!
//! Each rule has a bound, the number of lines that may break it. A bound never rises: if fewer
//! lines break the rule, `tidy` fails until the bound is lowered.

/// The greatest width of lines, in characters.
const WIDTH: usize = 100;

/// A rule, and the number of lines that may break it.
struct Rule {
    name: &'static str,
    bound: usize,
    /// Whether a file is judged by the rule.
    judges: fn(file: &str) -> bool,
    /// The lines of a file that break the rule, counted from 1.
    breaks: fn(file: &str, text: &str) -> Vec<usize>,
}

const RULES: [Rule; 4] = [
    Rule {
        name: "lines begin with `What` or `The same`",
        bound: 0,
        judges: |file| is_prose(file) && !is_internal(file),
        breaks: openers,
    },
    Rule {
        name: "lines of decompose begin with `What` or `The same`",
        bound: 290,
        judges: |file| is_prose(file) && is_internal(file),
        breaks: openers,
    },
    Rule {
        name: "lines of Rust are longer than 100 columns",
        bound: 0,
        judges: |file| file.ends_with(".rs"),
        breaks: |_, text| long(text.lines().enumerate()),
    },
    Rule {
        name: "lines of prose are longer than 100 columns",
        bound: 0,
        judges: |file| file.ends_with(".md") && !is_generated(file),
        breaks: wide_prose,
    },
];

/// Judges all files by all rules; returns the rules that are broken or whose bound is too high.
pub(crate) fn check(files: &[(String, String)]) -> Vec<String> {
    let judged = |rule: &Rule| {
        let judged = files.iter().filter(|(file, _)| (rule.judges)(file));
        let places: Vec<String> = judged
            .flat_map(|(file, text)| {
                (rule.breaks)(file, text).into_iter().map(move |line| format!("{file}:{line}"))
            })
            .collect();
        let (n, bound, name) = (places.len(), rule.bound, rule.name);
        if n > bound {
            let last = places[places.len().saturating_sub(20)..].join("\n  ");
            return Some(format!("{n} {name}, at most {bound} may; among them\n  {last}"));
        }
        let lower = || format!("{n} {name}: lower the bound from {bound} in xtask/src/prose.rs");
        (n < bound).then(lower)
    };
    RULES.iter().filter_map(judged).collect()
}

fn is_prose(file: &str) -> bool {
    (file.ends_with(".rs") && file != "xtask/src/prose.rs")
        || (file.ends_with(".md") && !is_generated(file))
}

/// Comments of the internals of decompose.
fn is_internal(file: &str) -> bool {
    file.starts_with("decompose/src/") && file != "decompose/src/lib.rs"
}

/// Pages that a command writes.
fn is_generated(file: &str) -> bool {
    ["errors", "atoms_h100", "strategies_h100", "examples_card", "layout", "grammar"]
        .iter()
        .any(|page| file.ends_with(&format!("docs/{page}.md")))
}

/// Comment lines and headings that begin with a clause in the place of a name.
fn openers(file: &str, text: &str) -> Vec<usize> {
    let is_rust = file.ends_with(".rs");
    let begins = |line: &str| {
        let line = line.trim_start();
        let words = match is_rust {
            true => line.strip_prefix("//").map(|rest| rest.trim_start_matches(['/', '!'])),
            false => line.starts_with('#').then(|| line.trim_start_matches('#')),
        };
        let words = words.unwrap_or_default().trim_start();
        words.starts_with("What ") || words.starts_with("The same ")
    };
    let lines = text.lines().enumerate().filter(|(_, line)| begins(line));
    lines.map(|(i, _)| i + 1).collect()
}

fn long<'a>(lines: impl Iterator<Item = (usize, &'a str)>) -> Vec<usize> {
    lines.filter(|(_, line)| line.chars().count() > WIDTH).map(|(i, _)| i + 1).collect()
}

/// Lines of Markdown that could be broken: no code, no tables, no links or code spans that are as
/// long by themselves.
fn wide_prose(_: &str, text: &str) -> Vec<usize> {
    let mut is_code = false;
    let prose = text.lines().enumerate().filter(|(_, line)| {
        let begin = line.trim_start();
        if begin.starts_with("```") {
            is_code = !is_code;
            return false;
        }
        let is_other = begin.starts_with('|') || begin.starts_with('<') || begin.starts_with('!');
        !is_code && !is_other && !line.contains("](") && !line.contains('`')
    });
    long(prose)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_count_what_they_name() {
        let rust = "//! What it is.\n/// The same of others.\nfn what() {} // What\n";
        assert_eq!(openers("a.rs", rust), [1, 2]);
        assert_eq!(openers("a.md", "# What it is\nWhat is it?\n"), [1]);
        let wide = "x ".repeat(60);
        assert_eq!(long([(0, &*wide), (1, "x")].into_iter()), [1]);
        let page = format!("{wide}\n```text\n{wide}\n```\n| {wide} |\n{wide}\n");
        assert_eq!(wide_prose("a.md", &page), [1, 6]);
    }
}
