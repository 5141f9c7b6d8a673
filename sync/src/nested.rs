//! Follows a kernel with two nested loops of unknown trip count for all values of both. For each
//! inner trip count, it follows the kernel for all outer trip counts. It ends when an inner trip
//! count represents all larger ones, or when none is left. Several host threads follow different
//! inner trip counts.
//!
//! The results are merged in the order of the trip counts. So the report does not depend on the
//! number of host threads.

use crate::expr::{Exprs, Given};
use crate::follow::{Follower, LARGE};
use crate::gcd::gcd;
use crate::pairs::Pairs;
use crate::plan::{Plan, Refusal};
use crate::steps::Nest;
use crate::trip_counts::{Number, TripCounts};
use carbyne_atoms::AtomTable;
use carbyne_ir::parallel;
use carbyne_ir::program::{BufferId, Program, SpecId};
use std::collections::{BTreeSet, HashMap};

/// The most host threads that follow inner trip counts.
const MAX_THREADS: usize = 8;
/// The longest distance between inner trip counts that behave alike.
const MAX_DISTANCE: i64 = 1 << 12;

/// A kernel with free trip counts. Each host thread makes its own expressions and its own plan from
/// this.
#[derive(Copy, Clone)]
pub(crate) struct Counted<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: SpecId,
    pub(crate) atoms: &'a AtomTable,
    pub(crate) owned: &'a BTreeSet<BufferId>,
    pub(crate) trip_counts: &'a TripCounts,
    /// The number of threads of a block, and of blocks of a cluster.
    pub(crate) n_threads: usize,
    pub(crate) cluster: i64,
    /// The most accesses that are followed.
    pub(crate) accesses: u64,
}

impl<'a> Counted<'a> {
    pub(crate) fn exprs(&self) -> Exprs<'a> {
        Exprs::new(self.program, HashMap::new(), self.n_threads, false)
            .counted(self.trip_counts.clone())
    }

    pub(crate) fn plan(&self, exprs: &Exprs<'_>) -> Result<Plan, Refusal> {
        Plan::new(exprs, self.kernel, self.atoms, self.owned)
    }

    /// Follows a kernel for all values of two trip counts: for each value of the inner one, all
    /// values of the outer one, until iterations can be inserted into all inner loops.
    ///
    /// `again_from` is the inner trip count from which another elected lane is tried, until one
    /// trip count represents larger ones.
    pub(crate) fn nested(
        &self,
        follower: &mut Follower<'_>,
        exprs: &Exprs<'_>,
        (outer, inner): (Number, Number),
        elected: usize,
        again_from: &mut Option<i64>,
    ) -> Option<()> {
        // The number of iterations after which an inner loop repeats.
        let many = inner.most.unwrap_or(LARGE).min(inner.least.saturating_add(LARGE));
        let given = Given { id: Some(inner.id), value: many, by: 0 };
        let once = Given { id: Some(outer.id), value: 1, by: 0 };
        follower.wants_shortest = true;
        let exprs = exprs.with(Nest::Inner, given).with(Nest::Outer, once);
        let strides = follower.follow(&exprs, 0, elected);
        follower.wants_shortest = false;
        let distance = strides?.iter().try_fold(1, |all: i64, by| {
            let least = all.checked_mul(by / gcd(all, *by).max(1));
            least.filter(|n| (1..=MAX_DISTANCE).contains(n))
        })?;
        let first = again_from.unwrap_or(inner.least);
        let last = first.saturating_add(4 * distance + 16).min(inner.most.unwrap_or(i64::MAX));
        let enough = if again_from.is_some() { 1 } else { distance };
        let cores = parallel::cores().min(MAX_THREADS);
        let (mut alike, mut values) = (0, first..=last);
        loop {
            // Follows no more trip counts than may be needed.
            let left = if alike > 0 || enough == 1 { enough - alike } else { i64::MAX };
            let some: Vec<i64> =
                values.by_ref().take(left.min(2 * cores as i64) as usize).collect();
            let of = |n: &i64| self.shown((outer, inner), *n, distance, elected);
            for shown in parallel::map(&some, cores, of) {
                let Shown { number, inserted, accesses, refused, pairs } = shown?;
                follower.pairs.append(pairs);
                follower.refused = follower.refused.or(refused);
                follower.left = follower.left.checked_sub(accesses)?;
                alike = if inserted? { alike + 1 } else { 0 };
                if alike > 0 {
                    again_from.get_or_insert(number);
                }
                if alike == enough {
                    return Some(());
                }
            }
            if some.is_empty() {
                again_from.get_or_insert(inner.least.saturating_add(2 * distance));
                return inner.most.filter(|most| *most <= last).map(drop);
            }
        }
    }

    /// Follows all outer trip counts for one inner trip count.
    fn shown(
        &self,
        (outer, inner): (Number, Number),
        number: i64,
        distance: i64,
        elected: usize,
    ) -> Option<Shown> {
        let exprs = self.exprs();
        let plan = self.plan(&exprs).ok()?;
        let given = Given { id: Some(inner.id), value: number, by: distance };
        let mut follower =
            Follower::new(&plan, self.atoms, self.kernel, self.cluster, self.accesses);
        // After one distance of inner iterations, this number of outer iterations makes a whole
        // number of distances.
        let first = distance / number.max(1) + 1;
        follower.guess = Some((first as usize, distance / gcd(distance, number).max(1)));
        let followed = follower.numbers(&exprs.with(Nest::Inner, given), outer, elected);
        follower.pairs.restart();
        let inserted = followed.map(|()| follower.has_inserted);
        let accesses = self.accesses - follower.left;
        Some(Shown { number, inserted, accesses, refused: follower.refused, pairs: follower.pairs })
    }
}

/// The result for one inner trip count.
struct Shown {
    number: i64,
    /// Whether iterations were inserted into all inner loops; none if the kernel cannot be
    /// followed.
    inserted: Option<bool>,
    accesses: u64,
    refused: Option<[i64; 2]>,
    pairs: Pairs,
}
