//! Layouts of shared tensors: of the candidates of every access, the choice whose runs unify and whose cost,
//! wavefronts included, is least.

use super::copy::Candidate;
use super::ops::{self, Op};
use super::smem::{self, Access, Banks};
use super::unfit::Unfit;
use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, Range, TensorId};
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

/// The accesses to a shared tensor, each with its candidates.
pub(super) type Accesses<'a> = [(&'a Op, &'a [Candidate])];

/// How many combinations of candidates may still be looked at, and whether more were wanted.
#[derive(Copy, Clone, Debug)]
pub(super) struct Budget {
    pub(super) left: u64,
    pub(super) cut_off: bool,
}

impl Budget {
    /// Takes one; false where none is left.
    pub(super) fn take(&mut self) -> bool {
        self.cut_off |= self.left == 0;
        self.left = self.left.saturating_sub(1);
        !self.cut_off
    }
}

/// The best layout of an open shared tensor; or why none serves all accesses.
pub(super) fn open(
    p: &Program,
    table: &AtomTable,
    id: BufferId,
    accesses: &Accesses<'_>,
    budget: &mut Budget,
) -> Result<Found, Unfit> {
    let buffer = &p.buffers[id];
    let shape = ops::extents(p, buffer.tensor).unwrap_or_default();
    let levels = &p.tensors[buffer.tensor].levels;
    let innermost = levels.last().map_or(0, carbyne_ir::layout::Layout::rank);
    let bits = buffer.scalar.bits();
    let mut touched = BTreeMap::new();
    // Each candidate with the least that it costs, the cheapest first.
    let order: Vec<Vec<(usize, f64, f64)>> = accesses
        .iter()
        .enumerate()
        .map(|(at, (op, list))| {
            let mut order: Vec<(usize, f64, f64)> = vec![];
            for (i, c) in list.iter().enumerate() {
                let access = access(p, op, c, id, bits);
                let phases = access.as_ref().map_or(0.0, |a| smem::ideal(a, banks(table)));
                order.push((i, c.cost * op.trips as f64, phases));
                touched.insert((at, i), access);
            }
            order.sort_by(|(_, a, x), (_, b, y)| (a + x).total_cmp(&(b + y)));
            order
        })
        .collect();
    let least = |order: &Vec<(usize, f64, f64)>| order.first().map_or(f64::INFINITY, |o| o.1 + o.2);
    let mut rest: Vec<f64> = order.iter().map(least).collect();
    for a in (1..rest.len()).rev() {
        rest[a - 1] += rest[a];
    }
    rest.push(0.0);
    let mut search = Combinations {
        p,
        id,
        bits,
        outer: shape.len().saturating_sub(innermost),
        shape,
        accesses,
        order,
        rest,
        banks: banks(table),
        counts: smem::Counts::new(bits, banks(table)),
        touched,
        best: None,
        conflict: Unfit::NoCandidates,
        budget,
    };
    search.from(&mut vec![], 0.0, 0.0);
    search.best.map(|(_, f)| f).ok_or(search.conflict)
}

/// The search for the candidates of all accesses to one tensor that go together and cost least.
struct Combinations<'a> {
    p: &'a Program,
    id: BufferId,
    bits: i64,
    shape: Vec<i64>,
    outer: usize,
    accesses: &'a Accesses<'a>,
    /// The candidates of each access as they are looked at, with the cost of the instructions and that of a wavefront a
    /// phase.
    order: Vec<Vec<(usize, f64, f64)>>,
    /// What the accesses from each on cost at least.
    rest: Vec<f64>,
    banks: Banks,
    counts: smem::Counts,
    touched: BTreeMap<smem::Place, Option<Access>>,
    best: Option<(f64, Found)>,
    /// Why the last combination does not go together.
    conflict: Unfit,
    budget: &'a mut Budget,
}

