//! Reads the database of tuned pins, and finds the entry of a problem ([`Tuning`]). The database
//! has, for each kernel that `carbyne tune` has measured, the strategy and its parameters that were
//! fastest. It is a small text file.
//!
//! The first line is `carbyne tuned 1`. Each other line is an entry; entries are sorted. The fields
//! of an entry are separated by tabs:
//!
//! 1. the problem: the text of a kernel-level spec without names (`problem`),
//! 2. the architecture,
//! 3. the GPU,
//! 4. the fingerprint of the atom table (16 hexadecimal digits),
//! 5. the pin,
//! 6. its time in microseconds,
//! 7. the pin that the cost model would choose, or `-` if it was not measured,
//! 8. the time of that pin in microseconds, or `-`.
//!
//! `read` parses the database, `apply` adds pins to the specs of a module and decomposes it.
//!
//! Invariant: a printed database is read as an equal database. A text with a malformed line is
//! refused as a whole; the order of its entries does not matter.

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

/// A database, and the name of the target GPU, if known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    pub(crate) database: Database,
    pub(crate) card: Option<String>,
}

impl Database {
    /// Reads a database file.
    pub(crate) fn from_file(path: &Path) -> Result<Database, Failure> {
        let source = input::file(path)?;
        read::read(&source.text).map_err(|d| Failure::one(&source, *d))
    }
}

impl Tuning {
    /// Reads the database file that a command line names; `None` if it names none.
    pub(crate) fn from_file(
        path: Option<&Path>,
        card: Option<&str>,
    ) -> Result<Option<Tuning>, Failure> {
        let database = path.map(Database::from_file).transpose()?;
        Ok(database.map(|database| Tuning { database, card: card.map(card_name) }))
    }

    /// Reads the text of a database.
    pub(crate) fn read(text: &str, card: Option<&str>) -> Result<Tuning, Box<Diagnostic>> {
        read::read(text).map(|database| Tuning { database, card: card.map(card_name) })
    }

    /// The entry of a problem. If the GPU is unknown, the entry of the first GPU by name.
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

/// The name of a GPU as a field, without control characters.
pub(crate) fn card_name(name: &str) -> String {
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let name = name.chars().map(plain).collect::<String>().trim().to_owned();
    if name.is_empty() { "unknown".to_owned() } else { name }
}
