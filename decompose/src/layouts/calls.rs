//! Keeps atoms that call subroutines out of kernels with factors in registers. ptxas makes
//! subroutines of the slow paths of some functions ([`Atom::calls`]), and after such a call it
//! treats the registers as free in which a `wgmma` has a factor ([`Atom::keeps_factor`]).
//!
//! The solver takes no atom that calls where it takes one that keeps a factor; if a user pins both,
//! [`check`] refuses it. The two fields decide, not names or architectures.

use crate::access::precision::Precision;
use crate::plan::solution::{Assignment, Solution};
use carbyne_atoms::{Arch, Atom, AtomTable, ErrorBound};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::{Program, SpecId};
use std::sync::OnceLock;

/// The first leaf of a kernel that keeps a factor in registers, of those that name their atoms or
/// for which `solution` has one.
fn keeper<'t>(
    p: &Program,
    kernel: SpecId,
    table: &'t AtomTable,
    solution: Option<&Solution>,
) -> Option<(SpecId, &'t Atom)> {
    p.leaves(kernel).into_iter().find_map(|(id, _)| {
        let found = match solution.and_then(|s| s.how(id)) {
            Some(Assignment::MatMul(choice)) => Some(choice.atom),
            _ => p.specs[id].atom.as_deref(),
        };
        let atom = table.get(found?)?;
        atom.keeps_factor().then_some((id, atom))
    })
}

/// Whether a leaf of a kernel keeps a factor in registers.
pub(crate) fn keeps_factor(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    solution: Option<&Solution>,
) -> bool {
    keeper(p, kernel, table, solution).is_some()
}

/// Leaves that name an atom which calls beside one that keeps a factor: of this table, or, without
/// one, of any architecture.
pub(crate) fn check(p: &Program, table: Option<&AtomTable>) -> Diagnostics {
    static ALL: OnceLock<Vec<AtomTable>> = OnceLock::new();
    let all = || ALL.get_or_init(|| Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect());
    let tables = table.map_or_else(|| &all()[..], std::slice::from_ref);
    let of = |kernel: &SpecId| {
        let (table, keeper) =
            tables.iter().find_map(|t| Some((t, keeper(p, *kernel, t, None)?)))?;
        let calls = |id: SpecId| {
            let atom = table.get(p.specs[id].atom.as_deref()?)?;
            atom.calls.then(|| p.noted(refusal(p, id, atom, keeper, table)))
        };
        let leaves = p.leaves(*kernel).into_iter();
        Some(leaves.filter_map(|(id, _)| calls(id)).collect::<Vec<_>>())
    };
    p.kernels.iter().filter_map(of).flatten().collect()
}

/// The error for a leaf that calls.
fn refusal(
    p: &Program,
    id: SpecId,
    atom: &Atom,
    (by, keeper): (SpecId, &Atom),
    table: &AtomTable,
) -> Diagnostic {
    let message = format!("`{}` becomes a call beside `{}`", atom.name, keeper.name);
    let others = without_call(atom, table);
    let shared = "move the first factor of the MatMul to shared memory, `(%a:SH)`";
    let help = match &others[..] {
        [] => shared.to_owned(),
        all => {
            let names: Vec<String> = all.iter().map(|a| format!("`{}`", a.name)).collect();
            format!("use {}, which needs no call, or {shared}", names.join(" or "))
        }
    };
    Diagnostic::new(Code::Calls, p.specs[id].span, message)
        .label("ptxas may reuse the registers of the factor after a call")
        .related(p.specs[by].span, "the first factor of this MatMul stays in registers")
        .help(help)
}

/// The atoms of the same operation and types that do not call: those first whose error is stated
/// for all operands, and of these the most exact.
fn without_call<'t>(atom: &Atom, table: &'t AtomTable) -> Vec<&'t Atom> {
    let mut all: Vec<&Atom> = table.atoms().iter().filter(|a| !a.calls && alike(a, atom)).collect();
    all.retain(|a| !a.divides_by_literal());
    let partial = |a: &Atom| a.error_bound().is_some_and(|bound| bound.of_results().is_none());
    all.sort_by(|a, b| {
        (partial(a), error(a))
            .partial_cmp(&(partial(b), error(b)))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    all
}

/// Whether two atoms compute the same of the same types.
fn alike(a: &Atom, b: &Atom) -> bool {
    let types = |atom: &Atom| -> Vec<_> {
        atom.operands.iter().map(|o| (o.access, o.elem, o.n_values())).collect()
    };
    a.op == b.op && types(a) == types(b)
}

/// The stated error of a result near 1, of an operand near 1.
fn error(atom: &Atom) -> f64 {
    atom.error_bound().map_or(0.0, |bound: ErrorBound| bound.at(1.0, 1.0))
}

/// Warnings for operations that are to be as exact as possible, for which a more exact atom would
/// call.
pub(crate) fn inexact(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    solution: &Solution,
    precision: &Precision,
) -> Vec<Diagnostic> {
    let Some((by, keeper)) = keeper(p, kernel, table, Some(solution)) else { return vec![] };
    let of = |(&id, assigned): (&SpecId, &crate::plan::solution::Assigned)| {
        let Assignment::Pointwise(choice) = &assigned.how else { return None };
        let taken = table.get(choice.atom).filter(|_| precision.is_exact(id))?;
        let nearer = |a: &&Atom| a.calls && alike(a, taken) && error(a) < error(taken);
        let best = table.implementing(p.specs[id].kind).find(nearer)?;
        let message = format!("`{}` is used despite `math=exact`", taken.name);
        let label = format!("`{}` would become a call beside `{}`", best.name, keeper.name);
        let d = Diagnostic::warning(Code::Calls, p.specs[id].span, message).label(label);
        let d = d.related(p.specs[by].span, "the first factor of this MatMul stays in registers");
        Some(d.help("move the first factor of the MatMul to shared memory, `(%a:SH)`"))
    };
    solution.assignments.iter().filter_map(of).collect()
}
