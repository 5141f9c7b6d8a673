//! Defines [`Mask`], a set of threads of a block with one bit for each thread. The threads that
//! execute a statement together are such a set.

/// A set of threads of a block: the lanes of up to 32 warps, one bit each.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mask(pub [u32; 32]);

impl Mask {
    /// The empty mask.
    pub(crate) const NONE: Mask = Mask([0; 32]);

    /// The first `n` threads.
    pub(crate) fn first(n: usize) -> Self {
        let mut mask = Mask::NONE;
        (0..n.min(1024)).for_each(|t| mask.insert(t));
        mask
    }

    /// Adds a thread below 1024.
    pub(crate) fn insert(&mut self, thread: usize) {
        self.0[thread / 32] |= 1 << (thread % 32);
    }

    /// Whether the set contains a thread.
    pub(crate) fn has(&self, thread: usize) -> bool {
        self.0[thread / 32] >> (thread % 32) & 1 == 1
    }

    /// The threads in both sets.
    #[must_use]
    pub(crate) fn and(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] & other.0[w]))
    }

    /// The threads in this set but not in the other.
    #[must_use]
    pub(crate) fn without(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] & !other.0[w]))
    }

    /// The threads in either set.
    #[must_use]
    pub(crate) fn or(&self, other: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] | other.0[w]))
    }

    /// The threads of some warps, which are given as one bit each.
    #[must_use]
    pub(crate) fn of_warps(&self, warps: u32) -> Mask {
        Mask(std::array::from_fn(|w| if warps >> w & 1 == 1 { self.0[w] } else { 0 }))
    }

    /// The warps of the threads, one bit each.
    pub(crate) fn warps(&self) -> u32 {
        (0..32).fold(0, |bits, w| bits | u32::from(self.0[w] != 0) << w)
    }

    /// Whether the set is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }

    /// Whether this set contains all threads of the other.
    pub(crate) fn contains(&self, other: &Mask) -> bool {
        other.without(self).is_empty()
    }

    /// The threads, ascending.
    pub(crate) fn threads(&self) -> impl Iterator<Item = usize> + '_ {
        (0..32).flat_map(move |w| {
            let mut bits = self.0[w];
            std::iter::from_fn(move || {
                let lane = bits.trailing_zeros() as usize;
                bits &= bits.checked_sub(1)?;
                Some(w * 32 + lane)
            })
        })
    }
}
