//! Groups granules of shared memory into regions ([`Regions`]): sets of granules that every access
//! so far has touched as a whole. The machine records accesses once per region, which takes less
//! time than once per granule.
//!
//! A tile that is copied and read as a whole is one region, whatever its size. An access to a part
//! of a region splits the region.

use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The identity of an access: the address of its list of elements, the view, and the offset.
pub(crate) type Footprint = (usize, usize, i64);

/// The granules and regions of an access.
#[derive(Clone)]
struct Taken {
    granules: Vec<u32>,
    regions: Rc<[u32]>,
    /// The number of regions at that time.
    of: usize,
}

/// The regions of a block's shared memory. All blocks of a cluster have the same regions.
#[derive(Clone)]
pub(crate) struct Regions {
    of: Vec<u32>,
    /// The number of granules of each region.
    sizes: Vec<usize>,
    taken: FxHashMap<Footprint, Taken>,
}

/// The most accesses that are remembered.
const MAX_TAKEN: usize = 1 << 18;

impl Regions {
    pub(crate) fn new(granules: usize) -> Self {
        Regions { of: vec![0; granules], sizes: vec![granules], taken: FxHashMap::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.sizes.len()
    }

    /// The region of a granule.
    #[inline]
    pub(crate) fn of(&self, granule: usize) -> Option<usize> {
        self.of.get(granule).map(|r| *r as usize)
    }

    /// The region of a granule, if the region consists of this granule alone.
    #[inline]
    pub(crate) fn alone(&self, granule: usize) -> Option<u32> {
        let region = *self.of.get(granule)?;
        (*self.sizes.get(region as usize)? == 1).then_some(region)
    }

    /// The regions of an access, if it has been made before.
    pub(crate) fn known(&mut self, footprint: Footprint) -> Option<Rc<[u32]>> {
        let n = self.sizes.len();
        let taken = self.taken.get_mut(&footprint)?;
        if taken.of != n {
            // The access still covers whole regions, but some of them may have been split.
            let mut all: Vec<u32> =
                taken.granules.iter().filter_map(|g| self.of.get(*g as usize).copied()).collect();
            all.sort_unstable();
            all.dedup();
            (taken.regions, taken.of) = (all.into(), n);
        }
        Some(Rc::clone(&taken.regions))
    }

    /// The regions that granules form. Regions are split where needed; the result lists each split
    /// as (old region, new region).
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
