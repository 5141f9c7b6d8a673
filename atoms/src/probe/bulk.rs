//! Writes probes (test programs that execute one atom) of bulk copies and bulk accumulations. Such
//! a program copies a tensor through shared memory, vector by vector or box by box of a tensor map.
//! The probed atom copies in one direction, or accumulates to global memory; plain Moves copy in
//! the other direction.
//!
//! One thread issues each copy. A copy to shared memory completes on an mbarrier with alternating
//! phases. A copy from shared memory completes in a group for which the thread waits.

use super::choice::Choice;
use super::operand::{Passing, ProbeOperand, scalars};
use super::outcome::{NOT_A_SPEC, Probe, Unobservable};
use super::writer::{Writer, cta, lanes, on, operands_of, spec, threads, views};
use crate::atom::{Atom, AtomOp, Elem, Extent, OperandAccess};
use crate::table::AtomTable;
use carbyne_ir::ast::*;
use carbyne_ir::build::statements::*;
use carbyne_ir::build::{Num, Tensor};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};

/// The scalar types that are copied, by [`Choice::pick`].
const SCALARS: [Scalar; 3] = [Scalar::F16, Scalar::F32, Scalar::U8];
/// Bytes of a contiguous vector, and of the fastest mode of a box.
const ROW_BYTES: i64 = 32;
/// Threads of the block.
const THREADS: i64 = 32;

/// The scalar types that the atom copies, one per probe.
pub(super) fn scalars_of(atom: &Atom) -> &'static [Scalar] {
    match atom.operands.first().map(|o| o.elem) {
        Some(elem @ Elem::Scalar(_)) => scalars(elem),
        _ => &SCALARS,
    }
}

/// Extents of `n` modes: `outer` for all modes except the last, as in `2,2,16`.
fn list(n: usize, outer: i64, last: i64) -> Vec<i64> {
    let mut all = vec![outer; n - 1];
    all.push(last);
    all
}

