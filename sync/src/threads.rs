//! Sets of threads of a block, and thread tensors as groups of them.

use crate::expr::{Env, Exprs};
use carbyne_ir::program::ThreadsId;

/// Threads of a block, one bit each.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default, Hash)]
pub(crate) struct Mask(pub(crate) [u32; 32]);

impl Mask {
    pub(crate) fn first(n: usize) -> Self {
        let mut mask = Mask::default();
        (0..n.min(1024)).for_each(|t| mask.insert(t));
        mask
    }
    #[inline]
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
    /// The warps with a thread in it, one bit each.
    pub(crate) fn warps(&self) -> u32 {
        (0..32).fold(0, |bits, w| bits | u32::from(self.0[w] != 0) << w)
    }
    pub(crate) fn of_warps(&self, warps: u32) -> Mask {
        Mask(std::array::from_fn(|w| if warps >> w & 1 == 1 { self.0[w] } else { 0 }))
    }
    /// The first thread and the lanes of each warp that has any of them.
    pub(crate) fn by_warp(&self) -> impl Iterator<Item = (usize, u32)> {
        let warps = self.0.into_iter().enumerate().filter(|(_, lanes)| *lanes != 0);
        warps.map(|(w, lanes)| (w * 32 + lanes.trailing_zeros() as usize, lanes))
    }
    /// Threads that are absent, of these, in windows of so many whole warps of which some are there.
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

/// The groups of a thread tensor; the innermost level is a group.
#[derive(Debug)]
pub(crate) struct Groups {
    pub(crate) groups: Vec<Vec<u16>>,
    pub(crate) mask: Mask,
}

impl Groups {
    /// The groups at a statement, where this lane of every warp is elected.
    ///
    /// # Errors
    /// Why it is not known who they are.
    pub(crate) fn of(
        exprs: &Exprs<'_>,
        id: ThreadsId,
        env: &Env,
        elected: usize,
    ) -> Result<Groups, &'static str> {
        const OUTSIDE: &str = "its threads are none of the block";
        let program = exprs.program;
        let threads = &program.threads[id];
        let single = threads.each.is_some();
        let unknown = "its threads are not known";
        let first = match threads.elect.and_then(|of| program.threads[of].levels.last()) {
            Some(group) => {
                let group = exprs.layout(group).ok_or(unknown)?;
                let mut all: Vec<i64> = (0..group.size().min(1024)).map(|i| group.at(i)).collect();
                all.sort_unstable();
                all.get(elected.min(all.len().saturating_sub(1))).copied().unwrap_or(0)
            }
            None => 0,
        };
        let (mut outer, mut inner) = (vec![first], vec![0i64]);
        let last = threads.levels.len().checked_sub(1);
        for (depth, level) in threads.levels.iter().enumerate() {
            let layout = exprs.layout(level).ok_or(unknown)?;
            let list = if Some(depth) == last && !single { &mut inner } else { &mut outer };
            let size = layout.size();
            if !(1..=1024).contains(&size) || list.len() as i64 * size > 1024 {
                return Err(OUTSIDE);
            }
            *list = (0..size)
                .flat_map(|i| list.iter().map(move |o| (i, *o)))
                .map(|(i, o)| o.saturating_add(layout.at(i)))
                .collect();
        }
        let offset = exprs.value(threads.offset, env).same().ok_or(unknown)?;
        let (mut mask, mut groups) = (Mask::default(), Vec::with_capacity(outer.len()));
        for o in &outer {
            let mut group = Vec::with_capacity(inner.len());
            for i in &inner {
                let t = offset.saturating_add(*o).saturating_add(*i);
                let t = usize::try_from(t).ok().filter(|t| *t < exprs.n_threads);
                let t = t.filter(|t| !mask.has(*t)).ok_or(OUTSIDE)?;
                mask.insert(t);
                group.push(t as u16);
            }
            groups.push(group);
        }
        Ok(Groups { groups, mask })
    }
}
