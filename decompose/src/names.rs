//! Names that nothing in a module uses.

use carbyne_ir::ast::Module;
use carbyne_ir::ast::visit::{Part, Walk, parts};
use std::collections::{HashMap, HashSet};

/// The names in use, whatever their sigil.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    used: HashSet<String>,
    /// The number that each name was last given.
    last: HashMap<String, u64>,
}

impl Names {
    /// The names that a module defines.
    pub(crate) fn of(module: &Module) -> Self {
        Names::default().and(module)
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
        if self.used.insert(candidate.clone()) {
            return candidate;
        }
        let n = self.last.entry(name.to_owned()).or_insert(1);
        while !self.used.insert(candidate.clone()) {
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
