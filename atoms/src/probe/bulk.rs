//! Probes of bulk copies: a tensor is copied vector by vector, or box by box of a tensor map, through shared memory,
//! one way by the atom and the other way by plain moves.
//!
//! One thread issues a copy. Into shared memory it completes on an mbarrier whose phases alternate; out of it,
//! in a group that the thread waits for.

use super::operand::{Passing, ProbeOperand};
use super::writer::Writer;
use super::{Choice, NOT_A_SPEC, Probe, Unobservable, scalars};
use crate::atom::{Atom, AtomOp, Elem, Extent, OperandAccess, Visibility};
use crate::table::AtomTable;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};

/// What is copied, by [`Choice::pick`].
const SCALARS: [Scalar; 3] = [Scalar::F16, Scalar::F32, Scalar::U8];
/// Bytes of a contiguous vector, and of the fastest mode of a box.
const ROW_BYTES: i64 = 32;
/// Threads of the block.
const THREADS: i64 = 32;

/// What the atom copies, one type a probe.
pub(super) fn scalars_of(atom: &Atom) -> &'static [Scalar] {
    match atom.operands.first().map(|o| o.elem) {
        Some(elem @ Elem::Scalar(_)) => scalars(elem),
        _ => &SCALARS,
    }
}

/// `2,2,16`: all modes but the last have `outer` elements.
fn list(n: usize, outer: i64, last: i64) -> Vec<i64> {
    let mut all = vec![outer; n - 1];
    all.push(last);
    all
}

fn text(list: &[i64]) -> String {
    list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

pub(super) fn probe(
    atom: &Atom,
    table: &AtomTable,
    choice: Choice,
    kernel: String,
) -> Result<Probe, Unobservable> {
    let options = scalars_of(atom);
    let scalar = options[choice.pick.min(options.len() - 1)];
    let n = if let Extent::Box(n) = atom.extent { n.max(1) } else { 1 };
    let width = ROW_BYTES * 8 / scalar.bits();
    let (whole, part) = (list(n, 4, 2 * width), list(n, 2, width));
    let layout = |extents: &[i64]| {
        Layout::col_major(extents.to_vec()).map_err(|e| Unobservable::Layout(e.to_string()))
    };
    let operand = |name, access, input: Option<&str>, output: Option<&str>, tile: &[i64]| {
        let named = |n: &str| n.to_owned();
        Ok(ProbeOperand {
            name,
            access,
            scalar,
            input: input.map(named),
            output: output.map(named),
            tv: layout(tile)?,
            tile: tile.to_vec(),
            passing: Passing::Whole,
            blocks: 1,
        })
    };
    let accumulates = matches!(atom.op, AtomOp::Accumulate(_));
    // One tensor for both, where what is there counts.
    let into = if accumulates { "ioD" } else { "outD" };
    let kind = atom.op.spec_kind().ok_or(NOT_A_SPEC)?;
    let operands = vec![
        operand("S", OperandAccess::Read, Some("inS"), None, &whole)?,
        match accumulates {
            true => operand("D", OperandAccess::ReadWrite, Some(into), Some(into), &whole)?,
            false => operand("D", OperandAccess::Write, None, Some(into), &whole)?,
        },
    ];
    // What one copy moves.
    let one = operand("P", OperandAccess::Read, None, None, &part)?;
    let load = atom.visibility == Visibility::Mbarrier;
    let boxed = matches!(atom.extent, Extent::Box(_));
    let swizzle = if boxed { ", swizzle=(1,4,3)" } else { "" };
    let by_atom = if load { "%inS".to_owned() } else { format!("%{into}") };
    let map = if boxed { "tensormap" } else { "tile" };
    let indices: Vec<String> = (0..n).map(|i| format!("(part / {}) % 2", 1 << i)).collect();
    let index = indices.join(", ");
    let mut attributes = format!(" cache={}", atom.cache);
    attributes += if load { " bar=%full" } else { "" };
    attributes += if atom.number("mask").is_some() { " multicast=1" } else { "" };
    let plain = if load { "%outD" } else { "%inS" };
    let plain =
        format!("{plain}.tile([{}])[{index}].reshape([{}]:[1])", text(&part), one.tile_size());
    let held = format!("%held.reshape([{}]:[1])", one.tile_size());

    let choice = Choice { blocks: 1, threads: THREADS, ..choice };
    let mut w = Writer {
        atom,
        table,
        choice,
        threads: THREADS,
        groups: 1,
        repeat: None,
        text: String::new(),
    };
    w.line(0, "carbyne 1");
    for o in &operands {
        o.declarations().for_each(|d| w.line(0, d));
    }
    w.line(0, "#grid:[1].block");
    w.line(0, format_args!("#cta:[{THREADS}].thread"));
    w.line(0, format_args!("{kind} @{kernel} <<<#grid, #cta>>> (%inS) -> (%{into}) {{"));
    w.line(1, "#one:[].thread = #cta.scalar()");
    w.line(1, "#first:[].thread = #cta[0]");
    w.line(1, "@t = #cta.indices()");
    w.line(1, format_args!("%m = {by_atom}.{map}([{}]{swizzle})", text(&part)));
    w.line(1, format_args!("Allocate %held:[{}].{scalar}.SH{{align=256{swizzle}}}", text(&part)));
    w.line(1, "Allocate %full:[1].mbarrier.SH");
    w.line(1, "Spec <<<#grid, #first>>> () -> (%full) {");
    w.line(2, "mbarrier.init(%full, 1)");
    w.line(2, "fence.async");
    w.line(1, "}");
    w.line(1, "barrier");
    w.line(1, format_args!("for (part = 0; part < {}; part += 1) {{", 1 << n));
    let name = atom.name;
    if load {
        w.line(1, "Spec <<<#grid, #first>>> (%inS, %full) -> (%held) {");
        w.line(2, format_args!("mbarrier.expect(%full, {})", one.tile_size() * scalar.bits() / 8));
        w.line(
            2,
            format_args!(
                "Move <<<#grid, #first>>> (%m[{index}]) -> (%held){attributes} atom={name}"
            ),
        );
        w.line(1, "}");
        w.line(1, "mbarrier.wait(%full, part % 2)");
        w.units(&one, &held, &plain, (Memory::Sh, Memory::Gl))?;
    } else {
        w.units(&one, &plain, &held, (Memory::Gl, Memory::Sh))?;
        w.line(1, "fence.async");
        w.line(1, "barrier");
        w.line(1, format_args!("Spec <<<#grid, #first>>> (%held) -> (%{into}) {{"));
        w.line(
            2,
            format_args!(
                "{kind} <<<#grid, #first>>> (%held) -> (%m[{index}]){attributes} atom={name}"
            ),
        );
        w.line(2, "bulk.commit");
        w.line(2, "bulk.wait(0)");
        w.line(1, "}");
    }
    w.line(1, "barrier");
    w.line(1, "}");
    w.line(0, "}");
    Ok(Probe { text: w.text, kernel, operands, blocks: 1, threads: THREADS, set: false })
}
