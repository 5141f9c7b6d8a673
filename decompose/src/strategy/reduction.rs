//! Tiles a kernel-level Reduction for blocks: each block walks along the modes that are removed.
//!
//! What it does: a grid of blocks over what stays; a block combines its tiles element by element in
//! registers, then reduces the one tile that is left. Sums and products of floating-point numbers below 32
//! bits are kept in f32.
//!
//! When it applies: known sizes in global memory, and an operation that instructions have.
//!
//! Law: every element of the source is in one tile of one block, and the operation is associative and
//! commutative up to rounding.

use super::Planned;
use super::blocks::Blocks;
use super::tiling::Problem;
use crate::build::{Writer, allocate, counted};
use crate::names::Names;
use crate::solve::ops;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::*;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::scalar::{Memory, Scalar};

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
    let (SpecKind::Reduction(op), Some(src), Some(&dst)) =
        (s.kind, s.input_tensors().next(), s.outputs.first())
    else {
        return Ok(as_it_is());
    };
    let (Some(Operand::View(from)), Some(to)) = (spec.inputs.first(), spec.outputs.first()) else {
        return Ok(as_it_is());
    };
    if let Some(atom) = &s.atom {
        return Err(Box::new(crate::matching::many(p, id, atom)));
    }
    let axes = s.axes().unwrap_or_default();
    let problem = Problem::new(p, id, &[src], &axes)?;
    let Some(combine) = op.combining() else {
        return Err(Box::new(
            Diagnostic::new(
                Code::NoStrategy,
                s.span,
                format!("no instruction combines elements of two registers by {op}"),
            )
            .help(format!(
                "write the body: `carbyne atoms --spec Reduction.{op}` lists what reduces the lanes of a warp"
            )),
        ));
    };
    let choice = problem.choose(table)?;
    let (scalar, out) = (p.scalar_of(src), p.scalar_of(dst));
    let kept = kept_in(op, scalar);
    let mut b = Blocks::new(&problem, &choice, spec, names);
    let from_extents = &problem.extents;
    let to_extents = ops::extents(p, dst).unwrap_or_default();
    let keeps_modes = to_extents.len() == from_extents.len();
    // The tile of the result, whose removed modes are 1 or gone.
    let removed = |m: &usize| axes.contains(m);
    let sum_tile: Vec<i64> = (0..from_extents.len())
        .filter(|m| keeps_modes || !removed(m))
        .map(|m| if removed(&m) { 1 } else { choice.tile[m] })
        .collect();
    let walks: Vec<(usize, String)> =
        axes.iter().filter(|m| b.steps(**m) > 1).map(|m| (*m, names.fresh("k"))).collect();
    let first: Vec<(usize, Expr)> = axes.iter().map(|m| (*m, Expr::int(0))).collect();
    let mut load =
        Load { from, extents: from_extents, tile: &choice.tile, scalars: (scalar, kept), names };
    let total = load.of(&mut b, &first, None);
    // The first tile is there; the others follow, innermost walk first.
    for (i, (mode, var)) in walks.iter().enumerate() {
        let mut at = first.clone();
        for (m, v) in &walks[..=i] {
            at.retain(|(a, _)| a != m);
            at.push((*m, Expr::name(v)));
        }
        let mut step = vec![];
        std::mem::swap(&mut step, &mut b.body);
        let next = load.of(&mut b, &at, Some(&total));
        std::mem::swap(&mut step, &mut b.body);
        let operands = [&total, &next].map(|n| Operand::View(View::of(n)));
        step.push(b.writer.spec(
            SpecKind::Binary(combine),
            operands.to_vec(),
            View::of(&total),
            vec![],
        ));
        let (allocations, mut step): (Vec<Stmt>, Vec<Stmt>) =
            step.into_iter().partition(|s| matches!(s.kind, StmtKind::Allocate { .. }));
        b.body.extend(allocations);
        step = vec![counted(var, (1, b.steps(*mode)), Unroll::Default, step)];
        // What was walked before is walked again for each step of this one.
        for (m, v) in walks[..i].iter().rev() {
            step = vec![counted(v, (0, b.steps(*m)), Unroll::Default, step)];
        }
        b.body.extend(step);
    }
    let result = load.names.fresh("result");
    b.body.push(allocate(&result, &sum_tile, kept, Memory::Rf));
    let axis = spec.attrs.iter().filter(|a| a.key.text == "axis").cloned().collect();
    let reduced =
        b.writer.spec(s.kind, vec![Operand::View(View::of(&total))], View::of(&result), axis);
    b.body.push(reduced);
    let result = converted(&mut b, &result, &sum_tile, (kept, out), load.names);
    let target = if keeps_modes {
        b.tile(to, &to_extents, &[])
    } else {
        b.tile_of(to, (0..from_extents.len()).filter(|m| !removed(m)))
    };
    let stored =
        b.writer.spec(SpecKind::Move, vec![Operand::View(View::of(result))], target, vec![]);
    b.body.push(stored);
    let warnings = problem.tiny(&choice).into_iter().collect();
    Ok(Planned { stmts: b.finish(stmt), warnings })
}

/// The type in which partial results are kept.
fn kept_in(op: ReduceOp, scalar: Scalar) -> Scalar {
    let rounds = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
    if rounds && scalar.is_float() && scalar.bits() < 32 { Scalar::F32 } else { scalar }
}

/// Loads tiles of the source.
struct Load<'a> {
    from: &'a View,
    extents: &'a [i64],
    tile: &'a [i64],
    scalars: (Scalar, Scalar),
    names: &'a mut Names,
}

impl Load<'_> {
    /// Loads the tile at `at` into a tensor of its own, whose name is given back.
    fn of(&mut self, b: &mut Blocks<'_>, at: &[(usize, Expr)], total: Option<&str>) -> String {
        let name = self.names.fresh(if total.is_some() { "x" } else { "total" });
        let (scalar, kept) = self.scalars;
        let raw = if scalar == kept { name.clone() } else { self.names.fresh("raw") };
        b.body.push(allocate(&raw, self.tile, scalar, Memory::Rf));
        let from = b.tile(self.from, self.extents, at);
        let moved =
            b.writer.spec(SpecKind::Move, vec![Operand::View(from)], View::of(&raw), vec![]);
        b.body.push(moved);
        if scalar != kept {
            b.body.push(allocate(&name, self.tile, kept, Memory::Rf));
            let cast = cast(&b.writer, &raw, &name);
            b.body.push(cast);
        }
        name
    }
}

fn cast(w: &Writer, from: &str, to: &str) -> Stmt {
    let cast = SpecKind::Unary(UnaryOp::Cast);
    w.spec(cast, vec![Operand::View(View::of(from))], View::of(to), vec![])
}

/// The tensor in the output's type.
fn converted(
    b: &mut Blocks<'_>,
    name: &str,
    tile: &[i64],
    (kept, out): (Scalar, Scalar),
    names: &mut Names,
) -> String {
    if kept == out {
        return name.to_owned();
    }
    let own = names.fresh("out");
    b.body.push(allocate(&own, tile, out, Memory::Rf));
    let cast = cast(&b.writer, name, &own);
    b.body.push(cast);
    own
}
