//! Chooses the size of the granules, the units in which the checker tracks memory: the largest size
//! at which every access takes whole granules. Larger granules make the checker faster.

use super::{LeafPlan, MAX_GRANULE, OperandPlan, Plan, Space, View, is_mbarrier};
use crate::gcd::gcd;
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::program::{Program, SpecId};
use std::collections::{BTreeMap, BTreeSet};

/// The uses of views by leaves.
#[derive(Default)]
struct Uses<'l> {
    /// For each view, the lists of elements that one thread accesses; none stands for all elements.
    lists: BTreeMap<usize, Vec<Option<&'l [u32]>>>,
    /// Views that may be accessed in part.
    exact: BTreeSet<usize>,
}

fn uses<'l>(leaves: &'l BTreeMap<SpecId, LeafPlan>, views: &[View], arena: &ExprArena) -> Uses<'l> {
    let mut out = Uses::default();
    for leaf in leaves.values() {
        for o in &leaf.operands {
            let list = out.lists.entry(o.view).or_default();
            match &o.of_thread {
                None if list.contains(&None) => {}
                None => list.push(None),
                Some(all) => list.extend(all.iter().map(|l| Some(l.as_slice()))),
            }
        }
        // Boxes that may lie in the tensor in part.
        let is_cut = |o: &OperandPlan| {
            let whole = |((n, extent), at): ((&i64, &i64), &Dim)| {
                let n = (*n).max(1);
                extent % n == 0 && arena.divisor(*at) % n == 0
            };
            let modes = &views[o.view].modes;
            o.boxed.as_ref().is_some_and(|b| !modes.iter().zip(&b.extents).zip(&b.at).all(whole))
        };
        if leaf.valid.is_some() || leaf.operands.iter().any(is_cut) {
            out.exact.extend(leaf.operands.iter().map(|o| o.view));
        }
    }
    out
}

impl Plan {
    /// Chooses the largest granules for which every access takes whole granules.
    pub(super) fn choose_granules(&mut self, p: &Program) {
        self.fit_granules(p);
        self.count_cells(p);
        self.begin_granules();
    }

    /// Makes granules smaller until all accesses take whole ones.
    fn fit_granules(&mut self, p: &Program) {
        let arena = &p.arena;
        let uses = uses(&self.leaves, &self.views, arena);
        for (i, view) in self.views.iter().enumerate() {
            let lists = uses.lists.get(&i).map_or(&[][..], |l| l.as_slice());
            let chunk = lists.iter().fold(0, |all, l| gcd(all, chunk(&view.places, *l)));
            let divisor = arena.divisor(view.offset);
            let (granule, swizzle) = match view.space {
                Space::Shared(b) => {
                    let b = &self.shared[b];
                    (self.components[b.component].granule, b.swizzle)
                }
                Space::Global(g) => (self.globals[g].granule, None),
                _ => continue,
            };
            let fits = |g: i64| {
                let units = (g * 8 / view.bits).max(1);
                let aligned = divisor % units == 0 || view.offset == Dim::Const(0);
                let kept = swizzle.is_none_or(|s| s.is_none() || 1i64 << s.base() >= g);
                let whole = || lists.iter().all(|list| takes_whole(view, *list, units));
                let fits = aligned && kept && chunk % units == 0;
                fits && (view.limits.is_empty() || whole())
            };
            let mut g = granule;
            let least = (view.bits / 8).clamp(1, MAX_GRANULE);
            if is_mbarrier(p, view.buffer) {
                g = g.min(8);
            }
            let is_global = matches!(view.space, Space::Global(_));
            if is_global && uses.exact.contains(&i) {
                g = g.min(least);
            }
            while g > 1 && g > least.min(granule) && !fits(g) {
                g /= 2;
            }
            match view.space {
                Space::Shared(b) => self.components[self.shared[b].component].granule = g,
                Space::Global(b) => self.globals[b].granule = g,
                _ => {}
            }
        }
    }

    /// Counts the granules of shared memory, and converts the granules of global memory to scalars.
    fn count_cells(&mut self, p: &Program) {
        for c in &mut self.components {
            c.first_cell = self.n_cells;
            self.n_cells += ((c.end - c.start) / c.granule.max(1)) as usize + 1;
        }
        // From bytes to scalars.
        for g in &mut self.globals {
            let bits = p.buffers[g.id].scalar.bits();
            g.granule = (g.granule * 8 / bits).max(1);
        }
    }

    /// Reduces lists of elements to those that begin a granule.
    fn begin_granules(&mut self) {
        let mut views = std::mem::take(&mut self.views);
        for view in &mut views {
            let units = self.units(view);
            let mut seen = BTreeSet::new();
            view.first = (0..view.places.len() as u32)
                .filter(|e| seen.insert(granule_of(view, *e, units)))
                .collect();
        }
        let mut leaves = std::mem::take(&mut self.leaves);
        for o in leaves.values_mut().flat_map(|leaf| &mut leaf.operands) {
            let Some(all) = &mut o.of_thread else { continue };
            let view = &views[o.view];
            let units = self.units(view);
            for list in all {
                let mut seen = BTreeSet::new();
                list.retain(|e| seen.insert(granule_of(view, *e, units)));
            }
        }
        (self.views, self.leaves) = (views, leaves);
    }

    /// The number of scalars in a granule of a view.
    fn units(&self, view: &View) -> i64 {
        match view.space {
            Space::Shared(b) => {
                (self.components[self.shared[b].component].granule * 8 / view.bits).max(1)
            }
            Space::Global(g) => self.globals[g].granule,
            Space::Registers(_) | Space::Free | Space::Gathered => 1,
        }
    }
}

/// The granule of an element, and for each limit its class, which decides whether the element
/// exists.
fn granule_of(view: &View, e: u32, units: i64) -> (i64, Vec<i64>) {
    let place = view.places.get(e as usize).map_or(0, |p| p.div_euclid(units));
    (place, view.limits.iter().map(|limit| limit.class(e as usize)).collect())
}

/// Whether these elements (none: all) fill whole granules of `units` scalars, wherever the modes of
/// the view end.
fn takes_whole(view: &View, elements: Option<&[u32]>, units: i64) -> bool {
    let mut taken: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
    let mut take = |e: u32| {
        let place = view.places.get(e as usize).map_or(0, |p| p.rem_euclid(units));
        taken.entry(granule_of(view, e, units)).or_default().insert(place);
    };
    match elements {
        None => (0..view.places.len() as u32).for_each(&mut take),
        Some(list) => list.iter().copied().for_each(&mut take),
    }
    taken.values().all(|places| places.len() as i64 == units)
}

/// The largest number of scalars for which these elements (none: all) form whole aligned chunks; 0
/// without elements.
fn chunk(places: &[i64], elements: Option<&[u32]>) -> i64 {
    let mut all: Vec<i64> = match elements {
        None => places.to_vec(),
        Some(list) => list.iter().filter_map(|e| places.get(*e as usize).copied()).collect(),
    };
    all.sort_unstable();
    all.dedup();
    let runs = all.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    // The chunk size divides the beginning and the end of each run of consecutive offsets.
    let ends = runs.flat_map(|run| [run[0], run[run.len() - 1].saturating_add(1)]);
    ends.fold(0, gcd)
}
