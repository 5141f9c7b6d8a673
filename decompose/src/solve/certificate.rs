//! Writes certificates for what the solver found.

use super::ops::extents;
use super::{Solution, reduce, views};
use crate::certificate::{Certificate, Relation};
use carbyne_atoms::AtomTable;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program};
use std::collections::BTreeMap;

/// Writes a certificate for every relation of the solution.
pub(crate) fn certify(
    p: &Program,
    known: &BTreeMap<BufferId, Layout>,
    solution: &mut Solution,
    table: &AtomTable,
) {
    let mut list = vec![];
    for (&spec, c) in &solution.copies {
        list.push(Certificate {
            spec,
            node: p.specs[spec].node,
            atom: c.atom,
            relation: Relation::Copy {
                p: c.p.clone(),
                q: c.q.clone(),
                f: c.f.clone(),
                g: c.g.clone(),
            },
        });
    }
    for (&spec, c) in &solution.matmuls {
        let s = &p.specs[spec];
        let tensors: Option<Vec<Layout>> = s
            .input_tensors()
            .chain(s.outputs.iter().copied())
            .map(|t| known.get(&p.tensors[t].buffer).cloned())
            .collect();
        let row = table.get(c.atom).map(|a| a.operands.iter().map(|o| o.tv.clone()).collect());
        let three = |v: Option<Vec<Layout>>| v.and_then(|v| <[Layout; 3]>::try_from(v).ok());
        if let (Some(row), Some(tensors)) = (three(row), three(tensors)) {
            let maps = c.maps.clone();
            let (inst, block, groups) = (c.gemm.inst, c.gemm.block, c.gemm.groups);
            let relation = Relation::Gemm { inst, block, groups, row, tensors, maps };
            list.push(Certificate { spec, node: p.specs[spec].node, atom: c.atom, relation });
        }
    }
    for (&spec, c) in &solution.pointwise {
        let s = &p.specs[spec];
        let extents: Option<Vec<Vec<i64>>> =
            s.input_tensors().chain(s.outputs.iter().copied()).map(|t| extents(p, t)).collect();
        let Some(extents) = extents else { continue };
        let steps = c
            .steps
            .iter()
            .map(|(steps, _)| steps.iter().map(|s| s.unwrap_or(0)).collect())
            .collect();
        let relation = Relation::Pointwise {
            extents,
            layouts: c.layouts.clone(),
            n: c.n,
            loops: c.loops.clone(),
            steps,
        };
        list.push(Certificate { spec, node: p.specs[spec].node, atom: c.atom, relation });
        let tensors = s.input_tensors().chain(s.outputs.iter().copied());
        for ((t, part), g) in tensors.zip(&c.parts).zip(&c.layouts) {
            let Some(part) = part else { continue };
            let f = known.get(&p.tensors[t].buffer).cloned();
            let (Some(f), Some((view, offset))) = (f, views::positions(p, t)) else { continue };
            let (g, registers, first) = (g.clone(), part.registers.clone(), part.first);
            let relation = Relation::Part { f, g, view, offset, registers, first };
            list.push(Certificate { spec, node: p.specs[spec].node, atom: c.atom, relation });
        }
    }
    for (&spec, c) in &solution.reductions {
        let s = &p.specs[spec];
        let Some(extents) = s.input_tensors().next().and_then(|t| extents(p, t)) else { continue };
        let relation = Relation::Reduction {
            extents,
            axes: s.axes().unwrap_or_default(),
            layouts: [c.input.clone(), c.output.clone()],
            values: [c.values.0.clone(), c.values.1.clone()],
            masks: c.masks.clone(),
            through: c
                .shared
                .iter()
                .flat_map(reduce::Through::steps)
                .map(|t| [t.first.clone(), t.others.clone()])
                .collect(),
        };
        list.push(Certificate { spec, node: p.specs[spec].node, atom: "-", relation });
    }
    for (&spec, c) in &solution.exchanges {
        let relation = Relation::Exchange {
            f: c.input.clone(),
            g: c.output.clone(),
            map: c.map.clone(),
            steps: c.steps.iter().map(|s| (s.mask, s.register)).collect(),
        };
        list.push(Certificate { spec, node: p.specs[spec].node, atom: "-", relation });
    }
    solution.certificates = list;
}
