//! Tiles a kernel-level Move for blocks, and stages it in shared memory where it transposes.
//!
//! What it does: a grid of blocks over the destination; each tile goes GL → RF → GL. Where source and
//! destination are consecutive along different modes, it goes GL → RF → SH → RF → GL, so that both sides are
//! accessed along their consecutive one.
//!
//! When it applies: tensors of as many modes and known sizes in global memory; modes of extent 1 of the
//! source stand for all.
//!
//! Law: every element of the destination is written once, by the block whose tile it is in.

use super::Planned;
use super::blocks::Blocks;
use super::tiling::Problem;
use crate::build::allocate;
use crate::names::Names;
use crate::solve::ops;
use carbyne_atoms::bind;
use carbyne_atoms::{Atom, AtomOperand, AtomTable, Extent};
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::scalar::Memory;

/// The statements that replace the kernel-level spec.
///
/// # Errors
/// Why the strategy does not apply, or which pins cannot hold.
pub(crate) fn apply(
    p: &Program,
    id: SpecId,
    stmt: &Stmt,
    table: &AtomTable,
    names: &mut Names,
) -> Result<Planned, Box<Diagnostic>> {
    let as_it_is = || Planned { stmts: vec![stmt.clone()], warnings: vec![] };
    let StmtKind::Spec(spec) = &stmt.kind else { return Ok(as_it_is()) };
    let s = &p.specs[id];
    let refuse = |message: &str, help: &str| {
        Err(Box::new(Diagnostic::new(Code::NoStrategy, s.span, message).help(help)))
    };
    let (Some(src), Some(&dst)) = (s.input_tensors().next(), s.outputs.first()) else {
        return refuse("a Move has a source and a destination", "write an Init for a literal");
    };
    let (Some(Operand::View(from)), Some(to)) = (spec.inputs.first(), spec.outputs.first()) else {
        return refuse("a Move has a source and a destination", "write an Init for a literal");
    };
    let problem = Problem::new(p, id, &[dst, src], &[])?;
    let (Some(own), Some(all)) = (ops::extents(p, src), ops::extents(p, dst)) else {
        return Ok(as_it_is());
    };
    if own.len() != all.len() || own.iter().zip(&all).any(|(a, b)| a != b && *a != 1) {
        return refuse(
            "a kernel-level Move needs as many modes on both sides",
            "reshape one of them, or write the body",
        );
    }
    let choice = problem.choose(table)?;
    let mut b = Blocks::new(&problem, &choice, spec, names);
    let scalar = p.scalar_of(src);
    let (source, target) = (b.tile(from, &own, &[]), b.tile(to, &all, &[]));
    let part: Vec<i64> = choice.tile.iter().zip(&own).map(|(t, n)| *t.min(n)).collect();
    // From one to the next, by way of these.
    let mut ways = vec![(names.fresh("r"), part.clone(), Memory::Rf)];
    if part != choice.tile {
        ways.push((names.fresh("all"), choice.tile.clone(), Memory::Rf));
    }
    if problem.crossed() {
        ways.push((names.fresh("s"), choice.tile.clone(), Memory::Sh));
        ways.push((names.fresh("w"), choice.tile.clone(), Memory::Rf));
    }
    for (name, extents, memory) in &ways {
        b.body.push(allocate(name, extents, scalar, *memory));
    }
    let memories = ways.iter().map(|(.., memory)| *memory).chain([Memory::Gl]);
    let pinned = pinned(p, id, &memories.collect::<Vec<_>>(), table)?;
    let mut at = source;
    let views = ways.iter().map(|(name, ..)| View::of(name)).chain([target]);
    for (next, takes) in views.zip(pinned) {
        let attrs = spec.attrs.iter().filter(|a| takes && a.key.text == "atom").cloned().collect();
        let moved = b.writer.spec(SpecKind::Move, vec![Operand::View(at)], next.clone(), attrs);
        b.body.push(moved);
        at = next;
    }
    let warnings = problem.tiny(&choice).into_iter().collect();
    Ok(Planned { stmts: b.finish(stmt), warnings })
}

/// For each of the Moves, from global memory through these: whether it is by the atom that the spec names.
///
/// # Errors
/// An atom that none of them can be by, and which they can.
fn pinned(
    p: &Program,
    id: SpecId,
    memories: &[Memory],
    table: &AtomTable,
) -> Result<Vec<bool>, Box<Diagnostic>> {
    let spec = &p.specs[id];
    let Some(name) = &spec.atom else { return Ok(vec![false; memories.len()]) };
    let scalar = spec.outputs.first().map(|t| p.scalar_of(*t));
    let fits = |atom: &Atom, from: Memory, to: Memory| {
        let takes =
            |o: &AtomOperand, m| o.allows(m) && scalar.is_some_and(|s| bind::unit(s, o).is_ok());
        let plain = atom.extent == Extent::Tile && bind::whole(atom).is_ok();
        let by = bind::operation(SpecKind::Move, atom).is_ok();
        by && plain && matches!(&atom.operands[..], [s, d] if takes(s, from) && takes(d, to))
    };
    let steps = || [Memory::Gl].iter().chain(memories).copied().zip(memories.iter().copied());
    let by = |atom: &Atom| steps().map(|(from, to)| fits(atom, from, to)).collect::<Vec<_>>();
    let row = table.get(name).map(by).unwrap_or_default();
    if row.contains(&true) {
        return Ok(row);
    }
    let way: Vec<&str> = [Memory::Gl].iter().chain(memories).map(|m| m.as_str()).collect();
    let rows = table.implementing(SpecKind::Move).filter(|atom| by(atom).contains(&true));
    let can: Vec<String> = rows.map(|atom| format!("`{}`", atom.name)).collect();
    let message = format!("no strategy decomposes this Move with `{name}`");
    Err(Box::new(
        Diagnostic::new(Code::AtomMismatch, spec.span, message)
            .label(format!("each element goes {}", way.join(" -> ")))
            .help(format!("pin one of {}, or write the body", can.join(", "))),
    ))
}
