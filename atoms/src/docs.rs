//! The table as a page for people: `docs/atoms.md` is what [`atoms_markdown`] returns.
//!
//! Invariant: the text depends on the table alone, so a stale page is found by comparing.

use crate::arch::Arch;
use crate::row::{Access, Atom, AtomOperand, Rate, RowKind};
use crate::table::AtomTable;
use std::fmt::Write;

/// Every row of every architecture as Markdown.
pub fn atoms_markdown() -> String {
    let tables: Vec<AtomTable> = Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect();
    let mut names: Vec<&'static str> = Vec::new();
    for row in tables.iter().flat_map(AtomTable::rows) {
        if !names.contains(&row.name) {
            names.push(row.name);
        }
    }
    let mut page = String::from(HEAD);
    for name in names {
        page.push('\n');
        page.push_str(&section(name, &tables));
    }
    page
}

/// All about the row of that name as it is in these tables; empty where none has it.
pub fn section(name: &str, tables: &[AtomTable]) -> String {
    let rows: Vec<(Arch, &Atom)> =
        tables.iter().filter_map(|t| t.get(name).map(|r| (t.arch, r))).collect();
    let mut page = String::new();
    write_section(&mut page, &rows);
    page
}

const HEAD: &str = "\
# Atoms

Generated from the table in `atoms/`; do not edit.

A thread-value layout maps (thread, value) to the column-major index in the operand's tile, counted
in its units. `bN` stands for any scalar types that fill N bits. Costs are cycles of one warp.
Where a row is emulated, the architecture takes the instruction and executes others, many times slower.
";

/// One row as it is on each architecture that has it.
fn write_section(page: &mut String, rows: &[(Arch, &Atom)]) {
    let Some((_, atom)) = rows.first() else { return };
    // Writing to a string cannot fail.
    let _ = write!(page, "## `{}`\n\n", atom.name);
    let threads = if atom.group == 1 {
        "one thread".to_owned()
    } else {
        format!("{} threads `{}`", atom.group, atom.thread_layout)
    };
    let _ = writeln!(page, "{}, {}, {}. {}.", atom.op, atom.req, threads, atom.cite);
    if let RowKind::Sequence { formula, error } = atom.kind {
        let _ = writeln!(page, "Several instructions: {formula}; error: {error}.");
    }
    if let Some(bound) = atom.error_bound() {
        let _ = writeln!(page, "Of an exact result y it is no farther than {bound}.");
    }
    let _ = write!(page, "\n```\n{}\n```\n\n", atom.template.text());
    page.push_str(
        "| operand | access | elements | memory | tile | thread-value layout | align |\n",
    );
    page.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    for operand in &atom.operands {
        operand_line(page, operand);
    }
    page.push_str("\n| architecture | issue | completion | rate per SM and cycle | source |\n");
    page.push_str("| --- | --- | --- | --- | --- |\n");
    let mut rest = rows;
    while let Some((first, row)) = rest.first() {
        let n = rest.iter().take_while(|(_, r)| r.cost == row.cost).count();
        let last = rest[n - 1].0;
        let archs = if n == 1 { first.to_string() } else { format!("{first} to {last}") };
        let rate = match row.cost.per_sm_per_cycle {
            Rate::Bytes(v) => format!("{v} bytes"),
            Rate::Ops(v) => format!("{v} results"),
        };
        let (issue, completion) = (row.cost.issue_cycles, row.cost.completion_cycles);
        let emulated = if row.cost.emulated { "emulated; " } else { "" };
        let source = row.cost.source;
        let _ =
            writeln!(page, "| {archs} | {issue} | {completion} | {rate} | {emulated}{source} |");
        rest = &rest[n..];
    }
}

fn operand_line(page: &mut String, operand: &AtomOperand) {
    let access = match operand.access {
        Access::Read => "read",
        Access::Write => "written",
        Access::ReadWrite => "read and written",
    };
    let memory: Vec<&str> = operand.memory.iter().map(|m| m.as_str()).collect();
    let tile: Vec<String> = operand.tile.iter().map(i64::to_string).collect();
    let _ = writeln!(
        page,
        "| {} | {access} | {} | {} | [{}] | `{}` | {} |",
        operand.name,
        operand.elem,
        memory.join(", "),
        tile.join(","),
        operand.tv,
        operand.align,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_the_page_once() {
        let page = atoms_markdown();
        assert_eq!(page, atoms_markdown());
        for arch in Arch::ALL {
            for row in AtomTable::new(*arch).rows() {
                let title = format!("\n## `{}`\n", row.name);
                assert_eq!(page.matches(&title).count(), 1, "{}", row.name);
            }
        }
    }
}
