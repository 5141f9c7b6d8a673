//! Defines [`Mask`], a set of threads of a block as a bit mask, for example the threads that
//! execute a statement.

/// A set of threads of a block, one bit each.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub(crate) struct Mask(pub(crate) [u32; 32]);

impl Mask {
    pub(crate) fn first(n: usize) -> Self {
        let mut mask = Mask::default();
        (0..n.min(1024)).for_each(|t| mask.insert(t));
        mask
    }
    #[inline]
    /// One thread.
    pub(crate) fn of(t: usize) -> Self {
        let mut mask = Mask::default();
        mask.insert(t);
        mask
    }

    pub(crate) fn insert(&mut self, t: usize) {
        if let Some(word) = self.0.get_mut(t / 32) {
            *word |= 1 << (t % 32);
        }
    }
    #[inline]
    pub(crate) fn has(&self, t: usize) -> bool {
        self.0.get(t / 32).is_some_and(|w| w >> (t % 32) & 1 == 1)
    }
    pub(crate) fn and(&self, o: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] & o.0[w]))
    }
    pub(crate) fn or(&self, o: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] | o.0[w]))
    }
    pub(crate) fn without(&self, o: &Mask) -> Mask {
        Mask(std::array::from_fn(|w| self.0[w] & !o.0[w]))
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|w| *w == 0)
    }
    pub(crate) fn contains(&self, o: &Mask) -> bool {
        o.without(self).is_empty()
    }
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|w| w.count_ones() as usize).sum()
    }
    /// The warps with a thread in the set, one bit each.
    pub(crate) fn warps(&self) -> u32 {
        (0..32).fold(0, |bits, w| bits | u32::from(self.0[w] != 0) << w)
    }
    pub(crate) fn of_warps(&self, warps: u32) -> Mask {
        Mask(std::array::from_fn(|w| if warps >> w & 1 == 1 { self.0[w] } else { 0 }))
    }
    /// For each warp with a thread in the set, its first thread and a mask of its lanes.
    pub(crate) fn by_warp(&self) -> impl Iterator<Item = (usize, u32)> {
        let warps = self.0.into_iter().enumerate().filter(|(_, lanes)| *lanes != 0);
        warps.map(|(w, lanes)| (w * 32 + lanes.trailing_zeros() as usize, lanes))
    }
    /// The threads of `all` that are absent from the set. Only windows of `warps` whole warps count
    /// that have a thread in the set.
    pub(crate) fn absent(&self, all: &Mask, warps: usize) -> Mask {
        let windows = (0..32).step_by(warps.max(1)).map(|at| (((1u64 << warps) - 1) << at) as u32);
        let there = windows.filter(|window| self.warps() & window != 0).fold(0, |a, b| a | b);
        all.of_warps(there).without(self)
    }
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
