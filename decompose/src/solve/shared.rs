//! Layouts of shared tensors: of the candidates of every access, the choice whose runs unify and whose cost,
//! wavefronts included, is least.

use super::copy::Candidate;
use super::ops::{self, Op};
use super::smem::{self, Access, Banks};
use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, TensorId};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;

/// A layout, and the candidate of each access.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) picks: Vec<usize>,
    pub(super) layout: Layout,
    pub(super) swizzle: Option<Swizzle>,
    /// Wavefronts of each access, in all its executions by one block.
    pub(super) wavefronts: Vec<f64>,
}

/// The best layout of an open shared tensor; or why none serves all accesses.
pub(super) fn open(
    p: &Program,
    table: &AtomTable,
    id: BufferId,
    accesses: &[(&Op, &[Candidate])],
    budget: &mut u64,
) -> Result<Found, String> {
    let buffer = &p.buffers[id];
    let shape = ops::extents(p, buffer.tensor).unwrap_or_default();
    let levels = &p.tensors[buffer.tensor].levels;
    let innermost = levels.last().map_or(0, carbyne_ir::layout::Layout::rank);
    let outer = shape.len().saturating_sub(innermost);
    let bits = buffer.scalar.bits();
    let banks = banks(table);
    let mut best: Option<(f64, Found)> = None;
    let mut conflict = "its accesses have no candidates".to_owned();
    let mut pick = vec![0usize; accesses.len()];
    let mut touched: BTreeMap<(usize, usize), Option<Access>> = BTreeMap::new();
    loop {
        if *budget == 0 {
            break;
        }
        *budget -= 1;
        let chosen: Vec<&Candidate> = pick.iter().zip(accesses).map(|(i, a)| &a.1[*i]).collect();
        let base: f64 = chosen.iter().zip(accesses).map(|(c, a)| c.cost * a.0.trips as f64).sum();
        if best.as_ref().is_none_or(|(cost, _)| base < *cost) {
            let runs: Vec<smem::Run> = chosen
                .iter()
                .flat_map(|c| c.src_run.iter().chain(&c.dst_run))
                .filter(|r| !r.is_empty())
                .cloned()
                .collect();
            let unified = smem::unify(&shape, outer, &runs).and_then(|layout| {
                let mut each = accesses.iter().zip(&chosen);
                each.try_for_each(|(a, c)| written(p, a.0, c, id, &layout)).map(|()| layout)
            });
            match unified {
                Ok(layout) => {
                    let list: Vec<Access> = pick
                        .iter()
                        .enumerate()
                        .filter_map(|(a, i)| {
                            let (op, list) = accesses[a];
                            touched
                                .entry((a, *i))
                                .or_insert_with(|| access(p, op, &list[*i], id, bits))
                                .clone()
                        })
                        .collect();
                    let least = base + smem::ideal(&list, banks);
                    if best.as_ref().is_some_and(|(c, _)| least >= *c) {
                        if !next(&mut pick, accesses) {
                            break;
                        }
                        continue;
                    }
                    let (swizzle, w) = smem::best_swizzle(&layout, bits, &list, banks);
                    let cost = base + w;
                    if best.as_ref().is_none_or(|(c, _)| cost < *c) {
                        let wavefronts = list
                            .iter()
                            .map(|a| {
                                let one = std::slice::from_ref(a);
                                smem::wavefronts(&layout, swizzle, bits, one, banks)
                            })
                            .collect();
                        let picks = pick.clone();
                        best = Some((cost, Found { picks, layout, swizzle, wavefronts }));
                    }
                }
                Err(why) => conflict = why,
            }
        }
        if !next(&mut pick, accesses) {
            break;
        }
    }
    best.map(|(_, f)| f).ok_or(conflict)
}

/// Whether what each thread accesses is a layout, as the text must state it.
fn written(
    p: &Program,
    op: &Op,
    c: &Candidate,
    id: BufferId,
    layout: &Layout,
) -> Result<(), String> {
    let Some((src, dst)) = ends(p, op) else { return Ok(()) };
    let (t, tv) = if p.tensors[src].buffer == id { (src, &c.f) } else { (dst, &c.g) };
    let Some(inside) = ops::whole(p, t) else { return Ok(()) };
    let all = layout.compose(&inside).and_then(|view| view.compose(tv));
    all.map(|_| ()).map_err(|e| e.to_string())
}

