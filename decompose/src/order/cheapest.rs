//! Chooses the cheapest places for barriers and waits among those that serve every dependence
//! ([`Planner::chosen`]).

use super::hitting_set;
use super::paths::Commits;
use super::planner::{Need, Planner, Wait};
use super::tree::At;
use crate::cost::constants::STALL;
use crate::order::touched::Mask;
use std::collections::{BTreeMap, BTreeSet};

impl Planner<'_, '_> {
    /// Where barriers are put, and waits with what they leave in flight.
    pub(crate) fn chosen(
        &self,
        barriers: &[(Vec<At>, Mask)],
        waits: &[Need],
    ) -> (BTreeSet<At>, BTreeMap<At, i64>) {
        /// Places that a first choice is made with.
        const STARTS: usize = 256;
        let barriers: Vec<Vec<At>> = barriers.iter().map(|(gaps, _)| gaps.clone()).collect();
        let chosen = hitting_set::cheapest(&barriers, |at| self.tree.times(at));
        // A barrier elsewhere, or one more, pays where waits then leave more in flight.
        let candidates: BTreeSet<At> = barriers.iter().flatten().copied().collect();
        let with = |at: &At| -> BTreeSet<At> {
            let rest: Vec<Vec<At>> =
                barriers.iter().filter(|gaps| !gaps.contains(at)).cloned().collect();
            let rest = hitting_set::cheapest(&rest, |at| self.tree.times(at));
            rest.into_iter().chain([*at]).collect()
        };
        let starts = candidates.iter().take(STARTS).map(with);
        let starts = std::iter::once(chosen).chain(starts);
        // How much is executed between barriers and what they are for, in statements.
        let early = |places: &BTreeSet<At>| -> usize {
            let of =
                |gaps: &Vec<At>| gaps.iter().rev().take_while(|at| !places.contains(at)).count();
            barriers.iter().map(of).sum()
        };
        let of = |places: BTreeSet<At>| (self.waits(&places, waits).0, early(&places), places);
        // Of equals those that come late: threads and copies have the most time until then.
        let better = |a: &(f64, usize, _), b: &(f64, usize, _)| {
            a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
        };
        let best = starts.map(of).min_by(better);
        let (_, _, places) = best.unwrap_or_default();
        self.improved(places, &barriers, waits)
    }

    /// A set of barriers that none of its neighbors is cheaper than, with the waits: a neighbor
    /// does without one, or has it at another place.
    fn improved(
        &self,
        mut places: BTreeSet<At>,
        barriers: &[Vec<At>],
        waits: &[Need],
    ) -> (BTreeSet<At>, BTreeMap<At, i64>) {
        /// Sets whose cost is computed.
        const LOOK: usize = 2048;
        let (mut cost, mut left) = self.waits(&places, waits);
        let mut looked = 0;
        loop {
            let mut best: Option<(f64, BTreeSet<At>, BTreeMap<At, i64>)> = None;
            for at in places.clone() {
                let mut rest = places.clone();
                rest.remove(&at);
                let unhit = |gaps: &&Vec<At>| !gaps.iter().any(|at| rest.contains(at));
                let mut unhit = barriers.iter().filter(unhit);
                // Places that serve all that this one alone serves.
                let instead: Vec<Option<At>> = match unhit.next() {
                    None => vec![None],
                    Some(first) => {
                        let more: Vec<&Vec<At>> = unhit.collect();
                        let serves = |b: &&At| **b != at && more.iter().all(|g| g.contains(b));
                        let own: BTreeSet<At> = first.iter().filter(serves).copied().collect();
                        own.into_iter().map(Some).collect()
                    }
                };
                for other in instead {
                    looked += 1;
                    if looked > LOOK {
                        break;
                    }
                    let set: BTreeSet<At> = rest.iter().copied().chain(other).collect();
                    let (sum, waits) = self.waits(&set, waits);
                    if sum < best.as_ref().map_or(cost, |(least, ..)| *least) {
                        best = Some((sum, set, waits));
                    }
                }
            }
            match best {
                Some(better) => (cost, places, left) = better,
                None => return (places, left),
            }
        }
    }

    /// How many groups waits leave in flight, and where: for every access at one of its places,
    /// which is followed by a barrier where one is needed. With what these waits and the barriers
    /// cost.
    fn waits(&self, barriers: &BTreeSet<At>, needs: &[Need]) -> (f64, BTreeMap<At, i64>) {
        let mut open: Vec<(&[Wait], f64)> = vec![];
        for need in needs {
            let places = need.before(barriers);
            let least = places.iter().map(|w| self.stall(*w)).fold(f64::INFINITY, f64::min);
            open.push((places, least));
        }
        // What costs most first: where that stands much of the rest is served.
        open.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.len().cmp(&b.len())));
        let mut left: BTreeMap<At, i64> = BTreeMap::new();
        for (places, _) in open {
            let more = |(at, n): Wait| match left.get(&at) {
                Some(m) => self.stall((at, n.min(*m))) - self.stall((at, *m)),
                None => self.stall((at, n)),
            };
            let best = places.iter().rev().min_by(|a, b| more(**a).total_cmp(&more(**b)));
            if let Some((at, n)) = best {
                let known = left.entry(*at).or_insert(*n);
                *known = (*known).min(*n);
            }
        }
        let cost: f64 = barriers.iter().map(|at| self.tree.times(*at)).sum();
        (cost + left.iter().map(|(at, n)| self.stall((*at, *n))).sum::<f64>(), left)
    }

    /// What a wait costs: how often it is executed, and more the fewer groups it leaves.
    fn stall(&self, (at, n): Wait) -> f64 {
        self.tree.times(at) * (1.0 + (STALL - 1.0) / (n + 1) as f64)
    }

    /// Leaves out waits outside of loops for copies that others have waited for by then.
    pub(crate) fn without_idle(
        &self,
        barriers: &BTreeSet<At>,
        needs: &[Need],
        commits: &Commits,
        left: &mut BTreeMap<At, i64>,
    ) {
        let outside: Vec<At> =
            left.keys().copied().filter(|at| self.tree.loops(*at).is_empty()).collect();
        for at in outside {
            let mut others = left.clone();
            others.remove(&at);
            let done = |need: &Need| {
                let places = need.before(barriers);
                !places.iter().any(|(place, _)| *place == at)
                    || places.iter().any(|(w, n)| others.get(w).is_some_and(|m| m <= n))
                    || need.copy.is_some_and(|copy| self.is_done(copy, &others, at, commits))
            };
            if needs.iter().all(done) {
                *left = others;
            }
        }
    }
}
