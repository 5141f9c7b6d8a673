//! Times several kernels, and computes the ratios of their times. A turn launches each kernel once,
//! in random order, so that changes of the clock and of the temperature affect all of them
//! ([`Clock::burst`]). On request, each kernel is also launched alone for some seconds, where only
//! the second half of the launches counts ([`Clock::sustained`]). A [`Ratio`] holds the ratio of
//! the medians and the quartiles of the ratios within each turn.

use carbyne_launch::{Buffer, Fallible, Gpu, Timing, Work};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use std::time::Duration;

/// The environment of timings.
pub(in crate::commands) struct Clock<'g> {
    gpu: &'g Gpu,
    /// A buffer larger than the L2 cache.
    flush: Buffer,
    /// The random generator for the order in each turn.
    order: Xoshiro256PlusPlus,
    patience: Duration,
}

/// The times of a kernel in seconds, one list per round, in the order of measurement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::commands) struct Times {
    /// Launches in turns with other kernels.
    pub(in crate::commands) burst: Vec<Vec<f64>>,
    /// Launches of this kernel alone without a pause; only the second half of the time.
    pub(in crate::commands) sustained: Vec<Vec<f64>>,
}

impl<'g> Clock<'g> {
    /// A clock with random orders from this seed.
    pub(in crate::commands) fn new(gpu: &'g Gpu, seed: u64, patience: Duration) -> Fallible<Self> {
        let (flush, order) = (gpu.flush_buffer()?, Xoshiro256PlusPlus::seed_from_u64(seed));
        Ok(Clock { gpu, flush, order, patience })
    }

    /// Times `launches` turns. In a turn, each kernel is launched once; the order is random in each
    /// turn. The first few turns do not count.
    pub(in crate::commands) fn burst(
        &mut self,
        works: &[&dyn Work],
        launches: usize,
        times: &mut [Times],
    ) -> Fallible<()> {
        const WARM: usize = 3;
        let mut order: Vec<usize> = vec![];
        let mut turn: Vec<usize> = (0..works.len()).collect();
        for _ in 0..WARM + launches {
            turn.shuffle(&mut self.order);
            order.extend(&turn);
        }
        let all = order.iter().map(|i| works[*i]);
        let seconds = self.gpu.time_in_turn(all, &self.flush, self.patience)?;
        let mut round: Vec<Vec<f64>> = vec![vec![]; works.len()];
        for (i, s) in order.into_iter().zip(seconds).skip(WARM * works.len()) {
            round[i].push(s);
        }
        times.iter_mut().zip(round).for_each(|(times, round)| times.burst.push(round));
        Ok(())
    }

    /// Times launches of one kernel without a pause for this number of seconds.
    pub(in crate::commands) fn sustained(
        &mut self,
        work: &dyn Work,
        seconds: u32,
        times: &mut Times,
    ) -> Fallible<()> {
        let long = Duration::from_secs(seconds.into());
        let mut all = self.gpu.time_for(work, long, &self.flush, self.patience)?;
        let half = all.len() / 2;
        times.sustained.push(all.split_off(half));
        Ok(())
    }
}

/// The times of all rounds together.
fn together(rounds: &[Vec<f64>]) -> Timing {
    Timing::new(rounds.concat())
}

/// The speed of one kernel relative to another.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(in crate::commands) struct Ratio {
    /// The ratio of the medians of all launches.
    pub(in crate::commands) medians: f64,
    /// The quartiles of the ratios in each turn.
    pub(in crate::commands) quartiles: (f64, f64),
}

impl Times {
    /// All launches in turns with other kernels.
    pub(in crate::commands) fn all(&self) -> Timing {
        together(&self.burst)
    }

    /// The median without a pause, if measured.
    pub(in crate::commands) fn sustained(&self) -> Option<f64> {
        let all = together(&self.sustained);
        (all.n_launches() > 0).then(|| all.median())
    }

    /// The time of the other kernel divided by the time of this one.
    pub(in crate::commands) fn ratio(&self, other: &Times) -> Ratio {
        let pairs = other.burst.iter().flatten().zip(self.burst.iter().flatten());
        let of_turns = Timing::new(pairs.map(|(other, own)| part(*other, *own)).collect());
        Ratio {
            medians: part(other.all().median(), self.all().median()),
            quartiles: (of_turns.quantile(0.25), of_turns.quantile(0.75)),
        }
    }

    /// The ratio of the medians without a pause.
    pub(in crate::commands) fn sustained_ratio(&self, other: &Times) -> Option<f64> {
        Some(part(other.sustained()?, self.sustained()?))
    }
}

fn part(of: f64, whole: f64) -> f64 {
    if whole > 0.0 { of / whole } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_launches_of_one_turn() {
        let of = |burst: &[f64], sustained: &[f64]| Times {
            burst: burst.chunks(3).map(<[f64]>::to_vec).collect(),
            sustained: sustained.chunks(2).map(<[f64]>::to_vec).collect(),
        };
        // The GPU becomes slower, equally for both.
        let own = of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[]);
        let other = of(&[2.0, 4.0, 6.0, 8.0, 10.0, 12.0], &[3.0, 5.0]);
        let ratio = own.ratio(&other);
        assert_eq!((ratio.medians, ratio.quartiles), (2.0, (2.0, 2.0)));
        assert_eq!(own.sustained_ratio(&other), None);
        assert_eq!(other.sustained(), Some(4.0));
        assert_eq!(Times::default().ratio(&other).medians, 0.0);
    }
}