impl Combinations<'_> {
    fn worse(&self, cost: f64) -> bool {
        self.best.as_ref().is_some_and(|(best, _)| cost >= *best)
    }

    /// Looks at all combinations that begin with `pick`, whose instructions cost `base`, and `least` with a
    /// wavefront a phase.
    fn from(&mut self, pick: &mut Vec<usize>, base: f64, least: f64) {
        let at = pick.len();
        if at == self.accesses.len() {
            if self.budget.take() {
                self.together(pick, base);
            }
            return;
        }
        for n in 0..self.order[at].len() {
            let (i, cost, phases) = self.order[at][n];
            if self.budget.cut_off || self.worse(least + cost + phases + self.rest[at + 1]) {
                break;
            }
            pick.push(i);
            // Runs that clash clash with whatever else there is; looking is worth it where much is left.
            let few = at + 3 > self.accesses.len();
            match if few { Ok(()) } else { self.unified(pick).map(drop) } {
                Err(why) => {
                    self.conflict = why;
                    self.budget.take();
                }
                Ok(()) => self.from(pick, base + cost, least + cost + phases),
            }
            pick.pop();
        }
    }

    /// The layout in which the runs of these candidates, of the first accesses, are consecutive.
    fn unified(&self, pick: &[usize]) -> Result<Layout, Unfit> {
        let chosen = pick.iter().zip(self.accesses).map(|(i, (_, list))| &list[*i]);
        let runs = chosen.flat_map(|c| c.src_run.iter().chain(&c.dst_run));
        let runs: Vec<smem::Run> = runs.filter(|r| !r.is_empty()).cloned().collect();
        smem::unify(&self.shape, self.outer, &runs)
    }

    /// One combination, with the swizzle that serves it best.
    fn together(&mut self, pick: &[usize], base: f64) {
        let unified = self.unified(pick).and_then(|layout| {
            let mut each = pick.iter().zip(self.accesses);
            let as_written = |(i, (op, list)): (&usize, &(&Op, &[Candidate]))| {
                written(self.p, op, &list[*i], self.id, &layout)
            };
            each.try_for_each(as_written)?;
            cut(self.p, self.id, &layout).map(|()| layout)
        });
        let layout = match unified {
            Ok(layout) => layout,
            Err(why) => {
                self.conflict = why;
                return;
            }
        };
        let places = pick.iter().enumerate().map(|(a, i)| (a, *i));
        let touched = |place| Some((place, self.touched.get(&place)?.as_ref()?));
        let list: Vec<(smem::Place, &Access)> = places.filter_map(touched).collect();
        let each = |swizzle: Option<Swizzle>| -> Vec<f64> {
            let of = |(_, a): &(_, &Access)| {
                smem::wavefronts(&layout, swizzle, self.bits, std::slice::from_ref(*a), self.banks)
            };
            list.iter().map(of).collect()
        };
        let (swizzle, wavefronts, w) = match self.p.buffers[self.id].swizzle {
            Some(pinned) => {
                let bytes = layout.cosize() * self.bits / 8;
                let block = 1i64 << (pinned.base() + pinned.bits()).min(62);
                if bytes % block != 0 {
                    self.conflict = Unfit::Swizzle { block, bytes };
                    return;
                }
                let wavefronts = each(Some(pinned));
                let w = wavefronts.iter().sum();
                (Some(pinned), wavefronts, w)
            }
            None => {
                let (swizzle, w) = self.counts.best_swizzle(&layout, &list);
                (swizzle, vec![], w)
            }
        };
        if self.worse(base + w) {
            return;
        }
        let wavefronts = if wavefronts.is_empty() { each(swizzle) } else { wavefronts };
        let found = Found { picks: pick.to_vec(), layout, swizzle, wavefronts };
        self.best = Some((base + w, found));
    }
}

/// Whether what each thread accesses is a layout, as the text must state it.
pub(super) fn written(
    p: &Program,
    op: &Op,
    c: &Candidate,
    id: BufferId,
    layout: &Layout,
) -> Result<(), Unfit> {
    let Some((src, dst)) = ends(p, op) else { return Ok(()) };
    let (t, tv) = if p.tensors[src].buffer == id { (src, &c.f) } else { (dst, &c.g) };
    let Some(inside) = ops::whole(p, t) else { return Ok(()) };
    layout.compose(&inside)?.compose(tv)?;
    Ok(())
}

/// Whether every operation of a view of the tensor takes a part that has a layout.
pub(super) fn cut(p: &Program, id: BufferId, layout: &Layout) -> Result<(), Unfit> {
    let (cx, layout) = (&p.arena, Layout::<Dim>::from_fixed(layout));
    let all = |of: &Layout<Dim>| layout.compose_in(cx, of);
    for taken in p.taken.iter().filter(|t| t.buffer == id) {
        taken.left.iter().try_for_each(|level| all(level).map(drop))?;
        for range in &taken.ranges {
            let own = Range { mode: all(&range.mode)?, ..range.clone() };
            if !own.is_straight(cx)? {
                return Err(Unfit::Range(own.mode.display_in(cx)));
            }
        }
    }
    Ok(())
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

pub(super) fn banks(table: &AtomTable) -> Banks {
    let limits = limits(table.arch);
    Banks { n: limits.smem_banks, bytes: limits.bank_bytes }
}

/// Which elements the lanes of each warp address, instruction by instruction: column-major indices of an open
/// tensor, addresses of a fixed one.
pub(super) fn access(
    p: &Program,
    op: &Op,
    c: &Candidate,
    id: BufferId,
    bits: i64,
) -> Option<Access> {
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
    let own: Vec<i64> = (0..tm.size()).map(|t| tm.at(t)).collect();
    'all: for warp in own.chunks(32) {
        for r in 0..rest {
            if lanes.len() == MAX_LISTS {
                break 'all;
            }
            let value = vm.at(inst * r);
            lanes.push(warp.iter().map(|own| inside.at(own + value)).collect());
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
