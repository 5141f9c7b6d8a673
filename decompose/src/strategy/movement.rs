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

use super::blocks::Blocks;
use super::tiling::Problem;
use crate::build::allocate;
use crate::names::Names;
use crate::solve::ops;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::scalar::Memory;

/// The statements that replace the kernel-level spec.
///
/// # Errors
/// Why the strategy does not apply, or which pins cannot hold.
pub fn apply(
    p: &Program,
    id: SpecId,
    stmt: &Stmt,
    table: &AtomTable,
    names: &mut Names,
) -> Result<Vec<Stmt>, Box<Diagnostic>> {
    let StmtKind::Spec(spec) = &stmt.kind else { return Ok(vec![stmt.clone()]) };
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
        return Ok(vec![stmt.clone()]);
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
    let mut at = source;
    let views = ways.iter().map(|(name, ..)| View::of(name)).chain([target]);
    for next in views {
        let moved = b.writer.spec(SpecKind::Move, vec![Operand::View(at)], next.clone(), vec![]);
        b.body.push(moved);
        at = next;
    }
    Ok(b.finish(stmt))
}
