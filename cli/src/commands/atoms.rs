//! `carbyne atoms`: what an architecture can do.

use crate::args::Atoms;
use crate::failure::{Failure, Outcome};
use crate::{Io, output, pipeline};
use carbyne_atoms::{Arch, AtomTable, docs};

pub(super) fn run(args: &Atoms, io: &mut Io<'_>) -> Outcome {
    let tables: Vec<AtomTable> = match &args.arch {
        Some(arch) => vec![pipeline::table(arch)?],
        None => Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect(),
    };
    let text = match &args.name {
        Some(name) => one(name, &tables)?,
        None => list(&tables),
    };
    output::write(None, text.as_bytes(), io)
}

/// No row has the name.
pub(super) fn unknown(name: &str, tables: &[AtomTable]) -> Failure {
    let shown: String = name.chars().take(64).collect();
    let near = tables.last().map(|t| t.nearest_names(name)).unwrap_or_default();
    let near: Vec<String> = near.iter().map(|n| format!("`{n}`")).collect();
    let of = match tables {
        [only] => format!(" of {}", only.arch),
        _ => String::new(),
    };
    Failure::usage_help(
        format!("no atom{of} has the name `{shown}`"),
        format!("the nearest are {}", near.join(", ")),
    )
}

/// What `docs/atoms.md` says of one row, or of those that differ in the number of columns.
fn one(name: &str, tables: &[AtomTable]) -> Result<String, Failure> {
    docs::atom_markdown(name, tables).ok_or_else(|| unknown(name, tables))
}

/// One line a row: name, operation, where it is. Those that differ in the number of columns share one.
fn list(tables: &[AtomTable]) -> String {
    let lines: Vec<[String; 3]> = docs::series(tables)
        .iter()
        .map(|s| {
            let row = s.largest();
            let columns = s.columns().map_or(String::new(), |n| format!(", N = {n}"));
            [s.title.clone(), s.op(), format!("{}{columns}", row.req)]
        })
        .collect();
    let width = |i: usize| lines.iter().map(|l| l[i].len()).max().unwrap_or(0);
    let (names, ops) = (width(0), width(1));
    lines.iter().map(|[name, op, rest]| format!("{name:names$}  {op:ops$}  {rest}\n")).collect()
}
