//! Finds the atom that implements a leaf spec in its place ([`match_any`]), or compares the leaf
//! with one row of the atom table ([`match_atom`]). [`bind`] judges the leaf alone. If a spec
//! around the leaf says which elements correspond, [`crate::access::relation`] also checks that the
//! atom moves or multiplies these.
//!
//! Invariant: no decision depends on an atom's name.

pub(crate) use carbyne_atoms::bind::{Mismatch, no_atom, not_by};

use crate::access::relation;
use carbyne_atoms::bind::{self, Binding};
use carbyne_atoms::{Atom, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};

/// Compares one row with one leaf spec.
///
/// # Errors
/// The first difference.
pub(crate) fn match_atom(
    p: &Program,
    id: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Result<Binding, Mismatch> {
    let bound = bind::bind(p, id, atom);
    let judged = bound.as_ref().is_ok_and(|b| b.bulk.is_none());
    if judged || bound == Err(Mismatch::Accumulates) {
        relation::check(p, id, enclosing, atom)?;
    }
    bound
}

/// The best matching row, or every row's mismatch. Among matches the one with the smallest stated
/// error wins, then the cheapest; the order of the table breaks ties. A faster approximation is
/// named by hand. One of which ptxas makes a call is taken where `calls`, or where there is no
/// other.
pub(crate) fn match_any(
    p: &Program,
    id: SpecId,
    enclosing: &[SpecId],
    table: &AtomTable,
    calls: bool,
) -> Result<Binding, Vec<(&'static str, Mismatch)>> {
    let mut best: Option<((bool, f64, f64), Binding)> = None;
    let mut rejected = vec![];
    for atom in table.implementing(bind::compared(p.specs[id].kind)) {
        match match_atom(p, id, enclosing, atom) {
            Ok(bound) => {
                // Of a result near 1, of an operand near 1.
                let error = atom.error_bound().map_or(0.0, |b| b.at(1.0, 1.0));
                let rank = (atom.calls && !calls, error, atom.cost.issue_cycles);
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    best = Some((rank, bound));
                }
            }
            Err(e) => rejected.push((atom.name, e)),
        }
    }
    best.map(|(_, bound)| bound).ok_or(rejected)
}

/// The error for an atom of a spec that several instructions implement, whatever they are.
pub(crate) fn many(p: &Program, id: SpecId, atom: &str) -> Diagnostic {
    let spec = &p.specs[id];
    let message =
        format!("several instructions implement this {} of a block, not `{atom}` alone", spec.kind);
    Diagnostic::new(Code::AtomMismatch, spec.span, message)
        .label("each thread combines its own values, then threads exchange theirs")
        .help("remove `atom=`, or write the body to choose the instructions")
}
