//! Writes a certificate for every relation of a solution ([`certify`]). [`crate::certify`] defines
//! certificates and checks them.

use super::digits::reordered;
use super::tv::flat;
use super::{exchange, matmul, pointwise, reduce, views};
use crate::access::ops::extents;
use crate::certify::certificate::{Certificate, Relation};
use crate::plan::solution::{Assignment, Solution};
use carbyne_atoms::AtomTable;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId, TensorId};
use std::collections::BTreeMap;

/// Writes a certificate for every relation of the solution: copies first, then MatMuls, operations
/// between registers, Reductions and exchanges, of each kind in text order.
pub(crate) fn certify(
    p: &Program,
    known: &BTreeMap<BufferId, Layout>,
    solution: &mut Solution,
    table: &AtomTable,
) {
    let mut list = vec![];
    for (&spec, a) in &solution.assignments {
        let node = p.specs[spec].node;
        let (rank, atom, relations) = match &a.how {
            Assignment::Copy(c) => {
                let (p, q, f, g) = (c.p.clone(), c.q.clone(), c.f.clone(), c.g.clone());
                (0, c.atom, vec![Relation::Copy { p, q, f, g }])
            }
            Assignment::MatMul(c) => {
                (1, c.atom, gemm(p, spec, c, known, table).into_iter().collect())
            }
            Assignment::Pointwise(c) => (2, c.atom, pointwise(p, spec, c, known)),
            Assignment::Reduction(c) => (3, "-", reduction(p, spec, c).into_iter().collect()),
            Assignment::Exchange(c) => (4, "-", vec![exchange(c)]),
        };
        let of = |relation| (rank, Certificate { spec, node, atom, relation });
        list.extend(relations.into_iter().map(of));
    }
    list.sort_by_key(|(rank, _)| *rank);
    solution.certificates = list.into_iter().map(|(_, certificate)| certificate).collect();
}

/// The operands of a spec, the output last.
fn tensors(p: &Program, spec: SpecId) -> impl Iterator<Item = TensorId> + '_ {
    let s = &p.specs[spec];
    s.input_tensors().chain(s.outputs.iter().copied())
}

fn gemm(
    p: &Program,
    spec: SpecId,
    c: &matmul::Choice,
    known: &BTreeMap<BufferId, Layout>,
    table: &AtomTable,
) -> Option<Relation> {
    let (gm, gn, gk) = c.gemm.groups;
    let atom = table.get(c.atom)?;
    // Of a factor in shared memory every thread of a group has all that its instructions read.
    let operands = &atom.operands;
    let nested = c.gemm.nested(&operands[0].tv, &operands[1].tv, &operands[2].tv).ok()?;
    let (mut layouts, mut maps) = (vec![], vec![]);
    for ((t, own), map) in tensors(p, spec).zip(&nested).zip(&c.maps) {
        let read = flat(own).ok()?;
        maps.push(map.clone().or_else(|| reordered(&read, own))?);
        layouts.push(match map {
            Some(_) => known.get(&p.tensors[t].buffer).cloned()?,
            None => read,
        });
    }
    let order = matmul::placed(atom, atom.group * gm * gn * gk)?;
    let layouts = match order.coalesce().leaves().len() {
        0 | 1 => layouts,
        _ => layouts.iter().map(|l| matmul::over(l, &order)).collect::<Option<_>>()?,
    };
    let row: Vec<Layout> = table.get(c.atom)?.operands.iter().map(|o| o.tv.clone()).collect();
    Some(Relation::Gemm {
        inst: c.gemm.inst,
        block: c.gemm.block,
        groups: c.gemm.groups,
        row: row.try_into().ok()?,
        tensors: layouts.try_into().ok()?,
        maps: maps.try_into().ok()?,
    })
}

/// The relation between the operands, and one for each that is a part of a tensor.
fn pointwise(
    p: &Program,
    spec: SpecId,
    c: &pointwise::Choice,
    known: &BTreeMap<BufferId, Layout>,
) -> Vec<Relation> {
    let all: Option<Vec<Vec<i64>>> = tensors(p, spec).map(|t| extents(p, t)).collect();
    let Some(extents) = all else { return vec![] };
    let steps = c.steps.iter().map(|(steps, _)| steps.iter().map(|s| s.unwrap_or(0)).collect());
    let mut out = vec![Relation::Pointwise {
        extents,
        layouts: c.layouts.clone(),
        n: c.n,
        loops: c.loops.clone(),
        steps: steps.collect(),
    }];
    for ((t, part), g) in tensors(p, spec).zip(&c.parts).zip(&c.layouts) {
        let Some(part) = part else { continue };
        let f = known.get(&p.tensors[t].buffer).cloned();
        let (Some(f), Some((view, offset))) = (f, views::positions(p, t)) else { continue };
        let (g, registers, first) = (g.clone(), part.registers.clone(), part.first);
        out.push(Relation::Part { f, g, view, offset, registers, first });
    }
    out
}

fn reduction(p: &Program, spec: SpecId, c: &reduce::Choice) -> Option<Relation> {
    let s = &p.specs[spec];
    let mut through = vec![];
    for step in c.shared.iter().flat_map(reduce::Through::steps) {
        through.push([step.first.clone(), step.others.clone()]);
        through.extend(step.lanes().ok()?);
    }
    Some(Relation::Reduction {
        extents: s.input_tensors().next().and_then(|t| extents(p, t))?,
        axes: s.axes().unwrap_or_default(),
        layouts: [c.input.clone(), c.output.clone()],
        values: [c.values.0.clone(), c.values.1.clone()],
        masks: c.masks.clone(),
        through,
    })
}

fn exchange(c: &exchange::Choice) -> Relation {
    Relation::Exchange {
        f: c.input.clone(),
        g: c.output.clone(),
        map: c.map.clone(),
        steps: c.steps.iter().map(|s| (s.mask, s.register)).collect(),
    }
}
