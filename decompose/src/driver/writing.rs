//! Writes the choices of a solution into the module that was solved ([`written`]), by `emit`, and
//! names the atoms of those leaves that the solution does not implement ([`Leaves`]).

use super::generated::Generated;
use super::named;
use crate::access::matching;
use crate::emit;
use crate::layouts::calls;
use crate::names::Names;
use crate::plan::solution::Solution;
use carbyne_atoms::{Atom, AtomTable};
use carbyne_ir::ast::Module;
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::{Program, SpecId};
use std::collections::BTreeMap;

/// Writes a solution into the tree that it is of.
pub(super) fn written(
    generated: &Generated<'_>,
    tree: &Module,
    program: &Program,
    solution: &Solution,
    table: &AtomTable,
    names: Names,
) -> Result<(Module, Program), Diagnostics> {
    let atoms = leaves(program, table, solution)?;
    let emit = emit::Emit::new(program, solution, &atoms, table, names.clone());
    let written = emit.module(tree.clone())?;
    let atomic = generated.checked(&written)?;
    // Leaves that touch tensors whose layouts were found, bodies of Reductions, of exchanges and of
    // partial sums stand there without atoms.
    if atomic.specs.iter().all(|(_, s)| s.body.is_some() || s.atom.is_some()) {
        return Ok((written, atomic));
    }
    let none = Solution::default();
    let atoms = leaves(&atomic, table, &none)?;
    let written = emit::Emit::new(&atomic, &none, &atoms, table, names).module(written)?;
    let atomic = generated.checked(&written)?;
    Ok((written, atomic))
}

/// The atom of every leaf that is not the solver's.
pub(super) fn leaves(
    p: &Program,
    table: &AtomTable,
    solution: &Solution,
) -> Result<BTreeMap<SpecId, String>, Diagnostics> {
    let mut atoms = BTreeMap::new();
    let mut errors = Diagnostics::default();
    for &kernel in &p.kernels {
        let mut calls = !calls::keeps_factor(p, kernel, table, Some(solution));
        loop {
            let (mut own, mut wrong) = (BTreeMap::new(), Diagnostics::default());
            let by = (&mut own, &mut wrong);
            let mut leaves = Leaves { p, table, solution, calls, atoms: by.0, errors: by.1 };
            for (id, around) in p.leaves(kernel) {
                leaves.leaf(id, &around);
            }
            let keeps = |name: &String| table.get(name).is_some_and(Atom::keeps_factor);
            if calls && own.values().any(keeps) {
                calls = false;
                continue;
            }
            atoms.extend(own);
            wrong.into_iter().for_each(|d| errors.push(d));
            break;
        }
    }
    if errors.is_empty() { Ok(atoms) } else { Err(errors) }
}

/// Names the atom of every leaf that the solver has not decomposed.
pub(super) struct Leaves<'a> {
    pub(super) p: &'a Program,
    pub(super) table: &'a AtomTable,
    pub(super) solution: &'a Solution,
    /// Whether atoms may be taken of which ptxas makes a call.
    pub(super) calls: bool,
    pub(super) atoms: &'a mut BTreeMap<SpecId, String>,
    pub(super) errors: &'a mut Diagnostics,
}

impl Leaves<'_> {
    pub(super) fn leaf(&mut self, id: SpecId, around: &[SpecId]) {
        let s = self.solution;
        if s.implements(id) {
            return;
        }
        let spec = &self.p.specs[id];
        let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        if tensors.any(|t| self.p.buffer_of(t).open) {
            // Compared again when the layout stands in the text.
            return;
        }
        let Some(pinned) = &spec.atom else {
            match matching::match_any(self.p, id, around, self.table, self.calls) {
                Ok(m) => drop(self.atoms.insert(id, m.atom.to_owned())),
                Err(r) => {
                    self.errors.push(matching::no_atom(self.p, id, self.table, &r));
                }
            }
            return;
        };
        // A name that the table does not have was refused before.
        let Some(atom) = self.table.get(pinned) else { return };
        if let Err(m) = matching::match_atom(self.p, id, around, atom) {
            let table = std::iter::once(self.table);
            self.errors.push(named::not_by(self.p, (id, around), pinned, &m, table));
        }
    }
}
