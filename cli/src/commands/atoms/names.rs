//! Names of atoms as people write them, and what is said where no atom has one.

use crate::args::ChosenAtoms;
use crate::failure::{Failure, Outcome};
use carbyne_atoms::{Arch, AtomTable};

/// Checks that each of the chosen atoms is one of these architectures'.
pub(super) fn known(chosen: &ChosenAtoms, archs: &[Arch]) -> Outcome {
    let tables: Vec<AtomTable> = archs.iter().map(|a| AtomTable::new(*a)).collect();
    match chosen.names.iter().find(|name| !tables.iter().any(|t| t.get(name).is_some())) {
        Some(name) => Err(unknown(name, &tables)),
        None => Ok(()),
    }
}

/// No atom has the name.
pub(in crate::commands) fn unknown(name: &str, tables: &[AtomTable]) -> Failure {
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
