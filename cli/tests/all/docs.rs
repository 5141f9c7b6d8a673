//! The generated pages under `docs/` are what the code says now.

use crate::support::{golden, none, root, texts_under};
use carbyne_ir::diag::Code;

#[test]
fn pages_are_fresh() {
    let folder = root().join("docs");
    let pages = [
        ("atoms.md", carbyne_atoms::docs::atoms_markdown()),
        ("errors.md", errors()),
        ("grammar.md", grammar()),
    ];
    let compared = pages.iter().map(|(name, text)| golden(&folder.join(name), text));
    none(
        compared.filter_map(Result::err).map(|e| e.replace("bless docs", "docs # docs")).collect(),
    );
}

/// Families in order of appearance in [`Code::ALL`], with their headings.
const FAMILIES: [(&str, &str); 8] = [
    ("P", "Parsing"),
    ("X", "Limits"),
    ("V", "Verifying"),
    ("L", "Layout algebra"),
    ("D", "Decomposing"),
    ("C", "Code generation"),
    ("S", "Simulating"),
    ("I", "Carbyne itself"),
];

/// Every code with its summary and, where a filetest is about it, that filetest.
fn errors() -> String {
    let mut page = String::from(
        "# Error codes\n\n\
         Generated from `ir/src/diag.rs` and `cli/tests/filetests`; do not edit.\n\
         `carbyne explain CODE` prints a section of this page.\n",
    );
    let folder = root().join("cli/tests/filetests");
    let examples = texts_under(&folder);
    for (letter, title) in FAMILIES {
        page.push_str(&format!("\n## {title}\n"));
        for (_, code, summary) in Code::ALL.iter().filter(|(_, code, _)| code.starts_with(letter)) {
            page.push_str(&format!("\n### {code}\n\n{summary}\n"));
            // The file named after the code is about it.
            let named = |p: &&std::path::PathBuf| {
                p.file_stem()
                    .and_then(|s| s.to_str())
                    .is_some_and(|s| s.starts_with(&code.to_lowercase()))
            };
            if let Some(path) = examples.iter().find(named) {
                let text = std::fs::read_to_string(path).unwrap();
                page.push_str(&format!("\n```text\n{}\n```\n", text.trim_end()));
            }
        }
    }
    page
}

#[test]
fn every_family_has_a_heading() {
    for (_, code, _) in Code::ALL {
        assert!(FAMILIES.iter().any(|(letter, _)| code.starts_with(letter)), "{code}");
    }
}

/// The grammar as it stands in the sources.
fn grammar() -> String {
    let source = root().join("ir/src/text/grammar.pest");
    let grammar = std::fs::read_to_string(source).unwrap();
    format!(
        "# Grammar\n\nGenerated from `ir/src/text/grammar.pest`; do not edit.\n\n```pest\n{}\n```\n",
        grammar.trim_end()
    )
}
