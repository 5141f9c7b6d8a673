//! `carbyne atoms`: lists and shows the atoms of an architecture. Its subcommands compile their
//! probes (`compile`), verify them on a GPU (`verify`), and measure their cycles (`calibrate`;
//! `machine` is its option `--machine`).

#[cfg(feature = "gpu")]
mod calibrate;
mod check_names;
mod compile;
#[cfg(feature = "gpu")]
mod fastest_launch;
#[cfg(feature = "gpu")]
mod machine;
mod probes;
#[cfg(feature = "gpu")]
mod report;
#[cfg(feature = "gpu")]
mod verify;

pub(super) use check_names::unknown_atom;
#[cfg(feature = "gpu")]
pub(super) use report::today;

use crate::args::{Atoms, AtomsCommand};
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, output, pipeline};
use carbyne_atoms::probe::{Choice, probe};
use carbyne_atoms::{Arch, Atom, AtomTable, docs};
use carbyne_draw::{elide, tensor, text};

pub(super) fn run(args: &Atoms, io: &mut Io<'_>) -> Outcome {
    match &args.command {
        #[cfg(feature = "gpu")]
        Some(AtomsCommand::Verify(args)) => return verify::run(args, io),
        #[cfg(feature = "gpu")]
        Some(AtomsCommand::Calibrate(args)) => return calibrate::run(args, io),
        #[cfg(not(feature = "gpu"))]
        Some(AtomsCommand::Verify(_) | AtomsCommand::Calibrate(_)) => {
            return Err(compile::outside(*carbyne_launch::without_gpu()));
        }
        Some(AtomsCommand::Compile(args)) => return compile::run(args, io),
        None => {}
    }
    let tables: Vec<AtomTable> = match &args.arch {
        Some(arch) => vec![pipeline::costed(arch, args.costs.as_deref())?],
        None => Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect(),
    };
    let text = match &args.name {
        Some(name) if args.probe => program(name, &tables)?,
        Some(name) => one(name, &tables, io.stdout_color)?,
        None if args.markdown => docs::atoms_markdown(&tables),
        None => list(&tables, args.spec.as_deref())?,
    };
    output::write(None, text.as_bytes(), io)
}

/// Everything about an atom, or about a series of atoms that differ in the number of columns, on
/// these architectures: its section of `--markdown`, and a drawing of its operands.
fn one(name: &str, tables: &[AtomTable], color: bool) -> Result<String, Failure> {
    let mut out = docs::atom_markdown(name, tables).ok_or_else(|| unknown_atom(name, tables))?;
    let Some(atom) = tables.iter().rev().find_map(|t| t.get(name)) else { return Ok(out) };
    match tensor::atom(atom) {
        Ok(picture) => {
            out.push('\n');
            let whole = format!("carbyne draw --atom {name} --whole");
            out.push_str(&text::text(&elide::elide(picture, &whole), color));
        }
        Err(e) => out.push_str(&format!("\nIts operands cannot be drawn: {e}.\n")),
    }
    Ok(out)
}

/// The program that executes an atom, on the newest of these architectures that has the atom.
fn program(name: &str, tables: &[AtomTable]) -> Result<String, Failure> {
    let found = tables.iter().rev().find_map(|t| t.get(name).map(|atom| (atom, t)));
    let Some((atom, table)) = found else { return Err(unknown_atom(name, tables)) };
    let made = probe(atom, table, Choice::default())
        .map_err(|e| Failure::usage(format!("`{name}` has no program that executes it: {e}")))?;
    let source = Source { name: format!("probe of {name}"), text: made.text, ..Source::default() };
    Ok(carbyne_ir::text::print(&pipeline::parsed(&source)?))
}

/// One line per atom: name, operation, architectures. A series of atoms that differ in the number
/// of columns shares one line.
fn list(tables: &[AtomTable], spec: Option<&str>) -> Result<String, Failure> {
    let mut all = docs::series(tables);
    if let Some(spec) = spec {
        let kind = |atom: &Atom| atom.op.spec_kind().map(|k| k.to_string());
        let mut known: Vec<String> = all.iter().filter_map(|s| kind(s.largest())).collect();
        // `UnaryPointwise` matches all of its operations.
        let is = |kind: String| kind == spec || kind.split('.').next() == Some(spec);
        all.retain(|s| kind(s.largest()).is_some_and(is));
        if all.is_empty() {
            known.sort();
            known.dedup();
            let shown: String = spec.chars().take(64).collect();
            return Err(Failure::usage_help(
                format!("no atom implements the spec `{shown}`"),
                format!("use one of the specs {}", known.join(", ")),
            ));
        }
    }
    let lines: Vec<[String; 3]> = all
        .iter()
        .map(|s| {
            let atom = s.largest();
            let columns = s.columns().map_or(String::new(), |n| format!(", N = {n}"));
            [s.title.clone(), s.op(), format!("{}{columns}", atom.req)]
        })
        .collect();
    let width = |i: usize| lines.iter().map(|l| l[i].len()).max().unwrap_or(0);
    let (names, ops) = (width(0), width(1));
    Ok(lines.iter().map(|[name, op, rest]| format!("{name:names$}  {op:ops$}  {rest}\n")).collect())
}
