//! Runs the machine along each control path of a kernel's blocks, and collects the pairs of
//! accesses. If a wait may come too late for its phase, the path is followed once more, with
//! threads that reach this wait as late as possible.
//!
//! If the trip count of a loop is unknown, it looks for a state that repeats after some iterations.
//! From there on larger trip counts behave alike, so that the kernel is proved for all of them.

use crate::expr::{Exprs, Given};
use crate::increments::FOREVER;
use crate::machine::{Machine, Snapshot, Start, Stop};
use crate::pairs::Pairs;
use crate::plan::Plan;
use crate::steps::Nest;
use crate::trip_counts::Number;
use carbyne_atoms::AtomTable;
use carbyne_ir::program::SpecId;
use std::collections::BTreeSet;

/// The most iterations that are followed until a state repeats.
const MAX_ITERATIONS: usize = 1 << 6;
/// The most delayed waits. For each of them, the threads are followed once more.
const MAX_HELD: usize = 4;

/// Follows a kernel along its control paths and collects its pairs.
pub(crate) struct Follower<'a> {
    plan: &'a Plan,
    atoms: &'a AtomTable,
    kernel: SpecId,
    cluster: i64,
    pub(crate) left: u64,
    pub(crate) every_iteration: bool,
    /// Whether to find the shortest rounds.
    pub(crate) wants_shortest: bool,
    /// Whether iterations were inserted into all inner loops.
    pub(crate) has_inserted: bool,
    pub(crate) pairs: Pairs,
    /// The serial number of the last access, and the waits that may come late.
    serial: u32,
    late: BTreeSet<u32>,
    /// The wait that threads reach as late as possible.
    held: Option<u32>,
    /// An expected repetition: the iterations before it, and its length in iterations.
    pub(crate) guess: Option<(usize, i64)>,
    /// The outer and the inner trip count for which an error was found.
    pub(crate) refused: Option<[i64; 2]>,
}

/// A trip count that is large enough for states to repeat.
pub(crate) const LARGE: i64 = 1 << 10;

