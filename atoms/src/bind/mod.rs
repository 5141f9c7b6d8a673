//! Whether an atom implements a leaf spec, with what for which operand; or the first thing in which
//! they differ. This is the one statement of it: matcher, solver, printer, simulator and `explain`
//! ask here.
//!
//! [`bind()`] judges a leaf that is written out: operation, scalar types, memories, threads, how
//! many values a thread has, their order and their alignment. What is compared of an operand is the
//! *function* from (thread, value) to addresses, never its spelling. A search that knows a part of
//! this asks what `bind` is made of: [`operation`], [`unit()`], [`scalar`], [`place`],
//! [`literals`], [`groups`], [`aligned`].
//!
//! What is known of sizes and places are [`Facts`]: of a text what holds for all values of its
//! symbols, of a program that is executed what holds for those that are given.
//!
//! Whether elements end where the spec around the leaf says is no question of one leaf, and not
//! asked here.

mod facts;
mod mismatch;
mod operand;
mod partial;
mod refusal;

pub use facts::{Facts, Stated};
pub use mismatch::{Mismatch, Why};
pub use operand::{aligned, around};
pub use partial::{Accesses, Parts, accesses, keeps_together, may_split};
pub use refusal::{no_atom, not_by};

use crate::atom::{Atom, Elem, Extent, OperandAccess};
use crate::bulk::{BulkCopy, BulkMismatch, bulk_copy};
use crate::operand::{AtomOperand, places};
use crate::threads::executed_by;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};

/// An atom that implements a spec, and what fills its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The atom's name.
    pub atom: &'static str,
    /// One entry an operand of the atom, in their order.
    pub operands: Vec<Operand>,
    /// Of a bulk atom what it moves; none of others.
    pub bulk: Option<BulkCopy>,
}

/// Binds an atom to a leaf of a program.
///
/// # Errors
/// The first difference.
pub fn bind(p: &Program, id: SpecId, atom: &Atom) -> Result<Binding, Mismatch> {
    bind_with(p, id, atom, &Stated(p))
}

/// The same, by what is known of the operands.
///
/// # Errors
/// The first difference.
pub fn bind_with(
    p: &Program,
    id: SpecId,
    atom: &Atom,
    facts: &impl Facts,
) -> Result<Binding, Mismatch> {
    let spec = &p.specs[id];
    operation(spec.kind, atom)?;
    let operands = fill(spec, atom)?;
    let tensors = || {
        atom.operands.iter().zip(&operands).filter_map(|(operand, given)| match given {
            Operand::Tensor(t) => Some((operand, *t)),
            Operand::Number(_) => None,
        })
    };
    tensors().try_for_each(|(operand, t)| unit(p.scalar_of(t), operand).map(drop))?;
    tensors().try_for_each(|(operand, t)| place(p.buffer_of(t).memory, operand))?;
    literals(spec, atom)?;
    executed_by(p, spec, atom)?;
    if atom.extent != Extent::Tile {
        if let Some((_, t)) = tensors().find(|(_, t)| !p.tensors[*t].bounds.is_empty()) {
            return Err(Mismatch::Partial { tensor: p.tensor_name(t), why: Why::Whole });
        }
        let bulk = Some(bulk_copy(p, spec, atom)?);
        return Ok(Binding { atom: atom.name, operands, bulk });
    }
    plain(p, spec, atom, tensors().map(|(_, t)| t))?;
    tensors().try_for_each(|(operand, t)| operand::values(p, t, operand, facts))?;
    for (operand, t) in tensors() {
        if operand.matrix_rule().is_some() {
            operand::described(p, spec, t, operand, atom)?;
        } else {
            operand::order(p, t, operand, facts)?;
            operand::alignment(p, t, operand, facts)?;
        }
    }
    partial::check(p, spec, atom)?;
    if !atom.implements(spec.kind) {
        return Err(Mismatch::Accumulates);
    }
    Ok(Binding { atom: atom.name, operands, bulk: None })
}

/// The kind whose atoms are compared with a spec of that kind: those that only add are near to
/// setting.
pub fn compared(kind: SpecKind) -> SpecKind {
    if kind == SpecKind::MatMulSet { SpecKind::MatMul } else { kind }
}

/// That the atom computes what specs of that kind do. Whether it also sets what it adds to is
/// judged last.
///
/// # Errors
/// [`Mismatch::Op`]
pub fn operation(kind: SpecKind, atom: &Atom) -> Result<(), Mismatch> {
    match atom.op.spec_kind() == Some(compared(kind)) {
        true => Ok(()),
        false => Err(Mismatch::Op { want: atom.op.to_string() }),
    }
}

/// How many scalars of that type make one unit of the operand.
///
/// # Errors
/// [`Mismatch::Scalar`]
pub fn unit(found: Scalar, operand: &AtomOperand) -> Result<i64, Mismatch> {
    operand.elem.scalars_per_unit(found).ok_or_else(|| other_scalar(found, operand))
}

/// That a scalar of that type is one unit of the operand.
///
/// # Errors
/// [`Mismatch::Scalar`]
pub fn scalar(found: Scalar, operand: &AtomOperand) -> Result<(), Mismatch> {
    if operand.is_of(found) { Ok(()) } else { Err(other_scalar(found, operand)) }
}

