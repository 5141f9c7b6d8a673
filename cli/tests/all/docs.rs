//! Tests that generated text in `docs/` is up to date: the pages about errors, the grammar and the
//! layout calculator, and quotations in three other pages. Also tests that the list of atoms in
//! `cli/tests/atoms.txt` is up to date, that guides name files that exist, and that the page of a
//! GPU names only atoms that exist.

use crate::support::{carbyne, golden, none, root, texts_under};
use carbyne_atoms::{Arch, AtomTable, docs};
use carbyne_ir::diag::Code;

#[test]
fn pages_are_fresh() {
    let folder = root().join("docs");
    let pages = [
        ("errors.md", errors()),
        ("grammar.md", grammar()),
        ("layout.md", carbyne::calculator::markdown()),
    ];
    let compared = pages.iter().map(|(name, text)| golden(&folder.join(name), text));
    none(
        compared
            .filter_map(Result::err)
            .map(|e| e.replace("xtask bless", "xtask docs #"))
            .collect(),
    );
}

/// One line for each instruction or series of instructions that differ in the number of columns. A
/// change of the table shows which pages of `carbyne atoms --markdown` change.
#[test]
fn the_table_of_atoms_changes_only_on_purpose() {
    let tables: Vec<AtomTable> = Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect();
    let line = |of: &docs::Series<'_>| {
        let page = docs::atom_markdown(&of.title, &tables).expect("each series has a page");
        format!("{:016x}  {}  {}  {}\n", fnv1a(&page), of.title, of.op(), of.largest().req)
    };
    let lines: String = docs::series(&tables).iter().map(line).collect();
    none(golden(&root().join("cli/tests/atoms.txt"), &lines).err().into_iter().collect());
}

/// The 64-bit FNV-1a hash of a text.
fn fnv1a(text: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Families in order of appearance in [`Code::ALL`], with their headings.
const FAMILIES: [(&str, &str); 12] = [
    ("P", "Parsing"),
    ("X", "Limits"),
    ("V", "Verifying"),
    ("L", "Layout algebra"),
    ("K", "Calculating with layouts"),
    ("D", "Decomposing"),
    ("C", "Code generation"),
    ("S", "Simulating"),
    ("T", "Proving the order of accesses"),
    ("G", "Drawing"),
    ("R", "Running"),
    ("I", "Carbyne itself"),
];

/// The page about commands quotes the program of the demo.
#[test]
fn the_page_about_commands_shows_the_example() {
    let source = std::fs::read_to_string(root().join("examples/gemm.cby")).unwrap();
    shows("docs/commands.md", &[("example", source.trim_end())]);
}

/// The page about strategies quotes the explanation of a choice.
#[test]
fn the_page_about_strategies_shows_what_is_explained() {
    let example = root().join("examples/gemm.cby").display().to_string();
    let said = carbyne(&["explain", &example, "--arch", "sm_80", "--all"], "").ok();
    let command = "$ carbyne explain examples/gemm.cby --arch sm_80 --all";
    // Up to the strategies that have no instance.
    let lines = said.text().lines().take_while(|l| !l.starts_with("  no "));
    let quoted: Vec<&str> = std::iter::once(command).chain(lines).collect();
    shows("docs/strategies.md", &[("explained", &quoted.join("\n"))]);
}

/// The page about synchronization quotes the annotated statements of an example.
#[test]
fn the_page_about_synchronization_shows_what_statements_order() {
    let example = root().join("examples/gemm_roles.cby").display().to_string();
    let said = carbyne(&["decompose", &example, "--arch", "sm_90a", "--annotate"], "").ok();
    let command =
        "$ carbyne decompose examples/gemm_roles.cby --arch sm_90a --annotate | grep -n orders";
    let numbered = said.text().lines().zip(1..).filter(|(l, _)| l.contains("orders"));
    let lines = numbered.map(|(l, n)| format!("{n}:{l}"));
    let quoted: Vec<String> = std::iter::once(command.to_owned()).chain(lines).collect();
    shows("docs/synchronization.md", &[("annotated", &quoted.join("\n"))]);
}

/// Checks that a page contains this code between the markers of these names.
fn shows(page: &str, code: &[(&str, &str)]) {
    let path = root().join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let fresh = code.iter().fold(text, |text, (name, code)| replaced(&text, name, code));
    let stale = golden(&path, &fresh).err();
    none(stale.map(|e| e.replace("xtask bless", "xtask docs #")).into_iter().collect());
}

/// The text with new code between the markers of this name.
fn replaced(text: &str, name: &str, code: &str) -> String {
    let (begin, end) = (format!("<!-- generated: {name} -->\n"), "<!-- end -->");
    let start = text.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let stop = start + text[start..].find(end).unwrap_or_else(|| panic!("no {end}"));
    format!("{}```text\n{code}\n```\n{}", &text[..start], &text[stop..])
}

/// Every code with its summary and, if a filetest is about the code, this filetest.
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
            // A file that is named after the code is about the code.
            let named = |p: &&std::path::PathBuf| {
                p.file_stem()
                    .and_then(|s| s.to_str())
                    .is_some_and(|s| s.starts_with(&code.to_lowercase()))
            };
            if let Some(path) = examples.iter().find(named) {
                let text = std::fs::read_to_string(path).unwrap();
                let lines = text.trim_end().lines().map(shortened);
                let program = lines.collect::<Vec<_>>().join("\n");
                page.push_str(&format!("\n```text\n{program}\n```\n"));
                page.push_str(&answer(path, &text, code));
            }
        }
    }
    page
}

