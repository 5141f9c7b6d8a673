//! Defines [`Region`], the part of a tensor on which a meaning is evaluated. A region is the
//! product of a set of indices for each mode. Tiles, rows, and intersections of selected rows and
//! columns are regions. To compare a part of an output, only the elements that it needs are
//! computed. [`cover`] finds few regions that contain given elements.

use std::sync::Arc;

/// Indices of a mode, ascending and distinct.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// All indices below the extent.
    Whole(i64),
    /// A list of indices.
    Some(Arc<[i64]>),
}

impl Axis {
    /// An axis of these indices, in any order.
    #[must_use]
    pub fn of(mut list: Vec<i64>) -> Self {
        list.sort_unstable();
        list.dedup();
        Axis::Some(list.into())
    }

    /// The number of indices.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Axis::Whole(n) => usize::try_from(*n).unwrap_or(0),
            Axis::Some(list) => list.len(),
        }
    }

    /// Whether the axis has no index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The index at a position.
    #[must_use]
    pub fn at(&self, i: usize) -> i64 {
        match self {
            Axis::Whole(_) => i as i64,
            Axis::Some(list) => list.get(i).copied().unwrap_or(0),
        }
    }

    /// The position of an index, if the axis has it.
    fn position(&self, index: i64) -> Option<usize> {
        match self {
            Axis::Whole(n) => (0..*n).contains(&index).then_some(index as usize),
            Axis::Some(list) => list.binary_search(&index).ok(),
        }
    }

    fn union(&self, other: &Axis) -> Axis {
        match (self, other) {
            (a, b) if a == b => a.clone(),
            (Axis::Whole(n), _) | (_, Axis::Whole(n)) => Axis::Whole(*n),
            (Axis::Some(a), Axis::Some(b)) => Axis::of(a.iter().chain(b.iter()).copied().collect()),
        }
    }

    /// About `n` of the indices, evenly spread, with the first and the last.
    fn thinned(&self, n: usize) -> Axis {
        let (len, n) = (self.len(), n.max(1));
        if len <= n {
            return self.clone();
        }
        let last = (n - 1).max(1);
        Axis::of((0..n).map(|i| self.at(i * (len - 1) / last)).collect())
    }

    /// The first and the second half of the indices.
    fn halves(&self) -> (Axis, Axis) {
        let (len, middle) = (self.len(), self.len() / 2);
        let part = |range: std::ops::Range<usize>| Axis::of(range.map(|i| self.at(i)).collect());
        (part(0..middle), part(middle..len))
    }
}

/// A region: one axis for each mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Region {
    /// The axes in the order of the modes; the first mode varies fastest.
    pub axes: Vec<Axis>,
}

impl Region {
    /// The region of all elements.
    #[must_use]
    pub fn whole(modes: &[i64]) -> Self {
        Region { axes: modes.iter().map(|n| Axis::Whole(*n)).collect() }
    }

