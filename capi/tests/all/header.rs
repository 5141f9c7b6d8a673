//! Tests that `include/carbyne.h`, which is generated from the sources, and the example in
//! `docs/c.md` are up to date.

use crate::own;
use std::fs;

/// Compares a file with its expected contents, or rewrites it if `BLESS` is set.
fn is_fresh(path: &str, wanted: &str) {
    let file = own(path);
    if std::env::var_os("BLESS").is_some() {
        return fs::write(&file, wanted).unwrap();
    }
    let found = fs::read_to_string(&file).unwrap_or_default();
    if let Some((i, (is, should))) =
        found.lines().zip(wanted.lines()).enumerate().find(|(_, (a, b))| a != b)
    {
        panic!("{path}:{}: is `{is}`, should be `{should}`; BLESS=1 rewrites it", i + 1);
    }
    assert!(found == wanted, "{path} is too long or too short; BLESS=1 rewrites it");
}

#[test]
fn header_is_that_of_the_sources() {
    let config = cbindgen::Config::from_file(own("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new()
        .with_config(config)
        .with_src(own("src/lib.rs"))
        .with_src(own("../launch/src/call/dlpack.rs"));
    let mut header = vec![];
    builder.generate().unwrap().write(&mut header);
    is_fresh("include/carbyne.h", &String::from_utf8(header).unwrap());
}

#[test]
fn page_shows_the_example() {
    let page = fs::read_to_string(own("../docs/c.md")).unwrap();
    let (before, rest) = page.split_once("```c\n").unwrap();
    let (_, after) = rest.split_once("```\n").unwrap();
    let example = fs::read_to_string(own("examples/gemm.c")).unwrap();
    is_fresh("../docs/c.md", &format!("{before}```c\n{example}```\n{after}"));
}
