//! Converts names of the program to names that C++ accepts. It replaces or drops other characters
//! than letters and digits, and appends a number to a name that is reserved or already in scope.
//!
//! Invariant: every admitted name is `[A-Za-z][A-Za-z0-9_]*`, is not reserved (see `keywords.rs`),
//! differs from every name of the enclosing scopes, and depends only on the order of admission. No
//! name of a program can inject other tokens.

use crate::keywords::{LIBC, is_reserved};
use std::collections::HashMap;

/// The maximum length of an admitted name before its number.
const MAX_LENGTH: usize = 64;

/// The names in use by scope, innermost last; each with the last number that was appended.
#[derive(Debug)]
pub struct Namer {
    scopes: Vec<HashMap<String, usize>>,
}

impl Default for Namer {
    fn default() -> Self {
        Namer { scopes: vec![HashMap::new()] }
    }
}

impl Namer {
    /// Creates a namer for kernels, whose names must also differ from functions of the C library.
    pub(crate) fn of_kernels() -> Self {
        let mut namer = Namer::default();
        for name in LIBC {
            namer.admit(name, "kernel");
        }
        namer
    }

    /// Opens a scope. Names of closed scopes may be used again.
    pub fn open(&mut self) {
        self.scopes.push(HashMap::new());
    }

    /// Closes the innermost scope.
    pub fn close(&mut self) {
        self.scopes.pop();
        if self.scopes.is_empty() {
            self.scopes.push(HashMap::new());
        }
    }

    /// Admits a name like `wanted`; `kind` is the prefix of names that would begin with a digit.
    pub fn admit(&mut self, wanted: &str, kind: &str) -> String {
        let base = sanitize(wanted, kind);
        let mut name = base.clone();
        // The number is separated by `_`: `a1` and `a1_1`, never `a11`.
        let mut n = self.scopes.iter().filter_map(|s| s.get(&base)).max().copied().unwrap_or(0);
        while is_reserved(&name) || self.scopes.iter().any(|s| s.contains_key(&name)) {
            n += 1;
            name = format!("{base}_{n}");
        }
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(base, n);
            scope.entry(name.clone()).or_insert(0);
        }
        name
    }

    /// The number of open scopes.
    pub fn depth(&self) -> usize {
        self.scopes.len()
    }

    /// Moves a name of the innermost scope to the scope that was innermost at `depth`.
    pub fn lift(&mut self, name: &str, depth: usize) {
        if let Some(scope) = depth.checked_sub(1).and_then(|i| self.scopes.get_mut(i)) {
            scope.entry(name.to_owned()).or_insert(0);
        }
    }
}

/// Reduces a name to letters, digits and single underscores, beginning with a letter.
fn sanitize(wanted: &str, kind: &str) -> String {
    let mut out = String::new();
    for c in wanted.chars().take(MAX_LENGTH) {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c == '_' && (out.is_empty() || out.ends_with('_')) {
            continue;
        }
        out.push(c);
    }
    let out = out.trim_end_matches('_');
    if out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.to_owned()
    } else {
        format!("{kind}{out}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(names: &[&str]) -> Vec<String> {
        let mut namer = Namer::default();
        names.iter().map(|n| namer.admit(n, "t")).collect()
    }

    #[test]
    fn ordinary_names_stay() {
        assert_eq!(admit(&["A", "As", "tid_m", "k", "@tid_n"]), ["A", "As", "tid_m", "k", "tid_n"]);
    }

    #[test]
    fn clashes_are_numbered() {
        assert_eq!(admit(&["a", "a", "a_1", "a"]), ["a", "a_1", "a_1_1", "a_2"]);
        assert_eq!(admit(&["1", "12", ""]), ["t1", "t12", "t"]);
    }

    #[test]
    fn reserved_words_are_avoided() {
        assert_eq!(
            admit(&["for", "threadIdx", "__half", "_A", "a__b", "smem", "min", "x_"]),
            ["for_1", "threadIdx_1", "half_1", "A", "a_b", "smem_1", "min_1", "x"]
        );
    }

    #[test]
    fn kernels_are_not_called_as_functions_of_the_c_library() {
        let mut namer = Namer::of_kernels();
        let kernels = ["select", "div", "rows"].map(|n| namer.admit(n, "kernel"));
        assert_eq!(kernels, ["select_1", "div_1", "rows"]);
        assert_eq!(admit(&["select", "gamma"]), ["select", "gamma"]);
    }

    #[test]
    fn nothing_is_injected() {
        for name in [
            "x;system(1)",
            "x\n#include <y>",
            "x\\\n",
            "a/*",
            "\"",
            "é\u{202e}",
            "x y",
            "operator()",
            "\0",
            "__asm__(\"trap;\")",
            &"x;".repeat(1000),
        ] {
            for out in admit(&[name, name]) {
                assert!(out.starts_with(|c: char| c.is_ascii_alphabetic()), "{out}");
                assert!(out.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'), "{out}");
                assert!(out.len() < 80 && !is_reserved(&out), "{out}");
            }
        }
    }

    #[test]
    fn scopes_give_names_back() {
        let mut namer = Namer::default();
        assert_eq!(namer.admit("a", "t"), "a");
        namer.open();
        assert_eq!(namer.admit("a", "t"), "a_1");
        assert_eq!(namer.admit("b", "t"), "b");
        namer.close();
        assert_eq!(namer.admit("b", "t"), "b");
    }
}
