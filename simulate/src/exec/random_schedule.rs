//! Draws random schedules: which converged set runs next, where warps diverge, when bulk copies
//! arrive, and which lane `.elect()` selects. A program that is correct only under the order of the
//! text may fail under them.
//!
//! Invariant: a schedule depends on the seed and the cluster's first block only.

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
                //
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