    /// The number of elements.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.axes.iter().fold(1u64, |p, a| p.saturating_mul(a.len() as u64))
    }

    /// The smallest region that contains both regions.
    #[must_use]
    pub fn union(&self, other: &Region) -> Region {
        Region { axes: self.axes.iter().zip(&other.axes).map(|(a, b)| a.union(b)).collect() }
    }

    /// A region of about `most` elements, thinned evenly along the modes with the most indices.
    #[must_use]
    pub fn thinned(&self, most: u64) -> Region {
        let mut out = self.clone();
        while out.size() > most.max(1) {
            let longest = (0..out.axes.len()).max_by_key(|i| out.axes[*i].len());
            let Some(i) = longest.filter(|i| out.axes[*i].len() > 1) else { return out };
            let rest = (out.size() / out.axes[i].len() as u64).max(1);
            let kept = (most / rest).max(1) as usize;
            out.axes[i] = out.axes[i].thinned(kept.min(out.axes[i].len() - 1));
        }
        out
    }

    /// The two halves of the region along a mode of several indices.
    #[must_use]
    pub fn halves_along(&self, mode: usize) -> Option<(Region, Region)> {
        let axis = self.axes.get(mode).filter(|a| a.len() > 1)?;
        let (first, second) = axis.halves();
        let with = |axis: Axis| {
            let mut out = self.clone();
            out.axes[mode] = axis;
            out
        };
        Some((with(first), with(second)))
    }

    /// The element numbers of the region, in order, for a tensor of these modes.
    pub fn elements<'r>(&'r self, modes: &'r [i64]) -> impl Iterator<Item = i64> + 'r {
        let n = usize::try_from(self.size()).unwrap_or(0);
        // Elements that differ only in the first index are consecutive.
        let first = self.axes.first();
        let run = first.map_or(1, Axis::len).max(1);
        (0..n).step_by(run).flat_map(move |i| {
            let start = self.element(modes, i) - first.map_or(0, |axis| axis.at(0));
            (0..run).map(move |i| start.saturating_add(first.map_or(0, |axis| axis.at(i))))
        })
    }

    /// The element number in a tensor of these modes, for a position in the region.
    #[must_use]
    pub fn element(&self, modes: &[i64], i: usize) -> i64 {
        let (mut rest, mut at, mut weight) = (i, 0i64, 1i64);
        for (axis, n) in self.axes.iter().zip(modes) {
            let len = axis.len().max(1);
            at = at.saturating_add(axis.at(rest % len).saturating_mul(weight));
            rest /= len;
            weight = weight.saturating_mul(*n);
        }
        at
    }

    /// For each axis of `wanted`, the positions of its indices in this region; an axis of one index
    /// is broadcast.
    fn positions(&self, wanted: &Region) -> Vec<Vec<usize>> {
        let of = |(own, theirs): (&Axis, &Axis)| -> Vec<usize> {
            let n = theirs.len();
            match own.len() {
                1 => vec![0; n],
                _ => (0..n).map(|i| own.position(theirs.at(i)).unwrap_or(0)).collect(),
            }
        };
        self.axes.iter().zip(&wanted.axes).map(of).collect()
    }

    /// The items at the elements of `wanted`, which lie in this region, from the items of this
    /// region. Axes of one index are broadcast.
    pub(super) fn gather(&self, from: &[f64], wanted: &Region) -> Vec<f64> {
        if self == wanted {
            return from.to_vec();
        }
        let tables = self.positions(wanted);
        let mut weights = Vec::with_capacity(self.axes.len());
        let mut weight = 1usize;
        for axis in &self.axes {
            weights.push(weight);
            weight *= axis.len().max(1);
        }
        let n = tables.iter().fold(1usize, |p, t| p.saturating_mul(t.len()));
        let mut out = Vec::with_capacity(n);
        let Some((inner, outer)) = tables.split_first() else { return from.to_vec() };
        if n == 0 {
            return out;
        }
        let mut place = vec![0usize; outer.len()];
        loop {
            let base: usize =
                outer.iter().zip(&place).zip(&weights[1..]).map(|((t, p), w)| t[*p] * w).sum();
            out.extend(inner.iter().map(|i| from.get(base + i).copied().unwrap_or(0.0)));
            // The next combination of the outer modes.
            let mut mode = 0;
            loop {
                let Some(p) = place.get_mut(mode) else { return out };
                *p += 1;
                if *p < outer[mode].len() {
                    break;
                }
                *p = 0;
                mode += 1;
            }
        }
    }
}

/// Regions that together contain these elements of a tensor: few, and with few other elements.
/// `elements` are ascending.
#[must_use]
pub fn cover(modes: &[i64], elements: &[i64]) -> Vec<Region> {
    let mut out = Vec::new();
    let mut todo = vec![elements];
    // The halves of an ascending list usually are parts of the slowest mode.
    while let Some(list) = todo.pop() {
        if list.is_empty() {
            continue;
        }
        let hull = hull(modes, list);
        if hull.size() <= 2 * list.len() as u64 || list.len() == 1 {
            out.push(hull);
            continue;
        }
        let (first, second) = list.split_at(list.len() / 2);
        todo.push(second);
        todo.push(first);
    }
    out
}

