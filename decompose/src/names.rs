//! [`Names`] knows the names that a module uses, and makes new ones that nothing in it uses.

use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{Module, Spec, Stmt, StmtKind};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The names in use, whatever their sigil.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Those that copies share.
    shared: Arc<Used>,
    /// The others.
    own: Used,
}

#[derive(Clone, Debug, Default)]
struct Used {
    names: HashSet<String>,
    /// Up to which number a name is in use with each.
    last: HashMap<String, u64>,
    /// Names of values in `means` blocks. They do not clash with names of the module.
    meant: HashSet<String>,
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
            shared.names.extend(self.own.names.drain());
            shared.last.extend(self.own.last.drain());
            shared.meant.extend(self.own.meant.drain());
        }
    }

    /// These, and those that a module defines.
    pub(crate) fn and(mut self, module: &Module) -> Self {
        self.add_specs(&module.items);
        for stmt in Walk::new(&module.items).stmts() {
            parts(stmt, &mut |part| {
                if let Part::Defined(name, _) = part {
                    self.add(name.text.trim_start_matches('@'));
                    self.add(&name.text);
                }
            });
        }
        self
    }

    /// `name` if it is free, else `name_2`, `name_3`, ...; in use from now on.
    pub(crate) fn fresh(&mut self, name: &str) -> String {
        if self.add(name) {
            return name.to_owned();
        }
        loop {
            let candidate = format!("{name}_{}", self.last(name) + 1);
            if self.add(&candidate) {
                return candidate;
            }
        }
    }

    /// A new name for a tensor of the module that no value of a `means` block has.
    pub(crate) fn fresh_outside(&mut self, name: &str) -> String {
        loop {
            let free = self.fresh(name);
            if !self.shared.meant.contains(&free) && !self.own.meant.contains(&free) {
                return free;
            }
        }
    }

    /// A new name for a kernel. Tensors may have the same name.
    pub(crate) fn fresh_kernel(&mut self, name: &str) -> String {
        self.fresh(&of_kernel(name)).split_off(of_kernel("").len())
    }

    /// Adds the names of kernels, and of values in their `means` blocks.
    pub(crate) fn add_specs(&mut self, stmts: &[Stmt]) {
        let meant = Walk::new(stmts).with_means().stmts().filter_map(given);
        self.own.meant.extend(meant.cloned());
        for stmt in stmts {
            if let StmtKind::Spec(Spec { name: Some(name), .. }) = &stmt.kind {
                self.add(&of_kernel(&name.text));
            }
        }
    }

    /// Up to which number a name is in use with each.
    fn last(&self, name: &str) -> u64 {
        self.own.last.get(name).or_else(|| self.shared.last.get(name)).copied().unwrap_or(1)
    }

    /// Whether a name was free; it is in use from now on.
    fn add(&mut self, name: &str) -> bool {
        if let Some((of, n)) = name.rsplit_once('_')
            && n.parse() == Ok(self.last(of) + 1)
            && !n.starts_with(['0', '+'])
        {
            self.own.last.insert(of.to_owned(), self.last(of) + 1);
        }
        !self.shared.names.contains(name) && self.own.names.insert(name.to_owned())
    }
}

/// The key under which the name of a kernel is kept.
fn of_kernel(name: &str) -> String {
    format!("kernel {name}")
}

/// The name to which a statement of a `means` block gives a value.
pub(crate) fn given(stmt: &Stmt) -> Option<&String> {
    match &stmt.kind {
        StmtKind::Spec(spec) => spec.outputs.first().map(|o| &o.base.text),
        StmtKind::Assign { target, .. } => Some(&target.base.text),
        StmtKind::DataDef { name, .. } => Some(&name.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_knows_which_numbers_are_in_use() {
        let mut names = Names::default();
        for i in 1..100 {
            names.share();
            let mut copy = names.clone();
            let name = copy.fresh("%s");
            assert_eq!(name, if i == 1 { "%s".to_owned() } else { format!("%s_{i}") });
            assert_eq!(copy.last("%s"), i, "it is not looked for one after the other");
            drop(copy);
            names.fresh(&name);
        }
        assert_eq!(names.fresh("%s_7"), "%s_7_2");
    }
}
