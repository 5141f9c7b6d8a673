//! The database as it is held, and as a text.

use std::collections::BTreeMap;

/// The first line.
pub(super) const FIRST: &str = "carbyne tuned 1";

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) problem: String,
    pub(crate) arch: String,
    /// As the driver calls it.
    pub(crate) card: String,
    /// Hash of the table of atoms.
    pub(crate) atoms: u64,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) by: String,
    pub(crate) nanoseconds: u64,
    /// The choice of the model, and its time.
    pub(crate) model: Option<(String, u64)>,
}

/// A database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Database {
    pub(crate) entries: BTreeMap<Key, Entry>,
}

impl Database {
    /// As a text.
    #[cfg(any(feature = "gpu", test))]
    pub(crate) fn print(&self) -> String {
        let us = |ns: u64| format!("{}.{:03}", ns / 1000, ns % 1000);
        let mut out = format!("{FIRST}\n");
        for (key, entry) in &self.entries {
            let Key { problem, arch, card, atoms } = key;
            let (by, model) = match &entry.model {
                Some((by, ns)) => (by.as_str(), us(*ns)),
                None => ("-", "-".to_owned()),
            };
            let own = (&entry.by, us(entry.nanoseconds));
            out.push_str(&format!(
                "{problem}\t{arch}\t{card}\t{atoms:016x}\t{}\t{}\t{by}\t{model}\n",
                own.0, own.1
            ));
        }
        out
    }
}
