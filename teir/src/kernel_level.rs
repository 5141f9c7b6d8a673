//! Lowers an operation of TEIR (the Tiled Execution IR) to the kernel level: one spec that says
//! what the operation computes.
//!
//! `decompose` then chooses tiles, loops and threads. On request, the tile of the schedule becomes
//! the pin `tile=` if strategies can keep it. The order of the loops is not kept: it changes
//! results only by rounding.
//!
//! - Axes of one role that are contiguous in all of their tensors are merged.
//! - A product has a mode for rows, one for columns and one for K. Rows are the merged axes that
//!   hold the `prim` M axis, columns those that hold the `prim` N axis; all other C, M and N axes
//!   are batches. A batch along which a tensor does not vary has stride 0 there. Several K axes are
//!   one hierarchical mode.
//! - Without a product each axis is a mode.

use crate::check::Checked;
use crate::lowered::{Lowered, Modes, NAME, declare, refused, signed};
use crate::record::{Axis, Dim, Exec, First, Last, Main, Tensor};
use crate::tiles::admit;
use crate::violation::{Code, Field, Place, Violation, Violations};
use carbyne_embed::build::{Body, Builder, Compute, Num, Tensor as View, Value, statements};
use carbyne_embed::{Checked as Program, Diagnostics, Key, SpecKind};
use carbyne_ir::ast::{Attr, ViewOp};
use std::cmp::Reverse;
use std::ops::RangeInclusive;

/// Extents of tiles along M and N that strategies divide among the threads of a block.
const SIDES: RangeInclusive<u64> = 8..=128;
/// Extents of tiles along K.
const DEPTHS: RangeInclusive<u64> = 8..=64;

/// Merged axes of one role: a mode of the tensors that have it.
#[derive(Clone, Copy)]
struct Merged {
    size: u64,
    strides: [u64; 3],
    /// The size of the prim axis, if it is the fastest part and there is one.
    prim: Option<u64>,
    /// Whether a prim axis is anywhere in it.
    holds_prim: bool,
}

/// Lowers an operation to a spec [`NAME`] of the tensors `in0`, `in1` and `out`, as far as it uses
/// them. With `pins` it asks for the tile of the schedule, where strategies can have it;
/// [`Lowered::open`] says why not.
///
/// # Errors
/// `TEIR15` for an operation that no spec suits, `TEIR16` for what carbyne refuses.
pub fn lower_to_spec(operation: &Checked, pins: bool) -> Result<Lowered, Violations> {
    admit(operation)?;
    let product = operation.primitives().prim_main.multiplies();
    let (modes, attrs, open) = match product {
        true => {
            suits(operation)?;
            matrices(operation, pins)
        }
        false => (elements(operation), vec![], vec![]),
    };
    let mut builder = Builder::new();
    let program = write(operation, &modes, attrs, &mut builder)
        .and_then(|()| Program::of_module(&builder.finish()?));
    let program = program.map_err(|errors| refused(&errors))?;
    Ok(Lowered { program, modes, open })
}

/// The numbers of the K axes of a product, if they are not contiguous in both inputs: K is then a
/// hierarchical mode of the spec.
#[must_use]
pub fn split_k(operation: &Checked) -> Vec<usize> {
    let axes = operation.axes();
    if !operation.primitives().prim_main.multiplies() || merged(axes, Dim::K, Tensor::In0).len() < 2
    {
        return vec![];
    }
    let larger = axes.iter().enumerate().filter(|(_, a)| a.dim == Dim::K && a.size > 1);
    larger.map(|(i, _)| i).collect()
}

/// Refuses products that read their output before they write it, unless they only add to it.
fn suits(operation: &Checked) -> Result<(), Violation> {
    let primitives = operation.primitives();
    let (first, last) = (primitives.prim_first, primitives.prim_last);
    if first == First::Zero || (first, last) == (First::None, Last::None) {
        return Ok(());
    }
    let found = format!("a product with prim_first {first} and prim_last {last}");
    let wanted = "prim_first Zero, or None for both: the spec of a product sets its output or adds \
                  to it";
    let help = "lower the operation to the tile level";
    Err(Violation::new(Code::Unsuited, Place::Field(Field::PrimFirst), found, wanted, help))
}

