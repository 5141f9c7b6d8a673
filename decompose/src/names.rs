//! Names that nothing in a module uses.

use carbyne_ir::ast::{Block, Module, Stmt, StmtKind};
use std::collections::{HashMap, HashSet};

/// The names in use, whatever their sigil.
#[derive(Clone, Debug, Default)]
pub struct Names {
    used: HashSet<String>,
    /// The number that each name was last given.
    last: HashMap<String, u64>,
}

impl Names {
    /// The names that a module defines.
    pub fn of(module: &Module) -> Self {
        let mut names = Names::default();
        names.stmts(&module.items);
        names
    }

    /// `name` if it is free, else `name_2`, `name_3`, ...; in use from now on.
    pub fn fresh(&mut self, name: &str) -> String {
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

    fn block(&mut self, block: &Block) {
        self.stmts(&block.stmts);
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match &stmt.kind {
                StmtKind::Let(defs) => defs.iter().for_each(|(n, _)| self.add(&n.text)),
                StmtKind::Sym(s) => self.add(&s.name.text),
                StmtKind::DataDecl { name, .. }
                | StmtKind::DataDef { name, .. }
                | StmtKind::ThreadDecl { name, .. }
                | StmtKind::ThreadDef { name, .. }
                | StmtKind::Allocate { name, .. } => self.add(&name.text),
                StmtKind::Indices { names, .. } => names.iter().for_each(|n| self.add(&n.text)),
                StmtKind::Spec(spec) => {
                    if let Some(body) = &spec.body {
                        self.block(body);
                    }
                }
                StmtKind::For { var, body, .. } => {
                    self.add(&var.text);
                    self.block(body);
                }
                StmtKind::If { then, otherwise, .. } => {
                    self.block(then);
                    if let Some(o) = otherwise {
                        self.block(o);
                    }
                }
                // Short forms are written out before anything is decomposed.
                StmtKind::Assign { .. }
                | StmtKind::Import(_)
                | StmtKind::Def(_)
                | StmtKind::Call(_)
                | StmtKind::Barrier(_)
                | StmtKind::Sync { .. } => {}
            }
        }
    }
}
