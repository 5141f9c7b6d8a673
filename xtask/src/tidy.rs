//! `cargo xtask tidy`: checks rules of this repository that no other tool checks.
//!
//! - Every Rust file begins with `//! `. Text files are UTF-8 and end with a line break, and their
//!   lines do not end with blanks, except in `filetests`.
//! - No file names a path of somebody's machine or the host of a package registry.
//! - No `todo!`, `unimplemented!`, `#[ignore]` or `#[should_panic]`; no `allow` where `expect`
//!   would do.
//! - American spelling.
//! - Every foreign dependency has a reason in `ARCHITECTURE.md`.
//! - Rules of prose: see [`crate::prose`].
//! - A Rust file of more than 500 lines gets a note, which is not a failure.

use crate::process::{Step, root, say};
use crate::prose;
use std::path::{Path, PathBuf};

/// Lines from which on a file should have a reason to be one.
const LONG: usize = 500;

pub(crate) fn tidy() -> Step {
    let root = root();
    let mut files = vec![];
    collect(&root, &mut files);
    files.sort();
    let mut wrong = vec![];
    let reasons = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap_or_default();
    let mut texts = vec![];
    for file in &files {
        let shown = file.strip_prefix(&root).unwrap_or(file).display().to_string();
        let Ok(text) = std::fs::read_to_string(file) else {
            wrong.push(format!("{shown}: not UTF-8"));
            continue;
        };
        check(&shown, &text, &mut wrong);
        if shown.ends_with("Cargo.toml") {
            let unexplained = dependencies(&text).filter(|d| !reasons.contains(&format!("`{d}`")));
            wrong.extend(
                unexplained
                    .map(|d| format!("{shown}: `{d}` has no line of reason in ARCHITECTURE.md")),
            );
        }
        let n = text.lines().count();
        if n > LONG && shown.ends_with(".rs") {
            say(&format!("note: {shown} has {n} lines; can it be split?"));
        }
        texts.push((shown.replace('\\', "/"), text));
    }
    wrong.extend(prose::check(&texts));
    wrong.iter().for_each(|w| say(w));
    match wrong.len() {
        0 => Ok(format!("{} files are tidy", files.len())),
        n => Err(format!("{n} places are untidy")),
    }
}

/// Every file of ours that people read.
fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() {
            let ours = !name.starts_with('.') || name == ".ci" || name == ".cargo";
            if ours && !["target", "corpus", "artifacts"].contains(&&*name) && !path.is_symlink() {
                collect(&path, files);
            }
        } else if KINDS.iter().any(|k| name.ends_with(k)) || name == "run" {
            files.push(path);
        }
    }
}

const KINDS: [&str; 7] = [".rs", ".md", ".toml", ".cby", ".pest", ".cu", ".py"];

fn check(shown: &str, text: &str, wrong: &mut Vec<String>) {
    let rust = shown.ends_with(".rs");
    if rust && !text.starts_with("//! ") {
        wrong.push(format!("{shown}: does not begin with `//! `: say what the file is for"));
    }
    if !text.is_empty() && !text.ends_with('\n') {
        wrong.push(format!("{shown}: does not end with a line break"));
    }
    // A filetest may be untidy on purpose.
    let ours = !shown.contains("filetests");
    let itself = shown.replace('\\', "/") == "xtask/src/tidy.rs";
    for (i, line) in text.lines().enumerate().filter(|_| !itself) {
        let mut found = |what: String| wrong.push(format!("{shown}:{}: {what}", i + 1));
        if ours && line.ends_with([' ', '\t', '\r']) {
            found("ends with a blank".to_owned());
        }
        for path in PATHS.iter().filter(|p| line.contains(**p)) {
            found(format!("`{path}` exists on one machine only"));
        }
        for (code, instead) in CODE.iter().filter(|(c, _)| rust && line.contains(c)) {
            found(format!("`{code}`: {instead}"));
        }
        if let Some((word, instead)) = british(line) {
            found(format!("`{word}` is spelled `{instead}` here"));
        }
    }
}

const PATHS: [&str; 8] =
    ["/work/", "/home/", "/root/", "/Users/", "C:\\Users", "pypi.org", "crates.io", "npmjs."];

const CODE: [(&str, &str); 5] = [
    ("todo!(", "return a coded error"),
    ("unimplemented!(", "return a coded error"),
    ("#[ignore", "assert what happens today, with a FIXME"),
    ("#[should_panic", "no input makes carbyne panic"),
    ("#[allow(", "write `#[expect(.., reason = \"..\")]`"),
];

/// The foreign crates that a manifest names in its sections of dependencies.
fn dependencies(manifest: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    manifest.lines().filter_map(move |line| {
        if line.starts_with('[') {
            inside = line.ends_with("dependencies]") && !line.starts_with("[workspace");
            return None;
        }
        let (name, _) = line.split_once(['.', ' ', '=']).filter(|_| inside)?;
        let foreign =
            !name.is_empty() && !name.starts_with(['#', ' ']) && !name.starts_with("carbyne");
        foreign.then_some(name)
    })
}

/// Stems as the British spell them, and how we do.
const SPELLINGS: [(&str, &str); 20] = [
    ("behaviour", "behavior"),
    ("neighbour", "neighbor"),
    ("colour", "color"),
    ("favour", "favor"),
    ("honour", "honor"),
    ("licence", "license"),
    ("centre", "center"),
    ("initialis", "initializ"),
    ("optimise", "optimize"),
    ("optimisa", "optimiza"),
    ("normalis", "normaliz"),
    ("serialis", "serializ"),
    ("recognis", "recogniz"),
    ("specialise", "specialize"),
    ("specialisa", "specializa"),
    ("synchronis", "synchroniz"),
    ("parallelise", "parallelize"),
    ("minimise", "minimize"),
    ("modelling", "modeling"),
    ("labelled", "labeled"),
];

fn british(line: &str) -> Option<(&'static str, &'static str)> {
    let line = line.to_ascii_lowercase();
    SPELLINGS.into_iter().find(|(word, _)| line.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(name: &str, text: &str) -> Vec<String> {
        let mut wrong = vec![];
        check(name, text, &mut wrong);
        wrong
    }

    #[test]
    fn foreign_dependencies() {
        let manifest = "[package]\nname = \"x\"\n[dependencies]\ncarbyne-ir.workspace = true\n\
            # A comment.\nlibm = \"0.2\"\n\n[dev-dependencies]\nhalf.workspace = true\n\
            [[test]]\npath = \"y\"\n";
        assert_eq!(dependencies(manifest).collect::<Vec<_>>(), ["libm", "half"]);
    }

    #[test]
    fn rules_find_what_they_name() {
        assert!(found("a.rs", "//! What it is.\nfn f() {}\n").is_empty());
        assert_eq!(found("a.rs", "fn f() {}\n").len(), 1);
        assert_eq!(found("a.md", "The colour of a Layout\n").len(), 1);
        assert_eq!(found("a.md", "in /home/me/x\n").len(), 1);
        assert_eq!(found("a.rs", "//! x\nfn f() { todo!() } \n").len(), 2);
        assert_eq!(found("a.toml", "x = 1").len(), 1);
    }
}