/// Axes of a role, merged where the strides of all tensors allow it; the slowest comes first.
fn merged(axes: &[Axis], role: Dim, by: Tensor) -> Vec<Merged> {
    let mut order: Vec<&Axis> = axes.iter().filter(|a| a.dim == role && a.size > 1).collect();
    order.sort_by_key(|a| Reverse(a.stride(by)));
    let mut merged: Vec<Merged> = vec![];
    for axis in order {
        let is_prim = axis.exec == Exec::Prim;
        let prim = is_prim.then_some(axis.size);
        match merged.last_mut() {
            Some(slow) if continues(slow, axis) => {
                // The prim axes of a BRGEMM are one tile, if both are the fastest.
                let whole = slow.prim.filter(|n| *n == slow.size);
                slow.prim = prim.map(|n| whole.map_or(n, |slow| slow * n));
                slow.size *= axis.size;
                slow.strides = axis.strides;
                slow.holds_prim |= is_prim;
            }
            _ => merged.push(Merged {
                size: axis.size,
                strides: axis.strides,
                prim,
                holds_prim: is_prim,
            }),
        }
    }
    merged
}

/// Whether an axis runs within one step of a slower one, in all tensors that have it.
fn continues(slow: &Merged, axis: &Axis) -> bool {
    Tensor::ALL.into_iter().filter(|t| axis.dim.has(*t)).all(|tensor| {
        axis.stride(tensor).checked_mul(axis.size) == Some(slow.strides[tensor as usize])
    })
}

/// Modes of the matrices of a product, pins, and why pins are missing.
fn matrices(operation: &Checked, pins: bool) -> ([Modes; 3], Vec<Attr>, Vec<String>) {
    let axes = operation.axes();
    let mut batches = merged(axes, Dim::C, Tensor::Out);
    // The rows or columns of matrices, in which the prim axis is.
    let mut side = |role| {
        let mut groups = merged(axes, role, Tensor::Out);
        let at = groups.iter().position(|g| g.holds_prim).or(groups.len().checked_sub(1));
        let one = Merged { size: 1, strides: [1; 3], prim: Some(1), holds_prim: true };
        let matrix = at.map_or(one, |at| groups.remove(at));
        batches.extend(groups);
        matrix
    };
    let (rows, columns) = (side(Dim::M), side(Dim::N));
    let mut depth = merged(axes, Dim::K, Tensor::In0);
    // The fastest comes first in a hierarchical mode. Tiles lie within it, so it is the one that
    // powers of two divide best.
    depth.reverse();
    let twos = |group: &Merged| group.size.trailing_zeros().min(4);
    depth.sort_by_key(|group| (Reverse(twos(group)), !group.holds_prim));
    let flat = |group: &Merged, t: Tensor| vec![(group.size, group.strides[t as usize])];
    let modes = Tensor::ALL.map(|tensor| {
        let k = match depth.is_empty() {
            true => vec![(1, 1)],
            false => depth.iter().map(|g| (g.size, g.strides[tensor as usize])).collect(),
        };
        let matrix = match tensor {
            Tensor::In0 => [flat(&rows, tensor), k],
            Tensor::In1 => [k, flat(&columns, tensor)],
            Tensor::Out => [flat(&rows, tensor), flat(&columns, tensor)],
        };
        batches.iter().map(|batch| flat(batch, tensor)).chain(matrix).collect()
    });
    if !pins {
        return (modes, vec![], vec![]);
    }
    let suits = |name: &str, group: Option<&Merged>, range: RangeInclusive<u64>| {
        let Some(Merged { size, prim: Some(tile), .. }) = group else {
            return Err(format!("its prim axis along {name} is not the fastest one"));
        };
        let (least, most) = range.into_inner();
        if !(least..=most).contains(tile) || !tile.is_power_of_two() {
            let wanted = format!("a power of two from {least} to {most}");
            return Err(format!("its tile of {tile} along {name} is not {wanted}"));
        }
        match size % tile {
            0 => Ok(signed(*tile)),
            _ => Err(format!("its tile of {tile} along {name} does not divide {size}")),
        }
    };
    let tile = suits("M", Some(&rows), SIDES).and_then(|m| {
        let n = suits("N", Some(&columns), SIDES)?;
        Ok([m, n, suits("K", depth.first(), DEPTHS)?])
    });
    match tile {
        Ok(tile) => (modes, vec![statements::numbers(Key::Tile, &tile)], vec![]),
        Err(reason) => (modes, vec![], vec![format!("`tile=` is left to decompose: {reason}")]),
    }
}

