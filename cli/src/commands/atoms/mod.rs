//! `carbyne atoms`: what an architecture can do, and whether a GPU agrees.

mod compile;
mod probes;
#[cfg(feature = "gpu")]
mod report;
#[cfg(feature = "gpu")]
mod verify;

use crate::args::{Atoms, AtomsCommand};
use crate::failure::{Failure, Outcome};
use crate::{Io, output, pipeline};
use carbyne_atoms::{Arch, AtomTable, docs};

pub(super) fn run(args: &Atoms, io: &mut Io<'_>) -> Outcome {
    match &args.command {
        Some(AtomsCommand::Verify(args)) => return verify(args, io),
        Some(AtomsCommand::Compile(args)) => return compile::run(args, io),
        None => {}
    }
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

#[cfg(feature = "gpu")]
use verify::run as verify;

#[cfg(not(feature = "gpu"))]
fn verify(_: &crate::args::VerifyAtoms, _: &mut Io<'_>) -> Outcome {
    Err(compile::outside(*carbyne_launch::without_gpu()))
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

/// The section of `docs/atoms.md` about one row.
fn one(name: &str, tables: &[AtomTable]) -> Result<String, Failure> {
    if !tables.iter().any(|t| t.get(name).is_some()) {
        return Err(unknown(name, tables));
    }
    let page = docs::atoms_markdown();
    let heading = format!("\n## `{name}`\n");
    let start = page.find(&heading).map_or(0, |i| i + 1);
    let rest = &page[start..];
    let end = rest.find("\n\n## ").map_or(rest.len(), |i| i + 1);
    Ok(rest[..end].to_owned())
}

/// One line a row: name, operation, where it is.
fn list(tables: &[AtomTable]) -> String {
    let mut rows: Vec<&carbyne_atoms::Atom> = vec![];
    for row in tables.iter().flat_map(AtomTable::rows) {
        if !rows.iter().any(|r| r.name == row.name) {
            rows.push(row);
        }
    }
    let width = rows.iter().map(|r| r.name.len()).max().unwrap_or(0);
    let op_width = rows.iter().map(|r| r.op.to_string().len()).max().unwrap_or(0);
    rows.iter()
        .map(|r| format!("{:width$}  {:op_width$}  {}\n", r.name, r.op.to_string(), r.req))
        .collect()
}