/// Bits by which an integer and a float are apart, besides their widths.
const OTHER_KIND: i64 = 128;

fn other_scalar(found: Scalar, operand: &AtomOperand) -> Mismatch {
    // Integers that become floats are added and multiplied inexactly: any other integers are
    // nearer.
    let kind = match operand.elem {
        Elem::Scalar(own) if own.is_float() != found.is_float() => OTHER_KIND,
        _ => 0,
    };
    Mismatch::Scalar {
        operand: operand.name,
        want: operand.elem.to_string(),
        found: found.to_string(),
        apart: (operand.elem.bits() - found.bits()).abs() + kind,
        holds: operand.access == OperandAccess::Read && operand.elem.holds(found),
    }
}

/// That the operand may lie there.
///
/// # Errors
/// [`Mismatch::Memory`]
pub fn place(found: Option<Memory>, operand: &AtomOperand) -> Result<(), Mismatch> {
    match found.is_some_and(|m| operand.allows(m)) {
        true => Ok(()),
        false => Err(Mismatch::Memory {
            operand: operand.name,
            want: places(operand.memory),
            found: found.map_or("no memory", Memory::as_str).to_owned(),
        }),
    }
}

/// That literals stand where the atom takes one value or wants one; where it takes several it takes
/// a tensor.
///
/// # Errors
/// [`Mismatch::Literal`], [`Mismatch::Divisor`]
pub fn literals(spec: &Spec, atom: &Atom) -> Result<(), Mismatch> {
    let reads = atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
    for (operand, input) in reads.zip(&spec.inputs) {
        if let (Some(want), Elem::Scalar(scalar)) = (operand.divisor, operand.elem) {
            let found = match input {
                Operand::Number(n) if want.allows(*n, scalar) => continue,
                Operand::Number(n) => format!("`{n}`"),
                Operand::Tensor(_) => "a tensor".to_owned(),
            };
            return Err(Mismatch::Divisor { operand: operand.name, want, found });
        }
        let one = matches!(operand.elem, Elem::Scalar(_)) && operand.n_values() == 1;
        if matches!(input, Operand::Number(_)) && !one {
            return Err(Mismatch::Literal { operand: operand.name, want: operand.n_values() });
        }
    }
    Ok(())
}

/// That so many threads are whole groups of the atom.
///
/// # Errors
/// [`Mismatch::Threads`]
pub fn groups(threads: i64, atom: &Atom) -> Result<(), Mismatch> {
    match threads % atom.group == 0 {
        true => Ok(()),
        false => Err(Mismatch::Threads {
            want: format!("groups of {} threads", atom.group),
            found: format!("{threads} threads"),
        }),
    }
}

/// That the atom moves all that its tiles hold, and not as much as a number says.
///
/// # Errors
/// [`Mismatch::Bulk`]
pub fn whole(atom: &Atom) -> Result<(), Mismatch> {
    if atom.counts() { Err(BulkMismatch::Valid(true).into()) } else { Ok(()) }
}

/// Inputs fill the operands that are only read, in order; outputs the written ones.
fn fill(spec: &Spec, atom: &Atom) -> Result<Vec<Operand>, Mismatch> {
    let (reads, writes): (Vec<_>, Vec<_>) =
        atom.operands.iter().partition(|o| o.access == OperandAccess::Read);
    let want = (reads.len(), writes.len());
    let found = (spec.inputs.len(), spec.outputs.len());
    if want != found {
        return Err(Mismatch::Arity { want, found });
    }
    let mut inputs = spec.inputs.iter().cloned();
    let mut outputs = spec.outputs.iter().map(|t| Operand::Tensor(*t));
    let next = |o: &AtomOperand| match o.access {
        OperandAccess::Read => inputs.next(),
        OperandAccess::Write | OperandAccess::ReadWrite => outputs.next(),
    };
    Ok(atom.operands.iter().filter_map(next).collect())
}

/// That nothing is asked of an atom of one tile that only bulk atoms do.
fn plain(
    p: &Program,
    spec: &Spec,
    atom: &Atom,
    mut tensors: impl Iterator<Item = TensorId> + Clone,
) -> Result<(), BulkMismatch> {
    if spec.bar.is_some() {
        return Err(BulkMismatch::Bar(false));
    }
    if spec.multicast.is_some() {
        return Err(BulkMismatch::Multicast(false));
    }
    if spec.cache != atom.cache {
        return Err(BulkMismatch::Cache(atom.cache));
    }
    let part = atom.counts();
    let counted = || spec.input_tensors().any(|t| !p.tensors[t].bounds.is_empty());
    if part != (spec.valid.is_some() || part && counted()) {
        return Err(BulkMismatch::Valid(part));
    }
    if tensors.clone().any(|t| p.tensors[t].peer.is_some()) {
        return Err(BulkMismatch::Peer);
    }
    if tensors.any(|t| p.tensors[t].map.is_some()) {
        return Err(BulkMismatch::Box(false));
    }
    Ok(())
}
