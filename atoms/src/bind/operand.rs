//! Checks one operand of a leaf for [`super::bind()`]: a thread holds as many values as the atom
//! takes; the values of one access are consecutive in memory; their address is aligned; if the atom
//! takes a matrix descriptor, the layout has one, which is equal for all threads of a group.

use super::facts::Facts;
use super::mismatch::Mismatch;
use crate::atom::Atom;
use crate::descriptor;
use crate::missing_facts;
use crate::operand::AtomOperand;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, Spec, TensorId};
use carbyne_ir::scalar::Memory;

/// The number of scalars that one thread gives to the operand.
fn n_scalars(p: &Program, t: TensorId, operand: &AtomOperand) -> i64 {
    let per_unit = operand.elem.scalars_per_unit(p.scalar_of(t)).unwrap_or(1);
    operand.n_values().saturating_mul(per_unit)
}

/// Checks that a thread has as many values as the atom needs, in a tensor that no other thread
/// shares.
pub(super) fn values(
    p: &Program,
    t: TensorId,
    operand: &AtomOperand,
    facts: &impl Facts,
) -> Result<(), Mismatch> {
    let want = n_scalars(p, t, operand);
    let size = facts.layout(t).size_in(&p.arena).ok();
    let found = size.and_then(Dim::as_const).unwrap_or(-1);
    let shared = p.tensors[t].dist.is_some();
    match want == found && !shared {
        true => Ok(()),
        false => Err(Mismatch::Values { operand: operand.name, want, found, shared }),
    }
}

/// Checks that the values that one access covers are consecutive.
pub(super) fn order(
    p: &Program,
    t: TensorId,
    operand: &AtomOperand,
    facts: &impl Facts,
) -> Result<(), Mismatch> {
    let memory = p.buffer_of(t).memory.unwrap_or(Memory::Gl);
    let n = n_scalars(p, t, operand);
    let run = operand.side_by_side(memory, p.scalar_of(t), n);
    if run <= 1 {
        return Ok(());
    }
    let layout = facts.layout(t);
    let wrong = |found: String| Mismatch::Order {
        operand: operand.name,
        want: format!("runs of {run} consecutive elements, `{run}:1`"),
        found,
    };
    let places = offsets(p, &layout, n).ok_or_else(|| wrong(shown(p, &layout)))?;
    let runs = || places.chunks(run as usize);
    if runs().any(|run| (run[0]..).zip(run).any(|(want, at)| want != *at)) {
        return Err(wrong(shown(p, &layout)));
    }
    // In registers, a run also begins at the beginning of a register of that width.
    let starts = runs().all(|r| r[0] % run == 0) && facts.divisor(t) % run == 0;
    if memory.is_per_thread() && !starts {
        return Err(wrong(format!("{}, not at a multiple of {run}", shown(p, &layout))));
    }
    Ok(())
}

fn shown(p: &Program, layout: &Layout<Dim>) -> String {
    layout.to_fixed().map_or_else(|| layout.display_in(&p.arena), |fixed| fixed.to_string())
}

/// The offsets of the first `n` elements from the tensor's origin. `None` if they are unknown.
fn offsets(p: &Program, layout: &Layout<Dim>, n: i64) -> Option<Vec<i64>> {
    if let Some(fixed) = layout.to_fixed() {
        return Some((0..n).map(|i| fixed.at(i)).collect());
    }
    (0..n).map(|i| layout.at_in(&p.arena, Dim::Const(i)).ok()?.as_const()).collect()
}

/// Checks an operand whose aligned vectors are read ([`AtomOperand::around`]): the vectors must lie
/// within the tensor's own memory.
///
/// # Errors
/// [`Mismatch::Align`], [`Mismatch::Memory`]
pub fn around(p: &Program, t: TensorId, operand: &AtomOperand) -> Result<(), Mismatch> {
    let buffer = p.buffer_of(t);
    if operand.around > 0 && buffer.gather.is_some() {
        let want = format!("{}, contiguous", crate::operand::memory_names(operand.memory));
        let operand = operand.name;
        return Err(Mismatch::Memory { operand, want, found: "gathered".to_owned() });
    }
    if operand.around > buffer.align {
        let (operand, want, found) = (operand.name, operand.around, buffer.align);
        return Err(Mismatch::Align { operand, want, found, facts: vec![] });
    }
    Ok(())
}

/// Checks that the first address of a thread is aligned as the atom needs, and that a swizzle does
/// not split the bytes that the address covers.
pub(super) fn alignment(
    p: &Program,
    t: TensorId,
    operand: &AtomOperand,
    facts: &impl Facts,
) -> Result<(), Mismatch> {
    let buffer = p.buffer_of(t);
    around(p, t, operand)?;
    if operand.align <= 1 || buffer.is_per_thread() {
        return Ok(());
    }
    let offset = match facts.divisor(t) {
        0 => operand.align, // Offset 0 is aligned to anything.
        d => power_of_two(d.saturating_mul(buffer.scalar.bits()) / 8),
    };
    let mut found = offset.min(buffer.align);
    if let Some(swizzle) = buffer.swizzle {
        found = found.min(1 << swizzle.base().min(30));
    }
    aligned(found, operand)
        .map_err(|m| m.lacking(|| missing_facts::begins_aligned(p, t, operand.align)))
}

/// Checks that one descriptor names the operand, and that the descriptor is equal for all threads
/// of a group.
pub(super) fn described(
    p: &Program,
    spec: &Spec,
    t: TensorId,
    operand: &AtomOperand,
    atom: &Atom,
) -> Result<(), Mismatch> {
    descriptor::of_operand(p, t, operand)
        .map_err(|why| Mismatch::Descriptor { operand: operand.name, why })?;
    // Evaluated for the first values of loops and blocks only. The simulator checks all of them.
    let offset = p.tensors[t].offset;
    let Some(threads) = spec.exec.map(|e| &p.threads[e.threads]) else { return Ok(()) };
    let (Dim::Const(first), Some(layout)) = (threads.offset, threads.concat().to_fixed()) else {
        return Ok(());
    };
    for i in 0..layout.size() {
        let thread = first + layout.at(i);
        let of = |thread| p.first_value(offset, thread);
        if of(thread) != of(thread - thread % atom.group) {
            let thread = thread % atom.group;
            return Err(Mismatch::Uniform { operand: operand.name, thread });
        }
    }
    Ok(())
}

/// The largest power of two that divides `n`.
fn power_of_two(n: i64) -> i64 {
    if n <= 0 { 1 } else { 1 << n.trailing_zeros().min(30) }
}

/// Checks that an address that is known to be aligned to `found` bytes is aligned as the atom
/// needs.
///
/// # Errors
/// [`Mismatch::Align`]
pub fn aligned(found: i64, operand: &AtomOperand) -> Result<(), Mismatch> {
    match found >= operand.align {
        true => Ok(()),
        false => {
            let (operand, want) = (operand.name, operand.align);
            Err(Mismatch::Align { operand, want, found, facts: vec![] })
        }
    }
}
