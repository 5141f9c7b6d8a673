//! Finds the best layout of an open shared tensor ([`open`]): it chooses one candidate for every
//! access such that their runs unify and the cost, wavefronts included, is least.

use super::copy::Candidate;
use super::smem::{self, Access, Banks};
use super::unfit::Unfit;
use crate::access::ops;
use crate::access::ops::Op;
use carbyne_atoms::{AtomTable, limits};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, Range, TensorId};
use std::collections::{BTreeMap, HashMap};

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
    let mut seen = Seen::default();
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
                if let Some(access) = access {
                    touched.insert((at, i), seen.access(access));
                }
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
        twins: twins(p, id, accesses),
        accesses,
        order,
        rest,
        banks: banks(table),
        counts: smem::Counts::new(bits, banks(table)),
        touched,
        seen,
        best: None,
        conflict: None,
        budget,
    };
    search.from(&mut vec![], 0.0, 0.0);
    if let Some((_, found)) = search.best {
        return Ok(found);
    }
    let conflict = search.conflict.and_then(|at| search.seen.conflicts.into_iter().nth(at));
    Err(conflict.unwrap_or(Unfit::NoCandidates))
}

/// Of each access the first whose candidates move the same elements between the same threads and
/// places, as the loads of the slices of a loop that is written out do. What serves one best serves
/// the other best.
fn twins(p: &Program, id: BufferId, accesses: &Accesses<'_>) -> Vec<Option<usize>> {
    let side = |op: &Op| {
        let (src, dst) = ends(p, op)?;
        let own = if p.tensors[src].buffer == id { src } else { dst };
        Some((ops::whole(p, own)?, own == src))
    };
    let sides: Vec<_> = accesses.iter().map(|(op, _)| side(op)).collect();
    let alike = |a: &[Candidate], b: &[Candidate]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.moves_like(b))
    };
    let twin = |at: usize| {
        sides[at].as_ref()?;
        (0..at)
            .find(|other| sides[*other] == sides[at] && alike(accesses[*other].1, accesses[at].1))
    };
    (0..accesses.len()).map(twin).collect()
}

/// The place of a reason in [`Seen::conflicts`].
type Conflict = usize;

/// What was worked out for some combination: others ask the same.
#[derive(Default)]
struct Seen {
    conflicts: Vec<Unfit>,
    /// Different runs.
    runs: Vec<smem::Run>,
    /// Different layouts.
    layouts: Vec<Layout>,
    /// Different accesses.
    accesses: Vec<Access>,
    /// The runs of a candidate.
    of: HashMap<smem::Place, Vec<usize>>,
    /// The layout in which runs are consecutive.
    unified: HashMap<Vec<usize>, Result<usize, Conflict>>,
    /// Whether what a candidate accesses can be written, by the layout.
    written: HashMap<(usize, smem::Place), Result<(), Conflict>>,
    /// The same of the views.
    cut: HashMap<usize, Result<(), Conflict>>,
    /// The swizzle of a layout that serves accesses best.
    swizzles: HashMap<(usize, Vec<usize>), (Option<Swizzle>, f64)>,
}

impl Seen {
    fn conflict(&mut self, why: Unfit) -> Conflict {
        self.conflicts.push(why);
        self.conflicts.len() - 1
    }

    fn access(&mut self, access: Access) -> usize {
        number(&mut self.accesses, access)
    }
}

/// The number of something among those that differ.
fn number<T: PartialEq>(all: &mut Vec<T>, one: T) -> usize {
    match all.iter().position(|other| *other == one) {
        Some(at) => at,
        None => {
            all.push(one);
            all.len() - 1
        }
    }
}

/// The search for the candidates of all accesses to one tensor that go together and cost least.
struct Combinations<'a> {
    p: &'a Program,
    id: BufferId,
    bits: i64,
    shape: Vec<i64>,
    outer: usize,
    accesses: &'a Accesses<'a>,
    /// Of each access the first that is the same: it takes the same candidate.
    twins: Vec<Option<usize>>,
    /// The candidates of each access as they are looked at, with the cost of the instructions and
    /// that of a wavefront a phase.
    order: Vec<Vec<(usize, f64, f64)>>,
    /// What the accesses from each on cost at least.
    rest: Vec<f64>,
    banks: Banks,
    counts: smem::Counts,
    /// What candidates access, by the number of the access.
    touched: BTreeMap<smem::Place, usize>,
    seen: Seen,
    best: Option<(f64, Found)>,
    /// Why the last combination does not go together.
    conflict: Option<Conflict>,
    budget: &'a mut Budget,
}

