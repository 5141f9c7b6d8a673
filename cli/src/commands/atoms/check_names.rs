//! Checks that the atoms which a command line names exist; otherwise the error names similar ones.

use crate::args::ChosenAtoms;
use crate::failure::{Failure, Outcome};
use carbyne_atoms::{Arch, AtomTable};

/// Checks that each chosen atom exists for one of these architectures.
pub(super) fn check_chosen(chosen: &ChosenAtoms, archs: &[Arch]) -> Outcome {
    let tables: Vec<AtomTable> = archs.iter().map(|a| AtomTable::new(*a)).collect();
    match chosen.names.iter().find(|name| !tables.iter().any(|t| t.get(name).is_some())) {
        Some(name) => Err(unknown_atom(name, &tables)),
        None => Ok(()),
    }
}

/// The error for a name that no atom has.
pub(in crate::commands) fn unknown_atom(name: &str, tables: &[AtomTable]) -> Failure {
    let shown: String = name.chars().take(64).collect();
    let near = tables.last().map(|t| t.nearest_names(name)).unwrap_or_default();
    let near: Vec<String> = near.iter().map(|n| format!("`{n}`")).collect();
    let of = match tables {
        [only] => format!(" of {}", only.arch),
        _ => String::new(),
    };
    Failure::usage_help(
        format!("no atom{of} has the name `{shown}`"),
        format!("did you mean one of {}?", near.join(", ")),
    )
}
