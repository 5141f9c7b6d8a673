//! Granules of shared memory that all accesses so far took together, as one: a tile that is copied
//! and read as a whole is one region, however large it is. An access that takes a part of a region
//! divides it.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The elements of a view at a place: the list of elements by its address, the view, the place.
pub(crate) type Footprint = (usize, usize, i64);

/// What an access takes.
#[derive(Clone)]
struct Taken {
    granules: Vec<u32>,
    regions: Rc<[u32]>,
    /// How many regions there were.
    of: usize,
}

/// Regions of one block's memory; blocks of a cluster have the same.
#[derive(Clone)]
pub(crate) struct Regions {
    of: Vec<u32>,
    /// Granules of each.
    sizes: Vec<usize>,
    taken: FxHashMap<Footprint, Taken>,
}

/// Accesses that are remembered.
const MAX_TAKEN: usize = 1 << 18;

impl Regions {
    pub(crate) fn new(granules: usize) -> Self {
        Regions { of: vec![0; granules], sizes: vec![granules], taken: FxHashMap::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The region of a granule, whole or not.
    #[inline]
    pub(crate) fn of(&self, granule: usize) -> Option<usize> {
        self.of.get(granule).map(|r| *r as usize)
    }

    /// The region of a granule, if it is no more than that.
    #[inline]
    pub(crate) fn alone(&self, granule: usize) -> Option<u32> {
        let region = *self.of.get(granule)?;
        (*self.sizes.get(region as usize)? == 1).then_some(region)
    }

    /// The regions that an access takes, if it has been made before.
    pub(crate) fn known(&mut self, footprint: Footprint) -> Option<Rc<[u32]>> {
        let n = self.sizes.len();
        let taken = self.taken.get_mut(&footprint)?;
        if taken.of != n {
            // Nothing but whole regions, though these may have been divided.
            let mut all: Vec<u32> =
                taken.granules.iter().filter_map(|g| self.of.get(*g as usize).copied()).collect();
            all.sort_unstable();
            all.dedup();
            (taken.regions, taken.of) = (all.into(), n);
        }
        Some(Rc::clone(&taken.regions))
    }

    /// The regions that granules are, and which of them have been divided off: from which, which.
    pub(crate) fn take(
        &mut self,
        footprint: Option<Footprint>,
        mut granules: Vec<u32>,
    ) -> (Rc<[u32]>, Vec<(usize, usize)>) {
        granules.sort_unstable();
        granules.dedup();
        let mut by: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for g in &granules {
            if let Some(region) = self.of.get(*g as usize) {
                by.entry(*region).or_default().push(*g);
            }
        }
        let (mut regions, mut splits) = (vec![], vec![]);
        for (region, part) in by {
            let size = &mut self.sizes[region as usize];
            if *size == part.len() {
                regions.push(region);
                continue;
            }
            *size -= part.len();
            let new = self.sizes.len() as u32;
            part.iter().for_each(|g| self.of[*g as usize] = new);
            self.sizes.push(part.len());
            splits.push((region as usize, new as usize));
            regions.push(new);
        }
        let regions: Rc<[u32]> = regions.into();
        if let Some(footprint) = footprint.filter(|_| self.taken.len() < MAX_TAKEN) {
            let of = self.sizes.len();
            self.taken.insert(footprint, Taken { granules, regions: Rc::clone(&regions), of });
        }
        (regions, splits)
    }
}
