//! Provides the random numbers of random schedules ([`Dice`]), and two of their uses. Before a
//! statement of a converged set (threads that execute together), some of its warps may fall behind,
//! or a bulk copy may arrive early. `schedule.rs` draws which set runs next. A program that is
//! correct only under the order of the text may fail under random schedules.
//!
//! [`elected_lane`] chooses the lane of `.elect()`: the last one without a random schedule, and
//! never the first one.
//!
//! Invariant: a schedule depends on the seed and the cluster's first block only; the elected lane
//! depends on the seed only.

use super::Runner;
use super::converged::ConvergedSet;
use crate::inputs::{GOLDEN, mix};

/// Lanes of a warp.
const LANES: usize = 32;

/// A sequence of random numbers.
pub(super) struct Dice(u64);

impl Dice {
    /// The sequence of a seed for a block.
    pub(super) fn new(seed: u64, block: i64) -> Self {
        Dice(mix(seed ^ mix(block as u64)))
    }

    /// A random number below `n`.
    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(GOLDEN);
        (mix(self.0) % n.max(1) as u64) as usize
    }
}

/// The lane that `.elect()` selects in every warp. The hardware always selects the same lane, but
/// does not specify which one (PTX ISA, Parallel Synchronization and Communication Instructions:
/// elect.sync). The simulator never selects the first lane, to find programs that rely on it: it
/// selects the last lane by default, and any other lane under a random schedule.
pub(crate) fn elected_lane(schedule: Option<u64>) -> usize {
    schedule.map_or(LANES - 1, |seed| 1 + Dice::new(seed, i64::MIN).below(LANES - 1))
}

impl<'k> Runner<'k> {
    /// Before the next statement of a set, may let some of its warps fall behind, or a copy arrive
    /// early.
    pub(super) fn disturb(&mut self, set: &mut ConvergedSet<'k>) {
        let Some(dice) = &mut self.dice else { return };
        let warps = set.mask().warps();
        if warps.count_ones() > 1 && dice.below(4) == 0 {
            let kept = warps & (dice.below(1 << 16) | dice.below(1 << 16) << 16) as u32;
            if kept != 0
                && kept != warps
                && let Some(mut other) = set.part(warps & !kept)
            {
                // `put` would reconverge the set at once, so it goes to the list directly.
                other.loops.clone_from(&self.env.loops);
                self.converged.push(other);
            }
        }
        let Some(dice) = &mut self.dice else { return };
        if !self.flying.is_empty() && dice.below(8) == 0 {
            let i = dice.below(self.flying.len());
            self.deliver(i);
        }
    }
}