/// Modes of tensors without a product: each axis is one.
fn elements(operation: &Checked) -> [Modes; 3] {
    let axes = operation.axes();
    let copies = operation.primitives().prim_main == Main::Copy;
    let larger = || axes.iter().filter(|a| a.size > 1);
    let mut outer: Vec<&Axis> = larger().filter(|a| a.dim != Dim::K).collect();
    outer.sort_by_key(|a| Reverse(a.stride(Tensor::Out)));
    Tensor::ALL.map(|tensor| {
        let mode = |axis: &Axis| vec![(axis.size, axis.stride(tensor))];
        let along_k = larger().filter(|a| a.dim == Dim::K && tensor == Tensor::In0 && copies);
        let modes: Modes = along_k.chain(outer.iter().copied()).map(mode).collect();
        // A tensor has a mode.
        if modes.is_empty() { vec![vec![(1, 1)]] } else { modes }
    })
}

fn write(
    operation: &Checked,
    modes: &[Modes; 3],
    attrs: Vec<Attr>,
    builder: &mut Builder,
) -> Result<(), Diagnostics> {
    let primitives = operation.primitives();
    let scalar = primitives.data_type.scalar();
    let [in0, in1, out] = Tensor::ALL.map(|tensor| match operation.uses(tensor) {
        true => declare(builder, tensor, &modes[tensor as usize], scalar),
        false => View::of(tensor.as_str()),
    });
    let rectified = |value: Value| match primitives.prim_last {
        Last::Relu => value.relu(),
        Last::None => value,
    };
    match (primitives.prim_main, primitives.prim_first) {
        (Main::Gemm | Main::Brgemm, First::Zero) => {
            let means = |body: &mut Body| body.store(&out, rectified(in0.matmul(&in1)));
            builder.means(NAME, &[&in0, &in1], &[&out], attrs, means)
        }
        (Main::Gemm | Main::Brgemm, _) => {
            builder.spec(SpecKind::MatMul, NAME, &[&in0, &in1], &out, attrs)
        }
        (Main::Copy, _) => {
            let last = last_along_k(operation, modes, &in0);
            let means = |body: &mut Body| body.store(&out, rectified(Value::from(&last)));
            builder.means(NAME, &[&in0], &[&out], attrs, means)
        }
        (Main::None, First::Zero) => {
            let means = |body: &mut Body| body.store(&out, Value::from(0));
            builder.means(NAME, &[], &[&out], attrs, means)
        }
        // Twice is once.
        (Main::None, _) => {
            let means = |body: &mut Body| body.store(&out, (&out).relu());
            builder.means(NAME, &[&out], &[&out], attrs, means)
        }
    }
}

/// The input of the last copy along K, which is the one that stays.
fn last_along_k(operation: &Checked, modes: &[Modes; 3], in0: &View) -> View {
    let along_k = operation.axes().iter().filter(|a| a.dim == Dim::K && a.size > 1);
    let along_k: Vec<u64> = along_k.map(|a| a.size).collect();
    if along_k.is_empty() {
        return in0.clone();
    }
    let others = modes[Tensor::In0 as usize].len() - along_k.len();
    let last = along_k.iter().map(|size| Some(Num::from(signed(size - 1)).into_expr()));
    in0.then(ViewOp::Index(last.chain((0..others).map(|_| None)).collect()))
}