impl<'a> Follower<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        atoms: &'a AtomTable,
        kernel: SpecId,
        cluster: i64,
        accesses: u64,
    ) -> Self {
        Follower {
            plan,
            atoms,
            kernel,
            cluster,
            left: accesses,
            every_iteration: false,
            wants_shortest: false,
            has_inserted: true,
            pairs: Pairs::default(),
            serial: 0,
            late: BTreeSet::new(),
            held: None,
            guess: None,
            refused: None,
        }
    }

    /// Follows the control paths that begin at these blocks. Stops at the first one that cannot be
    /// followed to its end.
    pub(crate) fn ways(&mut self, exprs: &Exprs<'_>, blocks: &[i64], elected: usize) -> Option<()> {
        blocks.iter().try_for_each(|block| self.follow(exprs, *block, elected).map(drop))
    }

    /// Follows a kernel for all values of a trip count.
    pub(crate) fn numbers(&mut self, exprs: &Exprs<'_>, of: Number, elected: usize) -> Option<()> {
        (self.held, self.late) = (None, BTreeSet::new());
        self.numbers_once(exprs, of, elected)?;
        for wait in std::mem::take(&mut self.late).into_iter().take(MAX_HELD) {
            self.held = Some(wait);
            self.numbers_once(exprs, of, elected)?;
        }
        Some(())
    }

    /// [`Follower::numbers`] for one choice of the delayed wait.
    fn numbers_once(&mut self, exprs: &Exprs<'_>, of: Number, elected: usize) -> Option<()> {
        let many = of.most.unwrap_or(i64::MAX).min(LARGE);
        let exprs = exprs.with(Nest::Outer, Given { id: Some(of.id), value: many, by: 0 });
        self.serial = 0;
        self.pairs.restart();
        if let Some(guess) = self.guess
            && self.is_alike(&exprs, of, elected, guess)?
        {
            return Some(());
        }
        let mut lead = self.lead(&exprs, 0, elected);
        let mut seen = vec![lead.snapshot()];
        while !self.go(&mut lead, true)? {
            let now = lead.snapshot();
            let mut before = seen.iter().enumerate().rev();
            if let Some(again) =
                before.find_map(|(i, s)| now.since(s).map(|iterations| (i, iterations)))
            {
                self.guess = Some(again);
                return match self.is_alike(&exprs, of, elected, again)? {
                    true => Some(()),
                    false => self.give_up(),
                };
            }
            seen.push(now);
            if seen.len() > MAX_ITERATIONS {
                return self.give_up();
            }
        }
        // The loop ends before a state repeats, so every trip count is followed.
        for value in of.least..=lead.tested.min(of.most.unwrap_or(i64::MAX)) {
            self.tail(&seen, &exprs.valued(value, 0), value)?;
        }
        Some(())
    }

    /// Whether the state after `first` iterations repeats after `iterations` more. If so, follows
    /// the kernel for all values of the trip count.
    ///
    /// A leading machine is followed for a large trip count. For a smaller trip count, threads
    /// continue from the last iteration up to which they behave alike. The iterations between the
    /// two equal states may be inserted again before the end. So a trip count whose loop ends
    /// between the two states represents larger trip counts.
    fn is_alike(
        &mut self,
        exprs: &Exprs<'_>,
        of: Number,
        elected: usize,
        (first, iterations): (usize, i64),
    ) -> Option<bool> {
        let most = of.most.unwrap_or(i64::MAX);
        let family = exprs.valued(exprs.given(Nest::Outer).value, iterations);
        let mut lead = self.lead(&family, 0, elected);
        let mut seen = vec![lead.snapshot()];
        for _ in 0..first {
            if self.go(&mut lead, true)? {
                return Some(false);
            }
            seen.push(lead.snapshot());
        }
        lead.begin_stretch(iterations);
        let mut within = vec![];
        for _ in 0..iterations {
            within.push(lead.behind_stretch());
            if self.go(&mut lead, true)? {
                return Some(false);
            }
        }
        if lead.snapshot().since(&seen[first]) != Some(iterations) {
            return Some(false);
        }
        let least = seen[first].least;
        // The trip count itself may have decided a condition.
        if least == i64::MAX {
            return Some(false);
        }
        for value in of.least..least.min(most.saturating_add(1)) {
            self.tail(&seen, &exprs.valued(value, 0), value)?;
        }
        // Each residue class of trip counts needs one member into which iterations can be inserted,
        // also in later loops.
        let mut alike = 0;
        for value in least..least + 4 * iterations + 16 {
            if alike == iterations || value > most {
                return Some(true);
            }
            let all = self.tail(&within, &exprs.valued(value, iterations), value)? == FOREVER;
            alike = if all { alike + 1 } else { 0 };
        }
        Some(alike == iterations)
    }

    fn lead<'p, 'b>(&mut self, exprs: &'b Exprs<'p>, first: i64, elected: usize) -> Machine<'p, 'b>
    where
        'a: 'b,
    {
        let (blocks, held) = (self.cluster as usize, self.held);
        let start = Start { blocks, first, elected, max_steps: self.left, held };
        let mut lead = Machine::new(exprs, self.plan, self.atoms, start, Pairs::default());
        lead.begin(self.kernel);
        lead
    }

    /// Continues to the end for a trip count. Returns the number of larger trip counts for which
    /// the result holds.
    fn tail(&mut self, seen: &[Snapshot<'_, '_>], exprs: &Exprs<'_>, n: i64) -> Option<u64> {
        let from = seen.iter().rev().find(|s| s.least <= n)?;
        let mut machine = from.machine.clone();
        machine.give(exprs);
        self.go(&mut machine, false)?;
        Some(machine.watch.number[Nest::Outer as usize].unwrap_or(0))
    }

    /// Continues until the threads end (true) or reach the next iteration (false). Returns none if
    /// they cannot be followed.
    fn go(&mut self, machine: &mut Machine<'_, '_>, to_next_iteration: bool) -> Option<bool> {
        machine.resume(self.serial, self.left);
        machine.pairs = std::mem::take(&mut self.pairs);
        let before = machine.steps();
        let ended = machine.run(to_next_iteration);
        self.left = self.left.saturating_sub(machine.steps() - before);
        self.serial = machine.serial();
        self.pairs = std::mem::take(&mut machine.pairs);
        self.late.append(&mut machine.late);
        if matches!(ended, Ok(true)) {
            let inner = machine.watch.number[Nest::Inner as usize];
            self.has_inserted &= inner.is_none_or(|n| n == FOREVER);
        }
        if self.refused.is_none() && self.pairs.is_refused() {
            self.refused = Some(machine.trip_counts());
        }
        if let Err(Stop::Limit(what)) = &ended {
            let help = "check a smaller kernel of the same form";
            self.pairs.undecided(0, what, help);
        }
        ended.ok().filter(|_| self.refused.is_none() || !machine.is_counted())
    }

    /// Reports that the kernel is not decided for all trip counts.
    pub(crate) fn give_up<T>(&mut self) -> Option<T> {
        let what = "no trip count was found that represents all larger ones";
        self.pairs.undecided(0, what, "give the symbols values");
        None
    }

    /// Follows one control path. Returns the distances by which loop variables advanced over the
    /// rounds that were left out, or none if the threads do not reach their ends.
    pub(crate) fn follow(
        &mut self,
        exprs: &Exprs<'_>,
        block: i64,
        elected: usize,
    ) -> Option<Vec<i64>> {
        (self.held, self.late) = (None, BTreeSet::new());
        let strides = self.follow_once(exprs, block, elected)?;
        // A wait that may come late is delayed as long as possible, which shows whether it may come
        // too late.
        for wait in std::mem::take(&mut self.late).into_iter().take(MAX_HELD) {
            self.held = Some(wait);
            self.follow_once(exprs, block, elected);
        }
        Some(strides)
    }

    /// [`Follower::follow`] for one choice of the delayed wait.
    fn follow_once(&mut self, exprs: &Exprs<'_>, block: i64, elected: usize) -> Option<Vec<i64>> {
        self.serial = 0;
        self.pairs.restart();
        let mut machine = self.lead(exprs, block, elected);
        machine.rounds.every_iteration |= self.every_iteration;
        machine.rounds.are_shortest = self.wants_shortest;
        self.go(&mut machine, false)?;
        Some(std::mem::take(&mut machine.rounds.strides))
    }
}