/// A line of an example, without the expectation of the test, and cut to a readable length.
fn shortened(line: &str) -> String {
    let line = match line.find(" // error[").or_else(|| line.find(" // warning[")) {
        Some(at) => &line[..at],
        None => line,
    };
    match line.char_indices().nth(160) {
        Some((at, _)) => format!("{}..", &line[..at]),
        None => line.to_owned(),
    }
}

/// The diagnostics of an example about a code, at most four: line, message, label and help.
fn answer(path: &std::path::Path, text: &str, code: &str) -> String {
    const MOST: usize = 4;
    let command = text.lines().find_map(|l| l.strip_prefix("// run: ")).unwrap_or("check");
    let file = path.display().to_string();
    let mut args: Vec<&str> = command.split_whitespace().collect();
    args.extend([file.as_str(), "--message-format", "json"]);
    let ran = carbyne(&args, "");
    let mut said = String::new();
    let of_code = ran.errors().into_iter().chain(ran.warnings()).filter(|d| d["code"] == code);
    for d in of_code.take(MOST) {
        let line = d["spans"][0]["start"]["line"].as_u64().unwrap_or(0);
        let text = |v: &serde_json::Value| v.as_str().unwrap_or("").to_owned();
        let (message, label) = (text(&d["message"]), text(&d["spans"][0]["label"]));
        said.push_str(&format!("line {line}: {message}\n"));
        if !label.is_empty() {
            said.push_str(&format!("  here: {label}\n"));
        }
        said.push_str(&format!("  help: {}\n", text(&d["help"])));
    }
    let root = format!("{}/", root().display());
    match said.is_empty() {
        true => said,
        false => format!("\ncarbyne says:\n\n```text\n{}```\n", said.replace(&root, "")),
    }
}

/// CONTRIBUTING quotes an atom, and a filetest contains its probe.
#[test]
fn the_worked_example_of_an_atom_is_the_code() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).unwrap();
    let guide = read("CONTRIBUTING.md");
    let begin = guide.find("## To add an atom").expect("a heading");
    let end = guide.find("## To add a spec").expect("the next heading");
    let family = read("atoms/src/reduce.rs");
    let mut quoted = 0;
    for code in guide[begin..end].split("```rust\n").skip(1) {
        for line in code.split("```").next().unwrap_or("").lines().map(str::trim) {
            assert!(family.contains(line), "atoms/src/reduce.rs does not say `{line}`");
            quoted += usize::from(!line.is_empty());
        }
    }
    assert!(quoted > 5, "{quoted} lines");
    let made = carbyne(&["atoms", "--arch", "sm_80", "redux.xor.u32", "--probe"], "").ok();
    let filetest = read("cli/tests/filetests/atoms/redux_xor.cby");
    let program = &filetest[filetest.find("carbyne 2").expect("a program")..];
    assert_eq!(made.text(), program, "write the filetest again, as CONTRIBUTING.md says");
}

/// Files and folders of crates that the guides to the sources name in backticks.
#[test]
fn guides_to_the_sources_name_files_that_exist() {
    let mut missing = vec![];
    for page in ["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/sources.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let path = |word: &&str| {
            let of_a_path = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
            let (folder, _) = word.split_once('/').unwrap_or_default();
            let in_crate = root().join(folder).join("Cargo.toml").is_file() && !folder.is_empty();
            in_crate && word.chars().all(of_a_path)
        };
        // Every other part lies between backticks.
        let named = text.split('`').skip(1).step_by(2).filter(path);
        missing.extend(
            named.filter(|p| !root().join(p).exists()).map(|p| format!("{page}: no `{p}`")),
        );
    }
    none(missing);
}

/// The page of a GPU names only atoms that exist and passed.
#[test]
fn what_was_verified_on_a_gpu_is_in_the_table() {
    let page = std::fs::read_to_string(root().join("docs/atoms_h100.md")).unwrap();
    let tables: Vec<_> =
        carbyne_atoms::Arch::ALL.iter().map(|a| carbyne_atoms::AtomTable::new(*a)).collect();
    let mut n = 0;
    for line in page.lines().filter(|l| l.starts_with("| `")) {
        let name = line.split('`').nth(1).unwrap_or_default();
        assert!(tables.iter().any(|t| t.get(name).is_some()), "no atom `{name}`");
        // Atoms without results are only compiled.
        let idle = line.contains("| compiled only |  | 0 |");
        assert!(idle || line.contains("| verified |"), "{line}");
        n += usize::from(!idle);
    }
    assert!(n > 1700, "{n} atoms");
}

#[test]
fn every_family_has_a_heading() {
    for (_, code, _) in Code::ALL {
        assert!(FAMILIES.iter().any(|(letter, _)| code.starts_with(letter)), "{code}");
    }
}

/// The grammar of the sources as a page.
fn grammar() -> String {
    let source = root().join("ir/src/text/grammar.pest");
    let grammar = std::fs::read_to_string(source).unwrap();
    format!(
        "# Grammar\n\nGenerated from `ir/src/text/grammar.pest`; do not edit.\n\n```pest\n{}\n\
         ```\n",
        grammar.trim_end()
    )
}
