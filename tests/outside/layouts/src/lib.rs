//! Implements flat layouts with evaluation, coalescing and complements, as an example of a library
//! that others might write and test with carbyne.

/// A layout: a list of extents and strides, the first of which varies fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    leaves: Vec<(i64, i64)>,
}

impl Flat {
    /// The layout of these extents and strides.
    pub fn new(leaves: impl Into<Vec<(i64, i64)>>) -> Self {
        Flat { leaves: leaves.into() }
    }

    /// Extents and strides.
    pub fn leaves(&self) -> &[(i64, i64)] {
        &self.leaves
    }

    /// The index of a coordinate.
    pub fn at(&self, mut i: i64) -> i64 {
        let mut index = 0;
        for &(extent, stride) in &self.leaves {
            index += i % extent * stride;
            i /= extent;
        }
        index
    }

    /// An equal function with as few leaves as possible.
    pub fn coalesce(&self) -> Flat {
        let mut merged: Vec<(i64, i64)> = vec![];
        for &(extent, stride) in self.leaves.iter().filter(|leaf| leaf.0 != 1) {
            match merged.last_mut() {
                Some(last) if last.0 * last.1 == stride => last.0 *= extent,
                _ => merged.push((extent, stride)),
            }
        }
        Flat { leaves: merged }
    }

    /// A layout that fills the gaps up to `cotarget`. `None` if leaves overlap.
    pub fn complement(&self, cotarget: i64) -> Option<Flat> {
        let mut leaves = self.leaves.clone();
        leaves.retain(|&(extent, stride)| extent > 1 && stride != 0);
        leaves.sort_by_key(|leaf| leaf.1);
        let (mut gaps, mut reach) = (vec![], 1);
        for (extent, stride) in leaves {
            if stride % reach != 0 {
                return None;
            }
            gaps.push((stride / reach, reach));
            reach = extent * stride;
        }
        gaps.push(((cotarget + reach - 1) / reach, reach));
        Some(Flat { leaves: gaps }.coalesce())
    }
}