/// The next combination, last operation fastest; false after the last.
fn next(pick: &mut [usize], accesses: &[(&Op, &[Candidate])]) -> bool {
    let Some(i) = (0..pick.len()).rev().find(|&i| pick[i] + 1 < accesses[i].1.len()) else {
        return false;
    };
    pick[i] += 1;
    pick[i + 1..].fill(0);
    true
}

/// Wavefronts of one access to a shared tensor of known layout, in all its executions by one block.
pub(super) fn fixed(p: &Program, table: &AtomTable, op: &Op, c: &Candidate, id: BufferId) -> f64 {
    let buffer = &p.buffers[id];
    let bits = buffer.scalar.bits();
    let Some(whole) = ops::whole(p, buffer.tensor) else { return 0.0 };
    match access(p, op, c, id, bits) {
        // Addresses are already those of the layout.
        Some(a) => {
            let linear = super::tv::mode(whole.cosize().max(1), 1);
            smem::wavefronts(&linear, buffer.swizzle, bits, &[a], banks(table))
        }
        None => 0.0,
    }
}

fn banks(table: &AtomTable) -> Banks {
    let limits = limits(table.arch);
    Banks { n: limits.smem_banks, bytes: limits.bank_bytes }
}

/// Which elements the lanes of each warp address, instruction by instruction: column-major indices of an open
/// tensor, addresses of a fixed one.
fn access(p: &Program, op: &Op, c: &Candidate, id: BufferId, bits: i64) -> Option<Access> {
    /// Enough to see every conflict pattern of a regular access.
    const MAX_LISTS: usize = 32;
    let (src, dst) = ends(p, op)?;
    let (t, tv) = if p.tensors[src].buffer == id { (src, &c.f) } else { (dst, &c.g) };
    let inside = ops::whole(p, t)?;
    let (tm, vm) = (tv.mode(0).ok()?, tv.mode(1).ok()?);
    let rest = vm.mode(1).ok()?.size();
    let inst = vm.mode(0).ok()?.size();
    let all = (tm.size() + 31) / 32 * rest;
    let mut lanes = vec![];
    'all: for first in (0..tm.size()).step_by(32) {
        for r in 0..rest {
            if lanes.len() == MAX_LISTS {
                break 'all;
            }
            lanes.push(
                (first..(first + 32).min(tm.size()))
                    .map(|t| inside.at(tv.at(t + tm.size() * inst * r)))
                    .collect(),
            );
        }
    }
    let weight = op.trips as f64 * all as f64 / lanes.len().max(1) as f64;
    Some(Access { lanes, bytes: (inst * bits / 8).max(1), weight })
}

/// Source and destination of an operation with one of each.
pub(super) fn ends(p: &Program, op: &Op) -> Option<(TensorId, TensorId)> {
    let spec = &p.specs[op.spec];
    let mut inputs = spec.input_tensors();
    let (src, dst) = (inputs.next()?, *spec.outputs.first()?);
    inputs.next().is_none().then_some((src, dst))
}

/// The shared tensor of an operation whose layout is to be found.
pub(super) fn open_shared(p: &Program, op: &Op) -> Option<BufferId> {
    let (src, dst) = ends(p, op)?;
    [src, dst]
        .into_iter()
        .map(|t| p.tensors[t].buffer)
        .find(|b| p.buffers[*b].open && p.buffers[*b].memory == Some(Memory::Sh))
}

/// 32-byte sectors of global memory that one warp touches with one instruction, on average.
pub(super) fn sectors(p: &Program, sides: &[(TensorId, &Layout)]) -> f64 {
    let mut total = 0.0;
    for &(t, tv) in sides {
        let buffer = p.buffer_of(t);
        if buffer.memory != Some(Memory::Gl) {
            continue;
        }
        let (Some(inside), Ok(tm), Ok(vm)) = (ops::whole(p, t), tv.mode(0), tv.mode(1)) else {
            continue;
        };
        let inst = vm.mode(0).map_or(1, |m| m.size());
        let lanes = tm.size().min(32);
        let mut seen: Vec<i64> = vec![];
        for lane in 0..lanes {
            for v in 0..inst {
                let at = inside.at(tv.at(lane + tm.size() * v));
                let sector = at.saturating_mul(buffer.scalar.bits()) / 256;
                if !seen.contains(&sector) {
                    seen.push(sector);
                }
            }
        }
        total += seen.len() as f64;
    }
    total
}
