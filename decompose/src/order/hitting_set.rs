//! Finds the cheapest set of places that contains at least one place of every given set
//! ([`cheapest`]).

use super::tree::At;
use std::collections::{BTreeMap, BTreeSet};

/// Choices that are looked at in one connected part; after these the best so far is taken.
const CHOICES: usize = 4096;

/// For every set one of its places, at the least cost; of places that serve alike the last. Empty
/// sets are left out.
pub(crate) fn cheapest(sets: &[Vec<At>], cost: impl Fn(At) -> f64) -> BTreeSet<At> {
    let sets: BTreeSet<BTreeSet<At>> =
        sets.iter().filter(|s| !s.is_empty()).map(|s| s.iter().copied().collect()).collect();
    let mut out = BTreeSet::new();
    for part in parts(sets) {
        let part = reduced(part, &cost);
        let mut search = Search { sets: &part, cost: &cost, best: None, left: CHOICES };
        search.branch(BTreeSet::new(), 0.0);
        out.extend(search.best.map(|(_, places)| places).unwrap_or_default());
    }
    out
}

/// Sets that share places with others, together.
fn parts(sets: BTreeSet<BTreeSet<At>>) -> Vec<Vec<BTreeSet<At>>> {
    let sets: Vec<BTreeSet<At>> = sets.into_iter().collect();
    let mut root: Vec<usize> = (0..sets.len()).collect();
    fn find(root: &mut [usize], mut i: usize) -> usize {
        while root[i] != i {
            root[i] = root[root[i]];
            i = root[i];
        }
        i
    }
    let mut first: BTreeMap<At, usize> = BTreeMap::new();
    for (i, set) in sets.iter().enumerate() {
        for place in set {
            let other = *first.entry(*place).or_insert(i);
            let (a, b) = (find(&mut root, i), find(&mut root, other));
            root[a.max(b)] = a.min(b);
        }
    }
    let mut out: BTreeMap<usize, Vec<BTreeSet<At>>> = BTreeMap::new();
    for (i, set) in sets.into_iter().enumerate() {
        out.entry(find(&mut root, i)).or_default().push(set);
    }
    out.into_values().collect()
}

/// Without places that others replace, and sets that are hit wherever others are.
fn reduced(mut sets: Vec<BTreeSet<At>>, cost: &impl Fn(At) -> f64) -> Vec<BTreeSet<At>> {
    loop {
        let mut of: BTreeMap<At, BTreeSet<usize>> = BTreeMap::new();
        for (i, set) in sets.iter().enumerate() {
            for place in set {
                of.entry(*place).or_default().insert(i);
            }
        }
        let replaced = |a: At| {
            let own = &of[&a];
            let Some(rarest) = own.iter().min_by_key(|i| sets[**i].len()) else { return true };
            sets[*rarest].iter().any(|b| {
                let better = (cost(*b), std::cmp::Reverse(*b)) < (cost(a), std::cmp::Reverse(a));
                let as_good = cost(*b) <= cost(a) && own.is_subset(&of[b]);
                *b != a && as_good && (better || own.len() < of[b].len())
            })
        };
        let gone: BTreeSet<At> = of.keys().copied().filter(|a| replaced(*a)).collect();
        let left: BTreeSet<BTreeSet<At>> =
            sets.iter().map(|s| s.difference(&gone).copied().collect()).collect();
        let mut kept: Vec<BTreeSet<At>> = vec![];
        let mut by_size: Vec<BTreeSet<At>> = left.into_iter().collect();
        by_size.sort_by_key(BTreeSet::len);
        for set in by_size {
            if !kept.iter().any(|k| k.is_subset(&set)) {
                kept.push(set);
            }
        }
        if gone.is_empty() && kept.len() == sets.len() {
            return kept;
        }
        sets = kept;
    }
}

struct Search<'a, C> {
    sets: &'a [BTreeSet<At>],
    cost: &'a C,
    best: Option<(f64, BTreeSet<At>)>,
    left: usize,
}

impl<C: Fn(At) -> f64> Search<'_, C> {
    fn branch(&mut self, taken: BTreeSet<At>, spent: f64) {
        let open: Vec<&BTreeSet<At>> = self.sets.iter().filter(|s| s.is_disjoint(&taken)).collect();
        // Sets that share nothing cost at least the cheapest place of each.
        let mut apart: BTreeSet<At> = BTreeSet::new();
        let mut least = spent;
        for set in &open {
            if set.is_disjoint(&apart) {
                least += set.iter().map(|p| (self.cost)(*p)).fold(f64::INFINITY, f64::min);
                apart.extend(set.iter());
            }
        }
        if self.best.as_ref().is_some_and(|(best, _)| *best <= least) {
            return;
        }
        let Some(next) = open.iter().min_by_key(|s| s.len()) else {
            self.best = Some((spent, taken));
            return;
        };
        let serves = |p: At| open.iter().filter(|s| s.contains(&p)).count() as f64;
        let mut places: Vec<At> = next.iter().copied().collect();
        places.sort_by(|a, b| {
            let rank = |p: At| (self.cost)(p) / serves(p);
            rank(*a).total_cmp(&rank(*b)).then(b.cmp(a))
        });
        for place in places {
            // The first way down is always looked at.
            if self.left == 0 && self.best.is_some() {
                return;
            }
            self.left = self.left.saturating_sub(1);
            let mut taken = taken.clone();
            taken.insert(place);
            self.branch(taken, spent + (self.cost)(place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::testing;
    use proptest::prelude::*;

    #[test]
    fn one_place_serves_where_one_can() {
        let sets = [vec![1, 2, 3], vec![3, 4], vec![0, 3]];
        assert_eq!(cheapest(&sets, |_| 1.0), BTreeSet::from([3]));
        // Two places outside of a loop are cheaper than one inside.
        let cost = |p: At| if p == 3 { 64.0 } else { 1.0 };
        assert_eq!(cheapest(&sets, cost), BTreeSet::from([0, 2, 4]));
        assert_eq!(cheapest(&[vec![5, 7], vec![]], |_| 1.0), BTreeSet::from([7]));
    }

    proptest! {
        #![proptest_config(testing::config(256))]

        #[test]
        fn as_cheap_as_the_best_of_all(
            sets in prop::collection::vec(prop::collection::vec(0usize..8, 1..4), 1..6),
            costs in prop::collection::vec(1u8..5, 8),
        ) {
            let cost = |p: At| f64::from(costs[p]);
            let hits = |places: &BTreeSet<At>| {
                sets.iter().all(|s| s.iter().any(|p| places.contains(p)))
            };
            let sum = |places: &BTreeSet<At>| places.iter().map(|p| cost(*p)).sum::<f64>();
            let found = cheapest(&sets, cost);
            prop_assert!(hits(&found));
            let all = (0u32..256).map(|bits| (0..8).filter(|i| bits >> i & 1 == 1).collect());
            let best = all.filter(hits).map(|p| sum(&p)).fold(f64::INFINITY, f64::min);
            prop_assert_eq!(sum(&found), best);
        }
    }
}
