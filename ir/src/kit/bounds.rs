//! Defines [`Bounds`], limits on the size, rank, nesting and extents of the layouts that tests
//! generate, for libraries that support small or flat layouts only.
//!
//! Invariant: all bounds admit the layout `1:0`, which has one coordinate and no nesting.

use std::ops::RangeInclusive;

/// The default extents. Simple ones come first, because shrinking moves to the front.
const EXTENTS: [i64; 16] = [1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 7, 8, 8, 12, 16, 32];

/// The maximum size of operands. The results of operations on two such operands can still be
/// enumerated.
pub const MAX_SIZE: i64 = 1024;

/// Bounds of the layouts that strategies draw. A number stands for bounds on the size alone.
///
/// The other operands of an operation (an inner layout, a tile, a shape) are derived from a layout.
/// Their extents divide the extents of the layout and may be outside of `extents`. Thread-value
/// layouts have two modes, whatever `rank` is.
///
/// ```
/// use carbyne_ir::kit::{Bounds, strategies};
/// use proptest::prelude::*;
///
/// // A library of matrices: two modes at most, not nested.
/// let matrices = Bounds { rank: 2, depth: 1, extents: 2..=64, ..Bounds::default() };
/// proptest!(|(a in strategies::layout(&matrices))| {
///     prop_assert!(a.shape.rank() <= 2 && a.shape.depth() <= 1);
/// });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Bounds {
    /// Maximum number of coordinates of a layout, up to [`MAX_SIZE`]. Layouts of the strategy
    /// `large` ignore it.
    pub size: i64,
    /// Maximum number of modes of the outermost tuple.
    pub rank: usize,
    /// Maximum nesting: 0 is a number, 1 a tuple of numbers.
    pub depth: usize,
    /// The extents of leaves, unless `size` requires smaller ones.
    pub extents: RangeInclusive<i64>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { size: 192, rank: 8, depth: 3, extents: 1..=32 }
    }
}

impl From<i64> for Bounds {
    fn from(size: i64) -> Self {
        Bounds { size, ..Bounds::default() }
    }
}

impl From<&Bounds> for Bounds {
    fn from(bounds: &Bounds) -> Self {
        bounds.clone()
    }
}

impl Bounds {
    /// These bounds with a size of at most `size`.
    #[must_use]
    pub fn at_most(&self, size: i64) -> Self {
        Bounds { size: self.size.min(size), ..self.clone() }
    }

    /// The size, limited to sizes that can be enumerated.
    pub(crate) fn points(&self) -> i64 {
        self.size.clamp(1, MAX_SIZE)
    }

    /// Maximum number of leaves of a drawn layout: five, or more if the rank requires it.
    pub(crate) fn leaves(&self) -> usize {
        match (self.depth, self.rank) {
            (0, _) => 1,
            (1, rank) => rank.clamp(1, 5.max(rank.saturating_sub(3))),
            (_, rank) => 5.max(rank.saturating_sub(3)),
        }
    }

    /// The extent of a leaf for a choice; simple extents first.
    pub(crate) fn extent(&self, choice: u8) -> i64 {
        let (low, high) = (*self.extents.start().max(&1), *self.extents.end());
        if (low, high) == (1, 32) {
            return EXTENTS[usize::from(choice) % EXTENTS.len()];
        }
        let high = high.max(low);
        let mut known: Vec<i64> = EXTENTS.to_vec();
        known.extend([low, low + (high - low) / 2, high]);
        known.extend((0..6).map(|k| low.saturating_mul(1 << k)));
        known.extend((0..6).map(|k| 64i64 << k));
        known.retain(|extent| (low..=high).contains(extent));
        known.sort_unstable();
        known.dedup();
        // Both ends are always among them.
        let last = known.len() - 1;
        let at = usize::from(choice % 16);
        if last < 16 { known[at % (last + 1)] } else { known[at * last / 15] }
    }
}
