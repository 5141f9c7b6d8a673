//! Leaves that name their rows, compared with these, whatever the architecture.

use crate::explain::{leaves, of_blocks};
use crate::matching;
use carbyne_atoms::{Arch, Atom, AtomTable};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::Program;

/// The leaves that name a row which does not implement them, on any architecture that has it. Names that none
/// has are not looked at: which are known depends on the architecture.
pub fn check(p: &Program) -> Diagnostics {
    let mut errors = Diagnostics::default();
    let mut tables: Vec<Option<AtomTable>> = vec![None; Arch::ALL.len()];
    let solved = of_blocks(p);
    for (id, around) in leaves(p) {
        let Some(name) = p.specs[id].atom.as_deref() else { continue };
        if solved.contains(&id) {
            continue;
        }
        let mut first = None;
        let fits = Arch::ALL.iter().zip(&mut tables).any(|(arch, table)| {
            let table = table.get_or_insert_with(|| AtomTable::new(*arch));
            let row: Option<&Atom> = table.get(name);
            row.is_some_and(|row| match matching::match_atom(p, id, &around, row) {
                Ok(_) => true,
                Err(m) => {
                    first.get_or_insert(m);
                    false
                }
            })
        });
        if let (false, Some(m)) = (fits, first) {
            errors.push(p.noted(matching::not_by(p, id, name, &m)));
        }
    }
    errors
}
