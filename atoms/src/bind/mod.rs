//! Decides whether an atom implements a leaf spec ([`bind()`]). The result is a [`Binding`], which
//! assigns the spec's tensors and literals to the atom's operands, or a [`Mismatch`], the first
//! difference. This is the only implementation of the decision: matcher, solver, printer, simulator
//! and `explain` call it.
//!
//! [`bind()`] judges a complete leaf: operation, scalar types, memories, threads, the number of
//! values per thread, their order and their alignment. It compares offsets of values, never the
//! spelling of a layout. Bulk atoms are compared by [`bulk_copy`] in place of values and their
//! order. A search that knows only a part of a leaf calls the parts of `bind`, for example
//! [`operation`], [`unit()`], [`scalar`], [`memory`], [`literals`], [`groups`], [`aligned`].
//!
//! [`Facts`] provides the known layouts and offsets. [`Stated`] provides those that hold for all
//! values of a text's symbols. The simulator provides those of an execution with given values.
//!
//! `bind` does not check whether elements end up where the spec around the leaf says. This question
//! concerns several leaves; `decompose` answers it.

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
use crate::operand::{AtomOperand, memory_names};
use crate::threads::executed_by;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};

/// An atom that implements a spec, and the operands that the spec gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// The name of the atom.
    pub atom: &'static str,
    /// One entry per operand of the atom, in the atom's order.
    pub operands: Vec<Operand>,
    /// For a bulk atom: what it copies. `None` for other atoms.
    pub bulk: Option<BulkCopy>,
}

/// Binds an atom to a leaf of a program.
///
/// # Errors
/// The first difference.
pub fn bind(p: &Program, id: SpecId, atom: &Atom) -> Result<Binding, Mismatch> {
    bind_with(p, id, atom, &Stated(p))
}

/// Binds an atom to a leaf of a program, with given facts about the operands.
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
    tensors().try_for_each(|(operand, t)| memory(p.buffer_of(t).memory, operand))?;
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

/// The kind of spec with whose atoms a spec of this kind is compared. A `MatMul.set` is compared
/// with all atoms for MatMul: an atom that can only add is a near miss.
pub fn compared(kind: SpecKind) -> SpecKind {
    if kind == SpecKind::MatMulSet { SpecKind::MatMul } else { kind }
}

/// Checks that the atom computes the operation of specs of this kind. Whether the atom can also set
/// its output, as `MatMul.set` needs, is checked last.
///
/// # Errors
/// [`Mismatch::Op`]
pub fn operation(kind: SpecKind, atom: &Atom) -> Result<(), Mismatch> {
    match atom.op.spec_kind() == Some(compared(kind)) {
        true => Ok(()),
        false => Err(Mismatch::Op { want: atom.op.to_string() }),
    }
}

/// The number of scalars of this type in one unit of the operand.
///
/// # Errors
/// [`Mismatch::Scalar`]
pub fn unit(found: Scalar, operand: &AtomOperand) -> Result<i64, Mismatch> {
    operand.elem.scalars_per_unit(found).ok_or_else(|| other_scalar(found, operand))
}

/// Checks that one unit of the operand is exactly one scalar of this type.
///
/// # Errors
/// [`Mismatch::Scalar`]
pub fn scalar(found: Scalar, operand: &AtomOperand) -> Result<(), Mismatch> {
    if operand.is_of(found) { Ok(()) } else { Err(other_scalar(found, operand)) }
}

/// The distance between an integer and a float, in addition to the difference of their widths in
/// bits.
const OTHER_KIND: i64 = 128;

fn other_scalar(found: Scalar, operand: &AtomOperand) -> Mismatch {
    // Conversion of integers to floats makes sums and products inexact. All other integers are
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

/// Checks that the operand may lie in this memory.
///
/// # Errors
/// [`Mismatch::Memory`]
pub fn memory(found: Option<Memory>, operand: &AtomOperand) -> Result<(), Mismatch> {
    match found.is_some_and(|m| operand.allows(m)) {
        true => Ok(()),
        false => Err(Mismatch::Memory {
            operand: operand.name,
            want: memory_names(operand.memory),
            found: found.map_or("no memory", Memory::as_str).to_owned(),
        }),
    }
}

/// Checks the literals of a spec: an atom with a literal divisor needs a literal, and an operand of
/// several values must not be a literal.
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

/// Checks that this number of threads consists of whole groups of the atom.
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

/// Checks that the atom moves whole tiles, and not a number of bytes that `valid=` states.
///
/// # Errors
/// [`Mismatch::Bulk`]
pub fn moves_whole_tile(atom: &Atom) -> Result<(), Mismatch> {
    if atom.counts() { Err(BulkMismatch::Valid(true).into()) } else { Ok(()) }
}

/// Assigns inputs to the operands that are only read, in order, and outputs to the written ones.
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

/// Checks that a spec asks for nothing that only bulk atoms do.
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
