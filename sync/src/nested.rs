//! Follows a kernel of nested loops for all inner numbers of turns, several of them at a time.
//!
//! An inner number does not depend on another one. Each is followed by itself, and results are
//! taken in the order of the numbers: a report does not depend on how many threads there are.

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

/// Threads that follow inner numbers.
const MAX_THREADS: usize = 8;
/// Longest distance between inner numbers of turns that are alike.
const MAX_DISTANCE: i64 = 1 << 12;

/// A kernel whose loops count their turns. Each thread that follows it makes its own expressions
/// and its own plan.
#[derive(Copy, Clone)]
pub(crate) struct Counted<'a> {
    pub(crate) program: &'a Program,
    pub(crate) kernel: SpecId,
    pub(crate) atoms: &'a AtomTable,
    pub(crate) owned: &'a BTreeSet<BufferId>,
    pub(crate) turns: &'a TripCounts,
    /// Threads of a block, and blocks of a cluster.
    pub(crate) n_threads: usize,
    pub(crate) cluster: i64,
    /// Accesses that are followed at most.
    pub(crate) accesses: u64,
}

impl<'a> Counted<'a> {
    pub(crate) fn exprs(&self) -> Exprs<'a> {
        Exprs::new(self.program, HashMap::new(), self.n_threads, false).counted(self.turns.clone())
    }

    pub(crate) fn plan(&self, exprs: &Exprs<'_>) -> Result<Plan, Refusal> {
        Plan::new(exprs, self.kernel, self.atoms, self.owned)
    }

    /// Follows a kernel for all values of two numbers of turns: for each value of the inner one for
    /// all of the outer one, until turns may be inserted into all inner loops.
    ///
    /// `again_from` is the inner number from which another lane is tried, until one stands for
    /// larger ones.
    pub(crate) fn nested(
        &self,
        follower: &mut Follower<'_>,
        exprs: &Exprs<'_>,
        (outer, inner): (Number, Number),
        elected: usize,
        again_from: &mut Option<i64>,
    ) -> Option<()> {
        // By how many turns an inner loop is alike.
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
            // No more than may be needed.
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

    /// Follows all outer numbers for one inner one.
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
        // Behind a distance of inner turns, so many outer ones make whole distances.
        let first = distance / number.max(1) + 1;
        follower.guess = Some((first as usize, distance / gcd(distance, number).max(1)));
        let followed = follower.numbers(&exprs.with(Nest::Inner, given), outer, elected);
        follower.pairs.restart();
        let inserted = followed.map(|()| follower.has_inserted);
        let accesses = self.accesses - follower.left;
        Some(Shown { number, inserted, accesses, refused: follower.refused, pairs: follower.pairs })
    }
}

/// What one inner number shows.
struct Shown {
    number: i64,
    /// Whether turns were inserted into all inner loops; none where it cannot be followed.
    inserted: Option<bool>,
    accesses: u64,
    refused: Option<[i64; 2]>,
    pairs: Pairs,
}
