//! Checks that the atoms that leaves name implement them ([`check`]), and proposes another atom if
//! one does not.

use crate::access::leaves::{leaves, of_blocks};
use crate::access::matching;
use crate::layouts::calls;
use carbyne_atoms::bind::Mismatch;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::Key;
use carbyne_ir::diag::{Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use std::sync::OnceLock;

/// Finds leaves that name a row which does not implement them: a row of this table or, without a
/// table, of any architecture that has it. Names that no row of the table has are errors; without a
/// table, names that no row of any architecture has.
pub fn check(p: &Program, table: Option<&AtomTable>) -> Diagnostics {
    let mut errors = Diagnostics::default();
    let all: Vec<OnceLock<AtomTable>> = Arch::ALL.iter().map(|_| OnceLock::new()).collect();
    let any =
        || Arch::ALL.iter().zip(&all).map(|(arch, t)| t.get_or_init(|| AtomTable::new(*arch)));
    let solved = of_blocks(p);
    for (id, around) in leaves(p) {
        let spec = &p.specs[id];
        let Some(name) = spec.atom.as_deref() else { continue };
        let unknown = match table {
            Some(table) => table.find(name).err(),
            None if any().any(|table| table.get(name).is_some()) => None,
            None => any().next_back().and_then(|newest| newest.find(name).err()),
        };
        if let Some(unknown) = unknown {
            errors.push(p.noted(unknown.diagnostic(spec)));
            continue;
        }
        // What is to be decomposed may do with other operands than it has.
        if solved.contains(&id) || p.kernels.contains(&id) {
            continue;
        }
        let fit = |table: &AtomTable| Some(matching::match_atom(p, id, &around, table.get(name)?));
        let mut results: Box<dyn Iterator<Item = _>> = match table {
            Some(table) => Box::new(fit(table).into_iter()),
            None => Box::new(any().filter_map(fit)),
        };
        let Some(Err(first)) = results.next() else { continue };
        if !results.any(|other| other.is_ok()) {
            let d = match table {
                Some(table) => not_by(p, (id, &around), name, &first, std::iter::once(table)),
                None => not_by(p, (id, &around), name, &first, any()),
            };
            errors.push(p.noted(d));
        }
    }
    errors.into_iter().chain(calls::check(p, table)).collect()
}

/// The error for a leaf that its row does not implement, with another row of the tables that does.
pub(crate) fn not_by<'a>(
    p: &Program,
    (id, around): (SpecId, &[SpecId]),
    name: &str,
    mismatch: &Mismatch,
    mut tables: impl Iterator<Item = &'a AtomTable>,
) -> Diagnostic {
    let (spec, d) = (&p.specs[id], matching::not_by(p, id, name, mismatch));
    let other = tables.find_map(|table| {
        let all = table.implementing(spec.kind);
        let mut fit = all.filter(|a| matching::match_atom(p, id, around, a).is_ok());
        fit.next().map(|a| a.name)
    });
    match (other, spec.word(Key::Atom)) {
        (Some(other), Some(word)) => {
            let help = format!("write `atom={other}`, which takes these operands");
            d.better(help).edit(word, other)
        }
        _ => d,
    }
}
