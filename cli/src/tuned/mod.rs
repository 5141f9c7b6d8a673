//! Pins that `carbyne tune` has measured to be the best, in a small text database.
//!
//! The first line is `carbyne tuned 1`; each other line is an entry, sorted, its fields separated
//! by tabs: the problem, the architecture, the card, the fingerprint of the atoms (16 hexadecimal
//! digits), the pin, microseconds that it takes, the pin that the model would choose and what that
//! takes, `-` for each where it could not be measured. A problem is the text of a kernel-level spec
//! without names (`problem`).
//!
//! `read` reads it, `apply` gives pins to the specs of a module and decomposes it.
//!
//! Invariant: what is printed is read as what it was, and only that.

mod apply;
mod database;
mod problem;
mod read;

pub(crate) use apply::{Notes, decomposed};
#[cfg(feature = "gpu")]
pub(crate) use apply::{is_open, pinned};
pub(crate) use database::{Database, Entry, Key};
#[cfg(feature = "gpu")]
pub(crate) use problem::problem;
#[cfg(feature = "gpu")]
pub(crate) use read::pin;

use crate::failure::Failure;
use crate::input;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostic;
use std::path::Path;

/// A database, and the card that is decomposed for where it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    pub(crate) database: Database,
    pub(crate) card: Option<String>,
}

impl Database {
    /// That of a file.
    pub(crate) fn of(path: &Path) -> Result<Database, Failure> {
        let source = input::file(path)?;
        read::read(&source.text).map_err(|d| Failure::one(&source, *d))
    }
}

impl Tuning {
    /// That of the file that a command line names; none where it names none.
    pub(crate) fn of(path: Option<&Path>, card: Option<&str>) -> Result<Option<Tuning>, Failure> {
        let database = path.map(Database::of).transpose()?;
        Ok(database.map(|database| Tuning { database, card: card.map(card_name) }))
    }

    /// Reads the text of a database.
    pub(crate) fn read(text: &str, card: Option<&str>) -> Result<Tuning, Box<Diagnostic>> {
        read::read(text).map(|database| Tuning { database, card: card.map(card_name) })
    }

    /// The entry of a problem. Where the card is not known, that of the first one by name that has
    /// one.
    fn find(&self, problem: &str, table: &AtomTable, atoms: u64) -> Option<(&Key, &Entry)> {
        let is = |key: &Key| {
            key.problem == problem
                && key.arch == table.arch.as_str()
                && key.atoms == atoms
                && self.card.as_ref().is_none_or(|card| *card == key.card)
        };
        self.database.entries.iter().find(|(key, _)| is(key))
    }
}

/// The name of a card as a field: without what would end one.
pub(crate) fn card_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let name = name.chars().map(plain).collect::<String>().trim().to_owned();
    if name.is_empty() { "unknown".to_owned() } else { name }
}