impl Combinations<'_> {
    fn worse(&self, cost: f64) -> bool {
        self.best.as_ref().is_some_and(|(best, _)| cost >= *best)
    }

    /// Looks at all combinations that begin with `pick`, whose instructions cost `base`, and
    /// `least` with a wavefront a phase.
    fn from(&mut self, pick: &mut Vec<usize>, base: f64, least: f64) {
        let at = pick.len();
        if at == self.accesses.len() {
            if self.budget.take() {
                self.together(pick, base);
            }
            return;
        }
        let same = self.twins[at].map(|first| pick[first]);
        for n in 0..self.order[at].len() {
            let (i, cost, phases) = self.order[at][n];
            if same.is_some_and(|same| same != i) {
                continue;
            }
            if self.budget.cut_off || self.worse(least + cost + phases + self.rest[at + 1]) {
                break;
            }
            pick.push(i);
            // Runs that clash clash with whatever else there is; looking is worth it where much is
            // left.
            let few = at + 3 > self.accesses.len();
            match if few { Ok(()) } else { self.unified(pick).map(drop) } {
                Err(why) => {
                    self.conflict = Some(why);
                    self.budget.take();
                }
                Ok(()) => self.from(pick, base + cost, least + cost + phases),
            }
            pick.pop();
        }
    }

    /// The runs of a candidate of an access.
    fn runs(&mut self, at: usize, i: usize) -> &[usize] {
        let (seen, accesses) = (&mut self.seen, self.accesses);
        let (runs, of) = (&mut seen.runs, &mut seen.of);
        of.entry((at, i)).or_insert_with(|| {
            let c = &accesses[at].1[i];
            let own = c.src_run.iter().chain(&c.dst_run).filter(|run| !run.is_empty());
            own.map(|run| number(runs, run.clone())).collect()
        })
    }

    /// The layout in which the runs of these candidates, of the first accesses, are consecutive.
    fn unified(&mut self, pick: &[usize]) -> Result<usize, Conflict> {
        let mut all: Vec<usize> = vec![];
        for (at, i) in pick.iter().enumerate() {
            for run in self.runs(at, *i) {
                if !all.contains(run) {
                    all.push(*run);
                }
            }
        }
        if let Some(known) = self.seen.unified.get(&all) {
            return *known;
        }
        let runs: Vec<smem::Run> = all.iter().map(|run| self.seen.runs[*run].clone()).collect();
        let found = match smem::unify(&self.shape, self.outer, &runs) {
            Ok(layout) => Ok(number(&mut self.seen.layouts, layout)),
            Err(why) => Err(self.seen.conflict(why.into())),
        };
        self.seen.unified.insert(all, found);
        found
    }

    /// See [`written`].
    fn written(&mut self, at: usize, i: usize, layout: usize) -> Result<(), Conflict> {
        let key = (layout, (at, i));
        if let Some(known) = self.seen.written.get(&key) {
            return *known;
        }
        let (op, list) = self.accesses[at];
        let found = written(self.p, op, &list[i], self.id, &self.seen.layouts[layout]);
        let found = found.map_err(|why| self.seen.conflict(why));
        self.seen.written.insert(key, found);
        found
    }

    /// See [`cut`].
    fn cut(&mut self, layout: usize) -> Result<(), Conflict> {
        if let Some(known) = self.seen.cut.get(&layout) {
            return *known;
        }
        let found = cut(self.p, self.id, &self.seen.layouts[layout]);
        let found = found.map_err(|why| self.seen.conflict(why));
        self.seen.cut.insert(layout, found);
        found
    }

    /// The layout of one combination, by its number.
    fn layout(&mut self, pick: &[usize]) -> Result<usize, Conflict> {
        let layout = self.unified(pick)?;
        for (at, i) in pick.iter().enumerate() {
            self.written(at, *i, layout)?;
        }
        self.cut(layout)?;
        Ok(layout)
    }

    /// One combination, with the swizzle that serves it best.
    fn together(&mut self, pick: &[usize], base: f64) {
        let at = match self.layout(pick) {
            Ok(at) => at,
            Err(why) => {
                self.conflict = Some(why);
                return;
            }
        };
        let places = pick.iter().enumerate().map(|(a, i)| (a, *i));
        let list: Vec<usize> =
            places.filter_map(|place| self.touched.get(&place).copied()).collect();
        let layout = &self.seen.layouts[at];
        let each = |seen: &Seen, swizzle: Option<Swizzle>| -> Vec<f64> {
            let of = |a: &usize| {
                let access = std::slice::from_ref(&seen.accesses[*a]);
                smem::wavefronts(&seen.layouts[at], swizzle, self.bits, access, self.banks)
            };
            list.iter().map(of).collect()
        };
        let (swizzle, wavefronts, w) = match self.p.buffers[self.id].swizzle {
            Some(pinned) => {
                let bytes = layout.cosize() * self.bits / 8;
                let block = 1i64 << (pinned.base() + pinned.bits()).min(62);
                if bytes % block != 0 {
                    self.conflict = Some(self.seen.conflict(Unfit::Swizzle { block, bytes }));
                    return;
                }
                let wavefronts = each(&self.seen, Some(pinned));
                let w = wavefronts.iter().sum();
                (Some(pinned), wavefronts, w)
            }
            None => {
                let key = (at, list.clone());
                let (swizzle, w) = match self.seen.swizzles.get(&key) {
                    Some(known) => *known,
                    None => {
                        let of = |a: &usize| ((*a, 0), &self.seen.accesses[*a]);
                        let accesses: Vec<(smem::Place, &Access)> = list.iter().map(of).collect();
                        let found = self.counts.best_swizzle(layout, &accesses);
                        self.seen.swizzles.insert(key, found);
                        found
                    }
                };
                (swizzle, vec![], w)
            }
        };
        if self.worse(base + w) {
            return;
        }
        let wavefronts = if wavefronts.is_empty() { each(&self.seen, swizzle) } else { wavefronts };
        let layout = self.seen.layouts[at].clone();
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

/// Which elements the lanes of each warp address, instruction by instruction: column-major indices
/// of an open tensor, addresses of a fixed one.
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
        .find(|b| p.buffers[*b].open && p.buffers[*b].is_shared())
}