pub(super) fn probe(
    atom: &Atom,
    table: &AtomTable,
    choice: Choice,
    kernel: String,
) -> Result<Probe, Unobservable> {
    let options = scalars_of(atom);
    let scalar = options[choice.pick.min(options.len() - 1)];
    let (whole, part) = shapes(atom, scalar);
    let n = whole.len();
    let accumulates = matches!(atom.op, AtomOp::Accumulate(_));
    // An accumulation uses one tensor for input and output.
    let into = if accumulates { "ioD" } else { "outD" };
    let kind = atom.op.spec_kind().ok_or(NOT_A_SPEC)?;
    let operand = |name, access, input: Option<&str>, output: Option<&str>, tile: &[i64]| {
        probe_operand(scalar, (name, access), (input, output), tile)
    };
    let operands = vec![
        operand("S", OperandAccess::Read, Some("inS"), None, &whole)?,
        match accumulates {
            true => operand("D", OperandAccess::ReadWrite, Some(into), Some(into), &whole)?,
            false => operand("D", OperandAccess::Write, None, Some(into), &whole)?,
        },
    ];
    // The part that one copy moves.
    let one = operand("P", OperandAccess::Read, None, None, &part)?;
    let load = atom.visibility.names_barrier();
    let boxed = matches!(atom.extent, Extent::Box(_));
    let swizzle = boxed.then(|| Expr::swizzle(1, 4, 3));
    let tiles =
        |of: &str| Tensor::of(of).tile(part.iter().map(|n| Num::from(*n)).collect::<Vec<_>>());
    let by_atom = if load { "inS" } else { into };
    let map = match boxed {
        true => {
            let sizes = part.iter().map(|n| Expr::int(*n)).collect();
            Tensor::of(by_atom).then(ViewOp::TensorMap { sizes, swizzle: swizzle.clone() })
        }
        false => tiles(by_atom),
    };
    let counter = Num::of("part");
    let index: Vec<Num> = (0..n).map(|i| &counter / (1 << i) % 2).collect();
    let flat = compact(&[one.tile_size()]);
    let by_plain = tiles(if load { "outD" } else { "inS" }).at(index.clone()).then(flat.clone());
    let (held, full, first) = (Tensor::of("held"), Tensor::of("full"), Tensor::of("first"));
    let flat = held.then(flat);
    let mut type_attrs = vec![TypeAttr::Align(Expr::int(256))];
    type_attrs.extend(swizzle.map(TypeAttr::Swizzle));

    let attrs = attributes(atom, load);
    let own = Tensor::of("m").at(index);
    let (from, to) = if load { (&own, &held) } else { (&held, &own) };
    let leaf = leaf(kind, &on(&first), vec![from.into()], to.into(), attrs);

    let choice = Choice { blocks: 1, threads: THREADS, ..choice };
    let w = Writer { atom, table, choice, threads: THREADS, groups: 1 };
    let by_first = |inputs: &[&str], output: &str, stmts| {
        within(&on(&first), views(inputs.iter().copied()), vec![View::of(output)], stmts)
    };
    let mut step;
    if load {
        let bytes = Expr::int(one.tile_size() * scalar.bits() / 8);
        let expect = sync(SyncOp::MbarrierExpect, Some((&full).into()), Some(bytes));
        let phase = (counter % 2).into_expr();
        step = vec![
            by_first(&["inS", "full"], "held", vec![expect, leaf]),
            sync(SyncOp::MbarrierWait, Some((&full).into()), Some(phase)),
        ];
        step.extend(w.units(&one, &flat, &by_plain, (Memory::Sh, Memory::Gl))?);
    } else {
        let commit = sync(SyncOp::BulkCommit, None, None);
        let wait = sync(SyncOp::BulkWait, None, Some(Expr::int(0)));
        step = w.units(&one, &by_plain, &flat, (Memory::Gl, Memory::Sh))?;
        step.push(sync(SyncOp::FenceAsync, None, None));
        step.push(barrier(None));
        step.push(by_first(&["held"], into, vec![leaf, commit, wait]));
    }
    step.push(barrier(None));
    let init = sync(SyncOp::MbarrierInit, Some((&full).into()), Some(Expr::int(1)));
    let body = vec![
        threads("one", &[], &lanes("cta")),
        threads("first", &[], &cta().at([0])),
        indices(&["@t"], View::of("cta")),
        define("m", map.into()),
        allocation("held", dims(&part, false), scalar, Memory::Sh, type_attrs),
        plain("full", &[1], Scalar::Mbarrier, Memory::Sh),
        by_first(&[], "full", vec![init, sync(SyncOp::FenceAsync, None, None)]),
        barrier(None),
        counted("part", (0, 1 << n), Unroll::Default, step),
    ];
    let head = spec(kind, &cta(), operands_of(["inS"]), views([into]));
    let grid = declare("grid", dims(&[1], false), ThreadScalar::Block);
    let text = w.module(&operands, vec![grid], &kernel, head, body);
    Ok(Probe { text, kernel, operands, blocks: 1, threads: THREADS, set: false })
}

/// The extents of the tensor and of the part that one copy moves.
fn shapes(atom: &Atom, scalar: Scalar) -> (Vec<i64>, Vec<i64>) {
    let n = if let Extent::Box(n) = atom.extent { n.max(1) } else { 1 };
    let width = ROW_BYTES * 8 / scalar.bits();
    (list(n, 4, 2 * width), list(n, 2, width))
}

fn probe_operand(
    scalar: Scalar,
    (name, access): (&'static str, OperandAccess),
    (input, output): (Option<&str>, Option<&str>),
    tile: &[i64],
) -> Result<ProbeOperand, Unobservable> {
    let tv = Layout::col_major(tile.to_vec());
    Ok(ProbeOperand {
        name,
        access,
        scalar,
        input: input.map(str::to_owned),
        output: output.map(str::to_owned),
        tv: tv.map_err(|e| Unobservable::Layout(e.to_string()))?,
        tile: tile.to_vec(),
        passing: Passing::Whole,
        blocks: 1,
    })
}

/// The attributes of the copy.
fn attributes(atom: &Atom, load: bool) -> Vec<Attr> {
    let mut attrs = vec![word(Key::Cache, atom.cache.as_str())];
    if load {
        attrs.push(view(Key::Bar, View::of("full")));
    }
    if atom.number("mask").is_some() {
        attrs.push(number(Key::Multicast, 1));
    }
    attrs.push(word(Key::Atom, atom.name));
    attrs
}