/// The smallest region with all of these elements.
fn hull(modes: &[i64], elements: &[i64]) -> Region {
    let mut lists: Vec<Vec<i64>> = modes.iter().map(|_| Vec::new()).collect();
    let mut limits = vec![4096; modes.len()];
    for e in elements {
        let mut rest = *e;
        for (list, n) in lists.iter_mut().zip(modes) {
            let c = rest % (*n).max(1);
            rest /= (*n).max(1);
            if list.last() != Some(&c) {
                list.push(c);
            }
        }
        // Short lists stay short; other lists are deduplicated when their length has doubled.
        for (list, limit) in lists.iter_mut().zip(&mut limits) {
            if list.len() > *limit {
                list.sort_unstable();
                list.dedup();
                *limit = (2 * list.len()).max(4096);
            }
        }
    }
    Region { axes: lists.into_iter().map(Axis::of).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_one_region_and_scattered_elements_few() {
        let modes = [8, 16];
        let tile: Vec<i64> = (4..8).flat_map(|c| (2..6).map(move |r| r + 8 * c)).collect();
        let regions = cover(&modes, &tile);
        assert_eq!(regions.len(), 1);
        assert_eq!(regions[0].elements(&modes).collect::<Vec<_>>(), tile);
        // Two tiles in opposite corners.
        let far: Vec<i64> = (12..16).flat_map(|c| (6..8).map(move |r| r + 8 * c)).collect();
        let both: Vec<i64> =
            (0..2).chain((8..10).chain(16..18)).chain(far.iter().copied()).collect();
        let regions = cover(&modes, &both);
        let mut covered: Vec<i64> =
            regions.iter().flat_map(|r| r.elements(&modes).collect::<Vec<_>>()).collect();
        covered.sort_unstable();
        covered.dedup();
        assert!(both.iter().all(|e| covered.contains(e)) && covered.len() <= 2 * both.len());
    }

    #[test]
    fn parts_are_gathered_and_broadcast() {
        let modes = [4, 3];
        let whole = Region::whole(&modes);
        let numbers: Vec<f64> = (0..12).map(f64::from).collect();
        let part = Region { axes: vec![Axis::of(vec![3, 1]), Axis::of(vec![2])] };
        assert_eq!(whole.gather(&numbers, &part), [9.0, 11.0]);
        let row = Region { axes: vec![Axis::Whole(1), Axis::Whole(3)] };
        let spread = row.gather(&[10.0, 20.0, 30.0], &part);
        assert_eq!(spread, [30.0, 30.0]);
        let scalar = Region::default();
        assert_eq!(scalar.gather(&[5.0], &Region::default()), [5.0]);
    }

    #[test]
    fn gathers_from_empty_modes_are_empty() {
        let of = |modes: &[i64]| Region::whole(modes);
        let some = Region { axes: vec![Axis::of(vec![1, 2]), Axis::of(vec![])] };
        assert_eq!(of(&[4, 0]).gather(&[], &some), [0.0; 0]);
        assert_eq!(of(&[0, 3]).gather(&[], &of(&[0, 1])), [0.0; 0]);
        assert_eq!(of(&[4, 0]).elements(&[4, 0]).count(), 0);
    }

    #[test]
    fn thinning_keeps_ends_and_bounds() {
        let region = Region::whole(&[1000, 8]).thinned(100);
        assert!(region.size() <= 100 && region.size() >= 50, "{}", region.size());
        assert_eq!(region.axes[0].at(0), 0);
        assert_eq!(region.axes[0].at(region.axes[0].len() - 1), 999);
        let (a, b) = Region::whole(&[5, 2]).halves_along(1).unwrap();
        assert_eq!((a.size(), b.size()), (5, 5));
        assert!(Region::whole(&[1, 1]).halves_along(0).is_none());
    }
}
