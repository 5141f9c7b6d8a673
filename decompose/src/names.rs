//! Names that nothing in a module uses.

use carbyne_ir::ast::Module;
use carbyne_ir::ast::visit::{Part, Walk, parts};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The names in use, whatever their sigil.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Those that copies share.
    shared: Arc<HashSet<String>>,
    /// The others.
    used: HashSet<String>,
    /// The number that each name was last given.
    last: HashMap<String, u64>,
}

impl Names {
    /// The names that a module defines.
    pub(crate) fn of(module: &Module) -> Self {
        let mut names = Names::default().and(module);
        names.share();
        names
    }

    /// Makes copies cheap from here on, where there are none.
    pub(crate) fn share(&mut self) {
        if let Some(shared) = Arc::get_mut(&mut self.shared) {
            shared.extend(self.used.drain());
        }
    }

    /// These, and those that a module defines.
    pub(crate) fn and(mut self, module: &Module) -> Self {
        for stmt in Walk::new(&module.items).stmts() {
            parts(stmt, &mut |part| {
                if let Part::Defined(name, _) = part {
                    self.add(&name.text);
                }
            });
        }
        self
    }

    /// `name` if it is free, else `name_2`, `name_3`, ...; in use from now on.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        let mut candidate = name.to_owned();
        let mut is_free =
            |name: &String| !self.shared.contains(name) && self.used.insert(name.clone());
        if is_free(&candidate) {
            return candidate;
        }
        let n = self.last.entry(name.to_owned()).or_insert(1);
        while !is_free(&candidate) {
            *n += 1;
            candidate = format!("{name}_{n}");
        }
        candidate
    }

    fn add(&mut self, name: &str) {
        self.used.insert(name.trim_start_matches('@').to_owned());
        self.used.insert(name.to_owned());
    }
}
