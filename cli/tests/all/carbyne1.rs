//! Texts of format version 1: they are read, print as they are, and mean what they meant.
//!
//! The folder `carbyne1` has the examples as they were before version 2.

use crate::support::{carbyne, none, root, shown, texts_under};

#[test]
fn texts_of_version_1_are_read_and_run() {
    let files = texts_under(&root().join("cli/tests/carbyne1"));
    assert!(files.len() >= 40, "{} texts", files.len());
    let wrong = files.iter().filter_map(|file| {
        let text = std::fs::read_to_string(file).expect("a readable text");
        assert!(
            text.contains("\ncarbyne 1\n") || text.starts_with("carbyne 1\n"),
            "{}",
            shown(file)
        );
        let path = file.display().to_string();
        let module = match carbyne_ir::text::parse(&text) {
            Ok(module) => module,
            Err(e) => return Some(format!("{}: {e}", shown(file))),
        };
        if module.version != 1 || carbyne_ir::text::print(&module) != text {
            return Some(format!("{}: prints as another text", shown(file)));
        }
        // A product of 4096 by 4096 by 4096 is too much to evaluate as a whole.
        let kernel_level = module.items.iter().any(
            |s| matches!(&s.kind, carbyne_ir::ast::StmtKind::Spec(spec) if spec.body.is_none()),
        );
        let ran = match kernel_level {
            true => carbyne(&["check", &path], ""),
            false => carbyne(&["simulate", &path, "--blocks", "2"], ""),
        };
        // Leaves of several threads on plain registers mean nothing until an atom is chosen.
        let open = ran.stderr.contains("S0506");
        (ran.code != 0 && !open).then(|| format!("{}: {}", shown(file), ran.stderr))
    });
    none(wrong.collect());
}
