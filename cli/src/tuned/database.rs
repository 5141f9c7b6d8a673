//! Defines the database of tuned pins in memory ([`Database`]), and prints it. `read` parses it.

use std::collections::BTreeMap;

/// The first line of the text.
pub(super) const FIRST: &str = "carbyne tuned 1";

/// The key of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) problem: String,
    pub(crate) arch: String,
    /// The GPU name of the driver.
    pub(crate) card: String,
    /// The hash of the atom table.
    pub(crate) atoms: u64,
}

/// A measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) by: String,
    pub(crate) nanoseconds: u64,
    /// The choice of the cost model, and its time in nanoseconds.
    pub(crate) model: Option<(String, u64)>,
}

/// A database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Database {
    pub(crate) entries: BTreeMap<Key, Entry>,
}

impl Database {
    /// The text of the database.
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
