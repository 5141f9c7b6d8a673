//! Tests the tables of `docs/kernel_level.md`, which state for many kernels without a body on which
//! architectures they can be decomposed. `cargo xtask bless docs/kernel_level` writes the tables.

use crate::support::{carbyne, golden, none, root};
use carbyne_ir::testing;
use rayon::prelude::*;

/// A row of a table: what it is called, and its program without the first line.
struct Row<'a> {
    label: &'a str,
    program: String,
}

/// The tables of `kernel_level.txt`, each with its name.
fn tables(text: &str) -> Vec<(&str, Vec<Row<'_>>)> {
    let mut tables: Vec<(&str, Vec<Row<'_>>)> = vec![];
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("== ") {
            tables.push((name, vec![]));
        } else if let Some((_, rows)) = tables.last_mut() {
            match (line.strip_prefix("-- "), rows.last_mut()) {
                (Some(label), _) => rows.push(Row { label, program: "carbyne 2\n".to_owned() }),
                (None, Some(row)) => row.program += &format!("{line}\n"),
                (None, None) => assert!(line.is_empty(), "`{line}` belongs to no row"),
            }
        }
    }
    tables
}

/// The architectures that are tried for a table.
fn architectures(table: &str) -> &'static [&'static str] {
    match table {
        "products" => &["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a"],
        "types" => &["sm_70", "sm_80", "sm_89"],
        _ => &["sm_80", "sm_90a"],
    }
}

/// The code of the error with which a program is not decomposed.
fn refusal(program: &str, arch: &str) -> Option<String> {
    let ran = carbyne(&["decompose", "-", "--arch", arch, "--message-format", "json"], program);
    let code = || ran.errors().first().and_then(|e| e["code"].as_str().map(str::to_owned));
    (ran.code != 0).then(|| code().unwrap_or_else(|| panic!("no code: {}", ran.stderr)))
}

/// For which architectures a program is decomposed, and the codes of the others.
fn verdict(program: &str, archs: &[&str]) -> (String, Vec<String>) {
    let refused: Vec<Option<String>> = archs.iter().map(|a| refusal(program, a)).collect();
    let mut codes: Vec<String> = vec![];
    for code in refused.iter().flatten() {
        if !codes.contains(code) {
            codes.push(code.clone());
        }
    }
    let taken = archs.iter().zip(&refused).filter(|(_, refused)| refused.is_none());
    let taken: Vec<&str> = taken.map(|(arch, _)| *arch).collect();
    let text = match taken.as_slice() {
        [] => "none".to_owned(),
        all if all.len() == archs.len() => "all".to_owned(),
        // sm_90a is the last.
        [first, ..] if archs.ends_with(&taken) && *first != "sm_90a" => {
            format!("{first} and later")
        }
        some => some.join(", "),
    };
    (text, codes)
}

/// A table with a row for each kernel.
fn by_kernel(rows: &[Row<'_>], verdicts: &[(String, Vec<String>)]) -> String {
    let mut table = "| kernel | decomposed for | otherwise |\n| --- | --- | --- |\n".to_owned();
    for (row, (archs, codes)) in rows.iter().zip(verdicts) {
        table += &format!("| {} | {archs} | {} |\n", row.label, codes.join(", "));
    }
    table
}

/// The type and the operation in the label of a row.
fn names<'a>(row: &Row<'a>) -> (&'a str, &'a str) {
    row.label.split_once(": ").expect("a type and an operation")
}

/// The number of operations of each type.
fn columns(rows: &[Row<'_>]) -> usize {
    let first = names(&rows[0]).0;
    rows.iter().take_while(|row| names(row).0 == first).count()
}

/// A table with a row for each type and a column for each operation, of labels `type: operation`.
fn by_type(rows: &[Row<'_>], verdicts: &[(String, Vec<String>)]) -> String {
    let head: Vec<&str> = rows[..columns(rows)].iter().map(|row| names(row).1).collect();
    let mut table =
        format!("| type | {} |\n| --- |{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for (rows, verdicts) in rows.chunks(head.len()).zip(verdicts.chunks(head.len())) {
        let cell = |(archs, codes): &(String, Vec<String>)| match archs.as_str() {
            "all" => "yes".to_owned(),
            "none" => codes.join(", "),
            some => some.to_owned(),
        };
        let cells: Vec<String> = verdicts.iter().map(cell).collect();
        table += &format!("| {} | {} |\n", names(&rows[0]).0, cells.join(" | "));
    }
    table
}

/// The text with that between the markers of this name replaced.
fn replaced(text: &str, name: &str, table: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let start = text.find(&begin).unwrap_or_else(|| panic!("no {begin}")) + begin.len();
    let stop = start + text[start..].find("<!-- end -->").expect("an end");
    format!("{}{table}{}", &text[..start], &text[stop..])
}

/// Tables are judged as a whole with `--all` or if they are written, else every sixth row of each.
#[test]
fn the_page_says_which_kernels_are_decomposed() {
    let programs = std::fs::read_to_string(root().join("cli/tests/kernel_level.txt")).expect("it");
    let path = root().join("docs/kernel_level.md");
    let mut page = std::fs::read_to_string(&path).expect("the page");
    let is_whole = testing::all() || std::env::var_os("BLESS").is_some();
    let mut wrong = vec![];
    for (name, mut rows) in tables(&programs) {
        let archs = architectures(name);
        if !is_whole {
            let per_line = if name == "types" { columns(&rows) } else { 1 };
            let mut number = 0..;
            rows.retain(|_| number.next().is_some_and(|i| i / per_line % 6 == 0));
        }
        let verdicts: Vec<_> = rows.par_iter().map(|r| verdict(&r.program, archs)).collect();
        let table = match name {
            "types" => by_type(&rows, &verdicts),
            _ => by_kernel(&rows, &verdicts),
        };
        if is_whole {
            page = replaced(&page, name, &table);
        } else {
            let lines = table.lines().filter(|line| !page.contains(line));
            wrong.extend(lines.map(|line| format!("{name}: the page lacks `{line}`")));
        }
    }
    wrong.extend(golden(&path, &page).err());
    none(wrong);
}
